"""The prompt of a turn, and why a reply says what it says: the system text with the memories and
passages of notes recalled, the turns that fit, and later the receipt compared with the store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from memchat import types
from memchat.chat.command_words import memory_tools
from memchat.chat.conversation import Conversation, Parts
from memchat.db import Tx, apps, messages, sessions, usage
from memchat.errors import InputError
from memchat.facts import changes, memories, programs
from memchat.forget import purge
from memchat.notes import rows
from memchat.notes.search import MOST_TOKENS
from memchat.providers import ChatModel
from memchat.search import receipts, render, search
from memchat.search.embed import Question
from memchat.search.receipts import SentPrompt
from memchat.tokens import estimate_tokens

_REPLY_SHARE = 4
"""One part in so many of the model's window is left for its reply."""
_TURN_TOKENS = 8
"""Tokens of a turn in addition to its words."""
_PICTURE_TOKENS = 1_600
"""What the providers count at most for a picture of the size that is sent."""


@dataclass(frozen=True, slots=True)
class MessageWindow:
    """A system text and the newest turns that fit beside it."""

    system: str
    turns: Sequence[types.Message]
    dropped: Sequence[int]
    """Ids of the stored turns that do not fit."""

    @classmethod
    def fit(cls, model: ChatModel, system: str, turns: Sequence[types.Message]) -> MessageWindow:
        """As many turns as fit the model. Raises InputError where the last one alone does not."""
        room = model.window * (_REPLY_SHARE - 1) // _REPLY_SHARE - estimate_tokens(system)
        fitting = 0
        for turn in reversed(turns):
            pictures = sum(bool(one.data) for one in turn.attachments)
            room -= estimate_tokens(said(turn)) + pictures * _PICTURE_TOKENS + _TURN_TOKENS
            if room < 0:
                break
            fitting += 1
        if fitting == 0:
            raise InputError(
                f"the message is longer than {model.name} can read at once "
                f"({model.window} tokens); send it in parts, or with less attached"
            )
        split = len(turns) - fitting
        while turns[split].role != "user":
            split += 1  # a reply whose question does not fit is not sent
        seen = turns[split:] if model.sees else [_unseen(turn) for turn in turns[split:]]
        return cls(system, seen, [turn.id for turn in turns[:split] if turn.id])

    @property
    def messages(self) -> list[types.ChatMessage]:
        """What the model is sent."""
        return [types.ChatMessage("system", self.system), *alternating(self.turns)]


def alternating(turns: Sequence[types.Message]) -> list[types.ChatMessage]:
    """The turns as providers want them: beginning with the user, never two of one role in a row."""
    merged: list[types.ChatMessage] = []
    for turn in turns:
        words, images = (
            said(turn),
            tuple(f"data:{one.type};base64,{one.data}" for one in turn.attachments if one.data),
        )
        if merged and merged[-1].role == turn.role:
            before = merged[-1]
            words, images = f"{before.content}\n\n{words}", before.images + images
            merged[-1] = types.ChatMessage(turn.role, words, images)
        elif merged or turn.role == "user":
            merged.append(types.ChatMessage(turn.role, words, images))
    return merged


def said(turn: types.Message) -> str:
    """The words of a turn with those attached to it, as the model reads them."""
    attached = (f"[Attached: {one.name}]\n{one.text}".rstrip() for one in turn.attachments)
    return "\n\n".join((turn.content, *attached))


def _unseen(turn: types.Message) -> types.Message:
    """A turn whose pictures are only named."""
    named = (replace(one, data="") for one in turn.attachments)
    return replace(turn, attachments=tuple(named))


