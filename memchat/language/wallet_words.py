"""The recovery words of a wallet: a dozen or two of the 2,048 words of BIP-39 in a row.

The list itself is not included. ``wallet_words.txt`` holds a Bloom filter of it, made by
``tools/wallet_words.py``: it accepts every listed word, and one in fifty of all others.

Shopping lists hold many of these words too. They are told apart by ``everyday_things.txt``: of
random wallet words few are things of the kitchen, the house or the farm.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files

BITS = 16_384
_HASHES = 5
_FEWEST = 12
_LISTED = 0.85
_LISTED_UNPARTED = 0.65
"""The share of listed words in a run. It is below 1 because of typing mistakes and of other
wallets' lists. Lists of other things have commas, so words without commas need a smaller share."""
_EVERYDAY = 0.5
"""The share of everyday things from which a run is a list of them."""
_SPOKEN = 0.15
"""The share of common words from which a run is a sentence, if it holds an unlisted word. Few
sentences consist of listed words alone."""
_OF_SENTENCES = (
    "about after all and another any are because been before can could for from have her his how"
    " into its just like more much not off our out over than that the their them then there these"
    " they this too until was what when where which who why will with without would you your"
    " also but else had has here very some such only other"
)
_SENTENCE_WORDS = frozenset(_OF_SENTENCES.split())
_WORD = re.compile(r"[^\W\d_]+")
_GAP = re.compile(r"(?=[^\s,;]*[\s,;])[\s,.;:)#-]*(?:\d{1,2}[\s.):-]*)?")
_LENGTHS = range(3, 9)


def places(word: str) -> tuple[int, ...]:
    """The bits of the filter that stand for a word."""
    digest = hashlib.sha256(word.encode()).digest()
    return tuple(int.from_bytes(digest[2 * n : 2 * n + 2]) % BITS for n in range(_HASHES))


@lru_cache(maxsize=16_384)
def is_listed(word: str) -> bool:
    """Whether a word is listed, or one of the few others that the filter accepts."""
    bits = _filter()
    return all(bits[at // 8] >> at % 8 & 1 for at in places(word))


def find(text: str) -> Iterator[tuple[int, int]]:
    """The places of wallet words in a folded text."""
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(text):
        if run and not _GAP.fullmatch(text, run[-1].end(), word.start()):
            yield from _wallet(run)
            run = []
        if len(word[0]) in _LENGTHS and word[0].isascii():
            run.append(word)
        else:
            yield from _wallet(run)
            run = []
    yield from _wallet(run)


def _wallet(run: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """The part of a run that begins and ends with a listed word, if it is the words of a wallet."""
    if len(run) < _FEWEST:
        return
    listed = [is_listed(word[0]) for word in run]
    start = 0
    while start <= len(run) - _FEWEST:
        end = start + _FEWEST
        between = run[start].string[run[start].end() : run[end - 1].start()]
        share = _LISTED if "," in between else _LISTED_UNPARTED
        if not listed[start] or sum(listed[start:end]) < share * _FEWEST:
            start += 1
            continue
        while end < len(run) and listed[end]:
            end += 1
        words = [word[0] for word in run[start:end]]
        spoken = not all(listed[start:end]) and _is_a_sentence(words)
        if not (spoken or _is_a_list_of_things(words)):
            yield run[start].start(), run[end - 1].end()
        start = end


def _is_a_list_of_things(words: list[str]) -> bool:
    named = sum(word in _things() or word.removesuffix("s") in _things() for word in words)
    return named >= _EVERYDAY * len(words)


def _is_a_sentence(words: list[str]) -> bool:
    return sum(word in _SENTENCE_WORDS for word in words) >= _SPOKEN * len(words)


@cache
def _things() -> frozenset[str]:
    path = files("memchat.language") / "secret_data" / "everyday_things.txt"
    return frozenset(path.read_text(encoding="ascii").split())


@cache
def _filter() -> bytes:
    path = files("memchat.language") / "secret_data" / "wallet_words.txt"
    return base64.b64decode(path.read_text(encoding="ascii"))
