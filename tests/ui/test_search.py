"""Searching the memories and the chats: what is found, marked, and led to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from memchat import MemChat
from tests.support.ui.tab import ANA, app, buttons, chats, number, press, text, until
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
    assert any(
        "**home [town]**  [São] Paulo, by the [[r]iver] & *sea*" in found(m.value)
        for m in at.markdown
    )


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
    assert [*chats(at)] == [f"/?c={talk.session_id}"]
    ((address, words),) = chats(at, "memchat-hit").items()
    assert words == "We had rye <mark>bread</mark> in <mark>Łódź</mark>.</a>"
    chat, message = (part.split("=")[1] for part in address.removeprefix("/?").split("&"))
    at = app(c=chat, m=message)
    assert number(at) == talk.session_id
    assert "the message that was looked for" in text(at)


def test_a_chat_found_by_its_title_has_the_words_marked_there(mc: MemChat) -> None:
    with mc.user(**ANA).chat() as talk:
        talk.send("Hello").read()
    mc.user(**ANA).sessions.rename(talk.session_id or 0, "The summer garden")
    at = app()
    at.text_input(key="search-chats").set_value("gard").run()
    assert chats(at) == {f"/?c={talk.session_id}": "The summer <mark>gard</mark>en</a>"}
    assert chats(at, "memchat-hit") == {}


def test_that_nothing_was_found_is_said(mc: MemChat) -> None:
    mc.user(**ANA).memories.add("profile", "city", "Lisbon")
    at = app("memories")
    at.text_input(key="search-chats").set_value("zebra").run()
    assert "No chat has “zebra” in its title or in one message." in text(at)
    at.text_input(key="search-memories").set_value("zebra").run()
    assert "No memory has these words" in text(at)
    assert "Only words are searched." in text(at)


def search(at: AppTest, words: str) -> None:
    """Search the memories, and wait for what is found by meaning."""
    at.text_input(key="search-memories").set_value(words).run()
    searched(at)


def searched(at: AppTest) -> None:
    until(at, lambda: "Searching by meaning" not in text(at))


class TestByMeaning:
    """With an embedding model that stays on this machine."""

    @pytest.fixture
    def models(self) -> dict[str, str]:
        return {"MEMCHAT_EMBED_MODEL": "hash", "MEMCHAT_CHAT_MODEL": "offline/chat"}

    def test_what_is_meant_is_listed_below_what_has_the_words(self, mc: MemChat) -> None:
        ana = mc.user(**ANA)
        exact = ana.memories.add("fact", "boat", "a red kayak in Porto")
        meant = ana.memories.add("fact", "kayak", "red")
        ana.memories.add("fact", "garden", "two lemon trees")
        mc.jobs.embed()
        at = app("memories")
        search(at, "red kayak porto")
        rows = [f"details-{exact.id}", f"details-{meant.id}"]
        assert buttons(at, "details-") == rows
        assert "By meaning" in [part.value for part in at.subheader]
        assert not buttons(at, "pick-") and len(at.checkbox) == 2, "the page, and the exact one"
        at.get("button_group")[0].set_value(["profile"]).run()
        assert buttons(at, "details-") == []
        at.get("button_group")[0].set_value([]).run()
        press(at, f"forget-{meant.id}")
        assert buttons(at, "details-") == rows[:1]

    def test_what_is_forgotten_there_keeps_its_place_and_can_be_undone(self, mc: MemChat) -> None:
        ana = mc.user(**ANA)
        ids = [ana.memories.add("fact", key, "red").id for key in ("kayak", "kayaks")]
        mc.jobs.embed()
        at = app("memories")
        search(at, "red kayak porto")
        rows = buttons(at, "details-")
        press(at, f"forget-{ids[0]}")
        assert len(rows) == 2 and buttons(at, "unforget-") == [f"unforget-{ids[0]}"]
        press(at, f"unforget-{ids[0]}")
        assert buttons(at, "details-") == rows and not buttons(at, "unforget-")

    def test_what_is_not_meant_is_not_listed(self, mc: MemChat) -> None:
        mc.user(**ANA).memories.add("fact", "garden", "two lemon trees")
        mc.jobs.embed()
        at = app("memories")
        search(at, "kayak")
        assert "Nothing else was found by meaning." in text(at)


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

    def test_a_provider_is_asked_only_by_a_button_and_once_for_the_same_words(
        self, desk: Desk, server: OpenAIServer
    ) -> None:
        at = app("memories")
        for words in ("lis", "lisb", "lisbon city home"):
            at.text_input(key="search-memories").set_value(words).run()
        assert server.requests == []
        press(at, "search-by-meaning")
        searched(at)
        at.run()
        assert [r.body["input"] for r in server.requests] == [["lisbon city home"]]
        at.text_input(key="search-memories").set_value("lisbon city").run()
        assert buttons(at, "search-by-meaning")
        assert len(server.requests) == 1

    def test_a_service_that_does_not_answer_is_told_and_asked_again_by_a_button(
        self, desk: Desk, server: OpenAIServer
    ) -> None:
        at = app("memories")
        at.text_input(key="search-memories").set_value("boats").run()
        server.key = "another"
        press(at, "search-by-meaning")
        searched(at)
        assert text(at).count("earched by words only") == 1
        assert at.button(key="search-by-meaning").label == "Search again"

    def test_the_page_is_drawn_while_the_service_is_waited_for(
        self, desk: Desk, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(by_meaning, "PATIENCE_SECONDS", 2.0)
        server.script(Hang())
        at = app("memories")
        at.text_input(key="search-memories").set_value("boats").run()
        press(at, "search-by-meaning")
        assert "Searching by meaning" in text(at)
        searched(at)
        assert at.button(key="search-by-meaning").label == "Search again"
