"""What is reached over HTTP under ``/api``: each route names a verb of the library, and takes its
parameters, its help and its results from there. A new verb is a line of ``ROUTES``.

What the verbs of ``program`` write goes the way of a program, which its mode decides; with the
others whoever calls acts as the person, so that those which write need a token for that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import UnionType
from typing import Any, Unpack, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from typing_extensions import TypedDict

import memchat
from memchat.api.base import Page
from memchat.api.clients import ClientAccess, Clients
from memchat.api.memories import Inbox, Memories
from memchat.api.notes import Notes
from memchat.api.sessions import Sessions
from memchat.api.store import Jobs, MemChat
from memchat.api.user import Apps, User
from memchat.config.tokens import Right

ROOMS: dict[str, type] = {
    "": User,
    "memories": Memories,
    "sessions": Sessions,
    "notes": Notes,
    "inbox": Inbox,
    "apps": Apps,
    "clients": Clients,
    "program": ClientAccess,
    "store": MemChat,
    "jobs": Jobs,
}
"""Whose verbs they are, by the first part of a verb's name."""
FILLED = frozenset({"through", "user", "given", "blank"})
"""Parameters that the token decides, or that take what another verb gave in this process."""
WIDER = frozenset({"apps.list", "jobs.list", "store.doctor"})
"""Verbs that tell of every app, and are for no token of one."""
EXAMPLES: dict[str, Any] = {
    "query": "coffee",
    "prompt": "Where do I live?",
    "question": "What did I decide about the garden?",
    "messages": [{"role": "user", "content": "I moved to Porto."}],
    "session": "chat-1",
    "type": "profile",
    "key": "city",
    "value": "Porto",
    "text": "The fence is to be green.",
    "title": "Garden",
    "tags": ["home"],
    "memory_id": 1,
    "session_id": 1,
    "message_id": 1,
    "note_id": 1,
    "item_id": 1,
    "job_id": 1,
    "name": "work",
    "on": True,
    "memo_id": "memo-1",
    "transcript": "The fence is to be green.",
    "workflow": "ask-memory",
    "created_at": "2026-05-01T09:00:00Z",
}


@dataclass(frozen=True)
class Route:
    """A way to a verb."""

    method: str
    path: str
    verb: str
    right: Right
    row: str = ""
    """The verb that gives what this one made once more, by its id."""

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The verb."""
        room, _, name = self.verb.rpartition(".")
        found: Callable[..., Any] = getattr(ROOMS[room], name)
        return found

    @cached_property
    def hints(self) -> dict[str, Any]:
        """What its parameters may be, and its result, with JSON's own lists and objects."""
        hints = get_type_hints(inspect.unwrap(self.function), localns=_Public())
        for name in [name for name, hint in hints.items() if get_origin(hint) is Unpack]:
            hints |= get_type_hints(get_args(hints.pop(name))[0])
        return {name: _plain(hint) for name, hint in hints.items()}

    @cached_property
    def parameters(self) -> dict[str, tuple[Any, Any]]:
        """Of each parameter that a request may give, what it may be and its default; ... for none.
        One that is in the path is among them."""
        given = inspect.signature(self.function).parameters
        defaults = {
            name: ... if one.default is one.empty else one.default for name, one in given.items()
        }
        return {
            name: (hint, defaults.get(name))
            for name, hint in self.hints.items()
            if name not in FILLED | {"return"} and not _is_callable(hint)
        }

    @property
    def in_address(self) -> bool:
        """Whether its parameters are in the address, and not in a body."""
        return self.method in ("GET", "DELETE")

    @cached_property
    def in_path(self) -> list[str]:
        """The names of the parameters in the path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    @cached_property
    def model(self) -> type[BaseModel] | None:
        """The parameters in the query, or in the body; None where there are none."""
        fields: dict[str, Any] = {}
        for name, (hint, default) in self.parameters.items():
            if name in self.in_path:
                continue
            if self.in_address and holds(hint, dict):
                hint = str | None
            examples = [EXAMPLES[name]] if name in EXAMPLES else None
            fields[name] = (hint, Field(default, examples=examples))
        name = "".join(part.title() for part in self.verb.replace("_", ".").split("."))
        config = ConfigDict(extra="forbid", allow_inf_nan=False)
        return create_model(f"{name}Request", __config__=config, **fields) if fields else None

    @cached_property
    def result(self) -> Any:
        """What its JSON is: a page is an object with its items and the cursor of the next one."""
        hint = self.hints["return"]
        if get_origin(hint) is Page:
            (item,) = get_args(hint)
            fields: dict[str, Any] = {"items": list[item], "cursor": str | None}  # type: ignore[valid-type]
            return TypedDict(f"PageOf{item.__name__}", fields)  # type: ignore[operator]
        return hint

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """Writes and reads its result."""
        return TypeAdapter(self.result)


class _Public(dict[str, Any]):
    """The package's public names, for annotations whose types a module imports late."""

    def __missing__(self, name: str) -> Any:
        if name not in memchat.__all__:
            raise KeyError(name)
        return getattr(memchat, name)


