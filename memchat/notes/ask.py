"""Asking a model about passages of notes: the calls that answers and summaries are made of."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime

from memchat.errors import InputError
from memchat.memory.recall import render
from memchat.memory.recall.question_dates.parse import DateRange
from memchat.notes import citations, quotes
from memchat.notes.notes_answer import NotesAnswer
from memchat.notes.passages import Passages, sources
from memchat.notes.relevant import Relevant
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.providers.litellm_usage import cost_usd
from memchat.providers.reply_text import ReplyText
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Note, NoteSource, ReadingPlan, Usage

NOTHING_FOUND = "No note speaks of that."
ANSWER_TOKENS = 1_000
"""About the most that an answer takes."""
MOST_TOKENS = 24_000
"""Passages of one call: longer prompts are read less well, whatever fits the window."""
Pieces = Generator[str, None, None]
_LEAST_TOKENS = 100
"""Room for passages below which no answer can be expected."""


@dataclass
class Asking:
    """One question about notes, put to one model. ``keep`` is given what each answer took when it
    has ended: the calls, and the chunks that were read."""

    question: str
    model: ChatModel
    prompts: Prompts
    passages: Passages
    now: datetime
    keep: Callable[[Sequence[Usage], Sequence[int]], None]
    days: DateRange | None = None
    """The days that the question names, if it names any."""
    inside: frozenset[int] = frozenset()
    """The numbers of the notes of these days; all others are from other days."""
    spent: list[Usage] = field(default_factory=list)

    def answer(self, relevant: Relevant, notes: dict[int, Note]) -> NotesAnswer:
        """An answer from these chunks, as far as they fit one call."""
        if relevant.nothing:
            self.days = relevant.days
            text = self._none_of_the_days() if self.days else NOTHING_FOUND
            return self.given(NotesAnswer((), self.free, relevant.degraded), said(text))
        if self.model.stand_in:
            return self.quoted(relevant, notes)
        first = sources(relevant.hits, notes)
        every = [*first, *sources(relevant.others, notes, first=len(first) + 1)]
        self.name_days(relevant, first)
        fitting = self.passages.parts(every, self.room("notes_answer"))[0]
        messages = self.messages("notes_answer", self.listing(fitting))
        given = [one for one in every if one.number in {part.number for part in fitting}]
        answer = NotesAnswer(given, lambda: self.plan([messages]), relevant.degraded)
        return self.given(answer, self.streamed(answer, messages))

    def quoted(self, relevant: Relevant, notes: dict[int, Note]) -> NotesAnswer:
        """The best passages, where no model is set up."""
        hits = quotes.choice(relevant)
        found = quotes.sources(hits, notes)
        self.name_days(relevant, found if set(hits) <= set(relevant.hits) else ())
        text = quotes.text(found, self.passages) if found else NOTHING_FOUND
        return self.given(NotesAnswer(found, self.free, relevant.degraded), said(text))

    def given(self, answer: NotesAnswer, pieces: Pieces) -> NotesAnswer:
        """The answer with what it is read from: these pieces, without citations of notes that it
        was not given, and before them a word about the days asked for where all are of others."""

        def run() -> Pieces:
            known = {source.number for source in answer.sources}
            try:
                if self.days is not None and answer.sources and not self.inside:
                    yield f"{self._none_of_the_days()} From other days:\n\n"
                blank = True
                with closing(pieces):
                    for piece in citations.kept(pieces, known):
                        blank = blank and not piece.strip()
                        yield piece
                if blank:
                    yield NOTHING_FOUND
            finally:
                read = [i for source in answer.sources for i in source.chunk_ids]
                self.keep(self.spent, read)

        answer.pieces = run()
        return answer

    def name_days(self, relevant: Relevant, first: Sequence[NoteSource]) -> None:
        """Note which of the notes are of the days that the question names."""
        self.days = relevant.days
        self.inside = frozenset(source.number for source in first)

    def streamed(self, answer: NotesAnswer, messages: Sequence[ChatMessage]) -> Pieces:
        """The pieces of the model's words; ``answer.cut`` says whether they ended early."""
        stream = self.model.stream(messages)
        text = ReplyText(stream)
        came = False
        try:
            for piece in text:
                came = True
                yield piece
            answer.cut = text.cut
        finally:
            stream.close()
            if came:
                self.spent.append(replace(stream.usage, purpose="notes"))

    def messages(self, prompt: str, passages: str) -> list[ChatMessage]:
        """What a call sends: instructions with the passages, and the question."""
        system = self.prompts.render(
            prompt, today=f"{self.now:%F (%A)}", mark=render.new_mark(), passages=passages
        )
        return [ChatMessage("system", system), ChatMessage("user", self.question)]

    def listing(self, found: Sequence[NoteSource]) -> str:
        """Notes for a call; where the question names days, in two groups."""
        if self.days is None:
            return self.passages.listing(found)
        of_days = [source for source in found if source.number in self.inside]
        others = [source for source in found if source.number not in self.inside]
        days = self.named_days()
        groups = [(f"From {days}:", of_days)]
        if others:
            groups.append(("From other days:", others))
        return "\n\n".join(
            f"{name}\n\n{self.passages.listing(group) or '(no note)'}" for name, group in groups
        )

    def named_days(self) -> str:
        """The days that the question names: "2026-11-09 to 2026-11-15"."""
        assert self.days is not None
        start, end = self.days.start.isoformat(), self.days.end.isoformat()
        return start if start == end else f"{start} to {end}"

    def _none_of_the_days(self) -> str:
        """Said where nothing was found in the days that the question names."""
        assert self.days is not None
        if self.days.only:
            return f"No note is from {self.named_days()}."
        return f"No note from {self.named_days()} speaks of that."

    def room(self, prompt: str) -> int:
        """The tokens that passages may take in a call. Raises InputError where the question leaves
        none."""
        frame = sum(estimate_tokens(one.content) for one in self.messages(prompt, ""))
        room = self.model.window - frame - min(ANSWER_TOKENS, self.model.window // 4)
        if room < _LEAST_TOKENS:
            raise InputError(
                f"the question is too long for {self.model.name}, which reads "
                f"{self.model.window:,} tokens in all; ask in fewer words"
            )
        return min(room, MOST_TOKENS)

    def plan(self, calls: Sequence[Sequence[ChatMessage]], more: int = 0) -> ReadingPlan:
        """What these calls take, and one more that sends ``more`` tokens, where it sends any."""
        sent = sum(estimate_tokens(one.content) for call in calls for one in call) + more
        count = len(calls) + (1 if more else 0)
        came = count * ANSWER_TOKENS
        cost = cost_usd(self.model.name, sent, came)
        return ReadingPlan(count, sent + came, cost, self.model.name)

    def free(self) -> ReadingPlan:
        """What an answer takes that asks no model."""
        return ReadingPlan(0, 0, 0.0, self.model.name)


def said(text: str) -> Pieces:
    """The pieces of an answer that code gives."""
    yield text
