"""What a model proposes: its answer, read tolerantly and with its JSON schema, each proposed fact
as a ``Candidate``, and the ``Verdict`` on it that the gate comes to over a ``Case``."""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from memchat.errors import ExtractionError, misfits
from memchat.language.sentences import Span, sentence_around
from memchat.learn.own_words import own_words
from memchat.types import MEMORY_TYPES, TYPE_NAME, OwnTypes, Role, clean_text


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


def _plain_text(value: Any) -> str:
    """A field that should be text: text, or a number as text; empty for anything else."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return clean_text(str(value)) if isinstance(value, str) or number else ""


def _optional_text(value: Any) -> str | None:
    """The same, None where nothing is said."""
    words = _plain_text(value)
    return None if words.strip().casefold() in ("", "null", "none", "n/a") else words


def _one_line(value: Any) -> str:
    parts = value if isinstance(value, (list, tuple)) else [value]
    return " ".join(", ".join(filter(None, map(_plain_text, parts))).split())


def _known(names: Collection[str], other: str) -> BeforeValidator:
    def read(value: Any) -> str:
        name = str(value).strip().casefold()
        if name in names:
            return name
        log.info("a word of %d characters is unknown and read as %s", len(name), other)
        return other

    return BeforeValidator(read)


def _type_name(value: Any) -> str:
    name = str(value).strip().casefold()
    return name if TYPE_NAME.fullmatch(name) else "other"


def _or(value: Any, read: ValidatorFunctionWrapHandler, other: Any) -> Any:
    """What is read of a value, or something else where it does not fit."""
    try:
        return read(value)
    except ValidationError:
        return other


def _flags(value: Any) -> tuple[str, ...]:
    if isinstance(value, dict):
        value = [name for name, on in value.items() if on]
    given = value if isinstance(value, (list, tuple)) else [value]
    words = {word.strip().casefold() for part in given for word in str(part).split(",")}
    return tuple(flag for flag in FLAGS if flag in words)


Line = Annotated[str, BeforeValidator(_one_line)]
OptionalText = Annotated[str | None, BeforeValidator(_optional_text)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Quote(_Part):
    """A verbatim span of a user message; ``msg`` may be empty where the model left it out."""

    msg: Annotated[str, BeforeValidator(_plain_text)] = ""
    text: str = Field(min_length=1)


class Ref(_Part):
    """The assistant's words that the user's words point at."""

    msg: Annotated[str, BeforeValidator(_plain_text)] = Field(min_length=1)
    span: Annotated[str, BeforeValidator(_plain_text)] = Field(min_length=1)


class Candidate(_Part):
    """One proposed memory, read tolerantly. It is not believed before ``gate.judge`` has checked
    it."""

    quotes: tuple[Quote, ...] = Field(min_length=1, max_length=MAX_QUOTES)
    ref: Annotated[Ref | None, WrapValidator(lambda value, read: _or(value, read, None))] = None
    type: Annotated[str, BeforeValidator(_type_name)] = "other"
    key: Line = Field(min_length=1)
    value: Line = ""
    sentence: Line = ""
    """The fact in one plain sentence to the person. Read by them alone, never evidence."""
    many: Annotated[bool, WrapValidator(lambda value, read: _or(value, read, False))] = False
    until_said: OptionalText = None
    until: OptionalText = None
    from_said: OptionalText = None
    starts: OptionalText = Field(None, alias="from")
    """The first day it holds, where that lies ahead, as a code like ``until``."""
    to: OptionalText = None
    relation: Annotated[Relation, _known(RELATIONS, "new")] = Field("new", alias="is")
    flags: Annotated[tuple[str, ...], BeforeValidator(_flags)] = ()
    cues: Annotated[tuple[str, ...], BeforeValidator(plain_cues)] = ()
    """Plain words for the situations that need the fact. For search only, never evidence."""

    @model_validator(mode="before")
    @classmethod
    def _quotes(cls, data: Any) -> Any:
        """Quotes may be given as one, or as bare texts of the message ``msg``."""
        if not isinstance(data, dict):
            return data
        data = {name: value for name, value in data.items() if value is not None}
        quotes = data.get("quotes", data.get("quote", ()))
        quotes = quotes if isinstance(quotes, (list, tuple)) else [quotes]
        bare = {"msg": data.get("msg")}
        quotes = [bare | {"text": clean_text(q)} if isinstance(q, str) else q for q in quotes]
        return data | {"quotes": quotes[:MAX_QUOTES]}

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
    described = {name: _line(data.get(name)) for name in ("title", "summary")}
    more = cut or len(facts_in) > MAX_FACTS
    return ExtractionAnswer(facts=tuple(facts), broken=broken, more=more, **described)


def json_schema(own: Iterable[str] = ()) -> dict[str, Any]:
    """The schema of the answer for strict modes: every field required, absent ones null. ``own``
    are types beside the usual ones."""
    record, many = object_schema, list_schema
    text = {"type": "string"}
    maybe = {"type": ["string", "null"]}
    fact = {
        "quotes": many(record(msg=text, text=text)),
        "ref": {**record(msg=text, span=text), "type": ["object", "null"]},
        "type": {"type": "string", "enum": [*MEMORY_TYPES, *own]},
        "key": text,
        "value": text,
        "sentence": text,
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


def _line(value: Any) -> str | None:
    return (_one_line(value) or None) if isinstance(value, str) else None


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
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
    for candidate in (text, re.sub(r",(\s*[}\]])", r"\1", text)):
        for match in islice(re.finditer(r"[{\[]", candidate), _STARTS):
            value, _ = _decoded(candidate, match.start())
            if isinstance(value, dict) and value.keys() & fields:
                return value, False
            if isinstance(value, list) and value and all(_is_fact(item) for item in value):
                return {"facts": value}, False
    return _whole_items(text)


def _is_fact(item: Any) -> bool:
    return isinstance(item, dict) and "quotes" in item and "value" in item


def _whole_items(text: str) -> tuple[dict[str, Any] | None, bool]:
    start = re.search(r'"facts"\s*:\s*\[', text)
    at, items = start.end() if start else len(text), []
    while (at := text.find("{", at)) >= 0:
        item, at = _decoded(text, at)
        if item is None:
            break
        items += [item] if _is_fact(item) else []
    return {"facts": items} if items else None, start is not None


def _decoded(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins there, and where it ends; None where there is none."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at


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
    """In the person's time zone."""
    message_id: int


