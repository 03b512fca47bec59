"""The derived index: exact, always in step with the rows, and worth nothing to lose."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import pytest

from memchat.db import apps
from memchat.db.database import FILE, Database
from memchat.errors import StoreError
from memchat.facts import changes, memories
from memchat.facts.memories import NewMemory, ValuesInForce
from memchat.providers.embedders import HashEmbedder
from memchat.search import embeddings
from memchat.search import vector_index as index_module
from memchat.search.embeddings import FOLDER
from memchat.search.vector_index import Shard
from memchat.types import Scope, Wanted
from tests.support import private
from tests.support.vectors import (
    ANA,
    BO,
    BY_HAND,
    DIMENSIONS,
    NOON,
    app_id,
    by_hand,
    keep,
    opened,
    search,
    vector,
)


def test_a_search_sees_only_the_asked_scopes_and_merges_them_in_order(store: Database) -> None:
    keep(store, BO, "tea", "coffee")
    own = keep(store, ANA, "tea", "jazz", "chess")
    with store.write() as tx:
        shared = apps.ensure(tx, ANA).shared
        changes.rewrite(
            tx,
            memories.get(tx, apps.find(tx, ANA).ids, own[2]),
            shared,
            NewMemory("fact", "thing", "chess", True, "chess", NOON, "manual"),
            BY_HAND,
        )
    index = opened(store)
    values = ["tea", "jazz", "chess"]
    expected = by_hand(own, [vector(v) for v in values], vector("chess"), 3)
    assert search(store, index, ANA, "chess") == [i for i, _ in expected]
    assert expected[0][0] == own[2]
    with store.read() as tx:
        assert index.search(tx, [], vector("tea"), 5) == []
        ids = apps.find(tx, ANA).ids
        assert set(index.scores(tx, ids, vector("tea"), [*own, 1])) == set(own)


def test_what_another_process_writes_shows_at_the_next_search(store: Database) -> None:
    mine = opened(store)
    with closing(Database(store.home)) as elsewhere:
        (tea,) = keep(elsewhere, ANA, "tea")
        assert search(store, mine, ANA, "tea") == [tea]
        (jazz,) = keep(elsewhere, ANA, "jazz")
        assert set(search(store, mine, ANA, "tea")) == {tea, jazz}
        with elsewhere.write() as tx:
            own = apps.find(tx, ANA).own
            found = memories.get(tx, [own], tea)
            changes.deactivate(tx, found, "ended", BY_HAND)
        assert search(store, mine, ANA, "tea") == [jazz]


def test_a_search_sees_the_moment_of_its_own_transaction_and_not_later(store: Database) -> None:
    index = opened(store)
    (tea,) = keep(store, ANA, "tea")
    own = app_id(store, ANA)
    with store.read() as before:
        assert index.ids(before, own) == {tea}
        (jazz,) = keep(store, ANA, "jazz")
        with store.read() as after:
            assert index.ids(after, own) == {tea, jazz}
        assert index.ids(before, own) == {tea}


def test_small_shards_leave_no_file(store: Database) -> None:
    keep(store, ANA, "tea")
    index = opened(store)
    search(store, index, ANA, "tea")
    with store.read() as tx:
        index.save(tx)
    assert not (store.home / FOLDER).exists()


def vectors_read(store: Database, monkeypatch) -> list[int]:
    """How many vectors each catch-up reads from the rows, from now on."""
    counts: list[int] = []
    read = embeddings.of_kind

    def counted(*args):
        found = read(*args)
        counts.append(len(found[0]))
        return found

    monkeypatch.setattr(embeddings, "of_kind", counted)
    return counts


def test_a_saved_shard_opens_without_reading_the_rows_again(
    store: Database, saved: Path, monkeypatch
) -> None:
    counts = vectors_read(store, monkeypatch)
    assert len(search(store, opened(store), ANA, "tea")) == 3 and counts == []
    keep(store, ANA, "dance")
    assert len(search(store, opened(store), ANA, "tea")) == 4 and counts == [1]


def test_a_saved_shard_is_nobody_else_s_to_read_and_names_nobody(saved: Path) -> None:
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert stat.S_IMODE(saved.parent.stat().st_mode) == 0o700
    assert saved.parent.name == "mem.index"
    assert saved.suffix == ".faiss" and len(saved.stem) == 32 and int(saved.stem, 16) >= 0


def damage(how: str, file: Path) -> None:
    whole = file.read_bytes()
    head, _, body = whole.partition(b"\n")
    known = json.loads(head)
    if how == "deleted":
        file.unlink()
    elif how == "a folder":
        file.unlink()
        file.mkdir()
    else:
        changed = {
            "empty": b"",
            "cut in the head": whole[:20],
            "cut in the body": whole[: len(whole) * 2 // 3],
            "one bit turned": whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:],
            "garbage": b"\x80\xff" * 500,
            "garbage behind its head": head + b"\n" + b"\x00" * len(body),
            "json of something else": b"[]\n" + body,
            "another format": json.dumps(known | {"format": 99}).encode() + b"\n" + body,
            "another size": json.dumps(known | {"dimensions": 3}).encode() + b"\n" + body,
        }[how]
        file.write_bytes(changed)


@pytest.mark.parametrize(
    "how",
    [
        "deleted",
        "empty",
        "cut in the head",
        "cut in the body",
        "one bit turned",
        "garbage",
        "garbage behind its head",
        "json of something else",
        "another format",
        "another size",
    ],
)
def test_a_damaged_file_is_made_anew_from_the_rows(
    store: Database, saved: Path, monkeypatch, how: str
) -> None:
    damage(how, saved)
    if how != "deleted":
        with pytest.raises(StoreError) as error:
            Shard.load(saved, DIMENSIONS)
        assert "\n" not in str(error.value)
    counts = vectors_read(store, monkeypatch)
    index = opened(store)
    assert len(search(store, index, ANA, "tea")) == 3 and counts == [3]
    with store.read() as tx:
        index.save(tx)
    assert len(Shard.load(saved, DIMENSIONS)) == 3


def test_a_save_that_fails_leaves_the_file_as_it_was(
    store: Database, saved: Path, monkeypatch
) -> None:
    before = saved.read_bytes()
    keep(store, ANA, "dance")
    index = opened(store)
    search(store, index, ANA, "tea")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with store.write() as tx:
        index.save(tx)
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]
    assert saved.read_bytes() == before


def test_the_whole_folder_may_go_at_any_time(store: Database, saved: Path) -> None:
    shutil.rmtree(saved.parent)
    assert len(search(store, opened(store), ANA, "tea")) == 3


def test_a_folder_from_another_store_is_never_taken_for_ours(
    store: Database, saved: Path, tmp_path: Path, monkeypatch
) -> None:
    with closing(Database(tmp_path / "other")) as other:
        (only,) = keep(other, ANA, "opera")
        shutil.copytree(saved.parent, tmp_path / "other" / FOLDER)
        assert search(other, opened(other), ANA, "tea") == [only]


def test_a_file_from_before_a_copy_was_put_back_is_not_trusted(
    store: Database, saved: Path, tmp_path: Path
) -> None:
    """The rows went back in time and then on along another way, past the file's last event."""
    saved.unlink()
    store.close()
    shutil.copy(store.path, tmp_path / "copy")
    store = Database(store.home)
    keep(store, ANA, "opera", "ballet")
    index = opened(store)
    search(store, index, ANA, "tea")
    with store.read() as tx:
        index.save(tx)
    assert saved.exists()
    store.close()
    shutil.copy(tmp_path / "copy", store.path)
    store = Database(store.home)
    with store.write() as tx:
        own = apps.find(tx, ANA).own
        first = memories.listed(tx, [own], Wanted(status="all"), ValuesInForce(date.max))[-1]
        for _ in range(3):  # as many events as the lost way had, and one more
            changes.count_repeat(tx, first, NOON + timedelta(days=1), BY_HAND)
    with store.read() as tx:
        held = {m.id for m in memories.listed(tx, [own], Wanted(), ValuesInForce(date.min))}
        assert opened(store).ids(tx, own) == held and len(held) == 3


