"""The scripts in examples/ run without a key and print what they say."""

from __future__ import annotations

import ast
import os
import runpy
import socket
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memchat.providers import local
from tests.support.paths import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(autouse=True)
def _without_settings_and_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith("MEMCHAT_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MEMCHAT_HOME", str(tmp_path / "unused"))

    def refuse(*arguments: object) -> None:
        raise AssertionError("an example used the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("embedder", ["none", "minilm"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_its_docstring_says(
    path: Path,
    embedder: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if embedder == "minilm" and not local.available():
        pytest.skip("the weights of MiniLM are not on this machine")
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", embedder)
    said = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    # In a thread of its own: asyncio.run drops the event loop that litellm left in this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(runpy.run_path, str(path), run_name="__main__").result()
    assert capsys.readouterr().out == textwrap.dedent(said.partition("::\n\n")[2]) + "\n"
    assert not (tmp_path / "unused").exists(), "examples leave the person's own store alone"


def test_every_example_is_described() -> None:
    page = (ROOT / "examples" / "README.md").read_text("utf-8")
    assert EXAMPLES
    for path in EXAMPLES:
        assert f"]({path.name})" in page, path.name
