"""Secrets that are recognised by the words near them, in the languages of ``words.toml``: passwords
that are words, codes in letters, answers to security questions, and logins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import islice

from memchat.language import lexicon, password_typos
from memchat.language.number_words import run_of_digits
from memchat.language.secret_words import MARKS, entries, is_spaced, languages, whole_words

Place = tuple[int, int]
_NEAR = 60
"""The most characters between a name and its secret."""
_BARE = 24
"""The same where no "is" stands between them."""
_WORDS = 8
"""The most words of a password that is read as one."""
_SHORT_WORD = 4
"""The most letters of a common word that may end a password."""
_BEFORE = 3
"""The most words before a name without an "is" after it, as in Russian: "пароль от банка
подсолнух"."""
_LETTER = rf"(?:[^\W\d_]|[{MARKS}])"
_LETTERS = re.compile(rf"{_LETTER}+(?:['-]{_LETTER}+)*")
_TOKEN = re.compile(r"[^\s\"',;。、，؛।]+")
_FIGURES = re.compile(
    r"[#*]?\d(?:[ .*#/-]{0,3}\d){2,15}[#*]?(?!\w)"
    r"|(?=[^\s\"',;]{0,40}\d)[^\s\"',;。、]{3,60}"
    r"|(?:[^\W\d]{2,12} \d{1,3}(?:, | then | and | ){0,2}){2,5}"
)
"""A number in any grouping, letters with a digit among them, or the turns of a dial."""
_ASKED = re.compile(r"[^.?!\n]{0,40}\? (?:[^\W\d]+ ){0,2}(\d{4,8})(?=\W*$|[.,!] )")
_QUOTED = re.compile(r"[\"']([^\"'\n]{3,60})[\"']")
_STRONG = r"\s*[:=]+>?\s*|\s+->?\s+"
_CLAUSE = re.compile(r"[.!?;\n](?=\s|$)|[。！？]")
_THIN = re.compile(r"[\d.,:]+(?:%|st|nd|rd|th|am|pm|h|kg|km|g|€|\$)?|[€$£]\S+|\d{4}-\d\d-\d\d")
_SHORT = re.compile(
    r"(?<![\w.,:/-])(?!\d\d0 [^\W\d])\d{3,}[#*]?"
    rf"(?![\w/:%-]|[.,]\d| ?[°%€$£]| (?:[cmk]?m|k?g|m?l|k?w|v|met{_LETTER}+)(?!\w))"
)
_FILE = re.compile(r"\S+\.(?:pdf|docx?|xlsx?|csv|txt|png|jpe?g|zip)[.?)]*")
_PAIRED = re.compile(
    r"(?<!\w)(?:network|netzwerk|ssid|wi-?fi|wlan|user ?(?:name)?|log-?in|benutzer\w*|usuario"
    r"|utilisateur|utente|usuário|gebruiker|account|@\S+)(?!\w)"
)
"""What a password is given together with."""
_NAMED_OTHERWISE = re.compile(
    rf"{_LETTER}+[-.]?\d{{1,4}}|\d+(?:[-.,]?{_LETTER}+)+|\S*://\S*|\S+@\S+\.{_LETTER}+|\S+\.[a-z]{{2,4}}"
)
"""A model number, a count, an address or a file name."""
_SIGN = re.compile(r"\d|[!@#$%&*_+=^~?<>|\\]")


@cache
def _pattern(code: str, *kinds: str) -> re.Pattern[str]:
    return re.compile(whole_words(code, "|".join(e for kind in kinds for e in entries(code, kind))))


@cache
def _names() -> re.Pattern[str]:
    """A pattern of the names in all languages, those of two words before those of one."""
    by_kind = {True: "", False: ""}
    for spaced in by_kind:
        codes = [code for code in languages() if is_spaced(code) is spaced]
        names = [entry for code in codes for kind in _SEEKERS for entry in entries(code, kind)]
        by_kind[spaced] = "|".join(sorted(dict.fromkeys(names), key=lambda name: " " not in name))
    return re.compile(rf"(?<!\w)(?:{by_kind[True]})(?![\w{MARKS}])|(?:{by_kind[False]})")


