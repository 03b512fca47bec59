"""Sizes of well-known embedding models: the length of their vectors and the tokens they read."""

from __future__ import annotations

from memchat.errors import ServiceError

KNOWN: dict[str, tuple[int, int]] = {
    "text-embedding-3-small": (1536, 8191),
    "text-embedding-3-large": (3072, 8191),
    "text-embedding-ada-002": (1536, 8191),
    "mistral-embed": (1024, 8192),
    "nomic-embed-text": (768, 2048),
    "mxbai-embed-large": (1024, 512),
    "bge-m3": (1024, 8192),
    "all-minilm": (384, 256),
}
"""Dimensions and tokens read, by the name after the last slash. The other embedders know the sizes
of Gemini's and of local models."""


def model_sizes(model: str, dimensions: int | None, max_tokens: int | None) -> tuple[int, int]:
    """Dimensions and tokens of a model: as known, else as given.

    Raises ServiceError for an unknown model whose sizes were not given, and for given dimensions
    that a known model does not have: vectors of a wrong length would be refused one by one.
    """
    known = KNOWN.get(model.rpartition("/")[2].removesuffix(":latest"))
    if known is None and (dimensions is None or max_tokens is None):
        raise ServiceError(
            f"memchat does not know {model}: say how long its vectors are and how many tokens it "
            "reads, with MEMCHAT_EMBED_DIMENSIONS and MEMCHAT_EMBED_MAX_TOKENS (or, changing to "
            "it, with --dimensions and --max-tokens)"
        )
    if known is not None and dimensions not in (None, known[0]):
        raise ServiceError(
            f"the vectors of {model} have {known[0]} numbers, not {dimensions}; unset "
            "MEMCHAT_EMBED_DIMENSIONS"
        )
    length = known[0] if known else dimensions
    reads = max_tokens or (known[1] if known else None)
    assert length is not None and reads is not None
    return length, reads
