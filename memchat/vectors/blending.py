"""Blending the vector of a turn with its neighbours', so that "yes, that one" can be found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

SHARE = 0.25
"""The weight of the turns right before and after; the turn itself has 1."""


def blend_neighbours(
    turns: Sequence[tuple[int, int, bool, bytes | None]], dimensions: int
) -> tuple[list[int], Vectors]:
    """Ids and blended unit vectors, shape (n, dimensions), of the user's turns that have a vector.

    ``turns`` are whole conversations in order, each turn as (id, session id, whether it is the
    user's, vector or None). Replies are blended in but are not in the result.
    """
    import numpy as np

    if not turns:
        return [], np.zeros((0, dimensions), np.float32)
    blank = bytes(4 * dimensions)
    own = np.frombuffer(b"".join(turn[3] or blank for turn in turns), "<f4")
    own = own.reshape(len(turns), dimensions)
    sessions = np.array([turn[1] for turn in turns])
    together = (sessions[1:] == sessions[:-1])[:, None] * np.float32(SHARE)
    mixed = own.copy()
    mixed[1:] += together * own[:-1]
    mixed[:-1] += together * own[1:]
    kept = [n for n, turn in enumerate(turns) if turn[2] and turn[3] is not None]
    chosen = mixed[kept]
    chosen /= np.linalg.norm(chosen, axis=1, keepdims=True)
    return [turns[n][0] for n in kept], chosen.astype(np.float32)
