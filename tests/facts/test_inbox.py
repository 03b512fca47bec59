"""What was held back, and a person's yes or no to it."""

from __future__ import annotations

from datetime import date

import pytest

from memchat.errors import InputError, NotFound
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk


def held(mc, extract_model, line: str, *facts):
    extract_model.replies.append(answer(*facts))
    talk(mc, line)
    return mc.user("ana").inbox.list()


def asthma(mc, extract_model):
    return held(
        mc,
        extract_model,
        "I have asthma until tomorrow.",
        fact(
            "I have asthma until tomorrow",
            "health_condition",
            "asthma",
            flags=["sensitive"],
            until_said="until tomorrow",
            until="tomorrow",
        ),
    )


def test_a_yes_makes_a_memory_that_keeps_its_words_and_its_day(mc, extract_model) -> None:
    ana = mc.user("ana")
    (item,) = asthma(mc, extract_model)
    assert (item.key, item.value, item.status) == ("health_condition", "asthma", "pending")
    memory = ana.inbox.accept(item.id)
    assert (memory.value, memory.created_by) == ("asthma", "manual")
    assert memory.expires_at == date(2026, 5, 2)
    assert ana.memories.evidence(memory.id)[0].quote == "I have asthma until tomorrow"
    assert ana.inbox.list() == []
    assert ana.memories.history(memory.id)[0].actor == "user"
    mc.jobs.embed()
    assert ana.search("asthma").hits


def test_a_yes_with_other_words_keeps_those(mc, extract_model) -> None:
    (item,) = asthma(mc, extract_model)
    assert mc.user("ana").inbox.accept(item.id, value="mild asthma").value == "mild asthma"


def test_a_no_is_final_and_the_same_is_not_asked_again(mc, extract_model) -> None:
    ana = mc.user("ana")
    (item,) = asthma(mc, extract_model)
    ana.inbox.reject(item.id)
    assert ana.inbox.list() == [] and ana.memories.list() == []
    assert asthma(mc, extract_model) == []
    with pytest.raises(NotFound, match="nothing waits"):
        ana.inbox.accept(item.id)


def test_a_hidden_value_must_be_said_again(mc, extract_model) -> None:
    ana = mc.user("ana")
    (item,) = held(
        mc,
        extract_model,
        "Please remember my e-mail ana@example.org.",
        fact("remember my e-mail ana@example.org", "email", "ana@example.org", flags=["asked"]),
    )
    assert item.masked and "example.org" not in f"{item.value}{item.quote}{item.reason}"
    with pytest.raises(InputError, match="say the value again"):
        ana.inbox.accept(item.id)
    assert ana.inbox.accept(item.id, value="ana@example.org").value == "ana@example.org"


def test_a_yes_to_a_pair_lets_the_newer_replace_the_other(mc, extract_model) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon", all_apps=True)
    extract_model.replies.append(
        answer(fact("I live in Porto", "city", "Porto", to="k1", **{"is": "updates"}))
    )
    talk(mc, "I live in Porto.")
    (item,) = ana.inbox.list()
    assert ana.inbox.accept(item.id).value == "Porto"
    assert [m.value for m in ana.memories.list()] == ["Porto"]
    (old,) = ana.memories.list(status="inactive")
    assert (old.value, old.inactive_reason) == ("Lisbon", "superseded")


def test_another_s_item_is_not_there(mc, extract_model) -> None:
    (item,) = asthma(mc, extract_model)
    for where in ({"user": "bo"}, {"user": "ana", "app": "other"}):
        assert mc.user(**where).inbox.list() == []
        with pytest.raises(NotFound):
            mc.user(**where).inbox.accept(item.id)
        with pytest.raises(NotFound):
            mc.user(**where).inbox.reject(item.id)


def test_a_forgotten_message_takes_its_held_back_words_along(mc, extract_model) -> None:
    ana = mc.user("ana")
    asthma(mc, extract_model)
    ana.sessions.delete(ana.sessions.list()[0].id)
    assert ana.inbox.list() == []


def waiting(mc, extract_model, **more):
    unsure = fact("I may keep bees", "hobby", "keep bees", flags=["sensitive"], **more)
    extract_model.replies.append(answer(unsure))
    talk(mc, "I may keep bees")
    (item,) = mc.user("ana").inbox.list()
    return item


@pytest.mark.parametrize("value", ["", "   ", "x" * 300])
def test_a_yes_with_words_that_cannot_be_kept_is_refused(mc, extract_model, value) -> None:
    ana = mc.user("ana")
    item = waiting(mc, extract_model)
    with pytest.raises(InputError):
        ana.inbox.accept(item.id, value=value)
    assert len(ana.inbox.list()) == 1 and ana.memories.list() == []