@lru_cache(maxsize=512)
def _roles(name: str) -> tuple[tuple[str, str], ...]:
    """The kinds and languages in which a word is the name of a secret."""
    return tuple(
        (kind, code)
        for kind in _SEEKERS
        for code in languages()
        if _pattern(code, kind).fullmatch(name)
    )


@cache
def _link(code: str) -> re.Pattern[str]:
    """A pattern for the text right before a secret: "is", "=", or particles in scripts without
    spaces."""
    words = whole_words(code, "|".join(entries(code, "is")))
    return re.compile(rf"(?P<strong>{_STRONG})|\s*{words}(?:\s*:\s*|\s*)")


@cache
def _digit_words() -> re.Pattern[str]:
    """A pattern for three or more digits in words: "four nine two seven"."""
    return run_of_digits(word for code in languages() for word in entries(code, "digits"))


def find(text: str) -> Iterator[tuple[int, Place]]:
    """The start of each name of a secret in a folded text, and the place of the secret."""
    for name, kind, code in _named(text):
        for found in (_SEEKERS[kind](text, name, code), _before(text, name, kind, code)):
            if found is not None:
                yield min(name.start(), found[0]), _trimmed(text, *found, code)


def _named(text: str) -> Iterator[tuple[re.Match[str], str, str]]:
    """The names of secrets, misspelled ones too, each with its kind and language."""
    for name in _names().finditer(text):
        for kind, code in _roles(name[0]):
            yield name, kind, code
    for word in _LETTERS.finditer(text):
        if (meant := password_typos.languages_meant(word[0])) and not _roles(word[0]):
            yield from ((word, "password", code) for code in meant)


@lru_cache(maxsize=4)
def _end(text: str, at: int) -> int:
    """The end of the clause that starts here."""
    limit = min(len(text), at + 2 * _NEAR)
    end = _CLAUSE.search(text, at, limit)
    return end.start() if end else limit


def _links(text: str, at: int, end: int, code: str) -> Iterator[re.Match[str]]:
    """What may stand right before the secret of a name that ends here. There is nothing if the name
    is part of another one ("password manager")."""
    if not is_part_of_name(text, at):
        yield from _link(code).finditer(text, at, min(end, at + _NEAR))


@lru_cache(maxsize=4)
def is_part_of_name(text: str, at: int) -> bool:
    """Whether the name that ends here is part of another one, as in "password manager"."""
    codes = (code for code in languages() if entries(code, "part_of"))
    return any(_pattern(code, "part_of").match(text, at + 1) for code in codes)


@lru_cache(maxsize=4)
def _in_letters(text: str, at: int) -> Place | None:
    """The place of digits in words after the name that ends here."""
    last = min(_end(text, _end(text, at) + 1), at + 2 * _NEAR)
    letters = _digit_words().search(text, at, last)
    return letters.span() if letters else None


def _password(text: str, name: re.Match[str], code: str) -> Place | None:
    """What a name is said to be: any word that is not commonly said of passwords."""
    at, end = name.end(), _end(text, name.end())
    links = list(_links(text, at, end, code))
    for number, link in enumerate(links):
        found = _value(text, link.end(), end, code)
        if found and (number == 0 or is_spaced(code) or _is_made_up(text[slice(*found)])):
            return found
    return (
        _asked(text, at)
        or _paired(text, name, end, code)
        or _unlinked(text, name, end, code)
        or (_made_up(text, links[0].end(), end) if links else _made_up(text, at, end, _is_strong))
    )


def _made_up(
    text: str, at: int, end: int, is_one: Callable[[str], bool] | None = None
) -> Place | None:
    """The first of a few words that can only be a password: "is, as far as I know, Kiwi7tree"."""
    is_one = is_one or _is_made_up
    for number, token in enumerate(_TOKEN.finditer(text, at, min(end, at + _NEAR))):
        if number < _WORDS and is_one(token[0].rstrip(".?!)")):
            return token.span()
    return None


