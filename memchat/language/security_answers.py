"""Answers to security questions that stand a few words or a sentence after the question: "the
security question is my street, and I always put marmalade lane"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from memchat.language import lexicon
from memchat.language.named_secrets import Place, is_common
from memchat.language.secret_words import entries, languages, whole_words

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


def find(text: str) -> Iterator[tuple[int, Place]]:
    """The start of each question in a folded text, and the place of its answer."""
    for asked in _questions().finditer(text):
        end = min(len(text), asked.end() + _REACH)
        for led in _LED.finditer(text, asked.start(), end):
            if (place := _words(text, led.end(), end)) is not None:
                yield asked.start(), place
                break
        for followed in _FOLLOWED.finditer(text, asked.start(), end):
            at, stop = followed.span("value")
            if (place := _words(text, at + _joined(followed["value"]), stop)) is not None:
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


def _words(text: str, at: int, end: int) -> Place | None:
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
