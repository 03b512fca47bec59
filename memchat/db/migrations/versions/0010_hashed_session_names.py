"""The names that other programs give to their conversations are kept as keyed hashes.

Revision ID: 0010
"""

import hmac
import secrets

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    tx = op.get_bind()
    names = tx.execute(sa.text("SELECT rowid, name FROM external_sessions")).all()
    if not names:
        return
    key = _hash_key(tx)
    for row, name in names:
        hashed = hmac.digest(key, name.encode(), "sha256").hex()
        tx.execute(
            sa.text("UPDATE external_sessions SET name = :name WHERE rowid = :row"),
            {"name": hashed, "row": row},
        )


def _hash_key(tx: sa.Connection) -> bytes:
    found = tx.execute(sa.text("SELECT value FROM meta WHERE key = 'hash_key'")).scalar()
    if found is None:
        found = secrets.token_hex(32)
        tx.execute(
            sa.text("INSERT INTO meta (key, value) VALUES ('hash_key', :key)"), {"key": found}
        )
    return bytes.fromhex(found)
