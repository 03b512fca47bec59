"""Checks of the gate on the key and the value of a proposed memory, and comparisons of two values.

A number or name in a value that the user did not say is left for the user to decide. Words of the
assistant count only where the user took them up, as with "yes" or "the second one".

Two values that differ in a number, unit, name, person, side, time of day or negation are never
merged, even where the model calls them the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from memchat.errors import InputError
from memchat.facts.keys import canonical, cardinality, normalise_key
from memchat.language import lexicon
from memchat.language.secrets import find_in_conversation, find_secrets, reveals
from memchat.language.sentences import Span, find_span, sentence_around
from memchat.language.text import (
    NUMBER_WORDS,
    content_words,
    fold,
    holds_word,
    names,
    normal_value,
    numbers,
    visible_text,
)
from memchat.learn.candidate import Case, Turn
from memchat.learn.own_words import (
    hidden_instruction,
    is_instruction,
    overrides_rules,
    own_words,
    reads_as_instruction,
)

_COUNTED = re.compile(r"(\d[\d.,:]*)\s?([^\W\d_]+)")


def _groups(kind: str) -> list[list[re.Pattern[str]]]:
    """Groups of words of one kind, as patterns that match their beginnings."""
    listed = (group for code in lexicon.codes() for group in lexicon.groups(code, kind))
    return [[_beginning(word) for word in group] for group in listed]


def _beginning(word: str) -> re.Pattern[str]:
    short = r"(?!\w)" if len(word) < 4 and word.isalpha() else r"\w{0,3}(?!\w)"
    spaced = not re.search("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]", word)
    return re.compile(rf"(?<!\w){word}{short}" if spaced else word)


_OPPOSITE_SIDES = _groups("opposites")
_PERSONS = _groups("people")
_RANKS = _groups("ordinals")


def difference(one: str, other: str) -> str | None:
    """What keeps two values apart: "number", "unit", "name", "person", "side or time" or
    "negation"; None where they may mean the same."""
    if numbers(one) != numbers(other) or _held(_RANKS, one) != _held(_RANKS, other):
        return "number"
    if _other_units(one, other):
        return "unit"
    if _has_unshared_name(one, other) or _has_unshared_name(other, one) or _other_order(one, other):
        return "name"
    if _held(_PERSONS, one) != _held(_PERSONS, other):
        return "person"
    a, b = fold(one).text, fold(other).text
    if any(_are_opposites(sides, a, b) for sides in _OPPOSITE_SIDES):
        return "side or time"
    lacking = words_differ(one, other)
    words, others = content_words(one), content_words(other)
    titles = one[:1].isupper() and other[:1].isupper() and words != others
    if len(words) == len(others) == 1 and (lacking or titles):
        return "name"
    if lacking and not (_has_case(one) and _has_case(other)):
        return "name"  # without capitals another word may be a name
    return "negation" if is_negated(one) != is_negated(other) else None


def are_equivalent(one: str, other: str) -> bool:
    """Whether two values have the same words in the same order, apart from endings, so that they
    may be merged without asking."""
    return (
        difference(one, other) is None
        and _small_signs(one) == _small_signs(other)
        and all_names(one) == all_names(other)
        and contains_words(one, other)
        and contains_words(other, one)
        and _in_order(one, other)
    )


def _small_signs(value: str) -> set[str]:
    """Single letters and symbols, by which blood groups, sizes, C and C++ or two emoji differ. Not
    the article in "a cat"."""
    bare = re.sub(r"(?<!\w)a (?=\w{2})", "", fold(value).text)
    letters = re.findall(r"(?<!\w)[^\W\d_](?!\w)", bare)
    signs = [c for c in value if unicodedata.category(c)[0] == "S" or c in "#*%&"]
    return {*letters, *signs}


def words_differ(one: str, other: str) -> bool:
    """Whether each of two values has a word that the other does not have."""
    return not contains_words(one, other) and not contains_words(other, one)


def contains_words(wide: str, narrow: str, *, loosely: bool = True) -> bool:
    """Whether a value has every content word of another, at least by its stem."""
    return normal_value(wide) == normal_value(narrow) or all(
        holds_word(wide, word, loosely=loosely) for word in content_words(narrow)
    )


def is_negated(value: str) -> bool:
    """Whether a value has a negation."""
    return bool(lexicon.find_markers("negation", fold(value).text, ()))


def full_names(text: str) -> list[str]:
    """Names of several words as one: "New York"."""
    found = names(text, from_start=True)
    runs: list[list[str]] = [[]]
    for word in text.split():
        bare = word.strip(".,;:()'\"!?")
        if bare in found:
            runs[-1].append(bare)
        if bare not in found or bare != word:
            runs.append([])
    return [" ".join(run) for run in runs if run]


def all_names(value: str) -> set[str]:
    """Every name of a value, also its first word."""
    return names(value, from_start=True)


def says_it_changed(said: str, value: str, languages: tuple[str, ...]) -> bool:
    """Whether words say that something replaces a value."""
    folded = fold(said).text
    signs = (lexicon.find_markers(kind, folded, languages) for kind in ("change", "over"))
    return any(signs) or _denied(said, value, languages)


def _denied(said: str, value: str, languages: tuple[str, ...]) -> bool:
    """Whether words negate every word of a value that is not negated itself."""
    denies = lexicon.find_markers("negation", fold(said).text, languages) and not is_negated(value)
    return bool(denies) and all(holds_word(said, word) for word in content_words(value))


def _has_case(value: str) -> bool:
    return value.upper() != value.lower()


def names_another(said: str, value: str) -> bool:
    """Whether words name another number, or only other names, than a value. In scripts without
    capitals any word of the value that was not said may be a name."""
    if numbers(value) - numbers(said) and numbers(said) - numbers(value):
        return True
    if said.isupper():
        return False  # in capitals names and words look alike
    if not _has_case(value):
        return not all(holds_word(said, word, loosely=False) for word in content_words(value))
    mine, theirs = all_names(value), [n for n in names(said) if not _named(value, n)]
    if not theirs or all(_named(said, name) for name in mine):
        return False
    # "Eastgate Bakery" is another one than "Northwind Bakery", and shares a name with it.
    runs = (run.split() for run in full_names(said))
    shared = any({*run} & mine and {*run} & {*theirs} for run in runs)
    return shared or not any(_named(said, name) for name in mine)


def _has_unshared_name(one: str, other: str) -> bool:
    return any(not _named(other, name) for name in names(one) & all_names(one))


def _named(value: str, name: str) -> bool:
    """Whether a value has exactly this name: Priyanka is not Priya with an ending."""
    wanted, folded = fold(name).text, fold(value).text
    if not wanted.isascii() and not _has_case(name):
        return wanted in folded
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", folded) is not None


def _held(groups: list[list[re.Pattern[str]]], value: str) -> frozenset[int]:
    folded = fold(value).text
    return frozenset(
        i for i, words in enumerate(groups) if any(word.search(folded) for word in words)
    )


def _are_opposites(sides: list[re.Pattern[str]], one: str, other: str) -> bool:
    in_one = {i for i, side in enumerate(sides) if side.search(one)}
    in_other = {i for i, side in enumerate(sides) if side.search(other)}
    return bool(in_one and in_other and in_one != in_other)


def _other_order(one: str, other: str) -> bool:
    """Whether names stand in another order, unless they are a list: "Ana and Otto"."""
    first, second = _name_order(one), _name_order(other)
    return first != second and not (_listed(one, first) and _listed(other, second))


def _other_units(one: str, other: str) -> bool:
    """Whether one number has two units: hours and euros, but not cm and centimetres."""
    units, others = dict(_COUNTED.findall(fold(one).text)), dict(_COUNTED.findall(fold(other).text))
    return any(
        not (holds_word(a, b) or holds_word(b, a) or _is_short_for(a, b) or _is_short_for(b, a))
        for a, b in ((units[n], others[n]) for n in units.keys() & others.keys())
    )


def _is_short_for(short: str, long: str) -> bool:
    """Whether the letters of an abbreviation stand in a word in their order."""
    letters = iter(long)
    return short[0] == long[0] and all(letter in letters for letter in short)


def _name_order(value: str) -> list[str]:
    found = all_names(value)
    return [word for word in re.findall(r"[\w'’.&-]+", value) if word in found]


def _listed(value: str, order: list[str]) -> bool:
    places = [value.find(name) for name in order]
    between = [
        value[a + len(name) : b] for (a, b), name in zip(pairwise(places), order, strict=False)
    ]
    return all(
        re.fullmatch(r"\s*(?:,|&|\+|/|and|und|et|y|e|en|ve|и|と|和)?\s*", gap) for gap in between
    )


def _in_order(one: str, other: str) -> bool:
    words, others = _ordered(one), _ordered(other)
    return len(words) == len(others) and all(
        holds_word(a, b) or holds_word(b, a) for a, b in zip(words, others, strict=True)
    )


def _ordered(value: str) -> list[str]:
    """The content words in their order."""
    folded = fold(value).text
    return sorted(content_words(value), key=lambda word: (folded.find(word), word))


VALUE_LIMIT = 280
_MAX_KEY_WORDS = 5


def check_key(case: Case) -> None:
    """Normalise the key and the value. What cannot be a slot's name waits for a person."""
    item = case.candidate
    try:
        key = canonical(normalise_key(item.key))
    except InputError:
        key = "note"
        case.reviews.append("no name that can be used was proposed for it")
    words = key.split("_")
    if cardinality(key) is None and (
        len(words) > _MAX_KEY_WORDS or is_instruction(" ".join(words), wish=False)
    ):
        case.reviews.append("its name says more than a name should")
    table = cardinality(key)
    value = visible_text(item.value)
    if len(value) > VALUE_LIMIT:
        case.reviews.append(f"it is longer than {VALUE_LIMIT} characters")
    case.change(key=key, value=value, many=table == "many" if table else item.many)


