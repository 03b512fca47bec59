"""Secrets of a long text are found in windows: the same ones as in one piece."""

from __future__ import annotations

import pytest

from memchat.language import secrets

KEY = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
SENTENCE = "The parcel went to the shelf in the hall, and nobody was at home. "


@pytest.mark.slow
def test_a_long_text_gives_what_it_gives_in_one_piece_wherever_a_window_ends() -> None:
    window, margin = secrets._WINDOW, secrets.MARGIN
    text = SENTENCE * (3 * window // len(SENTENCE))
    for at in (10, window - 20, window + margin - 20, 2 * window - margin - 5, 2 * window - 20):
        text = f"{text[:at]} my key {KEY} there, {text[at:]}"
    found = secrets.find_in_document(text)
    assert found == secrets.find_secrets(text)
    assert [text[one.start : one.end] for one in found] == [KEY] * 5


def test_a_short_or_empty_text_is_one_window() -> None:
    assert secrets.find_in_document("") == []
    text = f"My key is {KEY}."
    assert secrets.find_in_document(text) == secrets.find_secrets(text) != []


def test_what_is_letters_alone_is_known_as_such_in_a_text_of_any_length() -> None:
    text = SENTENCE * 600 + "Our password is mountain lake."
    (found,) = secrets.find_secrets(text)
    assert text[found.start : found.end] == "mountain lake"
    assert found.plain and secrets.mask(text, plain=False) == text
