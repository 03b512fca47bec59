"""Secrets that only their meaning gives away, and harmless words that look like them.

    python -m benchmarks.lifecycle.meaning [--file FILE] [--list]
        [--model M | --answers FILE | --ask FOLDER] [--record FILE]

Each conversation is held in a store of its own and read by an extraction model and a second look:
the recorded answers, unless told otherwise. ``--ask`` plays what readers answered in FOLDER so far,
and writes a file for each call that has no answer yet, those of the second look once the extraction
is answered. A reader sees only FOLDER/PURPOSE/ask/NAME.json, and writes FOLDER/PURPOSE/answer/
NAME.txt; PURPOSE is extract or verify. Ends with 1 where a goal is missed, 3 where calls wait.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import answers as recorded
from benchmarks.answers import Answers
from benchmarks.desk import USER, Desk, at_desk
from benchmarks.lifecycle.figure import Figure
from benchmarks.lifecycle.secrets import places, stored_texts
from benchmarks.second_look.judges import ByHand
from memchat.chat import Chat
from memchat.db.database import FILE
from memchat.errors import MemChatError, ProviderError
from memchat.language.secrets import mask
from memchat.providers import ChatStream, Completion
from memchat.providers.embedders import HashEmbedder
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Usage

_DATA = Path(__file__).parents[2] / "tests" / "data"
CORPUS = _DATA / "secrets_meaning_3.jsonl"
RECORDED = _DATA / "secrets_meaning_3_answers.jsonl"
STORED, DESCRIBED, HELD = 3, 3, 1
"""The most secrets in facts and elsewhere, those in titles and summaries, and the most harmless
conversations of which something is held back."""
_AT = datetime(2026, 11, 23, 10, tzinfo=UTC)
_MASK = re.compile(r"\[(?:password|key|card|bank account|phone|e-mail|id number)\]")
_HOLDS = re.compile(r"(?<!whether )it holds")
_CALLED_SECRET = re.compile(r'"answer"\s*:\s*"secret"')


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one conversation."""

    row: dict[str, Any]
    places: tuple[str, ...]
    """Where its secret can be read, the transcript apart."""
    held: bool
    """Whether something of it was taken for a secret."""
    kept: int
    """Facts that it taught."""
    unmasked: bool
    """Whether the secret can be read in a note of the same words; of harmless words, whether code
    masks any."""
    failed: bool

    def stored_in(self, *kinds: str) -> bool:
        """Whether the secret stands in a place of these kinds."""
        return any(place.startswith(kinds) for place in self.places)


class Readers:
    """A ``ChatModel`` whose answers are written by hand, those of each purpose in a folder."""

    name, stand_in, window, schema_mode, tools = "readers, by hand", False, 128_000, True, False

    def __init__(self, folder: Path) -> None:
        self.answers = Answers(self)
        self.hands = {name: ByHand(folder / name, asks=True) for name in ("extract", "verify")}

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> ChatStream:
        """Not asked for: this model only reads."""
        raise NotImplementedError

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """What was written. Raises ProviderError where nothing was."""
        hand = self.hands["verify" if purpose == "verify" else "extract"]
        text = hand.answer(self.answers.case, messages, schema)
        if text is None:
            raise ProviderError("no reader has answered yet")
        sent = sum(estimate_tokens(message.content) for message in messages)
        return Completion(text, Usage(purpose, self.name, sent, estimate_tokens(text), None, 0.0))


