"""Keys and shapes for chat models on the wire."""

from __future__ import annotations

import pytest

from memchat.errors import ConfigError, ProviderError
from tests.support.wire import WireServer
from tests.support.wire.case import HELLO, chat_of

KEY = "test-key-8d1f0a77c2"


def failure(server: WireServer, *, streamed: bool, timeout: float = 10) -> Exception:
    """The error of one call, in either way of calling; it must be one clean line."""
    model = chat_of(server, timeout=timeout)
    with pytest.raises((ProviderError, ConfigError)) as caught:
        if streamed:
            list(model.stream(HELLO))
        else:
            model.complete(HELLO, purpose="extract")
    message = str(caught.value)
    assert KEY not in message
    assert "\n" not in message
    assert "Traceback" not in message
    assert "litellm." not in message
    assert len(message) < 300
    assert model.name in message
    assert len(server.requests) == 1
    return caught.value
