"""Making the models that the settings name: which are in use, why each was chosen, and what is
wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from memchat.config import Settings, keys, providers
from memchat.config.settings import FILE as SETTINGS
from memchat.config.settings import set_settings
from memchat.errors import ConfigError, InputError, ProviderError, ServiceError
from memchat.providers import embedders
from memchat.providers.litellm_calls import RemoteModel, key_name, key_names, key_remedy, litellm
from memchat.types import OnProgress, Service

if TYPE_CHECKING:
    from memchat.providers import ChatModel, Embedder, Transcriber

FASTEMBED = "fastembed"
HASH = "hash"
OFFLINE = "offline"
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
    if (
        stored is None
        or embedding_model_named(settings)
        or settings.embed_model == providers.WORDS_ONLY
    ):
        return settings
    return settings.with_(embed_model=stored)


def can_embed(settings: Settings) -> bool:
    """Whether there is a usable embedding model, judging by names, keys and installed packages."""
    if settings.embed_model == providers.WORDS_ONLY:
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
    if model in (providers.OFFLINE_CHAT, providers.OFFLINE_EXTRACT):
        remedy = f"run memchat keys set gemini, or for another provider, or set {variable}"
        return OFFLINE_NOTE, None, remedy
    if model == providers.WORDS_ONLY:
        return WORDS_NOTE, None, "unset MEMCHAT_EMBED_MODEL to use the built-in model"
    if providers.provider_of(providers.embedding_name(model)) == HASH:
        return "knows equal words only; made for tests", None, "unset MEMCHAT_EMBED_MODEL"
    if model == providers.MINILM:
        return _state_minilm()
    if providers.provider_of(model) == FASTEMBED:
        return _state_fast(model, settings)
    if not providers.provider_of(model):
        return None, f"{model!r} names no provider", no_provider_message(variable, model)
    names = key_names(model)
    if key_name(model, settings.keys) and not key_set:
        local = "minilm" if setting == "embed_model" else "ollama/llama3.2"
        remedy = f"{key_remedy(model)}, or set {variable}={local} to stay on this machine"
        return None, f"{' or '.join(names)} is not set", remedy
    return None, None, None


def _state_minilm() -> State:
    from memchat.providers.local import FETCH, available

    if available():
        return "on this machine; an English model", None, None
    problem = f"its weights are not on this machine; {WORDS_NOTE}"
    return None, problem, f"{FETCH}, or set MEMCHAT_EMBED_MODEL=none"


def _state_fast(model: str, settings: Settings) -> State:
    from memchat.providers.fastembed import is_installed, missing_files

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


GEMINI_VERSION = "/v1beta"
LIST_SECONDS = 10.0
"""How long a provider is waited for that lists its models."""


def chat_model(settings: Settings) -> ChatModel:
    """The model that answers. Nothing is imported or sent before its first call."""
    return _chat(settings.chat_model, settings)


def extract_model(settings: Settings) -> ChatModel:
    """The cheap model that extracts memories from an ended session."""
    return _chat(settings.extract_model, settings)


def embedder(settings: Settings) -> Embedder | None:
    """The embedding model; None where only keyword search is used.

    Raises ConfigError for a name without a provider.
    """
    model = providers.embedding_name(settings.embed_model)
    if model == providers.WORDS_ONLY:
        return None
    if model == providers.MINILM:
        from memchat.providers.local import MiniLMEmbedder, available

        return MiniLMEmbedder(settings.home) if available() else None
    provider = providers.provider_of(model)
    name = model.removeprefix(f"{provider}/")
    if provider == HASH:
        return embedders.HashEmbedder(name)
    if provider == FASTEMBED:
        from memchat.providers.fastembed import FastembedEmbedder

        folder = model_folder(settings, model)
        return FastembedEmbedder(name, folder, dimensions=settings.embed_dimensions)
    remote = _remote(settings, model, "MEMCHAT_EMBED_MODEL")
    remote |= {"per_minute": settings.embed_per_minute}
    if provider == "gemini":
        return embedders.GeminiEmbedder(model, **remote)
    # No plug-in can replace a known provider.
    point = None if provider in providers.KEYS else embedders.find_plugin(provider)
    if point is not None:
        return embedders.PluginEmbedder(point, name)
    remote |= {"dimensions": settings.embed_dimensions, "max_tokens": settings.embed_max_tokens}
    return embedders.LiteLLMEmbedder(model, **remote)


def transcriber(settings: Settings) -> Transcriber | None:
    """The model that writes down what is said; None where none is named. Raises ConfigError for a
    name without a provider."""
    model = settings.transcribe_model
    if model is None:
        return None
    from memchat.providers.litellm_chat import LiteLLMTranscriber

    return LiteLLMTranscriber(model, **_remote(settings, model, "MEMCHAT_TRANSCRIBE_MODEL"))


def _chat(model: str, settings: Settings) -> ChatModel:
    provider = providers.provider_of(model)
    if provider == OFFLINE:
        from memchat.providers.offline import OfflineChat

        return OfflineChat(model, settings.context_tokens or providers.DEFAULT_WINDOW)
    from memchat.providers.litellm_chat import LiteLLMChat

    remote = _remote(settings, model)
    if provider == "gemini" and remote["api_base"]:
        remote["api_base"] += GEMINI_VERSION  # litellm wants it, google-genai does not
    return LiteLLMChat(model, context_tokens=settings.context_tokens, **remote)


def _remote(settings: Settings, model: str, variable: str = "") -> dict[str, Any]:
    """How a model is reached. Raises ConfigError where its name, that the ``variable`` sets, has no
    provider."""
    provider = providers.provider_of(model)
    if variable and not provider:
        raise ConfigError(no_provider_message(variable, model))
    base = _address(settings, provider)
    return {"timeout": settings.timeout, "api_base": base, "keys": settings.keys}


def offered(settings: Settings, provider: str, key: str | None = None) -> list[str]:
    """The models that a provider lists just now, by litellm's names; empty where it lists none.
    ``key`` is used instead of the one that is set.

    Raises ConfigError where its key is missing or refused, ProviderError where it does not answer.
    """
    import httpx

    url = providers.openai_url(settings.addresses, provider)
    if url is None:
        return []
    remote = RemoteModel(f"{provider}/its-models", **_remote(settings, provider + "/"))
    key = (remote.find_key() or "") if key is None else key
    headers = {"authorization": f"Bearer {key}"} if key else {}
    if provider == "anthropic":
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    with remote.request(errors=(httpx.HTTPError, ValueError)):
        answer = httpx.get(
            f"{url}/models", headers=headers, timeout=min(settings.timeout, LIST_SECONDS)
        )
        answer.raise_for_status()
        found = answer.json()
    rows = found.get("data", []) if isinstance(found, dict) else found
    ids = (row.get("id") for row in rows if isinstance(row, dict))
    names = (name.removeprefix("models/") for name in ids if isinstance(name, str))
    return sorted(f"{provider}/{name}" for name in names if name.isprintable() and " " not in name)


def connect(settings: Settings, provider: str, key: str, address: str) -> list[str]:
    """What ``MemChat.connect`` does."""
    names, variables = providers.KEYS.get(provider, ()), providers.ADDRESSES.get(provider, ())
    address = address.strip().rstrip("/")
    if address and (
        not variables or not re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", address)
    ):
        raise InputError("an address begins with http:// or https:// and holds no name or key")
    if provider == providers.ANY_SERVER and not address:
        raise InputError("give the address of the server, such as http://localhost:1234/v1")
    others = {name: url for name, url in settings.addresses.items() if name not in variables}
    addresses = others | ({variables[0]: address} if address else {})
    if address != (before := providers.elsewhere(settings.addresses, provider)):
        fixed = {settings.origins.get(name) for name in variables} - {None, SETTINGS}
        if fixed:
            raise ConfigError(f"the address {before} is set in {fixed.pop()}; change it there")
    if key.strip() or provider != providers.ANY_SERVER:
        key = keys.checked(names[0], key)
    found: list[str] = []
    try:
        found = offered(settings.with_(addresses=addresses), provider, key)
    except ProviderError as error:
        if error.status in (401, 403):
            raise ConfigError(f"{providers.shown(provider)} refused this key") from None
    if key:
        keys.set_key(settings.home, names[0], key, address)
    if variables and address != before:
        changes = {name: None for name in variables if name in settings.origins}
        set_settings(settings.home, changes | {variables[0]: address or None})
    return found


def preload(settings: Settings) -> None:
    """Import what the chat model needs in a daemon thread, so that the first reply need not wait
    for it."""
    if providers.provider_of(settings.chat_model) != OFFLINE:
        Thread(target=litellm, name="memchat-warm", daemon=True).start()


def _address(settings: Settings, provider: str) -> str | None:
    """The address that is set for a known provider; litellm finds those of others itself."""
    found = (
        providers.address(settings.addresses, provider) if provider in providers.ADDRESSES else None
    )
    if found is None:
        return None
    url = found[0]
    return url.rstrip("/").removesuffix(GEMINI_VERSION) if provider == "gemini" else url


def download(settings: Settings, model: str, on_progress: OnProgress | None) -> tuple[Path, int]:
    """Download the files of MiniLM or of a fastembed model: their folder, and how many bytes were
    received, 0 where they were there."""
    from memchat.providers import downloads

    if providers.embedding_name(model) == providers.MINILM:
        return downloads.download_minilm(on_progress)
    folder = model_folder(settings, model)
    return folder, downloads.download_model(bare_name(model), folder, on_progress)


def model_folder(settings: Settings, model: str) -> Path:
    """The folder of a fastembed model, whether it exists or not. Raises InputError for a wrong
    name."""
    name = bare_name(model)
    if not name or any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name:
        raise InputError(f"{model!r} names no model; write it as fastembed/BAAI/bge-small-en-v1.5")
    return (settings.models or settings.home / "models") / name


def bare_name(model: str) -> str:
    """The name without the leading ``fastembed/``."""
    return model.removeprefix(f"{FASTEMBED}/")


def embedder_for(settings: Settings, service: Service) -> tuple[Embedder | None, str | None]:
    """The embedder of a service that a store has used, or None and the reason."""
    sizes = {"embed_dimensions": service.dimensions, "embed_max_tokens": service.max_tokens}
    found, reason = embedder_or_why(settings.with_(embed_model=service.name, **sizes))
    if found is not None and not found.service.same_space(service):
        return None, f"this memchat makes no more vectors as {service.name} has in this store"
    return found, reason


def embedder_or_why(settings: Settings) -> tuple[Embedder | None, str | None]:
    """The embedder that the settings name, or None and the reason, as keyword search still works.

    Raises ServiceError where the sizes of the model are wrong or missing.
    """
    if settings.embed_model == providers.WORDS_ONLY:
        return None, f"MEMCHAT_EMBED_MODEL={providers.WORDS_ONLY}: searched by words only"
    try:
        found = embedder(settings)
    except ServiceError:
        raise
    except ConfigError as error:
        return None, f"searched by words only: {error}"
    if found is None:
        from memchat.providers.local import FETCH

        return None, f"searched by words only: the MiniLM weights are missing; {FETCH}"
    return found, None


def damaged_weights(embedder: Embedder) -> str | None:
    """What is wrong with the weights of a built-in model, all of them read; None if nothing."""
    from memchat.providers.local import MiniLMEmbedder

    if isinstance(embedder, MiniLMEmbedder):
        try:
            embedder.verify()
        except ConfigError as error:
            return str(error)
    return None
