"""Asking a service for vectors, where single texts may be at fault, or the service itself."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from memchat.errors import InputError, MemChatError, ProviderError
from memchat.memory.meaning import Meaning
from memchat.types import Usage

if TYPE_CHECKING:
    from memchat.providers import Vectors

log = logging.getLogger(__name__)

SPLITS = 32
"""Failing calls for one batch before its rest is left for the next try: enough for four bad texts
among a hundred, and no burden on a service that refuses everything."""
ABOUT_THE_TEXTS = (400, 413, 422)
"""Statuses by which a service refuses what it was sent, and not who sends or how much."""
USUAL_PAUSE = 20.0
"""Seconds, where a service at its limit does not say how long."""


@dataclass(slots=True)
class Answer:
    """What the service made of a batch: vectors and failures by the hash of their text."""

    vectors: dict[str, Vectors] = field(default_factory=dict)
    faults: dict[str, Exception] = field(default_factory=dict)
    spent: list[Usage] = field(default_factory=list)
    down: Exception | None = None
    """Why the service itself failed, where it did."""


def ask(meaning: Meaning, texts: Mapping[str, str], batch: int) -> Answer:
    """The vectors of these texts, by hash, in calls of ``batch``.

    A call that fails for what it was sent is halved, until the texts at fault stand alone. Where
    the service fails, it is asked no more, and all that is left fails with it.
    """
    answer = Answer()
    todo = [dict(some) for some in _cut(texts, batch)][::-1]
    failures = 0
    while todo:
        some = todo.pop()
        try:
            vectors, spent = meaning.embed(some)
        except Exception as error:
            if not isinstance(error, MemChatError):
                log.exception("%d texts were not embedded", len(some))
            failures += 1
            if not _about_the_texts(error):
                answer.down = error
                for left in [some, *todo]:
                    answer.faults |= dict.fromkeys(left, error)
                break
            if len(some) == 1 or failures >= SPLITS:
                answer.faults |= dict.fromkeys(some, error)
            else:
                todo += [dict(half) for half in _cut(some, (len(some) + 1) // 2)][::-1]
        else:
            answer.vectors |= vectors
            answer.spent.append(spent)
    return answer


def asked_pause(error: Exception | None) -> float | None:
    """Seconds for which the service wants to be left alone, where it is that and not a failure."""
    if isinstance(error, ProviderError) and error.status == 429 and error.retryable:
        return USUAL_PAUSE if error.retry_after is None else error.retry_after
    return None


def _about_the_texts(error: Exception) -> bool:
    """Whether a text is at fault, or may be: then others of its batch can do without it."""
    if isinstance(error, ProviderError):
        unusable = error.status is None and not error.retryable
        return unusable or error.status in ABOUT_THE_TEXTS
    return isinstance(error, InputError) or not isinstance(error, MemChatError)


def _cut(texts: Mapping[str, str], size: int) -> Iterator[Mapping[str, str]]:
    items = iter(texts.items())
    while some := dict(islice(items, size)):
        yield some
