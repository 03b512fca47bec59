"""The stand-in's words, from ``words.toml``, and what questions and memories are about."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

from memchat.language.statements.patterns import is_food, stem

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+")
_DATA = tomllib.loads((files("memchat.providers.offline") / "words.toml").read_text("utf-8"))
SENTENCES: dict[str, str] = _DATA["sentences"]
"""The sentence for a memory, by its key."""
VERBS: dict[str, str] = _DATA["verbs"]
"""Verbs of values in the third person, with their form after "you"."""
_STOP = frozenset(_DATA["stop"].split())


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


_ASKED = {topic: _stems(words["question"]) for topic, words in _DATA["topics"].items()}
_KEYS = {
    topic: _stems(words["key"]) | {*words["key"].split()}
    for topic, words in _DATA["topics"].items()
}


def content_words(text: str) -> frozenset[str]:
    """The stems that carry meaning; scripts without spaces give overlapping pairs of characters."""
    found: set[str] = set()
    for word in _WORD.findall(text.replace("_", " ")):
        for run in _UNSPACED.findall(word):
            found.update(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        if not _UNSPACED.search(word) and word.casefold() not in _STOP:
            found.add(stem(word))
    return frozenset(found)


def question_topics(text: str) -> frozenset[str]:
    """What a question is about."""
    return _topics(_ASKED, {stem(word) for word in _WORD.findall(text)}, text)


def memory_topics(key: str, value: str) -> frozenset[str]:
    """What a memory is about, by its key, and by its value where that names a food."""
    return _topics(_KEYS, {stem(part) for part in key.split("_")} | {key}, value)


def _topics(words: dict[str, frozenset[str]], given: set[str], text: str) -> frozenset[str]:
    found = {topic for topic, known in words.items() if not known.isdisjoint(given)}
    return frozenset(found | ({"food"} if is_food(text) else set()))
