"""How well-known programs are told to start ``memchat mcp``: the text for their configuration."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memchat.config.places import default_home
from memchat.config.settings import HOME


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What one program needs in its configuration to use the memory of one person in one app."""

    key: str
    """Its name in a command."""
    client: str
    """Its name for people, under which its calls are counted."""
    place: str
    """The file that the text goes into, and how the program leads to it."""
    text: str
    """JSON, indented. Where the file has servers already, the entry ``memchat`` goes beside
    them."""


_PLACES = (
    (
        "claude-desktop",
        "Claude Desktop",
        "claude_desktop_config.json (Settings, Developer, Edit Config)",
    ),
    ("vscode", "VS Code", ".vscode/mcp.json, or MCP: Open User Configuration"),
    ("cursor", "Cursor", "~/.cursor/mcp.json"),
)


def configs(home: Path, user: str, app: str) -> Sequence[ClientConfig]:
    """The configuration of each program that is known, for a data folder, a person and an app."""
    command, *words = _program()
    scope = ["--user", user, "--app", app]
    found = []
    for key, client, place in _PLACES:
        entry: dict[str, Any] = {"type": "stdio"} if key == "vscode" else {}
        entry |= {"command": command, "args": [*words, "mcp", "--client", client, *scope]}
        if home.resolve() != default_home().resolve():
            entry["env"] = {HOME: str(home.resolve())}
        top = "servers" if key == "vscode" else "mcpServers"
        text = json.dumps({top: {"memchat": entry}}, indent=2, ensure_ascii=False)
        found.append(ClientConfig(key, client, place, text))
    return found


def _program() -> list[str]:
    """The words that start memchat, with whole paths: such programs rarely have a ``PATH`` with
    it."""
    beside = shutil.which("memchat", path=str(Path(sys.executable).parent))
    return [beside] if beside is not None else [sys.executable, "-m", "memchat"]
