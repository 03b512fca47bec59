"""What stores lack whose migrations were edited after they had run; no other store is changed.

Revision ID: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

COLUMNS = (
    ("inbox", "expires_at", "DATE"),
    ("inbox", "many", "INTEGER DEFAULT 1 NOT NULL"),
    ("inbox", "masked", "INTEGER DEFAULT 0 NOT NULL"),
    ("inbox", "start", "INTEGER"),
    ("inbox", "unchecked", "INTEGER DEFAULT 0 NOT NULL"),
    ("prompts", "turns", "INTEGER DEFAULT 0 NOT NULL"),
)
BEFORE = {
    "prompts_before": "INSERT INTO prompts (message_id, system, first_message_id)"
    " SELECT message_id, system, first_message_id FROM prompts_before",
    "muted_before": "INSERT INTO muted (session_id, memory_id, created_at)"
    " SELECT session_id, memory_id, created_at FROM muted_before",
    "counts_before": "UPDATE memories SET match_count = c.match_count, read_count = c.read_count"
    " FROM counts_before c WHERE c.id = memories.id",
}
"""What ``memchat.db.migrate`` set aside before the migrations ran, and how it comes back."""


def upgrade() -> None:
    tables = set(_now().get_table_names())
    for name, statement in BEFORE.items():
        if name in tables:
            op.execute(statement)
            op.execute(f"DROP TABLE {name}")
    for table, column, kind in COLUMNS:
        if column not in {found["name"] for found in _now().get_columns(table)}:
            op.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    if not _now().get_check_constraints("jobs"):
        _tighten_jobs()


def _now() -> sa.Inspector:
    return sa.inspect(op.get_bind())


def _tighten_jobs() -> None:
    """As in migration 0003: a status is -1, 0 or the code of an error; jobs are found by kind."""
    op.drop_index("ix_jobs_due", "jobs")
    with op.batch_alter_table("jobs") as batch:
        is_code = "typeof(status) = 'integer' AND status >= -1"
        batch.create_check_constraint(op.f("ck_jobs_status"), is_code)
    waiting = sa.text("status = -1")
    op.create_index("ix_jobs_due", "jobs", ["kind", "run_at"], sqlite_where=waiting)
