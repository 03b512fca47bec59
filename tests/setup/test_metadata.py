"""What a package index, or a person with pip, learns about the package from its wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.metadata import version

import pytest

from memchat.cli import main
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith("dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def test_the_wheel_carries_the_licence_and_names_it(
    wheel: zipfile.ZipFile, metadata: Message
) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    (inside,) = [name for name in wheel.namelist() if name.endswith("licenses/LICENSE")]
    assert wheel.read(inside) == (ROOT / "LICENSE").read_bytes()


def test_the_readme_is_its_description_and_keywords_help_to_find_it(metadata: Message) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert str(metadata.get_payload()).strip() == readme.strip()
    assert metadata["Summary"] and "memory" in metadata["Keywords"]


def test_each_python_that_is_allowed_has_a_classifier_and_no_other(metadata: Message) -> None:
    last, first = re.fullmatch(r"<3\.(\d+),>=3\.(\d+)", metadata["Requires-Python"]).groups()  # type: ignore[union-attr]
    allowed = {f"Programming Language :: Python :: 3.{n}" for n in range(int(first), int(last))}
    classifiers = metadata.get_all("Classifier") or []
    assert {c for c in classifiers if re.fullmatch(r"Programming.* :: 3\.\d+", c)} == allowed
    assert "Typing :: Typed" in classifiers


def test_the_version_is_the_same_everywhere(
    metadata: Message, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"memchat {metadata['Version']}\n"
    assert version("memchat") == metadata["Version"]
    assert str(metadata["Version"]) in (ROOT / "CHANGELOG.md").read_text("utf-8")
