"""Which key a model needs, whether it is set, and how to keep it out of a message."""

from __future__ import annotations

import os
import re

from memchat.config import PROVIDERS
from memchat.errors import ConfigError

KEYS: dict[str, tuple[str, ...]] = {
    **{default.chat.partition("/")[0]: default.keys for default in PROVIDERS},
    "cerebras": ("CEREBRAS_API_KEY",),
    "cohere": ("COHERE_API_KEY",),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
    "voyage": ("VOYAGE_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
"""The variables each provider's key is looked for in, the first set one wins. A provider that is
not listed needs none (Ollama) or checks its own."""

_BARE = {
    r"(gpt-|chatgpt-|o\d|text-embedding-)": "openai",
    r"claude-": "anthropic",
}
_LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk-|gsk_|xai-|pa-|AIza|Bearer\s+)[\w*.\-]{6,}")


def provider_of(model: str) -> str:
    """The provider in a litellm model name; empty where the name does not tell."""
    provider, slash, _ = model.partition("/")
    if slash:
        return provider
    return next((owner for start, owner in _BARE.items() if re.match(start, model)), "")


def key_names(model: str) -> tuple[str, ...]:
    """The variables that may hold the model's key; empty where it needs none."""
    return KEYS.get(provider_of(model), ())


def key_name(model: str) -> str | None:
    """The variable that holds the model's key, or should: the first of them when none is set."""
    names = key_names(model)
    return next((name for name in names if os.environ.get(name)), names[0] if names else None)


def find_key(model: str, remedy: str) -> str | None:
    """The model's key, or None where it needs none. Raises ConfigError where it is missing.

    ``remedy`` is what else a person may do, after "or".
    """
    name = key_name(model)
    if name is None:
        return None
    value = os.environ.get(name)
    if not value:
        raise ConfigError(f"{model} needs a key: set {' or '.join(key_names(model))}, or {remedy}")
    return value


def redact(text: str) -> str:
    """The text without any provider's key that is set, or anything that looks like one."""
    for name in {name for names in KEYS.values() for name in names}:
        value = os.environ.get(name)
        if value and len(value) >= 4:
            text = text.replace(value, "(key)")
    return _LOOKS_LIKE_A_KEY.sub("(key)", text)
