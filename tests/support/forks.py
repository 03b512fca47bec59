"""Programs as processes of their own that are at work within milliseconds.

They are forked from a process that has imported everything, as a new interpreter imports for
seconds. What the start itself costs or needs is tested with new interpreters.

    python -m tests.support.forks FD    serves the socket with that number
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import typer

import memchat
import ui
from memchat.cli import app
from memchat.providers import litellm_calls
from tests.support import command_tree
from tests.support.paths import ROOT
from tests.support.ui import scan

MEMCHAT = "import sys; from memchat.cli import main; sys.exit(main(sys.argv[1:]))"
_PIECE = 1 << 16
"""Bytes that are read of a request at a time."""
_ASKING = threading.Lock()


class Forked:
    """``python -c CODE ARGS`` without its imports; used like ``subprocess.Popen``.

    ``stdio`` are its standard input, output and error: three files or numbers of files. With
    ``terminal`` the first of them is a terminal, and becomes the one that controls the process.
    """

    def __init__(
        self,
        code: str,
        args: Sequence[str],
        *,
        env: dict[str, str],
        cwd: Path,
        stdio: Sequence[int],
        terminal: bool = False,
    ) -> None:
        self.returncode: int | None = None
        self._told, tell = os.pipe()
        asked = {"code": code, "args": list(args), "env": env, "cwd": str(cwd)}
        request = json.dumps(asked | {"terminal": terminal}).encode() + b"\n"
        with _ASKING:  # the requests of two threads must not mix
            line, process = _template()
            sent = socket.send_fds(line, [request], [*stdio, tell])
            line.sendall(request[sent:])
            os.close(tell)
            pid = os.read(self._told, 20)
        if not pid:
            raise ChildProcessError(f"what forks the programs has ended with {process.poll()}")
        self.pid = int(pid)

    def poll(self) -> int | None:
        """How it ended, as ``Popen.returncode`` tells it, or None."""
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        """Wait until it ends. Raises TimeoutError."""
        code = self._ended(timeout)
        if code is None:
            raise TimeoutError(f"it did not end within {timeout:g} s")
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _ended(self, seconds: float) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            self.returncode = int(os.read(self._told, 20))
            os.close(self._told)
        return self.returncode


class Piped(Forked):
    """The same, with a pipe for what it reads and two for what it writes, which is text."""

    def __init__(self, code: str, args: Sequence[str], *, env: dict[str, str], cwd: Path) -> None:
        (its_in, to_in), (out, its_out), (err, its_err) = (os.pipe() for _ in range(3))
        super().__init__(code, args, env=env, cwd=cwd, stdio=[its_in, its_out, its_err])
        for end in (its_in, its_out, its_err):
            os.close(end)
        self.stdin = open(to_in, "w")  # noqa: SIM115
        self.stdout, self.stderr = open(out), open(err)  # noqa: SIM115

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Close its input; what it writes from now on, until it ends. Raises TimeoutError."""
        with contextlib.suppress(BrokenPipeError):
            self.stdin.close()
        with ThreadPoolExecutor(2) as pool, self.stdout, self.stderr:
            out, err = pool.map(lambda stream: stream.read(), (self.stdout, self.stderr))
            self.wait(timeout)
        return out, err


@functools.cache
def _template() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The process that the programs are forked from, and the line to it; it ends with this one."""
    if not hasattr(os, "fork"):
        import pytest  # not among what the programs find imported

        pytest.skip("this system cannot fork a process")
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tests.support.forks", str(theirs.fileno())]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    # What a test has set is for its own program, which is given it.
    private = ("MEMCHAT_", "OPENAI_", "GEMINI_", "GOOGLE_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    process = subprocess.Popen(
        command,
        cwd="/",  # Streamlit reads files of the working folder
        env=env | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    theirs.close()
    return ours, process


# In the process that is forked


def _serve(line: socket.socket) -> None:
    """Fork a program for each request, until the other side closes the line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for programs
    while True:
        asked, files, *_ = socket.recv_fds(line, _PIECE, 4)
        while asked and not asked.endswith(b"\n"):
            more = line.recv(_PIECE)
            asked = asked + more if more else b""
        if not asked:
            return
        if os.fork() == 0:
            line.close()
            _begin(json.loads(asked), files)
        for file in files:
            os.close(file)


def _begin(asked: dict[str, Any], files: list[int]) -> NoReturn:
    """Run the program in a process of its own, and tell its number and how it ended. It is killed
    when nobody is left to be told, as after a test run that was killed."""
    *stdio, tell = files
    changed, change = os.pipe()
    os.set_blocking(change, False)
    signal.set_wakeup_fd(change)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for file in (tell, changed, change):
            os.close(file)
        _run(asked, stdio)
    for file in stdio:
        os.close(file)
    with contextlib.suppress(BrokenPipeError):
        os.write(tell, str(pid).encode())
    news = select.poll()
    news.register(changed, select.POLLIN)
    news.register(tell, 0)  # tells of its other end alone
    if changed not in dict(news.poll()):
        os.kill(pid, signal.SIGKILL)
    ended = os.waitpid(pid, 0)[1]
    with contextlib.suppress(BrokenPipeError):
        os.write(tell, str(os.waitstatus_to_exitcode(ended)).encode())
    os._exit(0)


def _run(asked: dict[str, Any], stdio: list[int]) -> NoReturn:
    # A run in the background ignores Ctrl-C; a program that a person starts does not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if asked["terminal"]:
        os.login_tty(os.dup(stdio[0]))
    for number, file in enumerate(stdio):
        os.dup2(file, number)
        os.close(file)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        mode, lines = ("r", False) if number == 0 else ("w", number == 2 or os.isatty(number))
        new = open(  # noqa: SIM115
            number, mode, encoding=old.encoding, errors=old.errors, closefd=False,
            buffering=1 if lines else -1,
        )  # fmt: skip
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:0] = [path for path in paths if path not in sys.path]
    importlib.invalidate_caches()
    sys.argv = ["-c", *asked["args"]]
    try:
        exec(asked["code"], {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    # As the interpreter does, but for clearing up all that was imported, which takes seconds.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _import_everything() -> None:
    """Every module but those of the app that Streamlit runs as scripts."""
    for package in (memchat, ui):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.startswith(("ui.app", "ui.views", "memchat.__main__")):
                with contextlib.suppress(ImportError):  # of what is optional
                    importlib.import_module(found.name)
    for name in ("loops.auto", "protocols.http.auto", "protocols.websockets.auto", "lifespan.on"):
        importlib.import_module(f"uvicorn.{name}")
    litellm_calls.litellm()
    scan.scan_once()
    command_tree.build_once()
    typer.main.get_command(app)


if __name__ == "__main__":
    _import_everything()
    gc.freeze()  # or a collection in a program would copy every page
    _serve(socket.socket(fileno=int(sys.argv[1])))
