"""The whole chat: memchat stores the turns, asks the model, and learns when the chat ends.

Without a provider's key the offline stand-in answers. It prints::

    Saved 1 (merged/updated 0)
    assistant: You work as a nurse.
    the reply was given: job: nurse
"""

from __future__ import annotations

import tempfile

from memchat import MemChat


def main() -> None:
    """Hold two conversations and show which memories the second one's reply was given."""
    with tempfile.TemporaryDirectory() as folder, MemChat(folder) as mc:
        ana = mc.user("ana")
        with ana.chat() as chat:
            for _piece in chat.send("I work as a nurse."):
                pass  # a real program shows each piece of the reply as it arrives
        assert chat.learned is not None
        print(chat.learned.headline)

        with ana.chat() as chat:
            reply = chat.send("What do you know about my job?")
            print("assistant:", reply.read().splitlines()[0])
            why = ana.sessions.why()
            for given in (*why.lines, *why.also):
                print("the reply was given:", given.hit.text)


if __name__ == "__main__":
    main()
