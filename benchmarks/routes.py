"""How many files and rooms a message, a candidate and a fact pass through, and how often a file is
called back by what it called.

A room is a folder of the package. A call back is a call into a file (or room) that waits further up
in the same chain of calls. Everything runs with the offline stand-in, in a folder of its own.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import memchat
from memchat import MemChat
from memchat.config import Settings

ROOT = str(Path(memchat.__file__).parent)
MESSAGE = "I live in Lisbon and I play the cello."


class Route:
    """The files of the package that calls enter while the route is followed."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.crossings = 0
        self.calls_back: set[tuple[str, str]] = set()
        self.room_calls_back: set[tuple[str, str]] = set()

    def follow(self, route: Callable[[], object]) -> Route:
        """Run it, on every thread that it starts."""
        threading.setprofile(self._seen)
        sys.setprofile(self._seen)
        try:
            route()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self

    @property
    def rooms(self) -> set[str]:
        """The folders of the files."""
        return {_room(name) for name in self.files}

    def _seen(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not _ours(frame):
            return
        name = frame.f_code.co_filename[len(ROOT) + 1 :]
        self.files.add(name)
        above = _above(frame)
        if not above or above[0] == name:
            return
        self.crossings += 1
        if name in above:
            self.calls_back.add((above[0], name))
        rooms = [_room(one) for one in above]
        if _room(name) != rooms[0] and _room(name) in rooms:
            self.room_calls_back.add((rooms[0], _room(name)))


def _ours(frame: FrameType) -> bool:
    # Comprehensions and module bodies are no steps of a route.
    return frame.f_code.co_filename.startswith(ROOT) and not frame.f_code.co_name.startswith("<")


def _above(frame: FrameType) -> list[str]:
    found, above = [], frame.f_back
    while above is not None:
        if _ours(above):
            found.append(above.f_code.co_filename[len(ROOT) + 1 :])
        above = above.f_back
    return found


def _room(name: str) -> str:
    return name.rpartition("/")[0] or "."


def main() -> None:
    """Print a line for each route."""
    with tempfile.TemporaryDirectory() as home, MemChat(settings=Settings(Path(home))) as mc:
        ana = mc.user("ana")
        with ana.chat() as warm:
            "".join(warm.send("Hello."))
        chat = ana.chat()
        routes: dict[str, Callable[[], object]] = {
            "a message (a turn of a chat)": lambda: "".join(chat.send(MESSAGE)),
            "a candidate (the session's end)": lambda: chat.end(wait=True),
            "a fact (entered by hand)": lambda: ana.memories.add(
                "preference", "favorite_tea", "green tea"
            ),
        }
        print(f"{'route':<34}files  rooms  crossings  called back: files  rooms")
        for name, run in routes.items():
            seen = Route().follow(run)
            print(
                f"{name:<34}{len(seen.files):5}  {len(seen.rooms):5}  {seen.crossings:9}"
                f"  {len(seen.calls_back):18}  {len(seen.room_calls_back):5}"
            )
            if "-v" in sys.argv:
                for pair in sorted(seen.calls_back):
                    print("   ", " -> ".join(pair))


if __name__ == "__main__":
    main()
