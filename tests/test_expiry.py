"""Until when a fact holds: no day is ever off by one, and no nonsense becomes a date."""

from __future__ import annotations

import io
import json
import re
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from benchmarks.lifecycle import phrases as bench
from benchmarks.lifecycle.phrases import Instant, instants, is_right, phrases, verdict
from memchat import MemChat
from memchat.cli import main
from memchat.language.text import find_spans
from memchat.memory.extraction.candidate import Candidate, Quote
from memchat.memory.gate.checks.expiry import places_of
from memchat.memory.gate.types import Case, Turn, Verdict
from memchat.providers.offline.dates import find_when
from memchat.testing import FakeClock
from tests.conftest import Opener, answer, fact

BERLIN = "Europe/Berlin"
FRIDAY = Instant(BERLIN, datetime(2026, 11, 20, 10, tzinfo=UTC), date(2026, 11, 20))
THURSDAY = Instant(BERLIN, datetime(2026, 11, 19, 10, tzinfo=UTC), date(2026, 11, 19))
MONDAY = Instant(BERLIN, datetime(2026, 11, 16, 10, tzinfo=UTC), date(2026, 11, 16))
MAY = Instant(BERLIN, datetime(2026, 5, 4, 10, tzinfo=UTC), date(2026, 5, 4))
JULY = Instant(BERLIN, datetime(2026, 7, 16, 10, tzinfo=UTC), date(2026, 7, 16))


def row(text: str, said: str | None, code: str | None, **more: Any) -> dict[str, Any]:
    quote = more.pop("quote", text.rstrip(".。"))
    given = {"text": text, "quote": quote, "until_said": said, "until": code}
    return {"key": "stay", "value": "Rome", **given, **more}


def in_rome(said: str, code: str | None, when: Instant = FRIDAY) -> tuple[str, str | None]:
    """What becomes of "I am in Rome …", and the last day."""
    given = verdict(row(f"I am in Rome {said}.", said, code), when)
    return given.outcome, given.until and given.until.isoformat()


# --- the file of phrases, in five zones


@pytest.mark.parametrize("phrase", phrases(), ids=lambda p: f"{p['lang']} {p['text']}")
def test_a_phrase_gives_its_day_in_every_zone_at_every_hour(phrase: dict[str, Any]) -> None:
    wrong = [when for when in instants() if not is_right(phrase, when)]
    assert not wrong, (wrong[0], verdict(phrase, wrong[0]))


def test_the_file_covers_languages_zones_and_the_hard_instants() -> None:
    assert len(phrases()) >= 60 and len({p["lang"] for p in phrases()}) >= 5
    moments = list(instants())
    assert len({when.zone for when in moments}) == 5
    for when in moments:
        assert when.said_at.astimezone(ZoneInfo(when.zone)).date() == when.day
    assert {when.day.strftime("%m-%d") for when in moments} >= {"02-29", "12-31", "01-01"}
    offsets = [
        {
            (when.said_at + timedelta(hours=h)).astimezone(ZoneInfo(when.zone)).utcoffset()
            for h in hs
        }
        for when in moments
        for hs in [(-3, 3)]
    ]
    assert sum(len(found) == 2 for found in offsets) >= 5  # summer time begins or ends


def test_the_figure_counts_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    good = next(p for p in phrases() if p["expect"] == "weekday 5")
    monkeypatch.setattr(bench, "phrases", lambda: [good, {**good, "expect": "weekday 4"}])
    (figure,) = bench.measure()
    count = len(list(instants()))
    assert figure.seen == f"{count} of {2 * count}" and figure.met is False


