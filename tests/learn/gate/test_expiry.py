"""Until when a fact holds: no day is ever off by one, and no nonsense becomes a date."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from benchmarks.lifecycle import phrases as bench
from benchmarks.lifecycle.phrases import Instant, instants, is_right, phrases, verdict
from memchat.language.sentences import find_spans
from memchat.learn.candidate import Candidate, Case, Quote, Turn
from memchat.learn.dates import phrase_places
from memchat.learn.gate import judge
from tests.support.expiry import BERLIN, FRIDAY, row

THURSDAY = Instant(BERLIN, datetime(2026, 11, 19, 10, tzinfo=UTC), date(2026, 11, 19))
MONDAY = Instant(BERLIN, datetime(2026, 11, 16, 10, tzinfo=UTC), date(2026, 11, 16))
MAY = Instant(BERLIN, datetime(2026, 5, 4, 10, tzinfo=UTC), date(2026, 5, 4))
JULY = Instant(BERLIN, datetime(2026, 7, 16, 10, tzinfo=UTC), date(2026, 7, 16))


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
        ("next week", "next:week", "2026-11-29"),
        ("until the end of next quarter", "end:next_quarter", "2027-03-31"),
        ("through Q2", "q2", "2027-06-30"),
        ("in May", "month:05", "2027-05-31"),
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
    assert (wrong.outcome, wrong.until) == ("accept", None) and wrong.asks


def test_the_week_after_next_is_asked_about() -> None:
    given = verdict(
        row("我下下周五去罗马出差。", "下下周五", "weekday:fri", value="罗马出差"), MONDAY
    )
    assert (given.outcome, given.until) == ("accept", None) and given.asks


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
    assert outcome == "accept"


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
    assert given.until is None and given.asks is not None


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
        ("for 9999 years", "+1y"),
        ("Monday in 99999 weeks", "weekday:mon"),
        ("for 300 years", "+300y"),
        ("until the cows come home", None),
        ("until hell freezes over", "+1y"),
        ("until soon", "soon"),
    ],
)
def test_an_end_that_cannot_be_read_is_kept_in_words_and_asked_about(
    said: str, code: str | None
) -> None:
    given = verdict(row(f"I am in Rome {said}.", said, code), FRIDAY)
    assert (given.outcome, given.until, given.candidate.until) == ("accept", None, None)
    assert given.candidate.value.endswith(f" ({said})")
    assert given.asks == f"the end date could not be read: “{said}”"


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
    assert (given.outcome, given.until, given.asks) == ("accept", None, None)
    assert given.candidate.value == value


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
    assert (given.outcome, given.until, given.candidate.value) == ("accept", None, value)


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


def test_a_clause_that_is_quoted_for_its_end_says_it_of_the_fact() -> None:
    said = ("Esta semana no como carne.", "Gracias. El domingo se acaba y celebro con un asado.")
    turns = [Turn(f"u{n}", "user", text, FRIDAY.said_at, n) for n, text in enumerate(said, 1)]
    candidate = Candidate(
        quotes=(
            Quote(msg="u1", text="Esta semana no como carne"),
            Quote(msg="u2", text="El domingo se acaba"),
        ),
        type="fact",
        key="diet",
        value="no como carne",
        until_said="El domingo",
        until="weekday:sun",
    )
    given = judge(candidate, turns, (), prompt_text="", injected=())
    assert (given.outcome, given.until) == ("accept", date(2026, 11, 22)), given.reasons


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
    assert given.until is None and given.asks is not None


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        ("I'm married for 10 years", "for 10 years", "+10y"),
        ("I'm with Bosch for three years now", "for three years", "+3y"),
    ],
)
def test_a_state_told_by_its_length_has_no_end(text: str, said: str, code: str) -> None:
    given = verdict(row(text, said, code, key="status", value=text, quote=text), FRIDAY)
    assert (given.outcome, given.until, given.asks) == ("accept", None, None)


@pytest.mark.parametrize("code", ["month:10", "2026-10-01"])
@pytest.mark.parametrize("said", ["since October", "seit Oktober", "desde octubre"])
def test_since_when_it_has_been_so_is_no_end(said: str, code: str) -> None:
    given = verdict(row(f"Rome {said}.", said, code), FRIDAY)
    assert given.outcome != "refuse" and given.until is None
    assert "the words for its end say since when it has been so" in given.reasons


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
    case = Case(item, [turn], [], "", (), ())
    quote = find_spans("I am in Rome", text)[0]
    case.proofs.append((turn, quote))
    starts = [span.start for _, span in phrase_places("Friday", case)]
    assert len(starts) == 20 and starts == sorted(starts)
    assert starts[0] < text.index("until") < starts[-1]
    assert text.index("Friday.") in starts
    assert all(abs(start - quote.start) < 20 * len(gym) for start in starts)


def test_a_phrase_that_stands_only_in_pasted_words_gives_no_day() -> None:
    text = "I am in Rome.\n```\nOpen until Friday.\n```\n"
    given = verdict(row(text, "until Friday", "weekday:fri", quote="I am in Rome"), FRIDAY)
    assert given.until is None
