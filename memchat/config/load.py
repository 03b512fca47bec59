"""Reading the settings from all their sources."""

from __future__ import annotations

import os
from collections.abc import Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memchat.config.model_defaults import choose_models
from memchat.config.names import ADDRESS_NAMES
from memchat.config.settings import VARIABLES, Settings, parse
from memchat.config.sources import EnvFile, collect
from memchat.errors import ConfigError

TIMEZONE = VARIABLES["timezone"]


def load(env: Mapping[str, str] | None = None, *, env_file: EnvFile | None = None) -> Settings:
    """Settings from an environment (default ``os.environ``), then ``env_file``, then the files of
    the data folder.

    Raises ConfigError naming the variable that cannot be used, or the file that is refused.
    """
    found = collect(os.environ if env is None else env, env_file)
    values = found.values
    models, why = choose_models(values, found.origins)
    chosen = {"home": found.home, "timezone": _zone(values)}
    return Settings(
        **{**parse(values), **models, **chosen},
        why=why,
        origins=found.origins,
        addresses={name: url for name, url in values.items() if _is_address(name)},
        keys=found.keys,
    )


def _is_address(name: str) -> bool:
    # Libraries read more such variables than memchat knows by name.
    return name in ADDRESS_NAMES or name.endswith(("_API_BASE", "_BASE_URL"))


def _zone(values: Mapping[str, str]) -> str:
    name = values.get(TIMEZONE) or values.get("TZ", "").lstrip(":") or _system_zone()
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if TIMEZONE in values:
            raise ConfigError(
                f"{TIMEZONE}={name!r} is not a time zone; use a name such as Europe/Berlin"
            ) from None
        return "UTC"
    return name


def _system_zone() -> str:
    target = os.path.realpath("/etc/localtime")
    return target.partition("zoneinfo/")[2] or "UTC"
