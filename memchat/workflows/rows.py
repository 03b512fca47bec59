"""The rows of workflows and their runs: kept, begun by triggers, and gone with what they read.

A run is a job of the queue as well, under whose lease it is done. What it read is known by note, so
that it goes with a note that is deleted; of a fact that is forgotten the words are blanked in it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from memchat import processes
from memchat.db import Tx, jobs
from memchat.db import schema as t
from memchat.db.records import among
from memchat.errors import InputError, NotFound
from memchat.types import NewNote
from memchat.types.workflows import RunStep, WorkflowInfo, WorkflowRun

if TYPE_CHECKING:
    from memchat.workflows.definition import Definition

log = logging.getLogger(__name__)
KIND = "workflow"
"""The kind of job that a run is."""
NOTE = "note"
"""The trigger of a workflow that is run for each note that comes in."""
NOTE_TYPE = "workflow"
"""The type of the notes that results become; they trigger nothing."""
KEPT = timedelta(days=30)
"""For how long a run is kept."""
RUNS_A_DAY = 100
"""Runs of one workflow that notes, or one program, may begin in a day."""
_w, _r, _j = t.workflows.c, t.workflow_runs.c, t.jobs.c
_ON_NOTE = sa.select(_w.slug, _w.definition)
_ON_NOTE = _ON_NOTE.where(_w.app_id == sa.bindparam("app"), _w.on_note == 1).order_by(_w.id)


@cache
def starters() -> dict[str, str]:
    """The texts of the workflows that come with memchat, by slug."""
    there = (files("memchat.workflows") / "starters").iterdir()
    return {one.name.removesuffix(".json"): one.read_text("utf-8") for one in there}


def put(tx: Tx, definition: Definition, text: str) -> None:
    """Keep a workflow, in the place of one of its slug."""
    from memchat.workflows.definition import next_time

    schedule = next_time(definition.when, tx.now, tx.zone)
    values = {"definition": text, "on_note": int(definition.when == NOTE), "next_at": schedule}
    if not change_workflow(tx, definition.slug, **values):
        new = {"app_id": tx.own, "slug": definition.slug, "created_at": tx.now}
        tx.execute(sa.insert(t.workflows).values(**new, **values))


def change_workflow(tx: Tx, slug: str, **columns: Any) -> bool:
    """Set columns of a workflow; whether it is there."""
    here = sa.update(t.workflows).where(_w.app_id == tx.own, _w.slug == slug)
    return bool(tx.execute(here.values(**columns)).rowcount)


def delete(tx: Tx, slug: str) -> bool:
    """Delete a workflow; whether there was one. Its runs stay."""
    gone = sa.delete(t.workflows).where(_w.app_id == tx.own, _w.slug == slug)
    return bool(tx.execute(gone).rowcount)


def listed(tx: Tx) -> dict[str, WorkflowInfo]:
    """The workflows of the scope, those that come with memchat among them, by slug."""
    added = {row.slug: row for row in tx.execute(sa.select(t.workflows).where(_w.app_id == tx.own))}
    found = {}
    for slug in sorted({*starters(), *added}):
        row = added.get(slug)
        text = starters()[slug] if row is None else row.definition
        one = json.loads(text)  # it was checked when it was added, maybe by an earlier version
        about = (slug, one["name"], one.get("description", ""), text, row is not None)
        found[slug] = WorkflowInfo(*about, one.get("when"))
        if row is not None:
            shared = tuple(json.loads(row.shared_with))
            found[slug] = replace(found[slug], next_at=row.next_at, shared_with=shared)
    return found


def begin(tx: Tx, slug: str, text: str, *, note: Any = None, program: str | None = None) -> int:
    """Begin a run by hand, or for a program; its id. Raises NotFound where there is no such
    workflow, or where it is not shared with the program, InputError where that ran it too often."""
    found = listed(tx)
    if program is not None:
        found = {name: one for name, one in found.items() if program in one.shared_with}
    if slug not in found:
        what = "is here" if program is None else "is shared with it"
        raise NotFound(f"no workflow {slug!r} {what}; there are: {', '.join(found) or 'none'}")
    trigger = "hand" if program is None else f"program {program}"
    run_id = _start(tx, tx.own, slug, found[slug].definition, trigger, text, note=note)
    if run_id is None:
        raise InputError(f"{slug} ran {RUNS_A_DAY} times within a day; try it again tomorrow")
    return run_id


def _start(
    tx: Tx, app_id: int, slug: str, definition: str, trigger: str, text: str = "", note: Any = None
) -> int | None:
    """Begin a run, and queue it; its id. None where a note or a program has begun as many today as
    it may. ``note`` is what it is run on, with its id."""
    if trigger not in ("hand", "schedule"):
        many = sa.select(sa.func.count()).where(_r.app_id == app_id, _r.slug == slug)
        today = many.where(_r.trigger == trigger, _r.created_at > tx.now - timedelta(days=1))
        if tx.execute(today).scalar_one() >= RUNS_A_DAY:
            log.warning("a workflow was not run: it ran %d times within a day", RUNS_A_DAY)
            return None
    note_id, title, at = note or (None, None, None)
    day = f"{(at or tx.now).astimezone(tx.zone):%F}"
    given = {"TRANSCRIPT": text, "TITLE": title or "", "DATE": day}
    run_id = tx.insert(
        t.workflow_runs,
        app_id=app_id,
        slug=slug,
        definition=definition,
        trigger=trigger,
        input=json.dumps(given, ensure_ascii=False),
        notes=json.dumps([note_id] if note_id else []),
        created_at=tx.now,
    )
    jobs.enqueue(tx, KIND, app_id, run_id, tx.now)
    return run_id


def waiting_for(tx: Tx, app_id: int, note: NewNote) -> list[Any]:
    """Slugs and definitions of the workflows that are to be run when this note comes in."""
    return [] if note.type == NOTE_TYPE else tx.rows(_ON_NOTE, app=app_id)


def note_came(tx: Tx, app_id: int, note_id: int, note: NewNote, begun: Sequence[Any]) -> None:
    """Begin these workflows for a note that came in."""
    about = (note_id, note.title, note.created_at)
    for slug, definition in begun:
        _start(tx, app_id, slug, definition, NOTE, note.text, about)


def is_due(tx: Tx) -> bool:
    """Whether the time of a workflow has come, or a run is kept no longer."""
    due = sa.select(_w.id).where(_w.next_at <= tx.now)
    old = sa.select(_r.id).where(_r.created_at < tx.now - KEPT)
    return bool(tx.execute(sa.select(sa.or_(due.exists(), old.exists()))).scalar())


def upkeep(tx: Tx) -> None:
    """Begin the workflows whose time has come, once whatever was missed, and delete old runs."""
    from memchat.workflows.definition import next_time

    if tx.execute(sa.delete(t.workflow_runs).where(_r.created_at < tx.now - KEPT)).rowcount:
        tx.forget_bytes()
    for row in tx.execute(sa.select(t.workflows).where(_w.next_at <= tx.now)).all():
        _start(tx, row.app_id, row.slug, row.definition, "schedule")
        next_at = next_time(json.loads(row.definition).get("when"), tx.now, tx.zone)
        change_workflow(tx.within(row.app_id), row.slug, next_at=next_at)


def row_of(tx: Tx, run_id: int) -> Any:
    """The row of a run, with whose it is; None where it is gone."""
    query = sa.select(t.workflow_runs, t.apps.c.user, t.apps.c.name.label("app")).join(t.apps)
    return tx.execute(query.where(_r.id == run_id)).first()


def steps_of(row: Any) -> dict[str, RunStep]:
    """The steps of a row, by id."""
    return {one["id"]: RunStep(**one) for one in json.loads(row.steps)}


def change(tx: Tx, run_id: int, steps: Iterable[RunStep] | None = None, **columns: Any) -> None:
    """Set columns of a run, and its steps where they are given."""
    if steps is not None:
        columns["steps"] = json.dumps([asdict(one) for one in steps], ensure_ascii=False)
    if "state" in columns:
        columns["finished_at"] = None if columns["state"] in ("running", "waiting") else tx.now
    tx.execute(sa.update(t.workflow_runs).where(_r.id == run_id).values(**columns))


def runs(tx: Tx, *only: Any, limit: int = 1) -> list[WorkflowRun]:
    """The runs of the scope for which these conditions hold, the newest first. One whose process
    has ended is interrupted, and of a tool that it was calling it is not known what came of it."""
    held = (_j.kind == KIND) & (_j.source_id == _r.id)
    query = sa.select(t.workflow_runs, _j.lease_owner).outerjoin(t.jobs, held)
    query = query.where(_r.app_id == tx.own, *only).order_by(_r.id.desc()).limit(limit)
    found = []
    for row in tx.execute(query):
        state, steps = row.state, [*steps_of(row).values()]
        if state == "running" and processes.has_ended(row.lease_owner):
            state = "interrupted"
        if state != "running":
            gone = "calling"
            steps = [replace(s, state="unknown") if s.state == gone else s for s in steps]
        text = json.loads(row.input)["TRANSCRIPT"]
        about = (row.id, row.slug, state, row.trigger, text, tuple(steps), row.error)
        found.append(WorkflowRun(*about, row.created_at, row.finished_at))
    return found


def run(tx: Tx, run_id: int) -> WorkflowRun:
    """One run of the scope. Raises NotFound outside it."""
    for one in runs(tx, _r.id == run_id):
        return one
    raise NotFound(f"there is no run {run_id} here", see="workflow runs")


def go_on(tx: Tx, run: WorkflowRun, *, yes: bool = False) -> None:
    """Queue a run that has ended for now; with ``yes`` the call that it waits for is allowed."""
    allowed = ("waiting", "unknown") if yes else ()
    steps = [replace(one, state="allowed") if one.state in allowed else one for one in run.steps]
    remove_questions(tx, run.id)
    change(tx, run.id, steps, state="running")
    jobs.enqueue(tx, KIND, tx.own, run.id, tx.now)


def stop(tx: Tx, run_id: int) -> None:
    """Have a run end, and nothing else of it begin."""
    remove_questions(tx, run_id)
    change(tx, run_id, state="stopped")


def remove_questions(tx: Tx, run_id: int) -> None:
    """Delete what asks in the inbox whether a run goes on."""
    tx.execute(sa.delete(t.proposals).where(t.proposals.c.run_id == run_id))


def remove_of_note(tx: Tx, note_id: int) -> None:
    """Delete the runs that were given a note."""
    read = sa.func.json_each(_r.notes).table_valued("value")
    same = sa.cast(read.c.value, sa.String) == str(note_id)
    read_it = sa.select(read.c.value).where(same).correlate(t.workflow_runs)
    tx.execute(sa.delete(t.workflow_runs).where(read_it.exists()))


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """A value of JSON with each of its texts changed, and each name in it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): mapped(one, change) for key, one in value.items()}
    return [mapped(one, change) for one in value] if isinstance(value, list) else value


_WORDS = ("text", "value", "call")
"""The parts of a step that hold words."""


def blank(tx: Tx, app_ids: Sequence[int], blanked: Callable[[str], str]) -> None:
    """Change every text of the runs of these scope rows, but for the workflows themselves."""
    for row in tx.execute(sa.select(t.workflow_runs).where(among(_r.app_id, app_ids))).all():
        steps = [
            replace(one, **{name: mapped(getattr(one, name), blanked) for name in _WORDS})
            for one in steps_of(row).values()
        ]
        given = {name: blanked(one) for name, one in json.loads(row.input).items()}
        told = {"input": json.dumps(given, ensure_ascii=False)}
        change(tx, row.id, steps, **told, error=row.error and blanked(row.error))
