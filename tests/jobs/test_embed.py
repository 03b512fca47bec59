"""Vectors through the queue: what is bad ends alone, what is good is not held back by it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from memchat.errors import StoreError
from memchat.providers.embedders import SERVICE
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.embedding_queue import Service, add, many, refusing, statuses
from tests.support.store import Opener

# At once


def test_adding_asks_no_provider_and_is_pending_when_it_returns(open_store: Opener) -> None:
    service = Service(lambda _: pytest.fail("the provider was asked"))
    mc = open_store(embedder=service)
    (memory_id,) = add(mc, "tea")
    (state,) = mc.user("ana").memories.embedding_states([memory_id])
    assert (state.status, state.code, state.model, state.error) == ("pending", -1, None, None)
    assert statuses(mc, "pending") == [memory_id] and service.asked == []


def test_with_nothing_to_embed_with_there_is_no_status_and_no_job(open_store: Opener) -> None:
    mc = open_store(embedder=None, embed_model="none")
    ana = mc.user("ana")
    (memory_id,) = add(mc, "tea")
    ana.memories.update(memory_id, value="green tea")
    (state,) = ana.memories.embedding_states([memory_id])
    assert (state.status, state.code) == (None, None)
    assert mc.jobs.list(user="ana") == []
    assert [hit.id for hit in ana.search("green tea").hits] == [memory_id]


def test_a_named_service_without_its_key_queues_nothing_and_the_chat_works(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch, extract_model: Any
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    named = {"embed_model": "MEMCHAT_EMBED_MODEL"}
    mc = open_store(embedder=None, embed_model="openai/text-embedding-3-small", why=named)
    ana = mc.user("ana")
    (memory_id,) = add(mc, "tea")
    assert ana.memories.embedding_states([memory_id])[0].status is None
    assert mc.jobs.list(user="ana") == []
    with ana.chat(incognito=True) as chat:
        assert chat.send("Hi").read() == "Fine."
    found = ana.search("tea")
    assert found.hits and "OPENAI_API_KEY" in (found.degraded or "")


def test_whatever_way_a_vector_came_its_model_is_told(
    open_store: Opener, extract_model: Any
) -> None:
    said = answer(fact("I live in Lisbon", "city", "Lisbon"), fact("I may sing", "hobby", "sing"))
    extract_model.replies.append(said)
    mc = open_store(embedder=None, embed_model="none")
    (early,) = add(mc, "before there was a service")
    mc = open_store()
    assert mc.jobs.backfill().done == 1
    by_hand, edited = add(mc, "by hand", "to be edited")
    with mc.user("ana").chat() as chat:
        assert chat.send("I live in Lisbon. I may sing.").read()
    private.wait_for_work_behind(mc)  # it began as the chat did, and may have the first two in hand
    mc.jobs.run()
    mc.user("ana").memories.update(edited, value="edited")
    assert statuses(mc, "pending") == [edited]
    for item in mc.user("ana").inbox.list():
        mc.user("ana").inbox.accept(item.id)
    mc.user("ana").memories.update(by_hand, value="by hand, once more")
    mc.jobs.run()
    memories = mc.user("ana").memories.list()
    assert len(memories) == 5 and early in {memory.id for memory in memories}
    for name in (SERVICE.name, "hash/other-96"):
        states = mc.user("ana").memories.embedding_states([memory.id for memory in memories])
        assert {(state.status, state.model) for state in states} == {("completed", name)}
        assert mc.services.migrate("hash/other-96").switched


def test_success_clears_the_error_and_tells_the_model(open_store: Opener, clock: Any) -> None:
    service = Service(refusing(503, "tea"))
    mc = open_store(embedder=service)
    ana = mc.user("ana")
    (memory_id,) = add(mc, "tea")
    mc.jobs.run()
    (state,) = ana.memories.embedding_states([memory_id])
    assert (state.status, state.error, state.attempts) == ("pending", "refused", 1)
    service.answer = None
    clock.advance(seconds=60)
    mc.jobs.run()
    (state,) = ana.memories.embedding_states([memory_id])
    assert (state.status, state.code, state.error) == ("completed", 0, None)
    assert state.model == SERVICE.name and state.processed_at == clock()


def test_failed_for_good_has_reason_code_tries_and_time_and_can_be_retried(
    open_store: Opener, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    service = Service(refusing(503, "tea"))
    mc = open_store(embedder=service)
    (memory_id,) = add(mc, "tea")
    tried = []
    for minute in range(40):
        before = len(service.asked)
        mc.jobs.run()
        tried += [minute] * (len(service.asked) - before)
        clock.advance(seconds=60)
    assert tried == [0, 1, 3, 7, 15, 31]
    (state,) = mc.user("ana").memories.embedding_states([memory_id])
    assert (state.status, state.code, state.error, state.attempts) == ("failed", 503, "refused", 6)
    told = [record.getMessage() for record in caplog.records]
    assert sum("embedding failed 1: refused" in line for line in told) == 6
    assert not any("tea" in line for line in told)
    assert state.processed_at is not None
    assert statuses(mc, "failed") == [memory_id] and statuses(mc, "completed") == []
    assert mc.jobs.retry(user="ana", failed_only=True).count == 1
    assert statuses(mc, "pending") == [memory_id]
    service.answer = None
    mc.jobs.run()
    assert statuses(mc, "completed") == [memory_id]


def test_the_retries_are_a_setting(open_store: Opener, clock: Any) -> None:
    service = Service(refusing(503, "tea"))
    mc = open_store(embedder=service, retry_minutes=(3.0, 0.5))
    (memory_id,) = add(mc, "tea")
    tried = []
    for half_minute in range(20):
        before = len(service.asked)
        mc.jobs.run()
        tried += [half_minute / 2] * (len(service.asked) - before)
        clock.advance(seconds=30)
    assert tried == [0, 3, 3.5]
    (state,) = mc.user("ana").memories.embedding_states([memory_id])
    assert (state.status, state.attempts) == ("failed", 3)


def test_retrying_only_what_failed_leaves_what_waits(open_store: Opener, clock: Any) -> None:
    service = Service(refusing(503))
    mc = open_store(embedder=service)
    many(mc, 1, bad=[0])
    mc.jobs.run()
    assert mc.jobs.retry(user="ana", failed_only=True).count == 0
    assert mc.jobs.retry(user="ana").count == 1


def test_a_status_that_is_none_cannot_be_stored(open_store: Opener) -> None:
    mc = open_store()
    add(mc, "tea")
    for wrong in ("-2", "'done'", "1.5"):
        with pytest.raises(StoreError), private.database(mc).write() as tx:
            tx.connection.exec_driver_sql(f"UPDATE passages SET status = {wrong}")
