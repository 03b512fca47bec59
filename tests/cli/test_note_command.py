"""``/note`` in ``memchat chat``."""

from __future__ import annotations

import io
import sys

import pytest

from memchat import MemChat
from memchat.chat import command_words
from memchat.config import Settings
from tests.support.cli import Run

PASTE = "The lease of the warehouse ends in June. " * 60


@pytest.fixture
def talk(run: Run, monkeypatch: pytest.MonkeyPatch):
    """One chat with these lines; what it printed."""

    def lines(*said: str, options: tuple[str, ...] = ()) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in said)))
        return run("chat", *options).err

    return lines


def kept(home) -> list[tuple[str | None, str]]:
    with MemChat(settings=Settings(home, embed_model="none")) as mc:
        notes = mc.user("ana").notes
        return [(note.title, notes.get(note.id).text) for note in notes.list()]


def test_a_long_message_is_offered_and_kept(talk, home) -> None:
    told = talk(PASTE, '/note --title "The lease"', "Hello.")
    assert "To keep this message as a note: /note" in told
    assert "kept as note 1 “The lease”; nothing is learned about you from it" in told
    assert kept(home) == [("The lease", PASTE)]
    assert told.count("To keep this message") == 1


def test_plain_words_keep_the_last_long_message_also_after_a_short_one(talk, home) -> None:
    talk(PASTE, "Thanks.", "Keep this as a note, please.")
    assert [text for _, text in kept(home)] == [PASTE]


def test_a_text_behind_it_is_kept_and_is_no_message_of_the_chat(talk, home, run: Run) -> None:
    talk("Hello.", "/note --title=Tea I am allergic to nuts.")
    assert kept(home) == [("Tea", "I am allergic to nuts.")]
    assert "allergic" not in run("sessions", "show", "1").out
    assert run("memories", "list", "--json").json == []


def test_a_text_without_words_is_no_note_and_the_chat_goes_on(talk, home) -> None:
    assert "the text has no words" in talk("/note !!!", "/note Buy milk.")
    assert kept(home) == [(None, "Buy milk.")]


def test_without_a_long_message_it_is_said_how_to_give_a_text(talk, home) -> None:
    assert "write the text behind /note" in talk("Hello.", "/note")
    assert kept(home) == []


def test_an_incognito_chat_keeps_no_note(talk, home) -> None:
    told = talk(PASTE, "/note", "/note Some words.", options=("--incognito",))
    assert told.count("an incognito conversation keeps nothing") == 2
    assert kept(home) == [] and "To keep this message" not in told


@pytest.mark.parametrize(
    "message", [" /note", "Should I keep this as a note?", "a /note", "keep this as a note for Jo"]
)
def test_other_messages_are_no_command(message: str) -> None:
    assert command_words.typed(message) is None


@pytest.mark.parametrize("message", ["Speichere das als Notiz.", "save it as a note", "/NOTE"])
def test_the_command_in_other_words(message: str) -> None:
    assert command_words.typed(message) == command_words.Slash("note")
