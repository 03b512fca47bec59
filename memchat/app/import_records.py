"""Importing records into the store: all of them in one transaction, or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from memchat.app.import_file import opened
from memchat.app.import_notes import NoteCuts
from memchat.assembly import Assembly
from memchat.memory.context import WHOLE_STORE, Context
from memchat.memory.forgetting import purge
from memchat.memory.recall import turn_texts
from memchat.memory.transfer.import_run import ImportRun
from memchat.memory.transfer.imported_notes import Cut
from memchat.store import unembedded
from memchat.types import Imported, OnProgress, Progress, Scope

_EVERY = 500
"""Records between two reports of the progress."""


class _DryRun(Exception):
    """Ends the transaction without its changes."""


def import_file(
    assembly: Assembly, scope: Scope, file: Path, *, dry_run: bool, progress: OnProgress | None
) -> Imported:
    """Import an export file as this person's. Its notes are cut in a first reading of the file."""
    cuts = NoteCuts(assembly, scope)
    with opened(file) as source:
        noted = source.contains.get("note", 0)
        if noted:
            cuts.prepare(source.lines, expected=noted, progress=progress)
    with opened(file) as source:
        return import_records(
            assembly,
            scope,
            source.lines,
            cut=cuts.cut,
            expected=sum(source.contains.values()),
            dry_run=dry_run,
            progress=progress,
        )


def import_records(
    assembly: Assembly,
    scope: Scope,
    records: Iterable[tuple[int, Mapping[str, Any]]],
    *,
    cut: Cut,
    expected: int,
    dry_run: bool,
    progress: OnProgress | None,
) -> Imported:
    """Write records of the kinds of an export, each with its line, as those of this person.

    ``cut`` cuts the texts of notes. Others who write wait for that transaction. Where ``records``
    raises, nothing is stored.
    """
    done: Imported | None = None
    began = monotonic()
    embeds = assembly.embeds()
    try:
        with assembly.database.write() as tx:
            ctx = Context(tx, WHOLE_STORE, assembly.clock(), assembly.settings.zone)
            run = ImportRun(ctx, scope.user, cut)
            for count, (line, record) in enumerate(records, 1):
                run.take(line, record)
                if progress is not None and count % _EVERY == 0:
                    total = max(expected, count)
                    progress(Progress(count, total, monotonic() - began, unit="records"))
            done, stale = run.finish(embeds=embeds)
            if dry_run:
                raise _DryRun
            assembly.drop_vectors(tx, stale)
    except _DryRun:
        assert done is not None
        return replace(done, dry_run=True)
    purge.scrub(assembly.database)
    if not embeds:
        _write_search_texts(assembly)
    return done


def _write_search_texts(assembly: Assembly) -> None:
    """Write the texts of conversations that have none yet, as no job does where there is no
    embedding model. Others may write in between, since it takes long."""
    with assembly.database.read() as tx:
        found = unembedded.sessions_to_index(tx)
    for session_id in found:
        with assembly.database.write() as tx:
            ctx = Context(tx, WHOLE_STORE, assembly.clock(), assembly.settings.zone)
            turn_texts.write(ctx, session_id, None, {})
