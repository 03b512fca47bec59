"""One's own export comes back as it was, but for what was forgotten since."""

from __future__ import annotations

import io
import json
import re
import zipfile

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.errors import InputError
from memchat.testing import ScriptedModel
from tests.support import transfer
from tests.support.answers import answer, fact


@pytest.fixture
def ana(tmp_path, clock, request):
    transfer.place_filled(tmp_path / "store", clock)
    return request.getfixturevalue("mc").user("ana")


@pytest.fixture
def form() -> str:
    """The format of the exports."""
    return "jsonl"


both = pytest.mark.parametrize("form", ["jsonl", "zip"])


@pytest.fixture
def own_file(ana, tmp_path, form):
    """An export of what ``mc`` holds."""
    return ana.export_file(tmp_path / "ana.export", format=form).file


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> dict[str, bytes]:
    """An export of the same from elsewhere in each format, made once."""
    folder = tmp_path_factory.mktemp("elsewhere")
    with transfer.store(folder) as (mc, clock, extract_model):
        ana = transfer.fill(mc, clock, extract_model)
        made = (ana.export_file(folder / name, format=name) for name in ("jsonl", "zip"))
        return {one.file.name: one.file.read_bytes() for one in made}


@pytest.fixture
def file(exported, tmp_path, form):
    path = tmp_path / "ana.export"
    path.write_bytes(exported[form])
    return path


@both
def test_a_new_store_gives_the_same_export_byte_for_byte(file, exported, mc, tmp_path) -> None:
    bo = mc.user("ana")
    done = bo.import_file(file)
    again = bo.export_file(tmp_path / "again.jsonl").file
    given = exported["jsonl"], again.read_bytes()
    without_header = [content.split(b"\n", 1)[1] for content in given]
    assert without_header[0] == without_header[1]
    assert not done.refused and not done.known and done.added["memory"] == 4


def test_everything_comes_back_after_it_was_deleted(ana, own_file) -> None:
    before = list(ana.export())
    ana.delete_all()
    assert list(ana.export()) == []
    ana.import_file(own_file)
    after = list(ana.export())
    assert transfer.renumbered(after) == transfer.renumbered(before)
    ids = {one["id"] for one in before if one["record"] == "memory"}
    assert ids.isdisjoint(one["id"] for one in after if one["record"] == "memory")


@both
def test_importing_again_changes_nothing(ana, mc, own_file) -> None:
    for person in (ana, mc.user("bo")):
        person.import_file(own_file)
        before = list(person.export())
        done = person.import_file(own_file)
        assert not done.added and not done.refused and list(person.export()) == before


def test_what_is_imported_is_found_and_proved(file, mc) -> None:
    ana = mc.user("ana")
    done = ana.import_file(file)
    assert "Porto" in ana.search("Where do I live?").hits[0].text
    (city,) = [m for m in ana.memories.list() if m.key == "city"]
    assert [proof.quote for proof in ana.memories.evidence(city.id)] == ["I live in Porto"]
    assert done.unembedded and done.unread == 1
    mc.jobs.backfill()
    states = ana.memories.embedding_states([city.id])
    assert [state.status for state in states] == ["completed"]
    assert mc.repair() == []


@pytest.mark.parametrize("model", ["hash", "none"])
def test_conversations_have_their_search_texts_after_the_import(
    file, tmp_path, clock, model
) -> None:
    settings = Settings(home=tmp_path / "none", embed_model=model)
    with MemChat(settings=settings, chat_model=ScriptedModel(), clock=clock) as mc:
        mc.user("ana").import_file(file)
        if model == "hash":
            mc.jobs.run(user="ana", kinds=["embed", "index", "note"])
        assert mc.repair() == []
        hit, *_ = mc.user("ana").search("asthma").hits
        assert hit.kind == "message" and (hit.cosine is not None) == (model == "hash")


def test_a_conversation_that_was_not_read_is_read_after_the_import(file, mc, extract_model) -> None:
    extract_model.replies.append(answer(fact("I have not been read yet", "note", "been read")))
    ana = mc.user("ana")
    ana.import_file(file)
    mc.jobs.run(user="ana")
    assert {session.status for session in ana.sessions.list()} == {"extracted"}


def test_a_trial_stores_nothing_and_says_the_same(file, mc) -> None:
    ana = mc.user("ana")
    trial = ana.import_file(file, dry_run=True)
    assert trial.dry_run and list(ana.export()) == []
    done = ana.import_file(file)
    assert trial.added == done.added and not done.dry_run


