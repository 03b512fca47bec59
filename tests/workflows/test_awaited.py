"""The same verbs for programs that use ``await``."""

from __future__ import annotations

import asyncio
from pathlib import Path

from memchat import AsyncMemChat
from memchat.config import Settings
from memchat.testing import HashEmbedder, ScriptedModel
from tests.support import empty_store
from tests.support.workflows import ToolServer, ask, name_server, text, tool


def test_a_workflow_is_run_awaited(tmp_path: Path, tool_server: ToolServer) -> None:
    async def use() -> tuple[str, str]:
        settings = Settings(home=empty_store.place(tmp_path / "store"))
        model = ScriptedModel(["Tea."])
        async with AsyncMemChat(
            settings=settings, chat_model=model, extract_model=model, embedder=HashEmbedder()
        ) as mc:
            name_server(mc.blocking, "tools", url=tool_server.url)
            ana = mc.user("ana")
            await ana.workflows.add(text(tool("look", what="tea"), ask("{{act}}")))
            run = await ana.workflows.run("test")
            return run.state, run.output

    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(use()) == ("done", "Tea.")
    finally:
        loop.close()
