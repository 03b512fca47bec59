"""Reading the answer to the question which memories to forget, and what else the message says.

"Yes. And what is a good recipe for lentils?" is an answer and something else. A yes counts only as
a message of its own, or as a sentence that is followed by a question or a command and not taken
back by it. "Yes. Before that, export it." can be said in too many ways to list them: there the
person is asked again, because what is forgotten cannot be brought back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memchat.chat import command_words
from memchat.language import text
from memchat.learn import own_words


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The numbers of what a person agrees to forget, none for a no, and what else they said."""

    chosen: tuple[int, ...]
    rest: str = ""


def _phrases(listed: str) -> frozenset[str]:
    """Phrases with a bar between them, on several lines."""
    return frozenset("".join(line.strip() for line in listed.split("\n")).split("|"))


_YES = _phrases(
    """yes|y|yes please|yes do|yes do it|yes forget it|yes forget them|yeah|yep|yup|do it|go ahead
    |please do|sure|confirm|forget them|ja|ja bitte|ja gerne|jawohl|klar|oui|oui s il te plaît
    |d accord|vas y|sí|si|sí por favor|si por favor|claro|sì|sì grazie|certo|sim|sim por favor
    |ja graag|ja alsjeblieft|да|так|tak|evet|ano|igen|kyllä|ναι|はい|是|是的|好|好的|네|예|نعم|हाँ|हां
    |ใช่|vâng|có|ya"""
)
_ALL = _phrases(
    """all|all of them|both|both of them|everything|yes all|yes all of them|yes both|alle|alles
    |beide|ja alle|ja beide|tous|toutes|tous les deux|toutes les deux|oui tous|todos|todas
    |ambos|los dos|las dos|tutti|tutte|entrambi|entrambe|as duas|os dois|allemaal|allebei
    |全部|すべて|모두"""
)
_NO = _phrases(
    """no|n|no thanks|no thank you|nope|nah|don t|don t do it|do not|cancel|stop|never mind
    |nevermind|none|none of them|neither|keep it|keep them|leave it|leave them|let it be|nein
    |nein danke|keine|keins|abbrechen|lass es|lass sie|lass das|behalte es|behalte sie|laisse
    |laisse tomber|garde le|garde la|déjalo|déjala|déjalos|déjalas|lascia|lascia stare|lascialo
    |lasciala|deixa|deixa estar|laat maar|laat het|оставь|zostaw
    |non|non merci|aucun|annule|ninguno|ninguna|cancela|no gracias|no grazie|nessuno|annulla|não
    |não obrigado|não obrigada|nenhum|nee|nee bedankt|geen|нет|nie|hayır|いいえ|不|不要|不用|아니요
    |아니|لا|नहीं|ไม่|không|tidak"""
)
_ORDINALS = {
    word: place
    for place, words in enumerate(
        (
            "first erste ersten erstes premier première primero primera primo primeiro eerste",
            "second zweite zweiten zweites deuxième second segundo segunda secondo seconda tweede",
            "third dritte dritten drittes troisième tercero tercera terzo terza terceiro derde",
            "fourth vierte quatrième cuarto quarto vierde",
            "fifth fünfte cinquième quinto vijfde",
        ),
        1,
    )
    for word in words.split()
}
_ITEM = re.compile(
    r"(?:(?:number|no|nr|nummer|numéro|número|numero|the|den|die|das|der|le|la|el|lo|il|o|a|de|het)"
    r"\s+)?(?P<id>#)?(?P<n>\w+)(?:\s+(?:one|uno|una))?"
)


_QUESTION_MARK = re.compile(r"[?？؟]|;\s*$")
"""A question mark; Greek's looks like a semicolon."""
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


def read(message: str, shown: Mapping[int, str]) -> Confirmation | None:
    """The answer that a message gives about what was shown as 1, 2, …; None for none.

    ``shown`` has the number of each in the answer, in that order, with its words.
    """
    ids = [*shown]
    whole = chosen_ids(message, ids)
    if whole is not None:
        return Confirmation(whole)
    lead, rest = _split(message)
    chosen = chosen_ids(lead, ids) if lead else None
    if chosen is None or (chosen and not _counts(message, rest, [*shown.values()])):
        return None
    return Confirmation(chosen, rest if any(c.isalnum() for c in rest) else "")


