"""``memchat tokens``: who is let in over HTTP."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta

from memchat.config.tokens import FILE, Tokens


def test_a_token_is_shown_once_kept_as_a_hash_listed_and_removed(run, home) -> None:
    assert run("tokens", "list").out.startswith("No program has a token.")
    token = run("tokens", "add", "Web app").out.strip()
    assert len(token) > 40 and token not in (home / FILE).read_text()
    assert stat.S_IMODE((home / FILE).stat().st_mode) == 0o600
    assert run("tokens", "list").out == "Web app: may chat; ask; ana; never used\n"
    found = Tokens(home).of(f"Bearer {token}")
    assert found is not None and (found.name, found.mode, found.user) == ("Web app", "ask", "ana")
    today = datetime.now(UTC).date().isoformat()
    assert f"last used {today}" in run("tokens", "list").out
    again = run("tokens", "add", "Web app", "--mode", "trust").out.strip()
    assert again != token and Tokens(home).of(f"Bearer {token}") is None
    assert run("tokens", "remove", "Web app").code == 0
    assert run("tokens", "remove", "Web app").code == 1
    assert Tokens(home).of(f"Bearer {again}") is None


def test_what_a_token_may_and_how_long_is_said_and_listed(run, home) -> None:
    run("tokens", "add", "Team", "--for-users", "team-*", "--app", "work", "--may", "read",
        "--expires", "90d")  # fmt: skip
    (row,) = json.loads(run("tokens", "list", "--json").out)
    until = (datetime.now(UTC).date() + timedelta(90)).isoformat()
    assert row == {"name": "Team", "user": "", "for_users": "team-*", "app": "work",
                   "may": "read", "mode": "ask", "expires": until, "used": None}  # fmt: skip
    assert f"Team: may read; ask; people team-* in work; until {until}" in run("tokens", "list").out


def test_what_cannot_be_is_refused_and_nothing_is_written(run, home) -> None:
    for wrong in (
        ("--mode", "root"),
        ("--may", "all"),
        ("--expires", "2001-01-01"),
        ("--expires", "soon"),
    ):
        assert run("tokens", "add", "Web app", *wrong).code in (1, 2), wrong
    assert not (home / FILE).exists()
