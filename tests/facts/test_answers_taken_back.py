"""Answering many items of the inbox at once, and taking that back."""

from __future__ import annotations

from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sqlalchemy import event

from memchat import MemChat
from memchat.errors import InputError
from memchat.types import InboxItem, Proposal
from tests.support import private
from tests.support.kills import Victim, child_store, wait_for_the_kill


def ask(mc: MemChat, *items: Proposal) -> list[InboxItem]:
    """Put proposals into the inbox, as a reading does."""
    from memchat.db import apps
    from memchat.facts import proposals
    from memchat.types import Scope

    with private.database(mc).write() as tx:
        own = apps.ensure(tx, Scope("ana")).own
        for item in items:
            proposals.add(tx, own, item)
    return list(mc.user("ana").inbox.list())


def tea(value: str, **fields) -> Proposal:
    new = Proposal("it may be a wish", memory_type="preference", key="tea", value=value)
    return replace(new, **fields)


def rows(mc: MemChat) -> object:
    """All that can be seen of the memories and the inbox, but for when a row was last written."""
    ana = mc.user("ana")
    return (
        [replace(m, updated_at=m.created_at) for m in ana.memories.list(status="all")],
        [ana.memories.evidence(m.id) for m in ana.memories.list(status="all")],
        ana.inbox.list(),
        ana.inbox.list(status="rejected"),
        [hit.id for hit in ana.search("tea").hits],
    )


def tombstones(mc: MemChat) -> list[object]:
    with private.database(mc).read() as tx:
        return tx.driver.execute(
            "SELECT kind, hash, created_at FROM tombstones ORDER BY 1, 2"
        ).fetchall()


@pytest.mark.parametrize("relation", ["new", "updates", "ends", "same"])
def test_a_yes_that_is_taken_back_leaves_all_as_it_was(mc: MemChat, clock, relation: str) -> None:
    ana = mc.user("ana")
    known = ana.memories.add("preference", "tea", "green tea", expires_at=None)
    ana.memories.pin(known.id)
    to = {} if relation == "new" else {"relation": relation, "target_id": known.id}
    (item,) = ask(mc, tea("sencha tea", **to))
    before = rows(mc)
    clock.advance(seconds=5)
    answered = ana.inbox.accept_many([item.id])
    assert ana.inbox.list() == [] and answered.items == (item,) and not answered.failed
    assert rows(mc) != before
    clock.advance(seconds=5)
    assert ana.inbox.take_back(answered) == [item]
    assert rows(mc) == before
    assert ana.inbox.accept(item.id)


def test_a_value_said_by_hand_is_gone_from_the_file_when_the_yes_is_taken_back(mc: MemChat) -> None:
    ana = mc.user("ana")
    (item,) = ask(mc, tea("sencha tea"))
    answered = ana.inbox.accept_many([item.id], values={item.id: "gyokuro"})
    assert [m.value for m in ana.memories.list()] == ["gyokuro"]
    mc.jobs.embed()
    ana.inbox.take_back(answered)
    mc.jobs.run()
    assert not ana.search("gyokuro").hits
    assert b"gyokuro" not in private.database(mc).path.read_bytes()


def test_a_no_that_is_taken_back_waits_again_and_can_be_proposed_again(mc: MemChat) -> None:
    ana = mc.user("ana")
    items = ask(mc, tea("sencha tea"), tea("mint tea"))
    before = rows(mc)
    answered = ana.inbox.reject_many([item.id for item in items])
    assert ana.inbox.list() == [] and len(ana.inbox.list(status="rejected")) == 2
    assert ana.inbox.take_back(answered) == items
    assert rows(mc) == before


def test_what_was_forgotten_before_is_known_as_forgotten_after_a_no_or_a_yes_is_taken_back(
    mc: MemChat, clock
) -> None:
    ana = mc.user("ana")
    ana.memories.delete(ana.memories.add("preference", "tea", "sencha tea").id)
    (item,) = ask(mc, tea("sencha tea"))
    marks = tombstones(mc)
    clock.advance(seconds=5)
    for answer in (ana.inbox.reject_many, ana.inbox.accept_many):
        ana.inbox.take_back(answer([item.id]))
        assert ana.inbox.list() == [item]
        assert tombstones(mc) == marks


def test_many_answers_are_one_step_and_what_cannot_be_answered_still_waits(mc: MemChat) -> None:
    ana = mc.user("ana")
    items = ask(mc, tea("sencha tea"), tea("[secret]", masked=True), tea("mint tea"))
    before = rows(mc)
    answered = ana.inbox.accept_many([*(item.id for item in items), 99])
    assert [m.value for m in ana.memories.list()] == ["mint tea", "sencha tea"]
    assert ana.inbox.list() == [items[1]]
    assert "hidden" in answered.failed[items[1].id] and "nothing waits" in answered.failed[99]
    ana.inbox.take_back(answered)
    assert rows(mc) == before


def test_a_memory_that_was_changed_since_is_not_taken_back(mc: MemChat) -> None:
    ana = mc.user("ana")
    (item,) = ask(mc, tea("sencha tea"))
    answered = ana.inbox.accept_many([item.id])
    (memory,) = ana.memories.list()
    ana.memories.update(memory.id, value="hojicha tea")
    with pytest.raises(InputError, match="changed or forgotten since"):
        ana.inbox.take_back(answered)
    assert [m.value for m in ana.memories.list()] == ["hojicha tea"]


def test_an_item_whose_message_was_deleted_meanwhile_does_not_come_back(mc: MemChat) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.send("Maybe I like sencha tea.").read()
    (said, _) = ana.sessions.messages(chat.session_id)
    (item,) = ask(mc, tea("sencha tea", message_id=said.id, quote="sencha tea", start=13, end=23))
    answered = ana.inbox.reject_many([item.id])
    ana.sessions.delete(chat.session_id)
    assert ana.inbox.take_back(answered) == [] and ana.inbox.list() == []


def killed_in_the_second_answer(home: Path, reached: Connection) -> None:
    """Say yes to three items; the process waits to be killed when the second is stored."""
    with child_store(home) as mc:
        stored: list[str] = []

        def look(_connection, _cursor, statement, *_rest) -> None:
            stored.extend(["one"] if statement.startswith("RELEASE SAVEPOINT") else [])
            if len(stored) == 2:
                wait_for_the_kill(reached)

        event.listen(private.engine(private.database(mc)), "after_cursor_execute", look)
        mc.user("ana").inbox.accept_many([1, 2, 3])
        reached.send("done")


def test_answers_of_a_process_that_was_killed_meanwhile_are_all_still_to_be_given(
    tmp_path: Path,
) -> None:
    with child_store(tmp_path) as mc:
        items = ask(mc, tea("sencha tea"), tea("mint tea"), tea("rooibos tea"))
    victim = Victim(killed_in_the_second_answer, tmp_path)
    assert victim.said is None
    victim.kill()
    with child_store(tmp_path) as mc:
        ana = mc.user("ana")
        assert ana.inbox.list() == items and ana.memories.list() == []
        assert len(ana.inbox.accept_many(item.id for item in items).items) == 3
