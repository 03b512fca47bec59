"""The tokens of programs that call over HTTP, in a private file: whom each is for, what it may do.

A token is shown when it is made and kept as its SHA-256 alone. Whoever has it is the program that
the person gave it to, until its last day, or until it is deleted.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from memchat import disk
from memchat.errors import ConfigError, InputError, MemChatError, NotFound, ScopeError
from memchat.types import CLIENT_MODES, CLIENT_NAME_LIMIT, ClientMode, clean_name, one_line

log = logging.getLogger(__name__)
FILE = "tokens.toml"
_HEADING = "Tokens of programs that call memchat over HTTP. `memchat tokens` writes this file."
Right = Literal["read", "write", "chat", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
"""What a token may do; each of them may do what stands before it too."""
NO_TOKEN = "this needs a bearer token that is valid; memchat tokens add makes one"
UNREADABLE = "the tokens cannot be read; the log of memchat says why"
"""What those are told who are let in by no token: not where the file is."""


@dataclass(frozen=True, slots=True)
class Token:
    """A program, and what its token lets it do."""

    name: str
    user: str = ""
    """The person whose memory it is; empty where it is for several people."""
    for_users: str = ""
    """Of several people, the pattern of their names, as ``team-*``."""
    app: str = ""
    """The only app that it is for; empty for any app of the person."""
    may: Right = "chat"
    mode: ClientMode = "ask"
    """Whether what it teaches is stored (trust) or waits in the inbox (ask)."""
    expires: date | None = None
    """Its last day, in UTC."""
    used: date | None = None
    """The day on which it was used last."""
    sha256: str = ""

    def allows(self, right: Right) -> bool:
        """Whether it may do this."""
        return RIGHTS.index(right) <= RIGHTS.index(self.may)

    def scope(self, user: str | None, app: str | None, otherwise: str) -> tuple[str, str]:
        """The person and the app that a request is for, which may name them; ``otherwise`` is the
        app where neither it nor the token does. Raises ScopeError where the token is not for them,
        InputError where a person must be named."""
        if not (user or self.user):
            raise InputError("this token is for several people; name the one in X-Memchat-User")
        wanted = clean_name(user or self.user, "user")
        if not (fnmatchcase(wanted, self.for_users) if self.for_users else wanted == self.user):
            raise ScopeError("this token is not for that person")
        if self.app and app not in (None, self.app):
            raise ScopeError("this token is not for that app")
        return wanted, self.app or app or otherwise


class Tokens:
    """The tokens of a data folder, as they are now."""

    def __init__(self, home: Path, clock: Callable[[], datetime] | None = None) -> None:
        self._home = home
        self._clock = clock or (lambda: datetime.now(UTC))

    def all(self) -> Mapping[str, Token]:
        """The tokens by the names of their programs. Raises ConfigError for a file that other
        accounts may read, or that cannot be used."""
        path = self._home / FILE
        return {name: _parsed(path, name, value) for name, value in disk.read(path).items()}

    def of(self, authorization: str) -> Token | None:
        """The token in this header of a request. Takes as long for a wrong one as for a right one.
        Raises ConfigError as ``all`` does."""
        kind, _, given = authorization.partition(" ")
        digest, today, found = _digest(given.strip()), self._clock().date(), None
        for one in self.all().values():
            if hmac.compare_digest(one.sha256, digest):
                found = one
        if found is None or kind.lower() != "bearer" or today > (found.expires or today):
            return None
        if found.used != today:
            self._note_use(found, today)
        return found

    def add(self, made: Token) -> str:
        """Make the token of a program, in the place of one that it has; gives the token itself.
        Raises InputError for what cannot be."""
        one_line(made.name, "name of the program", CLIENT_NAME_LIMIT)
        if bool(made.user) == bool(made.for_users):
            raise InputError("a token is for one person, or for several by a pattern of names")
        for what, name in (("user", made.user), ("app", made.app)):
            if name:
                clean_name(name, what)
        if made.expires is not None and made.expires < self._clock().date():
            raise InputError(f"{made.expires} is over; give a day to come")
        token = f"mc-{secrets.token_urlsafe(32)}"
        with disk.changing(self._home):
            self._write({**self.all(), made.name: replace(made, sha256=_digest(token))})
        return token

    def remove(self, name: str) -> None:
        """Delete the token of a program. Raises NotFound where it has none."""
        with disk.changing(self._home):
            left = dict(self.all())
            if left.pop(name, None) is None:
                raise NotFound(f"no program named {name!r} has a token", see="tokens list")
            self._write(left)

    def _note_use(self, found: Token, today: date) -> None:
        try:
            with disk.changing(self._home):
                there = self.all()
                if there.get(found.name) == found:
                    self._write({**there, found.name: replace(found, used=today)})
        except MemChatError as error:
            log.warning("the use of a token could not be noted: %s", error)

    def _write(self, tokens: Mapping[str, Token]) -> None:
        lines = [f"# {_HEADING}"]
        for one in tokens.values():
            told = {name: value for name, value in asdict(one).items() if value and name != "name"}
            pairs = (f"{name} = {disk.quoted(str(value))}" for name, value in told.items())
            lines += ["", f"[{disk.quoted(one.name)}]", *pairs]
        disk.write_text(self._home / FILE, "\n".join(lines) + "\n")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _parsed(path: Path, name: str, value: Any) -> Token:
    days = ("expires", "used")
    try:
        told: dict[str, Any] = {
            key: date.fromisoformat(one) if key in days else one for key, one in value.items()
        }
        found = Token(name, **told)
        if all(
            (
                found.may in RIGHTS,
                found.mode in CLIENT_MODES,
                len(found.sha256) == len(_digest("")),
                all(isinstance(getattr(found, f.name), str | date | None) for f in fields(found)),
            )
        ):
            return found
    except (AttributeError, TypeError, ValueError):
        pass
    raise ConfigError(
        f"{path} has no token for {json.dumps(name)} that can be used; make it anew with "
        "memchat tokens add"
    )