@pytest.mark.parametrize(
    ("said", "code", "day"),
    [
        ("until Friday", "weekday:fri", "2026-11-20"),
        ("until Thursday", "weekday:thu", "2026-11-26"),
        ("for 14 days", "+2w", "2026-12-04"),
        ("for a month", "+1m", "2026-12-20"),
        ("until the end of the week", "end:week", "2026-11-22"),
        ("until the end of next month", "month:dec", "2026-12-31"),
        ("until May 14", "05-14", "2027-05-14"),
        ("until Friday, 4 December", "12-04", "2026-12-04"),
        ("until the 4th", "12-04", "2026-12-04"),
        ("until the first of December", "12-01", "2026-12-01"),
        ("until 3.12.", "12-03", "2026-12-03"),
        ("until 05/06", "05-06", "2027-05-06"),
        ("through the weekend", "weekday:sun", "2026-11-22"),
        ("until 5 pm", "today", "2026-11-20"),
        ("until noon tomorrow", "tomorrow", "2026-11-21"),
        ("until Christmas", "12-25", "2026-12-25"),
        ("until mid-May", "05-15", "2027-05-15"),
        ("until 2027", "2027-12-31", "2027-12-31"),
        ("until Sun", "weekday:sun", "2026-11-22"),
        ("until next Friday", "weekday:fri", "2026-11-27"),
        ("in a rented room for two weeks", "+2w", "2026-12-04"),
        ("until the 21st", "day:21", "2026-11-21"),
        ("before Friday", "before:weekday:fri", "2026-11-26"),
        ("until the end of next week", "end:next_week", "2026-11-29"),
        ("until the end of next year", "end:next_year", "2027-12-31"),
    ],
)
def test_a_phrase_of_a_friday_in_november(said: str, code: str, day: str) -> None:
    assert in_rome(said, code) == ("accept", day)


@pytest.mark.parametrize(
    ("text", "said", "code", "value"),
    [
        ("I am in Rome until Friday of next week.", "until Friday of next week", "fri", "Rome"),
        ("Ich bin bis nächste Woche Freitag in Rom.", "bis nächste Woche Freitag", "fri", "Rom"),
        ("我下周五去罗马出差。", "下周五", "fri", "罗马出差"),
        ("来週の金曜日まで私はローマにいます。", "来週の金曜日まで", "fri", "ローマ"),
        ("저는 다음 주 금요일까지 서귀포에 있어요.", "다음 주 금요일까지", "fri", "서귀포"),
    ],
)
@pytest.mark.parametrize("when", [MONDAY, THURSDAY, FRIDAY], ids=["Monday", "Thursday", "Friday"])
def test_a_day_of_next_week_is_never_one_of_this(
    text: str, said: str, code: str, value: str, when: Instant
) -> None:
    given = verdict(row(text, said, f"weekday:{code}", value=value), when)
    assert (given.outcome, given.until) == ("accept", date(2026, 11, 27)), given.reasons
    wrong = verdict(row(text, said, "weekday:tue", value=value), when)
    assert (wrong.outcome, wrong.until) == ("review", None)


def test_the_week_after_next_waits() -> None:
    given = verdict(
        row("我下下周五去罗马出差。", "下下周五", "weekday:fri", value="罗马出差"), MONDAY
    )
    assert (given.outcome, given.until) == ("review", None)


@pytest.mark.parametrize("when", [THURSDAY, FRIDAY])
def test_next_friday_said_on_the_day_or_the_day_before_is_the_one_after(when: Instant) -> None:
    outcome, until = in_rome("until next Friday", "weekday:fri", when)
    day = date.fromisoformat(str(until))
    assert outcome == "accept" and day.weekday() == 4
    assert 7 <= (day - when.day).days <= 8


# --- where the words and the code disagree


