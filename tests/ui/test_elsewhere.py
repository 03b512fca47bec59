"""After a forgetting the app tells what else speaks of it, and blanks that where wanted."""

from __future__ import annotations

import pytest

from memchat import MemChat
from tests.support.ui.tab import ANA, act, app, buttons, press, text, until
from ui import desk, forgetting

LINES = ("The party of Quokkaland was loud.", "Do quokkalands sleep?")
BLANKED = ["The party of ·········· was loud.", "Do ··········· sleep?"]


def remembered(mc: MemChat) -> int:
    ana = mc.user(**ANA)
    with ana.chat() as talk:
        for line in ("Good morning!", *LINES):
            talk.send(line).read()
    return ana.memories.add("profile", "employer", "Quokkaland Ltd").id


def said(mc: MemChat) -> list[str]:
    return [turn.content for turn in mc.user(**ANA).sessions.messages(1) if turn.role == "user"][1:]


def test_it_is_told_shown_and_blanked_and_gone_from_the_file(
    mc: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "UNDO_SECONDS", 0.5)
    number = remembered(mc)
    at = app("memories")
    act(at, "forget", number)
    assert "It is also spoken of elsewhere: 2 messages." in text(at)
    press(at, "elsewhere-show")
    assert [box.label.replace("\\", "") for box in at.checkbox if "essage" in box.label] == [
        f"Message, today: {line}" for line in reversed(BLANKED)
    ]
    press(at, "elsewhere-blank")
    assert "It is also spoken of" not in text(at)
    until(at, lambda: said(mc) == BLANKED)
    until(at, lambda: b"uokkaland" not in (mc.settings.home / "memchat.db").read_bytes())


def test_blanking_is_undone_with_the_forgetting(mc: MemChat) -> None:
    number = remembered(mc)
    at = app("memories")
    act(at, "forget", number)
    press(at, "elsewhere-blank")
    assert "Blanked 2 messages. Gone for good in" in text(at)
    press(at, buttons(at, "undo-")[-1])
    assert mc.user(**ANA).memories.get(number).active
    mc.jobs.run(user="ana")
    assert said(mc) == [*LINES]


def test_one_place_can_stay(mc: MemChat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "UNDO_SECONDS", 0.5)
    number = remembered(mc)
    at = app("memories")
    act(at, "forget", number)
    press(at, "elsewhere-show")
    at.checkbox(key="elsewhere-0").uncheck().run()
    press(at, "elsewhere-blank")
    until(at, lambda: said(mc) == [BLANKED[0], LINES[1]], seconds=10)


def test_left_alone_it_stays_and_is_spoken_of_no_more(mc: MemChat) -> None:
    number = remembered(mc)
    at = app("memories")
    act(at, "forget", number)
    press(at, "elsewhere-leave")
    assert "It is also spoken of" not in text(at)
    assert said(mc) == [*LINES]


def test_a_note_stays_unless_it_is_ticked(mc: MemChat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "UNDO_SECONDS", 0.5)
    monkeypatch.setattr(desk, "REST_SECONDS", 0.5)  # without a model the note's vector waits
    ana = mc.user(**ANA)
    note = ana.notes.add("Quokkaland wants the boxes earlier.", title="Minutes")
    assert note is not None
    number = ana.memories.add("profile", "employer", "Quokkaland Ltd").id
    at = app("memories")
    act(at, "forget", number)
    assert "It is also spoken of elsewhere: 1 note." in text(at)
    assert at.button(key="elsewhere-blank").disabled
    press(at, "elsewhere-show")
    (box,) = [box for box in at.checkbox if "Note" in box.label]
    assert not box.value
    box.check().run()
    press(at, "elsewhere-blank")
    blanked = "·········· wants the boxes earlier."
    until(at, lambda: ana.notes.get(note.id).text == blanked)
