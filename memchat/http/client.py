"""``Client`` and ``AsyncClient``: the verbs of a person's store in another process, over HTTP.

Nothing is declared twice: ``routes`` says which verbs there are, and where; what they take and give
is what the library's own take and give, its errors among it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_origin
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from memchat import errors
from memchat.api.base import Page
from memchat.errors import InputError, MemChatError, StoreError
from memchat.http.routes import BY_VERB, Route
from memchat.types import Imported, NoteSource

if TYPE_CHECKING:
    import memchat.api.awaited as awaited
    from memchat.api.clients import ClientAccess
    from memchat.api.store import Jobs
    from memchat.api.user import User

    AsyncUser = awaited.AsyncUser
else:
    User = AsyncUser = object

PART = 2**16
_ROOMS = {verb.rpartition(".")[0] for verb in BY_VERB}


def _asked(route: Route, *given: Any, **named: Any) -> dict[str, Any]:
    """The method, address and content of a request, as httpx takes them."""
    bound = inspect.signature(route.function).bind(None, *given, **named).arguments
    del bound["self"]
    arguments = {**bound.pop("only", {}), **bound.pop("changes", {}), **bound}
    for name in arguments.keys() - route.parameters.keys():
        raise InputError(f"{name} cannot be given over HTTP")
    path = route.path.format(
        **{name: quote(f"{arguments.pop(name)}", "") for name in route.in_path}
    )
    plain: dict[str, Any] = to_jsonable_python(arguments)
    request: dict[str, Any] = {"method": route.method, "url": path}
    if route.in_address:
        told = {k: json.dumps(v) if isinstance(v, Mapping) else v for k, v in plain.items()}
        return {**request, "params": {k: v for k, v in told.items() if v is not None}}
    return {**request, "json": plain}


def _checked(answer: httpx.Response) -> httpx.Response:
    """The answer. Raises the error that it tells of."""
    if answer.is_success:
        return answer
    try:
        problem = answer.json()
        kind = getattr(errors, problem["code"])
        said = problem["detail"]
    except (ValueError, LookupError, TypeError, AttributeError):
        kind, said = StoreError, f"the server answered {answer.status_code}"
    error: MemChatError = MemChatError.__new__(kind)
    Exception.__init__(error, said)  # some kinds make their own message
    error.see = ""
    raise error


def _given(route: Route, answer: httpx.Response) -> Any:
    """The result of a verb."""
    if _checked(answer).status_code == 204:
        return None
    found = route.adapter.validate_json(answer.content)
    if get_origin(route.hints["return"]) is Page:
        return Page(found["items"], found["cursor"])
    return found


class _Answer:
    """An answer from notes as it comes."""

    def __init__(self, open: Callable[[], Any]) -> None:
        self._open = open
        self.text = ""
        self.sources: tuple[NoteSource, ...] = ()
        self.cut: str | None = None

    def take(self, line: str) -> str:
        """The words of one line of the stream."""
        if not line.startswith("data:"):
            return ""
        told = json.loads(line.removeprefix("data:"))
        if "sources" in told:
            self.sources = TypeAdapter(tuple[NoteSource, ...]).validate_python(told["sources"])
            self.cut = told["cut"]
        piece: str = told.get("text", "")
        self.text += piece
        return piece


class StreamedAnswer(_Answer):
    """An answer from notes: iterate over its pieces, or ``read`` all of it."""

    def __iter__(self) -> Iterator[str]:
        with self._open() as answer:
            if not answer.is_success:
                answer.read()
                _checked(answer)
            yield from filter(None, map(self.take, answer.iter_lines()))

    def read(self) -> str:
        """All of it."""
        for _ in self:
            pass
        return self.text


class AsyncStreamedAnswer(_Answer):
    """``StreamedAnswer`` for programs that use ``await``."""

    async def __aiter__(self) -> AsyncIterator[str]:
        async with self._open() as answer:
            if not answer.is_success:
                await answer.aread()
                _checked(answer)
            async for line in answer.aiter_lines():
                if piece := self.take(line):
                    yield piece

    async def read(self) -> str:
        """All of it."""
        async for _ in self:
            pass
        return self.text


class _Room:
    """The verbs of one part of the store."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = client, name

    def __getattr__(self, name: str) -> Any:
        verb = f"{self._name}.{name}".lstrip(".")
        if verb == "notes.ask":
            return self._client._ask
        if verb in BY_VERB:
            return self._client._verb(BY_VERB[verb])
        if not self._name and name in _ROOMS:
            return _Room(self._client, name)
        raise AttributeError(f"{verb} cannot be called over HTTP")

    def __dir__(self) -> list[str]:
        own = f"{self._name}." if self._name else ""
        return [verb.removeprefix(own) for verb in BY_VERB if verb.startswith(own)]


