"""litellm, imported late and kept quiet: it takes seconds to import and likes to call home."""

from __future__ import annotations

import functools
import logging
import os
import threading
import warnings
from typing import Any

LOCAL = ("offline/", "ollama/", "ollama_chat/")
"""Models on this machine: they cost nothing, and litellm would ask Ollama itself about them."""


def litellm() -> Any:
    """The module, set up: no downloads at import, no printing, the offline provider known."""
    with _loading:  # two threads that import it at once find half a module
        module = _load()
    # Said again at each call, since a test runner forgets filters: litellm's own deprecations and
    # pydantic's remarks on its types are nothing a person can act on.
    warnings.filterwarnings("ignore", module=r"(litellm|pydantic)\b")
    return module


_loading = threading.Lock()


@functools.cache
def _load() -> Any:
    # Else it reads the .env of the working folder, or of one above it, into the environment.
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # its lines may hold people's words
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm as imported

    from memchat.providers.offline import register

    module: Any = imported
    module.suppress_debug_info = True
    module.turn_off_message_logging = True
    module.telemetry = False
    module.disable_streaming_logging = True  # a thread for each chunk, for callbacks nobody has
    module.DEFAULT_MAX_RETRIES = 0  # its embeddings read max_retries=0 as "not given"
    register(module)
    return module


@functools.cache
def gemini_client(timeout: float) -> Any:
    """litellm forgets the timeout when it streams from Gemini; that of its client holds."""
    litellm()
    from litellm.llms.custom_httpx.http_handler import HTTPHandler

    return HTTPHandler(timeout=timeout)


def preload() -> None:
    """Start the import in a daemon thread, so that the first reply does not wait for it."""
    threading.Thread(target=litellm, name="memchat-warm", daemon=True).start()


@functools.cache
def call_errors() -> tuple[type[Exception], ...]:
    """What a call through litellm may raise."""
    import httpx
    import openai
    from litellm.llms.base_llm.chat.transformation import BaseLLMException

    return (openai.OpenAIError, httpx.HTTPError, httpx.StreamError, BaseLLMException)
