"""Making the models that the settings name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memchat.config import Settings
from memchat.config.addresses import address
from memchat.config.model_defaults import (
    MINILM,
    WORDS_ONLY,
    embedding_name,
)
from memchat.config.names import ADDRESSES, KEYS, provider_of
from memchat.errors import ConfigError, ServiceError
from memchat.providers.model_choice import HASH, no_provider_message
from memchat.providers.model_folder import FASTEMBED, bare_name, model_folder
from memchat.types import OnProgress, Service

if TYPE_CHECKING:
    from memchat.providers import ChatModel, Embedder, Transcriber

GEMINI_VERSION = "/v1beta"


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
        return FastembedEmbedder(bare_name(model), folder, dimensions=settings.embed_dimensions)
    if not provider:
        raise ConfigError(no_provider_message("MEMCHAT_EMBED_MODEL", model))
    if provider not in KEYS:  # no plug-in can replace a known provider
        from memchat.providers import plugins
        from memchat.providers.plugin_embedder import PluginEmbedder

        point = plugins.find(provider)
        if point is not None:
            return PluginEmbedder(point, model.removeprefix(f"{provider}/"))
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


def transcriber(settings: Settings) -> Transcriber | None:
    """The model that writes down what is said; None where none is named. Raises ConfigError for a
    name without a provider."""
    model = settings.transcribe_model
    if model is None:
        return None
    provider = provider_of(model)
    if not provider:
        raise ConfigError(no_provider_message("MEMCHAT_TRANSCRIBE_MODEL", model))
    from memchat.providers.litellm_transcriber import LiteLLMTranscriber

    base = _address(settings, provider)
    return LiteLLMTranscriber(model, timeout=settings.timeout, api_base=base, keys=settings.keys)


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
    """The address that is set for a known provider; litellm finds those of others itself."""
    found = address(settings.addresses, provider) if provider in ADDRESSES else None
    if found is None:
        return None
    url = found[0]
    return url.rstrip("/").removesuffix(GEMINI_VERSION) if provider == "gemini" else url


def download(settings: Settings, model: str, on_progress: OnProgress) -> tuple[Path, int]:
    """Download the files of MiniLM or of a fastembed model: their folder, and how many bytes were
    received, 0 where they were there."""
    if embedding_name(model) == MINILM:
        from memchat.providers import minilm_download

        return minilm_download.download(on_progress)
    from memchat.providers.model_download import download

    folder = model_folder(settings, model)
    return folder, download(bare_name(model), folder, on_progress)


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
    if settings.embed_model == WORDS_ONLY:
        return None, f"MEMCHAT_EMBED_MODEL={WORDS_ONLY}: searched by words only"
    try:
        found = embedder(settings)
    except ServiceError:
        raise
    except ConfigError as error:
        return None, f"searched by words only: {error}"
    if found is None:
        from memchat.providers.minilm_embedder import FETCH

        return None, f"searched by words only: the MiniLM weights are missing; {FETCH}"
    return found, None


def damaged_weights(embedder: Embedder) -> str | None:
    """What is wrong with the weights of a built-in model, all of them read; None if nothing."""
    from memchat.providers.minilm_embedder import MiniLMEmbedder

    if isinstance(embedder, MiniLMEmbedder):
        try:
            embedder.verify()
        except ConfigError as error:
            return str(error)
    return None
