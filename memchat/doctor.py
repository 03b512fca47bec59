"""What is in use and why, and what is wrong: the checks behind ``memchat doctor``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from memchat.config import Settings
from memchat.errors import MemChatError
from memchat.memory.meaning import Meaning
from memchat.providers import choose
from memchat.store import jobs, meta
from memchat.store.database import Database
from memchat.store.schema import HEAD, embeddings, memories


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. ``state`` is ok, note or problem; ``remedy`` says what to do, or is empty."""

    name: str
    state: str
    detail: str
    remedy: str = ""


def examine(
    database: Database,
    settings: Settings,
    meaning: Callable[[], tuple[Meaning | None, str | None]],
    now: datetime,
) -> list[Check]:
    """All checks, in the order a person would ask. Calls no provider."""
    return [
        Check("data folder", "ok", str(settings.home)),
        Check("time zone", "ok", settings.timezone),
        *_models(settings),
        *_store(database),
        *_vectors(database, meaning),
        *_queue(database, now),
    ]


def _models(settings: Settings) -> Iterator[Check]:
    for choice in choose.explain(settings):
        name = choice.setting.replace("_", " ")
        detail = f"{choice.model} ({choice.why})"
        if choice.note:
            detail += f": {choice.note}"
        state = "problem" if choice.problem else "note" if choice.note else "ok"
        if choice.problem:
            detail += f": {choice.problem}"
        yield Check(name, state, detail, choice.remedy or "")


def _store(database: Database) -> Iterator[Check]:
    with database.read() as tx:
        answer = tx.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        rows = tx.exec_driver_sql("SELECT count(*) FROM memories WHERE active = 1").scalar_one()
        words = tx.exec_driver_sql("SELECT count(*) FROM memories_fts").scalar_one()
        scrub = meta.get(tx, "scrub_pending")
    if answer == "ok":
        yield Check("database", "ok", f"{database.path.name}, schema {HEAD}, {rows} memories")
    else:
        yield Check("database", "problem", str(answer), "restore a backup of the data folder")
    if words != rows:
        yield Check(
            "keyword search",
            "problem",
            f"{words} keyword rows for {rows} memories",
            "report this, with how you got there",
        )
    if scrub is not None:
        yield Check(
            "forgetting", "note", "deleted words still leave the file", "run memchat jobs run"
        )


def _vectors(
    database: Database, meaning: Callable[[], tuple[Meaning | None, str | None]]
) -> Iterator[Check]:
    try:
        sense, why_not = meaning()
    except MemChatError as error:
        yield Check("vectors", "problem", str(error))
        return
    if sense is None:
        yield Check("vectors", "note", f"none: {why_not}")
        return
    m, e = memories.c, embeddings.c
    embedded = (
        select(m.app_id, m.id)
        .join(embeddings, (e.hash == m.text_hash) & (e.service_id == sense.service_id))
        .where(m.active == 1)
    )
    with database.read() as tx:
        rows: dict[int, set[int]] = {}
        for app_id, memory_id in tx.execute(embedded):
            rows.setdefault(app_id, set()).add(memory_id)
        total = tx.execute(select(m.app_id).where(m.active == 1)).all()
        drift = [app_id for app_id, ids in rows.items() if sense.index.ids(tx, app_id) != ids]
    if drift:
        yield Check(
            "vectors",
            "problem",
            f"the index differs from the rows in {len(drift)} scopes",
            "delete the folder mem.index; it is rebuilt from the rows",
        )
        return
    held = sum(len(ids) for ids in rows.values())
    detail = f"{held} of {len(total)} memories, {sense.embedder.service.name}"
    state = "ok" if held == len(total) else "note"
    yield Check("vectors", state, detail, "" if state == "ok" else "run memchat jobs run")


def _queue(database: Database, now: datetime) -> Iterator[Check]:
    with database.read() as tx:
        failed = jobs.listed(tx, user=None, status="failed", now=now, limit=1)
        pending = jobs.listed(tx, user=None, status="pending", now=now, limit=1)
    if failed:
        yield Check(
            "queue",
            "problem",
            f"failed: {failed[0].error_message}",
            "see memchat jobs status, then memchat jobs retry",
        )
    elif pending:
        yield Check("queue", "note", "work is waiting", "memchat jobs run does it now")
    else:
        yield Check("queue", "ok", "nothing waits")
