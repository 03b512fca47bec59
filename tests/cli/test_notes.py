"""``memchat notes``: keeping, listing, showing, searching, changing and deleting notes."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.cli import notes as cli_notes
from memchat.cli.output import width
from tests.support.cli import Done, Run

BUDGET = "We agreed to cut the marketing budget by a third."
BOILER = "Call John back about the boiler, Thursday is fine."


def keep(run: Run, text: str, *args: str) -> str:
    done = run("notes", "add", "--text", text, *args)
    assert done.code == 0, done.err
    return done.out.strip()


def piped(run: Run, monkeypatch: pytest.MonkeyPatch, text: str, *args: str) -> Done:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return run(*args)


# --- keeping a text


def test_a_text_is_kept_with_title_date_id_and_type(run: Run) -> None:
    args = ("--title", "Budget", "--date", "2026-11-17 21:30", "--id", "m-7", "--type", "letter")
    assert keep(run, BUDGET, *args) == "1"
    note = json.loads(run("notes", "show", "1", "--json").out)
    assert (note["text"], note["title"], note["type"]) == (BUDGET, "Budget", "letter")
    assert (note["external_id"], note["profile"]) == ("m-7", "memo")
    assert note["created_at"] == "2026-11-17T12:30:00Z"  # the zone is Asia/Tokyo


def test_the_same_id_again_replaces_the_note(run: Run) -> None:
    keep(run, BUDGET, "--id", "m-7")
    assert keep(run, BOILER, "--id", "m-7") == "1"
    assert BOILER in run("notes", "show", "1").out
    assert len(run("notes", "list", "--json").json) == 1


def test_a_document_is_cut_as_one(run: Run) -> None:
    keep(run, BUDGET, "--type", "document")
    assert run("notes", "list", "--json").json[0]["profile"] == "document"


@pytest.mark.parametrize("args", [("-",), ()])
def test_a_text_may_come_on_standard_input(
    run: Run, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    done = piped(run, monkeypatch, f"{BUDGET}\n{BOILER}\n", "notes", "add", *args)
    assert (done.code, done.out) == (0, "1\n")
    shown = run("notes", "show", "1").out
    assert f"{BUDGET}\n{BOILER}" in shown


@pytest.mark.parametrize("text", ["", " \n\t", "PK\x03\x04\0\0"])
def test_what_is_no_text_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    done = piped(run, monkeypatch, text, "notes", "add", "-")
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
    assert "standard input is no text" in done.err or "no words" in done.err
    assert run("notes", "list", "--json").json == []


def test_standard_input_in_another_encoding_is_refused_and_loses_no_character(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = io.TextIOWrapper(io.BytesIO("Café".encode("latin-1")), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", given)
    done = run("notes", "add", "-")
    assert done.code == 1 and "save it as a file" in done.err
    assert run("notes", "list", "--json").json == []


@pytest.mark.parametrize(
    "args",
    [
        ("add", "a.txt", "--title", "Trip"),
        ("add", "a.txt", "--text", "Trip"),
        ("add", "a.txt", "-"),
        ("add", "--text", "Trip", "--date", "yesterday"),
        ("add", "--text", "Trip", "--date", "2026-11-17T21:30+01:00"),
        ("search", "x", "--since", "2026-13-01"),
        ("search", "x", "--since", "2026-11-20", "--until", "2026-11-10"),
        ("list", "--limit", "0"),
        ("edit", "1"),
        ("show", "one"),
    ],
)
def test_a_wrong_call_is_a_usage_error(run: Run, args: tuple[str, ...]) -> None:
    keep(run, BUDGET)
    done = run("notes", *args)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "args",
    [
        ("show", "9"),
        ("edit", "9", "--title", "x"),
        ("delete", "9", "--yes"),
        ("search", " "),
        ("ask", " "),
        ("list", "--app", "nowhere"),
        ("add", "--text", "x", "--title", "y" * 500),
        ("edit", "1", "--text", " "),
    ],
)
def test_what_cannot_be_done_is_one_line_that_says_so(run: Run, args: tuple[str, ...]) -> None:
    keep(run, BUDGET)
    done = run("notes", *args)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("memchat: ") and done.err.count("\n") == 1
    assert "unexpected" not in done.err
    assert BUDGET in run("notes", "show", "1").out


# --- lists


def test_a_list_shows_the_newest_first_and_says_how_to_go_on(run: Run) -> None:
    for number in range(1, 6):
        keep(run, f"Day {number}", "--title", f"Plan {number}", "--date", f"2026-11-0{number}")
    done = run("notes", "list", "--limit", "2", "--offset", "1")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["4", "3"]
    assert done.err == "go on with --offset 3\n"
    assert run("notes", "list", "--limit", "2", "--offset", "3").err == ""


def test_a_note_without_a_title_is_listed_by_its_first_words(run: Run) -> None:
    keep(run, f"\n\n{BOILER} {'And so on. ' * 50}")
    (line,) = run("notes", "list").out.splitlines()[1:]
    assert "Call John back about the boiler, Thursday is fine. And so o…" in line


def test_an_empty_store_says_what_to_do(run: Run) -> None:
    done = run("notes", "list")
    assert (done.code, done.out) == (0, "")
    assert done.err == "no notes of ana in default; memchat notes add keeps some\n"
    assert run("notes", "list", "--json").json == []
    assert run("notes", "search", "budget").err.endswith("no note speaks of this\n")
    assert run("notes", "search", "budget", "--json").json == []


def test_notes_stay_with_their_user_and_app(run: Run) -> None:
    number = keep(run, BUDGET, "--app", "work")
    run("apps", "on", "home", "--yes")
    for scope in (("--app", "home"), ("--user", "bo")):
        assert run("notes", "list", *scope, "--json").json == []
        assert run("notes", "search", "budget", *scope, "--json").json == []
        assert run("notes", "show", number, *scope).code == 1
        assert run("notes", "delete", number, "--yes", *scope).code == 1
    assert len(run("notes", "list", "--app", "work", "--json").json) == 1


def test_lists_can_be_of_one_type(run: Run) -> None:
    keep(run, BUDGET)
    keep(run, BOILER, "--type", "letter")
    assert [n["id"] for n in run("notes", "list", "--type", "letter", "--json").json] == [2]


def test_apps_are_listed_with_how_many_notes_they_have(run: Run) -> None:
    keep(run, BUDGET)
    keep(run, BOILER)
    (app,) = run("apps", "list", "--json").json
    assert app["notes"] == 2
    assert run("apps", "list").out.splitlines()[0].split()[4] == "notes"


# --- searching


def test_a_search_shows_title_date_number_and_the_passage(run: Run) -> None:
    keep(run, BUDGET, "--title", "Money", "--date", "2026-11-17")
    keep(run, BOILER)
    done = run("notes", "search", "marketing budget")
    assert done.out == f"Money, 2026-11-17, note 1\n  {BUDGET}\n"
    with_scores = run("notes", "search", "marketing budget", "--scores").out
    assert with_scores.splitlines()[1].startswith("  score ") and "words 1.00" in with_scores
    (hit,) = run("notes", "search", "marketing budget", "--json").json
    assert (hit["note_id"], hit["text"], hit["confident"]) == (1, BUDGET, True)


def test_what_is_less_sure_stands_below_a_line(
    mc: MemChat, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = mc.user("ana").notes
    notes.add(BUDGET, title="Money")
    notes.add("The third day was the best.", title="Trip")
    first, second = notes.search("cut the budget by a third", include_text=True).hits
    hits = [first, replace(second, confident=False)]
    cli_notes.print_hits(hits, "third", mc.settings.zone, scores=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Money, ") and lines[2:4] == ["", "Less sure:"]
    assert lines[4].startswith("Trip, ") and len(lines) == 6


def test_days_bound_a_search_and_both_count(run: Run) -> None:
    for number in range(1, 5):
        keep(run, f"The budget of day {number}", "--date", f"2026-11-0{number} 23:59")
    args = ("--since", "2026-11-02", "--until", "2026-11-03", "--json")
    found = run("notes", "search", "budget", *args).json
    assert {hit["note_id"] for hit in found} == {2, 3}
    assert len(run("notes", "search", "budget", *args, "--limit", "1").json) == 1
    none = run("notes", "search", "budget", *args, "--type", "letter").json
    assert none == []


def test_a_terminal_shows_the_part_of_a_long_passage_that_has_the_words(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(run, f"{'Nothing of note. ' * 30}{BUDGET}{' And so on it went.' * 30}")
    whole = run("notes", "search", "marketing budget").out
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    lines = run("notes", "search", "marketing budget").out.splitlines()
    shown = " ".join(line.strip() for line in lines[1:])
    assert BUDGET in shown and shown.startswith("… ") and shown.endswith(" …")
    assert max(map(width, lines)) <= 60 and len(lines) < 10
    assert len(whole) > 700


# --- one note


def test_show_tells_what_is_known_of_a_note_and_its_text(run: Run) -> None:
    keep(run, f"{BUDGET}\r\n\r\n{BOILER}", "--title", "Money", "--date", "2026-11-17 21:30")
    lines = run("notes", "show", "1").out.splitlines()
    assert lines[:3] == ["title     Money", "date      2026-11-17 21:30", "type      memo"]
    assert lines[-3:] == [BUDGET, "", BOILER]
    assert not any(line.startswith("source") for line in lines)


def test_text_and_title_can_be_changed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(run, BUDGET)
    assert run("notes", "edit", "1", "--title", "Money").out == "1\n"
    assert run("notes", "update", "1", "--text", BOILER).out == "1\n"
    shown = json.loads(run("notes", "show", "1", "--json").out)
    assert (shown["title"], shown["text"]) == ("Money", BOILER)
    done = piped(run, monkeypatch, "From a pipe.", "notes", "edit", "1", "--text", "-", "--json")
    assert json.loads(done.out)["text"] == "From a pipe."


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor that replaces a word, ends the last line, and notes what it saw."""
    script = tmp_path / "editor"
    script.write_text(
        f'#!/bin/sh\ncp "$1" {tmp_path}/seen; env > {tmp_path}/given\n'
        f'sed -i "s/third/half/" "$1"; echo >> "$1"; exit ${{FAILS:-0}}\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(script))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    terminal = io.StringIO("")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    return script


def test_the_editor_changes_a_text_and_gets_no_key(run: Run, editor: Path) -> None:
    keep(run, BUDGET)
    assert run("notes", "edit", "1").out == "1\n"
    shown = json.loads(run("notes", "show", "1", "--json").out)
    assert shown["text"] == BUDGET.replace("third", "half")
    assert (editor.parent / "seen").read_text() == BUDGET
    assert "canary" not in (editor.parent / "given").read_text()
    unchanged = run("notes", "edit", "1")
    assert (unchanged.code, unchanged.out, unchanged.err) == (0, "", "nothing was changed\n")


def test_an_editor_that_fails_changes_nothing(
    run: Run, editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(run, BUDGET)
    monkeypatch.setenv("FAILS", "3")
    done = run("notes", "edit", "1")
    assert done.code == 1 and "the editor failed (3); nothing was changed" in done.err
    monkeypatch.setenv("EDITOR", str(editor.parent / "no-such-editor"))
    done = run("notes", "edit", "1")
    assert done.code == 1 and "no-such-editor" in done.err and done.err.count("\n") == 1
    assert BUDGET in run("notes", "show", "1").out


def test_a_note_is_deleted_after_a_yes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(run, BUDGET, "--title", "Money")
    done = run("notes", "delete", "1")
    assert done.code == 2 and "add --yes" in done.err
    terminal = io.StringIO("n\ny\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    done = run("notes", "delete", "1")
    assert done.code == 2
    assert done.err.startswith("Delete note 1 “Money” (49 characters) for good? [y/N] ")
    assert run("notes", "delete", "1").code == 0
    assert run("notes", "show", "1").code == 1
    number = keep(run, BOILER)
    done = run("notes", "delete", number, "--yes", "--json")
    assert json.loads(done.out) == {"id": int(number), "deleted": True}
