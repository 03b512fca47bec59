"""Which facts a reply repeats: those were used, whether or not search found them."""

from __future__ import annotations

from collections.abc import Iterable

from memchat.language import text
from memchat.memory.forgetting.redaction import spans_of
from memchat.types import Hit


def echoed(hits: Iterable[Hit], reply: str) -> set[int]:
    """The ids of facts whose whole value stands in a reply."""
    folded = text.fold(reply).text
    facts = [hit.memory for hit in hits if hit.memory is not None]
    near = [fact for fact in facts if text.normal_value(fact.value) in folded]
    return {fact.id for fact in near if spans_of({fact.value}, reply)}
