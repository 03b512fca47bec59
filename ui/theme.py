"""How the app looks, and how its server is set, in ``theme.toml``; passed by ``launch``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_FOUND: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
LIGHT, DARK, SERVER = _FOUND["light"], _FOUND["dark"], _FOUND["server"]
HOSTS: list[str] = SERVER["server.allowedHosts"]


def options(port: int, public: str | None = None) -> dict[str, object]:
    """Every option of Streamlit's that the app is started with; ``public`` is the origin under
    which others reach it."""
    themes = {
        f"theme.{mode}.{name}": value
        for mode in ("light", "dark")
        for name, value in _FOUND[mode].items()
    }
    shared = {f"theme.{name}": value for name, value in _FOUND["both"].items()}
    hosts = [*HOSTS, *([urlsplit(public).hostname] if public else [])]
    own = {"server.port": port, "server.allowedHosts": hosts}
    return {**SERVER, **own, **shared, **themes}
