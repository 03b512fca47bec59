"""A new store without running its migrations, which take longer than most tests."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from memchat import disk
from memchat.db.database import FILE, Database


def place(home: Path) -> Path:
    """Put the file of an empty store into ``home``, unless a store is there already."""
    disk.make_folder(home)
    file = home / FILE
    if not file.exists():
        with os.fdopen(disk.new_file(file), "wb") as out:
            out.write(_content())
    return home


@cache
def _content() -> bytes:
    """The bytes of a store as the migrations leave it; made once in each process."""
    with tempfile.TemporaryDirectory() as folder:
        Database(Path(folder)).close()
        return (Path(folder) / FILE).read_bytes()
