"""Secrets: an extractor that proposes each one whole, in two halves, as a key and as a title.

Counted over every table but the person's own transcript (its messages and their word index), over
the prompts of later conversations and over the log. The second look says of everything that it
holds; only what is letters alone, which code leaves to the look, is judged as a blind reader did
(``secrets_looks.jsonl``).
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.lifecycle.figure import Figure
from benchmarks.names import by_id
from memchat import MemChat
from memchat.config import Settings
from memchat.db.database import FILE
from memchat.language.text import UNSPACED, normal_value
from memchat.providers.embedders import HashEmbedder
from memchat.testing import FakeClock, ScriptedModel
from tests.support import empty_store

_DATA = Path(__file__).parents[2] / "tests" / "data"
CORPUS = _DATA / "secrets_corpus.jsonl"
DEVELOPED_ON = _DATA / "secrets_dev.jsonl"
HELD_OUT = _DATA / "secrets_heldout.jsonl"
LOOKS = _DATA / "secrets_looks.jsonl"
"""A reader's second looks, by the words of the line: ``text`` and ``answer``."""
STORED = 0.05
"""Of lines that the rules were not made for; of the project's own none may be stored."""
FALSE_ALARMS = 0.02
_TELLING = 4
"""Characters of a half that give a secret away."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one line of the corpus."""

    row: dict[str, Any]
    places: tuple[str, ...]
    """Where the secret can be read; empty where it is nowhere."""
    alarmed: bool
    """Whether the words were taken for a secret."""

    @property
    def harmless(self) -> bool:
        """Whether the line holds no secret."""
        return bool(self.row["kind"] == "harmless")


def corpus(path: Path = CORPUS) -> list[dict[str, Any]]:
    """The lines with a secret and the harmless look-alikes, from a file with a JSON object a line.

    ``secret`` is what must not be kept, or null; as a list it is joined and put in the place of
    "{}", so that no file holds a whole key. ``kind``, ``value`` and ``id`` may be left out.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    return [_row(number, json.loads(line)) for number, line in enumerate(lines, 1) if line.strip()]


def _row(number: int, row: dict[str, Any]) -> dict[str, Any]:
    parts = row.get("secret")
    secret = "".join(parts) if isinstance(parts, list) else parts
    told = {"secret": secret} if secret else {"value": row.get("value", row["text"])}
    kind = row.get("kind", "secret") if secret else "harmless"
    text = row["text"].replace("{}", secret) if isinstance(parts, list) else row["text"]
    rest = {name: field for name, field in row.items() if name != "secret"}
    return {"id": f"line-{number}", **rest, "kind": kind, "text": text} | told


def run(rows: Sequence[dict[str, Any]]) -> list[Outcome]:
    """Say every line to a real store of its own, and look for it afterwards."""
    with tempfile.TemporaryDirectory(prefix="memchat-secrets-") as folder:
        return [_told(Path(folder) / "told", row) for row in rows]


def _told(home: Path, row: dict[str, Any]) -> Outcome:
    empty_store.place(home)
    chat, extract = ScriptedModel(name="double/chat"), ScriptedModel(name="double/extract")
    with _logged() as log, MemChat(
        settings=Settings(home=home, timezone="Europe/Berlin"),
        chat_model=chat,
        extract_model=extract,
        embedder=HashEmbedder(),
        clock=FakeClock(),
    ) as mc:  # fmt: skip
        alarmed, prompts = _play(mc, chat, extract, row)
    said = [*stored_texts(home / FILE), *(("log", line) for line in log)]
    said += [("prompt", text) for text in prompts]
    shutil.rmtree(home)
    return Outcome(row, () if row["kind"] == "harmless" else places(row["secret"], said), alarmed)


@contextmanager
def _logged() -> Iterator[list[str]]:
    """What is logged meanwhile, debugging lines too."""
    lines: list[str] = []
    listener, log = _Listener(lines), logging.getLogger("memchat")
    level = log.level
    log.addHandler(listener)
    log.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        log.removeHandler(listener)
        log.setLevel(level)


def measure(path: Path | None = None) -> list[Figure]:
    """The figures of the table, over the project's own lines or those of a file."""
    rows = corpus(path) if path else [*corpus(), *corpus(DEVELOPED_ON)]
    share = STORED if path else 0
    done = run(rows)
    secret = [one for one in done if not one.harmless]
    harmless = [one for one in done if one.harmless]
    stored = [one for one in secret if one.places]
    alarms = [one for one in harmless if one.alarmed]
    return [
        Figure(
            "secrets stored",
            f"{len(stored)} of {len(secret)}",
            f"<= {share:.0%}",
            len(stored) <= share * len(secret),
            note=f"all but the transcript, later prompts, the log; {_by_kind(secret, stored)}",
        ),
        Figure(
            "harmless words taken for a secret",
            f"{len(alarms)} of {len(harmless)}",
            f"<= {FALSE_ALARMS:.0%}",
            len(alarms) <= FALSE_ALARMS * len(harmless),
            note=_by_kind(harmless, alarms),
        ),
    ]


