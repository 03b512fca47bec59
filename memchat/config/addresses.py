"""Addresses of providers, and warnings about those that are not the provider's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from memchat.config.model_defaults import (
    HASH,
    MINILM,
    OFFLINE_CHAT,
    OFFLINE_EXTRACT,
    WORDS_ONLY,
    runs_locally,
)
from memchat.config.names import address_names, provider_of

_OWN = {
    "gemini": ("Google", "generativelanguage.googleapis.com"),
    "openai": ("OpenAI", "api.openai.com"),
    "anthropic": ("Anthropic", "api.anthropic.com"),
    "mistral": ("Mistral", "api.mistral.ai"),
    "groq": ("Groq", "api.groq.com"),
    "openrouter": ("OpenRouter", "openrouter.ai"),
    "deepseek": ("DeepSeek", "api.deepseek.com"),
    "cerebras": ("Cerebras", "api.cerebras.ai"),
    "fireworks_ai": ("Fireworks", "api.fireworks.ai"),
    "perplexity": ("Perplexity", "api.perplexity.ai"),
    "together_ai": ("Together", "api.together.ai"),
    "xai": ("xAI", "api.x.ai"),
}
"""The name of a provider, and its own host."""
_OLLAMA = ("ollama", "ollama_chat")
_HERE = ("localhost", "127.0.0.1", "::1")


def address(addresses: Mapping[str, str], provider: str) -> tuple[str, str] | None:
    """The address that is set for a provider, and the variable that sets it."""
    name = next((name for name in address_names(provider) if addresses.get(name)), None)
    return (addresses[name], name) if name is not None else None


def redirect_warnings(addresses: Mapping[str, str], models: Iterable[str]) -> list[str]:
    """A sentence for each address that is not the provider's own and that these models use."""
    said = []
    for provider in dict.fromkeys(provider_of(model) for model in models):
        found = address(addresses, provider) if provider else None
        if found is not None and not _own(provider, found[0]):
            whose = _OWN[provider][0] if provider in _OWN else provider
            whose = "Ollama on this machine" if provider in _OLLAMA else whose
            said.append(f"Your words go to {shown(found[0])} ({found[1]}), not to {whose}.")
    return list(dict.fromkeys(said))


def asked_where(addresses: Mapping[str, str], model: str) -> str:
    """A model and where it is asked, as "openai/gpt-4.1-mini at api.openai.com"; nothing is asked
    for it."""
    if model in (OFFLINE_CHAT, OFFLINE_EXTRACT):
        return "the offline stand-in, on this machine"
    if model == WORDS_ONLY:
        return "none, search is by words only"
    if runs_locally(model) or model == HASH:
        return f"{'minilm' if model == MINILM else model}, on this machine"
    provider = provider_of(model)
    found = address(addresses, provider) if provider else None
    if found is not None and not (provider in _OLLAMA and _own(provider, found[0])):
        return f"{model} at {_host(found[0])}"
    if provider in _OLLAMA:
        return f"{model}, on this machine"
    return f"{model} at {_OWN[provider][1] if provider in _OWN else provider or 'its provider'}"


def shown(url: str) -> str:
    """An address without the password or key that it may contain."""
    return re.sub(r"[?#].*", "?…", re.sub(r"//[^/@\s]*@", "//…@", url))


def _host(url: str) -> str:
    """The host of an address, with its port; the whole address where it has none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or shown(url)
    except ValueError:
        return shown(url)


def _own(provider: str, url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if provider in _OLLAMA:
        return host in _HERE
    own = _OWN[provider][1] if provider in _OWN else None
    return own is not None and parts.scheme == "https" and (host == own or host.endswith(f".{own}"))
