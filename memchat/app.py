"""MemChat, the façade: opens the store, the models and the queue's worker, and closes them.

Every verb names a user and an app; what belongs to another is not found. Opening costs no model:
providers, vectors and FAISS load at the first call that needs them.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat import config
from memchat.assembly import Assembly
from memchat.errors import InputError, NotFound
from memchat.store import (
    apps,
    browse,
    events,
    evidence,
    hidden,
    inbox,
    insights,
    jobs,
    memories,
    messages,
    muted,
    prompts,
    sessions,
    states,
    usage,
)
from memchat.store.events import Cause
from memchat.types import (
    KEEP,
    AppInfo,
    Audit,
    Browsed,
    Change,
    EmbeddingState,
    Event,
    Evidence,
    Finding,
    Hit,
    InboxItem,
    Insights,
    Job,
    Keep,
    Memory,
    MemorySwitch,
    Message,
    PluginInfo,
    Progress,
    Recalled,
    Scope,
    ServiceInfo,
    Session,
    Undone,
    UsageTotal,
    Wanted,
    Why,
    one_line,
)

if TYPE_CHECKING:
    from memchat.chat import Chat, Reply
    from memchat.doctor import Check
    from memchat.jobs import JobsDone
    from memchat.jobs.backfill import Backfilled
    from memchat.memory.by_hand import ByHand
    from memchat.memory.reembed import Reembedded
    from memchat.memory.switch import Switch
    from memchat.providers import ChatModel, Embedder

BACKGROUND_SECONDS = 5.0
"""How long closing waits for background work; what is not done then is done at the next start."""
CLEAR_BATCH = 100
"""Memories forgotten in one transaction: other writers wait for no more than that."""
MOST_BATCH = 2048
"""Texts that any provider takes in one request."""
STATUSES = ("active", "inactive", "expired", "expiring", "all", *states.STATUSES)
EXPIRING_DAYS = 30
MOST_DAYS = 36_500
TITLE_LIMIT = 80


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer outside any session, and the memories it was given."""

    text: str
    shown: Recalled


