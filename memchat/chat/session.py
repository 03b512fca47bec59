"""The life of a session: begun or resumed, held by a lease, ended and read for facts.

An incognito session lives in this object alone: no row, no job, no receipt, no usage, no vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memchat.chat.conversation import Conversation, Lease, Parts, Reader, Reply
from memchat.chat.turn import Redo, Turn, message_text
from memchat.db import sessions
from memchat.errors import InputError, MemChatError, NotFound
from memchat.jobs.worker import close_session
from memchat.types import (
    Attachment,
    Learned,
    MemorySwitch,
    Message,
    Question,
    Scope,
    checked_timeout,
)

INCOGNITO = "Incognito: nothing is remembered, and nothing of this conversation is kept on disk."
STAND_IN = (
    "No model is configured: the offline stand-in answers, with patterns instead of understanding. "
    "Run memchat keys set gemini, or set MEMCHAT_CHAT_MODEL for another; see memchat doctor."
)
MOST_ATTACHMENTS = 10
"""Of one message."""
_LEASE_THREAD_SECONDS = 5.0


class Chat:
    """One conversation. Leaving the ``with`` block ends it, and waits for what it taught."""

    def __init__(
        self,
        parts: Parts,
        scope: Scope,
        *,
        incognito: bool = False,
        resume: int | None = None,
        turns: Sequence[Message] = (),
    ) -> None:
        """``resume`` is the id of a stored session to go on with. Where an older chat of this
        process has it open, this one takes it over, and the older one says so when it is used.
        ``turns`` are what was said before, for an incognito session.

        Raises NotFound where the scope has no such session, StoreError where another process holds
        it, InputError for one that is to go on incognito, and for turns in one that is not
        incognito.
        """
        if resume is not None and incognito:
            raise InputError("a stored session cannot go on incognito; begin a new one")
        if turns and not incognito:
            raise InputError("only an incognito chat can begin with turns; use sessions.copy")
        self._parts = parts
        self._conversation = Conversation(parts, scope, resume, incognito)
        self._conversation.turns.extend(_unstored(turn) for turn in turns)
        self._reader = Reader(self._conversation)
        self._lease = Lease(self._conversation, self._reader)
        self._lease.chat = self
        self._reply: Reply | None = None
        if resume is not None:
            self._resume(resume)

    def __enter__(self) -> Chat:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def scope(self) -> Scope:
        """The user and the app that it belongs to."""
        return self._conversation.scope

    @property
    def session_id(self) -> int | None:
        """Its row; None before the first message, and always when incognito."""
        return self._conversation.session_id

    @property
    def incognito(self) -> bool:
        """Whether nothing of it is kept."""
        return self._conversation.incognito

    @property
    def memory(self) -> MemorySwitch:
        """Whether memory takes part, as it stands now."""
        return self._conversation.memory

    def set_memory(self, on: bool) -> MemorySwitch:
        """Switch memory on or off for this conversation alone, also before its first message;
        whether memory takes part now, and if not, why. An incognito one never has any."""
        self._conversation.set_memory(on=on)
        return self.memory

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self._parts.model(self._conversation.model_name).name

    def set_model(self, name: str | None) -> None:
        """Have another model answer in this conversation from now on, as long as it is open; None
        for the one of the settings. Raises ConfigError for one that cannot be used."""
        if name is not None:
            self._parts.model(name)
        self._conversation.model_name = name

    @property
    def turns(self) -> tuple[Message, ...]:
        """What was said so far; of a stored conversation, as it was at the last message."""
        return tuple(self._conversation.turns)

    @property
    def left_out(self) -> frozenset[int]:
        """Ids of the stored turns that a reply is about to replace."""
        return self._conversation.left_out

    @property
    def learned(self) -> Learned | None:
        """What the last reading of it taught."""
        return self._reader.learned

    @property
    def question(self) -> Question | None:
        """What the last reply asks before it is done; None where it asks nothing of that kind."""
        choice = self._conversation.choice
        return choice.asked if choice is not None else None

    @property
    def failure(self) -> str | None:
        """Why the last reading did not succeed; it is queued and tried again."""
        return self._reader.failure

    @property
    def reading(self) -> bool:
        """Whether it is being read after a reply; ``end`` waits for that."""
        return self._reader.running

    def notice(self) -> str | None:
        """What a person must know before the first message. Finds out which model answers."""
        lines = [INCOGNITO] if self.incognito else []
        if self._parts.model(self._conversation.model_name).stand_in:
            lines.append(STAND_IN)
        return "\n".join(lines) or None

    def send(
        self,
        text: str,
        *,
        timeout: float | None = None,
        read_all: bool = False,
        attachments: Sequence[Attachment] = (),
    ) -> Reply:
        """Say something; iterate the reply for its pieces, or ``read`` all of it.

        ``timeout`` is how many seconds the reply may take from when you begin to wait for it; then
        it is stopped, and ``Reply.cut`` says so. Of a very long text only the beginning and the end
        are read for memories, with ``read_all`` all of it. ``attachments`` are what
        ``attachment`` gives: the model is sent them with the message, and nothing is learned from
        them; without a text of yours the message is their names. Raises InputError for a blank
        text, a bad ``timeout`` or too many attachments,
        StoreError when it cannot be written. What a provider does wrong is raised
        from the reply; the message is stored all the same.
        """
        if not text.strip():
            text = ", ".join(one.name for one in attachments)
        content, timeout = message_text(text), checked_timeout(timeout)
        if len(attachments) > MOST_ATTACHMENTS:
            most = f"a message has at most {MOST_ATTACHMENTS} attachments"
            raise InputError(f"{most}; send some in another one")
        self._stop_reply()
        turn = self._turn(timeout=timeout)
        self._reply = turn.send(content, read_all=read_all, attachments=attachments)
        return self._reply

    @classmethod
    def attachment(cls, name: str, data: bytes) -> Attachment:
        """Read a file that is to go with a message: a PNG, JPEG or WebP picture, which is written
        anew without what the camera told of it, or a document that could be a note.

        Raises InputError where it cannot be read, is too large, or has more than 100,000 characters
        of text; ConfigError where the package that reads it is not installed.
        """
        from memchat.notes import files  # as few chats need its readers

        return files.attachment(name, data)

    def redo(
        self,
        text: str | None = None,
        *,
        message: Message | None = None,
        model: str | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Answer the last message once more, or with ``text`` say it in other words first; with
        ``message`` an earlier one of ``turns``. ``model`` is the name of another model that answers
        this once.

        When the new reply is complete the old turns, and what followed them, become another version
        (``sessions.versions``): they are kept with the conversation, and neither searched nor sent
        to a model; what only they taught is taken back. An incognito conversation keeps no other
        version. Where no reply comes, all is as it was before. ``timeout`` is as in ``send``.
        Raises InputError where nothing was said yet, where the message is not in the conversation,
        for a blank text or a bad ``timeout``, ConfigError for a model that cannot be used.
        """
        content = None if text is None else message_text(text)
        timeout = checked_timeout(timeout)
        if model is not None:
            self._parts.model(model)
        self._stop_reply()
        redo = Redo(self._conversation)
        redo.begin(whole_turn=content is not None, asked=message)
        try:
            turn = self._turn(redo, timeout, model)
            self._reply = (
                turn.resend()
                if content is None
                else turn.send(content, attachments=redo.attachments)
            )
        except MemChatError:
            redo.finish(None, kept=False)
            raise
        return self._reply

    def go_on(self, *, timeout: float | None = None) -> Reply:
        """Have the last reply, which was stopped or cut, go on where it ended.

        The whole of it is then one reply; where nothing more comes, it stays as it is. ``timeout``
        is as in ``send``. Raises InputError where the last reply is whole, or there is none.
        """
        timeout = checked_timeout(timeout)
        self._stop_reply()
        self._conversation.reload()
        last = self._conversation.turns[-1:]
        if not last or last[0].status != "partial":
            raise InputError("the last reply is whole; ask for more in a message")
        redo = Redo(self._conversation, versions=False)
        redo.begin(whole_turn=False)
        try:
            self._reply = self._turn(redo, timeout).resend(begun=last[0].content)
        except MemChatError:
            redo.finish(None, kept=False)
            raise
        return self._reply

    def end(self, *, wait: bool = True) -> Learned | None:
        """End the session; with ``wait`` also read it, and give what it taught.

        May be called again, and after it the conversation may go on with ``send``.
        """
        self._stop_reply()
        conversation = self._conversation
        conversation.choice = None
        self._lease.stop()
        self._reader.join()
        if conversation.session_id is None:
            conversation.turns = []
            return None
        with self._parts.database.write(self.scope) as tx:
            found = sessions.get(tx, tx.ids, conversation.session_id)
            if found is not None:
                conversation.store_query_vectors(tx)
                # Another process may have it since its lease ran out, or a chat that resumed it.
                if found.ended_at is None and self._lease.is_held_elsewhere(tx, found.id):
                    return None  # whoever holds it ends it
                if found.ended_at is None:
                    close_session(tx, found)
        self._lease.thread = None
        return self._reader.read() if wait else None

    def abandon(self) -> None:
        """Stop renewing the lease; the store is about to close. Nothing is ended or lost."""
        self._stop_reply()
        self._lease.stop()
        self._lease.join(_LEASE_THREAD_SECONDS)

    def _turn(
        self, redo: Redo | None = None, timeout: float | None = None, model: str | None = None
    ) -> Turn:
        self._parts.database.check_open()  # an incognito turn reads and writes nothing there
        return Turn(self._conversation, self._lease, self._reader, redo, timeout, model)

    def _stop_reply(self) -> None:
        """Store a reply that was not read to its end, as a partial one."""
        if self._reply is not None:
            self._reply.stop()
            self._reply = None

    def _resume(self, session_id: int) -> None:
        with self._parts.database.write(self.scope) as tx:
            if sessions.get(tx, tx.ids, session_id) is None:
                raise NotFound(f"there is no session {session_id} here", see="sessions list")
            taken = self._lease.take_over(tx, session_id)
        if taken:
            self._lease.start()


def _unstored(turn: Message) -> Message:
    """A turn as an incognito session holds it."""
    return replace(turn, id=0, session_id=0, copied_from=None)
