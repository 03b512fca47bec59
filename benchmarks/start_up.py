"""How long a whole command takes, beside a Python that does nothing.

    python -m benchmarks.start_up [ROUNDS]

Prints the median of ROUNDS (default 7) in milliseconds for each command, on a store of 50 memories
in a temporary folder, and what memory a program takes that adds and searches.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS: dict[str, list[str]] = {
    "python -c pass": ["-c", "pass"],
    "memchat --help": ["-m", "memchat", "--help"],
    "memchat memories list": ["-m", "memchat", "memories", "list"],
    "memchat memories list --json": ["-m", "memchat", "memories", "list", "--json"],
    "memchat memories show 1": ["-m", "memchat", "memories", "show", "1"],
    "memchat sessions list": ["-m", "memchat", "sessions", "list"],
    "memchat config": ["-m", "memchat", "config"],
    "memchat recall": ["-m", "memchat", "recall", "what is known of thing 7"],
    "memchat chat --once": ["-m", "memchat", "chat", "--once", "What is known of thing 7?"],
}
LIBRARY = """
from memchat import MemChat
with MemChat() as mc:
    mc.user("ana").add("I moved to Lisbon and like green tea.")
    assert mc.user("ana").search("Where do I live?").hits
    fields = dict(line.split(":", 1) for line in open("/proc/self/smaps_rollup").readlines()[1:])
    print(*(int(fields[name].split()[0]) // 1024 for name in ("Rss", "Private_Dirty")))
"""
"""A program that adds and searches; it prints what it holds, and what of that is its own alone."""


def seconds(command: list[str], env: dict[str, str]) -> float:
    """One whole process, from start to exit."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *command],
        env=env,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


def fill(home: Path) -> None:
    """Fifty memories of one user."""
    from memchat import MemChat
    from memchat.config import load

    with MemChat(settings=load({"MEMCHAT_HOME": str(home)})) as mc:
        for i in range(50):
            mc.user("ana").memories.add("fact", "thing", f"what is known of thing {i}")
        mc.jobs.embed()


def main() -> None:
    """Fill a store and time every command."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as folder:
        home, byte_code = Path(folder, "store"), Path(folder, "byte_code")
        env = {**os.environ, "MEMCHAT_HOME": str(home), "MEMCHAT_USER": "ana"}
        # Byte code as set-up leaves it, whatever this checkout's state is: the first, unmeasured
        # run of each command writes it.
        env |= {"PYTHONPYCACHEPREFIX": str(byte_code), "PYTHONDONTWRITEBYTECODE": ""}
        fill(home)
        python = sys.version.split()[0]
        print(f"start-up, {time.strftime('%Y-%m-%d')}, Python {python}, median of {rounds}")
        for name, command in COMMANDS.items():
            seconds(command, env)
            median = statistics.median(seconds(command, env) for _ in range(rounds))
            print(f"{name:<30} {median * 1000:6.0f} ms", flush=True)
        for name, place in (("a new store", Path(folder, "new")), ("that store", home)):
            env["MEMCHAT_HOME"] = str(place)
            done = subprocess.run(
                [sys.executable, "-c", LIBRARY], env=env, check=True, capture_output=True, text=True
            )
            held, own = done.stdout.split()
            print(f"add and search, {name:<14} {held:>6} MB, of which its own {own} MB")


if __name__ == "__main__":
    main()
