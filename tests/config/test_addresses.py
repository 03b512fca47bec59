"""Words that go to an address that is not the provider's own: said, and never with a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat.config import load


def elsewhere(tmp_path: Path, **env: str) -> list[str]:
    return load(
        {"MEMCHAT_HOME": str(tmp_path), "MEMCHAT_EMBED_MODEL": "none", **env}
    ).redirect_warnings()


def test_another_address_is_told_with_the_variable_that_sets_it(tmp_path: Path) -> None:
    told = elsewhere(tmp_path, OPENAI_API_KEY="k", OPENAI_BASE_URL="http://127.0.0.1:8080")
    assert told == ["Your words go to http://127.0.0.1:8080 (OPENAI_BASE_URL), not to OpenAI."]


@pytest.mark.parametrize(
    ("model", "variable", "url"),
    [
        ("openai/gpt-4.1-mini", "OPENAI_API_BASE", "https://api.openai.com.evil.example/v1"),
        ("gpt-4.1-mini", "OPENAI_BASE_URL", "https://api.openai.com@evil.example/v1"),
        ("openai/gpt-4.1-mini", "OPENAI_BASE_URL", "http://api.openai.com/v1"),
        ("openai/gpt-4.1-mini", "OPENAI_BASE_URL", "https://[not-an-address"),
        ("gemini/gemini-2.5-flash", "GEMINI_API_BASE", "https://evil.example"),
        ("gemini/gemini-2.5-flash", "GOOGLE_GEMINI_BASE_URL", "https://evil.example"),
        ("anthropic/claude-haiku-4-5", "ANTHROPIC_BASE_URL", "https://evil.example"),
        ("ollama/llama3.2", "OLLAMA_API_BASE", "http://10.0.0.5:11434"),
        ("hosted_vllm/some", "HOSTED_VLLM_API_BASE", "http://10.0.0.5:8000"),
        ("azure/some", "AZURE_API_BASE", "https://mine.example"),
    ],
)
def test_whatever_is_not_the_provider_s_own_is_told(
    tmp_path: Path, model: str, variable: str, url: str
) -> None:
    (told,) = elsewhere(tmp_path, **{"MEMCHAT_CHAT_MODEL": model, variable: url})
    assert f"({variable})" in told


@pytest.mark.parametrize(
    ("model", "variable", "url"),
    [
        ("openai/gpt-4.1-mini", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
        ("openai/gpt-4.1-mini", "OPENAI_BASE_URL", "https://eu.api.openai.com/v1"),
        ("openai/gpt-4.1-mini", "GEMINI_API_BASE", "https://not-in-use.example"),
        ("ollama/llama3.2", "OLLAMA_API_BASE", "http://localhost:11434"),
        ("offline/chat", "OPENAI_BASE_URL", "https://not-in-use.example"),
    ],
)
def test_the_provider_s_own_address_and_one_that_is_not_in_use_are_not_spoken_of(
    tmp_path: Path, model: str, variable: str, url: str
) -> None:
    assert elsewhere(tmp_path, **{"MEMCHAT_CHAT_MODEL": model, variable: url}) == []


def test_the_embedding_model_s_address_counts_as_well(tmp_path: Path) -> None:
    named = {"MEMCHAT_EMBED_MODEL": "openai/text-embedding-3-small", "OPENAI_BASE_URL": "http://x"}
    assert len(elsewhere(tmp_path, **named)) == 1


def test_a_password_and_a_key_in_an_address_are_never_shown(tmp_path: Path) -> None:
    url = "http://me:hidden1@there:1/v1?key=hidden2"
    (told,) = elsewhere(tmp_path, OPENAI_API_KEY="k", OPENAI_BASE_URL=url)
    assert "hidden" not in told and "there:1/v1" in told


@pytest.mark.parametrize(
    ("env", "line"),
    [
        (
            {"OPENAI_API_KEY": "k", "MEMCHAT_EMBED_MODEL": "minilm"},
            "chat: openai/gpt-4.1-mini at api.openai.com; reading: openai/gpt-4.1-nano at "
            "api.openai.com; vectors: minilm, on this machine",
        ),
        (
            {"MEMCHAT_CHAT_MODEL": "gpt-4.1", "OPENAI_BASE_URL": "http://me:pw@127.0.0.1:8080/v1"},
            "chat: gpt-4.1 at 127.0.0.1:8080; reading: gpt-4.1 at 127.0.0.1:8080; "
            "vectors: none, search is by words only",
        ),
        (
            {"MEMCHAT_CHAT_MODEL": "ollama/llama3.2", "OLLAMA_API_BASE": "http://10.0.0.5:11434"},
            "chat: ollama/llama3.2 at 10.0.0.5:11434; reading: ollama/llama3.2 at 10.0.0.5:11434; "
            "vectors: none, search is by words only",
        ),
        (
            {"MEMCHAT_CHAT_MODEL": "ollama/llama3.2", "MEMCHAT_EXTRACT_MODEL": "cohere/command-r"},
            "chat: ollama/llama3.2, on this machine; reading: cohere/command-r at cohere; "
            "vectors: none, search is by words only",
        ),
        (
            {},
            "chat: the offline stand-in, on this machine; reading: the offline stand-in, on this "
            "machine; vectors: none, search is by words only",
        ),
    ],
)
def test_one_line_names_the_models_and_where_each_is_asked(
    tmp_path: Path, env: dict[str, str], line: str
) -> None:
    words_only = {"MEMCHAT_HOME": str(tmp_path), "MEMCHAT_EMBED_MODEL": "none"}
    assert load(words_only | env).models_line() == line
