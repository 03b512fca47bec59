"""Providers: their keys and addresses, and which models are used where none is named.

A key of a file (``keys.toml``) is passed to the provider's library in each call; it is never put
into the environment, which other programs would inherit. A settings file may hold the names of this
module and nothing else. The bearer tokens of programs that call the MCP server are in a private
file of the same kind: whoever has one is the program that the person gave it to.
"""

from __future__ import annotations

import difflib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memchat.config import files
from memchat.errors import ConfigError, InputError, NotFound
from memchat.types import CLIENT_MODES, ClientMode

USER = "MEMCHAT_USER"

KEYS: dict[str, tuple[str, ...]] = {
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "cohere": ("COHERE_API_KEY",),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
    "voyage": ("VOYAGE_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
"""The variables for each provider's key; the first one that is set is used. A provider that is not
listed needs no key (Ollama) or reads its own."""

ADDRESSES: dict[str, tuple[str, ...]] = {
    "gemini": ("GEMINI_API_BASE", "GOOGLE_GEMINI_BASE_URL"),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "anthropic": ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
    "mistral": ("MISTRAL_API_BASE",),
    "groq": ("GROQ_API_BASE",),
    "openrouter": ("OPENROUTER_API_BASE",),
    "deepseek": ("DEEPSEEK_API_BASE",),
    "cerebras": ("CEREBRAS_API_BASE",),
    "fireworks_ai": ("FIREWORKS_API_BASE",),
    "perplexity": ("PERPLEXITY_API_BASE",),
    "together_ai": ("TOGETHER_AI_API_BASE",),
    "xai": ("XAI_API_BASE",),
    "ollama": ("OLLAMA_API_BASE",),
    "ollama_chat": ("OLLAMA_API_BASE",),
}
"""The variables that set another address for a provider."""

KEY_NAMES = frozenset(name for names in KEYS.values() for name in names)
ADDRESS_NAMES = frozenset(name for names in ADDRESSES.values() for name in names)
_GROUPS = {
    name: frozenset(names)
    for table in (KEYS, ADDRESSES)
    for names in table.values()
    for name in names
}
_BARE = {
    r"(gpt-|chatgpt-|o\d|text-embedding-)": "openai",
    r"claude-": "anthropic",
}
_PRIVATE = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|API_BASE|BASE_URL)$", re.IGNORECASE
)


def provider_of(model: str) -> str:
    """The provider in a litellm model name; empty where the name has none."""
    provider, slash, _ = model.partition("/")
    if slash:
        return provider
    return next((owner for start, owner in _BARE.items() if re.match(start, model)), "")


def address_names(provider: str) -> tuple[str, ...]:
    """The variables that may set another address for a provider."""
    known = ADDRESSES.get(provider)
    start = re.sub(r"\W", "_", provider).upper()
    return known or (f"{start}_API_BASE", f"{start}_BASE_URL")


def synonyms(name: str) -> frozenset[str]:
    """The variables with the same meaning as this one, including itself."""
    return _GROUPS.get(name, frozenset((name,)))


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is closest to a misspelt one, if any is."""
    found = difflib.get_close_matches(name.upper(), sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for another program, without keys, tokens and passwords."""
    return {
        name: value
        for name, value in environment.items()
        if name not in KEY_NAMES and not _PRIVATE.search(name)
    }


