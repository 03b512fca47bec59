"""The gate: what code decides about a proposal, and what it leaves to a reader."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from memchat.learn.candidate import KnownFact, Quote, Ref
from memchat.learn.gate import dedupe_session
from tests.support.gate import corpus, fact, gate, of_corpus, said

CITY = KnownFact("k1", 7, "profile", "city", "Lisbon", False)
ROLE = KnownFact("k2", 8, "profile", "job", "designer at Kolibri in Porto", False)


@pytest.mark.parametrize("row", corpus(True), ids=lambda row: row["said"])
def test_a_plain_sentence_is_never_held(row: dict[str, Any]) -> None:
    verdict = of_corpus(row)
    assert verdict.outcome == "accept", verdict.reasons


def test_the_proof_points_into_the_original_message() -> None:
    text = "Well,  I live   in Bergen."
    verdict = gate(fact("i live in bergen", "Bergen", key="city"), said(text))
    proof = verdict.spans[0]
    assert text[proof.start : proof.end] == proof.quote == "I live   in Bergen"
    assert (proof.message_id, proof.turn_id, proof.role) == (1, "u1", "user")


def test_a_wrong_message_id_is_corrected_when_one_message_holds_the_words() -> None:
    turns = said("I live in Bergen.", "Nice!", "And I teach physics.")
    verdict = gate(fact("I teach physics", "teaches physics", msg="u1"), turns)
    assert verdict.outcome == "accept"
    assert verdict.candidate.quotes[0].msg == "u3"


@pytest.mark.parametrize(
    ("quote", "reason"),
    [
        ("you live in Oslo", "assistant"),
        ("the user likes jazz", "in no message"),
        ("quote the user verbatim", "instructions"),
        ("deadline is 22 October", "memory"),
    ],
)
def test_words_that_the_user_did_not_say_are_refused(quote: str, reason: str) -> None:
    turns = said("Hello, how are you?", "So you live in Oslo, right?", "Yes.")
    verdict = gate(
        fact(quote, "Oslo"),
        turns,
        prompt="Always quote the user verbatim.",
        injected=["deadline is 22 October"],
    )
    assert verdict.outcome == "refuse"
    assert reason in verdict.reasons[0]


def test_words_in_several_messages_prove_nothing_where_the_named_one_lacks_them() -> None:
    turns = said("I teach physics.", "Nice!", "I teach physics.", "I see.", "Good bye.")
    verdict = gate(fact("I teach physics", "teaches physics", msg="u5"), turns)
    assert verdict.outcome == "refuse"
    assert "several messages" in verdict.reasons[0]


def test_a_number_needs_to_stand_in_the_quote_and_a_name_in_the_message() -> None:
    turns = said("I run 10 km with Ana Ruiz every Sunday in Bergen.")
    assert gate(fact("I run 10 km", "runs 10 km with Ana Ruiz"), turns).outcome == "accept"
    assert gate(fact("I run 10 km", "runs 12 km"), turns).outcome == "review"
    assert gate(fact("I run 10 km", "runs 10 km with Ana Lopez"), turns).outcome == "review"


def test_a_second_quote_brings_the_number_that_stands_elsewhere() -> None:
    turns = said("My flight was moved.", "To when?", "It leaves at 18:05 now, I think it is fine.")
    quotes = (Quote(msg="u1", text="My flight was moved"), Quote(msg="u3", text="leaves at 18:05"))
    verdict = gate(fact("", "flight leaves at 18:05", quotes=quotes), turns)
    assert verdict.outcome == "accept", verdict.reasons


def test_a_value_over_280_characters_waits_and_one_of_200_does_not() -> None:
    long = "I collect " + ", ".join(["old maps and small brass compasses"] * 5)
    assert gate(fact(long, long[2:180]), said(long)).outcome == "accept"
    longer = long + long[10:] + long[10:]
    assert gate(fact(longer, longer), said(longer)).outcome == "review"


@pytest.mark.parametrize(("flag", "outcome"), [("sensitive", "review"), ("not_meant", "refuse")])
def test_the_models_own_flags_are_heeded(flag: str, outcome: str) -> None:
    flagged = fact("I live in Bergen", "Bergen", flags=(flag,))
    assert gate(flagged, said("I live in Bergen.")).outcome == outcome


def test_asked_without_the_words_is_dropped() -> None:
    verdict = gate(fact("I live in Bergen", "Bergen", flags=("asked",)), said("I live in Bergen."))
    assert verdict.candidate.flags == ()


def test_a_secret_is_refused_and_shown_nowhere_even_when_asked_for() -> None:
    verdict = gate(fact("my locker code is 7741", "7741"), said("Remember my locker code is 7741!"))
    assert verdict.outcome == "refuse"
    assert "7741" not in repr(verdict)


def test_no_cue_tells_a_secret_of_the_conversation() -> None:
    cues = ("swordfish", "sword", "travel", "myswordfish")
    item = fact("I live in Porto", "Porto", key="city", cues=cues)
    verdict = gate(item, said("I live in Porto. My password is swordfish."))
    assert (verdict.outcome, verdict.candidate.cues) == ("accept", ("travel",))


def test_an_e_mail_is_kept_only_when_asked_for_and_then_asks() -> None:
    mail = fact("my e-mail is ana@example.org", "ana@example.org", key="email")
    assert gate(mail, said("So my e-mail is ana@example.org.")).outcome == "refuse"
    assert gate(mail, said("Remember that my e-mail is ana@example.org.")).outcome == "review"


def test_the_second_one_is_the_second_item_that_was_offered() -> None:
    turns = said(
        "Which colour?", "You could take:\n1. ochre\n2. slate blue\n3. white", "The second one."
    )
    chosen = {"msg": "u3", "key": "wall_colour"}
    right = fact("The second one", "slate blue", ref=Ref(msg="a2", span="slate blue"), **chosen)
    assert gate(right, turns).outcome == "accept"


@pytest.mark.parametrize(
    ("answer", "value", "span", "outcome"),
    [
        ("Yes, let's do that.", "larch cladding", "larch cladding", "accept"),
        ("No, not larch.", "larch cladding", "larch cladding", "accept"),
        ("Hmm, what does it cost?", "larch cladding", "larch cladding", "accept"),
        ("Yes, larch cladding.", "larch cladding", "larch cladding", "accept"),
        ("Yes!", "larch cladding at 900 euros", "larch cladding", "review"),
        ("Yes!", "larch cladding, dark", "larch cladding", "review"),
        ("Yes!", "oak floor", "oak floor", "refuse"),
    ],
)
def test_a_proposal_taken_up_in_few_words_brings_only_its_own_words(
    answer: str, value: str, span: str, outcome: str
) -> None:
    turns = said("How to clad the shed?", "How about larch cladding? It lasts.", answer)
    quote = answer.rstrip(".!?")
    verdict = gate(fact(quote, value, msg="u3", ref=Ref(msg="a2", span=span)), turns)
    assert verdict.outcome == outcome, verdict.reasons


def test_a_yes_to_what_the_assistant_states_waits_for_a_person() -> None:
    turns = said("Hello.", "You must like larch cladding.", "Yes.")
    taken = fact("Yes", "larch cladding", msg="u3", ref=Ref(msg="a2", span="larch cladding"))
    verdict = gate(taken, turns)
    assert verdict.outcome == "review"
    assert any("does not ask" in reason for reason in verdict.reasons)


def test_a_memory_that_was_read_back_is_not_new() -> None:
    turns = said("What do you know about me?", "You live in Lisbon.", "Yes.")
    verdict = gate(
        fact("Yes", "lives in Lisbon", msg="u3", ref=Ref(msg="a2", span="live in Lisbon")),
        turns,
        injected=["Lisbon"],
    )
    assert verdict.outcome == "refuse"


def test_an_update_of_what_was_shown_is_taken() -> None:
    verdict = gate(
        fact("I moved to Porto", "Porto", key="home_city", to="k1", relation="updates"),
        said("I moved to Porto."),
        [CITY],
    )
    assert verdict.outcome == "accept", verdict.reasons
    assert (verdict.candidate.key, verdict.candidate.to) == ("city", "k1")


def test_a_memory_that_was_not_shown_cannot_be_replaced() -> None:
    verdict = gate(
        fact("I moved to Porto", "Porto", key="city", to="k9", relation="updates"),
        said("I moved to Porto."),
        [CITY],
    )
    assert (verdict.candidate.to, verdict.candidate.relation) == (None, "new")


def test_the_same_with_another_name_is_an_update() -> None:
    verdict = gate(
        fact("I live in Porto", "Porto", key="city", to="k1", relation="same"),
        said("I live in Porto."),
        [CITY],
    )
    assert verdict.candidate.relation == "updates"


def test_an_update_may_come_under_another_key() -> None:
    verdict = gate(
        fact("I moved to Porto", "Porto", key="employer", to="k1", relation="updates"),
        said("I moved to Porto."),
        [CITY],
    )
    assert (verdict.outcome, verdict.candidate.relation) == ("accept", "updates")


def test_an_update_may_drop_words_that_nobody_denied() -> None:
    verdict = gate(
        fact("I am team lead now", "team lead", key="job", to="k2", relation="updates"),
        said("I am team lead now."),
        [ROLE],
    )
    assert (verdict.outcome, verdict.candidate.relation) == ("accept", "updates")


def test_an_update_needs_no_word_of_change() -> None:
    change = fact("I live in Porto", "Porto", key="city", to="k1", relation="updates")
    verdict = gate(change, said("I live in Porto."), [CITY])
    assert (verdict.outcome, verdict.candidate.relation) == ("accept", "updates")


@pytest.mark.parametrize(
    ("known", "text", "value"),
    [
        ("trip to Rome on 3 May", "I have a trip to Rome on 9 May", "trip to Rome on 9 May"),
        ("sister Ana lives in Rome", "My sister Eva lives in Rome", "sister Eva lives in Rome"),
        ("eats fish at sea", "I am one to eat no fish at home", "eat no fish"),
    ],
)
def test_of_a_list_what_differs_in_a_number_a_name_or_a_no_is_replaced_by_a_person_alone(
    known: str, text: str, value: str
) -> None:
    shown = KnownFact("k1", 7, "fact", "trip", known, True)
    verdict = gate(fact(text, value, key="trip", to="k1", relation="updates"), said(text), [shown])
    assert verdict.outcome == "review"
    assert any("it may be another one beside it" in reason for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("said_for", "code"), [("yesterday", None), ("30 April 2020", "2020-04-30")]
)
def test_an_end_whose_day_is_past_is_an_end_now(said_for: str, code: str | None) -> None:
    text = f"The lease in Lisbon ended {said_for}"
    given = {"until_said": said_for, "until": code}
    end = fact(text, "", key="city", to="k1", relation="ends", **given)
    verdict = gate(end, said(f"{text}."), [CITY])
    assert (verdict.outcome, verdict.until) == ("accept", None)


def test_an_end_is_left_to_the_second_look() -> None:
    end = fact("The lease in Lisbon is over", "", key="city", to="k1", relation="ends")
    assert gate(end, said("The lease in Lisbon is over."), [CITY]).outcome == "accept"


def test_an_end_of_what_was_not_shown_points_at_nothing() -> None:
    end = fact("The lease in Lisbon is over", "", key="city", to="k1", relation="ends")
    verdict = gate(end, said("The lease in Lisbon is over."), [])
    assert (verdict.candidate.relation, verdict.candidate.to) == ("ends", None)


def test_an_end_that_speaks_of_another_name_is_left_to_a_person() -> None:
    known = KnownFact("k1", 7, "fact", "project", "map of Rome for Ana", True)
    end = fact("The map for Eva looks fine", "", key="project", to="k1", relation="ends")
    assert gate(end, said("The map for Eva looks fine."), [known]).outcome == "review"


def test_an_end_date_needs_its_words() -> None:
    turns = said("I am in Rome until Friday for work.")
    with_words = fact(
        "I am in Rome until Friday", "in Rome", until_said="until Friday", until="weekday:fri"
    )
    assert gate(with_words, turns).until == date(2026, 11, 20)
    other = fact("I am in Rome", "in Rome", until_said="until May", until="month:may")
    assert gate(other, turns).until is None
    assert gate(other, turns).candidate.until is None


def test_what_was_over_before_it_was_said_is_refused() -> None:
    turns = said("I was in Rome until 2026-11-01.")
    over = fact(
        "I was in Rome until 2026-11-01",
        "in Rome",
        until_said="until 2026-11-01",
        until="2026-11-01",
    )
    assert gate(over, turns).outcome == "refuse"


def test_of_two_values_for_one_slot_the_later_wins_and_lists_keep_both() -> None:
    turns = said("I live in Lisbon.", "Nice.", "I live in Porto.")
    first = gate(fact("I live in Lisbon", "Lisbon", key="city"), turns)
    later = gate(fact("I live in Porto", "Porto", key="city", msg="u3"), turns)
    assert dedupe_session([first, later]) == [later]
    assert dedupe_session([later, first]) == [later]
    pets = [
        gate(fact("I live in Lisbon", "Lisbon", key="pet"), turns),
        gate(fact("I live in Porto", "Porto", key="pet", msg="u3"), turns),
    ]
    assert dedupe_session(pets) == pets


def test_what_waits_for_a_person_takes_the_earlier_value_along_and_what_is_not_kept_does_not() -> (
    None
):
    turns = said("I live in Lisbon.", "Nice.", "I live in Porto.")
    first = gate(fact("I live in Lisbon", "Lisbon", key="city"), turns)
    later = gate(fact("I live in Porto", "Porto", key="city", msg="u3"), turns)
    waits = replace(later, outcome="review")
    assert [v.outcome for v in dedupe_session([first, waits])] == ["review", "review"]
    dropped = replace(later, outcome="refuse")
    assert dedupe_session([first, dropped]) == [first, dropped]


def test_an_end_on_a_later_day_keeps_that_day() -> None:
    text = "The lease in Lisbon ends at the end of the month"
    given = {"until_said": "at the end of the month", "until": "end:month"}
    end = fact(text, "", key="city", to="k1", relation="ends", **given)
    verdict = gate(end, said(f"{text}."), [CITY])
    assert (verdict.outcome, verdict.until) == ("accept", date(2026, 11, 30))


def test_what_the_question_and_the_answer_hold_together_is_no_word_added() -> None:
    turns = said(
        "I opened a bakery.", "What is the bakery called?", "It has a name: The Slow Loaf."
    )
    item = fact(
        "a name", "bakery The Slow Loaf", msg="u3", ref=Ref(msg="a2", span="What is the bakery")
    )
    assert gate(item, turns).outcome == "accept"


def test_a_yes_to_a_plan_with_a_question_beside_it_is_no_recital() -> None:
    known = KnownFact("k1", 7, "fact", "trip", "Sofia", True)
    turns = said(
        "Help.", "You could see Rila from Sofia on Saturday. Shall I book?", "Yes, perfect."
    )
    plan = fact(
        "Yes, perfect", "see Rila on Saturday", key="plan", msg="u3",
        ref=Ref(msg="a2", span="See Rila from Sofia on Saturday"),
    )  # fmt: skip
    assert gate(plan, turns, [known]).outcome == "accept"
    stated = said("Help.", "You live in Sofia and like Rila.", "Yes, perfect.")
    recited = fact(
        "Yes, perfect", "like Rila", key="like", msg="u3",
        ref=Ref(msg="a2", span="You live in Sofia and like Rila"),
    )  # fmt: skip
    assert gate(recited, stated, [known]).outcome == "refuse"


def test_an_end_that_cannot_be_read_changes_no_known_value() -> None:
    text = "I live in Porto until Easter"
    stay = fact(text, "Porto", key="city", to="k1", relation="updates", until_said="until Easter")
    assert gate(stay, said(f"{text}."), [CITY]).outcome == "review"
    trips = KnownFact("k1", 7, "fact", "trip", "Rome", True)
    trip = fact(text, "Porto", key="trip", to="k1", relation="updates", until_said="until Easter")
    verdict = gate(trip, said(f"{text}."), [trips])
    assert (verdict.outcome, verdict.candidate.relation) == ("accept", "beside")
    assert verdict.candidate.value == "Porto (until Easter)"


def test_of_two_values_for_one_slot_the_one_with_an_unread_end_waits() -> None:
    turns = said("I live in Lisbon.", "Nice.", "I live in Porto until Easter.")
    first = gate(fact("I live in Lisbon", "Lisbon", key="city"), turns)
    until = {"until_said": "until Easter"}
    later = gate(fact("I live in Porto", "Porto", key="city", msg="u3", **until), turns)
    assert [(v.candidate.value, v.outcome) for v in dedupe_session([first, later])] == [
        ("Lisbon", "accept"),
        ("Porto (until Easter)", "review"),
    ]


def test_a_type_that_nobody_declared_is_read_as_other_and_that_is_logged(caplog) -> None:
    caplog.set_level("INFO", logger="memchat.learn.gate")
    verdict = gate(fact("I fence", "fencing", key="hobby", type="hobby"), said("I fence."))
    assert verdict.candidate.type == "other"
    assert "read as other" in caplog.text and "hobby" not in caplog.text
