"""The embedding service that searches by meaning, and whether it may be asked while one types."""

from __future__ import annotations

from memchat.config.providers import HASH, WORDS_ONLY, runs_locally
from ui import components as ui


def name() -> str:
    """The service in use, or the one that will be."""
    mc = ui.desk().mc
    if mc.settings.embed_model == WORDS_ONLY:
        return WORDS_ONLY
    used = (one.name for one in mc.services.list() if one.state == "in use")
    return next(used, mc.settings.embed_model)


def is_remote(service: str) -> bool:
    """Whether a search costs something, and tells another machine its words."""
    return service not in (HASH, WORDS_ONLY) and not runs_locally(service)
