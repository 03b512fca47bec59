"""Finding by meaning and by words, leaving a chat, incognito, and what each call took."""

from __future__ import annotations

import io
import logging
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from memchat import InputError, MemChat
from memchat.cli import main
from memchat.db import apps
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory
from memchat.providers import local
from memchat.search import embeddings
from memchat.types import Scope
from tests.support import private
from tests.support.answers import answer
from tests.support.conversation import talk
from tests.support.store import NOON, Opener
from tests.support.whole_routes import needs_weights


@needs_weights
def test_of_200_memories_the_one_that_matters_is_found_by_meaning(
    open_store: Opener, tmp_path: Path
) -> None:
    mc = open_store(embedder=local.MiniLMEmbedder(tmp_path))
    wanted = mc.user("ana", app="home").memories.add(
        "fact", "car", "the automobile is in the repair shop"
    )
    mc.user("ana", app="work").memories.add("fact", "car", "the automobile is red")
    mc.jobs.embed()
    assert mc.user("ana", app="work").search("automobile").hits
    meaning = private.meaning(mc)[0]
    texts = [f"fact | shelf | jar {n} holds plum jam" for n in range(199)]
    vectors, _ = meaning.documents(texts)
    with private.database(mc).write() as tx:
        own = apps.ensure(tx, Scope("ana", "home")).own
        for text in texts:
            jar = NewMemory("fact", "shelf", text[15:], True, text, NOON, "auto")
            changes.add(tx, own, jar, Cause("model"))
        embeddings.put(tx, meaning.service_id, vectors.items())
    assert mc.user("ana", app="home").memories.count() == 200
    question = "Who is fixing my vehicle?"
    best = mc.user("ana", app="home").search(question).hits[0]
    assert (best.id, best.channel) == (wanted.id, "meaning")
    index = meaning.index
    with private.database(mc).read() as tx:
        shards = private.shards(index).items()
        home, work = sorted(which for which, held in shards if which[0] == "fact" and len(held))
        before = index.ids(tx, work[1])
        index.forget([home[1]])
        assert home not in private.shards(index) and private.shards(index)[work].ids == before
    assert mc.user("ana", app="home").search(question).hits[0] == best


def test_every_look_up_of_an_app_s_memories_is_indexed(mc) -> None:
    mc.user("ana", app="home").memories.add("profile", "city", "Lisbon")
    seen: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.lstrip().upper().startswith("SELECT"):
            seen.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        mc.user("ana", app="home").memories.list()
        mc.user("ana", app="home").memories.list(type="profile", status="all")
        mc.user("ana", app="home").chat().send("Hello there").read()
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    asked = [(q, p) for q, p in seen if "FROM memories" in q]
    assert len(asked) >= 2  # a search reads texts without a vector from the passages
    with private.database(mc).read() as tx:
        for query, parameters in asked:
            plan = tx.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", parameters).all()
            steps = [row[3] for row in plan]
            assert not any(step.startswith("SCAN memories ") for step in steps), (query, steps)
            assert not any(step == "SCAN memories" for step in steps), (query, steps)


def test_an_incognito_conversation_is_in_no_table_file_title_or_log(
    mc, extract_model, caplog: pytest.LogCaptureFixture
) -> None:
    ana = mc.user("ana")
    caplog.set_level(logging.DEBUG)
    with mc.user("ana", app="quiet").chat(incognito=True) as chat:
        assert chat.send("The Zanzibar plan is ready.").read()
        with pytest.raises(InputError):
            ana.chat(incognito=True, resume=1)
    mc.jobs.run()
    with private.database(mc).read() as tx:
        dump = "\n".join(tx.driver.iterdump())
    assert "zanzibar" not in (dump + caplog.text).lower() and "quiet" not in dump
    assert ana.usage() == [] and mc.user("ana", app="quiet").sessions.list() == []


class Keyboard(io.StringIO):
    """Lines that are typed, and Ctrl-C after the last."""

    def readline(self, size: int | None = -1, /) -> str:
        line = super().readline()
        if not line:
            raise KeyboardInterrupt
        return line


@pytest.mark.parametrize(
    "typed",
    [io.StringIO, Keyboard, "exit", "quit", ""],
    ids=["EOF", "Ctrl-C", "exit", "quit", "empty line"],
)
def test_however_a_chat_ends_it_is_read_exactly_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, typed: Any
) -> None:
    said = "I live in Lisbon.\n"
    keys = io.StringIO(f"{said}{typed}\n") if isinstance(typed, str) else typed(said)
    monkeypatch.setattr(sys, "stdin", keys)
    assert main(["chat"]) == 0
    assert main(["jobs", "run"]) == 0
    with MemChat(home) as mc:
        ana = mc.user("ana")
        assert {u.purpose: u.calls for u in ana.usage()} == {"chat": 1, "extract": 1}
        assert [job.attempts for job in mc.jobs.list(user="ana") if job.kind == "extract"] == [1]
        assert [memory.seen_count for memory in ana.memories.list()] == [1]


