"""Conversations: holding them, looking back at them, taking them away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.app.opened import Opened, found_memory, found_session, found_turn
from memchat.errors import NotFound
from memchat.store import apps, messages, muted, prompts, receipts, sessions
from memchat.types import (
    Change,
    Hit,
    Memory,
    Message,
    Recalled,
    Scope,
    Session,
    Undone,
    Why,
    one_line,
)

if TYPE_CHECKING:
    from memchat.chat import Chat, Reply

TITLE_LIMIT = 80


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer outside any session, and the memories it was given."""

    text: str
    shown: Recalled


class Sessions(Opened):
    """The verbs on conversations."""

    def session(
        self, *, user: str, app: str = "default", incognito: bool = False, resume: int | None = None
    ) -> Chat:
        """A conversation; leaving its ``with`` block ends it and learns from it.

        Sessions of this user that another process left behind are ended first, and what waits to be
        read is read in the background.
        """
        from memchat.chat import Chat

        if not self._assembly.chat_model_known:
            from memchat.providers import litellm_calls

            litellm_calls.warm()  # while the person types their first words
        chat = Chat(self._parts(), Scope(user, app), incognito=incognito, resume=resume)
        if not incognito:
            self._chats.add(chat)
            if chat.memory.on:
                self._run_behind(self._assembly.warm)  # while they type, too
            self._resume(chat.scope.user)
        return chat

    def redo(self, chat: Chat, text: str | None = None) -> Reply:
        """Answer the last message of a conversation anew, or first say it in other words.

        When the new reply is there, what it takes the place of is removed as ``delete_message``
        does: what only its old words proved goes. Where none comes, all is as it was before.
        Raises InputError where nothing was said yet.
        """
        from memchat.chat.redo import Redo

        delete = partial(self.delete_message, user=chat.scope.user, app=chat.scope.app)
        return Redo(chat, delete).start(text)

    def chat_once(self, prompt: str, *, user: str, app: str = "default") -> Answer:
        """One answer with what is remembered; nothing is written."""
        from memchat.chat import once

        return Answer(*once(self._parts(), Scope(user, app), prompt))

    def sessions(
        self, *, user: str, app: str = "default", limit: int = 50, offset: int = 0
    ) -> list[Session]:
        """The app's conversations, the latest first."""
        with self._database.read() as tx:
            own = apps.find(tx, Scope(user, app)).own
            return [] if own is None else sessions.listed(tx, [own], limit, offset)

    def conversations(
        self, *, user: str, app: str = "default", search: str = "", limit: int = 50, offset: int = 0
    ) -> list[tuple[Session, str]]:
        """The app's conversations, the latest first, each with its first words.

        With ``search`` those that have it, in any case, in their title or in what was said.
        """
        with self._database.read() as tx:
            own = apps.find(tx, Scope(user, app)).own
            if own is None:
                return []
            found = sessions.listed(tx, [own], limit, offset, search=search.strip())
            first = messages.first_words(tx, [session.id for session in found])
            return [(session, first.get(session.id, "")) for session in found]

    def rename_session(
        self, session_id: int, title: str, *, user: str, app: str = "default"
    ) -> Session:
        """Give a conversation a title of the person's own; no later reading changes it."""
        scope, title = Scope(user, app), one_line(title, "title", TITLE_LIMIT)
        with self._database.write() as tx:
            sessions.rename(tx, found_session(tx, scope, session_id).id, title)
            return found_session(tx, scope, session_id)

    def lessons(
        self, session_id: int, *, user: str, app: str = "default"
    ) -> dict[int, list[Change]]:
        """What a conversation taught, by the message that taught it, as far as it stands.

        What was only said again, forgotten since or taken back is left out.
        """
        from memchat.memory.extraction.learned_changes import of_session

        scope = Scope(user, app)
        with self._database.read() as tx:
            found_session(tx, scope, session_id)
            return of_session(tx, apps.find(tx, scope).ids, session_id)

    def unlearn(self, message_id: int, *, user: str, app: str = "default") -> Undone:
        """Take back what a message taught, and leave its words; what that did.

        As when it is deleted, but the message stays, and nothing is learnt from it again.
        """
        from memchat.memory.forgetting import purge
        from memchat.memory.forgetting.undo import ConversationUndo

        scope, now = Scope(user, app), self._clock()
        with self._database.write() as tx:
            turn = found_turn(tx, scope, message_id)
            done = ConversationUndo(
                tx, apps.find(tx, scope).ids, {turn.id}, now, self.settings.zone
            ).run()
            zone = self.settings.zone
            stale = purge.forget(tx, done.gone, zone, now, keep_transcript=True)
            self._drop_vectors(tx, stale)
        purge.scrub(self._database)
        return done

    def find_session(self, session_id: int, *, user: str, app: str = "default") -> Session:
        """One conversation. Raises NotFound outside the scope."""
        with self._database.read() as tx:
            return found_session(tx, Scope(user, app), session_id)

    def messages(self, session_id: int, *, user: str, app: str = "default") -> list[Message]:
        """A conversation's turns, oldest first."""
        with self._database.read() as tx:
            found_session(tx, Scope(user, app), session_id)
            return messages.of_session(tx, session_id)

    def session_of(self, message_id: int, *, user: str, app: str = "default") -> int:
        """The conversation a message stands in. Raises NotFound outside the scope."""
        with self._database.read() as tx:
            return found_turn(tx, Scope(user, app), message_id).session_id

    def receipt(self, message_id: int, *, user: str, app: str = "default") -> list[Hit]:
        """What was injected for a reply, in the order it was shown."""
        with self._database.read() as tx:
            return receipts.of_reply(tx, found_turn(tx, Scope(user, app), message_id).id)

    def why(self, message_id: int | None = None, *, user: str, app: str = "default") -> Why:
        """Why a reply is as it is: each line it was given, and exactly what its model was sent.

        A message of the person's own stands for the reply to it; without a number it is the latest
        reply of the app. Raises NotFound where there is none.
        """
        from memchat.chat.why import Explaining

        scope = Scope(user, app)
        with self._database.read() as tx:
            ids = apps.find(tx, scope)
            if message_id is None:
                found = prompts.latest(tx, ids.own) if ids.own is not None else None
            else:
                found = prompts.reply_of(tx, found_turn(tx, scope, message_id))
            if found is None:
                raise NotFound("no reply was kept there; see memchat sessions list and show")
            reply = messages.by_ids(tx, [found])[found]
            return Explaining(tx, ids, self._today(), reply).why()

    def mute(self, memory_id: int, session_id: int, *, user: str, app: str = "default") -> Memory:
        """Keep a memory that is not relevant there out of the rest of a conversation."""
        scope = Scope(user, app)
        with self._database.write() as tx:
            memory = found_memory(tx, scope, memory_id)
            muted.mute(tx, found_session(tx, scope, session_id).id, memory_id, self._clock())
        return memory

    def unmute(self, memory_id: int, session_id: int, *, user: str, app: str = "default") -> Memory:
        """Let a memory take part in a conversation again."""
        scope = Scope(user, app)
        with self._database.write() as tx:
            memory = found_memory(tx, scope, memory_id)
            muted.unmute(tx, found_session(tx, scope, session_id).id, memory_id)
        return memory

    def end_session(self, session_id: int, *, user: str, app: str = "default") -> Session:
        """End an open conversation and queue its reading.

        Raises StoreError where a living process is still in it.
        """
        from memchat.chat import Chat
        from memchat.jobs import close_session

        scope = Scope(user, app)
        Chat(self._parts(), scope, resume=session_id)  # refuses one that is in use
        with self._database.write() as tx:
            close_session(tx, found_session(tx, scope, session_id), self._clock())
            return found_session(tx, scope, session_id)

    def delete_session(
        self,
        session_id: int,
        *,
        user: str,
        app: str = "default",
        keep_memories: bool = False,
        dry_run: bool = False,
    ) -> Undone:
        """Remove a conversation for good, and with it what only it taught; what that did.

        What it had replaced or ended comes back; what other words prove too, or a person took into
        their own hands, stays. ``keep_memories`` leaves them all, without its words as proof.
        ``dry_run`` only tells what would be.
        """
        from memchat.memory.forgetting import purge

        scope = Scope(user, app)
        with self._trial(dry_run) as tx:
            turns = messages.of_session(tx, found_session(tx, scope, session_id).id)
            done, stale = self._take_back(tx, scope, turns, keep_memories)
            stale |= purge.forget_session(tx, session_id, self.settings.zone, self._clock())
            if not dry_run:
                self._drop_vectors(tx, stale)
        purge.scrub(self._database)
        return done

    def delete_message(
        self,
        message_id: int,
        *,
        user: str,
        app: str = "default",
        keep_memories: bool = False,
        dry_run: bool = False,
    ) -> Undone:
        """Remove one turn of a conversation, as ``delete_session`` removes all of them."""
        from memchat.memory.forgetting import purge

        scope = Scope(user, app)
        with self._trial(dry_run) as tx:
            turn = found_turn(tx, scope, message_id)
            done, stale = self._take_back(tx, scope, [turn], keep_memories)
            stale |= purge.forget_message(tx, turn, self.settings.zone, self._clock())
            if not dry_run:
                self._drop_vectors(tx, stale)
        purge.scrub(self._database)
        return done

    @contextmanager
    def _trial(self, dry_run: bool) -> Iterator[Connection]:
        """A writer's transaction, of which nothing is kept in a dry run."""
        with self._database.write() as tx, tx.begin_nested() as trial:
            yield tx
            if dry_run:
                trial.rollback()

    def _take_back(
        self, tx: Connection, scope: Scope, turns: Sequence[Message], keep_memories: bool
    ) -> tuple[Undone, set[int]]:
        from memchat.memory.forgetting import purge
        from memchat.memory.forgetting.undo import ConversationUndo

        if keep_memories:
            return Undone(), set()
        ids, now = {turn.id for turn in turns}, self._clock()
        done = ConversationUndo(tx, apps.find(tx, scope).ids, ids, now, self.settings.zone).run()
        return done, purge.forget(tx, done.gone, self.settings.zone, now, bury=False)
