"""The memories page."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from memchat import MemChat
from memchat.facts import changes, keys
from memchat.types import Wanted
from tests.support import private
from tests.support.ui.tab import (
    ANA,
    act,
    app,
    buttons,
    listed,
    press,
    sentences,
    summary,
    text,
    until,
)
from ui import forgetting
from ui.desk import Desk


def ids(at: AppTest) -> list[int]:
    """The memories that stand in rows, without those that were forgotten."""
    return [row["id"] for row in listed(at) if "acts" in row]


def test_no_memories_yet_says_how_they_come(desk: Desk) -> None:
    assert "Nothing is remembered yet" in text(app("memories"))


def test_a_memory_is_added_by_hand_and_a_blank_one_is_refused(mc: MemChat) -> None:
    at = app("memories")
    at.text_input(key="add-words").set_value("sencha")
    press(at, "add")
    assert at.text_area(key="value-new").value == "sencha"
    at.text_input(key="key-new").set_value("favourite tea")
    at.text_area(key="value-new").set_value("   ")
    press(at, "save-new")
    assert "The value is empty." in text(at)
    at.text_area(key="value-new").set_value("  sencha ")
    press(at, "save-new")
    found = mc.user(**ANA).memories.list()
    assert [(m.key, m.value, m.created_by) for m in found] == [
        ("favourite_tea", "sencha", "manual")
    ]
    assert sentences(at) == ["Favourite tea: sencha"]


def test_what_should_be_remembered_is_read_and_fills_in_the_form(mc: MemChat) -> None:
    at = app("memories")
    at.text_input(key="add-words").set_value("I live in Lisbon.")
    press(at, "add")
    assert at.text_input(key="key-new").value == "city"
    assert at.text_area(key="value-new").value == "Lisbon"
    assert mc.user(**ANA).memories.list() == []
    press(at, "save-new")
    assert sentences(at) == ["You live in Lisbon."]


def test_a_secret_added_by_hand_is_kept_only_where_the_person_ticks_it(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app("memories")
    at.text_input(key="add-words").set_value("4471")
    press(at, "add")
    at.text_input(key="key-new").set_value("gate code")
    press(at, "save-new")
    assert ana.memories.list() == []
    assert at.checkbox(key="anyway").label == "This looks like a password. Keep it anyway."
    at.checkbox(key="anyway").check()
    press(at, "save-new")
    assert [m.value for m in ana.memories.list()] == ["4471"]


def test_a_memory_is_edited(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    kept = ana.memories.add("profile", "city", "Lisbon")
    at = app("memories")
    act(at, "edit", kept.id)
    at.text_area(key=f"value-{kept.id}").set_value("Porto")
    press(at, f"save-{kept.id}")
    assert ana.memories.get(kept.id).value == "Porto"
    assert sentences(at) == ["You live in Porto."]
    assert not buttons(at, "save-")


def test_a_memory_is_pinned_and_pinned_ones_are_shown_alone(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    kept = ana.memories.add("fact", "bike", "green")
    ana.memories.add("fact", "car", "electric")
    at = app("memories")
    act(at, "pin", kept.id)
    assert ana.memories.get(kept.id).pinned
    at.selectbox(key="status").set_value("pinned").run()
    assert ids(at) == [kept.id]
    assert listed(at)[0]["about"] == "pinned · today"
    act(at, "unpin", kept.id)
    assert not ana.memories.get(kept.id).pinned


def test_a_memory_is_marked_sensitive_in_its_details_and_the_mark_taken_off(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    kept = ana.memories.add("fact", "boat", "a red kayak")
    at = app("memories")
    act(at, "details", kept.id)
    mark = at.checkbox(key=f"sensitive-{kept.id}")
    assert mark.label == "Sensitive: a chat model gets it only where it fits the message"
    mark.check().run()
    assert ana.memories.get(kept.id).sensitive
    assert "changed by you: sensitive no → yes" in text(at)
    assert listed(at)[0]["about"] == "sensitive · today"
    at.checkbox(key=f"sensitive-{kept.id}").uncheck().run()
    assert not ana.memories.get(kept.id).sensitive
    assert "changed by you: sensitive yes → no" in text(at)
    assert listed(at)[0]["about"] == "today"


def test_memories_are_searched_filtered_and_sorted(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("fact", "bike", "green")
    ana.memories.add("fact", "car", "100% electric")
    at = app("memories")
    at.text_input(key="search-memories").set_value("100% elec").run()
    assert sentences(at) == ["Car: [100%] [elec]tric"]
    at.text_input(key="search-memories").set_value("").run()
    at.selectbox(key="sort").set_value("key").run()
    assert sentences(at) == ["Bike: green", "Car: 100% electric", "You live in Lisbon."]
    at.selectbox(key="created").set_value("auto").run()
    assert "Nothing fits" in text(at)


def test_memories_stand_in_groups_that_a_person_looks_in(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    memories.add("profile", "city", "Lisbon")
    memories.add("fact", "sister_city", "Braga")
    memories.add("fact", "allergy", "peanuts")
    memories.add("preference", "tea", "sencha")
    memories.add("fact", "boat", "a red kayak")
    at = app("memories")
    (groups,) = at.get("button_group")
    _, *names = [option.content for option in groups.proto.options]
    assert names == ["About you 1", "People 1", "Health 1", "Preferences 1", "More 1"]
    groups.set_value("people").run()
    assert sentences(at) == ["Sister city: Braga"]


def test_the_summary_tells_the_facts_by_group_each_with_the_way_to_its_source(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    kept = memories.add("profile", "city", "Lisbon")
    for n in range(10):
        memories.add("preference", "like", f"tea number {n}")
    at = app("memories")
    at.get("button_group")[0].set_value("What I know about you").run()
    first, second = summary(at)
    assert first["rows"] == [{"id": kept.id, "said": "You live in Lisbon.", "day": "today"}]
    assert (second["title"], len(second["rows"]), second["more"]) == ("Preferences", 8, "2 more")
    act(at, "details", kept.id)
    assert "It was entered or accepted by you." in text(at).replace("it was", "It was")
    act(at, "group", "preferences")
    assert len(ids(at)) == 10


def test_fifty_rows_are_loaded_at_a_time_and_all_are_forgotten_together(
    mc: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = mc.user(**ANA)
    for n in range(60):
        ana.memories.add("fact", "thing", f"value {n:02}")
    monkeypatch.setattr(forgetting, "SLOWEST", 1)
    at = app("memories")
    assert len(ids(at)) == 50
    act(at, "more")
    assert len(ids(at)) == 60
    act(at, "forget", "all")
    until(at, lambda: ana.memories.count() == 0)
    press(at, buttons(at, "undo-")[-1])
    until(at, lambda: ana.memories.count() == 60)


def test_what_is_chosen_is_tagged_pinned_marked_moved_and_exported_together(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    chosen = [memories.add("fact", f"thing{n}", "x", tags=["old"]).id for n in range(3)][:2]
    at = app("memories")
    act(at, "tag", *chosen)
    at.text_input(key="tags-many").set_value("Good Food, home")
    press(at, "tag-them")
    assert [memories.get(i).tags for i in chosen] == [("good-food", "home", "old")] * 2
    act(at, "pin", *chosen)
    act(at, "sensitive", *chosen)
    act(at, "move", *chosen)
    press(at, "move-True")
    found = [memories.get(i) for i in chosen]
    assert [(m.pinned, m.sensitive, m.app) for m in found] == [(True, True, "")] * 2
    act(at, "sensitive", *chosen)
    assert not any(memories.get(i).sensitive for i in chosen)
    act(at, "export", *chosen)
    assert "2 memories as a file" in text(at)
    assert len(memories.browse(Wanted(status="pinned")).memories) == 2


def test_a_list_that_is_opened_again_is_in_its_order_and_without_gaps(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    first, second = (memories.add("fact", f"thing{n}", "old").id for n in range(2))
    at = app("memories")
    act(at, "forget", first)
    at.switch_page("views/inbox.py").run()
    third = memories.add("fact", "thing3", "new").id
    at.switch_page("views/memories.py").run()
    assert [row["id"] for row in listed(at)] == [third, second]
    assert buttons(at, "undo-")


def test_what_was_forgotten_is_named_where_it_can_be_undone(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    kept = [memories.add("fact", "favourite_tea", value).id for value in ("mint *", "sencha")]
    at = app("memories")
    for memory_id in kept:
        act(at, "forget", memory_id)
    for value in ("mint *", "sencha"):
        assert f"Forgot: Favourite tea: {value}. Gone for good in" in text(at)
        assert f"Forgotten: Favourite tea: {value}" in sentences(at)


def test_each_forgetting_is_undone_by_itself_and_no_row_moves(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    kept = [memories.add("fact", f"thing{n}", f"value {n}").id for n in range(4)]
    at = app("memories")
    order = ids(at)
    act(at, "forget", kept[1])
    act(at, "forget", kept[2])
    assert memories.count() == 2
    assert len(buttons(at, "undo-")) == 2
    assert [row["id"] for row in listed(at)] == order
    act(at, "unforget", kept[1])
    assert memories.get(kept[1]).active and memories.count() == 3
    press(at, buttons(at, "undo-")[0])
    assert memories.get(kept[2]).active
    assert ids(at) == order


def test_what_was_forgotten_is_found_under_forgotten_until_it_is_purged(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    kept = memories.add("profile", "city", "Zanzibar")
    at = app("memories")
    at.selectbox(key="status").set_value("forgotten").run()
    assert "Nothing waits to be forgotten" in text(at)
    memories.delete(kept.id, hold=3600)
    at.run()
    assert sentences(at) == ["You live in Zanzibar."]
    act(at, "restore", kept.id)
    assert memories.get(kept.id).active
    memories.delete(kept.id)
    at.run()
    assert "You live in Zanzibar." not in sentences(at)


def test_a_forgotten_memory_is_gone_for_good_when_nobody_undid_it(
    mc: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "UNDO_SECONDS", 0.5)
    kept = mc.user(**ANA).memories.add("profile", "city", "Zanzibar")
    at = app("memories")
    act(at, "forget", kept.id)
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
    act(at, "details", kept.id)
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
    act(at, "details", old.id)
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
    assert "Not embedded (failed): the key was refused" in listed(at)[0]["about"]
    act(at, "embed", kept.id)
    assert [j.status for j in mc.jobs.list(user="ana")] == ["pending"]


def test_tags_are_given_in_the_form_shown_as_chips_and_filtered_by(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    tea = ana.memories.add("preference", "tea", "sencha")
    ana.memories.add("fact", "car", "electric")
    at = app("memories")
    assert "tags" not in {one.key for one in at.multiselect}  # there are none to choose
    act(at, "edit", tea.id)
    at.text_input(key=f"tags-{tea.id}").set_value("Good Food, home,")
    press(at, f"save-{tea.id}")
    assert ana.memories.get(tea.id).tags == ("good-food", "home")
    assert ["good-food", "home"] in [row["tags"] for row in listed(at)]
    at.multiselect(key="tags").set_value(["home", "good-food"]).run()
    assert ids(at) == [tea.id]
    act(at, "details", tea.id)
    assert "tags none → good-food, home" in text(at)
    ana.memories.update(tea.id, tags=[])
    at.run()
    assert ids(at) == [] and not at.exception  # what was chosen can be taken away


def test_forgetting_says_what_loses_its_proof_while_it_can_be_undone(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    with ana.chat() as talk:
        talk.send("My Ghent flat has a piano.").read()
    said = ana.sessions.messages(talk.session_id or 0)[0]
    facts = ("profile", "city", "Ghent"), ("fact", "music", "a piano")
    city, piano = (ana.memories.add(*fact) for fact in facts)
    with private.database(mc).write() as tx:
        for one in (city, piano):
            changes.add_evidence(tx, one.id, [(said.id, 0, "My Ghent flat has a piano")])
    at = app("memories")
    act(at, "forget", city.id)
    assert "No words prove “Music: a piano” any longer." in text(at)
