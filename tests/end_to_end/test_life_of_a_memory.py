"""A memory from its first words to its end, with and without an embedding service."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import pytest

from memchat import InputError, MemChat, NotFound, ProviderError
from memchat.config import Settings
from memchat.providers import local
from memchat.providers.embedders import HashEmbedder
from memchat.testing import FakeClock, ScriptedModel
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.starts import known, tell
from tests.support.store import NOON, WAIT, Opener
from tests.support.whole_routes import needs_weights, values


def injected(model: ScriptedModel, call: int = -1) -> list[str]:
    """The lines of the memory block that a model was sent."""
    system = model.requests[call].messages[0].content
    return re.findall(r"^- (.*)$", system.partition("# Memories")[2], re.M)


class Deaf(HashEmbedder):
    """A service that is down: whoever asks it anything hears so."""

    def embed_query(self, text: str) -> NoReturn:
        raise ProviderError("the service is down")

    def embed_documents(self, texts: Sequence[str]) -> NoReturn:
        raise ProviderError("the service is down")


# Keeping the store clean


def test_the_embedded_text_begins_with_the_day_key_and_value_and_holds_what_was_said(
    open_store: Opener, extract_model
) -> None:
    embedded: list[str] = []

    class Listening(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]):
            embedded.extend(text for text in texts if text.startswith("["))
            return super().embed_documents(texts)

    mc = open_store(embedder=Listening())
    mc.user("ana").memories.add("preference", "drink", "green tea")
    mc.jobs.embed()
    extract_model.replies.append(answer(fact("I moved to Lisbon", "city", "Lisbon")))
    talk(mc, "I moved to Lisbon.")
    facts = [text for text in embedded if ": " in text and "ana: " not in text.splitlines()[0]]
    assert [text.splitlines()[0] for text in facts if "assistant: " not in text] == [
        "[1 May 2026] drink: green tea",
        "[1 May 2026] city: Lisbon",
    ]
    assert "I moved to Lisbon" in facts[1]


def test_a_changed_value_of_a_known_key_needs_no_vector(open_store: Opener, clock) -> None:
    extract = ScriptedModel(
        [answer(fact(f"I am {n}", "age", n)) for n in ("41", "42")], name="scripted/extract"
    )
    mc = open_store(embedder=Deaf(), extract_model=extract)
    ana = mc.user("ana")
    talk(mc, "I am 41.")
    clock.advance(days=1)
    talk(mc, "I am 42.")
    (now,) = ana.memories.list()
    (before,) = ana.memories.list(status="inactive")
    assert (now.value, before.value, before.replaced_by) == ("42", "41", now.id)


@pytest.mark.parametrize("how", ["merged", "ended", "expired"])
def test_whatever_made_a_memory_inactive_it_can_be_brought_back(
    open_store: Opener, extract_model, clock, how: str
) -> None:
    mc = open_store(merge_threshold=0.5)
    ana = mc.user("ana")
    tea = "green tea in the morning"
    old = known(tell(mc, tea, key="drink", memory_type="preference", many=True))
    if how == "expired":
        ana.memories.update(old.id, expires_at=NOON.date())
    mc.jobs.backfill()
    clock.advance(days=2)
    change = {
        "merged": {"value": "green tea in the mornings"},
        "ended": {"value": "", "to": "k1", "is": "ends"},
    }
    if how == "expired":
        mc.jobs.run(kinds=("expire",))
    else:
        said = {
            "merged": "I like green tea in the mornings",
            "ended": "The green tea in the morning is over",
        }[how]
        new = fact(said, "drink", "", memory_type="preference", many=True)
        extract_model.replies.append(answer({**new, **change[how]}))
        talk(mc, f"{said}.")
    gone = ana.memories.get(old.id)
    assert (gone.active, gone.inactive_reason) == (False, how)
    back = ana.memories.restore(old.id)
    assert back.active and back.inactive_reason is None and back.value == tea
    assert tea in {hit.memory.value for hit in ana.search(tea).hits}


def test_two_apps_may_keep_the_same_key_and_neither_hears_of_the_other_s_value(
    mc, chat_model, extract_model, clock
) -> None:
    for app, city in (("home", "Lisbon"), ("work", "Porto")):
        extract_model.replies.append(answer(fact(f"I live in {city}", "city", city)))
        talk(mc, f"I live in {city}.", app=app)
        clock.advance(days=1)
    for app, city, foreign in (("home", "Lisbon", "Porto"), ("work", "Porto", "Lisbon")):
        assert values(mc, app=app, status="all") == {city}
        found = mc.user("ana", app=app).search("In which city do I live, Lisbon or Porto?").hits
        assert [hit.memory.value for hit in found] == [city]
        extract_model.replies.append(answer())
        talk(mc, "Which city is mine?", app=app)
        assert [city in line for line in injected(chat_model)] == [True]
        for request in (chat_model.requests[-1], extract_model.requests[-1]):
            assert foreign not in repr(request)


def test_a_manual_memory_is_trimmed_says_who_made_it_and_is_never_blank(mc) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("fact", "  boat ", "  the   Saudade \n")
    assert (memory.key, memory.value) == ("boat", "the Saudade")
    assert memory.created_by == "manual"
    with pytest.raises(InputError, match="value is empty"):
        ana.memories.add("fact", "boat", " \n ")
    assert values(mc, status="all") == {"the Saudade"}


def test_an_edit_bumps_the_time_and_gives_the_new_words_a_vector_of_their_own(mc, clock) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("fact", "boat", "a red rowing boat")
    mc.jobs.embed()
    clock.advance(days=1)
    edited = ana.memories.update(memory.id, value="a yellow kayak")
    assert (edited.created_at, edited.updated_at) == (memory.created_at, clock())
    (hit,) = ana.search("yellow kayak").hits
    assert hit.channel == "both" and hit.cosine > 0.3
    assert ana.search("red rowing").confident == ()
    with pytest.raises(NotFound):
        ana.memories.update(99, value="x")


# What is injected


def test_all_facts_that_fit_are_injected_and_never_one_that_is_over(mc, chat_model, clock) -> None:
    ana = mc.user("ana")
    for colour in ("red", "blue", "green", "white", "black", "brown", "grey"):
        ana.memories.add("fact", "boat", f"a {colour} boat in the harbour")
    ana.memories.add("fact", "boat", "a rented boat in the harbour", expires_at=date(2026, 5, 1))
    ana.memories.add("profile", "city", "Lisbon harbour boat")
    clock.advance(days=1)
    ana.memories.add("profile", "city", "Porto")
    reply = ana.chat().send("Is there a boat in the harbour?")
    assert reply.read()
    lines = injected(chat_model)
    known = [hit.memory for hit in reply.shown.listed]
    assert lines[: len(known)] == [f"#{hit.id} {hit.text}" for hit in reply.shown.listed]
    assert [memory.key for memory in known].count("boat") == 7
    assert [memory.value for memory in known if memory.key == "city"] == ["Porto"]
    assert all(memory.active for memory in known) and not any("rented" in line for line in lines)
    asked = chat_model.requests[-1].messages[0].content
    assert "do not mention one that makes no difference" in asked


def test_every_way_to_chat_injects_the_same_block(mc, chat_model) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("fact", "boat", "a red boat")
    mc.jobs.embed()
    question = "Where is my red boat?"
    assert ana.chat().send(question).read()
    assert ana.answer(question).text
    marks = [re.sub(r'mark="\w+"', "", r.messages[0].content) for r in chat_model.requests]
    assert marks[0] == marks[1] and len(injected(chat_model)) == 2


def a_memory_s_whole_life(open_store: Opener, chat_model: ScriptedModel, **changes: Any) -> None:
    """D1 to D9 in one go: kept, scoped, switched, listed, injected, bounded and deleted."""
    mc = open_store(**changes)
    kept = mc.user("ana", app="home").memories.add("profile", "city", "Lisbon")
    boat = mc.user("ana", app="home").memories.add("fact", "boat", "a red boat")
    for n in range(12):
        mc.user("ana", app="home").memories.add("fact", "log", f"the boat log, page {n} of many")
    mc.jobs.embed()
    mc.close()

    mc = open_store(budget_tokens=160, **changes)
    reply = mc.user("ana", app="home").chat().send("Where is the red boat?")
    assert reply.read()
    assert injected(chat_model) == [f"#{hit.id} {hit.text}" for hit in reply.shown.hits]
    assert {kept.id, boat.id} <= {hit.id for hit in reply.shown.hits}
    assert reply.shown.tokens <= 160

    assert mc.user("ana", app="work").search("red boat").hits == ()
    assert mc.user("ana", app="work").chat().send("Where is the red boat?").read()
    assert injected(chat_model) == []
    with pytest.raises(NotFound):
        mc.user("ana", app="work").memories.delete(boat.id)

    mc.user("ana", app="home").set_memory(False)
    assert mc.user("ana", app="home").chat().send("Where is the red boat?").read()
    assert injected(chat_model) == [] and len(mc.user("ana", app="home").memories.list()) == 14
    mc.user("ana", app="home").set_memory(True)

    mc.user("ana", app="home").memories.delete(boat.id)
    assert boat.id not in {hit.id for hit in mc.user("ana", app="home").search("red boat").hits}
    assert mc.user("ana").apps.delete("home").memories == 13
    with private.database(mc).read() as tx:
        facts, strays = "rowid & 3 = 0", "rowid NOT IN (SELECT id FROM passages)"
        words = (f"passages_fts WHERE {facts}", f"passages_fts WHERE {strays}")
        for table in ("memories", *words, "embeddings"):
            kept_rows = tx.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
            assert kept_rows == 0, table


def test_a_memory_lives_its_whole_life_without_any_embedding_service(
    open_store: Opener, chat_model
) -> None:
    a_memory_s_whole_life(open_store, chat_model, embedder=None, embed_model="none")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever opens a connection or looks up a name is refused, and told on at the end."""
    tried: list[str] = []

    def refused(name: str) -> Callable[..., NoReturn]:
        def refuse(*_: object, **__: object) -> NoReturn:
            tried.append(name)
            raise OSError("no network in this test")

        return refuse

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refused(name))
    monkeypatch.setattr(socket, "getaddrinfo", refused("getaddrinfo"))
    yield
    assert tried == []


@needs_weights
def test_a_memory_lives_its_whole_life_with_every_socket_blocked(
    open_store: Opener, chat_model, no_network: None, tmp_path: Path
) -> None:
    a_memory_s_whole_life(open_store, chat_model, embedder=local.MiniLMEmbedder(tmp_path))


@needs_weights
def test_without_a_key_a_conversation_is_held_and_read_with_every_socket_blocked(
    tmp_path: Path, clock: FakeClock, no_network: None
) -> None:
    settings = Settings(home=tmp_path / "store", embed_patience=WAIT)
    with MemChat(settings=settings, clock=clock) as mc:
        ana = mc.user("ana")
        with ana.chat() as chat:
            assert "stand-in" in (chat.notice() or "")
            assert chat.send("I moved to Lisbon.").read()
        assert values(mc) == {"Lisbon"}
        reply = ana.chat().send("Where do I live?")
        assert "Lisbon" in reply.read() and reply.shown.degraded is None
