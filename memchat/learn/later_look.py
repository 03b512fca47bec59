"""The second look as a job of its own: for inbox items that wait until the model can be reached,
and for the title and summary that were stored meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.db import apps, jobs, messages, sessions, usage
from memchat.db.apps import Context, ScopeIds
from memchat.db.database import Database
from memchat.db.jobs import Claim
from memchat.facts import inbox, refusals
from memchat.facts.consolidation import Ingested, ingest, queue_embedding, session_end
from memchat.facts.fact import Fact, of_item, proposed, refusal_entry, search_text, target_of
from memchat.facts.refusals import NewRefusal
from memchat.language.sentences import sentence_around
from memchat.learn import extractor, values
from memchat.learn.candidate import Relation
from memchat.learn.extractor import turn_id
from memchat.learn.second_look import (
    HIDDEN_WORDS,
    NOBODY_LOOKED,
    NOT_LOOKED_AT,
    OTHER_RELATION,
    SECRET,
    UNCLEAR_REASON,
    LookAnswer,
    LookRequest,
    Place,
    SecondLook,
    ShownMessage,
    ToldSecret,
    may_stand_beside,
    told_secrets,
)
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.search import passages, services
from memchat.types import Change, InboxItem, Learned, Memory, Message, Scope, Session


@dataclass(frozen=True, slots=True)
class DeferredSecondLook:
    """Asks about the waiting proposals of one conversation, and applies the answers."""

    database: Database
    settings: Settings
    prompts: Prompts
    clock: Callable[[], datetime]
    model: Callable[[], ChatModel]

    def look(self, claim: Claim) -> Learned:
        """Ask about all that waits in the claimed conversation.

        Raises ProviderError; then all of it still waits, and the job may be tried again.
        """
        with self.database.read() as tx:
            found = sessions.by_id(tx, claim.target_id)
            on = found is not None and self._is_on(tx, found[0])
            waiting = self._waiting(tx, found[0]) if found is not None and on else []
            turns = messages.of_session(tx, claim.target_id, learnable=True)
            described = self._described(tx, claim.target_id) if on else {}
        if found is None or not on:
            with self.database.write() as tx:
                jobs.finish(tx, claim, self.clock())
            return Learned(claim.target_id, skipped="memory is off")
        model = self.model()
        looks = self._ask(claim, model, waiting, turns, described)
        told = [
            secret
            for one, look in zip(waiting, looks, strict=False)
            if look is not None and look.answer == "secret"
            for secret in told_secrets(
                one.item.value or "", [one.place], {one.turn.id: one.turn.content}
            )
        ]
        with self.database.write() as tx:
            changes = []
            self._withhold(tx, claim.target_id, described, looks[len(waiting) :], told)
            # What the user decided or had forgotten meanwhile waits no longer.
            still = self._still_waiting(tx, found[0])
            for one, look in zip(waiting, looks, strict=False):
                if one.item.id in still:
                    now = still[one.item.id]
                    hidden = any(secret.is_in([now.place], now.item.value or "") for secret in told)
                    seen = LookAnswer("secret", SECRET) if hidden else look
                    changes.append(self._settle(tx, found[0], now, seen, model.name))
            jobs.finish(tx, claim, self.clock())
        return Learned(claim.target_id, tuple(changes))

    def _ask(
        self,
        claim: Claim,
        model: ChatModel,
        waiting: Sequence[WaitingItem],
        turns: Sequence[Message],
        described: Mapping[str, str],
    ) -> Sequence[LookAnswer | None]:
        """The answers to what waits, then those to title and summary; None for each where no model
        is to be asked. The usage is stored."""
        requests = [LookRequest((), name, words, "") for name, words in described.items()]
        if not (waiting or requests) or model.stand_in or self.settings.verify == "off":
            return [None] * (len(waiting) + len(requests))
        second = SecondLook(model, self.prompts, self.settings.mask_before_extraction)
        said = [
            ShownMessage(
                turn_id(n, turn),
                turn.role,
                turn.content,
                extractor.said(turn.created_at, self.settings.zone),
            )
            for n, turn in enumerate(turns)
        ]
        names = {turn.id: turn_id(n, turn) for n, turn in enumerate(turns)}
        try:
            return second.ask([*(one.doubt(names) for one in waiting), *requests], said)
        finally:
            with self.database.write() as tx:
                if sessions.by_id(tx, claim.target_id) is not None:
                    for spent in second.usage:
                        usage.add(tx, claim.app_id, claim.target_id, spent, self.clock())

    @staticmethod
    def _described(tx: Connection, session_id: int) -> dict[str, str]:
        title, summary = sessions.description(tx, session_id)
        return {name: w for name, w in (("title", title), ("summary", summary)) if w}

    def _withhold(
        self,
        tx: Connection,
        session_id: int,
        described: Mapping[str, str],
        looks: Sequence[LookAnswer | None],
        told: Sequence[ToldSecret],
    ) -> None:
        """Take away a title or summary that is secret, as long as it is the one that was looked
        at."""
        named = zip(described.items(), looks, strict=True)
        secret = {
            words
            for (_, words), look in named
            if look == LookAnswer("secret", SECRET) or any(one.is_in((), words) for one in told)
        }
        now = self._described(tx, session_id)
        left = {name: words for name, words in now.items() if words not in secret}
        if left != now:
            sessions.set_description(tx, session_id, left.get("title"), left.get("summary"))

    @staticmethod
    def _is_on(tx: Connection, session: Session) -> bool:
        return apps.memory_switch(tx, Scope(session.user, session.app)).on

    def _still_waiting(self, tx: Connection, session: Session) -> dict[int, WaitingItem]:
        """What waits now, by the id of its inbox item; nothing while memory is off."""
        if not self._is_on(tx, session):
            return {}
        return {one.item.id: one for one in self._waiting(tx, session)}

    def _waiting(self, tx: Connection, session: Session) -> list[WaitingItem]:
        """What waits for a second look, as long as its quote still stands in the message."""
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
        apart = look is not None and look.relation not in (None, item.relation)
        moot = apart and not (look and one.may_stand_apart(look.relation))
        if look is None or look.answer == "unclear" or moot:
            asked = OTHER_RELATION if moot else UNCLEAR_REASON
            reason = asked if look is not None else one.signals or NOBODY_LOOKED
            inbox.leave_to_person(tx, item.id, reason)
            return Change("review", None, one.quotes, reason=reason)
        value = item.value or ""
        known = one.target.value if one.target else ""
        if look.now and item.relation == "updates":
            sound = values.is_supported_rewording(value, look.now, [one.turn.content], known)
            value = look.now if sound else value
        inbox.remove(tx, [item.id])
        own, shared = apps.ensure(tx, Scope(session.user, session.app), now)
        ctx = Context(tx, ScopeIds(own, shared), now, self.settings.zone)
        detail = {"verdict": look.answer, "reason": one.signals, "model": model}
        fact = replace(one.fact(value, self.settings), detail=detail)
        if apart:
            fact = replace(fact, relation="new", target_id=None)
        if look.answer == "secret":
            done = Ingested([Change("refused", None, (HIDDEN_WORDS,), reason=SECRET)])
            done.refused.append(NewRefusal(SECRET))
        elif look.answer == "not":
            done = Ingested([Change("refused", None, one.quotes, reason=look.reason)])
            done.refused.append(refusal_entry(fact, look.reason))
        else:
            source = session_end(session.id)
            done = ingest(ctx, source, [fact], self.settings.merge_threshold)
        refusals.add(tx, own, session.id, done.refused, now)
        if (in_use := services.in_use(tx)) is not None:
            queue_embedding(ctx, passages.lacking(tx, in_use, "embed", done.written))
        return done.changes[0]


@dataclass(frozen=True, slots=True)
class WaitingItem:
    """One proposal that waits for its second look, with the message it was quoted from."""

    item: InboxItem
    turn: Message
    span: tuple[int, int]
    target: Memory | None

    @property
    def signals(self) -> str:
        """Why a second look is needed, without the remark that it follows."""
        return self.item.reason.removeprefix(NOT_LOOKED_AT).removeprefix("; ")

    @property
    def quotes(self) -> tuple[str, ...]:
        """The words that prove it."""
        return (self.turn.content[self.span[0] : self.span[1]],)

    @property
    def place(self) -> Place:
        """Where they stand."""
        return self.turn.id, *self.span

    def may_stand_apart(self, relation: Relation | None) -> bool:
        """Whether it holds beside what it would change, by the relation of a second look."""
        target = self.target.key if self.target else None
        return relation in ("new", "beside") and may_stand_beside(self.item.key or "", target)

    def doubt(self, names: Mapping[int, str]) -> LookRequest:
        """The request for it; ``names`` gives each message its short id."""
        around = sentence_around(self.turn.content, *self.span)
        item, target = self.item, self.target
        return LookRequest(
            ((names[self.turn.id], around.start, around.end),),
            item.key or "",
            item.value or "",
            item.relation,
            f"{target.key}: {target.value}" if target else None,
            item.expires_at.isoformat() if item.expires_at else None,
            item.starts_at.isoformat() if item.starts_at else None,
        )

    def fact(self, value: str, settings: Settings) -> Fact:
        """The proposal as a fact to store."""
        what, said_at, quote = of_item(self.item), self.turn.created_at, self.quotes[0]
        text = search_text(what.key, value, said_at, settings.zone, quote, what.cues)
        target_id = self.target.id if self.target else None
        return Fact(
            said_at=said_at,
            search_text=text,
            created_by="auto",
            proofs=((self.turn.id, self.span[0], quote),),
            **proposed(what) | {"value": value, "target_id": target_id},
        )
