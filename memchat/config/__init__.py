"""Settings: one place for every default.

Read from the environment, a file that was named with ``--env-file``, and ``settings.toml`` and
``keys.toml`` in the data folder, in this order (``sources``). A model that is not named is chosen
from the keys that are set; what was chosen and why is kept, so that a face can show it. Nothing is
read at import and nothing here touches the network.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memchat.config.addresses import redirect_warnings
from memchat.config.keys import ENVIRONMENT, Keys
from memchat.config.names import ADDRESS_NAMES, KEYS
from memchat.config.sources import EnvFile, SettingValues, collect
from memchat.errors import ConfigError

OFFLINE_CHAT = "offline/chat"
OFFLINE_EXTRACT = "offline/extract"
MINILM = "minilm/all-MiniLM-L6-v2"
HASH = "hash/words"
WORDS_ONLY = "none"
RETRY_MINUTES = (1.0, 2.0, 4.0, 8.0, 16.0)
MOST_RETRIES = 20


@dataclass(frozen=True, slots=True)
class ProviderDefault:
    """The models used when a provider's key is set and no model is named."""

    keys: tuple[str, ...]
    chat: str
    extract: str
    embed: str | None = None


PROVIDERS: tuple[ProviderDefault, ...] = (
    ProviderDefault(
        KEYS["gemini"],
        "gemini/gemini-2.5-flash",
        "gemini/gemini-2.5-flash-lite",
        "gemini/gemini-embedding-001",
    ),
    ProviderDefault(
        KEYS["openai"],
        "openai/gpt-4.1-mini",
        "openai/gpt-4.1-nano",
        "openai/text-embedding-3-small",
    ),
    ProviderDefault(KEYS["anthropic"], "anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5"),
    ProviderDefault(
        KEYS["mistral"], "mistral/mistral-medium-latest", "mistral/mistral-small-latest"
    ),
    ProviderDefault(KEYS["groq"], "groq/llama-3.3-70b-versatile", "groq/llama-3.1-8b-instant"),
    ProviderDefault(
        KEYS["openrouter"],
        "openrouter/google/gemini-2.5-flash",
        "openrouter/google/gemini-2.5-flash-lite",
    ),
    ProviderDefault(KEYS["deepseek"], "deepseek/deepseek-chat", "deepseek/deepseek-chat"),
)
"""In this order; the first whose key is set gives the models that are not named."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Every choice a person can make, with its default."""

    home: Path
    """MEMCHAT_HOME: the data folder."""
    chat_model: str = OFFLINE_CHAT
    """MEMCHAT_CHAT_MODEL: a litellm model name, e.g. ``ollama/llama3.2``."""
    extract_model: str = OFFLINE_EXTRACT
    """MEMCHAT_EXTRACT_MODEL: the cheap model that reads an ended session."""
    embed_model: str = MINILM
    """MEMCHAT_EMBED_MODEL: ``minilm``, ``gemini/…``, ``openai/…``, ``fastembed/…``, or ``none``
    (words only)."""
    embed_dimensions: int | None = None
    """MEMCHAT_EMBED_DIMENSIONS: the length of its vectors, for a model memchat does not know."""
    embed_max_tokens: int | None = None
    """MEMCHAT_EMBED_MAX_TOKENS: the tokens it reads, for such a model."""
    models: Path | None = None
    """MEMCHAT_MODELS: the folder with models for fastembed, each below its name; without one it is
    ``models`` in the data folder."""
    timezone: str = "UTC"
    """MEMCHAT_TIMEZONE: the zone days are counted in and times are shown in."""
    extraction: str = "session"
    """MEMCHAT_EXTRACTION: ``session`` (at its end) or ``per_message`` (after each reply)."""
    top_k: int = 5
    """MEMCHAT_TOP_K: where not all facts fit, so many of those found for the message follow the
    pinned ones before any other."""
    budget_tokens: int = 1000
    """MEMCHAT_BUDGET: the injected block never exceeds this many tokens (estimated)."""
    pinned_tokens: int = 300
    """MEMCHAT_PINNED: where not all facts fit, at most so many of these for pinned ones, profile
    and preferences."""
    ranking: str = "weighted"
    """MEMCHAT_RANKING: ``weighted`` (cosine and words) or ``rrf`` (reciprocal ranks of both)."""
    merge_threshold: float = 0.92
    """MEMCHAT_MERGE_THRESHOLD: the cosine from which a pair may be merged, guards permitting."""
    timeout: float = 60.0
    """MEMCHAT_TIMEOUT: seconds to wait for a provider."""
    embed_patience: float = 0.15
    """MEMCHAT_EMBED_PATIENCE: seconds a reply waits for its question's embedding; then it is by
    words only, and says so where words chose among more facts than fit."""
    embed_per_minute: int = 3_000
    """MEMCHAT_EMBED_PER_MINUTE: requests to an embedding provider; those above it wait."""
    retry_minutes: tuple[float, ...] = RETRY_MINUTES
    """MEMCHAT_RETRY_MINUTES: how long failed work waits before each further try; after the last it
    is given up."""
    context_tokens: int | None = None
    """MEMCHAT_CONTEXT: the chat model's window in tokens, where litellm does not know it."""
    idle_minutes: int = 30
    """MEMCHAT_IDLE_MINUTES: a session silent for so long, and whose lease ran out, is ended."""
    mask_before_extraction: bool = False
    """MEMCHAT_MASK: ``on`` hides secrets from the extraction model too, each behind its kind."""
    verify: str = "always"
    """MEMCHAT_VERIFY: ``always`` has the extraction model look once more at what a conversation
    taught, before it is kept; ``auto`` only where words near it may turn its meaning; ``off``
    never, and what is doubtful waits for you."""
    filter_pinned: bool = False
    """MEMCHAT_FILTER: ``on`` has the extraction model choose among more than 50 pinned facts."""
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

    def foreign_addresses(self) -> list[str]:
        """A sentence for each address that words are sent to and that is not the provider's own."""
        return redirect_warnings(
            self.addresses, (self.chat_model, self.extract_model, self.embed_model)
        )

    def with_(self, **changes: object) -> Settings:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


