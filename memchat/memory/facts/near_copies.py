"""Which near copies of a fact are the same fact."""

from __future__ import annotations

from memchat.memory.facts.fact import Fact
from memchat.memory.gate.value_comparison import are_equivalent
from memchat.types import Memory


def may_merge(old: Memory, new: Fact) -> bool:
    """Whether two near facts may be merged without asking: same type, key and days, and values of
    equal meaning."""
    return (
        old.memory_type == new.memory_type
        and old.key == new.key
        and old.expires_at == new.expires_at
        and old.starts_at == new.starts_at
        and are_equivalent(old.value, new.value)
    )
