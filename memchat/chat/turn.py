"""The route of one turn, from what a person wrote to the receipt of the reply.

text → message row → commands → recall → prompt → model → reply → receipt. ``Turn.send`` stores the
message before any model is asked; the rest, ``_run``, goes on as the reply is read. Its steps stand
below it in the order in which they are taken.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace

from memchat.chat import prompt as prompts
from memchat.chat import slash
from memchat.chat.conversation import Conversation
from memchat.chat.lease import Lease
from memchat.chat.parts import Parts
from memchat.chat.prompt import Prompt
from memchat.chat.reader import Reader
from memchat.chat.receipt import Receipt
from memchat.chat.redo import Redo
from memchat.chat.reply import Reply
from memchat.errors import InputError, MemChatError
from memchat.memory.commands import confirmation, parse, replies
from memchat.memory.commands.confirmation import Confirmation
from memchat.memory.commands.parse import Command
from memchat.memory.commands.replies import CodeReply, ForgetChoice
from memchat.memory.commands.tools import TOOLS
from memchat.providers import ChatStream
from memchat.providers.background_stream import BackgroundStream
from memchat.providers.reply_text import ReplyText
from memchat.store import apps, messages, sessions
from memchat.types import ChatMessage, Message, Recalled, Scope, clean_text


class Turn:
    """One message of a person, and the reply to it."""

    def __init__(
        self,
        parts: Parts,
        conversation: Conversation,
        lease: Lease,
        reader: Reader,
        redo: Redo | None = None,
        timeout: float | None = None,
    ) -> None:
        """``redo`` is the replacement that this turn is part of, ``timeout`` how many seconds its
        reply may take."""
        self._parts = parts
        self._conversation = conversation
        self._lease = lease
        self._reader = reader
        self._redo = redo
        self._timeout = timeout
        self._text = ""
        self._message_id: int | None = None
        """Its row; 0 in an incognito session, None where the message was stored before."""
        self._command: Command | None = None
        self._choice: ForgetChoice | None = None
        self._confirmation: Confirmation | None = None
        self._prompt: Prompt | None = None
        self._memory = conversation.memory

    def send(self, text: str, *, read_all: bool = False) -> Reply:
        """Store the message and begin its reply. ``read_all``: all of it is read for memories,
        however long. Raises StoreError where it cannot be stored."""
        conversation = self._conversation
        self._choice, conversation.choice = conversation.choice, None
        if self._choice is not None:
            typed = slash.memory_command(text) is not None
            answer = Confirmation((), text) if typed else self._choice.answered_by(text)
            self._confirmation = answer
        rest = text if self._confirmation is None else self._confirmation.rest
        self._command = _command(rest)
        # There is nothing to learn from a message that is only a command to memory.
        only_command = not rest or (
            self._command is not None and self._command.whole and self._command.kind != "remember"
        )
        learnable = self._memory.on and not only_command
        self._store_message(text, learnable=learnable, read_all=read_all)
        return self._begin_reply(text)

    def resend(self) -> Reply:
        """Begin another reply to the last message, which is stored already."""
        conversation, now = self._conversation, self._parts.clock()
        if conversation.session_id is not None:
            with self._parts.database.write() as tx:
                self._lease.take(tx, conversation.session_id, now)
            self._lease.start()
        text = conversation.turns[-1].content
        self._command = _command(text)
        return self._begin_reply(text)

    def _store_message(self, text: str, *, learnable: bool, read_all: bool) -> None:
        conversation, now = self._conversation, self._parts.clock()
        if conversation.incognito:
            conversation.turns.append(Message(0, 0, "user", text, now))
            self._message_id = 0
            return
        with self._parts.database.write() as tx:
            own, _ = apps.ensure(tx, conversation.scope, now)
            session_id = conversation.session_id
            if session_id is None or sessions.by_id(tx, session_id) is None:
                session_id = self._lease.begin(tx, own, now)
            else:
                self._lease.take(tx, session_id, now)
            self._message_id = messages.add(tx, session_id, "user", text, now, memory=learnable)
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
            for piece in self._pieces():
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
        if confirmed is None and confirmation.is_unclear_yes(self._text):
            yield from self._answer()
            yield from self._ask(choice)
            return
        chosen = confirmed.chosen if confirmed is not None else ()
        done = self._parts.commands.forget_chosen(choice, chosen)
        self._reply.by_code = replace(done, choice=None)
        yield done.text
        if confirmed is None or confirmed.rest:
            yield "\n\n"
            self._conversation.reload()  # what was forgotten just now is sent to no model
            yield from self._answer()
        yield from self._ask(done.choice)

    def _answer(self) -> Iterator[str]:
        """The model's words, then code's; code's alone where the message is only a command."""
        model = self._parts.model()
        tools = self._memory.on and model.tools
        command = self._command
        if command is not None and command.whole and (command.typed or not tools):
            acted = self._execute(command)
            self._reply.by_code += acted
            yield acted.text
            return
        self._prompt = prompts.build(
            self._parts, self._conversation, self._text, self._memory, tools=tools
        )
        self._reply.shown = self._prompt.shown
        self._reply.dropped_turns = self._prompt.dropped_turns
        asked = model.stream(self._prompt.messages, TOOLS if tools else ())
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
        place, acted = self._conversation.place, CodeReply()
        if tools and place is not None:
            acted = self._parts.commands.run_tools(stream.calls, place)
        if self._command is not None and not acted.text:
            acted = self._execute(self._command)
        if not (acted.text or self._reply.received):
            acted = CodeReply(replies.NOT_DONE)
        yield from self._say(acted)

    def _execute(self, command: Command) -> CodeReply:
        place = self._conversation.place
        if place is None or not self._memory.on:
            return replies.off(command.kind, self._memory)
        return self._parts.commands.execute(command, place, stand_in=self._parts.model().stand_in)

    def _ask(self, choice: ForgetChoice | None) -> Iterator[str]:
        """A question that is open, at the end of the reply: a yes can then mean nothing else."""
        if choice is not None and not (self._reply.stopped or self._reply.by_code.choice):
            yield from self._say(self._parts.commands.ask(choice))

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
        parts, conversation, reply = self._parts, self._conversation, self._reply
        answered = status == "complete" or reply.cut is not None
        conversation.choice = reply.by_code.choice if answered else None
        self._reader.must_embed |= any(change.memory is not None for change in reply.done)
        if conversation.session_id is None:
            if reply.received:
                turn = Message(0, 0, "assistant", reply.received, parts.clock(), status)
                conversation.turns.append(turn)
            return
        memory_on = self._memory.on
        extract = memory_on and parts.settings.extraction == "per_message"
        receipt = Receipt(parts, conversation, reply, self._prompt, status)
        stored = receipt.store(conversation.session_id, memory_on=memory_on, extract=extract)
        if stored and extract:
            self._reader.start()


def _command(message: str) -> Command | None:
    return slash.memory_command(message) or parse.command(message)


def answer_once(parts: Parts, scope: Scope, text: str) -> tuple[str, Recalled]:
    """One answer with what is remembered, outside any session; writes nothing at all."""
    content = message_text(text)
    block, shown = "", Recalled()
    with parts.database.read() as tx:
        memory = apps.memory_switch(tx, scope)
    if memory.on:
        question = parts.query_timeout.wait(parts.query_timeout.start(content))
        block, shown = prompts.for_message(parts, scope, question)
    system = parts.prompts.render("chat", memories=block)
    stream = parts.model().stream([ChatMessage("system", system), ChatMessage("user", content)])
    return "".join(ReplyText(stream)), shown


def message_text(text: str) -> str:
    """What a person wrote, as it is stored. Raises InputError where that is blank."""
    content = clean_text(text)
    if not content.strip():
        raise InputError("the message is empty; write something first")
    return content
