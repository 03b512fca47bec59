"""The chat on a real terminal: keys, interrupts, questions and pages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.providers import litellm_calls
from tests.support.terminal import WAIT, Env, Terminal, slow_model, unreachable

if sys.platform == "win32":
    pytest.skip("these tests type into a pseudo-terminal", allow_module_level=True)


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """litellm, which a chat loads in a thread that must not outlive a test's warning filters."""
    litellm_calls.litellm()


# --- on a terminal


@pytest.mark.parametrize("goodbye", ["\rexit\r", "\r/quit\r", "bye\r", "\x04", "\x03"])
def test_a_person_ends_the_chat_with_a_key_and_sees_what_was_saved(env: Env, goodbye: str) -> None:
    terminal = Terminal(env, "chat")
    assert "Memory is on" in terminal.until("> ")
    terminal.type("I live in Lisbon.\r")
    terminal.until("\r\n")
    terminal.until("> ")
    if goodbye == "\x03":
        terminal.interrupt()
    else:
        terminal.type(goodbye)
    rest = terminal.leave()
    assert terminal.exit_code == 0, rest
    assert "Saved 1 (merged/updated 0)" in rest
    assert "I live in Lisbon" in rest
    assert "Traceback" not in terminal.seen
    assert [s["status"] for s in env.listed("sessions", "list")] == ["extracted"]


def test_a_person_sees_which_memories_were_used(env: Env) -> None:
    env.memchat("memories", "add", "profile", "city", "Lisbon")
    terminal = Terminal(env, "chat")
    terminal.until("> ")
    terminal.type("Which city is it?\r")
    assert "city" in terminal.until("remembered: city")
    terminal.until("> ")
    terminal.type("exit\r")
    terminal.leave()
    assert terminal.exit_code == 0


def test_ctrl_c_during_a_reply_keeps_what_came_and_returns_to_the_prompt(env: Env) -> None:
    with slow_model(["The best ", "time is "]) as (address, asked):
        slow = env | {
            "MEMCHAT_CHAT_MODEL": "openai/some-model",
            "MEMCHAT_EXTRACT_MODEL": "offline/extract",
            "OPENAI_BASE_URL": address,
            "OPENAI_API_KEY": "sk-none",
        }
        terminal = Terminal(slow, "chat")
        terminal.until("> ")
        terminal.type("When is the best time to see Lisbon?\r")
        terminal.until("time is")
        assert asked.wait(WAIT)
        terminal.type("\x03")
        terminal.until("(stopped)")
        terminal.until("> ")
        terminal.type("exit\r")
        rest = terminal.leave()
    assert terminal.exit_code == 0, rest
    assert [(m["role"], m["status"]) for m in env.messages()] == [
        ("user", "complete"),
        ("assistant", "partial"),
    ]
    assert str(env.messages()[1]["content"]).startswith("The best time is")


def test_a_failing_turn_on_a_terminal_returns_to_the_prompt(env: Env) -> None:
    terminal = Terminal(env | unreachable("CHAT"), "chat")
    terminal.until("> ")
    terminal.type("hello\r")
    terminal.until("memchat: ")
    terminal.until("> ")
    terminal.type("\x04")
    terminal.leave()
    assert terminal.exit_code == 0
    assert "Traceback" not in terminal.seen


@pytest.mark.parametrize(("answer", "left", "code"), [("y", 0, 0), ("n", 1, 2), ("", 1, 2)])
def test_a_person_is_asked_before_something_is_forgotten(
    env: Env, answer: str, left: int, code: int
) -> None:
    env.memchat("memories", "add", "profile", "city", "Lisbon")
    terminal = Terminal(env, "memories", "delete", "1")
    assert "You live in Lisbon." in terminal.until("[y/N]")
    terminal.type(f"{answer}\r")
    terminal.leave()
    assert terminal.exit_code == code
    assert len(env.listed("memories", "list")) == left


def test_a_long_list_is_paged_on_a_terminal_only(env: Env, tmp_path: Path) -> None:
    with MemChat(env["MEMCHAT_HOME"]) as mc:
        for i in range(30):
            mc.user("ana").memories.add("fact", "thing", f"number {i}")
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED; cat\n")
    pager.chmod(0o755)
    paged = env | {"PAGER": str(pager), "LINES": "24", "COLUMNS": "80"}
    terminal = Terminal(paged, "memories", "list")
    assert "PAGED" in terminal.leave()
    assert "PAGED" not in env.memchat("memories", "list", PAGER=str(pager)).out