@pytest.mark.parametrize(
    ("said", "code", "when"),
    [
        ("until Friday", "weekday:mon", FRIDAY),
        ("until Friday", "2027-03-12", FRIDAY),  # a Friday in four months
        ("until Friday, May 14", "05-15", FRIDAY),
        ("for two weeks", "+3w", FRIDAY),
        ("until the 14th", "12-15", FRIDAY),
        ("until May", "month:jun", FRIDAY),
        ("until May", "2031-05-31", FRIDAY),
        ("until the end of May", "05-30", FRIDAY),
        ("until the end of next month", "end:month", FRIDAY),
        ("until the end of next year", "end:year", FRIDAY),
        ("until next May", "month:may", MAY),
        ("until next summer", "end:summer", JULY),
        ("until Friday of next week", "+4d", MONDAY),
        ("until Monday in two weeks", "weekday:mon", FRIDAY),
        ("until the last Friday of the month", "weekday:fri", MONDAY),
        ("until the end of the week", "weekday:mon", MONDAY),
        ("until 05/06", "05-07", FRIDAY),
        ("until 2027", "2026-12-31", FRIDAY),
        ("until Easter", "04-05", FRIDAY),  # nobody can tell from the words
        ("until I finish the book", "+1m", FRIDAY),
        ("for this trip", "+1w", FRIDAY),
        ("for 5000 steps", "+5d", FRIDAY),
        ("for years", "+2w", FRIDAY),
        ("for good", "+1y", FRIDAY),
        ("until tonight", "tomorrow", FRIDAY),
    ],
)
def test_words_that_the_code_contradicts_give_no_date(said: str, code: str, when: Instant) -> None:
    outcome, until = in_rome(said, code, when)
    assert until is None
    assert outcome == ("accept" if said == "for good" else "review")


@pytest.mark.parametrize(
    ("text", "said", "code", "value"),
    [
        ("I may move to Rome.", "may", "month:may", "move to Rome"),
        ("In Rome I may be until late.", "may be until late", "month:may", "Rome"),
        ("I march in Rome.", "march", "month:mar", "march in Rome"),
        ("I am in Rome until the march.", "until the march", "month:mar", "Rome"),
        ("I sat in Rome and I was glad.", "sat", "weekday:sat", "sat in Rome"),
        ("We like the sun in Rome.", "sun", "weekday:sun", "sun in Rome"),
        ("Non vado mai a Roma.", "mai", "month:may", "non va mai a Roma"),
    ],
)
def test_a_verb_is_no_month(text: str, said: str, code: str, value: str) -> None:
    given = verdict(row(text, said, code, value=value, key="habit"), FRIDAY)
    assert given.until is None and given.outcome == "review"


@pytest.mark.parametrize("said", ["in May", "until May", "by March", "for March", "May 14"])
def test_a_month_that_is_also_a_verb_is_a_month(said: str) -> None:
    code = "05-14" if said == "May 14" else f"month:{said.split()[1][:3].lower()}"
    outcome, until = in_rome(said, code)
    assert outcome == "accept" and until in ("2027-05-31", "2027-03-31", "2027-05-14")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("until 31 February", "02-31"),
        ("until the year 0", "0000-01-01"),
        ("for 99999 days", "+99999d"),
        ("for 9999 years", "+9999y"),
        ("for 300 years", "+300y"),
        ("until the cows come home", None),
        ("until hell freezes over", "+1y"),
        ("until soon", "soon"),
    ],
)
def test_nonsense_waits_with_a_plain_reason(said: str, code: str | None) -> None:
    given = verdict(row(f"I am in Rome {said}.", said, code), FRIDAY)
    assert given.outcome == "review" and given.until is None
    assert given.candidate.until is None and len(given.reasons) == 1
    assert "\n" not in given.reasons[0]


@pytest.mark.parametrize("said", ["forever", "until I die", "for good"])
def test_what_holds_for_good_has_no_last_day(said: str) -> None:
    assert in_rome(said, None) == ("accept", None)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("until yesterday", None),
        ("until yesterday", "today"),
        ("until last Friday", "weekday:fri"),
        ("until last week", "end:week"),
        ("until 20 October 2026", "2026-10-20"),
    ],
)
def test_what_was_over_when_it_was_said_is_refused(said: str, code: str | None) -> None:
    given = verdict(row(f"I was in Rome {said}.", said, code), FRIDAY)
    assert given.outcome == "refuse"
    assert given.reasons == ("it was already over when it was said",)


@pytest.mark.parametrize(
    ("text", "said", "code", "value"),
    [
        ("I have been learning Turkish for 3 years.", "for 3 years", "+3y", "Turkish"),
        ("I moved to Rome two weeks ago.", "two weeks ago", "+2w", "Rome"),
        ("Ich lerne seit drei Jahren Türkisch.", "drei Jahren", "+3y", "Türkisch"),
        ("J'habite à Lyon depuis deux ans.", "depuis deux ans", "+2y", "Lyon"),
        ("Vivo en Vigo desde hace dos meses.", "desde hace dos meses", "+2m", "Vigo"),
    ],
)
def test_how_long_it_has_been_so_is_not_how_long_it_will_be(
    text: str, said: str, code: str, value: str
) -> None:
    given = verdict(row(text, said, code, value=value), FRIDAY)
    assert (given.outcome, given.until) == ("doubt", None)
    assert "may be how long it has been so" in given.reasons[0]


