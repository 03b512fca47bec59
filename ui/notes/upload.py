"""Files that are uploaded become notes, one after the other; one that fails stops none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

import streamlit as st

from memchat.api import User
from memchat.errors import MemChatError
from memchat.types import Progress
from ui import components as ui
from ui.notes import place
from ui.settings import tasks

TASK = "note files"
SHOWN = 20
"""Files that failed which are named, each with the reason."""


@dataclass(frozen=True, slots=True)
class File:
    """What the browser sent."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What came of it."""

    added: int
    failed: tuple[tuple[str, str], ...]
    """Each file's name and the reason."""


def form() -> None:
    """Choose the files."""
    busy = tasks.running(TASK)
    with st.container(key="upload-notes", border=True):
        # Another number empties the box.
        number = st.session_state.setdefault("uploads", 0)
        files = st.file_uploader(
            "Files to keep as notes", accept_multiple_files=True, key=f"note-files-{number}"
        )
        st.caption("Text, Markdown, HTML, subtitles, PDF, Word and recordings.")
        with st.container(horizontal=True):
            words = f"Add {ui.plural(len(files), 'file')}" if files else "Add"
            sent = st.button(words, key="add-files", type="primary", disabled=busy or not files)
            st.button("Cancel", key="leave-upload", on_click=place.go)
    if sent:
        chosen = [File(one.name, one.getvalue()) for one in files]
        tasks.begin(TASK, "Reading files", partial(add_all, ui.person(), chosen))
        st.session_state["uploads"] += 1
        place.go()
        st.rerun()


def progress() -> None:
    """How far the upload is, and what came of the last one until it is put away."""
    busy = tasks.running(TASK)
    task = tasks.ended(TASK)
    if task is None or busy or task.result is None:
        return
    done: Uploaded = task.result
    with st.container(key="uploaded-notes"):
        if done.added:
            st.success(f"{ui.plural(done.added, 'file')} kept as notes.")
        for name, reason in done.failed[:SHOWN]:
            st.warning(f"**{ui.literal(name)}** was not kept: {ui.sentence(reason)}")
        if len(done.failed) > SHOWN:
            st.caption(f"And {len(done.failed) - SHOWN:,} more were not kept.")
        st.button("OK", key="put-away", type="tertiary", on_click=_put_away)


def add_all(
    person: User, files: Sequence[File], *, progress: Callable[[Progress], None]
) -> Uploaded:
    """Keep each file as a note. The desk's worker makes their vectors."""
    begun, failed = monotonic(), []
    for n, file in enumerate(files):
        progress(Progress(n, len(files), monotonic() - begun))
        try:
            person.notes.add_upload(file.name, file.data, wait=False)
        except MemChatError as error:
            failed.append((file.name, str(error)))
    return Uploaded(len(files) - len(failed), tuple(failed))


def _put_away() -> None:
    ui.desk().tasks.pop(TASK, None)
