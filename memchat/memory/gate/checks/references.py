"""Checks references to the assistant's words: "yes", "the second one", a bare "two weeks"."""

from __future__ import annotations

import re

from memchat.language.numbers import numbers
from memchat.language.quotes import find_span
from memchat.language.sentences import Span, sentence_around
from memchat.language.text import content_words, fold, holds_word
from memchat.memory.gate.types import Case, Turn

_ONE = re.compile(r"(?<!\w)(?:one|a|an|ein\w*|une?|un[oa]?|uma?|een|bir|один|одна)(?!\w)|一")
_ORDINALS = (
    r"first|premi\w+|erste[nrsm]?|primer\w*|prim[oa]|primeir\w|eerste|birinci\w*|ilki\w*|перв\w+|第一\S?|最初|一番目|الأول\w*|पहल\w",
    r"second\w*|deuxième|zweite[nrsm]?|segund\w+|tweede|ikinci\w*|втор\w+|第二\S?|二番目|الثاني\w*|दूसर\w",
    r"third|troisième|dritte[nrsm]?|tercer\w*|terz\w|terceir\w|derde|üçüncü\w*|трет\w+|第三\S?|三番目|الثالث\w*|तीसर\w",
    r"fourth|quatrième|vierte[nrsm]?|cuart\w|quart\w|vierde|dördüncü\w*|четв\w+|第四\S?|四番目|الرابع\w*|चौथ\w",
)
_ORDINAL_PATTERNS = tuple(re.compile(rf"(?<!\w)(?:{words})(?!\w)") for words in _ORDINALS)
_LAST = re.compile(
    r"(?<!\w)(?:last|latter|letzte[nrsm]?|dernière?|últim[oa]|ultim[oa]|laatste|son(?:uncu)?\w*|последн\w+|最后\S?|最後|الأخير\w*|आखिर\w*)(?!\w)"
)
_NUMBERED = re.compile(r"(?<!\w)(?:number|option|nummer|numéro|opción|no\.?|#) ?(\d{1,2})(?!\w)")
_ITEM_LINE = re.compile(r"^[ \t]*(?:[-*•·]|\(?(?:\d{1,2}|[a-z])[.)])[ \t]+(.+)$", re.MULTILINE)
_INLINE_ITEM = re.compile(
    r"(?:^|\s)\(?(?:\d{1,2}|[a-d])[.)]\s+(.+?)(?=[,;]?\s+\(?(?:\d{1,2}|[a-d])[.)]\s|$)", re.DOTALL
)
_OR = re.compile(
    r",?\s+(?:or|oder|ou|o|of|veya|ya da|или|أو|या)\s+|还是|或者|それとも", re.IGNORECASE
)
_CLAUSE = re.compile(
    r"[,;:、.!]|(?<!\w)-(?!\w)|(?<!\w)(?:but|aber|mais|pero|mas|maar|ama|но)(?!\w)"
)


_ENDING = re.compile("[\u3041-\u309f]+")


def numbers_in_words(text: str) -> set[str]:
    """The numbers of a text, with 1 for a word such as "one"."""
    return numbers(text) | ({"1"} if _ONE.search(fold(text).text) else set())


def asks_a_question(text: str, span: Span) -> bool:
    """Whether the sentence around a span is a question."""
    return "?" in fold(sentence_around(text, span.start, span.end).text).text


def check(case: Case) -> None:
    """Check the cited words of the assistant. A citation that cannot be used is dropped."""
    ref = case.candidate.ref
    if ref is None:
        return
    order = list(case.turns)
    cited = next((t for t in order if t.id == ref.msg and t.role == "assistant"), None)
    span = find_span(ref.span, cited.text) if cited else None
    user = case.proofs[0][0]
    if cited is None or span is None or order.index(cited) > order.index(user):
        case.notes.append("the cited words are in no message of the assistant before it")
        case.change(ref=None)
        return
    if any(_repeats(span.text, memory) for memory in case.injected) and not _own(case):
        case.refusals.append("the cited words only repeat a memory that was shown")
        return
    between = order[order.index(cited) + 1 : order.index(user)]
    if any(turn.role == "assistant" for turn in between):
        case.signals.append("it may answer an older message of the assistant")
    case.ref = (cited, span)
    _check_pointer(case, cited, span)
    _check_content(case, span)


def _own(case: Case) -> bool:
    words = content_words(case.candidate.value)
    return bool(words) and all(holds_word(case.quoted_words(), word) for word in words)


def _repeats(span: str, memory: str) -> bool:
    words, shown = content_words(span) | numbers(span), content_words(memory) | numbers(memory)
    return bool(find_span(memory, span) or find_span(span, memory)) or bool(
        words and shown and (words <= shown or shown <= words)
    )


def _check_pointer(case: Case, cited: Turn, span: Span) -> None:
    """Whether the user's words take up what is cited: they name a word of it, or the item by its
    place in a list, or answer a question."""
    inside = fold(case.proofs[0][1].text).text
    offered = content_words(span.text) | content_words(case.candidate.value)
    named = any(holds_word(inside, word) for word in offered if not _ENDING.fullmatch(word))
    if named:
        return
    place = _ordinal(inside)
    if place is not None:
        _check_item(place, cited, span, case)
    elif "?" not in fold(cited.text[span.start :]).text:
        # "Yes" to a statement only agrees; "yes" to a question makes its words the user's own.
        case.reviews.append("the assistant states it and does not ask, so a yes proves nothing")
    else:
        case.signals.append("it is the assistant's proposal, taken up with a few words")


def _ordinal(clause: str) -> int | None:
    """Which item a clause names, from 0; -1 for the last."""
    for place, pattern in enumerate(_ORDINAL_PATTERNS):
        if pattern.search(clause):
            return place
    if match := _NUMBERED.search(clause):
        return int(match[1]) - 1
    return -1 if _LAST.search(clause) else None


def _check_item(place: int | None, cited: Turn, span: Span, case: Case) -> None:
    items = options(cited.text)
    if place is None or not items or place >= len(items):
        case.signals.append("it is not clear which of the assistant's words are meant")
    elif find_span(span.text, items[place]) is None and find_span(items[place], span.text) is None:
        case.signals.append(
            "it may be another of the assistant's suggestions than the one you named"
        )


def options(text: str) -> list[str]:
    """The items that a message offers: a list, or "a, b or c"."""
    for pattern in (_ITEM_LINE, _INLINE_ITEM):
        items = [match[1].strip() for match in pattern.finditer(text)]
        if len(items) >= 2:
            return items
    sentence = next((s for s in re.split(r"(?<=[.!?。？])\s*", text) if _OR.search(s)), "")
    if not sentence:
        return []
    *head, tail = _OR.split(sentence)
    listed = [piece.strip(" .?!") for part in head for piece in re.split("[,、，]", part)]
    return [item for item in (*listed, tail.strip(" .?!。？")) if item]


def _check_content(case: Case, span: Span) -> None:
    """Check that the words of the value come from the cited span or the user."""
    held = f"{span.text} {case.quoted_words()}"
    extra = sorted(
        word for word in content_words(case.candidate.value) if not holds_word(held, word)
    )
    if extra:
        case.reviews.append(f"it adds words to the assistant's: {', '.join(extra)}")
