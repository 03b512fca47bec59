"""Speech to text through litellm."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from memchat.config.keys import Keys
from memchat.providers import Completion
from memchat.providers.api_keys import find_key
from memchat.providers.litellm_setup import LOCAL, call_errors, litellm, request_options
from memchat.providers.provider_errors import CallContext, translate
from memchat.types import Usage, clean_text

REMEDY = "unset MEMCHAT_TRANSCRIBE_MODEL to leave audio out"
_PATIENCE = 10
"""An hour of speech takes minutes: so many times the usual timeout is waited."""


class LiteLLMTranscriber:
    """A ``Transcriber`` over ``litellm.transcription``. Safe to use from several threads.

    ``timeout`` is that of other models in seconds, ``api_base`` the provider's address where it is
    not the usual one, ``keys`` those of files.
    """

    def __init__(
        self, model: str, *, timeout: float, api_base: str | None = None, keys: Keys | None = None
    ) -> None:
        self._model = model
        self._timeout = timeout * _PATIENCE
        self._api_base = api_base
        self._keys = keys or Keys()

    def transcribe(self, name: str, data: bytes) -> Completion:
        """The words of an audio file; ``name`` tells the provider its format by the ending. The
        text is empty where nothing is said.

        Makes one request. Raises ProviderError, ConfigError for a missing key.
        """
        key = find_key(self._model, self._keys, REMEDY)
        options = request_options(self._model, self._timeout, key, self._api_base)
        module = litellm()
        from memchat.providers.bounded_call import BoundedCall

        started = time.perf_counter()
        try:
            with BoundedCall(self._model, self._timeout):
                answer = module.transcription(file=(name, data), **options)
        except call_errors() as error:
            raise translate(error, CallContext(self._model, self._timeout, self._keys)) from error
        spent = time.perf_counter() - started
        return Completion(clean_text(answer.text or "").strip(), self._usage(answer, spent))

    def _usage(self, answer: Any, seconds: float) -> Usage:
        seen = getattr(answer, "usage", None)
        sent, came = (
            int(getattr(seen, name, 0) or 0) for name in ("input_tokens", "output_tokens")
        )
        return Usage("transcribe", self._model, sent, came, self._cost(answer), seconds)

    def _cost(self, answer: Any) -> float | None:
        """What it cost in US dollars; None where neither its length nor its tokens are told."""
        if self._model.startswith(LOCAL):
            return 0.0
        module = litellm()
        with suppress(module.exceptions.ModelNotMappedError, ValueError, *call_errors()):
            return (
                module.completion_cost(answer, model=self._model, call_type="transcription") or None
            )
        return None
