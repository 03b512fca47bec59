"""Models that fastembed runs here: a folder, a download that was asked for, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memchat import MemChat
from memchat.cli import main
from memchat.config import Settings, load
from memchat.errors import ConfigError, InputError, ProviderError, ServiceError, StoreFull
from memchat.providers import downloads, factory, fastembed
from memchat.providers.factory import model_folder
from memchat.providers.fastembed import FastembedEmbedder
from memchat.types import Progress
from tests.support.full_disk import Tiny
from tests.support.tiny_model import READS, build
from tests.support.wire.hub import Hub

SMALL = "BAAI/bge-small-en-v1.5"
REPOSITORY = "Qdrant/bge-small-en-v1.5-onnx-Q"
WEIGHTS = "model_optimized.onnx"

here = pytest.mark.skipif(
    not fastembed.is_installed(), reason="fastembed is not installed; it is the extra fastembed"
)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks for the hub finds nobody, on any machine."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that has the smallest of fastembed's models, in name."""
    with Hub(build(tmp_path / "hub", file=WEIGHTS), REPOSITORY) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def settings(tmp_path: Path, model: str = SMALL) -> Settings:
    return Settings(tmp_path / "store", embed_model=f"fastembed/{model}", timezone="UTC")


def bring(tmp_path: Path, seen: list[Progress] | None = None) -> int:
    tell = seen.append if seen is not None else lambda progress: None
    return factory.download(settings(tmp_path), SMALL, tell)[1]


# A folder


@here
def test_a_model_in_its_folder_is_run_and_finds_by_meaning(tmp_path: Path) -> None:
    build(tmp_path / "store" / "models" / "house" / "tiny")
    with MemChat(settings=settings(tmp_path, "house/tiny")) as mc:
        ana = mc.user("ana")
        ana.memories.add("fact", "note", "green tea")
        ana.memories.add("fact", "note", "red kayak")
        mc.jobs.embed()
        (hit, *_) = ana.search("tea").hits
        assert "tea" in hit.text and hit.cosine is not None
        (info,) = mc.services.list()
    assert (info.name, info.dimensions) == ("fastembed/house/tiny", 384)
    assert (info.max_tokens, len(info.version)) == (READS, 12)


@here
def test_the_folder_for_models_is_a_setting(tmp_path: Path) -> None:
    build(tmp_path / "shared" / "house" / "tiny")
    told = {"MEMCHAT_MODELS": str(tmp_path / "shared"), "MEMCHAT_HOME": str(tmp_path / "store")}
    found = factory.embedder(load(told | {"MEMCHAT_EMBED_MODEL": "fastembed/house/tiny"}))
    assert found is not None and found.embed_query("tea")[0].shape == (384,)


@here
def test_other_files_under_the_same_name_are_another_service(tmp_path: Path) -> None:
    first = FastembedEmbedder("house/tiny", build(tmp_path / "one")).service
    assert FastembedEmbedder("house/tiny", build(tmp_path / "same")).service == first
    other = FastembedEmbedder("house/tiny", build(tmp_path / "two", seed=8)).service
    assert other.name == first.name and not other.same_space(first)
    prompts = {"prompts": {"query": "query: ", "document": "passage: "}}
    (tmp_path / "same" / fastembed.PROMPTS).write_text(json.dumps(prompts))
    assert not FastembedEmbedder("house/tiny", tmp_path / "same").service.same_space(first)


@here
def test_what_stands_before_questions_and_texts_is_the_model_s_own(tmp_path: Path) -> None:
    folder = build(tmp_path / "tiny")
    plain = FastembedEmbedder("house/tiny", folder)
    e5 = FastembedEmbedder("intfloat/multilingual-e5-tiny", folder)
    asked, _ = e5.embed_query("tea")
    kept, _ = e5.embed_documents(["tea"])
    assert asked == pytest.approx(plain.embed_documents(["query: tea"])[0][0], abs=1e-6)
    assert kept[0] == pytest.approx(plain.embed_documents(["passage: tea"])[0][0], abs=1e-6)
    assert float(asked @ kept[0]) < 0.999


