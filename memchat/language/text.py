"""Text as evidence compares it: folded with a way back, found at word boundaries, cut in sentences.

Folding forgives what a model or a keyboard changes (spaces, curly marks, case, width) and nothing
that changes the meaning: no inner punctuation, digit or word is ever dropped.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from memchat.language.markers import FUNCTION_WORDS
from memchat.language.number_words import DATE_WORDS, NUMBER_WORDS

_MARKS = {ord(c): "'" for c in "‘’‚‛′´`ʼ＇"}
_MARKS |= {ord(c): '"' for c in "“”„‟″«»「」『』＂〝〞"}
_MARKS |= {ord(c): "-" for c in "‐‑‒–—―−﹘－"}
_MARKS |= {
    ord("…"): "...",
    ord("٬"): ",",
    ord("٫"): ".",
    ord("،"): ",",
    ord("؟"): "?",
    ord("؛"): ";",
}
_PLAIN = {n: " " for n in range(128) if chr(n).isspace()} | {ord("`"): "'"}
"""What folding does to ASCII beside lowering it."""
_DROPPED = frozenset("⟦⟧͏") | {chr(c) for c in range(0xFE00, 0xFE10)}
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆]"
)
_HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff々]+")
_LEADING = " \"'([{*_~¿¡,.;:!?。、·•"
_TRAILING = " \"')]}*_~.,;:!?。、।۔॥"
_MIN_UNSPACED = 4
_MAX_PIECES = 4


@dataclass(frozen=True, slots=True)
class Folded:
    """Folded text. ``offsets[i]`` and ``ends[i]`` say where the original of character ``i`` starts
    and ends; ``whole[i]`` that a cut before it goes through no original character."""

    text: str
    offsets: tuple[int, ...]
    ends: tuple[int, ...]
    whole: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of an original text; ``pieces`` are its parts where an elision was matched."""

    start: int
    end: int
    text: str
    pieces: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=512)
def fold(text: str) -> Folded:
    """Marks translated, NFKC, zero-width dropped, white space, case and digits folded."""
    if (plain := _plain(text)) is not None:
        places = range(len(text) + 1)
        return Folded(plain, tuple(places[:-1]), tuple(places[1:]), (True,) * len(places))
    out: list[str] = []
    offsets: list[int] = []
    ends: list[int] = []
    whole: list[bool] = []
    at, size = 0, len(text)
    while at < size:
        end = _cluster_end(text, at)
        folded = _fold_cluster(text[at:end])
        if folded == " " and out and out[-1] == " ":
            ends[-1] = end
        else:
            for number, char in enumerate(folded):
                out.append(char)
                offsets.append(at)
                ends.append(end)
                whole.append(number == 0)
        at = end
    return Folded("".join(out), tuple(offsets), tuple(ends), (*whole, True))


def _plain(text: str) -> str | None:
    """What is folded letter by letter; None where it takes more."""
    plain = text.lower().translate(_PLAIN) if text.isascii() else ""
    return plain if len(plain) == len(text) and "  " not in plain else None


def _cluster_end(text: str, at: int) -> int:
    """One character with the marks that compose with it."""
    end = at + 1
    while end < len(text) and text[end] > "\u02ff":
        char = text[end]
        if not (
            unicodedata.combining(char) or "\u1160" <= char <= "\u11ff" or char in "\uff9e\uff9f"
        ):
            break
        end += 1
    return end


@lru_cache(maxsize=8192)
def _fold_cluster(cluster: str) -> str:
    if len(cluster) == 1 and cluster.isascii():
        return " " if cluster.isspace() else "'" if cluster == "`" else cluster.lower()
    if cluster.isspace():
        return " "
    if cluster in _DROPPED or unicodedata.category(cluster[0]) == "Cf":
        return ""
    if unicodedata.category(cluster[0]) == "No":
        return cluster  # ² and ½ would run into the digits beside them
    text = unicodedata.normalize("NFKC", cluster.translate(_MARKS))
    text = unicodedata.normalize("NFKC", text.casefold()).translate(_MARKS)
    digits = (str(unicodedata.digit(c)) if unicodedata.category(c) == "Nd" else c for c in text)
    # Dotted and dotless i are one letter here: capitals in Turkish are lowered either way.
    return "".join(digits).replace("i\u0307", "i").replace("ı", "i")