class MemChat:
    """One store and the models around it. Use it in a ``with`` block, or ``close`` it."""

    def __init__(
        self,
        home: Path | str | None = None,
        *,
        settings: config.Settings | None = None,
        chat_model: ChatModel | None = None,
        extract_model: ChatModel | None = None,
        embedder: Embedder | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Open the store in ``home``, or where the settings say.

        Models given here win over those the settings name. ``clock`` returns the aware time now.
        Raises StoreError when the folder or file cannot be used, SchemaError for a newer one's.
        """
        settings = settings or config.load()
        self.settings = settings.with_(home=Path(home)) if home is not None else settings
        self._clock = clock or _now
        self._assembly = Assembly(self.settings, self._clock, chat_model, extract_model, embedder)
        self._database = self._assembly.database
        self._meaning = self._assembly.meaning
        self._parts = self._assembly.parts
        self._drop_vectors = self._assembly.drop_vectors
        self._chats: weakref.WeakSet[Chat] = weakref.WeakSet()
        self._behind: list[threading.Thread] = []

    def __enter__(self) -> MemChat:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Save the index of large scopes and let go of the files.

        Open sessions stay open on disk: the next process ends and reads them.
        """
        for chat in list(self._chats):
            chat.abandon()
        for thread in self._behind:
            thread.join(timeout=BACKGROUND_SECONDS)
        if any(thread.is_alive() for thread in self._behind):
            self.stop_work()  # it ends with what it has in hand
        self._assembly.close()

    @property
    def now(self) -> datetime:
        """The time by this store's clock."""
        return self._clock()

    def warm(self) -> None:
        """Load the models of this machine before they are asked; it takes some seconds."""
        if not self._assembly.chat_model_known:
            from memchat.providers import lite

            lite.warm()
        self._assembly.warm()

    # Conversation

    def session(
        self,
        *,
        user: str,
        app: str = "default",
        incognito: bool = False,
        resume: int | None = None,
    ) -> Chat:
        """A conversation; leaving its ``with`` block ends it and learns from it.

        Sessions of this user that another process left behind are ended first, and what waits to be
        read is read in the background.
        """
        from memchat.chat import Chat

        if not self._assembly.chat_model_known:
            from memchat.providers import lite

            lite.warm()  # while the person types their first words
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
        from memchat.chat.anew import Anew

        delete = partial(self.delete_message, user=chat.scope.user, app=chat.scope.app)
        return Anew(chat, delete).start(text)

    def chat_once(self, prompt: str, *, user: str, app: str = "default") -> Answer:
        """One answer with what is remembered; nothing is written."""
        from memchat.chat import once

        return Answer(*once(self._parts(), Scope(user, app), prompt))

    # Memories

    def add(
        self,
        memory_type: str,
        key: str,
        value: str,
        *,
        user: str,
        app: str = "default",
        all_apps: bool = False,
        expires_at: date | None = None,
    ) -> Memory:
        """Keep a fact by hand. It is on disk when this returns; its vector follows."""
        scope = Scope(user, app)
        with self._database.write() as tx:
            return self._by_hand(tx, scope).add(memory_type, key, value, expires_at, all_apps)

    def memories(
        self,
        *,
        user: str,
        app: str = "default",
        status: str = "active",
        memory_type: str | None = None,
        within: int = EXPIRING_DAYS,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Memory]:
        """The app's own memories and the user's for every app, newest said first.

        With the status ``expiring`` those whose last day comes ``within`` so many days, the
        soonest first; with ``pending``, ``completed`` or ``failed`` those whose vector stands so.
        """
        with self._database.read() as tx:
            return memories.listed(
                tx,
                apps.find(tx, Scope(user, app)).ids,
                status=_status(status),
                today=self._today(),
                by=self._in_days(within),
                memory_types=(memory_type,) if memory_type else (),
                limit=limit,
                offset=offset,
            )

    def count_memories(
        self,
        *,
        user: str,
        app: str = "default",
        status: str = "active",
        memory_type: str | None = None,
        within: int = EXPIRING_DAYS,
    ) -> int:
        """How many ``memories`` would give without a limit."""
        with self._database.read() as tx:
            return memories.counted(
                tx,
                apps.find(tx, Scope(user, app)).ids,
                status=_status(status),
                today=self._today(),
                by=self._in_days(within),
                memory_types=(memory_type,) if memory_type else (),
            )

    def embedding_states(
        self, memory_ids: Sequence[int], *, user: str, app: str = "default"
    ) -> list[EmbeddingState]:
        """How it stands with the vectors of these memories, in their order; foreign ones are left
        out."""
        with self._database.read() as tx:
            there = memories.by_ids(tx, apps.find(tx, Scope(user, app)).ids, memory_ids)
            found = states.of_memories(tx, list(there))
        return [found[i] for i in memory_ids if i in found]

    def browse(
        self,
        wanted: Wanted,
        *,
        user: str,
        app: str = "default",
        limit: int = 20,
        offset: int = 0,
    ) -> Browsed:
        """One page of the memories a person wants to look through."""
        today, by = self._today(), self._in_days(EXPIRING_DAYS)
        with self._database.read() as tx:
            ids = apps.find(tx, Scope(user, app)).ids
            found = browse.page(tx, ids, wanted, today, by, limit, offset)
            total = browse.count(tx, ids, wanted, today, by)
            waiting = browse.embedding_jobs(tx, [m.id for m in found], self._clock())
            return Browsed(tuple(found), total, waiting)

    def browse_ids(self, wanted: Wanted, *, user: str, app: str = "default") -> list[int]:
        """The numbers of all that ``browse`` would show, page by page."""
        with self._database.read() as tx:
            ids = apps.find(tx, Scope(user, app)).ids
            return browse.ids(tx, ids, wanted, self._today(), self._in_days(EXPIRING_DAYS))

    def memory_counts(self, memory_id: int, *, user: str, app: str = "default") -> tuple[int, int]:
        """How often a memory was found for a message, and how often it was given to a model."""
        with self._database.read() as tx:
            return browse.counts(tx, _found(tx, Scope(user, app), memory_id).id)

    def insights(self, *, user: str, app: str = "default", top: int = 10) -> Insights:
        """Figures about the app's memories, and the user's for every app."""
        zone = self.settings.zone
        with self._database.read() as tx:
            found = apps.find(tx, Scope(user, app))
            ids = found.ids
            return Insights(
                kept=insights.created(tx, ids, zone),
                said=insights.said(tx, found.own, zone) if found.own is not None else {},
                types=insights.by_type(tx, ids),
                keys=insights.by_key(tx, ids, top),
                states=insights.by_state(tx, ids),
                most_used=tuple(insights.most_used(tx, ids, top)),
                never_used=insights.never_used(tx, ids),
                queue=insights.queue(tx, ids),
            )

    def memory(self, memory_id: int, *, user: str, app: str = "default") -> Memory:
        """One memory, active or not. Raises NotFound outside the scope."""
        with self._database.read() as tx:
            return _found(tx, Scope(user, app), memory_id)

    def evidence(self, memory_id: int, *, user: str, app: str = "default") -> list[Evidence]:
        """The words that prove a memory, oldest first; none for one entered by hand."""
        with self._database.read() as tx:
            _found(tx, Scope(user, app), memory_id)
            return evidence.of_memory(tx, memory_id)

    def history(self, memory_id: int, *, user: str, app: str = "default") -> list[Event]:
        """What happened to a memory, oldest first."""
        with self._database.read() as tx:
            _found(tx, Scope(user, app), memory_id)
            return events.of_memory(tx, memory_id)

    def edit(
        self,
        memory_id: int,
        *,
        user: str,
        app: str = "default",
        value: str | None = None,
        key: str | None = None,
        memory_type: str | None = None,
        expires_at: date | Keep | None = KEEP,
        all_apps: bool | None = None,
    ) -> Memory:
        """Change a memory by hand; what is not given stays."""
        scope = Scope(user, app)
        with self._database.write() as tx:
            memory = _found(tx, scope, memory_id)
            return self._by_hand(tx, scope).edit(
                memory,
                memory_type=memory_type,
                key=key,
                value=value,
                expires_at=expires_at,
                all_apps=all_apps,
            )

    def pin(self, memory_id: int, *, user: str, app: str = "default", on: bool = True) -> Memory:
        """Have a memory at hand in every chat, as far as the room for it goes; or no longer.

        What takes its place later is pinned as well. Raises InputError for one not in use.
        """
        scope = Scope(user, app)
        with self._database.write() as tx:
            memory = _found(tx, scope, memory_id)
            if on and not memory.active:
                raise InputError(f"memory {memory_id} is not in use; restore it first")
            cause = Cause(self._clock(), "user")
            memories.pin(tx, memory_id, memories.app_id_of(tx, memory_id), cause, on=on)
            return _found(tx, scope, memory_id)

    def delete(
        self,
        memory_id: int,
        *,
        user: str,
        app: str = "default",
        keep_transcript: bool = False,
        hold: float = 0.0,
    ) -> None:
        """Forget a memory for good: everywhere, with the words that proved it.

        It is out of sight at once. With ``hold`` its purge waits so many seconds, and ``restore``
        undoes the deletion meanwhile; else it is done when this returns. ``keep_transcript`` leaves
        the words where they were written, but nothing is found in them or learnt from them again.
        """
        from memchat.memory import forget

        now = self._clock()
        how = forget.KEEP_TRANSCRIPT if keep_transcript else None
        with self._database.write() as tx:
            memory = _found(tx, Scope(user, app), memory_id)
            purge_at = now + timedelta(seconds=hold)
            self._drop_vectors(tx, forget.hide(tx, memory, now, purge_at=purge_at, how=how))
        if not hold:
            self._parts().worker.run(kinds=("forget",), target_id=memory_id)

    def delete_many(
        self,
        memory_ids: Iterable[int],
        *,
        user: str,
        app: str = "default",
        hold: float = 0.0,
        seen: Callable[[int], None] = lambda done: None,
    ) -> int:
        """Forget many memories, as ``delete`` forgets one; how many. Unknown ones are left out.

        ``seen`` is told how many were looked at so far, after each transaction.
        """
        from memchat.memory import forget

        now, ids = self._clock(), sorted(set(memory_ids))
        count, purge_at = 0, now + timedelta(seconds=hold)
        for first in range(0, len(ids), CLEAR_BATCH):
            batch = ids[first : first + CLEAR_BATCH]
            with self._database.write() as tx:
                found = memories.by_ids(tx, apps.find(tx, Scope(user, app)).ids, batch)
                stale: set[int] = set()
                for memory in found.values():
                    stale |= forget.hide(tx, memory, now, purge_at=purge_at)
                self._drop_vectors(tx, stale)
                count += len(found)
            seen(first + len(batch))
        if not hold:
            self._parts().worker.run(user=Scope(user, app).user, kinds=("forget",))
        return count

    def restore_many(
        self,
        memory_ids: Iterable[int],
        *,
        user: str,
        app: str = "default",
        seen: Callable[[int], None] = lambda done: None,
    ) -> int:
        """Undo the deletion of many memories while it is held; how many came back.

        ``seen`` is told how many were looked at so far, after each transaction.
        """
        scope, count, ids = Scope(user, app), 0, sorted(set(memory_ids))
        for first in range(0, len(ids), CLEAR_BATCH):
            batch = set(ids[first : first + CLEAR_BATCH])
            with self._database.write() as tx:
                waiting = hidden.listed(tx, apps.find(tx, scope).ids)
                back = [memory for memory in waiting if memory.id in batch]
                for memory in back:
                    self._by_hand(tx, scope).undelete(memory)
                count += len(back)
            seen(first + len(batch))
        return count

    def restore(self, memory_id: int, *, user: str, app: str = "default") -> Memory:
        """Bring back a superseded, merged, ended or expired memory, or one whose deletion is held.

        What is purged never comes back.
        """
        scope = Scope(user, app)
        with self._database.write() as tx:
            waiting = hidden.listed(tx, apps.find(tx, scope).ids)
            memory = next((m for m in waiting if m.id == memory_id), None)
            if memory is not None:
                return self._by_hand(tx, scope).undelete(memory)
            return self._by_hand(tx, scope).restore(_found(tx, scope, memory_id))

    def clear(self, *, user: str, app: str = "default") -> int:
        """Forget every memory of the app for good; those for every app stay. How many."""
        from memchat.memory import forget

        with self._database.read() as tx:
            own = apps.find(tx, Scope(user, app)).own or 0
            ids = sorted(memories.of_app(tx, own))
        for first in range(0, len(ids), CLEAR_BATCH):
            with self._database.write() as tx:
                batch = ids[first : first + CLEAR_BATCH]
                found = [*memories.by_ids(tx, [own], batch).values()]
                found += [m for m in hidden.listed(tx, [own]) if m.id in batch]
                self._drop_vectors(tx, forget.forget(tx, found, self.settings.zone, self._clock()))
        forget.scrub(self._database)
        return len(ids)

    def recall(
        self,
        query: str,
        *,
        user: str,
        app: str = "default",
        limit: int = 10,
        patience: float | None = None,
    ) -> Recalled:
        """Search the memories and past conversations by meaning and words, best first.

        What waits for its vector gets it first. ``degraded`` says why only words were
        searched, where that is so: with ``patience`` also that the embedding service did not
        answer within so many seconds, as while it loads; else it is waited for.
        """
        from memchat.memory.patience import Patience

        if not query.strip():
            raise InputError("the question is empty; say what to look for")
        scope, recall = Scope(user, app), self._parts().recall
        if patience is not None:
            patient = Patience(patience, recall.question)
            question = patient.wait(patient.ask(query))
            if question.degraded is not None:
                return recall.find(scope, question, limit)
        with self._database.read() as tx:
            waiting = jobs.due(tx, scope.user, self._clock()) & {"embed", "index"}
            known = recall.known(tx, query)
        if waiting:
            self._parts().worker.run(user=scope.user, kinds=sorted(waiting))
        return recall.find(scope, known.answered(), limit)

    # Inbox

    def inbox(self, *, user: str, app: str = "default", status: str = "pending") -> list[InboxItem]:
        """What waits for a yes, oldest first; with ``rejected`` what got a no."""
        with self._database.read() as tx:
            own = apps.find(tx, Scope(user, app)).own
            return [] if own is None else inbox.listed(tx, own, status)

    def accept(
        self, item_id: int, *, user: str, app: str = "default", value: str | None = None
    ) -> Memory:
        """Say yes to an item, with other words where ``value`` gives some."""
        from memchat.memory import review

        scope, embeds = Scope(user, app), self._assembly.embeds()
        with self._database.write() as tx:
            item = _item(tx, scope, item_id)
            now = self._clock()
            return review.accept(tx, scope, item, self.settings, now, value, embeds=embeds)

    def reject(self, item_id: int, *, user: str, app: str = "default") -> None:
        """Say no to an item; the same is not asked again."""
        from memchat.memory import review

        scope = Scope(user, app)
        with self._database.write() as tx:
            review.reject(tx, scope, _item(tx, scope, item_id), self._clock())

    # Sessions

    def sessions(
        self, *, user: str, app: str = "default", limit: int = 50, offset: int = 0
    ) -> list[Session]:
        """The app's conversations, the latest first."""
        with self._database.read() as tx:
            own = apps.find(tx, Scope(user, app)).own
            return [] if own is None else sessions.listed(tx, [own], limit, offset)

    def conversations(
        self,
        *,
        user: str,
        app: str = "default",
        search: str = "",
        limit: int = 50,
        offset: int = 0,
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
            sessions.rename(tx, _session(tx, scope, session_id).id, title)
            return _session(tx, scope, session_id)

    def lessons(
        self, session_id: int, *, user: str, app: str = "default"
    ) -> dict[int, list[Change]]:
        """What a conversation taught, by the message that taught it, as far as it stands.

        What was only said again, forgotten since or taken back is left out.
        """
        from memchat.memory.lessons import of_session

        scope = Scope(user, app)
        with self._database.read() as tx:
            _session(tx, scope, session_id)
            return of_session(tx, apps.find(tx, scope).ids, session_id)

    def unlearn(self, message_id: int, *, user: str, app: str = "default") -> Undone:
        """Take back what a message taught, and leave its words; what that did.

        As when it is deleted, but the message stays, and nothing is learnt from it again.
        """
        from memchat.memory import forget
        from memchat.memory.undo import Undoing

        scope, now = Scope(user, app), self._clock()
        with self._database.write() as tx:
            turn = _turn(tx, scope, message_id)
            done = Undoing(tx, apps.find(tx, scope).ids, {turn.id}, now).run()
            zone = self.settings.zone
            stale = forget.forget(tx, done.gone, zone, now, keep_transcript=True)
            self._drop_vectors(tx, stale)
        forget.scrub(self._database)
        return done

    def find_session(self, session_id: int, *, user: str, app: str = "default") -> Session:
        """One conversation. Raises NotFound outside the scope."""
        with self._database.read() as tx:
            return _session(tx, Scope(user, app), session_id)

    def messages(self, session_id: int, *, user: str, app: str = "default") -> list[Message]:
        """A conversation's turns, oldest first."""
        with self._database.read() as tx:
            _session(tx, Scope(user, app), session_id)
            return messages.of_session(tx, session_id)

    def session_of(self, message_id: int, *, user: str, app: str = "default") -> int:
        """The conversation a message stands in. Raises NotFound outside the scope."""
        with self._database.read() as tx:
            return _turn(tx, Scope(user, app), message_id).session_id

    def receipt(self, message_id: int, *, user: str, app: str = "default") -> list[Hit]:
        """What was injected for a reply, in the order it was shown."""
        with self._database.read() as tx:
            return messages.receipt(tx, _turn(tx, Scope(user, app), message_id).id)

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
                found = prompts.reply_of(tx, _turn(tx, scope, message_id))
            if found is None:
                raise NotFound("no reply was kept there; see memchat sessions list and show")
            reply = messages.by_ids(tx, [found])[found]
            return Explaining(tx, ids, self._today(), reply).why()

    def mute(self, memory_id: int, session_id: int, *, user: str, app: str = "default") -> Memory:
        """Keep a memory that is not relevant there out of the rest of a conversation."""
        scope = Scope(user, app)
        with self._database.write() as tx:
            memory = _found(tx, scope, memory_id)
            muted.mute(tx, _session(tx, scope, session_id).id, memory_id, self._clock())
        return memory

    def unmute(self, memory_id: int, session_id: int, *, user: str, app: str = "default") -> Memory:
        """Let a memory take part in a conversation again."""
        scope = Scope(user, app)
        with self._database.write() as tx:
            memory = _found(tx, scope, memory_id)
            muted.unmute(tx, _session(tx, scope, session_id).id, memory_id)
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
            close_session(tx, _session(tx, scope, session_id), self._clock())
            return _session(tx, scope, session_id)

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
        from memchat.memory import forget

        scope = Scope(user, app)
        with self._trial(dry_run) as tx:
            turns = messages.of_session(tx, _session(tx, scope, session_id).id)
            done, stale = self._take_back(tx, scope, turns, keep_memories)
            stale |= forget.forget_session(tx, session_id, self.settings.zone, self._clock())
            if not dry_run:
                self._drop_vectors(tx, stale)
        forget.scrub(self._database)
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
        from memchat.memory import forget

        scope = Scope(user, app)
        with self._trial(dry_run) as tx:
            turn = _turn(tx, scope, message_id)
            done, stale = self._take_back(tx, scope, [turn], keep_memories)
            stale |= forget.forget_message(tx, turn, self.settings.zone, self._clock())
            if not dry_run:
                self._drop_vectors(tx, stale)
        forget.scrub(self._database)
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
        from memchat.memory import forget
        from memchat.memory.undo import Undoing

        if keep_memories:
            return Undone(), set()
        ids, now = {turn.id for turn in turns}, self._clock()
        done = Undoing(tx, apps.find(tx, scope).ids, ids, now).run()
        return done, forget.forget(tx, done.gone, self.settings.zone, now, bury=False)

    # Audit

    def audit(self, *, user: str, app: str = "default") -> Audit:
        """Look through the app's memories, and the user's for every app; changes nothing."""
        from memchat.memory.audit import Auditor

        meaning, _ = self._meaning()
        with self._database.read() as tx:
            scope = Scope(user, app)
            return Auditor(tx, scope, self.settings.zone, self._clock(), meaning).look()

    def mend(self, findings: Iterable[Finding], *, user: str, app: str = "default") -> int:
        """Do what these findings of an audit say, where it still holds; how many were mended.

        All of it can be undone with ``restore``, but for secrets, which are forgotten for good.
        """
        from memchat.memory import audit, forget

        mended = 0
        for finding in findings:
            with self._database.write() as tx:
                done, stale = audit.mend(
                    tx, Scope(user, app), finding, self.settings.zone, self._clock()
                )
                self._drop_vectors(tx, stale)
            mended += done
        forget.scrub(self._database)
        return mended

    # Apps and switches

    def apps(self, *, user: str) -> list[AppInfo]:
        """The user's apps, by name."""
        with self._database.read() as tx:
            return apps.of_user(tx, Scope(user).user)

    def set_memory(self, on: bool, *, user: str, app: str | None = None) -> None:
        """Switch memory on or off, for an app or, without one, for the user as a whole."""
        with self._database.write() as tx:
            own, shared = (
                apps.ensure(tx, Scope(user, app), self._clock())
                if app is not None
                else (0, apps.ensure_shared(tx, Scope(user).user, self._clock()))
            )
            apps.switch(tx, shared if app is None else own, on)
            if on:
                self._read_on(tx, user, app)

    def memory_switch(self, *, user: str, app: str | None = "default") -> MemorySwitch:
        """Whether memory takes part in this app, or without one for the user, and if not, why."""
        with self._database.read() as tx:
            if app is None:
                return apps.user_switch(tx, Scope(user).user)
            return apps.memory_switch(tx, Scope(user, app))

    def delete_app(self, app: str, *, user: str) -> int:
        """Remove an app with its memories and conversations for good; how many memories."""
        from memchat.memory import forget

        with self._database.write() as tx:
            own = apps.find(tx, Scope(user, app)).own
            if own is None:
                raise NotFound(f"there is no app {app!r}; see memchat apps list")
            count, stale = forget.forget_app(tx, own, self.settings.zone, self._clock())
            self._drop_vectors(tx, stale)
        forget.scrub(self._database)
        return count

    def wipe(self, *, user: str) -> int:
        """Remove all that is kept of a user for good, in every app; how many memories."""
        from memchat.memory import forget

        count = 0
        with self._database.write() as tx:
            for app_id in apps.ids_of_user(tx, Scope(user).user):
                gone, stale = forget.forget_app(tx, app_id, self.settings.zone, self._clock())
                self._drop_vectors(tx, stale)
                count += gone
        forget.scrub(self._database)
        return count

    # Queue and upkeep

    def jobs(
        self, *, user: str | None = None, status: str | None = None, limit: int = 100
    ) -> list[Job]:
        """Queued work, newest first."""
        if status is not None and status not in jobs.STATUSES:
            raise InputError(f"{status!r} is no status; use {', '.join(jobs.STATUSES)}")
        with self._database.read() as tx:
            return jobs.listed(tx, user=user, status=status, now=self._clock(), limit=limit)

    def count_jobs(self, *, user: str | None = None) -> dict[str, int]:
        """How many jobs of a user, or of everybody, are of each status."""
        with self._database.read() as tx:
            return jobs.counted(tx, user=user, now=self._clock())

    def clear_jobs(self, *, user: str) -> int:
        """Take the user's completed jobs out of the queue; how many. What they did stays."""
        with self._database.write() as tx:
            return jobs.clear(tx, user=user)

    def run_jobs(
        self,
        *,
        user: str | None = None,
        kinds: Sequence[str] | None = None,
    ) -> JobsDone:
        """End abandoned sessions, then do all that is due, of these kinds or of any."""
        from memchat.jobs import KINDS

        worker = self._parts().worker
        worker.end_abandoned(user)
        return worker.run(user=user, kinds=KINDS if kinds is None else kinds)

    def work(self, *, look: float | None = None) -> None:
        """Do what is due, for everybody, and wait for more, until ``stop_work``.

        ``look`` is how many seconds lie between two looks into the queue.
        """
        from memchat.jobs import serve

        serve.serve(self._parts().worker, serve.LOOK_SECONDS if look is None else look)

    def stop_work(self) -> None:
        """Begin no more work, in ``work``, ``backfill`` or behind; what is in hand is ended."""
        self._parts().worker.stopping.set()

    def backfill(
        self, *, batch: int = 100, seen: Callable[[Progress], None] | None = None
    ) -> Backfilled:
        """Give every fact, turn and summary of the store that lacks a vector its own.

        It asks the embedding service for ``batch`` texts at a time and tells ``seen`` how far it
        is. Raises ConfigError where no service is in use.
        """
        if not 1 <= batch <= MOST_BATCH:
            raise InputError(f"a batch of {batch} cannot be; use 1 to {MOST_BATCH}")
        return self._parts().worker.backfill(batch, seen or (lambda _: None))

    def embed_pending(self, *, remote: bool = False) -> int:
        """Give waiting memories their vectors with a local service; a remote one only if asked."""
        meaning, _ = self._meaning()
        if meaning is None or not (meaning.embedder.service.local or remote):
            return 0
        return self._parts().worker.run(kinds=("embed",)).done

    def retry_jobs(self, *, user: str, job_id: int | None = None, failed_only: bool = False) -> int:
        """Put failed and waiting jobs, or only the failed ones, first in line again; how many."""
        with self._database.write() as tx:
            return jobs.retry(tx, self._clock(), user=user, job_id=job_id, failed_only=failed_only)

    def work_is_due(self, *, user: str) -> bool:
        """Whether the queue holds work of the user that could be done now."""
        with self._database.read() as tx:
            return bool(jobs.due(tx, Scope(user).user, self._clock()))

    def usage(self, *, user: str, session_id: int | None = None) -> list[UsageTotal]:
        """Tokens and cost by purpose and model."""
        with self._database.read() as tx:
            return usage.totals(tx, Scope(user).user, session_id)

    # Embedding services

    def services(self) -> list[ServiceInfo]:
        """The embedding services that the store knows, and how much it has of their vectors."""
        return self._switch().infos()

    def embedding_plugins(self) -> list[PluginInfo]:
        """The embedding providers that other packages bring; see ``memchat.providers.plugins``."""
        return self._switch().plugins()

    def use_service(self, name: str, *, force: bool = False) -> int:
        """Search the vectors of this service from now on; how many texts have none of it yet.

        Raises InputError where some have none, unless ``force`` leaves these to the queue.
        """
        lacking = self._switch().use(name, force=force)
        self._assembly.go_along()
        return lacking

    def migrate(
        self,
        name: str | None = None,
        *,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        tell: Callable[[Progress], None] = lambda progress: None,
    ) -> Reembedded:
        """Embed everything with another service, while the one in use answers; then change to it.

        The store changes in one transaction, when nothing lacks its vector. May be killed and run
        again at any time. Without ``name``: the change begun before, else what the settings name.
        ``dimensions`` and ``max_tokens`` are for a model that memchat does not know.
        """
        done = self._switch().migrate(name, dimensions=dimensions, max_tokens=max_tokens, tell=tell)
        if done.switched:
            self._assembly.go_along()
        return done

    def fetch_model(
        self, name: str, *, tell: Callable[[Progress], None] = lambda progress: None
    ) -> tuple[Path, int]:
        """Download a model that fastembed runs on this machine; its folder, and how many bytes
        came: 0 where it is there. Nothing else ever downloads one."""
        return self._switch().fetch(name, tell)

    def remove_service(self, name: str, *, force: bool = False) -> int:
        """Delete a service with its vectors; how many. Raises InputError for the one in use."""
        return self._switch().remove(name, force=force)

    def doctor(self) -> list[Check]:
        """What is in use and why, and what is wrong, each with its remedy."""
        from memchat import doctor

        return doctor.examine(self._database, self.settings, self._meaning, self._clock())

    def repair(self) -> list[str]:
        """Put keyword rows, vectors and index back in step with the rows; what was done.

        Asks no provider: what lacks a vector is queued.
        """
        from memchat.memory.repair import Repair

        return Repair(self._database, self._clock, self._drop_vectors).run()

    # Within

    def _switch(self) -> Switch:
        from memchat.memory.switch import Switch

        return Switch(self._database, self.settings, self._clock, self._assembly.embedder)

    def _resume(self, user: str) -> None:
        worker = self._parts().worker
        worker.end_abandoned(user)
        worker.expire(user)
        with self._database.read() as tx:
            due = jobs.due(tx, user, self._clock())
        if due:
            self._run_behind(partial(worker.run_behind, user))

    def _run_behind(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="memchat-worker", daemon=True)
        self._behind.append(thread)
        thread.start()

    def _read_on(self, tx: Connection, user: str, app: str | None) -> None:
        """Queue what was said with memory on and not read because it went off before."""
        for session, app_id in sessions.ended_unread(tx, Scope(user).user):
            if (
                app in (None, session.app)
                and apps.memory_switch(tx, Scope(session.user, session.app)).on
            ):
                jobs.enqueue(tx, "extract", app_id, "session", session.id, self._clock())

    def _by_hand(self, tx: Connection, scope: Scope) -> ByHand:
        from memchat.memory.by_hand import ByHand

        return ByHand(tx, scope, self.settings, self._clock(), self._assembly.embeds())

    def _in_days(self, days: int) -> date:
        return self._today() + timedelta(days=min(max(days, 0), MOST_DAYS))

    def _today(self) -> date:
        return self._clock().astimezone(self.settings.zone).date()


def _now() -> datetime:
    return datetime.now(UTC)


def _status(status: str) -> str:
    if status not in STATUSES:
        raise InputError(f"{status!r} is no status; use {', '.join(STATUSES)}")
    return status


def _found(tx: Connection, scope: Scope, memory_id: int) -> Memory:
    memory = memories.get(tx, apps.find(tx, scope).ids, memory_id)
    if memory is None:
        raise NotFound(f"there is no memory {memory_id} here; see memchat memories list")
    return memory


def _item(tx: Connection, scope: Scope, item_id: int) -> InboxItem:
    item = inbox.get(tx, apps.find(tx, scope).ids, item_id)
    if item is None or item.status != "pending":
        raise NotFound(f"nothing waits under {item_id}; see memchat inbox list")
    return item


def _turn(tx: Connection, scope: Scope, message_id: int) -> Message:
    turn = messages.by_ids(tx, [message_id]).get(message_id)
    if turn is None:
        raise NotFound(f"there is no message {message_id} here; see memchat sessions show")
    _session(tx, scope, turn.session_id)
    return turn


def _session(tx: Connection, scope: Scope, session_id: int) -> Session:
    own = apps.find(tx, scope).own
    session = sessions.get(tx, [own], session_id) if own is not None else None
    if session is None:
        raise NotFound(f"there is no session {session_id} here; see memchat sessions list")
    return session
