"""One memory as the command line shows it: its details, its history, and both as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from memchat.cli import tables
from memchat.cli.options import confirm
from memchat.types import EmbeddingState, Event, Evidence, Memory, to_json

if TYPE_CHECKING:
    from memchat.app import MemChat
    from memchat.app.memories import Memories

UPKEEP = ("embed", "reindex")
"""Events that tell the index of a change of its own; nothing happened to the fact."""
FIELDS = {
    "memory_type": "type",
    "key": "key",
    "value": "value",
    "starts_at": "from",
    "expires_at": "until",
    "sensitive": "sensitive",
    "tags": "tags",
}
"""What of a fact its history shows, under the names that people know."""


def with_embedding(memory: Memory, state: EmbeddingState) -> dict[str, Any]:
    """The memory as JSON, with the state of its vector."""
    return memory.to_json() | {
        "embedding_status": state.status,
        "embedding_model": state.model,
        "embedding_error": state.error,
    }


def everything(memories: Memories, memory: Memory) -> dict[str, Any]:
    """The memory as JSON, with its vector's state, its proofs and its history."""
    evidence, events = memories.evidence(memory.id), memories.history(memory.id)
    (state,) = memories.embedding_states([memory.id])
    return with_embedding(memory, state) | {
        "evidence": [to_json(item) for item in evidence],
        "history": [to_json(event) for event in events],
    }


def print_memory(
    mc: MemChat, memory: Memory, state: EmbeddingState, client: str | None = None
) -> None:
    """Print what is known of one memory, a line for each thing; ``client`` is the program that
    stored it over MCP."""
    zone = mc.settings.zone
    today: date = datetime.now(zone).date()
    times = "once" if memory.seen_count == 1 else f"{memory.seen_count} times"
    origin = f"by {client} over MCP" if client is not None else memory.created_by
    lines = {
        "value": memory.value,
        "key": memory.key,
        "type": memory.memory_type,
        "state": tables.memory_state(memory, today),
        "user": memory.user,
        "app": tables.app_name(memory.app),
        "from": memory.starts_at or "",
        "until": memory.expires_at or "(no end)",
        "created": f"{tables.time(memory.created_at, zone)}, {origin}",
        "updated": tables.time(memory.updated_at, zone),
        "seen": f"{times}, last {tables.time(memory.last_seen_at, zone)}",
    }
    if memory.starts_at is None:
        del lines["from"]
    lines["vector"] = tables.vector(state)
    if memory.pinned:
        lines["pinned"] = "at hand in every chat"
    if memory.sensitive:
        lines["sensitive"] = "a chat model gets it only where it fits the message"
    if memory.tags:
        lines["tags"] = ", ".join(memory.tags)
    if memory.replaced_by is not None:
        lines["replaced"] = f"by memory {memory.replaced_by}"
    for name, content in lines.items():
        print(tables.plain(f"{name:<9} {content}"))


def evidence_line(mc: MemChat, evidence: Evidence) -> str:
    """The words that prove a memory, by whom and when they were said or sent."""
    words, at = " ".join(evidence.quote.split()), tables.time(evidence.said_at, mc.settings.zone)
    if evidence.client is not None:
        return f"sent      “{words}” (by {evidence.client} over MCP, {at})"
    title = f", {evidence.session_title}" if evidence.session_title else ""
    where = f"session {evidence.session_id}{title}"
    return f"said      “{words}” ({evidence.role}, {at}, {where})"


def told_events(events: Sequence[Event]) -> list[Event]:
    """The events that changed the fact, without those of the index."""
    return [event for event in events if event.kind not in UPKEEP]


def event_line(mc: MemChat, event: Event) -> str:
    """One line of a history: when, what, by whom and why, and what changed."""
    why = f" ({event.cause})" if event.cause else ""
    what = f"{event.kind} by {event.actor}{why}"
    return f"{tables.time(event.at, mc.settings.zone)} {what} {difference(event)}".rstrip()


def difference(event: Event) -> str:
    """What an event changed, each value with the one before it."""
    # What goes out of use keeps its words: only a new state is worth telling.
    old, new = event.old or {}, event.new or {}
    changed = []
    for name, label in FIELDS.items():
        after = new.get(name, old.get(name))
        if after != old.get(name):
            before = f"{_shown(old[name])} → " if name in old else ""
            changed.append(f"{label} {before}{_shown(after)}")
    if event.related_id is not None:
        changed.append(f"memory {event.related_id}")
    return "; ".join(changed)


def _shown(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value) or "(none)"
    return "(none)" if value is None else value


def asked_first(
    memories: Memories, save: Callable[[Memories, bool], Memory], *, yes: bool
) -> Memory:
    """Save; what looks like a secret only if the person agrees."""
    from memchat.errors import SecretError

    try:
        return save(memories, yes)
    except SecretError as error:
        what = f"looks like a {error.kind}"
        confirm(f"This {what}. Keep it anyway?", yes=False, why=f"this {what}")
        return save(memories, True)


def print_stored(memory: Memory, key: str | None, as_json: bool) -> None:
    """The memory that was entered, and its key where it is stored under another than ``key``."""
    tables.print_written(memory, as_json)
    if key is not None and memory.key != key:
        tables.notice(f"“{key}” is stored under the key {memory.key}")
