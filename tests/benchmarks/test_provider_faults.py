"""Whatever a provider does wrong, nothing of the person's is lost: the whole campaign, in parts."""

from __future__ import annotations

import pytest

from benchmarks.provider_faults import campaign
from benchmarks.provider_faults.__main__ import table
from benchmarks.provider_faults.campaign import Outcome
from benchmarks.provider_faults.faults import Fault, every
from memchat.chat.turn import Turn
from tests.support.slow import slow_but

PARTS = 8


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_BASE", raising=False)
    for name, key in campaign.KEY.items():
        monkeypatch.setenv(name, key)


def test_there_are_sixty_faults_and_no_two_of_one_name() -> None:
    faults = every()
    assert len(faults) >= 60
    assert len({(fault.at, fault.name) for fault in faults}) == len(faults)


@pytest.mark.parametrize("part", slow_but({0}, range(PARTS)))
def test_a_fault_of_the_provider_loses_nothing(part: int) -> None:
    outcomes = campaign.run(every()[part::PARTS])
    assert [(one.fault.name, one.lost) for one in outcomes if not one.kept] == []
    assert all("\n" not in one.saw for one in outcomes)


def test_the_campaign_notices_a_reply_that_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turn, "_write_words", lambda *_: None)
    (outcome,) = campaign.run([fault for fault in every() if fault.name == "no finish"])
    assert "what was printed" in outcome.lost and not outcome.kept


def test_the_table_counts_what_was_lost() -> None:
    fault = Fault("a fault", "reply", ())
    lines = table([Outcome(fault, "it failed"), Outcome(fault, "", ["what was typed"])])
    assert lines[-1].endswith("2 faults, 1 lost")
    assert "yes" in lines[1] and "it failed" in lines[1]
    assert "NO" in lines[2] and lines[3].strip() == "lost: what was typed"
