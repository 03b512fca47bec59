"""Asks a model about passages of notes, for answers and for summaries of all they say on a subject.

The notes are numbered, and an answer cites them in square brackets: [2], [1, 3] or [2-4].
Citations of notes that the model was not given are removed. Where no model is set up, the best
passages are quoted as they are.

A summary reads all in one call where that fits. Otherwise each part is collected into lines with
citations, some parts at a time, and the summary is made of these lines.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from zoneinfo import ZoneInfo

from memchat import waiting
from memchat.errors import InputError, ProviderError
from memchat.language.secrets import mask_part
from memchat.notes.chunking import SMALLEST, Profile
from memchat.notes.chunking import chunks as cut
from memchat.notes.search import Relevant, speaks
from memchat.prompts import Prompts
from memchat.providers import ChatModel, ReplyText
from memchat.providers.litellm_calls import cost_usd
from memchat.search import render
from memchat.search.embed import at_once
from memchat.search.question_dates import DateRange
from memchat.tokens import estimate_tokens
from memchat.types import (
    ChatMessage,
    Note,
    NoteHit,
    NotePassage,
    NoteSource,
    OnProgress,
    ReadingPlan,
    Usage,
    counted,
    timed,
)

UNANSWERED = "[none]"
"""With this a model begins an answer that no passage holds."""
_NUMBERS = r"\[\s*\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\s*\]"
# Three digits at most, so that a year in brackets stays what it is.
_CITATION = re.compile(rf"(?P<space>[ \t]*)(?P<numbers>{_NUMBERS})")
_BEGUN = re.compile(r"[ \t]*(?:\[[\d\s,;–-]{0,60})?\Z")
_STEP = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_NO_ANSWER = re.compile(r"\s*\[none\][ \t]*[:.–-]?\s*", re.IGNORECASE)


def numbers(text: str) -> list[int]:
    """The numbers that a text cites, each once, in their order."""
    found = (n for match in _CITATION.finditer(text) for n in _cited(match["numbers"]))
    return list(dict.fromkeys(found))


def kept(pieces: Iterable[str], known: Collection[int]) -> Iterator[str]:
    """An answer as it comes in, without citations of notes that it was not given.

    What may become a citation is held back until it is known whether it is one. An answer that
    begins with ``UNANSWERED`` loses that mark, and all its citations.
    """
    held, begun = "", False
    for piece in pieces:
        held += piece
        if not begun:
            start = held.lstrip().casefold()
            if UNANSWERED.startswith(start) or _NO_ANSWER.fullmatch(held):
                continue
            begun = True
            held, unanswered = _without_mark(held)
            known = () if unanswered else known
        open_at = _BEGUN.search(held)
        at = open_at.start() if open_at else len(held)
        if out := _checked(held[:at], known):
            yield out
        held = held[at:]
    if not begun:
        held, _ = _without_mark(held)
    if out := _checked(held, known):
        yield out


def _without_mark(text: str) -> tuple[str, bool]:
    match = _NO_ANSWER.match(text)
    return (text[match.end() :], True) if match else (text, False)


def _checked(text: str, known: Collection[int]) -> str:
    """A text with the citations that are known, one number in each pair of brackets."""

    def replaced(match: re.Match[str]) -> str:
        right = [n for n in _cited(match["numbers"]) if n in known]
        return match["space"] + "".join(f"[{n}]" for n in right) if right else ""

    return _CITATION.sub(replaced, text)


def _cited(group: str) -> list[int]:
    found: list[int] = []
    for first, last in _STEP.findall(group):
        found += range(int(first), int(last or first) + 1)
    return found


WHOLE = 2_000
"""Characters of a note up to which all of it is given: a passage alone often lacks what it is
about."""
_GAP = 4
"""The most characters between two chunks that are neighbours: white space."""


def sources(
    hits: Sequence[NoteHit], notes: Mapping[int, Note], *, first: int = 1, whole: int = WHOLE
) -> list[NoteSource]:
    """The notes of these hits, in the order of the best hit of each, numbered from ``first`` on.
    All is given of one up to ``whole`` characters. Hits whose note is not among ``notes`` are left
    out: it was deleted meanwhile."""
    by_note: dict[int, list[NoteHit]] = {}
    for hit in hits:
        if hit.note_id in notes:
            by_note.setdefault(hit.note_id, []).append(hit)
    found = []
    for number, (note_id, its) in enumerate(by_note.items(), first):
        note = notes[note_id]
        spans = _joined((hit.offset, hit.offset + hit.size) for hit in its)
        if len(note.text) <= whole:
            spans = [(0, len(note.text))]
        passages = tuple(NotePassage(a, b - a, note.text[a:b]) for a, b in spans)
        ids = tuple(hit.chunk_id for hit in its)
        found.append(NoteSource(number, note.id, note.title, note.created_at, passages, ids))
    return found


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that overlap or are neighbours as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start - joined[-1][1] <= _GAP:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


class Passages:
    """Passages of notes as a model is given them: escaped, without secrets, each note under a line
    with its number, title and day."""

    def __init__(self, notes: Mapping[int, Note], zone: ZoneInfo) -> None:
        self._notes = notes
        self.zone = zone

    def head(self, source: NoteSource) -> str:
        """The line that begins a note: "[2] Budget, 2026-11-11 (Wednesday)"."""
        day = source.created_at.astimezone(self.zone)
        title = " ".join((source.title or "Untitled").split())
        return render.escaped(f"[{source.number}] {mask_part(title, 0, len(title))}, {day:%F (%A)}")

    def block(self, source: NoteSource) -> str:
        """A note with its passages."""
        text = self._notes[source.note_id].text
        said = (mask_part(text, p.offset, p.offset + p.size).strip() for p in source.passages)
        lines = "\n[…]\n".join(said).splitlines()
        # Indented: no line of a note passes for the head of another.
        return "\n".join([self.head(source), *(f"  {render.escaped(line)}" for line in lines)])

    def listing(self, sources: Iterable[NoteSource]) -> str:
        """Notes one after the other."""
        return "\n\n".join(map(self.block, sources))

    def parts(self, sources: Sequence[NoteSource], room: int) -> list[list[NoteSource]]:
        """The notes in runs of at most ``room`` tokens each. One that is too long is divided; its
        pieces keep its number."""
        parts: list[list[NoteSource]] = []
        held = room
        for piece in (piece for source in sources for piece in self._pieces(source, room)):
            size = estimate_tokens(self.block(piece)) + 2
            if held + size > room or not parts:
                parts.append([])
                held = 0
            parts[-1].append(piece)
            held += size
        return parts

    def _pieces(self, source: NoteSource, room: int) -> list[NoteSource]:
        if estimate_tokens(self.block(source)) <= room:
            return [source]
        # Half of the room: the text that is sent has a head, indents and names of secrets as well.
        size = Profile(max(room // 2, SMALLEST), 0)
        return [
            replace(source, passages=(NotePassage(p.offset + c.start, c.end - c.start, ""),))
            for p in source.passages
            for c in cut(p.text, size, estimate_tokens)
        ]


QUOTED = "No model is set up. These passages fit the question best:"
MOST = 8
"""Notes that are quoted."""
_OF_THE_DAYS = 3
"""Notes of the days asked for that are quoted where nothing else fits the question."""
_LONGEST = 600
"""Characters of a quote."""


def quotable(relevant: Relevant) -> list[NoteHit]:
    """The best chunk of each note to quote, those that surely have to do with the question: from
    the days that it names, else from others."""
    hits = list(filter(speaks, relevant.hits)) or list(filter(speaks, relevant.others))
    best: dict[int, NoteHit] = {}
    for hit in hits or relevant.hits[:_OF_THE_DAYS]:
        best.setdefault(hit.note_id, hit)
    return list(best.values())[:MOST]


def quoted_text(found: Sequence[NoteSource], passages: Passages) -> str:
    """The quotes, each under the number, title and day of its note."""
    quoted = (f"{passages.head(source)}\n“{_shortened(source.text)}”" for source in found)
    return "\n\n".join([QUOTED, *quoted])


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    if len(words) <= _LONGEST:
        return words
    cut = words[:_LONGEST]
    # Scripts without spaces are cut where they are.
    return f"{cut[: cut.rfind(' ', _LONGEST // 2)] if ' ' in cut[_LONGEST // 2 :] else cut}…"


class NotesAnswer:
    """An answer from notes: iterate for its pieces, or ``read`` all of it. No model is asked before
    that.

    ``sources`` are the notes that it may cite, ``degraded`` says why only words were searched, or
    is None. ``text`` is what came so far, ``cut`` says in one line why the answer ended early, or
    is None.
    """

    def __init__(
        self,
        sources: Sequence[NoteSource],
        plan: Callable[[], ReadingPlan],
        degraded: str | None = None,
    ) -> None:
        self.sources = tuple(sources)
        self.degraded = degraded
        self.text = ""
        self.cut: str | None = None
        self.pieces: Generator[str, None, None] | None = None
        """What it is read from; None once it was read."""
        self._plan = plan

    def __iter__(self) -> Iterator[str]:
        pieces, self.pieces = self.pieces, None
        if pieces is None:
            return
        try:
            for piece in pieces:
                self.text += piece
                yield piece
        finally:
            pieces.close()

    def read(self) -> str:
        """The whole answer. Raises ProviderError where the provider fails."""
        for _ in self:
            pass
        return self.text

    @property
    def cited(self) -> tuple[NoteSource, ...]:
        """The notes that the answer cites so far, in the order of their first citation."""
        known = {source.number: source for source in self.sources}
        return tuple(known[n] for n in numbers(self.text) if n in known)

    @cached_property
    def plan(self) -> ReadingPlan:
        """The calls that the answer takes, and about what they cost; known before it is read."""
        return self._plan()


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
    inside: set[int] = field(default_factory=set)
    """The numbers of the notes of these days; all others are from other days."""
    spent: list[Usage] = field(default_factory=list)

    def answer(self, relevant: Relevant, notes: dict[int, Note]) -> NotesAnswer:
        """An answer from these chunks, as far as they fit one call."""
        self.days = relevant.days
        if relevant.nothing:
            text = self._none_of_the_days() if self.days else NOTHING_FOUND
            return self.given(NotesAnswer((), self.free, relevant.degraded), said(text))
        if self.model.stand_in:
            return self.quoted(relevant, notes)
        first = sources(relevant.hits, notes)
        every = [*first, *sources(relevant.others, notes, first=len(first) + 1)]
        self.inside = _numbers(first)
        fitting = self.passages.parts(every, self.room("notes_answer"))[0]
        given = [one for one in every if one.number in _numbers(fitting)]
        return self.of_one_call("notes_answer", given, fitting, relevant.degraded)

    def of_one_call(
        self,
        prompt: str,
        given: Sequence[NoteSource],
        read: Sequence[NoteSource],
        degraded: str | None,
    ) -> NotesAnswer:
        """The answer of one call that reads these notes."""
        messages = self.messages(prompt, self.listing(read))
        answer = NotesAnswer(given, lambda: self.plan([messages]), degraded)
        return self.given(answer, self.streamed(answer, messages))

    def quoted(self, relevant: Relevant, notes: dict[int, Note]) -> NotesAnswer:
        """The best passages, where no model is set up."""
        hits = quotable(relevant)
        found = sources(hits, notes, whole=0)
        if set(hits) <= set(relevant.hits):
            self.inside = _numbers(found)
        text = quoted_text(found, self.passages) if found else NOTHING_FOUND
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
                    for piece in kept(pieces, known):
                        blank = blank and not piece.strip()
                        yield piece
                if blank:
                    yield NOTHING_FOUND
            finally:
                read = [i for source in answer.sources for i in source.chunk_ids]
                self.keep(self.spent, read)

        answer.pieces = run()
        return answer

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


UNSURE_TOKENS = 8_000
"""Notes that are not sure to have to do with the subject are read up to so many tokens, also where
that takes several calls: search misses about half of the memos on a subject."""
BEST = 3
"""Notes that are shown with every part: a part alone may not tell what the subject is about."""
AT_ONCE = 4
"""Calls that run at the same time."""
Part = list[NoteSource]
Collected = Sequence[str] | ProviderError
"""What was collected from one part: lines with citations, or why it could not be read."""


@dataclass
class Summary(Asking):
    """A subject in place of a question: all that notes say on it."""

    on_progress: OnProgress | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _best: Part = field(default_factory=list)
    _calls: int = 0
    _calls_done: int = 0

    def __post_init__(self) -> None:
        self._tell = timed(self.on_progress, "calls")

    def answer(self, relevant: Relevant, notes: dict[int, Note]) -> NotesAnswer:
        """A summary of all these chunks."""
        if relevant.nothing or self.model.stand_in:
            return super().answer(relevant, notes)
        self.days = relevant.days
        room = self.room("notes_summary")
        found = self._chosen(relevant, notes, room)
        parts = self._parts(found, room)
        if len(parts) == 1:
            return self.of_one_call("notes_summary", found, parts[0], relevant.degraded)
        listings = [self.listing(part) for part in parts]
        calls = [self.messages("notes_collect", listing) for listing in listings]
        more = len(parts) * ANSWER_TOKENS
        answer = NotesAnswer(found, lambda: self.plan(calls, more), relevant.degraded)
        return self.given(answer, self._pieces(answer, parts, listings, room))

    def _chosen(self, relevant: Relevant, notes: dict[int, Note], room: int) -> Part:
        """The notes to read, the oldest first: all that surely have to do with the subject, and
        others as far as they fit one call, or ``UNSURE_TOKENS``."""
        certain = [hit for hit in relevant.hits if speaks(hit)]
        known = {hit.note_id for hit in certain}
        unsure = [hit for hit in relevant.hits if hit.note_id not in known]
        first = sources(certain, notes)
        others = sorted(sources(relevant.others, notes), key=_moment)
        held = sum(self._tokens(source) for source in (*first, *others))
        for source in sources(unsure, notes):
            held += self._tokens(source)
            if held > max(room, UNSURE_TOKENS):
                break
            first.append(source)
        first.sort(key=_moment)
        self.inside = set(range(1, len(first) + 1))
        best = {hit.note_id for hit in relevant.hits[:BEST]}
        every = enumerate([*first, *others], 1)
        found = [replace(source, number=number) for number, source in every]
        self._best = [source for source in found if source.note_id in best]
        return found

    def _parts(self, found: Part, room: int) -> list[Part]:
        """The notes in parts of a call each; where there are several, with the best in each."""
        parts = self.passages.parts(found, room)
        beside = sum(self._tokens(source) for source in self._best)
        if len(parts) == 1 or beside > room // BEST:
            return parts
        parts = self.passages.parts(found, room - beside)
        return [_with(self._best, part) for part in parts]

    def _tokens(self, source: NoteSource) -> int:
        return estimate_tokens(self.passages.block(source)) + 2

    def _pieces(
        self, answer: NotesAnswer, parts: Sequence[Part], listings: Sequence[str], room: int
    ) -> Pieces:
        self._expect(len(parts) + 1)
        collected = self._collect(list(zip(listings, map(_numbers, parts), strict=True)))
        lines = [line for one in collected for line in _lines(one)]
        if not lines:
            yield NOTHING_FOUND
        for number, run in enumerate(self._fitting(lines, answer.sources, room)):
            if number:
                yield "\n\n"
            messages = self.messages("notes_summary", self._joined(run, answer.sources))
            yield from self.streamed(answer, messages)
        for number, (part, one) in enumerate(zip(parts, collected, strict=True), 1):
            if isinstance(one, ProviderError):
                yield f"\n\n{self._not_read(number, len(parts), part, one)}"
        self._done()

    def _collect(self, requests: Sequence[tuple[str, set[int]]]) -> list[Collected]:
        """What each of these listings says on the subject. Raises ProviderError where none could be
        read."""
        collected = self._run(requests)
        failed = {n: one for n, one in enumerate(collected) if isinstance(one, ProviderError)}
        again = [n for n, error in failed.items() if error.retryable]
        if len(again) < len(requests):
            for n, one in zip(again, self._run([requests[n] for n in again]), strict=True):
                collected[n] = one
        errors = [one for one in collected if isinstance(one, ProviderError)]
        if len(errors) == len(requests):
            raise errors[0]
        return collected

    def _run(self, requests: Sequence[tuple[str, set[int]]]) -> list[Collected]:
        calls = [partial(self._call, *request) for request in requests]
        futures = at_once("memchat-notes", calls, AT_ONCE)
        try:
            return [self._result(future) for future in futures]
        except BaseException:
            self._stopped.set()
            raise

    def _call(self, listing: str, numbered: set[int]) -> Collected:
        """One call, beside others. Only lines that cite a note of its listing are taken."""
        if self._stopped.is_set():
            return ()
        try:
            said = self.model.complete(self.messages("notes_collect", listing), purpose="notes")
        except ProviderError as error:
            return error
        self.spent.append(said.usage)
        lines = ("".join(kept([line], numbered)) for line in said.text.splitlines())
        return [line.strip(" -*\t") for line in lines if numbers(line)]

    def _result(self, future: Future[Collected]) -> Collected:
        result = waiting.result(future)
        if not isinstance(result, ProviderError):
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
            requests = [(self._joined(run, found), _cited_in(run)) for run in runs]
            again = zip(runs, self._collect(requests), strict=True)
            shorter = [line for run, one in again for line in _lines(one, run)]
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
        cited = _cited_in(lines)
        heads = (self.passages.head(one) for one in found if one.number in cited)
        return "\n".join([*heads, "", *(f"  - {render.escaped(line)}" for line in lines)])

    def _not_read(self, number: int, total: int, part: Part, error: ProviderError) -> str:
        """A line that names a part that could not be read."""
        days = sorted(render.day(source.created_at, self.passages.zone) for source in part)
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
        self._tell(self._calls_done, self._calls)


def _moment(source: NoteSource) -> tuple[datetime, int]:
    return source.created_at, source.note_id


def _with(best: Part, part: Part) -> Part:
    known = _numbers(part)
    both = [*part, *(source for source in best if source.number not in known)]
    return sorted(both, key=lambda source: source.number)


def _numbers(found: Sequence[NoteSource]) -> set[int]:
    return {source.number for source in found}


def _lines(one: Collected, otherwise: Sequence[str] = ()) -> Sequence[str]:
    return otherwise if isinstance(one, ProviderError) else one


def _cited_in(lines: Sequence[str]) -> set[int]:
    return {number for line in lines for number in numbers(line)}
