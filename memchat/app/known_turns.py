"""Which turns of a conversation are known, when another program sends it or a part of it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher


@dataclass(frozen=True, slots=True)
class KnownTurns:
    """The turns that were sent, compared with those that were known before, all as hashes."""

    new: tuple[int, ...]
    """The places of the turns that were not known, among those that were sent."""
    hashes: tuple[str, ...]
    """All turns that are known from now on, in the order of the conversation."""

    @classmethod
    def of(cls, before: Sequence[str], sent: Sequence[str]) -> KnownTurns:
        """Compare the turns that were sent with those that were known before."""
        new: list[int] = []
        hashes: list[str] = []
        a = b = 0
        for match in (*_matches(before, sent), Match(len(before), len(sent), 0)):
            new += range(b, match.b)
            hashes += [*before[a : match.a], *sent[b : match.b + match.size]]
            a, b = match.a + match.size, match.b + match.size
        return cls(tuple(new), tuple(hashes))


def _matches(before: Sequence[str], sent: Sequence[str]) -> list[Match]:
    """The parts of what was sent that were known before."""
    most = min(len(before), len(sent))
    overlap = next((n for n in range(most, 0, -1) if before[-n:] == sent[:n]), 0)
    if overlap:
        return [Match(len(before) - overlap, 0, overlap)]
    # An earlier turn was changed, or replaced by a summary. One equal turn alone is no sign of
    # that, as people say the same thing twice; but the first turn is, where more turns follow.
    found = SequenceMatcher(None, before, sent, autojunk=False).get_matching_blocks()[:-1]
    same_start = bool(found) and found[0].a == found[0].b == 0 and len(sent) > 1
    return found if same_start or sum(match.size for match in found) > 1 else []
