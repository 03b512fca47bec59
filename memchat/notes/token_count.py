"""How many tokens a text has for an embedding model: counted by the model's own tokenizer where it
is on this machine, else an upper bound."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, runtime_checkable

CountTokens = Callable[[str], int]
"""The tokens of a text, a model's special tokens included."""

_FREQUENT_WORDS = (
    "a about after again all also always an and another any are as at back be because been before"
    " being both but by call called can come could day did do does down each even every few find"
    " first for from get give go good great had has have he help her here his how if in into is it"
    " its just know last life like line little long made make many may me mean more most much my"
    " name never new next no not now number of off on one only or other our out over part people"
    " place right same say see set should so some still take tell than that the their them then"
    " there these they thing think this those through time to too two under up us very was way we"
    " well were what when where which while who will with without work would year you your i"
)
_FREQUENT = frozenset(_FREQUENT_WORDS.split())
"""English words that every tokenizer trained on English has whole."""
_PAIRS = {
    "a": "abcdefghijklmnopqrstuvwxyz", "b": "abcefhilmnorstuy", "c": "abcdehiklmoprstuyz",
    "d": "abcdefhilmoprstuy", "e": "abcdefghijklmnoprstuvwxyz", "f": "abcefiklmoprstuy",
    "g": "abcefghilmnoprstuy", "h": "acdeghilmnoprstuy", "i": "abcdefghijklmnopqrstuvxyz",
    "j": "aeikmnosu", "k": "aehikmorstuy", "l": "abcdefiklmnoprstuyz", "m": "abcdegilmopstuxy",
    "n": "abcdeghiklnoprstuxyz", "o": "abcdefghijklmnoprstuvwxyz", "p": "acdefghilmoprstuwy",
    "q": "aiu", "r": "abcdefghiklmnoprstuyz", "s": "abcdefghiklmoprstuwyz",
    "t": "acefhilmoprstuvyz", "u": "abcdefghijklmnoprstwxyz", "v": "abcdeinorsuy",
    "w": "acdegiklnorstuy", "x": "aitxy", "y": "adeiklmnoprstux", "z": "adehiouyz",
}  # fmt: skip
"""The letters that may follow a letter where both vocabularies have the two as one piece."""
_FUSED = "|".join(f"{first}(?=[{rest}])" for first, rest in _PAIRS.items())
_SMOOTH = re.compile(f"[A-Z]?(?:{_FUSED})*[a-z]")
"""A word of such pairs alone: at most two pieces for three letters, the capital aside."""
_WORD = re.compile("[A-Za-z]+")
_SINGLE = re.compile(r"[0-9!-/:-@\[-`{-~\x00-\x1f\x7f]| (?![!-/:-@A-Z\[-`a-z{-~])")
"""Digits, punctuation, control characters, and the spaces that are no part of what follows."""
_TWO_BYTES_ONE_TOKEN = re.compile("[\u0430-\u044f\u0627-\u063a\u0641-\u064a]")
"""Small Cyrillic and most Arabic letters."""
_THREE_BYTES_TWO_TOKENS = re.compile(
    "[\u0900-\u097f\u0e00-\u0e7f\u2010-\u202f\u3000-\u30ff\uff00-\uff5f]"
)
"""Devanagari, Thai, kana and common punctuation."""


@runtime_checkable
class CountsTokens(Protocol):
    """An embedder whose own tokenizer is on this machine."""

    def count_tokens(self, text: str) -> int:
        """The tokens of a text as the model reads it, special tokens included."""
        ...


def token_counter(embedder: object) -> CountTokens:
    """The embedder's own count where it has one, else ``most_tokens``."""
    return embedder.count_tokens if isinstance(embedder, CountsTokens) else most_tokens


def most_tokens(text: str) -> int:
    """As many tokens as a text can have at most.

    It is checked against OpenAI's cl100k_base and the tokenizer of MiniLM; for English it is about
    twice what they count. A character outside ASCII counts as its bytes in UTF-8, the finest that
    byte-level tokenizers cut, unless its script is known to need less.
    """
    count = sum(map(_word_tokens, _WORD.findall(text))) + len(_SINGLE.findall(text))
    if text.isascii():
        return count
    beyond = re.sub("[\0-\x7f]+", "", text)
    saved = len(_TWO_BYTES_ONE_TOKEN.findall(beyond)) + len(_THREE_BYTES_TWO_TOKENS.findall(beyond))
    return count + len(beyond.encode("utf-8", "surrogatepass")) - saved


@lru_cache(maxsize=65_536)
def _word_tokens(word: str) -> int:
    if word[1:].islower() or len(word) == 1:
        if word.lower() in _FREQUENT:
            return 1
        if _SMOOTH.fullmatch(word):
            return (2 * len(word) + 2) // 3
    return len(word)
