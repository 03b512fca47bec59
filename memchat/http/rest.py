"""The routes under ``/api`` as FastAPI serves them: arguments in, the verb's result out as JSON;
and what comes as a stream: answers from notes, exports and imports."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

from memchat import AsyncMemChat, InputError, Page
from memchat.http.gate import Caller, Refused, needs
from memchat.http.routes import BY_VERB, EXAMPLES, ROUTES, WIDER, Route, holds
from memchat.types import to_json

PROBLEM = {
    "description": "A problem as RFC 9457 has it; `code` is the name of the library's error.",
    "content": {
        "application/problem+json": {
            "schema": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "status": {"type": "integer"},
                    "detail": {"type": "string"},
                    "code": {"type": "string"},
                },
                "required": ["title", "status", "detail", "code"],
            },
            "example": {
                "title": "Not Found",
                "status": 404,
                "detail": "there is no memory 7 here",
                "code": "NotFound",
            },
        }
    },
}
KEY_LIMIT = 200
PART = 2**16


def router_of(mc: AsyncMemChat, **checked: Any) -> APIRouter:
    """The routes over a store. ``checked`` is for the router: its routes let nobody in unasked."""
    rest = Rest(mc)
    router = APIRouter(responses={"4XX": PROBLEM, "5XX": PROBLEM}, **checked)
    for route in ROUTES:
        endpoint = rest.endpoint(route)
        told = inspect.cleandoc(endpoint.__doc__ or "")
        router.add_api_route(
            route.path,
            endpoint,
            methods=[route.method],
            status_code=201 if route.row else 200,
            response_model=route.result,
            operation_id=route.verb,
            responses={204: {}} if holds(route.result, type(None)) else None,
            summary=_first_sentence(told),
            tags=[route.path.split("/")[2]],
            description=told,
        )
    for method, path, special, kind in (
        ("POST", "/api/notes/ask", rest.ask, "text/event-stream"),
        ("GET", "/api/export", rest.export, "application/jsonl"),
        ("POST", "/api/import", rest.import_, "application/json"),
    ):
        answer: Any = {200: {"content": {kind: {}}}}
        router.add_api_route(
            path, special, methods=[method], tags=[path.split("/")[2]], responses=answer,
            response_class=JSONResponse if kind.endswith("json") else Response,
        )  # fmt: skip
    return router


class Asked(BaseModel):
    """A question about notes."""

    question: str = Field(examples=[EXAMPLES["question"]])
    mode: str = "answer"


class Rest:
    """The endpoints. Each has its caller in the state of the request."""

    def __init__(self, mc: AsyncMemChat) -> None:
        self._mc = mc
        self._writing: dict[str, asyncio.Lock] = {}

    def endpoint(self, route: Route) -> Callable[..., Awaitable[Response]]:
        """The endpoint of a route, whose signature FastAPI reads."""

        async def answer(request: Request, **given: Any) -> Response:
            model = given.pop("given", None)
            names = () if model is None else model.model_fields_set
            arguments = given | {name: getattr(model, name) for name in names}
            if route.in_address and arguments.get("metadata") is not None:
                arguments["metadata"] = _noted(arguments["metadata"])
            return await self._answer(route, request, arguments)

        named = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
        parameters = [named("request", annotation=Request)]
        parameters += [named(name, annotation=route.hints[name]) for name in route.in_path]
        if route.model is not None:
            told: Any = Annotated[route.model, Query() if route.in_address else Body()]
            required = any(one.is_required() for one in route.model.model_fields.values())
            if route.in_address or required:
                parameters.append(named("given", annotation=told))
            else:
                parameters.append(named("given", annotation=told | None, default=None))
        answer.__doc__ = route.function.__doc__
        answer.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return needs(route.right)(answer)

    async def _answer(self, route: Route, request: Request, arguments: dict[str, Any]) -> Response:
        caller: Caller = request.state.caller
        wanted = request.headers.get("if-match")
        if wanted is None:
            return await self._once(route, request, arguments)
        # One at a time, so that nothing of this process comes between the look and the change.
        async with self._writing.setdefault(caller.user, asyncio.Lock()):
            place = "GET", _row_path(route.path)
            there = next((one for one in ROUTES if (one.method, one.path) == place), None)
            if there is None:
                raise Refused(412, "what is here has no tag; leave out If-Match")
            row = await self._done(there, caller, {k: arguments[k] for k in there.in_path})
            if wanted not in (_etag(there.adapter.dump_json(row)), "*"):
                raise Refused(412, "it was changed since; read it again")
            return await self._once(route, request, arguments)

    async def _once(self, route: Route, request: Request, arguments: dict[str, Any]) -> Response:
        """Do it, and with a key of the client's only where it was not done before."""
        caller, key = request.state.caller, request.headers.get("idempotency-key")
        if key is None or route.method == "GET":
            return self._told(route, request, await self._done(route, caller, arguments))
        if not 0 < len(key) <= KEY_LIMIT:
            raise InputError(f"an Idempotency-Key has 1 to {KEY_LIMIT} characters")
        told = [route.method, request.url.path, request.url.query, (await request.body()).hex()]
        digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()
        access = self._mc.user(caller.user, caller.app).client(*caller.access)
        known = await access.begin_request(key, digest)
        if known is not None:
            if not known.same:
                raise InputError("this Idempotency-Key came with another request before")
            if known.status is None:
                raise Refused(409, "the request with this Idempotency-Key is still being done")
            return await self._again(route, caller, known.status, known.row_id)
        try:
            value = await self._done(route, caller, arguments)
        except BaseException:
            await access.finish_request(key, None, None)
            raise
        answer = self._told(route, request, value)
        await access.finish_request(key, answer.status_code, _row_id(value))
        return answer

    async def _again(
        self, route: Route, caller: Caller, status: int, row_id: int | None
    ) -> Response:
        """The answer to a request that was done before: the row, as it is now."""
        again = BY_VERB.get(route.row)
        headers = {"idempotency-replayed": "true"}
        content = json.dumps({"id": row_id}).encode()
        if again is not None and row_id is not None and again.result == route.result:
            row = await self._done(again, caller, {again.in_path[0]: row_id})
            content = again.adapter.dump_json(row)
        return Response(content, status, headers, "application/json")

    async def _done(self, route: Route, caller: Caller, arguments: dict[str, Any]) -> Any:
        room, _, name = route.verb.rpartition(".")
        person = self._mc.user(caller.user, caller.app)
        caller.check_width(route.verb in WIDER or arguments.get("all_apps"))
        given = inspect.signature(route.function).parameters
        if "through" in given:
            arguments = {**arguments, "through": caller.through}
        if "user" in given:
            arguments = {**arguments, "user": caller.user}
        face: Any = {"": person, "store": self._mc, "jobs": self._mc.jobs}.get(room)
        if room == "program":
            face = person.client(*caller.access)
        elif face is None:
            face = getattr(person, room)
        return await getattr(face, name)(**arguments)

    def _told(self, route: Route, request: Request, value: Any) -> Response:
        if value is None:
            return Response(status_code=204)
        if isinstance(value, Page):
            value = {"items": [*value], "cursor": value.cursor}
        content = route.adapter.dump_json(value)
        headers = {}
        if route.in_path and route.method == "GET":
            headers["etag"] = _etag(content)
            if request.headers.get("if-none-match") == headers["etag"]:
                return Response(status_code=304, headers=headers)
        return Response(content, 201 if route.row else 200, headers, "application/json")

    @needs("read")
    async def ask(self, request: Request, asked: Asked) -> Response:
        """Ask about the notes, in plain language. The answer comes as events: `text` for each
        piece, and at the end its `sources`."""
        caller: Caller = request.state.caller
        notes = self._mc.user(caller.user, caller.app).notes
        answer = await notes.ask(asked.question, mode=asked.mode)

        async def events() -> AsyncIterator[str]:
            async for piece in answer:
                yield f"data: {json.dumps({'text': piece})}\n\n"
            sources = [to_json(one) for one in answer.cited]
            yield f"data: {json.dumps({'sources': sources, 'cut': answer.cut})}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    @needs("admin")
    async def export(self, request: Request, all_apps: bool = True) -> Response:
        """All that is kept of the person, a JSON record on each line, as `memchat export` writes
        it; with a token of one app, what that has alone."""
        caller: Caller = request.state.caller
        all_apps = all_apps and not caller.token.app
        with ExitStack() as opened:
            # It has no name, so that nothing of it is left where the process dies.
            home = self._mc.settings.home
            file = opened.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", dir=home))
            await self._mc.user(caller.user, caller.app).export_file(file, all_apps=all_apps)
            file.seek(0)
            opened.pop_all()

        def parts() -> Iterator[str]:
            with file:
                yield from iter(partial(file.read, PART), "")

        return StreamingResponse(parts(), media_type="application/jsonl")

    @needs("admin")
    async def import_(self, request: Request, dry_run: bool = False) -> Response:
        """Read an export, which is the body, as the person's own."""
        caller: Caller = request.state.caller
        caller.check_width(True)
        with tempfile.NamedTemporaryFile(dir=self._mc.settings.home) as file:
            async for part in request.stream():
                file.write(part)
            file.flush()
            person = self._mc.user(caller.user, caller.app)
            try:
                done = await person.import_file(file.name, dry_run=dry_run)
            except InputError as error:
                raise InputError(str(error).replace(file.name, "the body")) from None
        return Response(json.dumps(to_json(done)), media_type="application/json")


def _first_sentence(told: str) -> str:
    return (
        " ".join(told.partition("\n\n")[0].split()).partition(". ")[0].replace("``", "").rstrip(".")
    )


def _row_path(path: str) -> str:
    """The path of the row that a change is of: its own, or without what is done to it."""
    return path.replace("/program", "") if path.endswith("}") else path.rpartition("/")[0]


def _etag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:20]}"'


def _noted(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError('metadata in an address is a JSON object, as {"topic": "tax"}')
    return found


def _row_id(value: Any) -> int | None:
    """The id of what was made: its own, or that of the memory or the conversation in it."""
    for one in (value, getattr(value, "memory", None)):
        for name in ("id", "session_id"):
            if isinstance(found := getattr(one, name, None), int):
                return found
    return None
