"""Files and folders become notes, and stay in step with what is on the disk."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memchat import InputError, MemChat, User
from memchat.providers.embedders import HashEmbedder
from memchat.types import Progress
from tests.support.store import Opener

OLD, NEW = datetime(2024, 3, 5, 9, 30, tzinfo=UTC), datetime(2024, 3, 6, 9, 30, tzinfo=UTC)


class CountingEmbedder(HashEmbedder):
    """Counts the texts that it embeds, and the calls."""

    embedded = 0
    calls = 0

    def embed_documents(self, texts):  # type: ignore[no-untyped-def]
        self.embedded += len(texts)
        self.calls += 1
        return super().embed_documents(texts)


@pytest.fixture
def ana(mc: MemChat) -> User:
    return mc.user("ana")


def written(path: Path, text: str | bytes, at: datetime = OLD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def test_a_file_becomes_a_note_with_its_title_its_date_and_its_path(
    ana: User, tmp_path: Path
) -> None:
    plan = written(tmp_path / "plan.md", "# Apollo\n\nThe budget is 5,000 euros.")
    memo = written(tmp_path / "call with John.txt", "He wants the invoice by Friday.")

    added = ana.notes.add_files([plan, memo])

    assert [(n.title, n.external_id, n.type, n.created_at) for n in added.added] == [
        ("Apollo", str(plan), "file", OLD),
        ("call with John", str(memo), "file", OLD),
    ]
    assert ana.notes.search("budget").hits[0].title == "Apollo"


def test_of_a_folder_all_files_are_read_but_hidden_ones_links_and_other_kinds(
    ana: User, tmp_path: Path
) -> None:
    outside = written(tmp_path / "outside.md", "A secret plan.")
    home = tmp_path / "notes"
    written(home / "a.md", "One.")
    written(home / "deep" / "down" / "b.txt", "Two.")
    written(home / ".hidden.md", "Three.")
    written(home / ".obsidian" / "c.md", "Four.")
    written(home / "~$letter.txt", "Five.")
    written(home / "photo.jpg", b"\xff\xd8\xff\0")
    (home / "link.md").symlink_to(outside)
    (home / "linked").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(home / "pipe.txt")

    added = ana.notes.add_files([home, home / "a.md"])

    assert [ana.notes.get(note.id).text for note in added.added] == ["One.", "Two."]
    assert [(one.path.name, one.reason) for one in added.failed] == [("pipe.txt", "it is no file")]


def test_a_file_that_did_not_change_is_not_read_again(open_store: Opener, tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    ana = open_store(embedder=embedder).user("ana")
    files = [written(tmp_path / f"{n}.txt", f"Memo number {n}.") for n in range(3)]
    assert len(ana.notes.add_files(files).added) == 3
    count = embedder.embedded

    again = ana.notes.add_files([tmp_path])
    os.utime(files[0], (NEW.timestamp(), NEW.timestamp()))
    touched = ana.notes.add_files([tmp_path])

    assert (again.added, again.unchanged) == (touched.added, touched.unchanged) == ((), 3)
    assert embedder.embedded == count
    assert ana.notes.list()[0].created_at == NEW


def test_a_file_that_changed_replaces_its_note(ana: User, tmp_path: Path) -> None:
    path = written(tmp_path / "plan.md", "# Draft\n\nWe meet in Lisbon.")
    (before,) = ana.notes.add_files([path]).added

    written(path, "# Final\n\nWe meet in Porto.", NEW)
    (after,) = ana.notes.add_files([path]).added

    assert (after.id, after.title, after.created_at) == (before.id, "Final", NEW)
    assert ana.notes.get(after.id) == replace(after, text="# Final\n\nWe meet in Porto.")
    assert not [hit for hit in ana.notes.search("Lisbon").hits if hit.confident]


def test_what_was_edited_here_stays_until_the_file_changes(ana: User, tmp_path: Path) -> None:
    plain = written(tmp_path / "plain.txt", "Call Jon.")
    dated = written(tmp_path / "dated.md", "---\ndate: 2020-01-02\n---\nCall Jon.")
    for note in ana.notes.add_files([plain, dated]).added:
        ana.notes.update(note.id, text="Call John.")

    kept = ana.notes.add_files([tmp_path])
    texts = [ana.notes.get(note.id).text for note in ana.notes.list()]
    later = datetime(2026, 6, 1, tzinfo=UTC)
    written(plain, "Call Joan.", later)
    written(dated, "---\ndate: 2020-01-02\n---\nCall Joan.", later)
    changed = ana.notes.add_files([tmp_path])

    assert (kept.unchanged, texts) == (2, ["Call John.", "Call John."])
    assert [ana.notes.get(note.id).text for note in changed.added] == ["Call Joan."] * 2


def test_one_bad_file_never_stops_the_rest_and_is_named_with_the_reason(
    ana: User, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = written(tmp_path / "good.txt", "Buy milk for Zoe.")
    bad = written(tmp_path / "bad.txt", b"\x00\x01\x02\x03" * 50)
    empty = written(tmp_path / "empty.md", " \n\n")
    gone = tmp_path / "gone.md"

    with caplog.at_level(logging.INFO, logger="memchat"):
        added = ana.notes.add_files([bad, gone, empty, good])

    assert [(one.path, one.reason) for one in added.failed] == [
        (bad, "it holds no text that can be read"),
        (gone, "it is not there"),
        (empty, "it holds no words"),
    ]
    (note,) = added.added
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert f"Indexed memo {note.id}: 17 characters" in said
    assert said.count("Failed to index memo") == 3
    assert not any(word in said for word in ("milk", "good", "bad.txt", "gone"))


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "~nobody-of-this-name/a.txt", "\udcff"])
def test_a_name_that_no_file_can_have_does_not_stop_the_rest(
    ana: User, tmp_path: Path, name: str
) -> None:
    good = written(tmp_path / "good.txt", "Buy milk for Zoe.")

    added = ana.notes.add_files([name, good])

    assert [note.title for note in added.added] == ["good"] and len(added.failed) == 1


def test_a_date_that_cannot_be_is_no_reason_to_refuse_a_file(ana: User, tmp_path: Path) -> None:
    no_date = written(tmp_path / "a.md", "---\ndate: 0001-01-01T00:00:00Z\n---\nBuy milk for Zoe.")
    far = written(tmp_path / "b.txt", "Buy bread for Ben.")
    with suppress(OSError):
        os.utime(far, (1e12, 1e12))
    if far.stat().st_mtime < 1e12:
        pytest.skip("this file system has no dates so late")

    added = ana.notes.add_files([no_date, far])

    assert [note.created_at.year for note in added.added] == [OLD.year, 8999]
    assert ana.notes.add_files([no_date, far]).failed == ()


def test_a_name_that_is_no_utf_8_is_one_note(ana: User, tmp_path: Path) -> None:
    written(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")), "Coffee.")

    (note,) = ana.notes.add_files([tmp_path]).added

    assert note.title == "caf\ufffd"
    assert ana.notes.add_files([tmp_path]).unchanged == 1


def test_progress_names_each_file_and_ends_whole(ana: User, tmp_path: Path) -> None:
    files = [written(tmp_path / name, "Some words.") for name in ("a.txt", "b.txt")]
    told: list[Progress] = []

    ana.notes.add_files(files, on_progress=told.append)

    assert [(one.done, one.total, one.name, one.unit) for one in told] == [
        (0, 2, "a.txt", "files"),
        (1, 2, "b.txt", "files"),
        (2, 2, "", "files"),
    ]


def test_an_upload_is_a_note_and_the_same_bytes_are_the_same_note(mc: MemChat) -> None:
    ana = mc.user("ana")
    first = ana.notes.add_upload("a/plan.md", b"# Apollo\n\nThe budget.")
    again = ana.notes.add_upload("copy.md", b"# Apollo\n\nThe budget.", title="Apollo, again")
    other = ana.notes.add_upload("plan.md", b"# Apollo\n\nAnother budget.")

    assert (first.type, first.title, first.created_at) == ("upload", "Apollo", mc.now)
    assert (again.id, again.title) == (first.id, "Apollo, again")
    assert other.id != first.id
    with pytest.raises(InputError, match="no text"):
        ana.notes.add_upload("scan.bin", bytes(100))


def test_an_upload_need_not_wait_for_its_vectors(ana: User) -> None:
    waiting = []
    for name, wait in (("plan.txt", False), ("memo.txt", True)):
        note = ana.notes.add_upload(name, f"The {name} budget.".encode(), wait=wait)
        assert ana.notes.get(note.id).text == f"The {name} budget."
        waiting.append(ana.notes.report().waiting)
    assert waiting == [1, 0]


def test_a_date_in_front_of_a_document_is_in_the_zone_of_the_person(
    ana: User, tmp_path: Path
) -> None:
    path = written(tmp_path / "a.md", '---\ntitle: "Day 1"\ndate: 2020-01-02\n---\n# One\n\nWords.')

    (note,) = ana.notes.add_files([path]).added

    assert (note.title, ana.notes.get(note.id).text) == ("Day 1", "# One\n\nWords.")
    assert note.created_at == datetime(2020, 1, 1, 23, 0, tzinfo=UTC)  # midnight in Berlin
    assert ana.notes.add_files([path]).unchanged == 1


def test_what_waits_is_indexed_once(open_store: Opener, tmp_path: Path) -> None:
    """T26: three wait, one holds no words, one is done."""
    embedder = CountingEmbedder()
    mc = open_store(embedder=embedder)
    ana = mc.user("ana")
    ana.notes.add_files([written(tmp_path / "done.txt", "Done before.")])
    before = embedder.embedded
    for words in ("One.", "Two.", "Three.", " "):
        ana.notes.add(words, wait=False)

    assert embedder.embedded == before
    mc.jobs.run()
    assert embedder.embedded == before + 3
    mc.jobs.run()
    assert embedder.embedded == before + 3
    assert ana.notes.search("three").hits


def test_files_are_embedded_together(open_store: Opener, tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    ana = open_store(embedder=embedder).user("ana")
    for number in range(5):
        written(tmp_path / f"{number}.txt", f"Memo number {number}.")

    ana.notes.add_files([tmp_path])

    assert (embedder.embedded, embedder.calls) == (5, 1)


def test_a_file_belongs_to_the_app_it_was_added_in(mc: MemChat, tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "The same words.")
    mc.user("ana", "work").notes.add_files([path])

    assert len(mc.user("ana", "home").notes.add_files([path]).added) == 1
    assert len(mc.user("ben", "work").notes.add_files([path]).added) == 1
