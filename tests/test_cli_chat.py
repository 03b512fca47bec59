"""The chat as it is typed and piped: real processes, a real terminal, servers on loopback only."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from memchat import MemChat
from memchat.cli import main
from memchat.providers import litellm_calls

if sys.platform == "win32":
    pytest.skip("these tests type into a pseudo-terminal", allow_module_level=True)

import pty

WAIT = 120.0
TALK = "I live in Lisbon.\nI am vegetarian.\n"


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


class Env(dict[str, str]):
    """The environment a command runs in, and the commands run in this process with it."""

    def __init__(self, values: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(values)
        self.capsys = capsys

    def memchat(self, *args: str, said: str | bytes = b"", **changed: str) -> Done:
        """One whole command with its standard input piped in."""
        raw = said.encode() if isinstance(said, str) else said
        with pytest.MonkeyPatch.context() as patch:
            for name in os.environ.keys() - self.keys():
                patch.delenv(name)
            for name, value in {**self, **changed}.items():
                patch.setenv(name, value)
            patch.chdir(Path(self["MEMCHAT_HOME"]).parent)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))
            self.capsys.readouterr()
            code = main(args)
            captured = self.capsys.readouterr()
        return Done(code, captured.out, captured.err)

    def listed(self, *args: str) -> list[dict[str, object]]:
        """What a command lists as JSON."""
        done = self.memchat(*args, "--json")
        assert done.code == 0, done.err
        return json.loads(done.out)  # type: ignore[no-any-return]

    def remembered(self) -> str:
        return " ".join(str(memory["value"]) for memory in self.listed("memories", "list"))

    def messages(self, session: int = 1) -> list[dict[str, object]]:
        shown = self.memchat("sessions", "show", str(session), "--json")
        return json.loads(shown.out)["messages"]  # type: ignore[no-any-return]


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """litellm, which a chat loads in a thread that must not outlive a test's warning filters."""
    litellm_calls.litellm()


@pytest.fixture
def env(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Env:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MEMCHAT_") and not name.endswith("_API_KEY")
    }
    ours = {
        "MEMCHAT_HOME": str(tmp_path / "store"),
        "MEMCHAT_USER": "ana",
        "MEMCHAT_EMBED_MODEL": "none",
        "MEMCHAT_TIMEZONE": "UTC",
        "TERM": "xterm",
    }
    return Env(kept | ours, capsys)


