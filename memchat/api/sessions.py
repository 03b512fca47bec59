"""The conversations of a person in one app: reading, correcting and deleting them.

Beside ``Sessions`` there are its helpers: messages of a caller's own chat loop as turns to store
(``Incoming``), the cost of reading long messages, the changes that a conversation taught, and what
the terminal and the app need for the commands ``/why`` and ``/note``
(``memchat.chat.command_words``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memchat import types
from memchat.api.base import Page, Resource, check_choice, check_count, page_of, place_of
from memchat.api.note_files import NoteWriting
from memchat.db import Tx, apps, details, jobs, messages, schema, sessions
from memchat.errors import ConfigError, InputError, NotFound, StoreError
from memchat.facts import changes, memories
from memchat.forget import purge
from memchat.forget.undo import (
    DELETED,
    TAKEN_BACK,
    ConversationUndo,
    delete_turns,
    show_version,
    take_back,
)
from memchat.language.secrets import mask
from memchat.learn import model_calls
from memchat.learn.candidate import MAX_FACTS
from memchat.notes import rows
from memchat.prompts import Prompts
from memchat.providers import ChatModel, factory
from memchat.providers.litellm_calls import cost_usd
from memchat.search import receipts
from memchat.tokens import estimate_tokens

if TYPE_CHECKING:
    from memchat.api.user import User
    from memchat.chat import Chat

SHELVES = ("pinned", "archived", "")
TITLE_LIMIT = 80
FIRST_WORDS = 80
NOTE_TITLE = 60
"""Characters of the title that a message gets that is kept as a note."""


class Sessions(Resource):
    """The conversations of one person in one app."""

    def list(
        self,
        query: str = "",
        *,
        shelf: str | None = None,
        topic: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[types.Session]:
        """The conversations, the latest first.

        With ``query`` those that have all its words, whatever their case and accents, in their
        title or in one message. With ``shelf`` those that are ``pinned``, ``archived``, or, with an
        empty text, neither; with ``topic`` those of a topic, by its id. ``cursor`` is that of the
        page before.
        """
        check_count(limit)
        check_choice(shelf or "", SHELVES, "shelf")
        after = None if cursor is None else sessions.Position(*place_of(cursor)[:2])
        with self._database.read(self._scope) as tx:
            search = query.strip()
            found = sessions.listed(
                tx, [tx.own], limit + 1, after, search=search, shelf=shelf, topic=topic
            )
        return page_of(found, limit, lambda one: (one.last_activity_at, one.id))

    def get(self, session_id: int) -> types.Session:
        """One conversation. Raises NotFound outside the scope."""
        with self._database.read(self._scope) as tx:
            return self._found_session(tx, session_id)

    def of_message(self, message_id: int) -> types.Session:
        """The conversation that a message is part of. Raises NotFound outside the scope."""
        with self._database.read(self._scope) as tx:
            return self._found_session(tx, self._found_message(tx, message_id).session_id)

    def messages(self, session_id: int) -> Sequence[types.Message]:
        """The messages and replies of a conversation, oldest first."""
        with self._database.read(self._scope) as tx:
            self._found_session(tx, session_id)
            return messages.of_session(tx, session_id)

    def first_words(self, session_ids: Sequence[int]) -> Mapping[int, str]:
        """How these conversations begin, by id: the first words that the person said in each, in a
        copy the first after what was copied. Secrets in them are masked, as in a title. Unknown
        ones are left out."""
        with self._database.read(self._scope) as tx:
            there = sessions.ids_in_app(tx, tx.own, session_ids)
            # Cut after masking: half of a secret is not known for one.
            found = messages.first_words(tx, there, 4 * FIRST_WORDS)
        return {number: mask(words)[:FIRST_WORDS] for number, words in found.items()}

    def found_words(self, query: str, session_ids: Sequence[int]) -> Mapping[int, types.Message]:
        """Where ``list`` found its query in these conversations, by id: the last message with all
        its words. Those that have them in their title alone are left out."""
        if not query.strip():
            return {}
        with self._database.read(self._scope) as tx:
            there = sessions.ids_in_app(tx, tx.own, session_ids)
            return messages.last_with_words(tx, there, query)

    def rename(self, session_id: int, title: str) -> types.Session:
        """Give a conversation a title of the person's own, in which secrets are masked; no later
        reading changes it."""
        title = mask(types.one_line(title, "title", TITLE_LIMIT))[:TITLE_LIMIT]
        with self._database.write(self._scope) as tx:
            sessions.change(tx, self._found_session(tx, session_id).id, title=title)
            return self._found_session(tx, session_id)

    def set_metadata(self, session_id: int, metadata: types.Metadata) -> types.Session:
        """Note values of your own beside a conversation, in the place of what is noted there. What
        it proves is found by them, too. Raises InputError for what cannot be kept."""
        with self._database.write(self._scope) as tx:
            session = self._found_session(tx, session_id)
            details.put(tx, schema.sessions, session.id, details.checked(metadata))
            return self._found_session(tx, session_id)

    def put(self, session_id: int, shelf: str) -> types.Session:
        """Pin a conversation, archive it, or with an empty text put it back into the list."""
        check_choice(shelf, SHELVES, "shelf")
        with self._database.write(self._scope) as tx:
            sessions.change(tx, self._found_session(tx, session_id).id, shelf=shelf or None)
            return self._found_session(tx, session_id)

    def set_memory(self, session_id: int, on: bool) -> types.MemorySwitch:
        """Switch memory on or off for one conversation, whatever is said of the app; whether memory
        takes part there now, and if not, why.

        While it is off nothing is read, used or stored there, and what is said is not learned
        later.
        """
        from memchat.jobs.worker import set_memory

        with self._database.write(self._scope) as tx:
            set_memory(tx, self._found_session(tx, session_id), on=on)
            return apps.memory_of(tx, self._found_session(tx, session_id))

    def versions(self, session_id: int) -> Mapping[int, Sequence[int]]:
        """Of each message of a conversation that was said or answered anew, by its id: the ids of
        all its versions, the oldest first. Raises NotFound outside the scope."""
        with self._database.read(self._scope) as tx:
            return messages.versions(tx, self._found_session(tx, session_id).id)

    def show_version(self, message_id: int) -> types.Session:
        """Show another version of a message, with what followed it, in the place of the one that
        is shown.

        Only what is shown is sent to a model, found and learned from. What only the version that
        goes out of sight taught is taken back; what this one taught is read anew, when the
        conversation ends or soon where it has ended. Raises NotFound outside the scope, and where
        no version of the message is shown, StoreError where another process holds the conversation.
        """
        from memchat.chat.conversation import refuse_held_elsewhere

        with self._database.write(self._scope) as tx:
            turn = self._found_message(tx, message_id)
            shown = messages.versions(tx, turn.session_id).items()
            now = next((i for i, every in shown if message_id in every), None)
            if now is None:
                raise NotFound(f"message {message_id} has no version that is shown")
            if now != message_id:
                refuse_held_elsewhere(tx, turn.session_id)
                show_version(tx, turn.session_id, now, message_id)
            return self._found_session(tx, turn.session_id)

    def copy(self, session_id: int, *, before: int) -> types.Session:
        """A new conversation with the messages of this one before the message ``before``, to go on
        from there in another way: ``chat(resume=...)``. This one stays as it is.

        What was copied is not learned a second time and is found once. A word that is forgotten is
        blanked in both. If this conversation is deleted, what it taught with those messages stays,
        with the copies as proof, and what was not read yet is read there. Raises NotFound outside
        the scope, and for a message of another conversation.
        """
        with self._database.write(self._scope) as tx:
            found = self._found_session(tx, session_id)
            if self._found_message(tx, before).session_id != found.id:
                raise NotFound(f"session {session_id} has no message {before}", see="sessions show")
            return self._found_session(tx, sessions.add(tx, found.id, before, tx.now))

    def move(self, session_id: int, app: str) -> types.Session:
        """Move a conversation to another app; the conversation as it is there, under a new id.

        What only it taught leaves this app and is learnt in that one, where it is read anew. Raises
        NotFound outside the scope, ScopeError for a bad name.
        """
        from memchat.jobs.worker import close_session

        there = types.Scope(self._scope.user, app)
        with self._database.write(self._scope) as tx:
            found = self._found_session(tx, session_id)
            turns = messages.of_session(tx, found.id)
            learnable = {turn.id for turn in messages.of_session(tx, found.id, learnable=True)}
            home = apps.ensure(tx, there)
            moved_id = sessions.start(tx, home.own, "", tx.now, found.started_at)
            kept = {"title": found.title, "last_activity_at": found.last_activity_at}
            own = {"shelf": found.shelf, "memory": int(found.memory)}
            sessions.change(tx, moved_id, **own, **kept)
            details.put(tx, schema.sessions, moved_id, details.checked(found.metadata or {}))
            for turn in turns:
                said = (turn.role, turn.content, turn.created_at, turn.status)
                messages.add(tx, moved_id, *said, memory=turn.id in learnable)
            take_back(tx, turns)
            purge.forget_session(tx, found.id)
            moved = sessions.get(tx, home.ids, moved_id)
            assert moved is not None
            close_session(tx, moved)
            return moved

    def end(self, session_id: int) -> types.Session:
        """End an open conversation and queue its reading.

        Raises StoreError where a chat of this or another running process still uses it.
        """
        from memchat.chat.conversation import refuse_held
        from memchat.jobs.worker import close_session

        with self._database.write(self._scope) as tx:
            found = self._found_session(tx, session_id)
            refuse_held(tx, session_id)
            close_session(tx, found)
            return self._found_session(tx, session_id)

    def long_messages(self, session_id: int) -> Sequence[types.LongMessage]:
        """The messages of a conversation that are so long that only their beginning and end are
        read for memories, unless all of one is asked for, with what that takes.

        Messages from which nothing is to be learned are left out, and copied ones, which are read
        where they were said. Raises NotFound outside the scope.
        """
        with self._database.read(self._scope) as tx:
            self._found_session(tx, session_id)
            turns = messages.of_session(tx, session_id, learnable=True)
            whole = messages.to_read_whole(tx, session_id)
        own = (turn for turn in turns if turn.copied_from is None)
        long = [turn for turn in own if len(turn.content) > model_calls.NEVER_LONG]
        if not long:
            return []
        model, prompts = self._assembly.extract_model(), self._assembly.prompts
        long = [turn for turn in long if model_calls.is_long(turn.content, model.window)]
        return [_planned(turn, turn.id in whole, model, prompts) for turn in long]

    def read_all(self, message_id: int) -> types.Session:
        """Have all of a very long message read for memories, not only its beginning and end.

        It is read when its conversation ends; where that was read already, the message and those
        after it are queued to be read again. Of a copied message it is the first one, whose
        conversation is given. Raises NotFound outside the scope.
        """
        with self._database.write(self._scope) as tx:
            message_id = self._found_message(tx, message_id).copied_from or message_id
            session = self._found_session(tx, self._found_message(tx, message_id).session_id)
            if message_id not in messages.to_read_whole(tx, session.id):
                messages.read_all(tx, message_id)
                sessions.mark_unread(tx, session.id, message_id)
                if session.ended_at is not None and apps.memory_of(tx, session).on:
                    jobs.enqueue(tx, "extract", tx.own, session.id, tx.now)
            return self._found_session(tx, session.id)

    def read_again(
        self,
        session_id: int,
        *,
        model: str | None = None,
        wait: bool = True,
        progress: types.OnProgress | None = None,
    ) -> types.Learned:
        """Read a conversation for memories as if it had never been read, and say what that taught.

        What is known already is only said again, what was forgotten or taken back stays so, and
        what was said while memory was off, or copied, is not read. ``model`` is used for this
        reading alone; ``progress`` counts its parts. With ``wait=False`` the reading is only
        queued. Where it is not read yet, ``queued`` says why; a worker tries again.

        Raises NotFound outside the scope, StoreError where the conversation is still open or is
        being read, InputError where memory is off, ConfigError for a model that cannot be used.
        """
        from memchat.jobs.worker import outcome

        if model is not None:
            _, chosen, _ = factory.explain(self._assembly.settings.with_(extract_model=model))
            if chosen.problem is not None:
                raise ConfigError(f"{model} cannot be used: {chosen.problem}; {chosen.remedy}")
        worker = self._assembly.parts().worker
        worker.end_abandoned(self._scope.user)
        with self._database.write(self._scope) as tx:
            session = self._found_session(tx, session_id)
            if session.ended_at is None:
                raise StoreError(
                    f"session {session_id} is still open and is read when it ends; end it to have "
                    "it read now",
                    see=f"sessions end {session_id}",
                )
            switch = apps.memory_of(tx, session)
            if not switch.on:
                raise InputError(f"nothing can be read: {switch.reason}")
            said = messages.of_session(tx, session_id, learnable=True)
            copied = max((turn.id for turn in said if turn.copied_from is not None), default=0)
            if not any(turn.role == "user" and turn.id > copied for turn in said):
                return types.Learned(session_id, skipped="there is nothing in it to learn from")
            if not jobs.enqueue(tx, "extract", tx.own, session_id, tx.now, how=model):
                raise StoreError(f"session {session_id} is being read; try again when that is done")
            sessions.change(tx, session_id, extracted_to=copied)
        queued = types.Learned(session_id, queued="it waits to be read")
        if not wait:
            return queued
        kinds = ("extract", "verify")
        return outcome(worker.run(kinds=kinds, target_id=session_id, on_reading=progress), queued)

    def keep_as_note(self, message_id: int, *, title: str | None = None) -> types.Note:
        """Keep the text of a message, such as a long paste, as a note of its own.

        The message stays in its conversation, but from now on it is found as the note alone, and
        nothing is learned from it; what was learned before stays. Without ``title`` the note is
        named by the message's first words. A message that is kept already leaves its note as it
        is, and gives it the ``title`` if there is one. Raises NotFound outside the scope,
        InputError for a bad title.
        """
        with self._database.read(self._scope) as tx:
            message = self._found_message(tx, message_id)
            first_id, own = message.copied_from or message.id, tx.own
            external_id = f"message {first_id}"
            note = rows.by_external_id(tx, own, "paste", external_id)
        writing = NoteWriting(self._assembly, self._scope)
        text, at = message.content, message.created_at
        if note is None:
            title = title or types.first_words(mask(text[: 4 * NOTE_TITLE]), NOTE_TITLE)
            new = types.NewNote(text, title, "paste", external_id, at, "document")
            note = writing.keep(new, embed=True)
        elif title:
            title = types.one_line(title, "title", types.TITLE_LIMIT)
            note = writing.update(note.id, text=None, title=title, embed=True)
        assert note is not None  # no message is blank
        with self._database.write(self._scope) as tx:
            messages.exclude(tx, [first_id, message.id])
        return note

    def delete(
        self, session_id: int, *, keep_memories: bool = False, dry_run: bool = False
    ) -> types.Undone:
        """Delete a conversation for good, with what only it taught; what that did.

        What it had replaced or ended comes back; what other words prove too, or a person entered
        or changed by hand, stays. ``keep_memories`` leaves them all, without its words as proof.
        ``dry_run`` only tells what would be done.
        """
        return self.delete_many([session_id], keep_memories=keep_memories, dry_run=dry_run)

    def delete_many(
        self, session_ids: Iterable[int], *, keep_memories: bool = False, dry_run: bool = False
    ) -> types.Undone:
        """Delete many conversations, as ``delete`` deletes one, in one transaction."""
        done = types.Undone()
        with self._trial(dry_run) as tx:
            for session_id in dict.fromkeys(session_ids):
                turns = messages.of_session(tx, self._found_session(tx, session_id).id)
                done = done.then(take_back(tx, turns, keep_memories=keep_memories))
                purge.forget_session(tx, session_id)
        return done

    def delete_message(
        self, message_id: int, *, keep_memories: bool = False, dry_run: bool = False
    ) -> types.Undone:
        """Delete one message of a conversation, as ``delete`` deletes all of them."""
        with self._trial(dry_run) as tx:
            turn = self._found_message(tx, message_id)
            return delete_turns(tx, [turn], keep_memories=keep_memories)

    def learned(self, session_id: int) -> Mapping[int, Sequence[types.Change]]:
        """What a conversation taught, by the id of the message that taught it, as far as it holds.

        What was only said again, forgotten since or taken back is left out.
        """

        with self._database.read(self._scope) as tx:
            self._found_session(tx, session_id)
            return of_session(tx, session_id)

    def unlearn(self, message_id: int, *, memory_id: int | None = None) -> types.Undone:
        """Take back what a message taught, and leave its words; what that did.

        As when it is deleted, but the message stays, and the same is not learnt from it again.
        With ``memory_id`` only what it did to that memory is taken back.
        """
        with self._database.write(self._scope) as tx:
            turn = self._found_message(tx, message_id)
            done = ConversationUndo(tx, {turn.id}, only=memory_id).run()
            purge.forget(tx, done.gone, keep_transcript=True)
        return done

    def why(self, message_id: int | None = None) -> types.Why:
        """Why a reply is as it is: each memory it was given, and exactly what its model was sent.

        A message of the person's own stands for the reply to it; without a number it is the latest
        reply of the app. Raises NotFound where there is none.
        """
        from memchat.chat.prompt import Explaining

        with self._database.read(self._scope) as tx:
            if message_id is None:
                found = receipts.latest_prompt(tx, tx.own)
            else:
                found = receipts.reply_of(tx, self._found_message(tx, message_id))
            if found is None:
                raise NotFound("no reply was kept there", see="sessions show")
            reply = messages.by_ids(tx, [found])[found]
            return Explaining(tx, reply).why()

    def receipt(self, message_id: int) -> Sequence[types.Hit]:
        """What a reply was given of the memories, in the order in which it was shown."""
        with self._database.read(self._scope) as tx:
            return receipts.of_reply(tx, self._found_message(tx, message_id).id)

    def used(self, session_id: int) -> Mapping[int, Sequence[str]]:
        """The names of the facts and notes that were found for each reply of a conversation and are
        still kept, by the reply's id, the best first."""
        with self._database.read(self._scope) as tx:
            self._found_session(tx, session_id)
            found = receipts.found_in(tx, session_id)
            ids = sorted({i for _, kind, i in found if kind == "memory"})
            facts = memories.by_ids(tx, tx.ids, ids).values()
            names = {("memory", fact.id): fact.key.replace("_", " ") for fact in facts}
            for note_id in {i for _, kind, i in found if kind == "note"}:
                note = rows.get(tx, tx.ids, note_id)
                names |= {("note", note_id): note.title or "a note"} if note is not None else {}
        used: defaultdict[int, dict[str, None]] = defaultdict(dict)
        for message_id, kind, item_id in found:
            if (kind, item_id) in names:
                used[message_id][names[kind, item_id]] = None
        return {message_id: list(named) for message_id, named in used.items()}

    def parts(self, reply: types.Message) -> types.ReplyParts:
        """A reply in its parts: the memories that code listed in it, and the question at its end.

        That code listed them is proved by its receipt, and not by its words.
        """
        from memchat.chat import command_replies

        listed: tuple[int, ...] = ()
        if reply.id and command_replies.lists(reply.content):
            listed = tuple(hit.id for hit in self.receipt(reply.id) if hit.channel == "listed")
        return command_replies.split(reply.content, listed)

    def mute(self, memory_id: int, session_id: int) -> types.Memory:
        """Keep a memory that is not relevant there out of the rest of a conversation."""
        with self._database.write(self._scope) as tx:
            memory = self._found_memory(tx, memory_id)
            sessions.mute(tx, self._found_session(tx, session_id).id, memory_id)
        return memory

    def unmute(self, memory_id: int, session_id: int) -> types.Memory:
        """Let a memory take part in a conversation again."""
        with self._database.write(self._scope) as tx:
            memory = self._found_memory(tx, memory_id)
            sessions.unmute(tx, self._found_session(tx, session_id).id, memory_id)
        return memory

    @contextmanager
    def _trial(self, dry_run: bool) -> Iterator[Tx]:
        """A writer's transaction, of which nothing is kept in a dry run."""
        with self._database.write(self._scope) as tx, tx.connection.begin_nested() as trial:
            yield tx
            if dry_run:
                trial.rollback()
                tx.after_commit.clear()


