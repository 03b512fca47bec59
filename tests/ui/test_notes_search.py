"""Searching the notes and asking them, on their page."""

from __future__ import annotations

import threading

import pytest
from streamlit.testing.v1 import AppTest

from memchat import MemChat
from tests.support.ui.tab import ANA, app, buttons, press, text, until
from tests.support.wire import Cut, Fail, OpenAIServer, Pieces, Say
from ui.notes import answer


def keep(mc: MemChat, words: str, title: str | None = None) -> int:
    note = mc.user(**ANA).notes.add(words, title=title)
    assert note is not None
    return note.id


def search(at: AppTest, words: str) -> None:
    at.text_input(key="notes-words").set_value(words).run()


def ask(at: AppTest, words: str, how: str = "ask-notes") -> None:
    at.text_input(key="notes-words").set_value(words)
    press(at, how)
    until(at, lambda: not buttons(at, "stop-notes"))


def labels(at: AppTest, start: str) -> list[str]:
    marked = [at.button(key=key).label for key in buttons(at, start)]
    return [label.replace(":orange-background[", "[").replace("\\", "") for label in marked]


# --- searching


def test_what_is_found_has_its_words_lit_and_opens_at_the_passage(mc: MemChat) -> None:
    kiln = keep(mc, "The kiln is hot. " * 3, "São Paulo, the kiln")
    keep(mc, "Herons on the weir.")
    at = app("notes")
    search(at, "KILN sao")
    assert labels(at, "hit-") == ["[São] Paulo, the [kiln]"]
    assert "The :orange-background[kiln] is hot." in text(at)
    (hit,) = mc.user(**ANA).notes.search("kiln").hits
    assert hit.match_count == 1, "the page searched once, however often it was drawn"
    press(at, f"hit-{hit.chunk_id}")
    assert at.query_params["note"] == str(kiln)
    (hit,) = mc.user(**ANA).notes.search("kiln").hits
    assert hit.read_count == 1
    press(at, "all-notes")
    assert buttons(at, "hit-"), "the results are still there"
    press(at, "leave-search")
    assert len(buttons(at, "note-")) == 2 and at.text_input(key="notes-words").value == ""


def test_that_nothing_was_found_is_said_and_filters_count(mc: MemChat) -> None:
    keep(mc, "The kiln is hot.")
    at = app("notes")
    search(at, "zebra")
    assert "No note speaks of that" in text(at)
    search(at, "kiln")
    at.selectbox(key="notes-type").set_value("document").run()
    assert "No note speaks of that" in text(at)


def test_what_is_less_sure_is_listed_only_where_nothing_is_sure(mc: MemChat) -> None:
    keep(mc, "The kiln is hot. Mind your hands.")
    keep(mc, "Herons fly over a hot field in the long summer, far from any town.")
    at = app("notes")
    hits = mc.user(**ANA).notes.search("kiln hot hands").hits
    assert [one.confident for one in hits] == [True, False]
    search(at, "kiln hot hands")
    assert len(buttons(at, "hit-")) == 1 and "Less sure" not in text(at)
    search(at, "hot kettles of brass")
    assert "Less sure" in text(at) and buttons(at, "hit-")


def test_a_changed_note_is_found_by_its_new_words(mc: MemChat) -> None:
    note = keep(mc, "The kiln is hot.")
    at = app("notes")
    search(at, "kiln")
    press(at, buttons(at, "hit-")[0])
    press(at, "edit-note")
    at.text_area(key=f"draft-text-{note}").set_value("The herons are back.")
    press(at, "save-note")
    press(at, "all-notes")
    assert "No note speaks of that" in text(at)


def test_a_search_keeps_the_answer_for_when_it_is_left(mc: MemChat) -> None:
    keep(mc, "Call John back about the gravel.", "Gravel")
    at = app("notes")
    ask(at, "gravel")
    search(at, "john")
    assert "No model is set up." not in text(at) and buttons(at, "hit-")
    press(at, "leave-search")
    assert "No model is set up." in text(at) and buttons(at, "note-")


class TestWithARemoteService:
    """The vectors are made by a provider."""

    @pytest.fixture
    def models(self, service_models: dict[str, str]) -> dict[str, str]:
        return service_models | {"MEMCHAT_EMBED_MODEL": "openai/text-embedding-3-small"}

    def test_a_remote_service_is_asked_only_with_the_button(self, mc: MemChat) -> None:
        keep(mc, "The kiln is hot.")
        at = app("notes")
        at.text_input(key="notes-words").set_value("kiln").run()
        assert not buttons(at, "hit-")
        at.text_input(key="notes-words").set_value("kiln")
        press(at, "search-notes")
        assert len(buttons(at, "hit-")) == 1


# --- asking


def test_without_a_model_the_best_passages_are_quoted_and_named_as_such(mc: MemChat) -> None:
    keep(mc, "Call John back about the gravel.", "Gravel")
    at = app("notes")
    ask(at, "gravel")
    assert "No model is set up." in text(at)
    assert labels(at, "source-") == ["[1] Gravel, today"]


