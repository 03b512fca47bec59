"""``memories.draft``: what would be remembered of a statement, without anything being stored."""

from __future__ import annotations

from datetime import date

import pytest

from memchat import InputError, MemChat, ProviderError, SecretError
from memchat.db import Tx
from memchat.testing import Broken
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.store import NOON, Opener

PEANUTS = fact("I'm allergic to peanuts", "allergy", "peanuts", many=True, sentence="")


def dump(mc: MemChat) -> list[str]:
    with private.database(mc).read() as tx:
        return rows(tx)


def rows(tx: Tx) -> list[str]:
    return list(tx.driver.iterdump())


def test_the_model_that_reads_fills_in_a_draft_and_nothing_is_stored(mc, extract_model) -> None:
    told = "You are allergic to peanuts."
    extract_model.replies.append(answer(PEANUTS | {"sentence": told}))
    before = dump(mc)
    draft = mc.user("ana").memories.draft("I'm allergic to peanuts")
    assert (draft.memory_type, draft.key, draft.value) == ("profile", "allergy", "peanuts")
    assert draft.told == told and draft.read
    assert dump(mc) == before


def test_a_draft_that_is_added_is_the_memory_it_showed(mc, extract_model) -> None:
    until = {"until_said": "until 12 June", "until": "06-12"}
    desk = fact("My desk is in room 7 until 12 June", "desk_room", "room 7", **until)
    extract_model.replies.append(answer(desk | {"sentence": "Your desk is in room 7."}))
    ana = mc.user("ana")
    draft = ana.memories.draft("My desk is in room 7 until 12 June")
    assert draft.expires_at == date(NOON.year, 6, 12)
    days = {"expires_at": draft.expires_at, "starts_at": draft.starts_at}
    what = (draft.memory_type, draft.key, draft.value)
    memory = ana.memories.add(*what, **days, sentence=draft.sentence)
    assert (memory.told, memory.expires_at) == ("Your desk is in room 7.", draft.expires_at)


def test_a_draft_without_a_true_sentence_is_told_by_a_template(mc, extract_model) -> None:
    extract_model.replies.append(answer(PEANUTS | {"sentence": "You are allergic to 2 cats."}))
    assert mc.user("ana").memories.draft("I'm allergic to peanuts").told == (
        "You are allergic to peanuts."
    )


@pytest.mark.parametrize("reply", [Broken("", error=ProviderError("down")), answer(), "no JSON"])
def test_where_the_model_fails_or_finds_nothing_patterns_read_it(mc, extract_model, reply) -> None:
    extract_model.replies.extend([reply] * 2)
    draft = mc.user("ana").memories.draft("I live in Lisbon")
    assert (draft.key, draft.value, draft.told) == ("city", "Lisbon", "You live in Lisbon.")


def test_without_a_model_patterns_read_it(open_store: Opener) -> None:
    mc = open_store(extract_model=None)
    assert mc.user("ana").memories.draft("I'm allergic to peanuts.").key == "allergy"


def test_what_nothing_reads_is_drafted_as_it_was_said(mc, extract_model) -> None:
    extract_model.replies.append(answer())
    draft = mc.user("ana").memories.draft(" The bins go out at noon ")
    assert (draft.memory_type, draft.key, draft.value) == (
        "other",
        "note",
        "The bins go out at noon",
    )
    assert not draft.read and draft.told == "Note: The bins go out at noon"


def test_a_blank_and_a_long_unread_statement_are_refused(mc, extract_model) -> None:
    ana = mc.user("ana").memories
    for words in ("", " \n", "so " * 200):
        extract_model.replies.append(answer())
        with pytest.raises(InputError):
            ana.draft(words)


def test_a_secret_is_sent_to_no_model(mc, extract_model) -> None:
    with pytest.raises(SecretError):
        mc.user("ana").memories.draft("My password is Tr0ub4dor&3")
    assert extract_model.requests == []
