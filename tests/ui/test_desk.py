"""What outlives one run of a page: conversations, replies, the worker. And the text pages show."""

from __future__ import annotations

import http.client
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat import MemChat
from memchat.config import Settings
from memchat.errors import ProviderError
from memchat.testing import Broken, FakeClock, ScriptedModel
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.store import Opener
from tests.support.ui.browser import Server
from ui import components, launch, theme
from ui import desk as desks
from ui.desk import GRACE_SECONDS, Desk, Talk

ANA = {"user": "ana", "app": "default"}
LISBON = answer(fact("I live in Lisbon", "city", "Lisbon"), title="Lisbon")


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def mc(open_store: Opener) -> MemChat:
    """A store with scripted models: no page is drawn here."""
    return open_store()


@pytest.fixture
def desk(mc: MemChat) -> Iterator[Desk]:
    found = Desk(mc, "ana")
    yield found
    found.close()


def readings(model: ScriptedModel) -> int:
    """How often a conversation was read; its second look is another call."""
    return sum(request.purpose == "extract" for request in model.requests)


def test_the_last_tab_out_ends_a_conversation_once_and_has_it_read(
    desk: Desk, mc: MemChat, extract_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    extract_model.replies.append(LISBON)
    talk = desk.open("default")
    assert desk.say(talk, "I live in Lisbon").wait(10)
    desk.seen("one", talk)
    desk.seen("two", talk)
    desk.leave(talk, "one")
    desk.sweep()
    assert mc.user(**ANA).sessions.list()[0].ended_at is None
    desk.leave(talk, "two")
    until(lambda: ana.memories.list())
    ended = ana.sessions.list()[0].ended_at
    desk.end(talk)
    desk.gone("two")
    assert ana.sessions.list()[0].ended_at == ended
    assert readings(extract_model) == 1


def test_what_becomes_due_while_the_worker_looks_is_done_without_a_rest(
    mc: MemChat, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, looks = mc.user(**ANA), type(mc.jobs).run
    number = ana.memories.add("profile", "city", "Lisbon").id
    mc.jobs.run(user="ana")
    seen: list[int] = []

    def run(*args: Any, **options: Any) -> Any:
        done = looks(*args, **options)
        if not seen:
            ana.memories.delete(number, hold=5)
            clock.advance(seconds=5)
        seen.append(done.done)
        return done

    monkeypatch.setattr(type(mc.jobs), "run", run)
    monkeypatch.setattr(desks, "REST_SECONDS", 1_000.0)
    with closing(Desk(mc, "ana")):
        until(lambda: seen and not mc.jobs.due(user="ana"))
    assert seen[0] == 0


def test_a_closed_tab_waits_for_its_reload_and_then_ends(
    desk: Desk, mc: MemChat, clock: FakeClock, extract_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    extract_model.replies.append(LISBON)
    talk = desk.open("default")
    assert desk.say(talk, "I live in Lisbon").wait(10)
    desk.seen("tab", talk)
    desk.gone("tab")
    clock.advance(seconds=GRACE_SECONDS - 1)
    desk.sweep()
    assert ana.sessions.list()[0].ended_at is None
    desk.seen("reloaded", desk.find("default", talk.session_id or 0))
    clock.advance(seconds=GRACE_SECONDS)
    desk.sweep()
    assert ana.sessions.list()[0].ended_at is None
    desk.gone("reloaded")
    clock.advance(seconds=GRACE_SECONDS + 1)
    until(lambda: ana.memories.list())
    assert ana.sessions.list()[0].ended_at is not None


def test_a_conversation_that_was_open_at_a_restart_is_ended_and_read_once(
    open_store: Opener, extract_model: ScriptedModel
) -> None:
    extract_model.replies.append(LISBON)
    first = Desk(open_store(), "ana")
    assert first.say(first.open("default"), "I live in Lisbon").wait(10)
    first.close()
    again = open_store()
    with private.database(again).write() as tx:  # what a killed process leaves behind
        tx.connection.exec_driver_sql(
            "UPDATE sessions SET lease_owner = 'elsewhere:1:x', lease_until = NULL"
        )
    second = Desk(again, "ana")
    until(lambda: again.user(**ANA).memories.list())
    second.close()
    assert readings(extract_model) == 1


def by_new_chat(desk: Desk, talk: Talk, clock: FakeClock) -> None:
    desk.leave(talk, "tab")


def by_a_closed_tab(desk: Desk, talk: Talk, clock: FakeClock) -> None:
    desk.gone("tab")
    clock.advance(seconds=GRACE_SECONDS + 1)


def by_silence(desk: Desk, talk: Talk, clock: FakeClock) -> None:
    clock.advance(seconds=60 * desk.mc.settings.idle_minutes + 1)


def by_a_restart(desk: Desk, talk: Talk, clock: FakeClock) -> None:
    desk.close()


@pytest.mark.parametrize("ends", [by_new_chat, by_a_closed_tab, by_silence, by_a_restart])
def test_however_a_conversation_ends_it_ends_and_is_read_once(
    open_store: Opener,
    clock: FakeClock,
    extract_model: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
    ends: Callable[[Desk, Talk, FakeClock], None],
) -> None:
    monkeypatch.setattr(
        "memchat.chat.conversation.LEASE_SECONDS", 0.3
    )  # it looks ten times a second
    extract_model.replies.append(LISBON)
    desk, mc = Desk(open_store(), "ana"), open_store()
    ana = mc.user(**ANA)
    talk = desk.open("default")
    assert desk.say(talk, "I live in Lisbon").wait(10)
    desk.seen("tab", talk)
    ends(desk, talk, clock)
    clock.advance(seconds=1)
    last = Desk(open_store(), "ana")
    until(lambda: ana.memories.list())
    ended = ana.sessions.list()[0].ended_at
    assert ended is not None
    for late in (desk, last):
        late.gone("tab")
        late.sweep()
        late.close()
    assert ana.sessions.list()[0].ended_at == ended
    assert [job.kind for job in mc.jobs.list(user="ana")].count("extract") == 1
    assert readings(extract_model) == 1


def test_a_conversation_left_while_it_answers_ends_when_the_reply_has_come(
    desk: Desk, mc: MemChat, chat_model: ScriptedModel, extract_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    extract_model.replies.append(LISBON)
    go = threading.Event()
    chat_model.replies.clear()
    chat_model.replies.append(lambda _: "Lovely." if go.wait(10) else "Late.")
    talk = desk.open("default")
    turn = desk.say(talk, "I live in Lisbon")
    desk.seen("tab", talk)
    desk.leave(talk, "tab")
    desk.sweep()
    assert mc.user(**ANA).sessions.list()[0].ended_at is None
    go.set()
    assert turn.wait(10)
    until(lambda: ana.memories.list())
    said = ana.sessions.messages(talk.session_id or 0)
    assert [(m.content, m.status) for m in said][1] == ("Lovely.", "complete")


def test_a_reply_that_breaks_off_keeps_its_part_and_says_why(
    desk: Desk, mc: MemChat, chat_model: ScriptedModel
) -> None:
    chat_model.replies.clear()
    chat_model.replies.append(Broken("The first ", ProviderError("the line broke; try again")))
    talk = desk.open("default")
    turn = desk.say(talk, "Tell me")
    assert turn.wait(10)
    assert turn.error == "the line broke; try again"
    assert mc.user(**ANA).sessions.messages(talk.session_id or 0)[1].status == "partial"


def test_a_fault_in_a_reply_is_shown_without_its_words(
    desk: Desk, chat_model: ScriptedModel
) -> None:
    chat_model.replies.clear()
    chat_model.replies.append(ValueError("my secret"))
    turn = desk.say(desk.open("default"), "Tell me")
    assert turn.wait(10)
    assert turn.error is not None
    assert "ValueError" in turn.error
    assert "my secret" not in turn.error


def test_a_deleted_conversation_is_let_go_of(desk: Desk, mc: MemChat) -> None:
    talk = desk.open("default")
    assert desk.say(talk, "Hello there").wait(10)
    assert talk.session_id is not None
    desk.drop("default", talk.session_id)
    mc.user(**ANA).sessions.delete(talk.session_id)
    assert desk.find("default", talk.session_id) is None


# --- the verbs behind the pages


def test_an_edited_message_leaves_nothing_of_its_old_words(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    extract_model.replies.append(LISBON)
    with ana.chat() as talk:
        talk.send("Hello").read()
        talk.send("I live in Lisbon").read()
        talk.end()
        assert ana.memories.list()
        extract_model.replies.append(answer())
        assert talk.redo("I like rain").read() == "Fine."
        assert ana.memories.list() == []
        said = [m.content for m in ana.sessions.messages(talk.session_id or 0)]
        assert said == ["Hello", "Fine.", "I like rain", "Fine."]


def test_an_incognito_message_is_said_anew_too(mc: MemChat, chat_model: ScriptedModel) -> None:
    with mc.user(**ANA).chat(incognito=True) as talk:
        talk.send("Hello").read()
        talk.redo().read()
        talk.redo("Good evening").read()
        assert [t.content for t in talk.turns] == ["Good evening", "Fine."]
    assert [m.content for m in chat_model.requests[-1].messages][1:] == ["Good evening"]


def test_what_is_taken_back_is_not_learnt_from_the_same_words_again(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    extract_model.replies.extend([LISBON, LISBON])
    with ana.chat() as talk:
        talk.send("I live in Lisbon").read()
    session_id = talk.session_id or 0
    message_id = next(iter(mc.user(**ANA).sessions.learned(session_id)))
    assert [m.value for m in mc.user(**ANA).sessions.unlearn(message_id).gone] == ["Lisbon"]
    assert mc.user(**ANA).sessions.learned(session_id) == {}
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE sessions SET extracted_to = 0")
        tx.connection.exec_driver_sql("UPDATE jobs SET status = -1 WHERE kind = 'extract'")
    mc.jobs.run(user="ana")
    assert ana.memories.list() == []


def test_a_lesson_names_what_was_there_before(mc: MemChat, extract_model: ScriptedModel) -> None:
    ana = mc.user(**ANA)
    extract_model.replies += [answer(fact("I live in Porto", "city", "Porto")), LISBON]
    with ana.chat() as talk:
        talk.send("I live in Porto").read()
    with ana.chat() as talk:
        talk.send("I live in Lisbon").read()
    changes = [c for found in ana.sessions.learned(talk.session_id or 0).values() for c in found]
    assert [(c.kind, c.memory.value, c.before) for c in changes if c.memory] == [
        ("superseded", "Lisbon", "Porto")
    ]


class Gated(ScriptedModel):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__([answer(), answer()])
        self.asked, self.go = threading.Event(), threading.Event()

    def complete(self, *args: Any, **named: Any) -> Any:
        self.asked.set()
        self.go.wait(60)
        return super().complete(*args, **named)


def test_no_page_waits_for_a_chat_that_is_left_while_it_is_read(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embed_model="none", extraction="per_message")
    model = Gated()
    mc = MemChat(settings=settings, chat_model=ScriptedModel(["Yes."]), extract_model=model)
    desk = Desk(mc, "ana")
    talk = desk.open("default")
    desk.say(talk, "I live in Lisbon.").wait(30)
    assert model.asked.wait(30)
    desk.leave(talk, "one tab")
    sweep = threading.Thread(target=desk.sweep)
    sweep.start()
    sweep.join(0.5)
    page = threading.Thread(target=desk.seen, args=("another", None))
    page.start()
    page.join(5)
    waits = page.is_alive()
    model.go.set()
    sweep.join(30)
    until(lambda: mc.user(**ANA).sessions.list()[0].ended_at is not None)
    desk.close()
    assert not waits


# --- what a page makes of text


@given(st.text(st.characters(exclude_characters="\0\u2060"), max_size=80))
def test_literal_text_reads_as_it_was_typed(words: str) -> None:
    out = components.literal(words).replace(components._JOINER, "")
    assert out.replace("\\\\", "\0").replace("\\", "").replace("\0", "\\") == " ".join(
        words.split()
    )


def _brightness(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    lit = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * lit[0] + 0.7152 * lit[1] + 0.0722 * lit[2]


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK])
def test_text_stands_out_from_every_ground_by_the_letter_of_wcag(colours: dict[str, str]) -> None:
    grounds = ("backgroundColor", "secondaryBackgroundColor", "sidebar.secondaryBackgroundColor")
    pairs = [("textColor", ground) for ground in grounds]
    pairs += [("linkColor", ground) for ground in grounds]
    for name in ("red", "green", "orange", "gray"):
        pairs += [(f"{name}TextColor", f"{name}BackgroundColor")]
        pairs += [(f"{name}TextColor", "backgroundColor")]
    for text, ground in pairs:
        light, dark = sorted((_brightness(colours[text]), _brightness(colours[ground])))[::-1]
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)
    assert 1.05 / (_brightness(colours["primaryColor"]) + 0.05) >= 4.5


def test_a_logged_traceback_holds_places_and_no_words(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "_logRecordFactory", logging.getLogRecordFactory())
    launch.keep_words_out_of_logs()
    words = "the code word is " + "zanzibarquark"

    def fails() -> None:
        try:
            raise KeyError(words)
        except KeyError as error:
            raise ValueError(words) from error

    for debug, kept in (("", False), ("1", True)):
        monkeypatch.setenv("MEMCHAT_DEBUG", debug)
        caplog.clear()
        try:
            fails()
        except ValueError as error:
            logging.getLogger("streamlit.error_util").error(
                "Uncaught app execution", exc_info=error
            )
        said = logging.Formatter().format(caplog.records[-1])
        assert "ValueError" in said
        assert "in fails" in said
        assert (words in said) is kept


def test_the_app_listens_on_this_machine_alone_and_tells_nobody() -> None:
    options = theme.options(8501)
    assert options["server.address"] == "127.0.0.1"
    assert options["browser.gatherUsageStats"] is False
    assert options["server.enableAgentApi"] is False
    assert options["server.allowedHosts"] == ["127.0.0.1", "localhost"]


def test_nothing_is_answered_under_another_name_than_this_machines_own(tmp_path) -> None:
    def asked(place: str, host: str) -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as line:
            line.request("GET", place, headers={"Host": host})
            answer = line.getresponse()
            return answer.status, answer.read()

    with Server(tmp_path) as server:
        for place in ("/", "/_stcore/health", "/_stcore/host-config", "/memchat/copy.js"):
            for own in (f"127.0.0.1:{server.port}", f"LocalHost:{server.port}", "localhost:9000"):
                assert asked(place, own)[0] == 200, (place, own)
            for other in (f"evil.example:{server.port}", "evil.example", "localhost.evil", ""):
                assert asked(place, other) == (403, b"Only memchat's own page may ask."), other


def test_in_the_app_too_a_yes_forgets_and_what_follows_it_is_answered(
    desk: Desk, mc: MemChat
) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "allergy", "nuts")
    talk = desk.open("default")
    assert desk.say(talk, "Forget my allergy.").wait(30)
    assert desk.say(talk, "Yes. And what is a good recipe for lentils?").wait(30)
    assert (
        ana.sessions.messages(talk.session_id or 0)[-1].content == "Forgotten: 1 memory.\n\nFine."
    )
    assert ana.memories.list() == []
