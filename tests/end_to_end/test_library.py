"""The library as others use it: its public names, nothing heavy at import."""

from __future__ import annotations

import subprocess
import sys

import memchat


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
