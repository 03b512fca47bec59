"""The END route, whole: from an ended conversation to clean rows.

transcript since the last extraction → known facts → model (once; windows if long) → evidence gate →
embeddings in one batch → one transaction that writes rows, keyword rows, vectors, sources, events,
the session's mark and the finished job. Nothing is written before that transaction, and nothing of
it survives a failure, so a session can be read again at any time.
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
from memchat.memory import moments, windows
from memchat.memory.consolidate import Consolidation, Fact
from memchat.memory.extract import Extractor, Window
from memchat.memory.gate import evidence, keys, secrets
from memchat.memory.gate.candidate import Answer
from memchat.memory.gate.evidence import KnownFact, Verdict
from memchat.memory.meaning import Meaning
from memchat.memory.proposals import fallback_title, held, honest, settle, to_fact
from memchat.memory.reading import NEAREST, Reading
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.store import (
    apps,
    embeddings,
    inbox,
    jobs,
    memories,
    messages,
    services,
    sessions,
    usage,
)
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.store.jobs import Claim
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
        meaning: Callable[[], tuple[Meaning | None, str | None]],
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
                if not self._keep_claim(claim):
                    raise StoreError("another worker has taken the reading over")
            return self._write(claim, reading)
        except BaseException:
            self._keep_usage(reading)
            raise

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
            injected = [
                hit.text
                for turn in turns
                if turn.role == "assistant"
                for hit in messages.receipt(tx, turn.id)
            ]
        return Reading(session, app_id, turns, first, injected=injected), None

    def _read(self, extractor: Extractor, reading: Reading, window: Window) -> None:
        meaning, _ = self._meaning()  # its first making writes: never inside a snapshot
        reading.ask(meaning, window)
        with self._database.read() as tx:
            shown = reading.show(tx, meaning, window, self._today(), self._settings.zone)
            in_use = memories.keys_in_use(tx, apps.find(tx, reading.scope).ids)
        keys_shown = list(dict.fromkeys([*in_use, *keys.COMMON_KEYS]))
        extraction = extractor.read(window, self._sent_facts(shown), keys_shown)
        reading.usage += extraction.usage
        known = [fact for fact, _ in shown]
        turns = reading.as_judged()
        for answer in extraction.answers:
            for item in answer.facts:
                verdict = evidence.judge(
                    item,
                    turns,
                    known,
                    prompt_text=extractor.instructions,
                    injected=reading.injected,
                    zone=self._settings.zone,
                )
                reading.verdicts.append(reading.only_unread(verdict))
        self._describe(reading, extraction.answers[0])

    def _sent(self, turns: list[Message]) -> list[Message]:
        """The turns as the model may read them. The gate judges the words as they were said."""
        if not self._settings.mask_before_extraction:
            return turns
        return [replace(turn, content=secrets.mask(turn.content)) for turn in turns]

    def _sent_facts(self, shown: list[tuple[KnownFact, str]]) -> list[tuple[KnownFact, str]]:
        if not self._settings.mask_before_extraction:
            return shown
        return [(replace(fact, value=secrets.mask(fact.value)), day) for fact, day in shown]

    def _as_fact(self, reading: Reading) -> Callable[[Verdict], Fact]:
        said = {turn.id: turn for turn in reading.turns}
        zone = self._settings.zone

        def fact(verdict: Verdict) -> Fact:
            return to_fact(verdict, said, reading.known, reading.session.user, zone)

        return fact

    def _describe(self, reading: Reading, answer: Answer) -> None:
        said = [turn.content for turn in reading.turns]
        if reading.title is None:
            reading.title = honest(answer.title, said)
        summary = honest(answer.summary, said)
        if summary and len(reading.summary) + len(summary) < _SUMMARY_LIMIT:
            reading.summary = f"{reading.summary} {summary}".strip()

    def _write(self, claim: Claim, reading: Reading) -> Learned:
        with self._database.read() as tx:
            ids = apps.find(tx, reading.scope).ids
            reading.verdicts = [reading.unless_forgotten(tx, ids, v) for v in reading.verdicts]
        facts, changes = settle(reading.verdicts, self._as_fact(reading))
        meaning, _ = self._meaning()
        vectors: dict[str, Vectors] = {}
        if meaning is not None:
            vectors = self._embed(reading, facts, meaning)
            facts = self._with_neighbours(reading, facts, vectors, meaning)
        now = self._clock()
        with self._database.write() as tx:
            if not jobs.holds(tx, claim):
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
                    reason = "its words were forgotten meanwhile"
                    changes.append(Change("refused", None, reason=reason))
                    continue
                since = fact.proofs[0][0] if fact.proofs else None
                one = replace(consolidation, cause=replace(cause, message_id=since))
                changes.append(one.apply(fact))
            self._hold_back(tx, own, reading, altered)
            title, summary = self._description(tx, reading, bool(altered))
            sessions.mark_extracted(tx, reading.session.id, reading.last_id, title, summary)
            self._keep_vectors(tx, meaning, vectors, consolidation.written, reading, cause)
            for spent in reading.usage:
                usage.add(tx, own, reading.session.id, spent, now)
            jobs.finish(tx, claim, now)
            self._go_on(tx, claim)
        return Learned(claim.target_id, tuple(changes), title, summary)

    def _embed(self, reading: Reading, facts: list[Fact], meaning: Meaning) -> dict[str, Vectors]:
        """The vectors of the facts and of what was said, in one batch; none where the service
        fails: the rows are written all the same."""
        with self._database.read() as tx:
            summary = reading.summary or sessions.description(tx, reading.session.id)[1]
            zone = self._settings.zone
            said = moments.texts(
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

    def _keep_claim(self, claim: Claim) -> bool:
        with self._database.write() as tx:
            until = self._clock() + timedelta(seconds=jobs.LEASE_SECONDS)
            return jobs.renew(tx, claim, until)

    def _go_on(self, tx: Connection, claim: Claim) -> None:
        """Queue the session again where more was said meanwhile that is due for reading."""
        if self._goes_on(tx, claim.target_id):
            jobs.enqueue(tx, "extract", claim.app_id, "session", claim.target_id, self._clock())

    def _goes_on(self, tx: Connection, session_id: int) -> bool:
        """Whether more was said meanwhile that is due for reading."""
        found = sessions.by_id(tx, session_id)
        if found is None or not apps.memory_switch(tx, Scope(found[0].user, found[0].app)).on:
            return False
        due = self._settings.extraction == "per_message" or found[0].ended_at is not None
        return due and sessions.has_unread(tx, session_id)

    def _with_neighbours(
        self, reading: Reading, facts: list[Fact], vectors: dict[str, Vectors], meaning: Meaning
    ) -> list[Fact]:
        """The facts with their nearest stored neighbours, looked up before anything is written."""
        with self._database.read() as tx:
            own = apps.find(tx, reading.scope).own
            if own is None:
                return facts
            found = []
            for fact in facts:
                vector = vectors.get(memories.text_hash(fact.search_text))
                if vector is not None:
                    near = self._nearest(tx, own, meaning, vector)
                    fact = replace(fact, near=near)
                found.append(fact)
        return found

    def _nearest(
        self, tx: Connection, own: int, meaning: Meaning, vector: Vectors
    ) -> tuple[tuple[int, float], ...]:
        """The nearest of the memories in use; replaced values are in the index too."""
        wide = meaning.index.search(tx, [own], vector, 4 * NEAREST)
        rows = memories.by_ids(tx, [own], [i for i, _ in wide])
        return tuple((i, cosine) for i, cosine in wide if rows[i].active)[:NEAREST]

    def _keep_vectors(
        self,
        tx: Connection,
        meaning: Meaning | None,
        vectors: dict[str, Vectors],
        written: Sequence[int],
        reading: Reading,
        cause: Cause,
    ) -> None:
        service_id = meaning.service_id if meaning is not None else None
        moments.write(tx, reading.session.id, self._settings.zone, service_id, vectors, cause.at)
        if meaning is None:
            return
        embeddings.put(tx, meaning.service_id, vectors.items(), cause.at)
        embeddings.drop_unused(tx, list(vectors))  # of facts that were known already, or refused
        # Another, where it was changed meanwhile.
        in_use = services.in_use(tx) or meaning.service_id
        for memory_id, app_id, _, _ in embeddings.missing(tx, in_use, written):
            jobs.enqueue(tx, "embed", app_id, "memory", memory_id, cause.at)

    def _hold_back(self, tx: Connection, own: int, reading: Reading, altered: set[int]) -> None:
        for verdict in reading.verdicts:
            gone = any(proof.message_id in altered for proof in verdict.spans)
            ids = apps.find(tx, reading.scope).ids
            still = reading.unless_forgotten(tx, ids, verdict).outcome  # forgotten just now, maybe
            if still == "review" and not gone:
                inbox.add(tx, own, held(verdict), self._clock())

    def _keep_usage(self, reading: Reading) -> None:
        with self._database.write() as tx:
            if sessions.by_id(tx, reading.session.id) is None:
                return
            for spent in reading.usage:
                usage.add(tx, reading.app_id, reading.session.id, spent, self._clock())

    def _today(self) -> date:
        return self._clock().astimezone(self._settings.zone).date()
