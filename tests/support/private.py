"""The private parts of the library that tests look at: read here and nowhere else."""

from __future__ import annotations

from concurrent.futures import wait
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine

from memchat import MemChat
from memchat.assembly import Assembly
from memchat.chat import Chat
from memchat.chat.conversation import LEASE_SECONDS
from memchat.db import sessions
from memchat.db.database import Database
from memchat.search.vector_index import VectorIndex


def assembly(mc: MemChat) -> Assembly:
    return mc._assembly


def database(mc: MemChat) -> Database:
    """The rows: ``with database(mc).read() as tx``."""
    return assembly(mc).database


def parts(mc: MemChat) -> Any:
    """What a chat works with: recall, the prompt's block, the worker."""
    return assembly(mc).parts()


def meaning(mc: MemChat) -> Any:
    """The embedding service in use with its index, and the reason where there is none."""
    return assembly(mc).embedding_space()


def engine(rows: Database) -> Engine:
    """SQLAlchemy's engine, to listen to."""
    return rows._engine


def wait_for_work_behind(mc: MemChat) -> None:
    """Return once the work that this store began beside has ended."""
    wait(list(mc._background._running))


def shards(index: VectorIndex) -> dict[Any, Any]:
    """The parts of the index that are loaded, by kind and app."""
    return index._shards


def wait_for_reading(chat: Chat) -> None:
    """Return once what was said so far is read, where it is read message by message."""
    chat._reader.join()


def last_reply(chat: Chat) -> Any:
    return chat._reply


def late_queries(chat: Chat) -> list[Any]:
    """The questions whose vectors have not come in time."""
    return chat._conversation.pending_queries


def stop_renewing(chat: Chat) -> None:
    """Let the lease run out, as that of a process that is stuck."""
    chat._lease.stop()


def is_renewing(chat: Chat) -> bool:
    thread = chat._lease.thread
    return thread is not None and thread.is_alive()


def renew(chat: Chat) -> bool:
    """Renew the lease as the keeper's thread does; false where the conversation was ended."""
    return chat._lease.renew()


def lease(chat: Chat, now: datetime) -> tuple[str, datetime]:
    """Who holds the conversation, and until when if the lease is taken at ``now``."""
    return chat._lease.owner, now + timedelta(seconds=LEASE_SECONDS)


def give_to_another_process(chat: Chat, mc: MemChat) -> None:
    """Let the conversation be open in a process of another machine, for a minute."""
    stop_renewing(chat)
    assert chat.session_id is not None
    with database(mc).write() as tx:
        until = lease(chat, mc.now)[1]
        sessions.reopen(tx, chat.session_id, "another-machine:1:0a1b2c3d", until, mc.now)
