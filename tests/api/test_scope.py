"""Whose memory, in which app, and when not at all."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from memchat.errors import InputError, NotFound, ScopeError
from memchat.types import Wanted
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk


def values(mc, user="ana", app="default", **more) -> set[str]:
    return {m.value for m in mc.user(user, app=app).memories.list(**more)}


def test_a_memory_stays_in_its_app(mc) -> None:
    mc.user("ana", app="home").memories.add("profile", "city", "Lisbon")
    assert values(mc, app="home") == {"Lisbon"}
    assert values(mc, app="work") == set()
    assert mc.user("ana", app="work").search("which city Lisbon").hits == ()


def test_a_memory_for_every_app_is_in_every_app_of_its_user_alone(mc) -> None:
    memory = mc.user("ana").memories.add("profile", "city", "Lisbon", all_apps=True)
    assert memory.app == ""
    assert values(mc, app="home") == values(mc, app="work") == {"Lisbon"}
    assert values(mc, user="bo") == set()


def test_an_edit_moves_a_memory_to_every_app_and_back(mc) -> None:
    memory = mc.user("ana", app="home").memories.add("profile", "city", "Lisbon")
    mc.user("ana", app="home").memories.update(memory.id, all_apps=True)
    assert values(mc, app="work") == {"Lisbon"}
    mc.user("ana", app="work").memories.update(memory.id, all_apps=False)
    assert values(mc, app="home") == set() and values(mc, app="work") == {"Lisbon"}


def test_extraction_never_makes_a_memory_for_every_app(mc, extract_model) -> None:
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    talk(mc, "I live in Lisbon.", app="home")
    assert values(mc, app="home") == {"Lisbon"} and values(mc, app="work") == set()


@pytest.mark.parametrize("verb", ["get", "delete", "restore", "history", "evidence"])
def test_a_foreign_id_is_not_found_and_nothing_happens(mc, verb: str) -> None:
    memory = mc.user("ana").memories.add("profile", "city", "Lisbon")
    for where in ({"user": "bo"}, {"user": "ana", "app": "other"}):
        with pytest.raises(NotFound):
            getattr(mc.user(**where).memories, verb)(memory.id)
    assert values(mc) == {"Lisbon"}


@pytest.mark.parametrize("verb", ["get", "messages", "end", "delete"])
def test_a_foreign_conversation_is_not_found_and_nothing_happens(mc, verb: str) -> None:
    talk(mc, "I keep bees.")
    (session,) = mc.user("ana").sessions.list()
    for where in ({"user": "bo"}, {"user": "ana", "app": "other"}):
        mc.user(**where).memories.add("profile", "city", "Lisbon")  # whose app is there, too
        with pytest.raises(NotFound):
            getattr(mc.user(**where).sessions, verb)(session.id)
    assert mc.user("ana").sessions.list() == [session]


@pytest.mark.parametrize(
    ("user_on", "app_on", "incognito"), list(itertools.product([True, False], repeat=3))
)
def test_memory_takes_part_only_where_every_switch_is_on(
    mc, chat_model, extract_model, user_on: bool, app_on: bool, incognito: bool
) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    ana.set_memory(user_on, all_apps=True)
    mc.user("ana", app="default").set_memory(app_on)
    on = user_on and app_on and not incognito
    if on:
        extract_model.replies.append(answer())
    with ana.chat(incognito=incognito) as chat:
        assert chat.memory.on is on
        assert chat.memory.reason
        reply = chat.send("Where do I live? I keep bees.")
        assert reply.read()
    assert bool(reply.shown.lines) is on
    assert ("Lisbon" in chat_model.requests[-1].messages[0].content) is on
    assert len(extract_model.requests) == int(on), "off means that nothing is read"
    kinds = {job.kind for job in mc.jobs.list(user="ana")}
    assert kinds == {"embed", *(("extract", "index") if on else ())}, "and nothing queued"


def test_the_reason_names_the_switch(mc) -> None:
    mc.user("ana", app="work").set_memory(False)
    assert "app work" in mc.user("ana", app="work").memory_switch().reason
    assert mc.user("ana", app="home").memory_switch().on
    mc.user("ana").set_memory(False, all_apps=True)
    assert "for ana" in mc.user("ana", app="home").memory_switch().reason
    assert mc.user("bo").memory_switch().on


def test_with_memory_off_it_can_still_be_read_and_deleted(mc) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", "Lisbon")
    ana.set_memory(False, all_apps=True)
    assert values(mc) == {"Lisbon"}
    ana.memories.delete(memory.id)
    assert values(mc) == set()


def test_what_is_said_while_memory_is_off_is_never_learnt_later(mc, extract_model) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    ana.set_memory(False, all_apps=True)
    chat.send("I moved to Lisbon.").read()
    ana.set_memory(True, all_apps=True)
    chat.send("I keep bees.").read()
    extract_model.replies.append(answer())
    chat.end()
    sent = extract_model.requests[0].messages[1].content
    assert "bees" in sent and "Lisbon" not in sent


def test_a_reply_given_while_memory_is_off_is_never_read(mc, chat_model, extract_model) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    ana.set_memory(False, all_apps=True)
    chat_model.replies.appendleft("Lisbon is a lovely town.")
    assert "Lisbon" in chat.send("I moved.").read()
    ana.set_memory(True, all_apps=True)
    chat.send("I keep bees.").read()
    extract_model.replies.append(answer())
    chat.end()
    sent = extract_model.requests[0].messages[1].content
    assert "bees" in sent and "Lisbon" not in sent


def test_incognito_leaves_no_byte_behind(mc, extract_model) -> None:
    mc.user("ana").chat().send("Hello there.").read()
    before = tables(mc)
    with mc.user("ana", app="secret-plan").chat(incognito=True) as chat:
        assert "Incognito" in (chat.notice() or "")
        chat.send("My Zanzibar plan is ready.").read()
        chat.send("Which plan was that, the Zanzibar one?").read()
    mc.jobs.run()
    assert tables(mc) == before
    for path in Path(mc.settings.home).rglob("*"):
        if path.is_file():
            data = path.read_bytes().lower()
            assert b"zanzibar" not in data and b"secret-plan" not in data, path.name


def test_incognito_remembers_within_itself(mc, chat_model) -> None:
    chat = mc.user("ana").chat(incognito=True)
    chat.send("My plan is ready.").read()
    chat.send("Which one?").read()
    assert [m.content for m in chat_model.requests[-1].messages[1:]] == [
        "My plan is ready.",
        "Fine.",
        "Which one?",
    ]


def tables(mc) -> dict[str, int]:
    with private.database(mc).read() as tx:
        names = tx.connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).scalars()
        return {
            n: tx.connection.exec_driver_sql(f'SELECT count(*) FROM "{n}"').scalar()
            for n in names.all()
        }


@pytest.mark.parametrize(
    "name", ["../x", "Ana Çelik", "李雷", "🦊", "a/b\\c", "' OR 1=1 --", "x" * 200]
)
def test_any_name_is_a_user_or_an_app_and_never_a_path(mc, name: str) -> None:
    mc.user(name, app=name).memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    assert values(mc, user=name, app=name) == {"Lisbon"}
    assert values(mc, user=name) == set()
    home = Path(mc.settings.home)
    assert {p.name for p in home.parent.iterdir()} == {"store"}


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "tab\there", "x" * 201, "half \ud800"])
def test_a_name_that_cannot_be_used_is_refused(mc, name: str) -> None:
    with pytest.raises(ScopeError):
        mc.user(name).memories.list()
    with pytest.raises(ScopeError):
        mc.user("ana", app=name).memories.list()


def test_names_are_compared_in_one_form(mc) -> None:
    mc.user("Jos\u00e9").memories.add("profile", "city", "Lisbon")
    assert values(mc, user="Jose\u0301") == {"Lisbon"}


def test_an_unknown_status_is_refused(mc) -> None:
    with pytest.raises(InputError, match="no status"):
        mc.user("ana").memories.list(status="odd")


HIDDEN = ["ana\u200b", "\u200eana", "an\u202ea", "a\u2066na", "ana\u2069", "ana\ufeff", "a\u00adna"]
HIDDEN += ["ana\u200d", "a\u200cna", "a\u2028na", "ana\u3164", "ana\ufe0f", "ana\U000e0061"]


@pytest.mark.parametrize("name", HIDDEN, ids=ascii)
def test_a_name_with_a_character_that_cannot_be_seen_is_refused(mc, name: str) -> None:
    for where in ({"user": name}, {"user": "ana", "app": name}):
        with pytest.raises(ScopeError, match=r"cannot be seen \(U\+[0-9A-F]{4,5}\)"):
            mc.user(**where)
    with private.database(mc).read() as tx:
        assert tx.connection.exec_driver_sql("SELECT count(*) FROM apps").scalar() == 0


@pytest.mark.parametrize(
    "name", ["👩\u200d👩\u200d👧", "❤\ufe0f\u200d🔥", "علی\u200cرضا", "क्\u200dष", "Zoë", "中文"]
)
def test_a_character_that_an_emoji_or_a_script_needs_is_part_of_a_name(mc, name: str) -> None:
    mc.user(name, app=name).memories.add("profile", "city", "Lisbon")
    assert values(mc, user=name, app=name) == {"Lisbon"}


def test_reading_and_deleting_where_nobody_was_finds_nothing_and_makes_nothing(mc) -> None:
    there = mc.user("nobody", app="nowhere")
    assert there.memories.list(status="all") == there.memories.browse_ids(Wanted()) == []
    assert there.memories.count() == 0 and there.memories.tags() == {}
    assert there.search("tea").hits == () and not there.notes.search("tea").hits
    assert there.sessions.list() == there.notes.list() == there.inbox.list() == []
    assert there.inbox.refusals() == there.clients.list() == there.apps.list() == []
    assert there.context("tea").text == "" and there.audit().findings == ()
    assert not any(there.memories.insights().kept.values()) and there.memory_switch().on
    with pytest.raises(NotFound):
        there.sessions.why()
    assert there.memories.delete_many([1, 2]).memories == 0 == there.memories.clear().memories
    assert there.delete_all().memories == 0
    mc.jobs.run(user="nobody")
    with private.database(mc).read() as tx:
        assert tx.driver.execute("SELECT user, name FROM apps").fetchall() == []