# --- whose end it is


@pytest.mark.parametrize(
    ("text", "quote", "said", "value"),
    [
        ("I live in Porto. My visa runs until June.", "I live in Porto", "until June", "Porto"),
        ("My visa runs until June. I live in Porto.", "I live in Porto", "until June", "Porto"),
        ("I live in Porto and my visa runs until June.", "I live in Porto", "until June", "Porto"),
        ("I live in Porto, my visa runs until June.", "I live in Porto", "until June", "Porto"),
        (
            "I live in Porto and my visa runs until June.",
            "I live in Porto and my visa runs until June",
            "until June",
            "Porto",
        ),
        ("I live in Porto. Hm. It is wet until June.", "I live in Porto", "until June", "Porto"),
        ("Ich wohne in Bonn, mein Visum läuft bis Juni.", "Ich wohne in Bonn", "bis Juni", "Bonn"),
        ("J'habite à Lyon et mon visa expire en juin.", "J'habite à Lyon", "en juin", "Lyon"),
        ("Vivo en Vigo. Mi contrato termina en junio.", "Vivo en Vigo", "en junio", "Vigo"),
        ("私は京都に住んでいる。ビザは6月までです。", "私は京都に住んでいる", "6月まで", "京都"),
    ],
)
def test_a_date_of_another_thing_is_not_borrowed(
    text: str, quote: str, said: str, value: str
) -> None:
    given = verdict(row(text, said, "month:jun", quote=quote, value=value, key="city"), FRIDAY)
    assert given.outcome == "doubt" and given.until is None
    assert "the end date is said of something else; it may not end then" in given.reasons


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("I am in Porto. Only until June.", "I am in Porto"),
        ("I am in Porto. It lasts until June.", "I am in Porto"),
        ("I am in Porto for work, staying until June.", "I am in Porto for work"),
        ("Until June, I am in Porto.", "I am in Porto"),
        ("My visa runs until June and I am in Porto until June.", "I am in Porto until June"),
    ],
)
def test_a_date_said_beside_it_is_its_own(text: str, quote: str) -> None:
    given = verdict(row(text, "until June", "month:jun", quote=quote, value="Porto"), FRIDAY)
    assert (given.outcome, given.until) == ("accept", date(2027, 6, 30)), given.reasons


# --- what only starts later


def started(text: str, said: str | None, code: str | None, when: Instant, **more: Any) -> Verdict:
    """What becomes of a sentence whose start the model gave in words and a code."""
    return verdict(
        {**row(text, None, None, key="city", **more), "from_said": said, "from": code}, when
    )


