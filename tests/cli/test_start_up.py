"""What each command may import: the reason why a short command answers at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"litellm", "faiss", "numpy", "streamlit", "tokenizers", "openai", "google.genai", "rich"}
DATABASE = {"sqlalchemy", "alembic"}

SCRIPT = """
import json, sys
from memchat.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def imported(home: Path, *args: str) -> set[str]:
    """The modules a command left loaded."""
    env = {**os.environ, "MEMCHAT_HOME": str(home), "MEMCHAT_USER": "ana"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *args],
        env=env,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


@pytest.mark.parametrize(
    "args", [["--help"], ["chat", "--help"], ["memories", "--help"], ["memories", "add", "--help"]]
)
def test_help_imports_nothing_heavy_and_no_database(tmp_path: Path, args: list[str]) -> None:
    assert not imported(tmp_path, *args) & (HEAVY | DATABASE)


def test_config_needs_no_database(tmp_path: Path) -> None:
    assert not imported(tmp_path, "config") & (HEAVY | DATABASE)


@pytest.mark.parametrize(
    "args",
    [
        ["memories", "list"],
        pytest.param(["memories", "list", "--json"], marks=pytest.mark.slow),
        pytest.param(["sessions", "list"], marks=pytest.mark.slow),
        pytest.param(["jobs", "status"], marks=pytest.mark.slow),
    ],
)
def test_lists_read_the_database_and_nothing_else(tmp_path: Path, args: list[str]) -> None:
    imported(tmp_path, "memories", "list")  # makes the database, which takes alembic
    modules = imported(tmp_path, *args)
    assert "sqlalchemy" in modules
    assert not modules & (HEAVY | {"alembic"})


def test_adding_with_a_remote_service_imports_no_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "openai/text-embedding-3-small")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    modules = imported(tmp_path, "memories", "add", "profile", "city", "Lisbon")
    assert not modules & {"litellm", "openai", "google.genai"}
