"""A fake of the hub that models are fetched from: a list of files, and the files, in parts."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

SHA = "0123abcd"


@dataclass
class Hub:
    """On 127.0.0.1; ``asked`` holds what was requested. The rest is how it misbehaves."""

    folder: Path
    repository: str
    asked: list[str] = field(default_factory=list)
    silent: bool = False
    """Takes the request and says nothing."""
    cut: int | None = None
    """Breaks off after so many bytes of each file."""
    spoilt: bool = False
    """Sends other bytes than it says."""
    status: int = 200

    def __enter__(self) -> Self:
        hub = self
        self._closing = threading.Event()

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub._answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self._http.daemon_threads = True
        self._http.block_on_close = False
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def _answer(self, to: BaseHTTPRequestHandler) -> None:
        path = urlsplit(to.path).path
        self.asked.append(path)
        if self.silent:
            self._closing.wait(60)
            return
        if self.status != 200:
            to.send_error(self.status)
        elif path == f"/api/models/{self.repository}":
            self._send(to, json.dumps({"sha": SHA, "siblings": self._files()}).encode())
        else:
            start = f"/{self.repository}/resolve/{SHA}/"
            assert path.startswith(start), path
            self._file(to, self.folder / path.removeprefix(start))

    def _files(self) -> list[dict[str, object]]:
        paths = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
        return [
            {
                "rfilename": path.relative_to(self.folder).as_posix(),
                "size": path.stat().st_size,
                "lfs": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
            }
            for path in paths
        ]

    def _file(self, to: BaseHTTPRequestHandler, path: Path) -> None:
        body = path.read_bytes()
        if self.spoilt:
            body = bytes(byte ^ 1 for byte in body)
        first = int((to.headers.get("Range") or "bytes=0-")[6:-1])
        self._send(to, body[first:], 206 if first else 200)

    def _send(self, to: BaseHTTPRequestHandler, body: bytes, status: int = 200) -> None:
        to.send_response(status)
        to.send_header("Content-Length", str(len(body)))
        to.end_headers()
        to.wfile.write(body if self.cut is None else body[: self.cut])
        if self.cut is not None:
            to.wfile.flush()
            time.sleep(0.05)
            to.connection.close()
