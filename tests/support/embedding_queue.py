"""An embedding service that refuses chosen texts, and facts that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.queue import store
from memchat import MemChat
from memchat.errors import ProviderError
from memchat.providers.embedders import HashEmbedder
from memchat.types import Usage
from tests.support import private

SPENT = Usage("embed", "hash/words", 1, 0, 0.0, 0.0)
BAD = "unspeakable"


class Service(HashEmbedder):
    """Keeps what it was asked; ``answer`` may raise, or give other vectors."""

    def __init__(self, answer: Callable[[Sequence[str]], Any] | None = None) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.answer = answer

    def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
        self.asked.append(list(texts))
        found = self.answer(texts) if self.answer is not None else None
        return super().embed_documents(texts) if found is None else (found, SPENT)


def refusing(status: int | None, word: str = BAD) -> Callable[[Sequence[str]], None]:
    def answer(texts: Sequence[str]) -> None:
        if any(word in text for text in texts):
            raise ProviderError("refused", status=status)

    return answer


def add(mc: MemChat, *values: str) -> list[int]:
    return [mc.user("ana").memories.add("fact", "note", value).id for value in values]


def many(mc: MemChat, count: int, bad: Sequence[int] = ()) -> list[int]:
    """So many facts at once, which wait for their vectors where something embeds."""
    values = (f"{BAD} {i}" if i in bad else f"thing {i}" for i in range(count))
    return store.fill(private.database(mc), values, mc.now)


def statuses(mc: MemChat, status: str) -> list[int]:
    found = mc.user("ana").memories.list(status=status, limit=1000)
    return sorted(memory.id for memory in found)


def vectors(mc: MemChat) -> int:
    with private.database(mc).read() as tx:
        return tx.connection.exec_driver_sql("SELECT count(*) FROM embeddings").scalar_one()
