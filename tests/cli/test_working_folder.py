"""A folder that somebody else filled: no command that runs there reads or starts what it holds."""

from __future__ import annotations

import io
import os
import select
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer

from memchat import MemChat
from memchat.cli import app, main
from tests.support.paths import ROOT
from tests.support.wire import OpenAIServer

CANARY = "canary-4f1d"
MODULES = ("streamlit", "sitecustomize", "usercustomize", "litellm", "pager", "ui", "webbrowser")
MORE = {
    ("worker",): ["--once"],
    ("memories", "edit"): ["--value", "hammer"],
    ("memories", "delete"): ["1", "--yes"],
    ("memories", "clear"): ["--yes"],
    ("notes", "add"): ["--text", "hammer"],
    ("notes", "edit"): ["--title", "hammer"],
    ("notes", "delete"): ["1", "--yes"],
    ("inbox", "accept"): ["1"],
    ("inbox", "reject"): ["1"],
    ("sessions", "copy"): ["--before", "1"],
    ("sessions", "delete"): ["1", "--yes"],
    ("apps", "delete"): ["work", "--yes"],
    ("backup", "prune"): ["--keep", "0", "--yes"],
    ("restore",): ["--yes"],
    ("import",): ["../anas.jsonl"],
    ("wipe",): ["--yes"],
}
"""What these need beside their arguments to do their work at once."""


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: OpenAIServer) -> Path:
    """The working folder, with hostile copies of every file that something might read."""
    folder = tmp_path / "hostile"
    (folder / ".streamlit").mkdir(parents=True)
    files = {
        ".env": "\n".join(
            (
                f"PAGER=sh -c 'touch {folder}/PWNED'",
                f"OPENAI_BASE_URL={server.base}",
                f"OPENAI_API_BASE={server.base}",
                f"OPENAI_API_KEY={server.key}",
                f"HTTPS_PROXY={server.url}",
                f"HTTP_PROXY={server.url}",
                f"MEMCHAT_HOME={folder}/stolen",
                "MEMCHAT_CHAT_MODEL=openai/evil",
                "LITELLM_MODE=DEV",
                f"CANARY={CANARY}",
            )
        ),
        "settings.toml": f'MEMCHAT_CHAT_MODEL = "openai/evil"\nOPENAI_BASE_URL = "{server.base}"\n',
        "keys.toml": f'OPENAI_API_KEY = "{server.key}"\n',
        ".streamlit/config.toml": (
            f'[{CANARY}]\nread = true\n[server]\naddress = "0.0.0.0"\nbaseUrlPath = "{CANARY}"\n'
            "enableXsrfProtection = false\nenableStaticServing = true\n"
            '[browser]\ngatherUsageStats = true\n[theme]\nprimaryColor = "#ff0000"\n'
        ),
        ".streamlit/secrets.toml": f"{CANARY} is no TOML\n",
        **{f"{name}.py": f"open({str(folder / 'PWNED')!r}, 'w')\n" for name in MODULES},
    }
    for name, text in files.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def env(tmp_path: Path, folder: Path) -> dict[str, str]:
    """The environment of a person who has set up nothing."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMCHAT_", "OPENAI_", "STREAMLIT_", "LITELLM_"))
        and not name.endswith("_API_KEY")
        and name.upper() not in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "PAGER")
    }
    ours = {
        "MEMCHAT_HOME": str(tmp_path / "store"),
        "MEMCHAT_USER": "ana",
        "MEMCHAT_EMBED_MODEL": "none",
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "HOME": str(tmp_path),
    }
    return kept | ours


def commands(node: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    node = node or typer.main.get_command(app)
    below = getattr(node, "commands", None)
    if below is None:
        yield path, node
        return
    for name, command in below.items():
        yield from commands(command, (*path, name))


def arguments(name: tuple[str, ...], command: Any) -> list[str]:
    """Something for each argument that a command must have, so that it does its work."""
    given = {"memory_type": "fact", "shell": "bash", "file": "../anas.jsonl"}
    given["client"] = "cursor"
    given["name"] = "openai" if name[0] == "keys" else "minilm"
    needed = [p for p in command.params if p.param_type_name == "argument" and p.required]
    filled = [given.get(p.name, "1" if "id" in p.name else "tool") for p in needed]
    return [*name, *filled, *MORE.get(name, [])]


def test_no_command_reads_a_file_of_the_working_folder(
    folder: Path,
    env: dict[str, str],
    server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = contents(folder)
    for name in os.environ.keys() - env.keys():
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    ran = []
    for name, command in commands():
        if name in (("ui",), ("serve",)):  # as a process: below, and in tests/http
            continue
        monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
        ran.append((name, main(arguments(name, command))))
        said = "".join(capsys.readouterr())
        assert CANARY not in said and "openai/evil" not in said, name
        assert contents(folder) == before, name
        assert server.requests == [], name
        assert CANARY not in os.environ.values(), name
    assert len(ran) > 40
    assert [name for name, code in ran if code == 2] == []
    assert (Path(env["MEMCHAT_HOME"]) / "keys.toml").exists()  # it is the data folder's that counts


def test_a_pager_is_the_environment_s_alone_and_gets_no_key(
    folder: Path, env: dict[str, str]
) -> None:
    before = contents(folder)
    with MemChat(env["MEMCHAT_HOME"]) as mc:
        for number in range(30):
            mc.user("ana").memories.add("fact", "thing", f"number {number}")
    # Without PAGER, the folder's would be taken; `env` shows what a pager is given.
    for pager in ({}, {"PAGER": "env"}):
        size = {"TERM": "xterm", "LINES": "24", "COLUMNS": "80"}
        said = on_terminal(folder, env | size | pager | {"OPENAI_API_KEY": CANARY})
        assert contents(folder) == before
        assert CANARY not in said
    assert "MEMCHAT_USER=ana" in said


def on_terminal(folder: Path, env: dict[str, str]) -> str:
    """What `memchat memories list` prints on a terminal."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-P", "-m", "memchat", "memories", "list"]
    process = subprocess.Popen(
        command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said, end = b"", time.monotonic() + 60
    with suppress(OSError):  # reading fails once the terminal's other end is closed
        while time.monotonic() < end:
            if not select.select([ours], [], [], 1)[0]:
                os.write(ours, b"q")  # a pager that waits for a key is told to end
                continue
            piece = os.read(ours, 4096)
            if not piece:
                break
            said += piece
    os.close(ours)
    process.kill()
    process.wait(60)
    return said.decode()


@pytest.mark.slow
def test_litellm_reads_no_dotenv_whatever_the_environment_says(
    folder: Path, env: dict[str, str]
) -> None:
    # Of a script that comes by -c, litellm would take the working folder's .env.
    code = (
        "import os, sys; sys.path.remove('');"
        "from memchat.providers import litellm_calls; litellm_calls.litellm();"
        "print(os.environ.get('CANARY'), os.environ.get('PAGER'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=env | {"LITELLM_MODE": "DEV"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["None", "None"], done.stderr


# --- the app


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with suppress(OSError), urllib.request.urlopen(url):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    raise AssertionError("the server did not answer")


def what_is_written(path: Path) -> str:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, "no browser was opened"
        time.sleep(0.1)
    return path.read_text()


def draw_a_page(port: int) -> Any:
    """Have the server run the app's script as a browser would; what it says of itself."""
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
    from websockets.sync.client import connect

    with connect(
        f"ws://127.0.0.1:{port}/_stcore/stream",
        origin=f"http://127.0.0.1:{port}",  # type: ignore[arg-type]
        subprotocols=["streamlit"],  # type: ignore[list-item]
        max_size=None,
    ) as socket_:
        ask = BackMsg()
        ask.rerun_script.query_string = ""
        socket_.send(ask.SerializeToString())
        started = None
        while True:
            said = ForwardMsg()
            said.ParseFromString(socket_.recv(timeout=120))
            kind = said.WhichOneof("type")
            if kind == "new_session":
                started = said.new_session
            if kind == "script_finished" and started is not None:
                return started


def test_the_app_takes_nothing_from_the_folder_and_keeps_its_keys_to_itself(
    folder: Path, env: dict[str, str], server: OpenAIServer, tmp_path: Path
) -> None:
    before = contents(folder)
    port = free_port()
    browser = tmp_path / "browser"
    browser.write_text(
        f"#!/bin/sh\nenv > {tmp_path}/given.part; mv {tmp_path}/given.part {tmp_path}/given\n"
    )
    browser.chmod(0o755)
    shown = {"DISPLAY": ":0", "BROWSER": f"{browser} %s", "OPENAI_API_KEY": CANARY}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "memchat", "ui", "--port", str(port)],
        cwd=folder,
        env=env | shown,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", process)
        started = draw_a_page(port)
        with pytest.raises(OSError):  # it listens on 127.0.0.1, and on no other address
            socket.create_connection(("127.0.0.2", port), 5).close()
        given = what_is_written(tmp_path / "given")
    finally:
        process.terminate()
        said = process.communicate(timeout=60)[0]
    assert not started.config.gather_usage_stats
    assert started.custom_theme.primary_color != "#ff0000"
    assert "MEMCHAT_USER=ana" in given and CANARY not in given
    assert CANARY not in said
    assert contents(folder) == before
    assert server.requests == []
    assert (Path(env["MEMCHAT_HOME"]) / "memchat.db").exists()
