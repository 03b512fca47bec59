"""Fixtures that several test files of this folder use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memchat.providers import litellm_calls

# The terminal


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    litellm_calls.litellm()  # in front: a chat loads it in a thread that may outlive a test
    for name in [*os.environ]:
        if name.startswith("MEMCHAT_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    ours = {"HOME": str(tmp_path / "store"), "USER": "ana", "EMBED_MODEL": "none"}
    for name, value in ours.items():
        monkeypatch.setenv(f"MEMCHAT_{name}", value)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "store"
