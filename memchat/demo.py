"""``memchat demo``: shows what memchat does, in a temporary store.

Three short conversations from ``data/demo`` are held at the times given there. What is learned is
shown with its evidence, a later conversation uses and changes it, and one memory is forgotten and
searched for in the list, in recall and in the files.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from zoneinfo import ZoneInfo

from memchat.config import Settings, load
from memchat.disk import checkout, packaged
from memchat.errors import ConfigError
from memchat.types import Change, Learned, Memory, Recalled

if TYPE_CHECKING:
    from memchat.api import MemChat, User

EMBED_SECONDS = 30.0
"""Seconds that a reply waits for the embedding model, which loads while the first one is made."""
WIDTH = 100
MARGIN = " " * 10
_BOLD, _DIM, _CYAN, _PLAIN = "\033[1m", "\033[2m", "\033[36m", "\033[0m"


def run(
    home: Path | None = None, out: TextIO | None = None, *, settings: Settings | None = None
) -> int:
    """Show the demo on ``out`` (default: standard output) and return 0.

    The store is a temporary folder, removed at the end, unless ``home`` names one to keep.
    """
    settings = settings or load()
    stories = conversations()
    screen = Screen(out or sys.stdout)
    with tempfile.TemporaryDirectory(prefix="memchat-demo-") as folder:
        store = home or Path(folder)
        told = settings.with_(home=store, timezone=stories[0].zone, embed_patience=EMBED_SECONDS)
        _Demo(told, stories, screen).show()
        _farewell(screen, home, settings.home)
    return 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of one user in one session."""

    user: str
    app: str
    at: datetime
    zone: str
    turns: tuple[str, ...]


def conversations() -> list[Conversation]:
    """The demo's conversations in their order. Raises ConfigError where they are not installed."""
    paths = sorted(packaged("demo_data", "data/demo").glob("*.json"))
    if not paths:
        raise ConfigError("the demo's conversations are missing; install memchat again")
    given = (json.loads(path.read_text("utf-8")) for path in paths)
    return [Conversation(**one | {"at": datetime.fromisoformat(one["at"])}) for one in given]


class _StoryClock:
    """A clock that is set to the beginning of each conversation and runs on from there."""

    def __init__(self, at: datetime) -> None:
        self.set(at)

    def set(self, at: datetime) -> None:
        self._at, self._since = at, time.monotonic()

    def __call__(self) -> datetime:
        return self._at + timedelta(seconds=time.monotonic() - self._since)