def find_spans(quote: str, message: str) -> list[Span]:
    """Every place of a message where a quote stands, edges trimmed, at word boundaries."""
    needle = _trim(fold(quote).text)
    hay = fold(message)
    if not needle or not any(c.isalnum() for c in needle):
        return []
    spans = [_span(message, hay, [found]) for found in _occurrences(needle, hay, 0)]
    if not spans and "..." in needle:
        elided = _find_elided(needle, hay, message)
        spans = [elided] if elided else []
    return spans


def find_span(quote: str, message: str) -> Span | None:
    """Where a quote stands in a message, or None. Never fuzzy; ``…`` may stand for left-out words
    of one sentence. Where no spaces part words, it takes four characters or the whole message."""
    return next(iter(find_spans(quote, message)), None)


def _trim(text: str) -> str:
    text = text.lstrip(_LEADING).rstrip(_TRAILING)
    return text[2:] if text.startswith("- ") else text


def _occurrences(needle: str, hay: Folded, start: int) -> list[tuple[int, int]]:
    found, at = [], hay.text.find(needle, start)
    while at >= 0:
        end = at + len(needle)
        if hay.whole[at] and hay.whole[end] and _bounded(needle, hay.text, at, end):
            found.append((at, end))
        at = hay.text.find(needle, at + 1)
    return found


def _bounded(needle: str, hay: str, start: int, end: int) -> bool:
    if _joined(hay, start) or _joined(hay, end):
        return False
    inside = UNSPACED.search(needle) is not None
    letters = sum(c.isalnum() for c in needle)
    return not inside or letters >= _MIN_UNSPACED or needle == _trim(hay)


def _joined(text: str, at: int) -> bool:
    """Whether a cut at this place goes through a word or a number."""
    if at <= 0 or at >= len(text):
        return at == 0 < len(text) and unicodedata.category(text[0])[0] == "M"
    left, right = text[at - 1], text[at]
    if is_word(left) and is_word(right):
        if left.isdigit() and right.isdigit():
            return True
        return not (UNSPACED.match(left) or UNSPACED.match(right))
    if right.isdigit() and left in ".,:/-'":
        before = text[at - 2 : at - 1]
        return (
            before.isdigit()
            or (left == "-" and not is_word(before))
            or (left == "." and not before.strip())
        )
    if left.isdigit() and right in ".,:/-'":
        return text[at + 1 : at + 2].isdigit()
    # The t of don't is no word.
    return (left == "'" and right == "t" and text[at - 2 : at - 1] == "n") or (
        right == "'" and text[at : at + 2] == "'t" and left == "n"
    )


def is_word(char: str) -> bool:
    """Whether a character belongs to words: letters, digits and the marks on them."""
    return bool(char) and (char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M")


def _span(message: str, hay: Folded, found: list[tuple[int, int]]) -> Span:
    pieces = tuple((hay.offsets[a], hay.ends[b - 1]) for a, b in found)
    start, end = pieces[0][0], pieces[-1][1]
    return Span(start, end, message[start:end], pieces)


def _find_elided(needle: str, hay: Folded, message: str) -> Span | None:
    pieces = [_trim(piece) for piece in re.split(r"\.{3,}", needle)]
    if not 2 <= len(pieces) <= _MAX_PIECES or any(len(p) < 2 for p in pieces):
        return None
    for first in _occurrences(pieces[0], hay, 0):
        found = [first]
        for piece in pieces[1:]:
            later = _occurrences(piece, hay, found[-1][1])
            if not later:
                break
            found.append(later[0])
        else:
            span = _span(message, hay, found)
            around = sentence_around(message, *span.pieces[0])
            if span.end <= around.end:
                return span
    return None


_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|approx|no|nr|ca|bzw|usw|evtl|inkl|sr|sra|av|e\.g|i\.e|z\.b|d\.h|u\.a|p\.m|a\.m)"
    r"|\b[A-ZÀ-Þ]|\b\d{1,2})$",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"[.!?…؟۔]+[\"'”’»)\]*]*(?=\s)|[。！？।॥]+[”’」』）]*|\n\s*\n|\n(?=\s*(?:[-*•·]|\d+[.)])\s)|\n(?=\s*>)|\n(?=```)"
)