def test_a_forgotten_vector_does_not_come_back_in_a_file(store: Database, saved: Path) -> None:
    index = opened(store)
    own = app_id(store, ANA)
    search(store, index, ANA, "tea")
    with store.write() as tx:
        gone = memories.listed(tx, [own], Wanted(status="all"), ValuesInForce(date.max))[0].id
        changes.remove(tx, [gone])
        changes.record(tx, gone, own, "forget", BY_HAND)
    with store.read() as tx:
        index.save(tx)
    assert gone not in Shard.load(saved, DIMENSIONS).ids
    index.forget([own])
    assert not saved.exists()


def test_shards_out_of_room_are_let_go_and_read_again(store: Database, monkeypatch) -> None:
    keep(store, ANA, "tea", "jazz")
    keep(store, BO, "opera")
    monkeypatch.setattr(index_module, "ROOM_BYTES", 1)
    index = opened(store)
    for _ in range(2):
        assert len(search(store, index, ANA, "tea")) == 2
        assert len(search(store, index, BO, "tea")) == 1
        assert len(private.shards(index)) == 1


# In step with the rows, whatever happens


class Silent(HashEmbedder):
    """Must never be asked again."""

    def embed_documents(self, texts):
        raise AssertionError("the rows hold the vectors")


def test_without_its_files_everything_is_found_again_and_no_service_asked(
    open_store, monkeypatch
) -> None:
    monkeypatch.setattr(index_module, "SAVE_FROM", 2)
    mc = open_store()
    ana = mc.user("ana")
    for value in ("green tea", "loud jazz", "slow chess"):
        ana.memories.add("preference", "like", value)
    mc.jobs.embed()
    before = {h.id: h.cosine for h in ana.search("green tea").hits}
    home = mc.settings.home
    mc.close()
    assert list((home / FOLDER).iterdir()) != []
    shutil.rmtree(home / FOLDER)
    again = open_store(embedder=Silent())
    monkeypatch.setattr(Silent, "embed_query", lambda self, t: HashEmbedder().embed_query(t))
    assert {h.id: h.cosine for h in again.user("ana").search("green tea").hits} == before


