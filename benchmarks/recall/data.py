"""The two data sets, as read from a folder that is no part of the project."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

CATEGORIES = {4: "single", 1: "multi", 2: "temporal", 3: "open"}
_ID = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: its id in the data set, its text with the speaker in front."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Observed:
    """A fact that somebody else drew, and the turns it was drawn from."""

    about: str
    text: str
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Talk:
    """One session."""

    at: datetime
    turns: tuple[Turn, ...]
    observed: tuple[Observed, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its category, the ids that answer it, and the expected answer."""

    text: str
    category: str
    evidence: frozenset[str]
    answer: str


@dataclass(frozen=True, slots=True)
class Person:
    """One long conversation of many sessions, and what is asked about it."""

    name: str
    talks: tuple[Talk, ...]
    asked: tuple[Asked, ...]


def people(folder: Path, *, corrected: bool = False) -> list[Person]:
    """LoCoMo: categories 1 to 4, questions with evidence. Two people talk, and each turn names who
    speaks; so the user, whose conversations these are, is but a letter.

    ``corrected`` replaces wrong evidence by that of ``locomo_dev_corrections.json``, where it is
    there.
    """
    raw = json.loads((folder / "locomo_dev.json").read_text("utf-8"))
    if corrected:
        _correct(raw, folder / "locomo_dev_corrections.json")
    return [_person(one, chr(ord("a") + number)) for number, one in enumerate(raw)]


def paragraphs(folder: Path) -> tuple[list[str], list[tuple[str, int]]]:
    """XQuAD: the paragraphs, and each question with the number of its paragraph."""
    raw = json.loads((folder / "xquad_en.json").read_text("utf-8"))
    texts, asked = [], []
    for article in raw["data"]:
        for paragraph in article["paragraphs"]:
            asked += [(qa["question"], len(texts)) for qa in paragraph["qas"]]
            texts.append(paragraph["context"])
    return texts, asked


def _correct(raw: list[dict[str, Any]], path: Path) -> None:
    if not path.is_file():
        return
    asked = {one["sample_id"]: one["qa"] for one in raw}
    for fault in json.loads(path.read_text("utf-8")):
        if fault["correct_evidence"]:
            asked[fault["sample_id"]][fault["qa_index"]]["evidence"] = fault["correct_evidence"]


def _person(raw: dict[str, Any], name: str) -> Person:
    talk = raw["conversation"]
    numbers = sorted(
        int(key.removeprefix("session_"))
        for key, turns in talk.items()
        if re.fullmatch(r"session_\d+", key) and turns
    )
    talks = [_talk(raw, number) for number in numbers]
    there = {turn.id for one in talks for turn in one.turns}
    asked = [
        Asked(qa["question"], CATEGORIES[qa["category"]], evidence, str(qa["answer"]))
        for qa in raw["qa"]
        if qa["category"] in CATEGORIES and (evidence := frozenset(_ids(qa["evidence"])) & there)
    ]
    return Person(name, tuple(talks), tuple(asked))


def _talk(raw: dict[str, Any], number: int) -> Talk:
    said_at = raw["conversation"][f"session_{number}_date_time"]
    turns = []
    for turn in raw["conversation"][f"session_{number}"]:
        photo = f" [shares a photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
        turns.append(Turn(turn["dia_id"], f"{turn['speaker']}: {turn['text']}{photo}"))
    observed = [
        Observed(about, text, tuple(_ids(source)))
        for about, facts in raw["observation"].get(f"session_{number}_observation", {}).items()
        for text, source in facts
    ]
    summary = raw["session_summary"].get(f"session_{number}_summary", "")
    at = datetime.strptime(said_at, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    return Talk(at, tuple(turns), tuple(observed), summary)


def _ids(source: str | list[str]) -> list[str]:
    parts = [source] if isinstance(source, str) else source
    return [f"D{int(a)}:{int(b)}" for part in parts for a, b in _ID.findall(part)]
