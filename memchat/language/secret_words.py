"""Finds secrets by the words near them: passwords, codes, logins, answers to security questions.

The words are those of ``words.toml``, by language. A text is searched for them once; what stands
around each is judged on its own, and the same surroundings only once.
"""

from __future__ import annotations

# ruff: noqa: E501  (patterns are read along, not down)
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

from memchat.language import lexicon
from memchat.language.secret_shapes import Place, Rule, find_forms, find_wallet_words
from memchat.language.text import run_of_digits

MARKS = (
    r"\u0300-\u036f\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0951-\u0957"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
)
"""Marks that belong to the letter before them, for a character class."""
_UNLISTED = "other"
"""The section whose common words are not listed."""


@cache
def table() -> dict[str, dict[str, str]]:
    """The words of each kind, by language."""
    path = files("memchat.language") / "secret_data" / "words.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def entries(code: str, kind: str) -> tuple[str, ...]:
    """The entries of one kind in a language."""
    listed = (" ".join(e.split()) for e in re.split(r",(?![^{]*\})", table()[code].get(kind, "")))
    letter = rf"[\w{MARKS}]"
    return tuple(e if r"[\w" in e else e.replace(r"\w", letter) for e in listed if e)


def is_spaced(code: str) -> bool:
    return code not in lexicon.codes() or lexicon.is_spaced(code)


def one_of(words: Iterable[str]) -> str:
    """Alternatives as a regular expression. Those that begin alike stand behind one beginning, so
    that one letter rules them all out."""
    alike: dict[str, list[str]] = {}
    for word in words:
        for one in _written_out(word):
            literal = re.match(r"[^\W_](?![?*+{])", one)
            alike.setdefault(literal[0] if literal else "", []).append(one)
    parts = [
        some[0] if len(some) == 1 else f"{first}(?:{one_of(word[1:] for word in some)})"
        for first, some in alike.items()
        if first
    ]
    return "|".join([*parts, *alike.get("", ())]) or r"(?!)"


def _written_out(word: str) -> list[str]:
    """An entry such as "(?:log|sign) in" as one for each beginning."""
    found = re.match(r"\(\?:([^()\[\]]*)\)(?![*+{])(\??)", word)
    if not found:
        return [word]
    rest = word[found.end() :]
    return [first + rest for first in (*found[1].split("|"), *(("",) if found[2] else ()))]


def alternatives(*kinds: str, codes: Iterable[str] = (), only: str = "") -> str:
    """The entries of some kinds, as whole words where a language puts spaces between words, and
    those that begin in a certain way."""
    words: dict[bool, list[str]] = {True: [], False: []}
    for kind in kinds:
        for code in codes or table():
            words[is_spaced(code)] += (e for e in entries(code, kind) if re.match(only, e))
    spaced, packed = (
        sorted(set(w), key=lambda e: (" " not in e, "(" in e, -len(e), e)) for w in words.values()
    )
    # Most places are ruled out by their script before the list is tried.
    letters = one_of(e for e in packed if e[0] > "\u0dff")
    others = [e for e in packed if e[0] <= "\u0dff"]
    alone = "|".join([rf"(?=[^\0-\u0dff])(?:{letters})", *others])
    return rf"(?<!\w)(?:{one_of(spaced)})(?![\w{MARKS}])|{alone}"


@cache
def any_of(*kinds: str) -> re.Pattern[str]:
    return re.compile(alternatives(*kinds))


@cache
def _pattern(code: str, kind: str) -> re.Pattern[str]:
    return re.compile(alternatives(kind, codes=(code,)))


_LETTERS_ALONE = re.compile(rf"(?:[^\W\d_]|[{MARKS}\s.,:'’-])+")
_OPEN_BEGINNING = r"\[|\(\?:\[|\(\?!"
"""The beginning of an entry that fits many words, such as ``\\w{0,12}codes?``."""
_CUE = re.compile(rf"[^\W\d_][\w{MARKS}]*")
Roles = tuple[tuple[str, str], ...]
Cue = tuple[int, int, Roles]
"""The place of a word, and what it may be in which language."""


