"""Putting the proposals of a reading that wait for the user into the inbox."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from memchat.memory.context import Context
from memchat.memory.extraction.second_look_verdicts import NOT_LOOKED_AT
from memchat.memory.extraction.session_reading import SessionReading
from memchat.memory.extraction.verdict_outcomes import inbox_entry, needing_review, refusal_entry
from memchat.memory.facts.fact import BLANKED, REJECTED
from memchat.store import inbox
from memchat.store.refusals import NewRefusal


def hold_for_review(
    ctx: Context, reading: SessionReading, altered: Collection[int]
) -> list[NewRefusal]:
    """Put what waits for the user into the inbox. Gives what must not wait: what was forgotten, was
    quoted from a message of ``altered``, or got a no before."""
    refused, turns = [], {turn.id: turn for turn in reading.turns}
    own = ctx.scope.own
    assert own is not None
    for verdict in needing_review(reading.verdicts):
        # It may have been forgotten since the model was asked.
        still = reading.refuse_if_forgotten(ctx.tx, ctx.scope.ids, verdict)
        if any(proof.message_id in altered for proof in verdict.spans):
            still = replace(still, outcome="refuse", reasons=(BLANKED,))
        if still.outcome == "review":
            entry = inbox_entry(verdict, reading.known, turns)
            # No model can be asked about words in which a secret was masked.
            unchecked = NOT_LOOKED_AT in verdict.reasons and not entry.masked
            entry = replace(entry, unchecked=unchecked)
            if inbox.add(ctx.tx, own, entry, ctx.now) == "rejected":
                still = replace(still, outcome="refuse", reasons=(REJECTED,))
        if still.outcome != "review":
            refused.append(refusal_entry(still, reading.known))
    return refused
