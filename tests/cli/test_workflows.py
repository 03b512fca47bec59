"""``memchat workflow`` as a person uses it, without a model."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.support.cli import Run
from tests.support.workflows import ask, name_server, serving_tools, step, text, tool


def test_a_new_home_has_ask_my_memory_and_it_runs_without_a_model(run: Run) -> None:
    listed = run("workflow", "list").out
    assert "Ask My Memory" in listed and "every monday 8:00 once it is added" in listed
    nothing = run("workflow", "run", "ask-memory", "What is in the garden?")
    assert nothing.code == 0 and "No note speaks of that." in nothing.out
    run("notes", "add", "--text", "Beans and tomatoes are in the garden.", "--title", "Garden")
    found = run("workflow", "run", "ask-memory", "What is in the garden?")
    assert found.code == 0 and "No model is set up." in found.out
    assert "Beans and tomatoes are in the garden." in found.out and "answer …" in found.err


def test_runs_are_listed_and_one_is_shown_with_its_steps(run: Run) -> None:
    assert "no runs" in run("workflow", "runs").out + run("workflow", "runs").err
    run("workflow", "run", "ask-memory", "garden")
    assert "ask-memory" in run("workflow", "runs", "--workflow", "ask-memory").out
    shown = run("workflow", "runs", "1").out
    assert "run 1 of ask-memory: done" in shown and "search: done in 0.0 s (Memory Query" in shown
    (record,) = run("workflow", "runs", "--json").json
    assert record["state"] == "done" and len(record["steps"]) == 2
    assert run("workflow", "runs", "7").code == 1


def test_what_is_wrong_is_told_by_line_and_field(run: Run, tmp_path) -> None:
    file = tmp_path / "w.json"
    file.write_text(text(step("a", "Memory Query", query="{{b}}"), slug="w"))
    checked = run("workflow", "validate", str(file))
    assert (
        checked.code == 1 and "line 1: steps.0.config.query: there is no variable b" in checked.out
    )
    assert run("workflow", "validate", str(file), "--json").json[0]["line"] == 1
    assert run("workflow", "add", str(file)).code == 1
    file.write_text(text(ask("{{TRANSCRIPT}}"), slug="w", when="note"), "utf-8-sig")
    assert run("workflow", "validate", str(file)).code == 0
    added = run("workflow", "add", str(file))
    assert added.out == "w\n" and "for each note that comes in" in added.err
    assert json.loads(run("workflow", "show", "w").out)["slug"] == "w"
    assert "Web" in run("workflow", "share", "w", "Web").out
    assert "no program" in run("workflow", "share", "w", "Web", "--off").out
    assert run("workflow", "delete", "w").code == 0
    assert run("workflow", "delete", "w").code == 1


def test_a_note_that_comes_in_is_run_by_the_worker(run: Run, tmp_path) -> None:
    file = tmp_path / "w.json"
    file.write_text(text(ask("{{TRANSCRIPT}}!"), slug="w", when="note", result="note"))
    run("workflow", "add", str(file))
    run("notes", "add", "--text", "Green beans.")
    assert "running" in run("workflow", "runs").out
    assert run("jobs", "run").code == 0
    assert "done" in run("workflow", "runs").out
    assert "Green beans.!" in run("notes", "show", "2").out


def test_a_run_that_waits_says_how_to_go_on(run: Run, home, tmp_path) -> None:
    file = tmp_path / "w.json"
    file.write_text(text(step("act", "MCP Tool", server="none", tool="x", arguments={}), slug="w"))
    run("workflow", "add", str(file))
    failed = run("workflow", "run", "w")
    assert failed.code == 1
    assert "run 1 failed: step act: no MCP server is named 'none'" in failed.err
    assert "; memchat workflow resume 1 goes on with it" in failed.err
    assert run("workflow", "stop", "1").code == 0
    assert run("workflow", "resume", "1").code == 1


@pytest.mark.parametrize(
    "words", [("run", "nope"), ("show", "nope"), ("delete", "nope"), ("add", "nope.json")]
)
def test_what_is_not_there_is_an_error_in_one_line(run: Run, words) -> None:
    done = run("workflow", *words)
    assert done.code == 1 and done.err.count("\n") == 1


def test_yes_to_a_run_that_waits_calls_that_tool_alone(run: Run, home: Path, tmp_path) -> None:
    file = tmp_path / "w.json"
    steps = tool("send", "a", words="1"), ask("{{a}}", "b"), tool("send", "c", words="2")
    file.write_text(text(*steps, slug="w"))
    run("workflow", "add", str(file))
    with serving_tools() as server:
        name_server(home, "tools", url=server.url)
        assert "run 1 waiting: for a yes to: send of tools" in run("workflow", "run", "w").err
        again = run("workflow", "resume", "1", "--yes")
        assert server.calls == [("send", "1")] and "run 1 waiting" in again.err


def test_a_run_that_got_a_no_waits_for_nothing(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "w.json"
    file.write_text(text(tool("send", words="1"), slug="w"))
    run("workflow", "add", str(file))
    terminal = io.StringIO("n\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    with serving_tools() as server:
        name_server(home, "tools", url=server.url)
        done = run("workflow", "run", "w")
    assert done.code == 1 and not server.calls
    told = "memchat: run 1 stopped; memchat workflow resume 1 goes on with it"
    assert done.err.splitlines()[-1].endswith(f"? [y/N] {told}")
