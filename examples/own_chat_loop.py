"""Your own chat loop and your own model: memchat gives the context and learns from the turns.

``my_model`` stands for the call of your model. It prints::

    sent to the model: diet: vegetarian
    learned: city: Lisbon
    learned: diet: vegetarian
"""

from __future__ import annotations

import tempfile

from memchat import MemChat


def my_model(system: str, question: str) -> str:
    """Answer a question; here with what the system prompt says of the diet."""
    known = [line for line in system.splitlines() if "diet: " in line]
    for line in known:
        print("sent to the model:", line[line.index("diet: ") :].split(" (")[0])
    return "How about a lentil curry?" if known else "Welcome!"


def main() -> None:
    """Hold two short conversations; the second uses what the first taught."""
    with tempfile.TemporaryDirectory() as folder, MemChat(folder) as mc:
        ana = mc.user("ana")
        said = {
            "monday": "I moved to Lisbon and I am vegetarian.",
            "tuesday": "What shall I cook tonight?",
        }
        for session, question in said.items():
            context = ana.context(question)
            reply = my_model(f"You are a helpful assistant.\n{context.text}", question)
            turns = [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
            # A service that goes on for long adds with wait=False, and a worker reads what rests.
            ana.add(turns, session=session)
        for memory in sorted(ana.memories.list(), key=lambda memory: memory.key):
            print(f"learned: {memory.key}: {memory.value}")


if __name__ == "__main__":
    main()
