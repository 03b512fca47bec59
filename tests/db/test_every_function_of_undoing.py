"""The contract of a store, third part: rows are put back as they were before a transaction."""

from __future__ import annotations

import pytest

from memchat.db import apps
from memchat.db.database import Database
from memchat.errors import InputError
from memchat.facts import changes, manual, memories, proposals
from memchat.types import Proposal
from tests.support.rows import ANA, BY_HAND, keep


def test_rows_are_put_back_as_they_were(store: Database) -> None:
    with store.write() as tx:
        own = apps.ensure(tx, ANA).own
        kept = keep(tx, ANA, "Lisbon")
        proposals.add(tx, own, Proposal("unsure", key="city", value="Porto"))
        (item,) = proposals.listed(tx, own, "pending")
        lisbon = memories.by_ids(tx, [own], [kept])[kept]
    with store.write() as tx:
        since = changes.latest_event(tx)
        changes.deactivate(tx, lisbon, "ended", BY_HAND)
        added = keep(tx, ANA, "Porto")
        proposals.remove(tx, [item.id])
        with store.read() as before:
            images = manual.images_of(before, tx, [item.id], since)
    assert images.added == [added] and [row["id"] for row in images.before["memories"]] == [kept]
    with store.write() as tx:
        tx = apps.find(tx, ANA)
        assert manual.take_back(tx, [item], images, tx.now) == [item]
        assert proposals.listed(tx, own, "pending") == [item]
        assert memories.by_ids(tx, [own], [kept, added]).keys() == {kept}
        assert memories.by_ids(tx, [own], [kept])[kept].active
        with pytest.raises(InputError, match="changed or forgotten since"):
            manual.take_back(tx, [item], images, tx.now)
