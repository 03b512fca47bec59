"""A store that is served over HTTP, before a provider of the test's own."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import uvicorn
from fastapi._compat import v2
from pydantic import TypeAdapter

from memchat import AsyncMemChat, MemChat, User
from memchat.config import Settings
from memchat.config.keys import Keys
from memchat.config.tokens import Token, Tokens
from memchat.http.gate import Options
from memchat.http.server import Server
from memchat.providers.embedders import HashEmbedder
from memchat.testing import ScriptedModel
from memchat.types import CLIENT_MODES
from tests.support import empty_store
from tests.support.store import WAIT
from tests.support.wire.openai import OpenAIServer

# All servers share what Pydantic makes of a type, which takes most of a server's start.
_adapters: dict[Any, Any] = {}


def _adapter(kind: Any, **more: Any) -> Any:
    key = kind.__origin__, repr(kind.__metadata__), repr(more)
    if key not in _adapters:
        _adapters[key] = TypeAdapter(kind, **more)
    return _adapters[key]


v2.TypeAdapter = _adapter  # type: ignore[assignment,misc]


@dataclass
class Served:
    """A store that is served."""

    url: str
    mc: MemChat
    provider: OpenAIServer
    extract_model: ScriptedModel
    tokens: Tokens
    secrets: dict[str, str]
    """The tokens of the programs trust, ask and admin, and of those that a test adds."""

    def add(self, token: Token) -> str:
        """Make a token, which is known by the name of its program."""
        self.secrets[token.name] = self.tokens.add(token)
        return self.secrets[token.name]

    @property
    def ana(self) -> User:
        return self.mc.user("ana")

    def __post_init__(self) -> None:
        self._clients: list[openai.OpenAI] = []

    def headers(self, token: str = "trust") -> dict[str, str]:
        return {"authorization": f"Bearer {self.secrets.get(token, token)}"}

    def client(self, token: str = "trust", **more: Any) -> openai.OpenAI:
        key = self.secrets.get(token, token)
        made = openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, **more)
        self._clients.append(made)
        return made

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def ask(self, *messages: dict[str, Any], token: str = "trust", **more: Any) -> Any:
        return self.client(token).chat.completions.create(
            model="memchat",
            messages=list(messages),  # type: ignore[arg-type]
            **more,
        )

    def sent(self) -> list[dict[str, Any]]:
        """The messages that the provider was sent last."""
        messages: list[dict[str, Any]] = self.provider.requests[-1].body["messages"]
        return messages

    def conversations(self) -> list[list[tuple[str, str]]]:
        """What is kept, the first conversation first."""
        kept = sorted(self.ana.sessions.list(), key=lambda one: one.id)
        return [[(m.role, m.content) for m in self.ana.sessions.messages(s.id)] for s in kept]

    def read(self) -> None:
        """Have the conversations read now."""
        for session in self.ana.sessions.list():
            self.ana.sessions.end(session.id)
        self.mc.jobs.run()


@contextmanager
def serving(home: Path, options: Options | None = None, **changes: Any) -> Iterator[Served]:
    """A store that is served, before a provider of the test's own."""
    with OpenAIServer() as provider:
        settings = Settings(
            home=empty_store.place(home),
            chat_model="openai/gpt-4.1-mini",
            embed_patience=WAIT,
            addresses={"OPENAI_BASE_URL": provider.base},
            keys=Keys({"OPENAI_API_KEY": (provider.key, "a test")}),
        ).with_(**changes)
        model = ScriptedModel()
        awaited: Any = AsyncMemChat(
            settings=settings, extract_model=model, embedder=HashEmbedder(), chat_model=model
        )
        listener = socket.create_server(("127.0.0.1", 0))
        tokens = Tokens(home)
        app = Server(awaited, options or Options(worker=False), tokens, close=True).watch
        config = uvicorn.Config(app, log_level="warning", proxy_headers=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        until(lambda: server.started)
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            served = Served(url, awaited.blocking, provider, model, tokens, {})
            for mode in CLIENT_MODES:
                served.add(Token(mode, "ana", mode=mode))
            served.add(Token("admin", "ana", may="admin", mode="trust"))
            yield served
            served.close()
        finally:
            server.should_exit = True
            thread.join()


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
