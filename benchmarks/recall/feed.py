"""Putting the texts into a store in bulk, by the code that a session's end runs.

Turns by ``messages.add``, facts by ``ingest``, then ``turn_texts`` with one batch of vectors
a session, as a session's end does. No model reads anything: what it would have written, facts and
summary, is the data set's own.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.recall.data import Person, Talk
from memchat import MemChat
from memchat.db import messages, sessions
from memchat.facts.consolidation import ingest, session_end
from memchat.facts.memories import Fact, search_text
from memchat.notes.chunking import token_counter
from memchat.providers import Embedder
from memchat.search import embeddings, passages, turns
from memchat.search.embed import EmbeddingSpace
from memchat.types import Scope, Service, Usage

Vectors = NDArray[np.float32]


class Cached:
    """An embedder that asks the other for a text once, on this machine, over all runs."""

    def __init__(self, other: Embedder) -> None:
        self._other = other
        name = "".join(c if c.isalnum() else "-" for c in other.service.name)
        self._path = Path(tempfile.gettempdir()) / f"memchat-bench-recall-{name}.pickle"
        self._held: dict[str, Vectors] = {}
        self.service: Service = other.service
        self.new = 0
        if self._path.exists():
            self._held = pickle.loads(self._path.read_bytes())

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        keys = [embeddings.query_hash(text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._held}
        if new:
            made, _ = self._other.embed_documents(list(new.values()))
            self._held.update(zip(new, made, strict=True))
            self.new += len(new)
        found = np.array([self._held[key] for key in keys], np.float32)
        return found, Usage("embed", self.service.name, 0, 0, 0.0, 0.0)

    def embed_query(self, text: str) -> tuple[Vectors, Usage]:
        found, usage = self.embed_documents([text])
        return found[0], usage

    def count_tokens(self, text: str) -> int:
        """The tokens of a text, as the other counts them."""
        return token_counter(self._other)(text)

    def save(self) -> None:
        """Keep the vectors for the next run; they are keyed by hashes and hold no text."""
        self._path.write_bytes(pickle.dumps(self._held))


@dataclass(frozen=True, slots=True)
class Fed:
    """A store with one person's conversation in it."""

    ids: dict[int, str] = field(default_factory=dict)
    """Message id → its id in the data set."""
    proofs: dict[int, frozenset[str]] = field(default_factory=dict)
    """Memory id → the turns that prove it, as far as they were looked up."""


@dataclass(frozen=True, slots=True)
class What:
    """What of a conversation is put in."""

    turns: bool = False
    """Without them they only prove facts, as if said with memory off: nothing is found there."""
    facts: bool = False
    quotes: bool = False
    """Each fact's text holds the words that it was drawn from, as a session's end writes it."""
    summaries: bool = False


def feed(mc: MemChat, person: Person, what: What) -> Fed:
    """Put a person's sessions in; of several people's turns each names its speaker itself."""
    meaning, why_not = mc._assembly.embedding_space()
    assert meaning is not None, why_not
    fed = Fed()
    for talk in person.talks:
        _feed_talk(mc, meaning, person, talk, fed, what)
    return fed


def _feed_talk(
    mc: MemChat, meaning: EmbeddingSpace, person: Person, talk: Talk, fed: Fed, what: What
) -> None:
    zone = mc.settings.zone
    scope = Scope(person.name)
    with mc._assembly.database.write(scope, ensure=True) as tx:
        tx.now = talk.at
        session_id = sessions.start(tx, tx.own, "bench", talk.at, talk.at)
        by_name, last = {}, 0
        for number, turn in enumerate(talk.turns):
            at = talk.at + timedelta(seconds=number)
            last = messages.add(tx, session_id, "user", turn.text, at, memory=what.turns)
            fed.ids[last], by_name[turn.id] = turn.id, (last, turn.text)
        sessions.end(tx, session_id)
        facts = []
        for one in talk.observed if what.facts else ():
            proofs = tuple((by_name[i][0], 0, by_name[i][1]) for i in one.turns if i in by_name)
            key = one.about.lower()
            quote = proofs[0][2] if proofs and what.quotes else ""
            words = search_text(key, one.text, talk.at, zone, quote)
            facts.append(Fact("fact", key, one.text, True, words, talk.at, "auto", proofs=proofs))
        ingest(tx, session_end(session_id), facts)
        summary = talk.summary if what.summaries else None
        sessions.mark_extracted(tx, session_id, last, None, summary)
        turns.write(tx, session_id)
        lacking = passages.next_lacking(tx, meaning.service_id, 0, 10_000)
    vectors, _ = meaning.documents([gap.text for gap in lacking])
    with mc._assembly.database.write() as tx:
        tx.now = talk.at
        passages.keep_vectors(tx, meaning.service_id, vectors)
