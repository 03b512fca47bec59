"""litellm, imported late and kept quiet: it takes seconds to import and likes to call home."""

from __future__ import annotations

import functools
import logging
import os
import threading
import warnings
from collections.abc import Iterable, Iterator
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


class FinishDetector:
    """Whether a streamed reply came to the end that its provider gave it.

    litellm makes up a reason to stop where none came. For most providers its own notes tell that
    apart; what Gemini sends has to be looked at before litellm reads it.
    """

    def __init__(self, wrapper: Any) -> None:
        self._wrapper = wrapper
        self._of_gemini: bool | None = None
        call = getattr(wrapper, "make_call", None)
        if call is not None:
            wrapper.make_call = lambda **given: self._watched(call(**given))

    @property
    def came(self) -> bool:
        """Whether it did, as far as the stream was read."""
        if self._of_gemini is not None:
            return self._of_gemini
        notes = ("received_finish_reason", "intermittent_finish_reason")
        return any(getattr(self._wrapper, name, None) for name in notes)

    def _watched(self, stream: Any) -> Any:
        if type(stream).__module__.startswith("litellm.llms.vertex_ai.gemini"):
            self._of_gemini = False
            stream.streaming_response = self._lines(stream.streaming_response)
        return stream

    def _lines(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            self._of_gemini = self._of_gemini or '"finishReason"' in line
            yield line


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


def cost_usd(
    model: str, prompt_tokens: int, completion_tokens: int, seen: Any = None
) -> float | None:
    """What a call cost in US dollars by litellm's bundled price list, None where it has no price.

    ``seen`` is litellm's own usage record where there is one: it tells cached tokens apart.
    """
    if model.startswith(LOCAL):
        return 0.0
    module = litellm()
    total = prompt_tokens + completion_tokens
    usage = seen or module.Usage(prompt_tokens, completion_tokens, total)
    try:
        info = module.get_model_info(model)
        spent = sum(module.cost_per_token(model=model, usage_object=usage))
    except (module.exceptions.ModelNotMappedError, ValueError, *call_errors()):
        return None
    free = not info.get("input_cost_per_token") and not info.get("output_cost_per_token")
    return None if free else float(spent)  # a price of nothing stands for "not listed"
