"""Taking the words of forgotten facts out of conversations, wherever they stand there.

Each conversation is read and blanked once, with a filler of the same length, so that the quotes of
other facts keep their place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.language import numbers, text
from memchat.language.quotes import find_spans
from memchat.memory.embedding.space import shortened
from memchat.memory.facts import cues
from memchat.memory.facts.fact import search_text
from memchat.store import (
    embeddings,
    events,
    evidence,
    fact_lists,
    inbox,
    jobs,
    memories,
    memory_changes,
    messages,
    meta,
    prompts,
    receipts,
    refusals,
    replacements,
    sessions,
)
from memchat.store.events import Cause
from memchat.types import Event, Memory, Message

FILLER = "·"
SHORTEST_ECHO = 3
SHORTEST_UNSPACED = 2
"""Characters from which a value is blanked wherever it stands; with a digit in it, too."""


@dataclass(slots=True)
class Traces:
    """Where the words of forgotten facts stand, gathered before anything is changed."""

    spans: defaultdict[int, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    """Message id → the places of the quotes that proved them."""
    quotes: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Session id → those quotes: one that taught a fact."""
    values: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Session id → values now and before: one that taught a fact, or was given it."""
    scopes: defaultdict[int, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    """Scope row → keys and values now and before."""


def facts_of(memory: Memory, past: Sequence[Event]) -> set[tuple[str, str]]:
    """Key and value in all the words a memory ever had."""
    states = [state for event in past for state in (event.old, event.new) if state]
    return {(s["key"], s["value"]) for s in states if "value" in s} | {(memory.key, memory.value)}


def shown_with(tx: Connection, memory_id: int) -> list[int]:
    """The memories whose lines may hold the words of this one, which is the first of them: a value
    that was replaced is shown behind all that took its place, one after another."""
    past = events.of_memory(tx, memory_id)
    related = [event.related_id for event in past if event.related_id is not None]
    return [memory_id, *related, *replacements.successors(tx, memory_id)]


def gather(tx: Connection, memory: Memory, app_id: int, traces: Traces) -> None:
    """Note where the words of a fact stand."""
    proofs = evidence.of_memory(tx, memory.id)
    facts = facts_of(memory, events.of_memory(tx, memory.id))
    # However short a value is, memchat's own lines give it away behind its key.
    values = lines(facts)
    traces.scopes[app_id] |= facts
    for proof in proofs:
        traces.spans[proof.message_id].add((proof.start, proof.start + len(proof.quote)))
        traces.quotes[proof.session_id].add(proof.quote)
        traces.values[proof.session_id] |= values
    said = [proof.message_id for proof in proofs]
    told = {*receipts.sessions_with(tx, "memory", shown_with(tx, memory.id))}
    told.update(receipts.sessions_with(tx, "message", said))
    pieces = [text.normal_value(value).split() for value in values]
    bare = {value for _, value in facts}
    words = [[word] for value in bare for word in said_words(value)]
    for session_id, content, describes in fact_lists.model_texts_with(tx, memory.id):
        # It was sent whatever was asked: only what says it is to be blanked. Of a title or a
        # summary one word of the value is enough, of a reply it takes the whole value.
        if session_id in told or not _may_say(words if describes else pieces, content):
            continue
        if speaks_of(content, bare) if describes else places(values, content):
            told.add(session_id)
    for session_id in told:
        traces.values[session_id] |= values


def _may_say(pieces: Sequence[Sequence[str]], content: str) -> bool:
    """Whether a text may hold all the words of one of these; of plain English this is known
    without folding it, which takes twenty times as long."""
    if not content.isascii():
        return True
    low = content.lower()
    return any(all(word in low for word in words) for words in pieces)


def drop_shown(tx: Connection, shown: Sequence[int]) -> None:
    """Take a fact's lines out of every receipt and list, and the prompts they were in; ``shown``
    are the memories whose lines may hold its words, itself first."""
    prompts.remove_with_items(tx, "memory", shown)
    receipts.remove(tx, "memory", shown)
    fact_lists.remove_lines(tx, shown[0])


def lines(facts: Collection[tuple[str, str]]) -> set[str]:
    """Facts as they are said, and as memchat writes them."""
    return {value for _, value in facts} | {f"{key}: {value}" for key, value in facts}


def blank_sessions(
    tx: Connection, traces: Traces, keep_transcript: bool, *, describe: bool
) -> list[int]:
    """Take the words out of every conversation; the turns that held any."""
    every: list[int] = []
    for session_id, values in traces.values.items():
        if describe and session_id in traces.quotes:
            describe_anew(tx, session_id, None, None)  # in whatever words they tell of it
        elif describe:
            blank_description(tx, session_id, values)
        turns = messages.of_session(tx, session_id)
        prompts.remove(tx, [turn.id for turn in turns if turn.role == "assistant"])
        held = {
            turn.id: content for turn in turns if (content := left_of(turn, traces)) != turn.content
        }
        every += rewrite(tx, session_id, turns, held, keep_transcript)
        if session_id in traces.quotes:
            refusals.remove_without_message(tx, session_id)  # whatever words they are drawn from
    return every


def left_of(turn: Message, traces: Traces) -> str:
    """What forgetting leaves of a turn."""
    values = traces.values.get(turn.session_id)
    if values is None:
        return turn.content
    taught = traces.quotes.get(turn.session_id)
    spans = set(traces.spans.get(turn.id, ()))
    # Where it was only shown, the replies echo it; the user's own words are another matter.
    if taught or turn.role == "assistant":
        spans |= places(values | (taught or set()), turn.content)
    return blanked(turn.content, spans)


def rewrite(
    tx: Connection,
    session_id: int,
    turns: Sequence[Message],
    texts: Mapping[int, str],
    keep_transcript: bool = False,
) -> list[int]:
    """Give turns of a conversation their blanked texts, or bar them as they are, and drop all that
    was made of their words; their ids."""
    ids = list(texts)
    if keep_transcript:
        messages.exclude(tx, ids)
    else:
        messages.rewrite(tx, session_id, texts)
        for message_id, content in texts.items():
            evidence.update_quotes(tx, message_id, content)
    drop_questions(tx, [turn for turn in turns if turn.id in texts])
    drop_lines(tx, ids)
    inbox.remove_of_messages(tx, ids)
    refusals.remove_of_messages(tx, ids)
    return ids


def blank_description(tx: Connection, session_id: int, values: Iterable[str]) -> None:
    """Clear title and summary of a conversation where they speak of any of these values."""
    title, summary = sessions.description(tx, session_id)
    describe_anew(
        tx,
        session_id,
        None if title and speaks_of(title, values) else title,
        None if summary and speaks_of(summary, values) else summary,
    )


def speaks_of(described: str, values: Iterable[str]) -> bool:
    """Whether a title or a summary shares a word with any of these values."""
    every = set(values)
    forgotten = {word for value in every for word in said_words(value)}
    return bool(said_words(described) & forgotten or places(every, described))


def describe_anew(tx: Connection, session_id: int, title: str | None, summary: str | None) -> None:
    """Set title and summary; where the title changes, the lines that name it go."""
    if sessions.description(tx, session_id)[0] != title:
        drop_lines(tx, messages.ids_of(tx, session_id))
    sessions.set_description(tx, session_id, title, summary)


def drop_lines(tx: Connection, turn_ids: Sequence[int]) -> None:
    """Take the lines about these turns out of every receipt, and the prompts they were in."""
    prompts.remove_with_items(tx, "message", turn_ids)
    receipts.remove(tx, "message", turn_ids)


def said_words(value: str) -> set[str]:
    """The words and numbers of a text that carry meaning."""
    return text.content_words(value) | numbers.numbers(value)


def places(wanted: Iterable[str], content: str) -> set[tuple[int, int]]:
    """Where any of these words stand in a text."""
    hay = text.fold(content)
    found: set[tuple[int, int]] = set()
    for words in wanted:
        needle = text.normal_value(words)
        if needle not in hay.text:
            continue
        # Without spaces there are no word boundaries; Korean hangs its particles on the word.
        running = text.UNSPACED.search(needle) or "\uac00" <= needle[-1:] <= "\ud7af"
        short = running or any(c.isdigit() for c in needle)
        if len(needle) < (SHORTEST_UNSPACED if short else SHORTEST_ECHO):
            continue
        if not running:
            found |= {(span.start, span.end) for span in find_spans(words, content)}
            continue
        at = hay.text.find(needle)
        while at >= 0:
            end = at + len(needle)
            found.add((hay.offsets[at], hay.ends[end - 1]))
            at = hay.text.find(needle, end)
    return found


def blanked(content: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with a filler in these places."""
    chars = list(content)
    for start, end in spans:
        chars[start:end] = FILLER * len(chars[start:end])
    return "".join(chars)


