"""How long chunks are for the model that embeds them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memchat.errors import ServiceError
from memchat.notes.chunking import DOCUMENT, MEMO, Profile, effective_profile
from memchat.types import Service

SMALL = Service("minilm", "all-MiniLM-L6-v2", 384, 256)
LARGE = Service("openai", "text-embedding-3-small", 1536, 8_191)
CHOSEN = Service("openai", "text-embedding-3-small", 1536, 8_191, chunking_max_tokens=800)


@pytest.mark.parametrize(
    ("default", "service", "expected"),
    [
        (MEMO, LARGE, Profile(500, 50)),
        (DOCUMENT, LARGE, Profile(2_000, 0)),
        (MEMO, SMALL, Profile(256, 50)),
        (DOCUMENT, SMALL, Profile(256, 0)),
        (MEMO, CHOSEN, Profile(500, 50)),
        (DOCUMENT, CHOSEN, Profile(800, 0)),
        (MEMO, Service("tiny", "model", 8, 100), Profile(100, 25)),
    ],
)
def test_the_defaults_shrink_to_what_the_service_takes(default, service, expected):
    assert effective_profile(default, service) == expected


def test_a_size_above_what_the_model_reads_is_refused_and_both_are_named():
    with pytest.raises(ServiceError, match=r"9000, but openai/text-embedding-3-small reads 8191"):
        replace(LARGE, chunking_max_tokens=9_000)