def test_words_given_with_a_yes_are_one_line(mc, extract_model) -> None:
    item = waiting(mc, extract_model)
    assert mc.user("ana").inbox.accept(item.id, value="keep\n bees").value == "keep bees"


# What a yes to a change does


def asked(mc, **proposal):
    """An item as a reading leaves it, proved by the first message of a conversation."""
    ana = mc.user("ana")
    from memchat.db import apps
    from memchat.facts import proposals
    from memchat.types import Proposal, Scope

    with ana.chat() as chat:
        assert chat.send("I live in Porto by now.").read()
        chat.abandon()
    message = ana.sessions.messages(chat.session_id)[0]
    given = {"memory_type": "profile", "key": "city", "value": "Porto", "many": False}
    given |= {"quote": "I live in Porto", "start": 0, "end": 15, "message_id": message.id}
    with private.database(mc).write() as tx:
        own = apps.ensure(tx, Scope("ana")).own
        proposals.add(tx, own, Proposal("it is not sure", **given | proposal))
    return mc.user("ana").inbox.list()[-1]


def in_force(mc, key: str = "city") -> list[str]:
    return [m.value for m in mc.user("ana").memories.list() if m.key == key]


def test_a_yes_to_a_change_replaces_its_target_and_keeps_the_message_as_proof(mc) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("fact", "desk", "oak")
    item = asked(mc, key="table", value="pine", relation="updates", target_id=old.id, many=True)
    question = ana.inbox.question(item)
    assert question == "You said “I live in Porto”. Replace desk: oak?"
    new = ana.inbox.accept(item.id)
    assert (new.memory_type, new.key, new.many) == ("fact", "desk", old.many), "as its target"
    assert in_force(mc, "desk") == ["pine"] and in_force(mc, "table") == []
    assert ana.memories.get(old.id).inactive_reason == "superseded"
    assert ana.memories.evidence(new.id)[0].quote == "I live in Porto"


def test_a_yes_replaces_a_value_of_a_list_and_leaves_the_others(mc) -> None:
    ana = mc.user("ana")
    ana.memories.add("preference", "hobby", "rowing")
    old = ana.memories.add("preference", "hobby", "chess")
    item = asked(mc, key="hobby", value="go", relation="updates", target_id=old.id)
    ana.inbox.accept(item.id)
    assert sorted(in_force(mc, "hobby")) == ["go", "rowing"]


def test_a_yes_to_words_that_are_known_already_still_retires_the_target(mc) -> None:
    ana = mc.user("ana")
    ana.memories.add("preference", "hobby", "go")
    old = ana.memories.add("preference", "hobby", "chess")
    item = asked(mc, key="hobby", value="go", relation="updates", target_id=old.id)
    ana.inbox.accept(item.id)
    assert in_force(mc, "hobby") == ["go"]


def test_a_yes_replaces_what_is_kept_for_every_app_in_every_app(mc) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Lisbon", all_apps=True)
    item = asked(mc, relation="updates", target_id=old.id)
    assert ana.inbox.accept(item.id).app == ""
    assert [m.value for m in mc.user("ana", app="work").memories.list()] == ["Porto"]


def test_a_yes_wins_over_what_was_said_since_the_message(mc, clock) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Lisbon")
    item = asked(mc, relation="updates", target_id=old.id)
    clock.advance(days=1)
    ana.memories.add("profile", "city", "Lisbon")  # said once more, before the yes
    ana.inbox.accept(item.id)
    assert in_force(mc) == ["Porto"]


def test_a_yes_to_an_end_ends_the_target(mc) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Lisbon")
    item = asked(mc, relation="ends", value="", target_id=old.id)
    assert ana.inbox.question(item).endswith("Is “You live in Lisbon” over?")
    ended = ana.inbox.accept(item.id)
    assert (ended.id, ended.inactive_reason) == (old.id, "ended") and in_force(mc) == []


def test_a_yes_to_an_end_that_is_to_come_gives_the_target_its_last_day(mc) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Lisbon")
    item = asked(mc, relation="ends", target_id=old.id, starts_at=date(2026, 6, 1))
    assert ana.inbox.question(item).endswith("Is “You live in Lisbon” over from 2026-06-01?")
    ended = ana.inbox.accept(item.id)
    assert ended.active and ended.expires_at == date(2026, 5, 31)