def _plain(hint: Any) -> Any:
    parts = tuple(_plain(part) for part in get_args(hint))
    origin = get_origin(hint)
    if origin in (Iterable, Sequence) or hint in (Iterable, Sequence):
        return list[parts[0]] if parts else list[Any]  # type: ignore[valid-type]
    if origin is Mapping or hint is Mapping:
        return dict.__class_getitem__(parts or (str, Any))
    if isinstance(hint, UnionType):
        whole: Any = parts[0]
        for part in parts[1:]:
            whole = whole | part
        return whole
    return hint


def holds(hint: Any, kind: type) -> bool:
    """Whether a type is of this kind, or has a part that is."""
    return kind in (hint, get_origin(hint)) or any(holds(part, kind) for part in get_args(hint))


def _is_callable(hint: Any) -> bool:
    return holds(hint, Callable)  # type: ignore[arg-type]


ROUTES = (
    Route("GET", "/api/search", "search", "read"),
    Route("GET", "/api/context", "context", "read"),
    Route("POST", "/api/messages", "add", "write", "sessions.get"),
    Route("GET", "/api/memory", "memory_switch", "read"),
    Route("PUT", "/api/memory", "set_memory", "admin"),
    Route("GET", "/api/memories", "memories.list", "read"),
    Route("POST", "/api/memories", "memories.add", "admin", "memories.get"),
    Route("GET", "/api/memories/{memory_id}", "memories.get", "read"),
    Route("PATCH", "/api/memories/{memory_id}", "memories.update", "admin"),
    Route("DELETE", "/api/memories/{memory_id}", "memories.delete", "admin"),
    Route("POST", "/api/memories/{memory_id}/restore", "memories.restore", "admin"),
    Route("PUT", "/api/memories/{memory_id}/pin", "memories.pin", "admin"),
    Route("GET", "/api/memories/{memory_id}/history", "memories.history", "read"),
    Route("GET", "/api/memories/{memory_id}/evidence", "memories.evidence", "read"),
    Route("POST", "/api/program/memories", "program.remember", "write", "memories.get"),
    Route("PATCH", "/api/program/memories/{memory_id}", "program.update", "write"),
    Route("DELETE", "/api/program/memories/{memory_id}", "program.forget", "write"),
    Route("PUT", "/api/program/memories/{memory_id}", "program.remember_instead", "write"),
    Route("POST", "/api/program/memories/{memory_id}/promote", "program.promote", "write"),
    Route("POST", "/api/program/notes", "program.index_memo", "write", "notes.get"),
    Route("POST", "/api/program/workflows/{workflow}/run", "program.run_workflow", "write"),
    Route("GET", "/api/sessions", "sessions.list", "read"),
    Route("GET", "/api/sessions/{session_id}", "sessions.get", "read"),
    Route("GET", "/api/sessions/{session_id}/messages", "sessions.messages", "read"),
    Route("POST", "/api/sessions/{session_id}/end", "sessions.end", "write"),
    Route("DELETE", "/api/sessions/{session_id}", "sessions.delete", "admin"),
    Route("GET", "/api/messages/{message_id}/why", "sessions.why", "read"),
    Route("DELETE", "/api/messages/{message_id}", "sessions.delete_message", "admin"),
    Route("GET", "/api/notes", "notes.list", "read"),
    Route("GET", "/api/notes/search", "notes.search", "read"),
    Route("POST", "/api/notes", "notes.add", "admin", "notes.get"),
    Route("GET", "/api/notes/{note_id}", "notes.get", "read"),
    Route("PATCH", "/api/notes/{note_id}", "notes.update", "admin"),
    Route("DELETE", "/api/notes/{note_id}", "notes.delete", "admin"),
    Route("POST", "/api/notes/{note_id}/restore", "notes.restore", "admin"),
    Route("GET", "/api/topics", "notes.topics", "read"),
    Route("POST", "/api/topics", "notes.find_topics", "admin"),
    Route("GET", "/api/notes/{note_id}/suggested-tags", "notes.suggested_tags", "read"),
    Route("GET", "/api/inbox", "inbox.list", "read"),
    Route("POST", "/api/inbox/{item_id}/accept", "inbox.accept", "admin"),
    Route("POST", "/api/inbox/{item_id}/reject", "inbox.reject", "admin"),
    Route("GET", "/api/apps", "apps.list", "read"),
    Route("GET", "/api/programs", "clients.list", "admin"),
    Route("GET", "/api/usage", "usage", "admin"),
    Route("GET", "/api/jobs", "jobs.list", "admin"),
    Route("GET", "/api/doctor", "store.doctor", "admin"),
)
BY_VERB = {route.verb: route for route in ROUTES}
