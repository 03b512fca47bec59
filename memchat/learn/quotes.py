"""Checks of the gate on the quotes of a proposed memory: that they prove it, and that it is new.

A quote proves something only where it stands word for word in a message of the user, outside
pasted or quoted text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memchat.facts.keys import cardinality
from memchat.language import lexicon
from memchat.language.numbers import numbers
from memchat.language.sentences import Span, find_span, find_spans, sentence_around
from memchat.language.text import content_words, fold, holds_word, names, normal_value
from memchat.learn import values, verdict
from memchat.learn.candidate import Quote
from memchat.learn.values import asked_after
from memchat.learn.verdict import Case, KnownFact, Turn


def check_quotes(case: Case) -> None:
    """Find each quote. Words of the assistant, the instructions, shown memories or pasted text
    prove nothing; after a paste whose end is not marked the user decides."""
    found: list[Quote] = []
    for quote in case.candidate.quotes:
        turn, span = _locate(quote, case.turns)
        if turn is None or span is None:
            case.notes.append(_why_missing(quote, case))
            continue
        own = [s for s in find_spans(quote.text, turn.text) if not _is_quoted(turn.text, s)]
        if not own:
            case.notes.append("the words stand in pasted or quoted text")
            continue
        if own[0].start >= verdict.unmarked_paste_start(turn.text):
            case.reviews.append("it stands behind something pasted, whose end is not marked")
        case.proofs.append((turn, own[0]))
        found.append(Quote(msg=turn.id, text=quote.text))
    if not found:
        case.refusals += dict.fromkeys(case.notes)
        return
    case.change(quotes=tuple(found))


def _locate(quote: Quote, turns: Sequence[Turn]) -> tuple[Turn | None, Span | None]:
    users = [turn for turn in turns if turn.role == "user"]
    for turn in users:
        if turn.id == quote.msg and (span := find_span(quote.text, turn.text)):
            return turn, span
    others = [(turn, span) for turn in users if (span := find_span(quote.text, turn.text))]
    return others[0] if len(others) == 1 else (None, None)


def _why_missing(quote: Quote, case: Case) -> str:
    if any(t.role == "user" and find_span(quote.text, t.text) for t in case.turns):
        return "the words stand in several messages and none of them is the one named"
    if any(find_span(quote.text, turn.text) for turn in case.turns):
        return "the words are the assistant's, not yours"
    if find_span(quote.text, case.prompt_text):
        return "the words come from the instructions"
    if any(find_span(quote.text, memory) for memory in case.injected):
        return "the words only repeat a memory that was shown"
    return "the words are in no message of yours"


def _is_quoted(text: str, span: Span) -> bool:
    return any(verdict.is_quoted(text, start, end) for start, end in span.pieces)


# ruff: noqa: E501  (word lists are read along, not down)


_FILLER_LIST = """
yes yeah yep no ok okay right exactly correct true indeed thanks thank great good nice cool
perfect sure else that that's this lovely well oh ah hm still again remember remembered memory know
known knew said told got nailed spot mine really ja nein genau stimmt richtig danke gut super
prima toll noch weißt gemerkt oui non exact exactement merci parfait bien toujours sí exacto
gracias correcto perfecto bueno sì esatto grazie giusto perfetto sim isso obrigado obrigada certo
klopt precies bedankt dank evet doğru teşekkürler teşekkür да верно точно спасибо правильно はい そう
ありがとう 正しい 是的 对 没错 谢谢 نعم صحيح شكرا हाँ सही धन्यवाद
"""
_FILLER = frozenset(_FILLER_LIST.split())
"""Words of agreement or thanks, which name nothing."""
_AGREES = re.compile(
    r"はい|うん|ええ|その通り|そう(?:です)?|です|ます|正しい|ありがとう(?:ございます)?|是的|没错|正确|谢谢|好的|嗯|对"
)
"""The same for scripts without spaces."""
_REQUEST = re.compile(
    r"^\W*(?:(?:please|now|ok|okay|and|so|then|bitte|und|por favor|s'il te plaît) )*(?:(?:can|could|would|will) you )?"
    r"(?:tell me|show me|remind me|list|repeat|recite|read me|recall|summari[sz]e|give me|explain|help me|let me know|let me hear|let's see|go on|say it|describe"
    r"|sag mir|zeig\w* mir|erinner\w* mich|nenn\w* mir|wiederhol\w*|zähl|dis-moi|montre-moi|rappelle-moi|répète|dime|muéstrame|recuérdame|repite|dimmi|mostrami|ricordami|ripeti"
    r"|diz-me|me diga|diga-me|mostra-me|vertel me|zeg me|laat me|söyle|bana|скажи|покажи|напомни|повтори|расскажи)(?!\w)"
    r"|教えて|告诉我|أخبرني|बताओ"
)
"""How a sentence begins that asks the assistant for something."""
_ABOUT_MEMORY = re.compile(
    r"(?<!\w)(?<!as )you (?:still )?(?:know|remember|recall|noted|saved|stored|have (?:noted|saved|stored))(?!\w)|(?<!\w)(?:know|remember|recall|noted|saved|stored) (?:about|of) me(?!\w)|your (?:memory|notes)"
    r"|(?:weißt|merkst|gemerkt|gespeichert)[^.!?]{0,20}(?:du|über mich)|du[^.!?]{0,20}(?:weißt|gemerkt|gespeichert)|tu (?:sais|te souviens|as retenu)|sais-tu|te souviens-tu|sabes (?:de|sobre) mí|recuerdas|sai di me|ricordi|sabes sobre mim|(?:weet|onthoud) je"
    r"|biliyorsun|hatırliyorsun|(?:ты|вы) (?:помнишь|знаешь|помните|знаете)|覚えて(?:い|る)|私について|(?:记得|知道)我|关于我|تعرف عني|تتذكر|मेरे बारे में",
    re.IGNORECASE,
)
"""Words about what the assistant knows, not about the person."""


_LEADS_ON = 2
"""Words allowed between "do you remember" and what is asked about: "if", "that it"."""
_OPENING = 12
"""Characters of a quote within which "do you remember" must begin: not "…, as you remember"."""
KNOWN_ALREADY = "it only repeats what is known already"


def check_repeats(case: Case) -> None:
    """Refuse what teaches nothing; turn one known fact in other words into a repeat of that fact,
    whatever its key.

    When the assistant lists what it remembers, the user's "yes, exactly" and the question before
    it teach nothing.
    """
    if case.candidate.relation == "ends":
        if case.ref is None and not _own_words(case.quoted_words(), bare=False):
            case.refusals.append("the words name nothing")
        return
    value = fold(case.candidate.value).text
    if _asks_what_is_known(case):
        case.refusals.append("it asks what is remembered, and tells nothing")
    elif value.endswith("?") or _REQUEST.search(value):
        case.refusals.append("its value is a question or a request")
    elif _says_nothing(case) or _recites(case) or _is_recited(case):
        case.refusals.append("the words only agree with what the assistant recited")
    elif case.candidate.relation in ("new", "beside"):
        _check_repeat(case)


def _asks_what_is_known(case: Case) -> bool:
    """Whether each quote is a question about memory, or part of one: "do you remember if I like …"."""
    return all(_hangs_on_memory(turn.text, span) for turn, span in case.proofs)


def _hangs_on_memory(text: str, span: Span) -> bool:
    sentence = sentence_around(text, span.start, span.end)
    for match in _ABOUT_MEMORY.finditer(text, sentence.start, sentence.end):
        opens = span.start <= match.start() <= span.start + _OPENING
        if opens or (match.start() < span.start < match.end()):
            return True
        between = re.findall(r"\w+|[,;:.!?]", text[match.end() : span.start])
        if (
            match.end() <= span.start
            and len(between) <= _LEADS_ON
            and not set(between) & set(",;:.!?")
        ):
            return True
    return False


def _check_repeat(case: Case) -> None:
    """Whether the value says one shown fact again, neither more nor less."""
    item = case.candidate
    words = _own_words(item.value) or set(re.findall(r"[^\W_]+", fold(item.value).text))
    shown = [f"{fact.key.replace('_', ' ')} {fact.value}" for fact in case.known]
    held = any(_holds_all(text, item.value, words) for text in (*shown, *case.injected))
    if (held and not _says_any(case, words)) or _only_echoes(case, [*shown, *case.injected]):
        case.refusals.append(KNOWN_ALREADY)
        return
    fact = next((fact for fact in case.known if _is_same(fact, item.value, words)), None)
    own_slot = cardinality(item.key) is not None and item.key != "note"
    if fact is None or (own_slot and item.key != fact.key):
        return
    if item.key == fact.key and normal_value(item.value) != normal_value(fact.value):
        return  # other words for the same slot, which merging judges
    case.change(
        relation="same",
        to=fact.id,
        key=fact.key,
        many=fact.many,
        value=fact.value,
        type=fact.memory_type,
    )


def _is_same(fact: KnownFact, value: str, words: Iterable[str]) -> bool:
    """Whether a value and a fact have the same words, apart from those of the key."""
    return (
        _holds_all(f"{fact.key.replace('_', ' ')} {fact.value}", value, words)
        and values.contains_words(value, fact.value, loosely=False)
        and values.difference(value, fact.value) is None
    )


def _holds_all(shown: str, said: str, words: Iterable[str]) -> bool:
    return _all_in(words, shown) and values.is_negated(shown) == values.is_negated(said)


def _only_echoes(case: Case, shown: Sequence[str]) -> bool:
    """Whether the user only agrees, and names no more than one shown fact has."""
    said = " \n".join(case.sentences())
    agrees = _FILLER & set(re.findall(r"\w+", fold(said).text)) or _AGREES.search(said)
    own = _own_words(said)
    if lexicon.find_markers("first_person", fold(said).text, case.languages):
        return False  # a statement of its own: "I have it in the right knee as well"
    return case.ref is None and bool(agrees) and any(_all_in(own, text) for text in shown)


def _says_any(case: Case, words: Iterable[str]) -> bool:
    said = " \n".join(case.sentences())
    return any(holds_word(said, word) or word in numbers(said) for word in words)


def _own_words(text: str, *, bare: bool = True) -> set[str]:
    """The content words; where there are none, with ``bare`` the function words."""
    plain = _AGREES.sub(" ", fold(text).text)
    words = content_words(plain) | numbers(plain)
    if not words and bare:
        words = set(re.findall(r"[^\W\d_]+", plain))
    return words - _FILLER


def _says_nothing(case: Case) -> bool:
    said = " \n".join(case.sentences())
    return case.ref is None and not (_own_words(said) or names(said))  # "I live in Nice."


def _recites(case: Case) -> bool:
    """Whether the cited message lists what is remembered, and the user adds nothing to it. A yes
    to a plan with a question beside it is more than that."""
    if case.ref is None or asked_after(*case.ref):
        return False
    message = case.ref[0].text
    own = _own_words(" \n".join(case.sentences()))
    values = [fact.value for fact in case.known]
    return _is_recital(message, values) and _all_in(own, " \n".join((message, *values)))


def _is_recited(case: Case) -> bool:
    """Whether the user only answers such a list, and the value has only its words."""
    if case.ref is not None:
        return False
    values = [fact.value for fact in case.known]
    words = _own_words(case.candidate.value)
    for turn, _ in case.proofs:
        before = [t for t in case.turns if t.message_id < turn.message_id][-1:]
        if not before or before[0].role != "assistant" or not _is_recital(before[0].text, values):
            return False
        shown = " \n".join((before[0].text, *values))
        if not _all_in(_own_words(" \n".join(case.sentences())), shown):
            return False
        if _all_in(words, case.user_text):
            return False
    return True


def _is_recital(message: str, values: Sequence[str]) -> bool:
    return any((words := _own_words(value)) and _all_in(words, message) for value in values)


def _all_in(words: Iterable[str], text: str) -> bool:
    return all(holds_word(text, word) or word in numbers(text) for word in words)
