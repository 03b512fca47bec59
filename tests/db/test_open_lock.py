"""A lease whose holder was in a container that is gone ends when nobody else has the store open."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sqlalchemy import update

from memchat import MemChat
from memchat.db import schema, sessions
from memchat.db.database import Database, OpenLock
from memchat.processes import has_ended
from memchat.testing import ScriptedModel
from tests.support.answers import answer, fact
from tests.support.kills import Victim, child_store, wait_for_the_kill
from tests.support.store import Opener

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containers are told on Linux only")


def stays_in_a_session(home: Path, reached: Connection) -> None:
    chat = child_store(home).user("ana").chat()
    assert chat.send("My city is Lisbon.").read()
    wait_for_the_kill(reached, chat.session_id)


def in_another_container(home: Path, session_id: int) -> str:
    """Give the holder of the session the name that it would have in another container."""
    store = Database(home)
    with store.write() as tx:
        owner, _ = sessions.lease(tx, session_id)
        assert owner is not None
        name = f"container:{owner.partition(':')[2].rpartition('-')[0]}-1"
        tx.execute(update(schema.sessions).values(lease_owner=name))
    store.close()
    return name


def test_the_session_of_a_killed_container_is_ended_and_read_at_the_next_start(
    tmp_path: Path, open_store: Opener, extract_model: ScriptedModel
) -> None:
    home = tmp_path / "store"
    victim = Victim(stays_in_a_session, home)
    holder = in_another_container(home, victim.said)
    Database(home).close()
    assert not has_ended(holder), "its process has the store open"
    victim.kill()
    extract_model.replies.append(answer(fact("My city is Lisbon", "city", "Lisbon")))
    mc: MemChat = open_store()
    assert has_ended(holder)
    assert [learned.session_id for learned in mc.jobs.run().learned] == [victim.said]
    assert [memory.value for memory in mc.user("ana").memories.list()] == ["Lisbon"]


def test_only_the_first_opening_is_alone_and_the_next_is_once_all_are_closed(
    tmp_path: Path,
) -> None:
    first = OpenLock(tmp_path)
    assert first.alone
    first.share()
    second = OpenLock(tmp_path)
    assert not second.alone
    second.share()
    first.release()
    third = OpenLock(tmp_path)
    assert not third.alone
    third.release()
    second.release()
    last = OpenLock(tmp_path)
    assert last.alone
    last.release()


def test_a_folder_that_cannot_be_locked_is_opened_all_the_same(tmp_path: Path) -> None:
    lock = OpenLock(tmp_path / "not there")
    lock.share()
    lock.release()
    assert not lock.alone
