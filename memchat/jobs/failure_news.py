"""Which failures of the embedding service are new: an outage is logged once, however many notes
wait for its end."""

from __future__ import annotations


class FailureNews:
    """The reasons for which texts could not be embedded since the last one that could."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def is_new(self, reason: str) -> bool:
        """Whether this reason was not given before; from now on it was."""
        new = reason not in self._known
        self._known.add(reason)
        return new

    def end(self) -> None:
        """A text was embedded: the next failure is new again."""
        self._known.clear()
