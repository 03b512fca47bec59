"""Local servers that speak OpenAI's, Gemini's and Ollama's wire formats and refuse what those would
refuse.

    with OpenAIServer() as server:
        server.script(Fail(503), Say("hello"))
        ...
        assert len(server.requests) == 2

Unscripted requests are answered with ``server.reply(messages)``.
"""

from __future__ import annotations

from tests.support.wire.gemini import GeminiServer
from tests.support.wire.ollama import OllamaServer
from tests.support.wire.openai import OpenAIServer
from tests.support.wire.server import (
    Call,
    Cut,
    Empty,
    Endless,
    Fail,
    Hang,
    Pieces,
    Raw,
    Received,
    Rows,
    Say,
    WireServer,
)

__all__ = [
    "Call",
    "Cut",
    "Empty",
    "Endless",
    "Fail",
    "GeminiServer",
    "Hang",
    "OllamaServer",
    "OpenAIServer",
    "Pieces",
    "Raw",
    "Received",
    "Rows",
    "Say",
    "WireServer",
]
