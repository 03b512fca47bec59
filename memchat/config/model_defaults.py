"""Which models are used where none is named: those of the first provider whose key is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memchat.config.keys import ENVIRONMENT
from memchat.config.names import KEYS

OFFLINE_CHAT = "offline/chat"
OFFLINE_EXTRACT = "offline/extract"
MINILM = "minilm/all-MiniLM-L6-v2"
HASH = "hash/words"
WORDS_ONLY = "none"


@dataclass(frozen=True, slots=True)
class ProviderDefault:
    """The models used when a provider's key is set and no model is named."""

    keys: tuple[str, ...]
    chat: str
    extract: str
    embed: str | None = None


PROVIDERS: tuple[ProviderDefault, ...] = (
    ProviderDefault(
        KEYS["gemini"],
        "gemini/gemini-2.5-flash",
        "gemini/gemini-2.5-flash-lite",
        "gemini/gemini-embedding-001",
    ),
    ProviderDefault(
        KEYS["openai"],
        "openai/gpt-4.1-mini",
        "openai/gpt-4.1-nano",
        "openai/text-embedding-3-small",
    ),
    ProviderDefault(KEYS["anthropic"], "anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5"),
    ProviderDefault(
        KEYS["mistral"], "mistral/mistral-medium-latest", "mistral/mistral-small-latest"
    ),
    ProviderDefault(KEYS["groq"], "groq/llama-3.3-70b-versatile", "groq/llama-3.1-8b-instant"),
    ProviderDefault(
        KEYS["openrouter"],
        "openrouter/google/gemini-2.5-flash",
        "openrouter/google/gemini-2.5-flash-lite",
    ),
    ProviderDefault(KEYS["deepseek"], "deepseek/deepseek-chat", "deepseek/deepseek-chat"),
)
"""In this order; the first whose key is set gives the models that are not named."""


def choose_models(
    values: Mapping[str, str], origins: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The chat, extraction and embedding model by the name of their setting, and why each was
    chosen. ``values`` are the variables that are set, ``origins`` say where each is set."""
    models = {
        "chat_model": OFFLINE_CHAT,
        "extract_model": OFFLINE_EXTRACT,
        "embed_model": MINILM,
    }
    why = dict.fromkeys(models, "no provider key is set")
    for setting in models:
        for provider in PROVIDERS:
            key = next((key for key in provider.keys if key in values), None)
            model = getattr(provider, setting.removesuffix("_model"))
            if key is not None and model is not None:
                models[setting], why[setting] = model, _is_set(key, origins[key])
                break
    no_key = models["extract_model"] == OFFLINE_EXTRACT
    for setting in models:
        variable = f"MEMCHAT_{setting.upper()}"
        if variable in values:
            models[setting], why[setting] = values[variable], variable
    chat = models["chat_model"]
    if no_key and chat != OFFLINE_CHAT and "MEMCHAT_EXTRACT_MODEL" not in values:
        models["extract_model"] = chat
        why["extract_model"] = "the same as MEMCHAT_CHAT_MODEL; no cheaper one is named"
    models["embed_model"] = embedding_name(models["embed_model"])
    return models, why


def embedding_name(name: str) -> str:
    """An embedding model's whole name; ``minilm`` and ``hash`` are short for theirs."""
    short = {"minilm": MINILM, MINILM.lower(): MINILM, "hash": HASH}
    return short.get(name.lower(), name)


def runs_locally(name: str) -> bool:
    """Whether an embedding model has to be loaded on this machine before it can answer."""
    return name == MINILM or name.startswith("fastembed/")


def _is_set(key: str, origin: str) -> str:
    return f"{key} is set" + ("" if origin == ENVIRONMENT else f" in {origin}")
