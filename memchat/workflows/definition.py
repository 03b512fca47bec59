"""The text of a workflow: what may stand in it, what is wrong in it and where, its variables, and
its schedule.

Variables are filled in one pass, and what they hold is not looked at again: a note with ``{{…}}``
in it stays as it is. The server and the tool of a step are no templates, so that nothing a note or
a model says decides what is called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, time, timedelta
from typing import Annotated, Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from memchat.errors import InputError, misfits
from memchat.types import WorkflowProblem
from memchat.workflows.rows import NOTE

MOST_STEPS = 50
LONGEST = 200_000
"""Characters of a definition."""
LONGEST_FILLED = 10_000_000
"""Characters of a text whose variables are filled in."""
_NAME = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=to_camel, allow_inf_nan=False
    )


class MemoryQuery(_Part):
    """Which notes to find. An empty query gives the latest."""

    query: str
    top_k: int = Field(default=5, ge=1, le=100)
    date_range_days: int | None = Field(default=None, ge=1, le=36_500)
    include_metadata: bool = False


class LLMGeneration(_Part):
    """What to ask a model, and which."""

    prompt: str = Field(min_length=1)
    system_prompt: str = ""
    cost_tier: Literal["fast", "balanced", "high"] = "balanced"


class MCPTool(_Part):
    """The tool to call."""

    server: str = Field(min_length=1)
    tool: str = Field(min_length=1)
    arguments: dict[str, Any] = {}


class _Step(_Part):
    id: str = Field(pattern=f"^{_NAME}$")


class MemoryQueryStep(_Step):
    """A step that finds notes."""

    type: Literal["Memory Query"]
    config: MemoryQuery


class LLMGenerationStep(_Step):
    """A step that asks a model."""

    type: Literal["LLM Generation"]
    config: LLMGeneration


class MCPToolStep(_Step):
    """A step that calls a tool."""

    type: Literal["MCP Tool"]
    config: MCPTool


Step = Annotated[MemoryQueryStep | LLMGenerationStep | MCPToolStep, Field(discriminator="type")]
TYPES = ("Memory Query", "LLM Generation", "MCP Tool")


class Definition(_Part):
    """A workflow."""

    slug: str = Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")
    name: str = Field(min_length=1, max_length=200)
    description: str = ""
    icon: str = ""
    color: str = ""
    when: str | None = None
    result: Literal["note", "inbox"] | None = None
    max_cost_usd: float = Field(default=1.0, ge=0)
    steps: list[Step] = Field(min_length=1, max_length=MOST_STEPS)


def read(text: str) -> Definition:
    """The workflow of a JSON text. Raises InputError, with the line and the field, for the first
    thing that is wrong in it."""
    found = _read(text)
    if isinstance(found, Definition):
        return found
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    raise InputError(f"{found[0]}{more}")


def problems(text: str) -> list[WorkflowProblem]:
    """What is wrong in the text of a workflow."""
    found = _read(text)
    return [] if isinstance(found, Definition) else found


def _read(text: str) -> Definition | list[WorkflowProblem]:
    if len(text) > LONGEST:
        return [WorkflowProblem(1, "", f"it has more than {LONGEST:,} characters")]
    try:
        data = json.loads(text)
        lines = _lines(text)
        definition = Definition.model_validate(data)
    except json.JSONDecodeError as error:
        return [WorkflowProblem(error.lineno, "", f"this is no JSON: {error.msg}")]
    except ValidationError as error:
        wrong = [_misfit(one) for one in error.errors(include_url=False)]
    except (RecursionError, ValueError):
        said = "it is nested too deeply, or has a number with too many digits"
        return [WorkflowProblem(1, "", said)]
    else:
        wrong = list(_wrong(definition))
    if not wrong:
        return definition
    return [
        WorkflowProblem(_line(lines, place), ".".join(map(str, place)), said)
        for place, said in wrong
    ]


Place = tuple[str | int, ...]


def _misfit(one: Any) -> tuple[Place, str]:
    # pydantic names the type of a step in its place.
    place = tuple(part for part in one["loc"] if part not in TYPES)
    if one["type"].startswith("union_tag"):
        return (*place, "type"), f"has to be {', '.join(TYPES)}"
    if one["type"] == "string_pattern_mismatch":
        return place, "has to be of letters, digits, - and _, and to begin with a letter"
    return place, misfits([one])[0].partition(": ")[2]


def _line(lines: Mapping[Place, int], place: Place) -> int:
    """The line of a field, or of the part that lacks it."""
    return lines.get(place) or (_line(lines, place[:-1]) if place else 1)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++')


def _lines(text: str) -> dict[Place, int]:
    """On which line each part of a JSON text begins."""
    found: dict[Place, int] = {}
    at: list[Any] = []  # of each open list the index, of each object the key or None before it
    line, end = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", end, match.start())
        end, token = match.start(), match[0]
        if token in "}]":
            at.pop()
        elif token == ",":
            at[-1] = at[-1] + 1 if isinstance(at[-1], int) else None
        elif token == ":":
            continue
        elif at and at[-1] is None:
            at[-1] = json.loads(token)
            found[tuple(at)] = line
        else:
            found.setdefault(tuple(at), line)
            if token in "{[":
                at.append(None if token == "{" else 0)
    return found


def _wrong(definition: Definition) -> Iterator[tuple[Place, str]]:
    """What is wrong in a workflow whose fields fit."""
    if not (definition.when in (None, NOTE) or _SCHEDULE.fullmatch(definition.when or "")):
        yield ("when",), f"has to be {NOTE}, or as every monday 8:00, or every day 18:30"
    known: dict[str, str] = dict.fromkeys(INPUT, "")
    for number, step in enumerate(definition.steps):
        place: Place = ("steps", number)
        if step.id in known:
            yield (*place, "id"), f"{step.id} is the name of another step, or of the input"
        fields: dict[str, Any] = step.config.model_dump(by_alias=True)
        for name in ("server", "tool"):
            if "{{" in fields.get(name, ""):
                yield (*place, "config", name), "has to be a name, and no variable"
        for name, value in fields.items():
            for text in _texts(value):
                for said in _unknown(text, known):
                    yield (*place, "config", name), f"{said} (in step {step.id})"
        known[step.id] = step.type


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


INPUT = ("TRANSCRIPT", "TITLE", "DATE")
"""The variables of what a run is given: its text, title and day."""
NOTE_FIELDS = ("id", "title", "date", "text")
"""What a found note has."""
_VARIABLE = re.compile(rf"\{{\{{\s*+({_NAME[:-6]}*+(?:\.[\w-]++){{0,8}}+)\s*+\}}\}}")
_ANY = re.compile(r"\{\{([^{}]*+)\}\}")
_AS_JSON = "_JSON"


def _unknown(template: str, known: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the variables of a template."""
    for match in _ANY.finditer(template):
        if _VARIABLE.fullmatch(match[0]) is None:
            yield f"{match[0]} is no variable; write it as {{{{search.0.title}}}}"
            continue
        head, path, _ = _parsed(match[1].strip(), known)
        if head not in known:
            there = ", ".join([name for name in known if name not in INPUT] or INPUT)
            yield f"there is no variable {head} here; there are {there}"
        elif head in INPUT and path:
            yield f"{head} is a text, and has no {path[0]}"
        elif known[head] == TYPES[0] and (len(path) > 2 or not _fits_note(path)):
            yield f"{'.'.join((head, *path))} cannot be; a note has {', '.join(NOTE_FIELDS)}"


