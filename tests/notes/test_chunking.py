"""How a text is cut into chunks."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memchat.errors import InputError
from memchat.notes.chunking import (
    MEMO,
    SMALLEST,
    Chunk,
    Profile,
    chunks,
    most_tokens,
    sentence_boundaries,
)


def words(text: str) -> int:
    """A tokenizer whose tokens are the words, and which adds no special ones."""
    return len(text.split())


def contents(text: str, profile: Profile = MEMO) -> list[str]:
    return [text[chunk.start : chunk.end] for chunk in chunks(text, profile, words)]


def sentences(text: str) -> list[str]:
    starts = [*sorted(sentence_boundaries(text)), len(text)]
    return [text[start:end].strip() for start, end in pairwise(starts)]


def spoken(count: int, seed: int = 1) -> list[str]:
    """Sentences of 6 to 24 words, no two alike."""
    chance = random.Random(seed)
    letters = "abcdefghijklmnoprstuvw"
    made = []
    for _ in range(count):
        said = ["".join(chance.choices(letters, k=5)) for _ in range(chance.randint(6, 24))]
        made.append(" ".join(said).capitalize() + ".")
    return made


# Letters of many scripts, marks, joiners, line ends, Markdown, and marks that end sentences.
_ANY = st.text(
    st.one_of(
        st.sampled_from("ab .!?。\n\r\t#-*|`~>:,;1๏กา้अ।ع؟日本\u200d\u0301👩👧🇵🇹\u2028\x85\x00「」"),
        st.characters(),
    ),
    max_size=400,
)


@settings(deadline=None, max_examples=150)
@given(_ANY, st.integers(SMALLEST, 60), st.integers(0, 15), st.sampled_from((words, most_tokens)))
@example("000\x80𐀀𐀀𐀀\r0", 16, 0, most_tokens)
@example("\ud800a" * 90, 20, 5, most_tokens)
@example("e" + "\u0301" * 300, SMALLEST, 0, most_tokens)
def test_chunks_of_any_text_lie_in_it_fit_and_lack_nothing(text, size, overlap, count):
    found = chunks(text, Profile(size, overlap), count)
    covered = set()
    for chunk in found:
        content = text[chunk.start : chunk.end]
        assert chunk == Chunk(chunk.start, chunk.end, count(content))
        assert content == content.strip() != ""
        assert chunk.tokens <= size
        covered |= {*range(chunk.start, chunk.end)}
    assert all(at in covered or char.isspace() for at, char in enumerate(text))
    for before, after in pairwise(found):
        assert before.start < after.start and before.end < after.end
        assert count(text[after.start : max(after.start, before.end)]) <= overlap


@pytest.mark.parametrize("text", ["", "  ", "\n\r\n\t \u2003\u2028"])
def test_a_blank_text_has_no_chunks(text):
    assert chunks(text, MEMO, words) == []


def test_a_text_that_fits_is_one_chunk_without_the_space_around_it():
    assert chunks(" \nOne. Two.\n", MEMO, words) == [Chunk(2, 11, 2)]


def test_2000_tokens_of_a_memo_overlap_in_whole_sentences():
    said = spoken(135)
    text = " ".join(said)
    assert 1_900 < words(text) < 2_200
    found = chunks(text, MEMO, words)
    assert len(found) > 3 and all(chunk.tokens <= 500 for chunk in found)
    for before, after in pairwise(found):
        shared = text[after.start : before.end]
        assert 0 < words(shared) <= 50
        assert {*sentences(shared)} <= {*said}
    for content in contents(text):
        assert {*sentences(content)} <= {*said}


def test_documents_do_not_overlap():
    text = " ".join(spoken(135))
    found = chunks(text, Profile(300, 0), words)
    assert all(before.end < after.start for before, after in pairwise(found))


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Smith met Mr. Jones at 5 p.m. on Friday.", "They spoke about v1.2, e.g. costs."],
        ["It costs $3.50 at Acme Inc. in Fig. 3 now.", "Fine!", "And then... nothing."],
        ['"Is it done?" she asked.', "(He had no answer.)", "Why?!"],
        ["Wir treffen uns z. B. am 3. Mai.", "Dr. Müller kommt bzw. ruft an.", "Ja?"],
        ["O Sr. Silva chegou às 10h.", "A Dra. Ana disse que sim.", "E agora?"],
        ["我昨天去了北京。", "天气很好！", "你呢？", "他说：“没事。”", "然后走了。"],
        ["昨日は東京に行きました。", "「また行きたい。」と彼は言った。", "次はいつ？"],
        ["ذهبت إلى السوق أمس.", "هل كان الطقس جميلا؟", "نعم، كان جميلا جدا!"],
        ["मैं कल दिल्ली गया था।", "क्या तुम आओगे?", "हाँ, डॉ. शर्मा भी आएंगे।"],
        ["Family 👩‍👩‍👧‍👦 is here!", "Cafe\u0301 is next."],
        ["Wrapped\r\nin lines.", "Next\r\none."],
    ],
)
def test_sentences_of_every_script_are_told_apart(expected):
    gap = "" if "。" in expected[0] else " "
    assert sentences(gap.join(expected)) == expected


def test_a_sentence_over_the_limit_is_cut_between_clauses():
    text = ", ".join("one two three four five six seven" for _ in range(9))
    found = contents(text, Profile(20, 0))
    assert all(content.startswith("one") for content in found)
    assert all(content.removesuffix(",").endswith("seven") for content in found)


def test_speech_without_any_mark_is_cut_between_words_and_overlaps():
    text = " ".join(f"word{number}" for number in range(1_200))
    found = chunks(text, MEMO, words)
    for before, after in pairwise(found):
        shared = text[after.start : before.end]
        assert 0 < words(shared) <= 50
        assert text[after.start - 1] == " "


def test_thai_is_cut_at_its_spaces_where_no_mark_is():
    phrase = "เมื่อวานฉันไปกรุงเทพฯ"
    found = contents(" ".join([phrase] * 40), Profile(16, 0))
    assert all({*content.split()} == {phrase} for content in found)


def test_no_cut_parts_what_is_seen_as_one_character():
    family, flag, accent = "👩‍👩‍👧‍👦", "🇵🇹", "e\u0301"
    text = (family + flag + accent) * 60
    for chunk in chunks(text, Profile(64, 0), most_tokens):
        content = text[chunk.start : chunk.end]
        rest = content.replace(family, "").replace(flag, "").replace(accent, "")
        assert rest == ""


def test_paragraphs_and_sections_that_fit_are_kept_whole():
    chance = random.Random(2)
    paragraphs = [" ".join(spoken(chance.randint(1, 6), seed)) for seed in range(40)]
    titles = {number: f"## Part {number}\n\n" for number in range(0, 40, 4)}
    text = "\n\n".join(titles.get(n, "") + part for n, part in enumerate(paragraphs))
    found = contents(text, Profile(100, 10))
    for paragraph in paragraphs:
        assert words(paragraph) > 100 or any(paragraph in content for content in found)
    for before, title in pairwise(found):
        assert not before.endswith(tuple(f"Part {number}" for number in range(40))) or (
            words(before) + words(title) > 100
        )


@pytest.mark.parametrize("heading", ["## Costs", "Costs\n====="])
def test_a_section_is_cut_off_before_its_heading(heading):
    one, two = " ".join(spoken(4, 1)), " ".join(spoken(4, 2))
    found = contents(f"{one}\n\n{heading}\n\n{two}", Profile(90, 0))
    assert found == [one, f"{heading}\n\n{two}"]


def test_a_heading_stays_with_the_beginning_of_a_paragraph_that_is_too_long():
    first = spoken(30)[0]
    text = f"# Costs\n\n{' '.join(spoken(30))}"
    assert contents(text, Profile(90, 0))[0].startswith(f"# Costs\n\n{first}")


def test_code_and_lists_and_tables_are_cut_between_lines():
    code = "\n".join(f"x{number} = f(a. b)  # so. And so" for number in range(30))
    fenced = f"```py\n{code}\n```"
    found = contents(f"Before.\n\n{fenced}\n\nAfter.", Profile(60, 0))
    lines = {*fenced.splitlines(), "", "Before.", "After."}
    assert {line for content in found for line in content.splitlines()} <= lines
    items = [f"- item {number} is. Not short" for number in range(30)]
    rows = [f"| {number} | a. B |" for number in range(30)]
    for block in (items, rows):
        found = contents("\n".join(block), Profile(40, 0))
        assert {line for content in found for line in content.splitlines()} == {*block}


def changed(before: str, after: str) -> int:
    return len({*contents(after)} - {*contents(before)})


def test_an_edit_of_one_sentence_changes_at_most_two_of_ten_chunks():
    said = spoken(190)
    text = " ".join(said)
    assert 9 <= len(contents(text)) <= 11
    counts = []
    for number, sentence in enumerate(said):
        corrected = f"{sentence[:-1]} indeed."
        counts.append(changed(text, " ".join([*said[:number], corrected, *said[number + 1 :]])))
    assert max(counts) <= 2


def test_sentences_added_removed_or_replaced_change_few_chunks():
    said = spoken(190)
    text = " ".join(said)
    counts = []
    for number, other in [*enumerate(spoken(190, seed=9))][::3]:
        counts.append(changed(text, " ".join([*said[:number], *said[number + 1 :]])))
        counts.append(changed(text, " ".join([*said[:number], other, *said[number:]])))
        counts.append(changed(text, " ".join([*said[:number], other, *said[number + 1 :]])))
    assert sum(count <= 2 for count in counts) >= 0.95 * len(counts)
    assert max(counts) <= 4


def test_special_tokens_count_for_the_limit_and_not_for_the_overlap():
    text = " ".join(spoken(40))
    found = chunks(text, Profile(100, 24), lambda part: words(part) + 2)
    assert max(chunk.tokens for chunk in found) <= 100
    assert any(words(text[b.start : a.end]) > 20 for a, b in pairwise(found))


def test_chunks_that_are_too_short_are_refused():
    with pytest.raises(InputError, match="at least 16"):
        Profile(15, 0)


def test_a_text_that_fits_into_one_chunk_is_counted_once() -> None:
    counted = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text.split())

    (only,) = chunks("  The kettle is on. Tea at four.\n", MEMO, count)
    assert (only.start, only.end, only.tokens) == (2, 32, 7)
    assert counted == ["The kettle is on. Tea at four."]
