"""What reads as an order to the assistant, not as a fact about the person.

How answers should look (their language, length, units) is a person's to wish. What to claim,
recommend, send, run or keep quiet about, and what rules to drop, waits for a yes.
"""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from memchat.learn.verdict import Case

_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһӏмткнвАЕОРСУХІЈЅМТКНВοαενικρτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ‹›《》〈〉",
    "aeopcyxijsdhlmtkhbAEOPCYXIJSMTKHBoaevikptuxABEZHIKMNOPTYX<><><>",
)
_OVERRIDE = re.compile(
    r"(?<!\w)(?:ignor\w+|disregard|forget|override|bypass|vergiss|vergesst|missachte\w*|oublie\w*|olvida|dimentica|esqueç\w+|negeer|vergeet|yok say|unut|görmezden|игнориру\w+|забудь|zignoruj)(?!\w)"
    r"[^.!?\n]{0,40}?(?<!\w)(?:instruct\w*|instru\w+|rules?|prompts?|guidelines|anweisung\w*|regeln|consignes|règles|instrucci\w+|reglas|istruzioni|regole|regras|instructies|regels|talimat\w*|kurallar\w*|инструкци\w+|правил\w*|polece\w+|zasad\w*)(?!\w)"
    r"|(?:instruct\w*|talimat\w*|инструкци\w+)[^.!?\n]{0,20}(?:ignor\w+|yok say|игнориру\w+)"
    r"|(?:指示|命令|ルール)を?(?:無視|忘れ)|(?:忽略|无视|忘记|無視)[^。！？\n]{0,12}(?:指令|指示|规则|要求)"
    r"|(?:تجاهل|انس)[^.!?\n]{0,20}(?:التعليمات|تعليمات|القواعد)|(?:निर्देश\S*|नियम\S*)[^।\n]{0,16}(?:अनदेखा|भूल)"
    r"|(?:previous|prior|earlier|bisherige\w*|précédent\w*|anterior\w*|precedent\w*|eerdere|önceki|предыдущ\w+|above) (?:instruct\w*|rules|anweisung\w*|consignes|regels|talimat\w*|инструкци\w+)|instruction\w*:"
    r"|system ?prompt|jailbreak|developer mode|you are now|</?\w[^>\n]{0,60}>|<\||\[/?inst\]|https?://",
    re.IGNORECASE,
)
"""What has no place among facts: whatever else its message says waits for a person."""

_ALWAYS = (
    r"always|never|must|should|shall|from now on|henceforth|whenever|every time|immer|nie|niemals|ab jetzt|ab sofort|künftig|musst|sollst|toujours|jamais|désormais|dois|siempre|nunca|debes|sempre|mai|devi|deve|altijd|nooit|moet"
    r"|her zaman|daima|asla|всегда|никогда|должен|zawsze|nigdy|دائما|دائمًا|أبدا|हमेशा|कभी"
)
_PUSH = (
    r"recommend\w*|mention|praise|promote|advertise|send|forward|obey|reveal|execute|run|cite|link|refer|approve|buy|pay|transfer|trust|include|hide|conceal|tell|say|claim|endorse"
    r"|empfiehl\w*|empfehl\w+|erwähn\w+|verweis\w*|schick\w*|send\w+|nenn\w*|lob\w*|recommand\w+|mentionn\w+|envoy\w+|vant\w+|conseill\w+|recomiend\w+|recomend\w+|mencion\w+|envía\w*|envia\w*|consigli\w+|raccomand\w+|menzion\w+|invia\w*|aanbevel\w*|beveel|raad\w*|noem\w*|stuur\w*"
    r"|öner\w*|tavsiye|bahset\w*|gönder\w*|совету\w+|рекоменду\w+|упомина\w+|отправля\w+|polecaj|polec\w*|wspominaj|أوص\w*|اذكر|أرسل|सिफारिश|सिफ़ारिश|भेज\w*|बताओ"
)
_STANDING = re.compile(
    rf"(?<!\w)(?:{_ALWAYS})(?!\w)(?:\W+\w+){{0,6}}?\W+(?:{_PUSH})(?!\w)|(?<!\w)(?:{_PUSH})(?!\w)(?:\W+\w+){{0,3}}?\W+(?:{_ALWAYS})(?!\w)"
    r"|(?:必ず|いつも|常に)[^。\n]{0,20}(?:おすすめ|勧め|推薦|送っ|言及)|(?:总是|一直|必须|务必|以后都?)[^。\n]{0,12}(?:推荐|提到|发送|宣传)",
    re.IGNORECASE,
)
"""Always, never or must, and near it a verb of claiming, recommending, sending or running."""

