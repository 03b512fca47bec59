"""Settings: every default in one place, chosen from what is set, refused by name where wrong."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memchat.config import load
from memchat.config.providers import MINILM, OFFLINE_CHAT, OFFLINE_EXTRACT, PROVIDERS
from memchat.errors import ConfigError


def test_with_nothing_set_everything_runs_on_this_machine() -> None:
    settings = load({})
    assert (settings.chat_model, settings.extract_model) == (OFFLINE_CHAT, OFFLINE_EXTRACT)
    assert settings.embed_model == MINILM
    assert set(settings.why) == {"chat_model", "extract_model", "embed_model"}


def test_a_gemini_key_chooses_flash_to_chat_and_the_cheaper_flash_lite_to_extract() -> None:
    settings = load({"GEMINI_API_KEY": "k"})
    assert settings.chat_model == "gemini/gemini-2.5-flash"
    assert settings.extract_model == "gemini/gemini-2.5-flash-lite"
    assert settings.embed_model.startswith("gemini/")
    assert settings.why["chat_model"] == "GEMINI_API_KEY is set"


@pytest.mark.parametrize("default", PROVIDERS, ids=lambda p: p.keys[0])
def test_one_key_is_enough(default) -> None:
    for key in default.keys:
        settings = load({key: "k"})
        assert (settings.chat_model, settings.extract_model) == (default.chat, default.extract)
        assert settings.embed_model == (default.embed or MINILM)
        assert "k is" not in str(settings.why.values())


def test_a_key_without_embeddings_leaves_them_to_this_machine_or_to_another_key() -> None:
    assert load({"ANTHROPIC_API_KEY": "k"}).embed_model == MINILM
    both = load({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"})
    assert both.chat_model.startswith("openai/") and both.embed_model.startswith("openai/")


def test_a_named_model_wins_over_every_key_and_extracts_too_where_nothing_cheaper_is_named() -> (
    None
):
    settings = load({"MEMCHAT_CHAT_MODEL": "ollama/llama3.2"})
    assert settings.chat_model == settings.extract_model == "ollama/llama3.2"
    mixed = load({"MEMCHAT_CHAT_MODEL": "ollama/llama3.2", "GEMINI_API_KEY": "k"})
    assert mixed.extract_model == "gemini/gemini-2.5-flash-lite"
    assert load({"MEMCHAT_EXTRACT_MODEL": "x/y"}).chat_model == OFFLINE_CHAT


@pytest.mark.parametrize("name", ["minilm", "MiniLM", MINILM, MINILM.upper()])
def test_minilm_goes_by_its_short_name(name: str) -> None:
    assert load({"MEMCHAT_EMBED_MODEL": name}).embed_model == MINILM


def test_an_empty_variable_is_as_good_as_none() -> None:
    settings = load({"GEMINI_API_KEY": "", "MEMCHAT_HOME": "", "MEMCHAT_TOP_K": ""})
    assert settings.chat_model == OFFLINE_CHAT and settings.top_k == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMCHAT_TIMEZONE", "Mars/Olympus"),
        ("MEMCHAT_TIMEZONE", "../../etc/passwd"),
        ("MEMCHAT_EXTRACTION", "sometimes"),
        ("MEMCHAT_TOP_K", "many"),
        ("MEMCHAT_TOP_K", "-1"),
        ("MEMCHAT_TOP_K", "nan"),
        ("MEMCHAT_BUDGET", "1e9"),
        ("MEMCHAT_MERGE_THRESHOLD", "inf"),
        ("MEMCHAT_TIMEOUT", "0"),
        ("MEMCHAT_CONTEXT", "12"),
        ("MEMCHAT_IDLE_MINUTES", "0"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_its_variable(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name) as caught:
        load({name: value})
    assert "\n" not in str(caught.value)


def test_a_zone_of_the_machine_that_is_no_zone_counts_as_utc() -> None:
    assert load({"TZ": "nowhere/at-all"}).timezone == "UTC"
    assert load({"TZ": ":Europe/Lisbon"}).zone == ZoneInfo("Europe/Lisbon")


def test_the_home_may_start_with_a_tilde(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load({"MEMCHAT_HOME": "~/words"}).home == tmp_path / "words"


def test_no_setting_holds_a_key() -> None:
    assert "s3cr3t" not in repr(load({"GEMINI_API_KEY": "s3cr3t", "OPENAI_API_KEY": "s3cr3t"}))


def test_the_retries_are_minutes_in_a_row() -> None:
    assert load({}).retry_minutes == (1, 2, 4, 8, 16)
    assert load({"MEMCHAT_RETRY_MINUTES": "0.5, 10,60"}).retry_minutes == (0.5, 10, 60)
    for wrong in ("soon", "1,,2", "-1", "1;2", ",".join(["1"] * 21)):
        with pytest.raises(ConfigError, match="MEMCHAT_RETRY_MINUTES"):
            load({"MEMCHAT_RETRY_MINUTES": wrong})
