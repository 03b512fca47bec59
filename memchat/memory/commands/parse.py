"""What a message asks of memory itself: remember this, forget that, what do you know about me?

Patterns for models that cannot call tools, and for saying that memory is off. They are strict: an
imperative at the very start of the person's own words, so that "remember when we…?", "I can't
forget …" or a pasted text are no commands. Seven languages; any other goes to the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from memchat.language import sentences
from memchat.memory.gate.checks import quoted_text

_READ = 2_000
"""Characters of a message in which a command is looked for."""
_STATED = 600
"""Characters of a sentence that is a command at all."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it was said. ``words`` is what it speaks of, ``sentence`` where it stands;
    ``whole`` tells that the message says nothing else."""

    kind: Literal["remember", "forget", "list"]
    words: str
    sentence: str
    whole: bool


_LEAD = (
    r"(?:(?:please|pls|ok(?:ay)?|hey|so|and|now|also|bitte|und|also|s['’]il te pla[iî]t|por favor"
    r"|per favore|alsjeblieft)[\s,]+){0,2}"
)
_SOFT = r"(?:[\s,]+(?:please|bitte|bien|por favor|per favore|alsjeblieft|doch|auch|aussi|ook)\b)*"
# "Remember that time …" recalls; it does not ask for anything to be kept.
_NOT_A_TIME = (
    r"(?!\s*(?:time|times|day|night|one|evening|morning|afternoon|week|weekend|summer|year|guy|man"
    r"|woman|girl|boy|place|movie|film|song|book|game|thing|trip|party)\b)"
)
_REMEMBER = (
    rf"(?:remember|memori[sz]e|keep in mind|note(?: down)?|make a note"
    rf"|(?:don['’]?t|do not|never) forget){_SOFT}(?:\s*:|\s*,?\s+that\b{_NOT_A_TIME}"
    r"|\s+(?=(?:i|i['’]\w+|my|we|we['’]\w+|our)\s))",
    rf"(?:merke? (?:dir|euch)|erinner(?:e|n sie)? (?:dich|sich)|vergiss nicht|denke? daran"
    rf"|notiere?(?: dir)?|speicher[en]?|behalte?){_SOFT}(?: daran)?(?:\s*:|\s*,?\s+dass\b)",
    rf"(?:souviens[- ]toi|souvenez[- ]vous|rappelle[- ]toi|retiens|retenez|notez?|m[ée]morise"
    rf"|n['’]oublie[zs]? pas){_SOFT}(?:\s*:|\s+que?\b['’]?)",
    rf"(?:recuerd[ae]|acu[ée]rdate|apunt[ae]|anot[ae]|no olvides|ten en cuenta|memoriza){_SOFT}"
    r"(?:\s*:|\s+(?:de )?que\b)",
    rf"(?:ricorda(?:ti)?|tieni a mente|annota|non dimenticare|memorizza){_SOFT}"
    r"(?:\s*:|\s+(?:di )?che\b)",
    rf"(?:lembr[ae](?:-te|-se)?|anot[ae]|n[ãa]o (?:te |se )?esque[çc]as?|memoriz[ae]){_SOFT}"
    r"(?:\s*:|\s+(?:de )?que\b)",
    rf"(?:onthoud|noteer|vergeet niet|denk eraan){_SOFT}(?:\s*:|\s*,?\s+dat\b)",
)
_POLITE = re.compile(
    r"\s*(?:(?:can|could|would|will) you(?: please)?\s+"
    r"(?=(?:remember|note|keep in mind|memori[sz]e),? that\b|(?:please )?forget\b))",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:about|that|über|dass|que|qu['’]|de que|de|di|che|a propos de|à propos de|sobre|dat|over)\b"
    r"\s*",
    re.IGNORECASE,
)
_FORGET = (
    r"(?:delete|erase|remove|forget) (?:what (?:you (?:know|remember|saved|have saved|stored))"
    r"|(?:the |your |that |any |all )*memor(?:y|ies))(?: (?:of|on))?",
    r"(?:forget|stop remembering)",
    r"vergiss(?! nicht)|vergessen sie",
    r"oublie[zs]?",
    r"olv[ií]d[ae](?:te|se)?",
    r"dimentica(?:ti)?(?! mai)",
    r"esque[çc][ea](?:-te|-se)?",
    r"vergeet(?! niet)",
)
_PERSONAL = re.compile(
    r"\b(?:my|me|mine|myself|i|i['’]\w+|we|our|us"
    r"|mein\w*|mich|mir|ich|wir|unser\w*"
    r"|mon|ma|mes|moi|je|notre|nos|mi|mis|m[ií]|yo|nuestr\w+|mio|mia|miei|mie|io|noi|nostr\w"
    r"|meu|minha|meus|minhas|mim|eu|nosso|nossa|mijn|mij|ik|ons|onze)\b|\bj['’]|\bm['’]|\B#\d+",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"^(?:that|dass|que|qu['’]|de que|di che|che|dat)\b", re.IGNORECASE)
# Said of the talk itself, or of what a text tells a model to do.
_IDLE = re.compile(
    r"(?:it|that|this|them|those|these|about (?:it|that|this)|me|me not|you|everyone"
    r"|the (?:above|last (?:one|part|bit|message)|rest)|what (?:i|you) (?:just )?(?:said|wrote)"
    r"|es|das|das alles|mich|ça|cela|tout ça|moi|eso|esto|lo|ciò|questo|quello|isso|isto|het|dat)"
    r"|.*\b(?:instructions?|prompts?|rules?|guidelines?|anweisung\w*|consignes?|instruc\w+)\b.*",
    re.IGNORECASE,
)
# "Forget about dinner, let us talk about the film."
_MOVES_ON = re.compile(
    r"[,;–—]\s*(?:and |but )?(?:let|lets|let['’]s|instead|what|how|can|could|tell|show|give|do|i|we"
    r"|lass|parlons|hablemos|parliamo)\b",
    re.IGNORECASE,
)
_EVERYTHING = re.compile(
    r"(?:everything|all(?: of (?:it|that))?|alles|tout|todo|tutto|tudo)?"
    r"(?:[\s,]*(?:that |what )?(?:you (?:know|remember|have saved|saved)|was du wei(?:ß|ss)t"
    r"|ce que tu sais|lo que sabes|quello che sai|o que sabes|wat je weet))?"
    r"(?:\s*(?:about|of|über|sur|sobre|su|de|di|over)\s+(?:me|myself|mich|moi|m[ií]|mim|mij))?",
    re.IGNORECASE,
)
_LIST = (
    r"what (?:all )?(?:do|can|did) you (?:still |already |actually )?(?:remember|know|recall)"
    r"(?: (?:about|of) me)|what do you remember",
    r"what have you (?:remembered|saved|stored|learn(?:ed|t)|noted)(?: about me)?",
    r"(?:show|list|tell)(?: me)? (?:(?:everything|all|what)(?: that)? you (?:know|remember)"
    r" about me|(?:all )?(?:my|your) memories(?: (?:about|of) me)?)",
    r"was wei(?:ß|ss)t du (?:noch |alles |schon )*(?:über mich|von mir)(?: noch| alles)?",
    r"(?:woran|an was) erinnerst du dich(?: (?:bei|über|von) mi(?:r|ch))?"
    r"|was hast du (?:dir )?(?:über mich )?gemerkt",
    r"(?:que|qu['’]est-ce que tu) (?:sais|retiens)(?:[- ]tu)? (?:de|sur) moi"
    r"|de quoi te souviens[- ]tu(?: (?:à mon sujet|sur moi))?",
    r"qu[ée] (?:sabes|recuerdas|sabe|recuerda) (?:de|sobre|acerca de) m[ií]",
    r"(?:che )?(?:cosa )?(?:sai|ricordi|ti ricordi) (?:di|su) me",
    r"(?:o )?que (?:(?:é que )?(?:você|tu) )?(?:sabes?|(?:se |te )?lembras?|recordas?)"
    r"(?:-te|-se)? (?:de|sobre) mim",
    r"wat (?:weet|onthoud|herinner) (?:jij|je)(?: je)?(?: nog| allemaal)? (?:over|van) mij",
)
_PATTERNS = {
    "remember": re.compile(rf"{_LEAD}(?:{'|'.join(_REMEMBER)})\s*", re.IGNORECASE),
    "forget": re.compile(
        rf"{_LEAD}(?:{'|'.join(_FORGET)}){_SOFT}(?=\s|,\s*(?:that|dass)\b)", re.IGNORECASE
    ),
    "list": re.compile(
        rf"{_LEAD}¿?(?:{'|'.join(_LIST)})(?:[\s,]+(?:so far|right now|today|exactly|already|please"
        r"|bitte|maintenant|por favor|per favore))*[\s?？!.]*",
        re.IGNORECASE,
    ),
}
_OVER_WORDS = re.compile(
    r"forget|unlearn|delet|eras|remov|\bwip|vergess?|vergiss|lösch|loesch|streich|oubli|efface|supprim"
    r"|olv[ií]d|borr[ae]|elimin|dimentic|cancell|scord|esque[çc]|apag|vergeet|vergeten|\bwis\b|verwijder|glem"
    r"|slet|glöm|radera|unohda|poista|zapom|usuń|smaž|забуд|забыть|удали|видали|unut|\bsil\b|انس|احذف"
    r"|भूल|हटा|忘|删|刪|消し|消して|잊|지워|삭제|ลืม|ลบ|quên|xóa|xoá|lupakan|hapus|ξέχασ|διέγραψ|שכח|מחק",
    re.IGNORECASE,
)


def plain(message: str) -> str:
    """A polite question ("Can you remember that …?") as the imperative that it is; every other
    character keeps its place. Any other message as it is."""
    polite = _POLITE.match(message[:_READ])
    if polite is None:
        return message
    end = sentences.sentence_around(message[:_READ], polite.end(), polite.end() + 1).end
    if message[end - 1] not in "?？":
        return message
    return f"{' ' * polite.end()}{message[polite.end() : end - 1]}.{message[end:]}"


def command(message: str) -> Command | None:
    """The command a message begins with, or None."""
    said = plain(message).strip()
    head = said[:_READ]
    if not head:
        return None
    asked = _PATTERNS["list"].match(head)
    if asked and asked.end() == len(said):
        return Command("list", "", asked[0].strip(), True)
    sentence = sentences.sentence_around(head, 0, 1).text
    if len(sentence) > _STATED or sentence.rstrip("\"”’') ").endswith(("?", "？")):
        return None
    whole = len(sentence) == len(said)
    if kept := _PATTERNS["remember"].match(sentence):
        words = sentence[kept.end() :].strip(" .!,;…。！")
        return Command("remember", words, sentence, whole) if len(words) > 1 else None
    over = _PATTERNS["forget"].match(sentence)
    if over is None:
        return None
    rest = sentence[over.end() :].strip(" ,\t\n")
    words = _ABOUT.sub("", rest, count=1) if _ABOUT.match(rest) else rest
    words = words.strip(" .!,;:…。！\"“”'’")
    if not (everything(words) or _names_something(rest, words)):
        return None
    return Command("forget", words, sentence, whole)


def _names_something(rest: str, words: str) -> bool:
    if not words or _IDLE.fullmatch(words) or _IDLE.fullmatch(rest.strip(" .!")):
        return False
    if _MOVES_ON.search(words):
        return False
    clause = _CLAUSE.match(rest) and len(words.split()) > 1
    return bool(clause or _PERSONAL.search(words) or len(words.split()) <= 2)


def everything(words: str) -> bool:
    """Whether the words to forget mean all there is."""
    words = words.strip(" .!")
    return bool(words) and _EVERYTHING.fullmatch(words) is not None


def asks_to_forget(message: str) -> bool:
    """Whether the person's own words, pasted and quoted text aside, speak of forgetting at all."""
    own, at = [], 0
    for start, end in quoted_text.spans_of_others(message):
        own.append(message[at:start])
        at = end
    return _OVER_WORDS.search(" ".join([*own, message[at:]])) is not None


