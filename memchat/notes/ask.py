"""Asking notes: an answer in plain words, with the passages that it is taken from.

An answer reads the passages that fit the question best. A summary reads all that speak of the
subject, in parts that fit the model's window, and joins what was found in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from memchat.config import Settings
from memchat.memory.recall import render
from memchat.notes import passages as texts
from memchat.notes.passages import Passage
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.providers.reply_text import ReplyText
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage

Mode = Literal["answer", "summary"]
NOTHING_FOUND = "No note speaks of that."
QUOTED = "No model is set up. These passages fit the question best:"
_SHARE = 0.5
"""The share of a model's window that passages may take: the rest is for the question and the
answer."""
_MOST_TOKENS = 24_000
"""Passages of one call: longer prompts are read less well, whatever fits the window."""


@dataclass
class NotesAnswer:
    """An answer as it comes in: iterate for its pieces. ``cited`` is known once it is whole."""

    passages: Sequence[Passage]
    """What the model was given, or may cite."""
    pieces: Iterator[str] = field(repr=False)
    degraded: str | None = None
    """Why only words were searched, or None."""
    text: str = ""

    def __iter__(self) -> Iterator[str]:
        for piece in self.pieces:
            self.text += piece
            yield piece

    def read(self) -> str:
        """The whole answer."""
        for _ in self:
            pass
        return self.text

    @property
    def cited(self) -> tuple[Passage, ...]:
        """The passages that the answer names, in its order."""
        return texts.cited(self.text, self.passages)


@dataclass(frozen=True, slots=True)
class Asking:
    """Answers questions from passages with one model."""

    model: ChatModel
    prompts: Prompts
    settings: Settings
    now: datetime

    def answer(self, question: str, passages: Sequence[Passage]) -> Iterator[str]:
        """The pieces of an answer from these passages."""
        if not passages:
            yield NOTHING_FOUND
        elif self.model.stand_in:
            yield _quotes(passages)
        else:
            fitting = self._parts(passages)[0]
            yield from self._stream("notes_answer", question, self._listing(fitting))

    def summary(self, subject: str, passages: Sequence[Passage]) -> Iterator[str]:
        """The pieces of a summary of all these passages: read in parts, then joined."""
        if not passages:
            yield NOTHING_FOUND
        elif self.model.stand_in:
            yield _quotes(passages)
        else:
            parts = self._parts(sorted(passages, key=lambda one: (one.created_at, one.number)))
            if len(parts) == 1:
                yield from self._stream("notes_answer", subject, self._listing(parts[0]))
                return
            lines = [line for part in parts if (line := self._collected(subject, part))]
            if lines:
                yield from self._stream("notes_answer", subject, "\n".join(lines))
            else:
                yield NOTHING_FOUND

    def _collected(self, subject: str, passages: Sequence[Passage]) -> str:
        """What one part says on a subject, a line each; empty where it says nothing."""
        messages = self._messages("notes_summary", subject, self._listing(passages))
        said = self.model.complete(messages, purpose="notes").text.strip()
        # Only lines with the number of a passage of this part: nothing else can be cited.
        return "\n".join(line for line in said.splitlines() if texts.cited(line, passages))

    def _stream(self, prompt: str, question: str, passages: str) -> Iterator[str]:
        yield from ReplyText(self.model.stream(self._messages(prompt, question, passages)))

    def _messages(self, prompt: str, question: str, passages: str) -> list[ChatMessage]:
        zone = self.settings.zone
        system = self.prompts.render(
            prompt,
            today=render.day(self.now, zone),
            mark=render.new_mark(),
            passages=passages,
        )
        return [ChatMessage("system", system), ChatMessage("user", question)]

    def _listing(self, passages: Sequence[Passage]) -> str:
        return texts.listing(passages, self.settings.zone)

    def _parts(self, passages: Sequence[Passage]) -> list[list[Passage]]:
        """The passages in as few runs as fit a call each."""
        room = min(int(self.model.window * _SHARE), _MOST_TOKENS)
        parts: list[list[Passage]] = [[]]
        held = 0
        for passage in passages:
            size = estimate_tokens(passage.line(self.settings.zone)) + 2
            if parts[-1] and held + size > room:
                parts.append([])
                held = 0
            parts[-1].append(passage)
            held += size
        return parts


def _quotes(passages: Sequence[Passage]) -> str:
    """What is shown where no model can answer."""
    quoted = (
        f"[{p.number}] “{' '.join(p.text.split())}” ({p.title or 'Untitled'})" for p in passages
    )
    return "\n\n".join([QUOTED, *quoted])
