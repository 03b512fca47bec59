"""Deleting turns of a conversation, with what only they taught."""

from __future__ import annotations

from collections.abc import Sequence

from memchat.memory.context import Context
from memchat.memory.forgetting import purge
from memchat.memory.forgetting.undo import ConversationUndo
from memchat.memory.recall import turn_texts
from memchat.store import copies
from memchat.types import Message, Undone


def leave_to_copies(ctx: Context, turns: Sequence[Message]) -> None:
    """Put copies of turns that are about to be deleted in their place: what was said in them still
    stands in another conversation, so what they taught stays, with the copies as proof."""
    turn_texts.rewrite(ctx, copies.take_place(ctx.tx, [turn.id for turn in turns]))


def take_back(ctx: Context, turns: Sequence[Message]) -> tuple[Undone, set[int]]:
    """Undo what the turns taught; what that did, and the scope rows whose saved vectors are out of
    date. What was only said there may be learnt again: it leaves no tombstone."""
    undone = ConversationUndo(ctx, {turn.id for turn in turns}).run()
    return undone, purge.forget(ctx, undone.gone, tombstone=False)


def delete_turns(
    ctx: Context, turns: Sequence[Message], *, keep_memories: bool = False
) -> tuple[Undone, set[int]]:
    """Delete stored turns; with ``keep_memories`` what they taught stays. Returns the same as
    ``take_back``."""
    leave_to_copies(ctx, turns)
    undone, stale = (Undone(), set[int]()) if keep_memories else take_back(ctx, turns)
    for turn in sorted(turns, key=lambda turn: turn.id, reverse=True):
        stale |= purge.forget_message(ctx, turn)
    return undone, stale