_ONE = re.compile(r"(?<!\w)(?:one|a|an|ein\w*|une?|un[oa]?|uma?|een|bir|один|одна)(?!\w)|一")
_PLACE_IN_A_LIST = re.compile(
    r"(?<!\w)(?:first|premi\w+|erste[nrsm]?|primer\w*|prim[oa]|primeir\w|eerste|birinci\w*|ilki\w*|перв\w+|第一\S?|最初|一番目|الأول\w*|पहल\w"
    r"|second\w*|deuxième|zweite[nrsm]?|segund\w+|tweede|ikinci\w*|втор\w+|第二\S?|二番目|الثاني\w*|दूसर\w"
    r"|third|troisième|dritte[nrsm]?|tercer\w*|terz\w|terceir\w|derde|üçüncü\w*|трет\w+|第三\S?|三番目|الثالث\w*|तीसर\w"
    r"|fourth|quatrième|vierte[nrsm]?|cuart\w|quart\w|vierde|dördüncü\w*|четв\w+|第四\S?|四番目|الرابع\w*|चौथ\w"
    r"|last|latter|letzte[nrsm]?|dernière?|últim[oa]|ultim[oa]|laatste|son(?:uncu)?\w*|последн\w+|最后\S?|最後|الأخير\w*|आखिर\w*"
    r")(?!\w)|(?<!\w)(?:number|option|nummer|numéro|opción|no\.?|#) ?\d{1,2}(?!\w)"
)
"""Words that name an item of a list by its place."""
_ENDING = re.compile("[\u3041-\u309f]+")


