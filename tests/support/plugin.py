"""Another package with an embedding provider, installed for a test as pip leaves it."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

CODE = """
    import hashlib

    asked = []
    spoil = None

    class Provider:
        dimensions = 24
        max_tokens = 100
        batch = 7
        version = "first"

        def __init__(self, model):
            self.model = model

        def embed(self, texts, *, question):
            asked.append((list(texts), question))
            rows = [self._row(text) for text in texts]
            return rows if spoil is None else spoil(rows)

        def _row(self, text):
            digest = hashlib.sha256(f"{self.model} {text}".encode()).digest()
            return [byte - 127.5 for byte in digest[: self.dimensions]]

    def make(model):
        return Provider(model)
"""


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    code: str = CODE,
    package: str = "acme-vectors",
    provider: str = "acme",
) -> None:
    """Put a package and what its installation says of it on the path."""
    module = package.replace("-", "_")
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir(parents=True)
    (folder / f"{module}.py").write_text(dedent(code))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[memchat.embeddings]\n{provider} = {module}:make\n")
    (info / "RECORD").write_text("")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, module, raising=False)
