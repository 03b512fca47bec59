"""The log: what is written where, who may read it, and that it holds nobody's words."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memchat.cli import output
from memchat.cli.output import LogFile
from memchat.errors import ProviderError
from tests.support.cli import Run, add
from tests.support.terminal import Env
from tests.support.wire import Fail, OpenAIServer, Say

MARKER = "Zanzibar"
KEY = f"sk-{MARKER}-0123456789"


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A umask with which new files may be read by everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def written(home: Path) -> str:
    """The text of all files of the log."""
    return "".join(path.read_text(encoding="utf-8") for path in sorted(home.glob("memchat.log*")))


def test_what_people_wrote_and_their_keys_are_nowhere_in_the_log(env: Env) -> None:
    home = Path(env["MEMCHAT_HOME"])
    with OpenAIServer(key=KEY) as server:
        env |= {
            "MEMCHAT_CHAT_MODEL": "openai/gpt-4.1-mini",
            "MEMCHAT_EXTRACT_MODEL": "openai/gpt-4.1-mini",
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_API_KEY": KEY,
        }
        server.script(Say(f"{MARKER} is far."), Fail(400, f"{MARKER} cannot be read {KEY}"))
        server.script(*[Fail(400, f"no {MARKER} here")] * 4)
        done = env.memchat("-vv", "chat", said=f"I live in {MARKER}.\nWhere is {MARKER}?\n")
    assert done.code == 1 and f"{MARKER} is far." in done.out and MARKER in done.err
    failed = ("edit", "delete", f"{MARKER}")
    env.memchat("-vv", "memories", "add", "profile", "city", MARKER, "--app", MARKER)
    env.memchat("-vv", "memories", *failed)
    env.memchat("-vv", "keys", "set", "mistral", said=KEY)
    env.memchat("-vv", "recall", MARKER, "--user", MARKER)
    env.memchat("-vv", "recall", MARKER, "--app", f"{MARKER}s")
    text = written(home)
    assert MARKER.lower() not in text.lower()
    assert "memchat chat failed: ProviderError at" in text and "(status 400)" in text
    assert "DEBUG memchat.db.usage: chat by openai/gpt-4.1-mini" in text
    assert "memchat memories add (version" in text


def test_a_fault_is_in_the_log_with_its_place_and_without_its_words(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memchat.api.memories import Memories

    def broken(*_: object, **__: object) -> None:
        raise ValueError(MARKER)

    monkeypatch.setattr(Memories, "list", broken)
    assert run("memories", "list").code == 1
    assert "ERROR memchat.cli.output: memchat memories list failed: ValueError at" in written(home)
    assert "test_log.py" in written(home) and MARKER not in written(home)


def test_only_its_owner_may_read_the_log(run: Run, home: Path, open_umask: None) -> None:
    add(run, "profile", "city", "Lisbon")
    assert stat.S_IMODE((home / "memchat.log").stat().st_mode) == 0o600


def test_the_level_decides_what_is_written(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCHAT_LOG", "off")
    run("memories", "show", "9")
    run("-vv", "memories", "show", "9")
    assert written(home) == ""
    monkeypatch.setenv("MEMCHAT_LOG", "warning")
    run("memories", "list")
    assert written(home) == ""
    run("memories", "show", "9")
    assert "failed: NotFound" in written(home) and "INFO" not in written(home)
    monkeypatch.setenv("MEMCHAT_LOG", "loud")
    refused = run("memories", "list")
    assert refused.code == 1 and "MEMCHAT_LOG" in refused.err and "warning" in refused.err


def test_standard_error_shows_what_is_done_only_if_asked(run: Run) -> None:
    assert run("memories", "show", "9").err == (
        "memchat: there is no memory 9 here; see memchat memories list\n"
    )
    told = run("-v", "memories", "show", "9").err
    assert "memchat memories show (version" in told
    assert run("--verbose", "memories", "list").out == ""
    assert not [h for h in logging.getLogger("memchat").handlers if isinstance(h, LogFile)]


def test_a_log_that_cannot_be_written_stops_no_command(run: Run, home: Path) -> None:
    elsewhere = home.parent / "elsewhere"
    (home / "memchat.log").symlink_to(elsewhere)  # a link is never followed
    add(run, "profile", "city", "Lisbon")
    assert not elsewhere.exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_in_the_log_s_place_is_refused_and_nothing_waits_for_it(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    make(home / "memchat.log")
    done = run("memories", "list")
    assert (done.code, done.err) == (
        1,
        f"memchat: {home / 'memchat.log'} is no file, so no log can be written there; move it "
        "away, or set MEMCHAT_LOG=off\n",
    )
    monkeypatch.setenv("MEMCHAT_LOG", "off")
    assert run("memories", "list").code == 0


def test_a_pipe_that_takes_the_log_s_place_later_keeps_nobody_waiting(tmp_path: Path) -> None:
    log = LogFile(tmp_path)
    os.mkfifo(tmp_path / "memchat.log")
    log.emit(record("first"))


def record(text: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("memchat", logging.INFO, __file__, 1, text, args, None)


def test_a_full_log_becomes_the_older_one_and_no_process_goes_on_writing_to_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MOST_BYTES", 200)
    one, other = LogFile(tmp_path), LogFile(tmp_path)
    other.emit(record("first"))
    one.emit(record("x" * 200))
    other.emit(record("second"))
    assert "first" in (tmp_path / "memchat.log.1").read_text()
    assert (tmp_path / "memchat.log").read_text().endswith("second\n")
    for _ in range(3):
        one.emit(record("y" * 200))
    assert {path.name for path in tmp_path.iterdir()} == {"memchat.log.1"}
    assert "y" in (tmp_path / "memchat.log.1").read_text()


def test_an_error_is_named_without_its_text(tmp_path: Path) -> None:
    LogFile(tmp_path).emit(record("job %d: %s", 7, ProviderError(MARKER, status=429)))
    assert (tmp_path / "memchat.log").read_text().endswith(" job 7: ProviderError (status 429)\n")
