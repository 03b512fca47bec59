"""What a candidate says about a fact already stored: same, updates, ends, beside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memchat.memory.gate import guards
from memchat.memory.gate.candidate import Candidate
from memchat.memory.gate.keys import canonical
from memchat.memory.gate.text import content_words, names, numbers, says, sentence_around

if TYPE_CHECKING:
    from memchat.memory.gate.evidence import Findings, KnownFact


_UNIT = re.compile(r"(\d)(?:st|nd|rd|th|er|º|ª|\.)?(?=[^\W\d_])|(?<=\d)(?:st|nd|rd|th|er)(?!\w)")
"""The ending or the unit that is glued to a number, which is no noun of its own."""


def check_link(candidate: Candidate, found: Findings, known: Sequence[KnownFact]) -> Candidate:
    """Check the fact a candidate points at; what it may not replace stays beside."""
    target = next((fact for fact in known if fact.id == candidate.to), None)
    if target is None:
        return _unlinked(candidate, found)
    if canonical(target.key) == candidate.key and candidate.key != target.key:
        candidate = candidate.model_copy(update={"key": target.key})
    if candidate.relation == "new":
        return candidate.model_copy(update={"to": None})
    if candidate.relation == "same":
        candidate = _check_same(candidate, target, found)
    if candidate.relation == "updates":
        candidate = _check_update(candidate, target, found)
    if candidate.relation == "ends":
        _check_end(target, found)
    return candidate


def _unlinked(candidate: Candidate, found: Findings) -> Candidate:
    if candidate.relation == "ends":
        found.refusals.append("it ends a memory that was not shown")
    elif candidate.to is not None:
        found.doubts.append("it names a memory that was not shown")
    return candidate.model_copy(update={"to": None, "relation": "new"})


def _check_same(candidate: Candidate, target: KnownFact, found: Findings) -> Candidate:
    difference = guards.differs(candidate.value, target.value)
    one_slot = candidate.key == target.key and not target.many
    if one_slot and (difference or guards.replaced(candidate.value, target.value)):
        return candidate.model_copy(update={"relation": "updates"})  # the newer words in its place
    if difference is None:
        return candidate.model_copy(update={"key": target.key, "many": target.many})
    found.doubts.append(f"it is said to be the same as a memory with another {difference}")
    return candidate.model_copy(update={"relation": "beside"})


def _check_update(candidate: Candidate, target: KnownFact, found: Findings) -> Candidate:
    if canonical(target.key) != canonical(candidate.key):
        found.doubts.append(f"it would replace a memory under another key, {target.key}")
        return candidate.model_copy(update={"relation": "beside"})
    if target.many and not _takes_its_place(candidate, target, found):
        return candidate.model_copy(update={"relation": "beside"})
    dropped = _dropped(candidate, target.value, found)
    if dropped:
        found.doubts.append(f"the earlier value also says {', '.join(dropped)}; both may hold")
        return candidate.model_copy(update={"relation": "beside"})
    return candidate.model_copy(update={"key": target.key, "many": target.many})


def _takes_its_place(candidate: Candidate, target: KnownFact, found: Findings) -> bool:
    """Whether the words say that one of several values is replaced: they stand side by side
    otherwise, and only a reader can tell."""
    said = _around(found)
    if guards.added(said):
        return False
    if not guards.changed(said, target.value, found.languages):
        found.doubts.append(f"{target.key} holds several values, and no word says that one is over")
    return not found.doubts


def _around(found: Findings) -> str:
    """The sentences that the quotes stand in."""
    return " \n".join(
        sentence_around(turn.text, span.start, span.end).text for turn, span in found.proofs
    )


def _dropped(candidate: Candidate, old: str, found: Findings) -> list[str]:
    """What an old value of several parts loses: of its numbers, names and nouns those that nobody
    spoke of, beyond the one part that the new value puts in their place."""
    said = " ".join(turn.text for turn in found.quoted())
    new = candidate.value
    lost: list[str] = []
    old_numbers, new_numbers = numbers(old), numbers(new)
    gone = sorted(n for n in old_numbers - new_numbers if n not in numbers(said))
    if len(gone) > len(new_numbers - old_numbers):
        lost += gone
    old_names, new_names = _name_runs(old), _name_runs(new)
    missing = [name for name in old_names if not _held(name, f"{new} {said}")]
    if len(missing) > sum(not _held(name, old) for name in new_names):
        lost += missing
    named = {word for name in old_names for word in content_words(name)}
    nouns = [
        word
        for word in sorted(content_words(_UNIT.sub(r"\1 ", old)) - named)
        if not says(new, word) and not says(said, word)
    ]
    fresh = [word for word in content_words(_UNIT.sub(r"\1 ", new)) if not says(old, word)]
    spare = len(nouns) - len(fresh)
    if spare >= (1 if (old_names or old_numbers) and not lost else 2):
        lost += nouns
    whole = len(old_names) + len(old_numbers) + len(content_words(old) - named)
    return lost if whole > 1 else []


def _held(name: str, text: str) -> bool:
    return all(says(text, word, loosely=False) for word in name.split())


def _name_runs(text: str) -> list[str]:
    """Names, with neighbours as one: "New York" is one part of a value."""
    found = names(text, from_start=len(text.split()) <= 3)
    runs: list[list[str]] = []
    last = False
    for word in text.split():
        bare = word.strip(".,;:()'\"")
        is_name = bare in found
        if is_name and last:
            runs[-1].append(bare)
        elif is_name:
            runs.append([bare])
        last = is_name and word[-1:] not in ",;"
    return [" ".join(run) for run in runs]


def _check_end(target: KnownFact, found: Findings) -> None:
    words = content_words(target.value) | content_words(target.key.replace("_", " "))
    said = " ".join(turn.text for turn in found.quoted())
    if not any(says(said, word) for word in words):
        found.doubts.append("the words do not name the memory that they end")
    if not guards.over(_around(found), target.value, found.languages):
        found.doubts.append("the words do not say that it is over")
