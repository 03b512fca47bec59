"""Nothing is refused in silence: what was proposed and not kept, why, and keeping it anyway."""

from __future__ import annotations

import pytest

from memchat.errors import InputError, NotFound
from memchat.learn import gate, outcomes
from memchat.learn.candidate import Candidate, KnownFact, Proof, Verdict
from memchat.learn.gate import NOT_KEPT
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
    return mc.user(where.get("user", "ana"), app=where.get("app", "default")).inbox.refusals()


def test_what_was_not_kept_is_listed_with_its_reason_message_and_proposal(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    (refused,) = slip(mc, extract_model)
    assert refused.reason == "something else was said later in the conversation"
    assert (refused.memory_type, refused.key, refused.value) == ("profile", "city", "Hull")
    (first, *_) = ana.sessions.messages(refused.session_id)
    assert refused.message_id == first.id
    assert first.content[refused.start : refused.end] == "I live in Hull"
    assert ana.inbox.refusals(session_id=refused.session_id) == [refused]


def test_what_nobody_said_is_listed_without_a_place(mc, extract_model) -> None:
    extract_model.replies.append(answer(NOBODY))
    talk(mc, "Hello.")
    (refused,) = mc.user("ana").inbox.refusals()
    assert (refused.key, refused.message_id, refused.start) == ("pet", None, None)


def test_keeping_it_anyway_replaces_with_the_message_as_proof_and_removes_the_row(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    (refused,) = slip(mc, extract_model)
    kept = ana.inbox.keep_refused(refused.id)
    assert (kept.value, kept.created_by) == ("Hull", "manual")
    assert [m.value for m in ana.memories.list()] == ["Hull"], "Leeds gave way to it"
    assert ana.memories.evidence(kept.id)[0].quote == "I live in Hull"
    assert ana.memories.history(kept.id)[0].actor == "user"
    assert ana.inbox.refusals() == []
    mc.jobs.embed()
    assert ana.search("Hull").hits
    with pytest.raises(NotFound):
        ana.inbox.keep_refused(refused.id)
    ana.memories.delete(kept.id)
    assert rows_with(mc, "Hull") == [], "a normal delete undoes it"


@pytest.mark.parametrize(
    ("relation", "active", "inactive"), [("updates", ["Hull"], "superseded"), ("ends", [], "ended")]
)
def test_keeping_a_change_anyway_does_what_was_proposed(
    mc, extract_model, relation: str, active: list[str], inactive: str
) -> None:
    ana = mc.user("ana")
    (refused,) = slip(mc, extract_model, user="ana", app="default")
    mc.user("ana").memories.delete(mc.user("ana").memories.list()[0].id)
    city = mc.user("ana").memories.add("profile", "city", "Zanzibar")
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql(
            "UPDATE proposals SET relation = ?, target_id = ?", (relation, city.id)
        )
    ana.inbox.keep_refused(refused.id)
    assert [m.value for m in ana.memories.list()] == active
    assert ana.memories.get(city.id).inactive_reason == inactive


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
    ana = mc.user("ana")
    extract_model.replies.append(answer(proposal))
    talk(mc, line)
    (refused,) = ana.inbox.refusals()
    assert refused.reason == reason and refused.proposes == ""
    left = (refused.message_id, refused.start, refused.end, refused.key, refused.value)
    assert left == (None,) * 5
    assert word not in rows_of_refusals(mc)
    with pytest.raises(InputError, match="its words were not noted"):
        ana.inbox.keep_refused(refused.id)


def test_what_was_forgotten_leaves_the_reason_alone_when_it_is_proposed_again(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    slip(mc, extract_model)
    said = {m.id: m.content for m in ana.sessions.messages(1)}
    leeds = next(m for m in ana.memories.list() if m.value == "Leeds")
    ana.memories.delete(leeds.id)
    read_again(mc, extract_model, HULL, LEEDS, NOBODY, undo_blanks=said)
    reasons = {r.proposes: r.reason for r in ana.inbox.refusals()}
    assert reasons[""] == "it was forgotten on request"
    assert "pet: an owl" in reasons and not any("Leeds" in words for words in reasons)


def test_the_same_proposal_is_one_row_also_when_the_conversation_is_read_again(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    before = slip(mc, extract_model, NOBODY, NOBODY)
    assert sorted(r.proposes for r in before) == ["city: Hull", "pet: an owl"]
    read_again(mc, extract_model, HULL, LEEDS, NOBODY)
    assert sorted(r.proposes for r in ana.inbox.refusals()) == ["city: Hull", "pet: an owl"]
    read_again(mc, extract_model, LEEDS)
    assert ana.inbox.refusals() == [], "the new reading's word counts"


def test_reading_on_leaves_what_the_first_reading_did_not_keep(mc, extract_model) -> None:
    ana = mc.user("ana")
    (refused,) = slip(mc, extract_model)
    extract_model.replies.append(answer(fact("I keep an owl", "pet", "an owl", msg="u5")))
    with ana.chat(resume=refused.session_id) as chat:
        assert chat.send("What is new?").read()
    assert [r.proposes for r in ana.inbox.refusals()] == ["city: Hull", "pet: an owl"]


def test_what_only_repeats_is_told_from_what_was_lost() -> None:
    city = {"city": KnownFact("k1", 7, "profile", "city", "Lisbon", False)}
    item = Candidate.model_validate(fact("I live in Lisbon", "city", "lisbon"))
    read = Verdict("refuse", ("its words were read by an earlier extraction",), (), item)
    assert outcomes.refusal_entry(read, city).reason == gate.KNOWN_ALREADY
    assert outcomes.refusal_entry(read, {}).reason == "its words were read by an earlier extraction"


def test_a_refusal_with_a_secret_in_its_quote_leaves_no_word() -> None:
    item = Candidate.model_validate(fact("mail ana@example.org", "contact", "by mail"))
    proof = Proof(1, "u1", "user", 0, 20, "mail ana@example.org")
    verdict = Verdict("refuse", ("somebody else's words",), (proof,), item)
    refused = outcomes.refusal_entry(verdict, {})
    assert refused.key is None and "example" not in repr(refused)


def test_a_part_of_a_secret_leaves_no_word_although_it_is_none_by_itself(mc, extract_model) -> None:
    extract_model.replies.append(answer(fact("code is 77", "code", "Tannenbaum", msg="u1")))
    talk(mc, "My password is Tannenbaum!9")
    (refused,) = mc.user("ana").inbox.refusals()
    assert refused.key is None and rows_of_refusals(mc).count("annenbaum") == 0


def rows_of_refusals(mc) -> str:
    with private.database(mc).read() as tx:
        return repr(tx.connection.exec_driver_sql("SELECT * FROM proposals").all())


def test_a_no_that_was_given_before_is_told_as_the_reason(mc, extract_model) -> None:
    ana = mc.user("ana")
    asthma = fact("I have asthma", "health_condition", "asthma", flags=["sensitive"])
    for _ in range(2):
        extract_model.replies.append(answer(asthma))
        talk(mc, "I have asthma.")
        for item in ana.inbox.list():
            ana.inbox.reject(item.id)
    (refused,) = ana.inbox.refusals()
    assert (refused.reason, refused.value) == ("you said no to it before", "asthma")


# Whose, and gone with what


def test_another_s_refusals_are_neither_listed_nor_kept(mc, extract_model) -> None:
    (refused,) = slip(mc, extract_model)
    for where in ({"user": "bo"}, {"user": "ana", "app": "work"}):
        assert mc.user(**where).inbox.refusals() == []
        with pytest.raises(NotFound):
            mc.user(**where).inbox.refusals(session_id=refused.session_id)
        with pytest.raises(NotFound):
            mc.user(**where).inbox.keep_refused(refused.id)
    assert mc.user("ana").inbox.refusals() == [refused]


@pytest.mark.parametrize("how", ["session", "message", "app", "user"])
def test_deleting_takes_the_refused_words_along(mc, extract_model, how: str) -> None:
    ana = mc.user("ana")
    (refused,) = slip(mc, extract_model)
    if how == "session":
        ana.sessions.delete(refused.session_id)
    elif how == "message":
        ana.sessions.delete_message(refused.message_id)
    elif how == "app":
        ana.apps.delete("default")
    else:
        ana.delete_all()
    assert ana.inbox.refusals() == []
    if how != "message":  # the title is made of the first words
        assert files_with(mc, "Hull") == []


def test_deleting_a_message_takes_proposals_along_whose_place_is_not_known(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I keep two owls", "pet", "Zanzibar owls")))
    talk(mc, "My Zanzibar owl is ill.")
    (refused,) = ana.inbox.refusals()
    ana.sessions.delete_message(ana.sessions.messages(refused.session_id)[0].id)
    assert ana.inbox.refusals() == [] and rows_with(mc, "Zanzibar") == []


def test_forgetting_a_fact_takes_refusals_with_its_words_and_leaves_the_others(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    owl = fact("I saw it", "trip", "owls in Zanzibar")
    extract_model.replies.append(answer(owl, NOBODY))
    talk(mc, "Hello.")
    city = ana.memories.add("profile", "city", "Zanzibar")
    assert len(ana.inbox.refusals()) == 2
    ana.memories.delete(city.id)
    assert [r.proposes for r in ana.inbox.refusals()] == ["pet: an owl"]
    assert rows_with(mc, "Zanzibar") == [] == files_with(mc, "Zanzibar")


def test_forgetting_what_a_message_taught_takes_its_refusals_along(mc, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(HULL, {**LEEDS, "quotes": [_quote("I live in Leeds")]}))
    talk(mc, "I live in Hull. Sorry, I live in Leeds.")
    (leeds,) = ana.memories.list()
    assert [r.proposes for r in ana.inbox.refusals()] == ["city: Hull"]
    ana.memories.delete(leeds.id)
    assert ana.inbox.refusals() == [], "it was drawn from the same message"


def _quote(text: str) -> dict[str, str]:
    return {"msg": "u1", "text": text}
