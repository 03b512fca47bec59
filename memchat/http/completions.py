"""Chat completions in OpenAI's wire format: what is known of the person goes before the messages,
the rest of the request goes to the provider as it is, and so does its answer to the client.

A provider without that format, and the offline stand-in, are asked for their text alone. What the
person said, and the reply, are kept as a conversation that is read once it rests. A conversation is
known again by the header ``X-Memchat-Session``, else by the turns before the last message of the
person; in doubt it is a new one, and of it only what is new is kept. Where the same history comes
with another last message, that stands in the place of the older one, as another version.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import time
import uuid
from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
from fastapi import Response
from fastapi.responses import JSONResponse, StreamingResponse

from memchat import AsyncMemChat, ChatMessage, InputError, MemChatError, NotFound, PromptContext
from memchat.api.user import NAME_LIMIT
from memchat.config.providers import KEYS, openai_url, provider_of
from memchat.http.gate import Caller
from memchat.providers import factory
from memchat.tokens import estimate_tokens

log = logging.getLogger(__name__)
OWN_NAME = "memchat"
"""The name by which a client asks for whatever model the settings name."""
TASK = "### Task:"
"""How a front end's own requests begin, for titles, tags and further questions, and what it puts
before a person's words where there are documents."""
BEFORE = ((TASK, "\n</context>\n"), ("<attached_files>", "</attached_files>"))
"""What a front end puts before the words of the person, by its beginning and its end."""
_UNDERSTOOD = ("model", "messages", "stream", "stream_options")
"""What a provider without this format is asked; the rest of a request is dropped and named."""
_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant",
}  # fmt: skip
"""The messages that it is given, and as whose."""
_PASSED = ("content-type", "x-request-id", "retry-after", "openai-processing-ms")
_MODEL = re.compile(r"(?!.*(?:\.\.|//|/$))[\w.:@+/-]{1,300}")
"""What may be asked for as a model: a name, and no way to another place."""
Body = dict[str, Any]


def words_of(content: Any) -> str:
    """The text of a message's content, whose other parts have none."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def said_in(message: Body) -> str:
    """The words of the person or the assistant in a message; empty in a front end's own request."""
    words = words_of(message.get("content"))
    for begin, end in BEFORE if message["role"] == "user" else ():
        if words.lstrip().startswith(begin):
            words = words.rpartition(end)[2].strip() if end in words else ""
    return words


@dataclass(slots=True)
class Exchange:
    """One request of a client, and what came of it."""

    person: Any
    through: str | None
    session: str
    asked: str
    """The person's last message; empty where nothing of it is kept."""
    known: PromptContext | None = None
    """What goes before the messages."""
    message: int | None = None
    """The id of the person's message, by which ``sessions.why`` explains the reply."""
    questions: Sequence[int] = ()
    """The ids of what is asked in the inbox, where the person asked to forget something."""
    anew: bool = False
    """Whether it stands in the place of the one before it."""
    since: list[Body] = field(default_factory=list)
    """What the assistant said after it before it asked for a tool."""
    said: list[str] = field(default_factory=list)
    """The pieces of the reply."""


