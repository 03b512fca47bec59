"""A server as an assistant starts it: a process that is spoken to line by line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.support.mcp import command

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
        self.process = subprocess.Popen(
            [start.command, *start.args],
            env=start.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def send(self, message: bytes | dict[str, Any]) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        while True:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read().decode()
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
        self.process.kill()
        self.process.communicate()
