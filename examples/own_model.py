"""A chat model of your own: any object with the members of ``memchat.ChatModel``.

This one repeats what it was told about tea; yours asks a server of yours. The same object may read
conversations for memories (``extract_model=``). It prints::

    Settings: example/parrot, in the time zone Europe/Lisbon
    You drink green tea.
    1 call of example/parrot
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memchat import ChatMessage, Completion, MemChat, Settings, ToolCall, Usage


class Answer:
    """One reply as it arrives: its words, and at the end what it took."""

    whole = True
    calls: Sequence[ToolCall] = ()

    def __init__(self, text: str, usage: Usage) -> None:
        self.text, self.usage = text, usage

    def __iter__(self) -> Iterator[str]:
        yield from (f"{word} " for word in self.text.split(" ")[:-1])
        yield self.text.split(" ")[-1]

    def close(self) -> None:
        """End the connection; here there is none."""


class Parrot:
    """Answers with the line of its instructions that speaks of tea."""

    name = "example/parrot"
    stand_in = False
    window = 8_000
    tools = False
    schema_mode = False
    sees = False

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> Answer:
        """A reply that comes in pieces."""
        done = self.complete(messages, purpose="chat")
        return Answer(done.text, done.usage)

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """One whole answer."""
        lines = (line for message in messages for line in message.content.splitlines())
        known = next((line for line in lines if "tea: " in line), "")
        drink = known.partition("tea: ")[2].partition(" (")[0]
        text = f"You drink {drink}." if drink else "I do not know."
        return Completion(text, Usage(purpose, self.name, 90, 5, 0.0, 0.1))


def main() -> None:
    """Give the model and the settings from Python, and ask."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder), timezone="Europe/Lisbon", embed_model="none")
        with MemChat(settings=settings, chat_model=Parrot()) as mc:
            print(f"Settings: {Parrot.name}, in the time zone {mc.settings.timezone}")
            ana = mc.user("ana")
            ana.memories.add("preference", "tea", "green tea")
            with ana.chat() as chat:
                print(chat.send("What do I drink?").read())
            (total,) = (row for row in ana.usage() if row.purpose == "chat")
            print(f"{total.calls} call of {total.model}")


if __name__ == "__main__":
    main()
