"""What a candidate says about a fact already stored: same, updates, ends, beside."""

from __future__ import annotations

import re

from memchat.language.text import content_words, holds_word
from memchat.memory.gate.checks import guards
from memchat.memory.gate.checks.keys import canonical, cardinality
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
        case.signals.append("it ends a memory that was not shown")
        case.change(to=None)
        return
    if item.to is not None:
        case.signals.append("it speaks of a memory that was not shown")
    case.change(to=None, relation="new")


def _check_same(case: Case, target: KnownFact) -> None:
    """What differs in a number, name or negation is not the same: in a slot that holds one value
    it takes the other's place, elsewhere both hold."""
    item = case.candidate
    difference = guards.differs(item.value, target.value)
    if not guards.negated(f"{item.value} {target.value}"):
        difference = difference or guards.negation_in(case.sentences(), case.languages)
    one_slot = item.key == target.key and not target.many
    if one_slot and (difference or guards.replaced(item.value, target.value)):
        case.change(relation="updates")
    elif difference is None:
        case.change(key=target.key, many=target.many)
    else:
        case.signals.append(f"it is said to be the same as a memory with another {difference}")
        case.change(relation="beside")


def _check_update(case: Case, target: KnownFact) -> None:
    item, said = case.candidate, " \n".join(case.sentences())
    other_slot = canonical(target.key) != canonical(item.key)
    if other_slot:
        case.signals.append(f"it would replace a memory under another key, {target.key}")
    changed = guards.changed(said, target.value, case.languages)
    if not changed:
        case.signals.append(NO_WORD_OF_CHANGE)
    if guards.added(said):
        case.signals.append("a word says that it comes beside what there is")
    if len(parts(target.value)) > 1:
        case.signals.append("the known value has several parts")
    stands_apart = other_slot or target.many
    difference = guards.differs(item.value, target.value) if stands_apart else None
    if difference and not changed and _near(item.value, target.value):
        # Two trips to one town, two sisters: nearly the same words, and both are true.
        case.holds.append(f"it may be another one beside it: the {difference} differs")
    case.change(key=target.key, many=target.many)


def _near(one: str, other: str) -> bool:
    words, others = content_words(one), content_words(other)
    shared = sum(holds_word(other, word) for word in words)
    opposed = guards.negated(one) != guards.negated(other)
    return bool(shared) and (opposed or 2 * shared >= max(len(words), len(others)))


def parts(value: str) -> list[str]:
    """The parts of a value that lists several."""
    return [part for part in _PARTS.split(value) if part.strip()]


def _check_end(case: Case, target: KnownFact) -> None:
    words = content_words(target.value) | content_words(target.key.replace("_", " "))
    if not any(holds_word(case.messages(), word) for word in words):
        case.signals.append("the words do not name what they end")
    said = " \n".join(case.sentences())
    if not guards.over(said, target.value, case.languages):
        case.signals.append("no word says that it is over")
        near = any(holds_word(said, word) for word in words)
        changed = guards.changed(said, target.value, case.languages)
        one = cardinality(target.key) == "one"
        if guards.speaks_of_another(said, target.value) and (near or changed or one):
            case.holds.append("the words speak of another number or name than what they would end")
        elif near and guards.negated(said) and not changed:
            case.holds.append("the words deny something else than what they would end")
    case.change(key=target.key, many=target.many)
