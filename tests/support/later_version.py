"""A later memchat: this one with more migrations, since no second one was released yet."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memchat.db import migrate, schema

HEAD = schema.HEAD
NEXT, AFTER_NEXT = (f"{int(HEAD) + steps:04}" for steps in (1, 2))

SECOND = f'''
"""A step that a later version may take."""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{HEAD}"


def upgrade():
    op.add_column("memories", sa.Column("mood", sa.String(), nullable=True))
    op.execute("UPDATE memories SET mood = 'calm'")
    op.execute("DELETE FROM passages_fts")  # what is derived from other rows is made anew
'''
THIRD = f'''
"""A step that goes wrong half way."""
from alembic import op

revision = "{AFTER_NEXT}"
down_revision = "{NEXT}"


def upgrade():
    op.execute("DELETE FROM memories")
    op.execute("DROP TABLE jobs")
    op.execute("UPDATE no_such_table SET x = 1")
'''
Become = Callable[..., None]


def write_scripts(folder: Path, *steps: str) -> Path:
    """The migrations of this memchat and these steps."""
    shutil.copytree(migrate.SCRIPTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for number, step in enumerate(steps, int(NEXT)):
        (folder / "versions" / f"{number:04}_step.py").write_text(step)
    return folder


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Become:
    """Makes this memchat a later one, with these steps more; without any, with ``SECOND``."""

    def become(head: str = NEXT, *steps: str) -> None:
        scripts = write_scripts(tmp_path / "migrations", *(steps or (SECOND,)))
        monkeypatch.setattr(migrate, "SCRIPTS", scripts)
        monkeypatch.setattr(schema, "HEAD", head)

    return become
