"""What the store knows of notes that are files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path, PurePath

from memchat import MemChat
from memchat.db import apps
from memchat.notes import rows
from tests.support.private import database
from tests.support.store import NOON


def test_the_notes_below_a_folder_are_found_by_their_paths(mc: MemChat) -> None:
    ana = mc.user("ana")
    for path in ("/home/ana/n/a.md", "/home/ana/n/ö/b.md", "/home/ana/notes.md", "/home/ana/n2/c"):
        ana.notes.add("Words.", type="file", external_id=path)
    ana.notes.add("Words.", external_id="/home/ana/n/memo")
    ana.notes.add("Words.", type="file", external_id=7)

    with database(mc).read() as tx:
        own = apps.find(tx, ana.scope).own
        assert own is not None
        found = rows.paths_below(tx, own, PurePath("/home/ana/n"))

    assert set(found) == {"/home/ana/n/a.md", "/home/ana/n/ö/b.md"}
    assert ana.notes.get(found["/home/ana/n/a.md"]).external_id == "/home/ana/n/a.md"


def test_the_date_of_a_note_follows_its_file(mc: MemChat, tmp_path: Path) -> None:
    note = mc.user("ana").notes.add("Words.", created_at=NOON)
    assert note is not None
    later = datetime(2026, 6, 1, 8, 30, 0, 123456, tzinfo=UTC)

    with database(mc).write() as tx:
        rows.change(tx, [note.id], created_at=later)

    assert mc.user("ana").notes.get(note.id).created_at == later


def test_a_note_can_be_that_of_another_path(mc: MemChat) -> None:
    ana = mc.user("ana")
    note = ana.notes.add("Words.", type="file", external_id="/a.md")
    assert note is not None

    with database(mc).write() as tx:
        rows.change(tx, [note.id], external_id=json.dumps("/ö.md"))

    assert ana.notes.get(note.id).external_id == "/ö.md"
