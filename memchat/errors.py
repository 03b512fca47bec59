"""What can go wrong, as one family.

    MemChatError
    ├── ConfigError        a setting, a key or an installed part is missing or wrong
    │   └── ServiceError   the sizes of an embedding service that cannot be (a ValueError as well)
    ├── StoreError         the data folder or database cannot be read or written
    │   ├── StoreFull      the disk that holds it has no room left
    │   └── SchemaError    the database was made by another version, or another embedding service
    ├── ProviderError      a model's provider refused, failed or answered nonsense
    ├── ExtractionError    the extraction model's answer could not be used, even after one repair
    ├── NotFound           no such memory, session, message, app or job in this scope
    ├── ScopeError         a user or app name that cannot be used
    └── InputError         a value that cannot be stored as given
        └── SecretError    a value that looks like a secret and was not agreed to

Every message is one line a person can act on. Adapters translate the errors of the libraries
below them at the border, with ``raise … from``; nothing else escapes to a face.
"""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

LONGEST_WAIT = 3_600.0
"""Seconds: a provider that asks to be left alone for longer is asked again all the same."""


class MemChatError(Exception):
    """The root of everything memchat raises on purpose. ``see`` is the command that shows more, as
    "memories list": the command line names it, as its user has no verbs at hand."""

    def __init__(self, message: str = "", *, see: str = "") -> None:
        super().__init__(message)
        self.see = see


class ConfigError(MemChatError):
    """A setting, a key or an installed part is missing or wrong."""


class ServiceError(ConfigError, ValueError):
    """Sizes of an embedding service that cannot be, or that nobody has told."""


class StoreError(MemChatError):
    """The data folder or the database in it cannot be read or written."""


class StoreFull(StoreError):
    """The disk that holds the data folder has no room left. What was kept before is not lost."""


class SchemaError(StoreError):
    """The database belongs to another version, newer or from before the first release, or its
    vectors to another embedding service."""


class ProviderError(MemChatError):
    """A model's provider refused, failed, or sent an answer that cannot be used.

    ``status`` is the HTTP status where there was one, ``retryable`` says whether the same call
    may go through later, ``retry_after`` is the provider's own wish in seconds, an hour at most.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable
        self.retry_after = None if retry_after is None else bounded_wait(retry_after)


def bounded_wait(seconds: float) -> float:
    """A wish to wait as far as it is followed: from nothing to an hour, and "nan" is no wish."""
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_WAIT)


class ExtractionError(MemChatError):
    """The extraction model's answer could not be used, even after one repair."""


class NotFound(MemChatError):
    """No such memory, session, message, app or job in this scope."""


class ScopeError(MemChatError):
    """A user or app name that cannot be used."""


class InputError(MemChatError):
    """A value that cannot be stored as given."""


class SecretError(InputError):
    """A value entered by hand that looks like a secret. ``kind`` says which sort of secret."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"this looks like a {kind}; nothing was saved")
        self.kind = kind


_MISFITS = {
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "unexpected_keyword_argument": "is not known",
    "string_too_short": "is empty or too short",
    "too_short": "is missing or has too few parts",
    "string_too_long": "has more than {max_length:,} characters",
    "too_long": "has more than {max_length:,} parts",
    "greater_than_equal": "has to be {ge} or more",
    "less_than_equal": "has to be {le} or less",
    "literal_error": "has to be {expected}",
    "value_error": "{error}",
}
"""What is wrong with a value, by the kind of error that pydantic finds."""
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "date": "a day as YYYY-MM-DD",
    "datetime": "a time as YYYY-MM-DDTHH:MM",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
    "model": "an object",
}


def misfits(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """What pydantic found wrong (``ValidationError.errors``), in memchat's own words: without the
    values, which may hold people's words, and without names of types."""
    return list(dict.fromkeys(_misfit(one) for one in found))


def _misfit(one: Mapping[str, Any]) -> str:
    kind = str(one["type"])
    of = _KINDS.get(kind.removesuffix("_type").partition("_")[0])
    wrong = _MISFITS.get(kind) or (f"has to be {of}" if of else "does not fit")
    place = ".".join(str(part) for part in one["loc"] if re.fullmatch(r"\w+", str(part)))
    return f"{place or 'it'}: {wrong.format(**one.get('ctx', {}))}"


def origin(error: BaseException) -> str:
    """The class of an error and the lines it came through, for a log: without its text, which may
    hold people's words or a key."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    return f"{type(error).__name__} at {lines}"
