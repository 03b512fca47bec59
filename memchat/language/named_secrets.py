"""Secrets that are recognised by the words near them, in the languages of ``words.toml``: passwords
that are words, codes in letters, answers to security questions, and logins.

Reads the words that stand near secrets, by language, from ``words.toml``.

Words for a password with a typing mistake: one letter wrong, missing or doubled, or two letters
swapped, as in "pasword", "passwrod" and "contrasena".

Answers to security questions that stand a few words or a sentence after the question: "the
security question is my street, and I always put marmalade lane".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice

from memchat.language import lexicon
from memchat.language.numbers import run_of_digits

MARKS = (
    r"\u0300-\u036f\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0951-\u0957"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
)
"""Marks that belong to the letter before them, for a character class."""


@cache
def _tables() -> dict[str, dict[str, str]]:
    path = files("memchat.language") / "secret_data" / "words.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def languages() -> tuple[str, ...]:
    """The languages whose words for secrets are listed."""
    return tuple(_tables())


def kinds(code: str) -> tuple[str, ...]:
    """The kinds of words that a language lists."""
    return tuple(_tables()[code])


@cache
def entries(code: str, kind: str) -> tuple[str, ...]:
    """The entries of one kind in a language."""
    listed = (" ".join(e.split()) for e in re.split(r",(?![^{]*\})", _tables()[code][kind]))
    return tuple(entry for entry in listed if entry)


def is_spaced(code: str) -> bool:
    return code not in lexicon.codes() or lexicon.is_spaced(code)


def whole_words(code: str, words: str) -> str:
    """Alternatives as whole words, if the language puts spaces between words."""
    words = words or r"(?!)"
    return rf"(?<!\w)(?:{words})(?![\w{MARKS}])" if is_spaced(code) else f"(?:{words})"


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


@lru_cache(maxsize=4096)
def languages_meant(word: str) -> tuple[str, ...]:
    """The sections of the word for a password that this word is a misspelling of."""
    if not 5 <= len(word) <= 12:
        return ()
    listed = _shortened()
    found = (listed[form].split() for form in _without_one(word) if form in listed)
    return tuple(next(found, ()))


@cache
def _shortened() -> dict[str, str]:
    """Each word, and its forms with one letter left out."""
    return {form: code for word, code in _TYPOS.items() for form in _without_one(word)}


def _without_one(word: str) -> list[str]:
    return [word, *(word[:at] + word[at + 1 :] for at in range(len(word)))]


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
        if (meant := languages_meant(word[0])) and not _roles(word[0]):
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


_REACH = 160
"""Characters after the question in which its answer is searched."""
_MOST_WORDS = 3
_UNLISTED = "other"
"""The section whose common words are not listed."""
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


def find_answers(text: str) -> Iterator[tuple[int, Place]]:
    """The start of each question in a folded text, and the place of its answer."""
    for asked in _questions().finditer(text):
        end = min(len(text), asked.end() + _REACH)
        for led in _LED.finditer(text, asked.start(), end):
            if (place := _answer_words(text, led.end(), end)) is not None:
                yield asked.start(), place
                break
        for followed in _FOLLOWED.finditer(text, asked.start(), end):
            at, stop = followed.span("value")
            if (place := _answer_words(text, at + _joined(followed["value"]), stop)) is not None:
                yield asked.start(), place


@cache
def _questions() -> re.Pattern[str]:
    return re.compile(
        "|".join(whole_words(code, "|".join(entries(code, "answer"))) for code in languages())
    )


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
        if number == 0 and _is_said(word[0]):
            return None
        last = word.end()
    return (at, last) if last > begin else None


def _is_said(word: str) -> bool:
    """Whether a word is commonly said of answers in a language with a list of such words."""
    return any(is_common(word, code) for code in languages() if code != _UNLISTED)