def _is_strong(token: str) -> bool:
    """Whether letters are mixed with digits and signs, so that no "is" is needed before them."""
    return _is_made_up(token) and bool(re.search(r"(?=.*\d).*[!@#$%&*_+=^~?]", token))


def _is_made_up(token: str) -> bool:
    """Whether letters are mixed with digits or signs unlike in any word, number or address."""
    mixed = len(token) > 5 and _is_mixed(token) and re.search(_LETTER, token)
    return bool(mixed) and not _NAMED_OTHERWISE.fullmatch(token)


def _asked(text: str, at: int) -> Place | None:
    """The answer to the speaker's own question: "My password? Wonderwall95"."""
    found = re.compile(r"\? (\S{4,60})").match(text, at)
    return found.span(1) if found and _is_mixed(found[1].rstrip(".?)")) else None


def _code(text: str, name: re.Match[str], code: str) -> Place | None:
    """A code with a digit after an "is" or near the name; also digits in words."""
    at, end = name.end(), _end(text, name.end())
    if (letters := _in_letters(text, at)) is not None:
        return letters
    for link in _links(text, at, end, code):
        figures = _FIGURES.match(text, link.end(), end)
        if figures is not None:
            return figures.span()
    if (answered := _ASKED.match(text, at)) is not None:
        return answered.span(1)
    near = _NEAR if code == "other" else _BARE
    if code != "en" and (figures := _SHORT.search(text, at, min(end, at + near))):
        return figures.span()
    return None


def _answer(text: str, name: re.Match[str], code: str) -> Place | None:
    """Everything after an "is": a name, or an answer of several words."""
    at, end = name.end(), _end(text, name.end())
    for link in _links(text, at, end, code):
        first = _LETTERS.match(text, link.end(), end)
        if first is not None and not is_common(first[0], code):
            return link.end(), end
    return _unlinked(text, name, end, code)


def _log_in(text: str, name: re.Match[str], code: str) -> Place | None:
    """A word with a digit or a sign; after "username" the second such word, which is the
    password."""
    end = _end(text, name.end())
    mixed = [
        token.span()
        for token in islice(_TOKEN.finditer(text, name.end(), end), 6)
        if _is_mixed(token[0].rstrip(".?)")) and not _FILE.fullmatch(token[0])
    ]
    return next(iter(mixed[name[0] == "username" :]), None)


def _changed(text: str, name: re.Match[str], code: str) -> Place | None:
    """What a password was changed to: the last word that is not a common one."""
    at, end = name.end() + 1, _end(text, name.end())
    found = _value(text, at, end, code)
    while found is not None and " " in text[slice(*found)]:
        first, last = text[slice(*found)].rsplit(" ", 1)
        found = (at, at + len(first)) if is_common(last, code) else None
    return found


def _before(text: str, name: re.Match[str], kind: str, code: str) -> Place | None:
    """A secret before its name: "bluebird77 is my password", "4471 ist der Türcode"."""
    if kind not in ("password", "code") or is_part_of_name(text, name.end()):
        return None
    start = max(0, name.start() - _NEAR)
    found = _in_front(code).search(text[start : name.start()])
    return (start + found.start("value"), start + found.end("value")) if found else None


@cache
def _in_front(code: str) -> re.Pattern[str]:
    words = whole_words(code, "|".join(entries(code, "is")))
    value = r"(?<![\w.,:/@-])(?P<value>(?=[^\s\"',;]{0,40}\d)[^\s\"',;]{4,60})"
    return re.compile(rf"{value},? {words} (?:{_LETTER}+['-]? ?){{0,3}}$")


_SEEKERS: dict[str, Callable[[str, re.Match[str], str], Place | None]] = {
    "password": _password,
    "code": _code,
    "answer": _answer,
    "log_in": _log_in,
    "changed": _changed,
}
"""The kinds of names, and the function that finds the secret of each."""


def _value(text: str, at: int, end: int, code: str) -> Place | None:
    quoted = _QUOTED.match(text, at)
    if quoted is not None:
        return None if is_common(quoted[1], code) else quoted.span(1)
    token = _TOKEN.match(text, at, end)
    if token is None:
        return None
    if _is_mixed(token[0].rstrip(".?)")):
        return token.span()
    return _words(text, at, end, code)


