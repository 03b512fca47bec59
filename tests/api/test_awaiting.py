"""``AsyncMemChat``: the same verbs, awaited; a wait for a model holds no thread."""

from __future__ import annotations

import asyncio
import gc
import re
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

import memchat
from memchat import AsyncMemChat, InputError, MemChat, NotFound, ProviderError, StoreError, waiting
from memchat.api import aio
from memchat.api.aio import LANES
from memchat.config import Settings
from memchat.providers.embedders import HashEmbedder
from memchat.providers.litellm_chat import LiteLLMChat
from memchat.testing import ScriptedModel
from tests.support.answers import answer, fact
from tests.support.second_look import HOLDS
from tests.support.store import WAIT
from tests.support.wire.case import chat_of
from tests.support.wire.openai import OpenAIServer
from tests.support.wire.server import Endless, Hang
from tests.support.wire.tls import serve_tls

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def run(work: Coroutine[Any, Any, Any]) -> None:
    """To its end, or for so long that it has come to none."""
    # Not asyncio.run, which drops the loop that a library may have made for this thread.
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(asyncio.wait_for(work, WAIT))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        yield server


@asynccontextmanager
async def opened(folder: Path, model: Any = None, **more: Any) -> AsyncIterator[AsyncMemChat]:
    model = model or ScriptedModel()
    settings = Settings(home=folder / "store", embed_patience=WAIT)
    models = {"chat_model": model, "extract_model": model, "embedder": HashEmbedder()}
    async with AsyncMemChat(settings=settings, **models, **more) as mc:
        yield mc


def city_of(messages: list[dict[str, Any]]) -> str:
    """The one fact of "I live in …", and that it holds."""
    if '"candidates"' in messages[-1]["content"]:
        return HOLDS
    found = re.findall(r"I live in (\w+)", messages[-1]["content"])[-1]
    return answer(fact(f"I live in {found}", "city", found))


class Meeting:
    """Answers once so many requests have come, and can be asked whether they have."""

    def __init__(self, count: int) -> None:
        self.all_here = threading.Event()
        self._left = threading.Semaphore(count - 1)

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        said = city_of(messages)
        if said != HOLDS:
            if not self._left.acquire(blocking=False):
                self.all_here.set()
            assert self.all_here.wait(WAIT)
        return said


def test_calls_that_wait_for_a_model_hold_no_thread(tmp_path: Path, server: OpenAIServer) -> None:
    many = waiting.AT_ONCE + LANES  # more than one lane takes
    server.reply = meeting = Meeting(many)

    async def work() -> None:
        async with opened(tmp_path, chat_of(server, timeout=WAIT)) as mc:
            adds = [mc.user(f"p{n}").add("I live in Porto") for n in range(many)]
            # No one is answered before all of them wait.
            learned = await asyncio.gather(*adds)
            assert [len(one.changes) for one in learned] == [1] * many
            assert meeting.all_here.is_set()

    run(work())
    assert server.refusals == []


class Blocking(ScriptedModel):
    """Answers once three are asked at the same time, and holds its thread until then."""

    all_here = threading.Barrier(3)

    def complete(self, *given: Any, **named: Any) -> Any:
        if named["purpose"] == "extract":
            self.all_here.wait(WAIT)
        self.replies.append(answer())
        return super().complete(*given, **named)


def test_models_of_ones_own_that_block_hold_up_no_other_call(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path, Blocking()) as mc:
            for name in ("ana", "ben", "cleo"):
                await mc.user(name).add("I had soup", wait=False)
            done = await mc.jobs.run(parallel=3)  # on one lane
            assert (len(done.learned), done.failed) == (3, [])

    run(work())


def test_a_verb_that_works_for_long_holds_up_none_that_comes_later(tmp_path: Path) -> None:
    began, found = threading.Event(), threading.Event()

    def work_long(_: object) -> None:
        began.set()
        assert found.wait(WAIT)

    async def work() -> None:
        async with opened(tmp_path) as mc:
            ana = mc.user("ana")
            one = await ana.memories.add("profile", "city", "Basel")
            slow = asyncio.create_task(ana.memories.delete_many([one.id], progress=work_long))
            while not began.is_set():
                await asyncio.sleep(0.01)
            await asyncio.sleep(2 * waiting.LONG_SECONDS)
            assert (await mc.user("ben").search("Which city?")).hits == ()
            found.set()
            await slow

    run(work())


