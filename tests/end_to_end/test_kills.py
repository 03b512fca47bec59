"""kill -9: what was acknowledged stays, what was begun is finished at the next start."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

import pytest

from benchmarks import crash, crash_fresh
from memchat.db import apps
from memchat.db.database import Database
from memchat.errors import StoreError
from memchat.providers.embedders import HashEmbedder
from memchat.testing import ScriptedModel
from memchat.types import Scope
from tests.support.answers import answer, fact
from tests.support.kills import Victim, child_store, start_a_chat, wait_for_the_kill
from tests.support.store import Opener

SAID = "My city is Lisbon. It is warm here."
LISBON = answer(fact("My city is Lisbon", "city", "Lisbon"))


@pytest.mark.slow
def test_25_kills_among_busy_processes_lose_nothing_and_hide_nothing_that_is_new(
    tmp_path: Path,
) -> None:
    seen = crash.run(tmp_path / "crash", rounds=19, seed=7)
    assert seen.faults == []
    assert seen.diaries.errors == []
    assert seen.died == 0
    assert seen.kills >= 25
    assert len(seen.diaries.acknowledged) > seen.kills
    assert seen.in_a_call > 0
    assert seen.fresh[crash_fresh.MISSED] == 0
    assert seen.fresh[crash_fresh.BY_MEANING] > seen.kills


class HangingEmbedder(HashEmbedder):
    """Tells that it was asked, and never answers."""

    def __init__(self, reached: Connection) -> None:
        self.reached = reached

    def embed_documents(self, texts: Sequence[str]) -> NoReturn:
        wait_for_the_kill(self.reached)


def asks_the_model(home: Path, reached: Connection) -> None:
    hanging = ScriptedModel([lambda _: wait_for_the_kill(reached)])
    assert child_store(home, chat_model=hanging).user("ana").chat().send(SAID).read()


def reads_the_session(home: Path, reached: Connection) -> None:
    hanging = ScriptedModel([lambda _: wait_for_the_kill(reached)])
    chat = child_store(home, extract_model=hanging).user("ana").chat()
    assert chat.send(SAID).read()
    chat.end()


def adds_and_embeds(home: Path, reached: Connection) -> None:
    mc = child_store(home, embedder=HangingEmbedder(reached))
    mc.user("ana").memories.add("fact", "boat", "the Saudade")
    mc.jobs.embed()


def stays_in_a_session(home: Path, reached: Connection) -> None:
    chat = child_store(home).user("ana").chat()
    assert chat.send(SAID).read()
    wait_for_the_kill(reached, chat.session_id)


def holds_the_writers_place(home: Path, reached: Connection) -> None:
    with Database(home).write() as tx:
        apps.ensure(tx, Scope("ghost"))
        wait_for_the_kill(reached)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_words_whose_reply_never_came_are_kept_and_read_at_the_next_start(
    home: Path, open_store: Opener, extract_model: ScriptedModel
) -> None:
    Victim(asks_the_model, home).kill()
    extract_model.replies.append(LISBON)
    mc = open_store()
    ana = mc.user("ana")
    start_a_chat(mc)
    (session,) = ana.sessions.list()
    assert [(m.role, m.content) for m in ana.sessions.messages(session.id)] == [("user", SAID)]
    assert session.ended_at is not None
    assert session.status == "extracted"
    (memory,) = ana.memories.list()
    assert (memory.key, memory.value) == ("city", "Lisbon")


def test_a_reading_that_was_killed_is_done_again_at_the_next_start_and_counts_once(
    home: Path, open_store: Opener, extract_model: ScriptedModel
) -> None:
    Victim(reads_the_session, home).kill()
    extract_model.replies.append(LISBON)
    mc = open_store()
    ana = mc.user("ana")
    assert ana.memories.list() == []
    start_a_chat(mc)
    (memory,) = ana.memories.list()
    assert memory.seen_count == 1
    assert [proof.quote for proof in ana.memories.evidence(memory.id)] == ["My city is Lisbon"]
    (job,) = (job for job in mc.jobs.list(user="ana") if job.kind == "extract")
    assert (job.status, job.attempts) == ("completed", 2)


def test_a_memory_whose_embedding_was_killed_is_found_by_meaning_at_the_next_search(
    home: Path, open_store: Opener
) -> None:
    Victim(adds_and_embeds, home).kill()
    mc = open_store()
    (found,) = mc.user("ana").search("Saudade").hits
    assert found.text.count("the Saudade") == 1 and found.cosine is not None
    assert mc.jobs.list(user="ana")[0].status == "completed"


def test_a_memory_whose_embedding_was_killed_is_embedded_at_the_next_start(
    home: Path, open_store: Opener
) -> None:
    Victim(adds_and_embeds, home).kill()
    mc = open_store()
    start_a_chat(mc)
    assert [m.value for m in mc.user("ana").memories.list(status="completed")] == ["the Saudade"]


def test_only_a_dead_process_gives_up_its_session_and_then_at_once(
    home: Path, open_store: Opener, extract_model: ScriptedModel
) -> None:
    victim = Victim(stays_in_a_session, home)
    mc = open_store()
    ana = mc.user("ana")
    mc.jobs.run()
    with pytest.raises(StoreError, match="open in another process"):
        ana.sessions.end(victim.said)
    assert ana.sessions.get(victim.said).status == "open"
    victim.kill()
    extract_model.replies.append(LISBON)
    assert [learned.session_id for learned in mc.jobs.run().learned] == [victim.said]
    assert ana.sessions.get(victim.said).status == "extracted"


def test_a_writer_killed_inside_its_transaction_leaves_nothing_and_holds_nobody_up(
    home: Path, open_store: Opener
) -> None:
    Victim(holds_the_writers_place, home).kill()
    mc = open_store()
    ana = mc.user("ana")
    memory = ana.memories.add("fact", "boat", "the Saudade")
    assert ana.memories.get(memory.id).value == "the Saudade"
    assert mc.user("ghost").apps.list() == []
