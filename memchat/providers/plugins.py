"""Embedding providers of other packages, found by the entry point group ``memchat.embeddings``.

A package says in its ``pyproject.toml``

    [project.entry-points."memchat.embeddings"]
    acme = "acme_vectors:make"

and ``MEMCHAT_EMBED_MODEL=acme/any-name`` then calls ``make("any-name")`` for a ``Provider``. Before
that nothing of it is imported. memchat cuts long texts, splits batches, checks what comes back,
brings it to length one and stores it; a provider only makes vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Protocol

from memchat.errors import ConfigError
from memchat.types import PluginInfo

if TYPE_CHECKING:
    pass

GROUP = "memchat.embeddings"


class Provider(Protocol):
    """What an entry point's function gives for a model's name. It is called from several threads.

    It may also have ``version`` (a text; a changed one makes it another service, for example when
    a prefix changes), ``batch`` (texts in one call, else 100) and ``local`` (true if no call leaves
    this machine). Of an error it raises only the class is shown, except for memchat's own errors;
    ProviderError says whether and when to try again.
    """

    dimensions: int
    max_tokens: int

    def embed(self, texts: Sequence[str], *, question: bool) -> Sequence[Sequence[float]]:
        """One vector of ``dimensions`` numbers a text, in the order given."""
        ...


def listed() -> list[PluginInfo]:
    """The installed providers, sorted by name. Imports none of them."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return [package_of(point) for point in points]


def find(provider: str) -> EntryPoint | None:
    """The entry point of a provider. Raises ConfigError where two packages bring one."""
    found = list(entry_points(group=GROUP, name=provider))
    if len(found) > 1:
        packages = " and ".join(sorted(package_of(point).package for point in found))
        raise ConfigError(f"both {packages} bring the provider {provider}; uninstall one of them")
    return found[0] if found else None


def package_of(point: EntryPoint) -> PluginInfo:
    """The package that declares an entry point, with its version."""
    made_by = point.dist
    if made_by is None:
        return PluginInfo(point.name, point.value, "")
    return PluginInfo(point.name, made_by.name, made_by.version)
