"""Recognising commands to memory in a message: by patterns, or as tools that a model calls.

The patterns serve where the chat model cannot call tools or called none, and where memory is off.
They are strict: an imperative at the very start of the person's own words, so that "remember when
we…?", "I can't forget …" or a pasted text are no commands. They know English, German, French,
Spanish, Italian, Portuguese and Dutch; any other language is left to the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memchat.language import sentences
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
    """The command a message begins with, or None."""
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


TOOLS = (
    _tool(
        "remember",
        "Save one fact the user asks you to remember.",
        ("quote", "type", "key", "value"),
        quote=_text("the user's words, copied"),
        type={"type": "string", "enum": list(MEMORY_TYPES)},
        key=_text("English snake_case slot, e.g. city"),
        value=_text("short, in the user's language"),
        until_said=_text("their words for how long, copied"),
        until=_text("as +3d, weekday:fri, end:month, MM-DD or YYYY-MM-DD"),
    ),
    _tool(
        "forget",
        "Show the user what is saved on something they ask you to forget, and let them confirm.",
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
