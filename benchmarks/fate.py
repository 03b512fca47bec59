"""What became of a proposal: stored, waiting for a person, listed as not kept, or lost unseen;
or overtaken, where it was done and another one of the same conversation undid it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.desk import USER, Desk, slot
from memchat.chat import Chat
from memchat.language.text import fold, normal_value
from memchat.types import Change, InboxItem, Learned, Memory

Fate = Literal["stored", "waiting", "refused", "overtaken", "lost"]
FATES: tuple[Fate, ...] = ("stored", "waiting", "refused", "overtaken", "lost")


@dataclass(frozen=True, slots=True)
class Aftermath:
    """A store after a conversation was read, beside what it held before."""

    before: Mapping[int, Memory]
    rows: Sequence[Memory]
    waiting: Sequence[InboxItem]
    listed: Sequence[tuple[str | None, str | None]]
    """Key and value of what is listed as not kept; None where the words may not be kept."""
    changes: Sequence[Change]
    """What the session's end told."""

    def of(
        self,
        proposal: Mapping[str, Any],
        target: int | None,
        *,
        rivals: Sequence[str] = (),
        twin: bool = False,
    ) -> Fate:
        """What became of a fact as the model proposed it. ``target`` is the memory it speaks of;
        ``rivals`` are the values that others propose for its key: a value which the second look put
        another way is that of the proposal that was not turned down; ``twin`` says that another one
        has its key and value, so that an update shows only in what it replaced."""
        update_of = target if proposal["is"] == "updates" else None
        unseen = twin and update_of is not None and self.in_force(update_of)
        if not unseen and self._is_stored(proposal, target):
            return "stored"
        if any(self._waits(item, proposal, target) for item in self.waiting):
            return "waiting"
        if self._is_listed(proposal):
            return "refused"
        if not unseen and self._is_reworded(proposal, rivals):
            return "stored"
        if self._is_told(proposal):
            return "refused"
        return "overtaken" if self._is_overtaken(proposal) else "lost"

    def in_force(self, memory_id: int) -> bool:
        """Whether a memory is still held for true."""
        return any(row.id == memory_id and row.active for row in self.rows)

    def new(self) -> list[Memory]:
        """The memories in force that this conversation made."""
        return [row for row in self.rows if row.active and row.id not in self.before]

    def _is_stored(self, proposal: Mapping[str, Any], target: int | None) -> bool:
        if proposal["is"] == "ends":
            return any(
                row.inactive_reason == "ended"
                and self.before.get(row.id, row).active
                and (row.id == target if target else slot(row.key) == slot(proposal["key"]))
                for row in self.rows
                if row.id in self.before
            )
        return any(_equal(row.value, proposal["value"]) for row in self._of_key(proposal))

    def _is_reworded(self, proposal: Mapping[str, Any], rivals: Sequence[str]) -> bool:
        new = [row.value for row in self._of_key(proposal) if row.id not in self.before]
        others = [value for value in new if not any(_equal(rival, value) for rival in rivals)]
        return proposal["is"] != "ends" and bool(others)

    def _of_key(self, proposal: Mapping[str, Any]) -> list[Memory]:
        wanted = slot(proposal["key"])
        return [row for row in self.rows if self._is_touched(row) and slot(row.key) == wanted]

    def _is_touched(self, row: Memory) -> bool:
        if not row.active and row.inactive_reason != "merged":
            return False
        was = self.before.get(row.id)
        return was is None or row.seen_count > was.seen_count or row.active != was.active

    def _waits(self, item: InboxItem, proposal: Mapping[str, Any], target: int | None) -> bool:
        if proposal["is"] == "ends" and target is not None:
            if item.target_id is not None:
                return item.relation == "ends" and item.target_id == target
            if item.memory_id == target:
                return True
        if item.key is None or slot(item.key) != slot(proposal["key"]):
            return False
        return proposal["is"] == "ends" or item.masked or _equal(item.value, proposal["value"])

    def _is_listed(self, proposal: Mapping[str, Any]) -> bool:
        for key, value in self.listed:
            if key is None:
                return True
            if slot(key) == slot(proposal["key"]) and (
                value is None or proposal["is"] == "ends" or _equal(value, proposal["value"])
            ):
                return True
        return False

    def _is_told(self, proposal: Mapping[str, Any]) -> bool:
        told = [change for change in self.changes if change.kind == "refused"]
        return any(_rests_on(change, proposal) for change in told)

    def _is_overtaken(self, proposal: Mapping[str, Any]) -> bool:
        return any(
            change.memory is not None
            and slot(change.memory.key) == slot(proposal["key"])
            and _equal(change.memory.value, proposal["value"])
            and _rests_on(change, proposal)
            for change in self.changes
        )


def before(desk: Desk) -> dict[int, Memory]:
    """The rows of a store as they stand now."""
    return {row.id: row for row in desk.mc.user(USER).memories.list(status="all", limit=1000)}


def after(
    desk: Desk, was: Mapping[int, Memory], chat: Chat, later: Sequence[Learned] = ()
) -> Aftermath:
    """What a conversation left behind; ``later`` is what was learned at further tries."""
    refused = desk.mc.user(USER).inbox.refusals()
    listed = [(one.key, one.value) for one in refused if one.session_id == chat.session_id]
    learned = [*([chat.learned] if chat.learned is not None else []), *later]
    return Aftermath(
        was,
        desk.mc.user(USER).memories.list(status="all", limit=1000),
        desk.mc.user(USER).inbox.list(),
        listed,
        [change for one in learned for change in one.changes],
    )


def _rests_on(change: Change, proposal: Mapping[str, Any]) -> bool:
    """Whether a change quotes the same words."""
    quotes = [fold(quote["text"]).text for quote in proposal["quotes"]]
    told = [fold(words).text for words in change.quotes if words]
    return any(quote in words or words in quote for quote in quotes for words in told)


def _equal(one: str | None, other: str) -> bool:
    """The same words; the first may have those of an end that could not be read behind them."""
    kept, wanted = normal_value(one or ""), normal_value(other)
    return kept == wanted or (one or "").startswith(f"{other} (")
