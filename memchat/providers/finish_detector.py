"""Telling a finished reply from one that broke off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class FinishDetector:
    """Whether the provider sent a finish reason for a streamed reply.

    litellm invents one where none came. Its own fields show that for most providers; for Gemini the
    lines are searched before litellm parses them.
    """

    def __init__(self, wrapper: Any) -> None:
        self._wrapper = wrapper
        self._gemini_finished: bool | None = None
        call = getattr(wrapper, "make_call", None)
        if call is not None:
            wrapper.make_call = lambda **given: self._watched(call(**given))

    @property
    def finished(self) -> bool:
        """Whether a finish reason came, as far as the stream was read."""
        if self._gemini_finished is not None:
            return self._gemini_finished
        fields = ("received_finish_reason", "intermittent_finish_reason")
        return any(getattr(self._wrapper, name, None) for name in fields)

    def _watched(self, stream: Any) -> Any:
        if type(stream).__module__.startswith("litellm.llms.vertex_ai.gemini"):
            self._gemini_finished = False
            stream.streaming_response = self._lines(stream.streaming_response)
        return stream

    def _lines(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            self._gemini_finished = self._gemini_finished or '"finishReason"' in line
            yield line
