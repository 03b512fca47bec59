"""Gemini in Google Takeout: records of what was asked, without any conversation around them."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from memchat.language.calendar import MONTHS
from memchat.language.text import unaccented
from memchat.transfer.archive import Member
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
_FILES = re.compile(r"\battached \d+ files?\.?.*\Z", re.IGNORECASE | re.DOTALL)

_ACTIVITY = '<div class="outer-cell'
_CELL = re.compile(r'<div class="(?:header|content)-cell[^">]*">')
_BREAK = re.compile(r"<br\s*/?>")
_CLOCK = re.compile(r"\b(\d{1,2})[:.](\d\d)[:.](\d\d)\b")
_HALF = re.compile(r"(?:^|[\s\d])(?:(a|오전|午前|上午)|p|오후|午後|下午)(?:\.?\s?m\b|\s|$)")
_OFFSET = re.compile(r"(?:gmt|utc)\s?([+-]\d{1,2})(?::?(\d\d))?\s*$")
_ZONES = {
    "pst": -8, "pdt": -7, "mst": -7, "mdt": -6, "cst": -6, "cdt": -5, "est": -5, "edt": -4,
    "west": 1, "bst": 1, "cet": 1, "cest": 2, "mez": 1, "mesz": 2, "eet": 2, "eest": 3, "msk": 3,
    "ist": 5.5, "jst": 9, "kst": 9, "aest": 10, "aedt": 11,
}  # fmt: skip
"""Hours by which zones are ahead of UTC, as pages abbreviate them; others are taken for UTC."""


class Gemini(Reader):
    """Reads prompts with their answers, sorts them by time, and parts them where it was silent."""

    PRODUCT = "Gemini"

    def __init__(self, left_out: Counter[str], rules: dict[str, None]) -> None:
        super().__init__(left_out, rules)
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
        prompt = _FILES.sub("", _VERB.sub("", title)).strip()
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

    @staticmethod
    def begins(head: str) -> bool:
        return _ACTIVITY in head or ("mdl-grid" in head and "<html" in head.lower())

    def read(self, member: Member) -> Iterator[Item]:
        """Read a page: each activity is a cell, which holds the name of the product, and in its
        first cell of content the prompt, a line with the time, and the answer."""
        for number, piece in enumerate(member.pieces(_ACTIVITY)):
            cells = _CELL.split(piece)[1:]
            name = _plain(cells[0]) if cells and number else ""
            lines = _BREAK.split(cells[1]) if len(cells) > 1 else []
            at = next((n for n, line in enumerate(lines) if n and _local_time(line)), None)
            if number:
                answer = "<br>".join(lines[at + 1 :] if at else [])
                record: dict[str, Any] = {
                    "header": name,
                    "title": "\n".join(map(_plain, lines[:at])),
                }
                record["time"] = at and str(_local_time(lines[at]))
                record["safeHtmlItem"] = [{"html": answer}]
                yield from self.take(Fields(record))

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


def _local_time(line: str) -> datetime | None:
    """The time in a line of a page that has nothing else, in the language of the person."""
    text = unaccented(html.unescape(line)) if len(line) < 100 else ""
    if (clock := _CLOCK.search(text)) is None:
        return None
    day, half, offset = text[: clock.start()], _HALF.search(text), _OFFSET.search(text)
    numbers = [int(number) for number in re.findall(r"\d{1,4}", day)]
    months = [MONTHS[word] for word in re.findall(r"[^\W\d_]+", day) if word in MONTHS]
    if months and len(numbers) == 2:
        numbers = [max(numbers), months[0], min(numbers)]
    elif len(numbers) == 3 and numbers[0] < 32:  # the year is last; Americans begin with the month
        numbers = [numbers[2], *(numbers[:2] if half and "/" in day else numbers[1::-1])]
    hour, minute, second = map(int, clock.groups())
    hour = hour % 12 + (0 if half[1] else 12) if half else hour
    ahead = timedelta(hours=_ZONES.get(text.split()[-1], 0))
    if offset:
        ahead = timedelta(hours=int(offset[1]), minutes=int(offset[2] or 0))
    try:
        year, month, date = numbers
        return datetime(year, month, date, hour, minute, second, tzinfo=UTC) - ahead
    except (ValueError, OverflowError):
        return None
