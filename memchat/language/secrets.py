"""Finds what must not be remembered unasked: secrets, and data that identify or reach a person.

"Locker code is 7741" is a secret, "locker is number 12" is not. ``secret_shapes`` knows secrets by
their form, ``secret_words`` by the words near them. The codes of locks are found here by what is
said about the lock: numbers ("you get in the house with 28841"), turns of a dial and patterns.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise

from memchat.language import lexicon, secret_shapes, secret_words
from memchat.language.secret_shapes import Place, regions
from memchat.language.secret_words import Cue, alternatives, any_of, one_of
from memchat.language.text import UNSPACED, Folded, fold

PERSONAL = frozenset({"e-mail", "phone"})
"""Kinds that are remembered if the user asks for it. The others are refused even then."""


_WINDOW = 128_000
MARGIN = 4_000
"""Characters: a long text is searched in windows, each with this much before and after it, so that
it takes little memory. The longest secrets, key files, are shorter than the margin."""
_LONG = 32_000
"""Characters from which on the secrets of only a few texts are cached."""
_ASKED = 80
_ANSWER = 60
_BARE = 3
"""The most words of an answer to a message that was no question."""
_PAIR = 4
"""The most characters of two words that are too short to reveal a secret."""
_SIGNED = re.compile(r"(?=[^\s\"'()]{0,60}[!@#$%&*_+=^~?<>|\\])[^\s\"'()]{4,60}")
"""Letters with a sign among them or behind them, as only a password has them."""


@dataclass(frozen=True, slots=True)
class Secret:
    """The kind and place of one secret in a text. It does not hold the secret itself."""

    kind: str
    start: int
    end: int
    plain: bool = False
    """Whether it is letters alone that words near it call a password or code, as they may call a
    motto, a theme or a cat."""


def find_secrets(text: str) -> list[Secret]:
    """The secrets of a text in order, none overlapping another."""
    return list(_found(text) if len(text) <= _LONG else _found_in_long(text))


def find_in_document(text: str) -> list[Secret]:
    """The same for a text of any length, which is not cached."""
    found: list[Secret] = []
    for start in range(0, len(text), _WINDOW):
        at = max(0, start - MARGIN)
        piece = text[at : start + _WINDOW + MARGIN]
        for one in _search(piece, fold.__wrapped__(piece)):
            found.append(Secret(one.kind, one.start + at, one.end + at, one.plain))
    return _apart(found)


@lru_cache(maxsize=512)
def _found(text: str) -> tuple[Secret, ...]:
    """The same, cached: each proposal from a conversation asks about all of its messages."""
    return tuple(_search(text, fold(text)))


@lru_cache(maxsize=32)
def _found_in_long(text: str) -> tuple[Secret, ...]:
    return tuple(find_in_document(text))


def _search(text: str, folded: Folded) -> list[Secret]:
    """The one pass: each spot of a text where something may be is found once."""
    everywhere = {"": [(0, len(text))]}
    found = [
        Secret(*one) for one in secret_shapes.find_forms(secret_shapes.IN_TEXT, text, everywhere)
    ]
    plain = folded.text
    near = {"": [(0, len(plain))]}
    shaped = secret_shapes.find_forms(secret_shapes.IN_FOLDED, plain, near)
    cues = secret_words.find_cues(plain)
    places = [("password", *place) for place in secret_words.find(plain, near, cues)]
    for place in _lock_codes(plain, near["figure"], cues):
        if not secret_words.is_harmless(plain, place[0], *place):
            places.append(("password", *place, False))
    for kind, start, end, letters in dict.fromkeys((*places, *((*one, False) for one in shaped))):
        found.append(Secret(kind, folded.offsets[start], folded.ends[end - 1], letters))
    return _apart(found)


def _apart(found: Sequence[Secret]) -> list[Secret]:
    """Secrets in order; those that overlap are one."""
    out: list[Secret] = []
    for secret in sorted(found, key=lambda s: (s.start, -s.end)):
        if not out or secret.start >= out[-1].end:
            out.append(secret)
        else:
            last = out[-1]
            end = max(last.end, secret.end)
            out[-1] = replace(last, end=end, plain=last.plain and secret.plain)
    return out


def find_in_fact(key: str, value: str) -> Iterator[tuple[str, Secret]]:
    """The secrets in the value of a fact and under its key, each with its words.

    Key and value are joined by "=" and not by a colon: "locker: 1120" in a note is a code, but the
    number of a locker in a fact need not be one.
    """
    for text in (value, f"{key.replace('_', ' ')} = {value}"):
        yield from ((text[s.start : s.end], s) for s in find_secrets(text))


def find_answered(question: str, text: str) -> list[Secret]:
    """The secrets in the answer to a question: after "And the PIN?" the text "4821" is one."""
    asked = question.rstrip()[-_ASKED:].rstrip("?？؟.… ") + ": "
    put = question.rstrip().endswith(("?", "？", "؟", ":", "：")) or len(text.split()) <= _BARE
    if len(text) > _ANSWER or not put:
        return []
    shift = len(asked)
    found = (s for s in find_secrets(asked + text) if s.start >= shift)
    answers = [replace(s, start=s.start - shift, end=s.end - shift) for s in found]
    # An address or phone number that is one by itself is no answer to the question.
    told = [s for s in find_secrets(text) if s.kind in PERSONAL]
    return [a for a in answers if not any(s.start < a.end and a.start < s.end for s in told)]


def find_in_conversation(texts: Sequence[str]) -> Iterator[tuple[int, Secret]]:
    """The secrets of a conversation, each with the index of its message."""
    before = ""
    for number, text in enumerate(texts):
        for secret in (*find_secrets(text), *find_answered(before, text)):
            yield number, secret
        before = text


def reveals(words: str, secret: str) -> bool:
    """Whether words hold a secret or a revealing part of it: its digits, a long word, two of its
    words in a row, or letters with a sign."""
    hidden, shown = " ".join(_pieces(secret)), " ".join(_pieces(words))
    within = hidden in shown if UNSPACED.match(hidden) else f" {hidden} " in f" {shown} "
    if len(hidden) > 1 and within:
        return True
    pieces = _pieces(words)
    telling = [p for p in (*pieces, *_pieces(secret)) if len(p) > 1 + 4 * p.isalpha()]
    if any(piece in hidden and piece in shown for piece in telling):
        return True
    whole = fold(secret).text
    if any(token in whole for token in _SIGNED.findall(fold(words).text)):
        return True
    pairs = (f"{a} {b}" for a, b in pairwise(pieces))
    return any(len(pair) > _PAIR and pair in hidden for pair in pairs)


@lru_cache(maxsize=16384)
def _pieces(text: str) -> tuple[str, ...]:
    return tuple(re.findall(rf"(?:[^\W_]|[{secret_words.MARKS}])+", fold(text).text))


def mask(text: str, question: str = "", *, plain: bool = True) -> str:
    """The text with each secret replaced by its kind in brackets, those in plain words only with
    ``plain``; ``question`` is what it answers, if anything."""
    out, at = [], 0
    found = _apart([*find_secrets(text), *find_answered(question, text)])
    for secret in (one for one in found if plain or not one.plain):
        out.append(f"{text[at : secret.start]}[{secret.kind}]")
        at = secret.end
    return "".join(out) + text[at:]


def mask_part(text: str, start: int, end: int) -> str:
    """A part of a text with each secret replaced by its kind in brackets. The text around it is
    read as well: it may tell that something is a secret, or have the beginning of a long one."""
    before = max(start - MARGIN, 0)
    out, at = [], start
    for secret in find_secrets(text[before : end + MARGIN]):
        first, last = before + secret.start, before + secret.end
        if last > start and first < end:
            out.append(f"{text[at : max(first, at)]}[{secret.kind}]")
            at = min(last, end)
    return "".join(out) + text[at:end]


_NEAR = 70
"""The most characters between a number and the lock, before or after it."""
_AROUND = 130
"""Characters before and after a number that are read."""
_BESIDE = 40
"""Characters next to a number that are searched for what is done with it."""
_FIGURE = re.compile(
    r"(?<![a-zа-яß-ÿ\d.,:/€$£#*+-])"
    r"(?:[#*]?\d{3,8}[#*]?|\d{1,2}(?:-\d{1,2}){2,7}|\d(?:,? \d){2,7}|\d{1,4}[a-z]\d{1,4}#?)"
    r"(?![\d:/%€$£°]|[.,]\d|-\d| ?[€$£%°]|[a-zß-ÿ])"
)
"""A number of three to eight digits, written as one, with dashes, or digit by digit."""
_ENTERED = ("enter", "use", "take")
"""The kinds of words for entering a number."""
_SEQUENCE = re.compile(r"\d\W|#|\*|\d[a-z]")
_CLOCK = re.compile(r"(?:[01]?\d|2[0-3])[0-5][05]")
_WAKING = re.compile(
    r"alarm|wecker|réveil|despertador|sveglia|wekker|будильник|budzik|アラーム|目覚まし|알람|闹钟"
)
_RANGE = re.compile(r"\d ?(?:to|bis|à|a|al|até|tot|до|do|-|–|~) ?$")
_NUMBERED = re.compile(
    r"(?<!\w)(?:numbers?|nummer|n[or]\.?|nº|n°|número|numéro|numero|numara\w*|номер\w?|room|zimmer|bus"
    r"|line|unit|flat|apartment|building|flight|train|year|anno|année|año|jahr) $"
)
_MEASURE = re.compile(r" ?(?:[cmk]?m|m²|sq|k?g|l|k?w|v|gb|mb|mm|ml)(?!\w)")
_YEAR = re.compile(r"(?:19|20)\d\d")
_WITH = re.compile(r"(?:with|using|mit|avec|con|com|met|кодом|kodem|med) (?:\w+ )?$")
_SINGLY = re.compile(r"\d(?:-\d){2,7}")
_COLON = re.compile(r" ?: ?$")
_PRICE = re.compile(
    r"(?<!\w)(?:rent|pric|cost|budget|paid|pay|spen[dt]|bill|ticket|deposit|miete|preis|kosten|kaution"
    r"|alquiler|precio|coste|costo|gasto|loyer|prix|coût|affitto|prezz|cost[oi]|spes[ae]|aluguel"
    r"|renda|preço|custo|huur|prijs|цен|аренд|стоимост|бюджет|расход|kira|fiyat|bütçe|czynsz|cen[aęy]"
    r"|koszt|hyra|pris)|kirasi|miete\b|kosten\b|preis\b|إيجار|سعر|ثمن|ميزانية|किराया|कीमत|家賃|値段|価格|予算"
    r"|房租|租金|价格|價格|预算|월세|가격|예산|ค่าเช่า|ราคา|งบ"
)
"""Words near which a number is an amount of money."""
_CODED = re.compile(
    r"key ?pad|cod[eiío]|kod|k[óò]d|code|код|κωδικ|コード|暗証|密[码碼]|번호|رمز|कोड|รหัส|קוד"
)
"""Words near which even a round number is a code."""
_SENTENCE_ENDS = re.compile(r"[.!?;\n](?:\s|$)|[。！？]")
_WORD = re.compile(r"[ ,]*([^\W\d]+)")
_CLAUSE_BEGINS = re.compile(r"(?:^|[.,;:!?(\n-] ?|(?<!\w)(?:and|or|und|et|y|e|i|en|with) )[\"']?$")
_CLAUSE_ENDS = re.compile(r"[\"']?(?:\s*$|[,;.!?)])")


@cache
def _lead(*kinds: str) -> re.Pattern[str]:
    """A pattern for the text right before a number: a word for entering it, or "with", and small
    words."""
    small = one_of(sorted(lexicon.all_words("function_words")))
    begin = alternatives(*kinds)
    return re.compile(rf"(?:{begin})(?:\s*:)?(?: (?:{small}|code|number|pin)){{0,2}}[\s\"'「]*$")


@cache
def _follows(*kinds: str) -> re.Pattern[str]:
    """A pattern for the text right after a number: what it does, or a word that follows "with"."""
    return re.compile(rf"[\"'」]?\s*(?:{alternatives(*kinds)})")


@cache
def _unlocking() -> re.Pattern[str]:
    """A pattern for opening something that is not named: "unlocks with", "disarm it with"."""
    both = (alternatives(kind) for kind in ("open", "with"))
    return re.compile(r"(?:{})(?: \w+){{0,2}} (?:{}) $".format(*both))


def _lock_codes(text: str, figures: list[Place], cues: list[Cue]) -> Iterator[Place]:
    """The places of lock codes, dial turns and unlock patterns in a folded text. ``figures`` are
    the regions around its numbers."""

    def of(*kinds: str) -> list[Place]:
        meant = {roles for *_, roles in cues if any(kind in kinds for kind, _ in roles)}
        return [(start, end) for start, end, roles in cues if roles in meant]

    locks, screens, opening = of("coded", "lock"), of("screen"), of("open")
    for region in figures:
        for start, end in _spans(_FIGURE, text, region):
            begin = max(0, start - _AROUND)
            around = text[begin : end + _AROUND], start - begin, end - begin
            about = _is_near(locks, (start, end)) or _is_near(opening, (start, start))
            if (about or "#" in text[start:end]) and _opens(*around):
                yield start, end
    for part in regions(locks, len(text), 160, 160) if figures else ():
        turns = _spans(any_of("turn"), text, part)
        for piece in regions(turns, part[1], 20, 40):
            yield from (span for span in _spans(_turned(), text, piece) if _is_near(locks, span))
    for part in regions(screens, len(text), 200, 200) if opening else ():
        for span in _spans(_drawn(), text, part):
            if _is_near(opening, span) and _is_near(screens, span):
                yield span


def _spans(pattern: re.Pattern[str], text: str, part: Place) -> Iterator[Place]:
    return (match.span() for match in pattern.finditer(text, *part))


def _is_near(locks: list[Place], span: Place) -> bool:
    """Whether a lock is near. The locks are sorted, so only the two nearest are checked."""
    at = bisect_left(locks, span)
    return any(
        lock[0] < span[1] + _NEAR and lock[1] > span[0] - _NEAR
        for lock in locks[max(0, at - 1) : at + 1]
    )


@lru_cache(maxsize=4096)
def _opens(text: str, start: int, end: int) -> bool:
    """Whether a number opens the lock near it, and is not a count, a label or a time."""
    span = start, end
    locks = list(_spans(any_of("coded", "lock"), text, (0, len(text))))
    before = text[max(0, span[0] - _BESIDE) : span[0]]
    if _RANGE.search(before) or _is_counted(text, *span) or _is_a_year(text, span, before):
        return False
    if not _is_near(locks, span):
        return _is_typed(text, span, before)
    if _is_an_amount(text, span):
        return False
    if "#" in text[slice(*span)] or _SINGLY.fullmatch(text, *span):
        return True
    if _is_label(locks, span, text) and not _follows("after").match(text, span[1]):
        return _ends_a_note(text, span, locks)
    near = max(0, span[0] - _NEAR), span[1] + _NEAR
    if not any_of("open", *_ENTERED).search(text, *near):
        return False
    takes = ("take",) if any_of("coded").search(text, *near) else ()
    if _lead("enter", "use", "with", *takes).search(before):
        return not (_CLOCK.fullmatch(text, *span) and _WAKING.search(before))
    if _NUMBERED.search(before):
        return False
    opens = ("open",) if _CLAUSE_BEGINS.search(before) else ()
    return _follows(*opens, "after", *_ENTERED).match(text, span[1]) is not None


def _is_an_amount(text: str, span: Place) -> bool:
    """Whether a number is round, and no word near it is about codes or keys."""
    near = max(0, span[0] - _NEAR), span[1] + _NEAR
    return (
        span[1] - span[0] > 3
        and text.endswith("00", *span)
        and not _CODED.search(text, *near)
        and not any_of("enter").search(text, *near)
    )


@cache
def _entered() -> re.Pattern[str]:
    return re.compile(rf"(?:{alternatives(*_ENTERED)})[\s:]*$")


def _is_a_year(text: str, span: Place, before: str) -> bool:
    """Whether a number looks like a year and is not said to be entered."""
    said = _WITH.search(before) or _entered().search(before)
    return _YEAR.fullmatch(text, *span) is not None and not said


def _is_typed(text: str, span: Place, before: str) -> bool:
    """Whether a number without a lock near it is said to be typed in, or to open something."""
    if "#" in text[slice(*span)]:
        return any_of(*_ENTERED).search(before) is not None
    long = span[1] - span[0] > 3
    return bool(long and _unlocking().search(before) and _CLAUSE_ENDS.match(text, span[1]))


def _is_label(locks: list[Place], span: Place, text: str) -> bool:
    """Whether a number is part of the lock's name, as in "locker 112", or all that a note says
    about it."""
    at = bisect_left(locks, span)
    return at > 0 and not text[locks[at - 1][1] : span[0]].strip(" :=")


def _ends_a_note(text: str, span: Place, locks: list[Place]) -> bool:
    """Whether a clause ends with something that always has a code, a colon, and a number of at
    least four digits, and no price is mentioned."""
    lock = locks[bisect_left(locks, span) - 1]
    if span[1] - span[0] < 4 or not _COLON.search(text[lock[1] : span[0]]):
        return False
    if not any_of("coded").match(text, lock[0]) or not _CLAUSE_ENDS.match(text, span[1]):
        return False
    if _CLOCK.fullmatch(text, *span) and _WAKING.search(text, *lock):
        return False
    ends = [end.end() for end in _SENTENCE_ENDS.finditer(text, max(0, lock[0] - _NEAR), lock[0])]
    begin = ends[-1] if ends else max(0, lock[0] - _NEAR)
    return _PRICE.search(text, begin, span[1] + _BESIDE) is None


def _is_counted(text: str, start: int, end: int) -> bool:
    """Whether the number counts the thing after it. Round numbers and those of three digits may
    count anything, longer ones only what is commonly counted."""
    if _SEQUENCE.search(text, start, end):
        return False
    if _MEASURE.match(text, end) or any_of("count").match(text, end + (text[end : end + 1] == " ")):
        return True
    if end - start > 3 and not text.endswith("00", start, end):
        return False
    if text.endswith("0", start, end) and end - start == 3:
        return True
    word = _WORD.match(text, end)
    return bool(
        word
        and "," not in word[0]
        and word[1].isascii()
        and word[1] not in lexicon.all_words("function_words")
        and not _follows("after", *_ENTERED, "open").match(text, end)
    )


@cache
def _turned() -> re.Pattern[str]:
    turn = alternatives("turn")
    first = rf"(?:{turn})\W{{0,2}}(?:[^\W\d]{{1,6}} ){{0,2}}\d{{1,2}}(?!\d)"
    last = rf"(?<!\d)\d{{1,2}} ?(?:[^\W\d]{{1,5}} ){{0,2}}(?:{turn})"
    gap = r"[\s,;.>-]{0,3}(?:[^\W\d]{1,5} ){0,2}"
    return re.compile(rf"{first}(?:{gap}{first}){{1,6}}|{last}(?:{gap}{last}){{1,6}}")


@cache
def _drawn() -> re.Pattern[str]:
    place = rf"(?:{alternatives('turn')})"
    gap = r"[\s,;>、，-]{0,3}(?:[^\W\d]{1,8}[ ,]{1,2}){0,4}"
    return re.compile(rf"{place}(?:{gap}{place}){{2,12}}(?: (?:one|two|once|twice))?")
