"""Who may use the app where people sign in: ``[people]`` of ``settings.toml``, and Streamlit's own
``[auth]`` with their provider. Without either it is one person, and nobody signs in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import util
from pathlib import Path
from typing import Any

from memchat import disk
from memchat.config.settings import FILE, PEOPLE
from memchat.errors import ConfigError, InputError, ScopeError

SECRETS = Path(".streamlit", "secrets.toml")
"""In the data folder; that of the working folder is not read."""
CALLBACK = "/oauth2callback"
LEAST_SECRET = 32
NEEDED = ("client_id", "client_secret", "server_metadata_url")
PUBLIC = r"https://[\w.-]+(:\d+)?|http://(127\.0\.0\.1|localhost):\d+"
ENTRY = (
    f"[{PEOPLE}] in {FILE} holds allow and admins, each a list of people as their provider knows "
    'them: an e-mail that it has verified, or "https://issuer subject"; nothing else'
)


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a tab of the app belongs to."""

    name: str
    """Their user in the store."""
    shown: str
    """What the app calls them."""
    is_admin: bool = True
    signed_in: bool = False

    @property
    def mark(self) -> str:
        """Behind the names of what the browser keeps: the next one to sign in there has others."""
        return f"-{self.name}" if self.signed_in else ""


ended: set[str] = set()
"""The nonces of sign-ins that were signed out of: their cookie is worth nothing any more, in no
other tab and in no copy."""


def person_of(claims: Mapping[str, Any], home: Path) -> Person:
    """The person whom the provider describes. Raises ScopeError for one whom nobody let in."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not (claims.get("is_logged_in") and issuer and subject):
        raise ScopeError("sign in first")
    if claims.get("nonce") in ended:
        raise ScopeError("you have signed out; sign in anew")
    known, email = {f"{issuer} {subject}"}, claims.get("email")
    if isinstance(email, str) and " " not in email and claims.get("email_verified") is True:
        known.add(_folded(email))
    path = home / FILE
    allow, admins = _lists(path, path.stat().st_mtime_ns if path.exists() else 0)
    if not known & (allow | admins):
        raise ScopeError("you are not among the people of this memchat; ask whoever runs it")
    # An e-mail may be given to somebody else later; issuer and subject stay one person's.
    digest = sha256(f"{issuer}\n{subject}".encode()).hexdigest()
    shown = str(email or claims.get("name") or subject)
    return Person(f"person-{digest[:32]}", shown, bool(known & admins), signed_in=True)


def read_auth(home: Path, url: str) -> dict[str, Any]:
    """Streamlit's ``[auth]`` for an app at this address; empty where nobody signs in.

    Raises ConfigError where one half is missing or cannot be used.
    """
    path, settings = home / SECRETS, home / FILE
    auth: Any = disk.read(path).get("auth")
    if auth is None and PEOPLE not in disk.read(settings):
        return {}
    _lists(settings, -1)
    if not isinstance(auth, dict) or not (names := providers(auth)):
        raise ConfigError(f"people sign in with a provider, and {path} names none under [auth]")
    if lacking := [key for name in names for key in NEEDED if key not in (auth.get(name) or auth)]:
        raise ConfigError(f"[auth] in {path} has no {lacking[0]}")
    if len(str(auth.get("cookie_secret", ""))) < LEAST_SECRET:
        raise ConfigError(
            f"[auth] in {path} needs a cookie_secret of {LEAST_SECRET} random characters or more: "
            "whoever knows or guesses it can be anybody"
        )
    if util.find_spec("authlib") is None:
        raise ConfigError("signing in needs Authlib; run pip install 'memchat[ui,people]'")
    # No page needs the provider's tokens.
    return {**auth, "redirect_uri": url + CALLBACK, "expose_tokens": []}


def providers(auth: Mapping[str, Any]) -> list[str]:
    """The providers that one can sign in with; ``""`` is the one without a name."""
    named = [n for n, one in auth.items() if isinstance(one, dict) and n != "client_kwargs"]
    return [""] * ("client_id" in auth) + named


def public_origin(url: str) -> str:
    """The origin that a browser names for this address. Raises InputError for what is none."""
    origin = url.lower().removesuffix("/").removesuffix(":443")
    if not re.fullmatch(PUBLIC, origin, re.ASCII):
        raise InputError("--public-url is an address such as https://memory.example.org, no more")
    return origin


@lru_cache(maxsize=1)
def _lists(path: Path, changed: int) -> tuple[frozenset[str], frozenset[str]]:
    """Who may come in, and who of them are admins. ``changed`` has a changed file read again."""
    table: Any = disk.read(path).get(PEOPLE, {})
    if not isinstance(table, dict) or table.keys() - {"allow", "admins"}:
        raise ConfigError(ENTRY)
    allow, admins = (table.get(name, []) for name in ("allow", "admins"))
    return _entries(allow), _entries(admins)


def _entries(given: Any) -> frozenset[str]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ConfigError(ENTRY)
    for one in given:
        issuer, _, subject = one.partition(" ")
        if not ("://" in issuer if subject else "@" in issuer):
            raise ConfigError(ENTRY)
    return frozenset(one if " " in one else _folded(one) for one in given)


def _folded(email: str) -> str:
    """An e-mail whose capitals do not count; outside of ASCII other letters become the same."""
    return email.lower() if email.isascii() else email
