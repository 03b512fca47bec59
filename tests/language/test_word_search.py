"""Finding the words of a search in texts of any script."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat.language.text import folded, holds_all, places

SCRIPTS = st.text("aBÉçßıİæﬁＡ1½ мЙ一二かがハﾊ한שׁالإक़ไ👍🏽 -_", max_size=12)


@pytest.mark.parametrize(
    ("query", "text", "shown"),
    [
        ("sao", "From São Paulo", "From [São] Paulo"),
        ("STRASSE", "Lange Straße 1", "Lange [Straße] 1"),
        ("école", "L'ECOLE; école", "L'[ECOLE]; [école]"),
        ("лисс", "Я живу в Лиссабоне", "Я живу в [Лисс]абоне"),
        ("東京", "私は東京に住む", "私は[東京]に住む"),
        ("שלום", "אמר שָׁלוֹם", "אמר [שָׁלוֹם]"),
        ("ana an", "Banana", "B[anana]"),
        ("office", "the oﬃce", "the [oﬃce]"),
        ("bread 100%", "100% rye bread", "[100%] rye [bread]"),
        ("rome", "Lisbon", "Lisbon"),
        ("", "Lisbon", "Lisbon"),
    ],
)
def test_the_words_are_found_whatever_their_case_width_and_accents(
    query: str, text: str, shown: str
) -> None:
    text, shown = (unicodedata.normalize("NFC", each) for each in (text, shown))
    marked = text
    for start, end in reversed(places(query, text)):
        marked = f"{marked[:start]}[{marked[start:end]}]{marked[end:]}"
    assert marked == shown


@given(SCRIPTS, SCRIPTS)
def test_a_text_holds_a_query_exactly_where_each_of_its_words_has_a_place(
    query: str, text: str
) -> None:
    text = unicodedata.normalize("NFC", text)
    each = [bool(places(word, text)) for word in folded(query).split()]
    assert holds_all(folded(query), text) == all(each)
