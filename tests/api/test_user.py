"""A user's scope beside its rooms: context, export, deletion, pages; and many threads at once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from memchat import ChatMessage, InputError, Wanted
from memchat.testing import ScriptedModel
from tests.support.answers import answer, fact

THREADS = 16
CALLS = 50


def test_context_is_a_block_for_a_prompt_with_what_is_in_it(mc) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "diet", "vegetarian")
    context = ana.context("What shall I cook?")
    assert "diet: vegetarian" in context.text and context.memory_off is None
    assert [hit.text for hit in context.shown.listed] == ["diet: vegetarian"]
    assert 0 < context.tokens <= 1000
    assert ana.sessions.list() == [], "nothing is written"
    with pytest.raises(InputError):
        ana.context(" ")


def test_context_keeps_to_its_tokens(mc) -> None:
    ana = mc.user("ana")
    for number in range(60):
        ana.memories.add("fact", "note", f"the boat number {number} lies in harbour {number}")
    small, large = (ana.context("boat", max_tokens=most) for most in (300, 3000))
    assert small.tokens <= 300 < large.tokens <= 3000
    assert small.shown.lines < large.shown.lines == 60


def test_context_is_empty_where_memory_is_off_and_where_nothing_is_known(mc) -> None:
    ana = mc.user("ana")
    assert (ana.context("Hello").text, ana.context("Hello").memory_off) == ("", None)
    ana.memories.add("profile", "diet", "vegetarian")
    ana.set_memory(False)
    context = ana.context("Hello")
    assert context.text == "" and "memory is off" in (context.memory_off or "")


def test_memories_come_page_by_page_without_gap_or_repeat(mc, clock) -> None:
    ana = mc.user("ana")
    for number in range(7):
        clock.advance(seconds=number % 2)
        ana.memories.add("fact", "note", f"thing number {number}")
    every = [memory.id for memory in ana.memories.list()]
    page, found = ana.memories.list(limit=3), []
    while True:
        found += [memory.id for memory in page]
        if page.cursor is None:
            break
        ana.memories.delete(page[0].id)  # what goes meanwhile shifts nothing
        page = ana.memories.list(limit=3, cursor=page.cursor)
    assert found == every
    assert [m.value for m in ana.memories.list("NUMBER 5")] == ["thing number 5"]
    assert ana.memories.count("number") == 5
    with pytest.raises(InputError, match="no cursor"):
        ana.memories.list(cursor="here")


def test_memories_that_end_soon_come_page_by_page_too(mc, clock) -> None:
    ana, today = mc.user("ana"), clock().date()
    for number in (5, 2, 5, 9, 2):
        until = today.replace(day=today.day + number)
        ana.memories.add("fact", "note", f"thing {number} {ana.memories.count()}", expires_at=until)
    every = [memory.id for memory in ana.memories.list(status="expiring")]
    page, found = ana.memories.list(status="expiring", limit=2), []
    while page.cursor is not None:
        found += [memory.id for memory in page]
        page = ana.memories.list(status="expiring", limit=2, cursor=page.cursor)
    assert found + [memory.id for memory in page] == every and len(every) == 5


def test_sessions_come_page_by_page(mc, clock) -> None:
    ana = mc.user("ana")
    for number in range(5):
        clock.advance(seconds=1)
        ana.add(f"Hello {number}", wait=False)
    page = ana.sessions.list(limit=3)
    rest = ana.sessions.list(limit=3, cursor=page.cursor)
    assert len({session.id for session in (*page, *rest)}) == 5 and rest.cursor is None


def test_sessions_that_come_and_go_between_pages_shift_nothing(mc, clock) -> None:
    ana, ids = mc.user("ana"), []
    for number in range(6):
        clock.advance(seconds=number % 2)
        ids.append(ana.add(f"Hello {number}", wait=False).session_id)
    page = ana.sessions.list(limit=3)
    ana.sessions.delete(page[0].id)
    clock.advance(seconds=1)
    ana.add("Hello again", wait=False)
    rest = ana.sessions.list(limit=3, cursor=page.cursor)
    assert [session.id for session in (*page, *rest)] == ids[::-1] and rest.cursor is None


def test_first_words_leave_out_unknown_sessions(mc) -> None:
    ana, bo = mc.user("ana"), mc.user("bo")
    one, two = (ana.add(words, wait=False).session_id for words in ("Hello", "Good day"))
    other = bo.add("Hi", wait=False).session_id
    ana.sessions.delete(two)
    assert ana.sessions.first_words([one, two, other, 10**9]) == {one: "Hello"}
    assert mc.user("nobody").sessions.first_words([one]) == {}


def test_a_secret_stands_in_no_title_however_the_title_came_to_be(mc, extract_model) -> None:
    ana = mc.user("ana")
    said = "My locker code is 7741. " + "x" * 40 + " sk-abcdEFGH1234ijklMNOP5678"
    number = ana.add(said, wait=False).session_id
    opening = ana.sessions.first_words([number])[number]
    assert "locker code is [password]" in opening and "sk-abcd" not in opening
    renamed = ana.sessions.rename(number, "Locker code is 7741, bank at 9")
    assert renamed.title == "Locker code is [password], bank at 9"
    # Its own words are found as before.
    assert [one.title for one in ana.sessions.list("7741")] == [renamed.title]


def test_a_code_that_answers_a_question_is_no_title(mc, extract_model) -> None:
    extract_model.replies.append(answer())
    asked = {"role": "assistant", "content": "And your PIN?"}
    ana = mc.user("ana")
    number = ana.add([asked, {"role": "user", "content": "4821"}]).session_id
    assert ana.sessions.get(number).title == "[password]"


def test_sessions_are_found_by_words_in_any_order_whatever_their_accents(mc) -> None:
    ana, bo = mc.user("ana"), mc.user("bo")
    one, two = (ana.add(f"{w} em São Paulo", wait=False).session_id for w in ("Moro", "Adoro"))
    other = bo.add("Moro em Sao Paulo", wait=False).session_id
    ana.sessions.rename(two, "Where to live")
    assert [s.id for s in ana.sessions.list("sao MORO")] == [one]
    assert [s.id for s in ana.sessions.list("live where")] == [two]
    assert ana.sessions.list("moro live") == []
    found = ana.sessions.found_words("sao moro", [one, two, other, 10**9])
    assert {i: message.content for i, message in found.items()} == {one: "Moro em São Paulo"}
    assert ana.sessions.found_words(" ", [one]) == {}
    assert mc.user("nobody").sessions.found_words("moro", [one]) == {}


def test_pinned_memories_are_browsed_first_in_every_order(mc) -> None:
    memories = mc.user("ana").memories
    ids = [memories.add("fact", key, "thing").id for key in ("a", "b", "c")]
    memories.pin(ids[1])
    orders = ("newest", "oldest", "key", "most used", "least used", "ending first")
    for order in orders:
        wanted = Wanted(sort=order)
        assert memories.browse(wanted).memories[0].id == ids[1], order
        assert memories.browse_ids(wanted)[0] == ids[1], order
    page = memories.browse(Wanted("THING", sort="key"), limit=1, offset=1)
    assert [m.id for m in page.memories] == [ids[0]] and page.total == 3


def test_delete_all_says_how_much_went(mc) -> None:
    ana = mc.user("ana")
    ana.memories.add("preference", "tea", "green tea", all_apps=True)
    mc.user("ana", app="work").add("Hello", wait=False)
    gone = ana.delete_all()
    assert (gone.memories, gone.sessions, gone.apps) == (1, 1, 2)
    assert list(ana.export()) == [] and ana.apps.list() == []


def lives_in(messages: Sequence[ChatMessage]) -> str:
    """What an extraction model answers: the town that the transcript names."""
    town = re.findall(r"I live in (town\d+)", messages[-1].content)[-1]
    return answer(fact(f"I live in {town}", "city", town))


def live(mc, number: int) -> None:
    """One person's use of a store: add, search, read, change, forget."""
    person = mc.user(f"person {number}")
    learned = person.add(f"I live in town{number}", session="s")
    if learned.queued is not None:
        mc.jobs.run(user=person.scope.user)
    (memory,) = person.memories.list()
    assert memory.value == f"town{number}"
    assert person.search("Where do I live?").hits[0].id == memory.id
    assert f"town{number}" in person.context("Where do I live?").text
    with person.chat() as chat:
        assert chat.send("Hello").read() == "Fine."
    note = person.memories.add("fact", "note", f"a boat with {number} sails")
    person.memories.update(note.id, value=f"a ship with {number} sails")
    person.memories.delete(note.id)
    assert [m.id for m in person.memories.list()] == [memory.id]
    assert len(list(person.export())) >= 3


@pytest.fixture
def busy(open_store):
    """A store whose models answer any number of readings."""
    model = ScriptedModel(name="scripted/extract")
    model.replies.extend([lives_in] * 500)
    return open_store(extract_model=model)


def test_one_store_serves_many_threads(busy) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(live, busy, number) for number in range(THREADS)]:
            done.result()
    assert busy.jobs.list(status="failed") == []


def test_one_store_serves_async_code(busy) -> None:
    async def ask(number: int) -> str:
        person = busy.user(f"person {number}")
        await asyncio.to_thread(person.memories.add, "fact", "boat", f"a boat of {number} m")
        await asyncio.to_thread(person.add, "Hello", session="s", wait=False)
        return (await asyncio.to_thread(person.context, "My boat?")).text

    async def everybody() -> list[str]:
        return await asyncio.gather(*(ask(number) for number in range(CALLS)))

    with ThreadPoolExecutor(1) as pool:  # here litellm may have left an event loop
        texts = pool.submit(asyncio.run, everybody()).result()
    assert all(f"a boat of {number} m" in text for number, text in enumerate(texts))
