"""A redirect to another host: what of a request goes there, over all providers, codes and calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from benchmarks.provider_faults import dialects
from benchmarks.provider_faults.server import SAID, Play, Provider, Wire
from memchat.errors import MemChatError
from memchat.types import ChatMessage

CODES = (301, 302, 303, 307, 308)
MESSAGES = [ChatMessage("user", SAID)]
PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Sent:
    """One call that was answered with a redirect."""

    model: str
    call: str
    code: int
    leaked: bool
    """Whether the other host was asked anything."""
    saw: str
    """What the person reads."""


def run() -> Iterator[Sent]:
    """All of them, one after another."""
    with dialects.keys(), Provider() as provider, Provider(answer) as elsewhere:
        root, other = (server.base.removesuffix("/v1") for server in (provider, elsewhere))
        for model, call, ask in calls(root, PATIENCE_SECONDS):
            for code in CODES:
                before = elsewhere.asked
                provider.plan([redirect(code, f"{other}/v1/chat/completions")] * 3)
                saw = _error(ask)
                yield Sent(model, call, code, elsewhere.asked > before, saw)


def calls(root: str, timeout: float) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Each way to ask each provider, which is at ``root``: the model, the name of the call, and
    the call."""
    for name in dialects.CHAT:
        model = dialects.chat_model(name, root, timeout)
        yield name, "stream", lambda model=model: list(model.stream(MESSAGES))
        yield name, "complete", partial(model.complete, MESSAGES, purpose="extract")
    for name in dialects.EMBED:
        embedder = dialects.embedder(name, root, timeout)
        yield name, "embed", partial(embedder.embed_documents, [SAID])


def answer(wire: Wire) -> None:
    """What a healthy provider would say, in its own words."""
    body, kind = dialects.said(wire.path, wire.request, "Hello.")
    wire.whole(body, "200 OK", f"Content-Type: {kind}")


def redirect(code: int, where: str) -> Play:
    """Ask over there."""
    return lambda wire: wire.head(f"{code} Moved", f"Location: {where}", "Content-Length: 0")


def _error(ask: Callable[[], object]) -> str:
    try:
        ask()
    except MemChatError as error:
        return str(error)
    return ""
