"""Statements are SQLAlchemy's; plain SQL stands only where one database alone can do it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import sqlalchemy as sa

import memchat
from memchat.db import schema
from memchat.db.database import Database
from memchat.db.records import among
from tests.support.rows import ANA

PACKAGE = Path(memchat.__file__).parent
PLAIN = {"db/database.py", "db/backup.py", "db/migrate.py", "db/postgres.py"}
PLAIN |= {"search/keywords.py", "search/pgvector.py"}
"""Transactions, locking, scrubbing and files; keyword search, and that of vectors in PostgreSQL."""
SQL = re.compile(
    r"\s*(SELECT|INSERT|REPLACE|DELETE FROM|UPDATE \w+|WITH \w+|CREATE|DROP|ALTER|PRAGMA)\s"
)


def sql_in(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    texts = (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return [text for text in texts if SQL.match(text)]


def test_plain_sql_stands_only_where_one_database_alone_can_do_it() -> None:
    sources = {p.relative_to(PACKAGE).as_posix(): p for p in PACKAGE.rglob("*.py")}
    plain = {name for name, path in sources.items() if sql_in(path)}
    assert {name for name in plain if not name.startswith("db/migrations/")} == PLAIN


def test_a_statement_is_the_same_for_a_list_of_any_length(sqlite: Database) -> None:
    statement = sa.select(schema.apps.c.id).where(among(schema.apps.c.id, "ids"))
    said: list[str] = []
    with sqlite.write(ANA, ensure=True) as tx:
        tx.driver.set_trace_callback(said.append)
        found = [tx.column(statement, ids=ids) for ids in ((), [tx.own], {tx.own, tx.shared, 99})]
        tx.driver.set_trace_callback(None)
    assert found == [[], [1], [1, 2]]
    assert len({re.sub(r"'\[.*\]'", "?", one) for one in said}) == 1


def test_a_constant_is_written_into_the_statement_so_that_a_partial_index_is_used(
    sqlite: Database,
) -> None:
    c = schema.memories.c
    begun = sa.select(c.id).where(c.app_id == sa.bindparam("app"), c.active == 1)
    due = begun.where(c.expires_at < sa.bindparam("day"))
    with sqlite.write(ANA, ensure=True) as tx:
        said: list[str] = []
        tx.driver.set_trace_callback(said.append)
        assert tx.rows(due, app=tx.own, day=tx.today) == []
        tx.driver.set_trace_callback(None)
        plan = tx.driver.execute(f"EXPLAIN QUERY PLAN {said[0]}").fetchall()
    assert "ix_memories_expiring" in str(plan)


def test_rows_have_the_types_of_their_columns(sqlite: Database) -> None:
    statement = sa.select(schema.apps.c.created_at, schema.apps.c.name).order_by(schema.apps.c.id)
    with sqlite.write(ANA, ensure=True) as tx:
        (first, _), now = tx.rows(statement), tx.now
        assert (first.created_at, first.name) == (now, ANA.app)
