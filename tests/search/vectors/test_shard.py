"""One shard: exact search, the quickened form, snapshots."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memchat.db import apps
from memchat.db.database import Database
from memchat.facts import changes, memories
from memchat.search import vector_index as index_module
from memchat.search.embeddings import Selection
from memchat.search.vector_index import Shard
from tests.support import private
from tests.support.vectors import ANA, BY_HAND, DIMENSIONS, app_id, by_hand, keep, opened, vector

# Sixteen times ±1/4: unit vectors whose products are exact in float32, with many ties.
EXACT = st.lists(st.sampled_from([-0.25, 0.25]), min_size=DIMENSIONS, max_size=DIMENSIONS)
FEW = st.sampled_from([[0.25] * 16, [-0.25] * 16, [0.25, -0.25] * 8, [0.25] * 8 + [-0.25] * 8])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(EXACT | FEW, max_size=40),
    EXACT | FEW,
    st.integers(0, 45),
    st.sets(st.integers(1, 40), max_size=5),
    st.none() | st.sets(st.integers(1, 45), max_size=30),
    st.randoms(use_true_random=False),
)
def test_a_search_is_brute_force_to_the_last_tie(rows, asked, limit, without, only, random) -> None:
    vectors = np.array(rows, np.float32).reshape(len(rows), DIMENSIONS)
    query = np.array(asked, np.float32)
    ids = list(range(1, len(rows) + 1))
    random.shuffle(ids)
    shard = Shard(DIMENSIONS)
    shard.replace([], ids, vectors)
    found = shard.search(query, limit, Selection(only, without))
    left_out = without if only is None else {i for i in ids if i in without or i not in only}
    assert found == by_hand(ids, vectors, query, limit, left_out)
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
        for some in (Selection(without=kept[:3]), Selection(range(0, 2 * count, 2), kept[:3])):
            assert quick.search(query, limit, some) == plain.search(query, limit, some)


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
    monkeypatch.setattr(index_module, "QUICK_NUMBERS", 30 * DIMENSIONS)
    keep(store, ANA, *[f"value {n}" for n in range(20)])
    index = opened(store)
    with store.read() as tx:
        own = apps.find(tx, ANA).ids
        index.search(tx, own, vector("value 3"), 5)
        assert not private.shards(index)["fact", own[0]].quick
    keep(store, ANA, *[f"more {n}" for n in range(20)])
    with store.read() as tx:
        assert index.search(tx, own, vector("more 7"), 1)[0][1] == pytest.approx(1)
        assert private.shards(index)["fact", own[0]].quick


def test_an_older_snapshot_takes_nothing_from_those_who_are_further(store: Database) -> None:
    keep(store, ANA, "tea", "coffee")
    index = opened(store)
    with store.read() as old:
        own = apps.find(old, ANA).ids
        before = index.search(old, own, vector("tea"), 5)
        keep(store, ANA, "cocoa")
        with store.read() as new:
            assert len(index.search(new, own, vector("tea"), 5)) == 3
        further = private.shards(index)["fact", own[0]]
        assert index.search(old, own, vector("tea"), 5) == before
        assert private.shards(index)["fact", own[0]] is further


def test_faiss_uses_no_further_threads_whichever_thread_searches() -> None:
    shard = Shard(DIMENSIONS)
    shard.replace([], [1], vector("tea").reshape(1, -1))

    def search() -> int:
        assert faiss.omp_get_max_threads() > 1, "a new thread begins with all cores"
        shard.search(vector("tea"), 1)
        return faiss.omp_get_max_threads()

    if (os.cpu_count() or 1) == 1:
        pytest.skip("this machine has one core")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(search).result() == 1


def test_replacing_takes_out_changes_and_adds() -> None:
    rows = np.eye(4, DIMENSIONS, dtype=np.float32)
    shard = Shard(DIMENSIONS)
    shard.replace([], [1, 2, 3], rows[:3])
    shard.replace([1, 2, 9], [2], rows[3:])
    assert shard.ids == {2, 3}
    assert shard.search(rows[3], 1) == [(2, 1.0)] and shard.scores(rows[1], [2]) == {2: 0.0}


@pytest.mark.parametrize(
    ("how", "least"), [("COARSE_FROM", 300), ("QUICK_NUMBERS", 300 * DIMENSIONS)]
)
def test_a_coarse_look_gives_the_list_of_exact_arithmetic(
    store: Database, monkeypatch, how: str, least: int
) -> None:
    monkeypatch.setattr(index_module, how, least)
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
    index.forget([own])
    assert not saved.exists()
    gone = min(before)
    with store.write() as tx:
        memory = memories.by_ids(tx, [own], [gone])[gone]
        changes.deactivate(tx, memory, "ended", BY_HAND)
    with store.read() as tx:
        assert index.ids(tx, own) == before - {gone}
