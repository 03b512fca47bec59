"""kill -9 while notes are indexed: what was stored stays, and what was finished is not repeated."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from memchat.providers.embedders import HashEmbedder
from memchat.types import NewNote, Progress
from tests.support import notes
from tests.support.embedding_queue import Service
from tests.support.kills import Victim, child_store, wait_for_the_kill
from tests.support.store import Opener

MANY = [NewNote(f"the parcel number {n}", external_id=n) for n in range(620)]
LONG = notes.essay(5)


class HangingLater(HashEmbedder):
    """Answers so many calls, then tells what was counted by then and never answers again."""

    def __init__(self, reached: Connection, calls: int, told: list[Progress]) -> None:
        super().__init__()
        self._reached, self._left, self._told = reached, calls, told

    def embed_documents(self, texts: Sequence[str]) -> Any:
        if not self._left:
            wait_for_the_kill(self._reached, self._told[-1].done if self._told else 0)
        self._left -= 1
        return super().embed_documents(texts)


def adds_many(home: Path, reached: Connection) -> None:
    told: list[Progress] = []
    mc = child_store(home, embedder=HangingLater(reached, 3, told))
    mc.user("ana").notes.add_many(MANY, on_progress=told.append)


def edits(home: Path, reached: Connection) -> None:
    mc = child_store(home, embedder=HangingLater(reached, 1, []))
    note = notes.add(mc, LONG, external_id="essay")
    mc.user("ana").notes.update(note.id, text=LONG.replace(" 7 crates", " 7 zebras"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.mark.slow
def test_notes_stored_before_the_kill_are_all_there_and_none_is_embedded_twice(
    home: Path, open_store: Opener
) -> None:
    victim = Victim(adds_many, home)
    victim.kill()
    service = Service()
    mc = open_store(embedder=service)
    stored, made = notes.count(mc, "sources"), notes.count(mc, "embeddings")
    assert stored >= 500 and 0 < victim.said <= made < stored
    ana = mc.user("ana").notes
    assert {h.source_id for h in ana.search("parcel number 499", limit=1).hits} == {499}
    done = ana.add_many(MANY)
    assert len(done.ids) == 620 and done.failed == {}
    assert notes.count(mc, "sources") == notes.count(mc, "embeddings") == 620
    sent = [text for texts in service.asked for text in texts if text != "parcel number 499"]
    assert len(sent) == len(set(sent)) == 620 - made
    assert ana.report().waiting == ana.report().failed == 0


def test_an_edit_that_was_killed_is_there_whole_and_its_vectors_follow(
    home: Path, open_store: Opener
) -> None:
    Victim(edits, home).kill()
    mc = open_store()
    (note,) = mc.user("ana").notes.list()
    text = mc.user("ana").notes.get(note.id).text
    assert text == LONG.replace(" 7 crates", " 7 zebras")
    assert all(text[row[1] : row[1] + row[2]] == row[3] for row in notes.chunks(mc))
    assert mc.user("ana").notes.search("zebras").hits
    mc.jobs.run()
    report = mc.user("ana").notes.report()
    assert report.chunks_without_vector == report.waiting == 0
