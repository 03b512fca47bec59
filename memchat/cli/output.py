"""Output of commands: tables, times, paging and progress for people, and JSON for scripts; how many
columns of a terminal a text takes, and shortening and wrapping it to fit.

The log of a command goes to a file of the data folder, which a person may send to whoever looks
into a problem, and with ``--verbose`` to standard error.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import json
import logging
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from datetime import date, datetime
from pathlib import Path
from time import gmtime, monotonic
from typing import Any, Self, TextIO, TypeVar
from zoneinfo import ZoneInfo

from memchat import types
from memchat.config import Settings
from memchat.config.providers import without_secrets
from memchat.errors import ConfigError, MemChatError, ProviderError, origin

EMOJI_STYLE = "\ufe0f"
"""Shows the character before it as an emoji, which takes two columns."""


def width(text: str) -> int:
    """How many terminal columns a line takes."""
    if text.isascii():
        return len(text)
    return sum(columns for _, columns in _cells(text))


def shorten(text: str, columns: int) -> str:
    """The line cut to this many columns, with an ellipsis if something is missing."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for c, taken in _cells(text):
        used += taken
        if used > columns - 1:
            break
        kept.append(c)
    return "".join(kept).rstrip() + "…"


def wrap(line: str, columns: int) -> list[str]:
    """The line as lines of at most this many columns, broken at spaces where there are any."""
    lines: list[str] = []
    used = 0
    for word in line.split(" "):
        size = width(word)
        if lines and used + 1 + size <= columns:
            lines[-1], used = f"{lines[-1]} {word}", used + 1 + size
            continue
        lines.append("")
        used = 0
        for c, taken in _cells(word):
            if lines[-1] and used + taken > columns:
                lines.append("")
                used = 0
            lines[-1], used = lines[-1] + c, used + taken
    return lines


def _cells(text: str) -> Iterator[tuple[str, int]]:
    """Each character of a line with the columns that it adds."""
    before = 0
    for c in text:
        before = 1 if c == EMOJI_STYLE and before == 1 else _columns(c)
        yield c, before


def _columns(c: str) -> int:
    if unicodedata.east_asian_width(c) in "WF":
        return 2
    return 0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 1


Found = TypeVar("Found", types.Hit, types.NoteHit)
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
TARGETS = {
    "extract": "session",
    "verify": "session",
    "index": "session",
    "embed": "memory",
    "forget": "memory",
    "delete": "note",
    "note": "note",
}
"""The target of each kind of job."""
READ_LATER = "the conversation is kept and is read again later, or now by `memchat jobs run`"
"""What to do about a reading that failed."""
VALUE = 40
"""Columns of a value in a hint."""
LESS_SURE = 3
"""Hits that are printed where a search is confident of none."""
NARROWEST = 12
"""Columns that a cell of a table is not shortened below."""


def on_terminal() -> bool:
    """Whether input and output are both a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def told(error: MemChatError) -> str:
    """What an error says, with the command that shows more."""
    return f"{error}; see memchat {error.see}" if error.see else str(error)


def error(message: str) -> None:
    """Print one line on standard error, after the program's name."""
    sys.stdout.flush()
    print(f"memchat: {plain(' '.join(message.split()))}", file=sys.stderr, flush=True)


def notice(message: str) -> None:
    """Print a remark on standard error; grey and wrapped if that is a terminal."""
    sys.stdout.flush()
    print(dim(_wrapped(plain(message), sys.stderr)), file=sys.stderr, flush=True)


