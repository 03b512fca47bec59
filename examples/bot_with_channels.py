"""A bot in a group chat, such as one on Discord: many people, each channel a session of its own.

Every message is added as it comes and nobody waits for a model: a channel is read once it rests,
and what asks to be remembered at once. What was said in another channel a minute ago is known all
the same. It prints::

    ana in #food: told of what she said in #travel
    ben in #food: nothing is known of him
    read: 3 conversations
    ana: city: Porto
"""

from __future__ import annotations

import tempfile
from datetime import timedelta

from memchat import MemChat
from memchat.testing import FakeClock


class Bot:
    """Answers in channels; here with what it was given to know."""

    def __init__(self, mc: MemChat) -> None:
        self.mc = mc

    def hear(self, author: str, channel: str, text: str) -> str:
        """A message that came in: the context for the answer, and the message kept."""
        person = self.mc.user(author, app="bot")
        context = person.context(text).text  # goes into the system prompt of your model
        said = [{"role": "user", "content": text}]
        person.add(said, session=channel, wait=False, metadata={"channel": channel})
        return context


def main() -> None:
    """Two people, two channels, and a worker when both have gone quiet."""
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as folder, MemChat(folder, clock=clock) as mc:
        bot = Bot(mc)
        bot.hear("ana", "#travel", "I moved to Porto.")
        clock.advance(seconds=60)
        known = "Porto" in bot.hear("ana", "#food", "Where can I eat tonight?")
        print(f"ana in #food: {'told of what she said in #travel' if known else 'nothing known'}")
        known = bool(bot.hear("ben", "#food", "I am hungry, too."))
        print(f"ben in #food: {'something' if known else 'nothing'} is known of him")
        clock.advance(seconds=timedelta(minutes=31).total_seconds())
        done = mc.jobs.run(parallel=4)  # or `memchat worker --parallel 4` in a process of its own
        read = [one for one in done.learned if one.skipped is None]
        print(f"read: {len(read)} conversations")
        ana = mc.user("ana", app="bot")
        for memory in ana.memories.list(metadata={"channel": "#travel"}):
            print(f"ana: {memory.key}: {memory.value}")


if __name__ == "__main__":
    main()
