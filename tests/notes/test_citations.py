"""What an answer cites, and what is taken out of it while it comes in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat.notes import ask

TEXTS = st.text(alphabet="ab [],0123-n.oe\n", max_size=60)


def cleaned(*pieces: str, known: tuple[int, ...] = (1, 2, 3)) -> str:
    return "".join(ask.kept(pieces, known))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("It is 26,000 [1].", "It is 26,000 [1]."),
        ("It is 26,000 [9].", "It is 26,000."),
        ("Both [1, 9] and [2;3].", "Both [1] and [2][3]."),
        ("All of them [1-3].", "All of them [1][2][3]."),
        ("Since [2019] it is [note] so [ 2 ].", "Since [2019] it is [note] so [2]."),
        ("Not closed [1", "Not closed [1"),
        ("[none] The notes do not say [1].", "The notes do not say."),
        ("  [None]: nothing [1]", "nothing"),
        ("[none]", ""),
        ("[no] answer [1]", "[no] answer [1]"),
    ],
)
def test_only_notes_that_the_model_was_given_stay_cited(said: str, shown: str) -> None:
    assert cleaned(said) == shown
    assert cleaned(*said) == shown


@given(text=TEXTS, cuts=st.lists(st.integers(0, 60), max_size=6))
def test_where_a_stream_is_cut_into_pieces_changes_nothing(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(places)]
    assert cleaned(*pieces) == cleaned(text)


@given(text=TEXTS)
def test_no_number_is_left_that_was_not_given(text: str) -> None:
    assert set(ask.numbers(cleaned(text, known=(2,)))) <= {2}


def test_words_are_passed_on_before_the_answer_ends() -> None:
    pieces = iter(["You said ", "so [1", "] twice"])
    shown = ask.kept(pieces, (1,))
    assert next(shown) == "You said"
    assert next(pieces) == "so [1"
