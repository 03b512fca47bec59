"""Conversations in the sidebar and in the address."""

from __future__ import annotations

from memchat import MemChat
from tests.support import private
from tests.support.ui.tab import ANA, app, buttons, number, press, room, say, send, text, until
from ui.desk import Desk


def test_the_conversation_in_the_address_is_shown_after_a_reload_and_goes_on(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app()
    say(at, "I live in Lisbon.")
    again = app(c=str(number(at)))
    assert "I live in Lisbon." in text(again)
    say(again, "I am a vegetarian.")
    assert len(ana.sessions.list()) == 1
    assert len(ana.sessions.messages(ana.sessions.list()[0].id)) == 4


def test_an_address_of_a_chat_that_is_not_there_says_so(desk: Desk) -> None:
    assert "not in the space" in text(app(c="77"))


def test_another_persons_chat_cannot_be_opened_by_its_address(desk: Desk) -> None:
    with desk.mc.user("bob").chat() as talk:
        talk.send("My code word is heron.").read()
    at = app(c=str(talk.session_id))
    assert "heron" not in text(at)
    assert "not in the space" in text(at)


def test_a_conversation_is_renamed_and_keeps_that_title_when_it_is_read(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app()
    say(at, "I live in Lisbon.")
    here = number(at)
    press(at, f"more-{here}")
    at.text_input(key=f"title-{here}").set_value("Where I live").run()
    press(at, f"rename-{here}")
    press(at, "new")
    until(at, lambda: ana.sessions.get(here).status == "extracted")
    assert ana.sessions.get(here).title == "Where I live"


def test_a_chat_is_named_after_its_first_words_without_their_secrets(mc: MemChat) -> None:
    at = app()
    say(at, "My locker code is 7741.")
    names = [
        *(button.label for button in at.sidebar.button),
        *(head.value for head in at.subheader),
    ]
    named = [name for name in names if "locker code" in name]
    assert len(named) >= 2 and not any("7741" in name for name in named)


def test_conversations_are_found_by_title_and_by_words(mc: MemChat) -> None:
    for words in ("I live in Lisbon.", "Tell me about 100% rye bread."):
        with mc.user(**ANA).chat() as talk:
            talk.send(words).read()
    at = app()
    assert len(buttons(at, "open-")) == 2
    at.text_input(key="search-chats").set_value("100% RYE").run()
    assert len(buttons(at, "open-")) == 1


def test_deleting_a_chat_shows_what_it_alone_taught_and_forgets_it(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    with ana.chat() as talk:
        talk.send("I live in Lisbon.").read()
    at = app(c=str(talk.session_id))
    press(at, f"more-{talk.session_id}")
    press(at, f"delete-{talk.session_id}")
    assert "city: Lisbon" in text(at)
    press(at, "delete-talk")
    assert ana.sessions.list() == []
    assert ana.memories.list() == []


def test_another_app_has_conversations_and_memories_of_its_own(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    with ana.chat() as talk:
        talk.send("Hello there.").read()
    at = app("memories", app="work")
    assert "Lisbon" not in text(at)
    assert buttons(at, "open-") == []


def test_a_message_that_could_not_be_sent_is_back_in_its_box(mc: MemChat) -> None:
    elsewhere = mc.user(**ANA).chat()
    elsewhere.send("Hello").read()
    private.give_to_another_process(elsewhere, mc)
    at = app(c=str(elsewhere.session_id))
    send(at, "Many words of mine")
    assert "open in another process" in at.error[0].value
    assert room(at)["unsent"] == "Many words of mine"


def test_an_app_that_cannot_be_is_refused_and_the_page_goes_on(desk: Desk) -> None:
    at = app(app="x" * 300)
    assert "longer than" in at.error[0].value
    assert at.selectbox[0].value == "default"
    assert room(at)
