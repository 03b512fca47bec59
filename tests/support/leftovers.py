"""Where a word is still to be found: in rows and in files."""

from __future__ import annotations

from pathlib import Path

from memchat import MemChat
from memchat.search import keywords
from tests.support import private


def forms(word: str) -> list[str]:
    """How a word may stand in a file: as it is, and as the keyword index has it."""
    return [word.lower(), *(keywords._coded(term) for term in keywords.query_terms(word))]


def files_with(mc: MemChat, word: str) -> list[str]:
    found = []
    for path in Path(mc.settings.home).rglob("*"):
        if path.is_file():
            held = path.read_bytes().lower()
            found += [path.name for form in forms(word) if form.encode() in held]
    return found


def rows_with(mc: MemChat, word: str) -> list[str]:
    with private.database(mc).read() as tx:
        lines = [line.lower() for line in tx.driver.iterdump()]
        return [line[:200] for line in lines if any(form in line for form in forms(word))]
