"""One's own export comes back as it was, but for what was forgotten since."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memchat.errors import InputError
from tests.support import private, transfer
from tests.support.answers import answer, fact


@pytest.fixture
def ana(mc, clock, extract_model):
    return transfer.fill(mc, clock, extract_model)


@pytest.fixture
def file(ana, tmp_path):
    return ana.export_file(tmp_path / "ana.jsonl").file


@pytest.fixture
def other(open_store, tmp_path):
    """Another, empty store."""
    return open_store(home=tmp_path / "other")


def test_a_new_store_gives_the_same_export_byte_for_byte(file, other, tmp_path) -> None:
    bo = other.user("ana")
    done = bo.import_file(file)
    again = bo.export_file(tmp_path / "again.jsonl").file
    assert again.read_bytes() == file.read_bytes()
    assert not done.refused and not done.known and done.added["memory"] == 4


def test_everything_comes_back_after_it_was_deleted(ana, file) -> None:
    before = list(ana.export())
    ana.delete_all()
    assert list(ana.export()) == []
    ana.import_file(file)
    after = list(ana.export())
    assert transfer.renumbered(after) == transfer.renumbered(before)
    ids = {one["id"] for one in before if one["record"] == "memory"}
    assert ids.isdisjoint(one["id"] for one in after if one["record"] == "memory")


def test_importing_again_changes_nothing(ana, file, other) -> None:
    for person in (ana, other.user("ana")):
        person.import_file(file)
        before = list(person.export())
        done = person.import_file(file)
        assert not done.added and not done.refused and list(person.export()) == before


def test_what_is_imported_is_found_and_proved(file, other) -> None:
    ana = other.user("ana")
    done = ana.import_file(file)
    assert "Porto" in ana.search("Where do I live?").hits[0].text
    (city,) = [m for m in ana.memories.list() if m.key == "city"]
    assert [proof.quote for proof in ana.memories.evidence(city.id)] == ["I live in Porto"]
    assert done.unembedded and done.unread == 1
    other.jobs.backfill()
    states = ana.memories.embedding_states([city.id])
    assert [state.status for state in states] == ["completed"]
    assert other.repair() == []


def test_a_conversation_that_was_not_read_is_read_after_the_import(
    file, other, extract_model
) -> None:
    extract_model.replies.append(answer(fact("I have not been read yet", "note", "been read")))
    ana = other.user("ana")
    ana.import_file(file)
    other.jobs.run(user="ana")
    assert {session.status for session in ana.sessions.list()} == {"extracted"}


def test_a_trial_stores_nothing_and_says_the_same(file, other) -> None:
    ana = other.user("ana")
    trial = ana.import_file(file, dry_run=True)
    assert trial.dry_run and list(ana.export()) == []
    done = ana.import_file(file)
    assert trial.added == done.added and not done.dry_run


def test_what_was_forgotten_stays_forgotten_also_in_conversations_that_come_back(
    ana, file
) -> None:
    (porto,) = [m for m in ana.memories.list() if m.value == "Porto"]
    ana.memories.delete(porto.id)
    for session in ana.sessions.list():
        ana.sessions.delete(session.id)
    done = ana.import_file(file)
    assert done.forgotten == 1 and done.added["session"] == 5
    assert "Porto" not in json.dumps(list(ana.export()))
    assert "Lisbon" in json.dumps(list(ana.export()))
    before = list(ana.export())
    assert ana.import_file(file).forgotten == 1 and list(ana.export()) == before


def test_what_waits_for_its_purge_stays_deleted(ana, file) -> None:
    (tea,) = [m for m in ana.memories.list() if m.key == "tea"]
    ana.memories.delete(tea.id, hold=60)
    assert ana.import_file(file).forgotten == 1
    assert "tea" not in {m.key for m in ana.memories.list()}


def test_an_edited_memory_is_not_doubled_by_its_former_wording(ana, file) -> None:
    (desk,) = [m for m in ana.memories.list() if m.key == "tea"]
    ana.memories.update(desk.id, value="peppermint")
    ana.import_file(file)
    assert [m.value for m in ana.memories.list() if m.key == "tea"] == ["peppermint"]


def test_an_answered_question_is_not_asked_again(ana, file) -> None:
    (item,) = ana.inbox.list()
    ana.inbox.accept(item.id)
    assert ana.import_file(file).known["inbox_item"] == 1
    assert ana.inbox.list() == []


def test_of_a_key_that_holds_one_value_the_one_said_last_holds(file, other, clock) -> None:
    ana = other.user("ana")
    clock.advance(seconds=60)
    ana.memories.add("profile", "city", "Oslo")
    ana.import_file(file)
    assert [m.value for m in ana.memories.list() if m.key == "city"] == ["Oslo"]
    assert {m.value for m in ana.memories.list(status="all") if m.key == "city"} == {
        "Lisbon",
        "Porto",
        "Oslo",
    }


def test_all_of_it_belongs_to_the_person_who_imports(file, other) -> None:
    other.user("ana").memories.add("fact", "boat", "my own")
    bo = other.user("bo")
    forged = transfer.changed(file, lambda record: record | {"user": "ana", "app_id": 1})
    assert not bo.import_file(forged).refused
    assert transfer.values(other.user("ana")) == {("default", "boat", "my own")}
    assert ("default", "city", "Porto") in transfer.values(bo)


def test_switches_of_apps_that_are_here_stay_as_they_are(ana, mc, file) -> None:
    mc.user("ana", app="work").set_memory(True)
    ana.import_file(file)
    assert mc.user("ana", app="work").memory_switch().on


# --- files that are not as they were written


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no export of memchat"),
        ("# A page\n", "is no export of memchat"),
        ('{"record": "app"}\n', "is no export of memchat"),
        ('{"record":"header","format":"memchat export","version":2}\n', "upgrade memchat"),
        ('{"record":"header","format":"memchat export","version":"1"}\n', "is no export"),
        ("[" * 100_000, "is no export of memchat"),
    ],
)
def test_a_file_that_is_no_export_is_refused(other, tmp_path, content, message) -> None:
    file = tmp_path / "file"
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        other.user("ana").import_file(file)


def test_a_missing_file_and_a_folder_are_refused(other, tmp_path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            other.user("ana").import_file(path)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "it is not JSON"),
        (b"[]", "it is no JSON object"),
        (b'{"record": "prophecy"}', "it is no record that memchat knows"),
        (b'{"record": ["app"]}', "it is no record that memchat knows"),
        (b'{"record": "\xff"}', "it is not UTF-8 text"),
    ],
)
def test_a_broken_line_is_named_and_nothing_is_imported(file, other, line, why) -> None:
    lines = file.read_bytes().splitlines()
    lines[8] = line
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=f"line 9 of .*{why}; nothing was imported"):
        other.user("ana").import_file(file)
    assert list(other.user("ana").export()) == []


def test_a_file_that_was_cut_off_is_not_imported(file, other) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(InputError, match="was cut off after line"):
        other.user("ana").import_file(file)
    assert list(other.user("ana").export()) == []


@pytest.mark.parametrize(
    ("kind", "field", "value", "why"),
    [
        ("memory", "value", "x" * 1_000_000, "1000000 characters long"),
        ("memory", "value", "half \ud83d", "its value holds half a character"),
        ("memory", "value", 7, "its value is not a text"),
        ("memory", "memory_type", "dream", "is no type"),
        ("memory", "created_by", "magic", "its created_by must be one of"),
        ("memory", "active", 1, "its active is not true or false"),
        ("memory", "inactive_reason", "ended", "inactive_reason exactly if"),
        ("memory", "said_at", "yesterday", "its said_at is not of the form"),
        ("memory", "said_at", "2026-05-01T12:00:00", "its said_at is not of the form"),
        ("memory", "expires_at", "0000-00-00", "its expires_at is not of the form"),
        ("memory", "id", 2**63, "its id is not between"),
        ("memory", "seen_count", -1, "its seen_count is not between"),
        ("memory", "key", None, "it has no key"),
        ("memory", "app", "elsewhere", "its app has no record before it"),
        ("memory", "value", "password: hunter2hunter2", "secret|password"),
        ("event", "new", {"value": "\ud83d"}, "half a character"),
        ("event", "memory_id", 999, "its memory 999 has no record before it"),
        ("message", "role", "system", "its role must be one of"),
        ("message", "session_id", 999, "does not stand behind the record of its session"),
        ("app", "name", "a\u202eb", "cannot be seen"),
        ("usage", "seconds", float("nan"), "its seconds is not a number"),
    ],
)
def test_a_record_that_could_not_be_entered_is_refused_with_its_line(
    file, other, kind, field, value, why
) -> None:
    place = {"app": "work", "memory": "black tea"}.get(kind)
    done_once = []

    def change(record):
        mine = record["record"] == kind and place in (None, record.get("name"), record.get("value"))
        if mine and not done_once:
            done_once.append(record)
            return record | {field: value}
        return record

    import re

    broken = transfer.changed(file, change)
    done = other.user("ana").import_file(broken)
    lines = broken.read_text(encoding="utf-8").splitlines()
    first = done.refused[0]
    assert json.loads(lines[first.line - 1])["record"] == kind
    assert re.search(why, first.reason)
    assert done.added["session"] >= 4


def test_a_record_that_stands_twice_is_stored_once(file, other) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    memories = [line for line in lines if '"record":"memory"' in line]
    file.write_text("\n".join([*lines[:-1], *memories, lines[-1]]), encoding="utf-8")
    done = other.user("ana").import_file(file)
    assert len(done.refused) == len(memories) == done.added["memory"]
    assert all("has the same id" in one.reason for one in done.refused)


def test_the_reasons_hold_no_words_of_the_file(file, other) -> None:
    broken = transfer.changed(
        file,
        lambda record: record | {"said_at": "Porto"} if record["record"] == "memory" else record,
    )
    done = other.user("ana").import_file(broken)
    assert len(done.refused) >= 4 and "Porto" not in json.dumps([r.reason for r in done.refused])


# --- any store

WORDS = st.sampled_from("amber birch cedar dune ember fjord grove heath".split())
STEP = st.one_of(
    st.tuples(st.just("enter"), st.sampled_from(["city", "boat", "tea"]), WORDS, st.booleans()),
    st.tuples(st.just("say"), st.sampled_from(["city", "hobby"]), WORDS, st.booleans()),
    st.tuples(st.just("edit"), st.just(""), WORDS, st.booleans()),
    st.tuples(st.just("forget"), st.just(""), WORDS, st.booleans()),
    st.tuples(st.just("drop session"), st.just(""), WORDS, st.booleans()),
)


def do(person, extract_model, step) -> None:
    verb, key, word, flag = step
    if verb == "enter":
        person.memories.add("profile", key, word, all_apps=flag)
    elif verb == "say":
        said = f"Well, {key} is {word} for me"
        extract_model.replies.append(answer(fact(said, key, word), title=word))
        person.add(said, wait=flag)
        if not flag:
            extract_model.replies.clear()
    elif verb == "drop session" and (found := person.sessions.list()):
        person.sessions.delete(found[-1].id, keep_memories=flag)
    elif verb in ("edit", "forget") and (held := person.memories.list()):
        if verb == "forget":
            person.memories.delete(held[0].id)
        elif word not in {m.value for m in person.memories.list(status="all")}:
            person.memories.update(held[-1].id, value=word)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, min_size=3, max_size=9), st.sets(st.integers(0, 9), max_size=3))
def test_any_store_comes_back_but_for_what_was_forgotten_since(
    mc, other, clock, extract_model, tmp_path, steps, forget
) -> None:
    for store in (mc, other):
        for name in ("ana", "bo"):
            store.user(name).delete_all()
    ana, bo = mc.user("ana"), other.user("bo")
    for step in steps:
        clock.advance(seconds=60)
        do(ana, extract_model, step)
    file = tmp_path / "any.jsonl"
    file.unlink(missing_ok=True)
    try:
        before = list(ana.export_file(file) and ana.export())
    except Exception:
        assert list(ana.export()) == []
        return
    assert not bo.import_file(file).refused
    assert transfer.renumbered(bo.export()) == transfer.renumbered(before)
    there = list(bo.export())
    assert not bo.import_file(file).added and list(bo.export()) == there
    clock.advance(seconds=60)
    every = bo.memories.list(status="all")
    gone = {(m.app, m.key, m.value) for n, m in enumerate(every) if n in forget}
    kept = transfer.values(bo)
    for n, memory in enumerate(every):
        if n in forget:
            bo.memories.delete(memory.id)
    gone |= kept - transfer.values(bo)  # what was merged into them
    for session in bo.sessions.list():
        bo.sessions.delete(session.id)
    bo.import_file(file)
    assert transfer.values(bo) == kept - gone
