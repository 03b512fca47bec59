"""Fixtures that several test files of this folder use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.chat_providers import KEY
from tests.support.wire import GeminiServer, OpenAIServer, WireServer


@pytest.fixture(params=[OpenAIServer, GeminiServer], ids=["openai", "gemini"])
def server(request: pytest.FixtureRequest) -> Iterator[WireServer]:
    with request.param(key=KEY) as running:
        yield running


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    with OpenAIServer(key=KEY) as running:
        yield running


@pytest.fixture
def gemini() -> Iterator[GeminiServer]:
    with GeminiServer(key=KEY) as running:
        yield running