_YES = frozenset(
    """yes|y|yes please|yes do|yes do it|yes forget it|yes forget them|yeah|yep|yup|do it|go ahead
    |please do|sure|confirm|forget them|ja|ja bitte|ja gerne|jawohl|klar|oui|oui s il te plaît
    |d accord|vas y|sí|si|sí por favor|si por favor|claro|sì|sì grazie|certo|sim|sim por favor
    |ja graag|ja alsjeblieft|да|так|tak|evet|ano|igen|kyllä|ναι|はい|是|是的|好|好的|네|예|نعم|हाँ|हां
    |ใช่|vâng|có|ya""".replace("\n", "")
    .replace("    ", "")
    .split("|")
)
_ALL = frozenset(
    """all|all of them|both|both of them|everything|yes all|yes all of them|yes both|alle|alles
    |beide|ja alle|ja beide|tous|toutes|tous les deux|toutes les deux|oui tous|todos|todas
    |ambos|los dos|las dos|tutti|tutte|entrambi|entrambe|as duas|os dois|allemaal|allebei
    |全部|すべて|모두""".replace("\n", "")
    .replace("    ", "")
    .split("|")
)
_NO = frozenset(
    """no|n|no thanks|no thank you|nope|nah|don t|don t do it|do not|cancel|stop|never mind
    |nevermind|none|none of them|neither|keep it|keep them|leave it|leave them|let it be|nein
    |nein danke|keine|keins|abbrechen|lass es|lass sie|lass das|behalte es|behalte sie|laisse
    |laisse tomber|garde le|garde la|déjalo|déjala|déjalos|déjalas|lascia|lascia stare|lascialo
    |lasciala|deixa|deixa estar|laat maar|laat het|оставь|zostaw
    |non|non merci|aucun|annule|ninguno|ninguna|cancela|no gracias|no grazie|nessuno|annulla|não
    |não obrigado|não obrigada|nenhum|nee|nee bedankt|geen|нет|nie|hayır|いいえ|不|不要|不用|아니요
    |아니|لا|नहीं|ไม่|không|tidak""".replace("\n", "")
    .replace("    ", "")
    .split("|")
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


_ASKED = re.compile(r"[?？؟]|;\s*$")
"""A question mark; Greek's looks like a semicolon."""


def is_yes(word: str) -> bool:
    """Whether a word alone agrees to forget."""
    return word.casefold() in _YES | _ALL


def names_place(sentence: str, count: int) -> bool:
    """Whether a sentence may speak of one of so many numbered memories: "the second stays"."""
    words = re.findall(r"\w+", sentence.casefold())
    return any(w in _ORDINALS or (w.isdecimal() and int(w) <= count) for w in words)


def answer(message: str, ids: list[int]) -> tuple[int, ...] | None:
    """Which of the memories a whole message agrees to forget: none for a no, None for no answer.

    ``ids`` are those that were shown as 1, 2, …; ``#12`` names one by its id.
    """
    if _ASKED.search(message) or re.search(r"\d\s*[-–…]\s*\d", message):
        return None  # a doubt, or a range: nothing is forgotten on either
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
