"""The API keys of models: finding them, and keeping them out of messages."""

from __future__ import annotations

import os
import re

from memchat.config.keys import Keys
from memchat.config.names import KEY_NAMES, KEYS, provider_of
from memchat.errors import ConfigError

_LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk-|gsk_|xai-|pa-|AIza|Bearer\s+)[\w*.\-]{6,}")


_handed_out: set[str] = set()
"""Keys that were given to a library, as its errors may contain them."""


def key_names(model: str) -> tuple[str, ...]:
    """The variables that may hold the model's key; empty where it needs none."""
    return KEYS.get(provider_of(model), ())


def key_name(model: str, keys: Keys) -> str | None:
    """The variable of the model's key: the first one that is set, else the first of all."""
    names = key_names(model)
    return keys.first(names) or (names[0] if names else None)


def how_to_set_key(model: str) -> str:
    """What gives the model its key, or another one, as a command."""
    provider = provider_of(model)
    if provider not in KEYS:
        return "set the provider's API key in the environment"
    return f"run memchat keys set {provider}"


def find_key(model: str, keys: Keys, remedy: str) -> str | None:
    """The model's key, or None where it needs none. Raises ConfigError where it is missing.

    ``remedy`` says what else can be done, after the word "or".
    """
    name = key_name(model, keys)
    if name is None:
        return None
    value = keys.value(name)
    if not value:
        names = " or ".join(key_names(model))
        raise ConfigError(f"{model} needs a key ({names}): {how_to_set_key(model)}, or {remedy}")
    _handed_out.add(value)
    return value


def redact(text: str) -> str:
    """The text without any provider's key that is set, or anything that looks like one."""
    environment = {os.environ.get(name) for name in KEY_NAMES}
    for value in sorted(filter(None, _handed_out | environment), key=len, reverse=True):
        if len(value) >= 4:
            text = text.replace(value, "(key)")
    return _LOOKS_LIKE_A_KEY.sub("(key)", text)
