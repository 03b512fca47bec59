"""The text that leads well-known programs to ``memchat mcp``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from memchat.api.clients import configs
from memchat.disk import default_home
from tests.support.paths import ROOT


def entries(home: Path) -> dict[str, dict]:
    """The entry of memchat in each configuration, by the program's name."""
    found = {}
    for one in configs(home, "ana", "work"):
        (servers,) = json.loads(one.text).values()
        found[one.client] = servers["memchat"]
    return found


def test_each_program_starts_this_installation_for_one_person_and_app(tmp_path) -> None:
    found = entries(tmp_path)
    assert set(found) == {"Claude Desktop", "VS Code", "Cursor"}
    for client, entry in found.items():
        assert Path(entry["command"]).is_absolute()
        scope = ["mcp", "--client", client, "--user", "ana", "--app", "work"]
        assert entry["args"][-len(scope) :] == scope
        assert entry["env"] == {"MEMCHAT_HOME": str(tmp_path)}


def test_the_data_folder_is_named_only_where_it_is_not_the_usual_one() -> None:
    assert all("env" not in entry for entry in entries(default_home()).values())


def test_without_the_program_beside_it_python_starts_the_package(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    for entry in entries(tmp_path).values():
        assert entry["command"] == str(tmp_path / "python")
        assert entry["args"][:3] == ["-m", "memchat", "mcp"]


@pytest.mark.parametrize("config", configs(Path("/store"), "ana", "work"), ids=lambda one: one.key)
def test_the_page_on_mcp_has_the_same_places_and_entries(config) -> None:
    page = (ROOT / "docs" / "mcp.md").read_text("utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {config.client} |")]
    _, _, place, text, _ = row.split("|")
    assert place.strip().replace("`", "").replace("*", "") == config.place
    shown, made = json.loads(text.strip().strip("`")), json.loads(config.text)
    assert list(shown) == list(made)
    (shown_servers,), (made_servers,) = shown.values(), made.values()
    theirs, ours = shown_servers["memchat"], made_servers["memchat"]
    assert theirs.get("type") == ours.get("type")
    assert [a for a in ours["args"] if a in theirs["args"]] == theirs["args"]
