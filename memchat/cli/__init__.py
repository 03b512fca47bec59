"""The command line: parse, call the façade, print. One module per noun, no logic.

Nothing heavy is imported here or at the top of any command module: ``memchat --help`` has to
answer in a fraction of a second. Every expected failure is one line on standard error.
"""

from __future__ import annotations

import atexit
import functools
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from memchat import disk
from memchat.cli import (
    chat,
    command,
    memories,
    notes,
    output,
    serve,
    sessions,
    store,
    system,
    transfer,
)
from memchat.cli.workflows import app as workflows
from memchat.config.settings import misspelt, read_env_file
from memchat.errors import MemChatError

app = command.group(
    "A chat assistant that remembers: typed, expiring, inspectable memory on your disk.\n\n"
    "`memchat demo` shows what it does, `memchat chat` begins a conversation."
)


def _version(wanted: bool) -> None:
    """Print the version and stop, where it is asked for."""
    if wanted:
        from importlib.metadata import version

        print(f"memchat {version('memchat')}")
        raise typer.Exit


@command.command(without="user app as_json")
def root(
    _: command.Call,
    version: bool = typer.Option(False, is_eager=True, callback=_version),
    env_file: Path | None = typer.Option(None, metavar="FILE", exists=True, dir_okay=False),
    verbose: int = typer.Option(0, "--verbose", "-v", count=True, show_default=False),
) -> None:
    """What holds for every command.

    :param version: Print the version.
    :param env_file: Read settings and keys from this file; the environment comes before it.
    :param verbose: Show on standard error what is done; -vv also each call of a model.
    """
    output.VERBOSE.set(verbose)
    found = None if env_file is None else read_env_file(env_file)
    command.ENV_FILE.set(found)
    if found is not None and found.ignored:
        output.notice(
            f"ignored in {found.name}, as memchat knows no such names: {', '.join(found.ignored)}"
        )
    for line in [*misspelt(os.environ), *misspelt(found.ignored if found is not None else ())]:
        output.notice(line)


app.callback()(root)
app.command()(system.demo)
app.command()(chat.chat)
app.command()(system.ui)
app.command()(chat.recall)
app.command()(sessions.why)
app.add_typer(memories.app, name="memories")
app.add_typer(notes.app, name="notes")
app.add_typer(workflows, name="workflow")
app.add_typer(sessions.app, name="sessions")
app.add_typer(store.apps_group, name="apps")
app.add_typer(store.users_group, name="users")
app.add_typer(memories.inbox_group, name="inbox")
app.add_typer(store.jobs_group, name="jobs")
app.command()(store.worker)
app.command()(store.backfill)
app.add_typer(store.services_group, name="services")
app.command()(system.audit)
app.command()(transfer.export)
app.command("import")(transfer.import_)
app.command()(system.doctor)
app.command()(system.config)
app.add_typer(system.mcp, name="mcp")
app.command()(serve.serve)
app.add_typer(serve.tokens, name="tokens")
app.add_typer(system.keys_group, name="keys")
app.add_typer(store.backup_group, name="backup")
app.add_typer(transfer.db_group, name="db")
app.command()(store.restore)
app.command()(store.wipe)
app.command()(command.completion)


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code: 0, 1 (an error), 2 (usage), 130 (Ctrl-C)."""
    _prepare_streams()
    _quiet_exit()
    try:
        code = _run(sys.argv[1:] if args is None else args)
        sys.stdout.flush()
    except BrokenPipeError:
        _close_output()  # whoever read has seen enough
        code = 1
    except KeyboardInterrupt:
        code = 130
    except MemChatError as error:
        output.command_failed(error)
        output.error(output.told(error))
        code = 1
    except OSError as error:
        if error.filename is None:
            _close_output()  # before the message, which is printed behind the rest of the output
        output.error(_refused(error))
        code = 1
    except Exception as error:
        output.command_failed(error)
        if os.environ.get("MEMCHAT_DEBUG") == "1":
            raise
        # Only the class: the text of a library's error may hold people's words.
        output.error(f"unexpected {type(error).__name__}; run with MEMCHAT_DEBUG=1 for details")
        code = 1
    finally:
        output.stop_log()
    return code


@functools.cache
def _quiet_exit() -> None:
    """Say nothing of what fails while the interpreter clears up, as a library's event loop that
    Ctrl-C left open does: everything is stored by then."""
    if os.environ.get("MEMCHAT_DEBUG") != "1":
        atexit.register(setattr, sys, "unraisablehook", lambda _: None)


def _close_output() -> None:
    """Send what is still to be printed nowhere: the interpreter's own flush at exit would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refused(error: OSError) -> str:
    if disk.has_no_room(error):
        return str(disk.full(str(error.filename or "the output"), error))
    return f"the system refused: {error.strerror or type(error).__name__}"


def _prepare_streams() -> None:
    """Text that a stream cannot hold is replaced; a stream that was closed swallows everything."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _run(args: Sequence[str]) -> int:
    if command.is_completing():
        command.prepare_completion()
    try:
        typer.main.get_command(app).main(list(args), prog_name="memchat")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0