class _Demo:
    """The demo, one method for each scene."""

    def __init__(self, settings: Settings, stories: list[Conversation], screen: Screen) -> None:
        self._settings = settings
        self._first, self._later, self._private = stories[:3]
        self._screen = screen
        self._zone = ZoneInfo(self._first.zone)
        self._user, self._app = self._first.user, self._first.app
        self._sent = 0
        self._clock = _StoryClock(self._first.at)

    def show(self) -> None:
        screen = self._screen
        _introduce(screen, self._settings)
        with self._open() as mc:
            learned = self._hold(mc, "1. A conversation", self._first)
            screen.heading(f"It has ended, and this was learned · {_headline(learned)}")
            self._list_learned(mc, learned)
        with self._open() as mc:
            learned = self._hold(mc, "2. Two weeks later, from the files alone", self._later)
            screen.heading(f"It has ended, and this has changed · {_headline(learned)}")
            self._list_learned(mc, learned)
            if learned and learned.count("superseded"):
                screen.line(
                    "  The old values stay as history: `memchat memories history` and an id."
                )
            learned = self._hold(mc, "3. Something private", self._private)
            self._list_learned(mc, learned)
        self._forget(learned)

    def _open(self) -> MemChat:
        from memchat.api import MemChat

        return MemChat(settings=self._settings, clock=self._clock)

    def _person(self, mc: MemChat) -> User:
        return mc.user(self._user, app=self._app)

    def _hold(self, mc: MemChat, title: str, story: Conversation) -> Learned | None:
        """Hold one conversation, from its first message to the end of its extraction."""
        self._screen.heading(f"{title} · {story.at.astimezone(self._zone):%-d %B %Y}")
        self._clock.set(story.at)
        with mc.user(story.user, app=story.app).chat() as chat:
            for text in story.turns:
                self._screen.message("you", text, _CYAN)
                reply = chat.send(text)
                self._screen.stream("memchat", reply)
                self._show_used(reply.shown)
        return chat.learned

    def _show_used(self, shown: Recalled) -> None:
        """Show which memories the model was sent: how many in all (once), and those found."""
        facts = [(hit, hit.memory) for hit in shown.hits if hit.memory is not None]
        found = [f"{memory.key}: {memory.value} (score {hit.score:.2f})" for hit, memory in facts]
        every = len(shown.listed)
        parts = [f"all {every} facts"] if every not in (0, self._sent) else []
        self._sent = every
        parts += [f"found: {'; '.join(found)}"] if found else []
        if parts:
            self._screen.message("sent", " · ".join(parts), _DIM)

    def _list_learned(self, mc: MemChat, learned: Learned | None) -> None:
        changes = learned.changes if learned else ()
        for change in changes:
            self._list_change(mc, change)
        if not changes:
            self._screen.line("  nothing")

    def _list_change(self, mc: MemChat, change: Change) -> None:
        memory = change.memory
        if memory is None:
            words = "; ".join(change.quotes)
            self._screen.row(f"{change.kind}: {change.reason or ''}", f"“{words}”")
            return
        changed = change.before is not None and change.before != memory.value
        value = f"{change.before} → {memory.value}" if changed else memory.value
        until = f", until {_day(memory.expires_at)}" if memory.expires_at else ""
        other = "" if changed or change.kind == "added" else f" ({change.kind})"
        proofs = self._person(mc).memories.evidence(memory.id)
        latest = max(proofs, key=lambda proof: proof.message_id, default=None)
        words = latest.quote if latest else "; ".join(change.quotes)
        said = _day(memory.said_at.astimezone(self._zone).date())
        self._screen.row(
            f"{memory.id} [{memory.memory_type}] {memory.key}: {value}{until}{other}",
            f"“{words}” {said}",
        )

    def _forget(self, learned: Learned | None) -> None:
        """Forget what the last conversation taught, and count what is left of it."""
        screen = self._screen
        memories = [c.memory for c in learned.changes if c.memory] if learned else []
        if learned is None or not memories:
            screen.line("  Nothing was learned from it, so there is nothing to forget.")
            return
        memory = memories[0]
        words = _distinctive_words(memory, (*self._first.turns, *self._later.turns))
        screen.heading("4. Forget it")
        question = self._private.turns[0]
        with self._open() as mc:
            before = self._traces(mc, memory, question)
        found = occurrences(self._settings.home, words)
        with self._open() as mc:
            self._person(mc).memories.delete(memory.id)
            screen.line(f"  $ memchat memories delete {memory.id}")
            after = self._traces(mc, memory, question)
        left = occurrences(self._settings.home, words)
        sought = " and ".join(f"“{word}”" for word in words)
        screen.line(f"  {'':10}{'before':12}after")
        for place, was, now, note in (
            ("list", before[0], after[0], ""),
            ("recall", before[1], after[1], ""),
            ("files", found, left, f"(every byte of the store searched for {sought})"),
        ):
            screen.line(f"  {place:10}{_times(was):12}{_times(now):12}{note}".rstrip())

    def _traces(self, mc: MemChat, memory: Memory, question: str) -> tuple[int, int]:
        """How often the memory is listed, and how often recalled, whatever its state."""
        listed = self._person(mc).memories.list(status="all")
        hits = self._person(mc).search(question).confident
        mine = [hit for hit in hits if hit.kind == "memory" and hit.id == memory.id]
        return sum(other.id == memory.id for other in listed), len(mine)


def occurrences(folder: Path, words: list[str]) -> int:
    """How often the words occur, in any case, in the bytes of all files below a folder."""
    pattern = re.compile(b"|".join(re.escape(w.encode()) for w in words), re.IGNORECASE)
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return sum(len(pattern.findall(path.read_bytes())) for path in paths)


def _distinctive_words(memory: Memory, elsewhere: tuple[str, ...]) -> list[str]:
    """The longer words of a memory that occur in none of the other messages."""
    other = " ".join(elsewhere).casefold()
    words = re.findall(r"\w{5,}", memory.value)
    return [w for w in words if w.casefold() not in other] or [memory.value]


