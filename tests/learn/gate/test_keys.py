from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat.errors import InputError
from memchat.facts.keys import (
    ALIASES,
    COMMON_KEYS,
    MANY,
    ONE,
    canonical,
    cardinality,
    normalise_key,
)


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ("Favourite  Drink!", "favourite_drink"),
        ("home-city", "home_city"),
        ("  job_title ", "job_title"),
        ("Größe", "grösse"),
        ("ЛЮБИМЫЙ цвет", "любимый_цвет"),
        ("पसंदीदा रंग", "पसंदीदा_रंग"),
        ("ｃｉｔｙ", "city"),
        ("__a__b__", "a_b"),
        ("q1 priorities", "q1_priorities"),
        ("k٣", "k3"),
        ("2fa device", "2fa_device"),
    ],
)
def test_a_key_becomes_snake_case(raw: str, key: str) -> None:
    assert normalise_key(raw) == key


@pytest.mark.parametrize("raw", ["", "  !! ", "42", "²", "a" * 65, "💡"])
def test_a_key_that_names_no_slot_is_refused(raw: str) -> None:
    with pytest.raises(InputError):
        normalise_key(raw)


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing(raw: str) -> None:
    try:
        key = normalise_key(raw)
    except InputError:
        return
    assert normalise_key(key) == key


def test_several_names_of_a_slot_become_one() -> None:
    assert {canonical(k) for k in ("job", "job_title", "occupation", "profession")} == {"job"}
    assert {canonical(k) for k in ("city", "home_city", "location", "lives_in")} == {"city"}
    assert canonical("shed_budget") == "shed_budget"


@pytest.mark.parametrize("key", ["wedding_guests", "python_version", "q1_priorities", "editor"])
def test_a_key_keeps_its_digits_and_the_words_of_its_value(key: str) -> None:
    assert canonical(normalise_key(key)) == key and cardinality(key) is None


def test_aliases_lead_to_keys_that_have_no_alias_themselves() -> None:
    assert not set(ALIASES.values()) & set(ALIASES)


def test_the_table_says_how_many_values_a_slot_holds() -> None:
    assert cardinality("home_city") == "one"
    assert cardinality("allergy") == "many"
    assert all(cardinality(k) == "many" for k in ("next_step", "status", "approach"))
    assert cardinality("shed_budget") is None
    assert not ONE & MANY


def test_the_keys_for_the_prompt_are_few_and_canonical() -> None:
    assert 15 <= len(COMMON_KEYS) <= 25
    assert all(canonical(normalise_key(key)) == key for key in COMMON_KEYS)
