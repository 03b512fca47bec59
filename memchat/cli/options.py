"""What the commands share: their scope, their options, and the store they open.

``memchat completion``, and answering a shell that asks what may come next on a command line.

What is piped into a command or out of it, and what a person writes in their editor.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, TextIO

import typer
from typer.core import TyperGroup

from memchat.cli import log
from memchat.errors import InputError, NotFound, ScopeError
from memchat.types import MEMORY_TYPES

if TYPE_CHECKING:
    from memchat.api import MemChat
    from memchat.api.user import User as Person
    from memchat.config import Settings
    from memchat.config.sources import EnvFile

COMPLETE_VAR = "_MEMCHAT_COMPLETE"
"""The variable by which the scripts ask the program for completions."""

Shell = Annotated[
    Literal["bash", "zsh", "fish"],
    typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False),
]


def completion(shell: Shell) -> None:
    """Print a shell's script for the Tab key.

    It completes commands, options and their values. No file is changed. In bash, try it with:
    eval "$(memchat completion bash)"
    """
    from typer._completion_shared import get_completion_script

    print(get_completion_script(prog_name="memchat", complete_var=COMPLETE_VAR, shell=shell))


def asked() -> bool:
    """Whether a shell's script runs the program to ask for completions."""
    return COMPLETE_VAR in os.environ


def prepare() -> None:
    """Make Typer able to answer a shell's script."""
    from typer import _completion_classes

    _completion_classes.completion_init()
    # Typer would import rich to remove its markup from help texts, which takes longer than all
    # else. Ours have none.
    _completion_classes._sanitize_help_text = lambda text: text


DEFAULT_APP = "default"
ENV_FILE: ContextVar[EnvFile | None] = ContextVar("ENV_FILE", default=None)
"""The file that was named with ``--env-file`` for the command that is running."""


SECOND_NAMES = {"search": "recall", "update": "edit"}
"""Other names of commands: those that the Python interface has."""