class Terminal:
    """A person at a terminal: sees everything the program prints, and types."""

    def __init__(self, env: dict[str, str], *args: str) -> None:
        self.seen, self.read = "", 0
        self.exit_code: int | None = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(Path(env["MEMCHAT_HOME"]).parent)
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                # A run in the background ignores Ctrl-C; a person's terminal does not.
                signal.signal(number, signal.SIG_DFL)
            os.execve(sys.executable, [sys.executable, "-m", "memchat", *args], env)

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C, and again where nothing comes of it: between the prompt and its wait the
        interpreter's line editor loses a signal."""
        self.type("\x03")
        while "\n" not in self.seen[self.read :]:
            if not select.select([self.fd], [], [], 3.0)[0]:
                self.type("\x03")
            elif not self._read():
                break

    def until(self, words: str) -> str:
        """Read until the words show up; what was printed up to there since the last time."""
        deadline = time.monotonic() + WAIT
        while words not in self.seen[self.read :]:
            left = self.seen[self.read :]
            assert time.monotonic() < deadline, f"{words!r} did not come: {left!r}"
            assert self._read(), f"ended before {words!r}: {left!r}"
        start, self.read = self.read, self.seen.index(words, self.read) + len(words)
        return self.seen[start : self.read]

    def leave(self) -> str:
        """Read to the end of the program; what was printed since the last time."""
        while self._read():
            pass
        deadline = time.monotonic() + WAIT
        while (ended := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                pytest.fail(f"it did not end after {self.seen[self.read :]!r}")
            time.sleep(0.01)
        _, status = ended
        self.exit_code = os.waitstatus_to_exitcode(status)
        os.close(self.fd)
        return self.seen[self.read :]

    def _read(self) -> bool:
        ready, _, _ = select.select([self.fd], [], [], WAIT)
        try:
            got = os.read(self.fd, 65536) if ready else b""
        except OSError:  # the other side is closed
            got = b""
        self.seen += got.decode(errors="replace")
        return bool(got)


@contextmanager
def slow_model(pieces: list[str]) -> Iterator[tuple[str, Event]]:
    """An OpenAI-compatible server whose reply starts with these pieces and then does not end."""
    asked, closing = Event(), Event()

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for piece in pieces:
                choice = {"index": 0, "delta": {"role": "assistant", "content": piece}}
                chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
                self.wfile.write(f"data: {json.dumps(chunk | {'choices': [choice]})}\n\n".encode())
                self.wfile.flush()
            asked.set()
            closing.wait(WAIT)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        closing.set()
        server.shutdown()
        server.server_close()


def unreachable(*what: str) -> dict[str, str]:
    """Settings with some models at an address where nobody listens."""
    return {
        "MEMCHAT_CHAT_MODEL": "offline/chat",
        "MEMCHAT_EXTRACT_MODEL": "offline/extract",
        **{f"MEMCHAT_{name}_MODEL": "openai/some-model" for name in what},
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_API_KEY": "sk-none",
    }


# --- piped


def test_the_first_line_of_a_chat_names_an_address_that_is_not_the_provider_s_own(
    env: Env,
) -> None:
    done = env.memchat("chat", **unreachable("CHAT"))
    first = done.err.splitlines()[0]
    assert first == "Your words go to http://127.0.0.1:9/v1 (OPENAI_BASE_URL), not to OpenAI."
    assert "Your words go to" not in env.memchat("chat").err


def test_doctor_and_config_name_an_address_that_is_not_the_provider_s_own(env: Env) -> None:
    for command in ("doctor", "config"):
        done = env.memchat(command, **unreachable("CHAT"))
        assert "Your words go to http://127.0.0.1:9/v1 (OPENAI_BASE_URL)" in done.out + done.err


def test_each_piped_line_is_a_turn_and_the_end_prints_what_was_saved(env: Env) -> None:
    done = env.memchat("chat", said=TALK)
    assert done.code == 0, done.err
    assert re.search(r"^Saved 2 \(merged/updated 0\)$", done.out, re.M), done.out
    assert re.search(r"^Conversation: I live in Lisbon", done.out, re.M), done.out
    assert re.search(r"Lisbon.*“I live in Lisbon", done.out)
    assert [m["role"] for m in env.messages()] == ["user", "assistant"] * 2
    assert "Lisbon" in env.remembered()
    assert [s["status"] for s in env.listed("sessions", "list")] == ["extracted"]


def test_a_conversation_shows_what_it_took_of_each_model(env: Env) -> None:
    env.memchat("chat", said="I live in Lisbon.\n")
    shown = env.memchat("sessions", "show", "1").out
    took = r"1 call, \d+ tokens in, \d+ out, \d+\.\d s, cost \$0$"
    assert re.search(rf"^used  chat, offline/chat: {took}", shown, re.M), shown
    assert re.search(rf"^used  extract, offline/extract: {took}", shown, re.M), shown
    usage = json.loads(env.memchat("sessions", "show", "1", "--json").out)["usage"]
    assert [total["purpose"] for total in usage] == ["chat", "extract"]
    assert all(total["seconds"] >= 0 and total["prompt_tokens"] > 0 for total in usage)


def test_notices_of_a_piped_chat_stay_off_the_output(env: Env) -> None:
    done = env.memchat("chat", said="I live in Lisbon.\n")
    assert "Memory is on" in done.err and "memchat apps off" in done.err
    assert "stand-in" in done.err
    assert "Memory is on" not in done.out and "stand-in" not in done.out
    assert "\x1b" not in done.out + done.err


def test_the_first_run_notice_comes_once(env: Env) -> None:
    assert "Memory is on" in env.memchat("chat", said="hello\n").err
    assert "Memory is on" not in env.memchat("chat", said="hello\n").err


def test_a_second_conversation_knows_the_first(env: Env) -> None:
    env.memchat("chat", said=TALK)
    done = env.memchat("chat", said="Where do I live?\n")
    assert "Lisbon" in done.out
    assert re.search(r"^remembered: ", done.err, re.M), done.err


@pytest.mark.parametrize("goodbye", ["", "exit", "QUIT"])
def test_a_goodbye_ends_a_piped_chat(env: Env, goodbye: str) -> None:
    done = env.memchat("chat", said=f"I live in Lisbon.\n{goodbye}\nI live in Porto.\n")
    assert done.code == 0
    assert [m["content"] for m in env.messages()][::2] == ["I live in Lisbon."]
    assert "Saved 1" in done.out


def test_a_chat_in_which_nothing_is_said_ends_quietly(env: Env) -> None:
    done = env.memchat("chat")
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    assert env.listed("memories", "list") == []


def test_an_incognito_chat_leaves_nothing_behind(env: Env) -> None:
    done = env.memchat("chat", "--incognito", said=TALK)
    assert done.code == 0, done.err
    assert "incognito" in done.err.lower()
    assert env.listed("sessions", "list") == []
    assert env.listed("memories", "list", "--status", "all") == []


def test_with_memory_off_the_chat_says_so_and_saves_nothing(env: Env) -> None:
    env.memchat("apps", "off")
    done = env.memchat("chat", said=TALK)
    assert done.code == 0, done.err
    assert "Nothing is remembered: memory is off for the app default" in done.err
    assert "Saved 1" not in done.out and "Saved 2" not in done.out
    assert env.listed("memories", "list", "--status", "all") == []


def test_a_resumed_conversation_goes_on_in_the_same_session(env: Env) -> None:
    env.memchat("chat", said="I live in Lisbon.\n")
    done = env.memchat("chat", "--resume", "1", said="I am vegetarian.\n")
    assert "Going on with session 1 “I live in Lisbon" in done.err
    assert "Saved 1" in done.out, done.out + done.err
    assert len(env.messages()) == 4
    assert len(env.listed("sessions", "list")) == 1


def test_strange_input_is_a_turn_like_any_other(env: Env) -> None:
    strange = "‏שלום 🧑🏽‍🚀\n".encode() + b"half \xff\xfe bytes\n" + b"nul \x00 here\n"
    done = env.memchat("chat", said=strange)
    assert done.code == 0, done.err
    assert len(env.messages()) == 6


def test_a_huge_line_is_answered_or_refused_in_one_line(env: Env) -> None:
    done = env.memchat("chat", said="word " * 200_000 + "\nI live in Lisbon.\n")
    assert "Traceback" not in done.err
    if done.code:
        assert re.search(r"^memchat: .+$", done.err, re.M)
    assert "I live in Lisbon." in [m["content"] for m in env.messages()]


# --- faults


def test_an_unknown_session_cannot_be_resumed(env: Env) -> None:
    done = env.memchat("chat", "--resume", "999")
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"memchat: .+\n", done.err)


