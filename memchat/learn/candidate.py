"""What a model proposes: its answer, read tolerantly and with its JSON schema, each proposed fact
as a ``Candidate``, and the ``Verdict`` on it that the gate comes to over a ``Case``."""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from itertools import islice
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from memchat.errors import ExtractionError, misfits
from memchat.language.text import Span, sentence_around
from memchat.learn.own_words import own_words
from memchat.types import MEMORY_TYPES, MemoryType, Role, clean_text


def object_schema(**fields: Any) -> dict[str, Any]:
    """The schema of an object, every field of which is required."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def list_schema(items: dict[str, Any]) -> dict[str, Any]:
    """The schema of a list of such items."""
    return {"type": "array", "items": items}


log = logging.getLogger(__name__)

MAX_FACTS = 15
MAX_QUOTES = 3
_STARTS = 60
Relation = Literal["new", "same", "updates", "ends", "beside"]
RELATIONS: tuple[Relation, ...] = ("new", "same", "updates", "ends", "beside")
FLAGS = ("sensitive", "asked", "not_meant")
MAX_CUES = 10
CUE_LIMIT = 24
"""The longest a cue may be, in characters."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Quote(_Part):
    """A verbatim span of a user message; ``msg`` may be empty where the model left it out."""

    msg: str = ""
    text: str = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"text": data}
        return {**data, "msg": _said(data.get("msg"))} if isinstance(data, dict) else data


class Ref(_Part):
    """The assistant's words that the user's words point at."""

    msg: str
    span: str = Field(min_length=1)


class Candidate(_Part):
    """One proposed memory. It is not believed before ``gate.judge`` has checked it."""

    quotes: tuple[Quote, ...] = Field(min_length=1, max_length=MAX_QUOTES)
    ref: Ref | None = None
    type: MemoryType = "other"
    key: str = Field(min_length=1)
    value: str = ""
    many: bool = False
    until_said: str | None = None
    until: str | None = None
    from_said: str | None = None
    starts: str | None = Field(None, alias="from")
    """The first day it holds, where that lies ahead, as a code like ``until``."""
    to: str | None = None
    relation: Relation = Field("new", alias="is")
    flags: tuple[str, ...] = ()
    cues: tuple[str, ...] = ()
    """Plain words for the situations that need the fact. For search only, never evidence."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        data = {name: _plain(value) for name, value in data.items() if value is not None}
        quotes = data.get("quotes", data.get("quote", ()))
        quotes = quotes if isinstance(quotes, (list, tuple)) else [quotes]
        msg = _said(data.get("msg"))
        data["quotes"] = [{"msg": msg, "text": q} if isinstance(q, str) else q for q in quotes][
            :MAX_QUOTES
        ]
        if isinstance(data.get("value"), (list, tuple)):
            data["value"] = ", ".join(filter(None, map(_said, data["value"])))
        elif isinstance(data.get("value"), (int, float)):
            data["value"] = str(data["value"])
        ref = data.get("ref")
        if isinstance(ref, dict):
            data["ref"] = ref = {name: _said(ref.get(name)) for name in ("msg", "span")}
        if not isinstance(ref, Ref) and not (isinstance(ref, dict) and all(ref.values())):
            data.pop("ref", None)
        for name in ("to", "until", "until_said", "from", "from_said"):
            data[name] = _said(data.get(name))
            if data[name].strip().casefold() in ("", "null", "none", "n/a"):
                data.pop(name)
        return data

    @field_validator("type", mode="before")
    @classmethod
    def _known_type(cls, value: Any) -> Any:
        name = str(value).strip().casefold()
        if name not in MEMORY_TYPES:
            log.info("a memory type of %d characters is unknown and read as other", len(name))
            return "other"
        return name

    @field_validator("relation", mode="before")
    @classmethod
    def _known_relation(cls, value: Any) -> Any:
        name = str(value).strip().casefold()
        return name if name in RELATIONS else "new"

    @field_validator("flags", mode="before")
    @classmethod
    def _known_flags(cls, value: Any) -> Any:
        if isinstance(value, dict):
            value = [name for name, on in value.items() if on]
        given = value if isinstance(value, (list, tuple)) else [value]
        words = {word.strip().casefold() for part in given for word in str(part).split(",")}
        return tuple(flag for flag in FLAGS if flag in words)

    @field_validator("many", mode="wrap")
    @classmethod
    def _known_many(cls, value: Any, read: ValidatorFunctionWrapHandler) -> bool:
        try:
            return bool(read(value))
        except ValidationError:
            return False

    @field_validator("cues", mode="before")
    @classmethod
    def _plain_cues(cls, value: Any) -> Any:
        return plain_cues(value)

    @field_validator("value", "key")
    @classmethod
    def _one_line(cls, value: str) -> str:
        return " ".join(value.split())

    @model_validator(mode="after")
    def _has_value(self) -> Candidate:
        if not self.value and self.relation != "ends":
            raise ValueError("value is empty")
        return self


class ExtractionAnswer(_Part):
    """One answer. ``broken`` says which items were dropped and why; ``more`` that the list was
    longer than MAX_FACTS or cut off, so that the model should be asked for the rest. Requests to
    forget have a place of their own in it, which keeps them out of the facts, and is not read."""

    facts: tuple[Candidate, ...] = ()
    title: str | None = None
    summary: str | None = None
    broken: list[str] = Field(default_factory=list)
    more: bool = False


def parse(text: str) -> ExtractionAnswer:
    """The answer in a model's reply, ignoring text around it.

    Raises ExtractionError where there is no usable object; its one-line message can be sent back to
    the model for a repair.
    """
    data, cut = find_object(text, {"facts", "forget", "title", "summary"})
    if data is None:
        raise ExtractionError("the answer holds no JSON object with a list 'facts'")
    broken: list[str] = []
    facts_in = data.get("facts") or []
    if _is_fact(facts_in):
        facts_in = [facts_in]
    if not isinstance(facts_in, list):
        raise ExtractionError("its 'facts' are no list of facts")
    facts = _valid(facts_in[:MAX_FACTS], broken)
    if facts_in and not facts:
        raise ExtractionError(f"no item of 'facts' could be used: {broken[0]}")
    if cut:
        broken.append("the answer was cut off")
    return ExtractionAnswer(
        facts=tuple(facts),
        title=_line(data.get("title")),
        summary=_line(data.get("summary")),
        broken=broken,
        more=cut or len(facts_in) > MAX_FACTS,
    )


def json_schema() -> dict[str, Any]:
    """The schema of the answer for strict modes: every field required, absent ones null."""
    record, many = object_schema, list_schema
    text = {"type": "string"}
    maybe = {"type": ["string", "null"]}
    fact = {
        "quotes": many(record(msg=text, text=text)),
        "ref": {**record(msg=text, span=text), "type": ["object", "null"]},
        "type": {"type": "string", "enum": list(MEMORY_TYPES)},
        "key": text,
        "value": text,
        "many": {"type": "boolean"},
        "until_said": maybe,
        "until": maybe,
        "from_said": maybe,
        "from": maybe,
        "to": maybe,
        "is": {"type": "string", "enum": list(RELATIONS)},
        "flags": many({"type": "string", "enum": list(FLAGS)}),
        "cues": many(text),
    }
    forget = record(msg=text, quote=text, to=maybe)
    return record(facts=many(record(**fact)), forget=many(forget), title=maybe, summary=maybe)


def plain_cues(value: Any) -> tuple[str, ...]:
    """The first MAX_CUES of these that are plain short words."""
    given = value if isinstance(value, (list, tuple)) else ()
    words = (clean_text(cue).strip().casefold() for cue in given if isinstance(cue, str))
    plain = (word for word in words if _is_plain(word) and len(word) <= CUE_LIMIT)
    return tuple(dict.fromkeys(plain))[:MAX_CUES]


def _is_plain(word: str) -> bool:
    """Whether a word has only letters, of any script, with their marks: no digits, links or
    markup."""
    return bool(word) and all(unicodedata.category(char)[0] in "LM" for char in word)


def _plain(value: Any) -> Any:
    return clean_text(value) if isinstance(value, str) else value


def _said(value: Any) -> str:
    """A field that should be text: text, or a number as text; empty for anything else."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return clean_text(str(value)) if isinstance(value, str) or number else ""


