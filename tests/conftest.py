"""A store of its own for each test: scripted models, the hash embedder, a clock that waits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.providers.hash_embedder import HashEmbedder
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import Hit, Recalled

# Speed is measured in benchmarks/; on a busy machine a deadline tells nothing.
hypothesis.settings.register_profile("memchat", deadline=None)
hypothesis.settings.load_profile("memchat")

WAIT = 30.0
"""Seconds: no test's outcome hangs on how busy the machine is."""
NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def fact(
    quote: str, key: str, value: str, *, msg: str = "u1", memory_type: str = "profile", **more: Any
) -> dict[str, Any]:
    """One fact as the extraction model answers it."""
    return {
        "quotes": [{"msg": msg, "text": quote}],
        "ref": None,
        "type": memory_type,
        "key": key,
        "value": value,
        "many": False,
        "until_said": None,
        "until": None,
        "to": None,
        "is": "new",
        "flags": [],
        **more,
    }


def answer(*facts: dict[str, Any], title: str = "", summary: str = "") -> str:
    """A whole answer of the extraction model."""
    return json.dumps({"facts": list(facts), "forget": [], "title": title, "summary": summary})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
def chat_model() -> ScriptedModel:
    """Answers "Fine." for ever."""
    model = ScriptedModel(name="scripted/chat")
    model.replies.extend(["Fine."] * 1000)
    return model


@pytest.fixture
def extract_model() -> ScriptedModel:
    return ScriptedModel(name="scripted/extract")


def given(shown: Recalled) -> list[Hit]:
    """All that a prompt was given: its list of facts, and what was found for the message."""
    listed = {hit.id for hit in shown.listed}
    return [*shown.listed, *(h for h in shown.hits if h.kind == "message" or h.id not in listed)]


Opener = Callable[..., MemChat]


@pytest.fixture
def open_store(
    tmp_path: Path, clock: FakeClock, chat_model: ScriptedModel, extract_model: ScriptedModel
) -> Iterator[Opener]:
    """Opens the test's store, again and again; everything opened is closed at the end."""
    opened: list[MemChat] = []

    def opener(**changes: Any) -> MemChat:
        settings = Settings(home=tmp_path / "store", timezone="Europe/Berlin", embed_patience=WAIT)
        given = {"chat_model": chat_model, "extract_model": extract_model, "clock": clock}
        given["embedder"] = changes.pop("embedder", HashEmbedder())
        for name in ("chat_model", "extract_model", "clock"):
            given[name] = changes.pop(name, given[name])
        opened.append(MemChat(settings=settings.with_(**changes), **given))
        return opened[-1]

    yield opener
    for store in opened:
        store.close()


@pytest.fixture
def mc(open_store: Opener) -> MemChat:
    return open_store()
