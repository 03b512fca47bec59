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
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memchat import types
from memchat.config import Settings
from memchat.db import Tx, apps, jobs, messages, sessions, usage
from memchat.db.database import Database
from memchat.db.jobs import Claim
from memchat.errors import ConfigError, InputError, MemChatError, ProviderError, StoreError
from memchat.facts import keys, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.consolidation import ingest, session_end
from memchat.facts.memories import Fact
from memchat.facts.proposals import target_of
from memchat.forget import purge
from memchat.language import secrets
from memchat.language.lexicon import is_sensitive
from memchat.language.telling import sentence_of
from memchat.learn import model_calls, outcomes
from memchat.learn.candidate import ExtractionAnswer, Turn
from memchat.learn.gate import judge
from memchat.learn.session_reading import (
    NEAREST_FACTS,
    SessionReading,
    ask_first,
    grounded_description,
    shown_memory_lines,
)
from memchat.learn.values import VALUE_LIMIT, true_sentence
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.search import passages, turns
from memchat.search.embed import EmbeddingSpace
from memchat.search.turns import Made
from memchat.types import Change, Draft, Learned, OnProgress, Session, timed

log = logging.getLogger(__name__)

_SUMMARY_LIMIT = 600
TAKEN_OVER = "another worker has taken the conversation over"
WINDOWS_AT_ONCE = 4
"""Windows of one conversation that are read before others get their turn."""


