"""The contract of a store, third part: rows are put back as they were before a transaction."""

from __future__ import annotations

from memchat.db import apps
from memchat.db.database import Database
from memchat.facts import answers, changes, memories, proposals
from memchat.types import Proposal
from tests.support.rows import ANA, BY_HAND, keep
from tests.support.store import NOON


def test_rows_are_put_back_as_they_were(store: Database) -> None:
    with store.write() as tx:
        own, _ = apps.ensure(tx, ANA, NOON)
        kept = keep(tx, ANA, "Lisbon")
        proposals.add(tx, own, Proposal("unsure", key="city", value="Porto"), NOON)
        (item,) = proposals.listed(tx, own, "pending")
        lisbon = memories.by_ids(tx, [own], [kept])[kept]
    with store.write() as tx:
        since = changes.latest_event(tx, own)
        changes.deactivate(tx, lisbon, "ended", BY_HAND)
        added = keep(tx, ANA, "Porto")
        proposals.remove(tx, [item.id])
        with store.read() as before:
            images = answers.take(before, tx, [item.id], [own], since)
    assert images.added == [added] and [row["id"] for row in images.before["memories"]] == [kept]
    with store.write() as tx:
        assert not answers.changed_meanwhile(tx, images)
        changes.remove(tx, images.added)
        answers.put_back(tx, images, BY_HAND)
        assert answers.put_items_back(tx, images, {item.id}) == [item.id]
        assert proposals.listed(tx, own, "pending") == [item]
        assert memories.by_ids(tx, [own], [kept])[kept].active
        assert answers.changed_meanwhile(tx, images)
