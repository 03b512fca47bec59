"""The derived index: exact, always in step with the rows, and worth nothing to lose."""

from __future__ import annotations

import json
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from sqlalchemy import delete, select

from memchat import MemChat
from memchat.config import Settings
from memchat.errors import InputError, StoreError
from memchat.providers.hashing import HashEmbedder
from memchat.store import apps, embeddings, events, memories, meta, schema, services
from memchat.store.database import FILE, Database
from memchat.store.events import Cause
from memchat.store.memories import NewMemory
from memchat.testing import FakeClock
from memchat.types import Scope, Service
from memchat.vectors import index as index_module
from memchat.vectors.index import FOLDER, VectorIndex
from memchat.vectors.shard import Shard

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
DIMENSIONS = 16
SERVICE = Service("test", "exact", DIMENSIONS, 1000)
ANA, BO = Scope("ana"), Scope("bo")
BY_HAND = Cause(NOON, "user")

# Sixteen times ±1/4: unit vectors whose products are exact in float32, with many ties.
EXACT = st.lists(st.sampled_from([-0.25, 0.25]), min_size=DIMENSIONS, max_size=DIMENSIONS)
FEW = st.sampled_from([[0.25] * 16, [-0.25] * 16, [0.25, -0.25] * 8, [0.25] * 8 + [-0.25] * 8])


def by_hand(ids, vectors, query, limit: int, exclude=()) -> list[tuple[int, float]]:
    """What an index must give: every product, in order, equal ones by id."""
    scores = [(i, float(np.float32(v @ query))) for i, v in zip(ids, vectors, strict=True)]
    scores = [hit for hit in scores if hit[0] not in exclude]
    return sorted(scores, key=lambda hit: (-hit[1], hit[0]))[:limit]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(EXACT | FEW, max_size=40),
    EXACT | FEW,
    st.integers(0, 45),
    st.sets(st.integers(1, 40), max_size=5),
    st.randoms(use_true_random=False),
)
def test_a_search_is_brute_force_to_the_last_tie(rows, asked, limit, exclude, random) -> None:
    vectors = np.array(rows, np.float32).reshape(len(rows), DIMENSIONS)
    query = np.array(asked, np.float32)
    ids = list(range(1, len(rows) + 1))
    random.shuffle(ids)
    shard = Shard(DIMENSIONS)
    shard.replace([], ids, vectors)
    found = shard.search(query, limit, sorted(exclude))
    assert found == by_hand(ids, vectors, query, limit, exclude)
    assert shard.scores(query, [*ids, 999]) == dict(by_hand(ids, vectors, query, len(ids)))
    assert len(shard) == len(rows) and shard.ids == set(ids)


