"""When the user's words point at the assistant's: "yes", "the second one", a bare "two weeks"."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from memchat.memory.gate import markers
from memchat.memory.gate.candidate import Candidate
from memchat.memory.gate.sentences import languages_in
from memchat.memory.gate.text import (
    Span,
    content_words,
    find_span,
    fold,
    numbers,
    says,
    sentence_around,
)

if TYPE_CHECKING:
    from memchat.memory.gate.evidence import Findings, Turn

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


def numbers_said(text: str) -> set[str]:
    """The numbers of a text, with 1 where a word for one stands in it."""
    return numbers(text) | ({"1"} if _ONE.search(fold(text).text) else set())


def asks(text: str, span: Span) -> bool:
    """Whether the sentence a span stands in is a question."""
    return "?" in fold(sentence_around(text, span.start, span.end).text).text


def check_ref(candidate: Candidate, found: Findings, injected: Collection[str]) -> Candidate:
    """Check the cited assistant words; a citation that cannot be used is dropped."""
    if candidate.ref is None:
        return candidate
    alone = candidate.model_copy(update={"ref": None})
    order = list(found.turns)
    cited = next((t for t in order if t.id == candidate.ref.msg and t.role == "assistant"), None)
    span = find_span(candidate.ref.span, cited.text) if cited else None
    if cited is None or span is None:
        found.notes.append("the cited words are in no message of the assistant")
        return alone
    user = found.proofs[0][0]
    between = order[order.index(cited) + 1 : order.index(user)]
    if order.index(cited) > order.index(user):
        found.notes.append("the cited message comes after the user's words")
        return alone
    if any(_repeats(span.text, memory) for memory in injected) and not _own(candidate, found):
        found.refusals.append("the cited words only repeat a memory that was shown")
        return candidate
    if any(turn.role == "assistant" for turn in between):
        found.doubts.append("the cited message is not the assistant's latest")
    found.ref = (cited, span)
    _check_pointer(candidate, found, user, cited, span)
    _check_content(candidate, found, cited, span)
    return candidate


def _own(candidate: Candidate, found: Findings) -> bool:
    words = content_words(candidate.value)
    return bool(words) and all(says(found.said(), word) for word in words)


def _repeats(span: str, memory: str) -> bool:
    words, shown = content_words(span) | numbers(span), content_words(memory) | numbers(memory)
    return bool(find_span(memory, span) or find_span(span, memory)) or bool(
        words and shown and (words <= shown or shown <= words)
    )


def _check_pointer(
    candidate: Candidate, found: Findings, user: Turn, cited: Turn, span: Span
) -> None:
    """The user takes it, refuses nothing of it, and an ordinal names the item that is cited."""
    quote = found.proofs[0][1]
    languages = languages_in(user.text, quote.start, quote.end) or found.languages
    inside = fold(quote.text).text
    clauses = [clause for clause in _CLAUSE.split(inside) if clause.strip()] or [inside]
    offered = content_words(span.text) | content_words(candidate.value)
    offered = {word for word in offered if not _ENDING.fullmatch(word)}
    shared = [c for c in clauses if any(says(c, word) for word in offered)]
    ordinal = [c for c in clauses if _ordinal(c) is not None]
    accepting = [c for c in clauses if markers.marked("acceptance", c, languages)]
    pointer = shared or ordinal or accepting
    if not pointer and not asks(cited.text, span):
        found.doubts.append("the quote neither accepts nor names what is cited")
    if not (shared or ordinal) and "?" not in fold(cited.text[span.start :]).text:
        found.doubts.append("the assistant states it and does not ask, so a yes proves nothing")
    if any(markers.marked("negation", clause, languages) for clause in pointer):
        found.doubts.append("the user refuses it in the same breath")
    elif not (shared or ordinal):
        sentence = sentence_around(user.text, quote.start, quote.end).text
        # A bare "no" is a word of several languages, and a refusal in each.
        lists = languages if len(sentence.split()) > 2 else ()
        if markers.marked("negation", fold(sentence).text, lists) and not markers.marked(
            "negation", fold(candidate.value).text, languages
        ):
            found.doubts.append("there is a refusal in the same sentence")
    if ordinal and not shared:
        _check_item(_ordinal(ordinal[-1]), cited, span, found)


def _ordinal(clause: str) -> int | None:
    """Which item a clause names, from 0; -1 for the last."""
    for place, pattern in enumerate(_ORDINAL_PATTERNS):
        if pattern.search(clause):
            return place
    if match := _NUMBERED.search(clause):
        return int(match[1]) - 1
    return -1 if _LAST.search(clause) else None


def _check_item(place: int | None, cited: Turn, span: Span, found: Findings) -> None:
    items = options(cited.text)
    if place is None or not items or place >= len(items):
        found.doubts.append("the assistant's message has no such item to point at")
    elif find_span(span.text, items[place]) is None and find_span(items[place], span.text) is None:
        found.doubts.append("the cited words are another item than the one the user named")


def options(text: str) -> list[str]:
    """The items an assistant's message offers: a list, or "a, b or c"."""
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


def _check_content(candidate: Candidate, found: Findings, cited: Turn, span: Span) -> None:
    """The value's words come from the cited span or the user; nothing in it is denied there."""
    held = f"{span.text} {found.said()}"
    extra = sorted(word for word in content_words(candidate.value) if not says(held, word))
    if extra:
        found.doubts.append(f"the value adds words to the cited ones: {', '.join(extra)}")
    languages = languages_in(cited.text, span.start, span.end) or found.languages
    value = fold(candidate.value).text
    sentence = sentence_around(cited.text, span.start, span.end)
    lead = fold(cited.text[sentence.start : span.end]).text
    clause = _CLAUSE.split(lead)[-1]
    if markers.marked("negation", clause, languages) and not markers.marked(
        "negation", value, languages
    ):
        found.doubts.append("the assistant's sentence holds a negation")