def answer(question: str) -> str:
    """What the person types after a question on standard error; empty at the end of the input."""
    print(f"{question} ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def print_text(text: str, *, indent: str = "") -> None:
    """Print a text, wrapped if standard output is a terminal, each line after the indent."""
    print(_wrapped(plain(text), sys.stdout, indent))


def _wrapped(text: str, stream: TextIO, indent: str = "") -> str:
    lines = text.split("\n")
    if stream.isatty():
        columns = max(1, shutil.get_terminal_size().columns - len(indent))
        lines = [part for line in lines for part in wrap(line, columns)]
    return "\n".join(f"{indent}{line}" for line in lines)


def dim(text: str) -> str:
    """The text in grey if standard error is a terminal with colours."""
    plainly = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return text if plainly or not sys.stderr.isatty() else f"\x1b[2m{text}\x1b[0m"


def plain(text: str) -> str:
    """The text with control characters replaced by U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\ufffd"
        if c not in "\n\t" and (unicodedata.category(c) in ("Cc", "Cs") or c in BIDI_CONTROLS)
        else c
        for c in text
    )


def table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, columns: int | None = None
) -> list[str]:
    """The heading and each row of a table, with aligned columns.

    With ``columns``, those of a terminal, the widest ones are shortened to fit, and empty ones are
    left out. Where that is not enough, a row is several lines, one for each cell.
    """
    cells = [[*headings], *([plain(" ".join(str(cell).split())) for cell in row] for row in rows)]
    widths = _widths(cells)
    if columns is not None and _total(widths) > columns:
        filled = [i for i in range(len(headings)) if any(line[i] for line in cells[1:])]
        cells = [[line[i] for i in filled] for line in cells]
        widths = _shortened(_widths(cells), columns)
        if _total(widths) > columns:
            return ["", *(_block(cells[0], row, columns) for row in cells[1:])]
        cells = [[shorten(cell, widths[i]) for i, cell in enumerate(line)] for line in cells]
    return [
        "  ".join(cell + " " * (widths[i] - width(cell)) for i, cell in enumerate(line)).rstrip()
        for line in cells
    ]


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width, column)) for column in zip(*cells, strict=True)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _shortened(widths: list[int], columns: int) -> list[int]:
    """The widths, the widest ones reduced as far as is needed and allowed, one after the other."""
    reduced = [*widths]
    for i in sorted(range(len(widths)), key=lambda i: -widths[i]):
        over = max(0, _total(reduced) - columns)
        reduced[i] = max(min(NARROWEST, widths[i]), widths[i] - over)
    return reduced


def _block(headings: Sequence[str], row: Sequence[str], columns: int) -> str:
    """A row as lines of a heading and its cell, and an empty line."""
    indent = max(map(width, headings)) + 2
    pairs = zip(headings, row, strict=True)
    lines = [shorten(f"{heading:<{indent}}{cell}", columns) for heading, cell in pairs if cell]
    return "\n".join([*lines, ""])


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    none: str,
    more: str = "",
    divide: tuple[int, str] | None = None,
) -> None:
    """Print a table, paged if it is longer than the terminal; ``none`` is shown if it has no rows.

    ``divide`` is a line to insert after so many rows, if more rows follow.
    """
    if not rows:
        notice(none)
        return
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = table(headings, rows, columns=columns)
    if divide is not None and divide[0] < len(rows):
        lines.insert(divide[0] + 1, divide[1])
    page("\n".join(lines).strip("\n"))
    if more:
        notice(more)


def page(text: str) -> None:
    """Print the text, through the user's pager if it is longer than the terminal."""
    text = plain(text)
    if not on_terminal() or text.count("\n") + 1 < shutil.get_terminal_size().lines:
        print(text)
        return
    import subprocess

    command = os.environ.get("PAGER") or ("less" if shutil.which("less") else "")
    if not command or os.environ.get("TERM", "dumb") == "dumb":
        print(text)
        return
    sys.stdout.flush()
    env = {"LESS": "-FRX", **without_secrets(os.environ)}
    # PAGER is a shell command, for example `less -R`.
    with subprocess.Popen(command, shell=True, env=env, stdin=subprocess.PIPE) as pager:
        with contextlib.suppress(OSError, KeyboardInterrupt):  # it ended before it read everything
            pager.communicate((text + "\n").encode(sys.stdout.encoding, "replace"))
        while pager.poll() is None:
            with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is meant for the pager
                pager.wait()


def shown_hits(hits: Sequence[Found], *, everything: bool) -> Sequence[Found]:
    """The hits to print: all, but for a few of those that may have nothing to do with the question
    where no other was found, which is said; with ``everything`` all of these too."""
    if not hits or any(hit.confident for hit in hits):
        return hits
    few = hits if everything else hits[:LESS_SURE]
    more = f" (--all shows {len(hits)})" if len(few) < len(hits) else ""
    notice(f"nothing found; less sure{more}:")
    return few


def print_json(record: Any, *, indent: int | None = 2) -> None:
    """Print one JSON document, which may have records in it; without ``indent`` on one line.
    Characters that are invisible or control the terminal, or that the output's encoding lacks, are
    escaped."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(record, ensure_ascii=not utf8, indent=indent, default=types.to_json)
    print(text if text.replace("\n", "").isprintable() else "".join(map(_in_json, text)))


def _in_json(c: str) -> str:
    if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return c
    number = c.encode("utf-16-be", "surrogatepass").hex()  # two numbers above U+FFFF
    return "".join(f"\\u{number[place : place + 4]}" for place in range(0, len(number), 4))


def time(at: datetime, zone: ZoneInfo) -> str:
    """Date and time in the user's zone."""
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def memory_state(memory: types.Memory, today: date) -> str:
    """active, coming, expired, or why it is not active."""
    if not memory.active:
        return memory.inactive_reason or "inactive"
    if memory.expires_at and memory.expires_at < today:
        return "expired"
    return "coming" if memory.starts_at and memory.starts_at > today else "active"


MEMORY_COLUMNS = "id type=memory_type memory=told state said until app"


def memory_cells(zone: ZoneInfo) -> dict[str, Callable[[types.Memory], object]]:
    """What is made for a list of memories, with the days of the user's zone."""
    today = datetime.now(zone).date()
    return {
        "state": lambda one: memory_state(one, today) + (", sensitive" if one.sensitive else ""),
        "said": lambda one: one.said_at.astimezone(zone).date(),
        "until": days,
        "app": lambda one: app_name(one.app),
    }


def days(memory: types.Memory) -> str:
    """The first and last day it holds; empty if it has neither."""
    start = f"from {memory.starts_at}" if memory.starts_at else ""
    if not memory.expires_at:
        return start
    return f"{start}, until {memory.expires_at}" if start else str(memory.expires_at)


def vector(state: types.EmbeddingState) -> str:
    """The state of a memory's vector: its model, or why there is none yet."""
    if state.status == "completed":
        return f"completed ({state.model})"
    if state.error is not None:
        return f"{state.status} after {types.counted(state.attempts, 'try')}: {state.error}"
    return state.status or "none (memchat backfill makes it, where there is a model)"


def app_name(app: str) -> str:
    """The app's name in a column."""
    return "(every app)" if app == types.EVERY_APP else app


def remembered(shown: types.Recalled) -> str:
    """The keys of the memories that an answer was given, and how many notes, or nothing."""
    keys = [hit.memory.key for hit in shown.hits if hit.memory is not None]
    words = sum(hit.kind == "message" for hit in shown.hits)
    if words:
        keys.append(types.counted(words, "earlier message"))
    if shown.notes:
        keys.append(f"{len(shown.notes)} of your notes")
    return f"remembered: {', '.join(dict.fromkeys(keys))}" if keys else ""


def learned(outcome: types.Learned, *, kept_only: bool = False) -> str:
    """What was learned from a conversation, with its evidence; with ``kept_only`` without what
    waits in the inbox or was refused."""
    if outcome.skipped is not None:
        return f"Nothing was saved: {outcome.skipped}"
    left = ("review", "refused") if kept_only else ()
    changes = [change for change in outcome.changes if change.kind not in left]
    lines = [outcome.headline, *(_change(change) for change in changes)]
    if outcome.title:
        lines.insert(0, f"Conversation: {outcome.title}")
    return plain("\n".join(lines))


def command(words: str, app: str) -> str:
    """A command line for this app."""
    import shlex

    return f"memchat {words}" + (f" --app {shlex.quote(app)}" if app != "default" else "")


def changed(old: types.Memory, new: types.Memory | None, undo: str) -> str:
    """What replaced a memory, or that it has ended (``new`` is the same), with the command that
    undoes it. If a key holds several values, that restores the old one beside the new."""
    was = shorten(plain(" ".join(old.value.split())), VALUE)
    if new is None or new.id == old.id:
        return f"ended: {plain(old.key)}: {was}; undo: {undo} {old.id}"
    now = shorten(plain(" ".join(new.value.split())), VALUE)
    back = "bring it back" if new.many else "undo"
    return f"changed: {plain(new.key)}: {was} → {now}; {back}: {undo} {old.id}"


def not_kept(refusals: Sequence[types.Refusal], keep: str) -> list[str]:
    """A line for each refused proposal with the reason, and one for all that only repeat what is
    known. ``keep`` is the command that stores one anyway."""
    lines = []
    for refusal in refusals:
        if refusal.repeats:
            continue
        anyway = f"; keep it anyway: {keep} {refusal.id}" if refusal.proposes else ""
        lines.append(plain(" — ".join(filter(None, (refusal.proposes, refusal.reason)))) + anyway)
    if repeats := sum(refusal.repeats for refusal in refusals):
        known = "1 that only repeats" if repeats == 1 else f"{repeats} that only repeat"
        lines.append(f"{'and ' if lines else ''}{known} what is known")
    return lines


def failed(job: types.Job) -> str:
    """A failed job, its target and the reason."""
    target = f"{TARGETS.get(job.kind, 'target')} {job.target_id}"
    return f"job {job.id} ({job.kind} of {target}): {job.error_message or 'unknown'}"


def used(total: types.UsageTotal) -> str:
    """Calls, tokens, time and cost of one purpose and model."""
    calls = types.counted(total.calls, "call")
    return f"{total.purpose}, {total.model}: {calls}, {spent(total, 'cost ')}"


def spent(use: types.UsageTotal | types.Usage, cost: str = "") -> str:
    """Tokens, time and cost; ``cost`` comes before a known cost."""
    dollars = f"{use.cost_usd or 0:.6f}".rstrip("0").rstrip(".")
    price = "cost unknown" if use.cost_usd is None else f"{cost}${dollars}"
    tokens = f"{use.prompt_tokens} tokens in, {use.completion_tokens} out"
    return f"{tokens}, {use.seconds:.1f} s, {price}"


def _change(change: types.Change) -> str:
    parts, memory = [f"  {change.kind:<10}"], change.memory
    if memory is not None:
        parts.append(f"[{memory.memory_type}] {memory.told}")
        parts += [f"(from {memory.starts_at})"] if memory.starts_at else []
        parts += [f"(until {memory.expires_at})"] if memory.expires_at else []
    parts += [f"(before: {change.before})"] if change.before is not None else []
    parts += [f"({change.reason})"] if change.reason is not None else []
    if change.quotes:
        parts.append("← " + " … ".join(f"“{' '.join(quote.split())}”" for quote in change.quotes))
    return " ".join(parts)


EVERY_SECONDS = 0.2
EVERY_SECONDS_IN_A_FILE = 5.0
"""Longer, as each update is a new line there."""
BAR = 24


class ProgressLine:
    """Shows ``Progress`` reports, not too often, and always the last one. It ends with its ``with``
    block."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown_at = 0.0
        self._open = False
        self._pending: types.Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Show the last report and end the line."""
        if self._pending is not None:
            self._show(self._pending)
        if self._open:
            print(file=sys.stderr, flush=True)

    def update(self, progress: types.Progress) -> None:
        """Show this, unless there is nothing to do or a report was shown just before."""
        if not progress.total:
            return
        self._pending = progress
        between = EVERY_SECONDS if self._terminal else EVERY_SECONDS_IN_A_FILE
        if progress.pause is not None or monotonic() - self._shown_at >= between:
            self._show(progress)

    def _show(self, progress: types.Progress) -> None:
        self._pending, self._shown_at = None, monotonic()
        text = progress_text(progress)
        if self._terminal:
            columns = shutil.get_terminal_size().columns - 1
            filled = min(BAR, BAR * progress.past // progress.total)
            text = shorten(f"[{'#' * filled}{'.' * (BAR - filled)}] {text}", columns)
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
            self._open = True
        else:
            print(text, file=sys.stderr, flush=True)


def progress_text(progress: types.Progress) -> str:
    """``1,200 of 3,000 (40 %), 600 a second, 3 s left``."""
    share = 100 if not progress.total else int(100 * progress.past / progress.total)
    unit = f" {progress.unit}" if progress.unit else ""
    parts = [f"{progress.done:,} of {progress.total:,}{unit} ({share} %)"]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.rate:
        parts.append(f"{progress.rate:,.{0 if progress.rate >= 10 else 1}f} a second")
    if progress.left is not None and progress.past < progress.total:
        parts.append(f"{duration(progress.left)} left")
    if progress.pause is not None:
        parts.append(f"waiting {progress.pause:.0f} s, as the service asked")
    if progress.name:
        parts.append(plain(progress.name))
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """A time span in its two largest units: ``1 h 5 min``, ``2 min 10 s``, ``7 s``."""
    whole = max(1, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


COMMAND: ContextVar[str] = ContextVar("COMMAND", default="memchat")
"""The names of the command that is running, without its arguments."""
VERBOSE: ContextVar[int] = ContextVar("VERBOSE", default=0)
"""How often ``--verbose`` was given."""
LEVELS = ("warning", "info", "debug")
"""What standard error gets at most, by how often ``--verbose`` was given; without it nothing."""
_handlers: list[logging.Handler] = []


def start_log(settings: Settings, *, verbose: int = 0) -> None:
    """Write memchat's log until ``stop_log``; ``verbose`` is as often as ``--verbose`` at least."""
    stop_log()
    verbose = max(verbose, VERBOSE.get())
    asked = min(verbose, len(LEVELS) - 1)
    if settings.log != "off":
        _add(LogFile(settings.home), LEVELS[max(asked, LEVELS.index(settings.log))])
    if verbose:
        _add(_to_stderr(), LEVELS[asked])
    if not _handlers:
        _handlers.append(logging.NullHandler())
    log = logging.getLogger("memchat")
    log.setLevel(min((one.level for one in _handlers), default=logging.WARNING))
    for handler in _handlers:
        log.addHandler(handler)


def stop_log() -> None:
    """Write the log no more."""
    if not _handlers:
        return
    log = logging.getLogger("memchat")
    while _handlers:
        log.removeHandler(_handlers.pop())
    log.setLevel(logging.NOTSET)


def command_failed(error: Exception) -> None:
    """Log what ended a command, if its log was begun."""
    if _handlers:
        expected = isinstance(error, MemChatError)
        level = logging.WARNING if expected else logging.ERROR
        logging.getLogger(__name__).log(level, "%s failed: %s", COMMAND.get(), error)


def _add(handler: logging.Handler, level: str) -> None:
    handler.setLevel(level.upper())
    _handlers.append(handler)


def _to_stderr() -> logging.Handler:
    class Plain(logging.Formatter):
        """A line each, without the characters that would drive the terminal."""

        def formatMessage(self, record: logging.LogRecord) -> str:
            return plain(" ".join(super().formatMessage(record).split()))

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Plain("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    return handler


NAME = "memchat.log"
OLDER = "memchat.log.1"
MOST_BYTES = 1_000_000
"""From this size on the file takes the place of the older one, and a new one begins."""


class WordlessFormatter(logging.Formatter):
    """A line for each record, in UTC. An error is named by its class and the places in the code
    that it came through: its text may hold what a person wrote."""

    def __init__(self) -> None:
        line = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
        super().__init__(line, "%Y-%m-%dT%H:%M:%SZ")
        self.converter = gmtime

    def format(self, record: logging.LogRecord) -> str:
        """The line, without a newline."""
        record = copy.copy(record)
        if isinstance(record.args, tuple):
            record.args = tuple(_without_text(one) for one in record.args)
        record.exc_info = record.exc_text = None
        return " ".join(super().format(record).split())


class LogFile(logging.Handler):
    """Writes records to a file that this account alone may read.

    Several processes may write to it. It is opened for each record, so that none goes on writing
    to a file that another has replaced.
    """

    def __init__(self, folder: Path) -> None:
        """Raises ConfigError if something that is no file is in the log's place."""
        super().__init__()
        self._path = folder.absolute() / NAME
        if self._path.exists() and not self._path.is_file():
            raise ConfigError(
                f"{self._path} is no file, so no log can be written there; move it away, or set "
                "MEMCHAT_LOG=off"
            )
        self.setFormatter(WordlessFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record. Where that cannot be done it is left out: the work goes on."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= os.O_NONBLOCK  # a pipe in its place would be waited for until somebody reads it
        with contextlib.suppress(OSError):
            handle = os.open(self._path, flags, 0o600)
            with open(handle, "a", encoding="utf-8", errors="replace") as file:
                file.write(f"{self.format(record)}\n")
                file.flush()
                if os.fstat(handle).st_size >= MOST_BYTES:
                    self._rotate(handle)

    def _rotate(self, handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(handle), self._path.stat()):  # no other process was faster
            self._path.replace(self._path.with_name(OLDER))


def _without_text(arg: object) -> object:
    if not isinstance(arg, BaseException):
        return arg
    status = f" (status {arg.status})" if isinstance(arg, ProviderError) and arg.status else ""
    cause = f", from {type(arg.__cause__).__name__}" if arg.__cause__ is not None else ""
    place = origin(arg) if arg.__traceback__ is not None else type(arg).__name__
    return f"{place}{status}{cause}"
