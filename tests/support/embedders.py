"""Embedders that fail."""

from __future__ import annotations

from typing import Any

from memchat.errors import ProviderError
from memchat.providers.embedders import HashEmbedder
from memchat.types import Usage


class Down(HashEmbedder):
    def embed_query(self, text: str) -> tuple[Any, Usage]:
        raise ProviderError("the service is down")
