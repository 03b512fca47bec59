"""``memchat serve`` as a process: its first token, its answers, and its end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.config.tokens import Token, Tokens
from tests.support.served import until
from tests.support.store import WAIT
from tests.support.wire.openai import OpenAIServer
from tests.support.wire.server import Endless


@contextmanager
def serving(
    home: Path, *options: str, **more: str
) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The process, its address, and what it printed when it could be reached."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"MEMCHAT_HOME": str(home), "MEMCHAT_EMBED_MODEL": "none"} | more
    command = [sys.executable, "-m", "memchat", "serve", "--user", "ana", "--port", str(port)]
    command += options
    process = subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, cwd=home.parent
    )
    try:
        assert process.stderr is not None
        told = ""
        while "Ctrl-C ends it" not in told:
            told += process.stderr.readline()
            assert process.poll() is None, told
        yield process, f"http://127.0.0.1:{port}/v1", told
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_the_first_start_makes_a_token_and_ctrl_c_ends_it_with_what_was_said_kept(
    tmp_path: Path,
) -> None:
    home = tmp_path / "store"
    with serving(home, MEMCHAT_LOG="info") as (process, url, told):
        token = re.findall(r"shown this once: (\S+)", told)[0]
        body = {"messages": [{"role": "user", "content": "I live in Porto."}]}
        given = {"authorization": f"Bearer {token}"}
        said = httpx.post(f"{url}/chat/completions", json=body, headers=given, timeout=30)
        assert "Porto" in said.json()["choices"][0]["message"]["content"]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130  # as a shell expects of Ctrl-C
    with serving(home) as (_, url, told):
        assert "shown this once" not in told
        assert httpx.get(f"{url}/models", headers=given).status_code == 200
    assert kept(home) == ["user", "assistant"]
    lines = (home / "memchat.log").read_text().splitlines()
    (asked,) = [line for line in lines if "route=/v1/chat/completions" in line]
    assert re.search(r"request=[0-9a-f]{16} method=POST .* status=200 ms=", asked)
    assert not [line for line in lines if "Porto" in line or "ana" in line or token in line]


def kept(home: Path) -> list[str]:
    """Who said what is kept, in the one conversation there is."""
    with MemChat(settings=Settings(home=home, embed_model="none")) as mc:
        ana = mc.user("ana")
        (one,) = ana.sessions.list()
        return [message.role for message in ana.sessions.messages(one.id)]


def test_the_message_is_kept_where_the_process_is_killed_in_the_middle_of_a_reply(
    tmp_path: Path,
) -> None:
    home = tmp_path / "store"
    with OpenAIServer() as provider:
        provider.script(Endless())
        model = {"MEMCHAT_CHAT_MODEL": "openai/gpt-4.1-mini", "OPENAI_API_KEY": provider.key}
        with serving(home, **model, OPENAI_BASE_URL=provider.base) as (process, url, told):
            token = re.findall(r"shown this once: (\S+)", told)[0]
            body = {"stream": True, "messages": [{"role": "user", "content": "Tell me a story."}]}
            given = {"authorization": f"Bearer {token}"}
            asked = httpx.stream("POST", f"{url}/chat/completions", json=body, headers=given)
            with asked as reply:
                next(reply.iter_bytes())
                process.kill()
                process.wait()
        assert provider.refusals == []
    assert kept(home) == ["user"]


@pytest.mark.slow
def test_several_processes_answer_over_one_store_and_what_rests_is_read(tmp_path: Path) -> None:
    home = tmp_path / "store"
    with serving(home, "--workers", "2") as (process, url, told):
        token = re.findall(r"shown this once: (\S+)", told)[0]
        given = {"authorization": f"Bearer {token}"}
        tokens = Tokens(home)
        admin = {"authorization": f"Bearer {tokens.add(Token('admin', 'ana', may='admin'))}"}
        ids = set()
        history: list[dict[str, str]] = []
        api = url.removesuffix("/v1") + "/api"
        with httpx.Client(timeout=WAIT) as web:
            until(lambda: reached(web, f"{url}/models", given))
            for words in ("Remember that I live in Porto.", "Remember that I like tea.", "Bye."):
                history.append({"role": "user", "content": words})
                # A new connection each time, which either process may take.
                said = httpx.post(
                    f"{url}/chat/completions", json={"messages": history}, headers=given,
                    timeout=WAIT,
                )  # fmt: skip
                history.append(said.json()["choices"][0]["message"])
                ids.add(said.headers["x-memchat-session"])
            assert len(ids) == 1
            until(lambda: len(web.get(f"{api}/inbox", headers=admin).json()) >= 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT) in (0, 130)
    assert kept(home) == ["user", "assistant"] * 3


def reached(web: httpx.Client, url: str, headers: dict[str, str]) -> bool:
    try:
        return web.get(url, headers=headers).is_success
    except httpx.TransportError:
        return False


def test_beyond_this_machine_it_listens_only_behind_a_proxy(run) -> None:
    done = run("serve", "--host", "0.0.0.0")
    assert done.code == 1 and "--behind-proxy" in done.err
    assert run("serve", "--public-url", "http://memory.example").code == 1


def test_a_port_that_is_in_use_is_told_of(run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "--port", str(port))
    assert done.code == 1
    assert f"127.0.0.1:{port} cannot be used (Address already in use); see --port" in done.err


def test_a_store_that_cannot_be_opened_is_told_of_once(tmp_path: Path) -> None:
    (tmp_path / "memchat.db").write_bytes(b"no database" * 1000)
    command = [sys.executable, "-m", "memchat", "serve", "--workers", "2", "--port", "18769"]
    environment = os.environ | {"MEMCHAT_HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.count("no database") == 1
    assert "Traceback" not in done.stderr and not (tmp_path / "tokens.toml").exists()
