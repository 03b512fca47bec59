"""Changing settings.toml: what a person wrote in it stays."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.config import keys, load
from memchat.config.settings import set_settings
from memchat.errors import ConfigError

CHAT, BUDGET, PINNED = "MEMCHAT_CHAT_MODEL", "MEMCHAT_BUDGET", "MEMCHAT_PINNED"
WRITTEN = f"""# mine, from May
{BUDGET} = 900   # enough for me

'{CHAT}'='ollama/old' # on this machine
# {PINNED} = 100
{PINNED} = 200"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(WRITTEN)
    path.chmod(0o600)
    return path


def test_a_changed_value_takes_the_old_one_s_place_and_every_comment_stays(file: Path) -> None:
    set_settings(file.parent, {CHAT: "openai/naïve-😀", "MEMCHAT_TOP_K": "7"})
    assert (
        file.read_text()
        == WRITTEN.replace(
            f"'{CHAT}'='ollama/old' # on this machine",
            f'{CHAT} = "openai/naïve-😀"  # on this machine',
        )
        + '\nMEMCHAT_TOP_K = "7"\n'
    )
    found = load({"MEMCHAT_HOME": str(file.parent)})
    assert (found.chat_model, found.top_k, found.budget_tokens) == ("openai/naïve-😀", 7, 900)


def test_a_value_that_is_taken_out_leaves_its_comment(file: Path) -> None:
    set_settings(file.parent, {BUDGET: None, PINNED: None, "MEMCHAT_TOP_K": None})
    assert file.read_text() == (
        WRITTEN.replace(f"{BUDGET} = 900   #", "#").removesuffix(f"{PINNED} = 200")
    )


def test_a_new_file_is_for_this_account_alone(tmp_path: Path) -> None:
    home = tmp_path / "new"
    set_settings(home, {CHAT: "ollama/llama3.2"})
    path = home / "settings.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load({"MEMCHAT_HOME": str(home)}).chat_model == "ollama/llama3.2"
    assert [one.name for one in home.iterdir()] == [path.name]


def test_settings_and_keys_can_be_changed_while_a_store_is_open(mc: MemChat) -> None:
    set_settings(mc.settings.home, {CHAT: "ollama/llama3.2"})
    keys.set_key(mc.settings.home, "openai", "sk-for-a-test")
    assert load({"MEMCHAT_HOME": str(mc.settings.home)}).chat_model == "ollama/llama3.2"


@pytest.mark.parametrize(
    ("written", "changes", "said"),
    [
        (f'MEMCHAT_LOG = """\n{CHAT} = "a/b"\n"""\n', {CHAT: "c/d"}, "by hand"),
        (f'{CHAT} = """a/\\\nb"""\n', {CHAT: "c/d"}, "by hand"),
        (f"{CHAT} = a/b\n", {CHAT: "c/d"}, "line 1"),
        (WRITTEN, {BUDGET: "many"}, BUDGET),
        (WRITTEN, {"OPENAI_API_KEY": "sk-hidden-0001"}, "OPENAI_API_KEY is no setting"),
        (WRITTEN, {"MEMCHAT_HOME": "/tmp"}, "MEMCHAT_HOME is no setting"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused_and_stays(
    file: Path, written: str, changes: dict[str, str | None], said: str
) -> None:
    file.write_text(written)
    with pytest.raises(ConfigError, match=said) as caught:
        set_settings(file.parent, changes)
    assert "sk-hidden" not in str(caught.value)
    assert file.read_text() == written


def test_a_file_that_others_may_change_is_not_changed(file: Path) -> None:
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        set_settings(file.parent, {CHAT: "c/d"})
    assert file.read_text() == WRITTEN


def test_a_new_value_stands_before_the_tables_that_the_person_declared(file: Path) -> None:
    table = '[types.recipe]\ndescription = "dishes they cook"\n'
    file.write_text(f"{WRITTEN}\n\n{table}")
    set_settings(file.parent, {"MEMCHAT_TOP_K": "7"})
    assert file.read_text() == f'{WRITTEN}\n\nMEMCHAT_TOP_K = "7"\n{table}'
