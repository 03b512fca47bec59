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

from memchat import MemChat
from memchat.config import Settings


@contextmanager
def serving(home: Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The process, its address, and what it printed when it could be reached."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"MEMCHAT_HOME": str(home), "MEMCHAT_EMBED_MODEL": "none"}
    command = [sys.executable, "-m", "memchat", "serve", "--user", "ana", "--port", str(port)]
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
    with serving(home) as (process, url, told):
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
    with MemChat(settings=Settings(home=home, embed_model="none")) as mc:
        ana = mc.user("ana")
        (kept,) = ana.sessions.list()
        assert [message.role for message in ana.sessions.messages(kept.id)] == ["user", "assistant"]
