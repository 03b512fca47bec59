"""The commands, run in this process in a data folder of the test."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from memchat.cli import app, main
from tests.support import empty_store


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> list[dict[str, object]]:
        return json.loads(self.out)  # type: ignore[no-any-return]


Run = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [*os.environ]:
        if name.startswith("MEMCHAT_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    folder = empty_store.place(tmp_path / "store")
    monkeypatch.setenv("MEMCHAT_HOME", str(folder))
    monkeypatch.setenv("MEMCHAT_USER", "ana")
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "none")
    monkeypatch.setenv("MEMCHAT_TIMEZONE", "Asia/Tokyo")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def run(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))

    def one(*args: str) -> Done:
        capsys.readouterr()
        code = main(args)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    yield one


class Terminal(io.StringIO):
    """Standard input of a person who types this."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What a person types at a terminal."""
    return lambda text: monkeypatch.setattr(sys, "stdin", Terminal(text))


def commands(node: object = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """Every command with its full name."""
    node = node or typer.main.get_command(app)
    below = getattr(node, "commands", None)
    if below is None:
        yield " ".join(path), node
    else:
        if path and getattr(node, "invoke_without_command", False):
            yield " ".join(path), node
        for name, command in below.items():
            yield from commands(command, (*path, name))


def add(run: Run, *args: str) -> str:
    done = run("memories", "add", *args)
    assert done.code == 0, done.err
    return done.out.strip()
