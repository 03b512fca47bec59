"""What a message says to the question which memories to forget, and what it says besides.

"Yes. And what is a good recipe for lentils?" is an answer and something else. A yes counts only as
a message of its own, or as a sentence with a question or a command behind it that does not take it
back. "Yes. Before that, export it." can be put in too many ways to list them: a person can be asked
again, and what is forgotten is gone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memchat.language import text
from memchat.memory.commands import parse
from memchat.memory.gate.checks import quoted_text
from memchat.types import Memory


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The memories that a person agrees to forget, none for a no, and what else they said."""

    chosen: tuple[int, ...]
    rest: str = ""


_FIRST_SENTENCE = re.compile(
    r"\s*(?P<lead>[^.!?…。！？।؟;\n]{1,80}?)\s*(?:\.(?=\s)|[!！。।]+|\n)\s*(?P<rest>\S.*)",
    re.DOTALL,
)
_SENTENCE = re.compile(r"[^.!?…。！？।؟\n]+[.!?…。！？।؟]*")
_ASKS = re.compile(r"(?:[?？؟\u037e]|(?<=[\u0370-\u03ff\u1f00-\u1fff]);)[\s!?)\"'”’»]*$")
"""The end of a question; Greek's mark looks like a semicolon."""
# Words that may take a yes back, or put a condition on it.
_SPACED = """
    but except however though although only just wait hold on hang on actually rather instead no
    nope not never sorry kidding joking unless think maybe perhaps later keep leave stay stays
    mean meant still cancel stop undo abort
    aber außer ausser jedoch nur wart warte moment halt doch eigentlich nein nicht nie kein keine
    keinen vielleicht später behalte behalten lass bleibt erst scherz obwohl sondern
    abbrechen stopp
    mais sauf cependant seulement attends attendez non pas ne jamais désolé désolée plutôt
    finalement garde gardez laisse laissez annule annuler annulez
    pero excepto salvo menos sólo solo solamente espera nunca mejor perdón quizá quizás
    guarda deja realidad cancela cancelar
    però tranne eccetto aspetta mai anzi scusa forse tieni lascia lasciala lascialo realtà
    annulla annullare
    mas porém exceto somente espere não aliás desculpa talvez guarde deixa deixe
    maar behalve alleen wacht nee niet nooit geen misschien houd bewaar laat toch
    но кроме только подожди подождите стой нет не никогда может оставь оставьте
    але крім тільки зачекай ні залиш
    ale oprócz tylko czekaj poczekaj nie nigdy może zostaw kromě jen počkej možná nech
    kivéve csak várj nem soha talán hagyd mégis mutta paitsi vain odota ei älä ehkä jätä pidä
    ama fakat hariç sadece bekle hayır değil belki bırak kalsın yok
    αλλά εκτός μόνο περίμενε όχι δεν μην ίσως άσε κράτα
    tapi tetapi kecuali hanya tunggu tidak jangan bukan mungkin simpan biarkan
    nhưng trừ chỉ chờ đợi không đừng giữ
    لكن إلا ماعدا فقط انتظر لا ليس ربما احتفظ اترك
"""
_UNSPACED = """
    でも けど しかし ただ 待って やっぱり いいえ いや ない 残し 取り消 但 可是 不过 不過 除了 只
    等等 等一下 别 別 不 没 沒 保留 하지만 지만 근데 그런데 빼고 잠깐 아니 말고 않 남겨
    लेकिन मगर परंतु सिवाय सिर्फ रुको नहीं मत शायद रहने แต่ ยกเว้น แค่ เดี๋ยว ไม่ อย่า เก็บ
"""
_TAKES_BACK = re.compile(
    rf"(?<!\w)(?:{'|'.join(map(re.escape, _SPACED.split()))}|\w+n['’]t)(?!\w)"
    rf"|{'|'.join(map(re.escape, _UNSPACED.split()))}",
    re.IGNORECASE,
)
_BUT = re.compile(r"\W*(?:(?:sì|si|certo)\W+ma|igen\W+de|kyllä\W+en)\b", re.IGNORECASE)
"""Where the word is too common in other languages to be looked for anywhere."""
_OPENING = re.compile(r"\W*(?:\w[\w'’-]*\W*){1,3}")
_OPENING_MOST = 24
"""Characters of a question that may take a yes back: its first three words."""


def read(message: str, memories: Sequence[Memory]) -> Confirmation | None:
    """The answer that a message gives about these memories, shown as 1, 2, …; None for none."""
    ids = [memory.id for memory in memories]
    whole = parse.answer(message, ids)
    if whole is not None:
        return Confirmation(whole)
    lead, rest = _parted(message)
    chosen = parse.answer(lead, ids) if lead else None
    if chosen is None or (chosen and not _stands(message, rest, memories)):
        return None
    return Confirmation(chosen, rest if any(c.isalnum() for c in rest) else "")


def wavers(message: str) -> bool:
    """Whether a message that is no answer begins with a yes all the same: it is asked again."""
    first = re.match(r"\W*(\w+)", message)
    return first is not None and parse.is_yes(first[1])


def _parted(message: str) -> tuple[str, str]:
    """The first sentence and what follows it, where both are the person's own; else nothing."""
    found = _FIRST_SENTENCE.fullmatch(message)
    if found is None or not any(c.isalpha() for c in found["lead"]):
        return "", ""  # "2. I live in Porto" may be a list
    own = found["lead"][0].isalnum() or found["lead"][0] == "¡"
    if not own or any(start == 0 for start, _ in quoted_text.spans_of_others(message)):
        return "", ""
    return found["lead"], found["rest"]


def _stands(message: str, rest: str, memories: Sequence[Memory]) -> bool:
    """Whether a yes at the start of a message counts with this behind it."""
    if not any(c.isalnum() for c in rest):
        return True
    command = parse.command(rest)
    moves_on = _ASKS.search(rest) is not None or (command is not None and command.whole)
    return moves_on and not _BUT.match(message) and not _may_take_back(rest, memories)


def _may_take_back(rest: str, memories: Sequence[Memory]) -> bool:
    """Whether what follows a yes may limit it, or speaks of the very same facts."""
    about = {
        word
        for memory in memories
        for word in text.content_words(f"{memory.key.replace('_', ' ')} {memory.value}")
    }
    if any(text.holds_word(rest, word) for word in about):
        return True
    command = parse.command(rest)
    if parse.asks_to_forget(rest) and (command is None or command.kind != "forget"):
        return True
    moved_on = False
    for sentence in _SENTENCE.findall(rest):
        moved_on = moved_on or _ASKS.search(sentence) is not None
        opening = _OPENING.match(sentence)
        said = opening[0][:_OPENING_MOST] if moved_on and opening else sentence
        if _TAKES_BACK.search(said.strip()):
            return True
        if len(memories) > 1 and not moved_on and parse.names_place(sentence, len(memories)):
            return True
    return False
