"""The lists of words: every language has the same kinds, and there are not too many of them."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from memchat.language import lexicon
from memchat.language.text import fold

MOST_ENTRIES = 1_500
NO_WORDS = frozenset(("spaced", "reads_dates", "script", "letters"))
LISTED = [
    (code, kind) for code in lexicon.codes() for kind in lexicon.table(code) if kind not in NO_WORDS
]


def words(code: str, kind: str) -> list[str]:
    return [word for group in lexicon.groups(code, kind) for word in group]


def test_each_language_lists_the_same_kinds() -> None:
    assert len(lexicon.codes()) >= 15
    assert {tuple(lexicon.table(code)) for code in lexicon.codes()} == {tuple(lexicon.table("en"))}


@pytest.mark.parametrize("code", lexicon.codes())
def test_each_entry_is_a_pattern_that_stands_once_in_its_list(code: str) -> None:
    for kind in (kind for each, kind in LISTED if each == code):
        listed = words(code, kind)
        assert sorted(set(listed)) == sorted(listed), kind
        assert not any(re.compile(entry).fullmatch("") for entry in listed), kind
        assert lexicon.pattern(code, kind).search(" ") is None, kind


def test_the_lists_keep_to_their_budget() -> None:
    """A word between commas or slashes is an entry; every file of words is counted."""
    assert sum(len(words(code, kind)) for code, kind in LISTED) <= MOST_ENTRIES
    names = {path.name for path in (files("memchat.language") / "data").iterdir()}
    assert names == {f"{code}.toml" for code in (*lexicon.codes(), "calendar")}


def test_plain_entries_are_spelled_as_folding_leaves_text() -> None:
    plain = [word for code, kind in LISTED for word in words(code, kind)]
    plain += [
        name
        for table in lexicon.calendar().values()
        for lists in table.values()
        for names in lists
        for name in (names if isinstance(names, list) else [names])
    ]
    spelled = [word for word in plain if re.fullmatch(r"[\w' -]+", word)]
    assert len(spelled) > 1_000
    assert [word for word in spelled if fold(word).text != word] == []


def test_every_language_of_the_lists_has_its_calendar() -> None:
    assert set(lexicon.calendar()) == set(lexicon.codes())
    assert all(len(table["weekdays"]) == 7 for table in lexicon.calendar().values())


def test_the_calendar_is_what_its_tool_makes_of_cldr() -> None:
    pytest.importorskip("babel")
    from tools import calendar_names

    made = [calendar_names.table(code) for code in calendar_names.LANGUAGES.split()]
    kept = calendar_names.TARGET.read_text(encoding="utf-8")
    assert kept.split("\n\n", 1)[1].strip() == "\n\n".join(made)


@pytest.mark.parametrize(
    ("kind", "said", "language"),
    [
        ("negation", "ich esse kein fleisch", "de"),
        ("negation", "я не ем мясо", "ru"),
        ("negation", "私は肉を食べない", "ja"),
        ("change", "adesso vivo a torino", "it"),
        ("over", "eu vendi o carro", "pt"),
        ("added", "我也喝茶", "zh"),
    ],
)
def test_a_marker_is_found_in_its_language(kind: str, said: str, language: str) -> None:
    assert lexicon.find_markers(kind, said, (language,))


def test_a_set_phrase_means_nothing_by_its_words() -> None:
    assert not lexicon.find_markers("negation", "i can't wait", ("en",))
    assert lexicon.find_markers("negation", "i can't swim", ("en",))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("i live in porto with my dog", "en"),
        ("ich wohne mit meiner frau in bonn", "de"),
        ("ben bursa'da bir ev aldim, çok güzel", "tr"),
        ("저는 서울에 살아요", "ko"),
    ],
)
def test_the_language_is_told_by_its_words_or_script(text: str, code: str) -> None:
    assert lexicon.languages_of(text)[:1] == (code,)


def test_a_set_phrase_covers_the_marker_in_it_and_no_other_one() -> None:
    said = "no problem, i can't swim, why not, i can't wait, no problem, not now"
    safe = [m.span() for m in lexicon.pattern("en", "harmless").finditer(said)]
    found = lexicon.pattern("en", "negation").finditer(said)
    left = [m.span() for m in found if not any(a < m.end() and m.start() < b for a, b in safe)]
    assert left and len(safe) > 2
    assert [m.span() for m in lexicon.find_markers("negation", said, ("en",))] == left
