from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memchat.language.sentences import find_span, next_sentence, sentence_around
from memchat.language.text import content_words, fold, names, normal_value, numbers
from memchat.learn.own_words import mark_quoted, quoted_spans

SENTENCES = [
    "I don't eat meat – it's been 3 years, mostly",
    "Ich wohne in Köln, und die Straße heißt Große Gasse",
    "J'habite à Nantes depuis 2019, près de l'école",
    "Vivo en Sevilla con mi hermano Iván, ¿sabes",
    "İzmir'de oturuyorum ve her sabah 6:30'da koşuyorum",
    "मैं पुणे में रहता हूँ और चाय पीता हूँ",
    "أنا أعيش في عمان وأعمل مهندسا",
    "私は京都に住んでいて、猫を二匹飼っています",
]
DAMAGE = {
    "doubled space": lambda s: s.replace(" ", "  "),
    "no-break space": lambda s: s.replace(" ", "\u00a0"),
    "line break": lambda s: s.replace(" ", "\n", 1),
    "curly apostrophe": lambda s: s.replace("'", "\u2019"),
    "hyphen for a dash": lambda s: s.replace("\u2013", "-"),
    "full stop": lambda s: s + ".",
    "capitals": lambda s: s.upper() if "ß" not in s and "ı" not in s and "İ" not in s else s,
    "first letter": lambda s: s[0].swapcase() + s[1:],
    "quote marks": lambda s: f"\u201c{s}\u201d",
    "soft hyphen": lambda s: s[:6] + "\u00ad" + s[6:],
    "zero width": lambda s: s[:8] + "\u200b" + s[8:],
    "decomposed": lambda s: __import__("unicodedata").normalize("NFD", s),
}


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_a_keyboard_changes_still_matches(sentence: str, damage: str) -> None:
    message = f"Hello there! {sentence}. Thanks."
    span = find_span(DAMAGE[damage](sentence), message)
    assert span is not None
    assert message[span.start : span.end].startswith(sentence[:5].lstrip("¿"))


@pytest.mark.parametrize("sentence", SENTENCES[:7])
def test_a_dropped_or_changed_word_never_matches(sentence: str) -> None:
    words = sentence.split()
    assert find_span(" ".join(words[:2] + words[3:]), sentence) is None
    assert find_span(sentence.replace(words[2], words[2] + "x"), sentence) is None


@pytest.mark.parametrize(
    ("quote", "message"),
    [
        ("1.5 km", "I run 15 km"),
        ("15 km", "I run 1.5 km"),
        ("5 km", "I run 1.5 km"),
        ("200 euros", "I have 1,200 euros"),
        ("102 people", "10² people"),
        ("5 degrees", "it is -5 degrees"),
        ("like tea", "I dislike tea"),
        ("t like tea", "I don't like tea"),
        ("he lives in Oslo", "I live in Oslo"),
        ("Ana", "Anaïs"),
        ("京都", "私は京都に住んでいます"),
        ("...", "well ... yes"),
        ("", "anything"),
        ("!?", "what!?"),
    ],
)
def test_what_changes_the_meaning_never_matches(quote: str, message: str) -> None:
    assert find_span(quote, message) is None


def test_digits_of_other_scripts_are_digits() -> None:
    assert find_span("عندي 3 قطط", "عندي ٣ قطط") is not None
    assert find_span("عندي 4 قطط", "عندي ٣ قطط") is None


def test_where_no_spaces_part_words_four_characters_or_the_whole_message_are_needed() -> None:
    assert find_span("京都に住んで", "私は京都に住んでいます") is not None
    assert find_span("はい", "はい。") is not None
    assert find_span("はい", "はい、そうです") is None


def test_an_elision_needs_every_piece_in_order_in_one_sentence() -> None:
    message = "I moved to Bergen in May with two cats. They love Bergen."
    span = find_span("I moved … with two cats", message)
    assert span is not None
    assert [message[a:b] for a, b in span.pieces] == ["I moved", "with two cats"]
    assert find_span("with two cats ... I moved", message) is None
    assert find_span("I moved ... They love", message) is None
    assert find_span("I moved ... with three cats", message) is None


@given(st.text(max_size=60))
@example("ß ﬁ İ e\u0301 ｶﾞ ½ \u1100\u1161")
def test_offsets_lead_back_to_what_folds_the_same(text: str) -> None:
    folded = fold(text)
    assert len(folded.text) == len(folded.offsets) == len(folded.ends)
    for start in range(len(folded.text)):
        if folded.whole[start] and folded.whole[start + 1]:
            piece = text[folded.offsets[start] : folded.ends[start]]
            assert fold(piece).text == folded.text[start]


