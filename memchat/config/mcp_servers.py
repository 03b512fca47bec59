"""Other MCP servers, named in ``settings.toml``: ``[mcp_servers.NAME]`` with ``command``, ``args``
and ``env``, or with ``url`` and ``token``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memchat.config import private_files
from memchat.config.sources import FILE
from memchat.config.sources import MCP_SERVERS as TABLE
from memchat.errors import ConfigError, NotFound
from memchat.mcp_client import McpServer

_FIELDS = {"command": str, "args": list, "env": dict, "url": str, "token": str}


def find(home: Path, name: str) -> McpServer:
    """The server of a name. Raises NotFound where none is named so, ConfigError for one that
    cannot be used."""
    path = home / FILE
    servers = private_files.read(path).get(TABLE, {})
    found = servers.get(name) if isinstance(servers, Mapping) else None
    if found is None:
        raise NotFound(f"no MCP server is named {name!r}; add [{TABLE}.{name}] to {path}")
    if not isinstance(found, Mapping):
        raise ConfigError(f"{path}: {TABLE}.{name} is no table")
    return McpServer(name, **_checked(path, name, found))


def _checked(path: Path, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in given.items():
        kind = _FIELDS.get(key)
        if kind is None:
            known = ", ".join(_FIELDS)
            raise ConfigError(f"{path}: {TABLE}.{name} has no {key!r}; it may have {known}")
        inner = value if isinstance(value, list) else value.values() if kind is dict else ()
        if not isinstance(value, kind) or not all(isinstance(one, str) for one in inner):
            raise ConfigError(f"{path}: {TABLE}.{name}.{key} has the wrong form")
    return dict(given)
