"""The store for LangGraph beside the one that LangGraph brings, and in a graph."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, TypedDict

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from examples.langgraph_store import MemchatStore
from memchat import MemChat
from tests.support import empty_store

PLACES = (("ana",), ("ana", "kitchen"), ("ana", "kitchen", "oven"), ("ben",))
KEYS = ("a", "b")
PLACE, KEY = st.sampled_from(PLACES), st.sampled_from(KEYS)
VALUE = st.fixed_dictionaries(
    {"kind": st.sampled_from(["x", "y"]), "list": st.lists(st.integers())}
)
STEPS = st.lists(
    st.tuples(st.just("put"), PLACE, KEY, VALUE) | st.tuples(st.just("delete"), PLACE, KEY),
    max_size=8,
)


def state(store: BaseStore) -> dict[str, Any]:
    """All that can be asked of a store without meaning; the order of a list is each store's own."""
    found = {(p, k): getattr(store.get(p, k), "value", None) for p in PLACES for k in KEYS}
    below = {
        (prefix, kind): {
            (one.namespace, one.key) for one in store.search(prefix, filter={"kind": kind})
        }
        for prefix in (("ana",), ("ana", "kitchen"))
        for kind in ("x", "y")
    }
    return {"found": found, "below": below}


@settings(max_examples=25)
@given(STEPS)
def test_it_holds_what_the_store_of_langgraph_itself_holds(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = empty_store.place(Path(folder) / "store")
        with MemChat(home) as mc:
            stores = MemchatStore(mc), InMemoryStore()
            for name, *arguments in steps:
                for store in stores:
                    getattr(store, name)(*arguments)
            assert state(stores[0]) == state(stores[1])


def test_a_graph_remembers_in_it(tmp_path: Path) -> None:
    class State(TypedDict):
        said: str

    def remember(state: State, *, store: BaseStore) -> State:
        store.put(("ana",), "tea", {"text": state["said"]})
        return {"said": store.search(("ana",), query="tea")[0].value["text"]}

    with MemChat(tmp_path / "store") as mc:
        graph = StateGraph(State).add_node(remember).add_edge(START, "remember")
        answer = graph.compile(store=MemchatStore(mc)).invoke({"said": "Ana drinks tea."})
        assert answer == {"said": "Ana drinks tea."}
        assert [note.title for note in mc.user("ana").notes.list()] != []
