"""Searching the memories and the chats: what is found, marked, and led to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from memchat import MemChat
from tests.support.ui.tab import ANA, act, app, buttons, listed, number, press, sentences, text
from tests.support.wire import Hang, OpenAIServer
from ui import by_meaning
from ui.desk import Desk
from ui.marks import excerpt, marked


def found(at_label: str) -> str:
    """A label with the marks as square brackets, and without the escapes of Markdown."""
    return at_label.replace(":orange-background[", "[").replace("\\", "")


def test_the_words_found_are_marked_in_each_memory(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("fact", "home town", "São Paulo, by the [river] & *sea*")
    at = app("memories")
    at.text_input(key="search-memories").set_value("sao TOWN [r").run()
    assert sentences(at) == ["Home [town]: [São] Paulo, by the [[r]iver] & *sea*"]


def test_words_that_tell_nothing_are_not_marked_but_where_there_are_no_others() -> None:
    said = "I left the lighthouse in the other inn."
    assert found(marked(said, "where is the lighthouse?")) == (
        "I left the [lighthouse] in the other inn."
    )
    assert found(marked("The end", "the")) == "[The] end"


def test_marks_leave_the_text_as_it_is() -> None:
    assert found(marked("a\ufdd0 Straße\nof :smile: icons", "STRASSE ico")) == (
        "a [Straße] of :\u2060smile: [ico]ns"
    )
    assert marked("<b>", "b") == "\\<:orange-background[b]\\>"


def test_an_excerpt_shows_the_words_and_what_is_around_them() -> None:
    words = "Many things were said before we came to the matter of the lighthouse at last."
    assert excerpt(words, "LIGHT", 40) == "… to the matter of the lighthouse at last."
    assert excerpt(words, "many", 20) == "Many things were sa…"
    assert excerpt("Lisbon", "rome", 20) == "Lisbon"
    assert "東京" in excerpt("私は昨日友達と一緒に" * 9 + "東京に行きました", "東京", 40)


def test_a_chat_that_is_found_shows_the_message_and_leads_to_it(mc: MemChat) -> None:
    with mc.user(**ANA).chat() as talk:
        for words in ("Good morning!", "We had rye bread in Łódź.", "And then we left."):
            talk.send(words).read()
    with mc.user(**ANA).chat() as other:
        other.send("Nothing of that kind").read()
    at = app("memories")
    at.text_input(key="search-chats").set_value("lodz BREAD").run()
    assert buttons(at, "open-") == [f"open-{talk.session_id}"]
    (hit,) = buttons(at, "found-")
    assert found(at.button(key=hit).label) == "We had rye [bread] in [Łódź]."
    press(at, hit)
    assert number(at) == talk.session_id
    assert "the message that was looked for" in text(at)
    assert at.text_input(key="search-chats").value == "lodz BREAD"
    assert buttons(at, "found-") == [hit]


def test_a_chat_found_by_its_title_has_the_words_marked_there(mc: MemChat) -> None:
    with mc.user(**ANA).chat() as talk:
        talk.send("Hello").read()
    mc.user(**ANA).sessions.rename(talk.session_id or 0, "The summer garden")
    at = app()
    at.text_input(key="search-chats").set_value("gard").run()
    title = at.button(key=f"open-{talk.session_id}").label
    assert found(title).startswith("The summer [gard]en")
    assert buttons(at, "found-") == []


def test_that_nothing_was_found_is_said(mc: MemChat) -> None:
    mc.user(**ANA).memories.add("profile", "city", "Lisbon")
    at = app("memories")
    at.text_input(key="search-chats").set_value("zebra").run()
    assert "No chat has “zebra” in its title or in one message." in text(at)
    at.text_input(key="search-memories").set_value("zebra").run()
    assert "No memory has these words" in text(at)
    assert "Only words are searched." in text(at)


def search(at: AppTest, words: str) -> list[int]:
    """Search the memories; the ids of the rows that are shown."""
    at.text_input(key="search-memories").set_value(words).run()
    return [row["id"] for row in listed(at)]


class TestByMeaning:
    """With an embedding model that stays on this machine."""

    @pytest.fixture
    def models(self) -> dict[str, str]:
        return {"MEMCHAT_EMBED_MODEL": "hash", "MEMCHAT_CHAT_MODEL": "offline/chat"}

    def test_what_fits_best_comes_first_and_what_is_meant_stands_beside_it(
        self, mc: MemChat
    ) -> None:
        ana = mc.user(**ANA)
        exact = ana.memories.add("fact", "boat", "a red kayak in Porto").id
        meant = ana.memories.add("fact", "kayak", "red").id
        ana.memories.add("fact", "garden", "two lemon trees")
        mc.jobs.embed()
        at = app("memories")
        assert search(at, "red kayak porto") == [exact, meant]
        at.selectbox(key="created").set_value("auto").run()
        assert search(at, "red kayak porto") == []
        at.selectbox(key="created").set_value("").run()
        act(at, "forget", meant)
        assert "Forgotten: Kayak: red" in sentences(at)[1]
        act(at, "unforget", meant)
        assert sentences(at)[1] == "[Kayak]: [red]"

    def test_what_is_not_meant_is_not_listed(self, mc: MemChat) -> None:
        mc.user(**ANA).memories.add("fact", "garden", "two lemon trees")
        mc.jobs.embed()
        assert search(app("memories"), "kayak") == []


class TestByMeaningElsewhere:
    """With an embedding model of a provider."""

    @pytest.fixture
    def server(self) -> Iterator[OpenAIServer]:
        with OpenAIServer(dimensions=1536) as found:
            yield found

    @pytest.fixture
    def models(self, server: OpenAIServer) -> dict[str, str]:
        return {
            "MEMCHAT_CHAT_MODEL": "offline/chat",
            "MEMCHAT_EXTRACT_MODEL": "offline/extract",
            "MEMCHAT_EMBED_MODEL": "openai/text-embedding-3-small",
            "OPENAI_API_KEY": server.key,
            "OPENAI_BASE_URL": f"{server.url}/v1",
        }

    def test_a_provider_is_asked_with_enter_and_once_for_the_same_words(
        self, desk: Desk, server: OpenAIServer
    ) -> None:
        at = app("memories")
        assert not at.text_input(key="search-memories").proto.HasField("live_debounce_ms")
        search(at, "lisbon city home")
        at.run()
        assert [r.body["input"] for r in server.requests] == [["lisbon city home"]]

    def test_a_service_that_does_not_answer_is_told_and_asked_again_by_a_button(
        self, desk: Desk, server: OpenAIServer
    ) -> None:
        server.key = "another"
        at = app("memories")
        search(at, "boats")
        assert text(at).count("earched by words only") == 1
        asked = len(server.requests)
        press(at, "search-again")
        assert len(server.requests) > asked

    def test_the_page_is_drawn_where_the_service_is_silent(
        self, desk: Desk, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(by_meaning, "PATIENCE_SECONDS", 0.5)
        server.script(Hang())
        at = app("memories")
        search(at, "boats")
        assert buttons(at, "search-again")
