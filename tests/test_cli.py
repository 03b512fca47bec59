"""The commands that list, show, change and forget, as a script and a person use them."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import stat
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from memchat import MemChat
from memchat.cli import app, main, system, tables
from memchat.cli.system import VARIABLES
from memchat.cli.worker import logged_to_stderr
from memchat.config import PROVIDERS, Settings
from memchat.providers.hashing import HashEmbedder
from memchat.testing import FakeClock

ROOT = Path(__file__).resolve().parent.parent
C11 = {
    "id",
    "created_at",
    "memory_type",
    "key",
    "value",
    "sha1",
    "expires_at",
    "seen_count",
    "last_seen_at",
    "active",
}


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> list[dict[str, object]]:
        return json.loads(self.out)  # type: ignore[no-any-return]


Run = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [*os.environ]:
        if name.startswith("MEMCHAT_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    folder = tmp_path / "store"
    monkeypatch.setenv("MEMCHAT_HOME", str(folder))
    monkeypatch.setenv("MEMCHAT_USER", "ana")
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "none")
    monkeypatch.setenv("MEMCHAT_TIMEZONE", "Asia/Tokyo")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def run(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))

    def one(*args: str) -> Done:
        capsys.readouterr()
        code = main(args)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    yield one


def commands(node: object = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """Every command with its full name."""
    node = node or typer.main.get_command(app)
    below = getattr(node, "commands", None)
    if below is None:
        yield " ".join(path), node
    else:
        for name, command in below.items():
            yield from commands(command, (*path, name))


def add(run: Run, *args: str) -> str:
    done = run("memories", "add", *args)
    assert done.code == 0, done.err
    return done.out.strip()


# --- adding and listing


def test_add_prints_only_the_id(run: Run) -> None:
    done = run("memories", "add", "profile", "city", "Lisbon")
    assert done.code == 0
    assert re.fullmatch(r"\d+\n", done.out)


def test_the_json_list_has_the_columns_of_the_founding_table(run: Run) -> None:
    number = add(run, "fact", "deadline", "22 October", "--expires", "2999-10-22")
    (memory,) = run("memories", "list", "--json").json
    assert set(memory) >= C11
    assert str(memory["id"]) == number
    assert memory["memory_type"] == "fact"
    assert memory["value"] == "22 October"
    assert memory["expires_at"] == "2999-10-22"
    assert memory["active"] is True
    assert str(memory["created_at"]).endswith("Z")


def test_a_list_shows_the_newest_first_and_says_what_it_left_out(run: Run) -> None:
    for name in ("apple", "birch", "cedar", "dahlia", "elm"):
        add(run, "fact", name, "a plant")
    done = run("memories", "list", "--limit", "2", "--offset", "1")
    assert [line.split()[2] for line in done.out.splitlines()[1:]] == ["dahlia", "cedar"]
    assert "2 to 3 of 5; go on with --offset 3" in done.err


def test_a_list_can_be_of_one_type(run: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    add(run, "preference", "diet", "vegetarian")
    assert [m["key"] for m in run("memories", "list", "--type", "preference", "--json").json] == [
        "diet"
    ]


def test_a_sensitive_memory_is_marked_in_lists_and_explained_where_it_is_shown(run: Run) -> None:
    number = add(run, "fact", "boat", "a red kayak")
    assert "sensitive" not in run("memories", "list").out
    assert "sensitive" not in run("memories", "show", number).out
    run("memories", "edit", number, "--sensitive")
    assert "  active, sensitive  " in run("memories", "list").out
    explained = "sensitive a chat model gets it only where it fits the message"
    assert explained in run("memories", "show", number).out


def test_an_expired_memory_is_marked_and_only_listed_when_asked_for(run: Run, home: Path) -> None:
    then = datetime(2020, 1, 1, tzinfo=UTC)
    with MemChat(home, clock=lambda: then) as mc:
        mc.user("ana").memories.add("fact", "trip", "Porto", expires_at=date(2020, 1, 31))
    assert "Porto" not in run("memories", "list").out
    assert (
        run("memories", "list", "--status", "expired").out.splitlines()[1].split()[4] == "expired"
    )


def test_a_replaced_memory_is_marked_and_can_be_restored(run: Run) -> None:
    old = add(run, "profile", "city", "Lisbon")
    add(run, "profile", "city", "Porto")
    line = run("memories", "list", "--status", "inactive").out.splitlines()[1]
    assert line.split()[:1] == [old] and "superseded" in line
    assert run("memories", "restore", old).out.strip() == old
    assert [m["value"] for m in run("memories", "list", "--json").json] == ["Lisbon"]


def test_an_empty_list_says_so_beside_the_output(run: Run) -> None:
    done = run("memories", "list")
    assert (done.code, done.out) == (0, "")
    assert "no memories of ana in default" in done.err
    assert run("memories", "list", "--json").json == []


def test_memories_stay_in_their_app_unless_they_are_for_every_app(run: Run) -> None:
    add(run, "fact", "project", "Orion", "--app", "work")
    add(run, "profile", "name", "Ana", "--app", "work", "--all-apps")
    assert [m["key"] for m in run("memories", "list", "--app", "home", "--json").json] == ["name"]
    assert run("memories", "list", "--user", "bo", "--app", "work", "--json").json == []


# --- one memory


def test_show_tells_value_scope_and_history(run: Run) -> None:
    number = add(run, "profile", "city", "Lisbon")
    assert run("memories", "edit", number, "--value", "Porto").out.strip() == number
    done = run("memories", "show", number)
    for words in ("Porto", "city", "profile", "active", "ana", "default", "Lisbon"):
        assert words in done.out
    whole = json.loads(run("memories", "show", number, "--json").out)
    assert [event["kind"] for event in whole["history"]] == [
        event["kind"] for event in run("memories", "history", number, "--json").json
    ]
    assert len(whole["history"]) >= 2


def test_an_expiry_can_be_given_changed_and_taken_away(run: Run) -> None:
    number = add(run, "fact", "trip", "Porto", "--expires", "2999-01-31")
    run("memories", "edit", number, "--expires", "2999-02-01")
    assert run("memories", "list", "--json").json[0]["expires_at"] == "2999-02-01"
    run("memories", "edit", number, "--no-expiry")
    assert run("memories", "list", "--json").json[0]["expires_at"] is None


@pytest.mark.parametrize(
    "args",
    [
        ("memories", "edit", "1"),
        ("memories", "edit", "1", "--expires", "2999-01-01", "--no-expiry"),
        ("memories", "add", "fact", "trip", "Porto", "--expires", "tomorrow"),
        ("memories", "add", "rumour", "trip", "Porto"),
        ("memories", "list", "--type", "rumour"),
        ("memories", "add", "fact", "trip"),
        ("memories", "delete"),
        ("memories", "show", "one"),
        ("memories", "list", "--status", "lost"),
        ("memories", "list", "--limit", "0"),
        ("remember",),
    ],
)
def test_a_wrong_call_is_a_usage_error(run: Run, args: tuple[str, ...]) -> None:
    done = run(*args)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "args",
    [
        ("memories", "show", "999"),
        ("memories", "history", "999"),
        ("memories", "edit", "999", "--value", "x"),
        ("memories", "delete", "999", "--yes"),
        ("memories", "restore", "999"),
        ("memories", "show", "99999999999999999999999999"),
        ("sessions", "show", "999"),
        ("sessions", "end", "999"),
        ("sessions", "delete", "999", "--yes"),
        ("apps", "delete", "nowhere", "--yes"),
        ("jobs", "retry", "999"),
        ("memories", "add", "fact", " ", "x"),
        ("memories", "add", "fact", "x", " "),
        ("memories", "add", "fact", "x", "y" * 1_000_000),
        ("memories", "list", "--user", " "),
        ("memories", "list", "--user", "a\nb"),
        ("memories", "list", "--app", "x" * 500),
    ],
)
def test_what_cannot_be_done_is_one_line_that_says_so(run: Run, args: tuple[str, ...]) -> None:
    done = run(*args)
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"memchat: .+\n", done.err), done.err
    assert "unexpected" not in done.err


def test_another_user_s_memory_cannot_be_seen_or_deleted(run: Run) -> None:
    number = add(run, "profile", "city", "Lisbon")
    assert run("memories", "show", number, "--user", "bo").code == 1
    assert run("memories", "delete", number, "--user", "bo", "--yes").code == 1
    assert [str(m["id"]) for m in run("memories", "list", "--json").json] == [number]


def test_a_path_as_a_user_name_stays_a_name(run: Run, home: Path, tmp_path: Path) -> None:
    before = sorted(path for path in tmp_path.iterdir() if path != home)
    add(run, "profile", "city", "Lisbon", "--user", "../x")
    assert run("memories", "list", "--user", "../x", "--json").json[0]["user"] == "../x"
    assert sorted(path for path in tmp_path.iterdir() if path != home) == before


@pytest.mark.parametrize("command", ["show", "history"])
def test_a_history_tells_what_happened_to_the_fact_and_no_upkeep(
    run: Run, home: Path, command: str
) -> None:
    with MemChat(home, embedder=HashEmbedder()) as mc:
        ana = mc.user("ana")
        old = ana.memories.add("profile", "city", "Lisbon").id
        mc.jobs.embed()
        ana.memories.add("profile", "city", "Porto")
    assert "embed" in [e["kind"] for e in run("memories", "history", str(old), "--json").json]
    shown = run("memories", command, str(old)).out
    assert re.search(r"add\b.*type profile; key city; value Lisbon$", shown, re.M), shown
    assert re.search(r"supersede\b.*memory \d+$", shown, re.M), shown
    for noise in ("embed", "reindex", "many", "()", "None"):
        assert noise not in shown


def test_show_tells_when_a_memory_was_made_and_last_changed(run: Run, home: Path) -> None:
    clock = FakeClock(datetime(2026, 5, 1, 12, 0, tzinfo=UTC))
    with MemChat(home, clock=clock, embedder=HashEmbedder()) as mc:
        ana = mc.user("ana")
        number = ana.memories.add("profile", "city", "Lisbon").id
        clock.advance(days=2)
        ana.memories.update(number, value="Porto")
    shown = run("memories", "show", str(number)).out
    assert re.search(r"^created +2026-05-01 21:00, manual$", shown, re.M), shown
    assert re.search(r"^updated +2026-05-03 21:00$", shown, re.M), shown


def test_a_type_may_be_typed_in_any_case_and_a_wrong_one_is_one_clear_line(run: Run) -> None:
    add(run, "Profile", "city", "Lisbon")
    assert [m["memory_type"] for m in run("memories", "list", "--type", "PROFILE", "--json").json]
    error = run("memories", "add", "rumour", "city", "Lisbon").err.splitlines()[-1]
    assert error.endswith("'rumour' is no type; use one of preference, profile, fact, other")


def test_a_secret_entered_by_hand_is_kept_only_with_a_yes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("memories", "add", "fact", "note", "Hasło do banku to karmelowy")
    refused = run(*args)
    assert refused.code == 2
    assert refused.err.strip().endswith("this looks like a password, so add --yes to agree")
    assert "karmelowy" not in refused.err
    terminal = io.StringIO("y\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    asked = run(*args)
    assert (asked.code, asked.out) == (0, "1\n")
    assert "This looks like a password. Keep it anyway? [y/N]" in asked.err
    assert run("memories", "edit", "1", "--value", "hasło to orzechowy", "--yes").code == 0
    assert run("memories", "list", "--json").json[0]["value"] == "hasło to orzechowy"


# --- forgetting


@pytest.mark.parametrize("how", [("{id}",), ("--id", "{id}")])
def test_delete_forgets_only_with_a_yes(run: Run, how: tuple[str, ...]) -> None:
    number = add(run, "profile", "city", "Lisbon")
    args = ("memories", "delete", *(part.format(id=number) for part in how))
    refused = run(*args)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert len(run("memories", "list", "--json").json) == 1
    assert run(*args, "--yes").code == 0
    assert run("memories", "list", "--status", "all", "--json").json == []


def test_clear_forgets_an_app_only_with_a_yes(run: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    add(run, "fact", "project", "Orion", "--app", "work")
    assert run("memories", "clear").code == 2
    assert len(run("memories", "list", "--json").json) == 1
    done = run("memories", "clear", "--yes")
    assert (done.code, done.out) == (0, "1\n")
    assert run("memories", "list", "--status", "all", "--json").json == []
    assert len(run("memories", "list", "--app", "work", "--json").json) == 1


def test_deleting_an_app_needs_a_yes_and_takes_its_memories(run: Run) -> None:
    add(run, "fact", "project", "Orion", "--app", "work")
    assert run("apps", "delete", "work").code == 2
    done = run("apps", "delete", "--app", "work", "--yes")
    assert (done.code, done.out) == (0, "1\n")
    assert run("memories", "list", "--app", "work", "--status", "all", "--json").json == []


# --- apps, search, system


def test_memory_is_switched_by_app_and_by_user(run: Run) -> None:
    add(run, "fact", "project", "Orion", "--app", "work")
    assert "off for ana in the app work" in run("apps", "off", "work").out
    assert {a["name"]: a["memory"] for a in run("apps", "list", "--json").json}["work"] is False
    assert "on for ana in the app work" in run("apps", "on", "--app", "work").out
    assert {a["name"]: a["memory"] for a in run("apps", "list", "--json").json}["work"] is True
    run("apps", "off", "--all-apps")
    assert "memory is off" in run("apps", "list").err


def test_recall_gives_the_best_first_and_says_when_meaning_took_no_part(run: Run) -> None:
    number = add(run, "profile", "city", "Lisbon")
    add(run, "preference", "diet", "vegetarian")
    done = run("recall", "which city is it, Lisbon?", "--limit", "3", "--json")
    best = done.json[0]
    assert {"kind", "id", "text", "score"} <= set(best)
    assert (best["kind"], str(best["id"])) == ("memory", number)
    scores = [float(str(hit["score"])) for hit in done.json]
    assert scores == sorted(scores, reverse=True)
    assert "words only" in done.err
    assert "Lisbon" in run("recall", "which city is it, Lisbon?").out


def test_recall_shows_where_confident_hits_end_and_can_leave_the_others_out(run: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    add(run, "fact", "boat", "a red kayak")
    heading, sure, divide, other = run("recall", "Lisbon").out.splitlines()
    assert heading.startswith("score") and "Lisbon" in sure and "kayak" in other
    assert divide == "Less sure:"
    hits = run("recall", "Lisbon", "--json").json
    assert [hit["confident"] for hit in hits] == [True, False]
    for option in (("--confident",), ("--min-score", "0.5")):
        done = run("recall", "Lisbon", *option)
        assert "Lisbon" in done.out and "kayak" not in done.out and "Less sure" not in done.out
    assert run("recall", "zebra").out.splitlines()[1] == "Less sure:"
    assert "nothing is known" in run("recall", "zebra", "--confident").err


def test_config_shows_every_setting_with_its_origin(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.env").write_text("MEMCHAT_BUDGET=900\n")
    done = run("--env-file", "mine.env", "config", "--json")
    rows = {str(row["setting"]): row for row in done.json}
    told_elsewhere = {"why", "origins", "addresses", "keys"}
    every = {field.name for field in fields(Settings)} - told_elsewhere
    assert set(rows) == every == set(VARIABLES)
    assert (rows["budget_tokens"]["value"], rows["budget_tokens"]["from"]) == (900, "mine.env")
    assert rows["home"]["from"] == "environment"
    assert rows["top_k"]["from"] == "default"
    assert rows["chat_model"]["from"] == "no provider key is set"


def test_config_never_shows_a_key(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS:
        monkeypatch.setenv(provider.keys[0], "sk-verysecret")
    monkeypatch.setenv("GEMINI_API_BASE", "https://me:verysecret@localhost:1/")
    assert "verysecret" not in run("config").out + run("config", "--json").out


def test_doctor_names_what_is_wrong_and_exits_with_1(run: Run, home: Path) -> None:
    assert run("doctor").code == 0
    home.mkdir(exist_ok=True)
    for file in home.iterdir():
        file.unlink()
    (home / "memchat.db").write_text("this is no database " * 100)
    done = run("doctor")
    assert done.code == 1
    assert "problem" in done.out + done.err or done.err.startswith("memchat: ")
    assert "Traceback" not in done.err


def test_a_bad_setting_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCHAT_TOP_K", "many")
    done = run("memories", "list")
    assert (done.code, done.err) == (1, "memchat: MEMCHAT_TOP_K='many' is no number\n")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder root cannot write")
def test_a_folder_that_cannot_be_made_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCHAT_HOME", "/proc/memchat")
    done = run("memories", "add", "profile", "city", "Lisbon")
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"memchat: .+\n", done.err)
    assert "unexpected" not in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_one_line(run: Run, home: Path) -> None:
    home.mkdir()
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        done = run("memories", "add", "profile", "city", "Lisbon")
    finally:
        home.chmod(stat.S_IRWXU)
    assert done.code == 1
    assert re.fullmatch(r"memchat: .+\n", done.err)


def test_a_home_that_is_a_file_is_one_line(run: Run, home: Path) -> None:
    home.write_text("in the way")
    done = run("memories", "list")
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"memchat: .+\n", done.err)
    assert "unexpected" not in done.err


def test_an_unexpected_fault_is_one_line_and_a_traceback_on_demand(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault() -> None:
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "with people's words")

    monkeypatch.setattr(system, "settings", fault)
    done = run("config")
    assert re.fullmatch(
        r"memchat: unexpected \w+; run with MEMCHAT_DEBUG=1 for details\n", done.err
    )
    monkeypatch.setenv("MEMCHAT_DEBUG", "1")
    with pytest.raises(UnicodeDecodeError):
        run("config")


def test_the_version_is_told(run: Run) -> None:
    assert run("--version").out == f"memchat {version('memchat')}\n"


def test_jobs_of_a_quiet_store_are_none(run: Run) -> None:
    assert run("jobs", "status", "--json").json == []
    assert run("jobs", "run").out == "0 done, 0 failed\n"
    assert run("jobs", "retry").out == "0\n"


# --- words on the screen


def test_times_are_shown_in_the_user_s_zone() -> None:
    at = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
    assert tables.time(at, ZoneInfo("Asia/Tokyo")) == "2026-11-21 08:30"


def test_text_cannot_drive_the_terminal() -> None:
    assert tables.plain("a\x1b]0;title\x07b\u202ec\udcff") == "a\ufffd]0;title\ufffdb\ufffdc\ufffd"
    assert tables.plain("naïve 東京\n\ttext 👍🏽") == "naïve 東京\n\ttext 👍🏽"


WILD = "".join(map(chr, [*range(1, 32), *range(127, 160), 0x2028, 0x2029, 0x202E, 0x200B, 0xE0061]))


def test_json_holds_no_character_that_drives_a_terminal_or_cannot_be_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = {"value": f"é 中文 👍🏽 {WILD}"}
    tables.print_json(record)
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
        ana.chat().send(f"tea {WILD}").text
    for options in ([], ["--json"]):
        done = run(*command.split(), *options)
        assert done.code == 0, done.err
        shown = {c for c in done.out + done.err if unicodedata.category(c) == "Cc"}
        assert shown <= {"\n", "\t"} and "\u202e" not in done.out + done.err


def test_the_worker_s_log_holds_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    with logged_to_stderr():
        logging.getLogger("memchat.jobs").warning("job 1 failed: %s", "gone\x1b]0;title\x07\nnext")
    assert capsys.readouterr().err.endswith("job 1 failed: gone\ufffd]0;title\ufffd next\n")


def test_what_a_conversation_changed_is_shown_without_control_characters(mc: MemChat) -> None:
    old = mc.user("ana").memories.add("profile", f"city{WILD}", f"Lisbon{WILD}")
    new = replace(old, id=2, value=f"Porto{WILD}")
    for line in (tables.changed(old, new, "undo"), tables.changed(old, None, "undo")):
        assert line == tables.plain(line) and "Lisbon" in line


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_the_second_column_starts_in_one_place(cells: list[str]) -> None:
    lines = tables.table(("key", "value"), [(cell, "here") for cell in cells]).split("\n")
    assert len(lines) == len(cells) + 1
    assert len({tables.width(line) for line in lines[1:]}) == 1
    assert all(line.endswith("  here") for line in lines[1:])


@given(st.text(max_size=200), st.integers(min_value=1, max_value=60))
def test_a_shortened_line_fits_and_says_that_it_was_shortened(text: str, columns: int) -> None:
    short = tables.shorten(text, columns)
    assert tables.width(short) <= columns
    assert short == text or short.endswith("…")


def test_a_table_fits_the_terminal_it_is_made_for() -> None:
    text = tables.table(("id", "value", "state"), [(1, "word " * 60, "active")], columns=80)
    assert max(tables.width(line) for line in text.splitlines()) <= 80
    assert "…" in text and text.splitlines()[1].endswith("active")


# --- as a process


def process(*args: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "memchat", *args],
        env={**os.environ, **env},
        capture_output=True,
        timeout=60,
    )


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
def test_a_full_disk_behind_the_output_is_one_line(home: Path) -> None:
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


def test_every_command_and_option_has_help() -> None:
    for name, command in commands():
        assert command.help, name  # type: ignore[attr-defined]
        for parameter in command.params:  # type: ignore[attr-defined]
            assert parameter.help, f"{name} {parameter.name}"


def test_every_command_and_option_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### `memchat ([a-z ]+)`\n(.*?)(?=^##|\Z)", page, re.M | re.S))
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