@dataclass(frozen=True, slots=True)
class Learner:
    """Reads ended sessions of one store."""

    database: Database
    settings: Settings
    prompts: Prompts
    model: Callable[..., ChatModel]
    """The model that reads, or the one whose name it is given."""
    space: Callable[[], tuple[EmbeddingSpace | None, str | None]]

    def learn(
        self, claim: Claim, on_progress: OnProgress | None = None
    ) -> Generator[Learned | None, None, None]:
        """Read what is new in the claimed session and put it into the store, with the model that
        the claim names, if it names one.

        It gives None after every ``WINDOWS_AT_ONCE`` windows, for the caller to do other work, and
        what was learned at the end.
        Raises ProviderError or ExtractionError; then nothing was changed and it may be tried again.
        """
        reading, why_not = self._open(claim.target_id)
        if reading is None:
            yield self._skip(claim, why_not)
            return
        model = self.model(claim.how)
        reader = model_calls.Extractor(model, self.prompts, reading.usage, self.settings.types)
        reading.own_types = self.settings.types
        reading.look_follows = self.settings.verify != "off" and not model.stand_in
        parts, report = self._windows(reading, model), timed(on_progress, "parts")
        with self._usage_kept(reading):
            for number, window in enumerate(parts):
                if number and number % WINDOWS_AT_ONCE == 0:
                    yield None
                self._extract_and_judge(reader, reading, window)
                self._renew(claim)
                report(number + 1, len(parts))
            with self.database.read(reading.scope) as tx:
                asked = [ask_first(tx, reading, verdict) for verdict in reading.verdicts]
                reading.verdicts = [reading.refuse_if_forgotten(tx, v) for v in asked]
            self._look_again(claim, reading, reader)
            facts, changes = outcomes.resolve(reading)
            facts, vectors = self._embed(reading, facts, self.space()[0])
            learned = self._write(claim, reading, facts, vectors)
        if learned.skipped is None:
            learned = replace(learned, changes=(*changes, *learned.changes))
        yield learned

    def look_late(self, claim: Claim) -> Learned:
        """Make the second look that proposals of the claimed session still wait for, and the look
        at its title and summary.

        Raises ProviderError; then they still wait, and it may be tried again.
        """
        with self.database.read() as tx:
            found = sessions.by_id(tx, claim.target_id)
            on = found is not None and self._memory_is_on(tx, found[0])
            if found is not None and on:
                turns = messages.of_session(tx, claim.target_id, learnable=True)
                reading = SessionReading(*found, turns, len(turns), tx.zone)
                reading.through = sessions.through(tx, claim.target_id)
                ids = apps.find(tx, reading.scope).ids
                waiting = [
                    item.id
                    for item in proposals.awaiting_second_look(tx, claim.target_id)
                    if reading.add_waiting(item, target_of(tx, ids, item))
                ]
                described = self._stored_description(tx, claim.target_id)
        if found is None or not on:
            return self._skip(claim, "memory is off")
        model = self.model()
        if model.stand_in or self.settings.verify == "off":
            reading.verdicts = [
                model_calls.unlooked(one, model_calls.NOBODY_LOOKED) for one in reading.verdicts
            ]
        elif waiting or described:
            with self._usage_kept(reading):
                every = range(len(waiting))
                reading.look_again(every, described, self._second_look(model, reading), None)
        reading.leave_to_the_person()
        with self.database.write(reading.scope) as tx:
            self._check_held(tx, claim)
            changes = self._write_late(tx, reading, waiting, described)
            self._add_usage(tx, reading)
            jobs.finish(tx, [claim], tx.now)
        return Learned(claim.target_id, tuple(changes))

    def _write_late(
        self, tx: Tx, reading: SessionReading, waiting: Sequence[int], described: Mapping[str, str]
    ) -> list[Change]:
        """Store what a late look said of the items ``waiting``. What the person decided, or had
        forgotten, meanwhile is left as it is."""
        session_id = reading.session.id
        if not self._memory_is_on(tx, reading.session):
            return []
        secret = {
            words
            for name, words in described.items()
            if name in reading.withheld or reading.gives_secret_away(words)
        }
        present = self._stored_description(tx, session_id)
        left = {name: words for name, words in present.items() if words not in secret}
        if left != present:
            sessions.set_description(tx, session_id, left.get("title"), left.get("summary"))
        still = {item.id for item in proposals.awaiting_second_look(tx, session_id)}
        both = zip(waiting, reading.verdicts, strict=True)
        items = {id(one.candidate): item_id for item_id, one in both if item_id in still}
        reading.verdicts = [one for one in reading.verdicts if id(one.candidate) in items]
        asked = outcomes.needing_review(reading.verdicts)
        for one in asked:
            item_id, reason = items.pop(id(one.candidate)), "; ".join(one.reasons)
            proposals.leave_to_person(tx, item_id, reason, bare=one.bare)
        proposals.remove(tx, list(items.values()))
        facts, changes = outcomes.resolve(reading)
        done = self._store(tx, reading, facts, self._altered(tx, reading), late=True)
        return [*changes, *done]

    def _store(
        self,
        tx: Tx,
        reading: SessionReading,
        facts: Sequence[Fact],
        altered: set[int],
        *,
        late: bool = False,
    ) -> list[Change]:
        """Put the facts, what waits and what was refused into the store. ``late``: what waits is in
        the inbox already."""
        session_id = reading.session.id
        done = ingest(tx, session_end(session_id), facts, blanked=altered)
        refused = outcomes.refused_verdicts(reading)
        for fact, change in zip(facts, done, strict=True):
            if change.kind == "refused":
                refused.append(proposals.refused(fact, change.reason or ""))
        if not late:
            refused += outcomes.hold_for_review(tx, reading, altered)
            proposals.remove_refused(tx, session_id, read_to=reading.session.extracted_to)
        outcomes.add_refusals(tx, reading, refused, altered=altered)
        return done

    @staticmethod
    def _memory_is_on(tx: Tx, session: Session) -> bool:
        found = sessions.by_id(tx, session.id)  # its switch may have been set meanwhile
        return found is not None and apps.memory_of(tx, found[0]).on

    @staticmethod
    def _stored_description(tx: Tx, session_id: int) -> dict[str, str]:
        title, summary = sessions.description(tx, session_id)
        return {name: words for name, words in (("title", title), ("summary", summary)) if words}

    def _open(self, session_id: int) -> tuple[SessionReading | None, str | None]:
        with self.database.read() as tx:
            found = sessions.by_id(tx, session_id)
            if found is None:
                return None, "the session is gone"
            if not self._memory_is_on(tx, found[0]):
                return None, "memory is off"
            turns = messages.of_session(tx, session_id, learnable=True)
            unread = [n for n, turn in enumerate(turns) if turn.id > found[0].extracted_to]
            if not any(turns[n].role == "user" for n in unread):
                return None, "nothing new was said"
            reading = SessionReading(*found, turns, unread[0], tx.zone)
            reading.injected = shown_memory_lines(tx, turns)
            reading.to_read_whole = messages.to_read_whole(tx, session_id)
            reading.through = sessions.through(tx, session_id)
        return reading, None

    def _skip(self, claim: Claim, why_not: str | None) -> Learned:
        with self.database.write() as tx:
            jobs.finish(tx, [claim], tx.now)
            self._requeue_unread(tx, claim)
        return Learned(claim.target_id, skipped=why_not)

    def _windows(self, reading: SessionReading, model: ChatModel) -> list[model_calls.Window]:
        reading.shortened = {
            turn.id
            for turn in reading.new_turns
            if turn.id not in reading.to_read_whole
            and model_calls.is_long(turn.content, model.window)
        }
        turns = [replace(turn, text=self._masked(turn.text)) for turn in reading.gate_turns()]
        return model_calls.cut(turns, reading.first_unread, model.window, reading.shortened)

    def _extract_and_judge(
        self, reader: model_calls.Extractor, reading: SessionReading, window: model_calls.Window
    ) -> None:
        space, _ = self.space()  # the first call writes, so it must not run in a read transaction
        reading.embed_questions(space, window)
        with self.database.read(reading.scope) as tx:
            shown = reading.show_facts(tx, space, window)
            in_use = memories.keys_in_use(tx, tx.ids)
        sent = [(replace(fact, value=self._masked(fact.value)), day) for fact, day in shown]
        free = [key for key in keys.COMMON_KEYS if key not in in_use]
        answers = reader.read(window, sent, free)
        with self.database.read(reading.scope) as tx:
            items = [reading.link_by_key(tx, item) for one in answers for item in one.facts]
        known = {fact.id: fact for fact, _ in shown}
        known |= {item.to: reading.known[item.to] for item in items if item.to in reading.known}
        facts = list(known.values())
        reading.verdicts += [reading.judged(item, facts, reader.instructions) for item in items]
        self._describe(reading, answers[0])

    def _look_again(
        self, claim: Claim, reading: SessionReading, reader: model_calls.Extractor
    ) -> None:
        """Ask the model for a second look at what code did not refuse, and at title and summary.
        Of what waits for the person only a secret counts.

        It is postponed while the conversation continues, and where the provider fails. The stand-in
        is not asked: what its patterns read is stored.
        """
        late = [v.candidate for v in reading.verdicts if v.outcome == "accept"]
        gone = {item.to for item in late if item.relation in ("updates", "ends")}
        asked = [
            n
            for n, verdict in enumerate(reading.verdicts)
            if verdict.outcome != "refuse" and verdict.spans and f"p{n + 1}" not in gone
        ]
        wanted = asked or reading.title or reading.summary
        described = reading.described(before_look=True) if wanted else {}
        waits = model_calls.NOBODY_LOOKED if self.settings.verify == "off" else None
        if waits is None and (asked or described) and not reader.model.stand_in:
            waits = self._ask_again(claim, reading, reader, asked, described)
        if waits is not None:
            reading.verdicts = [
                model_calls.unlooked(verdict, waits) for verdict in reading.verdicts
            ]
        reading.leave_to_the_person()
        with self.database.read(reading.scope) as tx:
            reading.verdicts = [reading.refuse_if_taught(tx, v) for v in reading.verdicts]

    def _ask_again(
        self,
        claim: Claim,
        reading: SessionReading,
        reader: model_calls.Extractor,
        asked: Sequence[int],
        described: Mapping[str, str],
    ) -> str | None:
        """Make the second look; why the verdicts wait for it where it cannot be made now."""
        with self.database.read() as tx:
            if self._is_open(tx, reading):
                return model_calls.NOT_LOOKED_AT
        self._renew(claim)
        look = self._second_look(reader.model, reading)
        try:
            reading.look_again(asked, described, look, reader.instructions)
        except ProviderError as error:
            log.warning("session %s: the second look failed: %s", reading.session.id, error)
            reading.look_failed = True
            return model_calls.NOT_LOOKED_AT
        return None

    def _second_look(self, model: ChatModel, reading: SessionReading) -> model_calls.SecondLook:
        masks = self.settings.mask_before_extraction
        return model_calls.SecondLook(model, self.prompts, reading.usage, masks=masks)

    def _embed(
        self, reading: SessionReading, facts: list[Fact], space: EmbeddingSpace | None
    ) -> tuple[list[Fact], Made | None]:
        """Embed the facts and the conversation: the facts with their nearest stored neighbours, and
        the vectors. Where the service fails there are none, and the facts are stored all the
        same."""
        if space is None:
            return facts, None
        session, zone = reading.session, self.settings.zone
        with self.database.read() as tx:
            summary = reading.summary or sessions.description(tx, session.id)[1]
            said = turns.texts(tx, session, reading.turns, zone, summary=summary, new_facts=facts)
        try:
            vectors, spent = space.documents([*(fact.search_text for fact in facts), *said.every])
        except (ProviderError, ConfigError) as error:
            log.warning("session %s: vectors follow later: %s", session.id, error)
            return facts, (space.service_id, {})
        reading.usage += [replace(spent, purpose="embed")] if spent is not None else []
        with self.database.read(reading.scope) as tx:
            for n, fact in enumerate(facts):
                vector = vectors.get(passages.text_hash(fact.search_text))
                if vector is not None:  # replaced values are in the index too
                    found = space.index.search(tx, [tx.own], vector, 4 * NEAREST_FACTS)
                    rows = memories.by_ids(tx, [tx.own], [i for i, _ in found])
                    nearest = [one for one in found if rows[one[0]].active][:NEAREST_FACTS]
                    least = self.settings.merge_threshold
                    near = tuple(i for i, cosine in nearest if cosine >= least)
                    facts[n] = replace(fact, near=near)
        return facts, (space.service_id, vectors)

    def _write(
        self, claim: Claim, reading: SessionReading, facts: list[Fact], vectors: Made | None
    ) -> Learned:
        """Store all that was read, in one transaction. Vectors that are missing are made
        later."""
        session_id = reading.session.id
        with self.database.write(reading.scope) as tx:
            self._check_held(tx, claim)
            if not self._memory_is_on(tx, reading.session):
                jobs.finish(tx, [claim], tx.now)
                return Learned(claim.target_id, skipped="memory was switched off meanwhile")
            altered = self._altered(tx, reading)
            done = self._store(tx, reading, facts, altered)
            shown = reading.known.values()  # what the session proposed itself has a negative id
            stored = {
                (fact.memory_id, fact.key, fact.value) for fact in shown if fact.memory_id > 0
            }
            stripped = purge.strip_read_cues(tx, tx.own, stored)
            purge.reindex(tx, stripped, Cause("model", "extracted", session_id))
            # Words that were blanked meanwhile may stand in a title and a summary.
            told = {} if altered else reading.described()
            title = sessions.description(tx, session_id)[0] or told.get("title")
            summary = told.get("summary")
            read_to = reading.read_to(messages.to_read_whole(tx, session_id))
            sessions.mark_extracted(tx, session_id, read_to, title, summary)
            turns.write(tx, session_id, vectors)
            self._add_usage(tx, reading)
            jobs.finish(tx, [claim], tx.now)
            self._requeue_unread(tx, claim)
            self._queue_second_look(tx, claim, reading)
        shortened = len(reading.shortened)
        return Learned(claim.target_id, tuple(done), title, summary, shortened=shortened)

    def _is_open(self, tx: Tx, reading: SessionReading) -> bool:
        """Whether the conversation, which is read message by message, may continue."""
        found = sessions.by_id(tx, reading.session.id)
        going_on = found is not None and found[0].ended_at is None
        return going_on and self.settings.extraction == "per_message"

    def _masked(self, words: str) -> str:
        return secrets.mask(words) if self.settings.mask_before_extraction else words

    def _describe(self, reading: SessionReading, answer: ExtractionAnswer) -> None:
        said = [turn.content for turn in reading.turns]
        if reading.title is None:
            reading.title = grounded_description(answer.title, said, plain=False)
        summary = grounded_description(answer.summary, said, plain=False)
        if summary and len(reading.summary) + len(summary) < _SUMMARY_LIMIT:
            reading.summary = f"{reading.summary} {summary}".strip()

    def _altered(self, tx: Tx, reading: SessionReading) -> set[int]:
        """The turns whose words were blanked or deleted while the model was reading them."""
        left = messages.of_session(tx, reading.session.id, learnable=True)
        now = {turn.id: turn.content for turn in left}
        return {turn.id for turn in reading.turns if now.get(turn.id) != turn.content}

    @staticmethod
    def _check_held(tx: Tx, claim: Claim) -> None:
        if not jobs.still_held(tx, [claim]):
            raise StoreError(TAKEN_OVER)

    def _renew(self, claim: Claim) -> None:
        with self.database.write() as tx:
            if not jobs.renew(tx, [claim], tx.now + timedelta(seconds=jobs.LEASE_SECONDS)):
                raise StoreError(TAKEN_OVER)

    def _queue_second_look(self, tx: Tx, claim: Claim, reading: SessionReading) -> None:
        """Queue the second look of what waits for it; later, and of the title and summary at least,
        where the provider failed."""
        waiting = reading.look_failed or proposals.awaiting_second_look(tx, reading.session.id)
        if self._is_open(tx, reading) or not waiting:
            return
        pause = self.settings.retry_minutes[0] if reading.look_failed else 0
        at = tx.now + timedelta(minutes=pause)
        jobs.enqueue(tx, "verify", claim.app_id, claim.target_id, tx.now, run_at=at)

    def _requeue_unread(self, tx: Tx, claim: Claim) -> None:
        """Queue the session again where turns came meanwhile that are due for reading."""
        found = sessions.by_id(tx, claim.target_id)
        if found is None or not self._memory_is_on(tx, found[0]):
            return
        due = self.settings.extraction == "per_message" or found[0].ended_at is not None
        if due and sessions.has_unread_messages(tx, claim.target_id):
            jobs.enqueue(tx, "extract", claim.app_id, claim.target_id, tx.now)

    @contextmanager
    def _usage_kept(self, reading: SessionReading) -> Iterator[None]:
        """What a failed reading took is counted all the same."""
        try:
            yield
        except BaseException:
            with self.database.write() as tx:
                if sessions.by_id(tx, reading.session.id) is not None:
                    self._add_usage(tx, reading)
            raise

    @staticmethod
    def _add_usage(tx: Tx, reading: SessionReading) -> None:
        for spent in reading.usage:
            usage.add(tx, reading.app_id, reading.session.id, spent)


