"""The settings: the variable, the default and the values of each, and where they come from.

The environment comes first, then the file that was named with ``--env-file``, then
``settings.toml`` and ``keys.toml`` in the data folder. No file of the working folder is read unless
it was named: such a file could otherwise make memchat send messages and keys to an address of its
author. What ``settings.toml`` holds beside a changed setting stays as it is.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memchat import disk
from memchat.config import keys, providers
from memchat.config.keys import ENVIRONMENT, Keys
from memchat.disk import default_home
from memchat.errors import ConfigError, InputError
from memchat.types import OwnType, OwnTypes, check_own_types

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


RETRY_MINUTES = (1.0, 2.0, 4.0, 8.0, 16.0)
HOME = "MEMCHAT_HOME"
DATABASE_URL = "MEMCHAT_DATABASE_URL"


def database_address(name: str, value: str) -> str:
    """The address of a database of PostgreSQL; no error shows its password."""
    if not value.startswith(("postgresql://", "postgres://")):
        raise ConfigError(f"{name} is no address; give postgresql://user:password@host/database")
    return value.replace("postgres://", "postgresql://", 1)


def _setting(variable: str, default: object, parse: Parser = text) -> Any:
    """A field that the variable sets; ``parse`` reads and checks the variable's text."""
    return field(default=default, metadata={"variable": variable, "parse": parse})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every choice a person can make, with its default."""

    home: Path = field(metadata={"variable": HOME, "parse": folder})
    """MEMCHAT_HOME: the data folder."""
    database_url: str | None = field(
        default=None, repr=False, metadata={"variable": DATABASE_URL, "parse": database_address}
    )
    """MEMCHAT_DATABASE_URL: ``postgresql://user:password@host/database``, where the store is to be
    in PostgreSQL; without it the store is a file of the data folder."""
    chat_model: str = _setting("MEMCHAT_CHAT_MODEL", providers.OFFLINE_CHAT)
    """MEMCHAT_CHAT_MODEL: a litellm model name, e.g. ``ollama/llama3.2``."""
    extract_model: str = _setting("MEMCHAT_EXTRACT_MODEL", providers.OFFLINE_EXTRACT)
    """MEMCHAT_EXTRACT_MODEL: the cheap model that extracts memories from an ended session."""
    fast_model: str | None = _setting("MEMCHAT_FAST_MODEL", None)
    """MEMCHAT_FAST_MODEL: the model of steps of workflows whose ``costTier`` is fast; without it,
    the chat model."""
    high_model: str | None = _setting("MEMCHAT_HIGH_MODEL", None)
    """MEMCHAT_HIGH_MODEL: the model of those whose ``costTier`` is high; without it, the chat
    model."""
    transcribe_model: str | None = _setting("MEMCHAT_TRANSCRIBE_MODEL", None)
    """MEMCHAT_TRANSCRIBE_MODEL: the model that writes down what is said in audio files, e.g.
    ``openai/whisper-1``; without it they cannot be notes."""
    embed_model: str = _setting("MEMCHAT_EMBED_MODEL", providers.MINILM)
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
    suggest_tags: bool = _setting("MEMCHAT_SUGGEST_TAGS", True, switch)
    """MEMCHAT_SUGGEST_TAGS: ``off`` suggests no tags for notes."""
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
    types: OwnTypes = field(default_factory=dict)
    """Types of memories beside the usual ones: ``[types.NAME]`` in ``settings.toml``, with a
    ``description`` and ``keys``. Raises InputError for what cannot be one."""

    def __post_init__(self) -> None:
        check_own_types(self.types)

    @property
    def zone(self) -> ZoneInfo:
        """The user's zone."""
        return ZoneInfo(self.timezone)

    def redirect_warnings(self) -> list[str]:
        """A sentence for each address that is not the provider's own and that messages go to."""
        models = (self.chat_model, self.extract_model, self.embed_model, self.transcribe_model)
        tiers = (self.fast_model, self.high_model)
        return providers.redirect_warnings(self.addresses, filter(None, (*models, *tiers)))

    def models_line(self) -> str:
        """The models and where each is asked, in one line."""
        models = {
            "chat": self.chat_model,
            "reading": self.extract_model,
            "vectors": self.embed_model,
        }
        others = {"audio": self.transcribe_model, "fast": self.fast_model, "high": self.high_model}
        models |= {use: name for use, name in others.items() if name is not None}
        asked = (
            f"{use}: {providers.model_and_host(self.addresses, name)}"
            for use, name in models.items()
        )
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


