"""``memchat mcp``: the store for other assistants, and the tools of other servers."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

from memchat.cli.options import App, Json, User, Yes, confirm, group, known_app, open_store
from memchat.errors import ConfigError, InputError, StoreError
from memchat.types import CLIENT_MODES, ClientMode

STDIO_CLIENT, HTTP_PORT = "assistant", 8765
app = group("The memory for other assistants over MCP, and the tools of other servers.")
app.info.no_args_is_help = False
Name = Annotated[
    str, typer.Option("--client", help="What you call the program that uses your memory.")
]


def _mode(text: str) -> str:
    if text not in CLIENT_MODES:
        raise typer.BadParameter(f"{text!r} is no mode; use ask or trust")
    return text


Mode = Annotated[
    str,
    typer.Option(
        "--mode",
        parser=_mode,
        metavar="ask|trust",
        help="trust: what it remembers is stored. ask: it waits in your inbox.",
    ),
]


@app.callback(invoke_without_command=True)
def serve(
    ctx: typer.Context,
    user: User,
    in_app: App = "default",
    client: Name = STDIO_CLIENT,
    mode: Mode = "trust",
    http: Annotated[
        bool, typer.Option("--http", help="Listen on 127.0.0.1 for programs with a token.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="Where it listens with --http.")
    ] = HTTP_PORT,
) -> None:
    """Serve the memory of one person in one app to another assistant, over MCP.

    Without --http it speaks over standard input and output: put `memchat mcp` into the
    configuration of an assistant, which then starts it. With --http it listens on this machine for
    programs that you gave a token (memchat mcp token). Ctrl-C ends it.
    """
    from memchat.cli import output

    if ctx.invoked_subcommand is not None:
        return
    _require_sdk()
    from memchat.mcp.server import Server

    with open_store() as mc:
        person = mc.user(user, app=in_app)
        if not http:
            access = person.client(client, _checked(mode))
            Server(mc, person, lambda _call: access).serve_stdio()
            return
        from memchat.config import keys
        from memchat.mcp import server as over_http

        home = mc.settings.home

        def tokens() -> Any:
            return keys.read_tokens(home)

        if not tokens():
            output.error("no program has a token yet; memchat mcp token NAME makes one")
        try:
            over_http.serve(
                Server(mc, person, over_http.access_by_token(person, tokens)),
                port,
                tokens,
                lambda: output.notice(f"http://127.0.0.1:{port}/mcp; Ctrl-C ends it"),
            )
        except OSError as error:
            raise StoreError(f"port {port} cannot be used ({error.strerror})") from error


@app.command("config")
def config(
    client: Annotated[
        Literal["claude-desktop", "vscode", "cursor"],
        typer.Argument(metavar="CLIENT", help="claude-desktop, vscode or cursor."),
    ],
    user: User,
    in_app: App = "default",
) -> None:
    """Print what another assistant needs in its configuration to use your memory.

    Where that file has servers already, put the entry memchat beside them.
    """
    from memchat.api.clients import configs
    from memchat.cli import output
    from memchat.cli.options import settings

    (found,) = [one for one in configs(settings().home, user, in_app) if one.key == client]
    output.notice(f"for {found.place}")
    print(found.text)


@app.command("token")
def token(
    name: Annotated[str, typer.Argument(help="What you call the program.")],
    mode: Mode = "ask",
    remove: Annotated[bool, typer.Option("--remove", help="Delete its token.")] = False,
) -> None:
    """Make the token with which a program calls over HTTP; it is shown this once."""
    from memchat.cli.options import settings
    from memchat.config import keys
    from memchat.types import one_line

    home = settings().home
    named = one_line(name, "name of the client", 60)
    if remove:
        keys.remove_token(home, named)
        print(f"{named} has no token any more.")
        return
    print(keys.create_token(home, named, _checked(mode)).token)


@app.command("tokens")
def tokens(as_json: Json = False) -> None:
    """List the programs that have a token. The tokens are not shown."""
    from memchat.cli import output
    from memchat.cli.options import settings
    from memchat.config import keys

    found = keys.read_tokens(settings().home).values()
    rows = [{"name": one.name, "mode": one.mode} for one in found]
    if as_json:
        print(json.dumps(rows))
    elif not rows:
        print("No program has a token. memchat mcp token NAME makes one.")
    for row in () if as_json else rows:
        print(output.plain(f"{row['name']}: {row['mode']}"))


@app.command("clients")
def clients(
    user: User,
    in_app: App = "default",
    undo: Annotated[
        str | None, typer.Option("--undo", metavar="NAME", help="Undo all that it wrote.")
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Show which programs called, and what they wrote."""
    from memchat.cli import output
    from memchat.types import counted, to_json

    with open_store() as mc:
        person = known_app(mc, user, in_app)
        if undo is not None:
            there = [one for one in person.clients.list() if one.name == undo]
            if there:
                held = _memories(there[0].memories)
                what = f"{held} and {counted(there[0].notes, 'note')}"
                confirm(f"Delete all that {undo} wrote, {what}?", yes=yes)
            done = person.clients.undo(undo)
            print(output.plain(f"Deleted {_memories(len(done.gone))}; {len(done.back)} are back."))
            if done.kept:
                print(
                    f"Kept {_memories(len(done.kept))}, which you changed, pinned or tagged, or "
                    "which somebody else said too."
                )
            return
        found = person.clients.list()
        if as_json:
            print(json.dumps([to_json(one) for one in found], ensure_ascii=False))
            return
        if not found:
            print("No program has called yet.")
        for one in found:
            wrote = (
                f"{_memories(one.memories)}, {counted(one.notes, 'note')}, "
                f"{one.waiting} waiting in the inbox, {one.forgotten} asked to forget"
            )
            calls = counted(one.calls, "call")
            print(output.plain(f"{one.name} ({one.mode}): {calls}; {wrote}"))


@app.command("call")
def call(
    name: Annotated[str, typer.Argument(help="A server named in settings.toml.")],
    tool: Annotated[
        str | None, typer.Argument(help="The tool; without it they are listed.")
    ] = None,
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="Its arguments.")] = "{}",
    as_json: Json = False,
) -> None:
    """Call a tool of another MCP server."""
    from memchat.cli import output
    from memchat.cli.options import settings
    from memchat.mcp.client import MCPClient, find

    _require_sdk()
    client = MCPClient(find(settings().home, name))
    if tool is None:
        for one in client.tools():
            print(output.plain(f"{one.name}: {' '.join(one.description.split())}"))
        return
    try:
        given = json.loads(args)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InputError('--args is no JSON object; give one like {"query": "tea"}')
    answer = client.call(tool, given)
    # Another program wrote it: nothing of it may steer the terminal.
    print(json.dumps(answer.structured) if as_json else output.plain(answer.text))


def _memories(number: int) -> str:
    return "1 memory" if number == 1 else f"{number:,} memories"


def _checked(mode: str) -> ClientMode:
    return "trust" if mode == "trust" else "ask"


def _require_sdk() -> None:
    from importlib import util

    if util.find_spec("mcp") is None:
        raise ConfigError("MCP needs the mcp package; run pip install 'memchat[mcp]'")
