"""How much of the evidence is found, by what is searched and how."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

import numpy as np

from benchmarks.recall.data import Person
from benchmarks.recall.feed import Fed, What, feed
from benchmarks.recall.rows import DEEPEST, HEAD, Row, over_better
from benchmarks.recall.stores import asked_at, covers, store
from memchat import MemChat
from memchat.errors import ProviderError
from memchat.providers import Embedder
from memchat.search import keywords

STORES: dict[str, tuple[What, float | None]] = {
    "messages": (What(turns=True), 75),
    "memories": (What(facts=True), 66),
    "memories with their quotes": (What(facts=True, quotes=True), None),
    "both": (What(turns=True, facts=True), 77),
    "both, with summaries": (What(turns=True, facts=True, summaries=True), 81),
}
_BM25 = "SELECT rowid, -rank FROM f WHERE f MATCH ? ORDER BY rank, rowid DESC"
PLAIN = ("words", "meaning", "both")
"""Plain searches over the bare texts; both is .7 cosine + .3 BM25 / best, over all of them."""


class Down:
    """The embedder on a day when it does not answer: words alone are searched."""

    def __init__(self, other: Embedder) -> None:
        self.service = other.service

    def embed_documents(self, texts: Sequence[str]) -> Any:
        raise ProviderError("out of reach")

    def embed_query(self, text: str) -> Any:
        raise ProviderError("out of reach")


def table(embedder: Embedder, people: Sequence[Person], only: Sequence[str] = ()) -> None:
    """Print a row for each way of searching; ``only`` those stores."""
    print(f"{sum(len(p.asked) for p in people)} questions about {len(people)} people\n\n{HEAD}")
    plain = [row for person in people for row in plain_rows(embedder, person)]
    names = list(dict.fromkeys(row.name for row in plain))
    single = {name: joined([row for row in plain if row.name == name]) for name in names}
    for row in single.values():
        print(row.line(), flush=True)
    seen = {}
    for name, (what, goal) in STORES.items():
        if not only or name in only:
            rrf, seen[name] = Row(f"{name}: memchat, rrf"), Row(f"{name}: memchat", goal)
            down = Row(f"{name}: memchat, no embedder")
            for person in people:
                with store(embedder, asked_at(person)) as mc:
                    fed = feed(mc, person, what)
                    ask(mc, person, fed, seen[name])
                    ask_anew(mc, person, fed, rrf, embedder, ranking="rrf")
                    ask_anew(mc, person, fed, down, Down(embedder))
            print(f"{down.line()}\n{rrf.line()}\n{seen[name].line()}", flush=True)
    if not only or "together" in only:
        print(together(embedder, people).line(), flush=True)
    for kind in ("messages", "memories"):
        if kind in seen:
            alone = [single[f"{kind}: plain {way}"] for way in ("words", "meaning")]
            print(f"  {over_better(seen[kind], alone)}")


def ask(mc: MemChat, person: Person, fed: Fed, row: Row) -> None:
    """Ask everything that is asked about a person, through the public search."""
    for asked in person.asked:
        hits = mc.user(person.name).search(asked.text, limit=DEEPEST).hits
        ranked = [covers(mc, person, fed, hit) for hit in hits]
        row.add(asked, ranked, sum(len(hit.text) for hit in hits[:10]))


def ask_anew(
    mc: MemChat, person: Person, fed: Fed, row: Row, embedder: Embedder, **settings: str
) -> None:
    """The same with other settings, over the same store."""
    changed = mc.settings.with_(**settings)
    with MemChat(settings=changed, embedder=embedder, clock=mc._assembly.clock) as other:
        ask(other, person, fed, row)


def together(embedder: Embedder, people: Sequence[Person]) -> Row:
    """Everybody in one store, as on a server."""
    row = Row("both, with summaries: all in one store")
    what, _ = STORES["both, with summaries"]
    with store(embedder, max(map(asked_at, people))) as mc:
        fed = {person.name: feed(mc, person, what) for person in people}
        for person in people:
            ask(mc, person, fed[person.name], row)
    return row


def plain_rows(embedder: Embedder, person: Person) -> list[Row]:
    """The questions over the bare turns and facts, in each plain way."""
    units = [(f"[{day(t.at)}] {turn.text}", {turn.id}) for t in person.talks for turn in t.turns]
    facts = [(f"[{day(t.at)}] {o.text}", {*o.turns}) for t in person.talks for o in t.observed]
    rows = []
    for name, some in (("messages", units), ("memories", facts)):
        ways = [Row(f"{name}: plain {way}") for way in PLAIN]
        orders = plain_orders(embedder, [text for text, _ in some], [a.text for a in person.asked])
        for asked, lists in zip(person.asked, orders, strict=True):
            for row, order in zip(ways, lists, strict=True):
                read = sum(len(some[i][0]) for i in order[:10])
                row.add(asked, [frozenset(some[i][1]) for i in order[:DEEPEST]], read)
        rows += ways
    return rows


def plain_orders(
    embedder: Embedder, texts: Sequence[str], questions: Sequence[str]
) -> list[tuple[list[int], list[int], list[int]]]:
    """For each question the texts' places, best first: by words, by meaning, by both."""
    vectors, _ = embedder.embed_documents(texts)
    found = []
    with closing(sqlite3.connect(":memory:")) as words:
        words.execute("CREATE VIRTUAL TABLE f USING fts5(text, tokenize='porter unicode61')")
        words.executemany("INSERT INTO f (rowid, text) VALUES (?, ?)", enumerate(texts))
        for text in questions:
            bm25 = np.zeros(len(texts))
            terms = " OR ".join(f'"{term}"' for term in keywords.query_terms(text))
            ranked = words.execute(_BM25, [terms]).fetchall() if terms else []
            for number, score in ranked:
                bm25[number] = score
            cosine = vectors @ embedder.embed_query(text)[0]
            both = 0.7 * np.maximum(cosine, 0) + 0.3 * bm25 / (bm25.max() or 1)
            near, joint = (np.argsort(-scores, kind="stable") for scores in (cosine, both))
            found.append(([n for n, _ in ranked], [int(i) for i in near], [int(i) for i in joint]))
    return found


def joined(rows: Sequence[Row]) -> Row:
    """One row of all people's questions."""
    whole = Row(rows[0].name)
    for row in rows:
        whole.recall += row.recall
        whole.first += row.first
        whole.characters += row.characters
        whole.categories += row.categories
    return whole


def day(at: datetime) -> str:
    """A day as the prototypes wrote it."""
    return f"{at.day} {at:%B %Y}"