@pytest.mark.parametrize(
    ("text", "said", "code", "value", "day"),
    [
        ("From next month I live in Porto.", "From next month", "next:month", "Porto", "12-01"),
        ("From next month I live in Porto.", "From next month", "+1m", "Porto", "12-20"),
        ("Starting the 21st I live in Porto.", "Starting the 21st", "day:21", "Porto", "11-21"),
        ("From tomorrow I live in Porto.", "From tomorrow", "tomorrow", "Porto", "11-21"),
        ("Starting in two weeks I live in Rome.", "Starting in two weeks", "+2w", "Rome", "12-04"),
        ("Ab Montag wohne ich in Bonn.", "Ab Montag", "weekday:mon", "Bonn", "11-23"),
        ("Ab Dezember wohne ich in Bonn.", "Ab Dezember", "month:dec", "Bonn", "12-01"),
        ("À partir de lundi je vis à Lyon.", "À partir de lundi", "weekday:mon", "Lyon", "11-23"),
        ("Desde el 1 de mayo vivo en Vigo.", "Desde el 1 de mayo", "05-01", "Vigo", "05-01"),
        ("Da lunedì vivo a Pisa.", "Da lunedì", "weekday:mon", "Pisa", "11-23"),
        ("Vanaf maandag woon ik in Gent.", "Vanaf maandag", "weekday:mon", "Gent", "11-23"),
        ("私は来月から京都に住みます。", "来月から", "next:month", "京都", "12-01"),
        ("我下个月开始住在上海。", "下个月开始", "next:month", "上海", "12-01"),
        ("저는 다음 달부터 서울에 살아요.", "다음 달부터", "next:month", "서울", "12-01"),
    ],
)  # fmt: skip
def test_a_start_that_lies_ahead_is_a_day(
    text: str, said: str, code: str, value: str, day: str
) -> None:
    given = started(text, said, code, FRIDAY, value=value)
    year = 2027 if day.startswith("05") else 2026
    assert given.starts == date.fromisoformat(f"{year}-{day}"), given.reasons
    assert given.outcome in ("accept", "doubt") and given.until is None
    assert not [reason for reason in given.reasons if "start" in reason]


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        ("From next month I live in Porto.", "From next month", "next:year"),
        ("From next month I live in Porto.", "From next month", "soon"),
        ("From Monday I live in Porto.", "From Monday", "weekday:tue"),
        ("From May 2028 I live in Porto.", "From May 2028", "month:may"),
        ("From my birthday on I live in Porto.", "From my birthday on", "month:may"),
    ],
)
def test_a_start_that_cannot_be_read_waits_for_a_person(text: str, said: str, code: str) -> None:
    given = started(text, said, code, FRIDAY, value="Porto")
    assert (given.outcome, given.starts) == ("review", None)
    assert any(reason.startswith("the start date could not be read") for reason in given.reasons)


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        ("From today I live in Porto.", "From today", "today"),
        ("I live in Porto since Monday.", "since Monday", "2026-11-16"),
        ("From November I live in Porto.", "From November", "month:nov"),
        ("I live in Porto from now on.", "from now on", "today"),
    ],
)
def test_what_starts_today_or_has_started_holds_now(text: str, said: str, code: str) -> None:
    given = started(text, said, code, FRIDAY, value="Porto")
    assert (given.outcome, given.starts) == ("accept", None), given.reasons


def test_what_would_end_before_it_starts_is_refused() -> None:
    text = "From Monday I live in Porto until Sunday."
    proposed = row(text, "until Sunday", "weekday:sun", key="city", value="Porto")
    given = verdict({**proposed, "from_said": "From Monday", "from": "weekday:mon"}, FRIDAY)
    assert (given.outcome, given.reasons) == ("refuse", ("it would end before it starts",))


def test_a_stay_from_one_day_until_another_keeps_both() -> None:
    text = "From Monday I live in Porto until the 30th."
    proposed = row(text, "until the 30th", "day:30", key="city", value="Porto")
    given = verdict({**proposed, "from_said": "From Monday", "from": "weekday:mon"}, FRIDAY)
    assert (given.starts, given.until) == (date(2026, 11, 23), date(2026, 11, 30)), given.reasons


