"""What a value and a key say beyond the words that are quoted for them."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING

from memchat.memory.gate import markers, orders, pointing
from memchat.memory.gate.candidate import Candidate
from memchat.memory.gate.foreign import foreign_spans
from memchat.memory.gate.keys import cardinality
from memchat.memory.gate.text import content_words, fold, names, numbers, says, sentence_around

if TYPE_CHECKING:
    from memchat.memory.gate.evidence import Findings, KnownFact

_FRAME_LIST = """
user lives live living works work working job likes like liked loves loved enjoys enjoy prefers
prefer wants plays play has have uses use speaks called named name allergic intolerant born old
years year owns own goes eats drinks studies studying learning learns teaches moved moving married
single favourite favorite person wohnt lebt arbeitet heißt mag hat trinkt isst spielt spricht
allergisch habite travaille aime adore vive trabaja gusta llama abita lavora piace mora trabalha
gosta woont werkt houdt yaşiyor çalişiyor seviyor живет работает любит
住在 喜欢 工作 住んで 好き daily weekly every per
"""
FRAME = frozenset(_FRAME_LIST.split())
"""Words that a value may add to make a clause of a slot and its filler: they claim nothing new."""

_SENTENCE_WORDS_LIST = """
is are am was were be not no never always must should shall ignore has have hat had may can will
does do ask pay override system prompt
"""
_SENTENCE_WORDS = frozenset(_SENTENCE_WORDS_LIST.split())
"""Words that make a sentence of a key. A slot has a name; what is said stands in the value."""

_MAX_KEY_WORDS = 5
_UNSPACED = re.compile("[\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff]")
"""Where endings are written in hiragana, and each other sign is a word or half of one."""
_NAMES = frozenset(("name", "full_name", "nickname", "city", "country", "employer"))
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")


def check_claim(candidate: Candidate, found: Findings, target: KnownFact | None) -> None:
    """Numbers stand in the quotes or the cited span, names in the quoted messages or the known
    fact, and some word of the value was said at all."""
    value = candidate.value
    messages = " \n".join(turn.text for turn in found.quoted())
    cited = found.ref[1].text if found.ref else ""
    held = pointing.numbers_said(found.said())
    if found.ref and not pointing.asks(found.ref[0].text, found.ref[1]):
        held |= numbers(cited)
    missing = sorted(numbers(value) - held)
    if missing:
        found.doubts.append(f"the quotes do not hold {', '.join(missing)}")
    around = " \n".join((messages, cited, target.value if target else ""))
    nouns = _value_names(value)
    unsaid = sorted(name for name in nouns if not says(around, name))
    if unsaid:
        found.doubts.append(f"the quoted messages do not hold the name {', '.join(unsaid)}")
    words = content_words(value)
    if candidate.relation != "ends" and words and not missing:
        known_words = f"{messages} {cited}"
        if not any(says(known_words, word) for word in words):
            found.doubts.append("the value says it in other words than the user")
        elif not found.ref and not any(says(sentences_said(found), word) for word in words):
            found.doubts.append("the quoted sentence holds no word of the value")
    typed = any(turn.text != turn.text.lower() for turn in found.quoted())  # who types capitals
    capital = typed and target is not None and target.value != target.value.lower()
    if capital and candidate.key in _NAMES and value == value.lower() != value.upper():
        found.doubts.append(f"it is no name, and would take the place of a {candidate.key}")
    _check_added(candidate, found, target)
    _check_stitched(candidate, found)
    _check_left_out(found)


def sentences_said(found: Findings) -> str:
    return " \n".join(
        sentence_around(turn.text, span.start, span.end).text for turn, span in found.proofs
    )


def _value_names(value: str) -> set[str]:
    inner = names(value)
    every = names(value, from_start=True)
    if all(w[0].isupper() for w in value.split() if fold(w).text not in markers.FUNCTION_WORDS):
        return every
    return inner


def check_key(key: str, found: Findings) -> None:
    """A key that speaks a sentence claims something by itself: its words must have been said."""
    if cardinality(key) is not None or key == "note":
        return
    words = key.split("_")
    speaks = bool(_SENTENCE_WORDS & set(words)) or len(words) > _MAX_KEY_WORDS
    said = " ".join(turn.text for turn in found.turns if turn.role == "user")
    own = [word for word in words if word not in _SENTENCE_WORDS and len(word) > 2]
    if orders.order(" ".join(words), wish=False) or (
        speaks and not (own and all(says(said, word) for word in own))
    ):
        found.doubts.append("its key says more than the name of a slot")


def _check_added(candidate: Candidate, found: Findings, target: KnownFact | None) -> None:
    """Every word of the value was said, in whatever form, or stands in its key or in the memory
    that it changes."""
    if candidate.relation == "ends":
        return
    own = [_own_words(turn.text) for turn in found.turns if turn.role == "user"]
    cited = found.ref[1].text if found.ref else ""
    near = " \n".join(
        (found.said(), cited, target.value if target else "", candidate.key.replace("_", " "))
    )
    around = " \n".join((*own, near))
    added = [
        word
        for word in sorted(content_words(_UNSPACED.sub(" ", candidate.value)))
        if word not in FRAME and not (says(near, word) or says(around, word))
    ]
    spoken = _bare(around) if added else ""
    added = [word for word in added if not _inflects(_bare(word), spoken)]
    added += sorted(set(_HAN.findall(fold(candidate.value).text)) - set(fold(around).text))
    if added:
        found.doubts.append(f"the value adds words that nobody said: {', '.join(added)}")


def _own_words(text: str) -> str:
    kept, at = [], 0
    for start, end in foreign_spans(text):
        kept.append(text[at:start])
        at = end
    return " ".join((*kept, text[at:]))


def _bare(text: str) -> str:
    plain = unicodedata.normalize("NFKD", fold(text).text)
    return "".join(c for c in plain if unicodedata.category(c) != "Mn")


def _inflects(word: str, spoken: str) -> bool:
    """Whether most of a word was said: "boit" in "bois", "köpek" in "köpeğim"."""
    size = max(3, math.ceil(0.6 * len(word)))
    return any(word[start : start + size] in spoken for start in range(len(word) - size + 1))


def _check_stitched(candidate: Candidate, found: Findings) -> None:
    """Each sentence that is quoted holds something of the value: else two that were said apart may
    have been joined to a third that was not."""
    held = content_words(candidate.value) | numbers(candidate.value)
    sentences = {
        (turn.id, (around := sentence_around(turn.text, span.start, span.end)).start): around.text
        for turn, span in found.proofs
    }
    if len(sentences) < 2 or found.ref or candidate.relation == "ends":
        return
    if any(
        not any(says(said, word) or word in numbers(said) for word in held)
        for said in sentences.values()
    ):
        found.doubts.append("it joins words that were said apart")


def _check_left_out(found: Findings) -> None:
    """An elision that leaves out words with a meaning of their own may join what did not belong."""
    for turn, span in found.proofs:
        for left, right in zip(span.pieces, span.pieces[1:], strict=False):
            gap = turn.text[left[1] : right[0]]
            if len(content_words(gap)) > 1 and "," not in gap[:2] + gap[-2:]:
                found.doubts.append("the quote leaves out words in between")
                return
