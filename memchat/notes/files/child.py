"""Reading a document in a process of its own: ``python -m memchat.notes.files.child .pdf``.

The libraries for PDF, Word documents and HTML read what strangers made. A file that keeps them busy
for ever, unpacks to more than fits into memory, or crashes them, ends this process and nothing
else. The bytes come on the standard input; the document, or the reason why it cannot be read,
leaves as JSON on the standard output.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
from dataclasses import asdict

from memchat.config.names import without_secrets
from memchat.errors import ConfigError, InputError
from memchat.notes.files.document import Document

INSTALL = "run pip install 'memchat[files]'"
SECONDS = 60
MOST_MEMORY = 1 << 30
"""Bytes of address space; systems other than Linux may not heed it."""
MOST_CHARACTERS = 10_000_000
TOO_LONG = f"it takes longer than {SECONDS} s to read"
TOO_LARGE = f"it needs more than {MOST_MEMORY >> 30} GB of memory to read"
DAMAGED = "it is damaged, too large to read, or of another format than its name says"
READERS = {
    ".pdf": ("pdf", "pypdfium2"),
    ".docx": ("word_document", "docx"),
    ".html": ("web_page", "html"),
    ".htm": ("web_page", "html"),
}
"""By the ending of a file's name the module that reads it, and the package that this needs."""


def read(ending: str, data: bytes) -> Document:
    """Read a document in another process. Raises InputError, with the reason, where that fails or
    takes too long; ConfigError where the package for it is not installed."""
    if importlib.util.find_spec(READERS[ending][1]) is None:
        raise ConfigError(f"{ending} files need another package; {INSTALL}")
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__, ending],
            input=data,
            capture_output=True,
            timeout=SECONDS,
            env=without_secrets(os.environ),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(TOO_LONG) from None
    if done.returncode != 0:
        raise InputError(DAMAGED)
    answer = json.loads(done.stdout)
    if "reason" in answer:
        raise InputError(answer["reason"])
    return Document(**answer)


def main(ending: str) -> None:
    """Read the document on the standard input within the limits."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # should the parent be killed
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        module = importlib.import_module(f"memchat.notes.files.{READERS[ending][0]}")
        found = module.read(sys.stdin.buffer.read())
        if len(found.text) > MOST_CHARACTERS:
            raise InputError(f"it has more than {MOST_CHARACTERS:,} characters of text")
        answer = asdict(found)
    except InputError as error:
        answer = {"reason": str(error)}
    except MemoryError:
        answer = {"reason": TOO_LARGE}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
