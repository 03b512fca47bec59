"""What doctor says of the version, the embedding model in use, and the index."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import delete

from memchat import MemChat
from memchat.cli import output
from memchat.config import Settings
from memchat.config.providers import MINILM
from memchat.db import records, schema
from memchat.doctor import LARGEST, Check
from memchat.search import embeddings, passages
from memchat.types import Service, UsageTotal
from tests.support import private
from tests.support.store import Opener

OPENAI = Service("openai", "text-embedding-3-small", 1536, 8191)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


def check(mc: MemChat, name: str) -> Check:
    """The one finding of this name."""
    (found,) = [one for one in mc.doctor() if one.name == name]
    return found


def opened(home: Path, embed_model: str, why: str) -> MemChat:
    """A store whose embedding model was chosen for this reason."""
    return MemChat(settings=Settings(home, embed_model=embed_model, why={"embed_model": why}))


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A store that holds one vector of a service that needs a key."""
    home = tmp_path / "store"
    with MemChat(home) as mc:
        memory = mc.user("ana").memories.add("profile", "city", "Lisbon")
        with private.database(mc).write() as tx:
            service_id = embeddings.register_service(tx, OPENAI)
            records.put(tx, "service_id", str(service_id))
            vector = np.full(OPENAI.dimensions, OPENAI.dimensions**-0.5, np.float32)
            (key,) = passages.hashes(tx, "fact", [memory.id]).values()
            embeddings.put(tx, service_id, [(key, vector)])
    return home


def test_the_version_comes_first(mc: MemChat) -> None:
    assert mc.doctor()[0] == Check("version", "ok", f"memchat {version('memchat')}")


def test_a_store_that_stays_with_its_service_says_which_and_why(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with opened(filled, MINILM, "no provider key is set") as mc:
        found = check(mc, "embed model")
        assert found.state == "ok"
        assert found.detail.startswith(f"{OPENAI.name} (this store has vectors of {OPENAI.name}")
        assert check(mc, "vectors").detail == f"1 of 1 memories, {OPENAI.name}"


def test_the_key_that_a_kept_service_lacks_is_named_and_no_other_service(filled: Path) -> None:
    with opened(filled, MINILM, "no provider key is set") as mc:
        found = check(mc, "embed model")
    assert (found.state, "OPENAI_API_KEY is not set" in found.detail) == ("problem", True)
    assert "run memchat keys set openai, or" in found.remedy and "minilm" not in found.remedy


def test_another_service_by_name_for_a_filled_store_is_a_problem_with_its_way_out(
    filled: Path,
) -> None:
    with opened(filled, "hash", "MEMCHAT_EMBED_MODEL") as mc:
        found = check(mc, "embed model")
    assert found.state == "problem"
    assert "unset MEMCHAT_EMBED_MODEL" in found.remedy and OPENAI.name in found.remedy


@pytest.mark.parametrize("model", ["nonsense", "nobody/knows-this"])
def test_an_embedding_model_that_cannot_be_used_is_one_problem_with_a_remedy(
    tmp_path: Path, model: str
) -> None:
    with opened(tmp_path, model, "MEMCHAT_EMBED_MODEL") as mc:
        problems = [one for one in mc.doctor() if one.state == "problem"]
    assert [one.name for one in problems] == ["embed model"]
    assert model in problems[0].detail and "MEMCHAT_EMBED_MODEL" in problems[0].remedy


def test_the_index_is_compared_in_the_largest_scopes_only_and_that_is_said(
    open_store: Opener,
) -> None:
    with open_store() as first:
        for number in range(LARGEST + 1):
            first.user("ana", app=f"app {number}").memories.add("fact", "place", "Lisbon")
        first.user("ana", app=f"app {LARGEST}").memories.add("fact", "river", "Tejo")
        first.jobs.embed()
    mc = open_store()
    found = check(mc, "vectors")
    assert found.state == "ok"
    assert f"compared in the {LARGEST} largest of {LARGEST + 1} scopes" in found.detail
    sense, _ = private.meaning(mc)
    assert sense is not None and len(private.shards(sense.index)) == LARGEST


def test_an_index_that_differs_from_the_rows_is_a_problem(mc: MemChat) -> None:
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    assert check(mc, "vectors").state == "ok"
    with private.database(mc).write() as tx:
        tx.execute(delete(schema.embeddings))
    found = check(mc, "vectors")
    assert (found.state, "doctor --repair" in found.remedy) == ("problem", True)


def test_a_cost_that_nobody_knows_is_unknown_and_a_small_one_is_not_nothing() -> None:
    told = {
        cost: output.used(UsageTotal("chat", "some/model", 2, 10, 3, cost, 1.25)).partition(": ")[2]
        for cost in (None, 0.00042)
    }
    assert told[None] == "2 calls, 10 tokens in, 3 out, 1.2 s, cost unknown"
    assert told[0.00042].endswith("cost $0.00042")


def test_damaged_weights_are_found_however_often_they_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memchat.providers import local

    if not local.available():
        pytest.skip("the MiniLM weights are not installed")
    with MemChat(settings=Settings(home=tmp_path)) as mc:
        assert not [c for c in mc.doctor() if c.name == "weights"]
        monkeypatch.setitem(local.DIGESTS, local.WEIGHTS, "0" * 64)
        (check,) = [c for c in mc.doctor() if c.name == "weights"]
    assert check.state == "problem" and check.remedy
