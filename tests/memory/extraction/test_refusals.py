"""Nothing is refused in silence: what was proposed and not kept, why, and keeping it anyway."""

from __future__ import annotations

import pytest

from memchat.errors import InputError, NotFound
from memchat.memory.extraction import verdict_outcomes
from memchat.memory.extraction.candidate import Candidate
from memchat.memory.gate.checks.consent import NOT_KEPT
from memchat.memory.gate.types import KnownFact, Proof, Verdict
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.forgetting import read_again
from tests.support.leftovers import files_with, rows_with

HULL = fact("I live in Hull", "city", "Hull")
LEEDS = fact("I live in Leeds", "city", "Leeds", msg="u3")
NOBODY = fact("I keep an owl", "pet", "an owl")


def slip(mc, extract_model, *more, **where):
    """Hull is said, then Leeds: the one that gave way is not kept."""
    extract_model.replies.append(answer(HULL, LEEDS, *more))
    talk(mc, "I live in Hull, in the old town.", "Sorry, I live in Leeds.", **where)
    return mc.refusals(user=where.get("user", "ana"), app=where.get("app", "default"))


def test_what_was_not_kept_is_listed_with_its_reason_message_and_proposal(
    mc, extract_model
) -> None:
    (refused,) = slip(mc, extract_model)
    assert refused.reason == "something else was said later in the conversation"
    assert (refused.memory_type, refused.key, refused.value) == ("profile", "city", "Hull")
    (first, *_) = mc.messages(refused.session_id, user="ana")
    assert refused.message_id == first.id
    assert first.content[refused.start : refused.end] == "I live in Hull"
    assert mc.refusals(user="ana", session_id=refused.session_id) == [refused]


def test_what_nobody_said_is_listed_without_a_place(mc, extract_model) -> None:
    extract_model.replies.append(answer(NOBODY))
    talk(mc, "Hello.")
    (refused,) = mc.refusals(user="ana")
    assert (refused.key, refused.message_id, refused.start) == ("pet", None, None)


def test_keeping_it_anyway_replaces_with_the_message_as_proof_and_removes_the_row(
    mc, extract_model
) -> None:
    (refused,) = slip(mc, extract_model)
    kept = mc.keep_refused(refused.id, user="ana")
    assert (kept.value, kept.created_by) == ("Hull", "manual")
    assert [m.value for m in mc.memories(user="ana")] == ["Hull"], "Leeds gave way to it"
    assert mc.evidence(kept.id, user="ana")[0].quote == "I live in Hull"
    assert mc.history(kept.id, user="ana")[0].actor == "user"
    assert mc.refusals(user="ana") == []
    mc.embed_pending()
    assert mc.recall("Hull", user="ana").hits
    with pytest.raises(NotFound):
        mc.keep_refused(refused.id, user="ana")
    mc.delete(kept.id, user="ana")
    assert rows_with(mc, "Hull") == [], "a normal delete undoes it"


@pytest.mark.parametrize(
    ("relation", "active", "inactive"), [("updates", ["Hull"], "superseded"), ("ends", [], "ended")]
)
def test_keeping_a_change_anyway_does_what_was_proposed(
    mc, extract_model, relation: str, active: list[str], inactive: str
) -> None:
    (refused,) = slip(mc, extract_model, user="ana", app="default")
    mc.delete(mc.memories(user="ana")[0].id, user="ana")
    city = mc.add("profile", "city", "Zanzibar", user="ana")
    with private.database(mc).write() as tx:
        tx.exec_driver_sql("UPDATE refusals SET relation = ?, target_id = ?", (relation, city.id))
    mc.keep_refused(refused.id, user="ana")
    assert [m.value for m in mc.memories(user="ana")] == active
    assert mc.memory(city.id, user="ana").inactive_reason == inactive


