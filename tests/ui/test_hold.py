"""What can be undone for some seconds, where something comes between."""

from __future__ import annotations

import pytest

from memchat import MemChat
from tests.support import private
from tests.support.ui.tab import ANA, act, app, buttons, press, text
from ui import forgetting
from ui.desk import Desk


def test_a_forgetting_is_undone_after_the_models_were_changed(desk: Desk) -> None:
    before = desk.mc
    kept = before.user(**ANA).memories.add("profile", "city", "Lisbon")
    at = app("memories")
    act(at, "forget", kept.id)
    desk.change(MemChat(settings=before.settings))
    before.close()
    press(at, buttons(at, "undo-")[0])
    assert desk.mc.user(**ANA).memories.get(kept.id).active


@pytest.mark.parametrize("seconds", [0.0, 30.0])
def test_a_forgetting_that_fails_leaves_nothing_to_undo(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(forgetting, "UNDO_SECONDS", seconds)
    kept = desk.mc.user(**ANA).memories.add("profile", "city", "Lisbon")
    at = app("memories")
    with private.database(desk.mc).write() as tx:
        tx.connection.exec_driver_sql(
            "CREATE TRIGGER refuse BEFORE INSERT ON tombstones"
            " BEGIN SELECT RAISE(ABORT, 'database is locked'); END"
        )
    act(at, "forget", kept.id)
    assert "kept" in text(at) and not buttons(at, "undo-") and not buttons(at, "unforget-")
    assert desk.mc.user(**ANA).memories.get(kept.id).active
