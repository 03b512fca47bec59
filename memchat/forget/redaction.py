"""Blanking the words of forgotten facts in conversations.

Each conversation is read and blanked once, with a filler of the same length, so that the quotes of
other facts keep their place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memchat.db import Tx, messages, sessions
from memchat.facts import changes, history, lists, memories, proposals
from memchat.facts.history import Cause
from memchat.facts.memories import search_text
from memchat.language import numbers, text
from memchat.language.sentences import find_spans
from memchat.search import embeddings, passages, receipts
from memchat.search.embed import shortened
from memchat.types import Event, Evidence, Memory, Message

FILLER = "·"
SHORTEST_ECHO = 3
SHORTEST_UNSPACED = 2
"""From how many characters on a value is blanked wherever it stands: in scripts without spaces, and
for values with a digit."""


@dataclass(slots=True)
class Occurrences:
    """Where the words of forgotten facts stand, collected before anything is changed."""

    shown_in: Collection[int] = ()
    """Conversations whose replies the facts may have been shown to, whatever receipts say."""
    spans: defaultdict[int, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    """Message id → (start, end) of the quotes that proved the facts."""
    quotes: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Session id → those quotes, for sessions that taught a fact."""
    values: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Session id → values now and before, for sessions that taught a fact or were shown it."""
    scopes: defaultdict[int, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    """Scope row → keys and values now and before."""


@dataclass(frozen=True, slots=True)
class Traces:
    """A memory with what its rows say of it, read before anything of it is changed."""

    memory: Memory
    app_id: int
    events: Sequence[Event]
    proofs: Sequence[Evidence]

    @property
    def facts(self) -> set[tuple[str, str]]:
        """(key, value) in all the wordings that the memory ever had."""
        states = [state for event in self.events for state in (event.old, event.new) if state]
        said = {(state["key"], state["value"]) for state in states if "value" in state}
        return said | {(self.memory.key, self.memory.value)}

    def shown(self, tx: Tx) -> list[int]:
        """The memories whose lines may hold words of this one, itself first: a replaced value is
        shown with the values that replaced it."""
        related = [event.related_id for event in self.events if event.related_id is not None]
        return [self.memory.id, *related, *changes.successors(tx, self.memory)]


def traces_of(tx: Tx, chosen: Iterable[Memory]) -> list[Traces]:
    """What is stored of each of these memories."""
    there = {memory.id: memory for memory in chosen}
    homes = memories.homes_of(tx, there)
    events = history.events_of_memories(tx, there)
    proofs = history.evidence_of_memories(tx, there)
    return [
        Traces(memory, homes[i], events.get(i, []), proofs.get(i, []))
        for i, memory in there.items()
    ]


def collect_occurrences(tx: Tx, traces: Traces, occurrences: Occurrences) -> None:
    """Add where the words of a memory stand to ``occurrences``."""
    memory, facts = traces.memory, traces.facts
    # However short a value is, a line "key: value" of memchat reveals it.
    values = searched_wordings(facts)
    occurrences.scopes[traces.app_id] |= facts
    said: list[int] = []
    for proof in traces.proofs:
        # A copy has the same words in the same places.
        for message_id, session_id in sessions.same_message(tx, proof.message_id):
            occurrences.spans[message_id].add((proof.start, proof.start + len(proof.quote)))
            occurrences.quotes[session_id].add(proof.quote)
            occurrences.values[session_id] |= values
            said.append(message_id)
    session_ids = {*receipts.sessions_with(tx, "memory", traces.shown(tx))}
    if said:
        session_ids.update(receipts.sessions_with(tx, "message", said))
    pieces = [text.normal_value(value).split() for value in values]
    bare = {value for _, value in facts}
    words = [[word] for value in bare for word in meaningful_words(value)]
    texts = lists.model_texts_with(tx, memory.id, occurrences.shown_in)
    for session_id, content, describes in texts:
        # The list was sent with every message, so only texts that say the value are blanked: for a
        # title or summary one word of it is enough, for a reply it takes the whole value.
        if session_id in session_ids or not _may_say(words if describes else pieces, content):
            continue
        if mentions_any(content, bare) if describes else spans_of(values, content):
            session_ids.add(session_id)
    for session_id in session_ids:
        occurrences.values[session_id] |= values


def _may_say(pieces: Sequence[Sequence[str]], content: str) -> bool:
    """Whether a text may hold all the words of one of these. For ASCII this is known without
    folding, which takes twenty times as long."""
    if not content.isascii():
        return True
    low = content.lower()
    return any(all(word in low for word in words) for words in pieces)


def drop_receipt_lines(tx: Tx, every: Iterable[Traces]) -> None:
    """Remove the lines of memories from all receipts and lists, and the prompts that had them."""
    traces = list(every)
    shown = sorted({i for each in traces for i in each.shown(tx)})
    receipts.remove_prompts_with_items(tx, "memory", shown)
    receipts.remove(tx, "memory", shown)
    lists.remove_lines(tx, [each.memory.id for each in traces])


def searched_wordings(facts: Collection[tuple[str, str]]) -> set[str]:
    """The values, and the lines "key: value" that memchat writes."""
    return {value for _, value in facts} | {f"{key}: {value}" for key, value in facts}


def blank_sessions(
    tx: Tx, occurrences: Occurrences, keep_transcript: bool, *, describe: bool
) -> list[int]:
    """Blank the words in every conversation; the ids of the turns that held any."""
    every: list[int] = []
    for session_id, values in occurrences.values.items():
        if describe and session_id in occurrences.quotes:
            set_description(tx, session_id, None, None)  # they may mention it in other words
        elif describe:
            blank_description(tx, session_id, values)
        turns = messages.of_session(tx, session_id)
        receipts.remove_prompts(tx, [turn.id for turn in turns if turn.role == "assistant"])
        held = {
            turn.id: content
            for turn in turns
            if (content := redacted_text(turn, occurrences)) != turn.content
        }
        every += rewrite_turns(tx, session_id, turns, held, keep_transcript)
        if session_id in occurrences.quotes:
            proposals.remove_refused(tx, session_id)  # they may come from its words
    return every


def redacted_text(turn: Message, occurrences: Occurrences) -> str:
    """A turn's text after forgetting."""
    values = occurrences.values.get(turn.session_id)
    if values is None:
        return turn.content
    taught = occurrences.quotes.get(turn.session_id)
    spans = set(occurrences.spans.get(turn.id, ()))
    # Where the fact was only shown, replies may repeat it; the user's words came from elsewhere.
    if taught or turn.role == "assistant":
        spans |= spans_of(values | (taught or set()), turn.content)
    return blank(turn.content, spans)


