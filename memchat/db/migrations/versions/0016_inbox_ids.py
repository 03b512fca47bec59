"""The number of an inbox item that was answered is never given to another one.

Revision ID: 0016
"""

from alembic import op

revision = "0016"
down_revision = "0015"

MISTAKEN = """
    DELETE FROM client_writes WHERE kind IN ('inbox', 'forget') AND EXISTS
    (SELECT 1 FROM inbox i WHERE i.id = client_writes.target_id
        AND i.created_at > client_writes.at)
"""
"""What a program once asked, where its number was given to a younger item since."""
LAST = """
    INSERT INTO sqlite_sequence (name, seq)
    SELECT 'inbox', max(id) FROM (SELECT id FROM inbox UNION ALL
    SELECT target_id FROM client_writes WHERE kind IN ('inbox', 'forget') UNION ALL SELECT 0)
"""


def upgrade() -> None:
    kept = {"sqlite_autoincrement": True}
    with op.batch_alter_table("inbox", recreate="always", table_kwargs=kept):
        pass
    op.execute(MISTAKEN)
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'inbox'")
    op.execute(LAST)