def _words(text: str, at: int, end: int, code: str) -> Place | None:
    """A password of words: those up to the first function word. Words that end in a state of
    passwords are none: "once more forgotten"."""
    last, word, joints = at, "", lexicon.all_words("function_words")
    for number in range(_WORDS):
        token = _TOKEN.match(text, last, end)
        following = token[0].rstrip(".?!)") if token else ""
        if not following or (following in joints if number else is_common(following, code)):
            break
        word = following
        if number == 0 and len(word) < 3 and word.isascii():
            return None
        last += len(word) + 1
        if text[last - 1 : last] != " ":
            break
    goes_on = " " in text[at : last - 1] and len(word) > _SHORT_WORD
    said = goes_on and _pattern(code, "state").fullmatch(word)
    return (at, last - 1) if last > at and not said else None


def _paired(text: str, name: re.Match[str], end: int, code: str) -> Place | None:
    """The word right after a name that stands next to a user's name or a network's."""
    start = max(0, name.start() - _NEAR)
    word = re.compile(rf" ({_LETTER}{{3,}})").match(text, name.end(), end)
    if word is None or not _PAIRED.search(text, start, name.start()):
        return None
    if _pattern(code, "part_of").match(text, word.start(1)) or is_common(word[1], code):
        return None
    return word.span(1)


def _unlinked(text: str, name: re.Match[str], end: int, code: str) -> Place | None:
    """In a language without an "is": the single word at the end of a clause that begins with the
    name."""
    if not entries(code, "of"):
        return None
    clause = max(text.rfind(mark, 0, name.start()) for mark in ".!?,;:")
    if len(text[clause + 1 : name.start()].split()) > _BEFORE:
        return None
    of = rf"(?: (?:{'|'.join(entries(code, 'of'))}) {_LETTER}+)?"
    value = rf"(?P<mixed>[^\s.,!?\"']*\d[^\s.,!?\"']*)|(?P<value>{_LETTER}{{4,}})"
    ends = rf"(?: (?:{'|'.join(_endings(code))}))?(?=[.,!]|\s*$)"
    found = re.compile(rf"{of} (?:{value}{ends})").match(text, name.end(), end)
    if found is None or (found["value"] and is_common(found["value"], code)):
        return None
    return found.span(found.lastgroup or 0)


@cache
def _common() -> frozenset[str]:
    """The words of all lists, which are said of passwords and are none."""
    kinds = (kind for kind in lexicon.kinds() if kind not in ("people", "seasons"))
    return frozenset(word for kind in kinds for word in lexicon.all_words(kind))


def is_common(word: str, code: str) -> bool:
    """Whether a word is a common one, or one that is said of secrets, and so is no secret
    itself."""
    state = _pattern(code, "state")
    if is_spaced(code):
        return word.removesuffix("'s") in _common() or state.fullmatch(word) is not None
    begins = ("question", "negation", "function_words", "first_person")
    return bool(state.match(word)) or any(
        word.startswith(entry) for kind in begins for entry in lexicon.entries(code, kind)
    )


def _is_mixed(token: str) -> bool:
    """Whether a token has a digit or a sign among other letters, unlike a common word."""
    if len(token) < 3 or _THIN.fullmatch(token):
        return len(token) > 3 and token.isdigit()
    return _SIGN.search(token) is not None


@cache
def _endings(code: str) -> tuple[str, ...]:
    """Verbs and particles that stand after a secret. Without any, an expression that never
    matches."""
    return tuple(sorted(entries(code, "ending"), key=len, reverse=True)) or ("(?!)",)


def _trimmed(text: str, start: int, end: int, code: str) -> Place:
    """A secret without the verb or the marks after it. A "!" may be its last character."""
    shorter = re.search(rf"(?:\s*(?:{'|'.join(_endings(code))}))?[\s.?),。]*$", text[start:end])
    stop = start + shorter.start() if shorter else end
    stop += text[stop : stop + 1] == "!"
    return start, max(stop, start + 1)
