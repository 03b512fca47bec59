"""Values that a caller gives and that cannot be: refused before anything is stored."""

from __future__ import annotations

import threading

import pytest

from memchat import InputError


@pytest.mark.parametrize(
    "timeout", [0, -1.0, float("inf"), float("nan"), threading.TIMEOUT_MAX * 2, "5"]
)
def test_a_timeout_that_cannot_be_is_refused_before_anything_is_stored(mc, timeout) -> None:
    ana = mc.user("ana")
    with pytest.raises(InputError, match="timeout"):
        ana.add("Hello", timeout=timeout)
    assert ana.sessions.list() == []
