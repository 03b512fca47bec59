"""Backups that still hold what was forgotten, in the app."""

from __future__ import annotations

import pytest

from memchat import MemChat
from tests.support.ui.tab import ANA, act, app, buttons, press, text, until
from ui import forgetting


@pytest.fixture
def ids(mc: MemChat, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two memories, each of which is forgotten for good soon after it is forgotten."""
    monkeypatch.setattr(forgetting, "UNDO_SECONDS", 0.5)
    memories = mc.user(**ANA).memories
    return [memories.add("fact", f"trip{n}", f"trip number {n}").id for n in range(2)]


def test_a_backup_is_named_once_after_the_last_undo_and_is_deleted(
    mc: MemChat, ids: list[int]
) -> None:
    made = mc.backups.create().file
    at = app("memories")
    for memory_id in ids:
        act(at, "forget", memory_id)
        assert "backup" not in text(at)
    until(at, lambda: "old-backups-delete" in buttons(at, "old"))
    assert text(at).count(made.name) == 1
    assert "still holds words that were forgotten" in text(at)
    press(at, "old-backups-delete")
    assert not made.exists() and not buttons(at, "old")


def test_a_backup_that_is_left_is_not_named_again(mc: MemChat, ids: list[int]) -> None:
    made = mc.backups.create().file
    at = app("memories")
    act(at, "forget", ids[0])
    until(at, lambda: buttons(at, "old"))
    press(at, "old-backups-leave")
    assert made.exists() and not buttons(at, "old")
    act(at, "forget", ids[1])
    until(at, lambda: not buttons(at, "undo-"))
    at.run()
    assert not buttons(at, "old")


def test_nothing_is_said_where_the_forgetting_was_undone_or_no_backup_holds_it(
    mc: MemChat, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = app("memories")
    act(at, "forget", ids[0])
    until(at, lambda: not buttons(at, "undo-"))
    mc.jobs.run(user="ana")
    mc.backups.create()
    at.run()
    assert not buttons(at, "old")
    monkeypatch.setattr(forgetting, "UNDO_SECONDS", 30)
    act(at, "forget", ids[1])
    press(at, buttons(at, "undo-")[0])
    at.run()
    assert not buttons(at, "old")