def test_a_write_that_waits_for_another_process_holds_up_no_search(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path) as mc:
            ana = mc.user("ana")
            await ana.memories.add("profile", "city", "Basel")
            await ana.search("Which city?")  # the first one notes which service makes the vectors
            other = sqlite3.connect(tmp_path / "store" / "memchat.db", isolation_level=None)
            with closing(other):
                other.execute("BEGIN IMMEDIATE")
                writes = [
                    asyncio.create_task(ana.memories.add("fact", f"k{n}", "v")) for n in range(9)
                ]
                found = [mc.user("ana").search("Which city?") for _ in range(20)]
                assert all(one.hits for one in await asyncio.gather(*found))
                assert not any(task.done() for task in writes)
                other.execute("ROLLBACK")
            assert len(await asyncio.gather(*writes)) == 9

    run(work())


def test_a_search_is_answered_while_every_lane_waits(tmp_path: Path, server: OpenAIServer) -> None:
    server.reply = meeting = Meeting(5 * LANES)

    async def work() -> None:
        async with opened(tmp_path, chat_of(server, timeout=WAIT)) as mc:
            await mc.user("ana").memories.add("profile", "city", "Basel")
            users = [mc.user(f"p{n}") for n in range(5 * LANES - 1)]
            adds = asyncio.gather(*(user.add("I live in Porto") for user in users))
            while len(server.requests) < len(users):
                await asyncio.sleep(0.01)
            found = await mc.user("ana").search("Which city?")
            assert found.hits[0].memory.value == "Basel"
            assert not adds.done() and not meeting.all_here.is_set()
            await mc.user("last").add("I live in Porto")
            await adds

    run(work())


def test_a_wait_over_tls_is_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = OpenAIServer(reply=Meeting(2 * LANES))
    monkeypatch.setenv("SSL_CERT_FILE", str(serve_tls(server, tmp_path)))
    monkeypatch.setenv("OPENAI_API_KEY", server.key)
    model = LiteLLMChat(
        "openai/over-tls", timeout=WAIT, api_base=server.base.replace("http", "https")
    )

    async def work() -> None:
        async with opened(tmp_path, model) as mc:
            users = [mc.user(f"p{n}") for n in range(2 * LANES)]
            await asyncio.gather(*(user.add("I live in Porto") for user in users))
            for user in users:
                assert [one.value for one in await user.memories.list()] == ["Porto"]

    with server:
        run(work())


def test_an_add_that_is_cancelled_is_in_the_queue_and_read_once(
    tmp_path: Path, server: OpenAIServer
) -> None:
    server.script(Hang(WAIT))
    server.reply = city_of

    async def work() -> None:
        async with opened(tmp_path, chat_of(server, timeout=WAIT)) as mc:
            ana = mc.user("ana")
            add = asyncio.ensure_future(ana.add("I live in Porto"))
            while not server.requests:
                await asyncio.sleep(0.01)
            add.cancel()
            with pytest.raises(asyncio.CancelledError):
                await add
            assert await ana.memories.list() == []
            assert [job.kind for job in await mc.jobs.list(user="ana")] == ["extract"]
            await mc.jobs.run()
            (kept,) = await ana.memories.list()
            assert (kept.value, kept.seen_count) == ("Porto", 1)
            assert len(await ana.sessions.list()) == 1

    run(work())


def test_a_reply_comes_in_pieces_and_a_chat_learns_when_it_is_left(tmp_path: Path) -> None:
    model = ScriptedModel()
    model.replies += ["Nice to meet you.", answer(fact("I live in Porto", "city", "Porto")), HOLDS]

    async def work() -> None:
        async with opened(tmp_path, model) as mc:
            ana = mc.user("ana")
            async with ana.chat() as chat:
                reply = await chat.send("I live in Porto")
                pieces = [piece async for piece in reply]
                assert len(pieces) > 1 and "".join(pieces) == "Nice to meet you."
                assert reply.received == "Nice to meet you."
            assert [one.value for one in await ana.memories.list()] == ["Porto"]
            model.replies.clear()
            model.replies.append("Fine.")
            chat = await ana.chat(incognito=True)
            assert await (await chat.send("Hello")).read() == "Fine."

    run(work())


@pytest.mark.parametrize("how", ["stopped", "cancelled"])
def test_of_a_reply_that_is_broken_off_the_words_that_came_are_kept(
    tmp_path: Path, server: OpenAIServer, how: str
) -> None:
    server.script(Endless())

    async def work() -> None:
        async with opened(tmp_path, chat_of(server, timeout=WAIT)) as mc:
            ana = mc.user("ana")
            await ana.set_memory(False)
            chat = await ana.chat()
            reply = await chat.send("Count for me")
            came = asyncio.Event()

            async def read() -> None:
                async for _ in reply:
                    came.set()

            reading = asyncio.ensure_future(read())
            await came.wait()
            if how == "stopped":
                await reply.stop()
                await reading
            else:
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
            (session,) = await ana.sessions.list()
            last = (await ana.sessions.messages(session.id))[-1]
            assert (last.role, last.status) == ("assistant", "partial")
            assert last.content.startswith("word 0")
            assert server.client_left.wait(WAIT), "the provider was left talking"

    run(work())


