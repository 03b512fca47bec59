"""What holds only from a later day."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from benchmarks.lifecycle.phrases import Instant, verdict
from memchat.learn.candidate import Verdict
from tests.support.expiry import FRIDAY, row

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
        ("From May I live in Porto.", "From May", "month:05", "Porto", "05-01"),
        ("From Q2 I live in Porto.", "From Q2", "q2", "Porto", "04-01"),
        ("From next quarter I live in Rome.", "From next quarter", "next:quarter", "Rome", "01-01"),
        ("From next week I live in Porto.", "From next week", "next:week", "Porto", "11-23"),
        ("From the summer I live in Porto.", "From the summer", "summer", "Porto", "06-21"),
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
    year = 2026 if day >= "11" else 2027
    assert given.starts == date.fromisoformat(f"{year}-{day}"), given.reasons
    assert (given.outcome, given.until) == ("accept", None)
    assert not [reason for reason in given.reasons if "start" in reason]


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        ("From next month I live in Porto.", "From next month", "next:year"),
        ("From next month I live in Porto.", "From next month", "soon"),
        ("From Monday I live in Porto.", "From Monday", "weekday:tue"),
        ("From May 2028 I live in Porto.", "From May 2028", "month:may"),
        ("From Q2 I live in Porto.", "From Q2", "q3"),
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
        ("I live in Porto since October.", "since October", "month:10"),
        ("I've lived in Porto since May.", "since May", "month:05"),
        ("Seit Oktober wohne ich in Porto.", "Seit Oktober", "month:10"),
        ("Vivo en Porto desde octubre.", "desde octubre", "month:10"),
        ("Moro em Porto desde outubro.", "desde outubro", "month:10"),
        ("I live in Porto from now on.", "from now on", "today"),
    ],
)
def test_what_starts_today_or_has_started_holds_now(text: str, said: str, code: str) -> None:
    given = started(text, said, code, FRIDAY, value="Porto")
    assert (given.outcome, given.starts) == ("accept", None), given.reasons


def test_a_month_that_was_last_month_may_have_begun_and_is_no_start() -> None:
    given = started("Da ottobre vivo a Pisa.", "Da ottobre", "month:10", FRIDAY, value="Pisa")
    assert (given.outcome, given.starts) == ("accept", None)


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
