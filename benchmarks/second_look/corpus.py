"""Conversations with honest and wrong proposals, as the files under tests/data hold them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.desk import PLAIN_REPLY
from memchat.errors import ConfigError

DATA = Path(__file__).parents[2] / "tests" / "data"
SEED = 12
KIND_LIMIT = 25


@dataclass(frozen=True, slots=True)
class Proposal:
    """One fact as an extraction model would answer it; ``to`` is the file's id of a known fact."""

    fact: Mapping[str, Any]
    honest: bool
    kind: str
    """What is wrong with it, or ``honest``."""

    @property
    def is_change(self) -> bool:
        """Whether it changes or ends a known fact."""
        return self.fact["is"] in ("updates", "ends")

    @property
    def must_wait(self) -> bool:
        """Whether it is of the kind that waits for a person whatever a model says."""
        return "sensitive" in (self.fact.get("flags") or ())


@dataclass(frozen=True, slots=True)
class Line:
    """One conversation, what is known before it, and all proposals in one shuffled order."""

    id: str
    turns: Sequence[Mapping[str, str]]
    known: Sequence[Mapping[str, Any]]
    proposals: Sequence[Proposal]


def read(path: Path, wrong: Path | None = None, seed: int = SEED) -> list[Line]:
    """The lines of a file of either shape; ``wrong`` holds the wrong proposals to everyday lines.

    Raises ConfigError for a file that cannot be read.
    """
    rows, extra = _lines(path), _lines(wrong) if wrong is not None else []
    made = []
    for row in rows:
        more = [one for one in extra if one["id"] == row["id"]]
        found = _everyday(row, more) if "facts" in row else _session(row)
        mixed = list(found.proposals)
        random.Random(f"{seed} {found.id}").shuffle(mixed)
        made.append(Line(found.id, found.turns, found.known, mixed))
    return made


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path.name} cannot be read: {error}") from error


def _everyday(row: Mapping[str, Any], wrong: Iterable[Mapping[str, Any]]) -> Line:
    """Messages of the user alone; a quote is a message's number from 1 and its words."""
    spoken = [{"id": str(n), "role": "user", "text": t} for n, t in enumerate(row["turns"], 1)]
    turns, ids = _as_played(spoken)
    proposals = [_proposal(fact, ids, "honest") for fact in row["facts"]]
    proposals += [_proposal(one["fact"], ids, _kind(one["why"])) for one in wrong]
    return Line(row["id"], turns, row["known"], proposals)


def _session(row: Mapping[str, Any]) -> Line:
    turns, ids = _as_played(row["turns"])
    wrong = row["wrong"] if isinstance(row["wrong"], list) else [row["wrong"]]
    proposals = [_proposal(fact, ids, "honest") for fact in row["right"]]
    proposals += [_proposal(fact, ids, row["kind"]) for fact in wrong]
    return Line(row["id"], turns, row.get("known", ()), proposals)


def _as_played(
    turns: Sequence[Mapping[str, str]],
) -> tuple[list[Mapping[str, str]], dict[str, str]]:
    """The turns with a reply after each message, and their new ids by those of the file."""
    played: list[Mapping[str, str]] = []
    ids = {}
    for turn in turns:
        if played and played[-1]["role"] == turn["role"] == "user":
            played.append({"role": "assistant", "text": PLAIN_REPLY})
        played.append(turn)
        ids[turn["id"]] = f"{turn['role'][0]}{len(played)}"
    return played, ids


def _proposal(fact: Mapping[str, Any], ids: Mapping[str, str], kind: str) -> Proposal:
    quotes = [_quote(quote, ids) for quote in fact["quotes"]]
    return Proposal({**fact, "quotes": quotes}, kind == "honest", kind)


def _quote(quote: Any, ids: Mapping[str, str]) -> dict[str, str]:
    msg, text = (quote["msg"], quote["text"]) if isinstance(quote, dict) else map(str, quote)
    return {"msg": ids[msg], "text": text}


def _kind(why: str) -> str:
    kind = why.partition(":")[0].strip()
    return kind.replace(" ", "_") if len(kind) <= KIND_LIMIT else "other"
