"""Whether the numbers, dates, names and words of a value were said."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

from memchat.language.numbers import numbers
from memchat.language.secrets import find_in_conversation, find_secrets, reveals
from memchat.language.text import content_words, fold, holds_word, names
from memchat.memory.gate.checks import guards, orders
from memchat.memory.gate.checks.quoted_text import own_words
from memchat.memory.gate.checks.references import asks, numbers_said
from memchat.memory.gate.checks.shape import VALUE_LIMIT
from memchat.memory.gate.types import Case

_UNSPACED = re.compile("[\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff]")
"""Where endings are written in hiragana, and each other sign is a word or half of one."""
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")


def check(case: Case) -> None:
    """Numbers and names stand in the quoted messages, the cited span, or the known fact that is
    changed: else a person decides. Other words that nobody said are a signal."""
    value = case.candidate.value
    known = case.target.value if case.target else ""
    held = numbers_said(case.messages()) | numbers(known)
    if case.ref and not asks(case.ref[0].text, case.ref[1]):
        held |= numbers(case.cited())
    glued = {n for name in names(case.cited(), from_start=True) for n in numbers(name)}
    missing = sorted(numbers(value) - held - glued)  # the 3 of "PyO3" counts nothing
    if missing:
        case.holds.append(f"you did not say {', '.join(missing)} there")
    around = " \n".join((case.messages(), case.cited(), known))
    unsaid = sorted(name for name in _value_names(value) if not holds_word(around, name))
    if unsaid:
        case.holds.append(f"you did not say the name {', '.join(unsaid)} there")
    if case.candidate.relation != "ends":
        _check_words(case, known)
    _check_pieces(case)


def may_stand_for(value: str, now: str, messages: Sequence[str], known: str) -> bool:
    """Whether a value that a second look put together may stand in a proposal's place: made of
    the user's own words and of the known fact, no secret, no order, and no denial lost."""
    around = " \n".join((*map(own_words, messages), known))
    secrets = [text[s.start : s.end] for text in messages for _, s in find_in_conversation([text])]
    return (
        len(now) <= VALUE_LIMIT
        and numbers(now) <= numbers(around)
        and all(holds_word(around, word) for word in content_words(now))
        and guards.negated(now) == guards.negated(value)
        and not find_secrets(now)
        and not any(reveals(now, words) or fold(words).text in fold(now).text for words in secrets)
        and not orders.reads_as_order(now)
    )


def _value_names(value: str) -> set[str]:
    """The names in a value. Its first word may be one by its capital alone where it is the only."""
    return names(value, from_start=len(value.split()) == 1)


def _check_words(case: Case, known: str) -> None:
    key = case.candidate.key.replace("_", " ")
    around = " \n".join((case.user_text, case.said(), case.cited(), known, key))
    value = _UNSPACED.sub(" ", case.candidate.value)
    added = [word for word in sorted(content_words(value)) if not holds_word(around, word)]
    spoken = _bare(around) if added else ""
    added = [word for word in added if not _inflects(_bare(word), spoken)]
    added += sorted(set(_HAN.findall(fold(case.candidate.value).text)) - set(fold(around).text))
    if added:
        case.signals.append("its value has words that nobody said")


def _bare(text: str) -> str:
    plain = unicodedata.normalize("NFKD", fold(text).text)
    return "".join(c for c in plain if unicodedata.category(c) != "Mn")


def _inflects(word: str, spoken: str) -> bool:
    """Whether most of a word was said: "boit" in "bois", "köpek" in "köpeğim"."""
    size = max(3, math.ceil(0.6 * len(word)))
    return any(word[start : start + size] in spoken for start in range(len(word) - size + 1))


def _check_pieces(case: Case) -> None:
    """What is quoted in pieces may join words that did not belong together."""
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
                case.signals.append("the quote leaves out words in between")
