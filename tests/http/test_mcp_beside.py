"""MCP beside the rest: the same tokens, each for its own person and app."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from memchat.config.tokens import Token
from tests.support.served import Served

FACT = {"type": "preference", "key": "drinks", "value": "green tea"}


def called(served: Served, token: str, tool: str, user: str = "", **arguments: Any) -> Any:
    """What a tool gives over MCP."""
    headers = served.headers(token) | ({"x-memchat-user": user} if user else {})

    async def talk() -> Any:
        async with (
            create_mcp_http_client(headers=headers) as web,
            Client(streamable_http_client(f"{served.url}/mcp", http_client=web)) as client,
        ):
            return await client.call_tool(tool, arguments)

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(talk())
    finally:
        loop.close()


def test_a_program_remembers_over_mcp_as_its_mode_allows(served: Served) -> None:
    for token, status in (("ask", "waiting"), ("trust", "stored")):
        assert called(served, token, "remember", **FACT).structured_content["status"] == status
    assert [one.value for one in served.ana.memories.list()] == ["green tea"]


def test_each_token_reaches_the_memory_of_its_own_person(served: Served) -> None:
    served.ana.memories.add("profile", "city", "Porto")
    served.add(Token("ben", "ben", mode="trust"))
    served.add(Token("team", for_users="team-*", mode="trust"))
    called(served, "ben", "remember", **FACT)
    called(served, "team", "remember", "team-eva", **FACT)
    for user in ("ben", "team-eva"):
        (one,) = served.mc.user(user).memories.list()
        assert one.value == "green tea"
    found = called(served, "ben", "list_memories").structured_content
    assert [one["value"] for one in found["memories"]] == ["green tea"]
    assert [one.value for one in served.ana.memories.list()] == ["Porto"]


def test_a_token_that_may_only_read_writes_nothing_over_mcp(served: Served) -> None:
    served.ana.memories.add("profile", "city", "Porto")
    served.add(Token("reader", "ana", may="read", mode="trust"))
    assert called(served, "reader", "recall", query="city").structured_content["found"]
    for tool, arguments in (
        ("remember", FACT),
        ("forget", {"memory_id": 1}),
        ("update_memory", {"memory_id": 1, "value": "Faro"}),
        ("index_memo", {"memoId": "m", "transcript": "words", "createdAt": "2026-05-01"}),
    ):
        done = called(served, "reader", tool, **arguments)
        assert done.is_error and "may read alone" in done.content[0].text, tool
    assert [one.value for one in served.ana.memories.list()] == ["Porto"]
    assert not served.ana.notes.list()


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer x"}, {"host": "evil.example"}])
def test_nobody_else_gets_in(served: Served, headers: dict[str, str]) -> None:
    said = httpx.post(f"{served.url}/mcp", headers=headers, json={})
    assert said.status_code in (401, 421)
