"""Facts to search, and what is found."""

from __future__ import annotations

from memchat.errors import ProviderError
from memchat.providers.hash_embedder import HashEmbedder


def fill(mc, *facts, user="ana", **where):
    for kind, key, value in facts:
        mc.add(kind, key, value, user=user, **where)
    mc.embed_pending()


class Down(HashEmbedder):
    def embed_query(self, text):
        raise ProviderError("the embedder is down")

    def embed_documents(self, texts):
        raise ProviderError("the embedder is down")
