"""What a call through litellm took: tokens, seconds and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memchat.providers.litellm_setup import LOCAL, call_errors, litellm
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Usage


def chat_usage(
    purpose: str,
    model: str,
    messages: Sequence[ChatMessage],
    text: str,
    seen: Any,
    seconds: float,
) -> Usage:
    """The usage of a chat call; where ``seen``, litellm's record, has no figures, an estimate from
    the messages and the answer."""
    sent = int(getattr(seen, "prompt_tokens", 0) or 0)
    came = int(getattr(seen, "completion_tokens", 0) or 0)
    if not sent:
        sent = sum(estimate_tokens(message.content) for message in messages)
        came = estimate_tokens(text)
        seen = None
    return Usage(purpose, model, sent, came, cost_usd(model, sent, came, seen), seconds)


def cost_usd(
    model: str, prompt_tokens: int, completion_tokens: int, seen: Any = None
) -> float | None:
    """What a call cost in US dollars by litellm's bundled price list, None where it has no price.

    ``seen`` is litellm's own usage record where there is one: it counts cached tokens separately.
    """
    if model.startswith(LOCAL):
        return 0.0
    module = litellm()
    total = prompt_tokens + completion_tokens
    usage = seen or module.Usage(prompt_tokens, completion_tokens, total)
    try:
        info = module.get_model_info(model)
        spent = sum(module.cost_per_token(model=model, usage_object=usage))
    except (module.exceptions.ModelNotMappedError, ValueError, *call_errors()):
        return None
    free = not info.get("input_cost_per_token") and not info.get("output_cost_per_token")
    return None if free else float(spent)  # a price of zero means "not listed"
