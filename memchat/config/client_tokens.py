"""The bearer tokens of programs that call the MCP server over HTTP, in a private file.

A token stands for the name and the mode that the person gave a program. Whoever has it is that
program, so it is in a file that only this account may read.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memchat.config import private_files
from memchat.errors import ConfigError, NotFound
from memchat.types import CLIENT_MODES, ClientMode

FILE = "mcp_tokens.toml"
_HEADING = 'Tokens of programs that call memchat over HTTP: NAME = "mode:token".'


@dataclass(frozen=True, slots=True)
class ClientToken:
    """A token, and whom it stands for."""

    name: str
    mode: ClientMode
    token: str = field(repr=False)


def read(home: Path) -> Mapping[str, ClientToken]:
    """The tokens by the names of their programs. Raises ConfigError for a file that other accounts
    may read, or that cannot be used."""
    path = home / FILE
    return {name: _parsed(path, name, value) for name, value in private_files.read(path).items()}


def find(tokens: Mapping[str, ClientToken], given: str) -> ClientToken | None:
    """The program of a token. Takes as long for a wrong one as for a right one."""
    found = None
    for one in tokens.values():
        if hmac.compare_digest(one.token.encode(), given.encode()):
            found = one
    return found


def create(home: Path, name: str, mode: ClientMode) -> ClientToken:
    """Make a token for a program, in place of the one that it had."""
    with private_files.changing(home):
        made = ClientToken(name, mode, secrets.token_urlsafe(32))
        _write(home, {**read(home), name: made})
    return made


def remove(home: Path, name: str) -> None:
    """Delete the token of a program. Raises NotFound where it has none."""
    with private_files.changing(home):
        left = dict(read(home))
        if left.pop(name, None) is None:
            raise NotFound(f"no program named {name!r} has a token; see memchat mcp tokens")
        _write(home, left)


def _write(home: Path, tokens: Mapping[str, ClientToken]) -> None:
    lines = [
        f"{private_files.quoted(one.name)} = {private_files.quoted(f'{one.mode}:{one.token}')}"
        for one in tokens.values()
    ]
    private_files.write_text(home / FILE, "\n".join([f"# {_HEADING}", *lines]) + "\n")


def _parsed(path: Path, name: str, value: object) -> ClientToken:
    mode, _, token = value.partition(":") if isinstance(value, str) else ("", "", "")
    for known in CLIENT_MODES:
        if mode == known and token:
            return ClientToken(name, known, token)
    raise ConfigError(
        f"{path} has no token for {name!r} that can be used; make it anew with memchat mcp token"
    )
