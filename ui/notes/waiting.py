"""The notes that are being indexed: some of their vectors are still to be made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from memchat.types import Job
from ui import components as ui

SECONDS = 1.0
"""How often it is looked whether a note is indexed."""


def jobs(note_ids: Sequence[int]) -> dict[int, Job]:
    """The unfinished or failed job of each of these notes that has one."""
    desk = ui.desk()
    return {
        job.target_id: job
        for status in ("failed", "running", "pending")
        for job in desk.mc.jobs.list(
            user=desk.user, status=status, note_ids=note_ids, limit=len(note_ids)
        )
    }


def watch(note_ids: Iterable[int], now: Mapping[int, Job]) -> None:
    """Draw the page anew when one of these notes is indexed, or could not be."""
    mine = frozenset(now.keys() & set(note_ids))
    if any(now[note_id].status != "failed" for note_id in mine):
        st.fragment(_look, run_every=SECONDS)(mine, _states(now, mine))


def _look(mine: frozenset[int], before: set[tuple[int, str | None]]) -> None:
    if _states(jobs([*mine]), mine) != before:
        st.rerun()


def _states(found: Mapping[int, Job], mine: frozenset[int]) -> set[tuple[int, str | None]]:
    return {(i, found[i].error_message) for i in mine if i in found}
