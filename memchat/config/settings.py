"""The settings, each with its variable, its default and the values it takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from memchat.config import parsing
from memchat.config.addresses import asked_where, redirect_warnings
from memchat.config.keys import Keys
from memchat.config.model_defaults import MINILM, OFFLINE_CHAT, OFFLINE_EXTRACT

RETRY_MINUTES = (1.0, 2.0, 4.0, 8.0, 16.0)
HOME = "MEMCHAT_HOME"


def _setting(variable: str, default: object, parse: parsing.Parser = parsing.text) -> Any:
    """A field that the variable sets; ``parse`` reads and checks the variable's text."""
    return field(default=default, metadata={"variable": variable, "parse": parse})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every choice a person can make, with its default."""

    home: Path = field(metadata={"variable": HOME, "parse": parsing.folder})
    """MEMCHAT_HOME: the data folder."""
    chat_model: str = _setting("MEMCHAT_CHAT_MODEL", OFFLINE_CHAT)
    """MEMCHAT_CHAT_MODEL: a litellm model name, e.g. ``ollama/llama3.2``."""
    extract_model: str = _setting("MEMCHAT_EXTRACT_MODEL", OFFLINE_EXTRACT)
    """MEMCHAT_EXTRACT_MODEL: the cheap model that extracts memories from an ended session."""
    transcribe_model: str | None = _setting("MEMCHAT_TRANSCRIBE_MODEL", None)
    """MEMCHAT_TRANSCRIBE_MODEL: the model that writes down what is said in audio files, e.g.
    ``openai/whisper-1``; without it they cannot be notes."""
    embed_model: str = _setting("MEMCHAT_EMBED_MODEL", MINILM)
    """MEMCHAT_EMBED_MODEL: ``minilm``, ``gemini/…``, ``openai/…``, ``fastembed/…``, or ``none``
    (keyword search only)."""
    embed_dimensions: int | None = _setting(
        "MEMCHAT_EMBED_DIMENSIONS", None, parsing.whole(1, 100_000)
    )
    """MEMCHAT_EMBED_DIMENSIONS: the length of its vectors, for a model memchat does not know."""
    embed_max_tokens: int | None = _setting(
        "MEMCHAT_EMBED_MAX_TOKENS", None, parsing.whole(1, 10_000_000)
    )
    """MEMCHAT_EMBED_MAX_TOKENS: the most tokens such a model reads in one text."""
    models: Path | None = _setting("MEMCHAT_MODELS", None, parsing.folder)  # noqa: RUF009  (a field)
    """MEMCHAT_MODELS: the folder of the models for fastembed, each below its name; the default is
    ``models`` in the data folder."""
    timezone: str = _setting("MEMCHAT_TIMEZONE", "UTC")
    """MEMCHAT_TIMEZONE: the zone that days are counted in and times are shown in."""
    extraction: str = _setting(
        "MEMCHAT_EXTRACTION", "session", parsing.one_of("session", "per_message")
    )
    """MEMCHAT_EXTRACTION: ``session`` (at its end) or ``per_message`` (after each reply)."""
    top_k: int = _setting("MEMCHAT_TOP_K", 5, parsing.whole(0, 100))
    """MEMCHAT_TOP_K: where not all facts fit, this many of those found for the message come after
    the pinned ones and before all others."""
    budget_tokens: int = _setting("MEMCHAT_BUDGET", 1000, parsing.whole(0, 100_000))
    """MEMCHAT_BUDGET: the most tokens (estimated) that the memory block in the prompt may have."""
    pinned_tokens: int = _setting("MEMCHAT_PINNED", 300, parsing.whole(0, 100_000))
    """MEMCHAT_PINNED: where not all facts fit, the most of these tokens for pinned ones, profile
    and preferences."""
    ranking: str = _setting("MEMCHAT_RANKING", "weighted", parsing.one_of("weighted", "rrf"))
    """MEMCHAT_RANKING: ``weighted`` (cosine and keyword scores) or ``rrf`` (reciprocal ranks of
    both)."""
    recall_notes: bool = _setting("MEMCHAT_RECALL_NOTES", True, parsing.switch)
    """MEMCHAT_RECALL_NOTES: ``off`` gives no chat a passage of the person's notes; else it is given
    those that fit the message, up to 300 tokens."""
    merge_threshold: float = _setting("MEMCHAT_MERGE_THRESHOLD", 0.92, parsing.number(0, 1.01))
    """MEMCHAT_MERGE_THRESHOLD: the cosine from which two facts may be merged, if nothing else
    speaks against it."""
    timeout: float = _setting("MEMCHAT_TIMEOUT", 60.0, parsing.number(0.1, 3600))
    """MEMCHAT_TIMEOUT: seconds to wait for a provider."""
    embed_patience: float = _setting("MEMCHAT_EMBED_PATIENCE", 0.15, parsing.number(0, 600))
    """MEMCHAT_EMBED_PATIENCE: seconds a reply waits for its question's embedding; after that it
    uses keyword search only, and says so where that chose among more facts than fit."""
    embed_per_minute: int = _setting("MEMCHAT_EMBED_PER_MINUTE", 3_000, parsing.whole(1, 1_000_000))
    """MEMCHAT_EMBED_PER_MINUTE: requests a minute to an embedding provider; those above it wait."""
    retry_minutes: tuple[float, ...] = _setting(
        "MEMCHAT_RETRY_MINUTES", RETRY_MINUTES, parsing.minutes
    )
    """MEMCHAT_RETRY_MINUTES: how long failed work waits before each further try; after the last it
    is given up."""
    context_tokens: int | None = _setting("MEMCHAT_CONTEXT", None, parsing.whole(256, 10_000_000))
    """MEMCHAT_CONTEXT: the chat model's window in tokens, where litellm does not know it."""
    idle_minutes: int = _setting("MEMCHAT_IDLE_MINUTES", 30, parsing.whole(1, 10_000))
    """MEMCHAT_IDLE_MINUTES: a session without a message for so long, whose lease has run out, is
    ended."""
    mask_before_extraction: bool = _setting("MEMCHAT_MASK", False, parsing.switch)
    """MEMCHAT_MASK: ``on`` hides secrets from the extraction model too, each behind the name of its
    kind."""
    verify: str = _setting("MEMCHAT_VERIFY", "always", parsing.one_of("always", "auto", "off"))
    """MEMCHAT_VERIFY: ``always`` has the extraction model check once more what a conversation
    taught, before it is stored; ``auto`` only where words nearby may change its meaning; ``off``
    never, and what is doubtful waits for the user."""
    filter_pinned: bool = _setting("MEMCHAT_FILTER", False, parsing.switch)
    """MEMCHAT_FILTER: ``on`` has the extraction model choose among more than 50 pinned facts."""
    log: str = _setting("MEMCHAT_LOG", "info", parsing.one_of("off", "warning", "info", "debug"))
    """MEMCHAT_LOG: how much the commands write to ``memchat.log`` in the data folder: nothing,
    what failed, also what was done, or also each call of a model."""
    why: Mapping[str, str] = field(default_factory=dict)
    """For each model setting, why it has its value."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """For each variable that is set, where it stands: the environment, or which file."""
    addresses: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables that name another address for a provider (OPENAI_BASE_URL …), with it."""
    keys: Keys = field(default_factory=Keys)
    """The providers' keys; it shows their names alone."""

    @property
    def zone(self) -> ZoneInfo:
        """The user's zone."""
        return ZoneInfo(self.timezone)

    def redirect_warnings(self) -> list[str]:
        """A sentence for each address that is not the provider's own and that messages go to."""
        models = (self.chat_model, self.extract_model, self.embed_model, self.transcribe_model)
        return redirect_warnings(self.addresses, filter(None, models))

    def models_line(self) -> str:
        """The models and where each is asked, in one line."""
        models = {
            "chat": self.chat_model,
            "reading": self.extract_model,
            "vectors": self.embed_model,
        }
        if self.transcribe_model is not None:
            models["audio"] = self.transcribe_model
        asked = (f"{use}: {asked_where(self.addresses, name)}" for use, name in models.items())
        return "; ".join(asked)

    def with_(self, **changes: object) -> Settings:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


_FIELDS = {one.metadata["variable"]: one for one in dataclasses.fields(Settings) if one.metadata}
VARIABLES = {one.name: variable for variable, one in _FIELDS.items()}
"""The fields that a variable sets, and the variable of each."""


def parse(values: Mapping[str, str]) -> dict[str, Any]:
    """The fields that ``values`` sets, by name. Raises ConfigError naming the variable that cannot
    be used."""
    return {
        one.name: one.metadata["parse"](variable, values[variable])
        for variable, one in _FIELDS.items()
        if variable in values
    }