ROLES: dict[str, types.Role] = {"user": "user", "assistant": "assistant"}
OTHER_ROLES = ("system", "developer", "tool", "function")
TEXT_PARTS = ("text", "input_text", "output_text")
Messages = str | Sequence[Mapping[str, Any]]
"""One user message as a string, or messages with ``role`` and ``content``."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """What of the messages is to be stored."""

    turns: tuple[tuple[types.Role, str], ...]
    times: tuple[datetime | None, ...]
    """When each was said, where it says so itself."""
    ignored: int
    """Messages and parts of messages that are not stored: of another role, or without text."""

    @classmethod
    def of(cls, messages: Messages) -> Incoming:
        """Read the messages. Raises InputError where they are malformed or hold no text."""
        if not isinstance(messages, str | Sequence):
            raise InputError("give a string, or a list of messages with role and content")
        given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        turns: list[tuple[types.Role, str]] = []
        times: list[datetime | None] = []
        ignored = 0
        for number, message in enumerate(given):
            role = _role(message, number)
            text, left_out = _text(message.get("content"), number)
            if role is None or not text.strip():
                ignored += 1
                continue
            turns.append((role, types.clean_text(text)))
            times.append(_time(message.get("created_at"), number))
            ignored += left_out
        if not turns:
            raise InputError("there is nothing to add; give a message of the user with some text")
        return cls(tuple(turns), tuple(times), ignored)


def _time(given: object, number: int) -> datetime | None:
    """The time of a message: an aware datetime, the same as a text, or seconds since 1970."""
    try:
        if isinstance(given, str):
            return datetime.fromisoformat(given)
        if isinstance(given, int | float):
            return datetime.fromtimestamp(given, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    if given is None or isinstance(given, datetime):
        return given
    raise InputError(
        f"message {number}: created_at is no time; give an aware datetime, the same as an ISO "
        "text, or seconds since 1970"
    )


def _role(message: object, number: int) -> types.Role | None:
    """Who said it; None for a role whose messages are not stored."""
    role = message.get("role") if isinstance(message, Mapping) else None
    if not isinstance(role, str) or role not in (*ROLES, *OTHER_ROLES):
        raise InputError(
            f"message {number} has no known role; give a mapping with role "
            f"({', '.join((*ROLES, *OTHER_ROLES))}) and content"
        )
    return ROLES.get(role)


def _text(content: object, number: int) -> tuple[str, int]:
    """The text of a message's content, and how many of its parts are not text."""
    if content is None or isinstance(content, str):
        return content or "", 0
    if not isinstance(content, Sequence):
        raise InputError(f"message {number}: content is neither a string nor a list of parts")
    said = (
        part.get("text") if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS else part
        for part in content
    )
    texts = [text for text in said if isinstance(text, str)]
    return "\n".join(texts), len(content) - len(texts)


