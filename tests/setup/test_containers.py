"""The Dockerfile and compose.yaml, as far as that can be seen without an engine that runs them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from memchat.config.settings import VARIABLES
from tests.support.cli import Run
from tests.support.paths import ROOT

yaml = pytest.importorskip("yaml", reason="comes with litellm")

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
OURS = {name: one for name, one in SERVICES.items() if one["image"] == "memchat"}
LINES = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text("utf-8")).splitlines()
STEPS = [line.partition(" ")[::2] for line in LINES if line and not line.startswith("#")]


@pytest.mark.parametrize("name", OURS)
def test_what_a_service_runs_is_a_command_with_options_that_it_has(name: str, run: Run) -> None:
    words = OURS[name]["command"]
    shown = run(*words[: next((n for n, w in enumerate(words) if w[0] == "-"), None)], "--help")
    assert shown.code == 0
    assert all(word in shown.out for word in words if word.startswith("--"))


def test_there_are_a_database_an_app_a_server_and_two_workers() -> None:
    assert SERVICES.keys() == {"db", "app", "serve", "worker"}
    assert SERVICES["worker"]["deploy"]["replicas"] == 2
    assert "--without-worker" in SERVICES["serve"]["command"]
    for one in OURS.values():
        assert one["depends_on"] == {"db": {"condition": "service_healthy"}}
        assert one["volumes"] == ["settings:/data"]


def test_nothing_listens_beyond_this_machine_and_no_password_stands_in_a_file() -> None:
    (port,) = SERVICES["db"]["ports"]
    assert port.startswith("127.0.0.1:")
    known = {*VARIABLES.values(), "MEMCHAT_USER"}
    for one in OURS.values():
        assert one["network_mode"] == "host" and "ports" not in one
        assert "--host" not in one["command"] and one["environment"].keys() <= known
        assert f"@{port.rpartition(':')[0]}/" in one["environment"]["MEMCHAT_DATABASE_URL"]
        assert ":${POSTGRES_PASSWORD:?" in one["environment"]["MEMCHAT_DATABASE_URL"]
    assert SERVICES["db"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")


def test_the_image_is_of_named_versions_and_locked_packages_and_runs_as_nobody_special() -> None:
    bases = [rest.split()[0] for word, rest in STEPS if word == "FROM"]
    images = [*bases, SERVICES["db"]["image"]]
    assert all(re.fullmatch(r"\S+:\w[\w.-]*", one) and "latest" not in one for one in images)
    installs = [part for word, rest in STEPS if word == "RUN" for part in rest.split(" && ")]
    installs = [part for part in installs if part.startswith("pip install")]
    assert all("--require-hashes" in part or "--no-index" in part for part in installs)
    assert dict(STEPS)["USER"] == "memchat"
    assert json.loads(dict(STEPS)["ENTRYPOINT"]) == ["memchat"]
    assert dict(STEPS)["VOLUME"] == "/data" and "MEMCHAT_HOME=/data" in dict(STEPS)["ENV"]


def test_the_wheel_is_built_of_what_the_first_stage_copies(tmp_path: Path) -> None:
    stage = STEPS[: [word for word, _ in STEPS].index("FROM", 1)]
    for sources, target in (rest.rsplit(" ", 1) for word, rest in stage if word == "COPY"):
        for name in sources.split():
            if target == "./":
                shutil.copy(ROOT / name, tmp_path / name)
            else:
                shutil.copytree(ROOT / name, tmp_path / target)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "wheels"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for part in ("memchat/cli/", "memchat/ui_data/", "memchat/prompts_data/", "memchat/demo_data/"):
        assert any(name.startswith(part) for name in names)
    locks = [rest for word, rest in STEPS if word == "COPY" and ".lock" in rest]
    assert all((ROOT / name).is_file() for rest in locks for name in rest.split()[:-1])
