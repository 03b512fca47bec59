"""Text as it is compared: folded, taken apart into words and sentences, and searched for words.

``fold`` keeps the way back to the original. It forgives what a model or a keyboard changes (spaces,
curly marks, case, width) and nothing that changes the meaning: no inner punctuation, digit or word
is ever dropped; ``find_span`` looks for a quote so. ``folded`` is for searching, in texts of any
script: it leaves out accents as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memchat.language.lexicon import FUNCTION_WORDS

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
"""The changes of folding to ASCII, besides lower case."""
_ASCII_RUN = re.compile("[!-~]+(?: [!-~]+)*(?![^\x00-\u02ff])")
"""ASCII words with one space between them, which fold to as many characters. The last one must not
have a combining mark."""
_DROPPED = frozenset("⟦⟧͏") | {chr(c) for c in range(0xFE00, 0xFE10)}
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆]"
)
_HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff々]+")
_LEADING = " \"'([{*_~¿¡,.;:!?。、·•"
_TRAILING = " \"')]}*_~.,;:!?。、।۔॥"


@dataclass(frozen=True, slots=True)
class Folded:
    """Folded text. The original of character ``i`` is at ``offsets[i]`` to ``ends[i]``;
    ``whole[i]`` says whether a cut before it splits no original character."""

    text: str
    offsets: tuple[int, ...]
    ends: tuple[int, ...]
    whole: tuple[bool, ...]


@lru_cache(maxsize=512)
def fold(text: str) -> Folded:
    """Text with translated marks, NFKC, one kind of white space, case and digits, and no zero-width
    characters."""
    if (plain := fold_ascii(text)) is not None:
        places = range(len(text) + 1)
        return Folded(plain, tuple(places[:-1]), tuple(places[1:]), (True,) * len(places))
    out: list[str] = []
    offsets: list[int] = []
    ends: list[int] = []
    whole: list[bool] = []
    at, size = 0, len(text)
    while at < size:
        if run := _ASCII_RUN.match(text, at):
            end = run.end()
            out += run[0].lower().replace("`", "'")
            offsets += range(at, end)
            ends += range(at + 1, end + 1)
            whole += [True] * (end - at)
            at = end
            continue
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


def fold_ascii(text: str) -> str | None:
    """Folded text, if it has the same length as the original; None for any other text."""
    plain = text.lower().translate(_PLAIN) if text.isascii() else ""
    return plain if len(plain) == len(text) and "  " not in plain else None


def _cluster_end(text: str, at: int) -> int:
    """The end of one character with the combining marks after it."""
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


def trim(text: str) -> str:
    text = text.lstrip(_LEADING).rstrip(_TRAILING)
    return text[2:] if text.startswith("- ") else text


def is_word(char: str) -> bool:
    """Whether a character is part of words: a letter, a digit, or a mark on one."""
    return bool(char) and (char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M")


_WORD = re.compile(r"[^\W\d_](?:[\w\u0300-\u036f\u0900-\u0903\u093a-\u094f]|['’.&-](?=[^\W\d_]))*")
_KATAKANA = re.compile("[\u30a1-\u30fa][\u30a1-\u30fa\u30fc]+")


def names(text: str, *, from_start: bool = False) -> set[str]:
    """The words that look like names: capitalised inside a sentence, or with capitals or digits
    inside the word. ``from_start`` includes a sentence's first word. In scripts without case only
    Latin words and runs of katakana count."""
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
    """The folded words that carry meaning. Runs of Han and kana become overlapping pairs."""
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
    """A form of a text for comparing values: two texts with the same form have the same words."""
    plain = fold_ascii(text)
    return trim(fold(text).text if plain is None else plain)


def visible_text(text: str) -> str:
    """The text on one line without invisible characters: controls, direction marks, tags. Joiners
    stay where a script or an emoji needs them."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept = []
    for place, char in enumerate(text):
        joins = char in "\u200c\u200d" and place > 0 and ord(text[place - 1]) > 0x5FF
        hidden = unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Zl", "Zp")
        kept.append(char if joins or not hidden else " " if char.isspace() else "")
    return " ".join("".join(kept).split())


_UNIT_GLUED = re.compile(r"(?<=\d)(?=[^\W\d_])")
"""The place between a number and its unit in "75kg" or "14th"."""


def holds_word(text: str, word: str, *, loosely: bool = True) -> bool:
    """Whether a text holds a word, also with other endings; ``loosely`` also with the same stem."""
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
        if loosely and common_start(token, wanted) >= max(4, 0.6 * max(len(token), len(wanted))):
            return True
    return False


@lru_cache(maxsize=512)
def _tokens(folded: str) -> frozenset[str]:
    """The words of a folded text in the form that ``holds_word`` compares."""
    apart = _UNIT_GLUED.sub(" ", folded)
    found = re.findall(r"[\w\u0300-\u036f\u0900-\u0903\u093a-\u094f&.-]+", apart)
    return frozenset(token.strip(".-") for token in found)


def common_start(a: str, b: str) -> int:
    """How many characters two texts begin with in common."""
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


