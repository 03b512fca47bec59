"""Steps that call tools: what is called without a yes, and what after a process was killed."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from memchat import InputError, MemChat, User
from memchat.testing import ScriptedModel
from tests.support.kills import Victim, child_store, wait_for_the_kill
from tests.support.leftovers import rows_with
from tests.support.slow import slow_but
from tests.support.workflows import ToolServer, ask, name_server, text, tool


def test_a_tool_that_only_reads_is_called_and_numbers_stay_numbers(
    ana: User, tools: ToolServer, chat_model: ScriptedModel
) -> None:
    ana.workflows.add(
        text(
            tool("look", what="{{TRANSCRIPT}}", most=3),
            tool("look", "more", what="{{act.found.0.name}}", most="{{act.found.0.count}}"),
            ask("{{act.found.0.name}}: {{more_JSON}}"),
        )
    )
    run = ana.workflows.run("test", "tea")
    assert run.error is None and tools.calls == [("look", ("tea", 3)), ("look", ("tea", 3))]
    said = chat_model.requests[-1].messages[-1].content
    assert said == 'tea: {"found": [{"name": "tea", "count": 3}]}'


def test_any_other_is_called_with_a_yes_each_time(ana: User, tools: ToolServer) -> None:
    ana.workflows.add(text(tool("send", words="{{TRANSCRIPT}}"), tool("put", "b", words="x")))
    asked: list[str] = []

    def yes(question: str) -> bool:
        asked.append(question)
        return True

    run = ana.workflows.run("test", "hello", ask=yes)
    assert run.state == "done" and tools.calls == [("send", "hello"), ("put", "x")]
    assert asked == [
        'Call send of tools with {"words": "hello"}?',
        'Call put of tools with {"words": "x"}?',
    ]
    tools.calls.clear()
    assert ana.workflows.run("test", "hello", ask=lambda _: False).state == "stopped"
    assert not tools.calls


def test_with_nobody_to_ask_it_waits_in_the_inbox(ana: User, tools: ToolServer) -> None:
    ana.workflows.add(text(tool("send", words="{{TRANSCRIPT}}"), ask("{{act}}")))
    run = ana.workflows.run("test", "hello")
    assert (run.state, run.steps[0].state, tools.calls) == ("waiting", "waiting", [])
    (item,) = ana.inbox.list()
    assert ana.inbox.question(item) == 'Call send of tools with {"words": "hello"}?'
    assert "asks before it may change" in item.reason
    with pytest.raises(InputError, match="waits for a yes"):
        ana.workflows.resume(run.id)
    assert ana.inbox.accept_many([item.id]).failed and not tools.calls
    done = ana.inbox.accept(item.id)
    assert done == ana.workflows.get_run(run.id) and done.state == "done"
    assert tools.calls == [("send", "hello")] and not ana.inbox.list()


def test_a_no_in_the_inbox_stops_the_run(ana: User, tools: ToolServer) -> None:
    ana.workflows.add(text(tool("send", words="hello")))
    run = ana.workflows.run("test")
    (item,) = ana.inbox.list()
    ana.inbox.reject(item.id)
    assert ana.workflows.get_run(run.id).state == "stopped"
    assert not ana.inbox.list() and not tools.calls
    assert ana.workflows.run("test").state == "waiting", "it is asked each time"
    assert ana.workflows.stop(ana.workflows.runs()[0].id).state == "stopped"
    assert not ana.inbox.list()


def test_a_yes_by_resume_calls_it_once(ana: User, tools: ToolServer) -> None:
    ana.workflows.add(text(tool("send", "a", words="1"), tool("send", "b", words="2")))
    run = ana.workflows.run("test")
    run = ana.workflows.resume(run.id, yes=True)
    assert run.state == "waiting" and tools.calls == [("send", "1")]
    run = ana.workflows.resume(run.id, yes=True)
    assert run.state == "done" and tools.calls == [("send", "1"), ("send", "2")]


def test_secrets_are_masked_in_arguments(ana: User, tools: ToolServer) -> None:
    ana.workflows.add(text(tool("send", words="{{TRANSCRIPT}}")))
    run = ana.workflows.run("test", "My password is hunter2secret.", ask=lambda _: True)
    assert tools.calls == [("send", "My password is [password]")]
    assert "hunter2secret" not in str(run.steps)


def test_what_a_tool_refuses_and_what_is_not_there_names_the_step(
    ana: User, tools: ToolServer
) -> None:
    ana.workflows.add(text(tool("send", words="{{TRANSCRIPT}}")))
    run = ana.workflows.run("test", "refuse", ask=lambda _: True)
    assert run.state == "failed" and "refused" in (run.error or "")
    ana.workflows.add(text(tool("fly", words="x")))
    assert ana.workflows.run("test").error == "step act: the server 'tools' has no tool 'fly'"
    other = tool("fly")
    other["config"]["server"] = "nobody"
    ana.workflows.add(text(other))
    assert "no MCP server is named 'nobody'" in (ana.workflows.run("test").error or "")


@pytest.mark.parametrize("called", [tool("look", what="nested"), tool("whole")])
def test_an_answer_that_is_too_long_or_too_deep_is_the_error_of_its_step(
    ana: User, tools: ToolServer, called: dict[str, Any]
) -> None:
    ana.workflows.add(text(called))
    run = ana.workflows.run("test")
    assert (run.state, run.steps[0].state) == ("failed", "failed")
    assert "step act: the tool answered more than 1,000,000 characters" in (run.error or "")


def test_names_in_an_answer_are_blanked_as_its_texts_are(
    mc: MemChat, ana: User, tools: ToolServer
) -> None:
    kept = ana.memories.add("profile", "employer", "Quokkaland")
    ana.workflows.add(text(tool("look", what="by name")))
    run = ana.workflows.run("test")
    assert run.steps[0].value == {"Quokkaland": 3}
    ana.memories.delete(kept.id)
    assert ana.workflows.get_run(run.id).steps[0].value == {"··········": 3}
    assert not rows_with(mc, "Quokkaland")


DIES = "from tests.support.mcp_faulty_server import server; server.run()"


def test_whether_a_call_without_an_answer_was_made_is_not_known(mc: MemChat, ana: User) -> None:
    args = ["-c", f"import sys; sys.path = {sys.path}; {DIES}"]
    name_server(mc, "tools", command=sys.executable, args=args)
    ana.workflows.add(text(tool("die")))
    run = ana.workflows.run("test", ask=lambda _: True)
    assert (run.state, run.steps[0].state) == ("failed", "unknown")
    assert "ended without an answer" in (run.error or "")
    assert ana.workflows.resume(run.id).state == "waiting"
    (item,) = ana.inbox.list()
    assert ana.inbox.question(item).startswith("It is not known whether this was done: die of")


def _killed_in(home: Path, reached: Connection, *steps: object, given: str = "") -> None:
    """Another process that runs a workflow, and waits to be killed at the word "stop"."""

    def stop(messages) -> str:
        if "stop" in messages[-1].content:
            wait_for_the_kill(reached)
        return f"said {messages[-1].content}"

    mc = child_store(home, chat_model=ScriptedModel([stop] * 5))
    ana = mc.user("ana")
    ana.workflows.add(text(*steps))  # type: ignore[arg-type]
    ana.workflows.run("test", given, ask=lambda _: True)


def killed_in_the_second_answer(home: Path, reached: Connection) -> None:
    _killed_in(home, reached, ask("one", "a"), ask("stop {{a}}", "b"), ask("{{b}}", "c"))


def test_a_run_whose_process_was_killed_goes_on_behind_what_is_stored(
    tmp_path: Path, open_store
) -> None:
    home = tmp_path / "killed"
    victim = Victim(killed_in_the_second_answer, home)
    model = ScriptedModel(["two", "three"])
    mc = open_store(home=home, chat_model=model)
    ana = mc.user("ana")
    assert [one.state for one in ana.workflows.runs()] == ["running"]
    victim.kill()
    (run,) = ana.workflows.runs()
    assert (run.state, [one.id for one in run.steps]) == ("interrupted", ["a"])
    mc.jobs.run()
    done = ana.workflows.get_run(run.id)
    assert (done.state, [one.text for one in done.steps]) == ("done", ["said one", "two", "three"])
    sent = [request.messages[-1].content for request in model.requests]
    assert sent == ["stop said one", "two"], "the first step was not done again"


def _killed_in_a_call(home: Path, reached: Connection, name: str) -> None:
    from memchat.providers.mcp_client import MCPClient

    call = MCPClient.call

    def called(self, tool_name, arguments=None):
        call(self, tool_name, arguments)
        wait_for_the_kill(reached)

    MCPClient.call = called  # type: ignore[method-assign]
    _killed_in(home, reached, tool(name, words="once"), ask("{{act}}"))


def killed_while_it_sends(home: Path, reached: Connection) -> None:
    _killed_in_a_call(home, reached, "send")


def killed_while_it_puts(home: Path, reached: Connection) -> None:
    _killed_in_a_call(home, reached, "put")


@pytest.mark.parametrize("may_repeat", slow_but((False,), [False, True]))
def test_a_tool_in_flight_is_unknown_after_a_kill_and_called_again_with_a_yes_or_without_harm(
    tmp_path: Path, open_store, tools: ToolServer, *, may_repeat: bool
) -> None:
    name = "put" if may_repeat else "send"
    mc = open_store(home=tmp_path / "killed")
    name_server(mc, "tools", url=tools.url)
    killed = killed_while_it_puts if may_repeat else killed_while_it_sends
    Victim(killed, tmp_path / "killed").kill()
    ana = mc.user("ana")
    (run,) = ana.workflows.runs()
    assert (run.state, run.steps[0].state) == ("interrupted", "unknown")
    assert tools.calls == [(name, "once")]
    mc.jobs.run()
    if not may_repeat:
        assert ana.workflows.get_run(run.id).state == "waiting" and len(tools.calls) == 1
        (item,) = ana.inbox.list()
        assert "not known whether this was done: send of tools" in ana.inbox.question(item)
        ana.inbox.accept(item.id)
    assert ana.workflows.get_run(run.id).state == "done"
    assert tools.calls == [(name, "once")] * 2
