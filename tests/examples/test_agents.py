"""The examples for agents of the OpenAI Agents SDK and of Pydantic AI, with their own packages."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from examples.openai_agents import MemchatSession, instructions
from examples.pydantic_agent import Memory
from memchat import AsyncMemChat, MemChat
from tests.support.wire import Call, OpenAIServer, Say


def run(work: Any) -> Any:
    """In a thread of its own: asyncio.run drops the event loop that litellm left in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def kept(home: Path, person: str = "ana") -> list[list[tuple[str, str]]]:
    """The conversations of a person, the first one first."""
    with MemChat(home) as mc:
        sessions = mc.user(person).sessions
        found = sorted(sessions.list(), key=lambda one: one.id)
        return [[(m.role, m.content) for m in sessions.messages(one.id)] for one in found]


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def test_an_agent_of_openai_s_sdk_remembers_in_another_conversation(tmp_path: Path) -> None:
    set_tracing_disabled(True)

    async def talk(server: OpenAIServer) -> list[Any]:
        client = AsyncOpenAI(base_url=server.base, api_key=server.key, max_retries=0)
        model = OpenAIChatCompletionsModel("gpt-4.1-mini", client)
        agent = Agent[Any]("A", instructions=instructions, model=model, tools=[weather])
        async with AsyncMemChat(tmp_path / "store") as mc, client:
            ana = mc.user("ana")

            async def say(day: str, text: str, *, stream: bool = False) -> list[Any]:
                session = MemchatSession(day, str(tmp_path / "agents.db"))
                session.user = ana
                if stream:
                    streamed = Runner.run_streamed(agent, text, session=session, context=ana)
                    async for _ in streamed.stream_events():
                        pass
                else:
                    await Runner.run(agent, text, session=session, context=ana)
                items = await session.get_items()
                session.close()
                return [*items]

            server.script(Say("Noted."))
            await say("monday", "I live in Porto.")
            server.script(Call((("weather", '{"city": "Porto"}'),)), Say("It rains."))
            await say("tuesday", "What is the weather where I live?", stream=True)
            server.script(Say("Yes."))
            return await say("tuesday", "Do I need a coat in Porto?")

    with OpenAIServer() as server:
        items = run(talk(server))
        assert server.refusals == []
    said = [one.body["messages"] for one in server.requests]
    assert "Porto" not in said[0][0]["content"]
    assert all("I live in Porto." in messages[0]["content"] for messages in said[1:])
    kinds = [item.get("type", item.get("role")) for item in items]
    assert kinds.count("function_call") == kinds.count("function_call_output") == 1
    assert kept(tmp_path / "store") == [
        [("user", "I live in Porto."), ("assistant", "Noted.")],
        [
            ("user", "What is the weather where I live?"),
            ("assistant", "It rains."),
            ("user", "Do I need a coat in Porto?"),
            ("assistant", "Yes."),
        ],
    ]


def test_an_agent_of_pydantic_ai_remembers_each_of_its_people(tmp_path: Path) -> None:
    told: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.append(info.instructions or "")
        if len(messages) == 1:
            return ModelResponse([ToolCallPart("weather", {"city": "Porto"})])
        return ModelResponse([TextPart("It rains.")])

    agent = PydanticAgent(FunctionModel(model), capabilities=[Memory()])

    @agent.tool_plain
    def weather(city: str) -> str:
        return f"rain in {city}"

    async def talk() -> None:
        async with AsyncMemChat(tmp_path / "store") as mc:
            first = await agent.run("I live in Porto.", deps=mc.user("ana"), conversation_id="a")
            await agent.run(
                "Do I need a coat in Porto?",
                deps=mc.user("ana"),
                message_history=first.all_messages(),
            )
            await agent.run("Where do I live, in Porto?", deps=mc.user("ana"))
            await agent.run(["Where do I live, in Porto?"], deps=mc.user("ben"))

    run(talk())
    known = ["I live in Porto." in one for one in told]
    assert known == [False, False, True, True, True, False, False]
    asked = ("user", "Where do I live, in Porto?"), ("assistant", "It rains.")
    assert kept(tmp_path / "store") == [
        [
            ("user", "I live in Porto."),
            ("assistant", "It rains."),
            ("user", "Do I need a coat in Porto?"),
            ("assistant", "It rains."),
        ],
        [*asked],
    ]
    assert kept(tmp_path / "store", "ben") == [[*asked]]
