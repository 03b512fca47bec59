"""An agent loop with two tools of memchat: one that searches what is known, one that remembers.

``my_model`` stands for a model that calls tools: here it follows two rules. What an agent remembers
of itself goes through ``client``, as any program's words do: it never replaces what the person said
by hand, and can be taken back. It prints::

    recall("tea") -> [preference] tea: green tea
    remember(fact, kettle, "the old one is broken") -> stored
    answer: You like green tea, and I noted that the kettle is broken.
    said by a program: kettle
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from memchat import MemChat

Call = tuple[str, dict[str, Any]]


def my_model(results: list[str]) -> Call | str:
    """The next tool to call, or the answer; here by the number of results so far."""
    if not results:
        return "recall", {"query": "tea"}
    if len(results) == 1:
        words = {"type": "fact", "key": "kettle", "value": "the old one is broken"}
        return "remember", words
    return "You like green tea, and I noted that the kettle is broken."


def main() -> None:
    """Run the loop until the model answers."""
    with tempfile.TemporaryDirectory() as folder, MemChat(folder) as mc:
        ana = mc.user("ana")
        ana.memories.add("preference", "tea", "green tea")
        agent = ana.client("Kitchen agent", "trust")

        def recall(query: str) -> str:
            hit = ana.search(query, limit=1).hits[0]
            print(f'recall("{query}") -> {hit.text.partition(" (")[0]}')
            return hit.text

        def remember(type: str, key: str, value: str) -> str:
            done = agent.remember(type, key, value)
            print(f'remember({type}, {key}, "{value}") -> {done.status}')
            return done.status

        tools: dict[str, Callable[..., str]] = {"recall": recall, "remember": remember}
        results: list[str] = []
        while not isinstance(step := my_model(results), str):
            name, arguments = step
            results.append(tools[name](**arguments))
        print(f"answer: {step}")
        (noted,) = ana.memories.list(said_by="program")
        print(f"said by a program: {noted.key}")


if __name__ == "__main__":
    main()
