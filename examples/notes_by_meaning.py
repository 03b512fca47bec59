"""Documents that are indexed, searched by meaning and words, and marked as read.

It is the workflow of a search library: add texts under ids of your own, search them, read the best
passages, and see which texts are found but never used. It prints::

    2 documents, 2 chunks
    doc:1 Authentication guide: users log in with a password and a one-time code.
    doc:2 Authorization patterns: roles decide which pages users may open.
    read once: doc:1
    found and never read: doc:2
    replaced: doc:2 Authorization moved to the gateway.
    after deleting: 1 document
"""

from __future__ import annotations

import tempfile

from memchat import MemChat, NewNote

DOCUMENTS = [
    NewNote(
        "Authentication guide: users log in with a password and a one-time code.",
        type="doc",
        external_id=1,
        profile="document",
    ),
    NewNote(
        "Authorization patterns: roles decide which pages users may open.",
        type="doc",
        external_id=2,
        profile="document",
    ),
]


def main() -> None:
    """Add, search, read, report, replace and delete."""
    with tempfile.TemporaryDirectory() as folder, MemChat(folder) as mc:
        notes = mc.user("ana").notes
        added = notes.add_many(DOCUMENTS)
        counts = notes.report().types["doc"]
        print(f"{counts.notes} documents, {counts.chunks} chunks")
        hits = notes.search("how do users log in", limit=5, type="doc", include_text=True).hits
        for hit in hits:
            print(f"{hit.source_type}:{hit.source_id} {hit.text}")
        notes.mark_as_read([hits[0].chunk_id])
        print(f"read once: doc:{hits[0].source_id}")
        unread = [notes.get(use.note_id).external_id for use in notes.report().unread]
        print(f"found and never read: doc:{unread[0]}")
        notes.add("Authorization moved to the gateway.", type="doc", external_id=2)
        (found,) = notes.search("gateway", limit=1, include_text=True).hits
        print(f"replaced: doc:{found.source_id} {found.text}")
        notes.delete(added.ids[0])
        print(f"after deleting: {len(notes.list())} document")


if __name__ == "__main__":
    main()
