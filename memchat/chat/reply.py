"""A reply as it arrives, with what code did and says beside the model's words."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from memchat.chat.reply_text import ReplyText
from memchat.errors import InputError, MemChatError
from memchat.memory.commands import confirmation, replies
from memchat.memory.commands.execute import TOOLS
from memchat.memory.commands.parse import Command
from memchat.memory.commands.replies import CodeReply, ForgetChoice
from memchat.memory.embedding.timeout import PendingQuery
from memchat.memory.recall import follow_up, render
from memchat.providers import ChatStream
from memchat.store.prompts import SentPrompt
from memchat.types import Change, ChatMessage, MemorySwitch, Recalled, Scope, Usage, clean_text

if TYPE_CHECKING:
    from memchat.chat import Chat, Parts

NO_ROOM = "the message left no room for memories"


class Reply:
    """A reply as it arrives: iterate for its pieces, or read ``text`` for all of it.

    ``shown`` are the memories that were injected, ``message_id`` its row once it is kept, ``done``
    what the turn itself saved, held back or forgot, whatever the model says about it.
    """

    def __init__(
        self,
        chat: Chat,
        parts: Parts,
        switch: MemorySwitch,
        said: str,
        command: Command | None,
        choice: ForgetChoice | None,
    ) -> None:
        self.switch = switch
        self.shown = Recalled()
        self.told = CodeReply()
        self.message_id: int | None = None
        self.dropped_turns = 0
        self.asked: PendingQuery | None = None
        self.sent: SentPrompt | None = None
        """What its model was sent beside the turns; None where none was asked."""
        self.stream: ChatStream | None = None
        self.filtering: Usage | None = None
        """What choosing among very many pinned facts took."""
        self.cut: str | None = None
        """Why the model's words ended before their time, in one line; None where they did not."""
        self._received: list[str] = []
        self._said = said
        self._command = command
        self._choice = choice
        self._stopped = False
        self._after: Callable[[bool], None] | None = None
        self._chat = chat
        self._parts = parts
        self._pieces = self._run()

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    @property
    def received(self) -> str:
        """What came so far; nothing where a reply failed that was to take another's place."""
        return "".join(self._received)

    @property
    def text(self) -> str:
        """The whole reply; waits for what is still to come."""
        for _ in self._pieces:
            pass
        return self.received

    @property
    def done(self) -> tuple[Change, ...]:
        """What was done to the memory: as in ``Learned``, and ``forgotten`` without its words."""
        return self.told.changes

    def after(self, call: Callable[[bool], None]) -> None:
        """Have this called when the reply is over: with True where it came whole, or was stopped;
        with False where it failed, and then nothing of it is kept."""
        self._after = call

    def stop(self) -> None:
        """Cut the reply; what came of it is kept as a partial one. Any thread may call it."""
        self._stopped = True
        try:
            self._pieces.close()
        except ValueError:
            # Another thread waits for the next piece: without a connection there is none.
            if self.stream is not None:
                self.stream.close()
        else:
            self._end(False)  # where nobody had begun to read it

    def _run(self) -> Generator[str, None, None]:
        status = "partial"
        try:
            for piece in self._say():
                self._received.append(piece)
                yield piece
                if self._stopped:
                    return
            whole = self.cut is None and not self._stopped
            status = "complete" if whole else "partial"
        finally:
            kept = self._stopped or self.cut is not None or status == "complete"
            if self._after is not None and not kept:
                self._received.clear()
            if self.stream is not None:
                self.stream.close()
            try:
                if self.stream is not None or self._received:
                    self._chat.after_reply(self, status)
            except MemChatError:
                self._end(False)
                raise
            self._end(kept)

    def _end(self, kept: bool) -> None:
        after, self._after = self._after, None
        if after is not None:
            after(kept)

    def _say(self) -> Iterator[str]:
        """What comes of an open question, and the reply to all else that the message says."""
        choice = self._choice
        answer = choice.answered_by(self._said) if choice is not None else None
        if choice is None or (answer is None and confirmation.wavers(self._said)):
            yield from self._respond()
            yield from self._ask(choice)
            return
        chosen = answer.chosen if answer is not None else ()
        done = self._parts.commands.answer(choice, chosen)
        self.told = replace(done, choice=None)
        yield done.text
        if answer is None or answer.rest:
            yield "\n\n"
            self._chat.look_again()  # what was forgotten just now goes to no model
            yield from self._respond()
        yield from self._ask(done.choice)

    def _ask(self, choice: ForgetChoice | None) -> Iterator[str]:
        """A question that is open, at the end of the reply: so a yes is one to nothing else."""
        if choice is None or self._stopped or self.told.choice:
            return
        asked = self._parts.commands.ask(choice)
        self.told += asked
        if asked.text:
            yield f"\n\n{asked.text}"

    def _respond(self) -> Iterator[str]:
        """The model's words, then code's; code's alone where the message is but a command."""
        model = self._parts.model()
        by_model = self.switch.on and model.tools
        if self._command is not None and self._command.whole and not by_model:
            acted = self._obey(self._command)
            self.told += acted
            yield acted.text
            return
        self.stream = model.stream(self._prompt(by_model), TOOLS if by_model else ())
        pieces = ReplyText(self.stream)
        yield from pieces
        if not self._stopped:
            self.cut = pieces.cut
            yield from self._act(self.stream, by_model and model.tools)

    def _act(self, stream: ChatStream, by_model: bool) -> Iterator[str]:
        """Carry out what the model called, or what the message asks for where it called nothing,
        so that a model's bare "done" becomes true."""
        place, acted = self._chat.place, CodeReply()
        if by_model and place is not None:
            acted = self._parts.commands.run(stream.calls, place)
        if self._command is not None and not acted.text:
            acted = self._obey(self._command)
        if not (acted.text or self._received):
            acted = CodeReply(replies.NOT_DONE)
        self.told += acted
        if acted.text:
            yield f"\n\n{acted.text}" if self._received else acted.text

    def _obey(self, command: Command) -> CodeReply:
        place = self._chat.place
        if place is None or not self.switch.on:
            return replies.off(command.kind, self.switch)
        return self._parts.commands.obey(command, place, stand_in=self._parts.model().stand_in)

    def _prompt(self, by_model: bool) -> list[ChatMessage]:
        """The messages to send. The window is cut twice: the memories found may need some room."""
        chat, parts = self._chat, self._parts
        if self.switch.on:
            sought = follow_up.searched(self._said, chat.turns)
            self.asked = parts.patience.ask(sought)  # it works while the rest is made ready
        system = self._system("", by_model)
        prompt, dropped, first, turns = chat.window(system)
        if self.asked is not None:
            self.shown = parts.block.for_prompt(
                chat.scope,
                parts.patience.wait(self.asked),
                dropped=dropped,
                session_id=chat.session_id,
                first=self._relevant(),
            )
            block = render.block(parts.prompts, chat.mark, self.shown)
            try:
                full = self._system(block, by_model)
                prompt, dropped, first, turns = chat.window(full)
                system = full
            except InputError:
                # The message fits alone: it goes without the memories, and the result says so.
                left = self.shown.lines + self.shown.dropped
                self.shown = Recalled(degraded=NO_ROOM, dropped=left)
        self.dropped_turns = len(dropped)
        shown = self.shown
        counted = (shown.lines, shown.dropped)
        self.sent = SentPrompt(system, first, by_model, turns, *counted, shown.degraded)
        return prompt

    def _relevant(self) -> list[int]:
        """The pinned facts that a cheap model finds to fit, where that is switched on."""
        relevance = self._parts.relevance
        if relevance is None:
            return []
        facts = self._parts.block.pinned(self._chat.scope, self._chat.session_id)
        chosen, self.filtering = relevance.choose(self._said, facts)
        return chosen

    def _system(self, block: str, by_model: bool) -> str:
        prompts, rule = self._parts.prompts, ""
        if by_model:
            rule = prompts.text("tools")
        elif not self.switch.on:
            rule = prompts.render("off", reason=self.switch.reason)
        return prompts.render("chat", memories=rule + block)


def once(parts: Parts, scope: Scope, prompt: str) -> tuple[str, Recalled]:
    """One answer with what is remembered, outside any session; writes nothing at all."""
    content = clean_text(prompt)
    if not content.strip():
        raise InputError("the message is empty; write something first")
    shown = Recalled()
    if parts.switch(scope).on:
        question = parts.patience.wait(parts.patience.ask(content))
        shown = parts.block.for_prompt(scope, question)
    block = render.block(parts.prompts, render.new_mark(), shown)
    system = parts.prompts.render("chat", memories=block)
    stream = parts.model().stream([ChatMessage("system", system), ChatMessage("user", content)])
    return "".join(ReplyText(stream)), shown
