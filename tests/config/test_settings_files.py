"""Where settings come from: the environment, a file that was named, the data folder's own files."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memchat.cli import main
from memchat.config import load
from memchat.config.settings import read_env_file
from memchat.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    return folder


def settings(home: Path, env: dict[str, str] | None = None, **more: Any) -> Any:
    return load({"MEMCHAT_HOME": str(home), **(env or {})}, **more)


def put(home: Path, text: str, name: str = "settings.toml", mode: int = 0o600) -> Path:
    path = home / name
    path.write_text(text)
    path.chmod(mode)
    return path


def env_file(home: Path, text: str) -> Any:
    return read_env_file(put(home, text, "mine.env", 0o644))


def test_the_data_folder_s_settings_are_used_and_each_value_tells_where_it_is_from(
    home: Path,
) -> None:
    put(home, 'MEMCHAT_BUDGET = 900\nMEMCHAT_MASK = true\nOLLAMA_API_BASE = "http://10.0.0.5"\n')
    found = settings(home, {"MEMCHAT_TOP_K": "7"})
    assert (found.budget_tokens, found.mask_before_extraction, found.top_k) == (900, True, 7)
    assert found.addresses["OLLAMA_API_BASE"] == "http://10.0.0.5"
    assert found.origins["MEMCHAT_BUDGET"] == "settings.toml"
    assert found.origins["MEMCHAT_TOP_K"] == "environment"


def test_the_environment_comes_before_a_named_file_and_that_before_the_data_folder(
    home: Path,
) -> None:
    put(home, "MEMCHAT_TOP_K = 1\nMEMCHAT_BUDGET = 100\nMEMCHAT_PINNED = 10\n")
    named = env_file(home, "MEMCHAT_TOP_K=2\nMEMCHAT_BUDGET=200\n")
    found = settings(home, {"MEMCHAT_TOP_K": "3"}, env_file=named)
    assert (found.top_k, found.budget_tokens, found.pinned_tokens) == (3, 200, 10)
    assert found.origins["MEMCHAT_BUDGET"] == str(home / "mine.env")


def test_another_name_for_the_same_address_does_not_get_past_the_environment(home: Path) -> None:
    put(home, 'OPENAI_BASE_URL = "http://elsewhere"\n')
    found = settings(home, {"OPENAI_API_BASE": "http://mine"})
    assert [url for name, url in found.addresses.items() if "OPENAI" in name] == ["http://mine"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("MEMCHAT_BUDGT = 900", "MEMCHAT_BUDGET"),
        ('PAGER = "sh"', "PAGER"),
        ('MEMCHAT_HOME = "/tmp"', "MEMCHAT_HOME"),
        ('OPENAI_API_KEY = "sk-hidden-0001"', "memchat keys set OPENAI_API_KEY"),
        ("MEMCHAT_BUDGET = [900]", "MEMCHAT_BUDGET"),
        ("MEMCHAT_BUDGET", "line 1"),
    ],
)
def test_what_is_no_setting_is_refused_by_its_name_and_with_the_closest(
    home: Path, line: str, said: str
) -> None:
    put(home, line + "\n")
    with pytest.raises(ConfigError, match=r"settings\.toml") as caught:
        settings(home)
    assert said in str(caught.value)
    assert "sk-hidden" not in str(caught.value)


@pytest.mark.parametrize("name", ["settings.toml", "keys.toml"])
@pytest.mark.parametrize("mode", [0o644, 0o620, 0o604, 0o660])
def test_a_file_that_others_may_read_or_change_is_refused(home: Path, name: str, mode: int) -> None:
    path = put(home, "", name, mode)
    with pytest.raises(ConfigError) as caught:
        settings(home)
    assert f"chmod 600 {path}" in str(caught.value)


@pytest.mark.parametrize("name", ["settings.toml", "keys.toml"])
def test_a_symbolic_link_is_refused(home: Path, tmp_path: Path, name: str) -> None:
    (home / name).symlink_to(put(tmp_path, "", "elsewhere"))
    with pytest.raises(ConfigError, match="symbolic link"):
        settings(home)


@pytest.mark.parametrize("name", ["settings.toml", "keys.toml"])
def test_a_pipe_is_refused_and_not_waited_for(home: Path, name: str) -> None:
    os.mkfifo(home / name, 0o600)
    with pytest.raises(ConfigError, match="is no file"):
        settings(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_account_is_refused(home: Path) -> None:
    os.chown(put(home, ""), 65534, 65534)
    with pytest.raises(ConfigError, match="another account"):
        settings(home)


def test_only_known_names_are_taken_from_a_named_file_and_no_dollar_is_filled_in(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "from the environment")
    found = env_file(home, "PAGER=sh\nOPENAI_BASE_URL=http://x/${MY_SECRET}\nHTTPS_PROXY=x\n")
    assert found.ignored == ("PAGER", "HTTPS_PROXY")
    assert found.values == {"OPENAI_BASE_URL": "http://x/${MY_SECRET}"}


# --- on the command line


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name in [*os.environ]:
        if name.startswith("MEMCHAT_") or name.endswith(("_API_KEY", "_BASE_URL", "_API_BASE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MEMCHAT_HOME", str(home))
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    monkeypatch.chdir(home.parent)

    def one(*args: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(args)
        return (code, *capsys.readouterr())

    return one


HOSTILE = "PAGER=sh\nMEMCHAT_BUDGET=901\nOPENAI_API_KEY=sk-not-read-01\nMEMCHAT_USER=eve\n"


def test_a_dotenv_of_the_working_folder_is_named_and_not_read(run: Run) -> None:
    Path(".env").write_text(HOSTILE)
    for command in ("config", "doctor"):
        code, out, err = run(command)
        said = " ".join((out + err).split())
        assert code == 0
        assert "OPENAI_API_KEY" in said and "is not read" in said
        assert "--env-file .env" in said
        assert "901" not in said and "sk-not-read-01" not in said and "PAGER" not in said


@pytest.mark.parametrize("text", ["PAGER=sh\n", "", "nothing of ours\n"])
def test_a_dotenv_that_is_not_meant_for_memchat_is_not_spoken_of(run: Run, text: str) -> None:
    Path(".env").write_text(text)
    assert ".env" not in "".join(map(str, run("config")))


def test_a_named_file_is_used_for_one_command_and_leaves_the_environment_as_it_was(
    run: Run,
) -> None:
    Path(".env").write_text(HOSTILE)
    before = dict(os.environ)
    code, out, err = run("--env-file", ".env", "config")
    assert code == 0
    assert err.splitlines() == ["ignored in .env, as memchat knows no such names: PAGER"]
    assert [line.split()[1:3] for line in out.splitlines() if "BUDGET" in line] == [["901", ".env"]]
    assert "OPENAI_API_KEY is set in .env" in out
    assert dict(os.environ) == before
    assert "901" not in run("config")[1]


def test_the_user_may_be_named_in_a_file(run: Run) -> None:
    Path("mine.env").write_text("MEMCHAT_USER=eve\n")
    assert run("--env-file", "mine.env", "memories", "add", "fact", "tool", "saw")[0] == 0
    assert "saw" in run("memories", "list", "--user", "eve")[1]


def test_a_file_that_is_not_there_is_a_usage_error(run: Run) -> None:
    code, _, err = run("--env-file", "none.env", "config")
    assert code == 2 and "none.env" in err


def test_a_refused_file_is_one_line_that_says_what_to_do(run: Run, home: Path) -> None:
    path = put(home, "", mode=0o644)
    code, out, err = run("memories", "list")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"run chmod 600 {path}" in err
