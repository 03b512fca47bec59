"""The memories page."""

from __future__ import annotations

import pytest

from memchat import MemChat
from memchat.facts import keys
from memchat.types import Wanted
from tests.support import private
from tests.support.ui.tab import ANA, app, buttons, press, text, until
from ui import forgetting
from ui.desk import Desk


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
    found = mc.user(**ANA).memories.list()
    assert [(m.value, m.created_by) for m in found] == [("sencha", "manual")]
    assert "sencha" in text(at)


def test_a_secret_added_by_hand_is_kept_only_where_the_person_ticks_it(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app("memories")
    press(at, "add")
    at.text_input(key="key-new").set_value("gate code")
    at.text_area(key="value-new").set_value("4471")
    at.button[[b.label for b in at.button].index("Keep")].click().run()
    assert ana.memories.list() == []
    assert at.checkbox(key="anyway").label == "This looks like a password. Keep it anyway."
    at.checkbox(key="anyway").check()
    at.button[[b.label for b in at.button].index("Keep")].click().run()
    assert [m.value for m in ana.memories.list()] == ["4471"]


def test_a_memory_is_edited_in_its_place(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    kept = ana.memories.add("profile", "city", "Lisbon")
    at = app("memories")
    press(at, f"change-{kept.id}")
    at.text_area(key=f"value-{kept.id}").set_value("Porto")
    at.button[[b.label for b in at.button].index("Save")].click().run()
    assert ana.memories.get(kept.id).value == "Porto"
    assert "Porto" in text(at)


def test_a_memory_is_pinned_and_pinned_ones_are_shown_alone(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    kept = ana.memories.add("fact", "bike", "green")
    ana.memories.add("fact", "car", "electric")
    at = app("memories")
    press(at, f"pin-{kept.id}")
    assert ana.memories.get(kept.id).pinned
    at.selectbox(key="status").set_value("pinned").run()
    assert buttons(at, "details-") == [f"details-{kept.id}"]
    assert "Pinned" in text(at)
    press(at, f"pin-{kept.id}")
    assert not ana.memories.get(kept.id).pinned


def test_a_memory_is_marked_sensitive_in_its_details_and_the_mark_taken_off(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    kept = ana.memories.add("fact", "boat", "a red kayak")
    at = app("memories")
    assert "· sensitive" not in text(at)
    press(at, f"details-{kept.id}")
    mark = at.checkbox(key=f"sensitive-{kept.id}")
    assert mark.label == "Sensitive: a chat model gets it only where it fits the message"
    mark.check().run()
    assert ana.memories.get(kept.id).sensitive
    assert "· sensitive" in text(at) and "changed by you: sensitive no → yes" in text(at)
    at.checkbox(key=f"sensitive-{kept.id}").uncheck().run()
    assert not ana.memories.get(kept.id).sensitive
    assert "· sensitive" not in text(at) and "changed by you: sensitive yes → no" in text(at)


def test_memories_are_searched_filtered_and_sorted(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("fact", "bike", "green")
    ana.memories.add("fact", "car", "100% electric")
    at = app("memories")
    at.text_input(key="search-memories").set_value("100% elec").run()
    assert buttons(at, "details-") == [f"details-{ana.memories.browse_ids(Wanted('electric'))[0]}"]
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
    mc: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = mc.user(**ANA)
    for n in range(29):
        ana.memories.add("fact", "thing", f"value {n:02}")
    monkeypatch.setattr(forgetting, "SLOWEST", 1)
    at = app("memories")
    assert len(buttons(at, "details-")) == 12
    press(at, "next")
    press(at, "next")
    assert len(buttons(at, "details-")) == 5
    at.checkbox(key="all here").check().run()
    assert "5 selected" in text(at)
    press(at, "choose-all")
    assert "29 selected" in text(at)
    press(at, "forget-many")
    assert "For 39 seconds it can be undone" in text(at)
    press(at, "forget-many-yes")
    assert ana.memories.count() == 0
    press(at, buttons(at, "undo-")[-1])
    assert ana.memories.count() == 29


def test_a_list_that_is_opened_again_is_in_its_order_and_without_gaps(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    first, second = (memories.add("fact", f"thing{n}", "old").id for n in range(2))
    at = app("memories")
    press(at, f"forget-{first}")
    at.switch_page("views/inbox.py").run()
    third = memories.add("fact", "thing3", "new").id
    at.switch_page("views/memories.py").run()
    assert buttons(at, "details-") == [f"details-{third}", f"details-{second}"]
    assert not buttons(at, "unforget-") and buttons(at, "undo-")


def test_what_was_forgotten_is_named_where_it_can_be_undone(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    ids = [memories.add("fact", "favourite_tea", value).id for value in ("mint *", "sencha")]
    at = app("memories")
    for memory_id in ids:
        press(at, f"forget-{memory_id}")
    for value in ("mint *", "sencha"):
        assert f"Forgot: favourite tea: {value}. Gone for good in" in text(at)
        assert f"Forgotten: favourite tea: {value}" in text(at)


def test_what_was_forgotten_is_no_longer_selected(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    ids = [memories.add("fact", f"thing{n}", "x").id for n in range(3)]
    at = app("memories")
    for memory_id in ids[:2]:
        at.checkbox(key=f"pick-{memory_id}").check().run()
    press(at, f"forget-{ids[0]}")
    assert "**1 selected** of 2" in text(at)
    press(at, f"forget-{ids[1]}")
    assert "selected" not in text(at) and not buttons(at, "forget-many")


def test_each_forgetting_is_undone_by_itself_and_no_row_moves(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    ids = [memories.add("fact", f"thing{n}", f"value {n}").id for n in range(4)]
    at = app("memories")
    order = [key.removeprefix("details-") for key in buttons(at, "details-")]
    press(at, f"forget-{ids[1]}")
    press(at, f"forget-{ids[2]}")
    assert memories.count() == 2
    assert len(buttons(at, "undo-")) == 2
    drawn = [b.key for b in at.button if b.key and b.key.startswith(("details-", "unforget-"))]
    assert [key.rpartition("-")[2] for key in drawn] == order
    press(at, f"unforget-{ids[1]}")
    assert memories.get(ids[1]).active and memories.count() == 3
    press(at, buttons(at, "undo-")[0])
    assert memories.get(ids[2]).active
    assert [key.removeprefix("details-") for key in buttons(at, "details-")] == order


def test_what_was_forgotten_is_found_under_forgotten_until_it_is_purged(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    kept = memories.add("profile", "city", "Zanzibar")
    at = app("memories")
    at.selectbox(key="status").set_value("forgotten").run()
    assert "Nothing waits to be forgotten" in text(at)
    memories.delete(kept.id, hold=3600)
    at.run()
    assert "Zanzibar" in text(at)
    press(at, f"restore-{kept.id}")
    assert memories.get(kept.id).active
    memories.delete(kept.id)
    at.run()
    assert "Zanzibar" not in text(at)


def test_a_forgotten_memory_is_gone_for_good_when_nobody_undid_it(
    mc: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "UNDO_SECONDS", 0.5)
    kept = mc.user(**ANA).memories.add("profile", "city", "Zanzibar")
    at = app("memories")
    press(at, f"forget-{kept.id}")
    assert "Nothing is remembered yet" in text(at)
    until(at, lambda: not buttons(at, "undo-"))
    until(at, lambda: b"Zanzibar" not in (mc.settings.home / "memchat.db").read_bytes())


def test_details_show_the_words_that_prove_it_and_lead_to_the_very_message(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    with ana.chat() as talk:
        talk.send("Good morning!").read()
        talk.send("By the way, I live in Lisbon.").read()
    kept = ana.memories.list()[0]
    at = app("memories")
    press(at, f"details-{kept.id}")
    assert "> I live in Lisbon" in text(at)
    assert "kept from a chat" in text(at)
    press(at, "proof-0")
    at.switch_page("views/chat.py").run()
    assert "the message that was looked for" in text(at)


def test_a_replaced_value_is_in_the_history_and_comes_back(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    old = ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("profile", "city", "Porto")
    assert keys.cardinality("city") == "one"
    at = app("memories")
    at.selectbox(key="status").set_value("inactive").run()
    press(at, f"details-{old.id}")
    press(at, "restore")
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]


def test_a_memory_that_could_not_be_embedded_says_why_and_is_tried_again(mc: MemChat) -> None:
    kept = mc.user(**ANA).memories.add("profile", "city", "Lisbon")
    with private.database(mc).write() as tx:  # as a service that refuses its key leaves it
        tx.connection.exec_driver_sql(
            "UPDATE passages SET status = 1, error_message = 'the key was refused',"
            " run_at = '2026-01-01T00:00:00Z', created_at = '2026-01-01T00:00:00Z'"
        )
    at = app("memories")
    at.selectbox(key="status").set_value("not embedded").run()
    assert "Not embedded (failed): the key was refused" in text(at)
    press(at, f"embed-{kept.id}")
    assert [j.status for j in mc.jobs.list(user="ana")] == ["pending"]


def test_tags_are_given_in_the_form_shown_as_chips_and_filtered_by(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    tea = ana.memories.add("preference", "tea", "sencha")
    ana.memories.add("fact", "car", "electric")
    at = app("memories")
    assert "tags" not in {one.key for one in at.multiselect}  # there are none to choose
    press(at, f"change-{tea.id}")
    at.text_input(key=f"tags-{tea.id}").set_value("Good Food, home,")
    at.button[[b.label for b in at.button].index("Save")].click().run()
    assert ana.memories.get(tea.id).tags == ("good-food", "home")
    assert ":gray-badge[home]" in "".join(str(one.value) for one in at.markdown)
    at.multiselect(key="tags").set_value(["home", "good-food"]).run()
    assert buttons(at, "details-") == [f"details-{tea.id}"]
    press(at, f"details-{tea.id}")
    assert "tags none → good-food, home" in text(at)
    ana.memories.update(tea.id, tags=[])
    at.run()
    assert buttons(at, "details-") == [] and not at.exception  # what was chosen can be taken away