def test_a_failing_provider_keeps_the_message_and_is_one_line(env: Env) -> None:
    done = env.memchat("chat", said="I live in Lisbon.\n", **unreachable("CHAT"))
    assert done.code == 1
    assert "Traceback" not in done.err
    assert len(re.findall(r"^memchat: .+$", done.err, re.M)) == 1, done.err
    assert [m["content"] for m in env.messages() if m["role"] == "user"] == ["I live in Lisbon."]


def test_a_failed_extraction_is_kept_shown_and_done_later(env: Env) -> None:
    done = env.memchat("chat", said="I live in Lisbon.\n", **unreachable("EXTRACT"))
    assert done.code == 0
    (line,) = re.findall(r"^memchat: .+$", done.err, re.M)
    assert "read again later" in line
    (job,) = [job for job in env.listed("jobs", "status") if job["kind"] == "extract"]
    assert job["status"] in ("pending", "failed")
    env.memchat("jobs", "retry")
    failed = env.memchat("jobs", "run", **unreachable("EXTRACT"))
    assert (failed.code, failed.out) == (1, "0 done, 1 failed\n")
    assert len(re.findall(r"^memchat: job 1 \(extract of session 1\): .+$", failed.err, re.M)) == 1
    env.memchat("jobs", "retry")
    again = env.memchat("jobs", "run")
    assert again.code == 0, again.err
    assert "Saved 1" in again.out, again.out
    assert "Lisbon" in env.remembered()


