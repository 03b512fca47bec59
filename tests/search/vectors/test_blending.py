"""A turn's vector with some of its neighbours', in their own conversation alone."""

from __future__ import annotations

import numpy as np

from memchat.search.embeddings import SHARE
from memchat.search.vector_index import blend_neighbours

EAST, NORTH = np.eye(2, dtype="<f4")


def test_a_turn_takes_some_of_its_neighbour_and_none_of_another_conversation_s() -> None:
    turns = [
        (1, 1, True, EAST.tobytes()),
        (2, 1, False, NORTH.tobytes()),
        (3, 2, True, EAST.tobytes()),
    ]
    ids, vectors = blend_neighbours(turns, 2)
    near = np.array([1, SHARE]) / np.linalg.norm([1, SHARE])
    assert ids == [1, 3]
    assert np.allclose(vectors, [near, EAST])
