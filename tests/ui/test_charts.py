"""Charts as plain markup: nothing is drawn outside them, and no name in them is markup."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from ui import charts

counts = st.lists(st.integers(0, 20_000), min_size=1, max_size=40)


@given(counts)
def test_no_count_is_above_the_top_and_every_line_across_has_a_whole_number(ns: list[int]) -> None:
    first = date(2026, 5, 1)
    top = charts._top([(first + timedelta(days=n), count) for n, count in enumerate(ns)])
    assert top >= max(ns)
    assert top % (charts.LINES - 1) == 0


def drawn() -> None:
    from datetime import date, timedelta

    from ui import charts

    days = [(date(2026, 5, 1) + timedelta(days=n), n) for n in range(3)]
    charts.area(days, "memories")
    charts.columns(days, "messages")
    charts.bars({"<b>tea</b>": 4, "cake": 2})


def test_a_chart_says_in_words_what_it_shows_and_names_are_no_markup() -> None:
    at = AppTest.from_function(drawn).run()
    area, columns, bars = (element.proto.body for element in at.get("html"))
    assert 'aria-label="2 memories on 3 May, 0 on 1 May"' in area
    assert 'aria-label="3 messages from 1 May to 3 May"' in columns
    assert "&lt;b&gt;tea&lt;/b&gt;" in bars
    assert "width:50.0%" in bars