@pytest.mark.parametrize("verb", ["delete", "clear", "delete_app"])
def test_a_forgotten_vector_leaves_the_disk_although_this_process_never_searched(
    open_store, monkeypatch, verb: str
) -> None:
    monkeypatch.setattr(index_module, "SAVE_FROM", 2)
    mc = open_store()
    ana = mc.user("ana")
    kept = [ana.memories.add("preference", "like", v) for v in ("tea", "jazz", "chess")]
    mc.jobs.embed()
    ana.search("tea")
    home = mc.settings.home
    mc.close()
    assert len(list((home / FOLDER).iterdir())) == 1
    fresh = open_store()
    if verb == "delete":
        fresh.user("ana").memories.delete(kept[0].id)
    elif verb == "clear":
        fresh.user("ana").memories.clear()
    else:
        fresh.user("ana").apps.delete("default")
    fresh.close()
    for file in (home / FOLDER).glob("*"):
        assert kept[0].id not in Shard.load(file, HashEmbedder().service.dimensions).ids


def test_a_vector_made_for_one_app_is_in_the_index_of_every_app_with_the_same_words(
    open_store,
) -> None:
    mc = open_store()
    one = mc.user("ana", app="home").memories.add("preference", "like", "tea")
    two = mc.user("ana", app="work").memories.add("preference", "like", "tea")

    def held() -> list[set[int]]:
        meaning, _ = private.meaning(mc)
        with private.database(mc).read() as tx:
            ids = [apps.find(tx, Scope("ana", app)).own for app in ("home", "work")]
            return [meaning.index.ids(tx, app_id) for app_id in ids]

    assert held() == [set(), set()]  # both shards are read before the vectors come
    for memory in (one, two):  # as two workers would, one memory each
        private.parts(mc).worker.run(kinds=("embed",), target_id=memory.id)
    assert held() == [{one.id}, {two.id}]


def test_the_store_s_folder_holds_only_its_file_and_the_index(open_store, monkeypatch) -> None:
    monkeypatch.setattr(index_module, "SAVE_FROM", 1)
    mc = open_store()
    for name in ("../x", "/etc", "ana ona", "👩‍👩‍👧", "x" * 200, "CON", "a\\b"):
        mc.user(name, app=name).memories.add("preference", "like", "tea")
        mc.jobs.embed()
        assert [m.value for m in mc.user(name, app=name).memories.list()] == ["tea"]
        assert len(mc.user(name, app=name).search("tea").hits) == 1
    home = mc.settings.home
    mc.close()
    assert {p.name for p in home.iterdir()} == {FILE, FOLDER}
    assert {p.suffix for p in (home / FOLDER).iterdir()} == {".faiss"}
    assert [p.name for p in home.parent.iterdir()] == [home.name]