@both
def test_what_was_forgotten_stays_forgotten_also_in_conversations_that_come_back(
    ana, own_file
) -> None:
    (porto,) = [m for m in ana.memories.list() if m.value == "Porto"]
    ana.memories.delete(porto.id)
    for session in ana.sessions.list():
        ana.sessions.delete(session.id)
    done = ana.import_file(own_file)
    assert done.forgotten == 1 and done.added["session"] == 5
    assert "Porto" not in json.dumps(list(ana.export()))
    assert "Lisbon" in json.dumps(list(ana.export()))
    before = list(ana.export())
    assert ana.import_file(own_file).forgotten == 1 and list(ana.export()) == before


def test_what_waits_for_its_purge_stays_deleted(ana, own_file) -> None:
    (tea,) = [m for m in ana.memories.list() if m.key == "tea"]
    ana.memories.delete(tea.id, hold=60)
    assert ana.import_file(own_file).forgotten == 1
    assert "tea" not in {m.key for m in ana.memories.list()}


def test_what_was_forgotten_in_one_app_stays_away_where_it_held_in_every_app(ana, own_file) -> None:
    (tea,) = [m for m in ana.memories.list() if m.key == "tea"]
    ana.memories.update(tea.id, all_apps=False)
    ana.memories.delete(tea.id)
    assert ana.import_file(own_file).forgotten == 1
    assert "tea" not in {m.key for m in ana.memories.list()}


def test_a_memory_that_was_moved_to_one_app_is_not_doubled_for_all(ana, own_file) -> None:
    (tea,) = [m for m in ana.memories.list() if m.key == "tea"]
    ana.memories.update(tea.id, all_apps=False)
    before = list(ana.export())
    assert not ana.import_file(own_file).added and list(ana.export()) == before


def test_an_edited_memory_is_not_doubled_by_its_former_wording(ana, own_file) -> None:
    (tea,) = [m for m in ana.memories.list() if m.key == "tea"]
    ana.memories.update(tea.id, value="peppermint")
    ana.import_file(own_file)
    assert [m.value for m in ana.memories.list() if m.key == "tea"] == ["peppermint"]


def test_an_answered_question_is_not_asked_again(ana, own_file) -> None:
    (item,) = ana.inbox.list()
    ana.inbox.accept(item.id)
    assert ana.import_file(own_file).known["inbox_item"] == 1
    assert ana.inbox.list() == []


def test_of_a_key_that_holds_one_value_the_one_said_last_holds(file, mc, clock) -> None:
    ana = mc.user("ana")
    clock.advance(seconds=3600)
    ana.memories.add("profile", "city", "Oslo")
    ana.import_file(file)
    assert [m.value for m in ana.memories.list() if m.key == "city"] == ["Oslo"]
    assert {m.value for m in ana.memories.list(status="all") if m.key == "city"} == {
        "Lisbon",
        "Porto",
        "Oslo",
    }


def test_all_of_it_belongs_to_the_person_who_imports(file, mc) -> None:
    mc.user("ana").memories.add("fact", "boat", "my own")
    bo = mc.user("bo")
    forged = transfer.changed(file, lambda record: record | {"user": "ana", "app_id": 1})
    assert not bo.import_file(forged).refused
    assert transfer.values(mc.user("ana")) == {("default", "boat", "my own")}
    assert ("default", "city", "Porto") in transfer.values(bo)


def test_switches_of_apps_that_are_here_stay_as_they_are(ana, mc, own_file) -> None:
    mc.user("ana", app="work").set_memory(True)
    ana.import_file(own_file)
    assert mc.user("ana", app="work").memory_switch().on


def go_on(elsewhere, own_file, said: str):
    """The same person on another machine, who resumes the conversation about asthma there."""
    mc, clock, extract_model = elsewhere
    person = mc.user("ana")
    person.import_file(own_file)
    extract_model.replies.append(answer())  # the conversation that was not read yet
    mc.jobs.run()
    clock.advance(seconds=9 * 3600)
    talk = next(s for s in person.sessions.list() if s.message_count == 2)
    extract_model.replies.append(answer(fact(said, "inhaler", "blue")))
    with person.chat(resume=talk.id) as chat:
        chat.send(said).read()
    mc.jobs.run()
    return person


@pytest.fixture
def elsewhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    with transfer.store(tmp_path / "elsewhere") as opened:
        yield opened


