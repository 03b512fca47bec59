"""The same texts, vectors and questions for everybody, made from a seed and kept in files.

Texts are words of a Zipf vocabulary with English stop words as its most frequent ones. Vectors are
synthetic too: topics of uneven size, within a topic variation along 32 directions and a fifth of
noise along all, so that most of the variance lies in few directions, as with real embeddings. A
question is some words of one text among stop words, and that text's vector moved by noise.

Memories belong to users, and each question asks for one user's. Notes all belong to one user and
have a type; where there is more than one type, each question asks for notes of one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

QUESTIONS = 400
EXTRA = 200
"""Rows that are not loaded: they are added one by one."""
_DIRECTIONS = 32
_TOPICS = 300
_VOCABULARY = 20_000
_BLOCK = 50_000
_COMMON = """
    the a to of and in is it that i you was for on my with as at be this have from or but not they
    we are an by what do had were can there about so if when your
"""
_STOP_WORDS = _COMMON.split()
_FRAMES = (
    "what did i tell you about {} and the {} of my {} with {}",
    "do you know if i was at the {} when we had {} and {} from {}",
    "where is the {} that my {} is about and what was it with the {} of {}",
    "which {} do i have for the {} and how is my {} on {}",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What the rows are: the length of their vectors and of their texts, in words."""

    name: str
    dimensions: int
    words: int
    groups: str
    """What the rows are divided into."""


MEMORIES = Kind("memories", 384, 12, "users")
NOTES = Kind("notes", 1536, 100, "types")


@dataclass(frozen=True, slots=True)
class Size:
    """So many memories of so many users, or so many notes of so many types."""

    rows: int
    users: int

    @classmethod
    def of(cls, text: str) -> Size:
        """``150k/100``, ``1M/10k`` or plain numbers."""
        rows, _, users = text.partition("/")
        return cls(_number(rows), _number(users or "1"))

    def __str__(self) -> str:
        return f"{_short(self.rows)}/{_short(self.users)}"


def make(folder: Path, size: Size, seed: int, kind: Kind = MEMORIES) -> Path:
    """Write the data of a size below ``folder``, where it is not there yet; its own folder."""
    place = folder / f"{kind.name}-{size.rows}-{size.users}-{seed}"
    if (place / "done").exists():
        return place
    place.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    every = size.rows + EXTRA
    users = random.integers(0, size.users, every)
    users[: size.users] = np.arange(min(size.users, every))  # nobody is without a memory
    _write_vectors(place / "vectors.npy", every, kind.dimensions, random)
    asked = random.integers(0, size.rows, QUESTIONS)
    words = _write_texts(place, size.rows, kind.words, set(asked.tolist()), random)
    vectors = np.load(place / "vectors.npy", mmap_mode="r")
    near = vectors[asked] + 0.6 * _noise(QUESTIONS, kind.dimensions, random)
    np.savez(
        place / "rest.npz",
        users=users,
        asked=asked,
        filtered=kind is MEMORIES or size.users > 1,
        questions=(near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32),
    )
    texts = [_question(words[i], n, random) for n, i in enumerate(asked.tolist())]
    (place / "questions.json").write_text(json.dumps(texts))
    (place / "done").touch()
    return place


def _noise(count: int, dimensions: int, random: np.random.Generator) -> Vectors:
    noise = random.standard_normal((count, dimensions), np.float32)
    return noise / np.linalg.norm(noise, axis=1, keepdims=True)


def _write_vectors(path: Path, count: int, dimensions: int, random: np.random.Generator) -> None:
    centres = _noise(_TOPICS, dimensions, random)
    directions = np.linalg.qr(random.standard_normal((dimensions, _DIRECTIONS)))[0].T
    shares = 1 / np.arange(1, _TOPICS + 1)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (count, dimensions))
    for start in range(0, count, _BLOCK):
        rows = min(_BLOCK, count - start)
        topics = random.choice(_TOPICS, rows, p=shares / shares.sum())
        along = random.standard_normal((rows, _DIRECTIONS), np.float32) / _DIRECTIONS**0.5
        block = centres[topics] + along @ directions.astype(np.float32)
        block += 0.2 * _noise(rows, dimensions, random)
        out[start : start + rows] = block / np.linalg.norm(block, axis=1, keepdims=True)
    out.flush()


def _write_texts(
    place: Path, count: int, length: int, asked: set[int], random: np.random.Generator
) -> dict[int, list[str]]:
    """``length`` words a text, those to be added later in a file of their own; the words asked
    for."""
    vocabulary = [*_STOP_WORDS, *(_word(n) for n in range(_VOCABULARY - len(_STOP_WORDS)))]
    shares = 1 / np.arange(1, _VOCABULARY + 1)
    shares /= shares.sum()
    kept: dict[int, list[str]] = {}
    with (place / "texts.txt").open("w") as loaded, (place / "extra.txt").open("w") as extra:
        for start in range(0, count + EXTRA, _BLOCK):
            rows = min(_BLOCK, count + EXTRA - start)
            chosen = random.choice(_VOCABULARY, (rows, length), p=shares).tolist()
            for n, row in enumerate(chosen, start):
                words = [vocabulary[w] for w in row]
                print(*words, file=loaded if n < count else extra)
                if n in asked:
                    kept[n] = words
    return kept


def _word(n: int) -> str:
    """A word of its own for each number: syllables, none of them an English stop word."""
    syllables = []
    for _ in range(3):
        n, at = divmod(n, 80)
        syllables.append("bdfgklmnprstvzjh"[at // 5] + "aeiou"[at % 5])
    return "".join(syllables) + "x"


def _question(words: list[str], n: int, random: np.random.Generator) -> str:
    telling = [word for word in words if word not in _STOP_WORDS] or ["nothing"]
    chosen = random.choice(telling, 4, replace=len(telling) < 4)
    return _FRAMES[n % len(_FRAMES)].format(*chosen)


def _number(text: str) -> int:
    for letter, times in (("k", 1_000), ("M", 1_000_000)):
        if text.endswith(letter):
            return int(text[:-1]) * times
    return int(text)


def _short(number: int) -> str:
    for letter, times in (("M", 1_000_000), ("k", 1_000)):
        if number >= times and number % times == 0:
            return f"{number // times}{letter}"
    return str(number)
