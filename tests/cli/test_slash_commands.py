"""Commands behind a slash in ``memchat chat``."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat.chat import command_words
from memchat.providers import litellm_calls
from tests.support.terminal import Env


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """litellm, which a chat loads in a thread that must not outlive a test's warning filters."""
    litellm_calls.litellm()


def test_help_lists_every_command_and_begins_no_session(env: Env) -> None:
    done = env.memchat("chat", said="/help\n")
    assert done.code == 0, done.err
    for name in command_words.COMMANDS:
        assert f"\n/{name} " in f"\n{done.out}"
    assert env.listed("sessions", "list") == []


def test_an_unknown_command_is_said_and_the_chat_goes_on(env: Env) -> None:
    done = env.memchat("chat", said="/memoires\nI live in Lisbon.\n")
    assert "memchat: there is no command /memoires; /help lists them" in done.err
    assert done.code == 1  # one line had no answer
    assert [m["content"] for m in env.messages()][::2] == ["I live in Lisbon."]


def test_memories_and_forget_are_carried_out_at_once(env: Env) -> None:
    env.memchat("memories", "add", "profile", "city", "Lisbon")
    done = env.memchat("chat", said="/memories\n/forget city\nyes\n/memories\n")
    assert "You live in Lisbon" in done.out and "Forgotten: 1 memory." in done.out
    assert "I remember nothing about you yet." in done.out
    assert env.listed("memories", "list") == []


def test_why_explains_the_last_reply_of_this_chat(env: Env) -> None:
    env.memchat("memories", "add", "profile", "city", "Lisbon")
    done = env.memchat("chat", said="/why\nWhich city is it?\n/why\n")
    assert "there is no reply in this chat yet" in done.err
    assert "to      Which city is it?" in done.out and "city: Lisbon" in done.out
    other = env.memchat("chat", "--incognito", said="Hello.\n/why\n")
    assert "an incognito chat keeps no record" in other.err


def test_incognito_ends_the_chat_and_begins_one_that_keeps_nothing(env: Env) -> None:
    done = env.memchat("chat", said="I live in Lisbon.\n/incognito\nMy boat is called Zephyrus.\n")
    assert done.code == 0, done.err
    assert "Saved 1" in done.out and "nothing of this conversation is kept" in done.err
    assert [m["content"] for m in env.messages()][::2] == ["I live in Lisbon."]
    assert len(env.listed("sessions", "list")) == 1
    files = [file for file in Path(env["MEMCHAT_HOME"]).rglob("*") if file.is_file()]
    assert b"Zephyrus" not in b"".join(file.read_bytes() for file in files)