_COMBINING = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1-\u05c7\u0640\u064b-\u065f\u0670\ufe00-\ufe0f]"
)
"""Accents, vowel signs that Hebrew and Arabic mostly omit, and selectors of an emoji's form."""
_STROKES = str.maketrans(
    {"đ": "d", "ł": "l", "ø": "o", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"}
)
"""Letters that Unicode does not decompose, and the plain letters that people type for them."""


def folded(text: str) -> str:
    """A text as it is compared: without differences of case, width and accents."""
    if text.isascii():
        return text.lower()
    # Normalising turns mathematical letters into capitals, so case is folded first.
    bare = _COMBINING.sub("", unicodedata.normalize("NFKD", text.casefold()).casefold())
    return unicodedata.normalize("NFC", bare.translate(_STROKES))


def holds_all(words: str, *texts: str | None) -> bool:
    """Whether each of the folded words, which stand between spaces, is in one of the texts."""
    whole = folded("\n".join(text for text in texts if text))
    return all(word in whole for word in words.split())


def places(query: str, text: str) -> list[tuple[int, int]]:
    """Where the words of a query stand in a text that is in Unicode's composed form (NFC): the
    start and end of each place, in order and apart from each other."""
    letters = [_folded_letter(letter) for letter in text]
    whole = "".join(letters)
    origin = [at for at, letter in enumerate(letters) for _ in letter]
    found: set[int] = set()
    for word in folded(query).split():
        start = whole.find(word)
        while start >= 0:
            found.update(range(origin[start], origin[start + len(word) - 1] + 1))
            start = whole.find(word, start + 1)
    # Accents that are letters of their own go with the letter before them.
    for at, letter in enumerate(letters):
        if not letter and at - 1 in found:
            found.add(at)
    starts = sorted(at for at in found if at - 1 not in found)
    ends = sorted(at + 1 for at in found if at + 1 not in found)
    return list(zip(starts, ends, strict=True))


@lru_cache(maxsize=4096)
def _folded_letter(letter: str) -> str:
    return folded(letter)


def has_words(text: str) -> bool:
    """Whether a text has anything that can be searched for: a letter, a digit or an emoji."""
    return any(
        (kind := unicodedata.category(char))[0] in "LN" or (kind == "So" and char != "\ufffd")
        for char in text
    )


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text. ``pieces`` are its parts if words between them were left out."""

    start: int
    end: int
    text: str
    pieces: tuple[tuple[int, int], ...] = ()


_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|approx|no|nr|ca|bzw|usw|evtl|inkl|sr|sra|av|e\.g|i\.e|z\.b|d\.h|u\.a|p\.m|a\.m"
    r"|dra|dott|sig|mme|mlle|fig|figs|vol|inc|ltd|jr|pág|núm|डॉ|श्री|श्रीमती|प्रो|г|ул|т\.е|т\.д)"
    r"|\b[A-ZÀ-Þ]|\b\d{1,2})$",
    re.IGNORECASE,
)
_SENTENCE_ENDS = (
    # Looked for from the first mark of a run on only, else a long run takes the square of its time.
    r"(?<![.!?…؟۔։])[.!?…؟۔։]++[\"'”’»)\]*_]*+(?=\s)"
    r"|[。！？｡।॥།።፧។៕။]+[”’」』）]*"
)
"""Marks that end a sentence."""
_END = re.compile(_SENTENCE_ENDS)
_BREAK = re.compile(_SENTENCE_ENDS + r"|\n\s*\n|\n(?=\s*(?:[-*•·]|\d+[.)])\s)|\n(?=\s*>)|\n(?=```)")


def sentence_ends(text: str) -> Iterator[int]:
    """Where the marks that end a sentence end, in order: the full stops of every script, but not
    those of abbreviations."""
    return _ends(_END, text)


def _ends(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    for match in pattern.finditer(text):
        dot = match[0].startswith(".") and match[0].rstrip("\"'”’»)]*_") == "."
        if dot and _ABBREVIATION.search(text, max(0, match.start() - 8), match.start()):
            initial_or_number = text[match.end() : match.end() + 80].lstrip()[:1]
            if not (text[match.start() - 1].isdigit() and initial_or_number.isupper()):
                continue
        yield match.end()


@lru_cache(maxsize=512)
def _breaks(message: str) -> tuple[int, ...]:
    return (0, *_ends(_BREAK, message), len(message))


def sentence_around(message: str, start: int, end: int) -> Span:
    """The sentence or sentences that a span touches. A list item includes the line that introduces
    the list. In doubt the result is too long rather than too short."""
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
    """The sentence after the one in which a span ends, or an empty string."""
    after = sentence_around(message, max(0, end - 1), end).end
    rest = message[after:].lstrip()
    at = len(message) - len(rest)
    return sentence_around(message, at, at + 1).text if rest else ""


_MIN_UNSPACED = 4
_MAX_PIECES = 4


def find_spans(quote: str, message: str) -> list[Span]:
    """Every place in a message where a quote stands at word boundaries; its edges are trimmed."""
    needle = trim(fold(quote).text)
    hay = fold(message)
    if not needle or not any(c.isalnum() for c in needle):
        return []
    spans = [_span(message, hay, [found]) for found in _occurrences(needle, hay, 0)]
    if not spans and "..." in needle:
        elided = _find_elided(needle, hay, message)
        spans = [elided] if elided else []
    return spans


def find_span(quote: str, message: str) -> Span | None:
    """The first place of a quote in a message, or None. The match is never fuzzy; ``…`` may stand
    for words left out of one sentence. In scripts without spaces a quote needs four characters, or
    the whole message."""
    return next(iter(find_spans(quote, message)), None)


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
    return not inside or letters >= _MIN_UNSPACED or needle == trim(hay)


def _joined(text: str, at: int) -> bool:
    """Whether a cut at this position would split a word or a number."""
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


def _span(message: str, hay: Folded, found: list[tuple[int, int]]) -> Span:
    pieces = tuple((hay.offsets[a], hay.ends[b - 1]) for a, b in found)
    start, end = pieces[0][0], pieces[-1][1]
    return Span(start, end, message[start:end], pieces)


def _find_elided(needle: str, hay: Folded, message: str) -> Span | None:
    pieces = [trim(piece) for piece in re.split(r"\.{3,}", needle)]
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
