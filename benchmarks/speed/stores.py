"""Who takes part, the environments they live in, and one measured process each."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ANSWER_SECONDS = 300.0
GRACE_SECONDS = 120.0
"""Behind the limit of a load: one batch may be under way, and its indices."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A store that takes part: its environment, script and kind."""

    name: str
    env: str | None
    script: str
    kind: tuple[str, ...] = ()
    finds: str = "meaning"
    """What its search does: meaning alone, or meaning and words."""

    @property
    def ours(self) -> bool:
        """Whether it is memchat, which runs in this environment."""
        return self.env is None


MEMCHAT = Entry("memchat", None, "benchmarks.speed.product", finds="meaning + words")
MEMCHAT_NOTES = Entry("memchat", None, "benchmarks.speed.notes_product", finds="meaning + words")
PEERS = (
    Entry("mem0 qdrant", "mem0", "mem0_store.py", ("qdrant",)),
    Entry("mem0 faiss", "mem0", "mem0_store.py", ("faiss",)),
    Entry("sqlite-vec partition", "sqlite_vec", "sqlite_vec_store.py", ("partition",)),
    Entry("sqlite-vec metadata", "sqlite_vec", "sqlite_vec_store.py", ("metadata",)),
    Entry("lancedb", "lancedb", "lancedb_store.py", ("dense",)),
    Entry("lancedb hybrid", "lancedb", "lancedb_store.py", ("hybrid",), "meaning + words"),
    Entry("chroma", "chroma", "chroma_store.py"),
)
NOTE_PEERS = tuple(entry for entry in PEERS if entry.env != "mem0")


class Unavailable(Exception):
    """A store that cannot take part, and why."""


def python_of(entry: Entry, work: Path) -> Path:
    """The Python of a store's environment, made at first need from its pinned requirements."""
    if entry.env is None:
        return Path(sys.executable)
    wanted = HERE / "peers" / f"{entry.env}.txt"
    home = work / "envs" / entry.env
    python, stamp = home / "bin" / "python", home / "installed.txt"
    if stamp.exists() and stamp.read_bytes() == wanted.read_bytes():
        return python
    print(f"installing {entry.env} …", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", wanted],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unavailable(f"not installed: {(lines or ['pip failed'])[0][:120]}")
    shutil.copyfile(wanted, stamp)
    return python


class Running:
    """One store in a process of its own."""

    def __init__(self, entry: Entry, work: Path, folder: Path, data: Path) -> None:
        """Start it and wait until the store is open. Raises Unavailable where it does not."""
        python = python_of(entry, work)
        script = ["-m", entry.script] if entry.env is None else [str(HERE / "peers" / entry.script)]
        folder.mkdir(parents=True, exist_ok=True)
        self._log = (folder.parent / f"{folder.name}.log").open("ab")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MEMCHAT_")}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        started = time.perf_counter()
        self._process = subprocess.Popen(
            [python, *script, str(folder), str(data), *entry.kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env=environment,
            bufsize=0,
        )
        self._selector = selectors.DefaultSelector()
        self._behind = b""
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        answer = self._read(ANSWER_SECONDS)
        self.opened: float = answer["opened"]
        """Seconds the store took to open, without the imports."""
        self.added: float = answer["added"]
        """MB that opening added to the process."""
        self.started = time.perf_counter() - started
        """Seconds with the imports, from the process's start."""

    def ask(self, do: str, *, seconds: float = ANSWER_SECONDS, **given: Any) -> Any:
        """Send a command and wait for its answer. Raises Unavailable for an error or none."""
        self._send(do, given)
        return self._read(seconds)

    def load(self, limit: float) -> dict[str, Any]:
        """Load all, or as much as the limit allows."""
        self._send("load", {"limit": limit})
        until = time.perf_counter() + limit + GRACE_SECONDS
        last = {"loading": 0, "seconds": limit}
        while True:
            try:
                answer = self._read(until - time.perf_counter())
            except Unavailable as reason:
                self.kill()
                return {"rows": last["loading"], "seconds": last["seconds"], "why": str(reason)}
            if "loading" not in answer:
                return answer
            last = answer

    def close(self) -> None:
        """Let it close its store and end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._end()

    def kill(self) -> None:
        """End it as it is."""
        self._process.kill()
        self._process.wait()
        self._end()

    def _end(self) -> None:
        self._selector.close()
        self._log.close()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _send(self, do: str, given: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **given}).encode() + b"\n")

    def _read(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        until = time.perf_counter() + seconds
        while b"\n" not in self._behind:
            if not self._selector.select(max(until - time.perf_counter(), 0)):
                self.kill()
                raise Unavailable(f"no answer within {seconds:.0f} s")
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                self._process.wait()
                raise Unavailable(f"it ended; see {self._log.name}")
            self._behind += more
        line, _, self._behind = self._behind.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Unavailable(answer["error"])
        return answer