@pytest.mark.parametrize(
    ("line", "proposal", "reason", "word"),
    [
        (
            "My password is hunter22x",
            fact("My password is hunter22x", "password", "hunter22x"),
            "it holds password, which is never remembered",
            "hunter22x",
        ),
        (
            "I keep ferrets, but do not remember that.",
            fact("I keep ferrets", "pet", "ferrets"),
            NOT_KEPT,
            "ferrets",
        ),
    ],
)
def test_a_secret_and_what_is_not_to_be_kept_leave_the_reason_alone(
    mc, extract_model, line: str, proposal: dict, reason: str, word: str
) -> None:
    extract_model.replies.append(answer(proposal))
    talk(mc, line)
    (refused,) = mc.refusals(user="ana")
    assert refused.reason == reason and refused.proposes == ""
    left = (refused.message_id, refused.start, refused.end, refused.key, refused.value)
    assert left == (None,) * 5
    assert word not in rows_of_refusals(mc)
    with pytest.raises(InputError, match="its words were not noted"):
        mc.keep_refused(refused.id, user="ana")


def test_what_was_forgotten_leaves_the_reason_alone_when_it_is_proposed_again(
    mc, extract_model
) -> None:
    slip(mc, extract_model)
    said = {m.id: m.content for m in mc.messages(1, user="ana")}
    leeds = next(m for m in mc.memories(user="ana") if m.value == "Leeds")
    mc.delete(leeds.id, user="ana")
    read_again(mc, extract_model, HULL, LEEDS, NOBODY, undo_blanks=said)
    reasons = {r.proposes: r.reason for r in mc.refusals(user="ana")}
    assert reasons[""] == "it was forgotten on request"
    assert "pet: an owl" in reasons and not any("Leeds" in words for words in reasons)


def test_the_same_proposal_is_one_row_also_when_the_conversation_is_read_again(
    mc, extract_model
) -> None:
    before = slip(mc, extract_model, NOBODY, NOBODY)
    assert sorted(r.proposes for r in before) == ["city: Hull", "pet: an owl"]
    read_again(mc, extract_model, HULL, LEEDS, NOBODY)
    assert sorted(r.proposes for r in mc.refusals(user="ana")) == ["city: Hull", "pet: an owl"]
    read_again(mc, extract_model, LEEDS)
    assert mc.refusals(user="ana") == [], "the new reading's word counts"


def test_reading_on_leaves_what_the_first_reading_did_not_keep(mc, extract_model) -> None:
    (refused,) = slip(mc, extract_model)
    extract_model.replies.append(answer(fact("I keep an owl", "pet", "an owl", msg="u5")))
    with mc.session(user="ana", resume=refused.session_id) as chat:
        assert chat.send("What is new?").text
    assert [r.proposes for r in mc.refusals(user="ana")] == ["city: Hull", "pet: an owl"]


def test_what_only_repeats_is_told_from_what_was_lost() -> None:
    city = {"city": KnownFact("k1", 7, "profile", "city", "Lisbon", False)}
    item = Candidate.model_validate(fact("I live in Lisbon", "city", "lisbon"))
    read = Verdict("refuse", ("its words were read by an earlier extraction",), (), item)
    assert verdict_outcomes.refusal_entry(read, city).reason == verdict_outcomes.REPEATED
    assert (
        verdict_outcomes.refusal_entry(read, {}).reason
        == "its words were read by an earlier extraction"
    )


def test_a_refusal_with_a_secret_in_its_quote_leaves_no_word() -> None:
    item = Candidate.model_validate(fact("mail ana@example.org", "contact", "by mail"))
    proof = Proof(1, "u1", "user", 0, 20, "mail ana@example.org")
    verdict = Verdict("refuse", ("somebody else's words",), (proof,), item)
    refused = verdict_outcomes.refusal_entry(verdict, {})
    assert refused.key is None and "example" not in repr(refused)


