"""The END route, whole: from an ended conversation to stored facts.

The turns since the last extraction and the known facts go to the model (once; a long conversation
in windows). The gate judges each candidate, the model looks once more at the doubtful ones, all are
embedded in one batch, and one transaction stores facts, vectors, sources, events, the session's
mark and the finished job. Nothing is written before that transaction, and nothing of it survives a
failure, so a session can be read again at any time. Where only the second look fails, what it was
to decide waits in the inbox for a job of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from time import monotonic

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.errors import ProviderError, StoreError
from memchat.language import secrets
from memchat.memory.context import Context
from memchat.memory.embedding.space import EmbeddingSpace
from memchat.memory.extraction import note_words, refusal_records, windows
from memchat.memory.extraction.candidate import Candidate, ExtractionAnswer
from memchat.memory.extraction.deferred_second_look import DeferredSecondLook
from memchat.memory.extraction.extractor import Extractor, Window
from memchat.memory.extraction.fact_vectors import FactVectors
from memchat.memory.extraction.review_entries import hold_for_review
from memchat.memory.extraction.second_look import SecondLook
from memchat.memory.extraction.second_look_verdicts import (
    leave_to_person,
    needs_second_look,
    waits_for_second_look,
)
from memchat.memory.extraction.session_reading import SessionReading, shown_memory_lines
from memchat.memory.extraction.session_title import grounded_description
from memchat.memory.extraction.verdict_outcomes import refused_verdicts
from memchat.memory.facts.fact import Fact
from memchat.memory.facts.ingest import ingest, session_end
from memchat.memory.forgetting import redaction, replies_in_flight
from memchat.memory.gate import keys
from memchat.memory.gate.judge import judge
from memchat.memory.gate.types import KnownFact, Verdict
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.store import apps, inbox, jobs, memory_lists, messages, sessions, usage
from memchat.store.apps import ScopeIds
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.store.jobs import Claim
from memchat.types import Learned, OnProgress, Progress, Scope

log = logging.getLogger(__name__)

_SUMMARY_LIMIT = 600
WINDOWS_AT_ONCE = 4
"""Windows of one conversation that are read before others get their turn."""


class Learner:
    """Reads ended sessions of one store."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        prompts: Prompts,
        clock: Callable[[], datetime],
        model: Callable[..., ChatModel],
        space: Callable[[], tuple[EmbeddingSpace | None, str | None]],
    ) -> None:
        """``model`` gives the model that reads, or the one whose name it is given."""
        self._database = database
        self._settings = settings
        self._prompts = prompts
        self._clock = clock
        self._model = model
        self._space = space

    def learn(
        self, claim: Claim, on_progress: OnProgress = lambda _: None
    ) -> Generator[None, None, Learned]:
        """Read what is new in the claimed session and put it into the store, with the model that
        the claim names, if it names one.

        It pauses after every ``WINDOWS_AT_ONCE`` windows for the caller to do other work.
        Raises ProviderError or ExtractionError; then nothing was changed and it may be tried again.
        """
        reading, why_not = self._open(claim.target_id)
        if reading is None:
            return self._skip(claim, why_not)
        model = self._model(claim.how)
        extractor = Extractor(model, self._prompts)
        parts, began = self._windows(reading, model), monotonic()
        try:
            for number, window in enumerate(parts):
                if number and number % WINDOWS_AT_ONCE == 0:
                    yield
                self._extract_and_judge(extractor, reading, window)
                self._renew(claim)
                on_progress(Progress(number + 1, len(parts), monotonic() - began, unit="parts"))
            self._compare_with_store(reading)
            self._look_again(claim, reading, model, extractor)
            facts, changes = reading.resolve(self._settings.zone)
            vectors = FactVectors(self._database, self._settings, reading, self._space()[0])
            facts = vectors.embed(facts)
            learned = self._write(claim, reading, facts, vectors)
            if learned.skipped is not None:
                return learned
            return replace(learned, changes=(*changes, *learned.changes))
        except BaseException:
            self._keep_usage(reading)
            raise

    def look_late(self, claim: Claim) -> Learned:
        """Make the second look that proposals of the claimed session still wait for.

        Raises ProviderError; then they still wait, and it may be tried again.
        """
        late = DeferredSecondLook(
            self._database, self._settings, self._prompts, self._clock, self._model
        )
        return late.look(claim)

    def _open(self, session_id: int) -> tuple[SessionReading | None, str | None]:
        with self._database.read() as tx:
            found = sessions.by_id(tx, session_id)
            if found is None:
                return None, "the session is gone"
            session, app_id = found
            if not apps.memory_switch(tx, Scope(session.user, session.app)).on:
                return None, "memory is off"
            turns = messages.of_session(tx, session_id, learnable=True)
            first = next(
                (i for i, m in enumerate(turns) if m.id > session.extracted_to), len(turns)
            )
            if not any(m.role == "user" for m in turns[first:]):
                return None, "nothing new was said"
            given = shown_memory_lines(tx, turns)
            whole = messages.to_read_whole(tx, session_id)
        reading = SessionReading(session, app_id, turns, first, injected=given)
        reading.to_read_whole = whole
        return reading, None

    def _skip(self, claim: Claim, why_not: str | None) -> Learned:
        with self._database.write() as tx:
            jobs.finish(tx, claim, self._clock())
            self._requeue_unread(tx, claim)
        return Learned(claim.target_id, skipped=why_not)

    def _windows(self, reading: SessionReading, model: ChatModel) -> list[Window]:
        reading.shortened = {
            turn.id
            for turn in reading.turns[reading.first_unread :]
            if turn.id not in reading.to_read_whole and windows.is_long(turn.content, model.window)
        }
        turns = [replace(turn, content=self._masked(turn.content)) for turn in reading.turns]
        zone = self._settings.zone
        return windows.cut(turns, reading.first_unread, model.window, zone, reading.shortened)

    def _extract_and_judge(
        self, extractor: Extractor, reading: SessionReading, window: Window
    ) -> None:
        space, _ = self._space()  # the first call writes, so it must not run in a read transaction
        reading.embed_questions(space, window)
        with self._database.read() as tx:
            scope = apps.find(tx, reading.scope)
            ctx = Context(tx, scope, self._clock(), self._settings.zone)
            shown = reading.show_facts(ctx, space, window)
            in_use = memory_lists.keys_in_use(tx, scope.ids)
        free = [key for key in keys.COMMON_KEYS if key not in in_use]
        extraction = extractor.read(window, self._sent_facts(shown), free)
        reading.usage += extraction.usage
        items = [item for answer in extraction.answers for item in answer.facts]
        with self._database.read() as tx:
            items = [reading.link_by_key(tx, item) for item in items]
        known = {fact.id: fact for fact, _ in shown}
        known |= {item.to: reading.known[item.to] for item in items if item.to in reading.known}
        judged = self._judge(extractor, reading, known)
        reading.verdicts += [judged(item) for item in items]
        self._describe(reading, extraction.answers[0])

    def _judge(
        self, extractor: Extractor, reading: SessionReading, known: Mapping[str, KnownFact]
    ) -> Callable[[Candidate], Verdict]:
        """The gate over the conversation, for candidates of a reading that was shown ``known``."""
        turns, facts = reading.gate_turns(), list(known.values())

        def judged(item: Candidate) -> Verdict:
            verdict = judge(
                item,
                turns,
                facts,
                prompt_text=extractor.instructions,
                injected=reading.injected,
                zone=self._settings.zone,
            )
            return reading.refuse_if_read_before(verdict)

        return judged

    def _compare_with_store(self, reading: SessionReading) -> None:
        """Ask first where words were pasted from a note, and refuse what was forgotten."""
        turns = {turn.id: turn for turn in reading.turns}
        with self._database.read() as tx:
            ids = apps.find(tx, reading.scope).ids
            asked = [note_words.ask_first(tx, reading.app_id, v, turns) for v in reading.verdicts]
            reading.verdicts = [reading.refuse_if_forgotten(tx, ids, v) for v in asked]

    def _look_again(
        self, claim: Claim, reading: SessionReading, model: ChatModel, extractor: Extractor
    ) -> None:
        """Ask the model for a second look at the verdicts that the settings name, and at title and
        summary.

        It is postponed while the conversation continues, and where the provider fails.
        """
        mode = "off" if model.stand_in else self._settings.verify
        verdicts = reading.verdicts
        asked = [n for n in reading.current_places() if needs_second_look(verdicts[n], mode)]
        unsure = [n for n in asked if waits_for_second_look(verdicts[n])]
        told = mode == "always" and (reading.title or reading.summary)
        described = reading.described() if asked or told else {}
        if (asked or described) and not self._is_over(reading):
            reading.postpone(unsure)
        elif asked or described:
            self._renew(claim)
            look = SecondLook(model, self._prompts, self._settings.mask_before_extraction)
            judged = self._judge(extractor, reading, reading.known)
            try:
                reading.look_again(asked, described, look, self._settings.zone, judged)
            except ProviderError as error:
                log.warning("session %s: the second look failed: %s", reading.session.id, error)
                reading.postpone(unsure)
                reading.look_failed = True
        left = [leave_to_person(verdict) for verdict in reading.verdicts]
        with self._database.read() as tx:
            ids = apps.find(tx, reading.scope).ids
            reading.verdicts = [reading.refuse_if_taught(tx, ids, verdict) for verdict in left]

    def _write(
        self, claim: Claim, reading: SessionReading, facts: list[Fact], vectors: FactVectors
    ) -> Learned:
        """Store all that was read, in one transaction."""
        session_id, now = reading.session.id, self._clock()
        with self._database.write() as tx:
            if not jobs.is_held(tx, claim):
                raise StoreError("another worker has taken the reading over")
            if not apps.memory_switch(tx, reading.scope).on:
                jobs.finish(tx, claim, now)
                return Learned(claim.target_id, skipped="memory was switched off meanwhile")
            own, shared = apps.ensure(tx, reading.scope, now)
            ctx = Context(tx, ScopeIds(own, shared), now, self._settings.zone)
            altered = self._altered(tx, reading)
            threshold = self._settings.merge_threshold
            done = ingest(ctx, session_end(session_id), facts, threshold, blanked=altered)
            refused = refused_verdicts(reading.verdicts, reading.known) + done.refused
            refused += hold_for_review(ctx, reading, altered)
            refusal_records.record(ctx, reading, refused, altered=altered)
            stripped = replies_in_flight.strip_cues(tx, own, reading.stored_facts())
            cause = Cause(now, "model", "extracted", session_id)
            redaction.reindex(ctx, stripped, cause)
            title, summary = self._description(tx, reading, bool(altered))
            asked = messages.to_read_whole(tx, session_id)
            sessions.mark_extracted(tx, session_id, reading.read_to(asked), title, summary)
            vectors.store(ctx, done.written)
            for spent in reading.usage:
                usage.add(tx, own, session_id, spent, now)
            jobs.finish(tx, claim, now)
            self._requeue_unread(tx, claim)
            self._queue_second_look(tx, claim, reading)
        shortened = len(reading.shortened)
        return Learned(claim.target_id, tuple(done.changes), title, summary, shortened=shortened)

    def _is_over(self, reading: SessionReading) -> bool:
        """Whether the conversation is complete; one that is read message by message may
        continue."""
        with self._database.read() as tx:
            return not self._is_open(tx, reading)

    def _is_open(self, tx: Connection, reading: SessionReading) -> bool:
        found = sessions.by_id(tx, reading.session.id)
        going_on = found is not None and found[0].ended_at is None
        return going_on and self._settings.extraction == "per_message"

    def _masked(self, words: str) -> str:
        return secrets.mask(words) if self._settings.mask_before_extraction else words

    def _sent_facts(self, shown: list[tuple[KnownFact, str]]) -> list[tuple[KnownFact, str]]:
        return [(replace(fact, value=self._masked(fact.value)), day) for fact, day in shown]

    def _describe(self, reading: SessionReading, answer: ExtractionAnswer) -> None:
        said = [turn.content for turn in reading.turns]
        if reading.title is None:
            reading.title = grounded_description(answer.title, said)
        summary = grounded_description(answer.summary, said)
        if summary and len(reading.summary) + len(summary) < _SUMMARY_LIMIT:
            reading.summary = f"{reading.summary} {summary}".strip()

    def _altered(self, tx: Connection, reading: SessionReading) -> set[int]:
        """The turns whose words were blanked or deleted while the model was reading them."""
        left = messages.of_session(tx, reading.session.id, learnable=True)
        now = {turn.id: turn.content for turn in left}
        return {turn.id for turn in reading.turns if now.get(turn.id) != turn.content}

    def _description(
        self, tx: Connection, reading: SessionReading, altered: bool
    ) -> tuple[str | None, str | None]:
        title, _ = sessions.description(tx, reading.session.id)
        if altered:
            return title, None
        told = reading.described()
        return title or told.get("title"), told.get("summary")

    def _renew(self, claim: Claim) -> None:
        with self._database.write() as tx:
            until = self._clock() + timedelta(seconds=jobs.LEASE_SECONDS)
            if not jobs.renew(tx, claim, until):
                raise StoreError("another worker has taken the reading over")

    def _queue_second_look(self, tx: Connection, claim: Claim, reading: SessionReading) -> None:
        """Queue the second look of what waits for it; later, and of the title and summary at least,
        where the provider failed."""
        waiting = reading.look_failed or inbox.awaiting_second_look(tx, reading.session.id)
        if self._is_open(tx, reading) or not waiting:
            return
        pause = self._settings.retry_minutes[0] if reading.look_failed else 0
        now = self._clock()
        at = now + timedelta(minutes=pause)
        jobs.enqueue(tx, "verify", claim.app_id, claim.target_id, now, run_at=at)

    def _requeue_unread(self, tx: Connection, claim: Claim) -> None:
        """Queue the session again where turns came meanwhile that are due for reading."""
        found = sessions.by_id(tx, claim.target_id)
        if found is None or not apps.memory_switch(tx, Scope(found[0].user, found[0].app)).on:
            return
        due = self._settings.extraction == "per_message" or found[0].ended_at is not None
        if due and sessions.has_unread_messages(tx, claim.target_id):
            jobs.enqueue(tx, "extract", claim.app_id, claim.target_id, self._clock())

    def _keep_usage(self, reading: SessionReading) -> None:
        with self._database.write() as tx:
            if sessions.by_id(tx, reading.session.id) is None:
                return
            for spent in reading.usage:
                usage.add(tx, reading.app_id, reading.session.id, spent, self._clock())
