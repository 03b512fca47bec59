"""What every command is made of: its options, the store it opens, and what it asks the person.

A ``Call`` is a command that is running; ``command`` gives a function one, and the command the
options ``--user``, ``--app`` and ``--json`` for it. ``memchat completion`` and what is piped or
typed into an editor are here as well.
"""

from __future__ import annotations

import inspect
import io
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import date, datetime
from functools import cached_property
from inspect import Parameter
from pathlib import Path
from types import FrameType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    BinaryIO,
    Literal,
    Self,
    TextIO,
    TypeVar,
    get_origin,
)
from zoneinfo import ZoneInfo

import typer
from typer import Argument, Option
from typer.core import TyperGroup
from typer.models import ArgumentInfo, ParameterInfo

from memchat.cli import output
from memchat.config import Settings, load
from memchat.config.providers import without_secrets
from memchat.config.settings import USER, EnvFile, collect
from memchat.errors import InputError, MemChatError, NotFound, ScopeError
from memchat.types import MEMORY_TYPES, clean_tags, counted, documented

if TYPE_CHECKING:
    from memchat.api import MemChat
    from memchat.api.user import User as Person

Thing = TypeVar("Thing")
DEFAULT_APP = "default"
ALL = 1_000_000
"""More than anybody has of anything."""
COMPLETE_VAR = "_MEMCHAT_COMPLETE"
"""The variable by which the scripts ask the program for completions."""
ENV_FILE: ContextVar[EnvFile | None] = ContextVar("ENV_FILE", default=None)
"""The file that was named with ``--env-file`` for the command that is running."""
PIPED = "-"
"""What stands for standard input, or output, where a command takes a file or a text."""
SECOND_NAMES = {"search": "recall", "update": "edit"}
"""Other names of commands: those that the Python interface has."""
TYPES = f"{', '.join(MEMORY_TYPES)}, or one of your own"


