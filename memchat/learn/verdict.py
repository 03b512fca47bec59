"""The data types that the gate reads and returns, and how it tells the user's own words from others.

Text that is quoted, pasted, forwarded or generated proves nothing about the user. The end of a
paste is often not marked: what follows it is not refused for that, but only the user can tell whose
words it is; see ``unmarked_paste_start``.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property, lru_cache
from itertools import islice
from typing import Literal
from zoneinfo import ZoneInfo

from memchat.language.lexicon import PASTE
from memchat.language.secrets import mask_part
from memchat.language.sentences import Span, sentence_around
from memchat.learn.candidate import Candidate
from memchat.types import MemoryType, Role

# ruff: noqa: E501  (word lists are read along, not down)


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


HIDDEN_WORDS = "[secret]"
Outcome = Literal["accept", "review", "refuse"]
"""Store it, after a second look where a model can make one; ask the user; do not keep it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation."""

    id: str
    role: Role
    text: str
    said_at: datetime
    message_id: int


@dataclass(frozen=True, slots=True)
class KnownFact:
    """One stored fact that the model was shown."""

    id: str
    memory_id: int
    memory_type: MemoryType
    key: str
    value: str
    many: bool
    starts: date | None = None
    """The first day it holds, where that lies ahead."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A span that proves a candidate. Offsets count characters of the stored message."""

    message_id: int
    turn_id: str
    role: Role
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a candidate, and its reasons."""

    outcome: Outcome
    reasons: tuple[str, ...]
    spans: tuple[Proof, ...]
    candidate: Candidate
    """As corrected; masked where it was refused for a secret."""
    until: date | None = None
    """The last day it holds."""
    starts: date | None = None
    """The first day it holds, where that lies ahead."""
    wordless: bool = False
    """Whether only the reason may be kept: for secrets, and what the user asked not to keep."""
    bare: bool = False
    """Whether the sentence around its words may not be kept: a secret stands in it."""
    detail: dict[str, str] | None = None
    """What a second look said: ``verdict`` and ``model``."""
    asks: str | None = None
    """What the person is asked about once it is stored."""

    def without_words(self) -> Verdict:
        """The verdict with nothing of what was said or proposed."""
        item = self.candidate
        quotes = tuple(quote.model_copy(update={"text": HIDDEN_WORDS}) for quote in item.quotes)
        hidden = {"key": "secret", "value": HIDDEN_WORDS, "quotes": quotes, "cues": ()}
        spans = tuple(replace(span, quote=HIDDEN_WORDS) for span in self.spans)
        candidate = item.model_copy(update=hidden)
        return replace(self, spans=spans, candidate=candidate, wordless=True)


@dataclass
class Case:
    """One candidate while it is judged. A check reads it, may correct ``candidate``, and adds to
    one of three lists: ``refusals``; ``reviews``, which the user must decide; and ``notes``."""

    candidate: Candidate
    turns: Sequence[Turn]
    known: Sequence[KnownFact]
    prompt_text: str
    injected: Collection[str]
    zone: ZoneInfo
    languages: tuple[str, ...]
    """The languages of the session, likeliest first."""
    refusals: list[str] = field(default_factory=list)
    reviews: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proofs: list[tuple[Turn, Span]] = field(default_factory=list)
    ref: tuple[Turn, Span] | None = None
    until: date | None = None
    starts: date | None = None
    asks: str | None = None
    wordless: bool = False

    @property
    def target(self) -> KnownFact | None:
        """The known fact that the candidate points at."""
        return next((fact for fact in self.known if fact.id == self.candidate.to), None)

    def quoted_turns(self) -> list[Turn]:
        """The quoted messages, each once."""
        return list({turn.id: turn for turn, _ in self.proofs}.values())

    def quoted_words(self) -> str:
        """The words of all quotes together."""
        return " \n".join(turn.text[a:b] for turn, span in self.proofs for a, b in span.pieces)

    def sentences(self) -> list[str]:
        """The sentence around each quote."""
        return [sentence_around(turn.text, span.start, span.end).text for turn, span in self.proofs]

    def own_message_words(self) -> str:
        """The user's own words in the quoted messages."""
        return " \n".join(own_words(turn.text) for turn in self.quoted_turns())

    def cited_words(self) -> str:
        """The assistant's words that the user took up; empty for none."""
        return self.ref[1].text if self.ref else ""

    @cached_property
    def user_text(self) -> str:
        """All the user's own words of the session."""
        return " \n".join(own_words(turn.text) for turn in self.turns if turn.role == "user")

    def change(self, **fields: object) -> None:
        """Correct the candidate."""
        self.candidate = self.candidate.model_copy(update=fields)
