"""Embedding providers of other packages: found when they are named, and named when they fail."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.cli import main
from memchat.config import Settings
from memchat.errors import ConfigError, MemChatError, ProviderError
from memchat.providers import factory
from memchat.providers.embedders import PluginEmbedder
from tests.support.plugin import CODE, install

MODULE = "acme_vectors"


def settings(home: Path, model: str = "acme/small") -> Settings:
    return Settings(home / "store", embed_model=model, timezone="UTC")


def test_a_store_is_embedded_by_a_package_that_memchat_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", monkeypatch)
    with MemChat(settings=settings(tmp_path)) as mc:
        ana = mc.user("ana")
        ana.memories.add("fact", "note", "green tea")
        mc.jobs.embed(remote=True)
        assert ana.search("note: green tea").degraded is None
        (info,) = mc.services.list()
        assert (info.name, info.dimensions, info.version) == ("acme/small", 24, "first")
        assert mc.services.migrate("acme/large").switched
        assert mc.doctor()
    asked = sys.modules[MODULE].asked
    assert [question for _, question in asked] == [False, True, False]


def test_listing_names_it_and_imports_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path / "site", monkeypatch, code="raise SystemExit('imported')")
    monkeypatch.setenv("MEMCHAT_HOME", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    assert main(["services", "list"]) == 0
    assert "acme/…, from the package acme-vectors 1.2" in capsys.readouterr().out
    assert main(["services", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"name": "acme", "package": "acme-vectors", "version": "1.2"}
    ]
    assert MODULE not in sys.modules


@pytest.mark.parametrize(
    "code",
    [
        "import no_such_module",
        "nothing = 1",
        "def make(model): raise KeyError('words of yours')",
        "def make(model): return object()",
        CODE.replace("dimensions = 24", "dimensions = 'many'"),
        CODE.replace("def make(model):", "def make():"),
    ],
    ids=["import", "no function", "raises", "no provider", "no number", "another signature"],
)
def test_a_broken_package_is_named_and_the_chat_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    install(tmp_path / "site", monkeypatch, code=code)
    with pytest.raises(ConfigError, match="acme-vectors") as error:
        factory.embedder(settings(tmp_path))
    assert "MEMCHAT_EMBED_MODEL" in str(error.value) and "\n" not in str(error.value)
    assert "words of yours" not in str(error.value)
    with MemChat(settings=settings(tmp_path)) as mc:
        ana = mc.user("ana")
        ana.memories.add("fact", "note", "green tea")
        found = ana.search("tea")
        assert found.hits and "acme-vectors" in str(found.degraded)
        (check,) = [check for check in mc.doctor() if check.name == "embed model"]
        assert check.state == "problem" and "acme-vectors" in check.detail


def test_what_it_raises_is_told_by_its_class_alone_and_ours_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", monkeypatch)
    found = factory.embedder(settings(tmp_path))
    assert found is not None
    module = sys.modules[MODULE]

    def failing(error: BaseException) -> None:
        def spoil(rows: object) -> None:
            raise error

        module.spoil = spoil

    failing(ValueError("words of yours"))
    with pytest.raises(ProviderError, match=r"acme-vectors failed \(ValueError\)") as told:
        found.embed_query("tea")
    assert "words of yours" not in str(told.value) and told.value.retryable
    failing(ProviderError("busy", status=429, retryable=True, retry_after=7))
    with pytest.raises(ProviderError, match="busy") as told:
        found.embed_query("tea")
    assert told.value.retry_after == 7
    failing(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        found.embed_query("tea")


@pytest.mark.parametrize("known", ["openai", "gemini", "hash", "fastembed", "minilm"])
def test_no_package_takes_the_place_of_a_known_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    install(tmp_path / "site", monkeypatch, provider=known)
    model = {"openai": "openai/text-embedding-3-small", "gemini": "gemini/gemini-embedding-001"}
    try:
        found = factory.embedder(settings(tmp_path, model.get(known, known)))
    except MemChatError:
        found = None
    assert not isinstance(found, PluginEmbedder)
    assert MODULE not in sys.modules


def test_two_packages_with_one_name_are_both_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", monkeypatch)
    install(tmp_path / "more", monkeypatch, package="other-vectors")
    with pytest.raises(ConfigError, match="acme-vectors and other-vectors"):
        factory.embedder(settings(tmp_path))
