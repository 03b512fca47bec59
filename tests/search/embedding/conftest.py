"""Fixtures that several test files of this folder use."""

from __future__ import annotations

import pytest

from memchat import MemChat
from memchat.search import switch
from tests.support.service_change import RIVERS
from tests.support.store import Opener


@pytest.fixture
def rivers(open_store: Opener, monkeypatch: pytest.MonkeyPatch) -> MemChat:
    """A store of seven facts, embedded with the old service, and small batches."""
    monkeypatch.setattr(switch, "BATCH", 2)
    mc = open_store()
    for river in RIVERS:
        mc.user("ana").memories.add("fact", "river", f"{river} in flood")
    mc.jobs.embed()
    return mc
