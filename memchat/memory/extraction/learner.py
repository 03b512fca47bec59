"""The END route, whole: from an ended conversation to clean rows.

transcript since the last extraction → known facts → model (once; windows if long) → evidence gate →
second look by the model → embeddings in one batch → one transaction that writes rows, keyword rows,
vectors, sources, events, the session's mark and the finished job. Nothing is written before that
transaction, and nothing of it survives a failure, so a session can be read again at any time. Where
only the second look fails, what it was to judge waits in the inbox for a job of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.errors import ConfigError, ProviderError, StoreError
from memchat.language import secrets
from memchat.memory.embedding.space import EmbeddingSpace
from memchat.memory.extraction import refusals, windows
from memchat.memory.extraction.candidate import ExtractionAnswer
from memchat.memory.extraction.extractor import Extractor, Window
from memchat.memory.extraction.proposals import (
    BLANKED,
    REJECTED,
    fallback_title,
    held,
    honest,
    not_kept,
    refusal,
    settle,
    to_fact,
    turned_down,
    waiting,
)
from memchat.memory.extraction.second_look import WHY, SaidBefore, SecondLook
from memchat.memory.extraction.second_look_later import LaterSecondLook
from memchat.memory.extraction.second_look_verdicts import (
    NOT_LOOKED_AT,
    answered,
    is_asked,
    is_certain,
    left_to_person,
    to_doubt,
)
from memchat.memory.extraction.session_reading import NEAREST, Reading, injected
from memchat.memory.facts.consolidation import Consolidation, Fact
from memchat.memory.forgetting import redaction, replies_in_flight
from memchat.memory.gate.checks import keys
from memchat.memory.gate.judge import judge
from memchat.memory.gate.types import KnownFact, Verdict
from memchat.memory.recall import turn_texts
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.store import (
    apps,
    embeddings,
    inbox,
    jobs,
    memories,
    memory_lists,
    messages,
    new_memory,
    services,
    sessions,
    usage,
)
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.store.jobs import Claim
from memchat.store.refusals import NewRefusal
from memchat.types import Change, Learned, Message, Scope

if TYPE_CHECKING:
    from memchat.providers import Vectors

log = logging.getLogger(__name__)

_SUMMARY_LIMIT = 600


class Learner:
    """Reads ended sessions of one store."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        prompts: Prompts,
        clock: Callable[[], datetime],
        model: Callable[[], ChatModel],
        meaning: Callable[[], tuple[EmbeddingSpace | None, str | None]],
    ) -> None:
        self._database = database
        self._settings = settings
        self._prompts = prompts
        self._clock = clock
        self._model = model
        self._meaning = meaning

    def learn(self, claim: Claim) -> Learned:
        """Read what is new in the claimed session and put it into the store.

        Raises ProviderError or ExtractionError; then nothing was changed and it may be tried again.
        """
        reading, why_not = self._open(claim.target_id)
        if reading is None:
            with self._database.write() as tx:
                jobs.finish(tx, claim, self._clock())
                self._go_on(tx, claim)
            return Learned(claim.target_id, skipped=why_not)
        extractor = Extractor(self._model(), self._prompts, self._settings.zone)
        try:
            for window in windows.cut(
                self._sent(reading.turns),
                reading.first_unread,
                extractor.model.window,
                self._settings.zone,
            ):
                self._read(extractor, reading, window)
                self._renew(claim)
            with self._database.read() as tx:
                ids = apps.find(tx, reading.scope).ids
                reading.verdicts = [reading.unless_forgotten(tx, ids, v) for v in reading.verdicts]
            self._look_again(claim, reading, extractor.model)
            return self._write(claim, reading)
        except BaseException:
            self._keep_usage(reading)
            raise

    def look_late(self, claim: Claim) -> Learned:
        """Have the second look made that the claimed session's proposals still wait for.

        Raises ProviderError; then they wait on, and it may be tried again.
        """
        late = LaterSecondLook(
            self._database, self._settings, self._prompts, self._clock, self._model
        )
        return late.look(claim)

    def _open(self, session_id: int) -> tuple[Reading | None, str | None]:
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
            given = injected(tx, turns)
        return Reading(session, app_id, turns, first, injected=given), None

    def _read(self, extractor: Extractor, reading: Reading, window: Window) -> None:
        meaning, _ = self._meaning()  # its first making writes: never inside a snapshot
        reading.ask(meaning, window)
        with self._database.read() as tx:
            shown = reading.show(tx, meaning, window, self._today(), self._settings.zone)
            in_use = memory_lists.keys_in_use(tx, apps.find(tx, reading.scope).ids)
        keys_shown = list(dict.fromkeys([*in_use, *keys.COMMON_KEYS]))
        extraction = extractor.read(window, self._sent_facts(shown), keys_shown)
        reading.usage += extraction.usage
        items = [item for answer in extraction.answers for item in answer.facts]
        with self._database.read() as tx:
            items = [reading.linked(tx, item) for item in items]
        known = {fact.id: fact for fact, _ in shown}
        known |= {item.to: reading.known[item.to] for item in items if item.to in reading.known}
        turns, told = reading.as_judged(), extractor.instructions
        for item in items:
            verdict = judge(
                item,
                turns,
                list(known.values()),
                prompt_text=told,
                injected=reading.injected,
                zone=self._settings.zone,
            )
            reading.verdicts.append(reading.only_unread(verdict))
        self._describe(reading, extraction.answers[0])

    def _look_again(self, claim: Claim, reading: Reading, model: ChatModel) -> None:
        """Have the model look once more at what the settings say, after all windows are read.

        What it is to judge later is postponed: a conversation that goes on, a provider that fails.
        """
        mode = "off" if model.stand_in else self._settings.verify
        asked = [n for n in reading.in_force() if is_asked(reading.verdicts[n], mode)]
        if asked and not self._is_over(reading):
            reading.postpone(n for n in asked if not is_certain(reading.verdicts[n]))
        elif asked:
            self._renew(claim)
            try:
                self._ask(reading, asked, model)
            except ProviderError as error:
                log.warning("session %s: the second look failed: %s", reading.session.id, error)
                reading.postpone(n for n in asked if not is_certain(reading.verdicts[n]))
                reading.look_failed = True
        reading.verdicts = [left_to_person(verdict) for verdict in reading.verdicts]

    def _ask(self, reading: Reading, asked: Sequence[int], model: ChatModel) -> None:
        turns = {turn.id: turn for turn in reading.as_judged()}
        said = [SaidBefore(t.id, t.role, t.text) for t in turns.values()]
        doubts = [to_doubt(reading.verdicts[n], turns, reading.known) for n in asked]
        look = SecondLook(model, self._prompts, self._settings.mask_before_extraction)
        try:
            for n, seen in zip(asked, look.ask(doubts, said), strict=True):
                verdict = reading.verdicts[n]
                after = answered(verdict, seen, *reading.sources(verdict), model.name)
                if seen.reason == WHY["wrong_target"]:
                    after = reading.unlinked(after)
                reading.verdicts[n] = after
        finally:
            reading.usage += look.usage

    def _is_over(self, reading: Reading) -> bool:
        """Whether all was said that the second look is to see: a conversation that is read message
        by message may go on."""
        with self._database.read() as tx:
            return not self._is_open(tx, reading)

    def _is_open(self, tx: Connection, reading: Reading) -> bool:
        found = sessions.by_id(tx, reading.session.id)
        going_on = found is not None and found[0].ended_at is None
        return going_on and self._settings.extraction == "per_message"

    def _masked(self, words: str) -> str:
        return secrets.mask(words) if self._settings.mask_before_extraction else words

    def _sent(self, turns: list[Message]) -> list[Message]:
        """The turns as the model may read them. The gate judges the words as they were said."""
        return [replace(turn, content=self._masked(turn.content)) for turn in turns]

    def _sent_facts(self, shown: list[tuple[KnownFact, str]]) -> list[tuple[KnownFact, str]]:
        return [(replace(fact, value=self._masked(fact.value)), day) for fact, day in shown]

    def _as_fact(self, reading: Reading) -> Callable[[Verdict], Fact]:
        said = {turn.id: turn for turn in reading.turns}
        zone = self._settings.zone

        def fact(verdict: Verdict) -> Fact:
            return to_fact(verdict, said, reading.known, zone)

        return fact

    def _describe(self, reading: Reading, answer: ExtractionAnswer) -> None:
        said = [turn.content for turn in reading.turns]
        if reading.title is None:
            reading.title = honest(answer.title, said)
        summary = honest(answer.summary, said)
        if summary and len(reading.summary) + len(summary) < _SUMMARY_LIMIT:
            reading.summary = f"{reading.summary} {summary}".strip()

    def _write(self, claim: Claim, reading: Reading) -> Learned:
        facts, changes = settle(reading.verdicts, self._as_fact(reading))
        lost = not_kept(reading.verdicts, reading.known)
        meaning, _ = self._meaning()
        vectors: dict[str, Vectors] = {}
        if meaning is not None:
            vectors = self._embed(reading, facts, meaning)
            facts = self._with_neighbours(reading, facts, vectors, meaning)
        now = self._clock()
        with self._database.write() as tx:
            if not jobs.is_held(tx, claim):
                raise StoreError("another worker has taken the reading over")
            if not apps.memory_switch(tx, reading.scope).on:
                jobs.finish(tx, claim, now)
                return Learned(claim.target_id, skipped="memory was switched off meanwhile")
            own, shared = apps.ensure(tx, reading.scope, now)
            cause = Cause(now, "model", "extracted", reading.session.id)
            consolidation = Consolidation(
                tx, own, shared, cause, self._settings.merge_threshold, self._settings.zone
            )
            altered = self._altered(tx, reading)
            for fact in facts:
                if any(message_id in altered for message_id, _, _ in fact.proofs):
                    changes.append(Change("refused", None, reason=BLANKED))
                    lost.append(turned_down(fact, BLANKED))
                    continue
                since = fact.proofs[0][0] if fact.proofs else None
                one = replace(consolidation, cause=replace(cause, message_id=since))
                changes.append(change := one.apply(fact))
                if change.kind == "refused":
                    lost.append(turned_down(fact, change.reason or ""))
            lost += self._hold_back(tx, own, reading, altered)
            refusals.keep(tx, own, reading, lost, now, altered=altered)
            told = replies_in_flight.strip_cues(tx, own, reading.stored())
            redaction.reindex(tx, told, self._settings.zone, cause)
            title, summary = self._description(tx, reading, bool(altered))
            sessions.mark_extracted(tx, reading.session.id, reading.last_id, title, summary)
            self._keep_vectors(tx, meaning, vectors, consolidation.written, reading, cause)
            for spent in reading.usage:
                usage.add(tx, own, reading.session.id, spent, now)
            jobs.finish(tx, claim, now)
            self._go_on(tx, claim)
            self._queue_look(tx, claim, reading)
        return Learned(claim.target_id, tuple(changes), title, summary)

    def _embed(
        self, reading: Reading, facts: list[Fact], meaning: EmbeddingSpace
    ) -> dict[str, Vectors]:
        """The vectors of the facts and of what was said, in one batch; none where the service
        fails: the rows are written all the same."""
        with self._database.read() as tx:
            summary = reading.summary or sessions.description(tx, reading.session.id)[1]
            zone = self._settings.zone
            said = turn_texts.texts(
                tx, reading.session, reading.turns, zone, summary=summary, coming=facts
            )
        try:
            vectors, spent = meaning.documents([*(f.search_text for f in facts), *said.every])
        except (ProviderError, ConfigError) as error:
            log.warning("session %s: vectors follow later: %s", reading.session.id, error)
            return {}
        if spent is not None:
            reading.usage.append(replace(spent, purpose="embed"))
        return vectors

    def _altered(self, tx: Connection, reading: Reading) -> set[int]:
        """The turns whose words were blanked or deleted while the model was reading them."""
        left = messages.of_session(tx, reading.session.id, learnable=True)
        now = {turn.id: turn.content for turn in left}
        return {turn.id for turn in reading.turns if now.get(turn.id) != turn.content}

    def _description(
        self, tx: Connection, reading: Reading, altered: bool
    ) -> tuple[str | None, str | None]:
        title, _ = sessions.description(tx, reading.session.id)
        if altered:
            return title, None
        return title or reading.title or fallback_title(reading.turns), reading.summary or None

    def _renew(self, claim: Claim) -> None:
        with self._database.write() as tx:
            until = self._clock() + timedelta(seconds=jobs.LEASE_SECONDS)
            if not jobs.renew(tx, claim, until):
                raise StoreError("another worker has taken the reading over")

    def _queue_look(self, tx: Connection, claim: Claim, reading: Reading) -> None:
        """Have what waits for its second look asked about: later where the provider failed."""
        if self._is_open(tx, reading) or not inbox.awaiting_second_look(tx, reading.session.id):
            return
        pause = self._settings.retry_minutes[0] if reading.look_failed else 0
        now = self._clock()
        at = now + timedelta(minutes=pause)
        jobs.enqueue(tx, "verify", claim.app_id, claim.target_id, now, run_at=at)

    def _go_on(self, tx: Connection, claim: Claim) -> None:
        """Queue the session again where more was said meanwhile that is due for reading."""
        if self._goes_on(tx, claim.target_id):
            jobs.enqueue(tx, "extract", claim.app_id, claim.target_id, self._clock())

    def _goes_on(self, tx: Connection, session_id: int) -> bool:
        """Whether more was said meanwhile that is due for reading."""
        found = sessions.by_id(tx, session_id)
        if found is None or not apps.memory_switch(tx, Scope(found[0].user, found[0].app)).on:
            return False
        due = self._settings.extraction == "per_message" or found[0].ended_at is not None
        return due and sessions.has_unread_messages(tx, session_id)

    def _with_neighbours(
        self,
        reading: Reading,
        facts: list[Fact],
        vectors: dict[str, Vectors],
        meaning: EmbeddingSpace,
    ) -> list[Fact]:
        """The facts with their nearest stored neighbours, looked up before anything is written."""
        with self._database.read() as tx:
            own = apps.find(tx, reading.scope).own
            if own is None:
                return facts
            found = []
            for fact in facts:
                vector = vectors.get(new_memory.text_hash(fact.search_text))
                if vector is not None:
                    near = self._nearest(tx, own, meaning, vector)
                    fact = replace(fact, near=near)
                found.append(fact)
        return found

    def _nearest(
        self, tx: Connection, own: int, meaning: EmbeddingSpace, vector: Vectors
    ) -> tuple[tuple[int, float], ...]:
        """The nearest of the memories in use; replaced values are in the index too."""
        wide = meaning.index.search(tx, [own], vector, 4 * NEAREST)
        rows = memories.by_ids(tx, [own], [i for i, _ in wide])
        return tuple((i, cosine) for i, cosine in wide if rows[i].active)[:NEAREST]

    def _keep_vectors(
        self,
        tx: Connection,
        meaning: EmbeddingSpace | None,
        vectors: dict[str, Vectors],
        written: Sequence[int],
        reading: Reading,
        cause: Cause,
    ) -> None:
        service_id = meaning.service_id if meaning is not None else None
        turn_texts.write(tx, reading.session.id, self._settings.zone, service_id, vectors, cause.at)
        if meaning is None:
            return
        embeddings.put(tx, meaning.service_id, vectors.items(), cause.at)
        embeddings.remove_unused(tx, list(vectors))  # of facts that were known already, or refused
        # Another, where it was changed meanwhile.
        in_use = services.in_use(tx) or meaning.service_id
        for memory_id, app_id, _, _ in embeddings.missing(tx, in_use, written):
            jobs.enqueue(tx, "embed", app_id, memory_id, cause.at)

    def _hold_back(
        self, tx: Connection, own: int, reading: Reading, altered: set[int]
    ) -> list[NewRefusal]:
        """Put what waits for a person into the inbox; what of it must not, or was rejected."""
        lost, turns = [], {turn.id: turn for turn in reading.turns}
        ids = apps.find(tx, reading.scope).ids
        for verdict in waiting(reading.verdicts):
            still = reading.unless_forgotten(tx, ids, verdict)  # forgotten just now, maybe
            if any(proof.message_id in altered for proof in verdict.spans):
                still = replace(still, outcome="refuse", reasons=(BLANKED,))
            if still.outcome == "review":
                item = held(verdict, reading.known, turns)
                # Of words that a secret was masked in no model can be asked.
                unchecked = NOT_LOOKED_AT in verdict.reasons and not item.masked
                item = replace(item, unchecked=unchecked)
                if inbox.add(tx, own, item, self._clock()) == "rejected":
                    still = replace(still, outcome="refuse", reasons=(REJECTED,))
            if still.outcome != "review":
                lost.append(refusal(still, reading.known))
        return lost

    def _keep_usage(self, reading: Reading) -> None:
        with self._database.write() as tx:
            if sessions.by_id(tx, reading.session.id) is None:
                return
            for spent in reading.usage:
                usage.add(tx, reading.app_id, reading.session.id, spent, self._clock())

    def _today(self) -> date:
        return self._clock().astimezone(self._settings.zone).date()
