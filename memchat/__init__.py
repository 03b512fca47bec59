"""memchat: a chat assistant that remembers, on your own disk.

``MemChat`` opens a store; docs/api.md lists every verb. Names are imported when they are first
used, so that importing the package costs nothing.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


@cache
def _homes() -> dict[str, str]:
    """The module that defines each public name, as ``__init__.pyi`` tells type checkers."""
    import re
    from pathlib import Path

    stub = Path(__file__).with_suffix(".pyi").read_text("utf-8")
    return {name: home for home, name in re.findall(r"^from (\S+) import (\w+)", stub, re.M)}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_homes())
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module 'memchat' has no attribute {name!r}")
    return getattr(import_module(_homes()[name]), name)