BESIDE_TOKENS = 1_000
"""About what a call holds beside instructions and the message: known facts, keys, the turns before
it."""
ANSWER_TOKENS = 600
"""About what a call answers."""


def _planned(
    turn: types.Message, read_all: bool, model: ChatModel, prompts: Prompts
) -> types.LongMessage:
    calls = model_calls.count(turn.content, model.window)
    instructions = estimate_tokens(prompts.render("extract", limit=str(MAX_FACTS)))
    sent = estimate_tokens(turn.content) + calls * (instructions + BESIDE_TOKENS)
    came = calls * ANSWER_TOKENS
    size, few, cost = len(turn.content), model_calls.MOST_WINDOWS, cost_usd(model.name, sent, came)
    return types.LongMessage(turn.id, size, read_all, few, calls, sent + came, cost, model.name)


_KINDS = {"add": "added", "restore": "revived", "merge": "merged", "end": "ended"}


def of_session(tx: Tx, session_id: int) -> dict[int, list[types.Change]]:
    """The changes that still stand, by the message that caused them, each memory once.

    A memory that replaced another has the value before.
    """
    caused = changes.events_by(tx, "session_id", [session_id])
    past = [e for e in caused if e.cause not in (DELETED, TAKEN_BACK)]
    ids = {e.memory_id for e in past} | {e.related_id for e in past if e.related_id}
    known = memories.by_ids(tx, tx.ids, sorted(ids))
    found: defaultdict[int, dict[int, types.Change]] = defaultdict(dict)
    for event in past:
        # Of a replacement the person is told of the new one.
        replaces = event.kind == "supersede"
        memory = known.get((event.related_id or 0) if replaces else event.memory_id)
        if memory is None or event.message_id is None or event.actor != "model":
            continue
        here = found[event.message_id]
        if replaces and event.old is not None:
            change = types.Change("superseded", memory, before=str(event.old.get("value")))
        elif event.kind in _KINDS:
            change = types.Change(_KINDS[event.kind], memory)
        else:
            continue
        before = here.get(memory.id)
        if before is not None and before.before is not None:
            change = replace(change, kind=before.kind, before=before.before)
        if memory.active == (change.kind not in ("ended", "merged")):
            here[memory.id] = change
    return {message_id: list(changes.values()) for message_id, changes in found.items() if changes}


