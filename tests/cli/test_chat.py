"""The chat as it is typed and piped: real processes, a real terminal, servers on loopback only."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path

import pytest

from memchat.providers import litellm_calls
from tests.support.forks import MEMCHAT, Piped
from tests.support.slow import slow_but
from tests.support.terminal import TALK, WAIT, Env, slow_model, unreachable

if sys.platform == "win32":
    pytest.skip("these tests type into a pseudo-terminal", allow_module_level=True)


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """litellm, which a chat loads in a thread that must not outlive a test's warning filters."""
    litellm_calls.litellm()


# --- piped


def test_the_first_line_of_a_chat_names_an_address_that_is_not_the_provider_s_own(env: Env) -> None:
    done = env.memchat("chat", **unreachable("CHAT"))
    first = done.err.splitlines()[0]
    assert first == "Your words go to http://127.0.0.1:9/v1 (OPENAI_BASE_URL), not to OpenAI."
    assert "Your words go to" not in env.memchat("chat").err


def test_doctor_and_config_name_an_address_that_is_not_the_provider_s_own(env: Env) -> None:
    for command in ("doctor", "config"):
        done = env.memchat(command, **unreachable("CHAT"))
        assert "Your words go to http://127.0.0.1:9/v1 (OPENAI_BASE_URL)" in done.out + done.err


def test_each_piped_line_is_a_turn_and_the_end_prints_what_was_saved(env: Env) -> None:
    done = env.memchat("chat", said=TALK)
    assert done.code == 0, done.err
    assert re.search(r"^Saved 2 \(merged/updated 0\)$", done.out, re.M), done.out
    assert re.search(r"^Conversation: I live in Lisbon", done.out, re.M), done.out
    assert re.search(r"Lisbon.*“I live in Lisbon", done.out)
    assert [m["role"] for m in env.messages()] == ["user", "assistant"] * 2
    assert "Lisbon" in env.remembered()
    assert [s["status"] for s in env.listed("sessions", "list")] == ["extracted"]


def test_a_conversation_shows_what_it_took_of_each_model(env: Env) -> None:
    env.memchat("chat", said="I live in Lisbon.\n")
    shown = env.memchat("sessions", "show", "1").out
    took = r"1 call, \d+ tokens in, \d+ out, \d+\.\d s, cost \$0$"
    assert re.search(rf"^used  chat, offline/chat: {took}", shown, re.M), shown
    assert re.search(rf"^used  extract, offline/extract: {took}", shown, re.M), shown
    usage = json.loads(env.memchat("sessions", "show", "1", "--json").out)["usage"]
    assert [total["purpose"] for total in usage] == ["chat", "extract"]
    assert all(total["seconds"] >= 0 and total["prompt_tokens"] > 0 for total in usage)


def test_notices_of_a_piped_chat_stay_off_the_output(env: Env) -> None:
    done = env.memchat("chat", said="I live in Lisbon.\n")
    assert "Memory is on" in done.err and "memchat apps off" in done.err
    assert "stand-in" in done.err
    assert "Memory is on" not in done.out and "stand-in" not in done.out
    assert "\x1b" not in done.out + done.err


def test_the_first_run_notice_comes_once(env: Env) -> None:
    assert "Memory is on" in env.memchat("chat", said="hello\n").err
    assert "Memory is on" not in env.memchat("chat", said="hello\n").err


def test_a_second_conversation_knows_the_first(env: Env) -> None:
    env.memchat("chat", said=TALK)
    done = env.memchat("chat", said="Where do I live?\n")
    assert "Lisbon" in done.out
    assert re.search(r"^remembered: ", done.err, re.M), done.err


@pytest.mark.parametrize("goodbye", ["exit", "QUIT", " bye ", "/exit", "/quit"])
def test_a_goodbye_ends_a_piped_chat(env: Env, goodbye: str) -> None:
    done = env.memchat("chat", said=f"I live in Lisbon.\n{goodbye}\nI live in Porto.\n")
    assert done.code == 0
    assert [m["content"] for m in env.messages()][::2] == ["I live in Lisbon."]
    assert "Saved 1" in done.out


def test_an_empty_line_does_not_end_a_chat_nor_does_a_goodbye_in_a_sentence(env: Env) -> None:
    done = env.memchat("chat", said="\n  \nI live in Lisbon.\n\nHow do I exit vim?\n")
    assert done.code == 0, done.err
    said = [m["content"] for m in env.messages()][::2]
    assert said == ["I live in Lisbon.", "How do I exit vim?"]


def test_a_chat_in_which_nothing_is_said_ends_quietly(env: Env) -> None:
    done = env.memchat("chat")
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    assert env.listed("memories", "list") == []