def test_a_store_of_a_newer_version_is_one_line_and_left_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memories", "add", "profile", "city", "Lisbon"]) == 0
    with closing(sqlite3.connect(home / "memchat.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = (home / "memchat.db").read_bytes()
    capsys.readouterr()
    assert main(["memories", "list"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and re.fullmatch(r"memchat: .*newer.*\n", shown.err)
    assert (home / "memchat.db").read_bytes() == before


def test_what_each_call_took_is_kept_with_its_session_tokens_and_seconds(mc, extract_model) -> None:
    extract_model.replies.append(answer())
    chat = talk(mc, "I moved to Lisbon.")
    with private.database(mc).read() as tx:
        rows = tx.connection.exec_driver_sql(
            "SELECT purpose, session_id, prompt_tokens > 0, completion_tokens > 0, seconds >= 0"
            " FROM usage ORDER BY id"
        ).all()
    mine = [tuple(row) for row in rows if row[0] in ("chat", "extract")]
    assert mine == [(p, chat.session_id, 1, 1, 1) for p in ("chat", "extract")]


# Meaning and words


@pytest.mark.skipif(not local.available(), reason="the MiniLM weights are not installed")
def test_a_fact_whose_vector_nothing_would_make_is_found_like_one_that_has_it(
    open_store: Opener, tmp_path: Path
) -> None:
    mc = open_store(embedder=local.MiniLMEmbedder(tmp_path))
    ana = mc.user("ana")
    with_vector = ana.memories.add("fact", "boat", "the red kayak leaks").id
    mc.jobs.embed()
    without_vector = ana.memories.add("fact", "canoe", "the red kayak leaks").id
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE passages SET status = NULL")  # its vector never comes
    hits = ana.answer("the red kayak leaks").shown.hits
    assert {hit.id for hit in hits} == {with_vector, without_vector}
    assert all(hit.cosine is not None for hit in hits)
    assert hits[0].score == pytest.approx(hits[1].score, abs=0.15)


def test_words_alone_find_what_is_typed_to_the_letter_in_any_case(open_store: Opener) -> None:
    mc = open_store(embedder=None, embed_model="none")
    ana = mc.user("ana")
    wool = ana.memories.add("fact", "jumper", "100% wool").id
    ana.memories.add("fact", "price", "1000 euros")
    tea = ana.memories.add("fact", "drink", "Green TEA, never coffee").id
    for question, wanted in (("100%", [wool]), ("green tea", [tea]), ("WOOL", [wool]), ("_", [])):
        found = ana.search(question)
        assert [hit.id for hit in found.confident] == wanted, question
        assert found.degraded


THINGS = (
    ("piano", "I play the piano every evening", "Which instrument do I play?"),
    ("allergy", "nuts give me a rash", "What am I allergic to?"),
    ("car", "I drive an old blue Volvo", "What vehicle do I own?"),
    ("job", "I repair church organs for a living", "What is my profession?"),
    ("dog", "my dog Otto is a beagle", "What breed is my pet?"),
    ("trip", "we flew to Iceland in March", "Where did we travel in spring?"),
    ("sleep", "I wake at five every morning", "How early do I get up?"),
    ("school", "my daughter starts school in autumn", "When does my child begin school?"),
    ("knee", "my left knee was operated on", "Which surgery did I have?"),
    ("garden", "we grow tomatoes behind the house", "Which vegetables do we plant?"),
)


@pytest.mark.skipif(not local.available(), reason="the MiniLM weights are not installed")
def test_different_questions_find_different_things_and_nonsense_nothing(
    open_store: Opener, tmp_path: Path
) -> None:
    mc = open_store(embedder=local.MiniLMEmbedder(tmp_path))
    ana = mc.user("ana")
    ids = [ana.memories.add("fact", key, value).id for key, value, _ in THINGS]
    mc.jobs.embed()
    lists = []
    right = 0
    for memory_id, (_, _, question) in zip(ids, THINGS, strict=True):
        hits = ana.search(question, limit=5).hits
        lists.append(tuple(hit.id for hit in hits))
        right += bool(hits) and hits[0].id == memory_id
    assert len(set(lists)) >= 8 and right >= 8, lists
    for nonsense in ("qwrt plomf zzgk", "blorf?", "xkcd vvv mmm 77zz"):
        assert ana.search(nonsense).confident == ()
