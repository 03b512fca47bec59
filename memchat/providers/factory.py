"""The models that the settings name, built; and why each was chosen, for ``memchat doctor``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memchat.config import Settings
from memchat.config.addresses import address
from memchat.config.model_defaults import (
    MINILM,
    OFFLINE_CHAT,
    OFFLINE_EXTRACT,
    WORDS_ONLY,
    embedding_name,
)
from memchat.config.names import ADDRESSES, KEYS, provider_of
from memchat.errors import ConfigError, InputError, ServiceError
from memchat.providers.api_keys import key_name, key_names
from memchat.types import Progress, Service

if TYPE_CHECKING:
    from memchat.providers import ChatModel, Embedder

HASH = "hash"
FASTEMBED = "fastembed"
GEMINI_VERSION = "/v1beta"
OFFLINE_NOTE = "a stand-in that works by patterns, no real model"
WORDS_NOTE = "memories are searched by words only, not by meaning"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model, why it is in use, and what stands in its way."""

    setting: str
    """chat_model, extract_model or embed_model."""
    model: str
    why: str
    key: str | None
    """The variable that holds its key, or should; None where it needs none."""
    key_set: bool
    note: str | None = None
    """What a person should know though nothing is wrong."""
    problem: str | None = None
    remedy: str | None = None
    """What to do about the problem or the note."""

    @property
    def variable(self) -> str:
        """The variable that names another model."""
        return f"MEMCHAT_{self.setting.upper()}"


def chat_model(settings: Settings) -> ChatModel:
    """The model that talks. Nothing is imported or sent before its first call."""
    return _chat(settings.chat_model, settings)


def extract_model(settings: Settings) -> ChatModel:
    """The cheap model that reads an ended session."""
    return _chat(settings.extract_model, settings)


def embedder(settings: Settings) -> Embedder | None:
    """What turns texts into vectors; None where search is by words only.

    Raises ConfigError for a name that tells no provider.
    """
    model = embedding_name(settings.embed_model)
    if model == WORDS_ONLY:
        return None
    if model == MINILM:
        from memchat.providers.minilm_embedder import MiniLMEmbedder, available

        return MiniLMEmbedder(settings.home) if available() else None
    provider = provider_of(model)
    if provider == HASH:
        from memchat.providers.hash_embedder import HashEmbedder

        return HashEmbedder(model.removeprefix(f"{HASH}/"))
    if provider == "gemini":
        from memchat.providers.gemini_embedder import GeminiEmbedder

        return GeminiEmbedder(
            model,
            timeout=settings.timeout,
            base_url=_address(settings, provider),
            per_minute=settings.embed_per_minute,
            keys=settings.keys,
        )
    if provider == FASTEMBED:
        from memchat.providers.fastembed_embedder import FastembedEmbedder

        folder = model_folder(settings, model)
        return FastembedEmbedder(_bare(model), folder, dimensions=settings.embed_dimensions)
    if not provider:
        raise ConfigError(_nameless("MEMCHAT_EMBED_MODEL", model))
    if provider not in KEYS:  # nobody takes a known provider's place, and its texts
        from memchat.providers import plugins

        point = plugins.find(provider)
        if point is not None:
            return plugins.PluginEmbedder(point, model.removeprefix(f"{provider}/"))
    from memchat.providers.litellm_embedder import LiteLLMEmbedder

    return LiteLLMEmbedder(
        model,
        timeout=settings.timeout,
        api_base=_address(settings, provider),
        per_minute=settings.embed_per_minute,
        keys=settings.keys,
        dimensions=settings.embed_dimensions,
        max_tokens=settings.embed_max_tokens,
    )


def explain(settings: Settings) -> tuple[ModelChoice, ModelChoice, ModelChoice]:
    """Chat, extraction, embedding: each with its reason, its key and what is wrong.

    Reads names and variables only: no provider is called, no key is shown, litellm stays unloaded.
    """
    return (
        _explain(settings, "chat_model", settings.chat_model),
        _explain(settings, "extract_model", settings.extract_model),
        _explain(settings, "embed_model", settings.embed_model),
    )


def _chat(model: str, settings: Settings) -> ChatModel:
    from memchat.providers.litellm_chat import LiteLLMChat

    provider = provider_of(model)
    base = _address(settings, provider)
    if base and provider == "gemini":
        base += GEMINI_VERSION  # litellm wants it, google-genai does not
    return LiteLLMChat(
        model,
        timeout=settings.timeout,
        api_base=base,
        context_tokens=settings.context_tokens,
        keys=settings.keys,
    )