def test_an_empty_question_is_refused(mc: MemChat) -> None:
    keep(mc, "Call John back about the gravel.")
    at = app("notes")
    press(at, "ask-notes")
    assert "The question is empty; write what you want to know." in text(at)


class TestWithAModel:
    """An answer is written by a provider's model."""

    @pytest.fixture
    def models(self, service_models: dict[str, str]) -> dict[str, str]:
        return service_models

    def test_an_answer_names_its_sources_and_these_open(
        self, mc: MemChat, service: OpenAIServer
    ) -> None:
        note = keep(mc, "Call John back about the gravel.", "Gravel [*]")
        service.script(Say("You want to call John [1]. And nobody else [7]."))
        at = app("notes")
        ask(at, "Whom do I call about the gravel?")
        assert "You want to call John [1]." in text(at)
        assert labels(at, "source-") == ["[1] Gravel [*], today"]
        press(at, buttons(at, "source-")[0])
        assert at.query_params["note"] == str(note)
        press(at, "all-notes")
        assert "You want to call John [1]." in text(at)
        press(at, "close-answer")
        assert "You want to call John" not in text(at)
        assert not mc.user(**ANA).sessions.list(), "an answer is no chat"

    @pytest.mark.parametrize("step", [Fail(401), Cut("Half of it [1] and")])
    def test_an_answer_that_fails_is_not_announced_as_complete(
        self, mc: MemChat, service: OpenAIServer, step: Fail | Cut
    ) -> None:
        keep(mc, "Call John back about the gravel.")
        service.script(step)
        at = app("notes")
        ask(at, "Whom do I call about the gravel?")
        until(at, lambda: buttons(at, "close-answer"))
        assert "The answer could not be completed" in text(at)
        assert "Answer complete" not in text(at)

    def test_that_no_note_speaks_of_it_is_said_without_asking_the_model(
        self, mc: MemChat, service: OpenAIServer
    ) -> None:
        keep(mc, "Call John back about the gravel.")
        at = app("notes")
        ask(at, "zebra")
        assert "No note speaks of that." in text(at)
        assert not service.requests and not buttons(at, "source-")

    def test_a_summary_is_asked_for_by_a_button_of_its_own(
        self, mc: MemChat, service: OpenAIServer
    ) -> None:
        for n in range(3):
            keep(mc, f"Gravel, part {n}.")
        service.script(Say("All about gravel [1][2][3]."))
        at = app("notes")
        ask(at, "gravel", "sum-up-notes")
        assert len(buttons(at, "source-")) == 3

    def test_before_many_calls_the_person_is_asked(
        self, mc: MemChat, service: OpenAIServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(answer, "MANY_CALLS", 0)
        keep(mc, "Call John back about the gravel.")
        service.script(Say("Call John [1]."))
        at = app("notes")
        ask(at, "gravel", "sum-up-notes")
        assert "1 note may speak of it. To read them all takes 1 call" in text(at)
        assert not service.requests
        press(at, "leave-notes")
        assert "may speak of it" not in text(at)
        ask(at, "gravel", "sum-up-notes")
        press(at, "read-notes")
        until(at, lambda: "Call John [1]." in text(at))

    def test_an_answer_that_is_stopped_keeps_what_came(
        self, mc: MemChat, service: OpenAIServer
    ) -> None:
        keep(mc, "Call John back about the gravel.")
        service.script(Pieces(("John has ", "gravel"), silence=60))
        at = app("notes")
        at.text_input(key="notes-words").set_value("gravel")
        press(at, "ask-notes")
        until(at, lambda: "John has gravel" in text(at))
        press(at, "stop-notes")
        assert "John has gravel" in text(at) and "Stopped before its end." in text(at)
        assert "Answer stopped" in text(at)

    def test_a_summary_that_is_stopped_makes_no_further_call(
        self, mc: MemChat, service: OpenAIServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memchat.notes.ask.MOST_TOKENS", 300)
        monkeypatch.setattr("memchat.notes.ask.AT_ONCE", 1)
        monkeypatch.setattr(answer, "MANY_CALLS", 1_000)
        for n in range(12):
            keep(mc, f"Gravel, part {n}. " * 40)
        go_on = threading.Event()

        def reply(_: object) -> str:
            go_on.wait(30)
            return "Gravel [1]."

        service.reply = reply
        at = app("notes")
        at.text_input(key="notes-words").set_value("gravel")
        press(at, "sum-up-notes")
        until(at, lambda: service.requests)
        asked = at.session_state["asked notes"]
        assert asked.answer.plan.calls > 6
        press(at, "stop-notes")
        assert "Stopped before its end." in text(at)
        go_on.set()
        asked.wait(30)
        assert len(service.requests) <= 3, "those that were under way"

    def test_a_provider_that_fails_is_told(self, mc: MemChat, service: OpenAIServer) -> None:
        keep(mc, "Call John back about the gravel.")
        service.script(Fail(401))
        at = app("notes")
        ask(at, "gravel")
        assert len(at.error) == 1 and "openai" in at.error[0].value.lower()
