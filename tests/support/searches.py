"""Facts to search, and what is found."""

from __future__ import annotations

from memchat.errors import ProviderError
from memchat.providers.embedders import HashEmbedder


def fill(mc, *facts, user="ana", app="default", **more):
    for kind, key, value in facts:
        mc.user(user, app=app).memories.add(kind, key, value, **more)
    mc.jobs.embed()


class Down(HashEmbedder):
    def embed_query(self, text):
        raise ProviderError("the embedder is down")

    def embed_documents(self, texts):
        raise ProviderError("the embedder is down")
