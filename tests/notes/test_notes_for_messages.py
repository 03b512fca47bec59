"""How often a chat is given the note that it needs, and one that it does not, with MiniLM."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memchat.providers.local import MiniLMEmbedder, available
from tests.support import private
from tests.support.store import Opener

DATA = Path(__file__).parents[1] / "data"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="MiniLM is not on this machine")
def test_the_note_needed_is_mostly_given_and_others_rarely(open_store: Opener) -> None:
    mc = open_store(embedder=MiniLMEmbedder(None))
    ana, first = mc.user("ana"), datetime(2026, 3, 1, 9, tzinfo=UTC)
    for memo in lines("chat_memos.jsonl"):
        said = first + timedelta(days=memo["memo"])
        ana.notes.add(memo["text"], title=memo["title"], created_at=said, wait=False)
    mc.jobs.run()
    parts = private.parts(mc)
    requests = [(line["message"], line["needs"]) for line in lines("chat_memo_requests.jsonl")]
    requests += [(line["question"], None) for line in lines("everyday_requests_dev.jsonl")[::3]]
    right, needless = 0, 0
    for message, needed in requests:
        given = parts.notes.for_prompt(ana.scope, parts.recall.question(message))
        right += needed in {hit.id for hit in given}
        needless += bool(given) and needed is None
    assert right >= 55, "of 60 messages that need a note"
    assert needless <= 8, "of 90 that need none"