def test_a_yes_to_the_same_repeats_it_and_writes_no_second_row(mc) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Porto, by the river")
    item = asked(mc, relation="same", target_id=old.id)
    again = ana.inbox.accept(item.id)
    assert (again.id, again.seen_count) == (old.id, 2)
    assert in_force(mc) == ["Porto, by the river"]


@pytest.mark.parametrize("how", ["deleted", "edited", "ended"])
def test_a_change_whose_target_is_not_the_same_any_more_is_stored_as_new(mc, clock, how) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("fact", "bike", "red")
    item = asked(mc, key="bike", value="blue", relation="updates", target_id=old.id)
    clock.advance(seconds=60)
    if how == "deleted":
        ana.memories.delete(old.id)
    elif how == "edited":
        ana.memories.update(old.id, value="green")
    else:
        ana.inbox.accept(asked(mc, key="bike", relation="ends", target_id=old.id).id)
    assert "is gone or has changed. Remember bike: blue?" in ana.inbox.question(item)
    ana.inbox.accept(item.id)
    assert "blue" in in_force(mc, "bike") and "red" not in in_force(mc, "bike")


def test_an_end_without_anything_left_to_end_says_so_and_goes_on_waiting(mc) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Lisbon")
    item = asked(mc, relation="ends", target_id=old.id)
    ana.memories.delete(old.id)
    with pytest.raises(NotFound, match="would end is gone"):
        ana.inbox.accept(item.id)
    assert [i.id for i in ana.inbox.list()] == [item.id]


def test_a_change_of_what_the_same_conversation_taught_finds_it_by_its_key(mc) -> None:
    ana = mc.user("ana")
    item = asked(mc, key="editor", value="emacs", relation="updates")
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE proposals SET many = 0")
    old = mc.user("ana").memories.add("preference", "editor", "vim")
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE memories SET many = 0 WHERE id = ?", (old.id,))
    ana.inbox.accept(item.id)
    assert in_force(mc, "editor") == ["emacs"]


def test_an_item_from_before_the_migration_reads_as_new(mc) -> None:
    ana = mc.user("ana")
    item = asked(mc)
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql(
            "INSERT INTO proposals (app_id, reason, memory_type, key, value, created_at)"
            " SELECT app_id, 'old', 'fact', 'tea', 'oolong', created_at FROM proposals"
        )
    old = ana.inbox.list()[-1]
    assert (old.relation, old.target_id, old.starts_at, old.id > item.id) == ("new", None, None, 1)
    assert ana.inbox.question(old) == "Remember tea: oolong?"
    assert ana.inbox.accept(old.id).value == "oolong"


def test_a_reading_s_item_carries_target_sentence_and_start(mc, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I have asthma", "health_condition", "asthma")))
    talk(mc, "I have asthma.")
    (known,) = ana.memories.list()
    (item,) = held(
        mc,
        extract_model,
        "Hello! These days I have bad asthma, says my doctor. Bye.",
        fact(
            "I have bad asthma",
            "health_condition",
            "bad asthma",
            to="k1",
            flags=["sensitive"],
            cues=["lungs", "sport"],
            **{"is": "updates"},
        ),
    )
    assert (item.relation, item.target_id) == ("updates", known.id)
    assert item.around == "These days I have bad asthma, says my doctor."
    assert item.cues == ("lungs", "sport")
    assert ana.inbox.accept(item.id).cues == ("lungs", "sport")
    assert in_force(mc, "health_condition") == ["bad asthma"]


def test_what_is_asked_about_is_named_by_its_sentence(mc) -> None:
    ana = mc.user("ana")
    known = ana.memories.add("profile", "city", "Lisbon", sentence="You live in Lisbon.")
    item = asked(mc, value="Lisbon", relation="ends", target_id=known.id)
    assert ana.inbox.question(item) == "You said “I live in Porto”. Is “You live in Lisbon” over?"
    new = asked(mc, key="pet", value="a dog", sentence="You have a dog.")
    assert ana.inbox.question(new).endswith("Remember “You have a dog”?")


def test_a_sentence_with_a_secret_in_it_is_not_kept_with_an_item(mc, extract_model) -> None:
    (item,) = held(
        mc,
        extract_model,
        "I have asthma and my password is hunter22x",
        fact("I have asthma", "health_condition", "asthma", flags=["sensitive"]),
    )
    assert item.around is None


def test_a_rejected_end_does_not_keep_the_fact_itself_from_being_asked(mc) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Lisbon")
    ana.inbox.reject(asked(mc, relation="ends", value="Lisbon", target_id=old.id).id)
    item = asked(mc, value="Lisbon")
    assert (item.relation, item.status) == ("new", "pending")