def load(env: Mapping[str, str] | None = None, *, env_file: EnvFile | None = None) -> Settings:
    """Settings from an environment (default ``os.environ``), then ``env_file``, then the files of
    the data folder.

    Raises ConfigError naming the variable that cannot be used, or the file that is refused.
    """
    gathered = collect(os.environ if env is None else env, env_file)
    values = gathered.values
    chat, extract, embed, why = _choose_models(gathered)
    return Settings(
        home=gathered.home,
        chat_model=chat,
        extract_model=extract,
        embed_model=embed,
        embed_dimensions=_whole(values, "MEMCHAT_EMBED_DIMENSIONS", 1, 100_000),
        models=Path(values["MEMCHAT_MODELS"]).expanduser() if "MEMCHAT_MODELS" in values else None,
        embed_max_tokens=_whole(values, "MEMCHAT_EMBED_MAX_TOKENS", 1, 10_000_000),
        timezone=_zone(values),
        extraction=_one_of(values, "MEMCHAT_EXTRACTION", ("session", "per_message")),
        top_k=int(_number(values, "MEMCHAT_TOP_K", 5, 0, 100)),
        budget_tokens=int(_number(values, "MEMCHAT_BUDGET", 1000, 0, 100_000)),
        pinned_tokens=int(_number(values, "MEMCHAT_PINNED", 300, 0, 100_000)),
        ranking=_one_of(values, "MEMCHAT_RANKING", ("weighted", "rrf")),
        merge_threshold=_number(values, "MEMCHAT_MERGE_THRESHOLD", 0.92, 0, 1.01),
        timeout=_number(values, "MEMCHAT_TIMEOUT", 60, 0.1, 3600),
        embed_per_minute=int(_number(values, "MEMCHAT_EMBED_PER_MINUTE", 3_000, 1, 1_000_000)),
        embed_patience=_number(values, "MEMCHAT_EMBED_PATIENCE", 0.15, 0, 600),
        retry_minutes=_minutes(values, "MEMCHAT_RETRY_MINUTES"),
        context_tokens=_whole(values, "MEMCHAT_CONTEXT", 256, 10_000_000),
        idle_minutes=int(_number(values, "MEMCHAT_IDLE_MINUTES", 30, 1, 10_000)),
        mask_before_extraction=_one_of(values, "MEMCHAT_MASK", ("off", "on")) == "on",
        verify=_one_of(values, "MEMCHAT_VERIFY", ("always", "auto", "off")),
        filter_pinned=_one_of(values, "MEMCHAT_FILTER", ("off", "on")) == "on",
        why=why,
        origins=gathered.origins,
        addresses={name: url for name, url in values.items() if _is_address(name)},
        keys=gathered.keys,
    )


