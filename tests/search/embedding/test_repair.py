"""Index and keyword rows are derived: lost, spoilt or foreign, they come back as they were."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import faiss
import numpy as np
import pytest

from memchat import MemChat
from memchat.cli import main
from memchat.config import Settings
from memchat.db.database import FILE
from memchat.providers.embedders import HashEmbedder
from memchat.search import embeddings
from memchat.search import vector_index as index_module
from memchat.search.embeddings import FOLDER
from memchat.search.keywords import KINDS
from memchat.search.vector_index import Shard
from memchat.types import Usage
from tests.support import private, transfer
from tests.support.answers import answer, fact
from tests.support.store import Opener

RIVERS = ("Tejo", "Douro", "Mondego", "Minho")


class Silent(HashEmbedder):
    """Makes vectors of questions and must never be asked for another."""

    def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
        raise AssertionError("the rows hold the vectors")

    def embed_query(self, text: str) -> tuple[np.ndarray, Usage]:
        return HashEmbedder().embed_query(text)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with facts, a conversation and its summary, closed, its index saved."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "SAVE_FROM", 1)
        with transfer.store(tmp_path_factory.mktemp("made")) as (mc, _, extract_model):
            ana = mc.user("ana")
            for river in RIVERS:
                ana.memories.add("fact", "river", f"{river} in flood")
            mc.jobs.embed()
            lisbon = fact("I live in Lisbon", "city", "Lisbon")
            extract_model.replies.append(
                answer(lisbon, title="Home", summary="Lisbon and its boiler.")
            )
            with ana.chat() as chat:
                assert chat.send("I live in Lisbon. The boiler hums at night.").read()
            mc.jobs.run(user="ana")
            everything(mc)
    assert len(list((mc.settings.home / FOLDER).iterdir())) == 3
    return mc.settings.home


@pytest.fixture
def home(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it."""
    monkeypatch.setattr(index_module, "SAVE_FROM", 1)
    return shutil.copytree(made, tmp_path / "store")


def everything(mc: MemChat) -> list[tuple[str, int, float, float | None, float | None]]:
    """What is found, with all its scores."""
    return [
        (hit.kind, hit.id, hit.score, hit.cosine, hit.prior)
        for question in (*RIVERS, "Lisbon", "boiler hums", "flood")
        for hit in mc.user("ana").search(question).hits
    ]


@pytest.fixture
def right(home: Path, open_store: Opener) -> list[object]:
    """What is found in the store as it is."""
    with open_store(embedder=Silent()) as mc:
        return list(everything(mc))


def files(home: Path) -> list[Path]:
    return sorted((home / FOLDER).iterdir())


def of_another(home: Path, tmp_path: Path) -> Path:
    """The saved index of a store that was begun elsewhere, of the same size."""
    with MemChat(settings=Settings(tmp_path / "elsewhere"), embedder=HashEmbedder()) as mc:
        ana = mc.user("ana")
        for thing in ("spoon", "fork", "knife", "plate", "cup"):
            ana.memories.add("fact", "thing", thing)
        mc.jobs.embed()
        ana.search("spoon")
    return tmp_path / "elsewhere" / FOLDER


