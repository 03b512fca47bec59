"""The built-in embedder: equal to the reference, whole texts, and weights it can trust."""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memchat.errors import ConfigError, InputError
from memchat.providers import local
from memchat.providers.local import BATCH_TOKENS, batches, gelu
from tests.support.paths import DATA

TEXTS: list[str] = json.loads((DATA / "minilm_texts.json").read_text("utf-8"))
LONG = " ".join(
    f"On day {day} of the walk we slept at hut number {day + 3} and ate {day * 2} plums."
    for day in range(1, 60)
)
needs_weights = pytest.mark.skipif(
    not local.available(), reason="the MiniLM weights are missing (memchat services fetch minilm)"
)


@pytest.fixture(scope="module")
def model() -> local.MiniLMEmbedder:
    return local.MiniLMEmbedder(None)


@pytest.fixture
def own_weights(tmp_path, monkeypatch) -> Path:
    """A copy of the model's package, found before the installed one, for a test to damage."""
    installed = importlib.util.find_spec(local.PACKAGE).submodule_search_locations[0]
    folder = tmp_path / "site" / local.PACKAGE / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    for name in local.DIGESTS:
        shutil.copy(Path(installed) / "model" / name, folder)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@needs_weights
def test_every_component_equals_the_reference_implementation(model):
    vectors, _ = model.embed_documents(TEXTS)
    reference = np.load(DATA / "minilm_reference.npy")
    assert vectors.dtype == np.float32
    assert np.abs(vectors - reference).max() <= 1e-5


@needs_weights
def test_a_question_has_the_vector_of_the_same_text(model):
    alone, _ = model.embed_query(TEXTS[0])
    assert alone.shape == (384,)
    assert np.abs(alone - np.load(DATA / "minilm_reference.npy")[0]).max() <= 1e-5


@needs_weights
def test_a_question_is_nearest_to_the_sentence_that_answers_it(model):
    vectors, _ = model.embed_documents(TEXTS)
    likeness = vectors @ vectors[TEXTS.index("What does my sister play?")]
    answer = np.argsort(-likeness)[1]
    assert TEXTS[answer].startswith("My sister Ilse")


@needs_weights
@settings(max_examples=15, deadline=None)
@given(picked=st.lists(st.sampled_from(range(len(TEXTS))), min_size=1, max_size=12))
def test_company_and_order_in_a_batch_change_no_vector(model, picked):
    vectors, _ = model.embed_documents([TEXTS[i] for i in picked])
    assert np.abs(vectors - np.load(DATA / "minilm_reference.npy")[picked]).max() <= 1e-5


@needs_weights
def test_the_end_of_a_long_text_is_not_cut(model):
    secret = " My grandmother's submarine is painted bright yellow."
    plain, _ = model.embed_query(LONG)
    with_end, usage = model.embed_query(LONG + secret)
    question, _ = model.embed_query("What colour is the submarine?")
    assert usage.prompt_tokens > 1000
    assert with_end @ question > plain @ question + 0.02


@needs_weights
def test_a_long_text_is_the_direction_of_the_mean_of_its_windows(model):
    word = "plum "  # one token, so that a window can be written as a text again
    length = 600
    windows = [word * (end - start) for start, end in local.spans(length)]
    parts, _ = model.embed_documents(windows)
    whole, _ = model.embed_query(word * length)
    mean = parts.mean(axis=0)
    assert np.abs(whole - mean / np.linalg.norm(mean)).max() <= 1e-5


@given(length=st.integers(1, 5000))
def test_windows_cover_every_token_overlap_and_never_exceed_the_model(length):
    spans = local.spans(length)
    assert spans[0][0] == 0 and spans[-1][1] == length
    assert all(0 < end - start <= local.WINDOW for start, end in spans)
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert end - start >= local.OVERLAP


@given(lengths=st.lists(st.integers(1, 256), max_size=60))
def test_batches_take_every_text_once_and_stay_small(lengths):
    taken = list(batches(lengths))
    assert sorted(i for batch in taken for i in batch) == list(range(len(lengths)))
    for batch in taken:
        assert len(batch) * max(lengths[i] for i in batch) <= BATCH_TOKENS


@given(x=st.floats(-12, 12, width=32))
def test_gelu_is_the_exact_one(x):
    exact = x / 2 * (1 + math.erf(x / math.sqrt(2)))
    assert gelu(np.array([x], np.float32))[0] == pytest.approx(exact, abs=3e-6)


@needs_weights
def test_no_texts_give_no_vectors(model):
    vectors, usage = model.embed_documents([])
    assert vectors.shape == (0, 384)
    assert usage.prompt_tokens == 0


