"""``memchat export -`` and ``memchat backup create -``: what goes on to another program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import Run, add


def piped(*args: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "memchat", *args], capture_output=True, check=False
    )


def test_an_export_goes_to_standard_output_and_is_read_back(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(run, "profile", "city", "Łódź")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")  # an export is UTF-8 all the same
    done = piped("export", "-")
    assert done.returncode == 0, done.stderr
    assert b"written to -" in done.stderr
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(done.stdout)
    assert run("import", str(copy), "--user", "bo").code == 0
    assert [m["value"] for m in run("memories", "list", "--user", "bo", "--json").json] == ["Łódź"]
    page = piped("export", "-", "--format", "markdown")
    assert "Łódź" in page.stdout.decode() and page.returncode == 0
    assert run("export", "-", "--json").code == 2
    nobody = run("export", "-", "--user", "nobody")
    assert (nobody.code, nobody.out) == (1, "")


def test_a_backup_goes_to_standard_output_and_can_be_restored(
    run: Run, home: Path, tmp_path: Path
) -> None:
    add(run, "profile", "city", "Lisbon")
    before = {*home.iterdir()}
    done = piped("backup", "create", "-")
    assert done.returncode == 0, done.stderr
    assert {*home.iterdir()} == before  # nothing is left of the copy
    copy = tmp_path / "copy.bak"
    copy.write_bytes(done.stdout)
    run("memories", "delete", "1", "--yes")
    assert run("restore", str(copy), "--yes").code == 0
    assert [m["value"] for m in run("memories", "list", "--json").json] == ["Lisbon"]


@pytest.mark.parametrize("args", [("export", "-"), ("backup", "create", "-")])
def test_a_terminal_is_not_written_to(
    run: Run, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    add(run, "profile", "city", "Lisbon")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    done = run(*args)
    assert done.code == 2 and "standard output is a terminal" in done.err
    assert "Lisbon" not in done.out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("MEMCHAT_CHATMODEL", "did you mean MEMCHAT_CHAT_MODEL?"),
        ("MEMCHAT_EXTRACT_MODLE", "did you mean MEMCHAT_EXTRACT_MODEL?"),
        ("MEMCHAT_XYZZY_QQ", "memchat config lists those there are"),
    ],
)
def test_a_misspelt_variable_is_named_once_with_the_nearest_right_one(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, said: str
) -> None:
    assert run("backup", "list").err.count("MEMCHAT_") == 0
    (tmp_path / "my.env").write_text(f"{name}=x\n")
    assert said in run("--env-file", "my.env", "backup", "list").err
    monkeypatch.setenv(name, "x")
    monkeypatch.setenv("MEMCHAT_DEBUG", "0")
    told = run("backup", "list").err
    assert told.count(f"{name} is no variable of memchat's, and does nothing; {said}") == 1
    assert "MEMCHAT_DEBUG" not in told