def _line(value: Any) -> str | None:
    return (" ".join(clean_text(value).split()) or None) if isinstance(value, str) else None


def _valid(items: list[Any], broken: list[str]) -> list[Candidate]:
    found = []
    for number, item in enumerate(items):
        try:
            found.append(Candidate.model_validate(item))
        except ValidationError as error:
            broken.append(f"facts[{number}] {misfits(error.errors()[:1])[0]}")
    return found


def find_object(text: str, fields: set[str]) -> tuple[dict[str, Any] | None, bool]:
    """The first JSON object with one of these fields, and whether it was recovered from a reply
    that was cut off."""
    decoder = json.JSONDecoder(strict=False)
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
    for candidate in (text, re.sub(r",(\s*[}\]])", r"\1", text)):
        for match in islice(re.finditer(r"[{\[]", candidate), _STARTS):
            value = _decode(decoder, candidate, match.start())
            if isinstance(value, dict) and value.keys() & fields:
                return value, False
            if isinstance(value, list) and value and all(_is_fact(item) for item in value):
                return {"facts": value}, False
    return _whole_items(decoder, text)


def _is_fact(item: Any) -> bool:
    return isinstance(item, dict) and "quotes" in item and "value" in item


def _whole_items(decoder: json.JSONDecoder, text: str) -> tuple[dict[str, Any] | None, bool]:
    start = re.search(r'"facts"\s*:\s*\[', text)
    if start is None:
        return None, False
    at, items = start.end(), []
    while (at := text.find("{", at)) >= 0:
        item = _decode(decoder, text, at)
        if item is None:
            break
        if _is_fact(item):
            items.append(item)
        at = _end_of(decoder, text, at)
    return ({"facts": items}, True) if items else (None, True)


def _decode(decoder: json.JSONDecoder, text: str, at: int) -> Any:
    try:
        return decoder.raw_decode(text, at)[0]
    except (ValueError, RecursionError):
        return None


def _end_of(decoder: json.JSONDecoder, text: str, at: int) -> int:
    return decoder.raw_decode(text, at)[1]


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
