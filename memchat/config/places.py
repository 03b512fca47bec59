"""Where the data folder is by default, and the folder for what can be downloaded again."""

from __future__ import annotations

import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds the package: a checkout, or the environment it is installed in."""
STORE_FILES = ("memchat.db", "settings.toml", "keys.toml")
"""A folder that holds one of these is in use as a data folder."""


def checkout() -> Path | None:
    """The checkout that memchat runs from, or None for an installed package."""
    is_one = (ROOT / "pyproject.toml").is_file() and (ROOT / "prompts").is_dir()
    return ROOT if is_one else None


def default_home() -> Path:
    """The platform's folder for user data, or a data folder that is in use in the checkout.

    Earlier versions kept the store of a checkout in its ``data/store``.
    """
    return _in_checkout() or _user_data()


def cache_folder() -> Path:
    """The platform's folder for what can be downloaded again."""
    from platformdirs import user_cache_path

    return user_cache_path("memchat", appauthor=False)


def move_advice(home: Path) -> str | None:
    """The commands that move a data folder out of the checkout; None where it is elsewhere."""
    if home != _in_checkout():
        return None
    place, target = shlex.quote(str(home)), _user_data()
    risk = f"the data folder {place} is in the checkout, where git clean -fdx deletes it"
    if target.exists():
        return f"{risk}; move it elsewhere and set MEMCHAT_HOME to its place ({target} exists)"
    parent, target_name = shlex.quote(str(target.parent)), shlex.quote(str(target))
    return (
        f"{risk}; to move it, while no memchat runs: mkdir -p {parent} && mv {place} {target_name}"
    )


def _in_checkout() -> Path | None:
    root = checkout()
    if root is None:
        return None
    folder = root / "data" / "store"
    return folder if any((folder / name).exists() for name in STORE_FILES) else None


def _user_data() -> Path:
    from platformdirs import user_data_path

    return user_data_path("memchat", appauthor=False)
