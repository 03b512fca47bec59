"""``memchat notes ask``, ``report`` and ``reindex``: answers with their sources, and how notes
stand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memchat.cli import notes
from tests.support.cli import Run
from tests.support.terminal import Env
from tests.support.wire import Cut, Fail, OpenAIServer, Say

BUDGET = "We agreed to cut the marketing budget by a third."
BOILER = "Call John back about the boiler, Thursday is fine."


@pytest.fixture
def server(env: Env) -> Iterator[OpenAIServer]:
    """The chat model of the commands, and two notes."""
    for text, title, day in ((BUDGET, "Money", "2026-11-17"), (BOILER, "House", "2026-11-20")):
        done = env.memchat("notes", "add", "--text", text, "--title", title, "--date", day)
        assert done.code == 0, done.err
    with OpenAIServer() as running:
        env |= {
            "MEMCHAT_CHAT_MODEL": "openai/gpt-4.1-mini",
            "OPENAI_BASE_URL": f"{running.url}/v1",
            "OPENAI_API_KEY": running.key,
        }
        yield running


def test_an_answer_is_followed_by_the_sources_it_names(env: Env, server: OpenAIServer) -> None:
    server.script(Say("You cut the budget by a third [1]."))
    done = env.memchat("notes", "ask", "What about the marketing budget?")
    assert done.code == 0, done.err
    assert done.out == ("You cut the budget by a third [1].\n\n[1] Money, 2026-11-17, note 1\n")
    assert BUDGET in json.dumps(server.requests[-1].body)


def test_an_answer_as_json_has_the_notes_it_cites(env: Env, server: OpenAIServer) -> None:
    server.script(Say("By a third [1]."))
    done = env.memchat("notes", "ask", "What about the marketing budget?", "--json")
    told = json.loads(done.out)
    assert told["text"] == "By a third [1]." and told["cut"] is None
    assert [(one["number"], one["note_id"]) for one in told["cited"]] == [(1, 1)]


def test_where_no_note_speaks_of_it_no_model_is_asked(env: Env, server: OpenAIServer) -> None:
    done = env.memchat("notes", "ask", "Who won the tennis?")
    assert (done.code, done.out) == (0, "No note speaks of that.\n")
    bounded = ("--since", "2026-11-18", "--until", "2026-11-19")
    done = env.memchat("notes", "ask", "What about the marketing budget?", *bounded)
    assert done.out == "No note speaks of that.\n"
    assert server.requests == []


def test_a_summary_reads_all_that_speaks_of_the_subject(env: Env, server: OpenAIServer) -> None:
    server.script(Say("The budget is cut [1]."))
    done = env.memchat("notes", "ask", "the marketing budget", "--summary")
    assert done.out.endswith("[1] Money, 2026-11-17, note 1\n")


def test_a_model_that_fails_is_one_line(env: Env, server: OpenAIServer) -> None:
    server.script(Fail(401, "bad key"))
    done = env.memchat("notes", "ask", "What about the marketing budget?")
    assert done.code == 1 and done.out in ("", "\n")
    assert done.err.splitlines()[-1].startswith("memchat: ") and "unexpected" not in done.err


def test_an_answer_that_breaks_off_is_shown_and_named(env: Env, server: OpenAIServer) -> None:
    server.script(Cut("You cut the budget by a third [1] and"))
    done = env.memchat("notes", "ask", "What about the marketing budget?")
    assert done.out.startswith("You cut the budget by a third [1] and\n")
    assert len(done.err.splitlines()) >= 2  # the address that is not the provider's, and the fault


def test_an_answer_that_takes_many_calls_is_made_only_after_a_yes(
    env: Env, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "MANY_CALLS", 0)
    asked = ("notes", "ask", "the marketing budget", "--summary")
    refused = env.memchat(*asked)
    assert (refused.code, refused.out) == (2, "") and server.requests == []
    assert "may speak of it: 1 call" in refused.err
    assert refused.err.endswith("it may cost money, so add --yes to agree\n")
    server.script(Say("The budget is cut [1]."))
    assert env.memchat(*asked, "--yes").out.startswith("The budget is cut [1].\n")


# --- without a model


def test_without_a_model_the_best_passages_are_quoted_and_named_as_such(run: Run) -> None:
    run("notes", "add", "--text", BUDGET, "--title", "Money", "--date", "2026-11-17")
    done = run("notes", "ask", "What about the marketing budget?")
    assert done.code == 0 and "No model is set up" in done.out.splitlines()[0]
    assert f"“{BUDGET}”" in done.out
    assert done.out.endswith("\n[1] Money, 2026-11-17, note 1\n")


def test_a_report_counts_notes_and_names_those_that_nobody_reads(run: Run, home: Path) -> None:
    run("notes", "add", "--text", BUDGET, "--title", "Money")
    run("notes", "add", "--text", BOILER, "--title", "House", "--type", "letter")
    for _ in range(3):
        run("notes", "search", "budget")
    run("notes", "search", "boiler")
    run("notes", "ask", "boiler")
    lines = run("notes", "report").out.splitlines()
    assert lines[0].split() == ["type", "notes", "chunks", "found", "read"]
    assert ["memo", "1", "1", "3", "0"] in [line.split() for line in lines]
    assert ["3", "1", "memo", "Money"] in [line.split() for line in lines]
    assert not any("House" in line for line in lines)
    told = json.loads(run("notes", "report", "--json").out)
    assert told["types"]["memo"]["matches"] == 3 and told["unread"][0]["note_id"] == 1
    assert told["types"]["letter"]["reads"] == 1
    none = run("notes", "report", "--user", "bo")
    assert (none.code, none.out) == (0, "") and "no notes of bo" in none.err


def test_what_waits_for_its_vectors_is_told_with_the_command_that_makes_them(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("notes", "add", "--text", BUDGET)
    for command in (("list",), ("show", "1")):
        assert "words only so far" in run("notes", *command).out
    told = run("notes", "report").out
    assert "not found by meaning yet: 1 note; there is no embedding model" in told
    assert json.loads(run("notes", "report", "--json").out)["embeds"] is False
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "hash/words")
    told = run("notes", "report").out
    assert "not found by meaning yet: 1 note; memchat jobs run makes the vectors now" in told
    assert run("notes", "reindex").out == "0\n"
    assert "not found by meaning" not in run("notes", "report").out
    assert "words only" not in run("notes", "list").out
    assert json.loads(run("notes", "reindex", "--json").out) == {"changed": 0}
