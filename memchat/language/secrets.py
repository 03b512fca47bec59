"""Finds what must not be remembered unasked: secrets, and data that identify or reach a person.

"Locker code is 7741" is a secret, "locker is number 12" is not. ``secret_shapes`` knows secrets by
their form, ``secret_words`` by the words near them, and ``secret_locks`` the codes of locks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from memchat.language import secret_locks, secret_shapes, secret_words
from memchat.language.text import UNSPACED, Folded, fold

PERSONAL = frozenset({"e-mail", "phone"})
"""Kinds that are remembered if the user asks for it. The others are refused even then."""


_WINDOW = 128_000
MARGIN = 4_000
"""Characters: a long text is searched in windows, each with this much before and after it, so that
it takes little memory. The longest secrets, key files, are shorter than the margin."""
_LONG = 32_000
"""Characters from which on the secrets of only a few texts are cached."""
_ASKED = 80
_ANSWER = 60
_BARE = 3
"""The most words of an answer to a message that was no question."""
_PAIR = 4
"""The most characters of two words that are too short to reveal a secret."""
_SIGNED = re.compile(r"(?=[^\s\"'()]{0,60}[!@#$%&*_+=^~?<>|\\])[^\s\"'()]{4,60}")
"""Letters with a sign among them or behind them, as only a password has them."""


@dataclass(frozen=True, slots=True)
class Secret:
    """The kind and place of one secret in a text. It does not hold the secret itself."""

    kind: str
    start: int
    end: int


def find_secrets(text: str) -> list[Secret]:
    """The secrets of a text in order, none overlapping another."""
    return list(_found(text) if len(text) <= _LONG else _found_in_long(text))


def find_in_document(text: str) -> list[Secret]:
    """The same for a text of any length, which is not cached."""
    found: list[Secret] = []
    for start in range(0, len(text), _WINDOW):
        at = max(0, start - MARGIN)
        piece = text[at : start + _WINDOW + MARGIN]
        for one in _search(piece, fold.__wrapped__(piece)):
            found.append(Secret(one.kind, one.start + at, one.end + at))
    return _apart(found)


@lru_cache(maxsize=512)
def _found(text: str) -> tuple[Secret, ...]:
    """The same, cached: each proposal from a conversation asks about all of its messages."""
    return tuple(_search(text, fold(text)))


@lru_cache(maxsize=32)
def _found_in_long(text: str) -> tuple[Secret, ...]:
    return tuple(find_in_document(text))


def _search(text: str, folded: Folded) -> list[Secret]:
    """The one pass: each spot of a text where something may be is found once."""
    everywhere = {"": [(0, len(text))]}
    found = [
        Secret(*one) for one in secret_shapes.find_forms(secret_shapes.IN_TEXT, text, everywhere)
    ]
    plain = folded.text
    near = {"": [(0, len(plain))]}
    shaped = secret_shapes.find_forms(secret_shapes.IN_FOLDED, plain, near)
    cues = secret_words.find_cues(plain)
    places = [*secret_words.find(plain, near, cues)]
    for place in secret_locks.find(plain, near["figure"], cues):
        if not secret_words.is_harmless(plain, place[0], *place):
            places.append(place)
    told = (("password", *place) for place in places)
    for kind, start, end in (*told, *shaped):
        found.append(Secret(kind, folded.offsets[start], folded.ends[end - 1]))
    return _apart(found)


def _apart(found: Sequence[Secret]) -> list[Secret]:
    """Secrets in order; those that overlap are one."""
    out: list[Secret] = []
    for secret in sorted(found, key=lambda s: (s.start, -s.end)):
        if not out or secret.start >= out[-1].end:
            out.append(secret)
        elif secret.end > out[-1].end:
            out[-1] = replace(out[-1], end=secret.end)
    return out


def find_in_fact(key: str, value: str) -> Iterator[tuple[str, Secret]]:
    """The secrets in the value of a fact and under its key, each with its words.

    Key and value are joined by "=" and not by a colon: "locker: 1120" in a note is a code, but the
    number of a locker in a fact need not be one.
    """
    for text in (value, f"{key.replace('_', ' ')} = {value}"):
        yield from ((text[s.start : s.end], s) for s in find_secrets(text))


def find_answered(question: str, text: str) -> list[Secret]:
    """The secrets in the answer to a question: after "And the PIN?" the text "4821" is one."""
    asked = question.rstrip()[-_ASKED:].rstrip("?？؟.… ") + ": "
    put = question.rstrip().endswith(("?", "？", "؟", ":", "：")) or len(text.split()) <= _BARE
    if len(text) > _ANSWER or not put:
        return []
    shift = len(asked)
    found = (s for s in find_secrets(asked + text) if s.start >= shift)
    answers = [replace(s, start=s.start - shift, end=s.end - shift) for s in found]
    # An address or phone number that is one by itself is no answer to the question.
    told = [s for s in find_secrets(text) if s.kind in PERSONAL]
    return [a for a in answers if not any(s.start < a.end and a.start < s.end for s in told)]


def find_in_conversation(texts: Sequence[str]) -> Iterator[tuple[int, Secret]]:
    """The secrets of a conversation, each with the index of its message."""
    before = ""
    for number, text in enumerate(texts):
        for secret in (*find_secrets(text), *find_answered(before, text)):
            yield number, secret
        before = text


def reveals(words: str, secret: str) -> bool:
    """Whether words hold a secret or a revealing part of it: its digits, a long word, two of its
    words in a row, or letters with a sign."""
    hidden, shown = " ".join(_pieces(secret)), " ".join(_pieces(words))
    if len(hidden) > 1 and (
        hidden in shown if UNSPACED.match(hidden) else f" {hidden} " in f" {shown} "
    ):
        return True
    pieces = _pieces(words)
    telling = [p for p in (*pieces, *_pieces(secret)) if len(p) > 1 + 4 * p.isalpha()]
    if any(piece in hidden and piece in shown for piece in telling):
        return True
    whole = fold(secret).text
    if any(token in whole for token in _SIGNED.findall(fold(words).text)):
        return True
    pairs = (f"{a} {b}" for a, b in pairwise(pieces))
    return any(len(pair) > _PAIR and pair in hidden for pair in pairs)


@lru_cache(maxsize=16384)
def _pieces(text: str) -> tuple[str, ...]:
    return tuple(re.findall(rf"(?:[^\W_]|[{secret_words.MARKS}])+", fold(text).text))


def mask(text: str, question: str = "") -> str:
    """The text with each secret replaced by its kind in brackets; ``question`` is what it answers,
    if anything."""
    out, at = [], 0
    for secret in _apart([*find_secrets(text), *find_answered(question, text)]):
        out.append(f"{text[at : secret.start]}[{secret.kind}]")
        at = secret.end
    return "".join(out) + text[at:]


def mask_part(text: str, start: int, end: int) -> str:
    """A part of a text with each secret replaced by its kind in brackets. The text around it is
    read as well: it may tell that something is a secret, or have the beginning of a long one."""
    before = max(start - MARGIN, 0)
    out, at = [], start
    for secret in find_secrets(text[before : end + MARGIN]):
        first, last = before + secret.start, before + secret.end
        if last > start and first < end:
            out.append(f"{text[at : max(first, at)]}[{secret.kind}]")
            at = min(last, end)
    return "".join(out) + text[at:end]
