"""Every table as the code describes it, keyword search, and the founding paper's view.

Until the first release this follows the tables in ``memchat.db.schema``. With the release the
statements that it runs then are written out here, and from then on it is never edited.

Revision ID: 0100
"""

from alembic import op

from memchat.db.schema import metadata

revision = "0100"
down_revision = None

COLUMNS = {
    "memories": "text, detail = none",
    "messages": "text, context, detail = column",
    "sessions": "text, detail = none",
    "chunks": "text, detail = none",
}
"""Of the keyword tables, each with how much of a word's places it keeps."""


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)
    for kind, columns in COLUMNS.items():
        op.execute(
            f"CREATE VIRTUAL TABLE {kind}_fts"
            f" USING fts5({columns}, columnsize = 0, tokenize = 'porter ascii')"
        )
    op.execute(
        "CREATE VIEW app_memories AS SELECT id, app_id, content,"
        " CAST(strftime('%s', created_at) AS INTEGER) AS created_at,"
        " CAST(strftime('%s', updated_at) AS INTEGER) AS updated_at FROM memories"
    )