def test_a_start_that_nobody_said_is_dropped() -> None:
    given = started("I live in Porto.", "from Monday", "weekday:mon", FRIDAY, value="Porto")
    assert (given.outcome, given.starts) == ("accept", None)
    assert given.reasons == ("the start date was dropped: the user gave no words for it",)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("From next month I live in Porto.", "city", "Porto"),
        ("Next month I move to Porto.", "city", "Porto"),
        ("I work at Harland as of June 2027.", "employer", "Harland"),
        ("I start as a nurse at Harland on Monday.", "job", "nurse at Harland"),
        ("From next month I no longer eat meat.", "diet", "no longer eats meat"),
        ("Ab Montag bin ich vegan.", "diet", "vegan"),
        ("Ab nächstem Monat wohne ich in Bonn.", "city", "Bonn"),
        ("Ab dem 1. Mai wohne ich in Bonn.", "city", "Bonn"),
        ("À partir de lundi je travaille chez Airbus.", "employer", "Airbus"),
        ("Dès demain je suis végétarien.", "diet", "végétarien"),
        ("A partir de mañana trabajo en Inditex.", "employer", "Inditex"),
        ("El próximo mes vivo en Vigo.", "city", "Vigo"),
        ("Vanaf maandag werk ik bij Philips.", "employer", "Philips"),
    ],
)
def test_a_start_in_words_alone_asks_for_a_second_look(text: str, key: str, value: str) -> None:
    given = verdict(row(text, None, None, key=key, value=value), FRIDAY)
    assert given.outcome == "doubt"
    signs = [reason for reason in given.reasons if reason.startswith("it may only start later: ")]
    assert len(signs) == 1, given.reasons


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("I've lived in Porto since March.", "city", "Porto"),
        ("Starting today I am vegan.", "diet", "vegan"),
        ("I work from home from Monday to Friday.", "work_place", "from home"),
        ("I live in Lisbon, from next month my rent goes up.", "city", "Lisbon"),
        ("I am from March, near Cambridge.", "hometown", "March"),
        ("From 2019 I've worked at Harland.", "employer", "Harland"),
        ("Seit Montag bin ich vegan.", "diet", "vegan"),
        ("Ab sofort bin ich vegan.", "diet", "vegan"),
        ("Depuis lundi je travaille chez Airbus.", "employer", "Airbus"),
        ("Desde marzo vivo en Vigo.", "city", "Vigo"),
    ],
)
def test_what_holds_already_does_not_wait(text: str, key: str, value: str) -> None:
    quote = text.split(",")[0].rstrip(".")
    given = verdict(row(text, None, None, key=key, value=value, quote=quote), FRIDAY)
    assert given.outcome == "accept", given.reasons


