"""A server as an assistant starts it: a process that is spoken to line by line."""

from __future__ import annotations

import contextlib
import json
import signal
from pathlib import Path
from typing import Any

from tests.support.forks import MEMCHAT, Piped
from tests.support.mcp import command

PATIENCE = 60
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "not to be believed", "version": "1"},
    },
}


class Raw:
    """The process, spoken to line by line, as a client of any kind would; ``kill`` ends it."""

    def __init__(self, home: Path, *more: str) -> None:
        self.home = home
        self.hello: dict[str, Any] = {}
        start = command(home, *more)
        self.process = Piped(MEMCHAT, start.args[2:], env=start.env or {}, cwd=home)

    def send(self, message: bytes | dict[str, Any]) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.buffer.write(line + b"\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        while True:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            said = json.loads(line)
            if said.get("id") == number:
                return said

    def ask(self, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self.answer(number)

    def tool(self, number: int, name: str, **arguments: Any) -> dict[str, Any]:
        return self.ask(number, "tools/call", {"name": name, "arguments": arguments})

    def begin(self) -> None:
        self.send(HELLO)
        self.hello = self.answer(1)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):  # of what it did not read any more
                stream.close()