class _Connected:
    """Holds the connections, and has the rooms and verbs of the table."""

    _kind: Any

    def __init__(
        self,
        url: str,
        token: str,
        *,
        user: str | None = None,
        app: str | None = None,
        timeout: float = 60,
    ) -> None:
        headers: dict[str, str | bytes] = {"authorization": f"Bearer {token}"}
        headers |= {"x-memchat-user": user.encode()} if user else {}
        headers |= {"x-memchat-app": app.encode()} if app else {}
        # The address that chat clients use, which memchat serve prints, will do as well.
        base = url.rstrip("/").removesuffix("/v1")
        self._http: Any = self._kind(base_url=base, headers=headers, timeout=timeout)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(_Room(self, ""), name)


class Client(_Connected, User):
    """The store of a person in another process, by the address and a token of ``memchat serve``.

    Its verbs are those of ``mc.user(…)`` that ``docs/http.md`` lists, and what a token may decides
    which of them can be called. ``program`` has the verbs of a program, which go the way of its
    mode, and ``jobs`` those of the queue. Use it in a ``with`` block. Raises what the verbs raise,
    and httpx's own errors where the server cannot be reached.
    """

    if TYPE_CHECKING:
        program: ClientAccess
        jobs: Jobs

    _kind = httpx.Client

    def _verb(self, route: Route) -> Callable[..., Any]:
        def verb(*given: Any, **named: Any) -> Any:
            return _given(route, self._http.request(**_asked(route, *given, **named)))

        return verb

    def _ask(self, question: str, *, mode: str = "answer") -> StreamedAnswer:
        asked = {"question": question, "mode": mode}
        return StreamedAnswer(lambda: self._http.stream("POST", "/api/notes/ask", json=asked))

    def export(self, *, all_apps: bool = True) -> Iterator[dict[str, Any]]:
        """As ``User.export``."""
        with self._http.stream("GET", "/api/export", params={"all_apps": all_apps}) as answer:
            if not answer.is_success:
                answer.read()
            for record in map(json.loads, _checked(answer).iter_lines()):
                if record["record"] not in ("header", "end"):
                    yield record

    def import_file(
        self, file: Path | str, *, dry_run: bool = False, progress: Any = None
    ) -> Imported:
        """As ``User.import_file``, without its progress."""
        with Path(file).open("rb") as content:
            answer = self._http.post("/api/import", content=content, params={"dry_run": dry_run})
        return TypeAdapter(Imported).validate_json(_checked(answer).content)

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_Connected, AsyncUser):
    """``Client`` for programs that use ``await``. Use it in an ``async with`` block."""

    if TYPE_CHECKING:
        program: awaited.AsyncClientAccess
        jobs: awaited.AsyncJobs

    _kind = httpx.AsyncClient

    def _verb(self, route: Route) -> Callable[..., Any]:
        async def verb(*given: Any, **named: Any) -> Any:
            return _given(route, await self._http.request(**_asked(route, *given, **named)))

        return verb

    async def _ask(self, question: str, *, mode: str = "answer") -> AsyncStreamedAnswer:
        asked = {"question": question, "mode": mode}
        return AsyncStreamedAnswer(lambda: self._http.stream("POST", "/api/notes/ask", json=asked))

    async def export(self, *, all_apps: bool = True) -> Any:
        """As ``AsyncUser.export``."""
        asked = self._http.stream("GET", "/api/export", params={"all_apps": all_apps})

        async def records() -> AsyncIterator[dict[str, Any]]:
            async with asked as answer:
                if not answer.is_success:
                    await answer.aread()
                async for line in _checked(answer).aiter_lines():
                    if (record := json.loads(line))["record"] not in ("header", "end"):
                        yield record

        return records()

    async def import_file(
        self, file: Path | str, *, dry_run: bool = False, progress: Any = None
    ) -> Imported:
        """As ``AsyncUser.import_file``, without its progress."""

        async def parts() -> AsyncIterator[bytes]:
            with Path(file).open("rb") as content:
                while part := await asyncio.to_thread(content.read, PART):
                    yield part

        answer = await self._http.post("/api/import", content=parts(), params={"dry_run": dry_run})
        return TypeAdapter(Imported).validate_json(_checked(answer).content)

    async def close(self) -> None:
        """End the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