def test_a_missing_key_is_one_line(env: Env) -> None:
    done = env.memchat("chat", said="hello\n", MEMCHAT_CHAT_MODEL="openai/some-model")
    assert done.code == 1
    assert "Traceback" not in done.err
    assert re.search(r"^memchat: .*OPENAI_API_KEY", done.err, re.M), done.err


def test_a_killed_chat_loses_nothing(env: Env) -> None:
    with slow_model(["Well"]) as (address, asked):
        slow = env | {
            "MEMCHAT_CHAT_MODEL": "openai/some-model",
            "OPENAI_BASE_URL": address,
            "OPENAI_API_KEY": "sk-none",
        }
        chat = subprocess.Popen(
            [sys.executable, "-m", "memchat", "chat"],
            env=slow,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert chat.stdin is not None
        chat.stdin.write(b"I live in Lisbon.\n")
        chat.stdin.flush()
        assert asked.wait(WAIT)
        chat.kill()
        chat.wait()
        chat.stdin.close()
    assert [m["content"] for m in env.messages() if m["role"] == "user"] == ["I live in Lisbon."]


# --- on a terminal


@pytest.mark.parametrize("goodbye", ["\r", "\x04", "\x03"])
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
    terminal.type("Where do I live?\r")
    assert "city" in terminal.until("remembered: city")
    terminal.until("> ")
    terminal.type("\r")
    terminal.leave()
    assert terminal.exit_code == 0


def test_ctrl_c_during_a_reply_keeps_what_came_and_returns_to_the_prompt(
    env: Env,
) -> None:
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
        terminal.type("\r")
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


@pytest.mark.parametrize(("answer", "left", "code"), [("y", 0, 0), ("n", 1, 1), ("", 1, 1)])
def test_a_person_is_asked_before_something_is_forgotten(
    env: Env, answer: str, left: int, code: int
) -> None:
    env.memchat("memories", "add", "profile", "city", "Lisbon")
    terminal = Terminal(env, "memories", "delete", "1")
    assert "city: Lisbon" in terminal.until("[y/N]")
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
    terminal.until("Saved: allergy: nuts.")
    terminal.until("memory: added #1 allergy")
    terminal.until("> ")
    terminal.type("what do you remember about me?\r")
    terminal.until("- #1 allergy: nuts (said ")
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
    assert "Saved: diet: vegan." in done.out and "Nothing was forgotten." in done.out
    assert done.err.count("memory: ") == 1 and "memory: added #1 diet" in done.err
    assert done.code == 0 and env.remembered() == "vegan"


def test_a_command_with_memory_off_says_so(env: Env) -> None:
    env.memchat("apps", "off")
    done = env.memchat("chat", said="remember that I am vegan\nwhat do you know about me?\n")
    assert done.out.count("Memory is off for the app default") == 2
    assert "memory: " not in done.err and env.remembered() == ""
