"""Text as it is compared: folded, taken apart into words and numbers, and searched for words.

``fold`` keeps the way back to the original. It forgives what a model or a keyboard changes (spaces,
curly marks, case, width) and nothing that changes the meaning: no inner punctuation, digit or word
is ever dropped. ``folded`` is for searching, in texts of any script: it leaves out accents as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from memchat.language import lexicon
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
_AROUND = "?!.,;:\"'¿¡"
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


def unaccented(text: str) -> str:
    """Text in the form of the word tables: folded, and without accents."""
    folded = fold(text).text
    if folded.isascii():
        return folded
    parts = unicodedata.normalize("NFKD", folded)
    bare = "".join(c for c in parts if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", bare)


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
    for word in _telling(folded(query).split()):
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


def _telling(words: list[str]) -> list[str]:
    """The words of a question that tell what it is about, without the marks at their ends: each
    "i" and "the" of a text says nothing. Where there are no others, all of them."""
    bare = [word.strip(_AROUND) or word for word in words]
    return [word for word in bare if word not in _function_words()] or bare


@cache
def _function_words() -> frozenset[str]:
    return frozenset(map(folded, FUNCTION_WORDS))


@lru_cache(maxsize=4096)
def _folded_letter(letter: str) -> str:
    return folded(letter)


def has_words(text: str) -> bool:
    """Whether a text has anything that can be searched for: a letter, a digit or an emoji."""
    return any(
        (kind := unicodedata.category(char))[0] in "LN" or (kind == "So" and char != "\ufffd")
        for char in text
    )


def _number_words() -> dict[str, int]:
    """The number words of all languages from two on. An entry such as "fifteen=15" gives its number
    where the list skips some."""
    found = {}
    for code in lexicon.codes():
        for place, entry in enumerate(lexicon.entries(code, "numbers"), 2):
            word, _, number = entry.partition("=")
            found[word] = int(number or place)
    return found


def _dates() -> dict[str, str]:
    return {
        name: f"{kind}:{number}"
        for names in lexicon.calendar().values()
        for kind, lists in (("day", names["weekdays"]), ("month", names["months"]))
        for number, words in enumerate(lists, 1)
        for name in words
    }


NUMBER_WORDS = _number_words()
DATE_WORDS = _dates()
"""Full names only: ``day:1`` is Monday, ``month:1`` is January."""


def run_of_digits(more: Iterable[str]) -> re.Pattern[str]:
    """A pattern for three or more digits in words: "four nine two seven"; ``more`` are other words
    for digits."""
    words = {word for word, number in NUMBER_WORDS.items() if number < 100} | set(more)
    packed = {word for word in words if re.match(r"[\u0e00-\u9fff가-힣]", word)}
    one, tight = ("|".join(sorted(w, key=len, reverse=True)) for w in (words - packed, packed))
    return re.compile(
        rf"(?<!\w)(?:{one})(?:[ ,-]{{1,2}}(?:{one})){{2,19}}(?!\w)"
        rf"|(?:{tight})(?: ?(?:{tight})){{2,19}}"
    )


_NUMBER = re.compile(
    r"(?<![\d.,:/])(?:\d{4}-\d{2}-\d{2}|\d{1,2}[:.]\d{2}(?=\s?(?:uhr|am|pm|h)\b)|\d{1,2}:\d{2}(?::\d{2})?"
    r"|\d{1,3}(?:([.,' ])\d{3})(?:\1\d{3})*(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,/]\d+)*)[²³]?"
)
_HAN_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_HAN_NUMBER = re.compile("[零〇一二两三四五六七八九十]+")


def numbers(text: str) -> set[str]:
    """The numbers, times and dates of a text in one spelling: ``1,200`` is ``1200``, ``1,5`` is
    ``1.5`` and never ``15``, ``three`` is ``3``, ``08:30`` is ``8:30``, and ``Tuesday`` is
    ``day:2``."""
    return set(_numbers(text))


@lru_cache(maxsize=512)
def _numbers(text: str) -> frozenset[str]:
    """The same, cached: every window of a conversation asks about the whole conversation."""
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
