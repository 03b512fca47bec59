"""A server of MCP with faults: it is slow, dies, writes noise, or fails, as its argument says."""

from __future__ import annotations

import os
import sys
import threading

from mcp.server import MCPServer

server = MCPServer("faulty", log_level="CRITICAL")


@server.tool()
def echo(words: str) -> str:
    """Gives back what it is given."""
    sys.stderr.write("noise " * 1_700_000 + "\n")
    return words


@server.tool()
def hang() -> str:
    """Never answers."""
    threading.Event().wait()
    return ""


@server.tool()
def die() -> str:
    """Ends the process without an answer."""
    os._exit(3)


if __name__ == "__main__":
    server.run()