def check_references(case: Case) -> None:
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
    case.ref = (cited, span)
    _check_pointer(case, cited, span)
    _check_content(case, cited, span)


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
    # "Yes" to a statement only agrees; "yes" to a question makes its words the user's own.
    if _PLACE_IN_A_LIST.search(inside) is None and not asked_after(cited, span):
        case.reviews.append("the assistant states it and does not ask, so a yes proves nothing")


def asked_after(cited: Turn, span: Span) -> bool:
    """Whether the assistant asks something with the cited words or behind them."""
    return "?" in fold(cited.text[span.start :]).text


def _check_content(case: Case, cited: Turn, span: Span) -> None:
    """Check that the words of the value come from the cited sentence and the user's messages, which
    may hold them together: "What is the bakery called?", "The Slow Loaf"."""
    sentence = sentence_around(cited.text, span.start, span.end).text
    held = f"{sentence} {span.text} {case.own_message_words()}"
    extra = sorted(
        word for word in content_words(case.candidate.value) if not holds_word(held, word)
    )
    if extra:
        case.reviews.append(f"it adds words to the assistant's: {', '.join(extra)}")


def check_value(case: Case) -> None:
    """Numbers and names must stand in the quoted messages, the cited span, or the known fact that
    is changed, else the user decides."""
    value = case.candidate.value
    known = case.target.value if case.target else ""
    own = case.own_message_words()
    held = numbers(own) | numbers(known) | ({"1"} if _ONE.search(fold(own).text) else set())
    if case.ref:
        cited, span = case.ref
        if "?" not in fold(sentence_around(cited.text, span.start, span.end).text).text:
            held |= numbers(case.cited_words())
    glued = {n for name in names(case.cited_words(), from_start=True) for n in numbers(name)}
    missing = sorted(numbers(value) - held - glued)  # the 3 of "PyO3" counts nothing
    if missing:
        case.reviews.append(f"you did not say {', '.join(missing)} there")
    heard = (own, f"{case.cited_words()} \n{known}")
    unsaid = sorted(
        name
        for name in names(value, from_start=len(value.split()) == 1)  # a first word is no name else
        if not any(holds_word(text, name) for text in heard)
    )
    if unsaid:
        case.reviews.append(f"you did not say the name {', '.join(unsaid)} there")