FILE = "settings.toml"
DOTENV = ".env"
_LISTED = "memchat config lists those there are"
OWN = "MEMCHAT_"
DEBUG = "MEMCHAT_DEBUG"
USER = "MEMCHAT_USER"
MCP_SERVERS = "mcp_servers"
"""The table of ``settings.toml`` that names other servers."""
TYPES = "types"
"""The table that declares types of memories."""
PEOPLE = "people"
"""The table that lets people into the app; the app reads it."""
SETTING_NAMES = (frozenset(VARIABLES.values()) | providers.ADDRESS_NAMES | {USER}) - {HOME}
"""What ``settings.toml`` may hold."""
KNOWN_NAMES = SETTING_NAMES | providers.KEY_NAMES | {HOME}
"""What a file named with ``--env-file`` may hold."""


@dataclass(frozen=True, slots=True)
class EnvFile:
    """The contents of a file named with ``--env-file``."""

    name: str
    values: Mapping[str, str] = field(repr=False)
    ignored: tuple[str, ...] = ()
    """Unknown names in it, which are ignored."""


Sourced = dict[str, tuple[str, str]]
"""Values by their variables, each with its source."""


def collect(environment: Mapping[str, str], env_file: EnvFile | None) -> Sourced:
    """The values of all sources in their order. Raises ConfigError for a file that is refused."""
    values = {name: (value, ENVIRONMENT) for name, value in environment.items() if value}
    if env_file is not None:
        _add(values, env_file.values, env_file.name)
    home = _home(values)
    _add(values, read_settings(home), FILE)
    addresses = {name: value for name, (value, _) in values.items()}
    _add(values, keys.in_force(keys.read(home), addresses), keys.FILE)
    return values


def _home(values: Sourced) -> Path:
    return Path(values[HOME][0]).expanduser() if HOME in values else default_home()


def misspelt(names: Iterable[str]) -> list[str]:
    """A line for each variable that begins as memchat's own do and is none of them."""
    own = {name.removeprefix(OWN) for name in (DEBUG, *KNOWN_NAMES) if name.startswith(OWN)}
    lines = []
    for name in sorted(name for name in names if name.startswith(OWN)):
        if (rest := name.removeprefix(OWN)) in own:
            continue
        hint = providers.spelling_hint(rest, own, _LISTED, OWN)
        lines.append(f"{name} is no variable of memchat's, and does nothing; {hint}")
    return lines


def read_settings(home: Path) -> dict[str, str]:
    """The values of ``settings.toml``, as texts like those of the variables.

    Raises ConfigError for a file that is not private, and for an unknown name.
    """
    path = home / FILE
    found = disk.read(path).items()
    tables = (MCP_SERVERS, TYPES, PEOPLE)
    return {name: _text(path, name, value) for name, value in found if name not in tables}


def read_types(home: Path) -> OwnTypes:
    """The types of memories that ``settings.toml`` declares. Raises ConfigError for what is no
    table with a ``description`` and a list of ``keys``."""
    path = home / FILE
    try:
        given: Any = disk.read(path).get(TYPES, {})
        found = {name: OwnType(**table) for name, table in given.items()}
        if any(one.check is not None for one in found.values()):
            raise TypeError
        check_own_types(found)
    except (AttributeError, TypeError):
        raise ConfigError(
            f"[{TYPES}] in {path} holds tables such as [{TYPES}.recipe], each with description = "
            '"…" and, if you like, keys = ["…"]; nothing else'
        ) from None
    except InputError as error:
        raise ConfigError(f"{path}: {error}") from None
    return found


