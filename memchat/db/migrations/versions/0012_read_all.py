"""Of which messages a person wants all to be read, however long they are.

Revision ID: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    read_all = sa.Column("read_all", sa.Integer(), server_default=sa.text("0"), nullable=False)
    op.add_column("messages", read_all)
