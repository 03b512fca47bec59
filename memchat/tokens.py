"""An estimate of the number of tokens that needs no tokenizer and is rather too high.

It is fitted to OpenAI's cl100k_base and to the tokenizer that Anthropic published, always to the
larger of the two counts. Newer tokenizers need fewer tokens, above all for scripts other than
Latin.
"""

from __future__ import annotations

import math
import re
from bisect import bisect

_LATIN = "A-Za-z\u00c0-\u024f"
_REST = r"[0-9]{1,3}|[!-/:-@\[-`{-~]{1,2}|\n+|\s{2,20}"
_ENGLISH = re.compile(rf"'?[{_LATIN}]{{1,12}}+(?![{_LATIN}])|[{_LATIN}]{{1,3}}|{_REST}")
"""What is about one token in English, where most words are one token, whatever their length."""
_FOREIGN = re.compile(rf"[{_LATIN}]{{1,3}}|{_REST}")
"""The same in other languages, whose words are split into short pieces."""
_ENGLISH_WORDS = (
    "the The and And of for with is are it It that this my My her his our your they you from have"
    " has at by not but I I'm we We she She what What how How who when where after every"
    " while without"
)
_COMMON = frozenset(_ENGLISH_WORDS.split())
"""Words that are common in English and rare in other languages, and that the product itself never
writes in a line."""
_ONE_IN = 12
"""Text counts as English if at least one in so many words is one of the common English words."""

_SCRIPTS = (
    (0x00C0, 1.0),  # signs such as degrees and quotation marks
    (0x0100, 0.5),  # letters of western Europe with marks, beside the piece that they stand in
    (0x0370, 1.0),  # further Latin letters
    (0x0400, 1.25),  # Greek
    (0x0530, 0.72),  # Cyrillic
    (0x0590, 2.2),  # Armenian
    (0x0600, 1.2),  # Hebrew
    (0x0900, 1.1),  # Arabic
    (0x0980, 1.3),  # Devanagari
    (0x0E00, 2.3),  # other scripts of India
    (0x0E80, 1.7),  # Thai
    (0x1200, 2.2),  # Tibetan, Burmese, Georgian
    (0x1E00, 3.4),  # Ethiopic, Khmer
    (0x2000, 2.0),  # Vietnamese vowels, old Greek
    (0x2100, 1.0),  # dashes and quotation marks
    (0x3000, 1.9),  # arrows, signs, older emoji
    (0x3040, 1.0),  # punctuation of Chinese and Japanese
    (0x3100, 1.25),  # kana
    (0xA000, 1.55),  # Chinese characters
    (0xD800, 1.55),  # Korean
    (0xFF00, 1.5),
    (0x10000, 1.2),  # wide forms of punctuation
)
"""Code points at which ranges end, and the tokens for a character of each range."""
_ENDS = tuple(end for end, _ in _SCRIPTS)
_WEIGHTS = (*(weight for _, weight in _SCRIPTS), 2.8)


def estimate_tokens(text: str) -> int:
    """About how many tokens a model would count: pieces of words and numbers in Latin letters, and
    a weight for each character of other scripts."""
    words = text.split()
    english = sum(map(_COMMON.__contains__, words)) * _ONE_IN >= len(words)
    pieces = len((_ENGLISH if english else _FOREIGN).findall(text))
    if text.isascii():
        return pieces
    others = sum(_WEIGHTS[bisect(_ENDS, ord(char))] for char in text if char > "\x7f")
    return pieces + math.ceil(others)