@given(st.text(max_size=40))
def test_folding_twice_changes_nothing(text: str) -> None:
    once = fold(text).text
    assert fold(once).text == once


@given(st.data())
def test_a_found_span_folds_to_the_folded_quote(data: st.DataObject) -> None:
    message = data.draw(st.sampled_from(SENTENCES)) + data.draw(st.text(max_size=10))
    start = data.draw(st.integers(0, len(message) - 1))
    quote = message[start : data.draw(st.integers(start, len(message)))]
    span = find_span(quote, message)
    if span is not None and len(span.pieces) == 1:
        assert normal_value(message[span.start : span.end]) == normal_value(quote)


def test_a_sentence_ends_at_its_mark_and_not_at_an_abbreviation_or_a_number() -> None:
    message = "Dr. Lind pays 1.5 k, e.g. for rent. He left! Why? 我住在成都。好"
    at = message.index("rent")
    assert sentence_around(message, at, at + 4).text == "Dr. Lind pays 1.5 k, e.g. for rent."
    at = message.index("住")
    assert sentence_around(message, at, at + 1).text == "我住在成都。"
    assert next_sentence(message, message.index("rent")) == "He left!"


def test_a_wrapped_line_stays_in_its_sentence_and_a_list_item_brings_its_heading() -> None:
    wrapped = "I do not\nlike coriander"
    assert sentence_around(wrapped, 9, 23).text == wrapped
    listed = "Hi.\nI do not like:\n- tea\n- coriander"
    at = listed.index("coriander")
    assert sentence_around(listed, at, at + 9).text.startswith("I do not like:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,200 euros", {"1200"}),
        ("1 200 euros", {"1200"}),
        ("1.5 km and 1,5 km", {"1.5"}),
        ("at 10:40, not 08:30", {"10:40", "8:30"}),
        ("on 2026-03-14", {"2026-03-14"}),
        ("three cats", {"3"}),
        ("drei Katzen", {"3"}),
        ("22 October", {"22", "month:10"}),
        ("el martes", {"day:2"}),
        ("٣ قطط", {"3"}),
        ("早上八点", {"8"}),
        ("3rd floor", {"3"}),
        ("no numbers here", set()),
        ("10² m", {"10²"}),
    ],
)
def test_numbers_have_one_spelling(text: str, expected: set[str]) -> None:
    assert numbers(text) == expected


def test_one_comma_five_is_not_fifteen() -> None:
    assert not numbers("1.5") & numbers("15")


def test_names_are_capitals_within_a_sentence() -> None:
    assert names("I met Ana Ruiz in Lisbon. Then NASA called.") == {"Ana", "Ruiz", "Lisbon", "NASA"}
    assert names("Bergen") == set()
    assert names("Bergen", from_start=True) == {"Bergen"}
    assert names("私はAdaとトヨタで働く") == {"Ada", "トヨタ"}


def test_content_words_leave_out_what_every_sentence_has() -> None:
    assert content_words("I am in the garden with my dog") == {"garden", "dog"}
    assert "花生" in content_words("我对花生过敏")


@pytest.mark.parametrize(
    ("message", "foreign"),
    [
        ("see:\n```\nI live in Gotham\n```\nok", "I live in Gotham"),
        ("```\nI live in Gotham", "I live in Gotham"),
        ("> I live in Gotham\nhaha", "I live in Gotham"),
        ('Please translate "I live in Gotham" to Dutch', "I live in Gotham"),
        ("Summarise this:\nI live in Gotham.\nAnd more.", "I live in Gotham.\nAnd more."),
        ("Übersetze: Ich wohne in Gotham", "Ich wohne in Gotham"),
    ],
)
def test_pasted_text_is_foreign(message: str, foreign: str) -> None:
    assert any(foreign in message[a:b] for a, b in quoted_spans(message))


def test_ordinary_text_is_not_foreign() -> None:
    assert quoted_spans('I read "Dune" and live in Bergen: it rains.') == ()


@given(st.text(alphabet='ab⟦⟧`>\n" :', max_size=40))
def test_marks_of_the_text_s_own_cannot_close_a_foreign_part(text: str) -> None:
    marked = mark_quoted(text)
    assert marked.count("⟦") == marked.count("⟧") == len(quoted_spans(text))
