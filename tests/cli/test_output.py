"""What commands print: times, tables, no control characters. Documentation names each of them."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat import MemChat
from memchat.cli import output
from memchat.cli.command import settings
from memchat.cli.output import shorten, width, wrap
from memchat.config.settings import VARIABLES
from tests.support.cli import Run, add, commands
from tests.support.paths import ROOT

# --- words on the screen

MEMORY_COLUMNS = (*[one.partition("=")[0] for one in output.MEMORY_COLUMNS.split()],)


def test_times_are_shown_in_the_user_s_zone() -> None:
    at = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
    assert output.time(at, ZoneInfo("Asia/Tokyo")) == "2026-11-21 08:30"


def test_text_cannot_drive_the_terminal() -> None:
    assert output.plain("a\x1b]0;title\x07b\u202ec\udcff") == "a\ufffd]0;title\ufffdb\ufffdc\ufffd"
    assert output.plain("naïve 東京\n\ttext 👍🏽") == "naïve 東京\n\ttext 👍🏽"


WILD = "".join(map(chr, [*range(1, 32), *range(127, 160), 0x2028, 0x2029, 0x202E, 0x200B, 0xE0061]))


def test_json_holds_no_character_that_drives_a_terminal_or_cannot_be_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = {"value": f"é 中文 👍🏽 {WILD}"}
    output.print_json(record)
    out = capsys.readouterr().out
    assert not {c for c in out if unicodedata.category(c)[0] == "C" and c != "\n"}
    assert not set("\u2028\u2029") & set(out)
    assert "é 中文 👍🏽" in out
    assert json.loads(out) == record


@pytest.mark.parametrize(
    "command",
    [
        "memories list",
        "memories show 1",
        "memories history 1",
        "recall tea",
        "notes list",
        "notes show 1",
        "notes search tea",
        "notes ask tea",
        "sessions list",
        "sessions show 1",
        "inbox list",
        "apps list",
        "audit",
    ],
)
def test_no_command_prints_stored_control_characters(run: Run, home: Path, command: str) -> None:
    with MemChat(home) as mc:
        ana = mc.user("ana")
        ana.memories.add("preference", f"drink{WILD}", f"tea{WILD}")
        ana.notes.add(f"tea{WILD}", title=f"drink{WILD}")
        ana.chat().send(f"tea {WILD}").read()
    for options in ([], ["--json"]):
        done = run(*command.split(), *options)
        assert done.code == 0, done.err
        shown = {c for c in done.out + done.err if unicodedata.category(c) == "Cc"}
        assert shown <= {"\n", "\t"} and "\u202e" not in done.out + done.err


def test_the_log_on_the_terminal_holds_no_control_characters(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output.start_log(settings(), verbose=1)
    logging.getLogger("memchat.jobs").warning("job 1 failed: %s", "gone\x1b]0;title\x07\nnext")
    output.stop_log()
    assert capsys.readouterr().err.endswith("job 1 failed: gone\ufffd]0;title\ufffd next\n")


def test_what_a_conversation_changed_is_shown_without_control_characters(mc: MemChat) -> None:
    old = mc.user("ana").memories.add("profile", f"city{WILD}", f"Lisbon{WILD}")
    new = replace(old, id=2, value=f"Porto{WILD}")
    for line in (output.changed(old, new, "undo"), output.changed(old, None, "undo")):
        assert line == output.plain(line) and "Lisbon" in line


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_the_second_column_starts_in_one_place(cells: list[str]) -> None:
    lines = output.table(("key", "value"), [(cell, "here") for cell in cells])
    assert len(lines) == len(cells) + 1
    assert len({width(line) for line in lines[1:]}) == 1
    assert all(line.endswith("  here") for line in lines[1:])


@given(st.text(max_size=200), st.integers(min_value=1, max_value=60))
def test_a_shortened_line_fits_and_says_that_it_was_shortened(text: str, columns: int) -> None:
    short = shorten(text, columns)
    assert width(short) <= columns
    assert short == text or short.endswith("…")


LONG = ("word " * 60, "言葉" * 40, "👍🏽❤️" * 40)


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("headings", [MEMORY_COLUMNS, ("id", "value"), ("setting", "from")])
def test_a_table_fits_the_terminal_it_is_made_for(headings: tuple[str, ...], columns: int) -> None:
    rows = [(number, *(text for _ in headings[1:])) for number, text in enumerate(LONG)]
    lines = "\n".join(output.table(headings, rows, columns=columns)).splitlines()
    assert max(map(width, lines)) <= columns
    assert sum("…" in line for line in lines) >= len(rows)


@given(st.text(max_size=200), st.integers(min_value=2, max_value=60))
def test_a_wrapped_line_loses_nothing_but_spaces_and_fits(text: str, columns: int) -> None:
    lines = wrap(text, columns)
    assert max(map(width, lines)) <= columns
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_words_are_wrapped_whole_where_they_fit() -> None:
    assert wrap("  the old green boat", 10) == ["  the old", "green boat"]
    assert wrap("言葉言葉言葉 a", 8) == ["言葉言葉", "言葉 a"]


def test_the_widest_column_is_shortened_first_and_dates_stay_whole() -> None:
    row = (1, "word " * 60, "2026-11-22 10:00", "")
    (_, line) = output.table(("id", "value", "said", "until"), [row], columns=50)
    assert line.endswith("…  2026-11-22 10:00") and width(line) == 50


def test_in_a_narrow_terminal_a_row_is_a_line_for_each_cell() -> None:
    row = ("MEMCHAT_EMBED_PATIENCE", "0.15", "", "environment")
    _, block = output.table(("variable", "value", "why", "from"), [row], columns=30)
    assert block.splitlines() == [
        "variable  MEMCHAT_EMBED_PATIE…",
        "value     0.15",
        "from      environment",
    ]


def test_emoji_and_chinese_take_two_columns() -> None:
    assert [width(text) for text in ("言葉", "👍", "❤️", "⌚️", "e\u0301")] == [4, 2, 2, 2, 1]


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_list_runs_over_the_terminal(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    with MemChat(home) as mc:
        ana = mc.user("ana", app="kitchen")
        ana.memories.add("preference", "favourite_drink_in_the_morning", f"green tea {'言葉' * 60}")
        ana.notes.add(f"green tea {'言葉' * 200}", title=f"green tea {'very often ' * 15}")
        ana.notes.add(f"green tea {'שלום ' * 60}")
        with ana.chat() as chat:
            chat.send(f"I drink green tea {'very often ' * 20}").read()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    app = ("--app", "kitchen")
    lists = ("memories list", "sessions list", "inbox list", "recall tea", "jobs status")
    for command in (*lists, "notes list", "notes search tea --scores"):
        done = run(*command.split(), *app)
        assert done.code == 0, done.err
        assert max(map(width, done.out.splitlines()), default=0) <= columns, command
    assert max(map(width, run("config").out.splitlines())) <= columns


def test_what_is_piped_is_never_shortened(run: Run) -> None:
    text = "The train to Porto leaves at nine in the morning. " * 5
    add(run, "fact", "note", text)
    assert text.strip() in run("memories", "list").out


# --- as a process


def process(*args: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "memchat", *args],
        env={**os.environ, **env},
        capture_output=True,
        timeout=60,
    )


@pytest.mark.slow
def test_half_characters_and_a_terminal_of_another_encoding_do_no_harm(home: Path) -> None:
    added = subprocess.run(
        [
            sys.executable,
            "-m",
            "memchat",
            "memories",
            "add",
            "fact",
            "note",
            b"x\xff y \xe6\x9d\xb1",
        ],
        capture_output=True,
        timeout=60,
    )
    assert added.returncode == 0, added.stderr
    listed = process("memories", "list", PYTHONIOENCODING="ascii")
    assert listed.returncode == 0, listed.stderr
    as_json = process("memories", "list", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(as_json.stdout)[0]["value"].endswith("東")


def test_a_reader_that_leaves_early_is_no_fault(home: Path) -> None:
    for shell in ("memories --help", "config --json"):
        command = f"{sys.executable} -m memchat {shell} | true"
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60)
        assert done.stderr == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_no_fault(home: Path, closed: str) -> None:
    command = f"{sys.executable} -m memchat config {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_the_output_is_one_line(
    home: Path, unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)  # with a buffer the last flush fails, too
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "memchat", "config"], stdout=full, stderr=-1, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr == (
        b"memchat: the disk that holds the output is full. Nothing that was kept is lost. "
        b"Free some space and try again\n"
    )


# --- the page that documents it


def test_what_fails_while_the_interpreter_ends_is_not_told() -> None:
    code = """