class Group(TyperGroup):
    """A command with commands below it, which may be called by their second names too."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, if there is one."""
        named = super().get_command(ctx, cmd_name)
        return named or super().get_command(ctx, SECOND_NAMES.get(cmd_name, cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words name, and the words behind its name."""
        name, command, rest = super().resolve_command(ctx, args)
        output.COMMAND.set(f"{ctx.command_path} {name}")
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


Shell = Annotated[
    Literal["bash", "zsh", "fish"], Argument(metavar="SHELL", help="bash, zsh or fish.")
]


def completion(shell: Shell) -> None:
    """Print a shell's script for the Tab key.

    It completes commands, options and their values. No file is changed. In bash, try it with:
    eval "$(memchat completion bash)"
    """
    from typer._completion_shared import get_completion_script

    print(get_completion_script(prog_name="memchat", complete_var=COMPLETE_VAR, shell=shell))


def is_completing() -> bool:
    """Whether a shell's script runs the program to ask for completions."""
    return COMPLETE_VAR in os.environ


def prepare_completion() -> None:
    """Make Typer able to answer a shell's script."""
    from typer import _completion_classes

    _completion_classes.completion_init()
    # Typer would import rich to remove its markup from help texts, which takes longer than all
    # else. Ours have none.
    _completion_classes._sanitize_help_text = lambda text: text


def user_name() -> str:
    """Whose memory where nobody is named: as the settings say, else the login name.

    Raises ScopeError where the system knows none.
    """
    import getpass

    if is_completing():  # no file needs to be read then, and none may be in the way
        return ""
    named = collect(os.environ, ENV_FILE.get()).get(USER)
    if named:
        return named[0]
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


def one_of(noun: str, choices: Sequence[str]) -> dict[str, Any]:
    """The settings of an option that takes one of a few words, typed in any case. A word that a
    shell would have to quote is not completed."""
    two = len(choices) == 2
    use = " or ".join(choices) if two else f"one of {', '.join(choices)}"

    def read(text: str) -> str:
        if text.lower() not in choices:
            raise typer.BadParameter(f"{text!r} is no {noun}; use {use}")
        return text.lower()

    words = [choice for choice in choices if " " not in choice]
    metavar = "|".join(choices) if two else noun.upper()
    return {"parser": read, "autocompletion": lambda: words, "metavar": metavar}


_LOGIN: dict[str, Any] = {"default_factory": user_name, "show_default": "the login name"}
User = Annotated[str, Option("--user", envvar="MEMCHAT_USER", help="Whose memory.", **_LOGIN)]
App = Annotated[str, Option("--app", help="In which app.")]
Json = Annotated[bool, Option("--json", help="Print JSON, with times in UTC.")]
DAY: dict[str, Any] = {"parser": day, "metavar": "YYYY-MM-DD"}
SHARED = {
    "limit": Option("--limit", min=1, help="How many at most."),
    "offset": Option("--offset", min=0, help="How many to leave out first."),
    "yes": Option("--yes", help="Do it without asking."),
    "query": Option("--query", metavar="WORDS", help="All that have each of these words."),
    "tags": Option(
        "--tag", metavar="TAG", help="Only memories with this tag; given twice, with both."
    ),
    "topic": Option("--topic", metavar="ID", help="Only what is of this topic."),
    "metadata": Option(
        "--meta", metavar="NAME=VALUE", help="Only with this noted beside it; may be given again."
    ),
    "since": Option("--since", help="Only what was said on this day or later.", **DAY),
    "until": Option("--until", help="Only what was said on this day or before.", **DAY),
    "said_by": Option(
        "--said-by", help="Only what the person said (person), or a program wrote (program)."
    ),
    "key": Option("--key", help="Only memories with this key."),
    "everything": Option(
        "--all", help="Where nothing surely fits, print all that may, and not only three."
    ),
}
"""Options that several commands have: a parameter of this name is one, unless the command says
otherwise."""
TYPE: dict[str, Any] = {
    "parser": str.lower,  # a store may have more
    "autocompletion": lambda: [*MEMORY_TYPES],
    "metavar": "TYPE",
}
Ids = Annotated[list[int] | None, Argument(metavar="ID", help="Its number; there may be several.")]


NewTags = Annotated[
    list[str] | None,
    Option("--tag", metavar="TAG", help="A word to group it by; can be given several times."),
]
NewMetadata = Annotated[
    list[str] | None,
    Option("--meta", metavar="NAME=VALUE", help="Note this beside it; can be given several times."),
]


def noted(given: Sequence[str] | None) -> dict[str, Any]:
    """Metadata given as NAME=VALUE: a number, true or false where the value is written as one."""
    found: dict[str, Any] = {}
    for one in given or ():
        name, sign, value = one.partition("=")
        if not sign:
            raise typer.BadParameter(f"{one!r} is not of the form NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
        if not isinstance(found[name], int | float):
            found[name] = value
    return found


def retagged(
    before: Iterable[str], added: Sequence[str] | None, gone: Sequence[str] | None
) -> set[str]:
    """Tags with those of --tag and without those of --untag."""
    return {*before, *clean_tags(added or ())}.difference(clean_tags(gone or ()))


def settings() -> Settings:
    """The settings of this command: the environment, ``--env-file``, the data folder's files."""
    return load(env_file=ENV_FILE.get())


def open_store() -> MemChat:
    """The façade over the settings of this command, whose log begins; use it in a ``with``.

    Where the store is of an earlier version it is brought up to date, and one line says where the
    copy from before is.
    """
    from importlib.metadata import version

    from memchat.api import MemChat

    chosen = settings()
    output.start_log(chosen)
    mc = MemChat(settings=chosen)
    log, python = logging.getLogger(__name__), ".".join(map(str, sys.version_info[:3]))
    about = output.COMMAND.get(), version("memchat"), python, sys.platform
    log.info("%s (version %s, Python %s, %s)", *about)
    if mc.backup is not None:
        output.notice(
            f"The store was brought up to date; a copy of it as it was before is {mc.backup}"
        )
    return mc


def confirm(
    question: str, *, yes: bool, why: str = "this cannot be undone", word: str = ""
) -> None:
    """Return if the person agrees, with a yes, or by typing the ``word``. Without a terminal to ask
    on, only ``--yes`` agrees."""
    if yes:
        return
    if not sys.stdin.isatty():
        output.error(f"nothing was done; {why}, so add --yes to agree")
        raise typer.Exit(2)
    said = output.answer(output.plain(question) if word else f"{output.plain(question)} [y/N]")
    if said != word if word else said.lower() not in ("y", "yes"):
        output.error("nothing was done")
        raise typer.Exit(2)


def secret(what: str, *, again: bool = False) -> str:
    """What the person types without its being shown, twice if ``again``; without a terminal the
    first line of standard input. Raises InputError where the two differ."""
    from getpass import getpass

    if not sys.stdin.isatty():
        return _from_stdin(lambda: sys.stdin.readline().rstrip("\r\n"))
    said = getpass(f"{what}: ")
    if again and getpass(f"{what} again: ") != said:
        raise InputError(f"the two were not the same {what}; nothing was done")
    return said


def agree(ask: str, names: Sequence[str], noun: str, *, yes: bool) -> None:
    """Show what a command is about, and ask once for all of it: ``ask`` has {} in its place."""
    if len(names) > 1 and not yes:
        for name in names:
            output.notice(name)
    what = names[0] if len(names) == 1 else f"these {counted(len(names), noun)}"
    confirm(ask.format(what), yes=yes)


def numbered(noun: str, ids: Sequence[int]) -> str:
    """``note 3``, or ``notes 3, 5``."""
    return f"{counted(len(ids), noun).split()[1]} {', '.join(map(str, ids))}"


class Call:
    """A command that is running: the store, the person and the app it is about, and its output."""

    def __init__(self, user: str = "", app: str = DEFAULT_APP, as_json: bool = False) -> None:
        self.user, self.app, self.as_json = user, app, as_json
        self.failed = False
        """Whether the command ends with the exit code 1."""
        self._single = False
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def mc(self) -> MemChat:
        """The store, which is open from the first use until the command ends."""
        return self._open.enter_context(open_store())

    @cached_property
    def person(self) -> Person:
        """The person in the app, which is made where they write into it."""
        return self.mc.user(self.user, app=self.app)

    @cached_property
    def known(self) -> Person:
        """The person in an app that something is read or deleted in. Raises NotFound for an app
        that was named and that they do not have."""
        if self.app != DEFAULT_APP and self.app not in [
            one.name for one in self.person.apps.list()
        ]:
            raise NotFound(f"{self.user} has no app {self.app!r}; see memchat apps list")
        return self.person

    @property
    def zone(self) -> ZoneInfo:
        """The zone that times are shown in."""
        return self.mc.settings.zone

    def time(self, at: datetime) -> str:
        """A time as it is shown."""
        return output.time(at, self.zone)

    def result(self, record: Any, said: object) -> None:
        """Print what was done: the record as JSON, or else one line in words."""
        if self.as_json:
            output.print_json(record)
        else:
            print(output.plain(str(said)))

    def table(
        self,
        found: Sequence[Thing],
        columns: str,
        *,
        none: str,
        more: str = "",
        record: Callable[[Thing], Any] = lambda one: one,
        **made: Callable[[Thing], object],
    ) -> None:
        """Print things as JSON, or as a table; ``none`` is said where there are none, and ``more``
        below them.

        The columns are fields of the things, as in ``id state=status``, or ``made`` from each of
        them by what has the column's name. An underscore stands for a space.
        """
        if self.as_json:
            output.print_json([record(one) for one in found])
            return
        named = (column.partition("=") for column in columns.split())
        fields = {heading: field or heading for heading, _, field in named}

        def cell(one: Thing, heading: str) -> object:
            value = made[heading](one) if heading in made else getattr(one, fields[heading])
            if isinstance(value, datetime):
                return self.time(value)
            return "" if value is None else value

        rows = [[cell(one, heading) for heading in fields] for one in found]
        headings = [heading.replace("_", " ") for heading in fields]
        output.print_table(headings, rows, none=none, more=more)

    def chosen(
        self,
        ids: Sequence[int] | None,
        get: Callable[[int], Thing],
        query: str | None,
        find: Callable[[str], Iterable[Thing]],
        tags: Sequence[str] | None = None,
    ) -> list[Thing]:
        """The things of these numbers, or those that ``find`` gives for the words and tags.

        Raises NotFound for an unknown number, and where nothing has the words: nothing is done
        then.
        """
        words = (query or "").strip()
        if bool(ids) == bool(words or tags):
            raise typer.BadParameter(
                "give one or several numbers, or say which ones by --query WORDS"
            )
        self._single = ids is not None and len(ids) == 1
        things = [get(number) for number in dict.fromkeys(ids or ())] if ids else [*find(words)]
        if not things:
            raise NotFound("nothing has all of that, so nothing was done")
        return things

    def each(
        self,
        ids: Sequence[int],
        do: Callable[[Sequence[int]], object],
        record: Callable[[int], Any],
        *,
        at_once: int = 1,
    ) -> list[int]:
        """Do something with so many at a time, and print a record of each as JSON; those it was
        done with. The others are named with the reason, and the command then fails."""
        done: list[int] = []
        for first in range(0, len(ids), at_once):
            part = ids[first : first + at_once]
            try:
                do(part)
            except MemChatError as error:
                output.error(f"not done with {', '.join(map(str, part))}: {output.told(error)}")
                self.failed = True
            else:
                done += part
        if self.as_json:
            records = [record(number) for number in done]
            output.print_json(records[0] if self._single and len(records) == 1 else records)
        return done

    def embed_now(self) -> None:
        """Make what was just written searchable by meaning, where that needs no network.

        The row is safe and its id printed, so a failure here is a notice and not an error.
        """
        sys.stdout.flush()
        try:
            self.mc.jobs.embed()
        except MemChatError as error:
            output.error(f"saved, but not yet searchable by meaning: {error}")

    def tell_forgotten(self) -> None:
        """Name the backups that still hold what was just forgotten, and how to delete them."""
        held = self.mc.backups.perhaps_forgotten()
        if held:
            output.notice(
                f"forgotten words are still in {counted(len(held), 'backup')} "
                f"({', '.join(path.name for path in held)}); memchat backup prune NAME deletes one"
            )


_OF_A_CALL = {"user": (User, Parameter.empty), "app": (App, DEFAULT_APP), "as_json": (Json, False)}
"""The parameters of a ``Call``, each with its option and its default."""


def command(
    group: typer.Typer | None = None, name: str | None = None, *, without: str = "", **more: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command of the group. It gets a ``Call``, and the command takes --user,
    --app and --json for it, but for the parameters of a ``Call`` that are ``without``.

    Its other parameters are the command's own: an argument where there is no default, else an
    option, and the docstring has their help as ``:param NAME: …``.
    """
    given = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=option, default=default)
        for name, (option, default) in _OF_A_CALL.items()
        if name not in without.split()
    ]

    def register(work: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(work, eval_str=True).parameters.values()

        def run(**words: Any) -> None:
            with Call(**{one.name: words.pop(one.name) for one in given}) as call:
                work(call, **words)
            if call.failed:
                raise typer.Exit(1)

        run.__name__, (run.__doc__, helps) = work.__name__, documented(work)
        options = [
            *(one for one in given if one.name != "as_json"),
            *(_declared(one, helps.get(one.name)) for one in own),
            *(one for one in given if one.name == "as_json"),
        ]
        vars(run)["__signature__"] = inspect.Signature(options)
        if group is not None:
            group.command(name, **more)(run)
        return run

    return register


def _declared(one: Parameter, help: str | None) -> Parameter:
    """A parameter as Typer takes it. A flag has no ``--no-`` form, unless it says so."""
    info: Any = one.default
    told = isinstance(info, ParameterInfo) or get_origin(one.annotation) is Annotated
    if one.name in SHARED and help is None and not told:
        one = one.replace(annotation=Annotated[one.annotation, SHARED[one.name]])
    elif help is not None or one.annotation is bool:
        if info is Parameter.empty:
            info = Argument()
        elif not isinstance(info, ParameterInfo):
            info = Option(info)
        info.help = help
        if isinstance(info, ArgumentInfo):
            info.metavar = info.metavar or one.name.upper()
        elif one.annotation is bool and not info.param_decls:
            info.param_decls = (f"--{one.name.replace('_', '-')}",)
    return one.replace(kind=Parameter.KEYWORD_ONLY, default=info)


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[list[int]]:
    """In this block the first signal to end calls ``stop``, which lets what is in hand come to its
    end, and the second breaks it off.

    Gives a list that the signal's number is put into.
    """
    told: list[int] = []

    def first(number: int, frame: FrameType | None) -> None:
        for name in SIGNALS:
            signal.signal(name, signal.default_int_handler)
        told.append(number)
        stop()

    before = {name: signal.signal(name, first) for name in SIGNALS}
    try:
        yield told
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def piped() -> str:
    """All of standard input. Raises InputError where it is no text, or in another encoding."""
    text = _from_stdin(lambda: sys.stdin.read(), "; save it as a file and give its name")
    if "\0" in text:
        raise InputError("standard input is no text; save it as a file and give its name")
    return text


def _from_stdin(read: Callable[[], str], instead: str = "") -> str:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="strict")  # what is kept must not lose characters
    try:
        return read()
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not in UTF-8{instead}") from error


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
