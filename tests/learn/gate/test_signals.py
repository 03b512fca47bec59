"""The signals: each shown by one sentence and not by one near it, and none decides anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memchat.learn import ambiguity
from memchat.learn.ambiguity import languages_in
from memchat.learn.candidate import Candidate, Quote
from memchat.learn.verdict import Turn, Verdict
from tests.support.gate import AT, corpus, fact, gate, of_corpus, said


@dataclass(frozen=True)
class Case:
    """A message, the words quoted of it and the value drawn from them."""

    text: str
    quote: str
    value: str
    key: str = "thing"
    before: tuple[str, ...] = ()
    """What was said before, the user first."""
    after: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)


def verdict_of(case: Case) -> Verdict:
    spoken = [*case.before, case.text]
    turns = said(*spoken)
    name = turns[-1].id
    if case.after is not None:
        turns.append(Turn("u99", "user", case.after, AT, 99))
    return gate(fact(case.quote, case.value, msg=name, key=case.key, **case.fields), turns)


SIGNALS = [
    (
        "a “not” stands beside it, which may belong to it",
        Case("I do not eat fish.", "eat fish", "eat fish"),
        Case("I do not eat fish.", "I do not eat fish", "does not eat fish"),
    ),
    (
        "a “not” stands beside it, which may belong to it",
        Case("Ich esse nicht gern Fisch.", "Ich esse nicht gern Fisch", "Fisch"),
        Case("Ich esse gern Fisch.", "Ich esse gern Fisch", "Fisch"),
    ),
    (
        "a “not” stands beside it, which may belong to it",
        Case("I love hiking without any maps.", "I love hiking", "hiking"),
        Case("I love hiking, and I own no maps.", "I love hiking", "hiking"),
    ),
    (
        "it denies something, and your words do not",
        Case("I eat fish.", "I eat fish", "does not eat fish"),
        Case("I never eat fish.", "I never eat fish", "does not eat fish"),
    ),
    (
        "it denies something, and your words do not",
        Case("Ich esse Fisch.", "Ich esse Fisch", "nicht Fisch"),
        Case("Ich esse nie Fisch.", "Ich esse nie Fisch", "nicht Fisch"),
    ),
    (
        "it may be an if, a wish or a guess",
        Case("Maybe I live in Porto.", "I live in Porto", "Porto"),
        Case("I live in Porto.", "I live in Porto", "Porto"),
    ),
    (
        "it may be an if, a wish or a guess",
        Case("Vielleicht ziehe ich nach Porto.", "ziehe ich nach Porto", "Porto"),
        Case("Morgen ziehe ich nach Porto.", "ziehe ich nach Porto", "Porto"),
    ),
    (
        "it stands in a question",
        Case("Do I live in Porto or not?", "I live in Porto", "Porto"),
        Case("I live in Porto. What is near?", "I live in Porto", "Porto"),
    ),
    (
        "it stands in a question",
        Case("Wohne ich in Porto?", "Wohne ich in Porto", "Porto"),
        Case("Ich wohne in Porto. Was liegt da?", "Ich wohne in Porto", "Porto"),
    ),
    (
        "it may be about somebody else, or what they say",
        Case("My boss said I live in Porto.", "I live in Porto", "Porto"),
        Case("I said that I live in Porto.", "I live in Porto", "Porto"),
    ),
    (
        "it may be about somebody else, or what they say",
        Case("My neighbour lives in Porto.", "lives in Porto", "Porto"),
        Case("My neighbour lives in Porto.", "lives in Porto", "neighbour lives in Porto"),
    ),
    (
        "it may be about somebody else, or what they say",
        Case("Mein Chef sagt, ich wohne in Porto.", "ich wohne in Porto", "Porto"),
        Case("Wie jeder weiß: ich wohne in Porto.", "ich wohne in Porto", "Porto"),
    ),
    (
        "its language is not known well enough to check it",
        Case("Mieszkam daleko stąd, w Krakowie.", "Mieszkam daleko stąd", "daleko stąd"),
        Case("I live far away, in Krakow.", "I live far away", "far away"),
    ),
    (
        "it rests on a single word",
        Case("I live in Porto now.", "Porto", "Porto"),
        Case("I live in Porto now.", "in Porto", "Porto"),
    ),
    (
        "it rests on a single word",
        Case("Ich wohne in Porto.", "Porto", "Porto"),
        Case("Porto.", "Porto", "Porto"),
    ),
    (
        "it stands in quotation marks",
        Case('I always sign as "the mayor of Porto".', "mayor of Porto", "mayor of Porto"),
        Case('I always sign as "the mayor", in Porto.', "in Porto", "Porto"),
    ),
    (
        "it stands in quotation marks",
        Case("Ich bin „der Bäcker von Porto“.", "Bäcker von Porto", "Bäcker von Porto"),
        Case("Ich bin „der Bäcker“ von Porto.", "von Porto", "Porto"),
    ),
    (
        "it may be part of a game or of a text to be written",
        Case("Pretend we are pirates. I live in Porto.", "I live in Porto", "Porto"),
        Case("I live in Porto. Pretend we are pirates.", "I live in Porto", "Porto"),
    ),
    (
        "it may be part of a game or of a text to be written",
        Case(
            "I live in Porto.", "I live in Porto", "Porto", before=("In this story I rule.", "Ok.")
        ),
        Case("I live in Porto.", "I live in Porto", "Porto", before=("I rule this city.", "Ok.")),
    ),
    (
        "what follows may take it back",
        Case("I live in Porto. Kidding, sorry.", "I live in Porto", "Porto"),
        Case("I live in Porto. Lovely, sorry.", "I live in Porto", "Porto"),
    ),
    (
        "what follows may take it back",
        Case("I live in Porto.", "I live in Porto", "Porto", after="Scratch that."),
        Case("I live in Porto.", "I live in Porto", "Porto", after="It is warm here."),
    ),
    (
        "what follows may take it back",
        Case("Ich habe gelogen, ich wohne in Ulm.", "ich wohne in Ulm", "Ulm"),
        Case("Ich habe gegessen, ich wohne in Ulm.", "ich wohne in Ulm", "Ulm"),
    ),
    (
        "the message speaks of a text, which may be somebody else's",
        Case("Got this sms today. I live in Porto.", "I live in Porto", "Porto"),
        Case("Bought a cat today. I live in Porto.", "I live in Porto", "Porto"),
    ),
    (
        "the message speaks of a text, which may be somebody else's",
        Case(
            "Ich wohne in Ulm.", "Ich wohne in Ulm", "Ulm",
            before=("Die nächste Nachricht ist von Ida.", "Gut."),
        ),
        Case("Ich wohne in Ulm.", "Ich wohne in Ulm", "Ulm", before=("Guten Tag, Ida.", "Gut.")),
    ),
    (
        "the message has several lines, as pasted text has",
        Case("Well,\nI live in Porto\nby now.", "I live in Porto", "Porto"),
        Case("Well,\nI live in Porto by now.", "I live in Porto", "Porto"),
    ),
    (
        "a name and a colon stand before it",
        Case("Ida: I live in Porto.", "I live in Porto", "Porto"),
        Case("I live in Porto: it is warm.", "I live in Porto", "Porto"),
    ),
    (
        "a name and a colon stand before it",
        Case("Ida: ich wohne in Ulm.", "ich wohne in Ulm", "Ulm"),
        Case("Ich wohne in Ulm: es ist kalt.", "Ich wohne in Ulm", "Ulm"),
    ),
    (
        "it answers a question, so it may mean something else",
        Case("Yes, Porto.", "Yes, Porto", "Porto", before=("Hi.", "Do you live in Porto?")),
        Case("Yes, I live in Porto.", "I live in Porto", "Porto",
             before=("Hi.", "Do you live in Porto?")),
    ),
    (
        "it answers a question, so it may mean something else",
        Case("Ja, Ulm.", "Ja, Ulm", "Ulm", before=("Hallo, ich bin da.", "Wohnst du in Ulm?")),
        Case("Ja, Ulm.", "Ja, Ulm", "Ulm", before=("Hallo, ich bin da.", "Ulm ist schön.")),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("signal", "shows", "near"), SIGNALS, ids=[f"{s}: {c.text}" for s, c, _ in SIGNALS]
)
def test_a_signal_is_shown_by_one_sentence_and_not_by_one_near_it(
    signal: str, shows: Case, near: Case
) -> None:
    verdict = verdict_of(shows)
    assert signal in verdict.signals and verdict.outcome == "doubt", verdict.reasons
    assert signal not in verdict_of(near).signals


def test_every_signal_of_the_list_has_its_sentences() -> None:
    source = Path(ambiguity.__file__).read_text(encoding="utf-8")
    named = {line.split('"')[1] for line in source.splitlines() if 'yield "' in line}
    assert named == {signal for signal, _, _ in SIGNALS}


@pytest.mark.parametrize(
    "row", [*corpus(True), *corpus(False)], ids=lambda row: f"{row['honest']} {row['said']}"
)
def test_a_signal_holds_or_refuses_nothing_by_itself(row: dict[str, Any]) -> None:
    verdict = of_corpus(row)
    others = set(verdict.reasons) - set(verdict.signals)
    if verdict.signals and not others:
        assert verdict.outcome == "doubt"
    if verdict.outcome in ("review", "refuse"):
        assert others, "something that code knows, beside the signals"
    if verdict.outcome == "doubt":
        assert verdict.signals


def test_the_model_s_own_doubt_is_a_signal_like_the_others() -> None:
    unsure = Candidate(
        quotes=(Quote(msg="u1", text="I live in Porto"),), type="profile", key="city",
        value="Porto", flags=("unsure",),
    )  # fmt: skip
    verdict = gate(unsure, said("I live in Porto."))
    assert (verdict.outcome, verdict.signals) == ("doubt", ("the model was not sure",))


def test_the_corpus_shows_most_of_the_signals() -> None:
    seen = {signal for row in (*corpus(True), *corpus(False)) for signal in of_corpus(row).signals}
    assert len(seen & {signal for signal, _, _ in SIGNALS}) >= 8


def test_the_language_around_a_quote_is_told_by_its_words() -> None:
    assert languages_in("Ich wohne in Ulm und mag es.", 0, 16)[0] == "de"
    assert languages_in("I adore jazz.", 0, 12) == ("en",)


def test_what_stands_far_from_the_quote_in_a_very_long_message_is_not_beside_it() -> None:
    far = "I stay in Rome. " + "The sun shines. " * 400 + "Is it late?"
    near = "I stay in Rome. " + "The sun shines. " * 40 + "Is it late?"
    for text, beside in ((far, False), (near, True)):
        assert gate(fact("I stay in Rome", "Rome"), said(text)).beside is beside