_AT_ONCE = re.compile(
    r"(?:^|[.,;:!?\n]|(?<!\w)(?:and|please|then|und|et|y)(?!\w))\s*(?:obey|reveal|execute|forward|promote|advertise|endorse|praise|grant|disable|transfer)(?!\w)",
    re.IGNORECASE,
)
_IGNORE_ALL = re.compile(
    r"(?<!\w)ignor\w+ (?:all|any|every|previous|prior|earlier|your)(?!\w)|(?<!\w)disregard(?!\w)",
    re.IGNORECASE,
)
_DRESSED = re.compile(
    r"(?<!\w)(?:when|if|that|wenn|dass|quand|que|cuando|quando|che|als|dat) (?:you|du|sie|tu|vous|tú|lei|você|je|jij)(?: \w+){0,3}? (?:recommend\w*|mention|praise|promote|advertise|send|forward|obey|reveal|execute|cite|link|approve|buy|pay|transfer|trust|endorse|conceal|hide"
    r"|empfiehlst|erwähnst|schickst|nennst|recommand\w+|mentionn\w+|recomiend\w+|recomend\w+|mencion\w+|consigli\w*|aanbeveelt|noemt|stuurt)(?!\w)"
    r"|(?<!\w)(?:replies|answers|responses|messages|antworten|réponses|respuestas|risposte|respostas|antwoorden)(?: \w+){0,2}? (?:end|begin|start|open|close|finish|enden|beginnen|terminent|terminan|finiscono|eindigen)(?!\w)"
    r"|(?<!\w)(?:anyone|anybody|everyone|everybody|whoever) (?:who )?asks?(?!\w)|(?<!\w)trust(?!\w)[^.!?\n]{0,30}(?<!\w)[\w-]{2,40}\.[a-z]{2,10}(?!\w)",
    re.IGNORECASE,
)
"""An order in the dress of a wish: "I like it when you recommend …", "replies end with …"."""
_ABOUT_ASSISTANT = re.compile(
    r"(?<!\w)(?:the|this|your) (?:(?:assistant|ai|chatbot)(?!\w)[^.!?\n]{0,20}(?<!\w)(?:has|is|may|must|can|should|will|shall)|(?:model|bot|system)(?!\w)[^.!?\n]{0,20}(?<!\w)(?:may|must|shall))(?!\w)"
    r"|(?<!\w)you (?:must|may|shall|are allowed|are permitted|have permission|have to)(?!\w)"
    r"|(?<!\w)(?:du (?:musst|darfst|sollst)|musst du|tu dois|vous devez|debes|tienes que|devi|você deve|je moet|ты (?:должен|можешь)|musisz)(?!\w)",
    re.IGNORECASE,
)
_FORM_VERBS = r"answer\w*|respond|reply|speak|write|use|explain|address|call me|antworte\w*|schreib\w*|sprich|benutz\w*|répond\w*|écri\w+|parl\w+|utilis\w+|contest\w+|respond\w+|responde\w*|escrib\w+|habla\w*|usa\w*|rispond\w+|scriv\w+|antwoord\w*|schrijf\w*|cevap\w*|yaz\w*|отвеча\w+|пиши\w*|odpowiad\w+"
_FORM = re.compile(rf"(?<!\w)(?:{_FORM_VERBS})(?!\w)", re.IGNORECASE)
_STANDING_FORM = re.compile(rf"(?<!\w)(?:{_ALWAYS})\W+(?:{_FORM_VERBS})(?!\w)", re.IGNORECASE)
_FIRST_PERSON = re.compile(
    r"(?<!\w)(?:i|we|ich|wir|je|j'|nous|yo|io|eu|ik|ben|я|мы|who|and i)\W*$", re.IGNORECASE
)
_HABIT = re.compile(
    rf"(?<!\w)(?:i|we|ich|wir|je|yo|io|eu|ik) (?:(?:{_ALWAYS})\W[^.!?;:,\n]{{1,80}} (?:and|or|but|und|oder|et|ou|y|o|e|en)|(?:love|like|hate|enjoy|prefer|try|need|have|want|used|tend|plan|started) to)\W+$",
    re.IGNORECASE,
)
"""The subject of "I always buy organic milk and never pay by card" stands before its first half."""
_FIELDS = re.compile(
    r"(?<!\w)[\"']?(?:key|value|quotes?|facts|flags|type|until|msg)[\"']?\s*[:=]", re.IGNORECASE
)