def drop_questions(tx: Connection, turns: Iterable[Message]) -> None:
    """Drop the vectors that these turns were searched with."""
    hashes = [embeddings.query_hash(shortened(turn.content)) for turn in turns]
    embeddings.remove_unused(tx, hashes)


def reindex(
    tx: Connection,
    ids: Iterable[int],
    zone: ZoneInfo,
    cause: Cause,
    *,
    without: Collection[int] = (),
) -> set[int]:
    """Write the searched text of memories anew, from the quotes as they are now but for those of
    the messages ``without``; their scopes."""
    scopes = set()
    for memory_id in sorted(ids):
        app_id = memories.app_id_of(tx, memory_id)
        memory = memories.get(tx, [app_id], memory_id)
        if memory is None:
            continue  # hidden: its own purge is on its way
        old = memories.hash_of(tx, memory_id)
        proofs = [
            proof
            for proof in evidence.of_memory(tx, memory_id)
            if FILLER not in proof.quote and proof.message_id not in without
        ]
        quote = proofs[0].quote if proofs else ""
        left = cues.telling(tx, app_id, memory.cues)
        words = search_text(memory.key, memory.value, memory.said_at, zone, quote, left)
        memory_changes.reindex(tx, memory_id, app_id, words, cause)
        if meta.get(tx, "service_id") is not None:
            jobs.enqueue(tx, "embed", app_id, memory_id, cause.at)
        embeddings.remove_unused(tx, [old])
        scopes.add(app_id)
    return scopes
