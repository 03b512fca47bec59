"""The offline stand-in: a litellm provider that works by patterns, without a network.

It lets people try, test and demonstrate memchat without a key. It is not a language model and says
so. ``offline/chat`` answers from the memories it was sent, ``offline/extract`` proposes facts from
plain first-person sentences. The same input always gives the same output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PROVIDER = "offline"


def register(litellm: Any) -> None:
    """Make ``offline/chat`` and ``offline/extract`` callable through this litellm, once."""
    others = [item for item in litellm.custom_provider_map if item["provider"] != PROVIDER]
    stand_in = {"provider": PROVIDER, "custom_handler": _provider(litellm)}
    litellm.custom_provider_map = [*others, stand_in]


def answer(model: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """The answer of the model ``chat`` or ``extract`` to these messages."""
    from memchat.providers.offline.extract import extract_messages
    from memchat.providers.offline.reply import reply

    if model.rpartition("/")[2] == "extract":
        return json.dumps(extract_messages(messages), ensure_ascii=False)
    return reply(messages)


def _provider(litellm: Any) -> Any:
    """The handler that litellm calls; made here, as its base class needs litellm imported."""

    class StandIn(litellm.CustomLLM):  # type: ignore[misc]
        def completion(self, model: str, messages: Sequence[Mapping[str, Any]], **rest: Any) -> Any:
            text = answer(model, messages)
            response = rest.get("model_response") or litellm.ModelResponse()
            response.model = f"{PROVIDER}/{model.rpartition('/')[2]}"
            response.choices = [
                litellm.Choices(
                    finish_reason="stop",
                    index=0,
                    message=litellm.Message(role="assistant", content=text),
                )
            ]
            response.usage = litellm.Usage(**_usage(messages, text))
            return response

        def streaming(
            self, model: str, messages: Sequence[Mapping[str, Any]], **rest: Any
        ) -> Iterator[dict[str, Any]]:
            yield from _chunks(answer(model, messages), messages)

    return StandIn()


def _chunks(text: str, messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The answer word by word, as litellm's GenericStreamingChunk; the last one has the usage."""
    for word in re.findall(r"\s*\S+\s*", text):
        yield _chunk(word)
    yield _chunk("", usage=_usage(messages, text))


def _chunk(text: str, usage: dict[str, int] | None = None) -> dict[str, Any]:
    return {
        "text": text,
        "is_finished": usage is not None,
        "finish_reason": "stop" if usage is not None else "",
        "index": 0,
        "tool_use": None,
        "usage": usage,
    }


def _usage(messages: Sequence[Mapping[str, Any]], text: str) -> dict[str, int]:
    """Tokens, estimated as a quarter of the characters."""
    asked = sum(len(str(message.get("content") or "")) for message in messages) // 4
    told = max(1, len(text) // 4)
    return {
        "prompt_tokens": asked,
        "completion_tokens": told,
        "total_tokens": asked + told,
    }
