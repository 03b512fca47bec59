"""Explaining a reply: its receipt, compared with what is stored now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memchat.chat.command_words import TOOLS
from memchat.chat.prompt import alternating
from memchat.db import Tx, apps, messages, sessions, usage
from memchat.facts import changes, history, lists, memories, programs
from memchat.forget import purge, redaction
from memchat.notes import rows
from memchat.search import receipts, render
from memchat.search.receipts import SentPrompt
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Given, Hit, Memory, Message, Why

HIDDEN = "is being forgotten"
_RETIRED = {"superseded": "replaced", "merged": "merged", "ended": "ended", "expired": "over"}


@dataclass(frozen=True, slots=True)
class Explaining:
    """One reply of a scope, explained from the rows of one snapshot."""

    tx: Tx
    reply: Message

    def why(self) -> Why:
        """The whole explanation."""
        shown = receipts.of_reply(self.tx, self.reply.id)
        sent = receipts.prompt_of_reply(self.tx, self.reply.id)
        lines, also = self._lines(shown), self._also(sent, shown)
        before = [t for t in self._turns(0) if t.role == "user"]
        given = {(line.hit.kind, line.hit.id) for line in lines if line.hit.channel != "listed"}
        held = any(line.since == HIDDEN for line in (*lines, *also))
        return Why(
            reply=self.reply,
            question=before[-1].content if before else None,
            lines=tuple(lines),
            also=tuple(also),
            forgotten=max(sent.shown - len(given) - len(also), 0) if sent else 0,
            dropped=sent.dropped if sent else 0,
            degraded=sent.degraded if sent else None,
            by_model=sent is not None,
            tools=tuple(t["function"]["name"] for t in TOOLS) if sent and sent.tools else (),
            prompt=None if sent is None or held else self._prompt(sent),
            deleted=self._deleted(sent) if sent else 0,
            calls=tuple(usage.of_reply(self.tx, self.reply.session_id, self.reply.id)),
        )

    def _turns(self, first_id: int) -> list[Message]:
        turns = messages.of_session(self.tx, self.reply.session_id)
        return [turn for turn in turns if first_id <= turn.id < self.reply.id]

    def _prompt(self, sent: SentPrompt) -> tuple[ChatMessage, ...] | None:
        system = self._system(sent)
        if system is None:
            return None
        turns = self._turns(sent.first_message_id)
        left = [ChatMessage(turn.role, turn.content) for turn in turns]
        # Turns around a deleted one were not sent as one message.
        whole = alternating(turns) if not self._deleted(sent) else left
        return (ChatMessage("system", system), *whole)

    def _system(self, sent: SentPrompt) -> str | None:
        """The system text, with its list of facts where that is stored in rows of its own."""
        if sent.system is None or sent.list_id is None:
            return sent.system
        found = lists.get(self.tx, sent.list_id)
        if found.opening is None:
            return None
        return found.opening + render.listing([_sent(*line) for line in found.lines]) + sent.system

    def _also(self, sent: SentPrompt | None, shown: Sequence[Hit]) -> list[Given]:
        """The facts of the list of all facts, without those found for the message."""
        if sent is None or sent.list_id is None:
            return []
        found = {hit.id for hit in shown if hit.kind == "memory" and hit.channel != "listed"}
        listed = [_sent(*line) for line in lists.get(self.tx, sent.list_id).lines]
        rest = [hit for hit in listed if hit.id not in found]
        there = memories.by_ids(self.tx, self.tx.ids, [hit.id for hit in rest])
        held = {memory.id for memory in self._hidden()}
        mute = sessions.muted_of_session(self.tx, self.reply.session_id)
        return [
            Given(replace(hit, text="…"), since=HIDDEN)
            if hit.id in held
            else replace(self._line(hit, there.get(hit.id)), muted=hit.id in mute)
            for hit in rest
        ]

    def _deleted(self, sent: SentPrompt) -> int:
        return max(sent.turns - len(self._turns(sent.first_message_id)), 0)

    def _lines(self, shown: list[Hit]) -> list[Given]:
        ids = [hit.id for hit in shown if hit.kind == "memory"]
        there = memories.by_ids(self.tx, self.tx.ids, ids)
        held = self._held()
        mute = sessions.muted_of_session(self.tx, self.reply.session_id)
        said = messages.by_ids(self.tx, [hit.id for hit in shown if hit.kind == "message"])
        lines = []
        for hit in shown:
            if (hit.kind, hit.id) in held:
                lines.append(Given(replace(hit, text="…"), since=HIDDEN))
            elif hit.kind == "note":
                lines.append(self._passage(hit))
            elif hit.kind == "message":
                turn = said.get(hit.id)
                lines.append(
                    Given(hit, turn.created_at, turn.session_id)
                    if turn is not None
                    else Given(hit, since="its message was deleted")
                )
            else:
                line = self._line(hit, there.get(hit.id))
                lines.append(replace(line, muted=hit.id in mute))
        return lines

    def _passage(self, hit: Hit) -> Given:
        note = rows.get(self.tx, self.tx.ids, hit.id)
        if note is None:
            return Given(hit, since="its note is no longer kept here")
        changed = note.updated_at is not None and note.updated_at > self.reply.created_at
        return Given(hit, note.created_at, since="its note was changed" if changed else None)

    def _held(self) -> set[tuple[str, int]]:
        """The lines that a queued purge will remove, by kind and id."""
        held: set[tuple[str, int]] = set()
        for traces in redaction.traces_of(self.tx, self._hidden()):
            held |= {("memory", i) for i in traces.shown(self.tx)}
            held |= {("message", i) for i in purge.turns_that_may_mention(self.tx, traces)}
        return held

    def _hidden(self) -> list[Memory]:
        """The memories whose purge is queued, in any app: they may have been moved."""
        here = self.tx.ids[0]
        return changes.listed(self.tx, [here, *apps.other_ids(self.tx, here)])

    def _line(self, hit: Hit, memory: Memory | None) -> Given:
        if memory is None:
            return Given(hit, since="is no longer kept here")
        proofs = [p for p in history.evidence_of_memory(self.tx, hit.id) if p.role == "user"]
        proofs = [p for p in proofs if p.message_id < self.reply.id] or proofs
        newest = max(proofs, key=lambda p: p.message_id, default=None)
        return Given(
            hit,
            newest.said_at if newest else memory.said_at,
            newest.session_id if newest else None,
            self._since(hit, memory),
            client=programs.of_memories(self.tx, [hit.id]).get(hit.id),
        )

    def _since(self, hit: Hit, memory: Memory) -> str | None:
        if not memory.active:
            what = _RETIRED.get(memory.inactive_reason or "", memory.inactive_reason)
            by = f" by #{memory.replaced_by}" if what == "replaced" and memory.replaced_by else ""
            into = f" into #{memory.replaced_by}" if what == "merged" and memory.replaced_by else ""
            return f"{what}{by}{into}"
        if memory.expires_at is not None and memory.expires_at < self.tx.today:
            return "over"
        if render.has_value(hit.text, memory.key, memory.value):
            return None
        return f"changed, now {render.escaped(f'{memory.key}: {memory.value}')}"


def _sent(memory_id: int, text: str) -> Hit:
    """A line of a list of facts."""
    hit = Hit("memory", memory_id, text, 1.0, None, None, "all", 0)
    return replace(hit, tokens=estimate_tokens(f"{render.bullet(hit)}\n"))
