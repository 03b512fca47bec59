"""Short help, one question, the latest conversation, and mistakes in names."""

from __future__ import annotations

import io
import json
import sys

import pytest

from tests.support.cli import Run, add, commands
from tests.support.terminal import Env


def test_short_help_works_for_every_command(run: Run) -> None:
    for name in ["", "memories", *(name for name, _ in commands())]:
        done = run(*name.split(), "-h")
        assert done.code == 0 and "Usage: memchat" in done.out, name


def test_one_question_is_answered_and_nothing_is_learnt(env: Env) -> None:
    env.memchat("memories", "add", "profile", "city", "Lisbon")
    for args, said in ((("Which city is it?",), ""), ((), "Which city is it?\nI am a nurse.\n")):
        done = env.memchat("chat", "--once", *args, said=said)
        assert done.code == 0 and "Lisbon" in done.out and "remembered: city" in done.err
    assert env.listed("sessions", "list") == [] and env.remembered() == "Lisbon"


def test_the_latest_conversation_goes_on(env: Env) -> None:
    none = env.memchat("chat", "-c", said="Hello.\n")
    assert none.code == 1 and "no conversation to go on with" in none.err
    env.memchat("chat", said="Hello.\n")
    env.memchat("chat", said="I live in Lisbon.\n")
    done = env.memchat("chat", "-c", said="It rains today.\n")
    assert done.code == 0 and "Going on with session 2" in done.err
    said = [turn["content"] for turn in env.messages(2) if turn["role"] == "user"]
    assert said == ["I live in Lisbon.", "It rains today."]


@pytest.mark.parametrize(
    "args", [("--once", "--incognito", "x"), ("-c", "--resume", "1"), ("a question",)]
)
def test_options_of_the_chat_that_do_not_go_together_are_refused(
    env: Env, args: tuple[str, ...]
) -> None:
    done = env.memchat("chat", *args)
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize(
    "args",
    [
        ("memories", "list"),
        ("memories", "clear", "--yes"),
        ("sessions", "list"),
        ("inbox", "list"),
        ("recall", "city"),
        ("audit",),
        ("apps", "delete", "--yes"),
        ("chat", "--once", "Hello?"),
    ],
)
def test_an_unknown_app_is_an_error_where_something_is_read_or_deleted(
    run: Run, args: tuple[str, ...]
) -> None:
    add(run, "profile", "city", "Lisbon")
    done = run(*args, "--app", "defualt")
    assert (done.code, done.out) == (1, "") and "'defualt'; see memchat apps list" in done.err


def test_a_new_app_is_made_where_something_is_written(run: Run) -> None:
    add(run, "profile", "city", "Lisbon", "--app", "work")
    assert len(run("memories", "list", "--app", "work", "--json").json) == 1


def test_an_unknown_kind_of_finding_is_an_error(run: Run) -> None:
    done = run("audit", "--kind", "sekret")
    assert done.code == 2 and "secret" in done.err


def test_what_writes_a_memory_prints_it_as_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(*args: str) -> dict[str, object]:
        done = run("memories", *args, "--json")
        assert done.code == 0, done.err
        found: dict[str, object] = json.loads(done.out)
        return found

    assert written("add", "profile", "city", "Lisbon")["value"] == "Lisbon"
    assert written("edit", "1", "--value", "Porto")["value"] == "Porto"
    assert written("pin", "1")["pinned"] is True
    assert written("delete", "1", "--yes") == {"id": 1, "forgotten": True}
    add(run, "profile", "home", "Lisbon")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    number = add(run, "profile", "home", "Faro")
    old = min(int(str(m["id"])) for m in run("memories", "list", "--status", "all", "--json").json)
    assert old < int(number) and written("restore", str(old))["active"] is True


def test_what_was_just_said_can_be_forgotten_and_is_not_learnt(env: Env) -> None:
    done = env.memchat("chat", said="I work as a nurse.\nforget that I work as a nurse\nyes\n")
    assert "1. not learnt yet: “I work as a nurse.”" in done.out and done.code == 0
    assert "Nothing will be learnt from 1 message" in done.out and env.remembered() == ""