FILE = "keys.toml"
ENVIRONMENT = "environment"
_HEADING = (
    "Keys of model providers. `memchat keys set NAME` and `keys remove NAME` write this file."
)
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key that is set, without its value."""

    name: str
    provider: str
    origin: str
    """``environment``, the name of the file given with --env-file, or ``keys.toml``."""
    used: bool
    """False where another source takes precedence."""


class Keys:
    """The keys that are set, by variable. The current environment takes precedence."""

    def __init__(self, given: Mapping[str, tuple[str, str]] | None = None) -> None:
        """``given`` are the keys of files: for each variable its value and its source."""
        self._given = dict(given or {})

    def __repr__(self) -> str:
        return f"Keys({', '.join(sorted(self._given))})"

    def first(self, names: Iterable[str]) -> str | None:
        """The first of these variables that is set, in the environment before a file."""
        names = tuple(names)
        inside = (name for name in names if os.environ.get(name))
        return next(inside, next((name for name in names if name in self._given), None))

    def value(self, name: str) -> str | None:
        """The key in this variable."""
        return os.environ.get(name) or self._given.get(name, (None, ""))[0]

    def origin(self, name: str) -> str | None:
        """The source of the key in this variable; None if it is not set."""
        if os.environ.get(name):
            return ENVIRONMENT
        return self._given[name][1] if name in self._given else None

    def names(self) -> list[str]:
        """The variables that are set, in the order of their providers."""
        return [name for names in KEYS.values() for name in names if self.origin(name)]

    def kept(self, environment: Mapping[str, str]) -> Keys:
        """The same keys with a copy of those in ``environment``, for when they are removed from the
        environment of this process."""
        inside = {name: (environment[name], ENVIRONMENT) for name in KEY_NAMES & environment.keys()}
        return Keys(self._given | {name: key for name, key in inside.items() if key[0]})


def variable_of(name: str) -> str:
    """The variable of a key, from its own name or the provider's short name (``openai``).

    Raises ConfigError for an unknown name, with the closest known one.
    """
    if name.lower() in KEYS:
        return KEYS[name.lower()][0]
    if name.upper() in KEY_NAMES:
        return name.upper()
    meant = closest(name, [*KEY_NAMES, *(provider.upper() for provider in KEYS)])
    if meant is not None and meant.lower() in KEYS:
        meant = meant.lower()
    hint = f"did you mean {meant}?" if meant else f"use one of {', '.join(KEYS)}"
    raise ConfigError(f"{name!r} is no key that memchat knows; {hint}")


def read(home: Path) -> dict[str, str]:
    """The keys in ``keys.toml``. Raises ConfigError for a file that is invalid or not private."""
    path = home / FILE
    found: dict[str, str] = {}
    for name, value in files.read(path).items():
        if name not in KEY_NAMES:
            meant = closest(name, KEY_NAMES)
            hint = f"did you mean {meant}?" if meant else "remove it"
            raise ConfigError(f"{path} holds {name!r}, which is no key that memchat knows; {hint}")
        if not isinstance(value, str):
            raise ConfigError(f"{name} in {path} is no text; write it in quotation marks")
        if value:
            found[name] = _checked(name, value)
    return found


def set_key(home: Path, name: str, value: str) -> str:
    """Write a key to ``keys.toml``, replacing an earlier one; gives its variable."""
    variable = variable_of(name)
    key = _checked(variable, value)
    with files.changing(home):
        _write(home, read(home) | {variable: key})
    return variable


def remove_key(home: Path, name: str) -> str:
    """Remove a key from ``keys.toml``; gives its variable. Raises NotFound."""
    variable = variable_of(name)
    if variable not in read(home):
        raise NotFound(f"{variable} is not in {home / FILE}; see memchat keys list")
    with files.changing(home):
        _write(home, {key: value for key, value in read(home).items() if key != variable})
    return variable


def listed(home: Path, keys: Keys) -> list[KeyInfo]:
    """Every key that is set, with its source, including those that are not used."""
    stored = read(home)
    rows = []
    for provider, names in KEYS.items():
        in_use = keys.first(names)
        for name in names:
            origin = keys.origin(name)
            if origin is not None:
                rows.append(KeyInfo(name, provider, origin, name == in_use))
            if name in stored and origin != FILE:
                rows.append(KeyInfo(name, provider, FILE, False))
    return rows


def _write(home: Path, values: Mapping[str, str]) -> None:
    files.write(home / FILE, values, _HEADING)


def _checked(name: str, value: str) -> str:
    key = value.strip()
    if not key:
        raise InputError(f"no key was given for {name}; nothing was changed")
    if len(key) > _LONGEST or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"what was given for {name} is no key: a key is one word without spaces")
    return key


DEFAULT_WINDOW = 8192
"""Tokens of a chat model whose window is not known."""
OFFLINE_CHAT = "offline/chat"
OFFLINE_EXTRACT = "offline/extract"
MINILM = "minilm/all-MiniLM-L6-v2"
HASH = "hash/words"
WORDS_ONLY = "none"


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


def choose_models(
    values: Mapping[str, str], origins: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The chat, extraction and embedding model by the name of their setting, and why each was
    chosen. ``values`` are the variables that are set, ``origins`` say where each is set."""
    models = {
        "chat_model": OFFLINE_CHAT,
        "extract_model": OFFLINE_EXTRACT,
        "embed_model": MINILM,
    }
    why = dict.fromkeys(models, "no provider key is set")
    for setting in models:
        for provider in PROVIDERS:
            key = next((key for key in provider.keys if key in values), None)
            model = getattr(provider, setting.removesuffix("_model"))
            if key is not None and model is not None:
                models[setting], why[setting] = model, _is_set(key, origins[key])
                break
    no_key = models["extract_model"] == OFFLINE_EXTRACT
    for setting in models:
        variable = f"MEMCHAT_{setting.upper()}"
        if variable in values:
            models[setting], why[setting] = values[variable], variable
    chat = models["chat_model"]
    if no_key and chat != OFFLINE_CHAT and "MEMCHAT_EXTRACT_MODEL" not in values:
        models["extract_model"] = chat
        why["extract_model"] = "the same as MEMCHAT_CHAT_MODEL; no cheaper one is named"
    models["embed_model"] = embedding_name(models["embed_model"])
    return models, why


