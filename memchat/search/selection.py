"""Which rows a search by vector may find."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """All rows, or those of ``only``, and never one of ``without``."""

    only: Collection[int] | None = None
    without: Collection[int] = ()

    @property
    def everything(self) -> bool:
        """Whether it leaves no row out."""
        return self.only is None and not self.without

    def ids(self) -> tuple[list[int], bool]:
        """Ids, and whether these are the ones that may be found; else all others may be."""
        if self.only is None:
            return sorted(self.without), False
        return sorted(set(self.only).difference(self.without)), True


EVERYTHING = Selection()