def corpus(path: Path = CORPUS) -> list[dict[str, Any]]:
    """The conversations: ``turns``, and ``secret`` in parts, which are joined and put in the place
    of "{}", or null where there is none."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [{**row, **_whole(row)} for row in rows]


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    secret = "".join(row["secret"]) if row["secret"] else None
    said = ({**turn, "text": turn["text"].replace("{}", secret or "{}")} for turn in row["turns"])
    return {"secret": secret, "turns": list(said)}


def run(rows: Sequence[dict[str, Any]], answers: Answers) -> list[Told]:
    """Hold each conversation in a store of its own."""
    done = []
    for row in rows:

        def use(desk: Desk, row: dict[str, Any] = row) -> None:
            done.append(_told(desk, row))

        at_desk(answers, _AT, "Europe/Berlin", HashEmbedder(), use)
    return done


def _told(desk: Desk, row: dict[str, Any]) -> Told:
    chat = desk.hold(row["id"], row["turns"])
    own = "\n".join(turn["text"] for turn in row["turns"] if turn["role"] == "user")
    desk.chat.requests.clear()
    desk.chat.replies.append("Fine.")
    memories = desk.mc.user(USER).memories.list()
    held = any(_HOLDS.search(why) for why in _reasons(desk, chat)) or any(
        _CALLED_SECRET.search(said) for said in desk.answers.said(row["id"], "verify")
    )
    learned = chat.learned
    described = f"{learned.title} {learned.summary}" if learned else ""
    texts = [*stored_texts(desk.mc.settings.home / FILE)]
    # Asked in other words: a turn that asks the same is not shown again.
    desk.mc.user(USER).answer(f"{own.replace(row['secret'] or own, '')} And now?")
    texts += [("prompt", request.messages[0].content) for request in desk.chat.requests]
    noted = mask(own)
    return Told(
        row,
        places(row["secret"], texts) if row["secret"] else (),
        held or _MASK.search(described) is not None,
        len(memories),
        bool(places(row["secret"], [("note", noted)])) if row["secret"] else noted != own,
        chat.failure is not None,
    )


def _reasons(desk: Desk, chat: Chat) -> Iterator[str]:
    yield from (change.reason or "" for change in (chat.learned.changes if chat.learned else ()))
    inbox = desk.mc.user(USER).inbox
    yield from (one.reason or "" for one in (*inbox.list(), *inbox.refusals()))


def figures(told: Sequence[Told], by: str) -> list[Figure]:
    """The figures of the table."""
    secret = [one for one in told if one.row["secret"]]
    harmless = [one for one in told if not one.row["secret"]]
    described = [one for one in secret if one.stored_in("sessions")]
    again = [one for one in secret if one.stored_in("prompt:")]
    stored = [
        one for one in secret if any(not p.startswith(("sessions", "prompt")) for p in one.places)
    ]
    held = [one for one in harmless if one.held]
    failed = sum(one.failed for one in told)
    unmasked = [one for one in secret if one.unmasked]
    masked = sum(one.unmasked for one in harmless)

    def figure(
        name: str, seen: Sequence[Told], of: Sequence[Told], most: int | None, note: str
    ) -> Figure:
        goal = "the number" if most is None else f"<= {most}"
        met = None if most is None else len(seen) <= most and not failed
        return Figure(name, f"{len(seen)} of {len(of)}", goal, met, by, note=note)

    kept = sum(one.kept > 0 for one in harmless)
    return [
        figure(
            "secrets by their meaning stored", stored, secret, STORED,
            f"{_langs(stored)}; {failed} of {len(told)} conversations not read",
        ),
        figure("such secrets in titles and summaries", described, secret, DESCRIBED,
               _langs(described)),
        figure("such secrets in a later prompt, from the transcript", again, secret, None,
               _langs(again)),
        figure("look-alikes taken for such a secret", held, harmless, HELD,
               f"{_langs(held)}; {kept} of {len(harmless)} taught a fact"),
        figure("such secrets unmasked in notes", unmasked, secret, None,
               f"{_langs(unmasked)}; code alone; of {len(harmless)} look-alikes {masked} masked"),
    ]  # fmt: skip


def _langs(told: Sequence[Told]) -> str:
    counts = Counter(one.row["lang"] for one in told)
    return ", ".join(f"{lang} {count}" for lang, count in sorted(counts.items())) or "none"


def measure() -> list[Figure]:
    """The figures with the recorded answers."""
    answers = Answers(None, RECORDED)
    return figures(run(corpus(), answers), answers.by)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    from benchmarks.lifecycle import table

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--file", type=Path, default=CORPUS, help="other conversations")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--model", help="a litellm model, asked now")
    who.add_argument("--answers", type=Path, default=RECORDED, help="what --record wrote")
    who.add_argument("--ask", type=Path, metavar="FOLDER", help="answers written by hand")
    parser.add_argument("--record", type=Path, help="write what was answered to this file")
    parser.add_argument("--list", action="store_true", help="name each that is not as wished")
    args = parser.parse_args(argv)
    readers = Readers(args.ask) if args.ask else None
    try:
        if readers is not None:
            answers = readers.answers
        else:
            answers = recorded.named(args.model) if args.model else Answers(None, args.answers)
        told = run(corpus(args.file), answers)
        if args.record:
            answers.save(args.record)
    except MemChatError as error:
        print(error, file=sys.stderr)
        return 2
    hands = readers.hands.values() if readers is not None else ()
    if any(hand.written for hand in hands):
        for hand in hands:
            print(f"{hand.written} calls were written to {hand.folder / 'ask'}")
        return 3
    for one in told if args.list else ():
        wrong = (one.places or one.unmasked) if one.row["secret"] else one.held or one.unmasked
        if wrong:
            print(one.row["id"], one.row["lang"], one.row.get("kind"), one.places, one.unmasked)
    seen = figures(told, answers.by)
    print(table.as_text(seen))
    return 1 if table.is_missed(seen) else 0


if __name__ == "__main__":
    sys.exit(main())
