"""A disk that fills up."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class Tiny:
    """A file system of 6 MB with a store in it, for a user to fill."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "store"

    def fill(self, left: int = 0) -> None:
        """Leave so many bytes."""
        there = os.statvfs(self.root)
        room = there.f_bavail * there.f_frsize
        (self.root / "filler").write_bytes(bytes(max(room - left, 0)))

    def free(self) -> None:
        (self.root / "filler").unlink()

    def make_read_only(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.root)], check=True)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Tiny]:
    root = tmp_path / "tiny"
    root.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(root)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a file system of its own can only be made by root, where mounting is allowed")
    try:
        yield Tiny(root)
    finally:
        subprocess.run(["umount", "-l", str(root)], check=True)
