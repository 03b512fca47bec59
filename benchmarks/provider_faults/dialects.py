"""The providers that memchat names, a model of each, and how each says the same thing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memchat.config.providers import ADDRESS_NAMES, KEYS
from memchat.providers import ChatModel, Embedder
from memchat.providers.embedders import GeminiEmbedder, LiteLLMEmbedder
from memchat.providers.litellm_chat import LiteLLMChat

CHAT = (
    "gemini/gemini-2.5-flash",
    "openai/gpt-4.1-mini",
    "anthropic/claude-sonnet-4-5",
    "mistral/mistral-small-latest",
    "groq/llama-3.1-8b-instant",
    "openrouter/meta-llama/llama-3.1-8b-instruct",
    "deepseek/deepseek-chat",
    "cerebras/llama3.1-8b",
    "cohere/command-r",
    "fireworks_ai/accounts/fireworks/models/llama-v3p1-8b-instruct",
    "perplexity/sonar",
    "together_ai/meta-llama/Llama-3-8b-chat-hf",
    "xai/grok-3",
    "ollama/llama3.2",
    "ollama_chat/llama3.2",
)
EMBED = {
    "gemini/gemini-embedding-001": 768,
    "openai/text-embedding-3-small": 1536,
    "mistral/mistral-embed": 1024,
    "cohere/embed-english-v3.0": 1024,
    "voyage/voyage-3": 1024,
    "ollama/nomic-embed-text": 768,
    "together_ai/BAAI/bge-base-en-v1.5": 768,
    "fireworks_ai/nomic-ai/nomic-embed-text-v1.5": 768,
}
SECRET = "test-key-8d1f0a77c2"
SSE = "text/event-stream"
LINES = "application/x-ndjson"


@contextmanager
def keys() -> Iterator[None]:
    """A key for each provider and no address of any in the environment, and then as before."""
    before = dict(os.environ)
    for name in ADDRESS_NAMES:
        os.environ.pop(name, None)
    os.environ |= {names[0]: SECRET for names in KEYS.values()}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def chat_model(name: str, root: str, timeout: float) -> ChatModel:
    """A chat model whose provider is at ``root``."""
    path = {"cohere": "/v2/chat", "gemini": "/v1beta", "anthropic": "", "ollama": ""}
    path["ollama_chat"] = ""
    base = root + path.get(name.partition("/")[0], "/v1")
    return LiteLLMChat(name, timeout=timeout, api_base=base)


def embedder(name: str, root: str, timeout: float) -> Embedder:
    """An embedding model whose provider is at ``root``."""
    if name.startswith("gemini/"):
        return GeminiEmbedder(name, timeout=timeout, api_base=root)
    path = {"cohere": "/v2/embed", "ollama": ""}.get(name.partition("/")[0], "/v1")
    sizes = {"dimensions": EMBED[name], "max_tokens": 512}
    return LiteLLMEmbedder(name, timeout=timeout, api_base=root + path, **sizes)


def said(path: str, asked: dict[str, Any], text: str) -> tuple[str, str]:
    """The body of an answer with this text to a request, and its kind, in the words of whoever is
    asked at this path."""
    if "mbed" in path:
        return json.dumps(_vectors(path, asked)), "application/json"
    if "generateContent" in path or "GenerateContent" in path:
        part = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
        body = json.dumps({"candidates": [part]})
        return (f"data: {body}\n\n", SSE) if "stream" in path else (body, "application/json")
    if "/messages" in path:
        return _anthropic(text, streams=bool(asked.get("stream")))
    if "/api/" in path:
        words = {"message": {"role": "assistant", "content": text}, "response": text}
        return json.dumps({"model": "m", "created_at": "", **words, "done": True}) + "\n", LINES
    if path.endswith("/v2/chat"):
        return _cohere(text, streams=bool(asked.get("stream")))
    return _openai(text, streams=bool(asked.get("stream")))


def _openai(text: str, *, streams: bool) -> tuple[str, str]:
    made = {"id": "c", "created": 1, "model": "m"}
    message = {"role": "assistant", "content": text}
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    if not streams:
        choice["message"] = message
        whole = {**made, "object": "chat.completion", "choices": [choice]}
        return json.dumps(whole), "application/json"
    choice["delta"] = message
    chunk = {**made, "object": "chat.completion.chunk", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", SSE


def _anthropic(text: str, *, streams: bool) -> tuple[str, str]:
    usage = {"input_tokens": 3, "output_tokens": 3}
    whole = {"id": "c", "type": "message", "role": "assistant", "model": "m", "usage": usage}
    if not streams:
        parts = [{"type": "text", "text": text}]
        return json.dumps(
            {**whole, "content": parts, "stop_reason": "end_turn"}
        ), "application/json"
    empty, piece = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
    return _named(
        ("message_start", {"message": {**whole, "content": []}}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": piece}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": usage}),
        ("message_stop", {}),
    ), SSE


def _cohere(text: str, *, streams: bool) -> tuple[str, str]:
    content = {"type": "text", "text": text}
    usage = {"tokens": {"input_tokens": 3, "output_tokens": 3}}
    if not streams:
        message = {"role": "assistant", "content": [content]}
        whole = {"id": "c", "finish_reason": "COMPLETE", "message": message, "usage": usage}
        return json.dumps(whole), "application/json"
    end = {"finish_reason": "COMPLETE", "usage": usage}
    return _named(
        ("content-delta", {"index": 0, "delta": {"message": {"content": {"text": text}}}}),
        ("message-end", {"delta": end}),
    ), SSE


def _named(*events: tuple[str, dict[str, Any]]) -> str:
    return "".join(
        f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events
    )


def _vectors(path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Vectors of the right length for each text, all alike."""
    if "batchEmbed" in path:
        return {"embeddings": [{"values": [0.5] * 768} for _ in asked["requests"]]}
    texts = asked.get("input") or asked.get("texts") or []
    texts = [texts] if isinstance(texts, str) else texts
    length = next(n for name, n in EMBED.items() if name.endswith("/" + str(asked["model"])))
    rows = [[0.5] * length for _ in texts]
    if "/api/" in path:
        return {"embeddings": rows, "prompt_eval_count": 3}
    if path.endswith("/v2/embed"):
        billed = {"billed_units": {"input_tokens": 3}}
        return {"id": "e", "embeddings": {"float": rows}, "texts": texts, "meta": billed}
    data = [{"object": "embedding", "index": n, "embedding": row} for n, row in enumerate(rows)]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return {"object": "list", "data": data, "model": "m", "usage": usage}
