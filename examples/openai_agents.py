"""OpenAI Agents SDK: a session that memchat learns from, and instructions with what it knows.

``my_model`` stands for the model; without ``model`` it is OpenAI's. It prints::

    monday: Noted.
    tuesday: You drink green tea.
"""

import asyncio
import json
import tempfile
from typing import Any

import httpx
from agents import Agent, OpenAIChatCompletionsModel, RunContextWrapper, Runner, SQLiteSession
from agents.tracing import set_tracing_disabled
from openai import AsyncOpenAI

from memchat import AsyncMemChat


class MemchatSession(SQLiteSession):
    """The SDK's session in a file; its other ones can give memchat what is said like this."""

    user: Any

    async def add_items(self, items: list[Any]) -> None:
        """Keep the items, and have memchat read what was said once the conversation rests."""
        await super().add_items(items)
        if turns := [{**item, "content": text} for item in items if (text := words(item))]:
            await self.user.add(turns, session=self.session_id, wait=False)


def words(item: Any) -> str:
    """The text of a message; empty for tool calls, their results, and pictures."""
    said: Any = item.get("content") if item.get("role") in ("user", "assistant") else ""
    return said if isinstance(said, str) else "\n".join(part.get("text", "") for part in said)


async def instructions(run: RunContextWrapper[Any], agent: Agent[Any]) -> str:
    """What the agent is told; ``run.context`` is the person."""
    asked = [words(item) for item in run.turn_input if item.get("role") == "user"][-1]
    return f"You are brief.\n\n{(await run.context.context(asked)).text if asked else ''}"


def my_model(request: httpx.Request) -> httpx.Response:
    """Answer in OpenAI's wire format."""
    known = "green tea" in json.loads(request.content)["messages"][0]["content"]
    said = {"role": "assistant", "content": "You drink green tea." if known else "Noted."}
    return httpx.Response(200, json={"choices": [{"message": said}]})


async def main() -> None:
    """Run the agent in two conversations."""
    set_tracing_disabled(True)  # else the SDK sends what happens here to OpenAI
    http = httpx.AsyncClient(transport=httpx.MockTransport(my_model))
    model = OpenAIChatCompletionsModel("mine", AsyncOpenAI(api_key="none", http_client=http))
    agent = Agent("Waiter", instructions=instructions, model=model)
    said = {"monday": "I like green tea.", "tuesday": "What do I drink?"}
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncMemChat(folder) as mc, http:
            for day, text in said.items():
                session = MemchatSession(day, f"{folder}/agents.db")
                session.user = mc.user("ana")
                done = await Runner.run(agent, text, session=session, context=session.user)
                print(f"{day}: {done.final_output}")
                session.close()


if __name__ == "__main__":
    asyncio.run(main())
