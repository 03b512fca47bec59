"""The one way of facts into the store, and what their source changes."""

from __future__ import annotations

from memchat import MemChat
from memchat.db import apps, messages, sessions
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.consolidation import MANUAL, ingest, session_end
from memchat.facts.memories import Fact, search_text
from memchat.facts.proposals import BLANKED, refused
from memchat.forget import tombstones
from memchat.types import Change, Scope
from tests.support import private

ANA = Scope("ana")
WORDS = "I live in Porto now."


def put(mc: MemChat, source: Cause, *facts: Fact, blanked: tuple[int, ...] = ()) -> list[Change]:
    with private.database(mc).write(ANA, ensure=True) as tx:
        return ingest(tx, source, facts, blanked=blanked)


def city(mc: MemChat, value: str, *, by_hand: bool = False, message_id: int | None = None) -> Fact:
    return Fact(
        memory_type="profile",
        key="city",
        value=value,
        many=False,
        search_text=search_text("city", value, mc.now, mc.settings.zone),
        said_at=mc.now,
        created_by="manual" if by_hand else "auto",
        proofs=((message_id, 0, WORDS),) if message_id is not None else (),
    )


def said(mc: MemChat) -> tuple[int, int]:
    """A stored conversation of one message: the ids of both."""
    with private.database(mc).write() as tx:
        own = apps.ensure(tx, ANA).own
        session_id = sessions.start(tx, own, "test", mc.now, mc.now)
        return session_id, messages.add(tx, session_id, "user", WORDS, mc.now)


def forget_porto(mc: MemChat) -> None:
    with private.database(mc).write() as tx:
        own = apps.ensure(tx, ANA).own
        tombstones.add(tx, own, 0, tombstones.fact_marks("city", "Porto"), mc.now)


def test_facts_are_stored_in_their_order_and_later_ones_replace_earlier_ones(mc: MemChat) -> None:
    done = put(mc, Cause("model", "imported"), city(mc, "Porto"), city(mc, "Lisbon"))
    assert [change.kind for change in done] == ["added", "superseded"]
    assert [m.value for m in mc.user("ana").memories.list()] == ["Lisbon"]


def test_what_was_forgotten_is_refused_of_a_model_and_stored_of_the_user(mc: MemChat) -> None:
    forget_porto(mc)
    learned = put(mc, Cause("model", "imported"), city(mc, "Porto"))
    assert [change.kind for change in learned] == ["refused"]
    assert refused(city(mc, "Porto"), learned[0].reason or "").value is None
    entered = put(mc, MANUAL, city(mc, "Porto", by_hand=True))
    assert [change.kind for change in entered] == ["added"]
    assert [m.value for m in mc.user("ana").memories.list()] == ["Porto"]


def test_a_fact_of_a_message_that_was_blanked_meanwhile_leaves_no_word(mc: MemChat) -> None:
    session_id, message_id = said(mc)
    fact = city(mc, "Porto", message_id=message_id)
    done = put(mc, session_end(session_id), fact, blanked=(message_id,))
    assert [(change.kind, change.reason) for change in done] == [("refused", BLANKED)]
    assert refused(fact, BLANKED).key is None
    assert mc.user("ana").memories.list() == []


def test_a_learned_fact_s_event_names_the_message_it_was_quoted_from(mc: MemChat) -> None:
    session_id, message_id = said(mc)
    done = put(mc, session_end(session_id), city(mc, "Porto", message_id=message_id))
    with private.database(mc).read() as tx:
        (stored,) = (change.memory for change in done)
        assert stored is not None
        (event,) = changes.events_of_memory(tx, stored.id)
    assert (event.actor, event.cause) == ("model", "extracted")
    assert (event.session_id, event.message_id) == (session_id, message_id)
