"""A provider's service for tests of the app: what it answers is scripted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.wire import OpenAIServer


@pytest.fixture
def service() -> Iterator[OpenAIServer]:
    """Answers what it is told to, in turn."""
    with OpenAIServer() as found:
        yield found


@pytest.fixture
def service_models(service: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings by which the service answers and reads."""
    monkeypatch.setenv("OPENAI_API_KEY", service.key)
    monkeypatch.setenv("OPENAI_BASE_URL", service.base)
    both = ("MEMCHAT_CHAT_MODEL", "MEMCHAT_EXTRACT_MODEL")
    return dict.fromkeys(both, "openai/gpt-test")