def test_a_conversation_that_went_on_elsewhere_goes_on_here(ana, own_file, elsewhere, tmp_path):
    there = go_on(elsewhere, own_file, "My inhaler is blue")
    file = there.export_file(tmp_path / "grown.jsonl").file
    done = ana.import_file(file)
    assert (done.added["message"], done.added.get("session")) == (2, None)
    (talk,) = [s for s in ana.sessions.list() if s.message_count == 4]
    said = [m.content for m in ana.sessions.messages(talk.id)]
    assert said[2:] == ["My inhaler is blue", "Fine."]
    (blue,) = [m for m in ana.memories.list() if m.key == "inhaler"]
    assert [proof.quote for proof in ana.memories.evidence(blue.id)] == ["My inhaler is blue"]
    assert talk.status == "extracted"
    before = list(ana.export())
    assert not ana.import_file(file).added and list(ana.export()) == before


def test_messages_that_were_deleted_at_the_end_of_a_conversation_stay_away(ana, own_file) -> None:
    talk = next(s for s in ana.sessions.list() if s.message_count == 2)
    last = ana.sessions.messages(talk.id)[-1]
    ana.sessions.delete_message(last.id)
    assert "message" not in ana.import_file(own_file).added
    assert last.id not in {m.id for m in ana.sessions.messages(talk.id)}


def test_what_was_forgotten_here_is_blanked_where_a_conversation_goes_on(
    ana, own_file, elsewhere, clock, tmp_path
) -> None:
    there = go_on(elsewhere, own_file, "My inhaler is blue")
    file = there.export_file(tmp_path / "grown.jsonl").file
    clock.advance(days=2)
    inhaler = ana.memories.add("other", "inhaler", "blue")
    ana.memories.delete(inhaler.id)
    assert ana.import_file(file).forgotten == 1
    assert "blue" not in json.dumps(list(ana.export()))


def test_what_exports_no_longer_have_is_counted_and_left_out(file, mc) -> None:
    header, *rest, end = file.read_text(encoding="utf-8").splitlines()
    (item,) = [json.loads(line) for line in rest if '"record":"inbox_item"' in line]
    old = [
        {"record": "usage", "id": 1, "app": "default", "model": 7},
        {"record": "receipt", "message_id": 999},
        item | {"id": 98, "status": "rejected", "value": "no asthma"},
        item | {"id": 99, "status": "pending", "unchecked": True, "value": "hay fever"},
        item | {"id": 97, "status": "pending", "unchecked": False, "value": "a cough"},
    ]
    file.write_text("\n".join([header, *rest, *map(json.dumps, old), end]), encoding="utf-8")
    ana = mc.user("ana")
    done = ana.import_file(file)
    assert done.left_out == {"usage": 1, "receipt": 1, "inbox_item": 2} and not done.refused
    assert {one.value for one in ana.inbox.list()} == {"asthma", "a cough"}


def asked(question: str, reply: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]


def test_what_was_forgotten_here_is_blanked_in_replies_that_only_repeated_it(
    mc, clock, elsewhere, tmp_path
) -> None:
    there, other_clock, _ = elsewhere
    ana, person = mc.user("ana"), there.user("ana")
    person.add(asked("Which boat?", "The Quokka is in the news."), wait=False)
    other_clock.advance(seconds=60)
    person.memories.add("fact", "boat", "the Quokka")
    person.add(asked("Which boat is mine?", "The Quokka, in the harbour."), wait=False)
    file = person.export_file(tmp_path / "ana.jsonl").file
    clock.advance(seconds=120)
    ana.memories.delete(ana.memories.add("fact", "boat", "the Quokka").id)
    assert ana.import_file(file).forgotten == 1
    said = [m.content for s in ana.sessions.list() for m in ana.sessions.messages(s.id)]
    assert "The Quokka is in the news." in said  # the fact was not known yet
    assert "··········, in the harbour." in said