@cache
def _cues() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What begins with certain letters, which a text is searched for, and what fits many words,
    for which each different word of a text is looked at once."""
    kinds = (*_SEEKERS, "coded", "lock", "screen", "open")
    plain = alternatives(*kinds, only=f"(?!{_OPEN_BEGINNING})")
    return re.compile(plain), re.compile(alternatives(*kinds, only=_OPEN_BEGINNING))


@lru_cache(maxsize=32_768)
def _is_cue(word: str) -> bool:
    return bool(_cues()[1].match(word) or _meant(word))


@lru_cache(maxsize=2048)
def _roles(cue: str) -> Roles:
    """The kinds and languages of a cue. Of the words for locks the language does not matter."""
    names = [
        (kind, code) for kind in _SEEKERS for code in table() if _pattern(code, kind).fullmatch(cue)
    ]
    things = ("coded", "lock", "screen", "open")
    locks = [(kind, "") for kind in things if any_of(kind).fullmatch(cue)]
    return (*(names or _meant(cue)), *locks)


def find_cues(text: str) -> list[Cue]:
    """The names of secrets, misspelled ones too, and the words for locks, in order."""
    found = {match.span() for match in _cues()[0].finditer(text)}
    if any(map(_is_cue, set(_CUE.findall(text)))):
        found |= {word.span() for word in _CUE.finditer(text) if _is_cue(word[0])}
    return [(*span, _roles(text[slice(*span)])) for span in sorted(found)]


_TYPOS = {
    "password": "en de",
    "passcode": "en",
    "passphrase": "en",
    "passwort": "de",
    "kennwort": "de",
    "contraseña": "es",
    "wachtwoord": "nl",
    "пароль": "ru",
    "lösenord": "other",
    "salasana": "other",
    "adgangskode": "other",
}
"""Words from which no common word differs by one letter, with their sections in ``words.toml``.
"Parola" is missing, since "parole" is another word."""


@lru_cache(maxsize=16_384)
def _meant(word: str) -> Roles:
    """The roles of the word for a password that this word is a misspelling of: one letter wrong,
    missing or doubled, or two letters swapped."""
    if not 5 <= len(word) <= 12:
        return ()
    found = (_shortened()[form] for form in _without_one(word) if form in _shortened())
    return tuple(("password", code) for code in next(found, "").split())


@cache
def _shortened() -> dict[str, str]:
    """Each word, and its forms with one letter left out."""
    return {form: code for word, code in _TYPOS.items() for form in _without_one(word)}


def _without_one(word: str) -> list[str]:
    return [word, *(word[:at] + word[at + 1 :] for at in range(len(word)))]


_NEAR = 60
"""The most characters between a name and its secret."""
_BARE = 24
"""The same where no "is" stands between them."""
_BEFORE, _AFTER = 130, 260
"""Characters before and after a name that are read."""
_WORDS = 8
"""The most words of a password that is read as one."""
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
_CLAUSE = re.compile(r"[.!?;\n](?=\s|$)|[。！？]")
_THIN = re.compile(r"[\d.,:]+(?:%|st|nd|rd|th|am|pm|h|kg|km|g|€|\$)?|[€$£]\S+|\d{4}-\d\d-\d\d")
_SHORT = re.compile(
    r"(?<![\w.,:/-])(?!\d\d0 [^\W\d])\d{3,}[#*]?"
    rf"(?![\w/:%-]|[.,]\d| ?[°%€$£]| (?:[cmk]?m|k?g|m?l|k?w|v|met{_LETTER}+)(?!\w))"
)
_FILE = re.compile(r"\S+\.(?:pdf|docx?|xlsx?|csv|txt|png|jpe?g|zip)[.?)]*")
_NAMED_OTHERWISE = re.compile(
    rf"{_LETTER}+[-.]?\d{{1,4}}|\d+(?:[-.,]?{_LETTER}+)+|\S*://\S*|\S+@\S+\.{_LETTER}+|\S+\.[a-z]{{2,4}}"
)
"""A model number, a count, an address or a file name."""
_ACCESS = 70
"""Characters before and after a name in which words for access are searched."""
_GAP = re.compile(r"\s+")
_LAST = re.compile(rf"({_LETTER}+)[ -]?$")
_COUNT = re.compile(rf" ({_LETTER}+)")
_PARTICLES = "のはが的我你他她、，。！？:： \n\"'"
_SIGN = re.compile(r"\d|[!@#$%&*_+=^~?<>|\\]")


class _Name(NamedTuple):
    """The name of a secret in its surroundings."""

    text: str
    start: int
    end: int
    stop: int
    """The end of its clause."""
    code: str
    """The language in which it is such a name."""


def find(
    text: str, near: dict[str, list[Place]], cues: list[Cue]
) -> Iterator[tuple[int, int, bool]]:
    """The places of secrets in a folded text that words tell, and whether it is letters alone that
    are called a password, as a motto may be. ``near`` are the regions of its spots that are known
    already, ``cues`` the words."""
    for _kind, start, end in find_forms(IN_FOLDED, text, near):
        yield *_with_its_like(text, start, end), False
    for start, end, roles in cues:
        begin = max(0, start - _BEFORE)
        if names := tuple(role for role in roles if role[0] in _SEEKERS):
            around = text[begin : end + _AFTER]
            called = all(kind in ("password", "code") for kind, _ in names)
            for first, last in _secret_spans(around, start - begin, end - begin, names):
                place = _with_its_like(text, begin + first, begin + last)
                yield *place, called and _LETTERS_ALONE.fullmatch(text, *place) is not None
    yield from ((*place, False) for place in find_wallet_words(text))


@lru_cache(maxsize=2048)
def _secret_spans(
    text: str, start: int, end: int, roles: tuple[tuple[str, str], ...]
) -> tuple[Place, ...]:
    """The places of what a name is said to be, by its surroundings."""
    found = []
    for kind, code in roles:
        name = _Name(text, start, end, _clause_end(text, end), code)
        places = [next(filter(None, _SEEKERS[kind](name)), None)]
        if kind in ("password", "code") or (kind == "number" and _is_about_access(name)):
            places.append(_in_front_of(name))
        if kind == "answer":
            places += _answers(name)
        for place in filter(None, places):
            if not is_harmless(text, min(start, place[0]), *_trimmed(name, *place)):
                found.append(_trimmed(name, *place))
    return tuple(dict.fromkeys(found))


def _clause_end(text: str, at: int) -> int:
    limit = min(len(text), at + 2 * _NEAR)
    end = _CLAUSE.search(text, at, limit)
    return end.start() if end else limit


@cache
def _link(code: str) -> re.Pattern[str]:
    """A pattern for the text right before a secret: "is", "=", or particles in scripts without
    spaces."""
    words = alternatives("is", codes=(code,))
    return re.compile(rf"(?:\s*[:=]+>?\s*|\s+->?\s+)|\s*(?:{words})(?:\s*:\s*|\s*)")


def _links(name: _Name) -> Iterator[re.Match[str]]:
    """What may stand right before the secret of a name. There is nothing if the name is part of
    another one ("password manager")."""
    if not is_part_of_name(name.text, name.end):
        yield from _link(name.code).finditer(name.text, name.end, min(name.stop, name.end + _NEAR))


def is_part_of_name(text: str, at: int) -> bool:
    """Whether the name that ends here is part of another one, as in "password manager"."""
    return any_of("part_of").match(text, at + 1) is not None


@cache
def _digit_words() -> re.Pattern[str]:
    """A pattern for three or more digits in words: "four nine two seven"."""
    return run_of_digits(word for code in table() for word in entries(code, "digits"))


def _password(name: _Name) -> Iterator[Place | None]:
    """What a name is said to be: any word that is not commonly said of passwords."""
    links = list(_links(name))
    for number, link in enumerate(links):
        found = _value(name, link.end())
        if found and (number == 0 or is_spaced(name.code) or _is_made_up(name.text[slice(*found)])):
            yield found
    yield _unlinked(name)
    # "is, as far as I know, Kiwi7tree"; with a sign no "is" is needed.
    at = links[0].end() if links else name.end
    for token in islice(_TOKEN.finditer(name.text, at, min(name.stop, at + _NEAR)), _WORDS):
        word = token[0].rstrip(".?!)")
        if _is_made_up(word) and (links or re.search(r"(?=.*\d).*[!@#$%&*_+=^~?]", word)):
            yield token.span()


def _is_made_up(token: str) -> bool:
    """Whether letters are mixed with digits or signs unlike in any word, number or address."""
    mixed = len(token) > 5 and _is_mixed(token) and re.search(_LETTER, token)
    return bool(mixed) and not _NAMED_OTHERWISE.fullmatch(token)


def _code(name: _Name) -> Iterator[Place | None]:
    """A code with a digit after an "is" or near the name; also digits in words."""
    text, at = name.text, name.end
    last = min(_clause_end(text, name.stop + 1), at + 2 * _NEAR)
    letters = _digit_words().search(text, at, last)
    yield letters.span() if letters else None
    for link in _links(name):
        figures = _FIGURES.match(text, link.end(), name.stop)
        yield figures.span() if figures else None
    answered = _ASKED.match(text, at)
    yield answered.span(1) if answered else None
    near = _NEAR if name.code == _UNLISTED else _BARE
    figures = _SHORT.search(text, at, min(name.stop, at + near)) if name.code != "en" else None
    yield figures.span() if figures else None


def _number(name: _Name) -> Iterator[Place | None]:
    """A code by a name that other numbers have, too. Where nothing near it is locked or proved, it
    stands right behind the name, which has no other noun beside it, and it counts nothing."""
    text, at = name.text, name.end
    if _is_about_access(name):
        yield from _code(name)
        tokens = _TOKEN.finditer(text, at, min(name.stop, at + _BARE))
        mixed = (t for t in tokens if re.search(_LETTER, t[0]) and re.search(r"\d\D*\d", t[0]))
        yield from (t.span() for t in mixed if not _NAMED_OTHERWISE.fullmatch(t[0]))
        figures = _SHORT.search(text, at, min(name.stop, at + _NEAR))
        yield figures.span() if figures and not _counts(text, figures.end()) else None
    elif _stands_alone(name) and (link := _link(name.code).match(text, at) or _GAP.match(text, at)):
        figures = _FIGURES.match(text, link.end(), name.stop)
        yield figures.span() if figures and not _counts(text, figures.end()) else None


def _is_about_access(name: _Name) -> bool:
    """Whether words for locks, accounts or proofs stand near the name."""
    near = any_of("access", "coded", "lock", "open", "enter")
    begin = max((end.end() for end in _CLAUSE.finditer(name.text, 0, name.start)), default=0)
    return near.search(name.text, max(begin, name.start - _ACCESS), name.end + _ACCESS) is not None


def _stands_alone(name: _Name) -> bool:
    """Whether no noun is right before the name, which would say what else it is the code of."""
    before = name.text[max(0, name.start - _BARE) : name.start]
    if not is_spaced(name.code):
        return not before or before[-1] in _PARTICLES
    if name.code not in lexicon.codes():
        return True  # There the noun is behind the name, or in one word with it.
    word = _LAST.search(before)
    return word is None or word[1] in lexicon.all_words("function_words")


def _counts(text: str, at: int) -> bool:
    """Whether a number ends here that counts the thing behind it."""
    word = _COUNT.match(text, at)
    return word is not None and word[1] not in lexicon.all_words("function_words")


def _answer(name: _Name) -> Iterator[Place | None]:
    """Everything after an "is": a name, or an answer of several words."""
    for link in _links(name):
        first = _LETTERS.match(name.text, link.end(), name.stop)
        yield (link.end(), name.stop) if first and not _is_common(first[0], name.code) else None
    yield _unlinked(name)


def _log_in(name: _Name) -> Iterator[Place | None]:
    """A word with a digit or a sign; after "username" the second such word, which is the
    password."""
    tokens = islice(_TOKEN.finditer(name.text, name.end, name.stop), 6)
    mixed = (t for t in tokens if _is_mixed(t[0].rstrip(".?)")) and not _FILE.fullmatch(t[0]))
    second = name.text[name.start : name.end] == "username"
    yield from (token.span() for token in islice(mixed, second, None))


def _changed(name: _Name) -> Iterator[Place | None]:
    """What a password was changed to: the last word that is not a common one."""
    at = name.end + 1
    found = _value(name, at)
    while found is not None and " " in name.text[slice(*found)]:
        first, last = name.text[slice(*found)].rsplit(" ", 1)
        found = (at, at + len(first)) if _is_common(last, name.code) else None
    yield found


_SEEKERS: dict[str, Callable[[_Name], Iterator[Place | None]]] = {
    "password": _password,
    "code": _code,
    "number": _number,
    "answer": _answer,
    "log_in": _log_in,
    "changed": _changed,
}
"""The kinds of names, and the function that finds the secrets of each, the likeliest first."""


def _in_front_of(name: _Name) -> Place | None:
    """A secret before its name: "bluebird77 is my password", "4471 ist der Türcode"."""
    if is_part_of_name(name.text, name.end):
        return None
    found = _value_is(name.code).search(name.text[: name.start], max(0, name.start - _NEAR))
    return found.span("value") if found else None


@cache
def _value_is(code: str) -> re.Pattern[str]:
    words = alternatives("is", codes=(code,))
    value = r"(?<![\w.,:/@-])(?P<value>(?=[^\s\"',;]{0,40}\d)[^\s\"',;]{4,60})"
    return re.compile(rf"{value},? (?:{words}) (?:{_LETTER}+['-]? ?){{0,3}}$")


def _value(name: _Name, at: int) -> Place | None:
    quoted = _QUOTED.match(name.text, at)
    if quoted is not None:
        return None if _is_common(quoted[1], name.code) else quoted.span(1)
    token = _TOKEN.match(name.text, at, name.stop)
    if token is None:
        return None
    return token.span() if _is_mixed(token[0].rstrip(".?)")) else _plain_words(name, at)


def _plain_words(name: _Name, at: int) -> Place | None:
    """A password of words: those up to the first function word. Words that end in a state of
    passwords are none: "once more forgotten"."""
    last, word, joints = at, "", lexicon.all_words("function_words")
    for number in range(_WORDS):
        token = _TOKEN.match(name.text, last, name.stop)
        following = token[0].rstrip(".?!)") if token else ""
        ends = following in joints if number else _is_common(following, name.code)
        if not following or ends:
            break
        word = following
        if number == 0 and len(word) < 3 and word.isascii():
            return None
        last += len(word) + 1
        if name.text[last - 1 : last] != " ":
            break
    said = " " in name.text[at : last - 1] and _pattern(name.code, "state").fullmatch(word)
    return (at, last - 1) if last > at and not (said and len(word) > 4) else None


def _unlinked(name: _Name) -> Place | None:
    """In a language without an "is": the single word at the end of a clause that begins with the
    name, or with up to three words before it: "пароль от банка подсолнух"."""
    before = re.split("[.!?,;:]", name.text[: name.start])[-1]
    if not entries(name.code, "of") or len(before.split()) > 3:
        return None
    of = rf"(?: (?:{'|'.join(entries(name.code, 'of'))}) {_LETTER}+)?"
    value = rf"(?P<mixed>[^\s.,!?\"']*\d[^\s.,!?\"']*)|(?P<value>{_LETTER}{{4,}})"
    ends = rf"(?: (?:{_endings(name.code)}))?(?=[.,!]|\s*$)"
    found = re.compile(rf"{of} (?:{value}{ends})").match(name.text, name.end, name.stop)
    if found is None or (found["value"] and _is_common(found["value"], name.code)):
        return None
    return found.span(found.lastgroup or 0)


@cache
def _common() -> frozenset[str]:
    """The words of all lists, which are said of passwords and are none."""
    kinds = (kind for kind in lexicon.kinds() if kind not in ("people", "seasons"))
    return frozenset(word for kind in kinds for word in lexicon.all_words(kind))


def _is_common(word: str, code: str) -> bool:
    """Whether a word is a common one, or one that is said of secrets, and so is no secret
    itself."""
    state = _pattern(code, "state")
    if is_spaced(code):
        return word.removesuffix("'s") in _common() or state.fullmatch(word) is not None
    begins = ("common", "negation", "function_words", "first_person")
    return bool(state.match(word)) or any(
        word.startswith(entry) for kind in begins for entry in lexicon.entries(code, kind)
    )


def _is_mixed(token: str) -> bool:
    """Whether a token has a digit or a sign among other letters, unlike a common word."""
    if len(token) < 3 or _THIN.fullmatch(token):
        return len(token) > 3 and token.isdigit()
    return _SIGN.search(token) is not None


def _endings(code: str) -> str:
    """Verbs and particles that stand after a secret."""
    return "|".join(sorted(entries(code, "ending"), key=len, reverse=True)) or "(?!)"


def _trimmed(name: _Name, start: int, end: int) -> Place:
    """A secret without the verb or the marks after it. A "!" may be its last character."""
    text = name.text
    shorter = re.search(rf"(?:\s*(?:{_endings(name.code)}))?[\s.?),。]*$", text[start:end])
    stop = start + shorter.start() if shorter else end
    stop += text[stop : stop + 1] == "!"
    return start, max(stop, start + 1)


_REACH = 160
"""Characters after the question in which its answer is searched."""
_MOST_WORDS = 3
_ANSWER = (
    r"answer\w*|antwort|respuesta|réponse|risposta|resposta|antwoord|ответ\w*|yanit\w*|cevab\w*"
    r"|odpowied\w+|odpověď|відповід\w+|отговор\w*|svar\w*|απάντηση|răspuns\w*|válasz\w*|vastaus\w*"
    r"|jawaban\w*|câu trả lời|(?:ال)?(?:جواب|إجابة)|उत्तर|जवाब|התשובה|پاسخ"
)
_IS = (
    r"is|was|ist|war|lautet|es|era|est|était|è|é|это|to|jest|brzmi|je|byla|är|er|on|είναι|є|este|e"
    r"|adalah|là|هو|هي|है|היא|است"
)
_PUT = (
    r"i(?:'ve|'d| have| had)?(?: \w+ly| always| just| once| only)?"
    r" (?:put|used?|gave|give|write|wrote|typed?"
    r"|chose|picked|answer(?:ed)?|enter(?:ed)?)(?: in| with)?"
    r"|(?:siempre )?(?:pongo|puse)(?: siempre)?|(?:je mets|j'ai mis|je réponds)(?: toujours)?"
    r"|(?:metto|ho messo|scrivo)(?: sempre)?|(?:sempre )?(?:ponho|coloco|coloquei|respondo)"
    r"|schreibe ich(?: immer)?|ich schreibe(?: immer)?|vul ik(?: altijd)?"
    r"|(?:всегда )?(?:пишу|написал\w?|ввожу|поставил\w?)|(?:zawsze )?(?:wpisuję|wpisał[ae]m)"
)
_LED = re.compile(
    rf"(?<!\w)(?:(?:{_ANSWER})(?: [^\W\d]+){{0,3}}?"
    rf"(?: (?:{_IS})(?!\w)(?: still| just| always)?:?| ?[:=-])"
    rf"|(?:{_PUT})(?!\w):?) ?[\"'«“]?"
)
_FOLLOWED = re.compile(
    r"(?<!\w)(?P<value>[^\W\d_][\w'-]*(?: [^\W\d_][\w'-]*){0,2})[\"'»”]?"
    r" (?:is|was|ist|es|est|è|é|jest|это|-) "
    rf"(?:the |my |die |la |a |het |meine |mi |mia |minha |ma )?(?:{_ANSWER})(?!\w)"
)
_ARTICLE = re.compile(r"(?:the|mr|mrs|der|die|das|les?|la|el|il|o|a|de|het) ")
_WORD = re.compile(r"[^\W_](?:[\w'.-]*\w)?")


def _answers(name: _Name) -> Iterator[Place | None]:
    """The answer to a security question some words or a sentence behind it: "the security question
    is my street, and I always put marmalade lane"."""
    end = min(len(name.text), name.end + _REACH)
    for led in _LED.finditer(name.text, name.start, end):
        if (place := _answer_words(name.text, led.end(), end)) is not None:
            yield place
            break
    for followed in _FOLLOWED.finditer(name.text, name.start, end):
        at, stop = followed.span("value")
        yield _answer_words(name.text, at + _joined(followed["value"]), stop)