def test_a_stopped_command_exits_with_130_and_no_traceback(env: Env) -> None:
    terminal = Terminal(env, "memories", "clear")
    terminal.until("[y/N]")
    terminal.interrupt()
    rest = terminal.leave()
    assert terminal.exit_code == 130
    assert "Traceback" not in rest


def test_a_terminated_chat_keeps_what_was_said(env: Env) -> None:
    terminal = Terminal(env, "chat")
    terminal.until("> ")
    terminal.type("I live in Lisbon.\r")
    terminal.until("\r\n")
    terminal.until("> ")
    os.kill(terminal.pid, signal.SIGHUP)
    terminal.leave()
    assert "I live in Lisbon." in [m["content"] for m in env.messages()]


def test_ctrl_c_while_the_conversation_is_read_keeps_it_for_later(env: Env) -> None:
    with slow_model([]) as (address, asked):
        slow = {
            "MEMCHAT_CHAT_MODEL": "offline/chat",
            "MEMCHAT_EXTRACT_MODEL": "openai/some-model",
            "OPENAI_BASE_URL": address,
            "OPENAI_API_KEY": "sk-none",
        }
        terminal = Terminal(env | slow, "chat")
        terminal.until("> ")
        terminal.type("I live in Lisbon.\r")
        terminal.until("\r\n")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.until("Reading the conversation")
        assert asked.wait(WAIT)
        terminal.type("\x03")
        rest = terminal.leave()
    assert terminal.exit_code == 130
    assert "read again later" in rest and "Traceback" not in rest
    assert "Saved 1" in env.memchat("jobs", "run").out
    assert "Lisbon" in env.remembered()


@pytest.mark.slow
def test_a_reader_that_leaves_early_loses_no_part_of_the_reply(env: Env) -> None:
    command = f"printf 'hello\\nhello\\n' | {sys.executable} -m memchat chat | head -c 1"
    done = subprocess.run(
        ["sh", "-c", command], env=env, capture_output=True, text=True, timeout=WAIT
    )
    assert "Traceback" not in done.stderr and "memchat: " not in done.stderr, done.stderr
    assert [m["role"] for m in env.messages()] == ["user", "assistant"]


def test_a_person_tells_the_chat_to_remember_to_list_and_to_forget(env: Env) -> None:
    terminal = Terminal(env, "chat")
    terminal.until("> ")
    terminal.type("remember that I am allergic to nuts\r")
    terminal.until("Saved: You are allergic to nuts.")
    terminal.until("memory: added #1 allergy")
    terminal.until("> ")
    terminal.type("what do you remember about me?\r")
    terminal.until("- #1 You are allergic to nuts (said ")
    terminal.until("> ")
    terminal.type("forget my allergy\r")
    terminal.until("Forget it for good? (yes or no)")
    terminal.until("> ")
    assert env.remembered() == "nuts"
    terminal.type("yes\r")
    terminal.until("Forgotten: 1 memory.")
    terminal.until("memory: forgotten 1")
    terminal.until("> ")
    terminal.type("\x04")
    terminal.leave()
    assert terminal.exit_code == 0 and env.remembered() == ""
    for path in Path(env["MEMCHAT_HOME"]).rglob("*"):
        assert not path.is_file() or b"nuts" not in path.read_bytes(), path


def test_a_yes_in_the_chat_may_have_more_behind_it(env: Env) -> None:
    said = "remember that I am vegan\nforget my diet\nYes. What do you remember about me?\n"
    done = env.memchat("chat", said=said)
    assert "Forgotten: 1 memory.\n\nI remember nothing about you yet." in done.out
    assert done.code == 0 and env.remembered() == ""


def test_commands_work_in_a_piped_chat_and_a_no_keeps_everything(env: Env) -> None:
    done = env.memchat("chat", said="remember that I am vegan\nforget my diet\nno\nyes\n")
    assert "Saved: Your diet is vegan." in done.out and "Nothing was forgotten." in done.out
    assert done.err.count("memory: ") == 1 and "memory: added #1 diet" in done.err
    assert done.code == 0 and env.remembered() == "vegan"


def test_a_command_with_memory_off_says_so(env: Env) -> None:
    env.memchat("apps", "off")
    done = env.memchat("chat", said="remember that I am vegan\nwhat do you know about me?\n")
    assert done.out.count("Memory is off for the app default") == 2
    assert "memory: " not in done.err and env.remembered() == ""