# --- files that are not as they were written


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no export of memchat"),
        ("# A page\n", "is no export of memchat"),
        ('{"record": "app"}\n', "is no export of memchat"),
        ('{"record":"header","format":"memchat export","version":5}\n', "upgrade memchat"),
        ('{"record":"header","format":"memchat export","version":"1"}\n', "is no export"),
        ("[" * 100_000, "is no export of memchat"),
    ],
)
def test_a_file_that_is_no_export_is_refused(mc, tmp_path, content, message) -> None:
    file = tmp_path / "file"
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        mc.user("ana").import_file(file)


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _bomb(_content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("memchat.jsonl", bytes(20_000_000))
    return made.getvalue()


def _junk(content: bytes) -> bytes:
    start = content.index(b"memchat.jsonl") + 200
    return content[:start] + bytes(200) + content[start + 200 :]


@pytest.mark.parametrize("form", ["zip"])
@pytest.mark.parametrize(
    ("broken", "why"), [(_cut, "no export"), (_bomb, "fill a disk"), (_junk, "is damaged|line")]
)
def test_a_zip_that_is_broken_is_refused_and_nothing_is_imported(file, mc, broken, why) -> None:
    file.write_bytes(broken(file.read_bytes()))
    with pytest.raises(InputError, match=why):
        mc.user("ana").import_file(file)
    assert list(mc.user("ana").export()) == []


def test_a_missing_file_and_a_folder_are_refused(mc, tmp_path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            mc.user("ana").import_file(path)


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
def test_a_broken_line_is_named_and_nothing_is_imported(file, mc, line, why) -> None:
    lines = file.read_bytes().splitlines()
    lines[8] = line
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=f"line 9 of .*{why}; nothing was imported"):
        mc.user("ana").import_file(file)
    assert list(mc.user("ana").export()) == []


def test_a_file_that_was_cut_off_is_not_imported(file, mc) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(InputError, match="was cut off after line"):
        mc.user("ana").import_file(file)
    assert list(mc.user("ana").export()) == []


@pytest.mark.parametrize(
    ("kind", "field", "value", "why"),
    [
        ("memory", "value", "x" * 1_000_000, "1000000 characters long"),
        ("memory", "value", "half \ud83d", "its value holds half a character"),
        ("memory", "value", 7, "its value is not a text"),
        ("memory", "memory_type", "a dream", "is no type"),
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
        ("event", "new", {"value": "\ud83d"}, "half a character"),
        ("event", "new", {"value": 5}, "is not a text"),
        ("event", "old", {"value": "Porto"}, "a value without memory_type or key"),
        ("event", "new", {"replaced_by": [1]}, "its new.replaced_by is not a whole number"),
        ("event", "new", {"starts_at": "soon"}, "its new.starts_at is not of the form"),
        ("event", "detail", {"score": float("nan")}, "a number or a depth that cannot be stored"),
        ("event", "app", "elsewhere", "its app has no record before it"),
        ("event", "memory_id", 999, "its memory 999 has no record before it"),
        ("message", "role", "system", "its role must be one of"),
        ("message", "session_id", 999, "does not stand behind the record of its session"),
        ("app", "name", "a\u202eb", "cannot be seen"),
    ],
)
def test_a_record_that_could_not_be_entered_is_refused_with_its_line(
    file, mc, kind, field, value, why
) -> None:
    place = {"app": "work", "memory": "black tea"}.get(kind)
    done_once = []

    def change(record):
        mine = record["record"] == kind and place in (None, record.get("name"), record.get("value"))
        if mine and not done_once:
            done_once.append(record)
            return record | {field: value}
        return record

    broken = transfer.changed(file, change)
    done = mc.user("ana").import_file(broken)
    lines = broken.read_text(encoding="utf-8").splitlines()
    first = done.refused[0]
    assert json.loads(lines[first.line - 1])["record"] == kind
    assert re.search(why, first.reason)
    assert done.added["session"] >= 4


def test_a_secret_that_was_kept_is_not_lost_and_comes_back_as_sensitive(ana, mc, tmp_path) -> None:
    door = ana.memories.add("fact", "door_code", "code: 4821#", keep_secret=True)
    ana.memories.update(door.id, sensitive=False)
    file = ana.export_file(tmp_path / "ana.jsonl").file
    bo = mc.user("bo")
    assert not bo.import_file(file).refused
    (back,) = [m for m in bo.memories.list() if m.key == door.key]
    assert (back.value, back.sensitive) == ("code: 4821#", True)


def test_a_record_that_stands_twice_is_stored_once(file, mc) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    memories = [line for line in lines if '"record":"memory"' in line]
    file.write_text("\n".join([*lines[:-1], *memories, lines[-1]]), encoding="utf-8")
    done = mc.user("ana").import_file(file)
    assert len(done.refused) == len(memories) == done.added["memory"]
    assert all("has the same id" in one.reason for one in done.refused)


def test_an_app_that_stands_twice_is_made_once(file, mc) -> None:
    header, *rest, end = file.read_text(encoding="utf-8").splitlines()
    apps = [line for line in rest if '"record":"app"' in line]
    file.write_text("\n".join([header, *apps, *rest, end]), encoding="utf-8")
    done = mc.user("ana").import_file(file)
    assert (done.added["app"], done.known["app"], done.refused) == (len(apps), len(apps), ())


def test_the_reasons_hold_no_words_of_the_file(file, mc) -> None:
    broken = transfer.changed(
        file,
        lambda record: record | {"said_at": "Porto"} if record["record"] == "memory" else record,
    )
    done = mc.user("ana").import_file(broken)
    assert len(done.refused) >= 4 and "Porto" not in json.dumps([r.reason for r in done.refused])
