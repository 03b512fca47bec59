"""The commands that keep the store clean: audit, and deleting a conversation with its lessons."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.testing import FakeClock, ScriptedModel
from tests.support.answers import answer, fact
from tests.support.cli import Run, add


@pytest.fixture
def talks(home: Path) -> list[int]:
    """Two conversations: Lisbon and bees, then Porto; their ids."""
    learnt = [
        answer(
            fact("I live in Lisbon", "city", "Lisbon"),
            fact("I keep bees", "hobby", "keep bees", msg="u3"),
            title="Bees",
        ),
        answer(fact("I live in Porto now", "city", "Porto")),
    ]
    clock = FakeClock(datetime(2026, 5, 1, 12, tzinfo=UTC))
    settings = Settings(home=home, timezone="Asia/Tokyo", embed_model="none")
    ids = []
    with MemChat(
        settings=settings,
        chat_model=ScriptedModel(["Fine."] * 9),
        extract_model=ScriptedModel(learnt),
        clock=clock,
    ) as mc:
        for lines in (["I live in Lisbon", "I keep bees"], ["I live in Porto now"]):
            clock.advance(days=1)
            with mc.user("ana").chat() as chat:
                for line in lines:
                    assert chat.send(line).read()
            ids.append(chat.session_id)
    return ids


def values(run: Run) -> set[object]:
    return {row["value"] for row in run("memories", "list", "--json").json}


def test_deleting_a_conversation_says_what_becomes_of_the_memories(run: Run, talks) -> None:
    done = run("sessions", "delete", str(talks[1]), "--dry-run")
    assert done.code == 0
    assert done.out.splitlines() == [
        "goes: 3  You live in Porto.",
        "comes back: 1  You live in Lisbon.",
    ]
    assert "nothing was deleted" in done.err
    assert values(run) == {"Porto", "keep bees"}
    refused = run("sessions", "delete", str(talks[1]))
    assert refused.code == 2 and "--yes" in refused.err
    assert run("sessions", "delete", str(talks[1]), "--yes").code == 0
    assert values(run) == {"Lisbon", "keep bees"}


def test_its_memories_may_stay(run: Run, talks) -> None:
    done = run("sessions", "delete", str(talks[1]), "--keep-memories", "--yes")
    assert done.code == 0 and done.out == ""
    assert values(run) == {"Porto", "keep bees"}


def test_one_message_may_go_by_the_number_that_show_gives_it(run: Run, talks) -> None:
    shown = run("sessions", "show", str(talks[0])).out
    number = next(line for line in shown.splitlines() if line.startswith("user")).rpartition("#")[2]
    done = run("sessions", "delete", str(talks[0]), "--message", number, "--yes")
    assert done.out == "goes: 1  You live in Lisbon.\n" and f"deleted message {number}" in done.err
    assert "Lisbon" not in run("sessions", "show", str(talks[0])).out
    other = run("sessions", "delete", str(talks[1]), "--message", "4", "--yes")
    assert other.code == 2 and "has no message 4" in other.err


def test_forgetting_may_leave_the_transcript(run: Run, talks) -> None:
    assert run("memories", "delete", "2", "--keep-transcript", "--yes").code == 0
    assert values(run) == {"Porto"}
    assert "I keep bees" in run("sessions", "show", str(talks[0])).out


def test_an_audit_of_a_clean_store_finds_nothing(run: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    done = run("audit")
    assert done.out == "1 memories in use, 0 kept aside (ana in default)\nnothing found\n"


def test_an_audit_mends_only_with_a_yes(run: Run) -> None:
    add(run, "fact", "pet", "a cat called Miso")
    add(run, "fact", "household", "a cat called miso")
    assert "duplicate (1)" in run("audit").out
    dry = run("audit", "--fix")
    assert dry.code == 0 and "nothing was changed" in dry.err
    assert len(values(run)) == 2
    assert "mended 1 of 1" in run("audit", "--fix", "--yes").out
    assert values(run) == {"a cat called miso"}
    assert "nothing found" in run("audit").out


def test_an_audit_is_json_for_scripts_and_may_be_narrowed(run: Run) -> None:
    add(run, "fact", "pet", "a cat called Miso")
    add(run, "fact", "household", "a cat called miso")
    seen = run("audit", "--json").json
    assert [f["kind"] for f in seen["findings"]] == ["duplicate"]
    assert run("audit", "--json", "--kind", "secret").json["findings"] == []