def _fits_note(path: list[str]) -> bool:
    return path[:1] == [*filter(str.isdecimal, path[:1])] and {*path[1:]} <= {*NOTE_FIELDS}


def _parsed(name: str, known: Mapping[str, object]) -> tuple[str, list[str], bool]:
    """The head of a variable, its path, and whether it is wanted as JSON."""
    as_json = name.endswith(_AS_JSON) and name not in known
    head, *path = name.removesuffix(_AS_JSON if as_json else "").split(".")
    return head, path, as_json


class Output(NamedTuple):
    """What a variable holds: as a text, and as JSON has it."""

    text: str
    value: Any


def fill(template: Any, values: Mapping[str, Output], step: str) -> Any:
    """A template with its variables filled in: a text, or what holds texts. A text that is one
    variable alone gives its number, or true or false, as such. Raises InputError, with the step,
    for what the values do not have."""
    if isinstance(template, Mapping):
        return {key: fill(one, values, step) for key, one in template.items()}
    if isinstance(template, list | tuple):
        return [fill(one, values, step) for one in template]
    if not isinstance(template, str):
        return template
    whole = _VARIABLE.fullmatch(template)
    if whole is not None:
        found = _looked_up(whole[1], values, step)
        return found.value if isinstance(found.value, int | float) else found.text
    parts = _VARIABLE.split(template)  # every second one is a name
    names = parts[1::2]
    texts = {name: _looked_up(name, values, step).text for name in {*names}}
    if len(template) + sum(len(texts[name]) for name in names) > LONGEST_FILLED:
        raise InputError(f"step {step}: a text with more than {LONGEST_FILLED:,} characters")
    parts[1::2] = [texts[name] for name in names]
    return "".join(parts)


def _looked_up(name: str, values: Mapping[str, Output], step: str) -> Output:
    head, path, as_json = _parsed(name, values)
    if head not in values:
        raise InputError(f"step {step}: there is no variable {head}")
    text, value = values[head]
    for part in path:
        try:
            value = json.loads(value) if isinstance(value, str) else value
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (LookupError, TypeError, ValueError, RecursionError):
            raise InputError(f"step {step}: {{{{{name}}}}}: there is no {part} in {head}") from None
        text = value if isinstance(value, str) else _json(value)
    if as_json:
        return Output(_json(value), _json(value))
    return Output(text, value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SCHEDULE = re.compile(rf"every (day|{'|'.join(_DAYS)}) ([01]?\d|2[0-3]):([0-5]\d)", re.IGNORECASE)


def next_time(when: str | None, after: datetime, zone: ZoneInfo) -> datetime | None:
    """When a schedule comes next; None where there is none."""
    match = _SCHEDULE.fullmatch(when or "")
    if match is None:
        return None
    today, at = after.astimezone(zone).date(), time(int(match[2]), int(match[3]))
    comes = (datetime.combine(today + timedelta(days), at, zone) for days in range(9))
    named = (one for one in comes if match[1].lower() in ("day", _DAYS[one.weekday()]))
    return next(one for one in named if one.timestamp() > after.timestamp())
