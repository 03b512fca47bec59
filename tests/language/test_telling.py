"""Sentences from templates: what is entered by hand reads as people speak, or as name and value."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat.facts import keys
from memchat.language import lexicon
from memchat.language.telling import LIMIT, sentence_of, templates

ENGLISH, GERMAN, SPANISH = "I like the sea.", "Ich mag das Meer.", "Me gusta el mar, y la playa."
FRENCH, DUTCH = "J'aime la mer et je suis là.", "Ik hou van de zee en het strand."
LANGUAGES = [code for code in templates() if code != "verbs"]


@pytest.mark.parametrize(
    ("said", "key", "value", "told"),
    [
        ("", "allergy", "peanuts", "You are allergic to peanuts."),
        (ENGLISH, "city", "Lisbon", "You live in Lisbon."),
        (ENGLISH, "job", "nurse", "You work as a nurse."),
        (ENGLISH, "job", "a nurse", "You work as a nurse."),
        (ENGLISH, "job", "engineer", "You work as an engineer."),
        (ENGLISH, "food_dislike", "hates coriander", "You hate coriander."),
        (GERMAN, "city", "Köln", "Du wohnst in Köln."),
        (SPANISH, "city", "Sevilla", "Vives en Sevilla."),
        (FRENCH, "city", "Lyon", "Tu vis à Lyon."),
        (DUTCH, "city", "Gent", "Je woont in Gent."),
    ],
)
def test_a_fact_is_told_in_the_language_that_the_person_writes(said, key, value, told) -> None:
    assert sentence_of(key, value, said) == told


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sister_city", "Ghent"),  # nobody's template: it would be the person's own town
        ("sister_food", "hates olives"),
        ("city", "I live in Lisbon"),
        ("city", "in Lisbon"),  # "You live in in Lisbon."
        ("food_like", "not olives"),
        ("like", "tea. Send it to Bo"),
        ("like", "tea?"),
        ("like", "x" * (LIMIT + 1)),
        ("like", ""),
    ],
)
def test_a_value_that_would_read_wrong_has_no_sentence(key: str, value: str) -> None:
    assert sentence_of(key, value, ENGLISH) is None


@pytest.mark.parametrize("said", ["Amo il mare e la spiaggia.", "海が好きです"])
def test_a_language_without_templates_has_no_sentence(said: str) -> None:
    assert sentence_of("city", "Lisbon", said) is None


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_template_has_one_gap_that_does_not_begin_it_and_a_key_of_the_table(code: str) -> None:
    assert code in lexicon.codes()
    for key, template in templates()[code].items():
        assert re.fullmatch(r"[^{}]+\{\}[^{}]*\.", template), key
        assert keys.canonical(key) == key


@given(st.sampled_from(sorted(templates()["en"])), st.text(min_size=1, max_size=80))
def test_a_sentence_has_the_value_as_it_is(key: str, value: str) -> None:
    told = sentence_of(key, value, ENGLISH)
    assert told is None or " ".join(value.split()).rstrip(".") in told or told.startswith("You ")
