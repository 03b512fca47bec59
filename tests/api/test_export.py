"""An export has everything of a person, in a file for programs or a page for people."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import zipfile
from collections import Counter
from datetime import timedelta

import pytest

from memchat.errors import InputError, NotFound, StoreError
from memchat.transfer.kinds import KINDS
from tests.support import private, transfer
from tests.support.store import NOON


@pytest.fixture
def ana(tmp_path, clock, request):
    transfer.place_filled(tmp_path / "store", clock)
    return request.getfixturevalue("mc").user("ana")


def test_the_file_says_first_what_it_is_and_last_that_it_is_whole(ana, clock, tmp_path) -> None:
    done = ana.export_file(tmp_path / "ana.jsonl")
    first, *records, last = map(json.loads, done.file.read_text(encoding="utf-8").splitlines())
    assert (first["format"], first["version"], first["user"]) == ("memchat export", 4, "ana")
    assert first["exported_at"] == clock().isoformat().replace("+00:00", "Z")
    counts = Counter(record["record"] for record in records)
    assert {kind: n for kind, n in first["contains"].items() if n} == counts == done.records
    assert last == {"record": "end", "records": len(records)}
    assert records == list(ana.export())


def test_every_kind_of_record_is_in_it_that_an_import_brings_back(ana) -> None:
    assert ana.usage() and ana.sessions.why().lines  # a backup has these
    ana.client("Desk", "trust").remember("fact", "lamp", "green")
    records = list(ana.export())
    kinds = Counter(record["record"] for record in records)
    assert kinds.keys() == set(KINDS) and kinds["app"] == 3 and kinds["inbox_item"] == 1
    memories = {one["value"]: one for one in records if one["record"] == "memory"}
    assert memories["Lisbon"]["inactive_reason"] == "superseded"
    assert memories["Lisbon"]["replaced_by"] == memories["Porto"]["id"]
    assert memories["black tea"]["app"] == "" and memories["black tea"]["pinned"]
    edits = [one["old"]["value"] for one in records if one.get("kind") == "edit"]
    assert edits == ["green tea"]
    (work,) = [one for one in records if one["record"] == "app" and one["name"] == "work"]
    assert work["memory"] is False


def test_only_questions_that_wait_for_the_person_are_in_it(ana, mc) -> None:
    (item,) = ana.inbox.list()
    ana.inbox.reject(item.id)
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql(
            "INSERT INTO proposals (app_id, status, reason, key, value)"
            " VALUES (1, 'unchecked', '', 'a', 'b')"
        )
    assert "inbox_item" not in {one["record"] for one in ana.export()}


def test_nothing_of_anybody_else_is_in_it(mc) -> None:
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    mc.user("bo").memories.add("profile", "city", "Oslo")
    text = json.dumps(list(mc.user("ana").export()))
    assert "Lisbon" in text and "Oslo" not in text


def test_the_messages_of_a_session_stand_behind_it(ana) -> None:
    open_session = None
    for record in ana.export():
        if record["record"] == "session":
            open_session = record["id"]
        elif record["record"] == "message":
            assert record["session_id"] == open_session


def test_an_export_is_of_one_moment(ana) -> None:
    before = list(ana.export())
    found = []
    for record in ana.export():
        if not found:
            ana.memories.clear()
            ana.sessions.delete(ana.sessions.list()[0].id)
        found.append(record)
    assert found == before


def test_what_is_deleted_is_not_in_it_even_before_its_purge(ana) -> None:
    (tea,) = [m.id for m in ana.memories.list() if m.value == "black tea"]
    ana.memories.delete(tea, hold=60)
    text = json.dumps(list(ana.export()))
    assert "black tea" not in text and "green tea" not in text


def test_one_app_alone_is_what_is_kept_there(ana, mc) -> None:
    work = list(mc.user("ana", app="work").export(all_apps=False))
    assert {one.get("app", one.get("name")) for one in work} == {"work"}
    assert [one["value"] for one in work if one["record"] == "memory"] == ["by the window"]


def test_only_this_account_may_read_the_file(ana, tmp_path) -> None:
    file = ana.export_file(tmp_path / "ana.jsonl").file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["ana.jsonl"]


def test_a_file_that_is_there_is_not_replaced(ana, tmp_path) -> None:
    file = tmp_path / "mine"
    file.write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        ana.export_file(file)
    assert file.read_text() == "mine"


def test_a_folder_that_is_not_there_and_an_unknown_person_are_named(ana, mc, tmp_path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        ana.export_file(tmp_path / "nowhere" / "ana.jsonl")
    with pytest.raises(NotFound, match="nothing is kept of 'anna'"):
        mc.user("anna").export_file(tmp_path / "anna.jsonl")
    with pytest.raises(InputError, match="jsonl or markdown"):
        ana.export_file(tmp_path / "ana.csv", format="csv")


def test_the_page_for_people_has_facts_by_type_and_conversations_by_date(ana, tmp_path) -> None:
    page = ana.export_file(tmp_path / "ana.md", format="markdown").file.read_text(encoding="utf-8")
    assert "#### Profile\n\n- **city**: Porto (said on 1 May 2026)" in page
    assert "#### No longer in force\n\n- **city**: Lisbon (said on 1 May 2026, superseded)" in page
    assert "### App: every app\n\n#### Preferences\n\n- **tea**: black tea" in page
    assert "### 1 May 2026, 14:00 – Lisbon" in page and "> I live in Lisbon" in page
    assert "## Waiting for your decision" in page and "asthma" in page


def test_words_are_shown_as_they_are_on_the_page(mc, tmp_path) -> None:
    ana = mc.user("ana")
    ana.memories.add("fact", "note", "<b>*loud*</b> # [x](y)")
    page = ana.export_file(tmp_path / "ana.md", format="markdown").file.read_text(encoding="utf-8")
    assert r"\<b\>\*loud\*\</b\> \# \[x\](y)" in page


def test_a_zip_has_the_records_and_the_files_that_notes_were_read_from(ana, tmp_path) -> None:
    there = tmp_path / "papers"
    there.mkdir()
    kept, gone, changed, dated = (there / f"{n}.md" for n in ("kept", "gone", "changed", "dated"))
    for file in (kept, gone, changed, dated):
        file.write_text(f"# {file.stem}\n\nBees swarm in May.", encoding="utf-8")
    assert len(ana.notes.add_files([there]).added) == 4
    gone.unlink()
    changed.write_text("Another secret.", encoding="utf-8")
    os.utime(dated, (1, 1))  # touched, and says the same
    done = ana.export_file(tmp_path / "ana.zip", format="zip")
    assert stat.S_IMODE(done.file.stat().st_mode) == 0o600 and done.records["file"] == 2
    with zipfile.ZipFile(done.file) as packed:
        names = {re.sub(r"/\d+-", "/", name): name for name in packed.namelist()}
        assert names.keys() == {"memchat.jsonl", "files/kept.md", "files/dated.md"}
        assert packed.read(names["files/kept.md"]) == kept.read_bytes()
        plain = ana.export_file(tmp_path / "ana.jsonl").file.read_bytes()
        assert packed.read("memchat.jsonl") == plain
    stream = io.BytesIO()
    assert ana.export_file(stream, format="zip").records == done.records
    assert zipfile.is_zipfile(stream)
    for to, form in ((io.StringIO(), "zip"), (io.BytesIO(), "jsonl")):
        with pytest.raises(InputError, match="stream of bytes"):
            ana.export_file(to, format=form)


def test_a_zip_takes_no_file_that_a_note_only_names(ana, tmp_path) -> None:
    private = tmp_path / "id_rsa"
    private.write_text("-----BEGIN KEY-----")
    ana.notes.add("Bees", type="file", external_id=str(private))
    ana.notes.add("Bees", type="file", external_id="/dev/zero")
    ana.notes.add("Bees", type="file", external_id="a\0b")
    with zipfile.ZipFile(ana.export_file(tmp_path / "ana.zip", format="zip").file) as packed:
        assert packed.namelist() == ["memchat.jsonl"]


def test_the_text_for_another_assistant_has_what_holds_now_and_neither_secrets_nor_more(
    mc, clock, tmp_path
) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Porto")
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("preference", "tea", "green\ntea")
    ana.memories.add("fact", "visit", "Ghent", expires_at=clock().date() + timedelta(days=3))
    ana.memories.add("fact", "visit_to", "Bruges", expires_at=clock().date() + timedelta(days=1))
    ana.memories.add("fact", "job", "nurse", starts_at=clock().date() + timedelta(days=9))
    ana.memories.add("fact", "motto", "x" * 280)
    secret = ana.memories.add("fact", "wifi_password", "hunter2-Zebra!9", keep_secret=True)
    ill = ana.memories.add("fact", "health_condition", "asthma")
    ana.memories.update(ill.id, sensitive=True)
    ana.memories.update(secret.id, sensitive=False)
    clock.advance(days=2)
    to = io.StringIO()
    done = ana.export_file(to, format="prompt")
    day, until = NOON.date(), NOON.date() + timedelta(days=3)
    assert to.getvalue().split("\n\n") == [
        "Please remember this about me. “You” in these lines is me; each has the day I said it.",
        "## Preferences",
        f"- [{day}] Tea: green tea",
        "## Profile",
        f"- [{day}] You live in Lisbon.",
        "## Facts",
        f"- [{day}] Visit: Ghent (until {until})\n- [{day}] {'x' * 280}",
        "",
    ]
    assert done.records == {"memory": 4}
    (tmp_path / "pasted.txt").write_text(to.getvalue(), encoding="utf-8")
    other = mc.user("bo")
    found = other.import_history(tmp_path / "pasted.txt")
    assert (found.saved, found.added) == (4, {"inbox_item": 4})
    told = {item.value: item.reason for item in other.inbox.list()}
    assert told["You live in Lisbon."].endswith(f"saved {day}")
    assert told.keys() > {"Tea: green tea", f"Visit: Ghent (until {until})", "x" * 280}


def test_the_progress_counts_records(mc, tmp_path) -> None:
    ana, told = mc.user("ana"), []
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql(
            "INSERT INTO apps (id, user, name) VALUES (1, 'ana', 'default')"
        )
        tx.connection.exec_driver_sql(
            "INSERT INTO clients (app_id, name, mode) WITH RECURSIVE n(i) AS"
            " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT 1, i, 'ask' FROM n"
        )
    ana.export_file(tmp_path / "ana.jsonl", progress=told.append)
    assert [(one.done, one.total, one.unit) for one in told] == [
        (500, 1001, "records"),
        (1000, 1001, "records"),
    ]
