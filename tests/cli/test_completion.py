"""Completion: what a shell is offered for a command line that is not finished."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import Run

BASH = shutil.which("bash")


def offered(run: Run, monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """What the program offers a shell for the last word of a line, by the protocol of bash."""
    words = line.split(" ")
    with monkeypatch.context() as patch:
        patch.setenv("_MEMCHAT_COMPLETE", "complete_bash")
        patch.setenv("COMP_WORDS", line)
        patch.setenv("COMP_CWORD", str(len(words) - 1))
        done = run()
    assert (done.code, done.err) == (0, "")
    return done.out.split()


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("memchat ", {"chat", "memories", "completion"}),
        ("memchat memories ", {"list", "add", "history"}),
        ("memchat memories list --st", {"--status"}),
        ("memchat memories list --status ex", {"expired", "expiring"}),
        ("memchat memories list --type p", {"preference", "profile"}),
        ("memchat memories add ", {"preference", "profile", "fact", "other"}),
        ("memchat memories edit 1 --type o", {"other"}),
        ("memchat audit --kind se", {"secret"}),
        ("memchat jobs status --status f", {"failed"}),
        ("memchat completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_commands_options_and_values_are_offered(
    run: Run, monkeypatch: pytest.MonkeyPatch, line: str, some: set[str]
) -> None:
    found = set(offered(run, monkeypatch, line))
    last = line.split(" ")[-1]
    assert some <= found and all(word.startswith(last) for word in found)


def test_settings_that_cannot_be_read_are_not_in_the_way_of_completion(
    run: Run, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.delenv("MEMCHAT_USER")
    (home / "settings.toml").write_text("no settings")
    assert offered(run, monkeypatch, "memchat memories list --us") == ["--user"]


@pytest.mark.parametrize(
    ("shell", "instruction", "more"),
    [
        ("zsh", "complete_zsh", {}),
        ("fish", "complete_fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_zsh_and_fish_are_offered_commands_with_what_they_do(
    run: Run, monkeypatch: pytest.MonkeyPatch, shell: str, instruction: str, more: dict[str, str]
) -> None:
    script = run("completion", shell)
    assert script.code == 0 and instruction in script.out
    environment = {"_MEMCHAT_COMPLETE": instruction, "_TYPER_COMPLETE_ARGS": "memchat keys "}
    for name, value in {**environment, **more}.items():
        monkeypatch.setenv(name, value)
    done = run()
    assert done.code == 0
    assert "remove" in done.out and "Take a key out of keys.toml." in done.out


def test_another_shell_is_refused_with_the_names_of_those_there_are(run: Run) -> None:
    done = run("completion", "tcsh")
    assert (done.code, done.out) == (2, "") and "bash" in done.err


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_bash_completes_by_the_script_and_imports_nothing_heavy(run: Run, tmp_path: Path) -> None:
    script = run("completion", "bash").out
    program = tmp_path / "memchat"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "from memchat.cli import main\n"
        "code = main()\n"
        f"json.dump([*sys.modules], open({str(tmp_path / 'modules')!r}, 'w'))\n"
        "sys.exit(code)\n"
    )
    program.chmod(0o755)
    asked = (
        f"{script}\nCOMP_WORDS=(memchat memories sh); COMP_CWORD=2\n"
        '_memchat_completion memchat; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        [str(BASH), "--norc", "-c", asked],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("show\n", "")
    modules = set(json.loads((tmp_path / "modules").read_text()))
    assert not modules & {"rich", "sqlalchemy", "numpy", "litellm", "memchat.language.lexicon"}