class Completions:
    """The endpoint."""

    def __init__(self, mc: AsyncMemChat, session_header: str = "") -> None:
        self._mc, self._session_header = mc, session_header
        self._settings = mc.settings
        self._http = httpx.AsyncClient(timeout=httpx.Timeout(self._settings.timeout, read=600.0))
        self._keeping: set[asyncio.Future[None]] = set()

    @property
    def names(self) -> list[str]:
        """The models that a client may name; others of the same provider are passed on too."""
        return [OWN_NAME, self._settings.chat_model]

    async def close(self) -> None:
        """Keep what is still to be kept, and end the connections to providers."""
        if self._keeping:
            await asyncio.wait(self._keeping)
        await self._http.aclose()

    async def answer(self, caller: Caller, body: Any, headers: Mapping[str, str]) -> Response:
        """The provider's answer to the body of a request. Raises InputError for what is none, and
        NotFound for a model that cannot be asked."""
        messages = body.get("messages") if isinstance(body, dict) else None
        if not isinstance(messages, list) or not all(
            isinstance(one, dict) and isinstance(one.get("role"), str) for one in messages
        ):
            raise InputError("the body has no list of messages, each with a role")
        model = self._model(body.get("model"))
        exchange = await self._exchange(caller, messages, headers)
        if exchange.asked:
            exchange.known = await exchange.person.context(exchange.asked)
            body = {**body, "messages": _with_memory(messages, exchange.known.text)}
        url = openai_url(self._settings.addresses, provider_of(model))
        if url is None:
            reply = await self._by_text(exchange, model, body)
        else:
            reply = await self._forwarded(exchange, f"{url}/chat/completions", model, body)
        if exchange.session:
            reply.headers["x-memchat-session"] = exchange.session
        if exchange.message:
            reply.headers["x-memchat-message"] = str(exchange.message)
        if exchange.questions:
            reply.headers["x-memchat-inbox"] = ",".join(map(str, exchange.questions))
        return reply

    async def embeddings(self, body: Any) -> Response:
        """The vectors of texts, by the service of this store, or as another model's provider gives
        them. Raises InputError for a body that cannot be, NotFound as ``answer`` does."""
        given = body.get("input") if isinstance(body, dict) else None
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
            raise InputError("the body has no input: a text, or a list of texts")
        named, own = body.get("model"), self._settings.embed_model
        if named not in (None, "", OWN_NAME, own):
            model = self._model(named)
            url = openai_url(self._settings.addresses, provider_of(model))
            if url is None:
                raise NotFound(f"the provider of {named!r} does not speak OpenAI's format")
            asked = Exchange(None, None, "", "")
            return await self._forwarded(asked, f"{url}/embeddings", model, body)
        rows = await self._mc.services.embed(texts)
        packed = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": n, "embedding": _packed(row) if packed else row}
            for n, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": sum(map(estimate_tokens, texts))}
        usage["total_tokens"] = usage["prompt_tokens"]
        told = {"object": "list", "model": own, "data": data, "usage": usage}
        return JSONResponse(told)

    def _model(self, named: object) -> str:
        chat = self._settings.chat_model
        if named in (None, "", OWN_NAME, chat, chat.partition("/")[2]):
            return chat
        provider = provider_of(named) if isinstance(named, str) else ""
        has_key = self._settings.keys.first(KEYS.get(provider, ())) is not None
        usable = provider and (has_key or provider == provider_of(chat))
        if isinstance(named, str) and usable and _MODEL.fullmatch(named):
            return named if "/" in named else f"{provider}/{named}"
        raise NotFound("there is no such model here; GET /v1/models lists those there are")

    async def _exchange(
        self, caller: Caller, messages: Sequence[Body], headers: Mapping[str, str]
    ) -> Exchange:
        last = max((n for n, one in enumerate(messages) if one["role"] == "user"), default=None)
        asked = "" if last is None else said_in(messages[last])
        memory = headers.get("x-memchat-memory", "on").strip().lower()
        if memory not in ("on", "off"):
            raise InputError("the header X-Memchat-Memory is on or off")
        off = memory == "off"
        person = self._mc.user(caller.user, caller.app)
        exchange = Exchange(person, caller.through, "", "" if off else asked)
        exchange.session = named = headers.get("x-memchat-session", "")
        if not named and self._session_header:
            exchange.session = headers.get(self._session_header, "")
        if len(exchange.session) > NAME_LIMIT:
            raise InputError(f"the name of a conversation has at most {NAME_LIMIT} characters")
        if exchange.asked and last is not None:
            exchange.since = _turns(messages[last + 1 :])
            # Behind a tool's answer that message is known already.
            turns = _turns(messages if last < len(messages) - 1 else messages[:last])
            program = person.client(*caller.access)
            # Who names a conversation may send what is new alone.
            if turns or not named:
                found = await program.conversation(turns, exchange.session or None)
                exchange.session, exchange.anew = found.session, found.anew
            exchange.questions = await program.forget_named(asked)
        return exchange

    async def _forwarded(self, exchange: Exchange, url: str, model: str, body: Body) -> Response:
        """The answer of a provider that speaks the format, as it is."""
        provider = provider_of(model)
        variable = self._settings.keys.first(KEYS.get(provider, ()))
        key = variable and self._settings.keys.value(variable)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        named = model.removeprefix(f"{provider}/")
        request = self._http.build_request(
            "POST", url, json={**body, "model": named}, headers=headers
        )
        try:
            answer = await self._http.send(request, stream=True)
        except httpx.HTTPError as error:
            log.warning("%s could not be asked: %s", provider, type(error).__name__)
            said = {"message": f"{provider} did not answer", "type": "server_error", "code": None}
            return JSONResponse({"error": said}, 502)
        passed = {name: answer.headers[name] for name in _PASSED if name in answer.headers}
        streamed = "text/event-stream" in answer.headers.get("content-type", "")
        if streamed and answer.is_success:
            try:
                await self._keep(exchange)  # the person's message is on disk before the first piece
            except BaseException:
                await asyncio.shield(answer.aclose())
                raise
            pieces = self._streamed(exchange, answer)
            return StreamingResponse(pieces, answer.status_code, passed)
        try:
            content = await answer.aread()
        finally:
            await answer.aclose()
        if answer.is_success:
            exchange.said.append(_text_of(content))
            await self._keep(exchange)
        return Response(content, answer.status_code, passed)

    async def _streamed(self, exchange: Exchange, answer: httpx.Response) -> AsyncIterator[bytes]:
        """The bytes as they come; what came is kept, also of a client that goes away."""
        line = b""
        try:
            async for part in answer.aiter_bytes():
                *whole, line = (line + part).split(b"\n")
                exchange.said += map(_piece_of, whole)
                yield part
        finally:
            # It goes on where the client is gone, and this is cancelled.
            keeping = asyncio.ensure_future(self._keep(exchange))
            self._keeping.add(keeping)
            keeping.add_done_callback(self._keeping.discard)
            await asyncio.shield(answer.aclose())
            await asyncio.shield(keeping)

    async def _by_text(self, exchange: Exchange, name: str, body: Body) -> Response:
        """The text of a model that does not speak the format, in its form."""
        chat = [
            ChatMessage(_ROLES[one["role"]], words_of(one.get("content")))
            for one in body["messages"]
            if one["role"] in _ROLES
        ]
        text, usage = await asyncio.to_thread(self._text, name, chat)
        exchange.said.append(text)
        await self._keep(exchange)
        dropped = sorted(body.keys() - {*_UNDERSTOOD})
        headers = {"x-memchat-dropped": ",".join(dropped)} if dropped else {}
        about = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": name}
        message = {"role": "assistant", "content": text}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            whole = {**about, "object": "chat.completion", "choices": [choice]}
            return JSONResponse({**whole, "usage": usage}, headers=headers)
        begun = {"index": 0, "delta": message, "finish_reason": None}
        ended = {"index": 0, "delta": {}, "finish_reason": "stop"}
        about["object"] = "chat.completion.chunk"
        chunks = [{**about, "choices": [choice]} for choice in (begun, ended)]
        options = body.get("stream_options")
        if isinstance(options, dict) and options.get("include_usage"):
            chunks.append({**about, "choices": [], "usage": usage})
        lines = [*map(json.dumps, chunks), "[DONE]"]
        events = "".join(f"data: {line}\n\n" for line in lines)
        return Response(events, media_type="text/event-stream", headers=headers)

    def _text(self, name: str, chat: Sequence[ChatMessage]) -> tuple[str, dict[str, int]]:
        stream = factory.chat_model(self._settings.with_(chat_model=name)).stream(chat)
        text, took = "".join(stream), stream.usage
        usage = {name: getattr(took, name) for name in ("prompt_tokens", "completion_tokens")}
        return text, {**usage, "total_tokens": took.prompt_tokens + took.completion_tokens}

    async def _keep(self, exchange: Exchange) -> None:
        """Store what was said, to be read once the conversation rests."""
        said = "".join(exchange.said)
        if not exchange.asked:
            return
        turns = [{"role": "user", "content": exchange.asked}, *exchange.since]
        if said:
            turns.append({"role": "assistant", "content": said})
        try:
            kept = await exchange.person.add(
                turns,
                session=exchange.session,
                wait=False,
                through=exchange.through,
                instead=exchange.anew,
                given=exchange.known,
            )
        except MemChatError as error:
            log.warning("what was said is not kept: %s", error)
        else:
            exchange.message = exchange.message or next(iter(kept.message_ids), None)
        exchange.anew = False


