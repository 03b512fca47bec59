from __future__ import annotations

import contextlib
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat.errors import InputError
from memchat.language.calendar import coded_days

FRIDAY = date(2026, 11, 20)


@pytest.mark.parametrize(
    ("code", "day"),
    [
        ("today", "2026-11-20"),
        ("tomorrow", "2026-11-21"),
        ("+3d", "2026-11-23"),
        ("+2w", "2026-12-04"),
        ("+1m", "2026-12-20"),
        ("+1y", "2027-11-20"),
        ("weekday:fri", "2026-11-20"),
        ("weekday:thu", "2026-11-26"),
        ("weekday:Thursday", "2026-11-26"),
        ("end:week", "2026-11-22"),
        ("end:month", "2026-11-30"),
        ("end:year", "2026-12-31"),
        ("end:q4", "2026-12-31"),
        ("end:q2", "2027-06-30"),
        ("end:quarter", "2026-12-31"),
        ("end:autumn", "2026-12-20"),
        ("end:winter", "2027-03-19"),
        ("end:spring", "2027-06-20"),
        ("end:summer", "2027-09-22"),
        ("month:may", "2027-05-31"),
        ("month:nov", "2026-11-30"),
        ("month:05", "2027-05-31"),
        ("month:5", "2027-05-31"),
        ("q4", "2026-12-31"),
        ("q2", "2027-06-30"),
        ("summer", "2027-09-22"),
        ("winter", "2027-03-19"),
        ("next:quarter", "2027-03-31"),
        ("end:next_quarter", "2027-03-31"),
        ("before:q2", "2027-03-31"),
        ("2027-03-14", "2027-03-14"),
        ("11-20", "2026-11-20"),
        ("11-19", "2027-11-19"),
        ("02-29", "2028-02-29"),
        ("day:21", "2026-11-21"),
        ("day:20", "2026-11-20"),
        ("day:3", "2026-12-03"),
        ("day:31", "2026-12-31"),
        ("before:weekday:wed", "2026-11-24"),
        ("before:weekday:fri", "2026-11-26"),
        ("before:month:may", "2027-04-30"),
        ("before:12-24", "2026-12-23"),
        ("before:next:week", "2026-11-22"),
        ("end:next_week", "2026-11-29"),
        ("end:next_month", "2026-12-31"),
        ("end:next_year", "2027-12-31"),
        ("next:month", "2026-12-31"),
        ("year:next", "2027-12-31"),
    ],
)
def test_a_form_names_the_last_day_it_holds(code: str, day: str) -> None:
    assert coded_days(code, FRIDAY)[1].isoformat() == day


@pytest.mark.parametrize(
    ("code", "day"),
    [
        ("tomorrow", "2026-11-21"),
        ("+2w", "2026-12-04"),
        ("weekday:mon", "2026-11-23"),
        ("day:21", "2026-11-21"),
        ("month:may", "2027-05-01"),
        ("month:nov", "2026-11-01"),
        ("month:05", "2027-05-01"),
        ("q4", "2026-10-01"),
        ("q1", "2027-01-01"),
        ("q2", "2027-04-01"),
        ("next:quarter", "2027-01-01"),
        ("spring", "2027-03-20"),
        ("summer", "2027-06-21"),
        ("autumn", "2026-09-23"),
        ("winter", "2026-12-21"),
        ("next:week", "2026-11-23"),
        ("next:month", "2026-12-01"),
        ("next:year", "2027-01-01"),
        ("year:next", "2027-01-01"),
        ("end:month", "2026-11-30"),
        ("2027-03-14", "2027-03-14"),
        ("05-01", "2027-05-01"),
    ],
)
def test_a_form_names_the_first_day_it_holds(code: str, day: str) -> None:
    assert coded_days(code, FRIDAY)[0].isoformat() == day


def test_a_month_is_cut_to_the_days_it_has() -> None:
    assert coded_days("+1m", date(2027, 1, 31))[1] == date(2027, 2, 28)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "soon",
        "+2",
        "+99999d",
        "weekday:xyz",
        "month:xyz",
        "month:13",
        "month:00",
        "q5",
        "week",
        "end:q5",
        "end:decade",
        "13-01",
        "02-30",
        "2027-02-29",
        "2027-3-1",
        "next friday",
        "+9999y",
        "end:",
        "٢٠٢٧-٠١-٠١",
    ],
)
def test_nonsense_is_an_input_error_of_one_line(code: str) -> None:
    with pytest.raises(InputError) as error:
        coded_days(code, FRIDAY)
    assert "\n" not in str(error.value)


@given(st.text(max_size=20), st.dates())
def test_no_text_breaks_it(code: str, day: date) -> None:
    with contextlib.suppress(InputError):
        assert isinstance(coded_days(code, day)[1], date)


@given(
    st.dates(min_value=date(1990, 1, 1), max_value=date(2200, 1, 1)),
    st.sampled_from(
        [
            "today",
            "weekday:mon",
            "end:week",
            "end:month",
            "end:q1",
            "end:summer",
            "month:feb",
            "12-31",
            "02-29",
            "+0d",
        ]
    ),
)
def test_a_form_without_a_year_never_lies_in_the_past(day: date, code: str) -> None:
    assert coded_days(code, day)[1] >= day
