"""Memories that a person wants at hand in every chat; how many turns a model was sent.

Revision ID: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    pinned = sa.Column("pinned", sa.Integer(), server_default=sa.text("0"), nullable=False)
    op.add_column("memories", pinned)
    turns = sa.Column("turns", sa.Integer(), server_default=sa.text("0"), nullable=False)
    op.add_column("prompts", turns)
