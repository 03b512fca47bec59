"""Whether the numbers, dates, names and words of a value were said."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from memchat.language.numbers import numbers
from memchat.language.secrets import find_in_conversation, find_secrets, reveals
from memchat.language.text import content_words, fold, holds_word, names
from memchat.memory.gate import value_comparison
from memchat.memory.gate.checks import instructions
from memchat.memory.gate.checks.key_and_value import VALUE_LIMIT
from memchat.memory.gate.checks.references import asks_a_question, numbers_in_words
from memchat.memory.gate.quoted_text import own_words
from memchat.memory.gate.types import Case

_UNSPACED = re.compile("[\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff]")
"""Scripts where endings are in hiragana, and each other sign is a word or half of one."""
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")


def check(case: Case) -> None:
    """Numbers and names must stand in the quoted messages, the cited span, or the known fact that
    is changed, else the user decides. Other words that nobody said are a signal."""
    value = case.candidate.value
    known = case.target.value if case.target else ""
    held = numbers_in_words(case.own_message_words()) | numbers(known)
    if case.ref and not asks_a_question(case.ref[0].text, case.ref[1]):
        held |= numbers(case.cited_words())
    glued = {n for name in names(case.cited_words(), from_start=True) for n in numbers(name)}
    missing = sorted(numbers(value) - held - glued)  # the 3 of "PyO3" counts nothing
    if missing:
        case.reviews.append(f"you did not say {', '.join(missing)} there")
    heard = (case.own_message_words(), f"{case.cited_words()} \n{known}")
    unsaid = sorted(
        name for name in _value_names(value) if not any(holds_word(text, name) for text in heard)
    )
    if unsaid:
        case.reviews.append(f"you did not say the name {', '.join(unsaid)} there")
    if case.candidate.relation != "ends":
        _check_words(case, known)
    _check_pieces(case)


def is_supported_rewording(value: str, now: str, messages: Sequence[str], known: str) -> bool:
    """Whether a value from a second look may replace the proposed one: made of the user's words and
    the known fact, without secret or instruction, and with the same negation."""
    around = " \n".join((*map(own_words, messages), known))
    secrets = [text[s.start : s.end] for text in messages for _, s in find_in_conversation([text])]
    return (
        len(now) <= VALUE_LIMIT
        and numbers(now) <= numbers(around)
        and all(holds_word(around, word) for word in content_words(now))
        and value_comparison.is_negated(now) == value_comparison.is_negated(value)
        and not find_secrets(now)
        and not any(reveals(now, words) or fold(words).text in fold(now).text for words in secrets)
        and not instructions.reads_as_instruction(now)
    )


def _value_names(value: str) -> set[str]:
    """The names in a value. Its first word counts by its capital only where it is the only word."""
    return names(value, from_start=len(value.split()) == 1)


def _check_words(case: Case, known: str) -> None:
    key = case.candidate.key.replace("_", " ")
    beside = " \n".join((case.quoted_words(), case.cited_words(), known, key))
    # Apart: what the user said is the same for every candidate, and is folded once for all.
    heard = (case.user_text, beside)
    value = _UNSPACED.sub(" ", case.candidate.value)
    words = sorted(content_words(value))
    added = [word for word in words if not any(holds_word(text, word) for text in heard)]
    added = [word for word in added if not any(_inflects(_bare(word), _bare(t)) for t in heard)]
    signs = set(_HAN.findall(fold(case.candidate.value).text))
    added += sorted(sign for sign in signs if not any(sign in fold(text).text for text in heard))
    if added:
        case.signals.append("it has words that you did not say")


@lru_cache(maxsize=64)
def _bare(text: str) -> str:
    plain = unicodedata.normalize("NFKD", fold(text).text)
    return "".join(c for c in plain if unicodedata.category(c) != "Mn")


def _inflects(word: str, spoken: str) -> bool:
    """Whether most of a word was said: "boit" in "bois", "köpek" in "köpeğim"."""
    size = max(3, math.ceil(0.6 * len(word)))
    return any(word[start : start + size] in spoken for start in range(len(word) - size + 1))


def _check_pieces(case: Case) -> None:
    """A signal where a quote in pieces may join words that did not belong together."""
    item = case.candidate
    held = content_words(item.value) | numbers(item.value)
    sentences = dict.fromkeys(case.sentences())
    if len(sentences) > 1 and not case.ref and item.relation != "ends":
        bare = [s for s in sentences if not any(holds_word(s, w) or w in numbers(s) for w in held)]
        if bare:
            case.signals.append("it joins words that were said apart")
    for turn, span in case.proofs:
        for left, right in zip(span.pieces, span.pieces[1:], strict=False):
            if len(content_words(turn.text[left[1] : right[0]])) > 1:
                case.signals.append("words in between were left out")
