"""The prompts: one Markdown file for each task in ``prompts/``.

A file begins with ``variables: name, name``. A file of the same name under ``prompts/`` in the data
folder replaces it. A missing or undeclared variable is an error that names it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from string import Template

from memchat.disk import packaged
from memchat.errors import ConfigError


class Prompts:
    """Loads prompts by name and fills them in."""

    def __init__(self, override: Path | None = None) -> None:
        """``override`` is a folder whose files replace the built-in ones."""
        self._folders = [
            folder
            for folder in (override, packaged("prompts_data", "prompts"))
            if folder is not None
        ]

    def text(self, name: str) -> str:
        """The prompt's body as written."""
        return self._load(name)[1]

    def render(self, name: str, **variables: str) -> str:
        """The prompt with its variables filled in. Raises ConfigError where they do not match."""
        declared, body = self._load(name)
        wrong = sorted(declared ^ set(variables))
        if wrong:
            raise ConfigError(f"prompts/{name}.md and its variables differ in: {', '.join(wrong)}")
        try:
            return Template(body).substitute(variables)
        except (KeyError, ValueError) as error:
            raise ConfigError(
                f"prompts/{name}.md uses a variable it does not declare: {error}; "
                "declare it on top, or write $$ for a plain $"
            ) from error

    def _load(self, name: str) -> tuple[frozenset[str], str]:
        for folder in self._folders:
            path = folder / f"{name}.md"
            with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                found = path.stat()
                return _read(path, (found.st_mtime_ns, found.st_size))
        raise ConfigError(f"the prompt {name}.md is missing; install memchat again")


@lru_cache(100)
def _read(path: Path, state: tuple[int, int]) -> tuple[frozenset[str], str]:
    """The variables and the body of a prompt, in this state of its file."""
    head, _, body = path.read_text("utf-8").partition("\n")
    label, colon, names = head.partition(":")
    if label.strip() != "variables" or not colon:
        raise ConfigError(f"{path} must begin with a line 'variables: …'")
    return frozenset(n.strip() for n in names.split(",") if n.strip()), body.strip() + "\n"
