"""The words by which a text gives a value away, and where they stand, in any case and inflection.

Of "Quokkaland Ltd" it is the first word: names and rare words identify a value, common ones do not.
Where all words of a value are common, only all of them together do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from memchat.language import text
from memchat.language.markers import FUNCTION_WORDS
from memchat.language.number_words import DATE_WORDS, NUMBER_WORDS
from memchat.language.word_search import folded
from memchat.memory.forgetting import redaction
from memchat.store import keywords, mentions

_WORD = re.compile(
    "[^\\W_](?:[^\\W_]|[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u0900-\u0903\u093a-\u094f])*"
)
_FORMS_OF_FIRMS = """
    ab ag bv co company corp corporation gmbh group inc kg limited llc llp ltd nv oy plc pte pty sa
    sarl sas spa srl
"""
_OF_FIRMS = frozenset(_FORMS_OF_FIRMS.split())
_SHORT = 3
"""Up to so many words a value may be a bare name, whose first capital means something."""
_FEW, _FEW_SHARE = 10, 0.02
_NAMED, _NAMED_SHARE = 20, 0.5
"""In so many of the messages or memories, and in such a share of them, a word is not common yet: of
the plain ones, and of names."""
_PREFIX = 3


@dataclass(frozen=True, slots=True)
class IdentifyingWords:
    """Groups of words: a text mentions a value where it has all words of any group."""

    groups: tuple[tuple[str, ...], ...]

    def spans(self, texts: Mapping[int, str]) -> dict[int, set[tuple[int, int]]]:
        """Where the words stand, for each of these texts that mentions a value."""
        words = sorted({word for group in self.groups for word in group})
        stems = keywords.stems(words)
        said = {key: self._similar_words(content, words) for key, content in texts.items()}
        stems |= keywords.stems({word for runs in said.values() for word, _ in runs} - stems.keys())
        found = {}
        for key, runs in said.items():
            at = {word: self._places(word, texts[key], runs, stems) for word in words}
            held = [group for group in self.groups if all(at[word] for word in group)]
            if held:
                found[key] = {span for group in held for word in group for span in at[word]}
        return found

    def prefixes(self) -> list[str]:
        """For each group the prefix that all forms of its first word share."""
        firsts = [group[0] for group in self.groups]
        stems = keywords.stems(firsts)
        return [_common_prefix(word, stems) for word in firsts]

    @staticmethod
    def _similar_words(content: str, words: Sequence[str]) -> list[tuple[str, tuple[int, int]]]:
        """The folded words of a text that begin like any of these, with their places."""
        starts = {word[:_PREFIX] for word in words}
        whole = folded(content)
        if not any(start in whole for start in starts):
            return []
        if content.isascii():  # folded letter by letter
            runs = ((m[0], m.span()) for m in _WORD.finditer(whole))
        else:
            runs = ((folded(m[0]), m.span()) for m in _WORD.finditer(content))
        return [(word, span) for word, span in runs if word[:_PREFIX] in starts]

    @staticmethod
    def _places(
        word: str,
        content: str,
        runs: Sequence[tuple[str, tuple[int, int]]],
        stems: Mapping[str, str],
    ) -> set[tuple[int, int]]:
        if keywords.UNSPACED.search(word):
            return redaction.spans_of([word], content)
        return {span for said, span in runs if stems.get(said, said) == stems.get(word, word)}


def identifying_words(
    tx: Connection, app_ids: Sequence[int], values: Iterable[str]
) -> IdentifyingWords:
    """The words that identify any of these values among the messages and memories of these
    scopes."""
    said = mentions.count_messages(tx, app_ids)
    stored = mentions.count_memories(tx, app_ids)

    def rare(word: str, few: int, share: float) -> bool:
        most = max(few, int(share * stored))
        if keywords.is_held_by_more(tx, "memories", app_ids, word, most):
            return False
        held = keywords.rows_holding_all(tx, "messages", app_ids, [word])
        return len(held) <= max(few, share * said)

    groups: dict[tuple[str, ...], None] = {}
    for value in values:
        words, names = _words(value), _names(value)
        distinctive = [word for word in words if word in names and rare(word, _NAMED, _NAMED_SHARE)]
        distinctive = distinctive or [word for word in words if rare(word, _FEW, _FEW_SHARE)]
        groups |= dict.fromkeys((word,) for word in distinctive)
        if words and not distinctive:
            groups[tuple(sorted(words))] = None
    return IdentifyingWords(tuple(groups))


def _words(value: str) -> list[str]:
    """The folded words of a value that may identify it; runs of scripts without spaces are one
    word."""
    runs = keywords.UNSPACED.findall(folded(value))
    spaced = keywords.UNSPACED.sub(" ", folded(value))
    said = [m[0] for m in _WORD.finditer(spaced)]
    kept = [
        word
        for word in said
        if keywords.query_terms(word)
        and word not in FUNCTION_WORDS
        and len(word) >= (3 if word.isdigit() else 2)
    ]
    common = _OF_FIRMS | DATE_WORDS.keys() | NUMBER_WORDS.keys()
    rare = [word for word in kept if word not in common]
    return list(dict.fromkeys([*(rare or kept), *(run for run in runs if len(run) > 1)]))


def _names(value: str) -> set[str]:
    short = len(value.split()) <= _SHORT
    found = {folded(name) for name in text.names(value, from_start=short)}
    return {word for name in found for word in _WORD.findall(name)}


def _common_prefix(word: str, stems: Mapping[str, str]) -> str:
    """What a word shares with all forms of its stem; the last letter of the stem may change."""
    return word[: max(len(stems.get(word, word)) - 1, 1)] if word.isascii() else word
