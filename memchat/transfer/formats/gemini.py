"""Gemini in Google Takeout: records of what was asked, without any conversation around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from memchat.transfer.formats import Conversation, Fields, Item, Reader, Turn, text_of

PAUSE = timedelta(minutes=30)
"""A longer silence begins another conversation."""
_NAME = re.compile(r"gemini|bard", re.IGNORECASE)
_VERB = re.compile(r"^(?:prompted|asked|said|searched for|typed|used (?=an? ))\s*:?\s+", re.I)
_OTHER = re.compile(
    r"^(?:created|used|gave|deleted|opened|viewed|visited|turned|selected)\b", re.IGNORECASE
)
_LOCAL_VERB = re.compile(r"^[^\W\d_]+(?: [^\W\d_]+)?\s*:\s+|^[^\W\d_]+\s+(?=[\"“„«])")
_QUOTED = re.compile('["“„«](.*)["”“»]', re.DOTALL)
_FILES = re.compile(r"\s*\battached \d+ files?\.?.*\Z", re.IGNORECASE | re.DOTALL)


class Gemini(Reader):
    """Reads prompts with their answers, sorts them by time, and parts them where it was silent."""

    PRODUCT = "Gemini"

    def __init__(self, left_out: Counter[str]) -> None:
        super().__init__(left_out)
        self._said: list[tuple[datetime, str, str]] = []

    @staticmethod
    def holds(record: Fields) -> bool:
        known = "header" in record or "products" in record
        return known and "title" in record and "time" in record

    def take(self, record: Fields) -> Iterator[Item]:
        title, at = record.text("title"), record.time("time")
        names = (record.name("header"), *map(text_of, record.list("products")))
        parts = (_plain(one.text("html")) for one in record.each("safeHtmlItem"))
        answer = "\n".join(filter(None, parts))
        prompt = _FILES.sub("", _VERB.sub("", title))
        if prompt == title and answer:
            prompt = _LOCAL_VERB.sub("", title)
        if quoted := _QUOTED.fullmatch(prompt):
            prompt = quoted[1]
        if not any(map(_NAME.search, names)):
            self._leave_out("activities of other Google products")
        elif at is None:
            self._leave_out("activities without a time")
        elif not prompt or (_OTHER.search(title) and not _VERB.search(title)):
            self._leave_out("activities that are no prompt")
        elif not (answer or _VERB.search(title)):
            self._leave_out("activities without an answer, in a language that is not known")
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


def _plain(page: str) -> str:
    """The text of an answer in HTML."""
    from memchat.notes.formats import web_page

    return web_page(page.encode()).text.strip() if page else ""
