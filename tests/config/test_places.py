"""Where the data folder is by default, and moving one out of a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memchat.config import files, load
from memchat.config.files import default_home, move_advice
from tests.support.cli import Run


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that memchat seems to run from, whose path has to be quoted in a shell."""
    root = tmp_path / "my checkout"
    (root / "prompts").mkdir(parents=True)
    (root / "pyproject.toml").touch()
    monkeypatch.setattr(files, "ROOT", root)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "user" / "data"))
    return root


def in_use(checkout: Path, name: str = "memchat.db") -> Path:
    store = checkout / "data" / "store"
    store.mkdir(parents=True)
    (store / name).touch()
    return store


def test_the_default_is_the_platform_s_folder_in_a_checkout_too(
    checkout: Path, tmp_path: Path
) -> None:
    (checkout / "data" / "store").mkdir(parents=True)  # empty: nobody's
    assert load({}).home == default_home() == tmp_path / "user" / "data" / "memchat"
    assert move_advice(default_home()) is None


@pytest.mark.parametrize("name", ["memchat.db", "settings.toml", "keys.toml"])
def test_a_data_folder_in_use_in_the_checkout_stays_in_use(checkout: Path, name: str) -> None:
    store = in_use(checkout, name)
    assert default_home() == store


def test_an_installed_package_looks_at_no_checkout(checkout: Path, tmp_path: Path) -> None:
    in_use(checkout)
    (checkout / "pyproject.toml").unlink()
    assert default_home() == tmp_path / "user" / "data" / "memchat"


def test_the_commands_of_the_advice_move_the_store_to_the_default(
    checkout: Path, tmp_path: Path
) -> None:
    store = in_use(checkout)
    advice = move_advice(store)
    assert advice is not None and "git clean" in advice and "\n" not in advice
    subprocess.run(advice.partition("memchat runs: ")[2], shell=True, check=True)
    assert default_home() == tmp_path / "user" / "data" / "memchat"
    assert (default_home() / "memchat.db").is_file() and not store.exists()


def test_a_folder_in_the_place_of_the_new_one_is_never_overwritten(
    checkout: Path, tmp_path: Path
) -> None:
    store = in_use(checkout)
    (tmp_path / "user" / "data" / "memchat").mkdir(parents=True)
    advice = move_advice(store)
    assert advice is not None and "mv " not in advice and "MEMCHAT_HOME" in advice


@pytest.mark.parametrize("command", [("memories", "list"), ("config",)])
def test_commands_say_in_one_line_that_the_store_is_in_the_checkout(
    run: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    store = in_use(checkout, "settings.toml")
    (store / "settings.toml").chmod(0o600)
    monkeypatch.delenv("MEMCHAT_HOME")
    done = run(*command)
    assert done.code == 0
    assert len([line for line in done.err.splitlines() if "git clean" in line]) == 1
    monkeypatch.setenv("MEMCHAT_HOME", str(store))  # chosen: there is nothing to say
    assert "git clean" not in run(*command).err