@pytest.mark.parametrize("dimensions", [3, 64, 384])
def test_real_vectors_come_in_the_order_of_numpy(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    vectors = rng.normal(size=(3_000, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[1_000:1_020] = vectors[0]
    shard = Shard(dimensions)
    shard.replace([], range(3_000), vectors)
    for query in (vectors[0], vectors[7], -vectors[9]):
        exact = vectors.astype(np.float64) @ query.astype(np.float64)
        expected = sorted(range(3_000), key=lambda i: (-round(exact[i], 6), i))[:50]
        found = shard.search(query, 50)
        assert [score for _, score in found] == pytest.approx(exact[expected], abs=1e-6)
        # Scores a rounding step apart may stand either way round; everything else is in place.
        gaps = np.diff(exact[expected])
        settled = [n for n in range(1, 49) if min(-gaps[n - 1], -gaps[n]) > 2e-6]
        assert [found[n][0] for n in settled] == [expected[n] for n in settled]
    assert [i for i, _ in shard.search(vectors[0], 5)] == [0, 1_000, 1_001, 1_002, 1_003]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 30), st.integers(1, 12))
def test_a_quickened_shard_finds_what_a_plain_one_does_through_every_change(
    seed, count, changed, limit
) -> None:
    rng = np.random.default_rng(seed)
    plain, quick = Shard(DIMENSIONS), Shard(DIMENSIONS)
    vectors = rng.choice([-0.25, 0.25], (count + changed, DIMENSIONS)).astype(np.float32)
    for shard in (plain, quick):
        shard.replace([], range(count), vectors[:count])
    quick.quicken()
    ids = rng.integers(0, 2 * count, changed).tolist()
    kept = sorted(set(ids[: changed // 2]))
    for shard in (plain, quick):
        shard.replace(sorted(set(ids)), kept, vectors[count : count + len(kept)])
    assert len(quick) == len(plain) and quick.ids == plain.ids
    assert quick.nbytes > plain.nbytes
    for query in vectors[:5]:
        assert quick.search(query, limit, kept[:3]) == plain.search(query, limit, kept[:3])


@pytest.mark.parametrize(("spread", "outlier"), [(0.25, 0.0), (0.7, 0.0), (0.4, 0.65)])
def test_a_quickened_shard_is_exact_where_rows_resemble_each_other(spread, outlier) -> None:
    rng = np.random.default_rng(1)

    def unit(rows):
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def like(rows):
        """As some models have them: with one dimension that is large in every vector."""
        rows = unit(rows) * np.sqrt(1 - outlier**2)
        rows[:, 7] += outlier
        return unit(rows)

    topics = unit(rng.standard_normal((40, 384)))
    of = topics[rng.integers(0, 40, 8_000)]
    rows = unit(of + spread * unit(rng.standard_normal((8_000, 384))))
    asked = like(rows[:150] + 0.4 * unit(rng.standard_normal((150, 384))))
    rows = like(rows)
    shard = Shard(384)
    shard.replace([], range(8_000), rows)
    shard.quicken()
    exact = 0
    for query in asked:
        scores = np.sort(rows @ query)[::-1][:10]
        found = [score for _, score in shard.search(query, 20)][:10]
        exact += np.allclose(found, scores, atol=1e-6)
    assert exact == len(asked)


def test_a_shard_that_grows_large_while_it_is_used_is_quickened(
    store: Database, monkeypatch
) -> None:
    monkeypatch.setattr(index_module, "QUICK_FROM", 30)
    keep(store, ANA, *[f"value {n}" for n in range(20)])
    index = opened(store)
    with store.read() as tx:
        own = apps.find(tx, ANA).ids
        index.search(tx, own, vector("value 3"), 5)
        assert not index._shards["memories", own[0]].quick
    keep(store, ANA, *[f"more {n}" for n in range(20)])
    with store.read() as tx:
        assert index.search(tx, own, vector("more 7"), 1)[0][1] == pytest.approx(1)
        assert index._shards["memories", own[0]].quick


def test_an_older_snapshot_takes_nothing_from_those_who_are_further(store: Database) -> None:
    keep(store, ANA, "tea", "coffee")
    index = opened(store)
    with store.read() as old:
        own = apps.find(old, ANA).ids
        before = index.search(old, own, vector("tea"), 5)
        keep(store, ANA, "cocoa")
        with store.read() as new:
            assert len(index.search(new, own, vector("tea"), 5)) == 3
        further = index._shards["memories", own[0]]
        assert index.search(old, own, vector("tea"), 5) == before
        assert index._shards["memories", own[0]] is further


def test_replacing_takes_out_changes_and_adds() -> None:
    rows = np.eye(4, DIMENSIONS, dtype=np.float32)
    shard = Shard(DIMENSIONS)
    shard.replace([], [1, 2, 3], rows[:3])
    shard.replace([1, 2, 9], [2], rows[3:])
    assert shard.ids == {2, 3}
    assert shard.search(rows[3], 1) == [(2, 1.0)] and shard.scores(rows[1], [2]) == {2: 0.0}


# Over the rows


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path)
    yield opened
    opened.close()


def opened(store: Database) -> VectorIndex:
    """The index as another process would open it."""
    with store.write() as tx:
        service_id = services.register(tx, SERVICE, NOON)
        return VectorIndex(store.home, meta.store_id(tx), service_id, SERVICE)


def keep(store: Database, scope: Scope, *values: str) -> list[int]:
    """Memories whose vectors are made of their words' letters."""
    with store.write() as tx:
        service_id = services.register(tx, SERVICE, NOON)
        own, _ = apps.ensure(tx, scope, NOON)
        ids = []
        for value in values:
            new = NewMemory("fact", "thing", value, True, value, NOON, "manual")
            embeddings.put(tx, service_id, [(memories.text_hash(value), vector(value))], NOON)
            ids.append(memories.insert_new(tx, own, new, BY_HAND))
        return ids


def vector(value: str) -> np.ndarray:
    found = np.random.default_rng([*value.encode()]).normal(size=DIMENSIONS).astype(np.float32)
    return found / np.linalg.norm(found)


def app_id(store: Database, scope: Scope) -> int:
    with store.read() as tx:
        return apps.find(tx, scope).ids[0]


def search(store: Database, index: VectorIndex, scope: Scope, value: str, limit=5) -> list[int]:
    with store.read() as tx:
        ids = apps.find(tx, scope).ids
        return [i for i, _ in index.search(tx, ids, vector(value), limit)]


def test_a_search_sees_only_the_asked_scopes_and_merges_them_in_order(store: Database) -> None:
    keep(store, BO, "tea", "coffee")
    own = keep(store, ANA, "tea", "jazz", "chess")
    with store.write() as tx:
        _, shared = apps.ensure(tx, ANA, NOON)
        memories.rewrite(
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
            memories.deactivate(tx, found, own, "ended", BY_HAND)
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


@pytest.fixture
def saved(store: Database, monkeypatch) -> Path:
    """The one file of a shard that was large enough to be saved."""
    monkeypatch.setattr(index_module, "SAVE_FROM", 2)
    keep(store, ANA, "tea", "jazz", "chess")
    index = opened(store)
    search(store, index, ANA, "tea")
    with store.read() as tx:
        index.save(tx)
    (file,) = (store.home / FOLDER).iterdir()
    return file


def vectors_read(store: Database, monkeypatch) -> list[int]:
    """How many vectors each catch-up reads from the rows, from now on."""
    counts: list[int] = []
    read = embeddings.of_memories

    def counted(*args):
        found = read(*args)
        counts.append(len(found[0]))
        return found

    monkeypatch.setattr(embeddings, "of_memories", counted)
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
    keep(store, ANA, "opera", "ballet")
    index = opened(store)
    search(store, index, ANA, "tea")
    with store.read() as tx:
        index.save(tx)
    assert saved.exists()
    store.close()
    shutil.copy(tmp_path / "copy", store.path)
    with store.write() as tx:
        own = apps.find(tx, ANA).own
        first = memories.listed(tx, [own], status="all", today=date.max)[-1]
        for _ in range(3):  # as many events as the lost way had, and one more
            memories.repeat(tx, first, own, NOON + timedelta(days=1), BY_HAND)
    with store.read() as tx:
        held = {m.id for m in memories.listed(tx, [own], status="active", today=date.min)}
        assert opened(store).ids(tx, own) == held and len(held) == 3


def test_a_forgotten_vector_does_not_come_back_in_a_file(store: Database, saved: Path) -> None:
    index = opened(store)
    own = app_id(store, ANA)
    search(store, index, ANA, "tea")
    with store.write() as tx:
        gone = memories.listed(tx, [own], status="all", today=date.max)[0].id
        memories.remove(tx, [gone])
        events.record(tx, gone, own, "forget", BY_HAND)
    with store.read() as tx:
        index.save(tx)
    assert gone not in Shard.load(saved, DIMENSIONS).ids
    index.forget(own)
    assert not saved.exists()


def test_shards_out_of_room_are_let_go_and_read_again(store: Database, monkeypatch) -> None:
    keep(store, ANA, "tea", "jazz")
    keep(store, BO, "opera")
    monkeypatch.setattr(index_module, "ROOM_BYTES", 1)
    index = opened(store)
    for _ in range(2):
        assert len(search(store, index, ANA, "tea")) == 2
        assert len(search(store, index, BO, "tea")) == 1
        assert len(index._shards) == 1


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
        meaning, _ = mc._assembly.meaning()
        with mc._assembly.database.read() as tx:
            ids = [apps.find(tx, Scope("ana", app)).own for app in ("home", "work")]
            return [meaning.index.ids(tx, app_id) for app_id in ids]

    assert held() == [set(), set()]  # both shards are read before the vectors come
    for memory in (one, two):  # as two workers would, one memory each
        mc._assembly.parts().worker.run(kinds=("embed",), target_id=memory.id)
    assert held() == [{one.id}, {two.id}]


CITIES = ["Lisbon", "Porto", "Faro"]
LIKES = ["tea", "jazz", "chess", "opera"]
APPS = ["home", "work"]


class InStep(RuleBasedStateMachine):
    """Two openings of one store, each with its index; after each step all of it agrees."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock(NOON)
        home = Path(self.folder.name)
        self.stores = [
            MemChat(settings=Settings(home=home), embedder=HashEmbedder(), clock=self.clock)
            for _ in range(2)
        ]
        self.rows: Database = self.stores[0]._assembly.database

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.folder.cleanup()

    def any_memory(self, n: int, app: str) -> int | None:
        found = self.stores[0].user("ana", app=app).memories.list(status="all")
        return found[n % len(found)].id if found else None

    who = st.integers(0, 1)
    app = st.sampled_from(APPS)
    nth = st.integers(0, 30)

    @rule(who=who, app=app, city=st.sampled_from(CITIES), everywhere=st.booleans())
    def say_where(self, who: int, app: str, city: str, everywhere: bool) -> None:
        self.clock.advance(seconds=1)
        self.stores[who].user("ana", app=app).memories.add(
            "profile", "city", city, all_apps=everywhere
        )

    @rule(who=who, app=app, like=st.sampled_from(LIKES), days=st.none() | st.integers(0, 2))
    def say_like(self, who: int, app: str, like: str, days: int | None) -> None:
        self.clock.advance(seconds=1)
        until = None if days is None else self.clock().date() + timedelta(days=days)
        self.stores[who].user("ana", app=app).memories.add(
            "preference", "like", like, expires_at=until
        )

    @rule(who=who)
    def embed(self, who: int) -> None:
        self.stores[who].jobs.embed()

    @rule(who=who, days=st.integers(0, 3))
    def days_pass(self, who: int, days: int) -> None:
        self.clock.advance(days=days)
        self.stores[who].jobs.run(kinds=("expire",))

    @rule(app=app, n=nth)
    def merge(self, app: str, n: int) -> None:
        with self.rows.write() as tx:
            own = apps.find(tx, Scope("ana", app)).own
            if own is None:
                return
            active = memories.listed(tx, [own], status="active", today=date.min)
            if len(active) > 1:
                loser, winner = active[n % len(active)], active[(n + 1) % len(active)]
                cause = Cause(self.clock(), "model")
                memories.deactivate(tx, loser, own, "merged", cause, replaced_by=winner.id)

    @rule(
        who=who, app=app, n=nth, value=st.sampled_from(LIKES), everywhere=st.none() | st.booleans()
    )
    def edit(self, who: int, app: str, n: int, value: str, everywhere: bool | None) -> None:
        memory_id = self.any_memory(n, app)
        if memory_id is not None:
            try:
                self.stores[who].user("ana", app=app).memories.update(
                    memory_id, value=value, all_apps=everywhere
                )
            except InputError as error:
                assert "says the same" in str(error)

    @rule(who=who, app=app, n=nth)
    def restore(self, who: int, app: str, n: int) -> None:
        memory_id = self.any_memory(n, app)
        if memory_id is not None:
            try:
                self.stores[who].user("ana", app=app).memories.restore(memory_id)
            except InputError as error:
                assert "active already" in str(error)

    @rule(who=who, app=app, n=nth)
    def forget(self, who: int, app: str, n: int) -> None:
        memory_id = self.any_memory(n, app)
        if memory_id is not None:
            self.stores[who].user("ana", app=app).memories.delete(memory_id)

    @rule(who=who, app=app)
    def clear(self, who: int, app: str) -> None:
        self.stores[who].user("ana", app=app).memories.clear()

    @precondition(lambda self: len(self.rows_of("apps")) > 2)
    @rule(who=who, app=app)
    def drop_app(self, who: int, app: str) -> None:
        if any(a.name == app for a in self.stores[who].user("ana").apps.list()):
            self.stores[who].user("ana").apps.delete(app)

    @rule(who=who)
    def reopen(self, who: int) -> None:
        old = self.stores[who]
        old.close()
        self.stores[who] = MemChat(settings=old.settings, embedder=HashEmbedder(), clock=self.clock)
        self.rows = self.stores[0]._assembly.database

    def rows_of(self, table: str) -> list:
        with self.rows.read() as tx:
            return tx.execute(select(schema.metadata.tables[table])).all()

    @invariant()
    def the_index_and_the_keyword_rows_are_the_active_and_the_replaced_rows(self) -> None:
        every = self.rows_of("memories")
        embedded = {row.hash for row in self.rows_of("embeddings")}
        searched = [row for row in every if row.active or row.inactive_reason == "superseded"]
        for store in self.stores:
            meaning, _ = store._assembly.meaning()
            for app in self.rows_of("apps"):
                with store._assembly.database.read() as tx:
                    held = meaning.index.ids(tx, app.id)
                assert held == {
                    r.id for r in searched if r.app_id == app.id and r.text_hash in embedded
                }
        assert embedded <= {row.text_hash for row in every}
        with self.rows.read() as tx:
            words = dict(tx.exec_driver_sql("SELECT rowid, text FROM memories_fts").all())
        assert {i: words[i].partition("q")[0] for i in words} == {
            row.id: str(row.app_id) for row in searched
        }

    @invariant()
    def the_events_tell_what_the_rows_are(self) -> None:
        told = replay(self.rows_of("memory_events"))
        assert told == {
            row.id: {
                "app_id": row.app_id,
                "memory_type": row.memory_type,
                "key": row.key,
                "value": row.value,
                "expires_at": row.expires_at and row.expires_at.isoformat(),
                "many": bool(row.many),
                "active": bool(row.active),
                "inactive_reason": row.inactive_reason,
                "seen_count": row.seen_count,
            }
            for row in self.rows_of("memories")
        }


REASONS = {"supersede": "superseded", "merge": "merged", "expire": "expired", "end": "ended"}


def replay(log) -> dict[int, dict]:
    """The memories as their events tell them, from nothing."""
    told: dict[int, dict] = {}
    for event in sorted(log, key=lambda e: e.id):
        new = json.loads(event.new) if event.new else {}
        if event.kind == "forget":
            told.pop(event.memory_id, None)
        elif event.kind == "add" and new:
            fresh = {"active": True, "inactive_reason": None, "seen_count": 1}
            told[event.memory_id] = {**fresh, **new, "app_id": event.app_id}
        elif event.memory_id in told:
            state = told[event.memory_id]
            if event.kind in REASONS:
                state |= {"active": False, "inactive_reason": REASONS[event.kind]}
            elif event.kind == "restore":
                state |= {"active": True, "inactive_reason": None, **new}
            elif event.kind == "edit":
                state |= new
            elif event.kind == "repeat":
                state["seen_count"] += 1
    return told


def test_after_any_steps_index_keyword_rows_and_events_agree_with_the_rows() -> None:
    run_machine(
        InStep,
        settings=settings(
            max_examples=8,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_history_of_a_restored_memory_says_that_its_day_was_lifted(open_store, clock) -> None:
    mc = open_store()
    ana = mc.user("ana")
    memory = ana.memories.add("fact", "trip", "Faro", expires_at=clock().date())
    clock.advance(days=2)
    mc.jobs.run(kinds=("expire",))
    assert ana.memories.restore(memory.id).expires_at is None
    told = ana.memories.history(memory.id)
    assert [e.new["expires_at"] for e in told if e.new] == ["2026-05-01", None, None]


def test_a_replayed_log_that_lost_an_event_would_be_noticed(open_store) -> None:
    mc = open_store()
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("profile", "city", "Porto")
    with mc._assembly.database.write() as tx:
        log = tx.execute(select(schema.memory_events)).all()
        assert [m["active"] for m in replay(log).values()] == [False, True]
        tx.execute(delete(schema.memory_events).where(schema.memory_events.c.kind == "supersede"))
        log = tx.execute(select(schema.memory_events)).all()
        assert [m["active"] for m in replay(log).values()] == [True, True]


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


@pytest.mark.parametrize("how", ["COARSE_FROM", "QUICK_FROM"])
def test_a_coarse_look_gives_the_list_of_exact_arithmetic(
    store: Database, monkeypatch, how: str
) -> None:
    monkeypatch.setattr(index_module, how, 300)
    values = [f"value {n}" for n in range(300)]
    ids = keep(store, ANA, *values)
    index, vectors = opened(store), np.array([vector(value) for value in values])
    for n in range(0, 300, 7):
        query = vectors[n] + 0.7 * vectors[(n + 1) % 300]
        with store.read() as tx:
            found = index.search(tx, apps.find(tx, ANA).ids, query, 10)
        wanted = by_hand(ids, vectors, query, 10)
        assert [i for i, _ in found] == [i for i, _ in wanted]
        assert [score for _, score in found] == pytest.approx([s for _, s in wanted], abs=1e-6)
        with store.read() as tx:
            scored = index.scores(tx, apps.find(tx, ANA).ids, query, ids[n:])
        wanted = by_hand(ids[n:], vectors[n:], query, 300)
        assert scored == pytest.approx(dict(wanted), abs=1e-6)


def test_a_large_shard_outlives_a_forgetting_in_memory_but_not_on_disk(
    store: Database, saved: Path
) -> None:
    index = opened(store)
    own = app_id(store, ANA)
    with store.read() as tx:
        before = index.ids(tx, own)
    index.forget(own)
    assert not saved.exists()
    gone = min(before)
    with store.write() as tx:
        memory = memories.by_ids(tx, [own], [gone])[gone]
        memories.deactivate(tx, memory, own, "ended", BY_HAND)
    with store.read() as tx:
        assert index.ids(tx, own) == before - {gone}