def test_an_incognito_chat_leaves_nothing_behind(env: Env) -> None:
    done = env.memchat("chat", "--incognito", said=TALK)
    assert done.code == 0, done.err
    assert "incognito" in done.err.lower()
    assert env.listed("sessions", "list") == []
    assert env.listed("memories", "list", "--status", "all") == []


def test_with_memory_off_the_chat_says_so_and_saves_nothing(env: Env) -> None:
    env.memchat("apps", "off")
    done = env.memchat("chat", said=TALK)
    assert done.code == 0, done.err
    assert "Nothing is remembered: memory is off for the app default" in done.err
    assert "Saved 1" not in done.out and "Saved 2" not in done.out
    assert env.listed("memories", "list", "--status", "all") == []


def test_a_resumed_conversation_goes_on_in_the_same_session(env: Env) -> None:
    env.memchat("chat", said="I live in Lisbon.\n")
    done = env.memchat("chat", "--resume", "1", said="I am vegetarian.\n")
    assert "Going on with session 1 “I live in Lisbon" in done.err
    assert "Saved 1" in done.out, done.out + done.err
    assert len(env.messages()) == 4
    assert len(env.listed("sessions", "list")) == 1


def test_strange_input_is_a_turn_like_any_other(env: Env) -> None:
    strange = "‏שלום 🧑🏽‍🚀\n".encode() + b"half \xff\xfe bytes\n" + b"nul \x00 here\n"
    done = env.memchat("chat", said=strange)
    assert done.code == 0, done.err
    assert len(env.messages()) == 6


@pytest.mark.parametrize("words", slow_but([20_000], [20_000, 200_000]))
def test_a_huge_line_is_answered_or_refused_in_one_line(env: Env, words: int) -> None:
    done = env.memchat("chat", said="word " * words + "\nI live in Lisbon.\n")
    assert "Traceback" not in done.err
    if done.code:
        assert re.search(r"^memchat: .+$", done.err, re.M)
    assert "I live in Lisbon." in [m["content"] for m in env.messages()]


# --- faults


def test_an_unknown_session_cannot_be_resumed(env: Env) -> None:
    done = env.memchat("chat", "--resume", "999")
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"memchat: .+\n", done.err)


def test_a_failing_provider_keeps_the_message_and_is_one_line(env: Env) -> None:
    done = env.memchat("chat", said="I live in Lisbon.\n", **unreachable("CHAT"))
    assert done.code == 1
    assert "Traceback" not in done.err
    assert len(re.findall(r"^memchat: .+$", done.err, re.M)) == 1, done.err
    assert [m["content"] for m in env.messages() if m["role"] == "user"] == ["I live in Lisbon."]


def test_a_failed_extraction_is_kept_shown_and_done_later(env: Env) -> None:
    done = env.memchat("chat", said="I live in Lisbon.\n", **unreachable("EXTRACT"))
    assert done.code == 0
    (line,) = re.findall(r"^memchat: .+$", done.err, re.M)
    assert "read again later" in line
    (job,) = [job for job in env.listed("jobs", "status") if job["kind"] == "extract"]
    assert job["status"] in ("pending", "failed")
    env.memchat("jobs", "retry")
    failed = env.memchat("jobs", "run", **unreachable("EXTRACT"))
    assert (failed.code, failed.out) == (1, "0 done, 1 failed\n")
    assert len(re.findall(r"^memchat: job 2 \(extract of session 1\): .+$", failed.err, re.M)) == 1
    env.memchat("jobs", "retry")
    again = env.memchat("jobs", "run")
    assert again.code == 0, again.err
    assert "Saved 1" in again.out, again.out
    assert "Lisbon" in env.remembered()


def test_a_missing_key_is_one_line(env: Env) -> None:
    done = env.memchat("chat", said="hello\n", MEMCHAT_CHAT_MODEL="openai/some-model")
    assert done.code == 1
    assert "Traceback" not in done.err
    assert re.search(r"^memchat: .*OPENAI_API_KEY", done.err, re.M), done.err


def test_a_killed_chat_loses_nothing(env: Env) -> None:
    with slow_model(["Well"]) as (address, asked):
        slow = env | {
            "MEMCHAT_CHAT_MODEL": "openai/some-model",
            "OPENAI_BASE_URL": address,
            "OPENAI_API_KEY": "sk-none",
        }
        chat = Piped(MEMCHAT, ["chat"], env=slow, cwd=Path(env["MEMCHAT_HOME"]))
        chat.stdin.write("I live in Lisbon.\n")
        chat.stdin.flush()
        assert asked.wait(WAIT)
        chat.send_signal(signal.SIGKILL)
        chat.communicate(WAIT)
    assert [m["content"] for m in env.messages() if m["role"] == "user"] == ["I live in Lisbon."]
