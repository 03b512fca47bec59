"""The test embedder: the same vector everywhere, near where words are shared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat.errors import InputError
from memchat.providers.embedders import HashEmbedder

model = HashEmbedder()


def test_the_vector_of_a_word_never_changes_between_runs():
    vector, _ = model.embed_query("tea")
    assert (int(vector.argmax()), float(vector.max())) == (58, 1.0)


def test_texts_with_the_same_words_have_the_same_vector_whatever_case_and_order():
    vectors, _ = model.embed_documents(["Strong TEA, please", "please: strong tea"])
    assert (vectors[0] == vectors[1]).all()


def test_shared_words_bring_texts_nearer():
    vectors, _ = model.embed_documents(["green tea at noon", "green tea", "a fast red bicycle"])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


@given(texts=st.lists(st.text(st.characters(), max_size=40), max_size=6))
def test_any_text_is_refused_or_becomes_one_unit_vector(texts):
    try:
        vectors, usage = model.embed_documents(texts)
    except InputError:
        assert any(not text.strip() for text in texts)
        return
    assert vectors.shape == (len(texts), 64)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert usage.cost_usd == 0.0


@pytest.mark.parametrize("empty", ["", " \n"])
def test_the_empty_text_is_refused(empty):
    with pytest.raises(InputError):
        model.embed_query(empty)


def test_the_service_says_it_is_local_and_has_a_floor():
    assert (model.service.provider, model.service.dimensions) == ("hash", 64)
    assert model.service.local
    assert model.service.floor == 0.25
