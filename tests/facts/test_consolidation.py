"""What a new fact does to the facts that are there."""

from __future__ import annotations

import hashlib
from datetime import date

import pytest

from memchat.errors import InputError, NotFound
from memchat.learn.values import are_equivalent
from memchat.search import repair
from memchat.testing import FakeClock
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import said, state, talk, updates
from tests.support.starts import known, tell


def test_saying_it_again_is_counted_and_moves_the_day(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    for _ in range(3):
        said(mc, extract_model, "I live in Lisbon.", fact("I live in Lisbon", "city", "Lisbon"))
        clock.advance(days=1)
    (memory,) = ana.memories.list()
    assert memory.seen_count == 3
    assert (memory.last_seen_at - memory.created_at).days == 2
    assert len(ana.memories.evidence(memory.id)) == 3


def test_the_same_words_in_another_spelling_are_the_same_fact(mc, extract_model) -> None:
    said(mc, extract_model, "I adore jazz.", fact("I adore jazz", "music", "Jazz"))
    said(mc, extract_model, "I adore  jazz!", fact("I adore jazz", "music", "jazz"))
    (memory,) = mc.user("ana").memories.list()
    assert memory.seen_count == 2


def test_sha1_is_over_type_key_and_value(mc) -> None:
    memory = mc.user("ana").memories.add("fact", "shoe_size", "41")
    assert memory.sha1 == hashlib.sha1(b"fact|shoe_size|41").hexdigest()


def test_a_newer_value_of_a_key_that_holds_one_takes_the_old_one_s_place(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    said(mc, extract_model, "I am 41.", fact("I am 41", "age", "41"))
    clock.advance(days=1)
    chat = said(mc, extract_model, "I am 42 now.", fact("I am 42", "age", "42"))
    assert state(mc) == {"42": (True, None), "41": (False, "superseded")}
    old = ana.memories.list(status="inactive")[0]
    assert old.replaced_by == ana.memories.list()[0].id
    assert [(c.kind, c.before) for c in chat.learned.changes] == [("superseded", "41")]
    assert chat.learned.headline == "Saved 1 (merged/updated 1)"


def test_going_back_to_an_old_value_brings_its_row_back(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    for city in ("Lisbon", "Porto", "Lisbon"):
        said(mc, extract_model, f"I live in {city}.", fact(f"I live in {city}", "city", city))
        clock.advance(days=1)
    assert state(mc) == {"Lisbon": (True, None), "Porto": (False, "superseded")}
    lisbon = ana.memories.list()[0]
    assert lisbon.id == 1
    kinds = [event.kind for event in ana.memories.history(lisbon.id)]
    assert kinds[:4] == ["add", "supersede", "restore", "repeat"]


def test_a_key_that_holds_many_keeps_every_value(mc, extract_model) -> None:
    said(
        mc,
        extract_model,
        "I am allergic to nuts and I am allergic to pollen.",
        fact("I am allergic to nuts", "allergy", "nuts"),
        fact("I am allergic to pollen", "allergy", "pollen"),
    )
    assert state(mc) == {"nuts": (True, None), "pollen": (True, None)}


def test_an_unknown_key_never_supersedes_by_itself(mc, extract_model) -> None:
    said(mc, extract_model, "My bike is red.", fact("My bike is red", "bike_colour", "red"))
    said(mc, extract_model, "My bike is blue.", fact("My bike is blue", "bike_colour", "blue"))
    assert state(mc) == {"red": (True, None), "blue": (True, None)}


def test_of_two_values_in_one_session_only_the_later_is_stored(mc, extract_model) -> None:
    extract_model.replies.append(
        answer(
            fact("I live in Lisbon", "city", "Lisbon"),
            fact("I live in Porto", "city", "Porto", msg="u3"),
        )
    )
    talk(mc, "I live in Lisbon.", "Sorry, wrong: I live in Porto.")
    assert state(mc) == {"Porto": (True, None)}


def test_an_ended_fact_is_kept_inactive_with_the_reason(mc, extract_model) -> None:
    line = "My project is the garden wall."
    said(mc, extract_model, line, fact(line[:-1], "project", "the garden wall", memory_type="fact"))
    chat = said(
        mc,
        extract_model,
        "The garden wall is finished.",
        fact(
            "The garden wall is finished",
            "project",
            "",
            memory_type="fact",
            to="k1",
            **{"is": "ends"},
        ),
    )
    assert [c.kind for c in chat.learned.changes] == ["ended"]
    assert state(mc) == {"the garden wall": (False, "ended")}


def test_what_was_ended_leaves_no_words_in_the_keyword_index(mc, extract_model) -> None:
    line = "My project is the garden wall."
    said(mc, extract_model, line, fact(line[:-1], "project", "the garden wall", memory_type="fact"))
    ended = fact("The wall is finished", "project", "", memory_type="fact", to="k1")
    said(mc, extract_model, "The wall is finished.", {**ended, "is": "ends"})
    assert state(mc) == {"the garden wall": (False, "ended")}
    with private.database(mc).read() as tx:
        assert repair.wrong_keyword_rows(tx) == set()


def test_a_verdict_about_a_fact_that_was_not_shown_changes_nothing(mc, extract_model) -> None:
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    said(
        mc,
        extract_model,
        "That is over.",
        fact("That is over", "city", "", to="k77", **{"is": "ends"}),
    )
    assert state(mc) == {"Lisbon": (True, None)}


def test_what_is_kept_for_every_app_is_not_replaced_from_within_one(mc, extract_model) -> None:
    mc.user("ana").memories.add("profile", "city", "Lisbon", all_apps=True)
    said(
        mc, extract_model, "I live in Porto.", fact("I live in Porto", "city", "Porto"), app="work"
    )
    assert state(mc, app="work") == {"Lisbon": (True, None), "Porto": (True, None)}
    assert state(mc, app="home") == {"Lisbon": (True, None)}
    found = mc.user("ana", app="work").search("Where do I live, in which city?").hits
    assert [hit.memory.value for hit in found] == ["Porto"], "the app knows better"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("deadline 15 October", "deadline 22 October", False),
        ("stand-up at 9:30", "stand-up at 10:15", False),
        ("likes coriander", "does not like coriander", False),
        ("works with Ana", "works with Otto", False),
        ("drinks green tea", "drinks green tea daily", False),
        ("takes aspirin in the morning", "takes aspirin in the evening", False),
        ("potatoes", "sweet potatoes", False),
        ("green tea in the morning", "green tea in the mornings", True),
    ],
)
def test_guards_compare_numbers_names_and_negation(one: str, other: str, same: bool) -> None:
    assert are_equivalent(one, other) is same


def test_a_near_copy_merges_only_with_the_same_type_key_and_guards(
    open_store, extract_model
) -> None:
    mc = open_store(merge_threshold=0.5)
    mc.user("ana").memories.add("preference", "drink", "green tea in the morning")
    mc.jobs.embed()
    chat = said(
        mc,
        extract_model,
        "I like green tea in the mornings.",
        fact(
            "I like green tea in the mornings",
            "drink",
            "green tea in the mornings",
            memory_type="preference",
            many=True,
        ),
    )
    assert [c.kind for c in chat.learned.changes] == ["merged"]
    assert state(mc)["green tea in the morning"] == (False, "merged")


@pytest.mark.parametrize(
    ("threshold", "last_day"), [(0.5, date(2026, 6, 1)), (1.01, None)], ids=["day", "threshold"]
)
def test_a_near_copy_stays_where_its_last_day_differs_or_it_is_not_near_enough(
    open_store, extract_model, threshold: float, last_day: date | None
) -> None:
    mc = open_store(merge_threshold=threshold)
    first, again = "green tea in the morning", "green tea in the mornings"
    mc.user("ana").memories.add("preference", "drink", first, expires_at=last_day)
    mc.jobs.embed()
    line = f"I like {again}"
    one = fact(line, "drink", again, memory_type="preference", many=True)
    said(mc, extract_model, f"{line}.", one)
    assert state(mc) == {first: (True, None), again: (True, None)}


def test_a_near_pair_whose_guards_differ_stays_and_is_held_for_judging(
    open_store, extract_model
) -> None:
    mc = open_store(merge_threshold=0.5)
    mc.user("ana").memories.add("fact", "standup", "stand-up at 9:30 with the team")
    mc.jobs.embed()
    said(
        mc,
        extract_model,
        "There is a stand-up at 10:15 with the team.",
        fact(
            "a stand-up at 10:15 with the team",
            "standup",
            "stand-up at 10:15 with the team",
            memory_type="fact",
            many=True,
        ),
    )
    assert all(active for active, _ in state(mc).values()) and len(state(mc)) == 2
    with private.database(mc).read() as tx:
        pairs = tx.connection.exec_driver_sql("SELECT memory_id, related_id FROM proposals").all()
    assert [tuple(p) for p in pairs] == [(2, 1)]


def test_adding_by_hand_confirms_supersedes_and_revives_like_saying_it(
    mc, clock: FakeClock
) -> None:
    ana = mc.user("ana")
    first = ana.memories.add("profile", "city", "Lisbon")
    assert ana.memories.add("profile", "city", "Lisbon").id == first.id
    clock.advance(days=1)
    ana.memories.add("profile", "home_city", "Porto")
    assert state(mc) == {"Porto": (True, None), "Lisbon": (False, "superseded")}
    clock.advance(days=1)
    assert ana.memories.add("profile", "city", "Lisbon").id == first.id
    assert state(mc) == {"Lisbon": (True, None), "Porto": (False, "superseded")}


def test_restore_brings_back_a_superseded_memory_and_retires_its_rival(mc, clock) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Lisbon")
    clock.advance(days=1)
    ana.memories.add("profile", "city", "Porto")
    assert ana.memories.restore(old.id).active
    assert state(mc) == {"Lisbon": (True, None), "Porto": (False, "superseded")}
    with pytest.raises(InputError, match="active already"):
        ana.memories.restore(old.id)


def test_a_deleted_memory_cannot_be_restored(mc) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", "Lisbon")
    ana.memories.delete(memory.id)
    with pytest.raises(NotFound):
        ana.memories.restore(memory.id)


def test_an_edit_keeps_the_row_and_its_history(mc, clock) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("fact", "shoe_size", "41")
    clock.advance(days=1)
    edited = ana.memories.update(memory.id, value="42")
    assert (edited.id, edited.value) == (memory.id, "42")
    assert edited.updated_at > memory.updated_at
    event = ana.memories.history(memory.id)[-1]
    assert (event.kind, event.actor) == ("edit", "user")
    assert (event.old["value"], event.new["value"]) == ("41", "42")
    with pytest.raises(InputError, match="says the same"):
        other = ana.memories.add("fact", "shoe_size", "43")
        ana.memories.update(other.id, value="42")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("mood", "city", "Lisbon"), "is no type"),
        (("fact", "  ", "Lisbon"), "key is empty"),
        (("fact", "41", "x"), "key holds no letter"),
        (("fact", "city", "   "), "value is empty"),
        (("fact", "city", "x" * 281), "at most 280"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_the_reason(mc, given, message: str) -> None:
    ana = mc.user("ana")
    with pytest.raises(InputError, match=message):
        ana.memories.add(*given)
    assert ana.memories.list(status="all") == []


def test_keys_are_normalised(mc) -> None:
    assert (
        mc.user("ana").memories.add("preference", "Favourite  Drink!", "tea").key
        == "favourite_drink"
    )


def test_going_back_works_for_any_key_on_the_model_s_verdict(mc, extract_model, clock) -> None:
    said(mc, extract_model, "I ride a tandem.", fact("I ride a tandem", "ride", "tandem"))
    for value in ("unicycle", "tandem"):
        clock.advance(days=1)
        line = f"I ride a {value} now."
        said(mc, extract_model, line, updates(line[:-1], "ride", value, "k1"))
        assert [m.value for m in mc.user("ana").memories.list()] == [value]


def test_a_fact_said_again_after_its_day_holds_again(mc, extract_model, clock) -> None:
    until = {"until_said": "until tomorrow", "until": "tomorrow"}
    line = "I am in Rome until tomorrow."
    said(mc, extract_model, line, fact(line[:-1], "trip", "in Rome", memory_type="fact", **until))
    clock.advance(days=9)
    said(
        mc,
        extract_model,
        "I am in Rome.",
        fact("I am in Rome", "trip", "in Rome", memory_type="fact"),
    )
    (memory,) = mc.user("ana").memories.list()
    assert (memory.value, memory.expires_at) == ("in Rome", None)


def test_what_was_ended_is_not_revived_by_older_words_read_late(mc, extract_model, clock) -> None:
    old = mc.user("ana").chat()
    old.send("I am learning Dutch.").read()
    private.stop_renewing(old)
    lease = "UPDATE sessions SET lease_until = '%s-01-01T00:00:00.000000Z' WHERE ended_at IS NULL"
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql(lease % 2099)
    clock.advance(days=1)
    line = "I am learning Dutch."
    said(mc, extract_model, line, fact(line[:-1], "learning", "Dutch", memory_type="fact"))
    clock.advance(seconds=60)
    said(
        mc,
        extract_model,
        "I gave up Dutch.",
        fact("I gave up Dutch", "learning", "", memory_type="fact", to="k1", **{"is": "ends"}),
    )
    assert state(mc) == {"Dutch": (False, "ended")}
    clock.advance(days=1)
    extract_model.replies.append(
        answer(fact("I am learning Dutch", "learning", "Dutch", memory_type="fact"))
    )
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql(lease % 2000)
    assert [c.kind for c in mc.jobs.run().learned[0].changes] == ["repeated"]
    assert state(mc) == {"Dutch": (False, "ended")}


def test_an_edit_by_hand_is_newer_than_a_session_read_after_it(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", "Lisbon")
    chat = ana.chat()
    clock.advance(days=1)
    chat.send("I live in Porto.").read()
    clock.advance(days=1)
    ana.memories.update(memory.id, value="Faro")
    extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto")))
    chat.end()
    assert state(mc) == {"Faro": (True, None), "Porto": (False, "superseded")}


def test_an_edit_to_a_key_that_holds_one_retires_the_other_value(mc) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    other = ana.memories.add("fact", "trip", "Porto")
    ana.memories.update(other.id, key="city", type="profile")
    assert state(mc) == {"Porto": (True, None), "Lisbon": (False, "superseded")}


def test_a_merged_memory_said_again_confirms_the_one_that_took_its_place(
    open_store, extract_model
) -> None:
    mc = open_store(merge_threshold=0.5)
    for value in ("green tea in the morning", "green tea in the mornings"):
        line = f"I like {value}."
        said(
            mc,
            extract_model,
            line,
            fact(line[:-1], "drink", value, memory_type="preference", many=True),
        )
    said(
        mc,
        extract_model,
        "I like green tea in the morning.",
        fact(
            "I like green tea in the morning",
            "drink",
            "green tea in the morning",
            memory_type="preference",
            many=True,
        ),
    )
    (memory,) = mc.user("ana").memories.list()
    assert (memory.value, memory.seen_count) == ("green tea in the mornings", 2)


def test_a_value_for_a_while_gives_its_place_back(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    said(mc, extract_model, "I live in Lisbon.", fact("I live in Lisbon", "city", "Lisbon"))
    clock.advance(days=1)
    line = "I live in Porto until the end of the month."
    said(
        mc,
        extract_model,
        line,
        fact(
            line[:-1], "city", "Porto", until_said="until the end of the month", until="end:month"
        ),
    )
    assert [m.value for m in ana.memories.list()] == ["Porto"]
    clock.advance(days=40)
    ana.chat()
    assert state(mc) == {"Lisbon": (True, None), "Porto": (False, "expired")}


def test_extraction_changes_nothing_that_is_kept_for_every_app(mc, extract_model, clock) -> None:
    mc.user("ana").memories.add("fact", "plan", "buy a kayak", all_apps=True)
    said(
        mc,
        extract_model,
        "The kayak is bought.",
        fact("The kayak is bought", "plan", "", memory_type="fact", to="k1", **{"is": "ends"}),
        app="work",
    )
    assert state(mc, app="home") == {"buy a kayak": (True, None)}
    (item,) = mc.user("ana", app="work").inbox.list()
    assert (item.relation, item.target_id) == ("ends", 1)
    assert item.reason == "You said “The kayak is bought”. Is plan: buy a kayak over?"


def test_a_rival_that_is_also_the_target_is_retired_once(mc, extract_model, clock) -> None:
    said(mc, extract_model, "I live in Lisbon.", fact("I live in Lisbon", "city", "Lisbon"))
    clock.advance(days=1)
    chat = said(
        mc, extract_model, "I live in Porto.", updates("I live in Porto", "city", "Porto", "k1")
    )
    assert [c.before for c in chat.learned.changes] == ["Lisbon"]
    assert [e.kind for e in mc.user("ana").memories.history(1)] == ["add", "supersede"]


def test_an_update_takes_the_place_of_one_value_of_a_list_and_its_key(mc, clock) -> None:
    ana = mc.user("ana")
    tea = known(tell(mc, "tea with milk", key="drinks", many=True))
    tell(mc, "cold water", key="drinks", many=True)
    clock.advance(days=1)
    done = tell(mc, "black tea", key="morning_tea", relation="updates", target_id=tea.id)
    assert (done.kind, done.before) == ("superseded", "tea with milk")
    assert {(m.key, m.value) for m in ana.memories.list()} == {
        ("drinks", "black tea"),
        ("drinks", "cold water"),
    }
    assert [hit.id for hit in mc.user("ana").search("black tea").hits][:1] == [known(done).id]
