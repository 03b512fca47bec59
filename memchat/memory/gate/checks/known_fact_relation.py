"""What a candidate says about a fact already stored: same, updates, ends, beside."""

from __future__ import annotations

import re

from memchat.language.text import content_words, holds_word
from memchat.memory.gate import value_comparison
from memchat.memory.gate.keys import canonical, cardinality
from memchat.memory.gate.types import Case, KnownFact

NO_WORD_OF_CHANGE = "no word says that something has changed"
_PARTS = re.compile(r"\s*(?:[,;/&+、，]|(?<!\w)(?:and|und|et|y|e|en|ve|и|と|和)(?!\w))\s*")


def check(case: Case) -> None:
    """Check the fact that a candidate points at. A change applies to a fact that was shown; what
    no plain word of change stands for is a signal."""
    target = case.target
    if target is None:
        _without_target(case)
        return
    item = case.candidate
    if canonical(target.key) == item.key and item.key != target.key:
        case.change(key=target.key)
    if item.relation == "new":
        case.change(to=None)
    elif item.relation == "same":
        _check_same(case, target)
    elif item.relation == "ends":
        _check_end(case, target)
    if case.candidate.relation == "updates":
        _check_update(case, target)


def _without_target(case: Case) -> None:
    item = case.candidate
    if item.relation == "ends":
        case.signals.append("it may end something that is remembered, and it is not clear what")
        case.change(to=None)
        return
    if item.to is not None:
        case.signals.append("it may change something that is remembered, and it is not clear what")
    case.change(to=None, relation="new")


def _check_same(case: Case, target: KnownFact) -> None:
    """What differs in a number, name or negation is not the same: in a slot that holds one value
    it takes the other's place, elsewhere both hold."""
    item = case.candidate
    difference = value_comparison.difference(item.value, target.value)
    if not value_comparison.is_negated(f"{item.value} {target.value}"):
        difference = difference or value_comparison.negation_in(case.sentences(), case.languages)
    one_slot = item.key == target.key and not target.many
    if one_slot and (difference or value_comparison.words_differ(item.value, target.value)):
        case.change(relation="updates")
    elif difference is None:
        case.change(key=target.key, many=target.many)
    else:
        case.signals.append(f"it may repeat what is remembered, but the {difference} differs")
        case.change(relation="beside")


def _check_update(case: Case, target: KnownFact) -> None:
    item, said = case.candidate, " \n".join(case.sentences())
    other_slot = canonical(target.key) != canonical(item.key)
    if other_slot:
        case.signals.append(f"it may replace what is remembered as {target.key.replace('_', ' ')}")
    changed = value_comparison.says_it_changed(said, target.value, case.languages)
    if not changed:
        case.signals.append(NO_WORD_OF_CHANGE)
    if value_comparison.says_it_is_added(said):
        case.signals.append("a word says that it comes beside what there is")
    if len(value_parts(target.value)) > 1:
        case.signals.append("what is remembered has several parts, and it may change only one")
    stands_apart = other_slot or target.many
    difference = value_comparison.difference(item.value, target.value) if stands_apart else None
    if difference and not changed and _near(item.value, target.value):
        # Two trips to one town, two sisters: nearly the same words, and both are true.
        case.reviews.append(f"it may be another one beside it: the {difference} differs")
    case.change(key=target.key, many=target.many)


def _near(one: str, other: str) -> bool:
    words, others = content_words(one), content_words(other)
    shared = sum(holds_word(other, word) for word in words)
    opposed = value_comparison.is_negated(one) != value_comparison.is_negated(other)
    return bool(shared) and (opposed or 2 * shared >= max(len(words), len(others)))


def value_parts(value: str) -> list[str]:
    """The parts of a value that lists several."""
    return [part for part in _PARTS.split(value) if part.strip()]


def _check_end(case: Case, target: KnownFact) -> None:
    words = content_words(target.value) | content_words(target.key.replace("_", " "))
    if not any(holds_word(case.own_message_words(), word) for word in words):
        case.signals.append("the words do not say what is over")
    said = " \n".join(case.sentences())
    if not value_comparison.says_it_ended(said, target.value, case.languages):
        case.signals.append("no word says that it is over")
        near = any(holds_word(said, word) for word in words)
        changed = value_comparison.says_it_changed(said, target.value, case.languages)
        one = cardinality(target.key) == "one"
        if value_comparison.names_another(said, target.value) and (near or changed or one):
            case.reviews.append(
                "the words speak of another number or name than what they would end"
            )
        elif near and value_comparison.is_negated(said) and not changed:
            case.reviews.append("the words deny something else than what they would end")
    case.change(key=target.key, many=target.many)