def _turns(messages: Sequence[Body]) -> list[Body]:
    """What the person and the assistant said."""
    said = [(one["role"], said_in(one)) for one in messages if one["role"] in ("user", "assistant")]
    return [{"role": role, "content": words} for role, words in said if words.strip()]


def _with_memory(messages: Sequence[Body], known: str) -> list[Body]:
    """The messages, with what is known behind the text of the first system message, or before all
    where there is none."""
    if not known:
        return [*messages]
    first = messages[0] if messages else {}
    if first.get("role") in ("system", "developer"):
        content = first.get("content")
        text = {"type": "text", "text": known}
        more = [*content, text] if isinstance(content, list) else f"{content or ''}\n\n{known}"
        return [{**first, "content": more}, *messages[1:]]
    return [{"role": "system", "content": known}, *messages]


def _packed(row: Sequence[float]) -> str:
    """A vector as OpenAI's clients ask for it: float32 in base64."""
    return base64.b64encode(array("f", row).tobytes()).decode()


def _text_of(content: bytes) -> str:
    """The words of the first choice of a whole answer; empty where it has none."""
    try:
        return words_of(json.loads(content)["choices"][0]["message"]["content"])
    except (ValueError, LookupError, TypeError):
        return ""


def _piece_of(line: bytes) -> str:
    """The words that one line of a stream adds to the first choice."""
    try:
        choice = json.loads(line.removeprefix(b"data:"))["choices"][0]
        return choice["delta"].get("content") or "" if choice.get("index", 0) == 0 else ""
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""