@needs_weights
@pytest.mark.parametrize("empty", ["", "  \n\t", "\0", "\u200b"])
def test_the_empty_text_is_refused(model, empty):
    with pytest.raises(InputError, match="give some text"):
        model.embed_documents(["one good text", empty])


@needs_weights
@settings(max_examples=40, deadline=None)
@given(text=st.text(st.characters(), min_size=1, max_size=300))
def test_any_text_is_refused_or_becomes_one_unit_vector(model, text):
    try:
        vector, _ = model.embed_query(text)
    except InputError:
        return
    assert vector.shape == (384,)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@needs_weights
def test_a_lone_surrogate_is_embedded_as_the_replacement_character(model):
    broken, _ = model.embed_query("half \ud83d a face")
    replaced, _ = model.embed_query("half \ufffd a face")
    assert (broken == replaced).all()


@needs_weights
def test_several_threads_may_use_one_model_at_once():
    shared = local.MiniLMEmbedder(None)  # not loaded yet: the threads race for that too
    reference = np.load(DATA / "minilm_reference.npy")
    with ThreadPoolExecutor(4) as pool:
        for vectors, _ in pool.map(shared.embed_documents, [TEXTS] * 8):
            assert np.abs(vectors - reference).max() <= 1e-5


@needs_weights
def test_usage_counts_tokens_and_costs_nothing(model):
    _, usage = model.embed_query("ok")
    assert (usage.purpose, usage.model) == ("embed", "minilm/all-MiniLM-L6-v2")
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cost_usd) == (3, 0, 0.0)
    assert usage.seconds > 0


@needs_weights
def test_a_checked_file_is_remembered_and_not_read_again(tmp_path):
    local.MiniLMEmbedder(tmp_path).embed_query("first")
    memo = tmp_path / local.MEMO
    kept = json.loads(memo.read_text())
    assert kept["sha256"] == local.DIGESTS[local.WEIGHTS]
    assert kept.keys() == {"size", "mtime_ns", "sha256"}  # no place: the folder may be moved
    os.utime(memo, (1, 1))
    local.MiniLMEmbedder(tmp_path).embed_query("second")
    assert memo.stat().st_mtime == 1  # a second check would have written it again
    assert [path.name for path in tmp_path.iterdir()] == [local.MEMO]


@needs_weights
@pytest.mark.parametrize("memo", ["", "not json", "[]", '{"path": 1}', "\udcff"])
def test_a_broken_memo_only_costs_the_check(tmp_path, memo):
    (tmp_path / local.MEMO).write_text(memo, "utf-8", errors="surrogateescape")
    local.MiniLMEmbedder(tmp_path).embed_query("still works")
    assert json.loads((tmp_path / local.MEMO).read_text())["size"] == 90_868_376


@needs_weights
def test_a_missing_state_folder_only_costs_the_check(tmp_path):
    vector, _ = local.MiniLMEmbedder(tmp_path / "absent").embed_query("still works")
    assert vector.shape == (384,)


@needs_weights
def test_weights_that_changed_after_the_check_are_refused(own_weights, tmp_path):
    local.MiniLMEmbedder(tmp_path).embed_query("good")
    with (own_weights / local.WEIGHTS).open("r+b") as file:
        file.seek(50_000_000)
        byte = file.read(1)
        file.seek(50_000_000)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(ConfigError, match="run memchat services fetch minilm"):
        local.MiniLMEmbedder(tmp_path).embed_query("damaged")
    with pytest.raises(ConfigError, match="run memchat services fetch minilm"):
        local.MiniLMEmbedder(tmp_path).verify()


@needs_weights
def test_a_damaged_tokenizer_is_refused(own_weights):
    (own_weights / local.TOKENIZER).write_text("{}")
    with pytest.raises(ConfigError, match=r"tokenizer\.json .* run memchat services fetch minilm"):
        local.MiniLMEmbedder(None).embed_query("x")


def test_without_the_weights_it_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / local.PACKAGE).mkdir()
    (tmp_path / local.PACKAGE / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert not local.available()
    with pytest.raises(ConfigError, match="run memchat services fetch minilm"):
        local.MiniLMEmbedder(None)


def test_a_cache_folder_that_cannot_be_read_counts_as_empty(account, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ("x" * 300)))  # too long for the system
    assert not local.available()


def test_asking_whether_it_is_available_runs_no_heavy_import():
    code = (
        "import sys; from memchat.providers import local; local.available();"
        "heavy = {'tokenizers', 'faiss', 'litellm', local.PACKAGE};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
