"""The settings: the variable, the default and the values of each, and where models are asked.

A parser is called with a variable's name and its text. It raises ConfigError with the name of the
variable and what it accepts. Where the address of a provider is set, the user's words go there:
``redirect_warnings`` says so for each address that is not the provider's own.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from memchat.config.keys import (
    HASH,
    MINILM,
    OFFLINE_CHAT,
    OFFLINE_EXTRACT,
    WORDS_ONLY,
    Keys,
    address_names,
    provider_of,
    runs_locally,
)
from memchat.errors import ConfigError

Parser = Callable[[str, str], object]

MOST_RETRIES = 20
LONGEST_RETRY_MINUTES = 10_080


def text(name: str, value: str) -> str:
    """The value as it is."""
    return value


def folder(name: str, value: str) -> Path:
    """A path; a leading ``~`` is the home folder."""
    return Path(value).expanduser()


def number(low: float, high: float) -> Callable[[str, str], float]:
    """A number from ``low`` to ``high``."""

    def parse(name: str, value: str) -> float:
        try:
            found = float(value)
        except ValueError:
            raise ConfigError(f"{name}={value!r} is not a number") from None
        if not low <= found <= high:
            raise ConfigError(f"{name}={value} is out of range; use {low:g} to {high:g}")
        return found

    return parse


def whole(low: int, high: int) -> Callable[[str, str], int]:
    """A whole number from ``low`` to ``high``; decimal places are cut off."""
    parse = number(low, high)
    return lambda name, value: int(parse(name, value))


def one_of(*allowed: str) -> Callable[[str, str], str]:
    """One of the values given."""

    def parse(name: str, value: str) -> str:
        if value not in allowed:
            raise ConfigError(f"{name}={value!r} is unknown; use {' or '.join(allowed)}")
        return value

    return parse


def switch(name: str, value: str) -> bool:
    """``on`` or ``off``."""
    return one_of("off", "on")(name, value) == "on"


def minutes(name: str, value: str) -> tuple[float, ...]:
    """Numbers of minutes with commas between them, one for each retry."""
    parts = value.split(",")
    if len(parts) > MOST_RETRIES:
        raise ConfigError(f"{name} names {len(parts)} retries; give at most {MOST_RETRIES}")
    parse = number(0, LONGEST_RETRY_MINUTES)
    return tuple(parse(name, part.strip()) for part in parts)


_OWN = {
    "gemini": ("Google", "generativelanguage.googleapis.com"),
    "openai": ("OpenAI", "api.openai.com"),
    "anthropic": ("Anthropic", "api.anthropic.com"),
    "mistral": ("Mistral", "api.mistral.ai"),
    "groq": ("Groq", "api.groq.com"),
    "openrouter": ("OpenRouter", "openrouter.ai"),
    "deepseek": ("DeepSeek", "api.deepseek.com"),
    "cerebras": ("Cerebras", "api.cerebras.ai"),
    "fireworks_ai": ("Fireworks", "api.fireworks.ai"),
    "perplexity": ("Perplexity", "api.perplexity.ai"),
    "together_ai": ("Together", "api.together.ai"),
    "xai": ("xAI", "api.x.ai"),
}
"""The name of a provider, and its own host."""
_OLLAMA = ("ollama", "ollama_chat")
_HERE = ("localhost", "127.0.0.1", "::1")


def address(addresses: Mapping[str, str], provider: str) -> tuple[str, str] | None:
    """The address that is set for a provider, and the variable that sets it."""
    name = next((name for name in address_names(provider) if addresses.get(name)), None)
    return (addresses[name], name) if name is not None else None


def redirect_warnings(addresses: Mapping[str, str], models: Iterable[str]) -> list[str]:
    """A sentence for each address that is not the provider's own and that these models use."""
    said = []
    for provider in dict.fromkeys(provider_of(model) for model in models):
        found = address(addresses, provider) if provider else None
        if found is not None and not _own(provider, found[0]):
            whose = _OWN[provider][0] if provider in _OWN else provider
            whose = "Ollama on this machine" if provider in _OLLAMA else whose
            said.append(f"Your words go to {shown(found[0])} ({found[1]}), not to {whose}.")
    return list(dict.fromkeys(said))


def asked_where(addresses: Mapping[str, str], model: str) -> str:
    """A model and where it is asked, as "openai/gpt-4.1-mini at api.openai.com"; nothing is asked
    for it."""
    if model in (OFFLINE_CHAT, OFFLINE_EXTRACT):
        return "the offline stand-in, on this machine"
    if model == WORDS_ONLY:
        return "none, search is by words only"
    if runs_locally(model) or model == HASH:
        return f"{'minilm' if model == MINILM else model}, on this machine"
    provider = provider_of(model)
    found = address(addresses, provider) if provider else None
    if found is not None and not (provider in _OLLAMA and _own(provider, found[0])):
        return f"{model} at {_host(found[0])}"
    if provider in _OLLAMA:
        return f"{model}, on this machine"
    return f"{model} at {_OWN[provider][1] if provider in _OWN else provider or 'its provider'}"


def shown(url: str) -> str:
    """An address without the password or key that it may contain."""
    return re.sub(r"[?#].*", "?…", re.sub(r"//[^/@\s]*@", "//…@", url))


