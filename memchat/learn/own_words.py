"""What in a text is the writer's own statement, and what is not: quoted, pasted, forwarded or
generated text, which proves nothing about its writer, and orders to the assistant, plain or hidden
by look-alike or invisible letters, which wait for a yes. The end of a paste is often not marked:
what follows it is not refused for that, but only the person can tell whose words it is."""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from memchat.language.lexicon import PASTE
from memchat.language.secrets import mask_part

_STARTS = 60
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_INLINE_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BLOCK_QUOTE = re.compile(r"^[ \t]*>.*(?:\n[ \t]*>.*)*", re.MULTILINE)
_MARKED = re.compile(r"⟦[^⟧]*(?:⟧|\Z)")
_QUOTED = re.compile(
    r"\"[^\"\n]{2,}\"|“[^”]{2,}”|„[^“”]{2,}[“”]|«[^»]{2,}»|»[^«]{2,}«|「[^」]{2,}」|『[^』]{2,}』"
)
_CLOSING = {'"': '"', "“": "”", "„": "“”", "«": "»", "»": "«", "「": "」", "『": "』"}
_OPENING = re.compile(f"[{''.join(_CLOSING)}]")
_SINGLE_QUOTED = re.compile(
    r"(?<!\w)'[^'\n]{2,300}(?:'[a-z][^'\n]{0,300}){0,4}'(?!\w)|‘[^’\n]{2,300}’(?!\w)"
)
_ELEMENT = re.compile(r"<([a-zA-Z][\w-]{0,30})\b[^<>\n]{0,200}>.{0,4000}?</\1\s*>", re.DOTALL)
_TABLE = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)
_TOKENS = re.compile(
    r"<\|\w{2,20}\|>|\[/?(?:INST|SYSTEM|ASSISTANT|USER)\]|<</?SYS>>|^[ \t]*#{2,}[ \t]*(?:system|instruction|response|user|assistant|human)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Marks that chat models use between turns, which people do not type about themselves."""

_ROLES = (
    "user|assistant|system|human|ai|bot|chatbot|tool|tool_result|tool_output|function|developer|observation|thought|action"
    "|search result(?: \\d+)?|result(?: \\d+)?|q|a|nutzer|benutzer|assistent|utilisateur|assistante?|usuario|asistente|utente|usuário|usuario|gebruiker|kullanici|kullanıcı|asistan"
    "|пользователь|ассистент|человек|система|用户|助手|系统|ユーザー|アシスタント|システム|المستخدم|المساعد|उपयोगकर्ता|सहायक|użytkownik|asystent"
)
_SCRIPT = re.compile(
    rf"^[ \t>*\u2066-\u2069]*(?:\[?\d{{1,2}}[:.]\d{{2}}\]?[ \t]*[-–]?[ \t]*[^\W\d]\w{{0,20}}|{_ROLES})[ \t*]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
"""A line of a written dialogue: a role, or a time with a name, and a colon."""

_MAIL = re.compile(
    r"^[ \t]*-{3,}[ \t]*\w[^\n]{2,40}?[ \t]*-{3,}[ \t]*$"
    r"|^[ \t]*(?:from|von|de|da|van|kimden|от|发件人|差出人|من)[ \t]*[:：][^\n]*\n(?:[^\n:：]{1,14}[:：][^\n]*\n)"
    r"|^[ \t]*(?:subject|betreff|objet|asunto|oggetto|assunto|onderwerp|konu|тема|主题|件名|الموضوع)[ \t]*[:：]"
    r"|^[ \t]*(?:on|am|le|el|il|em|op|\w+,?)\b[^\n]{3,80}?(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|yazdı|написал\w?)[^\n:]{0,30}[ \t]*[:：][ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""How a forwarded or answered mail begins; it continues to the end of the message."""

_SOURCE = (
    r"e-?mails?|mails?|letter|page|web ?page|website|site|article|document|doc|pdf|file|readme|wiki|note(?:s)? from|flyer|leaflet|ad|newsletter|review|transcript|transcri(?:be|pt) of|caption|subtitle|output|result|log|search result|tool|book|post|tweet|thread|forum|colleague forwarded|guide|manual|message|text"
    r"|brief|artikel|seite|dokument|datei|protokoll|nachricht|bericht|notiz|flugblatt|handbuch|lettre|page|fichier|courriel|tract|texte|correo|carta|página|documento|archivo|mensaje|artículo|folleto|messaggio|lettera|pagina|articolo|documento|volantino|mensagem|arquivo|artigo|bericht|brief|pagina|mektup|metin|mesaj|sayfa|belge"
    r"|письм\w*|стать\w*|страниц\w*|документ\w*|файл\w*|сообщени\w*"
)
_SOURCE_WORD = re.compile(rf"(?<!\w)(?:{_SOURCE})(?!\w)", re.IGNORECASE)
_SOURCE_NEAR = 200
"""Characters before "says" in which a source may be named; without a limit it would be quadratic.
"""
_SOURCE_UNSPACED = (
    r"邮件|郵件|文章|网页|文件|文档|メール|記事|ページ|文書|資料|رسالة|مقال|صفحة|ईमेल|लेख|पत्र|दस्तावेज़"
)
_OWN = r"(?:my|mein\w*|mon|ma|mes|mi|mis|mio|mia|meu|minha|mijn|мой|моя|我的|私の) "
_FROM_SOURCE = re.compile(
    rf"(?:(?<!\w)(?:{_SOURCE})(?!\w)|{_SOURCE_UNSPACED})[^.!?\n:：。]{{0,50}}[:：]|(?<!\w)(?:from (?:the|an?|your)|vom|von (?:der|dem|einem)) \w+ ?[:：]",
    re.IGNORECASE,
)
_POINTED = re.compile(
    rf"(?<!\w)(?:this|these|the following|dies\w*|folgende\w*|cet?|cette|est[ea]|quest[oa]|deze|dit|bu|şu|эт\w+) (?:\w+ )?(?:{_SOURCE})(?!\w)[^\n]*\n",
    re.IGNORECASE,
)
"""A line that announces a text, which may follow below it."""
_OWN_SOURCE = re.compile(rf"(?<!\w){_OWN}(?:\w+ )?$", re.IGNORECASE)
_SAYS = re.compile(
    r"(?<!\w)(?:says?|said|saying|reads|steht|sagt|dit|disait|dice|decía|diz|zegt|staat|diyor|пишет|написано|写着|书いて|書いて)(?!\w)",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"^[ \t>*]*([^\W\d_][\w .]{0,20}?)[ \t*]*[:：][ \t]*(\S.*)$", re.MULTILINE)
_SPEAKS = re.compile(
    r"(?:i|i'm|i've|my|we|you|ich|wir|du|mein\w*|je|j'\w+|nous|mon|ma|yo|soy|tengo|vivo|io|sono|eu|sou|ik|ben|я|мы|у меня|ok|okay|yes|no|hi|hello|thanks)(?!\w)|私|僕|我|أنا|मैं|저는|나는",
    re.IGNORECASE,
)
_ATTRIBUTION = 30
"""Characters after a quotation in which its source may be named."""


@lru_cache(maxsize=512)
def quotation_mark_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Where text stands in quotation marks."""
    single = (m.span() for m in _SINGLE_QUOTED.finditer(text))
    return (*_quotations(text), *single)


def _quotations(text: str) -> Iterator[tuple[int, int]]:
    """The parts in double quotation marks. An opening mark without a closing one is skipped at
    once; searching the rest of the text for each would be quadratic."""
    last = {mark: max(map(text.rfind, closing)) for mark, closing in _CLOSING.items()}
    at = 0
    while opening := _OPENING.search(text, at):
        start = opening.start()
        quoted = _QUOTED.match(text, start) if last[opening[0]] > start else None
        if quoted is not None:
            yield quoted.span()
        at = start + 1 if quoted is None else quoted.end()


@lru_cache(maxsize=512)
def quoted_spans(text: str) -> tuple[tuple[int, int], ...]:
    """The parts of a message that are not its writer's own words.

    Fenced blocks, block quotes and elements; JSON objects; mails from their header on; written
    dialogues; text in ⟦⟧; and after a verb such as "translate", or the name of a source, text in
    quotation marks or after the colon.
    """
    text = _half_width(text)
    closed = [_FENCE, _INLINE_FENCE, _BLOCK_QUOTE, _MARKED, _TABLE]
    closed += [_ELEMENT] if "</" in text else []
    found = [m.span() for pattern in closed for m in pattern.finditer(text)]
    found += _objects(text)
    for opening in (_TOKENS, _MAIL):
        if match := opening.search(text):
            found.append((match.start(), len(text)))
    if match := _SCRIPT.search(text):
        found.append((match.start(), _script_end(text)))
    quoted = quotation_mark_spans(text)
    at = len(text)
    for verb in PASTE.finditer(text):
        at = min(at, verb.end())
        found += _after_colon(text, verb.end())
    for source in _FROM_SOURCE.finditer(text):
        if not _OWN_SOURCE.search(text, max(0, source.start() - 20), source.start()):
            found += _after_colon(text, source.end() - 1)
    for said in _SAYS.finditer(text):
        at = min(at, said.end()) if _names_source(text, said.start()) else at
    found += [span for span in quoted if span[0] >= at or _is_attributed(text, span[1])]
    found += _dialogue(text)
    return tuple(_merged(found))


def is_quoted(text: str, start: int, end: int) -> bool:
    """Whether a span of a message touches a quoted part."""
    spans = quoted_spans(text)
    before = bisect_left(spans, (end, 0))
    return before > 0 and start < spans[before - 1][1]


@lru_cache(maxsize=512)
def unmarked_paste_start(text: str) -> int:
    """From where on a message may be pasted text whose end is not marked; the message's length
    where there is none."""
    text = _half_width(text)
    starts = [m.end() for m in PASTE.finditer(text) if ":" in text[m.end() : m.end() + 80]]
    starts += [
        m.end()
        for m in _FROM_SOURCE.finditer(text)
        if not _OWN_SOURCE.search(text, max(0, m.start() - 20), m.start())
    ]
    starts += [m.end() for m in _POINTED.finditer(text)]
    return min(starts, default=len(text))


def own_words(text: str) -> str:
    """A message without its quoted parts."""
    kept, at = [], 0
    for start, end in quoted_spans(text):
        kept.append(text[at:start])
        at = end
    return " ".join((*kept, text[at:]))


@lru_cache(maxsize=64)
def _half_width(text: str) -> str:
    """The text with full-width characters in their plain form, at the same offsets."""
    if text.isascii():
        return text
    plain = (unicodedata.normalize("NFKC", char) for char in text)
    return "".join(new if len(new) == 1 else old for new, old in zip(plain, text, strict=True))


def _names_source(text: str, end: int) -> bool:
    near = max(0, end - _SOURCE_NEAR)
    start = max(near, *(text.rfind(mark, near, end) + 1 for mark in ".!?\n"))
    return _SOURCE_WORD.search(text, start, end) is not None


def _is_attributed(text: str, end: int) -> bool:
    """Whether a source is named after a quotation: "…", says the leaflet."""
    said = _SAYS.search(text, end, end + _ATTRIBUTION)
    return said is not None and _SOURCE_WORD.search(text, said.end(), said.end() + 40) is not None


def _dialogue(text: str) -> Iterator[tuple[int, int]]:
    """Two or more lines that begin with a name and a colon, where one speaks in the first person: a
    written dialogue."""
    lines = list(_SPEAKER.finditer(text))
    speakers = {line[1].casefold() for line in lines}
    if len(speakers) > 1 and any(_SPEAKS.match(line[2]) for line in lines):
        yield lines[0].start(), lines[-1].end()


def _after_colon(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The text after the colon of a line: the rest of the paragraph, or all that follows where the
    line ends at the colon."""
    line_end = text.find("\n", at)
    line_end = len(text) if line_end < 0 else line_end
    colon = next((i for i in range(at, line_end) if text[i] in ":："), -1)
    if colon < 0:
        return
    rest = text[colon + 1 : line_end].strip()
    paragraph = text.find("\n\n", line_end)
    yield colon + 1, (len(text) if paragraph < 0 else paragraph) if rest else len(text)


def _script_end(text: str) -> int:
    """A written dialogue ends at the blank line after its last line."""
    last = list(_SCRIPT.finditer(text))[-1]
    blank = text.find("\n\n", last.end())
    return len(text) if blank < 0 else blank


def _objects(text: str) -> Iterator[tuple[int, int]]:
    """JSON objects and lists, whole or cut off, with what stands before them on their line."""
    decoder = json.JSONDecoder(strict=False)
    at = 0
    for match in islice(re.finditer(r"[{\[](?=\s*[{\[\"])", text), _STARTS):
        if match.start() < at:
            continue
        try:
            _, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            if re.match(r"[{\[\s]*\"\w{1,40}\"\s*:", text[match.start() :]) is None:
                continue
            end = len(text)
        at = end
        yield text.rfind("\n", 0, match.start()) + 1, end


def _merged(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in sorted(span for span in found if span[0] < span[1]):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def mark_quoted(text: str, start: int = 0, end: int | None = None, *, masks: bool = False) -> str:
    """A part of a text with ⟦ and ⟧ around its quoted parts, which are found in the whole text.
    Such marks in the text itself become square brackets; ``masks``: and secrets their kind."""
    end = len(text) if end is None else end

    def plain(first: int, last: int) -> str:
        piece = mask_part(text, first, last) if masks else text[first:last]
        return piece.replace("⟦", "[[").replace("⟧", "]]")

    out, at = [], start
    for a, b in quoted_spans(text):
        a, b = max(a, start), min(b, end)
        if a < b:
            out.append(f"{plain(at, a)}⟦{plain(a, b)}⟧")
            at = b
    return "".join(out) + plain(at, end)


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
