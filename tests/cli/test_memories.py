"""The commands that list, show, change and forget, as a script and a person use them."""

from __future__ import annotations

import io
import json
import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.providers.embedders import HashEmbedder
from memchat.testing import FakeClock
from tests.support.cli import Run, add

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
    assert [line.split()[2] for line in done.out.splitlines()[1:]] == ["Dahlia:", "Cedar:"]
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
    assert run("apps", "on", "home", "--yes").code == 0
    assert [m["key"] for m in run("memories", "list", "--app", "home", "--json").json] == ["name"]
    assert run("apps", "on", "work", "--user", "bo", "--yes").code == 0
    assert run("memories", "list", "--user", "bo", "--app", "work", "--json").json == []


def test_switching_memory_in_an_unknown_app_asks_instead_of_making_it(run: Run, typed) -> None:
    for switch in ("off", "on"):
        done = run("apps", switch, "wrok")
        assert done.code == 2 and "ana has no app 'wrok'" in done.err
        typed("n\n")
        assert run("apps", switch, "wrok").code == 2
        assert run("apps", "list", "--json").json == []
    typed("y\n")
    assert run("apps", "off", "wrok").code == 0
    assert [one["memory"] for one in run("apps", "list", "--json").json] == [False]
    assert run("apps", "on", "wrok").code == 0  # it is known now
    assert run("apps", "off").code == 0  # the app that every command uses unless told otherwise


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
    kinds = [e["kind"] for e in run("memories", "history", str(old), "--json").json]
    assert kinds == ["add", "supersede"]
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
    assert error.endswith("'rumour' is no type; use preference, profile, fact, other")


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


def test_deleting_an_app_needs_its_name(run: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    refused = run("apps", "delete", "--yes")
    assert refused.code == 2 and "name the app to delete" in refused.err
    assert len(run("memories", "list", "--json").json) == 1
    assert run("apps", "delete", "default", "--yes").code == 0


def test_adding_by_hand_says_what_was_replaced_and_how_to_undo_it(run: Run) -> None:
    assert run("memories", "add", "profile", "city", "Lisbon").err == ""
    done = run("memories", "add", "profile", "city", "Porto")
    assert done.out == "2\n"
    assert done.err == "changed: city: Lisbon → Porto; undo: memchat memories restore 1\n"
    assert run("memories", "add", "profile", "city", "Porto").err == ""  # it was known


def test_deleting_an_app_needs_a_yes_and_takes_its_memories(run: Run) -> None:
    add(run, "fact", "project", "Orion", "--app", "work")
    assert run("apps", "delete", "work").code == 2
    done = run("apps", "delete", "--app", "work", "--yes")
    assert (done.code, done.out) == (0, "1\n")
    gone = run("memories", "list", "--app", "work", "--status", "all", "--json")
    assert (gone.code, gone.out) == (1, "") and "no app 'work'" in gone.err
    assert run("apps", "on", "work", "--yes").code == 0
    assert run("memories", "list", "--app", "work", "--status", "all", "--json").json == []


# --- tags


def test_tags_are_given_shown_listed_and_taken_away(run: Run) -> None:
    city = add(run, "profile", "city", "Lisbon", "--tag", "Home", "--tag", "work trips")
    assert "tags" not in run("memories", "list", "--tag", "nobody").out
    add(run, "fact", "boat", "a red kayak")
    listed = run("memories", "list", "--tag", "home", "--tag", "Work Trips")
    assert listed.out.split()[7] == "tags" and "home, work-trips" in listed.out
    assert "kayak" not in listed.out
    assert run("memories", "edit", city, "--untag", "home", "--tag", "sun").code == 0
    assert "tags      sun, work-trips" in run("memories", "show", city).out
    assert "tags home, work-trips → sun, work-trips" in run("memories", "history", city).out
    (memory,) = run("memories", "list", "--tag", "sun", "--json").json
    assert memory["tags"] == ["sun", "work-trips"]
    done = run("memories", "edit", city, "--tag", "x" * 41)
    assert done.code == 1 and "at most 40 are kept" in done.err


def test_recall_with_a_tag_finds_only_what_carries_it(run: Run) -> None:
    add(run, "fact", "boat", "a red kayak", "--tag", "water")
    add(run, "fact", "toy", "a red kayak of wood")
    found = run("recall", "red kayak", "--tag", "water").out
    assert "boat: a red kayak" in found and "wood" not in found
