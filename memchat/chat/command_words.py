"""What a person can say to the memory in a chat, read by patterns: commands in plain words, as
tools that a model calls, or behind a slash, and the answer to the question what to forget.

The patterns of commands serve where the chat model cannot call tools or called none, and where
memory is off. They are strict: an imperative at the very start of the person's own words, in seven
languages, so that "remember when we…?", "I can't forget …" or a pasted text are no commands.

A yes counts only as a message of its own, or as a sentence that is followed by a question or a
command and not taken back by it. "Yes. Before that, export it." can be said in too many ways to
list them: there the person is asked again, because what is forgotten cannot be brought back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memchat.errors import InputError
from memchat.language import sentences, text
from memchat.learn import own_words
from memchat.providers import ToolCall
from memchat.types import MEMORY_TYPES

_READ = 2_000
"""Characters of a message in which a command is looked for."""
_STATED = 600
"""Characters of a sentence that is a command at all."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command in a message. ``words`` is what it is about, ``sentence`` the sentence it is in;
    ``whole``: the message says nothing else."""

    kind: Literal["remember", "forget", "list"]
    words: str
    sentence: str
    whole: bool
    typed: bool = False
    """Behind a slash: no model is asked, whatever it can do."""


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
_FORGET_WORDS = re.compile(
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
    """The command to memory that a message begins with, or is behind a slash; None without one."""
    if behind := _TYPED.fullmatch(message):
        name, words = behind[1].lower(), (behind[2] or "").strip()
        if name == "forget" and words:
            return Command("forget", words, words, whole=True, typed=True)
        return Command("list", "", message, whole=True, typed=True) if name == "memories" else None
    said = plain(message).strip()
    head = said[:_READ]
    if not head:
        return None
    listing = _PATTERNS["list"].match(head)
    if listing and listing.end() == len(said):
        return Command("list", "", listing[0].strip(), True)
    sentence = sentences.sentence_around(head, 0, 1).text
    if len(sentence) > _STATED or sentence.rstrip("\"”’') ").endswith(("?", "？")):
        return None
    whole = len(sentence) == len(said)
    if remember := _PATTERNS["remember"].match(sentence):
        words = sentence[remember.end() :].strip(" .!,;…。！")
        return Command("remember", words, sentence, whole) if len(words) > 1 else None
    forget = _PATTERNS["forget"].match(sentence)
    if forget is None:
        return None
    rest = sentence[forget.end() :].strip(" ,\t\n")
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
    """Whether the person's own words, pasted and quoted text aside, are about forgetting at all."""
    own, at = [], 0
    for start, end in own_words.quoted_spans(message):
        own.append(message[at:start])
        at = end
    return _FORGET_WORDS.search(" ".join([*own, message[at:]])) is not None


def _tool(name: str, does: str, required: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name, "description": does}
    if fields:  # Gemini refuses an object without properties
        shape = {"type": "object", "properties": fields, "required": list(required)}
        function["parameters"] = shape
    return {"type": "function", "function": function}


def _text(does: str) -> dict[str, Any]:
    return {"type": "string", "description": does}


def memory_tools(own: Iterable[str] = ()) -> tuple[dict[str, Any], ...]:
    """The tools that the chat model is offered, in a store with these own types."""
    return (
        _tool(
            "remember",
            "Save one fact the user asks you to remember.",
            ("quote", "type", "key", "value"),
            quote=_text("the user's words, copied"),
            type={"type": "string", "enum": [*MEMORY_TYPES, *own]},
            key=_text("English snake_case slot, e.g. city"),
            value=_text("short, in the user's language"),
            until_said=_text("their words for how long, copied"),
            until=_text("as +3d, weekday:fri, end:month, MM-DD or YYYY-MM-DD"),
        ),
        _tool(
            "forget",
            "Show the user what is saved on something they ask you to forget, "
            "and let them confirm.",
            ("what",),
            what=_text("what to forget"),
        ),
        _tool("list_memories", "Show the user all that is saved about them."),
    )


def arguments(call: ToolCall) -> dict[str, Any]:
    """What the model passed; nothing where that cannot be read."""
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


