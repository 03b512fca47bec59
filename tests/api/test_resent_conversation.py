"""``User.add`` of a conversation, or of a part of it, that was added before."""

from __future__ import annotations

from typing import Any

import pytest

from memchat.db.sessions import KnownTurns
from tests.support.answers import answer, fact


def user(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


def assistant(words: str) -> dict[str, Any]:
    return {"role": "assistant", "content": words}


TALK = [user("Hello there"), assistant("Hi."), user("I live in Lisbon"), assistant("A fine city.")]
EDITED = {
    "regenerated reply": ([TALK[0], assistant("Hey!"), *TALK[2:]], ["Hey!"]),
    "edited first message": ([user("Hello you"), *TALK[1:]], ["Hello you"]),
    "summary": ([assistant("A summary."), *TALK[2:]], ["A summary."]),
}


def said(ana, session_id: int) -> list[str]:
    return [message.content for message in ana.sessions.messages(session_id)]


@pytest.mark.parametrize(
    ("sent", "new"),
    [
        ("ABCDE", "E"),
        ("CDE", "E"),
        ("AB", ""),
        ("BC", ""),
        ("XBCDE", "XE"),
        ("AXCDE", "XE"),
        ("AX", "X"),
        ("SCDE", "SE"),
        ("A", "A"),
        ("XCY", "XCY"),
        ("EF", "EF"),
    ],
)
def test_known_turns_are_found_wherever_another_was_changed(sent: str, new: str) -> None:
    turns = KnownTurns.of("ABCD", sent)
    assert "".join(sent[place] for place in turns.new) == new
    assert sorted(turns.hashes) == sorted(f"ABCD{new}")
    assert KnownTurns.of(turns.hashes, f"{sent}Z").new == (len(sent),), "changed turns are known"


@pytest.mark.parametrize("edit", EDITED)
def test_forgotten_words_do_not_come_back_with_an_edited_conversation(
    mc, extract_model, edit: str
) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon", msg="u2")))
    one = ana.add(TALK, session="s")
    ana.memories.delete(ana.memories.list()[0].id)
    edited, new = EDITED[edit]
    again = ana.add(edited, session="s", wait=False)
    assert again.stored == len(new) and said(ana, one.session_id)[-len(new) :] == new
    assert "Lisbon" not in str(said(ana, one.session_id))
    third = ana.add([*edited, user("Bye")], session="s", wait=False)
    assert (third.known, third.stored) == (len(edited), 1)


@pytest.mark.parametrize("edit", EDITED)
def test_deleted_words_do_not_come_back_with_an_edited_conversation(mc, edit: str) -> None:
    ana = mc.user("ana")
    one = ana.add(TALK, session="s", wait=False)
    ana.sessions.delete(one.session_id)
    edited, new = EDITED[edit]
    again = ana.add(edited, session="s", wait=False)
    assert said(ana, again.session_id) == new


def test_a_shorter_resend_takes_nothing_away_from_what_is_known(mc) -> None:
    ana = mc.user("ana")
    one = ana.add(TALK, session="s", wait=False)
    for part in (TALK[:2], TALK[1:3], TALK):
        assert ana.add(part, session="s", wait=False).stored == 0
    assert len(said(ana, one.session_id)) == len(TALK)


@pytest.mark.parametrize("all_apps", [True, False])
def test_what_was_said_while_memory_was_off_is_not_learned_later(mc, all_apps: bool) -> None:
    ana = mc.user("ana")
    one = ana.add(TALK[:2], session="s", wait=False)
    ana.set_memory(False, all_apps=all_apps)
    assert "memory is off" in (ana.add(TALK, session="s").skipped or "")
    assert "memory is off" in (ana.add(TALK, session="new").skipped or "")
    ana.set_memory(True, all_apps=all_apps)
    for name in ("s", "new"):
        assert ana.add(TALK, session=name).skipped == "nothing new was said"
        ana.add([*TALK, user("Bye")], session=name, wait=False)
    told = [said(ana, session.id) for session in ana.sessions.list()]
    assert sorted(told) == [["Bye"], ["Hello there", "Hi.", "Bye"]]
    assert said(ana, one.session_id)[-1] == "Bye"
