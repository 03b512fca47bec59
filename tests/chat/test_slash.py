"""Commands typed behind a slash: what is one, and what a conversation does at one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memchat import InputError
from memchat.chat import command_words
from memchat.testing import ScriptedModel
from tests.support.paths import ROOT
from tests.support.store import Opener


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ("/help", ("help", "")),
        ("/Memories ", ("memories", "")),
        ("/forget my city", ("forget", "my city")),
        ("/quit", ("exit", "")),
        ("/note one\ntwo", ("note", "one\ntwo")),
    ],
)
def test_a_command_is_known_by_its_name(message: str, read: tuple[str, str]) -> None:
    assert command_words.typed(message) == command_words.Slash(*read)


@pytest.mark.parametrize("message", ["/memoires", "/why-not", "/clear all of it"])
def test_an_unknown_command_is_said_with_what_to_do(message: str) -> None:
    if message == "/why-not":
        assert command_words.typed(message) is None
        return
    with pytest.raises(InputError, match=r"there is no command /[a-z]+; /help lists them"):
        command_words.typed(message)


@pytest.mark.parametrize(
    "message", ["/usr/bin/env python", "/s", " /memoires", "1/2 cup", "/* a */", "/dev\nis full"]
)
def test_other_texts_with_a_slash_are_messages(message: str) -> None:
    assert command_words.typed(message) is None


def test_no_text_of_the_corpora_is_taken_for_a_command() -> None:
    files = {*Path(ROOT, "tests/data").glob("*.jsonl")} - {ROOT / "tests/data/attacks.jsonl"}
    said = [text for file in sorted(files) for text in _texts(file)]
    assert len(said) > 10_000
    typed = [one for one in map(command_words.command, said) if one is not None and one.typed]
    assert typed == [] == [text for text in said if _is_read(text)]


def test_forget_without_words_asks_for_them() -> None:
    with pytest.raises(InputError, match="/forget WORDS"):
        command_words.typed("/forget")


def test_commands_to_memory_ask_no_model_also_one_with_tools(open_store: Opener) -> None:
    model = ScriptedModel(tools=True)
    ana = open_store(chat_model=model).user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    with ana.chat() as chat:
        assert "You live in Lisbon" in chat.send("/memories").read()
        assert "Forget it for good?" in chat.send("/forget Lisbon").read()
        # Another command is no answer to the question.
        said = chat.send("/memories").read()
        assert said.startswith("Nothing was forgotten.") and "You live in Lisbon" in said
        assert "Forget it for good?" in chat.send("/forget my city").read()
        assert "Forgotten: 1 memory." in chat.send("yes").read()
    assert not [one for one in model.requests if one.purpose == "chat"]
    assert ana.memories.list() == []


def test_commands_to_memory_learn_nothing_and_say_so_where_memory_is_off(
    open_store: Opener,
) -> None:
    ana = open_store().user("ana")
    with ana.chat(incognito=True) as chat:
        assert "incognito" in chat.send("/memories").read()
    ana.set_memory(False)
    with ana.chat() as chat:
        assert "I do not look into it" in chat.send("/forget Lisbon").read()


def _texts(file: Path) -> list[str]:
    found: list[str] = []

    def walk(part: object) -> None:
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, dict | list):
            for one in part.values() if isinstance(part, dict) else part:
                walk(one)

    for line in file.read_text("utf-8").splitlines():
        walk(json.loads(line))
    return found


def _is_read(text: str) -> bool:
    try:
        return (found := command_words.typed(text)) is not None and found.name != "note"
    except InputError:
        return True
