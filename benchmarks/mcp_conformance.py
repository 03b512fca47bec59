"""The conformance suite of the protocol's makers against `memchat mcp --http`.

    python -m benchmarks.mcp_conformance [--scenario NAME ...]

Serves a store in a temporary folder and runs server scenarios of
`@modelcontextprotocol/conformance` against it: those named, or those that need no tool made for the
suite. The suite cannot send a token, so one is added to each of its requests on the way. It needs
npx and, for the first run, the network; the suite needs Node 22, which npx fetches too. Prints a
line for each scenario, and what the suite says of one that fails; ends with 1 where one failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from memchat import MemChat
from memchat.config import load
from memchat.config.tokens import Token, Tokens
from memchat.mcp.server import HOST, Find, Server, access_by_token, app_of

VERSION = "0.1.16"
PORT = 8798
SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
"""Those that call no tool, resource or prompt that a server must have for the suite alone."""


def with_token(app: ASGIApp, token: str) -> ASGIApp:
    """The application, with this token in each request."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = (b"authorization", f"Bearer {token}".encode())
            scope = {**scope, "headers": [*scope["headers"], given]}
        await app(scope, receive, send)

    return answer


@contextmanager
def serving(server: Server, find: Find, token: str) -> Iterator[None]:
    """The server over HTTP, until the block ends."""
    app = with_token(app_of(server, PORT, find), token)
    running = uvicorn.Server(uvicorn.Config(app, port=PORT, log_level="error"))
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        while not running.started:
            time.sleep(0.05)
        yield
    finally:
        running.should_exit = True
        thread.join()


def passes(scenario: str) -> bool:
    """Whether a scenario passes; what the suite says of it is printed."""
    command = ["npx", "-y", "-p", "node@22", "-p", f"@modelcontextprotocol/conformance@{VERSION}"]
    command += ["conformance", "server", "--url", f"http://{HOST}:{PORT}/mcp"]
    done = subprocess.run([*command, "--scenario", scenario], capture_output=True, text=True)
    print(f"{'ok    ' if done.returncode == 0 else 'FAILED'}  {scenario}", flush=True)
    if done.returncode != 0:
        print(done.stdout[-2_000:])
    return done.returncode == 0


def main() -> int:
    """Serve a store, run the scenarios and print what passes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scenario", action="append")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = {"MEMCHAT_HOME": folder, "MEMCHAT_EMBED_MODEL": "hash"}

        tokens = Tokens(Path(folder))
        token = tokens.add(Token("Conformance", "ana", mode="trust"))
        with MemChat(settings=load(env)) as mc:
            ana = mc.user("ana")
            with serving(Server(mc, ana, access_by_token(ana, tokens.of)), tokens.of, token):
                results = [passes(one) for one in given.scenario or SCENARIOS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