def test_what_changes_an_app_a_conversation_or_the_queue_tells_it_as_json(env: Env) -> None:
    def written(*args: str, said: str = "") -> dict[str, object]:
        done = env.memchat(*args, "--json", said=said)
        assert done.code == 0, done.err
        found: dict[str, object] = json.loads(done.out)
        return found

    env.memchat("chat", said="I live in Lisbon.\n")
    assert written("sessions", "rename", "1", "My move")["title"] == "My move"
    assert written("sessions", "end", "1")["id"] == 1
    dry = written("sessions", "delete", "1", "--dry-run")
    assert (dry["session"], dry["deleted"], len(list(dry["gone"]))) == (1, False, 1)  # type: ignore[call-overload]
    assert written("sessions", "delete", "1", "--yes")["deleted"] is True
    env.memchat("memories", "add", "profile", "job", "nurse")
    assert written("audit", "--fix", "--yes")["mended"] == 0
    assert written("memories", "clear", "--yes") == {"app": "default", "forgotten": 1}
    assert written("apps", "off", "--all-apps") == {"app": None, "memory": False}
    assert written("apps", "on", "default") == {"app": "default", "memory": True}
    env.memchat("apps", "on", "--all-apps")
    assert written("apps", "delete", "default", "--yes") == {
        "app": "default",
        "memories": 0,
        "sessions": 0,
        "notes": 0,
    }
    assert written("jobs", "run") == {"done": 0, "failed": [], "learned": []}
    assert written("jobs", "retry") == {"retried": 0}
    assert written("jobs", "clear") == {"removed": 0}
    key = {"key": "MISTRAL_API_KEY", "file": f"{env['MEMCHAT_HOME']}/keys.toml"}
    assert written("keys", "set", "mistral", said="a-secret-1") == {**key, "kept": True}
    assert written("keys", "remove", "mistral") == {**key, "kept": False}


def test_a_key_that_is_stored_under_another_name_is_said(run: Run) -> None:
    done = run("memories", "add", "profile", "Home  City!", "Lisbon")
    assert (done.out, done.err) == ("1\n", "“Home  City!” is stored under the key city\n")
    done = run("memories", "edit", "1", "--key", "E-Mail")
    assert done.err == "“E-Mail” is stored under the key e_mail\n"
    assert run("memories", "edit", "1", "--key", "job").err == ""


def test_a_new_title_is_said_and_stays(env: Env) -> None:
    env.memchat("chat", said="I live in Lisbon.\n")
    done = env.memchat("sessions", "rename", "1", "My\x1b move")
    assert done.code == 1 or done.out == "session 1 is now called “My\ufffd move”\n"
    assert env.memchat("sessions", "rename", "1", "My move").out == (
        "session 1 is now called “My move”\n"
    )
    assert env.memchat("sessions", "rename", "1", " ").code == 1
    assert env.listed("sessions", "list")[0]["title"] == "My move"


def test_a_history_says_yes_and_no(run: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    run("memories", "edit", "1", "--sensitive")
    shown = run("memories", "history", "1").out
    assert "sensitive yes" in shown and "True" not in shown


def test_a_conversation_is_copied_up_to_a_message(env: Env) -> None:
    env.memchat("chat", said="I live in Lisbon.\nAnd now?\n")
    assert env.memchat("sessions", "copy", "1", "--before", "3").out == "2\n"
    shown = env.memchat("sessions", "show", "2").out
    assert "copied from session 1" in shown and "I live in Lisbon." in shown
    assert "And now?" not in shown
    assert "Going on with session 2.\n" in env.memchat("chat", "--resume", "2", said="").err
    copy = json.loads(env.memchat("sessions", "copy", "1", "--before", "3", "--json").out)
    assert (copy["id"], copy["copied_from"], copy["message_count"]) == (3, 1, 2)
    refused = env.memchat("sessions", "copy", "2", "--before", "3")
    assert refused.code == 1 and "session 2 has no message 3" in refused.err