def embedding_name(name: str) -> str:
    """An embedding model's whole name; ``minilm`` and ``hash`` are short for theirs."""
    short = {"minilm": MINILM, MINILM.lower(): MINILM, "hash": HASH}
    return short.get(name.lower(), name)


def runs_locally(name: str) -> bool:
    """Whether an embedding model has to be loaded on this machine before it can answer."""
    return name == MINILM or name.startswith("fastembed/")


def _is_set(key: str, origin: str) -> str:
    return f"{key} is set" + ("" if origin == ENVIRONMENT else f" in {origin}")


TOKENS_FILE = "mcp_tokens.toml"
_TOKENS_HEADING = 'Tokens of programs that call memchat over HTTP: NAME = "mode:token".'


@dataclass(frozen=True, slots=True)
class ClientToken:
    """A token, and whom it stands for."""

    name: str
    mode: ClientMode
    token: str = field(repr=False)


def read_tokens(home: Path) -> Mapping[str, ClientToken]:
    """The tokens by the names of their programs. Raises ConfigError for a file that other accounts
    may read, or that cannot be used."""
    path = home / TOKENS_FILE
    return {name: _parsed(path, name, value) for name, value in files.read(path).items()}


def find_token(tokens: Mapping[str, ClientToken], given: str) -> ClientToken | None:
    """The program of a token. Takes as long for a wrong one as for a right one."""
    found = None
    for one in tokens.values():
        if hmac.compare_digest(one.token.encode(), given.encode()):
            found = one
    return found


def create_token(home: Path, name: str, mode: ClientMode) -> ClientToken:
    """Make a token for a program, in place of the one that it had."""
    with files.changing(home):
        made = ClientToken(name, mode, secrets.token_urlsafe(32))
        _write_tokens(home, {**read_tokens(home), name: made})
    return made


def remove_token(home: Path, name: str) -> None:
    """Delete the token of a program. Raises NotFound where it has none."""
    with files.changing(home):
        left = dict(read_tokens(home))
        if left.pop(name, None) is None:
            raise NotFound(f"no program named {name!r} has a token; see memchat mcp tokens")
        _write_tokens(home, left)


def _write_tokens(home: Path, tokens: Mapping[str, ClientToken]) -> None:
    lines = [
        f"{files.quoted(one.name)} = {files.quoted(f'{one.mode}:{one.token}')}"
        for one in tokens.values()
    ]
    files.write_text(home / TOKENS_FILE, "\n".join([f"# {_TOKENS_HEADING}", *lines]) + "\n")


def _parsed(path: Path, name: str, value: object) -> ClientToken:
    mode, _, token = value.partition(":") if isinstance(value, str) else ("", "", "")
    for known in CLIENT_MODES:
        if mode == known and token:
            return ClientToken(name, known, token)
    raise ConfigError(
        f"{path} has no token for {name!r} that can be used; make it anew with memchat mcp token"
    )
