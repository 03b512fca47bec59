"""``memchat serve``: the store for any client over HTTP; and ``memchat tokens``: who is let in."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import partial
from importlib import util
from typing import Annotated, cast
from urllib.parse import urlsplit

from typer import Argument, Option

from memchat.cli import output
from memchat.cli.command import Call, command, group, one_of, open_store, settings
from memchat.cli.command import day as day_of
from memchat.config.tokens import RIGHTS, Right, Token, Tokens
from memchat.errors import ConfigError, StoreError
from memchat.types import CLIENT_MODES, CLIENT_NAME_LIMIT, ClientMode, one_line

PORT = 8766
FIRST = "first program"


@command(without="app as_json")
def serve(
    call: Call,
    port: int = Option(PORT, min=1, max=65535),
    host: str = "127.0.0.1",
    behind_proxy: bool = False,
    public_url: str = "",
    user_header: str = "",
    session_header: str = "",
    rate: int = Option(6_000, min=1),
    workers: int = Option(1, min=1, max=64),
    with_worker: bool = Option(True, "--with-worker/--without-worker"),
) -> None:
    """Open the store to any program over HTTP: chat clients use this address in place of OpenAI's.

    It needs a token, which the first start makes; memchat tokens has the others. What is known of a
    person goes before the messages of a chat client, and what is said is kept. Of a program with
    the mode ask, what that teaches waits in the inbox. Ctrl-C ends it.

    :param port: Where it listens.
    :param host: Listen on another address than this machine's own; needs --behind-proxy.
    :param behind_proxy: A proxy in front of it takes care of HTTPS.
    :param public_url: The https:// address of the proxy, by which programs call.
    :param user_header: A front end's own header for the person who signed in.
    :param session_header: A front end's own header for the conversation, of which it sends
        everything each time.
    :param rate: Requests a minute for each token.
    :param workers: Processes that answer.
    :param with_worker: Whether it also reads conversations and does what else is queued; else
        memchat worker does.
    """
    if util.find_spec("fastapi") is None:
        raise ConfigError('this needs an extra of the package: pip install "memchat[serve]"')
    from memchat.http import gate, server

    if host not in gate.OWN_HOSTS and not behind_proxy:
        raise ConfigError(
            f"on {host} anybody could read what is sent; put a proxy with HTTPS in front of it, "
            "and say so with --behind-proxy"
        )
    if public_url and urlsplit(public_url).scheme != "https":
        raise ConfigError("--public-url is the https:// address of the proxy")
    with open_store():
        pass  # what is wrong with it is told once, and not by each process again and again
    tokens = Tokens(settings().home)
    if not tokens.all():
        made = tokens.add(Token(FIRST, call.user))
        output.notice(f"the token of the {FIRST}, shown this once: {made}")
    names = user_header, session_header
    options = gate.Options(host, port, public_url, *names, rate, with_worker)
    where = public_url.rstrip("/") or f"http://{host}:{port}"
    said = f"{where}/v1 for chat clients, {where}/docs shows the rest; Ctrl-C ends it"
    log = partial(output.start_log, settings(), verbose=output.VERBOSE.get())
    try:
        server.serve(settings(), options, workers, begin=log, ready=lambda: output.notice(said))
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]  # Python repeats the address there
        raise StoreError(f"{host}:{port} cannot be used ({why}); see --port and --host") from error


tokens = group("Who is let in over HTTP: a token for each program.")
_MAY = (
    "read: what is remembered; write: also teach it; chat: also chat, with the keys of your "
    "providers; admin: all that the person may."
)
_MODES = "ask: what it teaches waits in the inbox. trust: it is stored."


def expiry(text: str) -> date:
    """A last day: a date, or so many days from today, as ``90d``."""
    days = re.fullmatch(r"(\d{1,5})d", text.strip())
    return datetime.now(UTC).date() + timedelta(int(days[1])) if days else day_of(text)


@command(tokens, "add", without="app as_json")
def add_token(
    call: Call,
    name: Annotated[str, Argument(metavar="name", help="What you call the program.")],
    for_users: str = Option("", metavar="PATTERN"),
    app: str = Option("", metavar="NAME"),
    may: Annotated[str, Option(**one_of("right", RIGHTS), help=_MAY)] = "chat",
    mode: Annotated[str, Option(**one_of("mode", CLIENT_MODES), help=_MODES)] = "ask",
    expires: date | None = Option(None, parser=expiry, metavar="90d"),
) -> None:
    """Make the token of a program, in place of one that it has; it is shown this once.

    :param for_users: For several people in place of one, as "team-*"; a request names the one in
        X-Memchat-User.
    :param app: The only app that it is for, else any.
    :param expires: Its last day, as a date or a number of days.
    """
    named = one_line(name, "name of the program", CLIENT_NAME_LIMIT)
    whose = "" if for_users else call.user
    rights = cast(Right, may), cast(ClientMode, mode)
    print(Tokens(settings().home).add(Token(named, whose, for_users, app, *rights, expires)))


@command(tokens, "list", without="user app")
def list_tokens(call: Call) -> None:
    """List the programs that have a token. The tokens are not shown."""
    found = Tokens(settings().home).all().values()
    if call.as_json:
        shown = ("name", "user", "for_users", "app", "may", "mode", "expires", "used")
        rows = [{key: _plain(getattr(one, key)) for key in shown} for one in found]
        output.print_json(rows, indent=None)
        return
    if not found:
        print("No program has a token. memchat tokens add NAME makes one.")
    for one in found:
        whose = one.user or f"people {one.for_users}"
        parts = [f"may {one.may}", one.mode, whose + (f" in {one.app}" if one.app else "")]
        parts += [f"until {one.expires}"] if one.expires else []
        parts.append(f"last used {one.used}" if one.used else "never used")
        print(output.plain(f"{one.name}: {'; '.join(parts)}"))


@command(tokens, "remove", without="user app as_json")
def remove_token(
    _: Call, name: Annotated[str, Argument(metavar="name", help="What you call the program.")]
) -> None:
    """Delete the token of a program; it gets nothing from now on."""
    Tokens(settings().home).remove(name)
    output.notice(f"{name} has no token any more.")


def _plain(value: str | date | None) -> str | None:
    return value.isoformat() if isinstance(value, date) else value
