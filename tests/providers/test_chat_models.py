"""Names, windows, prices and settings of chat models."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest

from memchat.config import Settings, load
from memchat.config.keys import Keys
from memchat.providers.factory import chat_model, explain, extract_model
from memchat.providers.litellm_chat import LiteLLMChat
from tests.support.chat_providers import KEY, failure
from tests.support.wire import Fail, GeminiServer, OpenAIServer, WireServer
from tests.support.wire.case import HELLO, chat_of


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GEMINI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


def test_windows_come_from_litellm_then_the_setting_then_a_default() -> None:
    assert LiteLLMChat("gemini/gemini-2.5-flash", timeout=1).window > 1_000_000
    assert LiteLLMChat("openai/unheard-of", timeout=1).window == 8192
    assert LiteLLMChat("openai/unheard-of", timeout=10, context_tokens=4096).window == 4096
    assert LiteLLMChat("ollama/llama3.2", timeout=10, context_tokens=4096).window == 4096


def test_a_price_that_is_not_known_stays_unknown(openai: OpenAIServer) -> None:
    done = chat_of(openai, model="openai/some-local-model").complete(HELLO, purpose="chat")
    assert done.usage.cost_usd is None


def test_nothing_that_was_said_reaches_the_log(
    server: WireServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    server.script(Fail(500, f"I am Ana {KEY}"))
    with caplog.at_level(logging.WARNING):
        failure(server, streamed=True)
    printed = capfd.readouterr()
    for text in (caplog.text, printed.out, printed.err):
        assert "Ana" not in text
        assert KEY not in text


def test_the_settings_reach_gemini_at_its_other_address(gemini: GeminiServer) -> None:
    for base in (gemini.url, f"{gemini.url}/"):
        settings = load({"GEMINI_API_KEY": KEY, "GEMINI_API_BASE": base, "MEMCHAT_TIMEOUT": "10"})
        assert chat_model(settings).complete(HELLO, purpose="chat").text
        assert extract_model(settings).complete(HELLO, purpose="extract").text
    paths = [received.path for received in gemini.requests]
    assert paths[:2] == [
        "/v1beta/models/gemini-2.5-flash:generateContent",
        "/v1beta/models/gemini-2.5-flash-lite:generateContent",
    ]
    assert all(path.startswith("/v1beta/models/") for path in paths)


def test_openai_s_own_base_variable_is_honoured(
    openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai.base)
    settings = load({"OPENAI_API_KEY": KEY, "MEMCHAT_CHAT_MODEL": "openai/tiny-local"})
    assert chat_model(settings).complete(HELLO, purpose="chat").text
    assert openai.requests[0].path == "/v1/chat/completions"


def test_the_reasons_for_each_model_are_told_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load({"GEMINI_API_KEY": KEY})
    chat, extract, embed = explain(settings)
    assert (chat.model, extract.model) == (
        "gemini/gemini-2.5-flash",
        "gemini/gemini-2.5-flash-lite",
    )
    assert embed.model == "gemini/gemini-embedding-001"
    assert chat.why == "GEMINI_API_KEY is set"
    assert (chat.key, chat.key_set, chat.problem) == ("GEMINI_API_KEY", True, None)
    assert KEY not in repr((chat, extract, embed))
    monkeypatch.delenv("GEMINI_API_KEY")
    chat, _, embed = explain(settings.with_(keys=Keys()))
    assert chat.problem == "GEMINI_API_KEY or GOOGLE_API_KEY is not set"
    assert chat.remedy is not None
    assert "MEMCHAT_CHAT_MODEL=ollama/llama3.2" in chat.remedy
    assert embed.remedy is not None
    assert "MEMCHAT_EMBED_MODEL=minilm" in embed.remedy


def test_a_model_without_a_provider_is_explained(tmp_path: Any) -> None:
    chat, _, _ = explain(Settings(home=tmp_path, chat_model="llama3"))
    assert chat.problem == "'llama3' names no provider"
    assert chat.remedy is not None
    assert "MEMCHAT_CHAT_MODEL" in chat.remedy


def test_explaining_and_building_load_no_provider_library() -> None:
    code = (
        "import sys; from memchat.config import load;"
        "from memchat.providers import factory;"
        "s = load({'GEMINI_API_KEY': 'k'}); factory.explain(s); factory.chat_model(s);"
        "factory.extract_model(s); factory.embedder(s).service;"
        "factory.embedder(load({'OPENAI_API_KEY': 'k'})).service;"
        "print([m for m in ('litellm', 'google.genai', 'openai', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_an_error_while_litellm_is_being_imported_waits_until_it_is_whole() -> None:
    code = (
        "from memchat.providers import litellm_calls as setup\n"
        "import threading; threading.Thread(target=setup.litellm, daemon=True).start()\n"
        "assert setup.call_errors() and setup.litellm().exceptions"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
