"""Gemini in Google Takeout: records of what was asked, without any conversation around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from memchat.transfer.formats import (
    Conversation,
    Item,
    Reader,
    Turn,
    mapping,
    moment,
    name_of,
    sequence,
    text_of,
)

PAUSE = timedelta(minutes=30)
"""A longer silence begins another conversation."""
_NAME = re.compile(r"gemini|bard", re.IGNORECASE)
_VERB = re.compile(r"^(?:prompted|asked|said|searched for|typed|used (?=an? ))\s*:?\s+", re.I)
_OTHER = re.compile(
    r"^(?:created|used|gave|deleted|opened|viewed|visited|turned|selected)\b", re.IGNORECASE
)
_LOCAL_VERB = re.compile(r"^[^\W\d_]+(?: [^\W\d_]+)?\s*:\s+|^[^\W\d_]+\s+(?=[\"“„«])")
_FILES = re.compile(r"\s*\battached \d+ files?\.?.*\Z", re.IGNORECASE | re.DOTALL)


class Gemini(Reader):
    """Reads prompts with their answers, sorts them by time, and parts them where it was silent."""

    PRODUCT = "Gemini"

    def __init__(self, left_out: Counter[str]) -> None:
        super().__init__(left_out)
        self._said: list[tuple[datetime, str, str]] = []

    @staticmethod
    def holds(record: Mapping[str, Any]) -> bool:
        return (
            "title" in record and "time" in record and ("header" in record or "products" in record)
        )

    def take(self, record: Mapping[str, Any]) -> Iterator[Item]:
        names = [name_of(record.get("header")), *map(name_of, sequence(record.get("products")))]
        title, at = text_of(record.get("title")), moment(record.get("time"))
        parts = [mapping(one).get("html") for one in sequence(record.get("safeHtmlItem"))]
        answer = "\n".join(filter(None, map(_plain, parts)))
        prompt = _FILES.sub("", _VERB.sub("", title))
        if prompt == title and answer:
            prompt = _LOCAL_VERB.sub("", title)
        if not any(map(_NAME.search, names)):
            self._left_out["activities of other Google products"] += 1
        elif at is None:
            self._left_out["activities without a time"] += 1
        elif not prompt or (_OTHER.search(title) and not _VERB.search(title)):
            self._left_out["activities that are no prompt"] += 1
        elif not (answer or _VERB.search(title)):
            self._left_out["activities without an answer, in a language that is not known"] += 1
        else:
            self._said.append((at, prompt, answer))
        yield from ()

    def finish(self) -> Iterator[Item]:
        turns: list[Turn] = []
        began = before = None
        for at, prompt, answer in sorted(self._said):
            if before is None or at - before > PAUSE:
                if began is not None:
                    yield Conversation(began.isoformat(), "", turns, began)
                turns, began = [], at
            turns.append(Turn("user", prompt, at))
            turns += [Turn("assistant", answer, at)] if answer else []
            before = at
        if began is not None:
            yield Conversation(began.isoformat(), "", turns, began)


def _plain(page: object) -> str:
    """The text of an answer in HTML."""
    from memchat.notes.formats import web_page

    return web_page(text_of(page).encode()).text.strip() if text_of(page) else ""
