"""Which days a question asks about, in four languages and any zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat import MemChat
from memchat.language.text import unaccented
from memchat.search import question_dates
from memchat.search.question_dates import DateRange, date_range, names_day
from memchat.testing import FakeClock
from memchat.types import Hit
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.store import Opener

BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2026, 5, 20, 10, 0, tzinfo=UTC)


def asked(text: str, now: datetime = WEDNESDAY, zone: str = "Europe/Berlin") -> DateRange:
    found = date_range(text, now, ZoneInfo(zone))
    assert found is not None, text
    return found


def days(text: str, now: datetime = WEDNESDAY, zone: str = "Europe/Berlin") -> tuple[str, str, str]:
    found = asked(text, now, zone)
    return f"{found.start:%m-%d}", f"{found.end:%m-%d}", found.kind


PAST = [
    ("What did I say yesterday?", "05-19", "05-19"),
    ("What did I eat last night?", "05-19", "05-19"),
    ("What did I do the day before yesterday?", "05-18", "05-18"),
    ("What did I eat this morning?", "05-20", "05-20"),
    ("What did I say today?", "05-20", "05-20"),
    ("What did I tell you last week?", "05-11", "05-17"),
    ("What did I do last Friday?", "05-15", "05-15"),
    ("What did I do last Wednesday?", "05-13", "05-13"),  # asked on a Wednesday
    ("What did I say on Friday?", "05-15", "05-15"),
    ("What did I say on Wednesday?", "05-13", "05-13"),
    ("What did I do over the weekend?", "05-16", "05-17"),
    ("What did I do last weekend?", "05-16", "05-17"),
    ("What happened three days ago?", "05-17", "05-17"),
    ("What happened two weeks ago?", "05-03", "05-09"),
    ("What did I learn in the last three days?", "05-17", "05-20"),
    ("What happened since last week?", "05-11", "05-20"),
    ("What did I do last month?", "04-01", "04-30"),
    ("What happened in April?", "04-01", "04-30"),
    ("What happened in May?", "05-01", "05-20"),
    ("What did I say on 3 March about the flat?", "03-03", "03-03"),
    ("What did I say on March 3rd?", "03-03", "03-03"),
    ("What did I say on 2026-03-03?", "03-03", "03-03"),
    ("What did I do this March in Rome?", "03-01", "03-31"),
    ("What did I do this May?", "05-01", "05-20"),
    ("What did I say on May 5 over lunch?", "05-05", "05-05"),
    ("What did I say on 5 May over lunch?", "05-05", "05-05"),
    ("What happened May 5th while I was ill?", "05-05", "05-05"),
    ("What did I do Tuesday?", "05-19", "05-19"),
    ("What did I say on the 3rd?", "05-03", "05-03"),
    ("What did I say on the 31st about the flat?", "03-31", "03-31"),
    ("What did I say a couple of weeks ago?", "04-26", "05-16"),
    ("What did I tell you a few days ago?", "05-15", "05-19"),
    ("What happened in the last few weeks?", "04-29", "05-20"),
    ("Was habe ich vor ein paar Tagen gesagt?", "05-15", "05-19"),
    ("Qu'ai-je dit il y a quelques jours ?", "05-15", "05-19"),
    ("Qu'ai-je dit mardi ?", "05-19", "05-19"),
    ("¿Qué dije hace unos días?", "05-15", "05-19"),
    ("¿Qué dije antes de ayer?", "05-18", "05-18"),
    ("Was habe ich gestern gesagt?", "05-19", "05-19"),
    ("Was habe ich vorgestern gemacht?", "05-18", "05-18"),
    ("Was habe ich heute Morgen gegessen?", "05-20", "05-20"),
    ("Was habe ich letzte Woche gesagt?", "05-11", "05-17"),
    ("Was war vor zwei Wochen?", "05-03", "05-09"),
    ("Was habe ich am 3. März erzählt?", "03-03", "03-03"),
    ("Was habe ich am 3.3. erzählt?", "03-03", "03-03"),
    ("Was habe ich in den letzten drei Tagen gesagt?", "05-17", "05-20"),
    ("Was war im April?", "04-01", "04-30"),
    ("Qu'est-ce que j'ai dit hier ?", "05-19", "05-19"),
    ("Qu'ai-je fait avant-hier ?", "05-18", "05-18"),
    ("Qu'est-ce que j'ai dit la semaine dernière ?", "05-11", "05-17"),
    ("De quoi avons-nous parlé il y a deux semaines ?", "05-03", "05-09"),
    ("Qu'est-ce que j'ai mangé ce matin ?", "05-20", "05-20"),
    ("Qu'est-ce qui s'est passé le mois dernier ?", "04-01", "04-30"),
    ("Qu'ai-je dit le 3 mars ?", "03-03", "03-03"),
    ("¿Qué dije ayer?", "05-19", "05-19"),
    ("¿Qué hice anteayer?", "05-18", "05-18"),
    ("¿Qué dije la semana pasada?", "05-11", "05-17"),
    ("¿Qué te conté hace dos semanas?", "05-03", "05-09"),
    ("¿Qué comí esta mañana?", "05-20", "05-20"),
    ("¿Qué dije el 3 de marzo?", "03-03", "03-03"),
    ("¿Qué hice en abril?", "04-01", "04-30"),
]

AHEAD = [
    ("When do I leave for tomorrow's trip?", "05-21", "05-21"),
    ("What is planned for the day after tomorrow?", "05-22", "05-22"),
    ("What do I have next week?", "05-25", "05-31"),
    ("What about my meeting on Friday?", "05-22", "05-22"),
    ("What is on next Wednesday?", "05-27", "05-27"),
    ("What is due in three days?", "05-23", "05-23"),
    ("What will I do this weekend?", "05-23", "05-24"),
    ("What will happen in June?", "06-01", "06-30"),
    ("Where am I going this summer?", "06-01", "08-31"),
    ("What's on my schedule for the weekend?", "05-23", "05-24"),
    ("What is booked for Friday?", "05-22", "05-22"),
    ("What do I have to do in a few days?", "05-21", "05-25"),
    ("Was steht für Freitag an?", "05-22", "05-22"),
    ("C'est quoi mon rendez-vous mardi ?", "05-26", "05-26"),
    ("¿Qué hay para el viernes?", "05-22", "05-22"),
    ("Was habe ich morgen vor?", "05-21", "05-21"),
    ("Was steht nächste Woche an?", "05-25", "05-31"),
    ("Was ist übermorgen?", "05-22", "05-22"),
    ("Wohin fahre ich in zwei Tagen?", "05-22", "05-22"),
    ("Qu'est-ce que j'ai demain ?", "05-21", "05-21"),
    ("Qu'est-ce que j'ai prévu lundi prochain ?", "05-25", "05-25"),
    ("Qu'y a-t-il dans trois jours ?", "05-23", "05-23"),
    ("¿Qué tengo mañana?", "05-21", "05-21"),
    ("¿Qué tengo el mes que viene?", "06-01", "06-30"),
    ("¿Qué tengo el próximo lunes?", "05-25", "05-25"),
]


@pytest.mark.parametrize(("text", "start", "end"), PAST)
def test_a_phrase_names_days_that_were(text: str, start: str, end: str) -> None:
    assert days(text) == (start, end, "past")


@pytest.mark.parametrize(("text", "start", "end"), AHEAD)
def test_a_phrase_names_days_to_come(text: str, start: str, end: str) -> None:
    assert days(text) == (start, end, "future")


@pytest.mark.parametrize(
    "text",
    [
        "I may go to the shop",
        "May I ask something?",
        "What does June like to read?",
        "March on!",
        "Who sits on the 3rd floor?",
        "What did I say before yesterday?",
        "A gift for May",
        "What do I do every Tuesday?",
        "Que fais-je chaque mardi ?",
        "C'est quand, mardi gras ?",
        "Tell me a few jokes",
        "this may be a silly question, what is my dog called?",
        "This may or may not be right",
        "May 5 people join my dinner?",
        "Can I march 10 miles with a bad knee?",
        "These 2 may be wrong",
        "What is my last name?",
        "Do you know my next door neighbour?",
        "The second floor, please",
        "What was on 2026-02-30?",
        "Guten Morgen!",
        "Was esse ich am Morgen?",
        "J'ai été malade",
        "¿Qué como por la mañana?",
        "Hello",
        "",
    ],
)
def test_what_is_no_time_names_no_day(text: str) -> None:
    assert date_range(text, WEDNESDAY, BERLIN) is None


def test_today_is_the_user_s_own_day() -> None:
    late = datetime(2026, 5, 20, 23, 30, tzinfo=UTC)
    assert days("yesterday", late, "UTC") == ("05-19", "05-19", "past")
    assert days("yesterday", late, "Asia/Tokyo") == ("05-20", "05-20", "past")
    early = datetime(2026, 5, 20, 3, 0, tzinfo=UTC)
    assert days("yesterday", early, "America/Los_Angeles") == ("05-18", "05-18", "past")


def test_the_day_on_which_the_clock_changes_is_whole() -> None:
    """29 March 2026 has 23 hours in Berlin, 25 October has 25."""
    for day in (date(2026, 3, 29), date(2026, 10, 25)):
        noon_after = datetime(day.year, day.month, day.day, 12, tzinfo=BERLIN) + timedelta(days=1)
        found = asked("What did I say yesterday?", noon_after)
        first = datetime(day.year, day.month, day.day, tzinfo=BERLIN)
        last = datetime(day.year, day.month, day.day, 23, 59, tzinfo=BERLIN)
        assert found.holds(first, BERLIN) and found.holds(last, BERLIN)
        assert not found.holds(first - timedelta(seconds=1), BERLIN)
        assert not found.holds(noon_after, BERLIN)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What did I say last week?", date(2026, 12, 28), date(2027, 1, 3)),
        ("What did I do last month?", date(2026, 12, 1), date(2026, 12, 31)),
        ("What happened in December?", date(2026, 12, 1), date(2026, 12, 31)),
        ("What did we do last year?", date(2026, 1, 1), date(2026, 12, 31)),
        ("What did I say on 24 December?", date(2026, 12, 24), date(2026, 12, 24)),
        ("What did I say ten days ago?", date(2026, 12, 26), date(2026, 12, 26)),
        ("Where was I last winter?", date(2025, 12, 1), date(2026, 2, 28)),
    ],
)
def test_around_the_new_year_the_past_is_in_the_year_before(
    text: str, start: date, end: date
) -> None:
    found = asked(text, datetime(2027, 1, 5, 9, tzinfo=UTC))
    assert (found.start, found.end) == (start, end)


def test_a_year_that_is_named_is_that_year() -> None:
    assert asked("What happened in June 2024?").start == date(2024, 6, 1)
    assert asked("el 3 de marzo de 2025").start == date(2025, 3, 3)
    assert asked("What did I buy in 2024?").end == date(2024, 12, 31)


def test_the_tense_tells_which_may_is_meant() -> None:
    march = datetime(2026, 3, 10, tzinfo=UTC)
    assert asked("What did I say in May?", march).start == date(2025, 5, 1)
    assert asked("What will I do in May?", march).start == date(2026, 5, 1)
    assert asked("my trip in May", march).start == date(2026, 5, 1)  # the nearer one
    assert asked("last May", WEDNESDAY).start == date(2025, 5, 1)


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("What did I say yesterday?", True),
        ("Was habe ich letzte Woche erzählt?", True),
        ("Qu'est-ce que j'ai dit hier ?", True),
        ("¿Qué tengo mañana?", True),
        ("What did I say about the flat last week?", False),
        ("Wie war das Essen gestern?", False),
        ("What did I tell you today?", True),
        ("What do I have today?", True),
        ("What is on tomorrow?", True),
        ("Anything on tomorrow?", True),
        ("What's coming up next week?", True),
        ("What happened last month?", True),
        ("Do you remember what we talked about last week?", True),
        ("What do you know about last week?", True),
        ("Was habe ich gestern erzählt?", True),
        ("Was war gestern los?", True),
        ("Was steht nächste Woche an?", True),
        ("Was ist übermorgen?", True),
        ("Qu'ai-je fait avant-hier ?", True),
        ("De quoi avons-nous parlé hier ?", True),
        ("¿Qué te conté hace dos semanas?", True),
        ("¿De qué hablamos ayer?", True),
        ("How are you today?", False),
        ("How are you doing today?", False),
        ("What can you do today?", False),
        ("What can you do for me tomorrow?", False),
        ("What's up today?", False),
        ("What have you planned today?", False),
        ("What are your plans today?", False),
        ("What day is it today?", False),
        ("What did you do yesterday?", False),
        ("And you, today?", False),
        ("I have a day off today", False),
        ("Wie geht es dir heute?", False),
        ("Was kannst du heute?", False),
        ("Was hast du heute gemacht?", False),
        ("Comment vas-tu aujourd'hui ?", False),
        ("Que peux-tu faire aujourd'hui ?", False),
        ("¿Cómo estás hoy?", False),
        ("¿Qué puedes hacer hoy?", False),
    ],
)
def test_a_question_about_the_time_alone_is_told_from_one_about_something(
    text: str, only: bool
) -> None:
    assert asked(text).only is only


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "Pacific/Kiritimati", "US/Samoa"])
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))


@given(st.sampled_from([row[0] for row in PAST]), MOMENTS, ZONES)
def test_what_was_never_lies_ahead(text: str, now: datetime, zone: str) -> None:
    found = date_range(text, now, ZoneInfo(zone))
    if "2026" in text and now.year < 2027:
        return  # a day with its year is that day, whenever it is asked about
    assert found is not None and found.kind == "past"
    assert found.start <= found.end <= now.astimezone(ZoneInfo(zone)).date()


@given(st.sampled_from([row[0] for row in AHEAD]), MOMENTS, ZONES)
def test_what_comes_is_never_over(text: str, now: datetime, zone: str) -> None:
    found = date_range(text, now, ZoneInfo(zone))
    assert found is not None and found.kind == "future"
    assert now.astimezone(ZoneInfo(zone)).date() <= found.end and found.start <= found.end


@given(st.text(max_size=200), MOMENTS, ZONES)
def test_no_text_breaks_it(text: str, now: datetime, zone: str) -> None:
    found = date_range(text, now, ZoneInfo(zone))
    assert found is None or found.start <= found.end


def test_the_first_and_last_days_there_are_do_no_harm() -> None:
    for year in (1, 9999):
        now = datetime(year, 6, 1, tzinfo=UTC)
        for text, *_ in PAST + AHEAD:
            date_range(text, now, ZoneInfo("UTC"))


# --- what is found


@pytest.fixture
def mc(open_store: Opener) -> MemChat:
    """Words only: what is found by its day is found by nothing else."""
    return open_store(embedder=None, embed_model="none")


def given_for(mc: MemChat, text: str, kind: str = "memory") -> list[Hit]:
    """What a new conversation is given for a message."""
    reply = mc.user("ana").chat().send(text)
    assert reply.read()
    return [hit for hit in reply.shown.hits if hit.kind == kind]


def dinners(mc: MemChat, clock: FakeClock) -> None:
    """Pizza on 1 April, ramen on 10 April, soup on 30 April; it is 1 May."""
    clock.advance(days=-30)
    for value, days in (("pizza", 9), ("ramen", 20), ("soup", 1)):
        mc.user("ana").memories.add("fact", "dinner", value)
        clock.advance(days=days)
    mc.jobs.embed()


def test_a_question_about_a_time_alone_gives_what_was_said_then(mc, clock) -> None:
    dinners(mc, clock)
    (hit,) = given_for(mc, "What did I say yesterday?")
    assert hit.memory.value == "soup" and hit.channel == "time" and hit.score > 0
    assert [h.memory.value for h in given_for(mc, "What did I tell you in April?")] == [
        "soup",
        "ramen",
        "pizza",
    ]
    assert given_for(mc, "What did I say in February?") == []


def test_a_greeting_that_holds_today_is_given_nothing_that_was_said_today(mc, clock) -> None:
    dinners(mc, clock)
    mc.user("ana").memories.add("fact", "boat", "a red kayak")
    for text in ("How are you today?", "What can you do today?", "Wie geht es dir heute?"):
        assert given_for(mc, text) == []
    assert [hit.memory.value for hit in given_for(mc, "What did I say today?")] == ["a red kayak"]


def test_a_time_puts_what_was_said_then_first_and_leaves_nothing_out(mc, clock) -> None:
    dinners(mc, clock)
    for text, first in (
        ("What was my dinner on 10 April?", "ramen"),
        ("What was my dinner on 1 April?", "pizza"),
        ("What was my dinner yesterday?", "soup"),
    ):
        found = mc.user("ana").search(text).hits
        assert found[0].memory.value == first and found[0].dated, text
    assert [hit.memory.value for hit in found] == ["soup", "ramen", "pizza"]


def test_a_time_in_which_nothing_was_said_costs_no_answer(mc, clock) -> None:
    dinners(mc, clock)
    found = mc.user("ana").search("What was my dinner last winter?").hits
    assert {hit.memory.value for hit in found} == {"pizza", "ramen", "soup"}
    assert all(hit.dated is None for hit in found)


def test_what_holds_until_a_day_is_found_by_that_day(mc, clock) -> None:
    ana = mc.user("ana")
    ana.memories.add("fact", "trip", "hiking in Madeira", expires_at=date(2026, 5, 3))
    ana.memories.add("fact", "boat", "a red kayak")
    ana.memories.add("fact", "visitor", "Bo", expires_at=date(2026, 5, 1))
    mc.jobs.embed()
    (hit,) = given_for(mc, "What do I have planned for tomorrow?")
    assert hit.memory.value == "hiking in Madeira"
    assert [h.memory.value for h in given_for(mc, "What do I have today?")][:2] == [
        "Bo",
        "hiking in Madeira",
    ]
    clock.advance(days=3)
    assert given_for(mc, "What do I have planned for tomorrow?") == []


def test_past_conversations_are_found_by_their_day(mc, clock, extract_model) -> None:
    for said in ("The ferry was late", "I repaired the roof"):
        extract_model.replies.append(answer())
        talk(mc, said)
        clock.advance(days=7)
    mc.jobs.run()
    (hit,) = given_for(mc, "What did I tell you last week?", "message")
    assert "I repaired the roof" in hit.text
    (hit, *_) = given_for(mc, "What did I tell you two weeks ago?", "message")
    assert "The ferry was late" in hit.text


def test_a_long_conversation_does_not_hide_what_was_said_that_day_in_another(
    mc, extract_model
) -> None:
    extract_model.replies.append(answer())
    talk(mc, "I sold the kayak")
    chat = mc.user("ana").chat()
    for n in range(question_dates.MOST + 5):
        assert chat.send(f"Line {n} about the garden").read()
    reply = chat.send("What did I tell you today?")
    assert reply.read()
    assert ["I sold the kayak" in hit.text for hit in reply.shown.hits if hit.session_id] == [True]


def test_what_is_over_takes_no_place_of_what_was_said_on_that_day(mc, clock) -> None:
    ana = mc.user("ana")
    ana.memories.add("fact", "boat", "a red kayak")
    for n in range(question_dates.MOST + 5):
        key = f"visitor_{chr(97 + n // 26)}{chr(97 + n % 26)}"
        ana.memories.add("fact", key, "Bo", expires_at=date(2026, 5, 1))
    clock.advance(days=1)
    (hit,) = ana.search("What did I tell you yesterday?").hits
    assert hit.memory.value == "a red kayak"


def test_what_is_out_of_sight_is_not_found_by_its_day_either(mc, clock, extract_model) -> None:
    ana = mc.user("ana")
    ask = "What did I tell you yesterday?"
    mc.user("bo").memories.add("fact", "boat", "of Bo")
    mc.user("ana", app="notes").memories.add("fact", "boat", "of another app")
    hidden = ana.memories.add("fact", "boat", "hidden").id
    muted = ana.memories.add("fact", "garden", "muted").id
    ana.memories.delete(hidden, hold=1000)
    mc.user("ana", app="default").set_memory(False)
    with ana.chat() as off:
        assert off.send("Said with memory off").read()
    mc.user("ana", app="default").set_memory(True)
    extract_model.replies.append(answer(fact("I keep bees", "hobby", "bees")))
    talk(mc, "I keep bees")
    bees = next(m.id for m in ana.memories.list() if m.value == "bees")
    mc.jobs.run()
    clock.advance(days=1)
    chat = ana.chat()
    reply = chat.send(ask)
    assert reply.read()
    assert {hit.memory.value for hit in reply.shown.hits if hit.memory} == {"muted", "bees"}
    for memory_id in (muted, bees):
        ana.sessions.mute(memory_id, chat.session_id)
    reply = chat.send(ask)
    assert reply.read() and reply.shown.hits == ()


def test_the_receipt_tells_that_a_line_was_given_for_its_day(mc, clock) -> None:
    dinners(mc, clock)
    assert given_for(mc, "What was my dinner yesterday?")
    soup = next(line.hit for line in mc.user("ana").sessions.why().lines if "soup" in line.hit.text)
    assert soup.dated == pytest.approx(0.2) and soup.score > soup.dated


@pytest.mark.parametrize(
    ("question", "by_date"),
    [
        ("What did I say in May?", True),
        ("What did I do on 3 March 2025?", True),
        ("What happened in 2024?", True),
        ("What did I say last week?", False),
        ("What did I do two months ago?", False),
        ("What did I do on Tuesday?", False),
    ],
)
def test_days_named_by_a_date_are_told_apart_from_those_named_from_today(question, by_date):
    assert asked(question).by_date == by_date


PHRASES = (
    "a ago in last next the of week weeks month jahre tagen Mai may summer weekend yesterday"
    " Freitag this 3 2026 12. wochenende prochain semaine on until tea and 2026-05-01"
)
PIECES = PHRASES.split()


@given(st.data())
def test_looking_for_names_first_misses_no_day(drawn: st.DataObject) -> None:
    words = unaccented(" ".join(drawn.draw(st.lists(st.sampled_from(PIECES), max_size=7))))
    if not names_day(words):
        assert not any(pattern.search(words) for pattern, _ in question_dates._NAMES)
