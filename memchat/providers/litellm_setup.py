"""Importing litellm late, as that takes seconds, and without its output and network calls."""

from __future__ import annotations

import functools
import logging
import os
import threading
import warnings
from typing import Any

LOCAL = ("offline/", "ollama/", "ollama_chat/")
"""Local models: they are free, and litellm would call Ollama for information about them."""


def litellm() -> Any:
    """The litellm module: without downloads at import and without printing."""
    with _loading:  # or a second thread may get a half-imported module
        module = _load()
    # Set again at each call, since a test runner resets filters. The user can do nothing about
    # litellm's deprecations and pydantic's warnings.
    warnings.filterwarnings("ignore", module=r"(litellm|pydantic)\b")
    return module


_loading = threading.Lock()


@functools.cache
def _load() -> Any:
    # Otherwise it loads the .env of the working folder or of one above it.
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # may contain what users wrote
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm as imported

    module: Any = imported
    module.suppress_debug_info = True
    module.turn_off_message_logging = True
    module.telemetry = False
    module.disable_streaming_logging = True  # else it starts a thread for each chunk
    # Else counting the tokens of a reply asks a model hub for the tokenizer of a Llama.
    module.disable_hf_tokenizer_download = True
    module.DEFAULT_MAX_RETRIES = 0  # its embeddings read max_retries=0 as "not given"
    return module


def request_options(
    model: str, timeout: float, key: str | None, api_base: str | None
) -> dict[str, Any]:
    """The options of a request beside its content; ``timeout`` is in seconds."""
    options: dict[str, Any] = {
        "model": model,
        "timeout": timeout,
        "num_retries": 0,  # litellm and the SDK below it both have retries
        "max_retries": 0,
        "drop_params": True,
    }
    given = {"api_key": key, "api_base": api_base}
    return options | {name: value for name, value in given.items() if value}


@functools.cache
def register_stand_in() -> None:
    """Make the offline stand-in callable through litellm."""
    from memchat.providers.offline import register

    register(litellm())


@functools.cache
def gemini_client(timeout: float) -> Any:
    """A client that is kept, as litellm makes one for each stream from Gemini."""
    litellm()
    from litellm.llms.custom_httpx.http_handler import HTTPHandler

    return HTTPHandler(timeout=timeout)


def preload() -> None:
    """Import litellm in a daemon thread, so that the first reply need not wait for it."""
    threading.Thread(target=litellm, name="memchat-warm", daemon=True).start()


@functools.cache
def call_errors() -> tuple[type[Exception], ...]:
    """The exceptions that a call through litellm may raise."""
    litellm()  # whole, also where ``preload`` is importing it just now
    import httpx
    import openai
    from litellm.llms.base_llm.chat.transformation import BaseLLMException

    return (openai.OpenAIError, httpx.HTTPError, httpx.StreamError, BaseLLMException)
