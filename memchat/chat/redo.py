"""The last message answered anew, or said in other words.

The turns that go stay on disk until the new reply is there, and stay for good where a provider
fails; until then the conversation goes on as if they were gone, and so do the memories that only
they prove.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from memchat.chat import Chat
from memchat.chat.reply import Reply
from memchat.errors import MemChatError, NotFound
from memchat.memory.forgetting.undo import ConversationUndo
from memchat.store import apps, muted


class Redo:
    """One message of a conversation about to be answered again, or said in other words."""

    def __init__(self, chat: Chat, delete: Callable[[int], object]) -> None:
        """``delete`` removes one stored turn, and what only it taught."""
        self._chat = chat
        self._delete = delete
        self._goes: list[int] = []
        self._muted: list[int] = []

    def start(self, text: str | None) -> Reply:
        """Answer the last message once more, or with ``text`` say it so. The reply does the rest.

        Raises InputError where nothing was said yet.
        """
        self._goes = self._chat.step_back(whole=text is not None)
        self._muted = self._mute() if text is not None else []
        try:
            reply = self._chat.again() if text is None else self._chat.send(text)
        except MemChatError:
            self._put_back()
            raise
        said = self._chat.turns[-1].id if text is not None else None
        reply.after(lambda kept: self._over(reply, said, kept))
        return reply

    def _over(self, reply: Reply, said: int | None, kept: bool) -> None:
        # Who cut their own new words short meant them all the same.
        if kept and (reply.received or said is not None):
            self._chat.step_on()
            goes = self._goes
        else:
            self._put_back()
            goes = [said] if said else []
        for message_id in goes:
            with suppress(NotFound):  # the whole conversation was deleted meanwhile
                self._delete(message_id)

    def _mute(self) -> list[int]:
        """Keep what only the old words prove out of the conversation; which memories that is."""
        chat = self._chat
        if chat.session_id is None or not self._goes:
            return []
        with chat.parts.database.write() as tx:
            now, ids = chat.parts.clock(), apps.find(tx, chat.scope).ids
            zone = chat.parts.settings.zone
            with tx.begin_nested() as trial:
                gone = ConversationUndo(tx, ids, set(self._goes), now, zone).run().gone
                trial.rollback()
            already = muted.of_session(tx, chat.session_id)
            found = [memory.id for memory in gone if memory.id not in already]
            for memory_id in found:
                muted.mute(tx, chat.session_id, memory_id, now)
            return found

    def _put_back(self) -> None:
        chat = self._chat
        chat.step_on(back=True)
        if chat.session_id is not None and self._muted:
            with chat.parts.database.write() as tx:
                for memory_id in self._muted:
                    muted.unmute(tx, chat.session_id, memory_id)