NO_ROOM = "the message left no room for memories"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is sent for a message, and what was recalled for it."""

    messages: list[types.ChatMessage]
    shown: types.Recalled
    sent: SentPrompt
    """The same as it is stored with the reply."""
    dropped_turns: int
    filter_usage: types.Usage | None
    """What the model filter took, where it was asked."""


def build(
    conversation: Conversation,
    model: ChatModel,
    text: str,
    switch: types.MemorySwitch,
    *,
    tools: bool,
    begun: str = "",
) -> Prompt:
    """Recall what the message asks for and put the prompt together. ``tools``: they are offered;
    ``begun``: the words of the reply so far, which is to go on.

    The window is fitted twice, as the memories recalled may need some room of it. Raises InputError
    where the message alone does not fit the model.
    """
    parts, scope = conversation.parts, conversation.scope
    if not model.sees and any(one.data for one in conversation.turns[-1].attachments):
        raise InputError(
            f"{model.name} is not known to see pictures; have another model answer, "
            "for example gemini/gemini-2.5-flash, or send the message without the picture"
        )
    query, shown, filter_usage = None, types.Recalled(), None
    if switch.on:
        searched = search.searched(text, conversation.turns)
        query = parts.query_timeout.start(searched)  # its vector is made while this goes on
        conversation.pending_queries.append(query)
    wanted = "" if conversation.incognito else instructions(parts, scope)
    rest = f"\n{parts.prompts.render('go_on', begun=begun)}" if begun else ""
    system = _system(parts, switch, wanted, rest, tools=tools)
    window = MessageWindow.fit(model, system, conversation.turns)
    if query is not None:
        question = parts.query_timeout.wait(query)
        session_id, fitting = conversation.session_id, list[int]()
        if parts.model_filter is not None:
            pinned = parts.block.pinned(scope, session_id)
            fitting, filter_usage = parts.model_filter.choose(text, pinned)
        shown = parts.block.for_prompt(
            scope, question, dropped=window.dropped, session_id=session_id, first=fitting
        )
        shown = replace(shown, notes=parts.notes.for_prompt(scope, question))
        # The message fits alone: what does not fit beside it is left out, and the result says so.
        without = types.Recalled(degraded=NO_ROOM, dropped=shown.lines + shown.dropped)
        for given in (shown, replace(shown, notes=())):
            block = recalled(parts, conversation.fence_mark, given)
            with suppress(InputError):
                system = _system(parts, switch, wanted, block + rest, tools=tools)
                window = MessageWindow.fit(model, system, conversation.turns)
                without = given
                break
        shown = without
    counts = len(window.turns), shown.lines, shown.dropped
    sent = SentPrompt(window.system, window.turns[0].id, tools, *counts, shown.degraded)
    return Prompt(window.messages, shown, sent, len(window.dropped), filter_usage)


def recalled(parts: Parts, mark: str, shown: types.Recalled) -> str:
    """The memories and the passages of notes as a prompt has them, each fenced by the mark."""
    blocks = (render.block(parts.prompts, mark, shown), parts.notes.render(mark, shown.notes))
    return "\n".join(filter(None, blocks))


def for_message(
    parts: Parts,
    scope: types.Scope,
    question: Question,
    max_tokens: int | None = None,
    only: types.Wanted | None = None,
) -> tuple[str, types.Recalled]:
    """The memories and passages for a message outside of any conversation, and what they are.

    With ``max_tokens`` both together have no more; the notes have what the memories leave. With
    ``only`` there are the memories and turns that match it, and no notes.
    """
    mark, memories, left = render.new_mark(), parts.block, MOST_TOKENS
    if max_tokens is not None:
        memories = replace(memories, settings=parts.settings.with_(budget_tokens=max_tokens))
    shown = memories.for_prompt(scope, question, only=only)
    if only is not None:
        return recalled(parts, mark, shown), shown
    if max_tokens is not None:
        left = max_tokens - estimate_tokens(render.block(parts.prompts, mark, shown)) - 1
    shown = replace(shown, notes=parts.notes.for_prompt(scope, question, most_tokens=left))
    return recalled(parts, mark, shown), shown


def instructions(parts: Parts, scope: types.Scope) -> str:
    """What the person wants of every reply, in every app and then in this one, as a prompt has
    it."""
    with parts.database.read(scope) as tx:
        wanted = [apps.instructions(tx, app_id) for app_id in (tx.shared, tx.own)]
    lines = "\n".join(filter(None, wanted))
    return parts.prompts.render("instructions", instructions=lines) if lines else ""


def _system(
    parts: Parts, switch: types.MemorySwitch, wanted: str, block: str = "", *, tools: bool
) -> str:
    rule = ""
    if tools:
        rule = parts.prompts.text("tools")
    elif not switch.on:
        rule = parts.prompts.render("off", reason=switch.reason)
    return parts.prompts.render("chat", memories=wanted + rule + block)


HIDDEN = "is being forgotten"
_RETIRED = {"superseded": "replaced", "merged": "merged", "ended": "ended", "expired": "over"}


@dataclass(frozen=True, slots=True)
class Explaining:
    """One reply of a scope, explained from the rows of one snapshot."""

    tx: Tx
    reply: types.Message

    def why(self) -> types.Why:
        """The whole explanation."""
        shown = receipts.of_reply(self.tx, self.reply.id)
        sent = receipts.prompt_of_reply(self.tx, self.reply.id)
        every = self._lines([*shown, *self._listed(sent, shown)])
        lines, also = every[: len(shown)], every[len(shown) :]
        before = [t for t in self._turns(0) if t.role == "user"]
        given = {(line.hit.kind, line.hit.id) for line in lines if line.hit.channel != "listed"}
        held = any(line.since == HIDDEN for line in every)
        offered = memory_tools() if sent and sent.tools else ()
        return types.Why(
            reply=self.reply,
            question=before[-1].content if before else None,
            lines=tuple(lines),
            also=tuple(also),
            forgotten=max(sent.shown - len(given) - len(also), 0) if sent else 0,
            dropped=sent.dropped if sent else 0,
            degraded=sent.degraded if sent else None,
            by_model=sent is not None,
            tools=tuple(tool["function"]["name"] for tool in offered),
            prompt=None if sent is None or held else self._prompt(sent),
            deleted=self._deleted(sent) if sent else 0,
            calls=tuple(usage.of_reply(self.tx, self.reply.session_id, self.reply.id)),
        )

    def _turns(self, first_id: int) -> list[types.Message]:
        turns = messages.of_session(self.tx, self.reply.session_id)
        return [turn for turn in turns if first_id <= turn.id < self.reply.id]

    def _prompt(self, sent: SentPrompt) -> tuple[types.ChatMessage, ...] | None:
        system = self._system(sent)
        if system is None:
            return None
        turns = self._turns(sent.first_message_id)
        left = [types.ChatMessage(turn.role, said(turn)) for turn in turns]
        # Turns around a deleted one were not sent as one message.
        whole = alternating(turns) if not self._deleted(sent) else left
        return (types.ChatMessage("system", system), *whole)

    def _system(self, sent: SentPrompt) -> str | None:
        """The system text, with its list of facts where that is stored in rows of its own."""
        if sent.system is None or sent.list_id is None:
            return sent.system
        found = receipts.list_of(self.tx, sent.list_id)
        if found.opening is None:
            return None
        return found.opening + render.listing([_sent(*line) for line in found.lines]) + sent.system

    def _listed(self, sent: SentPrompt | None, shown: Sequence[types.Hit]) -> list[types.Hit]:
        """The facts of the list of all facts, without those found for the message."""
        if sent is None or sent.list_id is None:
            return []
        found = {hit.id for hit in shown if hit.kind == "memory" and hit.channel != "listed"}
        listed = receipts.list_of(self.tx, sent.list_id).lines
        return [_sent(*line) for line in listed if line[0] not in found]

    def _deleted(self, sent: SentPrompt) -> int:
        return max(sent.turns - len(self._turns(sent.first_message_id)), 0)

    def _lines(self, shown: list[types.Hit]) -> list[types.Given]:
        ids = [hit.id for hit in shown if hit.kind == "memory"]
        there = memories.by_ids(self.tx, self.tx.ids, ids)
        held = self._held()
        mute = sessions.muted_of_session(self.tx, self.reply.session_id)
        said = messages.by_ids(self.tx, [hit.id for hit in shown if hit.kind == "message"])
        lines = []
        for hit in shown:
            if (hit.kind, hit.id) in held:
                lines.append(types.Given(replace(hit, text="…"), since=HIDDEN))
            elif hit.kind == "note":
                lines.append(self._passage(hit))
            elif hit.kind == "message":
                turn = said.get(hit.id)
                lines.append(
                    types.Given(hit, turn.created_at, turn.session_id)
                    if turn is not None
                    else types.Given(hit, since="its message was deleted")
                )
            else:
                line = self._line(hit, there.get(hit.id))
                lines.append(replace(line, muted=hit.id in mute))
        return lines

    def _passage(self, hit: types.Hit) -> types.Given:
        note = rows.get(self.tx, self.tx.ids, hit.id)
        if note is None:
            return types.Given(hit, since="its note is no longer kept here")
        changed = note.updated_at is not None and note.updated_at > self.reply.created_at
        return types.Given(hit, note.created_at, since="its note was changed" if changed else None)

    def _held(self) -> set[tuple[str, int]]:
        """The lines that a queued purge will remove, by kind and id."""
        here = self.tx.ids[0]
        # The purge may be queued in any app: memories may have been moved.
        hidden = memories.hidden(self.tx, [here, *apps.other_ids(self.tx, here)])
        held: set[tuple[str, int]] = set()
        for traces in purge.traces_of(self.tx, hidden):
            held |= {("memory", i) for i in traces.shown(self.tx)}
            held |= {("message", i) for i in purge.turns_that_may_mention(self.tx, traces)}
        return held

    def _line(self, hit: types.Hit, memory: types.Memory | None) -> types.Given:
        if memory is None:
            return types.Given(hit, since="is no longer kept here")
        proofs = [p for p in changes.evidence_of_memory(self.tx, hit.id) if p.role == "user"]
        proofs = [p for p in proofs if p.message_id < self.reply.id] or proofs
        newest = max(proofs, key=lambda p: p.message_id, default=None)
        said_at = newest.said_at if newest else memory.said_at
        session_id = newest.session_id if newest else None
        client = programs.of_memories(self.tx, [hit.id]).get(hit.id)
        return types.Given(hit, said_at, session_id, self._since(hit, memory), client=client)

    def _since(self, hit: types.Hit, memory: types.Memory) -> str | None:
        if not memory.active:
            reason = memory.inactive_reason or ""
            what = _RETIRED.get(reason, reason)
            how = {"replaced": "by", "merged": "into"}.get(what)
            return f"{what} {how} #{memory.replaced_by}" if how and memory.replaced_by else what
        if memory.expires_at is not None and memory.expires_at < self.tx.today:
            return "over"
        if render.has_value(hit.text, memory.key, memory.value):
            return None
        return f"changed, now {render.escaped(f'{memory.key}: {memory.value}')}"


def _sent(memory_id: int, text: str) -> types.Hit:
    """A line of a list of facts."""
    hit = types.Hit("memory", memory_id, text, 1.0, None, None, "all", 0)
    return replace(hit, tokens=estimate_tokens(f"{render.bullet(hit)}\n"))
