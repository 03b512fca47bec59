"""``memchat doctor --probe``: what each configured model answers, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.providers.local import available
from memchat.testing import ScriptedModel
from tests.support.cli import Done, Run
from tests.support.store import Opener
from tests.support.wire import Fail, GeminiServer, Hang, OllamaServer, OpenAIServer, Raw, Rows, Say

KEY = "sk-probe-8d1f0a77c2"
NOBODY = "http://127.0.0.1:9"
"""An address where nothing listens."""


@pytest.fixture
def server(home: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """One endpoint for chat and extraction, which use the same model."""
    with OpenAIServer(key=KEY) as running:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", running.base)
        monkeypatch.setenv("MEMCHAT_CHAT_MODEL", "openai/gpt-4.1-mini")
        monkeypatch.setenv("MEMCHAT_EXTRACT_MODEL", "openai/gpt-4.1-mini")
        yield running


def probed(done: Done) -> list[tuple[str, str]]:
    """State and sentence of each line on a probe; no key is ever in the output."""
    assert KEY not in done.out + done.err and "Traceback" not in done.err
    return re.findall(r"^(\w+) +probe: (.*)$", done.out, re.MULTILINE)


def test_without_probe_no_model_is_asked(run: Run, server: OpenAIServer) -> None:
    done = run("doctor")
    assert done.code == 0 and probed(done) == [] and server.requests == []


def test_a_model_with_two_uses_is_asked_once_and_its_answer_is_shown(
    run: Run, server: OpenAIServer
) -> None:
    server.script(Say(f"Hello,\n{KEY} " + "and so on " * 20))
    done = run("doctor", "--probe")
    chat, embedding = probed(done)
    assert done.code == 0 and len(server.requests) == 1
    assert chat[0] == "ok"
    assert re.fullmatch(
        r"chat and extraction: openai/gpt-4\.1-mini answered "
        r'"Hello, \(key\) and so on .{0,30}…" in \d+\.\d s',
        chat[1],
    )
    assert embedding == (
        "note",
        "embedding: no model was asked: MEMCHAT_EMBED_MODEL=none: searched by words only",
    )


def test_two_models_are_two_lines(
    run: Run, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCHAT_EXTRACT_MODEL", "openai/gpt-4.1-nano")
    lines = [line for state, line in probed(run("doctor", "--probe")) if state == "ok"]
    assert [line.split(" answered ")[0] for line in lines] == [
        "chat: openai/gpt-4.1-mini",
        "extraction: openai/gpt-4.1-nano",
    ]
    assert {request.body["model"] for request in server.requests} == {
        "gpt-4.1-mini",
        "gpt-4.1-nano",
    }


@pytest.mark.parametrize(
    "step, told",
    [
        (Fail(401), "refused the key in OPENAI_API_KEY (status 401); set a valid one"),
        (Fail(404), "is unknown to its provider (status 404); check the model's name"),
        (Fail(503), "is failing at the provider (status 503); try again later"),
        (Raw("<html>sign in</html>"), "sent an answer that cannot be read; try again"),
        (Hang(30), "did not answer within 0.5 s; try again or raise MEMCHAT_TIMEOUT"),
    ],
    ids=["wrong key", "unknown model", "failing", "garbage", "silence"],
)
def test_what_a_provider_does_wrong_is_a_problem_that_says_what_to_do(
    run: Run, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, step: Any, told: str
) -> None:
    monkeypatch.setenv("MEMCHAT_TIMEOUT", "0.5" if isinstance(step, Hang) else "30")
    server.script(step)
    done = run("doctor", "--probe")
    state, line = probed(done)[0]
    assert (done.code, state) == (1, "problem")
    assert line.startswith(f"chat and extraction: openai/gpt-4.1-mini {told}")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "model, variable, told",
    [
        ("ollama/llama3.2", "OLLAMA_API_BASE", "start Ollama with: ollama serve"),
        ("openai/gpt-4.1-mini", "OPENAI_BASE_URL", "check the network and the address"),
    ],
)
def test_a_provider_that_cannot_be_reached_is_a_problem(
    run: Run,
    server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    variable: str,
    told: str,
) -> None:
    for name in ("CHAT", "EXTRACT"):
        monkeypatch.setenv(f"MEMCHAT_{name}_MODEL", model)
    monkeypatch.setenv(variable, NOBODY)
    done = run("doctor", "--probe")
    line = f"chat and extraction: {model} cannot be reached; {told}"
    assert done.code == 1 and probed(done)[0] == ("problem", line)


def test_a_model_that_ollama_does_not_have_is_named_with_the_command_that_gets_it(
    run: Run, home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCHAT_CHAT_MODEL", "ollama/llama9")
    with OllamaServer() as ollama:
        monkeypatch.setenv("OLLAMA_API_BASE", ollama.url)
        state, line = probed(run("doctor", "--probe"))[0]
    assert state == "problem" and line.endswith("get it with: ollama pull llama9")


def test_a_missing_key_is_a_problem_and_nothing_is_sent(
    run: Run, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    done = run("doctor", "--probe")
    state, line = probed(done)[0]
    assert (done.code, state, server.requests) == (1, "problem", [])
    assert "needs a key (OPENAI_API_KEY): run memchat keys set openai" in line


@pytest.mark.parametrize("step", [None, Fail(401), Rows([[1.0, 2.0]])], ids=["ok", "key", "size"])
def test_the_embedding_model_is_asked_for_a_vector(
    run: Run, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, step: Any
) -> None:
    monkeypatch.setenv("MEMCHAT_CHAT_MODEL", "offline/chat")
    monkeypatch.setenv("MEMCHAT_EXTRACT_MODEL", "offline/extract")
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "openai/text-embedding-3-small")
    server.dimensions = 1536
    server.script(*([step] if step is not None else []))
    done = run("doctor", "--probe")
    state, line = probed(done)[-1]
    assert len(server.requests) == 1 and line.startswith("embedding: openai/text-embedding-3-small")
    assert (done.code, state) == ((0, "ok") if step is None else (1, "problem"))
    assert "gave a vector of 1536 numbers in" in line or step is not None


def test_gemini_refuses_a_wrong_key_with_a_status_of_its_own_and_it_is_told_as_that(
    run: Run, home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GeminiServer(key="another") as gemini:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GEMINI_API_BASE", gemini.url)
        monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "gemini/gemini-embedding-001")
        lines = probed(run("doctor", "--probe"))
    assert len(lines) == 3
    assert all(
        state == "problem" and "refused the key in GEMINI_API_KEY" in line for state, line in lines
    )


def test_the_stand_in_and_the_built_in_embedding_model_say_that_nothing_is_sent(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not available():
        pytest.skip("the MiniLM weights are not installed")
    monkeypatch.delenv("MEMCHAT_EMBED_MODEL")
    done = run("doctor", "--probe")
    chat, extraction, embedding = probed(done)
    assert done.code == 0
    assert chat[1].startswith("chat: offline/chat, the stand-in on this machine")
    assert extraction[1].startswith("extraction: offline/extract, the stand-in on this machine")
    assert "gave a vector of 384 numbers" in embedding[1]
    assert embedding[1].endswith("on this machine; nothing was sent")


def test_the_models_that_a_program_gives_are_asked_and_nothing_is_kept(
    open_store: Opener, chat_model: ScriptedModel, extract_model: ScriptedModel
) -> None:
    extract_model.replies.append("hi")
    mc = open_store()
    found = [check.detail for check in mc.doctor(probe=True) if check.name == "probe"]
    assert 'chat: scripted/chat answered "Fine."' in found[0]
    assert 'extraction: scripted/extract answered "hi"' in found[1]
    assert len(chat_model.requests) == len(extract_model.requests) == 1
    assert mc.user("ana").usage() == [] and mc.user("ana").sessions.list() == []


def test_a_store_with_vectors_of_another_service_says_why_none_was_asked(
    open_store: Opener, tmp_path: object, extract_model: ScriptedModel
) -> None:
    extract_model.replies.append("hi")
    mc = open_store()
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    mc.close()
    settings = Settings(
        mc.settings.home, embed_model="openai/text-embedding-3-small",
        why={"embed_model": "MEMCHAT_EMBED_MODEL"},
    )  # fmt: skip
    with MemChat(settings=settings) as other:
        last = [check for check in other.doctor(probe=True) if check.name == "probe"][-1]
    assert last.state == "note" and "vectors of this store are of hash/words" in last.detail
