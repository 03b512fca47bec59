"""An embedder of your own: any object with the three members of ``memchat.Embedder``.

This one counts the letters of a text, which is enough to show the interface. A package can also
register its embedder for everybody, under the entry point group ``memchat.embeddings``; see
docs/embedding.md. It prints::

    example/letters: 26 dimensions
    best hit: [preference] drinks: green tea
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

from memchat import MemChat, Usage
from memchat.types import Service


class LetterEmbedder:
    """Turns a text into a unit vector of its letter counts."""

    service = Service("example", "letters", dimensions=26, max_tokens=100_000, local=True)

    def embed_documents(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
        """One unit vector for each text, shape (n, 26), and what it took."""
        rows = [[text.lower().count(letter) for letter in ascii_lowercase] for text in texts]
        vectors = np.array(rows, np.float32) + np.float32(0.01)  # a zero vector is refused
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        tokens = sum(len(text.split()) for text in texts)
        return vectors, Usage("embed", self.service.name, tokens, 0, 0.0, 0.0)

    def embed_query(self, text: str) -> tuple[NDArray[np.float32], Usage]:
        """The question's unit vector, shape (26,)."""
        vectors, usage = self.embed_documents([text])
        return vectors[0], usage


def main() -> None:
    """Search with the embedder."""
    with tempfile.TemporaryDirectory() as folder, MemChat(folder, embedder=LetterEmbedder()) as mc:
        ana = mc.user("ana")
        ana.memories.add("preference", "drinks", "green tea")
        ana.memories.add("profile", "city", "Porto")
        mc.jobs.embed()
        for info in mc.services.list():
            print(f"{info.name}: {info.dimensions} dimensions")
        best = ana.search("Which drinks do I like?").hits[0]
        print(f"best hit: {best.text.partition(' (')[0]}")


if __name__ == "__main__":
    main()
