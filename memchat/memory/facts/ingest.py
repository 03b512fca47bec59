"""The one way of facts into the store, wherever they come from.

A model's candidates are first judged by the gate (``gate.judge``), and the doubtful ones by a
second look of the model (``extraction.second_look``). Both run before the transaction that writes,
because a model may take minutes. The ``Source`` of facts says what differs: what the user enters or
accepts needs no gate, and is stored even if it was forgotten before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from memchat.memory.context import Context
from memchat.memory.facts.consolidation import Consolidation
from memchat.memory.facts.fact import ADDED_BY_HAND, BLANKED, Fact, refusal_entry
from memchat.memory.forgetting import purge, tombstone_marks
from memchat.store import jobs, memories, tags, tombstones
from memchat.store.events import Cause
from memchat.store.new_memory import NewMemory
from memchat.store.refusals import NewRefusal
from memchat.types import Change, Memory


@dataclass(frozen=True, slots=True)
class Source:
    """Where facts come from, as their events say it."""

    actor: str
    """"model" for what the gate judged, "user" for what the user entered or accepted."""
    cause: str
    session_id: int | None = None
    message_id: int | None = None
    """The message that asked for them; None where each fact has the message it was quoted from."""

    @property
    def is_user(self) -> bool:
        """Whether the user entered or accepted the facts, so that no gate judged them."""
        return self.actor == "user"


MANUAL = Source("user", ADDED_BY_HAND)
INBOX = Source("user", "accepted from the inbox")
KEPT_REFUSAL = Source("user", "kept anyway")


def session_end(session_id: int) -> Source:
    """The source of what an ended conversation teaches, at once or after a late second look."""
    return Source("model", "extracted", session_id)


def chat_command(session_id: int, message_id: int) -> Source:
    """The source of a request in a conversation, such as "remember that …"."""
    return Source("model", "asked for", session_id, message_id)


@dataclass(slots=True)
class Ingested:
    """The result of storing facts."""

    changes: list[Change] = field(default_factory=list)
    refused: list[NewRefusal] = field(default_factory=list)
    """The facts that the store did not take, for the list of refusals."""
    written: list[int] = field(default_factory=list)
    """Ids of memories that are new or have new words, and so need a vector."""


def ingest(
    ctx: Context,
    source: Source,
    facts: Iterable[Fact],
    merge_threshold: float,
    *,
    blanked: Collection[int] = (),
) -> Ingested:
    """Store facts one after another, in the order in which they were said.

    Those quoted from a message of ``blanked``, whose words were forgotten meanwhile, are refused.
    Raises InputError where a memory would have too many tags.
    """
    done = Ingested()
    for fact in facts:
        if any(message_id in blanked for message_id, _, _ in fact.proofs):
            change = Change("refused", None, reason=BLANKED)
        else:
            if source.is_user:
                allow_again(ctx, fact)
            cause = _cause(ctx, source, fact)
            change = Consolidation(ctx, cause, merge_threshold, done.written).apply(fact)
            if fact.tags and change.memory is not None and change.kind not in ("review", "refused"):
                change = replace(change, memory=_tagged(ctx, change.memory, fact, cause))
        done.changes.append(change)
        if change.kind == "refused":
            done.refused.append(refusal_entry(fact, change.reason or ""))
    return done


def allow_again(ctx: Context, new: NewMemory) -> None:
    """Remove what keeps a forgotten memory from being stored: the user asks for it now."""
    own = ctx.scope.own
    assert own is not None
    held = [app_id for app_id in ctx.scope.ids if tombstones.any_in(ctx.tx, app_id)]
    tombstones.remove(ctx.tx, held, [tombstone_marks.key_mark(new.key)])
    if own in held:
        tombstones.remove(ctx.tx, [own], tombstone_marks.wording_marks(new.key, new.value))
    purge.purge_hidden_duplicate(ctx, own, new.sha1)


def queue_embedding(ctx: Context, memory_ids: Iterable[int]) -> None:
    """Queue jobs that make the vectors of these memories."""
    for memory_id in memory_ids:
        app_id = memories.app_id_of(ctx.tx, memory_id)
        jobs.enqueue(ctx.tx, "embed", app_id, memory_id, ctx.now)


def _tagged(ctx: Context, memory: Memory, fact: Fact, cause: Cause) -> Memory:
    app_id = memories.app_id_of(ctx.tx, memory.id)
    tags.add(ctx.tx, memory.id, fact.tags, cause)
    return memories.by_ids(ctx.tx, [app_id], [memory.id])[memory.id]


def _cause(ctx: Context, source: Source, fact: Fact) -> Cause:
    cause = Cause(ctx.now, source.actor, source.cause, source.session_id, source.message_id)
    if source.message_id is None and fact.proofs and not source.is_user:
        cause = replace(cause, message_id=fact.proofs[0][0])
    return cause