SENTENCE_LIMIT = 200


def true_sentence(sentence: str | None, key: str, value: str, said: str = "") -> str | None:
    """A sentence about a fact, on one line; None where it is not true to it, as far as code can
    tell: it has just the numbers, dates and names of the value, and its negation. Other names, and
    a "not", may be those of ``said``, the words that prove the fact. It holds no secret."""
    told = visible_text(sentence or "")
    named, around = f"{key.replace('_', ' ')} {value}", f"{key.replace('_', ' ')} {value} \n{said}"
    words = content_words(value)
    true = (
        0 < len(told) <= SENTENCE_LIMIT
        and numbers(value) <= numbers(told)
        and not any(_is_told_number(told, one) for one in numbers(told) - numbers(named))
        and all(_is_told(told, name) for name in all_names(value))
        and all(holds_word(around, name, loosely=False) for name in names(told))
        and (not words or any(holds_word(told, word) for word in words))
        and _negation_agrees(told, value, said)
        and not find_secrets(told)
        and not (overrides_rules(told) or hidden_instruction(told))
        and ("?" in value or "?" not in fold(told).text)
    )
    return told if true else None


def _is_told_number(sentence: str, number: str) -> bool:
    """Whether a number of a sentence is one in its own language: "due" is two in Italian alone."""
    folded = fold(sentence).text
    if not number.isdigit() or number in re.findall(r"\d+", folded):
        return True
    said = {word for word in re.findall(r"[^\W\d_]+", folded) if word in NUMBER_WORDS}
    listed = {
        entry.partition("=")[0]
        for code in lexicon.languages_of(folded) or lexicon.codes()
        for entry in lexicon.entries(code, "numbers")
    }
    return not said or not listed.isdisjoint(said)


def _is_told(sentence: str, name: str) -> bool:
    """Whether a sentence has a name as it is, with an s of the genitive or, in scripts whose names
    take endings, with one of these."""
    if not fold(name).text.isascii():
        return holds_word(sentence, name, loosely=False)
    return any(_named(sentence, form) for form in (name, f"{name}s"))


def _negation_agrees(sentence: str, value: str, said: str) -> bool:
    if is_negated(sentence):
        return is_negated(value) or is_negated(said)
    return not is_negated(value)


def is_supported_rewording(value: str, now: str, messages: Sequence[str], known: str) -> bool:
    """Whether a value from a second look may replace the proposed one: made of the user's words and
    the known fact, without secret or instruction, and with the same negation."""
    around = " \n".join((*map(own_words, messages), known))
    secrets = [text[s.start : s.end] for text in messages for _, s in find_in_conversation([text])]
    return (
        len(now) <= VALUE_LIMIT
        and numbers(now) <= numbers(around)
        and all(holds_word(around, word) for word in content_words(now))
        and is_negated(now) == is_negated(value)
        and not find_secrets(now)
        and not any(reveals(now, words) or fold(words).text in fold(now).text for words in secrets)
        and not reads_as_instruction(now)
    )
