"""Embedding services and the packages that bring them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memchat.errors import ServiceError

CHUNK_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class Service:
    """An embedding service. Every vector belongs to one, and vectors of two are never compared.

    ``floor`` is the cosine below which a memory does not count as similar for this model,
    ``message_floor`` the same for messages. ``cosine_weight`` is the part of the cosine in a score;
    keywords have the rest. ``local`` means that a call needs no network. ``chunking_max_tokens`` is
    the size of the chunks of a long text, at most what the model reads (``max_tokens``).

    Raises ServiceError for impossible sizes.
    """

    provider: str
    model: str
    dimensions: int
    max_tokens: int
    version: str = ""
    floor: float = 0.3
    message_floor: float = 0.3
    cosine_weight: float = 0.7
    local: bool = False
    chunking_max_tokens: int = 0
    """0 for 2,000, or for what the model reads if that is less."""

    def __post_init__(self) -> None:
        if min(self.dimensions, self.max_tokens, self.chunking_max_tokens + 1) < 1:
            raise ServiceError(
                f"{self.name} cannot have {self.dimensions} dimensions, read {self.max_tokens} "
                f"tokens and chunks of {self.chunking_max_tokens}; give numbers above 0"
            )
        if self.chunking_max_tokens > self.max_tokens:
            raise ServiceError(
                f"chunking_max_tokens is {self.chunking_max_tokens}, but {self.name} reads "
                f"{self.max_tokens} tokens; give at most that"
            )
        if not self.chunking_max_tokens:
            object.__setattr__(self, "chunking_max_tokens", min(CHUNK_TOKENS, self.max_tokens))

    @property
    def name(self) -> str:
        """``provider/model``, as in settings and messages."""
        return f"{self.provider}/{self.model}"

    def same_space(self, other: Service | None) -> bool:
        """Whether vectors of the two services may be compared; never if ``other`` is None."""
        if other is None:
            return False
        mine = (self.provider, self.model, self.version, self.dimensions)
        return mine == (other.provider, other.model, other.version, other.dimensions)


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """A service that a store knows, and how many of its vectors there are."""

    id: int
    name: str
    provider: str
    model: str
    version: str
    dimensions: int
    max_tokens: int
    state: str
    """in use, coming (its vectors are being made), or kept."""
    vectors: int
    lacking: int
    """How many texts have no vector of it yet."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """An embedding provider of another package."""

    name: str
    package: str
    version: str
