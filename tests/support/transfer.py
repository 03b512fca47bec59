"""Exports and imports: a person with something of every kind, and files with a change in them."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from memchat import MemChat, User
from memchat.config import Settings
from memchat.db.database import FILE
from memchat.providers.embedders import HashEmbedder
from memchat.testing import FakeClock, ScriptedModel
from memchat.transfer import kinds
from tests.support import empty_store
from tests.support.answers import answer, fact
from tests.support.store import NOON, WAIT

MEMO = "The marketing budget is forty thousand. John wants it on Friday."
Record = dict[str, Any]


@contextmanager
def store(folder: Path) -> Iterator[tuple[MemChat, FakeClock, ScriptedModel]]:
    """A store as the tests have it, for more than one test."""
    clock, chat, extract = FakeClock(NOON), ScriptedModel(), ScriptedModel(name="scripted/extract")
    chat.replies.extend(["Fine."] * 10)
    settings = Settings(home=folder / "store", timezone="Europe/Berlin", embed_patience=WAIT)
    with MemChat(
        settings=settings,
        chat_model=chat,
        extract_model=extract,
        embedder=HashEmbedder(),
        clock=clock,
    ) as mc:
        yield mc, clock, extract


def fill(mc: MemChat, clock: FakeClock, extract_model: ScriptedModel) -> User:
    """A person with memories of several states, conversations, an inbox and a switch."""
    ana = mc.user("ana")
    for town in ("Lisbon", "Porto"):
        said = f"I live in {town}"
        extract_model.replies.append(
            answer(fact(said, "city", town), title=town, summary=f"Lives in {town}.")
        )
        ana.add(said)
        clock.advance(seconds=60)
    tea = ana.memories.add("preference", "tea", "green tea", all_apps=True)
    ana.memories.update(tea.id, value="black tea")
    ana.memories.pin(tea.id)
    asthma = fact("I have asthma", "health_condition", "asthma", flags=["sensitive"])
    extract_model.replies.append(answer(asthma))
    ana.add("I have asthma")
    clock.advance(seconds=60)
    with ana.chat() as chat:
        chat.send("Where do I live?").read()
        extract_model.replies.append(answer())
    work = mc.user("ana", app="work")
    work.memories.add("fact", "desk", "by the window")
    work.set_memory(False)
    clock.advance(seconds=60)
    ana.notes.add(MEMO, title="Budget", external_id=7, pair_id=5, created_at=clock())
    ana.notes.search("marketing budget")
    work.notes.add("# Rules\n\nDoors close at six.", type="file", external_id="rules.md")
    ana.add("I have not been read yet", wait=False)
    return ana


def place_filled(home: Path, clock: FakeClock) -> None:
    """Put the file of a store that ``fill`` has filled into a folder without one, and its time into
    the clock."""
    content, clock.now = _filled()
    (empty_store.place(home) / FILE).write_bytes(content)


@cache
def _filled() -> tuple[bytes, datetime]:
    """The bytes of a filled store, made once in each process, and its time."""
    with tempfile.TemporaryDirectory() as folder:
        with store(Path(folder)) as (mc, clock, extract_model):
            fill(mc, clock, extract_model)
        return (mc.settings.home / FILE).read_bytes(), clock()


def values(person: User) -> set[tuple[str, str, str]]:
    """App, key and value of every memory that would be exported."""
    return {
        (one["app"], one["key"], one["value"])
        for one in person.export()
        if one["record"] == "memory"
    }


def changed(file: Path, change: Callable[[Record], Record | None]) -> Path:
    """A copy of an export in which each record is what ``change`` makes of it; None takes it
    out."""
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    kept = [json.dumps(made) for record in lines if (made := change(record)) is not None]
    copy = file.with_name(f"changed-{file.name}")
    copy.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return copy


def renumbered(records: Iterable[Record]) -> list[Record]:
    """The records with ids that count from 1 in the order of their kind."""
    every = list(records)
    numbers: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for record in every:
        if "id" in record:
            known = numbers[record["record"]]
            known[record["id"]] = len(known) + 1
    return [_renumbered(record, numbers) for record in every]


def _renumbered(record: Record, numbers: dict[str, dict[int, int]]) -> Record:
    kind = kinds.KINDS[record["record"]]
    refers = {field.name: field.refers for field in kind.fields if field.refers}
    refers |= {"id": kind.name, "extracted_to": "message"}
    return record | {
        name: numbers[of][record[name]] for name, of in refers.items() if record.get(name)
    }