def read_env_file(path: Path) -> EnvFile:
    """The values of a file in the form of ``.env``. Raises ConfigError for one it cannot read.

    Only known names are used, and a ``$`` stays as it is: no variables are substituted.
    """
    try:
        values = _parsed(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    known = {name: value for name, value in values.items() if name in KNOWN_NAMES and value}
    return EnvFile(str(path), known, tuple(name for name in values if name not in KNOWN_NAMES))


def unread_dotenv(folder: Path, env_file: EnvFile | None = None) -> list[str]:
    """The known names in the folder's ``.env``, which is only read when it is named.

    Empty where there is none, or where it was named with ``--env-file``.
    """
    path = folder / DOTENV
    try:
        found = path.stat()
        named = env_file is not None and os.path.samefile(env_file.name, path)
        if named or not stat.S_ISREG(found.st_mode) or found.st_size > disk.MOST_BYTES:
            return []
        return [name for name in _parsed(path.read_text("utf-8")) if name in KNOWN_NAMES]
    except (OSError, UnicodeDecodeError):
        return []


def _add(values: Sourced, found: Mapping[str, str], origin: str) -> None:
    """Add the values that no earlier source has set, under this name or a synonym."""
    taken = {other for name in values for other in providers.synonyms(name)}
    values |= {n: (value, origin) for n, value in found.items() if n not in taken and value}


def _parsed(text: str) -> dict[str, str]:
    from dotenv import dotenv_values

    found = dotenv_values(stream=StringIO(text), interpolate=False)
    return {name: value or "" for name, value in found.items()}


def _text(path: Path, name: str, value: object) -> str:
    if name in providers.KEY_NAMES:
        raise ConfigError(f"{path} holds {name}; a key is set with memchat keys set {name}")
    if name == HOME:
        raise ConfigError(f"{path} holds {HOME}, which the environment alone can set; remove it")
    if name not in SETTING_NAMES:
        hint = providers.spelling_hint(name, SETTING_NAMES, _LISTED)
        raise ConfigError(f"{path} holds {name!r}, which is no setting; {hint}")
    if isinstance(value, bool):
        return "on" if value else "off"
    if not isinstance(value, (str, int, float)):
        raise ConfigError(f'{name} in {path} is no text or number; write it as {name} = "value"')
    return str(value)


_HEADING = "# Settings of memchat, each as NAME = value. `memchat config` lists them.\n"
_ONE_LINE = r"""[ \t]*=[ \t]*(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'#\[{]+)"""
"""The rest of a line up to the end of its value: a text in quotation marks, a number or a word."""


def set_settings(home: Path, changes: Mapping[str, str | None]) -> None:
    """Write variables to ``settings.toml``; None takes one out. Comments and other lines stay.

    Raises ConfigError for a value that cannot be used, and for a file that is not private, is not
    TOML, or holds one of these variables in a form that only a person can change.
    """
    unknown = [name for name in changes if name not in SETTING_NAMES]
    if unknown:
        raise ConfigError(f"{unknown[0]} is no setting; memchat config lists those there are")
    values = {name: value for name, value in changes.items() if value is not None}
    parse(values)
    path = home / FILE
    with disk.changing(home):
        text = disk.read_text(path)
        wanted = {
            name: value for name, value in disk.parsed(path, text).items() if name not in changes
        }
        text = text or _HEADING
        for name, value in changes.items():
            text = _with(text, name, value)
        try:
            is_safe = disk.parsed(path, text) == wanted | values
        except ConfigError:
            is_safe = False
        if not is_safe:
            raise ConfigError(
                f"{path} cannot be changed safely, as it is not one NAME = value a line; change "
                f"{' and '.join(changes)} in it by hand"
            )
        disk.write_text(path, text)


def _with(text: str, name: str, value: str | None) -> str:
    """The text with this value on the variable's line, whose comment stays, or on a new line."""
    line = re.compile(rf"""^[ \t]*(["']?){name}\1{_ONE_LINE}[ \t]*(#[^\r\n]*)?(\r?\n|\Z)""", re.M)
    new = None if value is None else f"{name} = {json.dumps(value, ensure_ascii=False)}"
    found = line.search(text)
    if found is None:
        if new is None:
            return text
        table = re.search(r"^[ \t]*\[", text, re.M)  # what stands behind it belongs to it
        at = len(text) if table is None else table.start()
        end = "" if not text[:at] or text[:at].endswith("\n") else "\n"
        return f"{text[:at]}{end}{new}\n{text[at:]}"
    line_now = "  ".join(part for part in (new, found[2]) if part)
    line_now += found[3] if line_now else ""
    return text[: found.start()] + line_now + text[found.end() :]


TIMEZONE = VARIABLES["timezone"]


def load(env: Mapping[str, str] | None = None, *, env_file: EnvFile | None = None) -> Settings:
    """Settings from an environment (default ``os.environ``), then ``env_file``, then the files of
    the data folder.

    Raises ConfigError naming the variable that cannot be used, or the file that is refused.
    """
    found = collect(os.environ if env is None else env, env_file)
    values = {name: value for name, (value, _) in found.items()}
    types = read_types(_home(found))
    origins = {name: origin for name, (_, origin) in found.items()}
    origins |= {f"{TYPES}.{name}": FILE for name in types}
    models, why = choose_models(values, origins)
    chosen: dict[str, Any] = {"home": _home(found), "timezone": _zone(values)}
    chosen = {**parse(values), **models, **chosen, TYPES: types}
    # Libraries read more addresses than memchat knows by name.
    ends, known = ("_API_BASE", "_BASE_URL"), providers.ADDRESS_NAMES
    addresses = {n: value for n, value in values.items() if n in known or n.endswith(ends)}
    given = Keys({name: found[name] for name in providers.KEY_NAMES & found.keys()})
    return Settings(**chosen, why=why, origins=origins, addresses=addresses, keys=given)


def _zone(values: Mapping[str, str]) -> str:
    machine = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    name = values.get(TIMEZONE) or values.get("TZ", "").lstrip(":") or machine or "UTC"
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if TIMEZONE in values:
            raise ConfigError(
                f"{TIMEZONE}={name!r} is not a time zone; use a name such as Europe/Berlin"
            ) from None
        return "UTC"
    return name


def choose_models(
    values: Mapping[str, str], origins: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The chat, extraction and embedding model by the name of their setting, and why each was
    chosen. ``values`` are the variables that are set, ``origins`` say where each is set."""
    models = {
        "chat_model": providers.OFFLINE_CHAT,
        "extract_model": providers.OFFLINE_EXTRACT,
        "embed_model": providers.MINILM,
    }
    why = dict.fromkeys(models, "no provider key is set")
    for setting in models:
        for provider in providers.PROVIDERS:
            key = next((key for key in provider.keys if key in values), None)
            model = getattr(provider, setting.removesuffix("_model"))
            if key is not None and model is not None:
                where = "" if origins[key] == ENVIRONMENT else f" in {origins[key]}"
                models[setting], why[setting] = model, f"{key} is set{where}"
                break
    no_key = models["extract_model"] == providers.OFFLINE_EXTRACT
    for setting in models:
        variable = f"MEMCHAT_{setting.upper()}"
        if variable in values:
            models[setting], why[setting] = values[variable], variable
    chat = models["chat_model"]
    if no_key and chat != providers.OFFLINE_CHAT and "MEMCHAT_EXTRACT_MODEL" not in values:
        models["extract_model"] = chat
        why["extract_model"] = "the same as MEMCHAT_CHAT_MODEL; no cheaper one is named"
    models["embed_model"] = providers.embedding_name(models["embed_model"])
    return models, why
