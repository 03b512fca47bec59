"""What a candidate says about a fact already stored: same, updates, ends or beside it."""

from __future__ import annotations

from memchat.facts.keys import canonical, cardinality
from memchat.language.text import content_words, holds_word
from memchat.learn import values
from memchat.learn.verdict import Case, KnownFact


def check_relation(case: Case) -> None:
    """Check the fact that a candidate points at: a change applies to a fact that was shown."""
    target, item = case.target, case.candidate
    if target is None:
        case.change(to=None, relation="ends" if item.relation == "ends" else "new")
        return
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


def _check_same(case: Case, target: KnownFact) -> None:
    """What differs in a number, name or negation is not the same: in a slot that holds one value
    it takes the other's place, elsewhere both hold."""
    item = case.candidate
    difference = values.difference(item.value, target.value)
    if not values.is_negated(f"{item.value} {target.value}"):
        difference = difference or values.negation_in(case.sentences(), case.languages)
    one_slot = item.key == target.key and not target.many
    if one_slot and (difference or values.words_differ(item.value, target.value)):
        case.change(relation="updates")
    elif difference is None:
        case.change(key=target.key, many=target.many)
    else:
        case.change(relation="beside")


def _check_update(case: Case, target: KnownFact) -> None:
    item, said = case.candidate, " \n".join(case.sentences())
    stands_apart = target.many or canonical(target.key) != canonical(item.key)
    difference = values.difference(item.value, target.value) if stands_apart else None
    changed = values.says_it_changed(said, target.value, case.languages)
    if difference and not changed and _near(item.value, target.value):
        # Two trips to one town, two sisters: nearly the same words, and both are true.
        case.reviews.append(f"it may be another one beside it: the {difference} differs")
    case.change(key=target.key, many=target.many)


def _near(one: str, other: str) -> bool:
    words, others = content_words(one), content_words(other)
    shared = sum(holds_word(other, word) for word in words)
    opposed = values.is_negated(one) != values.is_negated(other)
    return bool(shared) and (opposed or 2 * shared >= max(len(words), len(others)))


def _check_end(case: Case, target: KnownFact) -> None:
    words = content_words(target.value) | content_words(target.key.replace("_", " "))
    said = " \n".join(case.sentences())
    if not values.says_it_ended(said, target.value, case.languages):
        near = any(holds_word(said, word) for word in words)
        changed = values.says_it_changed(said, target.value, case.languages)
        one = cardinality(target.key) == "one"
        if values.names_another(said, target.value) and (near or changed or one):
            case.reviews.append(
                "the words speak of another number or name than what they would end"
            )
        elif near and values.is_negated(said) and not changed:
            case.reviews.append("the words deny something else than what they would end")
    case.change(key=target.key, many=target.many)
