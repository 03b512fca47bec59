"""Learns from an ended conversation: a model reads it, and the facts that pass the gate are stored.

The turns since the last extraction go to the model together with known facts, a long conversation
in several windows. The gate judges each proposal, the model looks a second time at those that it
did not refuse, and all are embedded in one batch. One transaction then stores facts, vectors,
sources, events, how far the session was read, and the finished job.

Nothing is written before that transaction, so a session can be read again after any failure. Where
only the second look fails, the proposals wait in the inbox for a job of their own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from time import monotonic

from memchat.config import Settings
from memchat.db import Tx, apps, jobs, messages, sessions, usage
from memchat.db.database import Database
from memchat.db.jobs import Claim
from memchat.errors import ConfigError, ProviderError, StoreError
from memchat.facts import keys, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.consolidation import Ingested, ingest, session_end
from memchat.facts.memories import Fact
from memchat.facts.proposals import target_of
from memchat.forget import purge
from memchat.language import secrets
from memchat.learn import model_calls
from memchat.learn.candidate import Candidate, ExtractionAnswer, KnownFact, Verdict
from memchat.learn.gate import judge
from memchat.learn.model_calls import (
    NOBODY_LOOKED,
    NOT_LOOKED_AT,
    Extractor,
    SecondLook,
    Window,
    unlooked,
)
from memchat.learn.outcomes import (
    add_refusals,
    hold_for_review,
    needing_review,
    refused_verdicts,
)
from memchat.learn.session_reading import (
    NEAREST_FACTS,
    SessionReading,
    ask_first,
    grounded_description,
    shown_memory_lines,
)
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.search import passages, turns
from memchat.search.embed import EmbeddingSpace
from memchat.search.turns import Made
from memchat.types import Change, Learned, OnProgress, Progress, Scope, Session

log = logging.getLogger(__name__)

_SUMMARY_LIMIT = 600
TAKEN_OVER = "another worker has taken the conversation over"
WINDOWS_AT_ONCE = 4
"""Windows of one conversation that are read before others get their turn."""


class Learner:
    """Reads ended sessions of one store."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        prompts: Prompts,
        model: Callable[..., ChatModel],
        space: Callable[[], tuple[EmbeddingSpace | None, str | None]],
    ) -> None:
        """``model`` gives the model that reads, or the one whose name it is given."""
        self._database = database
        self._settings = settings
        self._prompts = prompts
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
        reader = Extractor(model, self._prompts)
        parts, began = self._windows(reading, model), monotonic()
        with self._usage_kept(reading):
            for number, window in enumerate(parts):
                if number and number % WINDOWS_AT_ONCE == 0:
                    yield
                self._extract_and_judge(reader, reading, window)
                self._renew(claim)
                on_progress(Progress(number + 1, len(parts), monotonic() - began, unit="parts"))
            self._compare_with_store(reading)
            self._look_again(claim, reading, model, reader)
            facts, changes = reading.resolve(self._settings.zone)
            facts, vectors = self._embed(reading, facts, self._space()[0])
            learned = self._write(claim, reading, facts, vectors)
            if learned.skipped is not None:
                return learned
            return replace(learned, changes=(*changes, *learned.changes))

    def look_late(self, claim: Claim) -> Learned:
        """Make the second look that proposals of the claimed session still wait for, and the look
        at its title and summary.

        Raises ProviderError; then they still wait, and it may be tried again.
        """
        with self._database.read() as tx:
            found = sessions.by_id(tx, claim.target_id)
            on = found is not None and self._memory_is_on(tx, found[0])
            if found is not None and on:
                turns = messages.of_session(tx, claim.target_id, learnable=True)
                reading = SessionReading(*found, turns, len(turns))
                waiting = self._take_up_waiting(tx, reading)
                described = self._stored_description(tx, claim.target_id)
        if found is None or not on:
            return self._skip(claim, "memory is off")
        model = self._model()
        if model.stand_in or self._settings.verify == "off":
            reading.verdicts = [unlooked(one, NOBODY_LOOKED) for one in reading.verdicts]
        elif waiting or described:
            with self._usage_kept(reading):
                look = SecondLook(model, self._prompts, self._settings.mask_before_extraction)
                every = range(len(waiting))
                reading.look_again(every, described, look, self._settings.zone, None)
        with self._database.write(reading.scope) as tx:
            self._check_held(tx, claim)
            changes = self._write_late(tx, reading, waiting, described)
            self._add_usage(tx, reading)
            jobs.finish(tx, claim, tx.now)
        return Learned(claim.target_id, tuple(changes))

    def _write_late(
        self,
        tx: Tx,
        reading: SessionReading,
        waiting: Sequence[int],
        described: Mapping[str, str],
    ) -> list[Change]:
        """Store what a late look said of the items ``waiting``. What the person decided, or had
        forgotten, meanwhile is left as it is."""
        session_id = reading.session.id
        if not self._memory_is_on(tx, reading.session):
            return []
        kept = [words for name, words in described.items() if name not in reading.withheld]
        kept = [words for words in kept if not reading.gives_secret_away(words)]
        present = self._stored_description(tx, session_id)
        left = {
            name: words
            for name, words in present.items()
            if words in kept or words not in described.values()
        }
        if left != present:
            sessions.set_description(tx, session_id, left.get("title"), left.get("summary"))
        still = {item.id for item in proposals.awaiting_second_look(tx, session_id)}
        both = zip(waiting, reading.verdicts, strict=True)
        items = {id(one.candidate): item_id for item_id, one in both if item_id in still}
        reading.verdicts = [one for one in reading.verdicts if id(one.candidate) in items]
        asked = needing_review(reading.verdicts)
        for one in asked:
            item_id, reason = items.pop(id(one.candidate)), "; ".join(one.reasons)
            proposals.leave_to_person(tx, item_id, reason, bare=one.bare)
        proposals.remove(tx, list(items.values()))
        facts, changes = reading.resolve(tx.zone)
        done = self._store(tx, reading, facts, self._altered(tx, reading), late=True)
        return [*changes, *done.changes]

    def _store(
        self,
        tx: Tx,
        reading: SessionReading,
        facts: Sequence[Fact],
        altered: set[int],
        *,
        late: bool = False,
    ) -> Ingested:
        """Put the facts, what waits and what was refused into the store. ``late``: what waits is in
        the inbox already."""
        session_id, threshold = reading.session.id, self._settings.merge_threshold
        done = ingest(tx, session_end(session_id), facts, threshold, blanked=altered)
        refused = refused_verdicts(reading.verdicts, reading.known) + done.refused
        if not late:
            refused += hold_for_review(tx, reading, altered)
            proposals.remove_refused(tx, session_id, read_to=reading.session.extracted_to)
        add_refusals(tx, reading, refused, altered=altered)
        return done

    @staticmethod
    def _memory_is_on(tx: Tx, session: Session) -> bool:
        return apps.memory_switch(tx, Scope(session.user, session.app)).on

    @staticmethod
    def _take_up_waiting(tx: Tx, reading: SessionReading) -> list[int]:
        """The ids of the items that wait for a look, whose proposals the reading then holds."""
        ids = apps.find(tx, reading.scope).ids
        items = proposals.awaiting_second_look(tx, reading.session.id)
        found = ((item, target_of(tx, ids, item)) for item in items)
        return [item.id for item, target in found if reading.add_waiting(item, target)]

    @staticmethod
    def _stored_description(tx: Tx, session_id: int) -> dict[str, str]:
        title, summary = sessions.description(tx, session_id)
        return {name: words for name, words in (("title", title), ("summary", summary)) if words}

    def _open(self, session_id: int) -> tuple[SessionReading | None, str | None]:
        with self._database.read() as tx:
            found = sessions.by_id(tx, session_id)
            if found is None:
                return None, "the session is gone"
            if not self._memory_is_on(tx, found[0]):
                return None, "memory is off"
            turns = messages.of_session(tx, session_id, learnable=True)
            unread = [n for n, turn in enumerate(turns) if turn.id > found[0].extracted_to]
            if not any(turns[n].role == "user" for n in unread):
                return None, "nothing new was said"
            reading = SessionReading(*found, turns, unread[0])
            reading.injected = shown_memory_lines(tx, turns)
            reading.to_read_whole = messages.to_read_whole(tx, session_id)
        return reading, None

    def _skip(self, claim: Claim, why_not: str | None) -> Learned:
        with self._database.write() as tx:
            jobs.finish(tx, claim, tx.now)
            self._requeue_unread(tx, claim)
        return Learned(claim.target_id, skipped=why_not)

    def _windows(self, reading: SessionReading, model: ChatModel) -> list[Window]:
        reading.shortened = {
            turn.id
            for turn in reading.new_turns
            if turn.id not in reading.to_read_whole
            and model_calls.is_long(turn.content, model.window)
        }
        turns = [replace(turn, content=self._masked(turn.content)) for turn in reading.turns]
        zone = self._settings.zone
        return model_calls.cut(turns, reading.first_unread, model.window, zone, reading.shortened)

    def _extract_and_judge(
        self, reader: Extractor, reading: SessionReading, window: Window
    ) -> None:
        space, _ = self._space()  # the first call writes, so it must not run in a read transaction
        reading.embed_questions(space, window)
        with self._database.read(reading.scope) as tx:
            shown = reading.show_facts(tx, space, window)
            in_use = memories.keys_in_use(tx, tx.ids)
        sent = [(replace(fact, value=self._masked(fact.value)), day) for fact, day in shown]
        free = [key for key in keys.COMMON_KEYS if key not in in_use]
        answers, spent = reader.read(window, sent, free)
        reading.usage += spent
        with self._database.read() as tx:
            items = [reading.link_by_key(tx, item) for one in answers for item in one.facts]
        known = {fact.id: fact for fact, _ in shown}
        known |= {item.to: reading.known[item.to] for item in items if item.to in reading.known}
        reading.verdicts += map(self._judge(reader, reading, known), items)
        self._describe(reading, answers[0])

    def _judge(
        self, reader: Extractor, reading: SessionReading, known: Mapping[str, KnownFact]
    ) -> Callable[[Candidate], Verdict]:
        """The gate over the conversation, for candidates of a reading that was shown ``known``."""
        turns, facts = reading.gate_turns(), list(known.values())

        def judged(item: Candidate) -> Verdict:
            verdict = judge(
                item,
                turns,
                facts,
                prompt_text=reader.instructions,
                injected=reading.injected,
                zone=self._settings.zone,
            )
            return reading.refuse_if_read_before(verdict)

        return judged

    def _compare_with_store(self, reading: SessionReading) -> None:
        """Ask first where words were pasted from a note, and refuse what was forgotten."""
        with self._database.read(reading.scope) as tx:
            asked = [ask_first(tx, reading.app_id, v, reading.by_id) for v in reading.verdicts]
            reading.verdicts = [reading.refuse_if_forgotten(tx, tx.ids, v) for v in asked]

    def _look_again(
        self, claim: Claim, reading: SessionReading, model: ChatModel, reader: Extractor
    ) -> None:
        """Ask the model for a second look at what code did not refuse, and at title and summary.
        Of what waits for the person only a secret counts.

        It is postponed while the conversation continues, and where the provider fails. The stand-in
        is not asked: what its patterns read is stored.
        """
        asked = [
            n
            for n in reading.current_places()
            if reading.verdicts[n].outcome != "refuse" and reading.verdicts[n].spans
        ]
        described = reading.described() if asked or reading.title or reading.summary else {}
        waits = NOBODY_LOOKED if self._settings.verify == "off" else None
        if waits is None and (asked or described) and not model.stand_in:
            waits = self._ask_again(claim, reading, model, reader, asked, described)
        if waits is not None:
            reading.verdicts = [unlooked(verdict, waits) for verdict in reading.verdicts]
        with self._database.read(reading.scope) as tx:
            reading.verdicts = [reading.refuse_if_taught(tx, tx.ids, v) for v in reading.verdicts]

    def _ask_again(
        self,
        claim: Claim,
        reading: SessionReading,
        model: ChatModel,
        reader: Extractor,
        asked: Sequence[int],
        described: Mapping[str, str],
    ) -> str | None:
        """Make the second look; why the verdicts wait for it where it cannot be made now."""
        with self._database.read() as tx:
            if self._is_open(tx, reading):
                return NOT_LOOKED_AT
        self._renew(claim)
        look = SecondLook(model, self._prompts, self._settings.mask_before_extraction)
        judged = self._judge(reader, reading, reading.known)
        try:
            reading.look_again(asked, described, look, self._settings.zone, judged)
        except ProviderError as error:
            log.warning("session %s: the second look failed: %s", reading.session.id, error)
            reading.look_failed = True
            return NOT_LOOKED_AT
        return None

    def _embed(
        self, reading: SessionReading, facts: list[Fact], space: EmbeddingSpace | None
    ) -> tuple[list[Fact], Made | None]:
        """Embed the facts and the conversation: the facts with their nearest stored neighbours, and
        the vectors. Where the service fails there are none, and the facts are stored all the
        same."""
        if space is None:
            return facts, None
        session, zone = reading.session, self._settings.zone
        with self._database.read() as tx:
            summary = reading.summary or sessions.description(tx, session.id)[1]
            said = turns.texts(tx, session, reading.turns, zone, summary=summary, new_facts=facts)
        try:
            vectors, spent = space.documents([*(fact.search_text for fact in facts), *said.every])
        except (ProviderError, ConfigError) as error:
            log.warning("session %s: vectors follow later: %s", session.id, error)
            return facts, (space.service_id, {})
        reading.usage += [replace(spent, purpose="embed")] if spent is not None else []
        with self._database.read(reading.scope) as tx:
            for n, fact in enumerate(facts):
                vector = vectors.get(passages.text_hash(fact.search_text))
                if vector is not None:  # replaced values are in the index too
                    found = space.index.search(tx, [tx.own], vector, 4 * NEAREST_FACTS)
                    rows = memories.by_ids(tx, [tx.own], [i for i, _ in found])
                    near = tuple((i, cosine) for i, cosine in found if rows[i].active)
                    facts[n] = replace(fact, near=near[:NEAREST_FACTS])
        return facts, (space.service_id, vectors)

    def _write(
        self, claim: Claim, reading: SessionReading, facts: list[Fact], vectors: Made | None
    ) -> Learned:
        """Store all that was read, in one transaction. Vectors that are missing are made
        later."""
        session_id = reading.session.id
        with self._database.write(reading.scope) as tx:
            self._check_held(tx, claim)
            if not self._memory_is_on(tx, reading.session):
                jobs.finish(tx, claim, tx.now)
                return Learned(claim.target_id, skipped="memory was switched off meanwhile")
            altered = self._altered(tx, reading)
            done = self._store(tx, reading, facts, altered)
            stripped = purge.strip_read_cues(tx, tx.own, reading.stored_facts())
            purge.reindex(tx, stripped, Cause(tx.now, "model", "extracted", session_id))
            # Words that were blanked meanwhile may stand in a title and a summary.
            told = {} if altered else reading.described()
            title = sessions.description(tx, session_id)[0] or told.get("title")
            summary = told.get("summary")
            read_to = reading.read_to(messages.to_read_whole(tx, session_id))
            sessions.mark_extracted(tx, session_id, read_to, title, summary)
            turns.write(tx, session_id, vectors)
            self._add_usage(tx, reading)
            jobs.finish(tx, claim, tx.now)
            self._requeue_unread(tx, claim)
            self._queue_second_look(tx, claim, reading)
        shortened = len(reading.shortened)
        return Learned(claim.target_id, tuple(done.changes), title, summary, shortened=shortened)

    def _is_open(self, tx: Tx, reading: SessionReading) -> bool:
        """Whether the conversation, which is read message by message, may continue."""
        found = sessions.by_id(tx, reading.session.id)
        going_on = found is not None and found[0].ended_at is None
        return going_on and self._settings.extraction == "per_message"

    def _masked(self, words: str) -> str:
        return secrets.mask(words) if self._settings.mask_before_extraction else words

    def _describe(self, reading: SessionReading, answer: ExtractionAnswer) -> None:
        said = [turn.content for turn in reading.turns]
        if reading.title is None:
            reading.title = grounded_description(answer.title, said)
        summary = grounded_description(answer.summary, said)
        if summary and len(reading.summary) + len(summary) < _SUMMARY_LIMIT:
            reading.summary = f"{reading.summary} {summary}".strip()

    def _altered(self, tx: Tx, reading: SessionReading) -> set[int]:
        """The turns whose words were blanked or deleted while the model was reading them."""
        left = messages.of_session(tx, reading.session.id, learnable=True)
        now = {turn.id: turn.content for turn in left}
        return {turn.id for turn in reading.turns if now.get(turn.id) != turn.content}

    @staticmethod
    def _check_held(tx: Tx, claim: Claim) -> None:
        if not jobs.is_held(tx, claim):
            raise StoreError(TAKEN_OVER)

    def _renew(self, claim: Claim) -> None:
        with self._database.write() as tx:
            if not jobs.renew(tx, claim, tx.now + timedelta(seconds=jobs.LEASE_SECONDS)):
                raise StoreError(TAKEN_OVER)

    def _queue_second_look(self, tx: Tx, claim: Claim, reading: SessionReading) -> None:
        """Queue the second look of what waits for it; later, and of the title and summary at least,
        where the provider failed."""
        waiting = reading.look_failed or proposals.awaiting_second_look(tx, reading.session.id)
        if self._is_open(tx, reading) or not waiting:
            return
        pause = self._settings.retry_minutes[0] if reading.look_failed else 0
        at = tx.now + timedelta(minutes=pause)
        jobs.enqueue(tx, "verify", claim.app_id, claim.target_id, tx.now, run_at=at)

    def _requeue_unread(self, tx: Tx, claim: Claim) -> None:
        """Queue the session again where turns came meanwhile that are due for reading."""
        found = sessions.by_id(tx, claim.target_id)
        if found is None or not self._memory_is_on(tx, found[0]):
            return
        due = self._settings.extraction == "per_message" or found[0].ended_at is not None
        if due and sessions.has_unread_messages(tx, claim.target_id):
            jobs.enqueue(tx, "extract", claim.app_id, claim.target_id, tx.now)

    @contextmanager
    def _usage_kept(self, reading: SessionReading) -> Iterator[None]:
        """What a failed reading took is counted all the same."""
        try:
            yield
        except BaseException:
            with self._database.write() as tx:
                if sessions.by_id(tx, reading.session.id) is not None:
                    self._add_usage(tx, reading)
            raise

    @staticmethod
    def _add_usage(tx: Tx, reading: SessionReading) -> None:
        for spent in reading.usage:
            usage.add(tx, reading.app_id, reading.session.id, spent, tx.now)
