"""The second look on its own: for what waits in the inbox until the model can be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.language.sentences import sentence_around
from memchat.memory.extraction.candidate import Relation
from memchat.memory.extraction.proposals import turned_down
from memchat.memory.extraction.second_look import Doubt, LookAnswer, SaidBefore, SecondLook
from memchat.memory.extraction.second_look_verdicts import NOBODY_LOOKED, NOT_LOOKED_AT, UNCLEAR
from memchat.memory.extraction.windows import turn_id
from memchat.memory.facts.consolidation import Consolidation, Fact, search_text
from memchat.memory.facts.proposal import of_item, target_of
from memchat.memory.gate.checks import content
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.store import (
    apps,
    embeddings,
    inbox,
    jobs,
    messages,
    refusals,
    services,
    sessions,
    usage,
)
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.store.jobs import Claim
from memchat.types import Change, InboxItem, Learned, Memory, Message, Scope, Session


@dataclass(frozen=True, slots=True)
class LaterSecondLook:
    """Asks about the proposals of one conversation, and does what the answers say."""

    database: Database
    settings: Settings
    prompts: Prompts
    clock: Callable[[], datetime]
    model: Callable[[], ChatModel]

    def look(self, claim: Claim) -> Learned:
        """Ask about all that waits in the claimed conversation.

        Raises ProviderError; then it waits on, and may be tried again.
        """
        with self.database.read() as tx:
            found = sessions.by_id(tx, claim.target_id)
            on = found is not None and self._is_on(tx, found[0])
            waiting = self._waiting(tx, found[0]) if found is not None and on else []
            turns = messages.of_session(tx, claim.target_id, learnable=True)
        if found is None or not on:
            with self.database.write() as tx:
                jobs.finish(tx, claim, self.clock())
            return Learned(claim.target_id, skipped="memory is off")
        model = self.model()
        looks = self._ask(claim, model, waiting, turns)
        with self.database.write() as tx:
            changes = []
            # What a person decided or had forgotten meanwhile waits no more.
            still = self._still(tx, found[0])
            for one, look in zip(waiting, looks, strict=True):
                if one.item.id in still:
                    now = still[one.item.id]
                    changes.append(self._settle(tx, found[0], now, look, model.name))
            jobs.finish(tx, claim, self.clock())
        return Learned(claim.target_id, tuple(changes))

    def _ask(
        self,
        claim: Claim,
        model: ChatModel,
        waiting: Sequence[WaitingItem],
        turns: Sequence[Message],
    ) -> Sequence[LookAnswer | None]:
        """The answers; none of them where no model is to be asked. What it took is kept."""
        if not waiting or model.stand_in or self.settings.verify == "off":
            return [None] * len(waiting)
        second = SecondLook(model, self.prompts, self.settings.mask_before_extraction)
        said = [
            SaidBefore(turn_id(n, turn), turn.role, turn.content) for n, turn in enumerate(turns)
        ]
        names = {turn.id: turn_id(n, turn) for n, turn in enumerate(turns)}
        try:
            return second.ask([one.doubt(names) for one in waiting], said)
        finally:
            with self.database.write() as tx:
                if sessions.by_id(tx, claim.target_id) is not None:
                    for spent in second.usage:
                        usage.add(tx, claim.app_id, claim.target_id, spent, self.clock())

    @staticmethod
    def _is_on(tx: Connection, session: Session) -> bool:
        return apps.memory_switch(tx, Scope(session.user, session.app)).on

    def _still(self, tx: Connection, session: Session) -> dict[int, WaitingItem]:
        """What waits now, by its inbox item; nothing while memory is off."""
        if not self._is_on(tx, session):
            return {}
        return {one.item.id: one for one in self._waiting(tx, session)}

    def _waiting(self, tx: Connection, session: Session) -> list[WaitingItem]:
        """What waits for its look and whose words still stand in their message."""
        ids = apps.find(tx, Scope(session.user, session.app)).ids
        items = inbox.awaiting_second_look(tx, session.id)
        turns = messages.by_ids(tx, [item.message_id for item in items if item.message_id])
        found = []
        for item in items:
            proposal = of_item(item)
            turn = turns.get(item.message_id or 0)
            if turn is not None and proposal.start is not None and proposal.end is not None:
                span = (proposal.start, proposal.end)
                found.append(WaitingItem(item, turn, span, target_of(tx, ids, proposal)))
        return found

    def _settle(
        self,
        tx: Connection,
        session: Session,
        one: WaitingItem,
        look: LookAnswer | None,
        model: str,
    ) -> Change:
        item, now = one.item, self.clock()
        if look is None or look.answer == "unclear":
            reason = UNCLEAR if look is not None else one.signals or NOBODY_LOOKED
            inbox.leave_to_person(tx, item.id, reason)
            return Change("review", None, one.quotes, reason=reason)
        value = item.value or ""
        known = one.target.value if one.target else ""
        if look.now and item.relation == "updates":
            sound = content.may_stand_for(value, look.now, [one.turn.content], known)
            value = look.now if sound else value
        inbox.remove(tx, [item.id])
        own, shared = apps.ensure(tx, Scope(session.user, session.app), now)
        detail = {"verdict": look.answer, "reason": one.signals, "model": model}
        fact = replace(one.fact(value, self.settings), detail=detail)
        if look.answer == "not":
            refusals.add(tx, own, session.id, [turned_down(fact, look.reason)], now)
            return Change("refused", None, one.quotes, reason=look.reason)
        cause = Cause(now, "model", "extracted", session.id, one.turn.id)
        threshold, zone = self.settings.merge_threshold, self.settings.zone
        writer = Consolidation(tx, own, shared, cause, threshold, zone)
        done = writer.apply(fact)
        if done.kind == "refused":
            refusals.add(tx, own, session.id, [turned_down(fact, done.reason or "")], now)
        in_use = services.in_use(tx)
        for memory_id, app_id, _, _ in (
            embeddings.missing(tx, in_use, writer.written) if in_use else ()
        ):
            jobs.enqueue(tx, "embed", app_id, memory_id, now)
        return done


@dataclass(frozen=True, slots=True)
class WaitingItem:
    """One proposal that waits for its look, with the message it rests on."""

    item: InboxItem
    turn: Message
    span: tuple[int, int]
    target: Memory | None

    @property
    def signals(self) -> str:
        """Why it is to be looked at, without the promise that it will be."""
        return self.item.reason.removeprefix(NOT_LOOKED_AT).removeprefix("; ")

    @property
    def quotes(self) -> tuple[str, ...]:
        """The words that it rests on."""
        return (self.turn.content[self.span[0] : self.span[1]],)

    def doubt(self, names: Mapping[int, str]) -> Doubt:
        """What is asked about it; ``names`` gives each message its short id."""
        around = sentence_around(self.turn.content, *self.span)
        item, target = self.item, self.target
        return Doubt(
            ((names[self.turn.id], around.start, around.end),),
            item.key or "",
            item.value or "",
            item.relation,
            f"{target.key}: {target.value}" if target else None,
            item.expires_at.isoformat() if item.expires_at else None,
            item.starts_at.isoformat() if item.starts_at else None,
        )

    def fact(self, value: str, settings: Settings) -> Fact:
        """The same as a fact to put in."""
        what, said_at, quote = of_item(self.item), self.turn.created_at, self.quotes[0]
        text = search_text(what.key, value, said_at, settings.zone, quote, what.cues)
        return Fact(
            memory_type=what.memory_type,
            key=what.key,
            value=value,
            said_at=said_at,
            search_text=text,
            created_by="auto",
            many=what.many,
            expires_at=what.expires_at,
            starts_at=what.starts_at,
            cues=what.cues,
            sensitive=what.sensitive,
            relation=cast(Relation, what.relation),
            target_id=self.target.id if self.target else None,
            proofs=((self.turn.id, self.span[0], quote),),
        )
