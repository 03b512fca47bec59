"""Where the data folder is by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat.config import load
from memchat.disk import default_home


def test_the_default_is_the_platform_s_folder_in_a_checkout_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "user" / "data"))
    assert load({}).home == default_home() == tmp_path / "user" / "data" / "memchat"