_TITLE = re.compile(r"--title(?:=|\s+)(?:\"(?P<quoted>[^\"]*)\"|(?P<word>\S+))\s*")


def last_reply(person: User, chat: Chat) -> int:
    """The number of the last reply of a chat, for ``sessions.why``. Raises InputError for none."""
    if chat.incognito:
        raise InputError("an incognito chat keeps no record of what a reply was given")
    replies = [turn.id for turn in _turns(person, chat) if turn.role == "assistant"]
    if not replies:
        raise InputError("there is no reply in this chat yet; /why explains the last one")
    return replies[-1]


def keep_note(person: User, chat: Chat, words: str) -> types.Note:
    """Keep the words behind ``/note``, or without any the last long message, as a note.

    Raises InputError where there is nothing to keep, and in an incognito chat.
    """
    if chat.incognito:
        raise InputError(
            "an incognito conversation keeps nothing; add the text as a note elsewhere",
            see="notes add",
        )
    title = None
    if named := _TITLE.match(words):
        words, title = words[named.end() :], named["quoted"] or named["word"]
    if words:
        note = person.notes.add(words, title=title)
        if note is None:
            raise InputError("the text has no words; nothing was kept")
        return note
    message = last_long(_turns(person, chat))
    if message is None:
        raise InputError(
            f"no message of {types.PASTE_LENGTH:,} characters or more was sent here; "
            "write the text behind /note"
        )
    return person.sessions.keep_as_note(message.id, title=title)


def last_long(turns: list[types.Message]) -> types.Message | None:
    """The last message that is long enough to be offered as a note."""
    long = [
        turn for turn in turns if turn.role == "user" and len(turn.content) >= types.PASTE_LENGTH
    ]
    return long[-1] if long else None


def _turns(person: User, chat: Chat) -> list[types.Message]:
    """The turns as they are stored: a chat that was resumed has read none of them yet."""
    return [] if chat.session_id is None else [*person.sessions.messages(chat.session_id)]