def rewrite_turns(
    tx: Tx,
    session_id: int,
    turns: Sequence[Message],
    texts: Mapping[int, str],
    keep_transcript: bool = False,
) -> list[int]:
    """Store the blanked texts of turns, or bar the turns from search and learning, and remove
    everything derived from their words; their ids."""
    ids = list(texts)
    if keep_transcript:
        messages.exclude(tx, ids)
    else:
        messages.rewrite(tx, session_id, texts)
        for message_id, content in texts.items():
            history.update_quotes(tx, message_id, content)
    drop_query_vectors(tx, [turn for turn in turns if turn.id in texts])
    drop_turn_lines(tx, ids)
    proposals.remove_of_messages(tx, ids)
    return ids


def blank_description(tx: Tx, session_id: int, values: Iterable[str]) -> None:
    """Clear title and summary of a conversation where they mention any of these values."""
    title, summary = sessions.description(tx, session_id)
    set_description(
        tx,
        session_id,
        None if title and mentions_any(title, values) else title,
        None if summary and mentions_any(summary, values) else summary,
    )


def mentions_any(described: str, values: Iterable[str]) -> bool:
    """Whether a title or a summary shares a word with any of these values."""
    every = set(values)
    forgotten = {word for value in every for word in meaningful_words(value)}
    return bool(meaningful_words(described) & forgotten or spans_of(every, described))


def set_description(tx: Tx, session_id: int, title: str | None, summary: str | None) -> None:
    """Set title and summary; where the title changes, the receipt lines with the old one go."""
    if sessions.description(tx, session_id)[0] != title:
        drop_turn_lines(tx, messages.ids_of(tx, session_id))
    sessions.set_description(tx, session_id, title, summary)


def drop_turn_lines(tx: Tx, turn_ids: Sequence[int]) -> None:
    """Remove the lines about these turns from every receipt, and the prompts that had them."""
    receipts.remove_prompts_with_items(tx, "message", turn_ids)
    receipts.remove(tx, "message", turn_ids)


def meaningful_words(value: str) -> set[str]:
    """The content words and numbers of a text."""
    return text.content_words(value) | numbers.numbers(value)


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
            found |= {(span.start, span.end) for span in find_spans(words, content)}
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


def drop_query_vectors(tx: Tx, turns: Iterable[Message]) -> None:
    """Delete the vectors of these turns as search queries."""
    hashes = [embeddings.query_hash(shortened(turn.content)) for turn in turns]
    passages.remove_unused(tx, hashes)


def is_blanked(text: str) -> bool:
    """Whether a text has lost all of its words to forgetting."""
    return FILLER in text and not any(map(str.isalnum, text))


def present_search_text(
    tx: Tx, memory: Memory, app_id: int, *, without: Collection[int] = ()
) -> str:
    """The search text of a memory by the rows as they are, with its first quote that is not blanked
    and is not of the messages ``without``."""
    proofs = [
        proof
        for proof in history.evidence_of_memory(tx, memory.id)
        if FILLER not in proof.quote and proof.message_id not in without
    ]
    quote = proofs[0].quote if proofs else ""
    left = lists.distinctive_cues(tx, app_id, memory.cues)
    return search_text(memory.key, memory.value, memory.said_at, tx.zone, quote, left)


def reindex(tx: Tx, ids: Iterable[int], cause: Cause, *, without: Collection[int] = ()) -> set[int]:
    """Write the search text of memories again, from their present quotes except those of the
    messages ``without``; their scope rows."""
    tx, scopes = tx, set()
    for memory_id in sorted(ids):
        app_id = memories.app_id_of(tx, memory_id)
        memory = memories.get(tx, [app_id], memory_id)
        if memory is None:
            continue  # it is hidden, and its purge is queued
        words = present_search_text(tx, memory, app_id, without=without)
        changes.reindex(tx, memory_id, app_id, words, cause)
        scopes.add(app_id)
    return scopes