def test_a_move_next_month_is_stored_with_its_first_day(mc: MemChat, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    with ana.chat() as chat:
        chat.send("I live in Lisbon.")
    coming = {"from_said": "From next month", "from": "next:month", "to": "k1", "is": "updates"}
    moved = fact("From next month I live in Porto", "city", "Porto", **coming)
    extract_model.replies.append(answer(moved))
    with ana.chat() as chat:
        chat.send("From next month I live in Porto.")
    stored = [(m.value, m.starts_at) for m in ana.memories.list()]
    assert ("Porto", date(2026, 6, 1)) in stored


# --- the offline provider reads the same phrases by patterns


def test_the_offline_provider_names_the_right_code_or_none() -> None:
    read = 0
    known = [p for p in phrases() if p["lang"] in ("en", "de") and p["until"]]
    good = [p for p in known if p["expect"] not in ("review", "refuse", None)]
    for phrase in good:
        codes = {when.code for when in find_when(phrase["text"])}
        assert codes <= {phrase["until"]}, phrase
        read += bool(codes)
    assert read >= len(good) - 1
    for text in ("I had it until last Friday.", "I swim every Friday.", "Seit Montag bin ich da."):
        assert find_when(text) == []


# --- in the store: the last day is whole, and then it is over


ZONES = (
    "Pacific/Auckland",
    "Asia/Kolkata",
    "Europe/Berlin",
    "America/New_York",
    "Pacific/Honolulu",
)


def tell(mc: MemChat, model: Any, text: str, said: str, code: str, value: str) -> None:
    model.replies.append(answer(fact(text.rstrip("."), "stay", value, until_said=said, until=code)))
    with mc.user("ana").chat() as chat:
        chat.send(text)


def injected(mc: MemChat, chat_model: Any, question: str) -> str:
    with mc.user("ana").chat() as chat:
        assert chat.send(question).text
        block = str(chat_model.requests[-1].messages[0].content)
        chat.abandon()
    return block


@pytest.mark.parametrize("zone", ZONES)
def test_a_fact_holds_the_whole_last_day_of_its_user_and_no_longer(
    open_store: Opener, chat_model, extract_model, zone: str
) -> None:
    clock = FakeClock(datetime(2026, 3, 24, 12, tzinfo=ZoneInfo(zone)))  # a Tuesday
    mc = open_store(timezone=zone, clock=clock)
    ana = mc.user("ana")
    tell(
        mc, extract_model, "I am in Utrecht until Sunday.", "until Sunday", "weekday:sun", "Utrecht"
    )
    (memory,) = ana.memories.list()
    assert memory.expires_at == date(2026, 3, 29)  # when summer time begins in Berlin
    clock.now = datetime(2026, 3, 29, 23, 59, 59, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    assert ana.memories.list() and ana.search("Utrecht").hits
    clock.advance(seconds=1)
    assert not ana.memories.list() and ana.memories.list(status="expired")
    (moment,) = ana.search("Utrecht").hits
    assert moment.kind == "message" and moment.since_changed == (memory.key,)


def test_an_old_chat_read_late_counts_from_its_own_day(
    open_store: Opener, chat_model, extract_model
) -> None:
    clock = FakeClock(datetime(2019, 6, 12, 9, tzinfo=UTC))  # a Wednesday
    mc = open_store(clock=clock)
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(
            fact(
                "I am in Utrecht until Friday",
                "stay",
                "Utrecht",
                until_said="until Friday",
                until="weekday:fri",
            )
        )
    )
    chat = ana.chat()
    chat.send("I am in Utrecht until Friday.")
    chat.end(wait=False)
    clock.now = datetime(2026, 11, 20, 9, tzinfo=UTC)
    mc.jobs.run(user="ana")
    (memory,) = ana.memories.list(status="expired")
    assert memory.expires_at == date(2019, 6, 14)
    assert not ana.memories.list()
    chat_model.replies.appendleft("No idea.")
    (line,) = re.findall(r"^- .*Utrecht.*$", injected(mc, chat_model, "Am I in Utrecht?"), re.M)
    assert "2019-06-12 user:" in line and line.endswith("(since changed: stay)")


def test_a_date_counts_from_the_message_that_names_it(
    open_store: Opener, chat_model, extract_model
) -> None:
    clock = FakeClock(datetime(2026, 11, 19, 22, 55, tzinfo=UTC))  # 23:55 in Berlin
    mc = open_store(clock=clock)
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(
            {
                **fact("", "stay", "Utrecht", until_said="until tomorrow", until="tomorrow"),
                "quotes": [
                    {"msg": "u1", "text": "I am in Utrecht until tomorrow"},
                    {"msg": "u3", "text": "Utrecht is great"},
                ],
            }
        )
    )
    with ana.chat() as chat:
        chat.send("I am in Utrecht until tomorrow.")
        clock.advance(seconds=600)
        chat.send("Utrecht is great.")
    (memory,) = ana.memories.list()
    assert memory.expires_at == date(2026, 11, 20)


def test_expired_facts_are_never_shown_and_never_take_the_place_of_others(
    mc: MemChat, clock: FakeClock, chat_model
) -> None:
    ana = mc.user("ana")
    for number in range(60):
        ana.memories.add(
            "fact",
            f"meeting_{'abcdefghij'[number % 10] * (number // 10 + 1)}",
            f"project meeting about the Helsinki budget {number}",
            expires_at=date(2026, 5, 2),
        )
    kept = ana.memories.add("fact", "venue", "the Helsinki budget talks are at Kallio hall")
    clock.advance(days=3)
    found = ana.search("project meeting about the Helsinki budget", limit=5)
    assert [hit.id for hit in found.hits] == [kept.id]
    assert len(ana.memories.list(status="expired")) == 60  # the sweep has not come by yet
    block = injected(mc, chat_model, "Where is the project meeting about the Helsinki budget?")
    assert "Kallio" in block and "project meeting about" not in block


# --- what will soon be over


def test_the_expiring_are_listed_soonest_first(mc: MemChat, clock: FakeClock) -> None:
    ana = mc.user("ana")
    clock.advance(days=-3)
    ana.memories.add("fact", "over", "over", expires_at=date(2026, 4, 30))
    clock.advance(days=3)
    days = {"late": 60, "soon": 2, "today": 0, "month": 30, "after": 31}
    for key, ahead in days.items():
        until = date(2026, 5, 1) + timedelta(days=ahead)
        ana.memories.add("fact", key, key, expires_at=until)
    ana.memories.add("fact", "lasting", "lasting")

    def keys(**more: Any) -> list[str]:
        return [m.key for m in ana.memories.list(status="expiring", **more)]

    assert keys() == ["today", "soon", "month"]
    assert keys(within=2) == ["today", "soon"]
    assert keys(within=10**9) == ["today", "soon", "month", "after", "late"]
    assert keys(within=2, limit=1, offset=1) == ["soon"]
    assert ana.memories.count(status="expiring", within=2) == 2