def _joined(words: str) -> int:
    """The position after the last function word, which joins two thoughts."""
    joints = [m.end() for m in _WORD.finditer(words) if m[0] in lexicon.all_words("function_words")]
    return min(joints[-1] + 1, len(words)) if joints else 0


def _answer_words(text: str, at: int, end: int) -> Place | None:
    """The place of up to three words. The first must not be a word that is commonly said of
    answers, and the others must not be function words."""
    article = _ARTICLE.match(text, at, end)
    last = begin = article.end() if article else at
    joints = lexicon.all_words("function_words")
    for number in range(_MOST_WORDS):
        word = _WORD.match(text, last + (number > 0), end)
        if word is None or (number and (text[last] != " " or word[0] in joints)):
            break
        if number == 0 and _is_usual_answer(word[0]):
            return None
        last = word.end()
    return (at, last) if last > begin else None


def _is_usual_answer(word: str) -> bool:
    """Whether a word is commonly said of answers in a language with a list of such words."""
    return any(_is_common(word, code) for code in table() if code != _UNLISTED)


_NOT_A_CODE = re.compile(
    r"(?:post\w*|postal|zip|promo\w*|coupon|voucher|referral|booking|product|course|class|room|team|colou?r|area|country|dial\w*|qr|bar|source|dress|vs|discount|colou?r|open|clean"
    r"|python|morse|line[s]? of|error|paint|fault|icd|tax|status|http)[- ]?codes?\b"
    r"|(?:rolling|enamel|lapel|bowling|safety|hair|drawing|push|firing|sammle|sammelt)[- ]?pins?\b"
    r"|(?:kleur|farb|färg|farve|farge|väri|fehler|fout|fel|fejl|virhe|strich|streep|viiva|streck|strek|streg|kurs|cursus|artikel|produkt|quell|käll|post)[a-zäö]{0,3}-?(?:[ck]ode?|koodi)\w*"
    r"|(?:c[oó]digo|codice|kod|kód|kode|code|cod(?:ul)?|mã|код|رمز|کد) (?:de |del |della |do |da |di |des |la )?(?:color\w*|cor|couleurs?|culo\w+|kolor\w*|barv\w*|warna|màu|цвет\w*|цвят\w*|кольор\w*|اللون|رنگ"
    r"|barr?as?|barres?|bare|kreskow\w*|batang|vạch|err[oe]\w*|cours|curs\w*|corso|błęd\w*|chyby|lỗi|ошибк\w*|города|źródłow\w*|zdrojov\w*|sumber|penal\w*|civil\w*|strada|conducta|fiscal\w*)"
    r"|(?:renk|alan|hata|barkod|ders|ürün) kod\w*|(?:エラー|カラー|色|ソース|商品|科目|郵便|製品)(?:コード|番号)|(?:颜色|课程|错误|商品|产品|邮政|學號|学生)(?:代码|编号|编码)|รหัส(?:วิชา|ไปรษณีย์|สี|สินค้า)|sconto|descuento|desconto|rabat\w*|korting\w*|remise|έκπτωσ\w+|zniżk\w+|скидк\w+|slev\w+|indirim\w*|alennus\w*|kedvezmény\w*|割引|折扣|할인|ส่วนลด|خصم|הנחה|एसटीडी कोड|"
    r"(?:code|código|codice|kod\w*) (?:postal|postale|pocztow\w*|promo\w*|zip|di avviamento)|posta kodu\w*|postleitzahl|kode pos(?!\w)|cod poș\w*|поштов\w+|ταχυδρομικ\w+|mã bưu|token of|code (?:review|de la route|de conduite|of conduct|base|editor|club|camp|since|for \d|in )|secret (?:santa|garden"
    r"|ingredient|recipe|to)\b|tan-(?!nummer)[a-z]|codes? (?:in|with|at)\b|"
    r"combination of (?!(?:the|my) (?:safe|lock|vault))|token (?:limit|count|budget)|(?:years?|days?|weeks?|hours?|since|lines?"
    r"|until|by|at|before)\s*$|(?:注文|部屋|予約|会員|受験|学籍)番号"
)
_GIVEN = re.compile(
    r"(?:[:=]|(?<!\w)(?:is|are|was|ist|lautet|war|est|es|era|é|è|pin|password|passw\w+))\W*$"
)
_COUNTED = re.compile(
    r"\d+[ -]?(?:char|letter|digit|word|line|bit|byte|year|day|people|zeichen|stellen|zeilen|caract|caratt|karakter"
    r"|tekens|символ|строк|год|satir|yil|अक्षर|文字|行|年|番で|자리|줄|位|个字)"
)
_VERSION_OR_YEAR = re.compile(
    r"\s\d{1,2}\.\d{1,3}(?:\.\d{1,4})?\.?$|(?<!\w)(?:in|since|from|until|of|im|seit|von|vom|en|depuis|desde|de|del|dal|nel|em|sinds|från|sedan|fra|siden|od|roku|din|с|з|от|від|από|từ|năm|sejak|tahun) (?:19|20)\d\d\.?$"
)
"""The release of a program or the year of an event, if it is not said to be the code."""
_REBATE = re.compile(
    r"[^.!?\n]{0,20}?(?:\d ?%|(?<!\w)(?:discount|rabatt|descuento|remise|réduction|sconto|desconto"
    r"|korting|скидк))"
)
"""Words of an advertised discount code."""