from memchat.cli import main
class Left:
    def __del__(self):
        raise ValueError("left open")
main(["--version"])
left = Left()
left.itself = left
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.stderr == b"" and done.stdout != b""


def test_every_command_and_option_has_help() -> None:
    for name, command in commands():
        assert command.help, name  # type: ignore[attr-defined]
        for parameter in command.params:  # type: ignore[attr-defined]
            assert parameter.help, f"{name} {parameter.name}"


def test_every_command_and_option_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### `memchat ([a-z -]+)`\n(.*?)(?=^##|\Z)", page, re.M | re.S))
    found = dict(commands())
    assert set(sections) == set(found)
    for name, command in found.items():
        for parameter in command.params:  # type: ignore[attr-defined]
            for flag in (*parameter.opts, *parameter.secondary_opts):
                if flag.startswith("--") and flag != "--help":
                    assert flag in sections[name], f"{flag} of {name}"
    for variable in VARIABLES.values():
        assert variable in page


def test_a_first_day_is_entered_and_shown(run: Run) -> None:
    number = add(run, "profile", "city", "Porto", "--starts", "2999-12-01")
    listed = run("memories", "list").out
    assert "coming" in listed and "from 2999-12-01" in listed
    told = run("memories", "show", number).out
    assert "from      2999-12-01" in told
    late = ("--starts", "2999-12-01", "--expires", "2999-11-01")
    refused = run("memories", "add", "profile", "job", "cook", *late)
    assert refused.code == 1 and "before it starts" in refused.err