def drafted(
    models: Iterable[ChatModel],
    prompts: Prompts,
    statement: str,
    now: datetime,
    own: types.OwnTypes,
) -> Draft:
    """What would be remembered of a statement, as it is read of a conversation: by the first of
    these models that reads a fact in it. ``now`` is in the person's time zone.

    Raises InputError for one that is blank or, where none reads a fact, too long for a value.
    """
    if not statement.strip():
        raise InputError("the statement is empty")
    turn = Turn("u1", "user", types.clean_text(statement), now, 1)
    for model in models:
        reader = model_calls.Extractor(model, prompts, [], own)
        try:
            answers = reader.read(model_calls.Window((turn,)), [], keys.COMMON_KEYS)
        except MemChatError as error:
            log.warning("a statement could not be read: %s", error)
            continue
        items = (item for answer in answers for item in answer.facts if item.relation != "ends")
        judged = [
            judge(item, [turn], [], prompt_text=reader.instructions, injected=(), own_types=own)
            for item in items
        ]
        read = sorted(
            (one for one in judged if one.outcome != "refuse"), key=lambda one: one.outcome
        )
        for verdict in read[:1]:  # what passes before what would wait
            item = verdict.candidate
            told = true_sentence(item.sentence, item.key, item.value, statement)
            told = told or sentence_of(item.key, item.value, statement)
            sensitive = "sensitive" in item.flags or is_sensitive(item.key)
            days = (verdict.starts, verdict.until)
            return Draft(item.type, item.key, item.value, *days, told, sensitive)
    from memchat.language.statements import without_filler  # its many patterns are seldom needed

    said = types.one_line(without_filler(statement.strip()), "statement", VALUE_LIMIT)
    return Draft("other", "note", said, read=False)
