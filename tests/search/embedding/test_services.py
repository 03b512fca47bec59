"""Services: their sizes, whose vectors are whose, what is embedded once, the verbs on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from memchat import MemChat
from memchat.cli import main
from memchat.config import Settings, load
from memchat.config.providers import MINILM
from memchat.db import records
from memchat.db.database import Database
from memchat.errors import ConfigError, InputError, NotFound, ServiceError
from memchat.providers import factory
from memchat.providers.embedders import SERVICE, GeminiEmbedder, HashEmbedder, LiteLLMEmbedder
from memchat.search import embed as meaning_module
from memchat.search import embeddings, passages
from memchat.types import Service, Usage
from tests.support import private
from tests.support.store import Opener

OTHER = "hash/other-96"


class Counting(HashEmbedder):
    """Counts the texts it is asked for."""

    def __init__(self, model: str = SERVICE.model) -> None:
        super().__init__(model)
        self.texts: list[str] = []
        self.questions: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
        self.texts += texts
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> tuple[np.ndarray, Usage]:
        self.questions.append(text)
        vectors, usage = HashEmbedder.embed_documents(self, [text])
        return vectors[0], usage


# Sizes


def test_a_chunk_longer_than_the_model_reads_is_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"9000.*8191") as error:
        Service("openai", "text-embedding-3-small", 1536, 8191, chunking_max_tokens=9000)
    assert isinstance(error.value, ConfigError) and "\n" not in str(error.value)
    fits = Service("openai", "text-embedding-3-small", 1536, 8191, chunking_max_tokens=8191)
    assert fits.chunking_max_tokens == 8191


def test_chunks_have_2000_tokens_or_what_the_model_reads() -> None:
    assert Service("openai", "text-embedding-3-small", 1536, 8191).chunking_max_tokens == 2000
    assert Service("minilm", "all-MiniLM-L6-v2", 384, 256).chunking_max_tokens == 256


@pytest.mark.parametrize(("dimensions", "tokens"), [(0, 10), (10, 0), (-1, 10)])
def test_a_service_has_dimensions_and_reads_something(dimensions: int, tokens: int) -> None:
    with pytest.raises(ServiceError, match="above 0"):
        Service("a", "b", dimensions, tokens)


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("openai/text-embedding-3-small", (1536, 8191)),
        ("text-embedding-3-large", (3072, 8191)),
        ("openai/text-embedding-ada-002", (1536, 8191)),
        ("gemini/gemini-embedding-001", (768, 2048)),
        ("gemini/gemini-embedding-2", (768, 8192)),
        ("ollama/nomic-embed-text:latest", (768, 2048)),
        ("minilm", (384, 256)),
    ],
)
def test_the_sizes_of_known_models_are_known(
    tmp_path: Path, model: str, sizes: tuple[int, int]
) -> None:
    settings = load({"MEMCHAT_EMBED_MODEL": model, "MEMCHAT_HOME": str(tmp_path)})
    embedder = factory.embedder(settings)
    assert embedder is not None
    assert (embedder.service.dimensions, embedder.service.max_tokens) == sizes


def test_an_unknown_model_is_asked_for_its_sizes_by_name() -> None:
    named = {"MEMCHAT_EMBED_MODEL": "ollama/house-model"}
    with pytest.raises(ServiceError) as error:
        factory.embedder(load(named))
    assert "ollama/house-model" in str(error.value)
    for variable in ("MEMCHAT_EMBED_DIMENSIONS", "MEMCHAT_EMBED_MAX_TOKENS"):
        assert variable in str(error.value)
    sizes = {"MEMCHAT_EMBED_DIMENSIONS": "200", "MEMCHAT_EMBED_MAX_TOKENS": "1024"}
    embedder = factory.embedder(load(named | sizes))
    assert embedder is not None
    assert (embedder.service.dimensions, embedder.service.max_tokens) == (200, 1024)


def test_dimensions_that_a_known_model_does_not_have_are_refused_with_both_numbers() -> None:
    with pytest.raises(ServiceError, match=r"1536.*512"):
        LiteLLMEmbedder("openai/text-embedding-3-small", timeout=1, dimensions=512)


@pytest.mark.parametrize("model", ["openai/text-embedding-3-small", "gemini/gemini-embedding-2"])
def test_what_makes_a_stored_service_s_vectors_is_found_by_the_service(model: str) -> None:
    settings = Settings(Path("nowhere"), embed_model=MINILM)
    made = factory.embedder(settings.with_(embed_model=model))
    assert made is not None
    again, why_not = factory.embedder_for(settings, made.service)
    assert again is not None and again.service == made.service and why_not is None


def test_a_service_whose_questions_were_made_in_another_way_is_another() -> None:
    now = GeminiEmbedder("gemini/gemini-embedding-2", timeout=1).service
    before = Service(now.provider, now.model, now.dimensions, now.max_tokens, "prefix-0,768")
    embedder, why_not = factory.embedder_for(Settings(Path("nowhere")), before)
    assert embedder is None and now.name in str(why_not)


# Rows


def test_the_same_service_twice_is_one_row_and_each_difference_another(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.write() as tx:
        first = embeddings.register_service(tx, SERVICE)
        assert embeddings.register_service(tx, HashEmbedder().service) == first
        others = [
            Service("hash", "words", 65, 10),
            Service("hash", "words", 64, 10, version="2"),
            Service("hash", "other", 64, 10),
            Service("mock", "words", 64, 10),
        ]
        assert len({first, *(embeddings.register_service(tx, one) for one in others)}) == 5
        assert embeddings.get_service(tx, first) is not None
        assert SERVICE.same_space(embeddings.get_service(tx, first))
    database.close()


def test_the_number_of_a_removed_service_is_given_to_no_other(tmp_path: Path) -> None:
    database = Database(tmp_path)
    seen = set()
    for n in range(3):
        with database.write() as tx:
            seen.add(embeddings.register_service(tx, Service("hash", f"m{n}", 8, 8)))
            embeddings.remove_service(tx, max(seen))
    assert len(seen) == 3
    database.close()


def test_vectors_of_a_service_that_was_removed_meanwhile_are_let_go(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.write() as tx:
        gone = embeddings.register_service(tx, SERVICE)
        embeddings.remove_service(tx, gone)
        embeddings.put(tx, gone, [("h", np.ones(64, np.float32))])
        assert embeddings.get(tx, gone, ["h"]) == {}
    database.close()


def test_what_is_kept_is_float32_little_endian_under_the_sha256_of_the_text(
    open_store: Opener,
) -> None:
    mc = open_store()
    memory = mc.user("ana").memories.add("fact", "river", "Tejo")
    mc.jobs.embed()
    with private.database(mc).read() as tx:
        hashed = passages.hashes(tx, "fact", [memory.id])[memory.id]
        text = passages.text_of(tx, memory.id)
        blob = tx.connection.exec_driver_sql(
            "SELECT embedding FROM embeddings WHERE hash = ?", (hashed,)
        )
        expected, _ = HashEmbedder().embed_documents([text])
        assert blob.scalar_one() == expected[0].astype("<f4").tobytes()
        assert hashed == passages.text_hash(text)


# Once


def test_the_same_words_in_several_places_cost_one_text(open_store: Opener) -> None:
    counting = Counting()
    mc = open_store(embedder=counting)
    for app in ("home", "work", "garden"):
        mc.user("ana", app=app).memories.add("fact", "river", "Tejo")
    mc.jobs.embed()
    assert len(counting.texts) == 1
    mc.user("ana", app="boat").memories.add("fact", "river", "Tejo")
    mc.jobs.embed()
    assert len(counting.texts) == 1
    for app in ("home", "work", "garden", "boat"):
        assert [hit.cosine for hit in mc.user("ana", app=app).search("Tejo").hits] != [None]


def test_a_question_asked_again_costs_no_call(open_store: Opener) -> None:
    counting = Counting()
    mc = open_store(embedder=counting)
    ana = mc.user("ana")
    ana.memories.add("fact", "river", "Tejo")
    for _ in range(3):
        assert ana.search("Tejo").hits
    assert counting.questions == ["Tejo"]


def test_what_was_said_in_a_chat_costs_no_call_in_another_process(open_store: Opener) -> None:
    first = Counting()
    with open_store(embedder=first).user("ana").chat() as chat:
        assert chat.send("Where is the Tejo?").read()
    assert first.questions == ["Where is the Tejo?"]
    second = Counting()
    assert open_store(embedder=second).user("ana").search("Where is the Tejo?").degraded is None
    assert second.questions == []


def test_a_question_that_was_searched_before_is_kept_when_it_is_said(open_store: Opener) -> None:
    mc = open_store(embedder=Counting())
    mc.user("ana").search("Where is the Tejo?")
    with private.database(mc).read() as tx:
        key = embeddings.query_hash("Where is the Tejo?")
        assert embeddings.get(tx, 1, [key]) == {}
    with mc.user("ana").chat() as chat:
        assert chat.send("Where is the Tejo?").read()
    with private.database(mc).read() as tx:
        assert set(embeddings.get(tx, 1, [key])) == {key}


def test_searching_keeps_no_more_than_the_latest_questions_and_none_on_disk(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning_module, "RECENT_QUERIES", 3)
    counting = Counting()
    mc = open_store(embedder=counting)
    for word in ("one", "two", "three", "four", "two", "one"):
        mc.user("ana").search(word)
    assert counting.questions == ["one", "two", "three", "four", "one"]
    with private.database(mc).read() as tx:
        assert not embeddings.exist_for(tx, 1)


def test_a_deleted_conversation_takes_its_questions_vectors_along(open_store: Opener) -> None:
    mc = open_store()
    ana = mc.user("ana")
    with ana.chat() as chat:
        assert chat.send("Where is the Tejo?").read()
        session_id = chat.session_id
    mc.user("ana").sessions.delete(session_id)
    with private.database(mc).read() as tx:
        assert not embeddings.exist_for(tx, 1)


# Spaces never mix


def test_only_the_vectors_of_the_service_in_use_are_searched(open_store: Opener) -> None:
    mc = open_store()
    ana = mc.user("ana")
    kept = ana.memories.add("fact", "river", "Tejo in flood")
    mc.jobs.embed()
    mc.services.migrate(OTHER)
    both = {info.name: info.vectors for info in mc.services.list()}
    assert both == {"hash/words": 1, OTHER: 1}
    for model in (OTHER, "hash/words"):
        mc.services.use(model)
        asked, _ = HashEmbedder(model.removeprefix("hash/")).embed_query("Tejo flood")
        with private.database(mc).read() as tx:
            row = embeddings.get(
                tx, embeddings.in_use(tx) or 0, [*passages.hashes(tx, "fact", [kept.id]).values()]
            )
        (hit,) = ana.search("Tejo flood").hits
        (vector,) = row.values()
        assert hit.cosine == pytest.approx(float(vector @ asked), abs=1e-6)


# The verbs


@pytest.fixture
def cli_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMCHAT_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("MEMCHAT_USER", "ana")
    monkeypatch.delenv("MEMCHAT_EMBED_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    with MemChat(settings=Settings(tmp_path / "store"), embedder=HashEmbedder()) as mc:
        for river in ("Tejo", "Douro", "Mondego"):
            mc.user("ana").memories.add("fact", "river", river)
        mc.jobs.embed()
    return tmp_path / "store"


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str, int]]:
    """What ``services list`` says: name → state and vectors."""
    capsys.readouterr()
    assert main(["services", "list", "--json"]) == 0
    return {s["name"]: (s["state"], s["vectors"]) for s in json.loads(capsys.readouterr().out)}


def test_a_person_changes_the_model_and_clears_up(
    cli_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["services", "migrate", OTHER]) == 0
    said = capsys.readouterr()
    assert "3 texts embedded" in said.out and f"{OTHER} is in use" in said.out
    assert "memchat services rm hash/words" in said.out
    assert "3 of 3 (100 %)" in said.err
    assert listed(capsys) == {"hash/words": ("kept", 3), OTHER: ("in use", 3)}
    assert main(["recall", "Douro"]) == 0
    assert "Douro" in capsys.readouterr().out
    assert main(["services", "rm", "hash/words"]) == 0
    assert "with 3 vectors" in capsys.readouterr().out
    assert listed(capsys) == {OTHER: ("in use", 3)}


def test_the_service_in_use_is_removed_with_force_only(
    cli_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["services", "rm", "hash"]) == 1
    said = capsys.readouterr().err
    assert "in use" in said and "force it" in said and "memchat services migrate" in said
    assert main(["services", "rm", "hash", "--force"]) == 0
    assert listed(capsys) == {}
    with Database(cli_home).read() as tx:
        assert embeddings.in_use(tx) is None
        assert tx.connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
        assert tx.connection.exec_driver_sql("SELECT count(*) FROM memories").scalar_one() == 3


def test_a_service_that_lacks_vectors_is_used_with_force_only_and_the_queue_makes_them(
    cli_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["services", "migrate", OTHER]) == 0
    assert main(["memories", "add", "fact", "river", "Guadiana"]) == 0
    capsys.readouterr()
    assert main(["services", "use", "hash/words"]) == 1
    said = capsys.readouterr().err
    assert "1 of 4 texts" in said and "memchat services migrate hash/words" in said
    assert listed(capsys)[OTHER] == ("in use", 4)
    assert main(["services", "use", "hash/words", "--force"]) == 0
    assert "1 text without" in capsys.readouterr().out
    assert main(["jobs", "run"]) == 0
    assert listed(capsys)["hash/words"] == ("in use", 4)


@pytest.mark.parametrize("verb", ["use", "rm"])
def test_an_unknown_service_is_told_where_to_look(
    cli_home: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    assert main(["services", verb, "nobody/knows"]) == 1
    said = capsys.readouterr().err
    assert "nobody/knows" in said and "memchat services list" in said


def test_a_setting_that_names_another_model_is_told(
    cli_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "hash")
    assert main(["services", "migrate", OTHER]) == 0
    assert "MEMCHAT_EMBED_MODEL still names hash/words" in capsys.readouterr().err
    assert main(["recall", "Douro"]) == 1
    said = capsys.readouterr().err
    assert "memchat services migrate hash/words" in said and "unset MEMCHAT_EMBED_MODEL" in said
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", OTHER)
    assert main(["recall", "Douro"]) == 0


def test_two_services_of_one_name_are_told_apart_by_number(open_store: Opener) -> None:
    mc = open_store()
    mc.user("ana").memories.add("fact", "river", "Tejo")
    mc.jobs.embed()
    with private.database(mc).write() as tx:
        newer = Service("hash", "words", 64, 10, version="2")
        second = embeddings.register_service(tx, newer)
    with pytest.raises(InputError, match=f"1 or {second}"):
        mc.services.remove("hash/words")
    mc.services.remove(str(second))
    assert [info.id for info in mc.services.list()] == [1]
    with pytest.raises(NotFound):
        mc.services.remove(str(second))


def test_a_store_says_which_service_and_dimension_it_has(open_store: Opener) -> None:
    mc = open_store()
    mc.user("ana").memories.add("fact", "river", "Tejo")
    mc.jobs.embed()
    mc.services.migrate(OTHER)
    with private.database(mc).read() as tx:
        assert records.get(tx, "embed_dim") == "96"
