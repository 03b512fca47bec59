"""One turn of a conversation, from what a person wrote to the stored reply and its receipt.

message row → commands → recall → prompt → model → reply → receipt. ``Turn.send`` stores the message
before any model is asked; the rest, ``Turn._run``, goes on as the reply is read. Its steps stand
below it in the order in which they are taken. The receipt says what the reply was given: memories,
turns, notes and the prompt.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from memchat import waiting
from memchat.chat import command_replies, command_words
from memchat.chat import prompt as prompts
from memchat.chat.command_replies import CodeReply, ForgetChoice
from memchat.chat.command_words import Command, ForgetAnswer, memory_tools
from memchat.chat.commands import Commands
from memchat.chat.conversation import Conversation, Lease, Parts, Reader, Reply
from memchat.chat.prompt import Prompt
from memchat.db import Tx, apps, jobs, messages, sessions, usage
from memchat.errors import InputError, MemChatError
from memchat.facts import memories
from memchat.forget import purge
from memchat.forget.undo import ConversationUndo, delete_turns, show_version
from memchat.notes import rows
from memchat.providers import ChatModel, ChatStream, ReplyText, ToolCall
from memchat.search import receipts, render
from memchat.search.receipts import SentPrompt
from memchat.types import Attachment, ChatMessage, Hit, Message, Recalled, Scope, Usage, clean_text


class Redo:
    """One replacement of a turn: its message answered once more, or said in other words.

    ``begin`` leaves what is replaced out of the conversation, with all that follows it, and of a
    whole turn also the memories that only it proves. ``finish`` makes a version of it that is not
    shown, or takes all back where nothing of the new reply is kept, as when a provider fails.
    """

    def __init__(self, conversation: Conversation, *, versions: bool = True) -> None:
        """``versions``: what is replaced stays as another version."""
        self._parts = conversation.parts
        self._conversation = conversation
        self._versions = versions
        self._before: list[Message] = []
        self._muted: list[int] = []
        self.attachments: tuple[Attachment, ...] = ()
        """Those of the message that is replaced."""

    def begin(self, *, whole_turn: bool, asked: Message | None = None) -> None:
        """Leave the reply to the message ``asked``, or to the last one, out of the conversation,
        and with ``whole_turn`` the message too.

        Raises InputError where nothing was said yet, or that message is not in it.
        """
        conversation = self._conversation
        conversation.reload()
        turns = conversation.turns
        said = (n for n, turn in enumerate(turns) if turn.role == "user")
        if asked is not None:
            said = (n for n in said if turns[n] is asked or turns[n].id == (asked.id or -1))
        asked_at = max(said, default=None)
        if asked_at is None and asked is not None:
            raise InputError("that message is not in this chat any more; look at it anew")
        if asked_at is None:
            raise InputError("nothing was said yet; write a message first")
        stays = asked_at + (not whole_turn)
        left_out = frozenset(turn.id for turn in turns[stays:] if turn.id)
        if whole_turn:
            self._mute(left_out)
        self._before, conversation.turns = turns, turns[:stays]
        self.attachments = turns[asked_at].attachments
        conversation.left_out = left_out

    def finish(self, message_id: int | None, *, kept: bool) -> None:
        """Set the turns aside that were replaced, or where nothing of the new reply is kept go back
        to them and delete the new message, whose row is ``message_id``."""
        conversation = self._conversation
        replaced = conversation.left_out
        conversation.left_out = frozenset()
        if kept and self._versions:
            self._set_aside(replaced)
            return
        if kept:
            self._delete(replaced)
            return
        conversation.turns = self._before
        if conversation.session_id is not None and self._muted:
            with self._parts.database.write() as tx:
                for memory_id in self._muted:
                    sessions.unmute(tx, conversation.session_id, memory_id)
        if message_id:
            self._delete({message_id})

    def _mute(self, left_out: frozenset[int]) -> None:
        """Keep the memories that only the replaced turns prove out of the conversation."""
        conversation, parts = self._conversation, self._parts
        if conversation.session_id is None or not left_out:
            return
        with parts.database.write(conversation.scope) as tx:
            with tx.connection.begin_nested() as trial:
                gone = ConversationUndo(tx, left_out).run().gone
                trial.rollback()
            already = sessions.muted_of_session(tx, conversation.session_id)
            self._muted = [memory.id for memory in gone if memory.id not in already]
            for memory_id in self._muted:
                sessions.mute(tx, conversation.session_id, memory_id)

    def _set_aside(self, replaced: Collection[int]) -> None:
        """Make another version of stored turns that something was just said in the place of."""
        session_id = self._conversation.session_id
        if not replaced or session_id is None:
            return
        with self._parts.database.write(self._conversation.scope) as tx:
            there = [turn.id for turn in messages.of_session(tx, session_id)]
            new = next((i for i in there if i > max(replaced)), None)
            old = next((i for i in there if i in replaced), None)
            if old is not None and new is not None:
                show_version(tx, session_id, old, new)

    def _delete(self, message_ids: Collection[int]) -> None:
        """Delete stored turns, with what only they taught."""
        if not message_ids:
            return
        parts = self._parts
        with parts.database.write(self._conversation.scope) as tx:
            # Those of a conversation that was deleted meanwhile are gone already.
            turns = messages.by_ids(tx, sorted(message_ids))
            delete_turns(tx, list(turns.values()))


def store_reply(
    tx: Tx,
    session_id: int,
    words: str,
    given: Recalled,
    sent: SentPrompt | None,
    *,
    by_code: Sequence[Hit] = (),
    drawn_facts: Collection[purge.Fact] = (),
    status: str = "complete",
    memory: bool = True,
    at: datetime | None = None,
) -> int:
    """Write a reply with its receipt, without the words that were forgotten while it came in; the
    id of its row. ``at`` is when it was said, now where it is not given."""
    hits = (*given.hits, *by_code)
    shown, content = purge.drop_forgotten(tx, hits, drawn_facts, words)
    listed, content = purge.drop_forgotten(tx, given.listed, (), content)
    said_at = at or tx.now
    message_id = messages.add(tx, session_id, "assistant", content, said_at, status, memory=memory)
    there = rows.existing(tx, [hit.id for hit in given.notes])
    notes = [hit for hit in given.notes if hit.id in there]
    receipts.add(tx, message_id, [*shown, *notes])
    if sent is not None:
        complete = len(shown) == len(hits) and len(listed) == len(given.listed)
        if not complete or len(there) < len(given.notes):
            # A prompt that holds what was forgotten since is not stored.
            sent = replace(sent, system=None)
        receipts.add_prompt(tx, message_id, _store_fact_list(tx, session_id, sent, listed))
    read = {hit.id for hit in (*given.hits, *given.listed) if hit.kind == "memory"}
    memories.add_uses(tx, matched=given.matched, read=read)
    passages = [hit.chunk_id for hit in given.notes if hit.chunk_id is not None]
    if passages:
        rows.count_matches(tx, passages)
        rows.count_reads(tx, [tx.own], passages)
    return message_id


def _store_fact_list(
    tx: Tx, session_id: int, sent: SentPrompt, listed: Sequence[Hit]
) -> SentPrompt:
    """What was sent with its list of facts in rows of its own, which later replies share."""
    if not listed:
        return sent
    opening, rest = None, sent.system
    if sent.system is not None:
        opening, _, rest = sent.system.partition(render.listing(listed))
    lines = [(hit.id, hit.text) for hit in listed]
    list_id = receipts.add_list(tx, session_id, opening, lines, tx.now)
    return replace(sent, system=rest, list_id=list_id)


class BackgroundStream:
    """A ``ChatStream`` over another one, which is read in the background from the first piece on.

    What that one raises is raised here. After ``close``, which any thread may call, or when the
    time is over, nothing more is given; the background thread ends with the piece that it is
    waiting for.
    """

    def __init__(
        self, stream: ChatStream, seconds_left: Callable[[], float | None] = lambda: None
    ) -> None:
        """``seconds_left`` tells how long its pieces may still be waited for, None for as long as
        they take."""
        self.late = False
        """Whether its time was over before its end."""
        self._stream = stream
        self._seconds_left = seconds_left
        self._closed = threading.Event()
        self._came: waiting.Mailbox[str | BaseException | None] = waiting.Mailbox()

    def __iter__(self) -> Iterator[str]:
        waiting.beside("memchat-stream", self._read)
        while (came := self._next()) is not None:
            if isinstance(came, BaseException):
                raise came
            yield came

    @property
    def usage(self) -> Usage:
        """What the reply took."""
        return self._stream.usage

    @property
    def whole(self) -> bool:
        """Whether the provider sent the reply to its end."""
        return self._stream.whole

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The tools called; empty before the end."""
        return self._stream.calls

    def close(self) -> None:
        """Give nothing more, and close the connection."""
        self._closed.set()
        self._came.put(None)
        self._stream.close()

    def _next(self) -> str | BaseException | None:
        """What comes next; None at the end, once it is closed, and when the time is over."""
        left = self._seconds_left()
        with suppress(TimeoutError):
            if left is None or left > 0:
                came = self._came.get(left)
                return None if self._closed.is_set() else came
        self.late = not self._closed.is_set()
        self.close()
        return None

    def _read(self) -> None:
        """Put the pieces into the queue, and at the end None or what went wrong."""
        try:
            for piece in self._stream:
                if self._closed.is_set():
                    return
                self._came.put(piece)
        except BaseException as error:  # noqa: BLE001 - it is raised where the pieces are read
            self._came.put(error)
        else:
            self._came.put(None)


