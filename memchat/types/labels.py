"""What a memory is sorted by: its type, one of four or of those that a store declares, its tags,
and what a program notes beside it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any

from memchat.errors import InputError
from memchat.types.conversations import clean_text, one_line

MEMORY_TYPES = ("preference", "profile", "fact", "other")
"""The types that every store has; ``OwnType`` declares others."""
OFFER_LIMIT = 500
"""Characters that all own types together may take in the instructions of the model that reads."""
TYPE_NAME = re.compile(r"[a-z][a-z0-9_]{0,23}")


@dataclass(frozen=True, slots=True)
class OwnType:
    """A type of memories beside ``MEMORY_TYPES``, for ``MemChat(types={"recipe": OwnType(…)})``.

    The model that reads conversations is told the ``description`` and the usual ``keys``. Each new
    value must fit ``check``, where there is one: a type that pydantic knows, as ``int`` or
    ``Annotated[str, Field(pattern=…)]``. It decides whether the words are kept, not how.
    """

    description: str
    keys: Sequence[str] = ()
    check: Any = None

    def misfit(self, value: str) -> str | None:
        """Why a value does not fit, without its words; None where it does."""
        if self.check is None:
            return None
        from pydantic import TypeAdapter, ValidationError

        try:
            TypeAdapter(self.check).validate_python(value)
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False)[0]
            own = found["type"] in ("value_error", "assertion_error")
            return "its check refuses it" if own else found["msg"]
        except Exception as error:  # noqa: BLE001 - of a validator of one's own
            return f"its check failed ({type(error).__name__})"
        return None


OwnTypes = Mapping[str, OwnType]
NO_TYPES: OwnTypes = MappingProxyType({})


def offered(own: OwnTypes) -> str:
    """Own types as lines for the model that reads conversations."""
    lines = (
        f"- {name}: {one.description}" + (f" (keys: {', '.join(one.keys)})" if one.keys else "")
        for name, one in own.items()
    )
    return "\n".join(lines)


def check_own_types(own: Mapping[str, Any]) -> None:
    """Raise InputError for types that cannot be declared: names that are taken or cannot be
    stored, no description, or more words than a model is given."""
    for name, one in own.items():
        if TYPE_NAME.fullmatch(name) is None or name in MEMORY_TYPES:
            raise InputError(
                f"{name!r} cannot be a type of its own; use up to 24 small letters, digits and _, "
                f"and none of {', '.join(MEMORY_TYPES)}"
            )
        listed = isinstance(one, OwnType) and isinstance(one.keys, (list, tuple))
        words = [one.description, *one.keys] if listed else [None]
        if not all(isinstance(said, str) and said == " ".join(said.split()) > "" for said in words):
            raise InputError(f"give the type {name} a description on one line and a list of keys")
        if one.check is not None:
            from pydantic import TypeAdapter
            from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

            try:
                TypeAdapter(one.check)
            except (PydanticUserError, PydanticUndefinedAnnotation) as error:
                raise InputError(
                    f"the check of the type {name} is none that pydantic knows "
                    f"({type(error).__name__})"
                ) from error
    if (length := len(offered(own))) > OFFER_LIMIT:
        raise InputError(
            f"the types take {length} characters; at most {OFFER_LIMIT} are told to a model"
        )


def check_type(kind: str, own: OwnTypes) -> None:
    """Raise InputError for a type that the store does not have."""
    if kind not in MEMORY_TYPES and kind not in own:
        raise InputError(f"{kind!r} is no type; use {', '.join((*MEMORY_TYPES, *own))}")


TAG_LIMIT = 40
"""The most characters of a tag."""
TAGS_MOST = 20
"""The most tags of a memory."""
_COMMAS = re.compile("[,،、，]")


METADATA_BYTES = 4_096
METADATA_KEY = 64
Metadata = Mapping[str, str | int | float | bool]
"""What a program notes beside a memory, a conversation or a note: flat, 4 KB as JSON at most."""


def clean_metadata(given: object) -> dict[str, str]:
    """The values as JSON, by their keys. Raises InputError for what is not flat, or too large."""
    if not isinstance(given, Mapping):
        raise InputError("metadata is no mapping of names to texts, numbers, true or false")
    found = {}
    for key, value in given.items():
        if not isinstance(key, str) or not 0 < len(key) <= METADATA_KEY:
            raise InputError(f"a name in the metadata is no text of 1 to {METADATA_KEY} characters")
        if not isinstance(value, str | int | float) or value in (inf, -inf) or value != value:
            raise InputError(f"the metadata {key!r} is no text, number, true or false")
        plain = clean_text(value) if isinstance(value, str) else value
        found[clean_text(key)] = json.dumps(plain, ensure_ascii=False)
    if sum(len(f"{key}{value}".encode()) + 4 for key, value in found.items()) > METADATA_BYTES:
        raise InputError(f"the metadata is longer than {METADATA_BYTES:,} bytes of JSON")
    return found


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are stored and compared: lower case, NFC, each once and sorted, with hyphens for
    white space. A comma parts two tags. Raises InputError for one that is empty or too long, and
    for too many of them."""
    if isinstance(tags, str):
        raise InputError(f"give tags as a list, as [{tags!r}]")
    found = tuple(sorted({_clean(word) for tag in tags for word in _parted(tag)}))
    if len(found) > TAGS_MOST:
        raise InputError(f"these are {len(found)} tags; a memory has at most {TAGS_MOST}")
    return found


def _parted(tag: str) -> list[str]:
    return [part for part in _COMMAS.split(tag) if part.strip()] or [""]


def _clean(tag: str) -> str:
    line = one_line(tag, "tag", TAG_LIMIT)
    if not line.isprintable():
        raise InputError("a tag holds a character that cannot be seen; use plain text")
    word = unicodedata.normalize("NFC", line.lower()).replace(" ", "-")
    return one_line(word, "tag", TAG_LIMIT)  # lower case may be longer