def is_harmless(text: str, name: int, start: int, end: int) -> bool:
    """Whether a code is no secret, by the words around its name and after it."""
    before = max(0, name - 12)
    return _harmless(text[before : end + _AFTER], name - before, start - before, end - before)


@lru_cache(maxsize=2048)
def _harmless(text: str, name: int, start: int, end: int) -> bool:
    if _NOT_A_CODE.search(text[:start]) or _COUNTED.match(text, start) or _REBATE.match(text, end):
        return True
    return not _GIVEN.search(text[name:start]) and bool(_VERSION_OR_YEAR.search(text[:end]))


def _with_its_like(text: str, start: int, end: int) -> tuple[int, int]:
    """The place of a code and of codes of the same form after it, such as a list of recovery
    codes."""
    form = _listed(text[start:end])
    more = form and form.match(text, end)
    return start, more.end() if more else end


@lru_cache(maxsize=2048)
def _listed(code: str) -> re.Pattern[str] | None:
    """A pattern for more codes of the same form, if it is one that a number or word has not."""
    if not re.search(r"\d", code) or not re.search(r"\W|[a-z]", code):
        return None
    form = re.sub(r"[^\W_]+", lambda run: rf"[^\W_]{{{len(run[0])}}}", re.escape(code))
    return re.compile(rf"(?:(?:[ ,]| and ){{1,3}}{form}(?!\w)){{1,20}}")