@lru_cache(maxsize=512)
def _breaks(message: str) -> tuple[int, ...]:
    places = [0]
    for match in _BREAK.finditer(message):
        dot = match[0].startswith(".") and match[0].rstrip("\"'”’»)]*") == "."
        if dot and _ABBREVIATION.search(message, max(0, match.start() - 8), match.start()):
            initial_or_number = message[match.end() :].lstrip()[:1]
            if not (message[match.start() - 1].isdigit() and initial_or_number.isupper()):
                continue
        places.append(match.end())
    return (*places, len(message))


def sentence_around(message: str, start: int, end: int) -> Span:
    """The sentence, or sentences, that a span touches; a list item brings the line that opens its
    list. In doubt it is too long, never too short."""
    places = _breaks(message)
    left = max(p for p in places if p <= start) if start else 0
    right = min((p for p in places if p >= end), default=len(message))
    if re.match(r"\s*(?:[-*•·]|\d+[.)])\s", message[left:]):
        heading = re.search(
            r"[^\n]*:[ \t]*\n(?:\s*(?:[-*•·]|\d+[.)])\s[^\n]*\n?)*\s*$", message[:left]
        )
        left = heading.start() if heading else left
    while left < right and message[left].isspace():
        left += 1
    while right > end and message[right - 1].isspace():
        right -= 1
    return Span(left, right, message[left:right], ((left, right),))


def next_sentence(message: str, end: int) -> str:
    """The sentence after the one that ends a span, or an empty string."""
    after = sentence_around(message, max(0, end - 1), end).end
    rest = message[after:].lstrip()
    at = len(message) - len(rest)
    return sentence_around(message, at, at + 1).text if rest else ""


_NUMBER = re.compile(
    r"(?<![\d.,:/])(?:\d{4}-\d{2}-\d{2}|\d{1,2}[:.]\d{2}(?=\s?(?:uhr|am|pm|h)\b)|\d{1,2}:\d{2}(?::\d{2})?"
    r"|\d{1,3}(?:([.,' ])\d{3})(?:\1\d{3})*(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,/]\d+)*)[²³]?"
)
_HAN_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_HAN_NUMBER = re.compile("[零〇一二两三四五六七八九十]+")


def numbers(text: str) -> set[str]:
    """The numbers, times and dates of a text in one spelling: ``1,200`` is ``1200``, ``1,5`` is
    ``1.5``, never ``15``; ``three`` is ``3``, ``08:30`` is ``8:30``, ``Tuesday`` is ``day:2``."""
    return set(_numbers(text))


@lru_cache(maxsize=64)
def _numbers(text: str) -> frozenset[str]:
    """The same, once a text: every window of a conversation asks about the whole of it."""
    folded = fold(text).text
    found = {_one_spelling(match[0]) for match in _NUMBER.finditer(folded)}
    for word in re.findall(r"[^\W\d_]+", folded):
        if word in NUMBER_WORDS:
            found.add(str(NUMBER_WORDS[word]))
        if word in DATE_WORDS:
            found.add(DATE_WORDS[word])
    for match in _HAN_NUMBER.finditer(folded):
        value = _han_value(match[0])
        if value is not None and value > 1:
            found.add(str(value))
    return frozenset(found)


def _one_spelling(number: str) -> str:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", number):
        return number
    if re.fullmatch(r"\d{1,2}[:.]\d{2}(:\d{2})?", number) and ":" in number:
        return number.lstrip("0") if number[1:2] != ":" else number
    groups = re.fullmatch(r"([1-9]\d{0,2})((?:[.,' ])\d{3})+((?:[.,]\d{1,2})?)", number)
    if groups:
        tail = groups[3]
        whole = number[: len(number) - len(tail)] if tail else number
        return re.sub(r"[.,' ]", "", whole) + tail.replace(",", ".")
    if re.fullmatch(r"\d+,\d+", number):
        return number.replace(",", ".")
    return number


def _han_value(text: str) -> int | None:
    if match := re.fullmatch("([二两三四五六七八九])?十([一二三四五六七八九])?", text):
        return 10 * _HAN_DIGITS.get(match[1] or "", 1) + _HAN_DIGITS.get(match[2] or "", 0)
    if len(text) == 1:
        return _HAN_DIGITS.get(text)
    return int("".join(str(_HAN_DIGITS.get(c, 0)) for c in text)) if "十" not in text else None