@dataclass(frozen=True, slots=True)
class KnownFact:
    """One stored fact that the model was shown."""

    id: str
    memory_id: int
    memory_type: str
    key: str
    value: str
    many: bool
    starts: date | None = None
    """The first day it holds, where that lies ahead."""

    @property
    def words(self) -> str:
        """Its key and its value."""
        return f"{self.key.replace('_', ' ')} {self.value}"


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
    suspect: bool = False
    """Whether it is refused unless a second look says that it holds no secret."""

    def without_words(self) -> Verdict:
        """The verdict with nothing of what was said or proposed."""
        item = self.candidate
        quotes = tuple(quote.model_copy(update={"text": HIDDEN_WORDS}) for quote in item.quotes)
        hidden: dict[str, Any] = {"key": "secret", "value": HIDDEN_WORDS, "quotes": quotes}
        hidden |= {"sentence": "", "cues": ()}
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
    languages: tuple[str, ...]
    """The languages of the session, likeliest first."""
    look_follows: bool = False
    """Whether a second look judges what the checks leave open."""
    own_types: OwnTypes = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    reviews: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proofs: list[tuple[Turn, Span]] = field(default_factory=list)
    ref: tuple[Turn, Span] | None = None
    until: date | None = None
    starts: date | None = None
    asks: str | None = None
    wordless: bool = False
    suspect: bool = False

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

    def quoted_sentences(self) -> str:
        """The sentences around all quotes together."""
        return " \n".join(self.sentences())

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
