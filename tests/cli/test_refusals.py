"""What a chat leaves open, in the terminal: what waits for a yes, and what was not kept."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.cli import command
from memchat.config import Settings
from memchat.testing import ScriptedModel
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.cli import Done, Run

Hold = Callable[..., Done]
HULL = fact("I live in Hull", "city", "Hull")
LEEDS = fact("I live in Leeds", "city", "Leeds", msg="u3")
OWL = fact("I keep an owl", "pet", "an owl")
SECRET = fact("My password is hunter22x", "password", "hunter22x", msg="u5")


@pytest.fixture
def hold(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> Hold:
    """A chat over the command line, read by a scripted model that proposes the given facts."""

    def held(said: str, *facts: dict, app: str = "default") -> Done:
        def opened() -> MemChat:
            settings = Settings(home=home, timezone="Asia/Tokyo", embed_model="none")
            models = ScriptedModel(["Fine."] * 9), ScriptedModel([answer(*facts)])
            return MemChat(settings=settings, chat_model=models[0], extract_model=models[1])

        with monkeypatch.context() as patch:
            patch.setattr(command, "open_store", opened)
            patch.setattr(sys, "stdin", io.StringIO(said))
            return run("chat", "--app", app)

    return held


SLIP = "I live in Hull.\nSorry, I live in Leeds.\nMy password is hunter22x\n"


def test_the_end_of_a_chat_names_what_was_not_kept_and_how_to_keep_it(hold: Hold) -> None:
    done = hold(SLIP, HULL, LEEDS, OWL, SECRET)
    lines = [line for line in done.out.splitlines() if line.startswith("not kept: ")]
    assert done.code == 0, done.err
    later = "something else was said later in the conversation"
    assert f"not kept: city: Hull — {later}; keep it anyway: memchat sessions keep 3" in lines
    assert "not kept: it holds password, which is never remembered" in lines
    assert len(lines) == 3 and "hunter22x" not in "".join(lines)
    assert "refused" not in done.out


def test_the_commands_that_it_names_are_those_of_the_app(hold: Hold, run: Run) -> None:
    done = hold("Hello.\n", OWL, app="my work")
    (line,) = [line for line in done.out.splitlines() if line.startswith("not kept: ")]
    assert line.endswith("memchat sessions keep --app 'my work' 1")
    assert run("sessions", "keep", "1").code == 1
    assert run("sessions", "keep", "--app", "my work", "1").code == 0


def test_the_next_chat_does_not_say_it_again(hold: Hold) -> None:
    hold("Hello.\n", OWL)
    assert "not kept" not in hold("Hello again.\n").out


def test_a_conversation_shows_what_was_not_kept_and_one_is_kept_by_its_number(
    hold: Hold, run: Run
) -> None:
    hold(SLIP, HULL, LEEDS, SECRET)
    shown = run("sessions", "show", "1")
    (number,) = [row["id"] for row in run("sessions", "show", "1", "--json").json["refusals"][1:]]
    assert f"keep it anyway: memchat sessions keep {number}" in shown.out
    kept = run("sessions", "keep", str(number))
    assert kept.code == 0, kept.err
    memory = run("memories", "show", kept.out.strip(), "--json").json
    assert (memory["key"], memory["value"]) == ("city", "Hull")
    assert "Hull" not in run("sessions", "show", "1").out.partition("not kept")[2]
    (secret,) = [row["id"] for row in run("sessions", "show", "1", "--json").json["refusals"]]
    refused = run("sessions", "keep", str(secret))
    assert refused.code == 1 and "it holds password" in refused.err


def test_what_only_repeats_is_counted_and_not_listed(hold: Hold, run: Run, home: Path) -> None:
    hold("Hello.\n", OWL, fact("I live in Hull", "city", "Hull"), fact("I ski", "hobby", "ski"))
    with (
        MemChat(settings=Settings(home=home, embed_model="none")) as mc,
        private.database(mc).write() as tx,
    ):
        tx.connection.exec_driver_sql(
            "UPDATE proposals SET reason = 'it only repeats what is known already' WHERE id > 1"
        )
    shown = run("sessions", "show", "1").out
    assert "not kept  and 2 that only repeat what is known" in shown and "Hull" not in shown
    assert len(run("sessions", "show", "1", "--json").json["refusals"]) == 3


def test_the_end_of_a_chat_asks_what_a_yes_would_do(hold: Hold, run: Run) -> None:
    hold("I live in Hull.\n", HULL)
    moved = fact("I live in Leeds", "city", "Leeds", to="k1", flags=["sensitive"])
    done = hold("I live in Leeds.\n", moved | {"is": "updates"})
    asks = "You said “I live in Leeds”. Replace city: Hull?"
    yes, no = "memchat inbox accept 1", "memchat inbox reject 1"
    assert f"waits: {asks} yes: {yes}, no: {no}" in done.out.splitlines()
    assert asks in run("inbox", "list").out
    told = run("inbox", "accept", "1", "--json").json
    assert told["value"] == "Leeds"  # type: ignore[call-overload]
    assert [row["value"] for row in run("memories", "list", "--json").json] == ["Leeds"]


def test_the_end_of_a_chat_names_what_it_replaced_with_its_undo(hold: Hold, run: Run) -> None:
    hold("I live in Hull.\n", HULL)
    moved = fact("I live in Leeds now", "city", "Leeds", to="k1") | {"is": "updates"}
    done = hold("I live in Leeds now.\n", moved)
    assert "changed: city: Hull → Leeds; undo: memchat memories restore 1" in done.out.splitlines()
    assert run("memories", "restore", "1").code == 0
    assert [row["value"] for row in run("memories", "list", "--json").json] == ["Hull"]


def test_it_names_what_it_ended_and_nothing_of_earlier_chats(hold: Hold, run: Run) -> None:
    hold("I live in Hull.\n", HULL, app="my work")
    moved = fact("I live in Leeds now", "city", "Leeds", to="k1") | {"is": "updates"}
    hold("I live in Leeds now.\n", moved, app="my work")
    gone = fact("I no longer live in Leeds", "city", "Leeds", to="k1") | {"is": "ends"}
    done = hold("I no longer live in Leeds.\n", gone, app="my work")
    named = [line for line in done.out.splitlines() if "memories restore" in line]
    assert named == ["ended: city: Leeds; undo: memchat memories restore --app 'my work' 2"]
    assert run("memories", "restore", "--app", "my work", "2").code == 0


def test_of_a_key_with_several_values_the_old_one_is_brought_back_beside_the_new(
    hold: Hold, run: Run
) -> None:
    hold("I keep a cat.\n", fact("I keep a cat", "pet", "a cat", many=True))
    now = fact("Instead of the cat I keep an owl now", "pet", "an owl", many=True, to="k1")
    done = hold("Instead of the cat I keep an owl now.\n", now | {"is": "updates"})
    line = "changed: pet: a cat → an owl; bring it back: memchat memories restore 1"
    assert line in done.out.splitlines()
    assert run("memories", "restore", "1").code == 0
    found = {row["value"] for row in run("memories", "list", "--json").json}
    assert found == {"a cat", "an owl"}


def test_a_second_look_is_a_line_of_what_a_conversation_cost(hold: Hold, run: Run) -> None:
    hold("I live in Hull.\n", HULL)
    shown = run("sessions", "show", "1")
    assert "verify, scripted/model: 1 call, " in shown.out
    purposes = [total["purpose"] for total in run("sessions", "show", "1", "--json").json["usage"]]
    assert purposes == ["chat", "extract", "verify"]


def test_what_is_rejected_or_kept_is_told(hold: Hold, run: Run) -> None:
    hold("I live in Hull.\n", HULL, OWL)
    (number,) = [row["id"] for row in run("sessions", "show", "1", "--json").json["refusals"]]
    assert run("sessions", "keep", str(number), "--json").json["active"] is True
    moved = fact("I live in Leeds", "city", "Leeds", to="k1", flags=["sensitive"])
    hold("I live in Leeds.\n", moved | {"is": "updates"})
    (item,) = [row["id"] for row in run("inbox", "list", "--json").json]
    done = run("inbox", "reject", str(item), "--json")
    assert done.json == {"id": item, "rejected": True}
    assert done.err == f"item {item} is rejected; the same is not asked again\n"
