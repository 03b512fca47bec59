"""A short message is searched together with the one before it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memchat.search.embed import QUESTION_LIMIT, shortened
from memchat.search.embeddings import query_hash
from memchat.search.search import searched
from memchat.types import Message, Role
from tests.support import private
from tests.support.answers import answer

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def turns(*said: tuple[Role, str]) -> list[Message]:
    return [Message(n, 1, role, content, NOW) for n, (role, content) in enumerate(said, 1)]


BEFORE = turns(("user", "Which kayak suits me?"), ("assistant", "A red one."))


@pytest.mark.parametrize("said", ["why?", "and for Friday?", "Porto?", "为什么？"])
def test_a_message_of_a_word_or_two_is_searched_with_the_user_s_message_before_it(said) -> None:
    assert searched(said, BEFORE) == f"Which kayak suits me?\n{said}"
    assert searched(said, [*BEFORE, *turns(("user", said))]) == f"Which kayak suits me?\n{said}"


@pytest.mark.parametrize(
    "said", ["Which city do I live in?", "red kayak paddles", "Where is it now?"]
)
def test_a_message_that_says_enough_is_searched_alone(said) -> None:
    assert searched(said, BEFORE) == said


def test_a_first_message_is_searched_alone() -> None:
    assert searched("why?", []) == "why?"
    assert searched("why?", turns(("user", "why?"))) == "why?"


def test_the_same_message_again_is_searched_behind_the_one_before_both() -> None:
    assert (
        searched("why?", turns(("user", "why?"), ("assistant", "So."), ("user", "why?"))) == "why?"
    )
    again = [*BEFORE, *turns(("user", "why?"), ("assistant", "So."), ("user", "why?"))]
    assert searched("why?", again) == "Which kayak suits me?\nwhy?"


def test_a_long_message_before_leaves_the_short_one_whole() -> None:
    long = turns(("user", "kayak " * QUESTION_LIMIT), ("assistant", "Yes."))
    found = searched("and for Friday?", long)
    assert len(found) <= QUESTION_LIMIT and found.endswith("\nand for Friday?")
    assert shortened(found) == found


def test_a_chat_finds_for_a_short_message_what_the_one_before_it_speaks_of(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    kayak = ana.memories.add("fact", "kayak", "a red kayak")
    mc.jobs.embed()
    extract_model.replies.append(answer())
    with ana.chat() as chat:
        _ = chat.send("Which kayak suits me?").read()
        reply = chat.send("And why?")
        _ = reply.read()
    assert kayak.id in {hit.id for hit in reply.shown.hits}
    with private.database(mc).read() as tx:
        hashes = set(tx.connection.exec_driver_sql("SELECT hash FROM embeddings").scalars())
    assert query_hash("Which kayak suits me?") in hashes
    assert query_hash("Which kayak suits me?\nAnd why?") not in hashes, "with what would it go?"