def _is_given_away(found: re.Match[str]) -> bool:
    between = found.re.groupindex.get("between")
    if between and is_part_of_name(found.string, found.start(between)):
        return False
    return not is_harmless(found.string, found.start(), *found.span("secret"))


IN_FOLDED = tuple(
    Rule("password", near, re.compile(form), _is_given_away)
    for near, form in (
        (
            "",
            r"(?<!\w)(?:pass(?:word|code|phrase)|pass(?= ?[:=]| is )|passwd|pwd|pw|mdp|[a-z]{2,12}-?passwort|kennwort|passwort|(?:pin|tan|puk|cvv|cvc"
            r"|otp)(?:[- ]?(?:code|number|nummer))?"
            r"|mot de passe|contraseña|clave|senha|wachtwoord|şifre\w*|parola\w*|(?:account|routing) number"
            r"|kontonummer|пароль|пин-?код|api[ _-]?key|security answer|geheimzahl|सीक्रेट|पासवर्ड|पिन"
            r"|كلمة (?:السر|المرور))(?!\w)"
            r"(?P<between>[^.!?\n]{0,24}?)"
            r"(?:(?<=[\s:=])|(?<=\bis )|(?<=[\s:=]['\"]))(?P<secret>(?=[^\s'\",;]*\d)[^\s'\",;]{3,}(?: \d{3,}(?!\w))?"
            r"|(?<=[\s:=]['\"])[^\s'\"]{4,})",
        ),
        (
            "figure",
            r"(?<!\w)use (?P<secret>(?=[^\s'\",;]{0,60}\d)(?=[^\s'\",;]{0,60}[a-z])[^\s'\",;.]{5,80}) (?:for|on|as) (?:\w+ ){0,4}?"
            r"(?:pass(?:word|code|phrase)s?|pin|log-?in|account)s?(?!\w)",
        ),
        (
            "sign",
            r"(?<!\w)pass(?:'s| is|:| =) (?P<secret>[^\s\"',;]{0,30}[a-z][@#&*_+=^~!](?=[a-z0-9])[^\s\"',;]{1,30})",
        ),
        (
            "",
            r"(?:(?:recovery|seed|backup|mnemonic|secret) (?:phrase|words?)|passphrase|seedphrase|wiederherstellungs\w+|phrase de récupération|frase (?:semilla|de recuperación)|助记词|シードフレーズ)"
            r"[^\n\w]{0,3}(?:(?:is|are|ist|lautet|est|es|è|是) )?(?P<secret>[^\W\d_]{3,}(?:[ ,-]+[^\W\d_]{3,}){2,24})",
        ),
    )
)
