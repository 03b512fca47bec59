"""Embedding services and the packages that bring them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memchat.errors import ServiceError

CHUNK_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class Service:
    """An embedding service; every vector belongs to one, and vectors of two are never compared.

    ``floor`` is the cosine below which a memory says nothing for this model, ``message_floor`` the
    same for a message; ``cosine_weight`` is the part of the cosine in a score, the rest is that of
    the words; ``local`` tells that a call costs no network. ``chunking_max_tokens`` is the most
    that one chunk of a long text may have, never more than the model reads (``max_tokens``).
    Raises ServiceError for sizes that cannot be.
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
    """0 for 2,000, or as many as the model reads."""

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
        """``provider/model``, as settings and messages give it."""
        return f"{self.provider}/{self.model}"

    def same_space(self, other: Service | None) -> bool:
        """Whether vectors of the two may be compared; with none, they may not."""
        if other is None:
            return False
        mine = (self.provider, self.model, self.version, self.dimensions)
        return mine == (other.provider, other.model, other.version, other.dimensions)


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """A service that a store knows, and how much it has of its vectors."""

    id: int
    name: str
    provider: str
    model: str
    version: str
    dimensions: int
    max_tokens: int
    state: str
    """in use; coming, while its vectors are made beside those in use; or kept."""
    vectors: int
    lacking: int
    """Texts that search is to find and that have no vector of it yet."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """An embedding provider that another package brings."""

    name: str
    package: str
    version: str
