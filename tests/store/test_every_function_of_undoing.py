"""The contract of a store, third part: rows are put back as they were before a transaction."""

from __future__ import annotations

from memchat.store import apps, events, inbox, memories, memory_changes, row_images
from memchat.store.database import Database
from memchat.store.inbox import NewInboxItem
from tests.support.rows import ANA, BY_HAND, keep
from tests.support.store import NOON


def test_rows_are_put_back_as_they_were(store: Database) -> None:
    with store.write() as tx:
        own, _ = apps.ensure(tx, ANA, NOON)
        kept = keep(tx, ANA, "Lisbon")
        inbox.add(tx, own, NewInboxItem("unsure", key="city", value="Porto"), NOON)
        (item,) = inbox.listed(tx, own, "pending")
        lisbon = memories.by_ids(tx, [own], [kept])[kept]
    with store.write() as tx:
        since = events.latest(tx, own)
        memory_changes.deactivate(tx, lisbon, "ended", BY_HAND)
        added = keep(tx, ANA, "Porto")
        inbox.decide(tx, item.id, "accepted")
        with store.read() as before:
            images = row_images.take(before, tx, [item.id], [own], since)
    assert images.added == (added,) and [row["id"] for row in images.memories] == [kept]
    with store.write() as tx:
        assert not row_images.changed_meanwhile(tx, images)
        memory_changes.remove(tx, images.added)
        row_images.put_back(tx, images, BY_HAND)
        assert row_images.put_items_back(tx, images, {item.id}) == [item.id]
        assert inbox.listed(tx, own, "pending") == [item]
        assert memories.by_ids(tx, [own], [kept])[kept].active
        assert row_images.changed_meanwhile(tx, images)