def embedding_name(name: str) -> str:
    """An embedding model's whole name; ``minilm`` and ``hash`` are short for theirs."""
    short = {"minilm": MINILM, MINILM.lower(): MINILM, "hash": HASH}
    return short.get(name.lower(), name)


def loaded_here(name: str) -> bool:
    """Whether an embedding model is one that this machine loads before it can answer."""
    return name == MINILM or name.startswith("fastembed/")


def _choose_models(gathered: SettingValues) -> tuple[str, str, str, dict[str, str]]:
    values = gathered.values
    chat, extract, embed = OFFLINE_CHAT, OFFLINE_EXTRACT, MINILM
    source = "no provider key is set"
    why = {"chat_model": source, "extract_model": source, "embed_model": source}
    for default in PROVIDERS:
        key = next((key for key in default.keys if key in values), None)
        if key is not None:
            chat, extract = default.chat, default.extract
            why.update(dict.fromkeys(("chat_model", "extract_model"), _is_set(gathered, key)))
            break
    for default in PROVIDERS:
        key = next((key for key in default.keys if key in values), None)
        if key is not None and default.embed is not None:
            embed = default.embed
            why["embed_model"] = _is_set(gathered, key)
            break
    if "MEMCHAT_CHAT_MODEL" in values:
        chat = values["MEMCHAT_CHAT_MODEL"]
        why["chat_model"] = "MEMCHAT_CHAT_MODEL"
    if "MEMCHAT_EXTRACT_MODEL" in values:
        extract = values["MEMCHAT_EXTRACT_MODEL"]
        why["extract_model"] = "MEMCHAT_EXTRACT_MODEL"
    elif "MEMCHAT_CHAT_MODEL" in values and extract == OFFLINE_EXTRACT and chat != OFFLINE_CHAT:
        extract = chat
        why["extract_model"] = "the same as MEMCHAT_CHAT_MODEL; no cheaper one is named"
    if "MEMCHAT_EMBED_MODEL" in values:
        embed = values["MEMCHAT_EMBED_MODEL"]
        embed = embedding_name(embed)
        why["embed_model"] = "MEMCHAT_EMBED_MODEL"
    return chat, extract, embed, why


def _is_set(gathered: SettingValues, key: str) -> str:
    origin = gathered.origins[key]
    return f"{key} is set" + ("" if origin == ENVIRONMENT else f" in {origin}")


def _is_address(name: str) -> bool:
    # Libraries read more such variables of the environment than memchat knows by name.
    return name in ADDRESS_NAMES or name.endswith(("_API_BASE", "_BASE_URL"))


def _zone(values: Mapping[str, str]) -> str:
    name = values.get("MEMCHAT_TIMEZONE") or values.get("TZ", "").lstrip(":") or _system_zone()
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if "MEMCHAT_TIMEZONE" in values:
            raise ConfigError(
                f"MEMCHAT_TIMEZONE={name!r} is no time zone; use a name such as Europe/Berlin"
            ) from None
        return "UTC"
    return name


def _system_zone() -> str:
    target = os.path.realpath("/etc/localtime")
    return target.partition("zoneinfo/")[2] or "UTC"


def _one_of(values: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = values.get(name, allowed[0])
    if value not in allowed:
        raise ConfigError(f"{name}={value!r} is unknown; use {' or '.join(allowed)}")
    return value


def _number(values: Mapping[str, str], name: str, default: float, low: float, high: float) -> float:
    text = values.get(name)
    try:
        number = default if text is None else float(text)
    except ValueError:
        raise ConfigError(f"{name}={text!r} is no number") from None
    if text is not None and not low <= number <= high:
        raise ConfigError(f"{name}={text} is out of range; use {low:g} to {high:g}")
    return number


def _whole(values: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    return int(_number(values, name, low, low, high)) if name in values else None


def _minutes(values: Mapping[str, str], name: str) -> tuple[float, ...]:
    parts = values[name].split(",") if name in values else []
    if len(parts) > MOST_RETRIES:
        raise ConfigError(f"{name} names {len(parts)} retries; give at most {MOST_RETRIES}")
    minutes = (_number({name: part.strip()}, name, 0, 0, 10_080) for part in parts)
    return tuple(minutes) or RETRY_MINUTES