class Turn:
    """One message of a person, and the reply to it."""

    def __init__(
        self,
        conversation: Conversation,
        lease: Lease,
        reader: Reader,
        redo: Redo | None = None,
        timeout: float | None = None,
        model: str | None = None,
    ) -> None:
        """``redo`` is the replacement that this turn is part of, ``timeout`` how many seconds its
        reply may take, ``model`` the name of one that answers this once."""
        self._parts = conversation.parts
        self._conversation = conversation
        self._lease = lease
        self._reader = reader
        self._redo = redo
        self._timeout = timeout
        self._model_name = model or conversation.model_name
        self._text = self._begun = ""
        """What the person said, and the words of a reply that is to go on."""
        self._message_id: int | None = None
        """Its row; 0 in an incognito session, None where the message was stored before."""
        self._command: Command | None = None
        self._choice: ForgetChoice | None = None
        self._confirmation: ForgetAnswer | None = None
        self._prompt: Prompt | None = None
        self._memory = conversation.memory
        self._commands = Commands(conversation.parts, conversation.scope)

    def send(
        self, text: str, *, read_all: bool = False, attachments: Sequence[Attachment] = ()
    ) -> Reply:
        """Store the message and begin its reply. ``read_all``: all of it is read for memories,
        however long. Raises StoreError where it cannot be stored."""
        self._attachments = tuple(attachments)
        conversation = self._conversation
        self._choice, conversation.choice = conversation.choice, None
        if self._choice is not None:
            self._confirmation = self._choice.answered_by(text)
        rest = text if self._confirmation is None else self._confirmation.rest
        self._command = command_words.command(rest)
        # There is nothing to learn from a message that is only a command to memory.
        only_command = not rest or (
            self._command is not None and self._command.whole and self._command.kind != "remember"
        )
        learnable = self._memory.on and not only_command
        self._store_message(text, learnable=learnable, read_all=read_all)
        return self._begin_reply(text)

    def resend(self, begun: str = "") -> Reply:
        """Begin another reply to the last message, which is stored already, or have the one go on
        that has ``begun`` so."""
        conversation = self._conversation
        if conversation.session_id is not None:
            with self._parts.database.write() as tx:
                self._lease.take(tx, conversation.session_id)
            self._lease.start()
        text = conversation.turns[-1].content
        self._begun = begun
        self._command = None if begun else command_words.command(text)
        return self._begin_reply(text)

    def _store_message(self, text: str, *, learnable: bool, read_all: bool) -> None:
        conversation, now = self._conversation, self._parts.clock()
        if conversation.incognito:
            turn = Message(0, 0, "user", text, now, attachments=self._attachments)
            conversation.turns.append(turn)
            self._message_id = 0
            return
        with self._parts.database.write(conversation.scope, ensure=True) as tx:
            session_id = conversation.session_id
            if session_id is None or sessions.by_id(tx, session_id) is None:
                session_id = self._lease.begin(tx)
            else:
                self._lease.take(tx, session_id)
            self._message_id = messages.add(
                tx, session_id, "user", text, now, "complete", learnable, self._attachments
            )
            if read_all:
                messages.read_all(tx, self._message_id)
            conversation.load(tx, session_id)
        # Only now is it stored: on a full disk it is the end of the transaction that fails.
        conversation.session_id = session_id
        self._lease.start()

    def _begin_reply(self, text: str) -> Reply:
        self._text = text
        self._reply = Reply(self._run(), self._timeout)
        return self._reply

    def _run(self) -> Generator[str, None, None]:
        """The pieces of the reply, the first one empty; at its end it is stored."""
        status, begun = "partial", False
        try:
            yield ""
            begun = True
            if self._begun:
                self._reply.add(self._begun)
            for piece in self._pieces():
                if self._reply.received == self._begun and _needs_space(self._begun, piece):
                    piece = f" {piece}"
                self._reply.add(piece)
                yield piece
                if self._reply.stopped:
                    return
            if self._reply.cut is None and not self._reply.stopped:
                status = "complete"
        finally:
            self._finish(status, begun=begun)

    def _pieces(self) -> Iterator[str]:
        """What the answer to an open question did, the reply to the rest, and an open question."""
        choice, confirmed = self._choice, self._confirmation
        if choice is None:
            yield from self._answer()
            return
        if confirmed is None and command_words.is_unclear_yes(self._text):
            yield from self._answer()
            yield from self._ask(choice)
            return
        chosen = confirmed.chosen if confirmed is not None else ()
        done = self._commands.forget_chosen(choice, chosen)
        self._reply.by_code = replace(done, choice=None)
        yield done.text
        if confirmed is None or confirmed.rest:
            yield "\n\n"
            self._conversation.reload()  # what was forgotten just now is sent to no model
            yield from self._answer()
        yield from self._ask(done.choice)

    def _answer(self) -> Iterator[str]:
        """The model's words, then code's; code's alone where the message is only a command."""
        model = self._model()
        tools = self._memory.on and model.tools
        command = self._command
        if command is not None and command.whole and (command.typed or not tools):
            acted = self._execute(command)
            self._reply.by_code += acted
            yield acted.text
            return
        self._prompt = prompts.build(
            self._conversation, model, self._text, self._memory, tools=tools, begun=self._begun
        )
        self._reply.shown = self._prompt.shown
        self._reply.dropped_turns = self._prompt.dropped_turns
        offered = memory_tools(self._parts.settings.types) if tools else ()
        asked = model.stream(self._prompt.messages, offered)
        # A provider may be silent for a minute; a reply that is stopped or late ends at once.
        stream = self._reply.stream = BackgroundStream(asked, self._reply.seconds_left)
        if self._reply.stopped:  # while the prompt was built
            stream.close()
            return
        pieces = ReplyText(stream)
        yield from pieces
        if stream.late:
            self._reply.end_late()
        if not self._reply.stopped:
            self._reply.cut = pieces.cut
            yield from self._act(stream, tools=tools and model.tools)

    def _act(self, stream: ChatStream, *, tools: bool) -> Iterator[str]:
        """Carry out what the model called, or what the message asks for where it called nothing,
        so that a model's mere "done" becomes true."""
        acted = CodeReply()
        if tools and (turn := self._stored_turn()) is not None:
            acted = self._commands.run_tools(stream.calls, turn)
        if self._command is not None and not acted.text:
            acted = self._execute(self._command)
        if not (acted.text or self._reply.received):
            acted = CodeReply(command_replies.NOT_DONE)
        yield from self._say(acted)

    def _model(self) -> ChatModel:
        return self._parts.model(self._model_name)

    def _execute(self, command: Command) -> CodeReply:
        turn = self._stored_turn()
        if turn is None or not self._memory.on:
            return command_replies.off(command.kind, self._memory)
        return self._commands.execute(command, turn, stand_in=self._model().stand_in)

    def _stored_turn(self) -> Message | None:
        """The message; None in an incognito session."""
        conversation = self._conversation
        return None if conversation.session_id is None else conversation.turns[-1]

    def _ask(self, choice: ForgetChoice | None) -> Iterator[str]:
        """A question that is open, at the end of the reply: a yes can then mean nothing else."""
        if choice is not None and not (self._reply.stopped or self._reply.by_code.choice):
            yield from self._say(self._commands.ask(choice))

    def _say(self, words: CodeReply) -> Iterator[str]:
        """What code says, on lines of its own."""
        self._reply.by_code += words
        if words.text:
            yield f"\n\n{words.text}" if self._reply.received else words.text

    def _finish(self, status: str, *, begun: bool) -> None:
        """Store the reply, whatever ended it, and complete or undo a replacement."""
        reply = self._reply
        kept = begun and (reply.stopped or reply.cut is not None or status == "complete")
        if self._redo is not None and not kept:
            reply.discard()
        if reply.stream is not None:
            reply.stream.close()
        try:
            if reply.stream is not None or reply.received:
                self._store_reply(status)
        except MemChatError:
            self._finish_redo(kept=False)
            raise
        self._finish_redo(kept=kept)

    def _finish_redo(self, *, kept: bool) -> None:
        if self._redo is not None:
            # A person who stopped the reply to new words still meant the words.
            replaces = kept and (bool(self._reply.received) or self._message_id is not None)
            self._redo.finish(self._message_id, kept=replaces)

    def _store_reply(self, status: str) -> None:
        """Write the reply, its receipt and what it cost in one transaction, and where each message
        is read by itself queue that, too."""
        parts, conversation, reply = self._parts, self._conversation, self._reply
        answered = status == "complete" or reply.cut is not None
        conversation.choice = reply.by_code.choice if answered else None
        self._reader.must_embed |= any(change.memory is not None for change in reply.done)
        session_id = conversation.session_id
        if session_id is None:
            if reply.received:
                turn = Message(0, 0, "assistant", reply.received, parts.clock(), status)
                conversation.turns.append(turn)
            return
        extract = self._memory.on and parts.settings.extraction == "per_message"
        with parts.database.write(conversation.scope) as tx:
            if not tx.own or sessions.by_id(tx, session_id) is None:
                return  # the session was deleted while the reply came in
            if reply.received:
                self._write_words(tx, session_id, status)
                sessions.change(tx, session_id, last_activity_at=tx.now)
            spent = [reply.stream.usage] if reply.stream is not None else []
            if self._prompt is not None and self._prompt.filter_usage is not None:
                spent.append(self._prompt.filter_usage)
            for one in spent:
                usage.add(tx, tx.own, session_id, one, message_id=reply.message_id)
            conversation.store_query_vectors(tx)
            if extract:
                jobs.enqueue(tx, "extract", tx.own, session_id, tx.now)
        if extract:
            self._reader.start()

    def _write_words(self, tx: Tx, session_id: int, status: str) -> None:
        """The reply with its receipt."""
        reply, prompt = self._reply, self._prompt
        reply.message_id = store_reply(
            tx,
            session_id,
            reply.received,
            reply.shown,
            None if prompt is None else prompt.sent,
            by_code=reply.by_code.hits,
            drawn_facts=self._conversation.drawn_facts,
            status=status,
            memory=self._memory.on and reply.stream is not None,
        )


def _needs_space(begun: str, piece: str) -> bool:
    """Whether two words would run into one, in a script that has spaces between words."""
    ends = begun[-1:] + piece[:1]
    return len(ends) == 2 and all(sign.isalnum() and sign < "\u0e00" for sign in ends)


def answer_once(parts: Parts, scope: Scope, text: str) -> tuple[str, Recalled]:
    """One answer with what is remembered, outside any session; writes nothing at all."""
    content = message_text(text)
    block, shown = "", Recalled()
    with parts.database.read() as tx:
        memory = apps.memory_switch(tx, scope)
    if memory.on:
        question = parts.query_timeout.wait(parts.query_timeout.start(content))
        block, shown = prompts.for_message(parts, scope, question)
    wanted = prompts.instructions(parts, scope)
    system = parts.prompts.render("chat", memories=wanted + block)
    stream = parts.model(None).stream([ChatMessage("system", system), ChatMessage("user", content)])
    return "".join(ReplyText(stream)), shown


def message_text(text: str) -> str:
    """What a person wrote, as it is stored. Raises InputError where that is blank."""
    content = clean_text(text)
    if not content.strip():
        raise InputError("the message is empty; write something first")
    return content
