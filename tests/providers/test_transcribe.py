"""Audio files are written down by the model that is set, and are notes like others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memchat.config import Settings
from memchat.config.keys import Keys
from memchat.errors import ConfigError, ProviderError
from memchat.providers import factory
from memchat.providers.litellm_chat import LiteLLMTranscriber
from tests.support.store import Opener
from tests.support.wire import Fail, Hang, OpenAIServer, Say

RECORDING = b"RIFF\x24\0\0\0WAVEfmt " + bytes(60)
MODEL = "openai/whisper-1"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        yield server


def transcriber(server: OpenAIServer, timeout: float = 10) -> LiteLLMTranscriber:
    return LiteLLMTranscriber(MODEL, timeout=timeout, api_base=server.base)


def test_what_is_said_is_written_down_and_its_cost_is_known(server: OpenAIServer) -> None:
    server.script(Say(" Call John about the invoice. "))

    heard = transcriber(server).transcribe("memo.wav", RECORDING)

    assert heard.text == "Call John about the invoice."
    (request,) = server.requests
    assert request.body["file"] == ("memo.wav", RECORDING)
    assert request.body["model"] == "whisper-1"
    assert heard.usage.purpose == "transcribe"
    assert heard.usage.cost_usd == pytest.approx(90 * 0.0001)  # by its length
    assert server.refusals == []


def test_a_failure_is_one_request_and_says_what_to_do(server: OpenAIServer) -> None:
    server.script(Fail(429), Hang())

    with pytest.raises(ProviderError, match="rate limit"):
        transcriber(server).transcribe("memo.mp3", RECORDING)
    with pytest.raises(ProviderError) as late:
        transcriber(server, timeout=0.02).transcribe("memo.mp3", RECORDING)

    assert late.value.retryable
    assert len(server.requests) == 2


def test_a_missing_key_or_provider_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        LiteLLMTranscriber(MODEL, timeout=1, keys=Keys()).transcribe("a.wav", RECORDING)

    settings = Settings(home=tmp_path, transcribe_model="whisper")
    with pytest.raises(ConfigError, match="MEMCHAT_TRANSCRIBE_MODEL=whisper names no provider"):
        factory.transcriber(settings)


def test_an_audio_file_is_a_note_once_and_its_cost_is_in_the_usage(
    server: OpenAIServer, open_store: Opener, tmp_path: Path
) -> None:
    (tmp_path / "memo.m4a").write_bytes(RECORDING)
    (tmp_path / "quiet.ogg").write_bytes(RECORDING)
    addresses = {"OPENAI_BASE_URL": server.base}
    mc = open_store(transcribe_model=MODEL, addresses=addresses)
    ana = mc.user("ana")
    server.script(Say("Call John about the invoice."), Say(""))

    added = ana.notes.add_files([tmp_path])

    (note,) = added.added
    assert (note.title, note.profile) == ("memo", "memo")
    assert [(one.path.name, one.reason) for one in added.failed] == [
        ("quiet.ogg", "nothing is said in it")
    ]
    (spent,) = [one for one in ana.usage() if one.purpose == "transcribe"]
    assert (spent.model, spent.calls) == (MODEL, 2)
    assert ana.notes.add_files([tmp_path / "memo.m4a"]).unchanged == 1
    assert len(server.requests) == 2
    assert "127.0.0.1" in mc.address_notices()[0]
    assert "audio: openai/whisper-1 at 127.0.0.1" in mc.models_line()


def test_without_a_model_audio_says_what_to_set(open_store: Opener, tmp_path: Path) -> None:
    (tmp_path / "memo.mp3").write_bytes(RECORDING)

    added = open_store().user("ana").notes.add_files([tmp_path])

    assert "set MEMCHAT_TRANSCRIBE_MODEL" in added.failed[0].reason