def _by_kind(done: Sequence[Outcome], wrong: Sequence[Outcome]) -> str:
    """How many went wrong of each kind; of harmless lines, of each language."""
    counts, faults = (Counter(map(_kind, some)) for some in (done, wrong))
    return ", ".join(f"{kind} {faults[kind]}/{count}" for kind, count in sorted(counts.items()))


def _kind(one: Outcome) -> str:
    return str(one.row.get("lang", "any") if one.harmless else one.row["kind"])


class _Listener(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


def _play(
    mc: MemChat, chat: ScriptedModel, extract: ScriptedModel, row: dict[str, Any]
) -> tuple[bool, list[str]]:
    """Whether the words were taken for a secret, and the prompts of a later conversation."""
    user, before = row["id"], row.get("before")
    lines = ["Ask me something.", row["text"]] if before else [row["text"]]
    chat.replies.clear()
    chat.replies.extend([before, "Fine."] if before else ["Fine."])
    facts = list(_proposals(row, "u3" if before else "u1"))
    told = row.get("secret", row["text"])
    if row["text"] in _looks():
        extract.second_look = lambda request: by_id(_looks()[row["text"]], request.messages)
    extract.replies.clear()
    extract.replies.append(
        json.dumps({"facts": facts, "forget": [], "title": told[:60], "summary": f"Said {told}."})
    )
    with mc.user(user).chat() as session:
        for line in lines:
            assert session.send(line).read()
    assert session.learned is not None, f"{user}: {session.failure}"
    reasons = " ".join(change.reason or "" for change in session.learned.changes)
    chat.requests.clear()
    for question in (row["text"], "What do you know about me?"):
        chat.replies.append("Fine.")
        mc.user(user).answer(question)
    prompts = [request.messages[0].content for request in chat.requests]
    return "it holds" in reasons, prompts


@cache
def _looks() -> dict[str, str]:
    lines = LOOKS.read_text(encoding="utf-8").splitlines()
    return {line["text"]: line["answer"] for line in map(json.loads, lines)}


def _proposals(row: dict[str, Any], msg: str) -> Iterator[dict[str, Any]]:
    def fact(key: str, value: str, quote: str) -> dict[str, Any]:
        quotes = [{"msg": msg, "text": quote}]
        return {"quotes": quotes, "type": "fact", "key": key, "value": value, "many": True}

    text = row["text"]
    if row["kind"] == "harmless":
        yield fact("thing", row["value"], text)
        return
    secret = row["secret"]
    middle = len(secret) // 2
    first, second = secret[:middle].strip(), secret[middle:].strip()
    yield fact("note", text, text)
    yield fact("thing", secret, text)
    yield fact("thing", secret, secret)
    yield fact("part_one", first, text)
    yield fact("part_two", second, text)
    yield fact("beginning", f"starts with {first}", text[: text.index(secret)] or text)
    yield fact("ending", second, second)
    yield fact(secret, "yes", text)


def stored_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Every text of every table, with where it stands; the transcript left out."""
    with sqlite3.connect(path) as db:
        names = db.execute("select name from sqlite_master where type = 'table'").fetchall()
        for (table,) in names:
            # The words of facts and summaries in the index stand in its content as well.
            left_out = table.startswith(("messages", "sqlite_", "passages_fts"))
            if left_out and table != "passages_fts_content":
                continue
            others = "where id & 3 <> 1" if table.startswith("passages") else ""
            for row in db.execute(f'select * from "{table}" {others}').fetchall():
                for value in row:
                    if isinstance(value, str):
                        yield table, value
                    elif isinstance(value, bytes):
                        yield table, value.decode("utf-8", "ignore")


def places(secret: str, texts: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Where a secret or a half of it that gives it away can be read, of texts with their place."""
    middle = len(secret) // 2
    halves = [half.strip(" .-") for half in (secret[:middle], secret[middle:])]
    parts = [part for part in halves if len(part) >= _TELLING and not part.isalpha()]
    wanted = "|".join(_alone(part) for part in (secret, normal_value(secret), *parts))
    pattern = re.compile(wanted, re.IGNORECASE)
    return tuple(dict.fromkeys(f"{where}: {t[:80]}" for where, t in texts if pattern.search(t)))


def _alone(part: str) -> str:
    """Words that are not part of longer ones, in a script that puts spaces between words."""
    if UNSPACED.search(part):
        return re.escape(part)
    return rf"(?<![^\W_]){re.escape(part)}(?![^\W_])"
