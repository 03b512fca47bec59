"""Notes leave with an export and come back, but for those that were deleted since."""

from __future__ import annotations

import json

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.errors import InputError
from memchat.testing import HashEmbedder, ScriptedModel
from memchat.transfer import import_file
from tests.support import leftovers, private, transfer
from tests.support.transfer import MEMO

LONG = " ".join(f"On day {n} John called about the rent of flat {n}." for n in range(150))


def with_notes(person, clock):
    person.notes.add(MEMO, title="Budget", external_id=7, pair_id=5, parent_id=-6)
    person.notes.add(LONG, type="file", external_id="a/rent.md", profile="document")
    clock.advance(seconds=60)
    return person


@pytest.fixture
def ana(mc, clock):
    return with_notes(mc.user("ana"), clock)


@pytest.fixture
def file(ana, tmp_path):
    return ana.export_file(tmp_path / "ana.jsonl").file


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Such a file for tests that need nothing of the store it is from."""
    folder = tmp_path_factory.mktemp("exported")
    with transfer.store(folder) as (mc, clock, _):
        return with_notes(mc.user("ana"), clock).export_file(folder / "ana.jsonl").file.read_bytes()


@pytest.fixture
def elsewhere(exported, tmp_path):
    """A copy of that file."""
    file = tmp_path / "ana.jsonl"
    file.write_bytes(exported)
    return file


def note_of(person, external_id):
    (found,) = [n for n in person.notes.list() if n.external_id == external_id]
    return person.notes.get(found.id)


def test_a_note_is_whole_in_an_export_without_its_chunks(ana) -> None:
    hit = ana.notes.search("marketing budget").hits[0]
    ana.notes.mark_as_read([hit.chunk_id])
    (record, _) = [one for one in ana.export() if one["record"] == "note"]
    ids = {name: record[name] for name in ("external_id", "pair_id", "parent_id")}
    assert ids == {"external_id": 7, "pair_id": 5, "parent_id": -6}
    assert (record["content"], record["title"], record["missing"]) == (MEMO, "Budget", False)
    assert record["counts"] == {hit.hash: [1, 1]}
    assert not {"chunks", "hash"} & record.keys()


def test_a_note_that_comes_back_is_found_with_its_ids_and_counts(ana, file, mc) -> None:
    bo = mc.user("bo")
    done = bo.import_file(file)
    assert done.added["note"] == 2 and not done.refused
    hit = bo.notes.search("John and the marketing budget", include_text=True).hits[0]
    assert (hit.text, hit.pair_id, hit.parent_id, hit.source_id) == (MEMO, 5, -6, 7)
    assert note_of(bo, "a/rent.md").chunks == note_of(ana, "a/rent.md").chunks > 1
    assert done.unembedded == 2
    mc.jobs.run(kinds=["note"])
    assert mc.repair() == []


def test_any_text_comes_back_as_it_was_with_the_same_chunks(mc, tmp_path) -> None:
    texts = [
        "A line\u2028and\x85another\x1cone\r\nand a last one.",
        "\ufeffA mark at the beginning, and \u202eone that turns the line around.",
        "👩‍👩‍👧 e\u0301 é 𝒳 ｆｕｌｌ " * 100,
        "天気がいい。" * 300,
        'Quotes " and \\ and {"record": "end"}',
        "The door code is 4711, and the password of the wifi is hunter2-Xk9!",
    ]
    ana, bo = mc.user("ana"), mc.user("bo")
    for number, text in enumerate(texts):
        ana.notes.add(text, external_id=number, wait=False)
    file = ana.export_file(tmp_path / "ana.jsonl").file
    assert bo.import_file(file).added["note"] == len(texts)
    assert [note_of(bo, n).text for n in range(len(texts))] == texts
    columns = 's.external_id, c."offset", c.size, c.hash, c.tokens, c.position, c.masked'
    with private.database(mc).read() as tx:
        made = [
            tx.connection.exec_driver_sql(
                f"SELECT {columns} FROM chunks c JOIN sources s ON s.id = c.source_id"
                " JOIN apps a ON a.id = s.app_id WHERE a.user = ? ORDER BY c.id",
                (user,),
            ).all()
            for user in ("ana", "bo")
        ]
    assert made[0] == made[1]
    assert made[1][-1].masked is not None  # no provider is sent a secret, here either


def test_notes_come_in_while_the_embedding_model_cannot_be_used(elsewhere, tmp_path) -> None:
    settings = Settings(home=tmp_path / "other", embed_model="nobody/knows-this")
    with MemChat(settings=settings, chat_model=ScriptedModel()) as other:
        assert other.user("ana").import_file(elsewhere).added["note"] == 2
        assert [n.chunks > 0 for n in other.user("ana").notes.list()] == [True, True]
    with MemChat(settings=settings, chat_model=ScriptedModel(), embedder=HashEmbedder()) as again:
        again.jobs.run(kinds=["note"])
        assert again.repair() == []
        assert again.user("ana").notes.search("marketing budget").hits[0].source_id == 7
        with private.database(again).read() as tx:
            lacking = tx.connection.exec_driver_sql(
                "SELECT count(*) FROM chunks c LEFT JOIN embeddings e ON e.hash = c.hash"
                " WHERE e.hash IS NULL"
            ).scalar_one()
    assert lacking == 0


def test_importing_notes_twice_makes_no_second_ones(ana, file) -> None:
    before = list(ana.export())
    done = ana.import_file(file)
    assert (done.known["note"], done.added.get("note"), done.changed_notes) == (2, None, 0)
    assert list(ana.export()) == before


def test_a_deleted_note_stays_away_until_it_is_added_again(ana, file) -> None:
    ana.notes.delete(note_of(ana, 7).id)
    for _ in range(2):
        assert ana.import_file(file).deleted_notes == 1
        assert [n.external_id for n in ana.notes.list()] == ["a/rent.md"]
    added = ana.notes.add("Another budget.", external_id=7)
    assert ana.import_file(file).deleted_notes == 0
    assert ana.notes.get(added.id).text == "Another budget."


def test_the_deletion_of_a_text_id_is_not_that_of_the_same_number(ana, file) -> None:
    ana.notes.add("Something else.", external_id="7")
    ana.notes.delete(note_of(ana, "7").id)
    assert ana.import_file(file).deleted_notes == 0


def test_of_two_versions_of_a_note_the_one_that_was_changed_last_stays(
    ana, file, mc, clock, tmp_path
) -> None:
    bo = mc.user("bo")
    bo.import_file(file)
    clock.advance(seconds=60)
    changed = bo.notes.update(note_of(bo, 7).id, text="The budget is fifty now.", title="Money")
    newer = bo.export_file(tmp_path / "newer.jsonl").file
    done = ana.import_file(newer)
    assert (done.changed_notes, done.known["note"]) == (1, 1)
    here = note_of(ana, 7)
    assert (here.text, here.title, here.updated_at) == (
        changed.text,
        changed.title,
        changed.updated_at,
    )
    assert ana.notes.search("fifty").hits[0].pair_id == 5
    assert leftovers.rows_with(mc, "thousand") == leftovers.files_with(mc, "thousand") == []
    assert ana.import_file(newer).changed_notes == 0
    assert ana.import_file(file).changed_notes == 0  # older than what is here
    assert note_of(ana, 7).text == changed.text


def test_a_note_that_was_changed_elsewhere_after_its_deletion_here_comes_back(
    ana, file, mc, clock, tmp_path
) -> None:
    bo = mc.user("bo")
    bo.import_file(file)
    ana.notes.delete(note_of(ana, 7).id)
    clock.advance(seconds=60)
    bo.notes.update(note_of(bo, 7).id, text="The budget is fifty now.")
    done = ana.import_file(bo.export_file(tmp_path / "newer.jsonl").file)
    assert (done.added["note"], done.deleted_notes) == (1, 0)
    assert note_of(ana, 7).text == "The budget is fifty now."


def test_a_trial_of_an_import_keeps_no_note_and_says_the_same(elsewhere, mc) -> None:
    bo = mc.user("bo")
    trial = bo.import_file(elsewhere, dry_run=True)
    assert trial.added["note"] == 2 and bo.notes.list() == []
    assert bo.import_file(elsewhere).added == trial.added


def test_a_file_of_before_there_were_notes_is_still_imported(ana, file, mc) -> None:
    ana.memories.add("profile", "city", "Lisbon")
    path = ana.export_file(file.with_name("both.jsonl")).file

    def as_before(record):
        if record["record"] == "header":
            kinds = {k: n for k, n in record["contains"].items() if k != "note"}
            return record | {"version": 1, "contains": kinds}
        return None if record["record"] == "note" else record

    done = mc.user("bo").import_file(transfer.changed(path, as_before))
    assert (done.added["memory"], done.added.get("note"), done.refused) == (1, None, ())


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("content", " \n ", "its content has no words"),
        ("content", 7, "its content is not a text"),
        ("title", "x" * 201, "the title is 201 characters long"),
        ("type", "", "the type is empty"),
        ("external_id", None, "it has no external_id"),
        ("external_id", True, "its external_id is neither a text nor a whole number"),
        ("external_id", [1], "its external_id is neither a text nor a whole number"),
        ("external_id", "\ud83d", "half a character"),
        ("profile", "poem", "its profile must be one of memo, document"),
        ("external_id", "", "its external_id does not have 1 to 4096 characters"),
        ("pair_id", 2**63, "its pair_id is not between"),
        ("created_at", "2026-05-01T12:00:00", "its created_at is not of the form"),
        ("missing", 0, "its missing is not true or false"),
        ("counts", {"a": [1]}, "its counts are not pairs of numbers"),
        ("counts", {"a": [1, -1]}, "its counts are not pairs of numbers"),
        ("app", "", "belongs to one app"),
    ],
)
def test_a_note_that_could_not_be_entered_is_refused_by_itself(
    elsewhere, mc, field, value, why
) -> None:
    def change(record):
        mine = record["record"] == "note" and record["external_id"] == 7
        return record | {field: value} if mine else record

    bo = mc.user("bo")
    done = bo.import_file(transfer.changed(elsewhere, change))
    (refused,) = done.refused
    assert why in refused.reason and "budget" not in refused.reason
    assert [n.external_id for n in bo.notes.list()] == ["a/rent.md"]


def test_a_file_that_was_cut_off_brings_no_note(elsewhere, mc) -> None:
    lines = elsewhere.read_bytes().splitlines(keepends=True)
    elsewhere.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(InputError, match="was cut off after line"):
        mc.user("bo").import_file(elsewhere)
    assert mc.user("bo").notes.list() == []


def test_the_progress_counts_records(mc, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(import_file, "_EVERY", 10)
    ana, told = mc.user("ana"), []
    for n in range(10):
        ana.notes.add(f"Memo {n}", wait=False)
    file = ana.export_file(tmp_path / "ana.jsonl").file
    mc.user("bo").import_file(file, progress=told.append)
    assert [(one.done, one.unit) for one in told] == [(10, "records")]


def test_a_note_is_on_the_page_for_people_with_title_date_and_text(ana, tmp_path) -> None:
    page = ana.export_file(tmp_path / "ana.md", format="markdown").file.read_text(encoding="utf-8")
    assert "## Notes\n\n### 1 May 2026, 14:00 – Budget\n\nApp: default; memo\n\n> The mark" in page


def test_the_file_has_notes_of_this_person_and_app_alone(ana, mc) -> None:
    mc.user("bo").notes.add("A word of bo.")
    mc.user("ana", app="work").notes.add("A word of work.")
    text = json.dumps(list(ana.export()))
    assert "word of work" in text and "word of bo" not in text
    assert "word of work" not in json.dumps(list(ana.export(all_apps=False)))
