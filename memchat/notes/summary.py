"""Summaries of all that notes say on a subject: read in parts, then joined.

Where all fits one call, that call reads it. Otherwise each part is collected into lines with
citations, some parts at a time, and the summary is made of these lines.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from memchat.errors import ProviderError
from memchat.notes import ask
from memchat.notes.ask import ANSWER_TOKENS, NOTHING_FOUND, Asking, NotesAnswer, Pieces, sources
from memchat.notes.search import Relevant, speaks
from memchat.search import render
from memchat.search.embed import DaemonThreads
from memchat.tokens import estimate_tokens
from memchat.types import Note, NoteHit, NoteSource, OnProgress, Progress, ReadingPlan, counted

UNSURE_TOKENS = 8_000
"""Notes that are not sure to have to do with the subject are read up to so many tokens, also where
that takes several calls: search misses about half of the memos on a subject."""
BEST = 3
"""Notes that are shown with every part: a part alone may not tell what the subject is about."""
AT_ONCE = 4
"""Calls that run at the same time."""
Part = list[NoteSource]


@dataclass(frozen=True, slots=True)
class _Collected:
    """What was collected from one part: lines with citations, or why it could not be read."""

    lines: tuple[str, ...] = ()
    error: ProviderError | None = None


class Summary:
    """One summary, by one model."""

    def __init__(self, asking: Asking, on_progress: OnProgress | None = None) -> None:
        self._asking = asking
        self._on_progress = on_progress or (lambda _: None)
        self._stopped = threading.Event()
        self._began = time.monotonic()
        self._best: Part = []
        self._calls = 0
        self._calls_done = 0

    def answer(self, relevant: Relevant, notes: dict[int, Note]) -> NotesAnswer:
        """A summary of all these chunks."""
        asking = self._asking
        if relevant.nothing or asking.model.stand_in:
            return asking.answer(relevant, notes)
        room = asking.room("notes_summary")
        found = self._chosen(relevant, notes, room)
        parts = self._parts(found, room)
        answer = NotesAnswer(found, lambda: self._plan(parts), relevant.degraded)
        return asking.given(answer, self._pieces(answer, parts, room))

    def _chosen(self, relevant: Relevant, notes: dict[int, Note], room: int) -> Part:
        """The notes to read, the oldest first: all that surely have to do with the subject, and
        others as far as they fit one call, or ``UNSURE_TOKENS``."""
        unsure = [hit for hit in relevant.hits if not speaks(hit)]
        certain = [hit for hit in relevant.hits if speaks(hit)]
        first = _by_time(certain, notes)
        others = _by_time(relevant.others, notes)
        held = sum(self._tokens(source) for source in (*first, *others))
        known = {hit.note_id for hit in certain}
        for source in sources([hit for hit in unsure if hit.note_id not in known], notes):
            held += self._tokens(source)
            if held > max(room, UNSURE_TOKENS):
                break
            first.append(source)
        first.sort(key=_moment)
        self._asking.name_days(relevant, _numbered(first))
        best = {hit.note_id for hit in relevant.hits[:BEST]}
        found = _numbered([*first, *others])
        self._best = [source for source in found if source.note_id in best]
        return found

    def _parts(self, found: Part, room: int) -> list[Part]:
        """The notes in parts of a call each; where there are several, with the best in each."""
        parts = self._asking.passages.parts(found, room)
        if len(parts) == 1:
            return parts
        beside = sum(self._tokens(source) for source in self._best)
        if beside > room // BEST:
            return parts
        parts = self._asking.passages.parts(found, room - beside)
        return [_with(self._best, part) for part in parts]

    def _tokens(self, source: NoteSource) -> int:
        return estimate_tokens(self._asking.passages.block(source)) + 2

    def _plan(self, parts: Sequence[Part]) -> ReadingPlan:
        asking = self._asking
        if len(parts) == 1:
            return asking.plan([asking.messages("notes_summary", asking.listing(parts[0]))])
        calls = [asking.messages("notes_collect", asking.listing(part)) for part in parts]
        return asking.plan(calls, more=len(parts) * ANSWER_TOKENS)

    def _pieces(self, answer: NotesAnswer, parts: Sequence[Part], room: int) -> Pieces:
        asking = self._asking
        if len(parts) == 1:
            messages = asking.messages("notes_summary", asking.listing(parts[0]))
            yield from asking.streamed(answer, messages)
            return
        self._expect(len(parts) + 1)
        collected = self._collect([(asking.listing(part), _numbers(part)) for part in parts])
        lines = [line for one in collected for line in one.lines]
        if not lines:
            yield NOTHING_FOUND
        for number, run in enumerate(self._fitting(lines, answer.sources, room)):
            if number:
                yield "\n\n"
            messages = asking.messages("notes_summary", self._joined(run, answer.sources))
            yield from asking.streamed(answer, messages)
        for number, (part, one) in enumerate(zip(parts, collected, strict=True), 1):
            if one.error is not None:
                yield f"\n\n{self._not_read(number, len(parts), part, one.error)}"
        self._done()

    def _collect(self, requests: Sequence[tuple[str, set[int]]]) -> list[_Collected]:
        """What each of these listings says on the subject. Raises ProviderError where none could be
        read."""
        collected = self._run(requests)
        again = [n for n, one in enumerate(collected) if one.error and one.error.retryable]
        if len(again) < len(requests):
            for n, one in zip(again, self._run([requests[n] for n in again]), strict=True):
                collected[n] = one
        errors = [one.error for one in collected if one.error is not None]
        if len(errors) == len(requests):
            raise errors[0]
        return collected

    def _run(self, requests: Sequence[tuple[str, set[int]]]) -> list[_Collected]:
        with DaemonThreads("memchat-notes", AT_ONCE, always_wait=False) as threads:
            futures = [threads.begin(partial(self._call, *request)) for request in requests]
            try:
                return [self._result(future) for future in futures]
            except BaseException:
                self._stopped.set()
                raise

    def _call(self, listing: str, numbers: set[int]) -> _Collected:
        """One call, in a thread. Only lines that cite a note of its listing are taken."""
        if self._stopped.is_set():
            return _Collected()
        asking = self._asking
        try:
            said = asking.model.complete(asking.messages("notes_collect", listing), purpose="notes")
        except ProviderError as error:
            return _Collected(error=error)
        asking.spent.append(said.usage)
        lines = ("".join(ask.kept([line], numbers)) for line in said.text.splitlines())
        return _Collected(tuple(line.strip(" -*\t") for line in lines if ask.numbers(line)))

    def _result(self, future: Future[_Collected]) -> _Collected:
        result = future.result()
        if result.error is None:
            self._done()
        return result

    def _fitting(
        self, lines: Sequence[str], found: Sequence[NoteSource], room: int
    ) -> list[list[str]]:
        """The lines in runs that fit a call each, collected anew while there are several and that
        makes them fewer."""
        runs = self._line_runs(lines, found, room)
        while len(runs) > 1:
            self._expect(len(runs))
            requests = [(self._joined(run, found), _cited(run)) for run in runs]
            shorter = [
                line
                for run, one in zip(runs, self._collect(requests), strict=True)
                for line in (run if one.error else one.lines)
            ]
            fewer = self._line_runs(shorter, found, room)
            if len(fewer) >= len(runs):
                break
            runs = fewer
        return runs

    def _line_runs(
        self, lines: Sequence[str], found: Sequence[NoteSource], room: int
    ) -> list[list[str]]:
        runs: list[list[str]] = []
        for line in lines:
            if runs and estimate_tokens(self._joined([*runs[-1], line], found)) <= room:
                runs[-1].append(line)
            else:
                runs.append([line])
        return runs

    def _joined(self, lines: Sequence[str], found: Sequence[NoteSource]) -> str:
        """Collected lines for a call, below the titles and days of the notes that they cite."""
        numbers = _cited(lines)
        heads = (self._asking.passages.head(one) for one in found if one.number in numbers)
        return "\n".join([*heads, "", *(f"  - {render.escaped(line)}" for line in lines)])

    def _not_read(self, number: int, total: int, part: Part, error: ProviderError) -> str:
        """A line that names a part that could not be read."""
        zone = self._asking.passages.zone
        days = sorted(render.day(source.created_at, zone) for source in part)
        span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
        notes = counted(len(_numbers(part)), "note")
        return f"Not read: part {number} of {total} ({notes} from {span}): {error}"

    def _expect(self, calls: int) -> None:
        """Count further calls."""
        self._calls += calls
        self._report()

    def _done(self) -> None:
        self._calls_done += 1
        self._report()

    def _report(self) -> None:
        seconds = time.monotonic() - self._began
        self._on_progress(Progress(self._calls_done, self._calls, seconds, unit="calls"))


def _by_time(hits: Sequence[NoteHit], notes: dict[int, Note]) -> Part:
    return sorted(sources(hits, notes), key=_moment)


def _moment(source: NoteSource) -> tuple[datetime, int]:
    return source.created_at, source.note_id


def _numbered(found: Sequence[NoteSource]) -> Part:
    return [replace(source, number=number) for number, source in enumerate(found, 1)]


def _with(best: Part, part: Part) -> Part:
    numbers = _numbers(part)
    both = [*part, *(source for source in best if source.number not in numbers)]
    return sorted(both, key=lambda source: source.number)


def _numbers(found: Sequence[NoteSource]) -> set[int]:
    return {source.number for source in found}


def _cited(lines: Sequence[str]) -> set[int]:
    return {number for line in lines for number in ask.numbers(line)}