class Group(TyperGroup):
    """A command with commands below it, which may be called by their second names too."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, if there is one."""
        named = super().get_command(ctx, cmd_name)
        return named or super().get_command(ctx, SECOND_NAMES.get(cmd_name, cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words name, and the words behind its name."""
        name, command, rest = super().resolve_command(ctx, args)
        log.COMMAND.set(f"{ctx.command_path} {name}")
        return name, command, rest


def group(help: str) -> typer.Typer:
    """A command with commands below it. Rich would double the start-up time."""
    return typer.Typer(
        cls=Group,
        help=help,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )


def user_name() -> str:
    """Whose memory where nobody is named: as the settings say, else the login name.

    Raises ScopeError where the system knows none.
    """
    import getpass

    from memchat.config.names import USER
    from memchat.config.sources import collect

    if asked():  # no file needs to be read then, and none may be in the way
        return ""
    named = collect(os.environ, ENV_FILE.get()).values.get(USER)
    if named:
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        raise ScopeError("this account has no name; give one with --user or MEMCHAT_USER") from None


def day(text: str) -> date:
    """A day given as YYYY-MM-DD."""
    try:
        if len(text) != len("YYYY-MM-DD"):
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no day; write it as YYYY-MM-DD") from None


TYPES = ", ".join(MEMORY_TYPES)


def type_names() -> list[str]:
    """The memory types, for completion."""
    return [*MEMORY_TYPES]


def type_name(text: str) -> str:
    """A memory type, typed in any case."""
    if text.lower() not in MEMORY_TYPES:
        raise typer.BadParameter(f"{text!r} is no type; use one of {TYPES}")
    return text.lower()


User = Annotated[
    str,
    typer.Option(
        "--user",
        envvar="MEMCHAT_USER",
        default_factory=user_name,
        show_default="the login name",
        help="Whose memory.",
    ),
]
App = Annotated[str, typer.Option("--app", help="In which app.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, with times in UTC.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many at most.")]
Offset = Annotated[int, typer.Option("--offset", min=0, help="How many to leave out first.")]
All = Annotated[
    bool,
    typer.Option(
        "--all", help="Where nothing surely fits, print all that may, and not only three."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
Expires = Annotated[
    date | None,
    typer.Option(
        "--expires", parser=day, metavar="YYYY-MM-DD", help="The last day on which it holds."
    ),
]
WithTags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        help="Only memories with this tag; given twice, with both.",
        show_default=False,
    ),
]
NewTags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        help="A word to group it by; can be given several times.",
        show_default=False,
    ),
]
Starts = Annotated[
    date | None,
    typer.Option(
        "--starts", parser=day, metavar="YYYY-MM-DD", help="The first day on which it holds."
    ),
]


def settings() -> Settings:
    """The settings of this command: the environment, ``--env-file``, the data folder's files."""
    from memchat.config import load

    return load(env_file=ENV_FILE.get())


def open_store() -> MemChat:
    """The façade over the settings of this command, whose log begins; use it in a ``with``.

    Where the store is of an earlier version it is brought up to date, and one line says where the
    copy from before is.
    """
    from memchat.api import MemChat
    from memchat.cli import output

    chosen = settings()
    log.start(chosen)
    advise_move(chosen)
    mc = MemChat(settings=chosen)
    log.command_began()
    if mc.backup is not None:
        output.notice(
            f"The store was brought up to date; a copy of it as it was before is {mc.backup}"
        )
    return mc


def advise_move(set_to: Settings) -> None:
    """Print one line where the data folder is in use in a checkout by default."""
    from memchat.cli import output
    from memchat.config.files import move_advice
    from memchat.config.settings import HOME

    advice = None if HOME in set_to.origins else move_advice(set_to.home)
    if advice is not None:
        output.error(advice)


def known_app(mc: MemChat, user: str, app: str) -> Person:
    """The person in an app that something is to be read or deleted in.

    Raises NotFound for an app that was named and that they do not have.
    """
    person = mc.user(user, app=app)
    if app != DEFAULT_APP and not any(one.name == app for one in person.apps.list()):
        raise NotFound(f"{user} has no app {app!r}; see memchat apps list")
    return person


def confirm(question: str, *, yes: bool, why: str = "this cannot be undone") -> None:
    """Return if the person agrees. Without a terminal to ask on, only ``--yes`` agrees."""
    from memchat.cli import output

    if yes:
        return
    if not sys.stdin.isatty():
        output.error(f"nothing was done; {why}, so add --yes to agree")
        raise typer.Exit(2)
    if output.answer(f"{output.plain(question)} [y/N]").lower() not in ("y", "yes"):
        output.error("nothing was done")
        raise typer.Exit(2)


def embed_now(mc: MemChat) -> None:
    """Make what was just written searchable by meaning, where that needs no network.

    The row is safe and its id printed, so a failure here is a notice and not an error.
    """
    from memchat.cli import output
    from memchat.errors import MemChatError

    sys.stdout.flush()
    try:
        mc.jobs.embed()
    except MemChatError as error:
        output.error(f"saved, but not yet searchable by meaning: {error}")


PIPED = "-"
"""What stands for standard input, or output, where a command takes a file or a text."""


def piped() -> str:
    """All of standard input. Raises InputError where it is no text, or in another encoding."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="strict")  # what is kept must not lose characters
    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as error:
        raise InputError(
            "standard input is not in UTF-8; save it as a file and give its name"
        ) from error
    if "\0" in text:
        raise InputError("standard input is no text; save it as a file and give its name")
    return text


def out() -> BinaryIO:
    """Standard output as bytes. Raises BadParameter for a terminal, which would obey what it is
    sent."""
    if sys.stdout.isatty():
        raise typer.BadParameter("standard output is a terminal; name a file, or add > FILE")
    sys.stdout.flush()
    return sys.stdout.buffer


@contextmanager
def text_out() -> Iterator[TextIO]:
    """Standard output in UTF-8, whatever the system's encoding."""
    text = io.TextIOWrapper(out(), encoding="utf-8", newline="\n")
    try:
        yield text
    finally:
        text.detach()  # closing it would close standard output


def edited(text: str) -> str:
    """The text as the person leaves it in their editor.

    Raises BadParameter without a terminal or an editor, and InputError where the editor fails.
    """
    import shlex
    import subprocess
    import tempfile

    from memchat.config.names import without_secrets

    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command or not sys.stdin.isatty():
        raise typer.BadParameter("give --text or --title, or name your editor in EDITOR")
    # A folder of its own, which this account alone can read, goes with all that editors leave.
    with tempfile.TemporaryDirectory(prefix="memchat-") as folder:
        file = Path(folder, "note.md")
        file.write_text(text, "utf-8", newline="")
        given = without_secrets(os.environ)
        try:
            ended = subprocess.run([*shlex.split(command), str(file)], env=given, check=False)
        except (OSError, ValueError) as error:
            raise InputError(f"the editor {command!r} cannot be started ({error})") from error
        if ended.returncode:
            raise InputError(f"the editor failed ({ended.returncode}); nothing was changed")
        with file.open(encoding="utf-8", errors="replace", newline="") as changed:
            after = changed.read()
    # Editors end the last line, whether it was ended before or not.
    return after if text.endswith("\n") else after.removesuffix("\n")
