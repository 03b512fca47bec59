"""A reply as it arrives, with what code did and says beside the model's words."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from memchat.errors import InputError
from memchat.memory import render, told
from memchat.memory.asked import Command
from memchat.memory.commands import TOOLS
from memchat.memory.meaning import Question
from memchat.memory.told import Choice, Told
from memchat.providers import ChatStream
from memchat.types import Change, ChatMessage, MemorySwitch, Recalled, Scope, clean_text

if TYPE_CHECKING:
    from memchat.chat import Chat, Parts


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
        choice: Choice | None,
    ) -> None:
        self.switch = switch
        self.shown = Recalled()
        self.told = Told()
        self.message_id: int | None = None
        self.dropped_turns = 0
        self.question: Question | None = None
        self.stream: ChatStream | None = None
        self.received = ""
        self._said = said
        self._command = command
        self._choice = choice
        self._stopped = False
        self._chat = chat
        self._parts = parts
        self._pieces = self._run()

    def __iter__(self) -> Iterator[str]:
        return self._pieces

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

    def stop(self) -> None:
        """Cut the reply; what came of it is kept as a partial one. Any thread may call it."""
        self._stopped = True
        try:
            self._pieces.close()
        except ValueError:
            # Another thread waits for the next piece: without a connection there is none.
            if self.stream is not None:
                self.stream.close()

    def _run(self) -> Generator[str, None, None]:
        status = "partial"
        try:
            for piece in self._say():
                self.received += piece
                yield piece
                if self._stopped:
                    return
            status = "partial" if self._stopped else "complete"
        finally:
            if self.stream is not None:
                self.stream.close()
            if self.stream is not None or self.received:
                self._chat.after_reply(self, status)

    def _say(self) -> Iterator[str]:
        """The model's words, then code's; code's alone where the message is but a command."""
        if self._choice is not None:
            answered = self._parts.commands.answer(self._choice, self._said)
            self.told = answered or told.kept()
            yield self.told.text if answered else f"{self.told.text}\n\n"
            if answered:
                return
        model = self._parts.model()
        by_model = self.switch.on and model.tools
        if self._command is not None and self._command.whole and not by_model:
            self.told += self._obey(self._command)
            yield self.told.text
            return
        self.stream = model.stream(self._prompt(by_model), TOOLS if by_model else ())
        yield from self.stream
        if not self._stopped:
            yield from self._act(self.stream, by_model and model.tools)

    def _act(self, stream: ChatStream, by_model: bool) -> Iterator[str]:
        """Carry out what the model called, or what the message asks for where it called nothing,
        so that a model's bare "done" becomes true."""
        place, acted = self._chat.place, Told()
        if by_model and place is not None:
            acted = self._parts.commands.run(stream.calls, place)
        if self._command is not None and not acted.text:
            acted = self._obey(self._command)
        if not (acted.text or self.received):
            acted = Told(told.NOT_DONE)
        self.told += acted
        if acted.text:
            yield f"\n\n{acted.text}" if self.received else acted.text

    def _obey(self, command: Command) -> Told:
        place = self._chat.place
        if place is None or not self.switch.on:
            return told.off(command.kind, self.switch)
        return self._parts.commands.obey(command, place, stand_in=self._parts.model().stand_in)

    def _prompt(self, by_model: bool) -> list[ChatMessage]:
        """The messages to send. The window is cut twice: the memories found may need some room."""
        prompt, dropped = self._chat.window(self._system("", by_model))
        if self.switch.on:
            self.question = self._parts.recall.question(self._said)
            self.shown = self._parts.recall.for_prompt(
                self._chat.scope, self.question, dropped=dropped
            )
            block = render.block(self._parts.prompts, [hit.text for hit in self.shown.hits])
            try:
                prompt, dropped = self._chat.window(self._system(block, by_model))
            except InputError:
                # The message fits alone: it goes without the memories, and the result says so.
                self.shown = Recalled(degraded="the message left no room for memories")
        self.dropped_turns = len(dropped)
        return prompt

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
        shown = parts.recall.for_prompt(scope, parts.recall.question(content))
    block = render.block(parts.prompts, [hit.text for hit in shown.hits])
    system = parts.prompts.render("chat", memories=block)
    stream = parts.model().stream([ChatMessage("system", system), ChatMessage("user", content)])
    return "".join(stream), shown
