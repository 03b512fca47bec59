"""The contract of the store leaves out no function that the rest of the package calls."""

from __future__ import annotations

import ast
from pathlib import Path

import memchat

FILES = ("backup_comparison", "backup_copy", "backup_files", "restore")
NOT_OF_ROWS = ("migrate", "schema", *FILES)
"""Modules that work on database files and not on the rows of a store."""


def test_every_function_that_the_package_calls_is_run_here() -> None:
    package = Path(memchat.__file__).parent
    outside = [f for f in package.rglob("*.py") if not f.is_relative_to(package / "store")]
    called = {verb for file in outside for verb in _calls(file)}
    here = Path(__file__).parent.glob("test_every_function*.py")
    assert called - {verb for file in here for verb in _calls(file)} == set()


def _calls(file: Path) -> set[str]:
    """The functions of store modules that a file uses, as ``module.function``."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "memchat.store"
        for alias in node.names
        if alias.name not in NOT_OF_ROWS
    }
    return {
        f"{modules[node.value.id]}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in modules
        and node.attr.islower()
    }
