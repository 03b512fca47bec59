"""The commands on apps, search, settings and the state of the store."""

from __future__ import annotations

import os
import re
import shutil
import stat
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path

import pytest

from memchat.cli import system
from memchat.config import Settings
from memchat.config.providers import PROVIDERS
from memchat.config.settings import VARIABLES
from tests.support.cli import Run, add

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
    assert "nothing is known" in run("recall", "zebra", "--confident").err


def test_where_nothing_surely_fits_that_is_said_and_three_are_shown(run: Run) -> None:
    for number in range(6):
        add(run, "fact", f"boat_{number}", "a red kayak")
        assert run("notes", "add", "--text", f"The kayak {number} is red.").code == 0
    told = ("nothing found; less sure (--all shows 6):", "nothing found; less sure:")
    for command in ("recall", "notes search"):
        ask = (*command.split(), "kayak zebra lawyer violin")
        some, every, listed = run(*ask), run(*ask, "--all"), run(*ask, "--json")
        assert [told[0] in some.err, told[1] in every.err] == [True, True]
        assert [done.out.count("red") for done in (some, every)] == [3, 6]
        assert "Less sure:" not in some.out + every.out
        assert [hit["confident"] for hit in listed.json] == [False] * 6
        assert "nothing found" not in listed.err


def test_config_shows_every_setting_with_its_origin(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.env").write_text("MEMCHAT_BUDGET=900\n")
    done = run("--env-file", "mine.env", "config", "--json")
    rows = {str(row["setting"]): row for row in done.json}
    told_elsewhere = {"why", "origins", "addresses", "keys", "types"}
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
    assert (done.code, done.err) == (1, "memchat: MEMCHAT_TOP_K='many' is not a number\n")


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
    shutil.rmtree(home)
    home.mkdir()
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        done = run("memories", "add", "profile", "city", "Lisbon")
    finally:
        home.chmod(stat.S_IRWXU)
    assert done.code == 1
    assert re.fullmatch(r"memchat: .+\n", done.err)


def test_a_home_that_is_a_file_is_one_line(run: Run, home: Path) -> None:
    shutil.rmtree(home)
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
