"""A store of its own in a temporary folder: real embedder, scripted models, a clock that waits."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

from memchat import MemChat
from memchat.chat import Chat
from memchat.config import Settings
from memchat.errors import ConfigError
from memchat.providers import ChatModel, Embedder
from memchat.testing import FakeClock, Request, ScriptedModel
from tests.support import empty_store

REPLY = "Fine."


@lru_cache(maxsize=1)
def real_embedder() -> Embedder:
    """The built-in model, loaded once. Raises ConfigError where its weights are not installed."""
    from memchat.providers.local import MiniLMEmbedder, available

    if not available():
        raise ConfigError("the MiniLM weights are missing; run memchat services fetch minilm")
    return MiniLMEmbedder(None)


class Stage:
    """One store under test. Use it in a ``with`` block; its folder goes at the end."""

    def __init__(
        self, embedder: Embedder | None = None, extract_model: ChatModel | None = None
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="memchat-lifecycle-")
        self.home = empty_store.place(Path(self._folder.name) / "store")
        self.clock = FakeClock()
        self.chat = ScriptedModel(name="scripted/chat")
        self.extract = ScriptedModel(name="scripted/extract")
        self.mc = MemChat(
            # A busy machine must not make a search one by words alone.
            settings=Settings(home=self.home, timezone="Europe/Berlin", embed_patience=5.0),
            chat_model=self.chat,
            extract_model=extract_model or self.extract,
            embedder=embedder or real_embedder(),
            clock=self.clock,
        )

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.mc.close()
        self._folder.cleanup()

    def tell(
        self,
        user: str,
        *lines: str,
        facts: Sequence[dict[str, Any]] | None = (),
        app: str = "default",
        incognito: bool = False,
    ) -> Chat:
        """A whole conversation, and what the extraction model answers; None leaves it to itself."""
        with self.mc.user(user, app=app).chat(incognito=incognito) as chat:
            for line in lines:
                self.chat.replies.append(REPLY)
                assert chat.send(line).read()
            if facts is not None and not incognito:
                self.extract.replies.append(answer(*facts))
        return chat

    def prompt(self, user: str, question: str, app: str = "default") -> str:
        """Everything a chat model is sent for a question, and the session left unread."""
        self.chat.replies.append(REPLY)
        self.mc.user(user, app=app).answer(question)
        return "\n".join(message.content for message in self.chat.requests[-1].messages)

    def rows(self) -> str:
        """Every row of every table, as text: keyword tables and event texts included."""
        import sqlite3

        found = []
        with sqlite3.connect(self.home / "memchat.db") as db:
            tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in tables:
                found += [f"{name}: {row}" for row in db.execute(f'SELECT * FROM "{name}"')]
        return "\n".join(found)

    def bytes(self) -> bytes:
        """Every file of the store, one after another."""
        return b"\n".join(p.read_bytes() for p in sorted(self.home.rglob("*")) if p.is_file())


def known_to(request: Request) -> list[dict[str, Any]]:
    """The facts that an extraction call was shown beside the conversation."""
    sent = re.sub(r"^<data[^>]*>\n|\n</data[^>]*>$", "", request.messages[1].content)
    known: list[dict[str, Any]] = json.loads(sent)["known"]
    return known


def fact(quote: str, key: str, value: str, *, msg: str = "u1", **more: Any) -> dict[str, Any]:
    """One fact as the extraction model answers it; ``kind`` is its memory type."""
    kind, relation = more.pop("kind", "fact"), more.pop("relation", "new")
    labels = {"type": kind, "key": key, "value": value, "many": False, "is": relation}
    return {"quotes": [{"msg": msg, "text": quote}], **labels, **more}


def answer(*facts: dict[str, Any]) -> str:
    """A whole answer of the extraction model."""
    return json.dumps({"facts": list(facts), "forget": [], "title": None, "summary": None})