def test_the_command_lists_the_expiring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMCHAT_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "none")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with MemChat(home=tmp_path / "store") as mc:
        ana = mc.user("ana")
        today = datetime.now(mc.settings.zone).date()
        for key, ahead in (("far", 20), ("near", 3), ("beyond", 90)):
            ana.memories.add("fact", key, key, expires_at=today + timedelta(days=ahead))
        ana.memories.add("fact", "lasting", "lasting")

    def listed(*args: str) -> list[str]:
        capsys.readouterr()
        assert main(["memories", "list", "--user", "ana", "--json", *args]) == 0
        return [memory["key"] for memory in json.loads(capsys.readouterr().out)]

    assert listed("--expiring") == ["near", "far"]
    assert listed("--expiring", "7") == ["near"]
    assert listed("--expiring", "100") == ["near", "far", "beyond"]
    assert listed("--status", "expiring") == ["near", "far"]
    assert main(["memories", "list", "--user", "ana", "7"]) == 2
    assert "goes with --expiring" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        ("I'm on leave until early January", "until early January", "month:jan"),
        ("I'm away until mid December", "until mid December", "month:dec"),
        ("I'm away before Tuesday", "before Tuesday", "weekday:tue"),
        ("I'm in Rome for a day or two", "for a day or two", "+1d"),
        ("I'm off until the week after next", "until the week after next", "+1w"),
        ("I work until 6", "until 6", "2026-12-06"),
    ],
)
def test_a_vague_or_elapsed_time_never_ends_on_a_day(text: str, said: str, code: str) -> None:
    given = verdict(row(text, said, code, key="status", value=text, quote=text), FRIDAY)
    assert (given.outcome, given.until) == ("review", None)


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        ("I'm married for 10 years", "for 10 years", "+10y"),
        ("I'm with Bosch for three years now", "for three years", "+3y"),
    ],
)
def test_a_state_told_by_its_length_asks_for_a_second_look(text: str, said: str, code: str) -> None:
    given = verdict(row(text, said, code, key="status", value=text, quote=text), FRIDAY)
    assert (given.outcome, given.until) == ("doubt", None)


def test_every_friday_is_a_habit_and_never_an_end() -> None:
    text = "I'm on call every Friday"
    proposed = row(text, "every Friday", "weekday:fri", key="status", value=text, quote=text)
    given = verdict(proposed, FRIDAY)
    assert (given.outcome, given.until) == ("accept", None)


def test_of_a_phrase_said_very_often_the_places_nearest_to_the_quote_are_read() -> None:
    gym = "7 Friday gym session with Ana\n"
    text = f"{gym * 300}I am in Rome until Friday.\n{gym * 300}"
    turn = Turn("u1", "user", text, FRIDAY.said_at, 1)
    quotes = (Quote(msg="u1", text="I am in Rome"),)
    item = Candidate(type="fact", key="stay", value="Rome", quotes=quotes)
    case = Case(item, [turn], [], "", (), ZoneInfo(BERLIN), ())
    quote = find_spans("I am in Rome", text)[0]
    case.proofs.append((turn, quote))
    starts = [span.start for _, span in places_of("Friday", case)]
    assert len(starts) == 20 and starts == sorted(starts)
    assert starts[0] < text.index("until") < starts[-1]
    assert text.index("Friday.") in starts
    assert all(abs(start - quote.start) < 20 * len(gym) for start in starts)


def test_a_phrase_that_stands_only_in_pasted_words_gives_no_day() -> None:
    text = "I am in Rome.\n```\nOpen until Friday.\n```\n"
    given = verdict(row(text, "until Friday", "weekday:fri", quote="I am in Rome"), FRIDAY)
    assert given.until is None
