"""What is pasted into a chat, or typed over several lines, is one message."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.terminal import WAIT, Env, Terminal

if sys.platform == "win32":
    pytest.skip("these tests type into a pseudo-terminal", allow_module_level=True)

PASTE, END = "\x1b[200~", "\x1b[201~"
NEXT = "> "
"""The prompt for the next message."""


def said(env: Env) -> list[object]:
    """What the person said in the one conversation, message by message."""
    return [turn["content"] for turn in env.messages() if turn["role"] == "user"]


def send(terminal: Terminal, keys: str) -> None:
    """Type, and wait for the reply and the prompt behind it."""
    terminal.type(keys)
    terminal.until("not a real model")
    terminal.until(NEXT)


def test_pasted_and_continued_lines_are_one_message_and_an_empty_line_is_none(env: Env) -> None:
    terminal = Terminal(env, "chat")
    first = terminal.until("\n").replace("\x1b[2m", "")
    assert first.startswith("chat: the offline stand-in, on this machine; reading: ")
    terminal.until("ends the conversation.")
    terminal.until(NEXT)
    send(terminal, f"{PASTE}First line.\n\nThird line.{END}\r")
    send(terminal, '"""\rA fenced line.\r\rAnother.\r"""\r')
    terminal.type("It goes on \\\r")
    terminal.until("... ")
    send(terminal, "here.\r")
    terminal.type("exit\r")
    rest = terminal.leave()
    assert terminal.exit_code == 0, rest
    assert said(env) == [
        "First line.\n\nThird line.",
        "A fenced line.\n\nAnother.",
        "It goes on \nhere.",
    ]


def test_a_paste_that_the_terminal_does_not_mark_is_one_message(env: Env) -> None:
    terminal = Terminal(env | {"TERM": "dumb"}, "chat")
    terminal.until("ends the conversation.")
    terminal.until(NEXT)
    send(terminal, "One.\r\rThree.\r")
    send(terminal, "\r\rAfter two empty lines.\r")
    terminal.type("exit\r")
    rest = terminal.leave()
    assert terminal.exit_code == 0, rest
    assert said(env) == ["One.\n\nThree.", "After two empty lines."]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_paste_in_tmux_is_one_message_and_the_shell_runs_none_of_it(
    env: Env, tmp_path: Path
) -> None:
    trap = tmp_path / "run-by-the-shell"
    pasted = f"First line.\n\ntouch {trap}\n"

    def tmux(*args: str, text: str | None = None) -> str:
        command = ["tmux", "-S", str(tmp_path / "tmux"), "-f", os.devnull, *args]
        done = subprocess.run(
            command, env=env, input=text, capture_output=True, text=True, timeout=WAIT, check=True
        )
        return done.stdout

    def until(words: str) -> None:
        deadline = time.monotonic() + WAIT
        while words not in (screen := tmux("capture-pane", "-p")):
            assert time.monotonic() < deadline, f"{words!r} did not come: {screen!r}"
            time.sleep(0.05)

    tmux("new-session", "-d", "-x", "200", "-y", "50", "sh")
    try:
        tmux(
            "send-keys", f"cd {tmp_path} && {sys.executable} -m memchat chat; echo left-$?", "Enter"
        )
        until("ends the conversation.\n>")
        tmux("load-buffer", "-", text=pasted)
        tmux("paste-buffer", "-p")
        until(f"touch {trap}")
        tmux("send-keys", "Enter")
        until("not a real model")
        tmux("send-keys", "exit", "Enter")
        until("left-0")
    finally:
        tmux("kill-server")
    assert said(env) == [pasted]
    assert not trap.exists()
