"""LangGraph's long-term store in memchat: a namespace is a person and an app, an item is a note.

``graph.compile(store=MemchatStore(mc))`` gives it to a graph. What is put is searched by meaning
and words, filtered by its short fields, shown on the app's Notes page, and gone with the person. It
prints::

    found: Ana is allergic to peanuts.
    of that kind: ['peanuts']
    namespaces: [('ana',), ('ana', 'kitchen')], [('ana', 'kitchen')]
    after deletion: None
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    SearchItem,
    SearchOp,
)

from memchat import MemChat, Note, Notes


class MemchatStore(BaseStore):
    """Each item's value is a note's text as JSON; key and flat fields are its metadata."""

    def __init__(self, mc: MemChat) -> None:
        self.mc = mc

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        """The results of the operations, in order."""
        return [self._done(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        """The same in a thread."""
        return await asyncio.to_thread(self.batch, ops)

    def _done(self, op: Op) -> Any:
        if isinstance(op, ListNamespacesOp):
            places = [
                p for p in self._places() if all(fits(p, c) for c in op.match_conditions or ())
            ]
            return [*dict.fromkeys(p[: op.max_depth] for p in places)][op.offset :][: op.limit]
        if isinstance(op, SearchOp):
            return self._search(op)[op.offset :][: op.limit]
        notes = self._notes(op.namespace)
        held = notes.list(metadata={"key": op.key}, limit=1)
        if isinstance(op, GetOp):
            return item(Item, op.namespace, notes.get(held[0].id)) if held else None
        if op.value is None:
            for note in held:
                notes.delete(note.id)
            return None
        flat = {k: v for k, v in op.value.items() if isinstance(v, str | int | float)}
        short = {k: v for k, v in flat.items() if len(str(v)) <= 200}
        words = json.dumps({"key": op.key, "value": op.value}, ensure_ascii=False)
        notes.add(words, external_id=op.key, metadata={**short, "key": op.key})
        return None

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found: list[SearchItem] = []
        for place in self._places():
            if place[: len(op.namespace_prefix)] != op.namespace_prefix:
                continue
            notes, only, most = self._notes(place), op.filter or {}, op.limit + op.offset
            scores: dict[int, float | None]
            if not op.query:
                scores = {one.id: None for one in notes.list(metadata=only, limit=most)}
            else:
                hits = notes.search(op.query, metadata=only, limit=4 * most).hits  # passages
                scores = {hit.note_id: hit.score for hit in reversed(hits)}
            found += [item(SearchItem, place, notes.get(n), score=by) for n, by in scores.items()]
        return sorted(found, key=lambda one: one.score or 0, reverse=True)

    def _notes(self, place: tuple[str, ...]) -> Notes:
        return self.mc.user(
            place[0], "/".join(quote(part, safe="") for part in place[1:]) or "default"
        ).notes

    def _places(self) -> list[tuple[str, ...]]:
        return [
            (person.name, *(map(unquote, app.name.split("/")) if app.name != "default" else ()))
            for person in self.mc.users.list()
            for app in self.mc.user(person.name).apps.list()
        ]


def fits(place: tuple[str, ...], only: MatchCondition) -> bool:
    """Whether a namespace begins, or ends, as the condition says."""
    size = len(only.path)
    part = place[:size] if only.match_type == "prefix" else place[-size:]
    return len(part) == size and all(w in ("*", p) for w, p in zip(only.path, part, strict=True))


def item(kind: Any, place: tuple[str, ...], note: Note, **more: Any) -> Any:
    """A note as LangGraph's record of it, also one that came from elsewhere."""
    put_here = "key" in (note.metadata or {})
    return kind(
        value=json.loads(note.text)["value"] if put_here else {"text": note.text},
        key=str(note.external_id),
        namespace=place,
        created_at=note.created_at,
        updated_at=note.updated_at or note.created_at,
        **more,
    )


def main() -> None:
    """Put two items, find them, and take one out."""
    with tempfile.TemporaryDirectory() as folder, MemChat(folder) as mc:
        store, place = MemchatStore(mc), ("ana", "kitchen")
        store.put(("ana",), "tea", {"text": "Ana drinks tea."})
        store.put(place, "peanuts", {"kind": "food", "text": "Ana is allergic to peanuts."})
        store.put(place, "oven", {"kind": "thing", "text": "The oven is too hot."})
        print(f"found: {store.search(place, query='allergic', limit=1)[0].value['text']}")
        print(
            f"of that kind: {[found.key for found in store.search(place, filter={'kind': 'food'})]}"
        )
        places = store.list_namespaces(), store.list_namespaces(suffix=("kitchen",))
        print(f"namespaces: {places[0]}, {places[1]}")
        store.delete(place, "peanuts")
        print(f"after deletion: {store.get(place, 'peanuts')}")


if __name__ == "__main__":
    main()