@lru_cache(maxsize=512)
def as_rendered(text: str) -> str:
    """The text as a reader sees it: nothing invisible, no strokes, no letters of another alphabet
    that only look like these."""
    plain = unicodedata.normalize("NFKD", text)
    kept = "".join(c for c in plain if unicodedata.category(c) not in ("Cf", "Mn", "Me", "Co"))
    latin = sum("a" <= c <= "z" for c in kept.casefold())
    return kept.translate(_LOOKALIKES) if latin else kept


def check_instructions(case: Case) -> None:
    """What reads as an order, or hides what it is, waits for a person whatever a model says."""
    messages = [turn.text for turn in case.quoted_turns()]
    texts = (case.candidate.value, *case.sentences())
    wish = case.candidate.type == "preference"
    if any(map(overrides_rules, (*texts, *messages))) or any(
        is_instruction(text, wish=wish) for text in texts
    ):
        case.reviews.append("it reads as an instruction, not as a fact about you")
    if "```" in case.candidate.value:
        case.reviews.append("it holds marks of program code")
    disguises = map(hidden_instruction, (case.candidate.value, case.candidate.key, *messages))
    case.reviews += list(filter(None, disguises))[:1]


def reads_as_instruction(value: str) -> bool:
    """Whether a value tells the assistant what to do, or hides what it is."""
    return (
        overrides_rules(value)
        or is_instruction(value, wish=False)
        or hidden_instruction(value) is not None
    )


@lru_cache(maxsize=512)
def overrides_rules(text: str) -> bool:
    """Whether a text tries to lift the rules, or carries marks that steer a model."""
    return any(_OVERRIDE.search(form) for form in (text, as_rendered(text)))


def is_instruction(text: str, *, wish: bool) -> bool:
    """Whether a sentence tells the assistant what to do. With ``wish`` how answers should look is
    left to the person."""
    forms = (text, as_rendered(text))
    if any(len(_FIELDS.findall(form)) >= 2 or _AT_ONCE.search(form) for form in forms):
        return True
    if any(_DRESSED.search(form) for form in forms):
        return True
    for form in forms:
        patterns = (_STANDING, _IGNORE_ALL) if wish else (_STANDING, _IGNORE_ALL, _STANDING_FORM)
        found = (match for pattern in patterns for match in pattern.finditer(form))
        if any(not _speaks_of_self(form, match.start()) for match in found):
            return True
        if _ABOUT_ASSISTANT.search(form) and not (wish and _FORM.search(form)):
            return True
    return False


def _speaks_of_self(text: str, at: int) -> bool:
    if _FIRST_PERSON.search(text[max(0, at - 12) : at]) is not None:
        return True
    return _HABIT.search(text[max(0, at - 120) : at]) is not None


@lru_cache(maxsize=512)
def hidden_instruction(text: str) -> str | None:
    """What in a text is made to look like something else, in words; None for honest letters."""
    if any(0xE0000 <= ord(c) <= 0xE0FFF or c in "\u202a\u202b\u202d\u202e" for c in text):
        return "it holds letters that cannot be seen or that change their order"
    if re.search("[\u0300-\u036f]{4,}", unicodedata.normalize("NFD", text)):
        return "its letters are covered with marks"
    if any(unicodedata.decomposition(c).startswith("<font>") for c in text):
        return "it is written in letters of mathematics"
    if any(unicodedata.category(c) == "Cc" and not c.isspace() for c in text):
        return "it holds control characters"
    for word in re.findall(r"[^\W\d_]+", text):
        scripts = {unicodedata.name(c, "").split(" ")[0] for c in word}
        if "LATIN" in scripts and scripts & {"CYRILLIC", "GREEK"}:
            return "a word of it mixes alphabets"
    return None
