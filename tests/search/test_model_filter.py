"""Very many pinned facts: one call chooses which come first."""

from __future__ import annotations

import json

import pytest

from memchat import MemChat
from memchat.errors import ProviderError
from tests.support.receipts import reply_to

# --- very many pinned facts


def many(mc: MemChat, count: int) -> dict[str, int]:
    ids = {
        f"number {n}": mc.user("ana").memories.add("preference", "likes", f"number {n}").id
        for n in range(count)
    }
    mc.jobs.embed()
    return ids


def test_fifty_pinned_facts_cost_no_call_and_neither_does_the_switch_that_is_off(
    open_store, extract_model
) -> None:
    mc = open_store(filter_pinned=True, budget_tokens=300)
    many(mc, 50)
    reply_to(mc, "Hi")
    mc.user("ana").memories.add("preference", "likes", "one more")
    mc.close()
    reply_to(open_store(budget_tokens=300), "Hi")
    assert extract_model.requests == []


def test_nobody_is_asked_which_facts_fit_where_all_of_them_are_sent(
    open_store, extract_model
) -> None:
    mc = open_store(filter_pinned=True, budget_tokens=2000)
    many(mc, 60)
    assert len(reply_to(mc, "Hi").also) == 60
    assert extract_model.requests == []


def test_above_fifty_one_call_chooses_which_come_first(open_store, extract_model) -> None:
    mc = open_store(filter_pinned=True, pinned_tokens=60, budget_tokens=300)
    ids = many(mc, 60)
    wanted = [ids["number 41"], ids["number 7"]]
    extract_model.replies.append(f"Here: {json.dumps({'ids': [*wanted, 99999]})}")
    found = reply_to(mc, "Hi")
    assert [line.hit.id for line in found.lines if line.hit.channel == "pinned"][:2] == wanted
    assert len(extract_model.requests) == 1
    assert {call.purpose for call in found.calls} == {"chat", "relevance"}


@pytest.mark.parametrize(
    "answered", ["no JSON", '{"ids": "all"}', "{}", ProviderError("down")], ids=str
)
def test_an_answer_that_cannot_be_used_leaves_the_order(
    open_store, extract_model, answered
) -> None:
    mc = open_store(filter_pinned=True, budget_tokens=300)
    many(mc, 60)
    usual = [hit.id for hit in mc.user("ana").answer("Hi").shown.hits]
    extract_model.replies.append(answered)
    assert [line.hit.id for line in reply_to(mc, "Hi").lines] == usual
