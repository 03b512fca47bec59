"""Deleting turns of a conversation, with what only they taught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memchat.memory.context import Context
from memchat.memory.forgetting import purge
from memchat.memory.forgetting.undo import ConversationUndo
from memchat.memory.recall import turn_texts
from memchat.store import apps, copies, evidence, jobs, memories, sessions
from memchat.types import Message, Scope, Undone


def take_back(
    ctx: Context,
    turns: Sequence[Message],
    *,
    keep_memories: bool = False,
    keep_marked: bool = False,
) -> tuple[Undone, set[int]]:
    """Undo what turns taught that are about to be deleted; what that did, and the scope rows whose
    saved vectors are out of date. With ``keep_memories`` what they taught stays, and with
    ``keep_marked`` what the user pinned or tagged of it.

    What was only said there may be learnt again: it leaves no tombstone. Where a turn has a copy,
    the copy takes its place: what was said still stands in another conversation, and proves what it
    taught, or is read there where it was not read yet.
    """
    ids = [turn.id for turn in turns]
    proved = evidence.proved_memories(ctx.tx, ids)
    unread = copies.heirs_of_unread(ctx.tx, ids)
    turn_texts.rewrite(ctx, copies.take_place(ctx.tx, ids))
    for session_id, first in unread.items():
        _have_read(ctx, session_id, first)
    if keep_memories:
        return Undone(), set()
    undone = ConversationUndo(ctx, set(ids), keeps_marked=keep_marked).run()
    told = {memory.id for memory in (*undone.gone, *undone.back, *undone.kept)}
    left = memories.by_ids(ctx.tx, ctx.scope.ids, [i for i in proved if i not in told])
    undone = replace(undone, kept=(*undone.kept, *left.values()))
    return undone, purge.forget(ctx, undone.gone, tombstone=False)


def delete_turns(
    ctx: Context, turns: Sequence[Message], *, keep_memories: bool = False
) -> tuple[Undone, set[int]]:
    """Delete stored turns. Takes and returns the same as ``take_back``."""
    undone, stale = take_back(ctx, turns, keep_memories=keep_memories)
    for turn in sorted(turns, key=lambda turn: turn.id, reverse=True):
        stale |= purge.forget_message(ctx, turn)
    return undone, stale


def _have_read(ctx: Context, session_id: int, message_id: int) -> None:
    """Have a conversation read from a message on: when it ends, or soon where it has ended."""
    sessions.mark_unread(ctx.tx, session_id, message_id)
    found = sessions.by_id(ctx.tx, session_id)
    if found is None or found[0].ended_at is None:
        return
    session, app_id = found
    if apps.memory_switch(ctx.tx, Scope(session.user, session.app)).on:
        jobs.enqueue(ctx.tx, "extract", app_id, session_id, ctx.now)