COMMANDS = {
    "help": ("", "show these commands"),
    "memories": ("", "list what is remembered about you"),
    "forget": ("WORDS", "show what is remembered about that, and ask whether to forget it"),
    "why": ("", "explain the last reply: which memories it was given, and why"),
    "note": ("[TEXT]", "keep the text, or the last long message, as a note (--title TITLE)"),
    "incognito": ("", "begin a new chat that uses no memory and leaves nothing behind"),
    "exit": ("", "end this chat; /quit does the same"),
}
"""Each with what stands behind it, and what it does."""
_SECOND_NAMES = {"quit": "exit"}
# "/usr/bin/env" and "/s" are no commands, nor is a pasted text; a space in front makes any text a
# message.
_TYPED = re.compile(r"/([a-z]{2,})(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)
_KEEP = re.compile(
    r"(?:please\s+)?(?:keep|save|store)\s+(?:this|that|it)\s+as\s+a\s+note(?:\s*,?\s*please)?"
    r"|(?:bitte\s+)?(?:behalte|speichere?|sichere?)\s+(?:das|dies|es)\s+als\s+notiz"
    r"|(?:garde|enregistre)(?:[- ](?:le|la|ça|cela))?\s+(?:ça\s+|cela\s+)?comme\s+note"
    r"|(?:guarda(?:lo)?|guárdalo)\s+(?:esto\s+)?como\s+(?:una\s+)?nota"
    r"|(?:salva(?:lo)?|tienilo)\s+(?:questo\s+)?come\s+nota"
    r"|(?:guarda|salva)\s+(?:isto|isso)\s+como\s+(?:uma\s+)?nota"
    r"|bewaar\s+(?:dit|dat)\s+als\s+notitie",
    re.IGNORECASE,
)
"""``/note`` in plain words, which have to be the whole message."""


@dataclass(frozen=True, slots=True)
class Slash:
    """A command, by its name in ``COMMANDS``, and the words behind it."""

    name: str
    words: str = ""


def typed(message: str) -> Slash | None:
    """The command that a message is, or None.

    Raises InputError for a line that names no command there is, and where one lacks its words.
    """
    found = _TYPED.fullmatch(message)
    if found is None:
        return Slash("note") if _KEEP.fullmatch(message.strip().rstrip(" .!")) else None
    name, words = found[1].lower(), (found[2] or "").strip()
    name = _SECOND_NAMES.get(name, name)
    if name not in COMMANDS:
        if "\n" in message.strip():
            return None
        raise InputError(
            f"there is no command /{name}; /help lists them. To say this as it is, begin it with "
            "a space"
        )
    if name == "forget" and not words:
        raise InputError("say what to forget: /forget WORDS")
    return Slash(name, words)


def helped() -> list[tuple[str, str]]:
    """Each command as it is typed, and what it does."""
    return [(f"/{name} {words}".rstrip(), does) for name, (words, does) in COMMANDS.items()]


@dataclass(frozen=True, slots=True)
class ForgetAnswer:
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


def answer_to(message: str, shown: Mapping[int, str]) -> ForgetAnswer | None:
    """The answer that a message gives about what was shown as 1, 2, …; None for none.

    ``shown`` has the number of each in the answer, in that order, with its words.
    """
    wish = command(message)
    if wish is not None and wish.typed:
        return None
    ids = [*shown]
    whole = chosen_ids(message, ids)
    if whole is not None:
        return ForgetAnswer(whole)
    lead, rest = _split(message)
    chosen = chosen_ids(lead, ids) if lead else None
    if chosen is None or (chosen and not _counts(message, rest, [*shown.values()])):
        return None
    return ForgetAnswer(chosen, rest if any(c.isalnum() for c in rest) else "")


def is_unclear_yes(message: str) -> bool:
    """Whether a message that is no clear answer begins with a yes: then it is asked again."""
    first = re.match(r"\W*(\w+)", message)
    return first is not None and first[1].casefold() in _YES | _ALL


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
    wish = command(rest)
    moves_on = _ASKS.search(rest) is not None or (wish is not None and wish.whole)
    return moves_on and not _BUT.match(message) and not _may_take_back(rest, shown)


def _may_take_back(rest: str, shown: Sequence[str]) -> bool:
    """Whether what follows a yes may limit it, or is about the same facts."""
    about = {word for words in shown for word in text.content_words(words)}
    if _TAKES_BACK.search(rest) or any(text.holds_word(rest, word) for word in about):
        return True
    wish = command(rest)
    if asks_to_forget(rest) and (wish is None or wish.kind != "forget"):
        return True
    said, count = re.findall(r"\w+", rest.casefold()), len(shown)  # "the second stays"
    places = [w for w in said if w in _ORDINALS or (w.isdecimal() and int(w) <= count)]
    return count > 1 and bool(places)


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