def test_a_worker_waits_for_work_until_it_is_cancelled_or_stopped(tmp_path: Path) -> None:
    model = ScriptedModel()
    model.replies += [answer(fact("I live in Porto", "city", "Porto")), HOLDS]

    async def work() -> None:
        async with opened(tmp_path, model) as mc:
            worker = asyncio.create_task(mc.jobs.work(look=0.01))
            ana = mc.user("ana")
            await ana.add("I live in Porto", session="s", wait=False, when="now")
            while not await ana.memories.list():
                await asyncio.sleep(0.01)
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker
            second = asyncio.ensure_future(mc.jobs.work(look=WAIT))
            await asyncio.sleep(0)
            await mc.jobs.stop()
            await second

    run(work())


def test_closing_stops_what_is_under_way_and_keeps_it_in_the_queue(
    tmp_path: Path, server: OpenAIServer
) -> None:
    server.script(Hang(WAIT))
    before = threading.active_count()

    async def work() -> None:
        async with opened(tmp_path, chat_of(server, timeout=WAIT)) as mc:
            add = asyncio.ensure_future(mc.user("ana").add("I live in Porto"))
            while not server.requests:
                await asyncio.sleep(0.01)
        with pytest.raises(StoreError, match="closed before this was done"):
            await add
        with pytest.raises(StoreError, match="is closed"):
            await mc.user("ana").memories.list()
        assert not [one for one in threading.enumerate() if "lane" in one.name]

    run(work())
    with MemChat(tmp_path / "store", embedder=HashEmbedder()) as mc:
        assert [job.kind for job in mc.jobs.list(user="ana")] == ["extract"]
    assert threading.active_count() <= before + 2, "but for the server's own"


def test_errors_are_those_of_the_other_face(tmp_path: Path, server: OpenAIServer) -> None:
    server.script(Hang(WAIT))

    async def work() -> None:
        async with opened(tmp_path, chat_of(server, timeout=0.2)) as mc:
            ana = mc.user("ana")
            with pytest.raises(InputError, match="the question is empty"):
                await ana.search(" ")
            with pytest.raises(NotFound):
                await ana.memories.get(7)
            with pytest.raises(InputError, match="give limit as a whole number"):
                await ana.search("x", limit="3")
            with pytest.raises(ProviderError, match="did not answer within"):
                await ana.answer("Hello")
            with pytest.raises(AttributeError, match="has no attribute 'serch'"):
                ana.serch("x")

    run(work())


def test_a_verb_that_is_not_awaited_is_warned_of_by_its_name(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path) as mc:
            with pytest.warns(RuntimeWarning, match=r"'User\.add' was never awaited"):
                mc.user("ana").add("I live in Porto")
                gc.collect()

    run(work())


def test_what_has_a_thread_of_its_own_is_a_verb() -> None:
    known = {name for one in memchat.__all__ for name in dir(getattr(memchat, one))}
    assert set(aio.IN_A_THREAD) <= known


def test_waiting_for_the_same_event_again_and_again_keeps_nothing() -> None:
    lane, event = waiting.Lane("test"), waiting.Event()

    def waits() -> int:
        assert not any(event.wait(0) for _ in range(200))
        gc.collect()
        return sum(isinstance(one, Future) for one in gc.get_objects())

    try:
        few = lane.begin(waits).result(WAIT)
        assert lane.begin(waits).result(WAIT) <= few + 5
        later = lane.begin(lambda: event.wait(WAIT))
        event.set()
        assert later.result(WAIT) and event.wait(0)
    finally:
        lane.close()
    with pytest.raises(StoreError, match="is closed"):
        lane.begin(lambda: None)


def test_every_room_and_verb_is_there(tmp_path: Path) -> None:
    def verbs(face: type) -> set[str]:
        return {name for name, one in vars(face).items() if name[0] != "_" and callable(one)}

    async def work() -> None:
        async with opened(tmp_path) as mc:
            ana = mc.user("ana", "work")
            assert ana.scope.app == "work"
            for room in ("memories", "sessions", "notes", "inbox", "mentions", "clients", "apps"):
                known = verbs(getattr(memchat, room.capitalize()))
                there = set(dir(getattr(ana, room)))
                assert known and known <= there
            assert verbs(memchat.Jobs) <= set(dir(mc.jobs))
            program = ana.client("editor", "trust")
            await program.remember("profile", "city", "Porto")
            assert await mc.users.list() and await mc.backups.list() == []
            lines = [line async for line in await ana.export()]
            assert lines[0]["record"] == "app"

    run(work())
