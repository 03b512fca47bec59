"""What only goes round: words about memory itself, and what is known already said once more.

A recital, its "yes, exactly" and the question before it teach nothing. Saying a known fact again in
one's own words is a repeat of it, under whatever key it is proposed.
"""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from memchat.memory.gate import guards, markers
from memchat.memory.gate.candidate import Candidate
from memchat.memory.gate.claims import FRAME, sentences_said
from memchat.memory.gate.keys import cardinality
from memchat.memory.gate.pointing import asks
from memchat.memory.gate.sentences import stands_alone
from memchat.memory.gate.text import content_words, fold, normal_value, numbers, says

if TYPE_CHECKING:
    from memchat.memory.gate.evidence import Findings, KnownFact

_FILLER_LIST = """
yes yeah yep no ok okay right exactly correct true indeed thanks thank great good nice cool
perfect sure that that's this lovely well oh ah hm still again remember remembered memory know
known knew said told got nailed spot mine really ja nein genau stimmt richtig danke gut super
prima toll noch weißt gemerkt oui non exact exactement merci parfait bien toujours sí exacto
gracias correcto perfecto bueno sì esatto grazie giusto perfetto sim isso obrigado obrigada certo
klopt precies bedankt dank evet doğru teşekkürler teşekkür да верно точно спасибо правильно はい そう
ありがとう 正しい 是的 对 没错 谢谢 نعم صحيح شكرا हाँ सही धन्यवाद
"""
_FILLER = frozenset(_FILLER_LIST.split())
"""Words that agree or thank, and name nothing."""
_AGREES = re.compile(
    r"はい|うん|ええ|その通り|そう(?:です)?|です|ます|正しい|ありがとう(?:ございます)?|是的|没错|正确|谢谢|好的|嗯|对"
)
"""The same where no spaces part words."""
_REQUEST = re.compile(
    r"^\W*(?:(?:please|now|ok|okay|and|so|then|bitte|und|por favor|s'il te plaît) )*(?:(?:can|could|would|will) you )?"
    r"(?:tell me|show me|remind me|list|repeat|recite|read me|recall|summari[sz]e|give me|explain|help me|let me know|let me hear|let's see|go on|say it|describe"
    r"|sag mir|zeig\w* mir|erinner\w* mich|nenn\w* mir|wiederhol\w*|zähl|dis-moi|montre-moi|rappelle-moi|répète|dime|muéstrame|recuérdame|repite|dimmi|mostrami|ricordami|ripeti"
    r"|diz-me|me diga|diga-me|mostra-me|vertel me|zeg me|laat me|söyle|bana|скажи|покажи|напомни|повтори|расскажи)(?!\w)"
    r"|教えて|告诉我|أخبرني|बताओ"
)
"""How a sentence opens that asks for something once."""
_ABOUT_MEMORY = re.compile(
    r"(?<!\w)you (?:still )?(?:know|remember|recall|noted|saved|stored|have (?:noted|saved|stored))(?!\w)|(?<!\w)(?:know|remember|recall|noted|saved|stored) (?:about|of) me(?!\w)|your (?:memory|notes)"
    r"|(?:weißt|merkst|gemerkt|gespeichert)[^.!?]{0,20}(?:du|über mich)|du[^.!?]{0,20}(?:weißt|gemerkt|gespeichert)|tu (?:sais|te souviens|as retenu)|sais-tu|te souviens-tu|sabes (?:de|sobre) mí|recuerdas|sai di me|ricordi|sabes sobre mim|(?:weet|onthoud) je"
    r"|biliyorsun|hatırliyorsun|(?:ты|вы) (?:помнишь|знаешь|помните|знаете)|覚えて(?:い|る)|私について|(?:记得|知道)我|关于我|تعرف عني|تتذكر|मेरे बारे में"
)
"""Words about what the assistant knows, not about the person."""


def check_echo(
    candidate: Candidate, found: Findings, known: Sequence[KnownFact], injected: Collection[str]
) -> Candidate:
    """Refuse what only goes round; a known fact in other dress becomes a repeat of that fact."""
    if candidate.relation == "ends":
        return candidate
    said = fold(sentences_said(found)).text
    if stands_alone(found):
        said = fold(found.said()).text  # "Help me plan dinner, I am vegetarian" tells something
    if _REQUEST.search(said) or _ABOUT_MEMORY.search(said):
        found.refusals.append("it asks for something, and tells nothing about the user")
        return candidate
    if fold(candidate.value).text.endswith("?"):
        found.refusals.append("the value is a question")
        return candidate
    shown = [f"{fact.key.replace('_', ' ')} {fact.value}" for fact in known]
    if not (_recites(found, [fact.value for fact in known]) or _says_nothing(found)):
        return _as_repeat(candidate, found, known, shown, injected)
    found.refusals.append("the words quoted add nothing to what the assistant recited")
    return candidate