@here
def test_nothing_of_a_long_text_is_cut(tmp_path: Path) -> None:
    model = FastembedEmbedder("house/tiny", build(tmp_path / "tiny"))
    long = "tea " * 100 + "kayak " * 100
    vectors, usage = model.embed_documents([long, "tea", "kayak"])
    assert usage.prompt_tokens == 202
    parts, _ = model.embed_documents(["tea " * 25, "kayak " * 25])
    both = parts.sum(axis=0)
    assert float(vectors[0] @ both / np.linalg.norm(both)) > 0.99
    assert float(vectors[0] @ parts[0]) < 0.95


@here
@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json", "model.onnx"])
def test_a_file_that_is_missing_is_named_with_what_to_do(tmp_path: Path, file: str) -> None:
    folder = build(tmp_path / "store" / "models" / "house" / "tiny")
    (folder / file).unlink()
    with pytest.raises(ConfigError) as error:
        factory.embedder(settings(tmp_path, "house/tiny"))
    wanted = "ONNX" if file == "model.onnx" else file
    assert wanted in str(error.value) and "memchat services fetch house/tiny" in str(error.value)
    choice = factory.explain(settings(tmp_path, "house/tiny"))[2]
    assert choice.problem is not None and "services fetch" in str(choice.remedy)


@here
@pytest.mark.parametrize("file", ["tokenizer.json", "model.onnx"])
def test_files_that_are_damaged_are_an_error_in_one_line(tmp_path: Path, file: str) -> None:
    folder = build(tmp_path / "tiny")
    (folder / file).write_bytes(b"\0 no model")
    with pytest.raises(ConfigError, match="memchat services fetch house/tiny") as error:
        FastembedEmbedder("house/tiny", folder).embed_query("tea")
    assert "\n" not in str(error.value)


@here
def test_sizes_that_the_files_do_not_tell_are_asked_for(tmp_path: Path) -> None:
    folder = build(tmp_path / "tiny")
    (folder / "config.json").write_text("{}")
    with pytest.raises(ServiceError, match="MEMCHAT_EMBED_DIMENSIONS"):
        FastembedEmbedder("house/tiny", folder)
    assert FastembedEmbedder("house/tiny", folder, dimensions=384).embed_query("tea")[0].size == 384
    with pytest.raises(ProviderError, match="384 numbers where 100"):
        FastembedEmbedder("house/tiny", folder, dimensions=100).embed_query("tea")
    (folder / "tokenizer_config.json").write_text('{"pad_token": "[PAD]"}')
    with pytest.raises(ServiceError, match="model_max_length"):
        FastembedEmbedder("house/tiny", folder, dimensions=384)


@pytest.mark.parametrize("name", ["../tiny", "/etc/tiny", "a/../../b", "", "a//b", "a\\b"])
def test_no_name_leads_out_of_the_folder_for_models(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="names no model"):
        model_folder(settings(tmp_path), f"fastembed/{name}")


def test_without_the_package_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastembed, "PACKAGE", "no_such_package")
    with pytest.raises(ConfigError, match=r"pip install fastembed"):
        factory.embedder(settings(tmp_path))
    with pytest.raises(ConfigError, match=r"pip install fastembed"):
        bring(tmp_path)
    assert not factory.can_embed(settings(tmp_path))
    assert "pip install fastembed" in str(factory.explain(settings(tmp_path))[2].remedy)


# A download


@here
def test_a_model_is_fetched_with_progress_checked_and_used(hub: Hub, tmp_path: Path) -> None:
    seen: list[Progress] = []
    assert bring(tmp_path, seen) > 30_000
    assert seen and seen[-1].unit == "MB" and seen[-1].total == 1
    folder = tmp_path / "store" / "models" / "BAAI" / "bge-small-en-v1.5"
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        WEIGHTS,
        "tokenizer.json",
        "tokenizer_config.json",
    }
    found = factory.embedder(settings(tmp_path))
    assert found is not None and found.embed_query("tea")[0].shape == (384,)
    before = len(hub.asked)
    assert bring(tmp_path) == 0 and len(hub.asked) == before