def _introduce(screen: Screen, settings: Settings) -> None:
    from memchat.providers.factory import explain

    chat, extract, embed = explain(settings)
    screen.line(
        "memchat remembers what you tell it: typed facts, each with its proof, on your disk."
    )
    models = f"{chat.model} answers, {extract.model} reads what has ended"
    if chat.model.startswith("offline/"):
        why = f"{chat.why[:1].upper()}{chat.why[1:]}"
        models = f"{why}: an offline stand-in answers by patterns. The memory is the real thing"
    screen.line(f"{models}; {embed.model} finds by meaning. Starting takes some seconds.")
    for choice in (chat, extract, embed):
        if choice.problem:
            screen.line(f"{choice.model}: {choice.problem}; {choice.remedy}.")


def _farewell(screen: Screen, home: Path | None, yours: Path) -> None:
    screen.heading("Now you")
    kept = f"This demo's store is {home}." if home else "This demo's store is thrown away."
    screen.line(f"  {kept} Yours will lie in {_short(yours)}; the rows are in memchat.db there.")
    chat = "make chat" if checkout() else "memchat chat"
    for command, what in (
        (chat, "start talking; then see `memchat memories list`"),
        ("memchat keys set gemini", "a real model (or another provider's key, or use Ollama)"),
        ("memchat doctor", "which models are in use and why, and what is wrong if something is"),
    ):
        screen.line(f"  {command:25}{what}")


def _short(path: Path) -> str:
    """The path, with ``~`` for the home folder."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _headline(learned: Learned | None) -> str:
    if learned is None:
        return "the reading failed; `memchat doctor` says more"
    return learned.skipped or learned.headline


def _times(count: int) -> str:
    return "gone" if count == 0 else "once" if count == 1 else f"{count} times"


def _day(day: date) -> str:
    return f"{day.day} {day:%b %Y}"


def _safe(text: str) -> str:
    """Text without control characters."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


class Screen:
    """Lines of at most WIDTH columns; colour only on a terminal that wants it."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
        self._colour = out.isatty() and not plain

    def line(self, text: str) -> None:
        """A line, wrapped with its own indentation."""
        indent = " " * (len(text) - len(text.lstrip()))
        self._write(textwrap.fill(text, WIDTH, subsequent_indent=indent) + "\n")

    def heading(self, text: str) -> None:
        """An empty line and a heading."""
        self._write("\n" + self._in(_BOLD, text) + "\n")

    def message(self, who: str, text: str, colour: str) -> None:
        """A message, beside its author."""
        filled = textwrap.fill(_safe(text), WIDTH - len(MARGIN), break_long_words=False)
        self._write(f"{who:>8}  {self._in(colour, filled.replace(chr(10), chr(10) + MARGIN))}\n")

    def row(self, left: str, right: str) -> None:
        """A memory and its evidence, beside it or below."""
        left, right = _safe(left), _safe(right)
        start = f"  {left:<52} "
        if len(left) <= 52 and len(start) + len(right) <= WIDTH:
            self._write(start + self._in(_DIM, right) + "\n")
            return
        self._write(f"  {left}\n")
        below = textwrap.fill(right, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)
        self._write(self._in(_DIM, below) + "\n")

    def stream(self, who: str, pieces: Iterable[str]) -> None:
        """A reply as it arrives, wrapped between words."""
        self._write(f"{who:>8}")
        column, rest = WIDTH, ""
        gap = "  "
        for piece in pieces:
            *words, rest = re.split(r"(?<=\s)(?=\S)", rest + piece)
            for word in words:
                gap, column = self._word(gap, word, column)
        self._word(gap, rest, column)
        self._write("\n")

    def _word(self, gap: str, word: str, column: int) -> tuple[str, int]:
        """Write a word after its white space; gives the white space after it, and the column."""
        bare = word.rstrip()
        if gap == "  ":
            column = len(MARGIN)
        elif "\n" in gap or column + len(gap) + len(bare) > WIDTH:
            gap, column = "\n" + MARGIN, len(MARGIN)
        else:
            column += len(gap)
        self._write(gap + _safe(bare))
        return ("\n" if "\n" in word else " "), column + len(bare)

    def _in(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self._colour else text

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
