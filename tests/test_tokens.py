"""Estimated tokens beside what two real tokenizers count, script by script."""

from __future__ import annotations

import json
from importlib import resources

import pytest
from tokenizers import Tokenizer

from memchat.providers.litellm_calls import litellm
from memchat.tokens import estimate_tokens
from tests.support.paths import DATA

LINES: dict[str, list[str]] = json.loads((DATA / "token_lines.json").read_text("utf-8"))
FORMS = ("- {}\n", "- {} (from 2026-05-01; until 2026-12-24)\n")
"""Lines of facts as a prompt holds them, without and with days."""


@pytest.fixture(scope="module")
def anthropic() -> Tokenizer:
    """The tokenizer that Anthropic published; litellm brings it along, as it does OpenAI's."""
    inside = resources.files("litellm") / "litellm_core_utils" / "tokenizers"
    return Tokenizer.from_str((inside / "anthropic_tokenizer.json").read_text("utf-8"))


def counted(anthropic: Tokenizer, text: str) -> int:
    """What the tokenizer says that counts more."""
    openai = litellm().encoding.encode(text, disallowed_special=())
    return max(len(openai), len(anthropic.encode(text).ids))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("script", LINES)
def test_the_estimate_of_facts_is_neither_short_nor_far_above_in_any_script(
    anthropic: Tokenizer, script: str, form: str
) -> None:
    texts = [form.format(line) for line in LINES[script]]
    real = [counted(anthropic, text) for text in texts]
    ratio = sum(map(estimate_tokens, texts)) / sum(real)
    assert 0.95 <= ratio <= 1.35
    for text, count in zip(texts, real, strict=True):
        assert -0.2 * count - 1 <= estimate_tokens(text) - count <= 0.5 * count + 1, text


def test_english_prose_is_estimated_closely(anthropic: Tokenizer) -> None:
    text = (
        "I was at the market with Ola on Saturday, and we found an old piano for forty euros. It's"
        " badly out of tune, but she wants to learn to play it, so my brother will bring his van"
        " next week. Do you know how we could get it up to the third floor without a lift?"
    )
    assert 0.95 <= estimate_tokens(text) / counted(anthropic, text) <= 1.1


def test_code_is_estimated_by_its_signs_as_well(anthropic: Tokenizer) -> None:
    text = "The code:\n\n    def f(a, b):\n        return a[b]\n\n    print(f({1: 2}, 1))\n"
    assert 0.95 <= estimate_tokens(text) / counted(anthropic, text) <= 1.35


def test_a_long_code_without_spaces_is_never_one_word() -> None:
    code = "ZmFyIGJleW9uZCB0aGUgaGlsbHMgYW5k" * 8
    assert estimate_tokens(f"What is this and who sent it? {code}") > len(code) / 4


def test_nothing_is_no_token() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1
