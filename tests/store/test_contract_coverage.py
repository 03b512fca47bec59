"""The contract of the store leaves out no function that the rest of the package calls."""

from __future__ import annotations

import ast
from pathlib import Path

import memchat

FILES = {"migrate", "schema", "restore", "backup_copy", "backup_files", "backup_comparison"}
"""Modules that work on SQLite's files: another kind of store has its own."""


def test_every_function_that_the_package_calls_is_run_here() -> None:
    package = Path(memchat.__file__).parent
    outside = [f for f in package.rglob("*.py") if not f.is_relative_to(package / "store")]
    called = {verb for file in outside for verb in _calls(file)}
    here = Path(__file__)
    run = _calls(here.with_name("test_every_function.py"))
    run |= _calls(here.with_name("test_transfer_functions.py"))
    assert sorted(called - run) == []


def _calls(file: Path) -> set[str]:
    """The functions of store modules that a file uses, as ``module.function``."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "memchat.store"
        for alias in node.names
        if alias.name not in FILES
    }
    return {
        f"{modules[node.value.id]}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in modules
        and node.attr.islower()
    }
