"""Every table as the code describes it, keyword search, and the founding paper's view.

Until the first release this follows the tables in ``memchat.db.schema``. With the release the
statements that it runs then are written out here, and from then on it is never edited.

Revision ID: 0100
"""

from alembic import op

from memchat.db.schema import metadata

revision = "0100"
down_revision = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        from memchat.db import postgres

        postgres.create_tables(op.get_bind())
        return
    metadata.create_all(op.get_bind(), checkfirst=False)
    op.execute(
        "CREATE VIRTUAL TABLE passages_fts USING"
        " fts5(text, context, detail = column, columnsize = 0, tokenize = 'porter ascii')"
    )
    op.execute(
        "CREATE VIEW app_memories AS SELECT id, app_id, content,"
        " CAST(strftime('%s', created_at) AS INTEGER) AS created_at,"
        " CAST(strftime('%s', updated_at) AS INTEGER) AS updated_at FROM memories"
    )
