"""The chat as a process of its own and on a real terminal."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from memchat.cli import main
from tests.support import empty_store
from tests.support.cli import Done
from tests.support.forks import MEMCHAT, Forked

WAIT = 120.0
TALK = "I live in Lisbon.\nI am vegetarian.\n"


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


@pytest.fixture
def env(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Env:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MEMCHAT_") and not name.endswith("_API_KEY")
    }
    ours = {
        "MEMCHAT_HOME": str(empty_store.place(tmp_path / "store")),
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
        self.fd, side = os.openpty()
        self._process = Forked(
            MEMCHAT,
            args,
            env=env,
            cwd=Path(env["MEMCHAT_HOME"]).parent,
            stdio=[side] * 3,
            terminal=True,
        )
        self.pid = self._process.pid
        os.close(side)

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
        try:
            self.exit_code = self._process.wait(WAIT)
        except TimeoutError:
            self._process.send_signal(signal.SIGKILL)
            pytest.fail(f"it did not end after {self.seen[self.read :]!r}")
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
