"""Several things in one command: by their numbers, by a tag, by words."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat import MemChat, StoreError
from memchat.api.notes import Notes
from memchat.config import Settings
from memchat.db import apps
from memchat.facts import proposals
from memchat.types import Proposal, Scope
from tests.support import private
from tests.support.cli import Run, add
from tests.support.terminal import Env


@pytest.fixture
def boats(run: Run) -> None:
    for number in range(1, 4):
        add(run, "fact", f"boat_{number}", f"kayak {number}", "--tag", "water")
    add(run, "profile", "city", "Lisbon")


def left(run: Run, noun: str = "memories") -> list[object]:
    return sorted(one["id"] for one in run(noun, "list", "--json").json)  # type: ignore[type-var]


@pytest.mark.parametrize("which", [("1", "2", "3"), ("--tag", "water"), ("--query", "KAYAK boat")])
def test_memories_are_deleted_by_numbers_by_a_tag_and_by_words(
    run: Run, boats: None, typed, which: tuple[str, ...]
) -> None:
    asked = run("memories", "delete", *which)
    assert asked.code == 2 and left(run) == [1, 2, 3, 4]
    for number in range(1, 4):
        assert f"memory {number} “boat_{number}: kayak {number}”" in asked.err
    typed("y\n")
    done = run("memories", "delete", *which)
    assert done.code == 0 and done.err.count("[y/N]") == 1
    assert "Forget these 3 memories for good?" in done.err and "forgot memories" in done.err
    assert left(run) == [4]


def test_what_a_tag_or_words_find_includes_old_values(run: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    add(run, "profile", "city", "Porto")
    assert run("memories", "delete", "--query", "lisbon", "--yes").code == 0
    every = run("memories", "list", "--status", "all", "--json").json
    assert [one["value"] for one in every] == ["Porto"]


def test_an_unknown_number_among_others_stops_all(run: Run, boats: None) -> None:
    run("notes", "add", "--text", "Buy milk.")
    for noun in ("memories", "notes"):
        before = left(run, noun)
        done = run(noun, "delete", "1", "99", "--yes")
        assert done.code == 1 and "99" in done.err and left(run, noun) == before


@pytest.mark.parametrize("noun", ["memories", "notes", "sessions"])
def test_numbers_or_words_are_needed_and_words_have_to_be_there(
    run: Run, boats: None, noun: str
) -> None:
    for wrong in ((), ("1", "--query", "kayak"), ("--query", " ")):
        refused = run(noun, "delete", *wrong, "--yes")
        assert refused.code == 2 and "--query" in refused.err
    none = run(noun, "delete", "--query", "zebra", "--yes")
    assert none.code == 1 and "nothing was done" in none.err
    assert left(run) == [1, 2, 3, 4]


def test_many_memories_are_one_transaction_and_blanked_elsewhere_as_one_is(env: Env) -> None:
    env.memchat("chat", said="My boat is called Zephyrus.\nMy horse is called Quagga.\n")
    env.memchat("memories", "add", "fact", "boat", "Zephyrus")
    env.memchat("memories", "add", "fact", "horse", "Quagga")
    ids = [str(one["id"]) for one in env.listed("memories", "list")]
    done = env.memchat("memories", "delete", *ids, "--everywhere", "--yes")
    assert done.code == 0, done.err
    said = " ".join(str(message["content"]) for message in env.messages())
    assert "Zephyrus" not in said and "Quagga" not in said


def test_notes_and_sessions_are_deleted_by_numbers_and_words(env: Env) -> None:
    for text in ("Buy milk.", "The MILK is sour.", "Call Bo."):
        env.memchat("notes", "add", "--text", text)
    done = env.memchat("notes", "delete", "--query", "milk", "--yes")
    assert done.code == 0 and "deleted notes 2, 1" in done.err
    assert [note["id"] for note in env.listed("notes", "list")] == [3]
    for said in ("I live in Lisbon.", "I live in Lisbon, as I said.", "I am vegetarian."):
        env.memchat("chat", said=said)
    shown = env.memchat("sessions", "delete", "1", "2", "--dry-run")
    # Each of them proves it alone; once both are gone nothing does.
    assert "goes: 1  You live in Lisbon." in shown.out and "stays" not in shown.out
    assert len(env.listed("sessions", "list")) == 3
    done = env.memchat("sessions", "delete", "--query", "lisbon", "--yes")
    assert done.code == 0, done.err
    assert [session["id"] for session in env.listed("sessions", "list")] == [3]
    assert "Lisbon" not in env.remembered()


def test_what_could_not_be_deleted_is_named_and_the_rest_is_done(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("One.", "Two.", "Three."):
        run("notes", "add", "--text", text)
    delete = Notes.delete

    def failing(self: Notes, note_id: int, **given: float) -> object:
        if note_id == 2:
            raise StoreError("the disk said no")
        return delete(self, note_id, **given)

    monkeypatch.setattr(Notes, "delete", failing)
    done = run("notes", "delete", "1", "2", "3", "--yes", "--json")
    assert done.code == 1 and "not done with 2: the disk said no" in done.err
    assert [one["id"] for one in done.json] == [1, 3] and left(run, "notes") == [2]


@pytest.mark.parametrize(
    ("answer", "kept"), [("accept", ["Lisbon", "a Lisbon flat"]), ("reject", [])]
)
def test_the_inbox_is_answered_by_numbers_and_by_words(
    run: Run, home: Path, typed, answer: str, kept: list[str]
) -> None:
    given = (("city", "Lisbon"), ("home", "a Lisbon flat"), ("allergy", "nuts"))
    with (
        MemChat(settings=Settings(home, embed_model="none")) as mc,
        private.database(mc).write() as tx,
    ):
        own = apps.ensure(tx, Scope("ana")).own
        for key, value in given:
            held = Proposal("it is a guess", memory_type="profile", key=key, value=value)
            proposals.add(tx, own, held)
    assert run("inbox", answer, "1", "99").code == 1 and left(run, "inbox") == [1, 2, 3]
    asked = run("inbox", answer, "--query", "lisbon")
    assert asked.code == 2 and "home: a Lisbon flat" in asked.err
    typed("y\n")
    assert run("inbox", answer, "--query", "lisbon").code == 0
    assert left(run, "inbox") == [3]
    values = [one["value"] for one in run("memories", "list", "--json").json]
    assert sorted(values) == kept  # type: ignore[type-var]
    assert run("inbox", answer, "3").code == 0  # what is named is not asked about