_WORD = re.compile(r"[^\W\d_](?:[\w\u0300-\u036f\u0900-\u0903\u093a-\u094f]|['’.&-](?=[^\W\d_]))*")
_KATAKANA = re.compile("[\u30a1-\u30fa][\u30a1-\u30fa\u30fc]+")


def names(text: str, *, from_start: bool = False) -> set[str]:
    """The words that look like names: capitalised within a sentence, or with capitals or digits
    inside. ``from_start`` also takes a sentence's first word. Scripts without case give the Latin
    words and the katakana runs in them, and nothing else."""
    found = {match[0] for match in _KATAKANA.finditer(text)}
    unspaced = _HAN_OR_KANA.search(text) is not None
    for match in _WORD.finditer(_HAN_OR_KANA.sub(lambda run: " " * len(run[0]), text)):
        word = re.sub(r"['’]s$", "", match[0])
        plain = fold(word).text
        if plain in FUNCTION_WORDS or plain.split("'")[0] in FUNCTION_WORDS or len(word) < 2:
            continue
        inner_capital = any(c.isupper() for c in word[1:])
        latin_inside = unspaced and word.isascii()
        capital = word[0].isupper() and (from_start or not _opens(text, match.start()))
        if inner_capital or latin_inside or capital:
            found.add(word)
    return found


def _opens(text: str, at: int) -> bool:
    before = text[:at].rstrip(" \t\"'“„«([*_¿¡")
    return not before or before[-1] in ".!?:…\n•-"


def content_words(text: str) -> set[str]:
    """The folded words that carry meaning; runs of Han and kana as overlapping pairs."""
    folded = fold(text).text
    found: set[str] = set()
    for run in _HAN_OR_KANA.findall(folded):
        found |= {run[i : i + 2] for i in range(max(1, len(run) - 1))}
    for match in _WORD.finditer(_HAN_OR_KANA.sub(" ", folded)):
        parts = re.split(r"['’]", match[0])
        word = max(parts, key=len)
        if len(word) > 1 and word not in FUNCTION_WORDS and match[0] not in FUNCTION_WORDS:
            found.add(word)
    return found


def normal_value(text: str) -> str:
    """Text for comparing values: equal results mean the same words."""
    plain = _plain(text)
    return _trim(fold(text).text if plain is None else plain)


def visible(text: str) -> str:
    """The text on one line, without the characters that nobody can see or type: controls, marks of
    direction, tags. Joiners stay where a script or an emoji needs them."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept = []
    for place, char in enumerate(text):
        joins = char in "\u200c\u200d" and place > 0 and ord(text[place - 1]) > 0x5FF
        hidden = unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Zl", "Zp")
        kept.append(char if joins or not hidden else " " if char.isspace() else "")
    return " ".join("".join(kept).split())


_UNIT_GLUED = re.compile(r"(?<=\d)(?=[^\W\d_])")
"""Between a number and what it counts: "75kg", "14th"."""


def says(text: str, word: str, *, loosely: bool = True) -> bool:
    """Whether a text holds a word: itself, or with other endings; ``loosely`` also by its stem."""
    wanted, folded = fold(word).text, fold(text).text
    if not wanted.isascii() and re.search("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]", wanted):
        return wanted in _UNIT_GLUED.sub(" ", folded)
    for token in _tokens(folded):
        if token == wanted or (wanted in token.split("-") or wanted in token.split(".")):
            return True
        extra = len(token) - len(wanted)
        shortest = 2 if "\uac00" <= wanted[0] <= "\ud7af" else 3  # a syllable is a whole block
        if len(wanted) >= shortest and token.startswith(wanted) and extra <= 3:
            return True
        if len(token) >= 3 and wanted.startswith(token) and wanted[len(token) :] in ("s", "'s"):
            return True
        if loosely and _shared(token, wanted) >= max(4, 0.6 * max(len(token), len(wanted))):
            return True
    return False


@lru_cache(maxsize=64)
def _tokens(folded: str) -> frozenset[str]:
    """The words of a folded text as ``says`` compares them."""
    apart = _UNIT_GLUED.sub(" ", folded)
    found = re.findall(r"[\w\u0300-\u036f\u0900-\u0903\u093a-\u094f&.-]+", apart)
    return frozenset(token.strip(".-") for token in found)


def _shared(a: str, b: str) -> int:
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