def test_a_part_of_a_secret_leaves_no_word_although_it_is_none_by_itself(mc, extract_model) -> None:
    extract_model.replies.append(answer(fact("code is 77", "code", "Tannenbaum", msg="u1")))
    talk(mc, "My password is Tannenbaum!9")
    (refused,) = mc.refusals(user="ana")
    assert refused.key is None and rows_of_refusals(mc).count("annenbaum") == 0


def rows_of_refusals(mc) -> str:
    with private.database(mc).read() as tx:
        return repr(tx.exec_driver_sql("SELECT * FROM refusals").all())


def test_a_no_that_was_given_before_is_told_as_the_reason(mc, extract_model) -> None:
    asthma = fact("I have asthma", "health_condition", "asthma", flags=["sensitive"])
    for _ in range(2):
        extract_model.replies.append(answer(asthma))
        talk(mc, "I have asthma.")
        for item in mc.inbox(user="ana"):
            mc.reject(item.id, user="ana")
    (refused,) = mc.refusals(user="ana")
    assert (refused.reason, refused.value) == ("you said no to it before", "asthma")


# Whose, and gone with what


def test_another_s_refusals_are_neither_listed_nor_kept(mc, extract_model) -> None:
    (refused,) = slip(mc, extract_model)
    for where in ({"user": "bo"}, {"user": "ana", "app": "work"}):
        assert mc.refusals(**where) == []
        with pytest.raises(NotFound):
            mc.refusals(**where, session_id=refused.session_id)
        with pytest.raises(NotFound):
            mc.keep_refused(refused.id, **where)
    assert mc.refusals(user="ana") == [refused]


@pytest.mark.parametrize("how", ["session", "message", "app", "user"])
def test_deleting_takes_the_refused_words_along(mc, extract_model, how: str) -> None:
    (refused,) = slip(mc, extract_model)
    if how == "session":
        mc.delete_session(refused.session_id, user="ana")
    elif how == "message":
        mc.delete_message(refused.message_id, user="ana")
    elif how == "app":
        mc.delete_app(user="ana", app="default")
    else:
        mc.wipe(user="ana")
    assert mc.refusals(user="ana") == []
    if how != "message":  # the title is made of the first words
        assert files_with(mc, "Hull") == []


def test_deleting_a_message_takes_proposals_along_whose_place_is_not_known(
    mc, extract_model
) -> None:
    extract_model.replies.append(answer(fact("I keep two owls", "pet", "Zanzibar owls")))
    talk(mc, "My Zanzibar owl is ill.")
    (refused,) = mc.refusals(user="ana")
    mc.delete_message(mc.messages(refused.session_id, user="ana")[0].id, user="ana")
    assert mc.refusals(user="ana") == [] and rows_with(mc, "Zanzibar") == []


def test_forgetting_a_fact_takes_refusals_with_its_words_and_leaves_the_others(
    mc, extract_model
) -> None:
    owl = fact("I saw it", "trip", "owls in Zanzibar")
    extract_model.replies.append(answer(owl, NOBODY))
    talk(mc, "Hello.")
    city = mc.add("profile", "city", "Zanzibar", user="ana")
    assert len(mc.refusals(user="ana")) == 2
    mc.delete(city.id, user="ana")
    assert [r.proposes for r in mc.refusals(user="ana")] == ["pet: an owl"]
    assert rows_with(mc, "Zanzibar") == [] == files_with(mc, "Zanzibar")


def test_forgetting_what_a_message_taught_takes_its_refusals_along(mc, extract_model) -> None:
    extract_model.replies.append(answer(HULL, {**LEEDS, "quotes": [_quote("I live in Leeds")]}))
    talk(mc, "I live in Hull. Sorry, I live in Leeds.")
    (leeds,) = mc.memories(user="ana")
    assert [r.proposes for r in mc.refusals(user="ana")] == ["city: Hull"]
    mc.delete(leeds.id, user="ana")
    assert mc.refusals(user="ana") == [], "it was drawn from the same message"


def _quote(text: str) -> dict[str, str]:
    return {"msg": "u1", "text": text}
