"""Finding and blanking the words of facts in texts, and removing what reveals them in other facts:
cues and sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from memchat.db import Tx
from memchat.db import schema as t
from memchat.db.records import among
from memchat.language import sentences, text
from memchat.language.text import folded
from memchat.search import keywords

FILLER = "·"
SHORTEST_ECHO = 3
SHORTEST_UNSPACED = 2
"""From how many characters on a value is blanked wherever it stands: in scripts without spaces, and
for values with a digit."""


def meaningful_words(value: str) -> set[str]:
    """The content words and numbers of a text."""
    return text.content_words(value) | text.numbers(value)


def mentions_any(described: str, values: Iterable[str]) -> bool:
    """Whether a title or a summary shares a word with any of these values."""
    every = set(values)
    forgotten = {word for value in every for word in meaningful_words(value)}
    return bool(meaningful_words(described) & forgotten or spans_of(every, described))


def spans_of(wanted: Iterable[str], content: str) -> set[tuple[int, int]]:
    """(start, end) of each place where one of ``wanted`` stands in a text."""
    hay = text.fold(content)
    found: set[tuple[int, int]] = set()
    for words in wanted:
        needle = text.normal_value(words)
        if needle not in hay.text:
            continue
        # Without spaces there are no word boundaries; Korean appends particles to the word.
        running = text.UNSPACED.search(needle) or "\uac00" <= needle[-1:] <= "\ud7af"
        short = running or any(c.isdigit() for c in needle)
        if len(needle) < (SHORTEST_UNSPACED if short else SHORTEST_ECHO):
            continue
        if not running:
            found |= {(span.start, span.end) for span in sentences.find_spans(words, content)}
            continue
        at = hay.text.find(needle)
        while at >= 0:
            end = at + len(needle)
            found.add((hay.offsets[at], hay.ends[end - 1]))
            at = hay.text.find(needle, end)
    return found


def blank(content: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with these places replaced by the filler."""
    chars = list(content)
    for start, end in spans:
        chars[start:end] = FILLER * len(chars[start:end])
    return "".join(chars)


def is_blanked(text: str) -> bool:
    """Whether a text has lost all of its words to forgetting."""
    return FILLER in text and not any(map(str.isalnum, text))


def may_say(pieces: Sequence[Sequence[str]], content: str) -> bool:
    """Whether a text may hold all the words of one of these. For ASCII this is known without
    folding, which takes twenty times as long."""
    if not content.isascii():
        return True
    low = content.lower()
    return any(all(word in low for word in words) for words in pieces)


_CUES = {
    x: sa.select(x.c.id, x.c.cues).where(among(x.c.app_id, "app_ids"), x.c.cues != "")
    for x in (t.memories, t.proposals)
}


def strip_cues(tx: Tx, app_ids: Sequence[int], facts: Iterable[tuple[str, str]]) -> set[int]:
    """Remove the cues that reveal any of these facts from what these scope rows hold; the memories
    that had such cues, whose search text has to be written again."""
    words = {
        w for key, value in facts for w in meaningful_words(f"{key.replace('_', ' ')} {value}")
    }

    found = [(o, *row) for o, cues in _CUES.items() for row in tx.rows(cues, app_ids=app_ids)]
    every = {cue for _, _, cues in found for cue in cues.split()}
    gone = {cue for cue in every if _cue_contains(cue, words)} | _same_stem(every, words)
    changed = set()
    for table, row_id, cues in found:
        left = " ".join(cue for cue in cues.split() if cue not in gone)
        if left != cues:
            tx.execute(sa.update(table).where(table.c.id == row_id).values(cues=left))
            if table is t.memories:
                changed.add(int(row_id))
    return changed


def _told(table: sa.Table, column: Any, value: Any, sentence: Any) -> Any:
    """The rows with a sentence, which stands in a column: their ids, values and sentences."""
    there = among(table.c.app_id, "app_ids"), sentence.is_not(None)
    return column, sa.select(table.c.id, value, sentence).where(*there)


_e = t.memory_events.c
_TOLD = [
    *(_told(x, x.c.sentence, x.c.value, x.c.sentence) for x in (t.memories, t.proposals)),
    *(
        _told(
            t.memory_events, x, *(sa.func.json_extract(x, f"$.{n}") for n in ("value", "sentence"))
        )
        for x in (_e.old, _e.new)
    ),
]


def strip_sentences(tx: Tx, app_ids: Sequence[int], facts: Iterable[tuple[str, str]]) -> None:
    """Remove the sentences of other facts, in their events too, that have one of these values where
    their own value does not: the names in them are those of the quotes."""
    values = {value for _, value in facts}
    pieces = [text.normal_value(value).split() for value in values]
    for column, query in _TOLD:
        for row_id, own, told in tx.rows(query, app_ids=app_ids):
            if not may_say(pieces, told) or not spans_of(values, told):
                continue
            if not spans_of(values, own or ""):
                in_event = column.table is t.memory_events
                left = sa.func.json_remove(column, "$.sentence") if in_event else None
                row = sa.update(column.table).where(column.table.c.id == row_id)
                tx.execute(row.values({column.name: left}))


def _cue_contains(cue: str, words: Collection[str]) -> bool:
    said = text.fold(cue).text
    return said in words or any(
        w in said and len(w) >= (SHORTEST_UNSPACED if text.UNSPACED.search(w) else SHORTEST_ECHO)
        for w in words
    )


def _same_stem(every: Iterable[str], words: Iterable[str]) -> set[str]:
    """The cues that the search index treats as another form of any of these words."""
    # The index does not hold times and decimals ("day:2") as words.
    wanted = {folded(word) for word in words if word.isalpha()}
    said = {cue: folded(cue) for cue in every}
    stems = keywords.stems(wanted.union(said.values()))
    forgotten = {stems.get(word, word) for word in wanted}
    return {cue for cue, word in said.items() if stems.get(word, word) in forgotten}