def spoil(how: str, home: Path, tmp_path: Path) -> None:
    folder = home / FOLDER
    if how == "the folder is gone":
        shutil.rmtree(folder)
    elif how == "the folder is a file":
        shutil.rmtree(folder)
        folder.write_text("here was an index")
    elif how == "the folder is of another machine":
        other = of_another(home, tmp_path)
        shutil.rmtree(folder)
        shutil.copytree(other, folder)
    for file in files(home) if folder.is_dir() else ():
        whole = file.read_bytes()
        if how == "each file is cut":
            file.write_bytes(whole[: len(whole) // 2])
        elif how == "each file is empty":
            file.write_bytes(b"")
        elif how == "each file is a folder":
            file.unlink()
            file.mkdir()
        elif how == "each file is newer than the rows":
            shard = Shard.load(file, 64)
            shard.seq += 1000
            shard.save(file, shard.mark)
        elif how == "each file is of another past":
            shard = Shard.load(file, 64)
            shard.save(file, "another@2020")


HOW = [
    "nothing",
    "the folder is gone",
    "the folder is a file",
    "the folder is of another machine",
    "each file is cut",
    "each file is empty",
    "each file is a folder",
    "each file is newer than the rows",
    "each file is of another past",
]


@pytest.mark.parametrize("how", HOW)
def test_whatever_became_of_the_folder_the_same_is_found_and_no_service_asked(
    home: Path, right: list[object], open_store: Opener, tmp_path: Path, how: str
) -> None:
    spoil(how, home, tmp_path)
    with open_store(embedder=Silent()) as mc:
        assert everything(mc) == right
    with open_store(embedder=Silent()) as mc:  # what was saved, or could not be, at closing
        assert everything(mc) == right


def test_an_index_older_than_the_rows_reads_on(
    home: Path, right: list[object], open_store: Opener, tmp_path: Path
) -> None:
    shutil.copytree(home / FOLDER, tmp_path / "older")
    with open_store() as mc:
        added = mc.user("ana").memories.add("fact", "river", "Guadiana in flood").id
        mc.jobs.embed()
        mc.user("ana").memories.delete(1)
        expected = everything(mc)
    shutil.rmtree(home / FOLDER)
    shutil.copytree(tmp_path / "older", home / FOLDER)
    with open_store(embedder=Silent()) as mc:
        assert everything(mc) == expected
        ids = {hit.id for hit in mc.user("ana").search("flood").hits}
        assert added in ids and 1 not in ids


def test_the_index_of_a_service_that_is_used_no_more_is_not_read(
    home: Path, open_store: Opener
) -> None:
    with open_store() as mc:
        mc.services.migrate("hash/other-64")
        changed = everything(mc)
    with open_store(embedder=HashEmbedder("other-64")) as mc:
        assert everything(mc) == changed


def test_an_index_that_cannot_be_saved_does_not_keep_a_store_from_closing(
    home: Path, right: list[object], open_store: Opener
) -> None:
    shutil.rmtree(home / FOLDER)
    (home / FOLDER).write_text("in the way")
    mc = open_store(embedder=Silent())
    assert everything(mc) == right
    mc.close()
    assert (home / FOLDER).read_text() == "in the way"


def test_what_a_killed_save_left_goes_with_what_is_forgotten(
    home: Path, open_store: Opener
) -> None:
    parts = [file.with_name(f"{file.name}.4711.tmp") for file in files(home)]
    for part in parts:
        part.write_bytes(b"vectors of Tejo")
    with open_store() as mc:
        mc.user("ana").memories.delete(1)
    assert not any(part.exists() for part in parts)


# doctor --repair


def repaired(home: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What ``doctor --repair`` says it did."""
    capsys.readouterr()
    main(["doctor", "--repair", "--json"])
    found: list[str] = json.loads(capsys.readouterr().out)["repaired"]
    return found


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCHAT_HOME", str(tmp_path / "store"))
    monkeypatch.delenv("MEMCHAT_EMBED_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)


def change(home: Path, *statements: str) -> None:
    with closing(sqlite3.connect(home / FILE)) as raw, raw:
        for statement in statements:
            raw.execute(statement)
    raw.close()


def test_a_sound_store_needs_no_repair(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert repaired(home, capsys) == []
    assert main(["doctor", "--repair"]) == 0
    assert "nothing was out of step" in capsys.readouterr().out


@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM passages_fts WHERE rowid & 3 = {kind}",
        "INSERT INTO passages_fts (rowid, text) VALUES (3996 + {kind}, '2qof 2qnobody')",
        "UPDATE passages_fts SET text = '1qother 1qwords' WHERE rowid & 3 = {kind}",
        "UPDATE passages_fts SET text = '9' || text WHERE rowid & 3 = {kind}",
    ],
    ids=["lost", "too many", "other words", "another scope"],
)
def test_keyword_rows_out_of_step_are_written_anew(
    home: Path,
    right: list[object],
    open_store: Opener,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    statement: str,
) -> None:
    change(home, statement.format(kind=KINDS.index(kind)))
    (line,) = repaired(home, capsys)
    assert "keyword row" in line
    assert repaired(home, capsys) == []
    with open_store(embedder=Silent()) as mc:
        assert everything(mc) == right


def test_doctor_names_keyword_rows_that_are_lost_and_what_mends_them(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(home, "DELETE FROM passages_fts WHERE rowid & 3 = 1")
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "0 keyword rows for 2 messages" in said and "memchat doctor --repair" in said
    assert main(["doctor", "--repair"]) == 0
    assert "repaired wrote 2 keyword rows anew" in capsys.readouterr().out


def test_vectors_of_words_that_are_gone_are_deleted_and_no_others(
    home: Path, right: list[object], open_store: Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(home / FILE)) as raw, raw:
        (before,) = raw.execute("SELECT count(*) FROM embeddings").fetchone()
        vector = np.ones(64, "<f4").tobytes()
        columns = "INSERT INTO embeddings (hash, service_id, embedding)"
        raw.execute(f"{columns} VALUES ('x', 1, ?)", (vector,))
    raw.close()
    assert repaired(home, capsys) == ["deleted 1 vector of words that are gone"]
    with closing(sqlite3.connect(home / FILE)) as raw, raw:
        assert raw.execute("SELECT count(*) FROM embeddings").fetchone() == (before,)
    with open_store(embedder=Silent()) as mc:
        assert everything(mc) == right


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM embeddings", "UPDATE embeddings SET embedding = substr(embedding, 1, 40)"],
    ids=["lost", "cut"],
)
def test_facts_turns_and_summaries_without_a_vector_are_queued_and_made(
    home: Path, right: list[object], open_store: Opener, statement: str
) -> None:
    change(home, statement)
    with open_store() as mc:
        assert "queued 8 texts without a vector; memchat jobs run makes them" in mc.repair()
        mc.jobs.run(user="ana")
        assert everything(mc) == right
        assert mc.repair() == []


def test_a_saved_index_that_holds_other_vectors_is_dropped(
    home: Path, right: list[object], open_store: Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sound to look at, and wrong: no damage of a file makes this, only a fault of a program."""
    for file in files(home):
        shard = Shard.load(file, 64)
        ids = sorted(shard.ids)
        other = np.random.default_rng(1).normal(size=(len(ids), 64)).astype(np.float32)
        faiss.normalize_L2(other)
        shard.replace(ids, ids, other)
        shard.save(file, shard.mark)
    assert repaired(home, capsys) == ["dropped the index of 1 scope; the rows make it anew"]
    with open_store(embedder=Silent()) as mc:
        assert everything(mc) == right


def test_files_in_the_folder_that_are_nobody_s_are_removed(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ours = files(home)
    for file in of_another(home, tmp_path).iterdir():
        shutil.copy(file, home / FOLDER)
    (home / FOLDER / "left.tmp").write_bytes(b"part")
    assert repaired(home, capsys) == ["removed 2 stray files of the index"]
    assert files(home) == ours


def test_a_change_that_was_begun_is_told_by_doctor(home: Path, open_store: Opener) -> None:
    mc = open_store()
    with private.database(mc).write() as tx:
        coming = embeddings.register_service(tx, HashEmbedder("other-96").service)
        embeddings.set_coming(tx, coming)
    (check,) = [one for one in mc.doctor() if one.name == "service"]
    assert check.state == "note" and "8 texts" in check.detail
    assert "memchat services migrate hash/other-96" in check.remedy
