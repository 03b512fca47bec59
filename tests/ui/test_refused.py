"""What was not kept of a chat, on the chat page."""

from __future__ import annotations

from memchat import MemChat
from memchat.db import apps
from memchat.facts import proposals
from memchat.types import Proposal, Scope
from tests.support import private
from tests.support.ui.tab import ANA, app, lines, press, text


def read(mc: MemChat, *refused: Proposal) -> int:
    """A conversation whose reading did not keep these."""
    with mc.user(**ANA).chat() as talk:
        assert talk.send("I live in Hull.").read()
        assert talk.session_id is not None
    with private.database(mc).write() as tx:
        own = apps.ensure(tx, Scope("ana")).own
        proposals.add_refused(tx, own, talk.session_id, refused)
    return talk.session_id


OWL = Proposal("somebody else's words", memory_type="fact", key="pet", value="an owl")


def test_what_was_not_kept_stands_under_its_chat_with_the_reason(mc: MemChat) -> None:
    repeats = [Proposal("it only repeats what is known already", key=k) for k in ("a", "b")]
    secret = Proposal("it holds password, which is never remembered")
    at = app(c=str(read(mc, OWL, secret, *repeats)))
    assert lines(at)[0].endswith("Not kept: **pet: an owl**, 1 more")
    said = text(at)
    assert "pet: an owl" in said and "somebody else's words" in said
    assert "it holds password" in said and "And 2 that only repeat what is known." in said
    assert len([b for b in at.button if b.label == "Keep it anyway"]) == 1


def test_it_can_be_kept_anyway(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    at = app(c=str(read(mc, OWL)))
    (refused,) = ana.inbox.refusals()
    press(at, f"keep-refused-{refused.id}")
    assert "an owl" in [m.value for m in ana.memories.list()]
    assert ana.inbox.refusals() == [] and "Not kept" not in text(at)


def test_a_chat_of_which_all_was_kept_names_nothing_else(mc: MemChat) -> None:
    at = app(c=str(read(mc)))
    assert lines(at) == [] and "Learnt: city: Hull" in text(at)