@here
def test_a_download_that_was_broken_off_goes_on_where_it_was(hub: Hub, tmp_path: Path) -> None:
    hub.cut = 20_000
    with pytest.raises(ProviderError, match="was not fetched") as error:
        bring(tmp_path)
    assert error.value.retryable
    assert fastembed.missing_files(tmp_path / "store" / "models" / SMALL)
    hub.cut = None
    whole = sum(path.stat().st_size for path in hub.folder.iterdir())
    assert 0 < bring(tmp_path) < whole
    assert factory.embedder(settings(tmp_path)) is not None


@here
def test_a_download_that_finds_no_room_says_so_and_goes_on_when_there_is_some(
    hub: Hub, tiny: Tiny
) -> None:
    tiny.fill(left=16_384)
    with pytest.raises(StoreFull, match="free some space, then run it again"):
        bring(tiny.root)
    assert not (tiny.home / "models" / SMALL).exists()
    tiny.free()
    assert bring(tiny.root) > 0


@here
def test_files_that_came_damaged_are_not_taken(hub: Hub, tmp_path: Path) -> None:
    hub.spoilt = True
    with pytest.raises(ProviderError, match="came damaged"):
        bring(tmp_path)
    assert not (tmp_path / "store" / "models" / SMALL).exists()
    hub.spoilt = False
    assert bring(tmp_path) > 0


@here
@pytest.mark.parametrize("how", ["nobody listens", "silence", "no such name", "refused", "offline"])
def test_without_the_hub_it_ends_soon_and_says_what_to_do(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "nobody listens":
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    elif how == "silence":
        monkeypatch.setattr(downloads, "SILENT_SECONDS", 0.5)
        hub.silent = True
    elif how == "no such name":
        monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    elif how == "refused":
        hub.status = 503
    else:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    began = time.monotonic()
    with pytest.raises(ProviderError) as error:
        bring(tmp_path)
    assert time.monotonic() - began < downloads.CONNECT_SECONDS + 5
    assert "\n" not in str(error.value)
    said = "HF_HUB_OFFLINE" if how == "offline" else "from another machine"
    assert said in str(error.value)
    assert not (tmp_path / "store" / "models" / SMALL).exists()


@here
def test_a_model_that_fastembed_does_not_know_is_told_where_its_files_go(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="put its files into"):
        factory.download(settings(tmp_path), "fastembed/house/tiny", lambda progress: None)


@here
def test_a_folder_that_holds_something_else_is_left_alone(hub: Hub, tmp_path: Path) -> None:
    mine = tmp_path / "store" / "models" / SMALL / "notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(InputError, match="move it away"):
        bring(tmp_path)
    assert mine.read_text() == "mine" and hub.asked == []


@here
def test_the_command_fetches_and_the_next_one_changes_the_store_to_it(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMCHAT_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("MEMCHAT_USER", "ana")
    monkeypatch.delenv("MEMCHAT_EMBED_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["services", "fetch", SMALL]) == 0
    said = capsys.readouterr()
    assert "MB fetched" in said.out and "1 MB (100 %)" in said.err
    assert f"memchat services migrate fastembed/{SMALL} changes to it" in said.out
    assert main(["memories", "add", "fact", "note", "green tea"]) == 0
    assert main(["services", "migrate", f"fastembed/{SMALL}"]) == 0
    assert main(["recall", "tea"]) == 0
    said = capsys.readouterr()
    assert "green tea" in said.out


@here
def test_using_a_model_asks_nobody_even_where_the_network_would_hang(tmp_path: Path) -> None:
    """In a process of its own that may open no connection at all."""
    folder = build(tmp_path / "models" / SMALL, file=WEIGHTS)
    script = (
        "import socket, sys\n"
        "def no(*args): raise AssertionError('a connection was opened')\n"
        "socket.socket.connect = no; socket.getaddrinfo = no\n"
        "from pathlib import Path\n"
        "from memchat.providers.fastembed import FastembedEmbedder\n"
        f"model = FastembedEmbedder({SMALL!r}, Path(sys.argv[1]))\n"
        "print(model.embed_query('tea')[0].shape)\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)
    assert (done.returncode, done.stdout) == (0, "(384,)\n"), done.stderr
