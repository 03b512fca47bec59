"""The variables of providers: their keys and their addresses.

A settings file may hold these and nothing else: what stands there never reaches another library,
or a program that memchat starts, under a name that memchat does not know.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

USER = "MEMCHAT_USER"

KEYS: dict[str, tuple[str, ...]] = {
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "cohere": ("COHERE_API_KEY",),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
    "voyage": ("VOYAGE_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
"""The variables for each provider's key; the first one that is set is used. A provider that is not
listed needs no key (Ollama) or reads its own."""

ADDRESSES: dict[str, tuple[str, ...]] = {
    "gemini": ("GEMINI_API_BASE", "GOOGLE_GEMINI_BASE_URL"),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "anthropic": ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
    "mistral": ("MISTRAL_API_BASE",),
    "groq": ("GROQ_API_BASE",),
    "openrouter": ("OPENROUTER_API_BASE",),
    "deepseek": ("DEEPSEEK_API_BASE",),
    "cerebras": ("CEREBRAS_API_BASE",),
    "fireworks_ai": ("FIREWORKS_API_BASE",),
    "perplexity": ("PERPLEXITY_API_BASE",),
    "together_ai": ("TOGETHER_AI_API_BASE",),
    "xai": ("XAI_API_BASE",),
    "ollama": ("OLLAMA_API_BASE",),
    "ollama_chat": ("OLLAMA_API_BASE",),
}
"""The variables that set another address for a provider."""

KEY_NAMES = frozenset(name for names in KEYS.values() for name in names)
ADDRESS_NAMES = frozenset(name for names in ADDRESSES.values() for name in names)
_GROUPS = {
    name: frozenset(names)
    for table in (KEYS, ADDRESSES)
    for names in table.values()
    for name in names
}
_BARE = {
    r"(gpt-|chatgpt-|o\d|text-embedding-)": "openai",
    r"claude-": "anthropic",
}
_PRIVATE = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|API_BASE|BASE_URL)$", re.IGNORECASE
)


def provider_of(model: str) -> str:
    """The provider in a litellm model name; empty where the name has none."""
    provider, slash, _ = model.partition("/")
    if slash:
        return provider
    return next((owner for start, owner in _BARE.items() if re.match(start, model)), "")


def address_names(provider: str) -> tuple[str, ...]:
    """The variables that may set another address for a provider."""
    known = ADDRESSES.get(provider)
    start = re.sub(r"\W", "_", provider).upper()
    return known or (f"{start}_API_BASE", f"{start}_BASE_URL")


def synonyms(name: str) -> frozenset[str]:
    """The variables with the same meaning as this one, including itself."""
    return _GROUPS.get(name, frozenset((name,)))


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is closest to a misspelt one, if any is."""
    found = difflib.get_close_matches(name.upper(), sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for another program, without keys, tokens and passwords."""
    return {
        name: value
        for name, value in environment.items()
        if name not in KEY_NAMES and not _PRIVATE.search(name)
    }
