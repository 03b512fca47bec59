"""``memchat mcp``: the store for other assistants, and the tools of other servers."""

from __future__ import annotations

import json
from importlib import util
from typing import Annotated, Any, Literal, cast

import typer
from typer import Argument, Option

from memchat.cli import output
from memchat.cli.command import Call, Yes, command, confirm, group, settings
from memchat.errors import ConfigError, InputError, StoreError
from memchat.types import CLIENT_MODES, ClientMode, counted, one_line

STDIO_CLIENT, HTTP_PORT = "assistant", 8765
app = group("The memory for other assistants over MCP, and the tools of other servers.")
app.info.no_args_is_help = False


def _mode(text: str) -> str:
    if text not in CLIENT_MODES:
        raise typer.BadParameter(f"{text!r} is no mode; use ask or trust")
    return text


Mode = Annotated[
    str,
    Option(
        "--mode",
        parser=_mode,
        metavar="ask|trust",
        help="trust: what it remembers is stored. ask: it waits in your inbox.",
    ),
]


@command(without="as_json")
def serve(
    call: Call,
    ctx: typer.Context,
    client: str = STDIO_CLIENT,
    mode: Mode = "trust",
    http: bool = False,
    port: int = Option(HTTP_PORT, min=1, max=65535),
) -> None:
    """Serve the memory of one person in one app to another assistant, over MCP.

    Without --http it speaks over standard input and output: put `memchat mcp` into the
    configuration of an assistant, which then starts it. With --http it listens on this machine for
    programs that you gave a token (memchat mcp token). Ctrl-C ends it.

    :param client: What you call the program that uses your memory.
    :param http: Listen on 127.0.0.1 for programs with a token.
    :param port: Where it listens with --http.
    """
    if ctx.invoked_subcommand is not None:
        return
    _require_sdk()
    from memchat.config import keys
    from memchat.mcp import server

    mc, person = call.mc, call.person
    if not http:
        access = person.client(client, cast(ClientMode, mode))
        server.Server(mc, person, lambda _call: access).serve_stdio()
        return

    def tokens() -> Any:
        return keys.read_tokens(mc.settings.home)

    if not tokens():
        output.error("no program has a token yet; memchat mcp token NAME makes one")
    try:
        server.serve(
            server.Server(mc, person, server.access_by_token(person, tokens)),
            port,
            tokens,
            lambda: output.notice(f"http://127.0.0.1:{port}/mcp; Ctrl-C ends it"),
        )
    except OSError as error:
        raise StoreError(f"port {port} cannot be used ({error.strerror})") from error


app.callback(invoke_without_command=True)(serve)


@command(app, without="as_json")
def config(call: Call, client: Literal["claude-desktop", "vscode", "cursor"]) -> None:
    """Print what another assistant needs in its configuration to use your memory.

    Where that file has servers already, put the entry memchat beside them.

    :param client: claude-desktop, vscode or cursor.
    """
    from memchat.api.clients import configs

    (found,) = [one for one in configs(settings().home, call.user, call.app) if one.key == client]
    output.notice(f"for {found.place}")
    print(found.text)


@command(app, without="user app as_json")
def token(
    _: Call,
    name: Annotated[str, Argument(metavar="name", help="What you call the program.")],
    mode: Mode = "ask",
    remove: bool = False,
) -> None:
    """Make the token with which a program calls over HTTP; it is shown this once.

    :param remove: Delete its token.
    """
    from memchat.config import keys

    home = settings().home
    named = one_line(name, "name of the client", 60)
    if remove:
        keys.remove_token(home, named)
        print(f"{named} has no token any more.")
        return
    print(keys.create_token(home, named, cast(ClientMode, mode)).token)


@command(app, without="user app")
def tokens(call: Call) -> None:
    """List the programs that have a token. The tokens are not shown."""
    from memchat.config import keys

    found = keys.read_tokens(settings().home).values()
    if call.as_json:
        output.print_json([{"name": one.name, "mode": one.mode} for one in found], indent=None)
    elif not found:
        print("No program has a token. memchat mcp token NAME makes one.")
    for one in () if call.as_json else found:
        print(output.plain(f"{one.name}: {one.mode}"))


@command(app)
def clients(call: Call, undo: str | None = Option(None, metavar="NAME"), yes: Yes = False) -> None:
    """Show which programs called, and what they wrote.

    :param undo: Undo all that it wrote.
    """
    person = call.known
    found = person.clients.list()
    if undo is not None:
        there = [one for one in found if one.name == undo]
        if there:
            what = f"{counted(there[0].memories, 'memory')} and {counted(there[0].notes, 'note')}"
            confirm(f"Delete all that {undo} wrote, {what}?", yes=yes)
        done = person.clients.undo(undo)
        gone, kept = (counted(len(some), "memory") for some in (done.gone, done.kept))
        print(f"Deleted {gone}; {len(done.back)} are back.")
        if done.kept:
            whose = "which you changed, pinned or tagged, or which somebody else said too"
            print(f"Kept {kept}, {whose}.")
        return
    if call.as_json:
        output.print_json(found, indent=None)
        return
    if not found:
        print("No program has called yet.")
    for one in found:
        wrote = (
            f"{counted(one.memories, 'memory')}, {counted(one.notes, 'note')}, "
            f"{one.waiting} waiting in the inbox, {one.forgotten} asked to forget"
        )
        print(output.plain(f"{one.name} ({one.mode}): {counted(one.calls, 'call')}; {wrote}"))


@command(app, "call", without="user app")
def call_tool(
    call: Call,
    name: Annotated[str, Argument(metavar="name", help="A server named in settings.toml.")],
    tool: str | None = Argument(None, metavar="tool"),
    args: str = Option("{}", metavar="JSON"),
) -> None:
    """Call a tool of another MCP server.

    :param tool: The tool; without it they are listed.
    :param args: Its arguments.
    """
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
    print(json.dumps(answer.structured) if call.as_json else output.plain(answer.text))


def _require_sdk() -> None:
    if util.find_spec("mcp") is None:
        raise ConfigError("MCP needs the mcp package; run pip install 'memchat[mcp]'")
