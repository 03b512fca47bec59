"""A fact as a program over MCP gives it, checked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime

from memchat.errors import InputError
from memchat.memory.context import Context
from memchat.memory.facts import cues
from memchat.memory.facts.fact import Fact, search_text
from memchat.memory.facts.manual import checked_fact, checked_tags, is_secret
from memchat.memory.gate import keys
from memchat.memory.gate.checks.instructions import reads_as_instruction


def checked_fact_of_client(
    ctx: Context,
    memory_type: str,
    key: str,
    value: str,
    expires_at: date | None,
    starts_at: date | None,
    tags: Iterable[str],
) -> Fact:
    """The fact that a program gave. Raises InputError for what cannot be kept, SecretError for a
    secret."""
    kind, name, words = checked_fact(memory_type, key, value)
    is_secret(name, words, False)
    _check_days(ctx.today, expires_at, starts_at)
    given = cues.of_key(name)
    return Fact(
        memory_type=kind,
        key=name,
        value=words,
        said_at=ctx.now,
        search_text=search_text(name, words, ctx.now, ctx.zone, cues=given),
        created_by="mcp",
        many=keys.cardinality(name) != "one",
        expires_at=expires_at,
        starts_at=starts_at,
        cues=given,
        tags=checked_tags(tags),
    )


def is_order(fact: Fact) -> bool:
    """Whether a fact, or its tags, read as an instruction."""
    said = "\n".join(tag.replace("-", " ") for tag in fact.tags)
    return any(map(reads_as_instruction, (fact.value, fact.key, said)))


def _check_days(today: date, expires_at: date | None, starts_at: date | None) -> None:
    if any(isinstance(day, datetime) for day in (expires_at, starts_at)):
        raise InputError("a day is a date without a time")
    if expires_at is not None and expires_at < today:
        over = expires_at.isoformat()
        raise InputError(f"{over} is over; give today, {today.isoformat()}, or a later day")
