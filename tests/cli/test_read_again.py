"""Reading conversations again in the terminal, after one that failed or with a better model."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator

import pytest

from memchat.providers import litellm_calls
from tests.support.answers import answer, fact
from tests.support.cli import Done, Run
from tests.support.wire import Fail, OpenAIServer, Say

LISBON = answer(fact("I live in Lisbon", "city", "Lisbon"), title="Home")
HOLDS = json.dumps({"verdicts": [{"id": "c1", "answer": "holds"}]})


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """litellm, whose import must not outlive a test's warning filters."""
    litellm_calls.litellm()


@pytest.fixture
def server(run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        monkeypatch.setenv("MEMCHAT_CHAT_MODEL", "offline/chat")
        monkeypatch.setenv("MEMCHAT_EXTRACT_MODEL", "openai/cheap")
        yield server


def chat(run: Run, monkeypatch: pytest.MonkeyPatch) -> Done:
    monkeypatch.setattr(sys, "stdin", io.StringIO("I live in Lisbon.\n"))
    return run("chat")


def test_an_answer_of_no_use_is_said_and_jobs_run_reads_it_at_once(
    run: Run, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    useless = '{"facts": {"a": 1}}'
    server.script(Say(useless), Say(useless))
    done = chat(run, monkeypatch)
    assert "Saved" not in done.out
    assert "openai/cheap gave no answer that can be used, also when asked again: " in done.err
    assert "read again later, or now by `memchat jobs run`" in done.err
    assert run("sessions", "list", "--json").json[0]["status"] == "pending"
    server.script(Say(LISBON), Say(HOLDS))
    done = run("jobs", "run")
    assert (done.code, "Saved 1" in done.out, "1 done, 0 failed" in done.out) == (0, True, True)


def test_one_is_read_again_with_another_model_this_once(
    run: Run, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script(Say(answer()))
    assert "Saved 0" in chat(run, monkeypatch).out
    server.script(Say(LISBON), Say(HOLDS))
    done = run("sessions", "read-again", "1", "--model", "openai/better")
    assert done.code == 0, done.err
    assert done.out.splitlines()[1] == "Saved 1 (merged/updated 0)"
    assert done.err.startswith("Reading the conversation …\n1 of 1 parts (100 %)")
    assert [call.body["model"] for call in server.requests] == ["cheap", "better", "better"]
    used = {
        (use["purpose"], use["model"])
        for use in run("sessions", "show", "1", "--json").json["usage"]
    }
    assert ("extract", "openai/better") in used
    server.script(Say(LISBON), Say(HOLDS))
    done = run("sessions", "read-again", "1")
    assert "Saved 0 (merged/updated 1)" in done.out
    assert server.requests[-1].body["model"] == "cheap"
    assert len(run("memories", "list", "--json").json) == 1


def test_one_that_fails_again_waits_and_exits_with_1(
    run: Run, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script(Say(answer()))
    chat(run, monkeypatch)
    server.script(Fail(401, "no"))
    done = run("sessions", "read-again", "1", "--json")
    assert done.code == 1
    assert "refused the key in OPENAI_API_KEY" in json.loads(done.out)["queued"]
    assert "now by `memchat jobs run`" in done.err
    server.script(Say(LISBON), Say(HOLDS))
    assert "Saved 1" in run("jobs", "run").out
    assert run("sessions", "read-again", "9").code == 1
    lacks = run("sessions", "read-again", "1", "--model", "groq/llama3")
    assert (lacks.code, "run memchat keys set groq" in lacks.err) == (1, True)
