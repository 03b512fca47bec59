"""The library as others use it: its public names, the README's code, nothing at import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import memchat
from tests.support.paths import ROOT


def test_every_public_name_says_what_it_is() -> None:
    for name in memchat.__all__:
        if name != "Messages":
            assert (getattr(memchat, name).__doc__ or "").strip(), name


def test_every_public_verb_says_what_it_does() -> None:
    verbs = (memchat.MemChat, memchat.User, memchat.Memories, memchat.Sessions, memchat.Inbox)
    others = (memchat.Mentions, memchat.Apps, memchat.Jobs, memchat.Services)
    for kind in (*verbs, *others, memchat.Chat, memchat.Reply):
        for name, member in vars(kind).items():
            if not name.startswith("_"):
                assert (member.__doc__ or "").strip(), f"{kind.__name__}.{name}"


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, memchat; print([m for m in ('sqlalchemy', 'numpy', 'litellm', 'faiss', "
    code += "'pydantic', 'streamlit', 'alembic', 'google.genai') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_readme_s_code_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    code, shown = re.findall(r"```(?:python|text)\n(.*?)```", text, re.DOTALL)[-2:]
    env = {"MEMCHAT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown
