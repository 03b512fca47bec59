"""Pydantic AI: a capability with which an agent remembers the person of a run, its ``deps``.

``my_model`` stands for the model. It prints::

    monday: Noted.
    tuesday: You drink green tea.
"""

import asyncio
import tempfile
from typing import Any

from pydantic_ai import Agent, AgentRunResult, ModelMessage, ModelResponse, RunContext, TextPart
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.function import AgentInfo, FunctionModel

from memchat import AsyncMemChat

Result = AgentRunResult[Any]


class Memory(AbstractCapability[Any]):
    """Tells the agent what is known, and has memchat read what was said once that rests."""

    def get_instructions(self) -> Any:
        """They are made anew for each message."""
        return what_is_known

    async def after_run(self, ctx: RunContext[Any], *, result: Result) -> Result:
        """Keep the message of the person and the answer."""
        if asked := words(ctx):
            answer = {"role": "assistant", "content": str(result.output)}
            turn = [{"role": "user", "content": asked}, answer]
            await ctx.deps.add(turn, session=ctx.conversation_id, wait=False)
        return result


async def what_is_known(ctx: RunContext[Any]) -> str:
    """What fits the person's message."""
    return (await ctx.deps.context(words(ctx))).text if words(ctx) else ""


def words(ctx: RunContext[Any]) -> str:
    """The text of the person's message, without pictures and files."""
    parts = [ctx.prompt] if isinstance(ctx.prompt, str) else ctx.prompt or ()
    return "\n".join(part for part in parts if isinstance(part, str))


def my_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answer from the instructions."""
    known = "green tea" in (info.instructions or "")
    return ModelResponse([TextPart("You drink green tea." if known else "Noted.")])


agent = Agent(FunctionModel(my_model), instructions="You are brief.", capabilities=[Memory()])


async def main() -> None:
    """Run the agent in two conversations."""
    said = {"monday": "I like green tea.", "tuesday": "What do I drink?"}
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncMemChat(folder) as mc:
            for day, text in said.items():
                done = await agent.run(text, deps=mc.user("ana"), conversation_id=day)
                print(f"{day}: {done.output}")


if __name__ == "__main__":
    asyncio.run(main())