def _address(settings: Settings, provider: str) -> str | None:
    """The address that is set for a provider memchat knows; litellm looks for others' itself."""
    found = address(settings.addresses, provider) if provider in ADDRESSES else None
    if found is None:
        return None
    url = found[0]
    return url.rstrip("/").removesuffix(GEMINI_VERSION) if provider == "gemini" else url


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
        return OFFLINE_NOTE, None, f"set GEMINI_API_KEY, another provider's key, or {variable}"
    if model == WORDS_ONLY:
        return WORDS_NOTE, None, "unset MEMCHAT_EMBED_MODEL to use the built-in model"
    if provider_of(embedding_name(model)) == HASH:
        return "knows equal words only; made for tests", None, "unset MEMCHAT_EMBED_MODEL"
    if model == MINILM:
        return _state_minilm()
    if provider_of(model) == FASTEMBED:
        return _state_fast(model, settings)
    if not provider_of(model):
        return None, f"{model!r} names no provider", _nameless(variable, model)
    names = key_names(model)
    if names and not key_set:
        local = "minilm" if setting == "embed_model" else "ollama/llama3.2"
        remedy = f"set {' or '.join(names)}, or {variable}={local} to stay on this machine"
        return None, f"{' or '.join(names)} is not set", remedy
    return None, None, None


def _state_minilm() -> State:
    from memchat.providers.minilm_embedder import available

    if available():
        return "on this machine; an English model", None, None
    return (
        None,
        f"its weights are not installed; {WORDS_NOTE}",
        "run make in the memchat folder, or set MEMCHAT_EMBED_MODEL=none",
    )


def _state_fast(model: str, settings: Settings) -> State:
    from memchat.providers.fastembed_embedder import is_installed, missing_files

    if not is_installed():
        return None, "fastembed is not installed", "run pip install fastembed"
    folder = model_folder(settings, model)
    if gone := missing_files(folder):
        remedy = f"run memchat services fetch {_bare(model)}, or put its files there"
        return None, f"{folder} lacks {', '.join(gone)}", remedy
    return "on this machine", None, None


def model_folder(settings: Settings, model: str) -> Path:
    """Where the files of a fastembed model lie, or are to. Raises InputError for no such name."""
    name = _bare(model)
    if not name or any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name:
        raise InputError(f"{model!r} names no model; write it as fastembed/BAAI/bge-small-en-v1.5")
    return (settings.models or settings.home / "models") / name


def download(settings: Settings, model: str, tell: Callable[[Progress], None]) -> tuple[Path, int]:
    """Bring a model's files to this machine: the folder, and how many bytes came."""
    from memchat.providers.model_download import download

    folder = model_folder(settings, model)
    return folder, download(_bare(model), folder, tell)


def _bare(model: str) -> str:
    return model.removeprefix(f"{FASTEMBED}/")


def _nameless(variable: str, model: str) -> str:
    return f"{variable}={model} names no provider; write provider/model, for example openai/{model}"


def embedding_model_named(settings: Settings) -> bool:
    """Whether a person named the embedding model; a choice that nobody made never changes the
    service of a store."""
    return settings.why.get("embed_model") == "MEMCHAT_EMBED_MODEL"


def embedder_for(settings: Settings, service: Service) -> tuple[Embedder | None, str | None]:
    """What makes vectors of a service that a store knows, or None and why there is nothing."""
    sizes = {"embed_dimensions": service.dimensions, "embed_max_tokens": service.max_tokens}
    found, why_not = embedder_or_why(settings.with_(embed_model=service.name, **sizes))
    if found is not None and not found.service.same_space(service):
        return None, f"this memchat makes no more vectors as {service.name} has in this store"
    return found, why_not


def embedder_or_why(settings: Settings) -> tuple[Embedder | None, str | None]:
    """The embedder that the settings name, or None and why there is none: words will do.

    Raises ServiceError for sizes that are wrong or missing, which only a person can tell.
    """
    if settings.embed_model == WORDS_ONLY:
        return None, f"MEMCHAT_EMBED_MODEL={WORDS_ONLY}: searched by words only"
    try:
        found = embedder(settings)
    except ServiceError:
        raise
    except ConfigError as error:
        return None, f"searched by words only: {error}"
    if found is None:
        return None, "the MiniLM weights are not installed (run make): searched by words only"
    return found, None


def for_store(settings: Settings, stored: str | None) -> Settings:
    """The settings with the embedding model that counts in a store: the one that a person named,
    else that of the service it has, ``stored``."""
    if stored is None or embedding_model_named(settings) or settings.embed_model == WORDS_ONLY:
        return settings
    return settings.with_(embed_model=stored)


def can_embed(settings: Settings) -> bool:
    """Whether vectors can be made, as far as names, keys and installed parts tell."""
    if settings.embed_model == WORDS_ONLY:
        return False
    return _explain(settings, "embed_model", settings.embed_model).problem is None


def damaged_weights(embedder: Embedder) -> str | None:
    """What is wrong with weights on this machine, every byte read; None where nothing is."""
    from memchat.providers.minilm_embedder import MiniLMEmbedder

    if isinstance(embedder, MiniLMEmbedder):
        try:
            embedder.verify()
        except ConfigError as error:
            return str(error)
    return None
