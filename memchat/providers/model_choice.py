"""Which models are in use, why each was chosen, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

from memchat.config import Settings
from memchat.config.model_defaults import (
    MINILM,
    OFFLINE_CHAT,
    OFFLINE_EXTRACT,
    WORDS_ONLY,
    embedding_name,
)
from memchat.config.names import provider_of
from memchat.providers.api_keys import how_to_set_key, key_name, key_names
from memchat.providers.model_folder import FASTEMBED, bare_name, model_folder

HASH = "hash"
OFFLINE_NOTE = "a stand-in that works by patterns, no real model"
WORDS_NOTE = "memories are searched by words only, not by meaning"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model, why it is used, and what keeps it from working."""

    setting: str
    """chat_model, extract_model or embed_model."""
    model: str
    why: str
    key: str | None
    """The variable for its key; None where it needs none."""
    key_set: bool
    note: str | None = None
    """Worth knowing, though nothing is wrong."""
    problem: str | None = None
    remedy: str | None = None
    """What to do about the problem or the note."""

    @property
    def variable(self) -> str:
        """The variable that names another model."""
        return f"MEMCHAT_{self.setting.upper()}"


def explain(settings: Settings) -> tuple[ModelChoice, ModelChoice, ModelChoice]:
    """Chat, extraction, embedding: each with its reason, its key and what is wrong.

    Reads names and variables only: calls no provider, shows no key and does not import litellm.
    """
    return (
        _explain(settings, "chat_model", settings.chat_model),
        _explain(settings, "extract_model", settings.extract_model),
        _explain(settings, "embed_model", settings.embed_model),
    )


def embedding_model_named(settings: Settings) -> bool:
    """Whether the embedding model was named by MEMCHAT_EMBED_MODEL: only then is it used in a store
    that has vectors of another."""
    return settings.why.get("embed_model") == "MEMCHAT_EMBED_MODEL"


def for_store(settings: Settings, stored: str | None) -> Settings:
    """The settings with the embedding model that is used in a store: the one that was named, else
    ``stored``, the one whose vectors the store has."""
    if stored is None or embedding_model_named(settings) or settings.embed_model == WORDS_ONLY:
        return settings
    return settings.with_(embed_model=stored)


def can_embed(settings: Settings) -> bool:
    """Whether there is a usable embedding model, judging by names, keys and installed packages."""
    if settings.embed_model == WORDS_ONLY:
        return False
    return _explain(settings, "embed_model", settings.embed_model).problem is None


def _explain(settings: Settings, setting: str, model: str) -> ModelChoice:
    key = key_name(model, settings.keys)
    key_set = bool(key and settings.keys.value(key))
    note, problem, remedy = _state(settings, setting, model, key_set)
    why = settings.why.get(setting, "the default")
    return ModelChoice(setting, model, why, key, key_set, note, problem, remedy)


State = tuple[str | None, str | None, str | None]


def _state(settings: Settings, setting: str, model: str, key_set: bool) -> State:
    """The note, the problem and the remedy of one model."""
    variable = f"MEMCHAT_{setting.upper()}"
    if model in (OFFLINE_CHAT, OFFLINE_EXTRACT):
        remedy = f"run memchat keys set gemini, or for another provider, or set {variable}"
        return OFFLINE_NOTE, None, remedy
    if model == WORDS_ONLY:
        return WORDS_NOTE, None, "unset MEMCHAT_EMBED_MODEL to use the built-in model"
    if provider_of(embedding_name(model)) == HASH:
        return "knows equal words only; made for tests", None, "unset MEMCHAT_EMBED_MODEL"
    if model == MINILM:
        return _state_minilm()
    if provider_of(model) == FASTEMBED:
        return _state_fast(model, settings)
    if not provider_of(model):
        return None, f"{model!r} names no provider", no_provider_message(variable, model)
    names = key_names(model)
    if names and not key_set:
        local = "minilm" if setting == "embed_model" else "ollama/llama3.2"
        remedy = f"{how_to_set_key(model)}, or set {variable}={local} to stay on this machine"
        return None, f"{' or '.join(names)} is not set", remedy
    return None, None, None


def _state_minilm() -> State:
    from memchat.providers.minilm_embedder import FETCH, available

    if available():
        return "on this machine; an English model", None, None
    problem = f"its weights are not on this machine; {WORDS_NOTE}"
    return None, problem, f"{FETCH}, or set MEMCHAT_EMBED_MODEL=none"


def _state_fast(model: str, settings: Settings) -> State:
    from memchat.providers.fastembed_embedder import is_installed, missing_files

    if not is_installed():
        return None, "fastembed is not installed", "run pip install fastembed"
    folder = model_folder(settings, model)
    if gone := missing_files(folder):
        remedy = f"run memchat services fetch {bare_name(model)}, or put its files there"
        return None, f"{folder} lacks {', '.join(gone)}", remedy
    return "on this machine", None, None


def no_provider_message(variable: str, model: str) -> str:
    """What to do about a model whose name has no provider."""
    return f"{variable}={model} names no provider; write provider/model, for example openai/{model}"
