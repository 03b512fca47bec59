"""The metadata of the tables, and the kinds of columns that they share."""

from __future__ import annotations

import functools
from datetime import UTC, datetime

from sqlalchemy import Column, ForeignKey, Integer, MetaData, String, TypeDecorator, text
from sqlalchemy.engine import Dialect

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC datetime, stored as ``2026-11-21T09:30:00.000000Z``."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        return None if value is None else utc_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


@functools.lru_cache(maxsize=16)
def utc_text(value: datetime) -> str:
    """The stored form of an aware datetime."""
    # No strftime: on Linux it writes the years before 1000 without their zeros.
    return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def id_column() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def foreign_key(target: str, *, nullable: bool = False, ondelete: str = "CASCADE") -> Column[int]:
    name = target.partition(".")[0].removesuffix("s") + "_id"
    return Column(name, Integer, ForeignKey(target, ondelete=ondelete), nullable=nullable)


def time_column(name: str, *, nullable: bool = False) -> Column[datetime]:
    default = None if nullable else text("(strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))")
    return Column(name, UtcTime, nullable=nullable, server_default=default)


def count_column(name: str, start: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(str(start)))
