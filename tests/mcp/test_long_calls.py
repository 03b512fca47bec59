"""Calls that take long: they report how far they are, and a client can cancel them."""

from __future__ import annotations

import threading
from datetime import timedelta

import anyio
import pytest

from memchat import NewNote
from memchat.providers.embedders import HashEmbedder
from memchat.testing import ScriptedModel
from tests.support.mcp import ask, text
from tests.support.note_answers import cites_all
from tests.support.store import NOON

MEMO = {"memoId": "m1", "createdAt": "2026-05-01"}
LONG = " ".join(f"Plank {n} of the boat is to be varnished before the rain." for n in range(3_000))
PATIENCE = 30


class Held:
    """A reply that is held back until ``go``."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go = threading.Event()

    def __call__(self, messages) -> str:
        self.asked.set()
        assert self.go.wait(PATIENCE)
        return "word " * 1_000


class HeldEmbedder(HashEmbedder):
    """Makes no vectors before ``go``."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.go = threading.Event()

    def embed_documents(self, texts):
        self.asked.set()
        assert self.go.wait(PATIENCE)
        return super().embed_documents(texts)


async def cancelled(client, when: threading.Event, tool: str, **arguments) -> None:
    """Call a tool and cancel that once ``when`` is set."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, tool, arguments)
        assert await anyio.to_thread.run_sync(when.wait, PATIENCE)
        tasks.cancel_scope.cancel()


def finish_abandoned() -> None:
    """Wait for the threads of calls that nobody waits for any more."""
    for thread in threading.enumerate():
        if thread.name.startswith("AnyIO"):
            thread.join(PATIENCE)


def reports() -> tuple[list, object]:
    seen: list[tuple[float, float | None]] = []

    async def report(done, total, message) -> None:
        seen.append((done, total))

    return seen, report


def test_a_summary_in_parts_reports_its_calls(open_store) -> None:
    def answers(messages) -> str:
        if messages[0].content.startswith("Collect"):
            return "- Planks [1]"
        return cites_all(messages)

    mc = open_store(chat_model=ScriptedModel([answers] * 20, window=2_000))
    ana, seen = mc.user("ana"), reports()
    ana.notes.add_many(
        NewNote(
            f"The boat has a plank number {n}, to be varnished.", created_at=NOON - timedelta(n)
        )
        for n in range(40)
    )
    arguments = {"question": "Summarize all on the boat", "summary": True}
    done = ask(mc, ana, lambda c: c.call_tool("ask", arguments, progress_callback=seen[1]))
    assert not done.is_error and done.structured_content["sources"]
    total = seen[0][-1][1]
    assert total > 2 and seen[0] == [(n, total) for n in range(int(total) + 1)]


def test_a_long_memo_reports_its_parts(mc) -> None:
    ana, seen = mc.user("ana"), reports()
    arguments = {**MEMO, "transcript": LONG}
    done = ask(mc, ana, lambda c: c.call_tool("index_memo", arguments, progress_callback=seen[1]))
    (note,) = ana.notes.list()
    assert text(done) == f"Indexed {note.chunks} chunks"
    assert seen[0][0] == (0, note.chunks) and seen[0][-1] == (note.chunks, note.chunks)
    assert ana.notes.report().waiting == 0


@pytest.mark.parametrize("summary", [False, True])
def test_a_cancelled_question_stops_the_models_answer_and_the_server_answers_on(
    mc, chat_model, summary
) -> None:
    ana, held = mc.user("ana"), Held()
    ana.notes.add("The garden costs four hundred euros.")
    chat_model.replies.appendleft(held)

    async def both(client):
        await cancelled(client, held.asked, "ask", question="garden euros?", summary=summary)
        return await client.call_tool("get_capabilities", {})

    after = ask(mc, ana, both)  # the model has not said a word yet
    assert not after.is_error
    held.go.set()
    finish_abandoned()
    (stream,) = chat_model.streams
    assert stream.closed and not stream.whole


def test_a_cancelled_memo_is_kept_whole_and_its_vectors_are_made_later(open_store) -> None:
    holding = HeldEmbedder()
    mc = open_store(embedder=holding)
    ana = mc.user("ana")

    async def both(client):
        await cancelled(client, holding.asked, "index_memo", **MEMO, transcript=LONG)
        holding.go.set()
        return await client.call_tool("get_capabilities", {})

    assert not ask(mc, ana, both).is_error
    (note,) = ana.notes.list()
    assert ana.notes.get(note.id).text == LONG
    (client,) = ana.clients.list()
    assert client.notes == 1
    finish_abandoned()
    mc.jobs.run()
    report = ana.notes.report()
    assert (report.waiting, report.failed) == (0, 0)
    assert not [check for check in mc.doctor() if check.state == "problem"]
