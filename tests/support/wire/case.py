"""What the tests of both providers share: a message, and the chat model of a fake endpoint."""

from __future__ import annotations

from memchat.providers.litellm_chat import LiteLLMChat
from memchat.types import ChatMessage
from tests.support.wire.gemini import GeminiServer
from tests.support.wire.server import WireServer

HELLO = (ChatMessage("system", "You are brief."), ChatMessage("user", "Hi, I am Ana."))


def chat_of(server: WireServer, *, timeout: float = 10, model: str | None = None) -> LiteLLMChat:
    """A chat model whose requests go to this server."""
    if isinstance(server, GeminiServer):
        base, usual = f"{server.url}/v1beta", "gemini/gemini-2.5-flash"
    else:
        base, usual = f"{server.url}/v1", "openai/gpt-4.1-mini"
    return LiteLLMChat(model or usual, timeout=timeout, api_base=base)
