"""The tokens of a text: counted by the model's tokenizer, or an upper bound."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from memchat.notes.chunking import MEMO, chunks, effective_profile, most_tokens, token_counter
from memchat.providers.embedders import HashEmbedder
from memchat.providers.litellm_calls import litellm
from memchat.providers.local import MiniLMEmbedder, available

needs_minilm = pytest.mark.skipif(not available(), reason="MiniLM is not on this machine")
NATURAL = {
    "English": "So I called John back yesterday, and we agreed that the marketing budget for next "
    "quarter should stay at about $12,500 unless the campaign does better than expected.",
    "Portuguese": "Ontem falei com o João sobre o orçamento e não chegámos a nenhuma conclusão.",
    "German": "Die Geschwindigkeitsbegrenzung gilt übrigens auch für Straßenbahnen, oder?",
    "Russian": "Вчера мы обсуждали бюджет на следующий год и решили подождать до весны.",
    "Chinese": "昨天我们讨论了明年的预算，决定等到春天再说。",
    "Japanese": "昨日は来年の予算について話し合い、春まで待つことにしました。",
    "Korean": "어제 우리는 내년 예산에 대해 이야기했고 봄까지 기다리기로 했습니다.",
    "Thai": "เมื่อวานเราคุยกันเรื่องงบประมาณปีหน้า และตัดสินใจรอจนถึงฤดูใบไม้ผลิ",
    "Arabic": "ناقشنا أمس ميزانية العام المقبل وقررنا الانتظار حتى الربيع.",
    "Hindi": "कल हमने अगले साल के बजट पर चर्चा की और वसंत तक रुकने का फैसला किया।",
    "Hebrew": "אתמול דנו בתקציב לשנה הבאה והחלטנו לחכות עד האביב.",
    "Tamil": "நேற்று நாங்கள் அடுத்த ஆண்டு பட்ஜெட்டைப் பற்றி பேசினோம்.",
    "code": "def f(xs):\n    return {k: v**2 for k, v in xs.items() if k != 'a1b2c3'}  # 3.14159\n",
    "emoji": "👩‍👩‍👧‍👦 🇵🇹 👍🏽 e\u0301 ﷺ \U000e0041",
}


@pytest.fixture(scope="module")
def tokenizers():
    """The counts of cl100k_base, whose vocabulary comes with litellm, and of MiniLM."""
    folder = Path(litellm().__file__).parent / "litellm_core_utils" / "tokenizers"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        encoding = tiktoken.get_encoding("cl100k_base")
    counts = [lambda text: len(encoding.encode(text, disallowed_special=()))]
    if available():
        embedder = MiniLMEmbedder(None)
        counts.append(lambda text: embedder.count_tokens(text) - embedder.count_tokens(""))
    return counts


@pytest.mark.parametrize("language", NATURAL)
def test_no_tokenizer_counts_more_than_the_bound(tokenizers, language):
    text = NATURAL[language]
    assert most_tokens(text) >= max(count(text) for count in tokenizers)


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(
        st.text(max_size=80),
        st.text("abcdefghijklmnopqrstuvwxyzABC '.,-", max_size=80),
        st.text("абвгдежЖюя אבגשק ابتثجك कखगघ กขฃา あいウ、 éüßÅ", max_size=80),
    )
)
def test_no_text_has_more_tokens_than_the_bound(tokenizers, text):
    assert most_tokens(text) >= max(count(text) for count in tokenizers)


def test_the_bound_is_near_enough_to_be_of_use_for_english(tokenizers):
    text = NATURAL["English"]
    assert most_tokens(text) <= 2.5 * max(count(text) for count in tokenizers)


def test_an_embedder_without_a_tokenizer_of_its_own_gets_the_bound():
    assert token_counter(HashEmbedder()) is most_tokens
    assert token_counter(None) is most_tokens


@needs_minilm
def test_chunks_for_the_built_in_model_are_read_whole_by_it():
    embedder = MiniLMEmbedder(None)
    profile = effective_profile(MEMO, embedder.service)
    count = token_counter(embedder)
    text = " ".join(NATURAL.values()) * 6
    found = chunks(text, profile, count)
    assert count("") == 2
    assert 200 < max(chunk.tokens for chunk in found) <= 256
