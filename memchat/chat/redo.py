"""Replacing the last turn: the message answered once more, or said in other words.

The turns that are replaced stay on disk until the new reply is complete, and stay for good where a
provider fails. Until then the conversation goes on without them, and without the memories that
only they prove.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection

from memchat.chat.conversation import Conversation
from memchat.chat.parts import Parts
from memchat.errors import InputError
from memchat.memory.context import Context
from memchat.memory.forgetting import purge
from memchat.memory.forgetting.delete_turns import delete_turns
from memchat.memory.forgetting.undo import ConversationUndo
from memchat.store import apps, messages, muted
from memchat.types import Message


class Redo:
    """One replacement of the last turn. ``begin`` leaves it out, ``finish`` deletes it or not."""

    def __init__(self, parts: Parts, conversation: Conversation) -> None:
        self._parts = parts
        self._conversation = conversation
        self._before: list[Message] = []
        self._muted: list[int] = []

    def begin(self, *, whole_turn: bool) -> None:
        """Leave the last reply out of the conversation, and with ``whole_turn`` its message too.

        Raises InputError where nothing was said yet.
        """
        conversation = self._conversation
        conversation.reload()
        turns = conversation.turns
        asked_at = max((n for n, turn in enumerate(turns) if turn.role == "user"), default=None)
        if asked_at is None:
            raise InputError("nothing was said yet; write a message first")
        stays = asked_at + (not whole_turn)
        left_out = frozenset(turn.id for turn in turns[stays:] if turn.id)
        if whole_turn:
            self._mute(left_out)
        self._before, conversation.turns = turns, turns[:stays]
        conversation.left_out = left_out

    def finish(self, message_id: int | None, *, kept: bool) -> None:
        """Delete the turns that were replaced, or where nothing of the new reply is kept go back to
        them and delete the new message, whose row is ``message_id``."""
        conversation = self._conversation
        replaced = conversation.left_out
        conversation.left_out = frozenset()
        if kept:
            self._delete(replaced)
            return
        conversation.turns = self._before
        if conversation.session_id is not None and self._muted:
            with self._parts.database.write() as tx:
                for memory_id in self._muted:
                    muted.unmute(tx, conversation.session_id, memory_id)
        if message_id:
            self._delete({message_id})

    def _mute(self, left_out: frozenset[int]) -> None:
        """Keep the memories that only the replaced turns prove out of the conversation."""
        conversation, parts = self._conversation, self._parts
        if conversation.session_id is None or not left_out:
            return
        with parts.database.write() as tx:
            ctx = self._context(tx)
            with tx.begin_nested() as trial:
                gone = ConversationUndo(ctx, left_out).run().gone
                trial.rollback()
            already = muted.of_session(tx, conversation.session_id)
            self._muted = [memory.id for memory in gone if memory.id not in already]
            for memory_id in self._muted:
                muted.mute(tx, conversation.session_id, memory_id, ctx.now)

    def _delete(self, message_ids: Collection[int]) -> None:
        """Delete stored turns, with what only they taught."""
        if not message_ids:
            return
        parts = self._parts
        with parts.database.write() as tx:
            # Those of a conversation that was deleted meanwhile are gone already.
            turns = messages.by_ids(tx, sorted(message_ids))
            _, stale = delete_turns(self._context(tx), list(turns.values()))
            parts.drop_vectors(tx, stale)
        purge.scrub(parts.database)

    def _context(self, tx: Connection) -> Context:
        parts, scope = self._parts, apps.find(tx, self._conversation.scope)
        return Context(tx, scope, parts.clock(), parts.settings.zone)
