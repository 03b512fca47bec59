"""The app's pages, run by Streamlit's own test runner over a real store and the stand-in."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from memchat import MemChat
from memchat.memory.gate import keys
from memchat.store import jobs, memories
from memchat.types import Wanted
from ui import components, launch
from ui.desk import Desk

ANA = {"user": "ana", "app": "default"}


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("streamlit").setLevel(logging.ERROR)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """The desk that the pages of this test work at."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "MEMCHAT_HOME": str(tmp_path / "store"),
        "MEMCHAT_USER": "ana",
        "MEMCHAT_EMBED_MODEL": "none",
        "MEMCHAT_CHAT_MODEL": "offline/chat",
        "MEMCHAT_EXTRACT_MODEL": "offline/extract",
        "MEMCHAT_TIMEZONE": "Europe/Lisbon",
    }.items():
        monkeypatch.setenv(name, value)
    yield components.desk()
    components._desk.clear()  # type: ignore[attr-defined]


@pytest.fixture
def mc(desk: Desk) -> MemChat:
    return desk.mc


def app(page: str | None = None, **address: str) -> AppTest:
    """A new tab, on the chat page or another, once it is drawn."""
    at = AppTest.from_file(str(launch.SCRIPT), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = value
    at.run()
    if page is not None:
        at.switch_page(f"views/{page}.py").run()
    assert not at.exception
    return at


def until(at: AppTest, holds: Callable[[], object], seconds: float = 30) -> None:
    """Run the page until something holds, as its fragments do in a browser."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, text(at)
        time.sleep(0.05)
        at.run()
    assert not at.exception


def text(at: AppTest) -> str:
    """All that the page says."""
    kinds = (at.title, at.subheader, at.markdown, at.caption, at.text, at.error, at.info)
    said = (str(e.value) for kind in (*kinds, at.warning, at.success) for e in kind)
    return "\n".join(said).replace("\\", "")


def say(at: AppTest, words: str) -> None:
    """Write a message and wait for its reply."""
    before = len(buttons(at, "why-"))
    at.chat_input[0].set_value(words).run()
    until(at, lambda: len(buttons(at, "why-")) > before)


def buttons(at: AppTest, start: str) -> list[str]:
    """The keys of the buttons that begin like this."""
    return [b.key for b in at.button if b.key and b.key.startswith(start)]


def number(at: AppTest) -> int:
    """Which conversation the address names."""
    named = at.query_params["c"]
    return int(named if isinstance(named, str) else named[0])


def press(at: AppTest, key: str) -> None:
    at.button(key=key).click().run()
    assert not at.exception


# --- chat


def test_an_empty_chat_greets_and_suggests(desk: Desk) -> None:
    at = app()
    assert "What is on your mind?" in text(at)
    assert len(at.get("button_group")[0].options) == 3


def test_a_message_is_answered_and_stands_in_the_sidebar_and_the_address(mc: MemChat) -> None:
    at = app()
    say(at, "I live in Lisbon.")
    stored = mc.sessions(**ANA)
    assert mc.messages(stored[0].id, **ANA)[0].content == "I live in Lisbon."
    assert number(at) == stored[0].id
    assert buttons(at, "open-") == [f"open-{stored[0].id}"]


def test_a_suggestion_is_sent_as_a_message(mc: MemChat) -> None:
    at = app()
    at.get("button_group")[0].set_value("Help me plan a quiet weekend.").run()
    until(at, lambda: buttons(at, "why-"))
    first = mc.messages(mc.sessions(**ANA)[0].id, **ANA)[0]
    assert first.content == "Help me plan a quiet weekend."


def test_the_conversation_in_the_address_is_shown_after_a_reload_and_goes_on(mc: MemChat) -> None:
    at = app()
    say(at, "I live in Lisbon.")
    again = app(c=str(number(at)))
    assert "I live in Lisbon." in text(again)
    say(again, "I am a vegetarian.")
    assert len(mc.sessions(**ANA)) == 1
    assert len(mc.messages(mc.sessions(**ANA)[0].id, **ANA)) == 4


def test_an_address_of_a_chat_that_is_not_there_says_so(desk: Desk) -> None:
    assert "not in the app" in text(app(c="77"))


def test_another_persons_chat_cannot_be_opened_by_its_address(desk: Desk) -> None:
    with desk.mc.session(user="bob") as talk:
        talk.send("My code word is heron.").text
    at = app(c=str(talk.session_id))
    assert "heron" not in text(at)
    assert "not in the app" in text(at)


def test_a_new_chat_ends_the_old_one_and_says_what_it_taught(mc: MemChat) -> None:
    at = app()
    say(at, "I live in Lisbon.")
    press(at, "new")
    until(at, lambda: at.expander)
    assert at.expander[0].label == "Memory updated (1)"
    assert "city: Lisbon" in text(at)
    session = mc.sessions(**ANA)[0]
    assert session.status == "extracted"
    ended = session.ended_at
    press(at, "new")
    time.sleep(1.5)
    assert mc.sessions(**ANA)[0].ended_at == ended


def test_what_a_turn_taught_stands_under_it_and_can_be_undone(mc: MemChat) -> None:
    at = app()
    say(at, "I live in Lisbon.")
    here = str(number(at))
    press(at, "new")
    until(at, lambda: at.expander)
    at = app(c=here)
    assert [e.label for e in at.expander] == ["Memory updated (1)"]
    press(at, buttons(at, "unlearn-")[0])
    assert not at.expander
    assert mc.memories(**ANA) == []
    assert "I live in Lisbon." in text(at)


def test_nothing_learnt_says_nothing(mc: MemChat) -> None:
    at = app()
    say(at, "What is the capital of France?")
    press(at, "new")
    until(at, lambda: mc.sessions(**ANA)[0].status in ("extracted", "off"))
    at.run()
    assert not at.expander


def test_trying_again_replaces_the_reply(mc: MemChat) -> None:
    at = app()
    say(at, "I live in Lisbon.")
    first = mc.messages(mc.sessions(**ANA)[0].id, **ANA)
    press(at, buttons(at, "redo-")[0])
    until(at, lambda: buttons(at, "redo-"))
    second = mc.messages(mc.sessions(**ANA)[0].id, **ANA)
    assert [m.role for m in second] == ["user", "assistant"]
    assert second[0].id == first[0].id
    assert second[1].id != first[1].id


def test_editing_the_last_message_withdraws_what_only_its_old_words_proved(mc: MemChat) -> None:
    at = app()
    say(at, "Remember that my sister is called Rita.")
    assert [m.value for m in mc.memories(**ANA)]
    press(at, "edit-0")
    at.text_area(key="edited-0").set_value("What is a heron?").run()
    press(at, "resend")
    until(at, lambda: buttons(at, "why-"))
    assert mc.memories(**ANA) == []
    assert "Rita" not in text(at)


def test_a_conversation_is_renamed_and_keeps_that_title_when_it_is_read(mc: MemChat) -> None:
    at = app()
    say(at, "I live in Lisbon.")
    here = number(at)
    at.text_input(key=f"title-{here}").set_value("Where I live").run()
    press(at, f"rename-{here}")
    press(at, "new")
    until(at, lambda: mc.find_session(here, **ANA).status == "extracted")
    assert mc.find_session(here, **ANA).title == "Where I live"


def test_conversations_are_found_by_title_and_by_words(mc: MemChat) -> None:
    for words in ("I live in Lisbon.", "Tell me about 100% rye bread."):
        with mc.session(**ANA) as talk:
            talk.send(words).text
    at = app()
    assert len(buttons(at, "open-")) == 2
    at.text_input(key="search-chats").set_value("100% RYE").run()
    assert len(buttons(at, "open-")) == 1


def test_deleting_a_chat_shows_what_it_alone_taught_and_forgets_it(mc: MemChat) -> None:
    with mc.session(**ANA) as talk:
        talk.send("I live in Lisbon.").text
    at = app(c=str(talk.session_id))
    press(at, f"delete-{talk.session_id}")
    assert "city: Lisbon" in text(at)
    press(at, "delete-talk")
    assert mc.sessions(**ANA) == []
    assert mc.memories(**ANA) == []


def test_an_incognito_chat_is_fixed_at_its_beginning_and_leaves_no_byte(
    mc: MemChat, tmp_path: Path
) -> None:
    at = app()
    press(at, "new-incognito")
    assert "Incognito chat" in text(at)
    assert not at.toggle
    say_incognito(at, "My code word is zanzibarquark.")
    assert "zanzibarquark" in text(at)
    assert mc.sessions(**ANA) == []
    press(at, "new")
    assert "zanzibarquark" not in text(at)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"zanzibarquark" not in path.read_bytes(), path


def say_incognito(at: AppTest, words: str) -> None:
    at.chat_input[0].set_value(words).run()
    until(at, lambda: buttons(at, "redo-"))


@pytest.mark.parametrize("user_on", [True, False])
@pytest.mark.parametrize("app_on", [True, False])
@pytest.mark.parametrize("incognito", [True, False])
def test_memory_is_on_only_where_all_three_switches_say_so_and_else_the_page_says_why(
    mc: MemChat, user_on: bool, app_on: bool, incognito: bool
) -> None:
    mc.set_memory(user_on, user="ana")
    mc.set_memory(app_on, **ANA)
    at = app()
    if incognito:
        press(at, "new-incognito")
        assert "No memory is used" in text(at)
    elif user_on and app_on:
        assert at.toggle(key="memory").value
        assert "Nothing is remembered" not in text(at)
    else:
        assert not at.toggle(key="memory").value
        whose = "the app default" if user_on else "ana"
        assert f"Nothing is remembered: memory is off for {whose}." in text(at)


def test_with_memory_off_nothing_is_injected_kept_or_queued_and_the_viewer_still_works(
    mc: MemChat,
) -> None:
    mc.add("profile", "city", "Lisbon", **ANA)
    mc.set_memory(False, **ANA)
    before = len(mc.jobs(user="ana"))
    at = app()
    say(at, "I live in Porto. Where do I live?")
    reply = mc.messages(number(at), **ANA)[-1]
    assert mc.receipt(reply.id, **ANA) == []
    press(at, "new")
    time.sleep(1.5)
    assert len(mc.jobs(user="ana")) == before
    at = app("memories")
    assert "Nothing new is remembered: memory is off for the app default." in text(at)
    assert "Lisbon" in text(at)
    press(at, buttons(at, "forget-")[0])
    assert mc.memories(**ANA) == []


def test_the_switch_in_the_chat_is_kept(mc: MemChat) -> None:
    at = app()
    at.toggle(key="memory").set_value(False).run()
    assert not mc.memory_switch(**ANA).on
    assert "Nothing is remembered" in text(app())


def test_another_app_has_conversations_and_memories_of_its_own(mc: MemChat) -> None:
    mc.add("profile", "city", "Lisbon", **ANA)
    with mc.session(**ANA) as talk:
        talk.send("Hello there.").text
    at = app("memories", app="work")
    assert "Lisbon" not in text(at)
    assert buttons(at, "open-") == []


# --- why


def test_why_shows_each_line_that_was_given_and_what_can_be_done(mc: MemChat) -> None:
    kept = mc.add("profile", "city", "Lisbon", **ANA)
    at = app()
    say(at, "Where do I live?")
    press(at, buttons(at, "why-")[0])
    assert "city: Lisbon" in text(at)
    assert "always at hand" in text(at)
    press(at, "mute-0")
    assert "Kept out of the rest of this chat." in text(at)
    press(at, "unmute-0")
    press(at, "amend-0")
    at.text_input(key=f"amended-{kept.id}").set_value("Porto").run()
    press(at, "save-0")
    assert mc.memory(kept.id, **ANA).value == "Porto"


def test_a_fact_is_forgotten_from_the_receipt_and_brought_back(mc: MemChat) -> None:
    mc.add("profile", "city", "Lisbon", **ANA)
    at = app()
    say(at, "Where do I live?")
    press(at, buttons(at, "why-")[0])
    press(at, "forget-0")
    assert mc.memories(**ANA) == []
    at.run()
    press(at, "undo")
    assert [m.value for m in mc.memories(**ANA)] == ["Lisbon"]


# --- memories


def test_no_memories_yet_says_how_they_come(desk: Desk) -> None:
    assert "Nothing is remembered yet" in text(app("memories"))


def test_a_memory_is_added_by_hand_and_a_blank_one_is_refused(mc: MemChat) -> None:
    at = app("memories")
    press(at, "add")
    at.text_input(key="key-new").set_value("favourite tea")
    at.text_area(key="value-new").set_value("   ")
    at.button[[b.label for b in at.button].index("Keep")].click().run()
    assert "The value is empty." in text(at)
    at.text_input(key="key-new").set_value("favourite tea")
    at.text_area(key="value-new").set_value("  sencha ")
    at.button[[b.label for b in at.button].index("Keep")].click().run()
    found = mc.memories(**ANA)
    assert [(m.value, m.created_by) for m in found] == [("sencha", "manual")]
    assert "sencha" in text(at)


def test_a_memory_is_edited_in_its_place(mc: MemChat) -> None:
    kept = mc.add("profile", "city", "Lisbon", **ANA)
    at = app("memories")
    press(at, f"change-{kept.id}")
    at.text_area(key=f"value-{kept.id}").set_value("Porto")
    at.button[[b.label for b in at.button].index("Save")].click().run()
    assert mc.memory(kept.id, **ANA).value == "Porto"
    assert "Porto" in text(at)


def test_memories_are_searched_filtered_and_sorted(mc: MemChat) -> None:
    mc.add("profile", "city", "Lisbon", **ANA)
    mc.add("fact", "bike", "green", **ANA)
    mc.add("fact", "car", "100% electric", **ANA)
    at = app("memories")
    at.text_input(key="search-memories").set_value("100% elec").run()
    assert buttons(at, "details-") == [f"details-{mc.browse_ids(Wanted('electric'), **ANA)[0]}"]
    at.text_input(key="search-memories").set_value("").run()
    at.get("button_group")[0].set_value(["profile"]).run()
    assert "Lisbon" in text(at)
    assert "green" not in text(at)
    at.get("button_group")[0].set_value([]).run()
    at.selectbox(key="sort").set_value("key").run()
    words = text(at)
    assert words.index("green") < words.index("electric") < words.index("Lisbon")
    at.selectbox(key="created").set_value("auto").run()
    assert "Nothing fits" in text(at)


def test_many_memories_are_shown_by_the_page_and_forgotten_by_the_query(
    mc: MemChat,
) -> None:
    for n in range(45):
        mc.add("fact", "thing", f"value {n:02}", **ANA)
    at = app("memories")
    assert len(buttons(at, "details-")) == 20
    press(at, "next")
    press(at, "next")
    assert len(buttons(at, "details-")) == 5
    at.checkbox(key="all here").check().run()
    assert "5 selected" in text(at)
    press(at, "choose-all")
    assert "45 selected" in text(at)
    press(at, "forget-many")
    press(at, "forget-many-yes")
    assert mc.count_memories(**ANA) == 0
    press(at, "undo")
    assert mc.count_memories(**ANA) == 45


def test_a_forgotten_memory_is_gone_for_good_when_nobody_undid_it(
    mc: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "UNDO_SECONDS", 0.5)
    kept = mc.add("profile", "city", "Zanzibar", **ANA)
    at = app("memories")
    press(at, f"forget-{kept.id}")
    assert "Nothing is remembered yet" in text(at)
    until(at, lambda: "undo" not in [b.key for b in at.button])
    until(at, lambda: b"Zanzibar" not in (mc.settings.home / "memchat.db").read_bytes())


def test_details_show_the_words_that_prove_it_and_lead_to_the_very_message(mc: MemChat) -> None:
    with mc.session(**ANA) as talk:
        talk.send("Good morning!").text
        talk.send("By the way, I live in Lisbon.").text
    kept = mc.memories(**ANA)[0]
    at = app("memories")
    press(at, f"details-{kept.id}")
    assert "> I live in Lisbon" in text(at)
    assert "kept from a chat" in text(at)
    press(at, "proof-0")
    at.switch_page("views/chat.py").run()
    assert "the message that was looked for" in text(at)


def test_a_replaced_value_is_in_the_history_and_comes_back(mc: MemChat) -> None:
    old = mc.add("profile", "city", "Lisbon", **ANA)
    mc.add("profile", "city", "Porto", **ANA)
    assert keys.cardinality("city") == "one"
    at = app("memories")
    at.selectbox(key="status").set_value("inactive").run()
    press(at, f"details-{old.id}")
    press(at, "restore")
    assert [m.value for m in mc.memories(**ANA)] == ["Lisbon"]


def test_a_memory_that_could_not_be_embedded_says_why_and_is_tried_again(mc: MemChat) -> None:
    kept = mc.add("profile", "city", "Lisbon", **ANA)
    with mc._database.write() as tx:  # as a service that refuses its key leaves it
        own = memories.app_id_of(tx, kept.id)
        jobs.enqueue(tx, "embed", own, "memory", kept.id, mc.now)
        tx.exec_driver_sql("UPDATE jobs SET status = 1, error_message = 'the key was refused'")
    at = app("memories")
    at.selectbox(key="status").set_value("not embedded").run()
    assert "Not embedded (failed): the key was refused" in text(at)
    press(at, f"embed-{kept.id}")
    assert [j.status for j in mc.jobs(user="ana")] == ["pending"]


# --- inbox, insights, settings


def test_an_empty_inbox_says_what_comes_there(desk: Desk) -> None:
    assert "Nothing waits" in text(app("inbox"))


@pytest.mark.parametrize("answer", ["accept", "reject", "edit"])
def test_what_was_held_back_is_kept_rejected_or_kept_in_other_words(
    mc: MemChat, answer: str
) -> None:
    with mc.session(**ANA) as talk:
        talk.send("If I move, I live in Lisbon. Maybe I am a vegetarian.").text
    with mc._database.write() as tx:
        from memchat.store import apps, inbox
        from memchat.types import Scope

        held = inbox.Held("it may be a wish", memory_type="fact", key="tea", value="sencha")
        own, _ = apps.ensure(tx, Scope("ana"), mc.now)
        inbox.add(tx, own, held, mc.now)
    item = mc.inbox(**ANA)[-1]
    at = app("inbox")
    assert "it may be a wish" in text(at)
    if answer == "edit":
        press(at, f"decide-{item.id}")
        at.text_input(key=f"decided-{item.id}").set_value("hojicha")
        at.button[[b.label for b in at.button].index("Keep")].click().run()
    else:
        press(at, f"{answer}-{item.id}")
    assert item.id not in [i.id for i in mc.inbox(**ANA)]
    tea = {"accept": ["sencha"], "reject": [], "edit": ["hojicha"]}[answer]
    assert [m.value for m in mc.memories(**ANA) if m.key == "tea"] == tea


def test_insights_figures_are_the_stores_own(mc: MemChat) -> None:
    for n in range(3):
        mc.add("fact", "thing", f"value {n}", **ANA)
    mc.add("profile", "city", "Lisbon", **ANA, expires_at=(mc.now + timedelta(days=5)).date())
    with mc.session(**ANA) as talk:
        talk.send("Where do I live?").text
    at = app("insights")
    shown = {m.label: m.value for m in at.metric}
    with mc._database.read() as tx:
        active = tx.exec_driver_sql("SELECT count(*) FROM memories WHERE active").scalar()
        unread = tx.exec_driver_sql(
            "SELECT count(*) FROM memories WHERE active AND read_count = 0"
        ).scalar()
        said = tx.exec_driver_sql("SELECT count(*) FROM messages WHERE role = 'user'").scalar()
        done = tx.exec_driver_sql("SELECT count(*) FROM jobs WHERE status = 0").scalar()
    assert shown["In use"] == str(active) == "4"
    assert shown["Never used"] == str(unread)
    assert shown["Messages this week"] == str(said)
    assert f"{done} done" in text(at)
    figures = mc.insights(**ANA)
    assert sum(figures.kept.values()) == sum(figures.types.values()) == 4
    assert "city: Lisbon" in text(at)


def test_the_audit_shows_what_it_finds_and_mends_it(mc: MemChat) -> None:
    mc.add("profile", "city", "Lisbon", **ANA, expires_at=(mc.now + timedelta(days=5)).date())
    at = app("insights")
    press(at, "audit")
    assert [e.label for e in at.expander if e.label.startswith("Expiring")]


def test_settings_tell_what_is_in_use_and_never_a_key(
    mc: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-very-secret")
    at = app("settings")
    said = text(at)
    assert "offline/chat" in said
    assert "MEMCHAT_CHAT_MODEL" in said
    assert "GROQ_API_KEY" in said
    assert "gsk-very-secret" not in said


def test_the_switches_in_settings_are_kept_and_lead_to_the_memories(mc: MemChat) -> None:
    at = app("settings")
    assert [e.proto.page for e in at.get("page_link")] == ["memories"]
    at.toggle(key="memory of user").set_value(False).run()
    assert not mc.memory_switch(user="ana", app=None).on
    assert at.toggle(key="memory of app").disabled
    at.toggle(key="memory of user").set_value(True).run()
    at.toggle(key="memory of app").set_value(False).run()
    assert mc.memory_switch(user="ana", app=None).on
    assert not mc.memory_switch(**ANA).on


def test_wiping_everything_wants_the_name_typed_and_leaves_others_alone(mc: MemChat) -> None:
    mc.add("profile", "city", "Lisbon", **ANA)
    mc.add("profile", "city", "Lisbon", **ANA, all_apps=True)
    mc.add("profile", "city", "Oslo", user="bob")
    with mc.session(**ANA) as talk:
        talk.send("Hello there.").text
    at = app("settings")
    press(at, "wipe")
    assert at.button(key="wipe-yes").disabled
    at.text_input(key="wipe-name").set_value("ana").run()
    press(at, "wipe-yes")
    assert mc.apps(user="ana") == []
    assert mc.memories(**ANA) == []
    assert [m.value for m in mc.memories(user="bob")] == ["Oslo"]


@pytest.mark.parametrize("page", ["memories", "inbox", "insights", "settings"])
def test_every_page_opens_on_an_empty_store(desk: Desk, page: str) -> None:
    assert app(page).title[0].value == page.capitalize()