def _as_repeat(
    candidate: Candidate,
    found: Findings,
    known: Sequence[KnownFact],
    shown: Sequence[str],
    injected: Collection[str],
) -> Candidate:
    words = _own_words(candidate.value)
    if not words and candidate.key != "note" and stands_alone(found):
        words = set(re.findall(r"[^\W_]+", fold(candidate.value).text))  # "I am single"
    if not words:
        found.refusals.append("it names nothing")
        return candidate
    if candidate.relation not in ("new", "beside") and not found.doubts:
        return candidate
    denied = _denies(candidate.value)
    whole = [text for text in (*shown, *injected) if _denies(text) == denied]
    values = [fact.value for fact in known]
    if found.doubts and (_all_in(words, whole) or _is_recited(candidate, found, values)):
        found.refusals.append("it only repeats what is known already")
        return candidate
    repeated = next(
        (
            f
            for f, text in zip(known, shown, strict=True)
            if text in whole
            and _all_in(words, [text])
            and guards.differs(f.value, candidate.value) is None
            and _covers(f, candidate, words)
        ),
        None,
    )
    named = cardinality(candidate.key) is not None and candidate.key != "note"
    if repeated is not None and (candidate.key == repeated.key or not named):
        update = {"relation": "same", "to": repeated.id, "key": repeated.key, "many": repeated.many}
        return candidate.model_copy(
            update={**update, "value": repeated.value, "type": repeated.memory_type}
        )
    own_slot = any(fact.key == candidate.key for fact in known)  # merging judges it there
    again = not named and not own_slot and any(_all_in(words, [text]) for text in whole)
    if again or _echoes(found):
        found.refusals.append("it only repeats what was recited")
    return candidate


def _covers(fact: KnownFact, candidate: Candidate, words: Iterable[str]) -> bool:
    """Whether the fact holds it all. Under its own key other words are for merging to judge."""
    if candidate.key == fact.key:
        return normal_value(fact.value) == normal_value(candidate.value)
    slot = fact.key.replace("_", " ")
    return guards.covers(f"{slot} {fact.value}", " ".join(words), loosely=False)


def _own_words(text: str) -> set[str]:
    plain = _AGREES.sub(" ", fold(text).text)
    words = content_words(plain) | numbers(plain) or set(re.findall(r"[^\W_]+", plain))
    return words - _FILLER - FRAME


def _says_nothing(found: Findings) -> bool:
    if found.ref is not None or stands_alone(found):
        return False
    return not _own_words(sentences_said(found))


def _recites(found: Findings, values: Sequence[str]) -> bool:
    """Whether the cited message says what is remembered, and the user adds nothing to all that."""
    if found.ref is None or asks(found.ref[0].text, found.ref[1]):
        return False
    message = found.ref[0].text
    own = _own_words(sentences_said(found))
    return _all_in(own, [message, *values]) and _is_recital(message, values)


def _is_recital(message: str, values: Sequence[str]) -> bool:
    return any((words := _own_words(value)) and _all_in(words, [message]) for value in values)


def _is_recited(candidate: Candidate, found: Findings, values: Sequence[str]) -> bool:
    """Whether a value that the user's words do not carry is made of a recital's words."""
    words = _own_words(candidate.value)
    recitals = [
        turn.text
        for turn in found.turns
        if turn.role == "assistant" and _is_recital(turn.text, values)
    ]
    said = " \n".join(turn.text for turn in found.turns if turn.role == "user")
    return bool(recitals) and not _all_in(words, [said]) and _all_in(words, [*recitals, said])


def _denies(text: str) -> bool:
    return bool(markers.marked("negation", fold(text).text, ()))


def _all_in(words: Iterable[str], texts: Sequence[str]) -> bool:
    together = " \n".join(texts)
    return all(says(together, word) or word in numbers(together) for word in words)


def _echoes(found: Findings) -> bool:
    """Whether every word of the user was in the statement of the assistant that it answers."""
    if found.ref is not None:
        return False
    for turn, span in found.proofs:
        before = [t for t in found.turns if t.message_id < turn.message_id]
        if not before or before[-1].role != "assistant" or "?" in fold(before[-1].text).text:
            return False
        languages = found.languages
        if markers.marked("first_person", fold(span.text).text, languages):
            return False
        if not _all_in(_own_words(span.text), [before[-1].text]):
            return False
    return True
