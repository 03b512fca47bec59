"""A part of a chunk for a prompt: the sentences around those that fit a question best."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from memchat.language.text import content_words, holds_word
from memchat.notes.boundary import sentence_boundaries, word_boundaries
from memchat.tokens import estimate_tokens

GAP = "…"
"""Stands where a sentence had to be cut."""


def excerpt(text: str, question: str, most_tokens: int, title: str = "") -> str:
    """The sentences of a text that fit a question best and their neighbours, as many as have no
    more than ``most_tokens`` (estimated). Words of the question that the note's ``title`` holds
    count only where there are no others: they say which note is meant, not where in it. Only a
    sentence that alone has more is cut, between words or, without a space, anywhere."""
    if estimate_tokens(text) <= most_tokens:
        return text
    cuts = [*sorted(sentence_boundaries(text)), len(text)]
    sentences = [text[start:end].strip() for start, end in pairwise(cuts)]
    words = content_words(question)
    best = _best(sentences, [w for w in words if not holds_word(title, w)] or words)
    if estimate_tokens(sentences[best]) > most_tokens:
        return _cut(sentences[best], most_tokens)
    first, after = best, best + 1
    steps = [(0, 1), (-1, 0)]  # one sentence behind, one before, in turn
    while steps:
        before, behind = steps.pop(0)
        start, end = first + before, after + behind
        fits = start >= 0 and end <= len(sentences)
        if fits and estimate_tokens(text[cuts[start] : cuts[end]].strip()) <= most_tokens:
            first, after = start, end
            steps.append((before, behind))
    return text[cuts[first] : cuts[after]].strip()


def share_held(text: str, question: str) -> tuple[int, float]:
    """How many of a question's meaningful words a text holds, with any ending, and their share."""
    words = content_words(question)
    held = sum(holds_word(text, word) for word in words)
    return held, held / len(words) if words else 0.0


def _best(sentences: Sequence[str], words: Collection[str]) -> int:
    """The place of the sentence with most of the words; one that few sentences hold counts more.
    Of equal ones it is the first."""
    held = {word: [holds_word(one, word) for one in sentences] for word in words}
    scores = [
        sum(1 / sum(among) for among in held.values() if among[place])
        for place in range(len(sentences))
    ]
    return max(range(len(sentences)), key=lambda place: (scores[place], -place))


def _cut(sentence: str, most_tokens: int) -> str:
    """The beginning of a sentence, as much as fits."""
    for end in sorted(word_boundaries(sentence, 0, len(sentence)), reverse=True):
        part = f"{sentence[:end].rstrip()} {GAP}"
        if estimate_tokens(part) <= most_tokens:
            return part
    size = len(sentence)
    while size and estimate_tokens(f"{sentence[:size]}{GAP}") > most_tokens:
        size = size * 3 // 4
    return f"{sentence[:size]}{GAP}" if size else ""