def is_unclear_yes(message: str) -> bool:
    """Whether a message that is no clear answer begins with a yes: then it is asked again."""
    first = re.match(r"\W*(\w+)", message)
    return first is not None and _is_yes(first[1])


def _split(message: str) -> tuple[str, str]:
    """The first sentence and what follows it, where both are the person's own; else nothing."""
    found = _FIRST_SENTENCE.fullmatch(message)
    if found is None or not any(c.isalpha() for c in found["lead"]):
        return "", ""  # "2. I live in Porto" may be a list
    own = found["lead"][0].isalnum() or found["lead"][0] == "¡"
    if not own or any(start == 0 for start, _ in own_words.quoted_spans(message)):
        return "", ""
    return found["lead"], found["rest"]


def _counts(message: str, rest: str, shown: Sequence[str]) -> bool:
    """Whether a yes at the start of a message counts when this follows it."""
    if not any(c.isalnum() for c in rest):
        return True
    command = command_words.command(rest)
    moves_on = _ASKS.search(rest) is not None or (command is not None and command.whole)
    return moves_on and not _BUT.match(message) and not _may_take_back(rest, shown)


def _may_take_back(rest: str, shown: Sequence[str]) -> bool:
    """Whether what follows a yes may limit it, or is about the same facts."""
    about = {word for words in shown for word in text.content_words(words)}
    if any(text.holds_word(rest, word) for word in about):
        return True
    command = command_words.command(rest)
    if command_words.asks_to_forget(rest) and (command is None or command.kind != "forget"):
        return True
    moved_on = False
    for sentence in _SENTENCE.findall(rest):
        moved_on = moved_on or _ASKS.search(sentence) is not None
        opening = _OPENING.match(sentence)
        said = opening[0][:_OPENING_MOST] if moved_on and opening else sentence
        if _TAKES_BACK.search(said.strip()):
            return True
        if len(shown) > 1 and not moved_on and _names_place(sentence, len(shown)):
            return True
    return False


def _is_yes(word: str) -> bool:
    """Whether a word alone agrees to forget."""
    return word.casefold() in _YES | _ALL


def _names_place(sentence: str, count: int) -> bool:
    """Whether a sentence may name one of so many numbered memories: "the second stays"."""
    words = re.findall(r"\w+", sentence.casefold())
    return any(w in _ORDINALS or (w.isdecimal() and int(w) <= count) for w in words)


def chosen_ids(message: str, ids: list[int]) -> tuple[int, ...] | None:
    """The memories that a whole message agrees to forget: none for a no, None for no answer.

    ``ids`` are those that were shown as 1, 2, …; ``#12`` names one by its id.
    """
    if _QUESTION_MARK.search(message) or re.search(r"\d\s*[-–…]\s*\d", message):
        return None  # a question, or a range: nothing is forgotten for either
    said = " ".join(re.sub(r"[^\w\s,;&#]", " ", message.strip().casefold()).split()).strip(" ,;&")
    words = " ".join(re.sub(r"[,;&]", " ", said).split())
    if words in _NO:
        return ()
    if words in _YES or words in _ALL:
        return tuple(ids)
    parts = [part.strip() for part in re.split(r"[,;&]", said)]
    if all(part in _NO for part in parts):
        return ()  # "No, leave it"
    if all(part in _YES or part in _ALL for part in parts):
        return tuple(ids)
    head, _, rest = said.partition(" ")
    if head.rstrip(",;") in _YES and rest:
        said = rest
    chosen = []
    for part in re.split(r"\s*[,;&]\s*|\s+(?:and|und|et|y|e|en)\s+|\s+(?=#?\d)", said):
        item = _ITEM.fullmatch(part.strip())
        if item is None:
            return None
        number = int(item["n"]) if item["n"].isdecimal() else _ORDINALS.get(item["n"], 0)
        if item["id"] and number in ids:
            chosen.append(number)
        elif not item["id"] and 1 <= number <= len(ids):
            chosen.append(ids[number - 1])
        else:
            return None
    return tuple(dict.fromkeys(chosen))