def _host(url: str) -> str:
    """The host of an address, with its port; the whole address where it has none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or shown(url)
    except ValueError:
        return shown(url)


def _own(provider: str, url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if provider in _OLLAMA:
        return host in _HERE
    own = _OWN[provider][1] if provider in _OWN else None
    return own is not None and parts.scheme == "https" and (host == own or host.endswith(f".{own}"))


RETRY_MINUTES = (1.0, 2.0, 4.0, 8.0, 16.0)
HOME = "MEMCHAT_HOME"


def _setting(variable: str, default: object, parse: Parser = text) -> Any:
    """A field that the variable sets; ``parse`` reads and checks the variable's text."""
    return field(default=default, metadata={"variable": variable, "parse": parse})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every choice a person can make, with its default."""

    home: Path = field(metadata={"variable": HOME, "parse": folder})
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
    embed_dimensions: int | None = _setting("MEMCHAT_EMBED_DIMENSIONS", None, whole(1, 100_000))
    """MEMCHAT_EMBED_DIMENSIONS: the length of its vectors, for a model memchat does not know."""
    embed_max_tokens: int | None = _setting("MEMCHAT_EMBED_MAX_TOKENS", None, whole(1, 10_000_000))
    """MEMCHAT_EMBED_MAX_TOKENS: the most tokens such a model reads in one text."""
    models: Path | None = _setting("MEMCHAT_MODELS", None, folder)  # noqa: RUF009  (a field)
    """MEMCHAT_MODELS: the folder of the models for fastembed, each below its name; the default is
    ``models`` in the data folder."""
    timezone: str = _setting("MEMCHAT_TIMEZONE", "UTC")
    """MEMCHAT_TIMEZONE: the zone that days are counted in and times are shown in."""
    extraction: str = _setting("MEMCHAT_EXTRACTION", "session", one_of("session", "per_message"))
    """MEMCHAT_EXTRACTION: ``session`` (at its end) or ``per_message`` (after each reply)."""
    top_k: int = _setting("MEMCHAT_TOP_K", 5, whole(0, 100))
    """MEMCHAT_TOP_K: where not all facts fit, this many of those found for the message come after
    the pinned ones and before all others."""
    budget_tokens: int = _setting("MEMCHAT_BUDGET", 1000, whole(0, 100_000))
    """MEMCHAT_BUDGET: the most tokens (estimated) that the memory block in the prompt may have."""
    pinned_tokens: int = _setting("MEMCHAT_PINNED", 300, whole(0, 100_000))
    """MEMCHAT_PINNED: where not all facts fit, the most of these tokens for pinned ones, profile
    and preferences."""
    ranking: str = _setting("MEMCHAT_RANKING", "weighted", one_of("weighted", "rrf"))
    """MEMCHAT_RANKING: ``weighted`` (cosine and keyword scores) or ``rrf`` (reciprocal ranks of
    both)."""
    recall_notes: bool = _setting("MEMCHAT_RECALL_NOTES", True, switch)
    """MEMCHAT_RECALL_NOTES: ``off`` gives no chat a passage of the person's notes; else it is given
    those that fit the message, up to 300 tokens."""
    merge_threshold: float = _setting("MEMCHAT_MERGE_THRESHOLD", 0.92, number(0, 1.01))
    """MEMCHAT_MERGE_THRESHOLD: the cosine from which two facts may be merged, if nothing else
    speaks against it."""
    timeout: float = _setting("MEMCHAT_TIMEOUT", 60.0, number(0.1, 3600))
    """MEMCHAT_TIMEOUT: seconds to wait for a provider."""
    embed_patience: float = _setting("MEMCHAT_EMBED_PATIENCE", 0.15, number(0, 600))
    """MEMCHAT_EMBED_PATIENCE: seconds a reply waits for its question's embedding; after that it
    uses keyword search only, and says so where that chose among more facts than fit."""
    embed_per_minute: int = _setting("MEMCHAT_EMBED_PER_MINUTE", 3_000, whole(1, 1_000_000))
    """MEMCHAT_EMBED_PER_MINUTE: requests a minute to an embedding provider; those above it wait."""
    retry_minutes: tuple[float, ...] = _setting("MEMCHAT_RETRY_MINUTES", RETRY_MINUTES, minutes)
    """MEMCHAT_RETRY_MINUTES: how long failed work waits before each further try; after the last it
    is given up."""
    context_tokens: int | None = _setting("MEMCHAT_CONTEXT", None, whole(256, 10_000_000))
    """MEMCHAT_CONTEXT: the chat model's window in tokens, where litellm does not know it."""
    idle_minutes: int = _setting("MEMCHAT_IDLE_MINUTES", 30, whole(1, 10_000))
    """MEMCHAT_IDLE_MINUTES: a session without a message for so long, whose lease has run out, is
    ended."""
    mask_before_extraction: bool = _setting("MEMCHAT_MASK", False, switch)
    """MEMCHAT_MASK: ``on`` hides secrets from the extraction model too, each behind the name of its
    kind."""
    verify: str = _setting("MEMCHAT_VERIFY", "always", one_of("always", "off"))
    """MEMCHAT_VERIFY: ``always`` has the extraction model check once more what a conversation
    taught, before it is stored; ``off`` never, and all of it waits for the user."""
    filter_pinned: bool = _setting("MEMCHAT_FILTER", False, switch)
    """MEMCHAT_FILTER: ``on`` has the extraction model choose among more than 50 pinned facts."""
    log: str = _setting("MEMCHAT_LOG", "info", one_of("off", "warning", "info", "debug"))
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
