"""What must follow a commit is done at the next opening where a process was killed before it."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from memchat.errors import NotFound
from memchat.search import embeddings, keywords, vector_index
from memchat.search.embeddings import FOLDER
from tests.support import private
from tests.support.kills import Victim, child_store, wait_for_the_kill
from tests.support.leftovers import files_with, rows_with
from tests.support.store import Opener


def forgets(home: Path, reached: Connection, where: object, name: str) -> None:
    """Deletes what it has in mind, and gets as far as this function."""
    vector_index.SAVE_FROM = 1
    with child_store(home) as mc:
        mc.user("ana").memories.add("profile", "city", "Zanzibar")
        mc.jobs.embed()
        assert mc.user("ana").search("Zanzibar").hits
    assert [*(home / FOLDER).iterdir()] != []  # saved as it was closed
    mc = child_store(home)
    (memory,) = mc.user("ana").memories.list()
    setattr(where, name, lambda *_: wait_for_the_kill(reached, memory.id))
    mc.user("ana").memories.delete(memory.id)


def is_killed_before_the_files_of_the_index_go(home: Path, reached: Connection) -> None:
    forgets(home, reached, embeddings, "delete_files")


def is_killed_before_the_words_leave_the_bytes(home: Path, reached: Connection) -> None:
    forgets(home, reached, keywords, "scrub")


@pytest.mark.parametrize(
    "killed",
    [is_killed_before_the_files_of_the_index_go, is_killed_before_the_words_leave_the_bytes],
)
def test_what_was_forgotten_is_in_no_byte_after_the_next_opening(
    open_store: Opener, tmp_path: Path, killed
) -> None:
    home = tmp_path / "store"
    victim = Victim(killed, home)
    victim.kill()
    left = [path for path in home.rglob("*") if b"zanzibar" in path_bytes(path)]
    assert left != []  # the commit is older than the kill, and the bytes are not gone yet
    mc = open_store()  # nothing is run
    assert files_with(mc, "Zanzibar") == [] and rows_with(mc, "Zanzibar") == []
    assert [*(home / FOLDER).iterdir()] == []
    with private.database(mc).read() as tx:
        assert tx.driver.execute("SELECT * FROM scrubs").fetchall() == []
    with pytest.raises(NotFound):
        mc.user("ana").memories.get(victim.said)


def path_bytes(path: Path) -> bytes:
    return path.read_bytes().lower() if path.is_file() else b""
