"""A reply is shown and kept whatever comes of it: halves of characters, no end, no bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.chat import Reply
from memchat.config import Settings
from memchat.errors import MemChatError
from memchat.providers.embedders import HashEmbedder
from memchat.testing import Broken, FakeClock, ScriptedModel
from memchat.types import Message
from tests.support import empty_store
from tests.support.store import Opener
from tests.support.wire import Cut, GeminiServer, OpenAIServer, Pieces, Say, WireServer
from tests.support.wire.case import HELLO, chat_of

KEY = "test-key-8d1f0a77c2"
LIMIT = 200_000
TOO_LONG = "The reply was ended at 200,000 characters."
BROKEN_OFF = "The reply was cut off: the provider ended it without saying that it was complete."


@pytest.fixture(params=[OpenAIServer, GeminiServer], ids=["openai", "gemini"])
def server(request: pytest.FixtureRequest, monkeypatch) -> Iterator[WireServer]:
    for name in ("GOOGLE_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GEMINI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with request.param(key=KEY) as running:
        yield running


@pytest.fixture
def wired(server: WireServer, tmp_path: Path, clock: FakeClock) -> Iterator[MemChat]:
    """A store whose chat model is on the wire; memory is off, so that it is asked for replies
    alone."""
    settings = Settings(home=empty_store.place(tmp_path / "store"), timezone="Europe/Berlin")
    with MemChat(
        settings=settings,
        chat_model=chat_of(server),
        extract_model=ScriptedModel(),
        embedder=HashEmbedder(),
        clock=clock,
    ) as mc:
        mc.user("ana").set_memory(False, all_apps=True)
        yield mc


def kept(mc: MemChat, chat) -> Message:
    """The last turn of a conversation as it is stored."""
    return mc.user("ana").sessions.messages(chat.session_id)[-1]


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        (("Hello \ud83d", "\ude00 there"), "Hello 😀 there"),
        (("\ud83d", "\ude00", "\ud83d", "\ude01"), "😀😁"),
        (("Hello \ud83d\ude00",), "Hello 😀"),
        (("Hello \ud83d", " there"), "Hello \ufffd there"),
        (("Hello ", "\ude00 there"), "Hello \ufffd there"),
        (("Hello \ud83d", "\ud83d\ude00"), "Hello \ufffd😀"),
        (("Hello \ud83d",), "Hello \ufffd"),
        (("nothing\0", " here"), "nothing\ufffd here"),
    ],
)
def test_a_reply_with_halves_of_characters_is_shown_and_kept(
    wired: MemChat, server: WireServer, parts: tuple[str, ...], shown: str
) -> None:
    server.script(Pieces(parts, finish=True))
    chat = wired.user("ana").chat()
    reply = chat.send("Hi")
    assert "".join(reply) == shown and reply.cut is None
    assert (kept(wired, chat).content, kept(wired, chat).status) == (shown, "complete")


def test_half_a_character_before_the_line_breaks_is_kept_as_unreadable(
    wired: MemChat, server: WireServer
) -> None:
    server.script(Cut("Hello \ud83d"))
    chat = wired.user("ana").chat()
    with pytest.raises(MemChatError, match="broke off"):
        chat.send("Hi").read()
    assert (kept(wired, chat).content, kept(wired, chat).status) == ("Hello \ufffd", "partial")


def test_a_stream_that_ends_without_a_finish_is_said_to_be_cut(
    wired: MemChat, server: WireServer
) -> None:
    server.script(Pieces(("One ", "two")))
    chat = wired.user("ana").chat()
    reply = chat.send("Hi")
    assert (reply.read(), reply.cut) == ("One two", BROKEN_OFF)
    assert (kept(wired, chat).content, kept(wired, chat).status) == ("One two", "partial")
    whole = chat.send("Go on")
    assert whole.read() and whole.cut is None and kept(wired, chat).status == "complete"


def test_a_provider_that_never_stops_is_left_at_the_limit(
    wired: MemChat, server: WireServer
) -> None:
    server.script(Pieces(("some words " * 1_000,) * 2_000))
    chat = wired.user("ana").chat()
    reply = chat.send("Hi")
    assert len("".join(reply)) == LIMIT and reply.cut == TOO_LONG
    assert server.client_left.wait(10), "the connection is cut"
    assert (len(kept(wired, chat).content), kept(wired, chat).status) == (LIMIT, "partial")


def test_a_reply_in_one_enormous_piece_is_ended_at_the_limit_too(
    wired: MemChat, server: WireServer
) -> None:
    server.script(Say("é" * 3 * LIMIT))
    reply = wired.user("ana").chat().send("Hi")
    assert (len(reply.read()), reply.cut) == (LIMIT, TOO_LONG)


def test_a_reply_of_just_the_limit_is_whole(open_store: Opener) -> None:
    mc = open_store(chat_model=ScriptedModel(["x" * LIMIT]))
    chat = mc.user("ana").chat()
    reply = chat.send("Hi")
    assert len(reply.read()) == LIMIT and reply.cut is None
    assert kept(mc, chat).status == "complete"


def anew(mc: MemChat, model: ScriptedModel) -> Reply:
    model.replies.appendleft("Short.")
    chat = mc.user("ana").chat()
    assert chat.send("Hi").read() == "Short."
    return chat.redo()


WAYS: dict[str, Callable[[MemChat, ScriptedModel], Reply]] = {
    "a reply": lambda mc, _: mc.user("ana").chat().send("Hi"),
    "one asked anew": anew,
    "an incognito one": lambda mc, _: mc.user("ana").chat(incognito=True).send("Hi"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_a_reply_ends_at_the_limit(open_store: Opener, way: str) -> None:
    model = ScriptedModel([("seven" * 20 + " w") * (LIMIT // 50)])  # in 4,000 long pieces
    mc = open_store(chat_model=model)
    reply = WAYS[way](mc, model)
    assert (len(reply.read()), reply.cut) == (LIMIT, TOO_LONG)
    assert model.streams[-1].closed


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_a_reply_keeps_one_without_an_end(open_store: Opener, way: str) -> None:
    model = ScriptedModel([Broken("One two")])
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    reply = WAYS[way](mc, model)
    assert (reply.read(), reply.cut) == ("One two", BROKEN_OFF)
    for session in ana.sessions.list():
        turns = [(m.role, m.content) for m in ana.sessions.messages(session.id)]
        assert turns == [("user", "Hi"), ("assistant", "One two")]


def test_an_answer_outside_a_conversation_ends_at_the_limit(open_store: Opener) -> None:
    mc = open_store(chat_model=ScriptedModel(["w " * LIMIT]))
    assert len(mc.user("ana").answer("Hi").text) == LIMIT


def test_an_answer_that_is_not_streamed_is_cut_at_the_limit(server: WireServer) -> None:
    server.script(Say("\ud83d\ude00 and \0" + "é" * 2 * LIMIT))
    said = chat_of(server).complete(HELLO, purpose="extract").text
    assert said.startswith("😀 and \ufffdé") and len(said) <= LIMIT


def test_what_a_person_asked_for_is_done_though_the_reply_was_cut(
    open_store: Opener, extract_model: ScriptedModel
) -> None:
    model = ScriptedModel([Broken("Cer")], tools=True)
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    reply = ana.chat().send("Remember that I live in Ulm.")
    assert reply.read().startswith("Cer\n\n") and reply.cut == BROKEN_OFF
    assert [memory.value for memory in ana.memories.list()] != []


def test_a_question_which_memories_to_forget_stays_open_behind_a_reply_that_was_cut(
    open_store: Opener,
) -> None:
    model = ScriptedModel([Broken("Cer")], tools=True)
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Ulm")
    chat = ana.chat()
    assert "?" in chat.send("Forget my city").read()
    chat.send("Yes").read()
    assert ana.memories.list() == []
