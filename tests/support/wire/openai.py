"""A fake OpenAI endpoint: /v1/chat/completions, plain and streamed, /v1/embeddings and
/v1/audio/transcriptions."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterable, Iterator
from email.parser import BytesParser
from email.policy import HTTP
from itertools import chain
from typing import Any, ClassVar

from tests.support.wire.server import (
    Call,
    Cut,
    Empty,
    Endless,
    Handler,
    Pieces,
    Received,
    Rows,
    Say,
    WireServer,
    only,
    require,
    vector,
    words,
)

CHAT_FIELDS = {
    "model", "messages", "stream", "stream_options", "temperature", "top_p", "n", "stop", "seed",
    "max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty", "user",
    "response_format", "tools", "tool_choice", "logprobs", "top_logprobs", "reasoning_effort",
    "verbosity", "store", "metadata", "service_tier", "parallel_tool_calls", "logit_bias",
}  # fmt: skip
SCHEMA_WORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
    "description", "title", "$ref", "$defs", "pattern", "format", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
}  # fmt: skip
USAGE_ESTIMATE = 4
TRANSCRIPTIONS = "/v1/audio/transcriptions"
AUDIO_FIELDS = {
    "file", "model", "language", "prompt", "response_format", "temperature", "stream", "include[]",
    "timestamp_granularities[]", "chunking_strategy",
}  # fmt: skip
AUDIO_ENDINGS = (".flac", ".mp3", ".mp4", ".mpeg", ".mpga", ".m4a", ".ogg", ".wav", ".webm")
AUDIO_SECONDS = 90.0
"""How long every file is that is transcribed."""


MODELS = "/v1/models"
OFFERED = ("gpt-4.1-mini", "text-embedding-3-small")


class OpenAIHandler(Handler):
    def answer(self, received: Received) -> None:
        known = ("/v1/chat/completions", "/v1/embeddings", TRANSCRIPTIONS, MODELS)
        require(received.path in known, "Invalid URL", 404)
        given = received.headers.get("authorization", "")
        if given != f"Bearer {self.server_side.key}":
            require(bool(given), "You didn't provide an API key.", 401, "invalid_api_key")
            shown = given.removeprefix("Bearer ")
            require(False, f"Incorrect API key provided: {shown}.", 401, "invalid_api_key")
        if received.path == MODELS:
            self.send_json({"object": "list", "data": [{"id": one} for one in OFFERED]})
            return
        body = received.body
        name = body.get("model")
        require(
            isinstance(name, str) and "/" not in name, f"no model {name!r}", 404, "model_not_found"
        )
        if received.path == "/v1/embeddings":
            self.embeddings(body)
        elif received.path == TRANSCRIPTIONS:
            self.transcription(body)
        else:
            self.chat(body)

    def content_type(self, path: str) -> str:
        return "multipart/form-data" if path == TRANSCRIPTIONS else super().content_type(path)

    def parsed(self, path: str, headers: dict[str, str], raw: bytes) -> Any:
        if path != TRANSCRIPTIONS:
            return super().parsed(path, headers, raw)
        head = f"Content-Type: {headers.get('content-type', '')}\r\n\r\n".encode()
        form = BytesParser(policy=HTTP).parsebytes(head + raw)
        return {
            str(part.get_param("name", header="content-disposition")): (
                (part.get_filename(), part.get_payload(decode=True))
                if part.get_filename()
                else part.get_content().strip()
            )
            for part in form.iter_parts()
        }

    def transcription(self, body: dict[str, Any]) -> None:
        only(body, AUDIO_FIELDS, "body", "Unrecognized request argument supplied:")
        name, data = body.get("file", ("", b""))
        require(name.lower().endswith(AUDIO_ENDINGS), "Invalid file format.")
        require(0 < len(data) <= 25 * 1024 * 1024, "Maximum content size limit exceeded", 413)
        step = self.server_side.steps.popleft() if self.server_side.steps else Say("Call John.")
        if self.play_common(step):
            return
        text = step.text if isinstance(step, Say) else ""
        spent = {"type": "duration", "seconds": AUDIO_SECONDS}
        whole = {"task": "transcribe", "duration": AUDIO_SECONDS, "language": "english"}
        verbose = body.get("response_format") == "verbose_json"
        self.send_json({"text": text, "usage": spent, **(whole if verbose else {})})

    def chat(self, body: dict[str, Any]) -> None:
        only(body, CHAT_FIELDS, "body", "Unrecognized request argument supplied:")
        check_messages(body.get("messages"))
        check_format(body.get("response_format"))
        check_tools(body)
        streamed = body.get("stream", False)
        require(streamed or "stream_options" not in body, "stream_options needs stream")
        step = self.server_side.next_step(body["messages"])
        if self.play_common(step):
            return
        text = step.text if isinstance(step, (Say, Cut)) else ""
        usage = count(body["messages"], text)
        if not streamed:
            reason = step.reason if isinstance(step, Empty) else "stop"
            self.send_json(whole(body["model"], text or None, reason, usage))
        elif isinstance(step, Call):
            events = [*pieces(body, words(step.text) if step.text else []), *calling(body, step)]
            if step.cut:
                self.stream_cut(events[:-1])
            else:
                self.send_events([*events, *ending(body, "tool_calls", usage)])
        elif isinstance(step, Cut):
            self.stream_cut(pieces(body, words(text)))
        elif isinstance(step, Pieces):
            last = ending(body, "stop", usage) if step.finish else ()
            self.send_events(chain(pieces(body, self.with_silence(step)), last))
        elif isinstance(step, Endless):
            self.send_events(pieces(body, self.endless_words()))
        else:
            reason = step.reason if isinstance(step, Empty) else "stop"
            self.send_events(
                [*pieces(body, words(text) if text else []), *ending(body, reason, usage)]
            )

    def embeddings(self, body: dict[str, Any]) -> None:
        only(body, {"model", "input", "encoding_format", "dimensions", "user"}, "body")
        given: Any = body.get("input")
        texts: Any = [given] if isinstance(given, str) else given
        require(isinstance(texts, list) and 1 <= len(texts) <= 2048, "'$.input' is invalid")
        for text in texts:
            require(isinstance(text, str) and text != "", "'$.input' is invalid")
            require(len(text) / USAGE_ESTIMATE <= 8192, "maximum context length is 8192 tokens")
        step = self.server_side.steps.popleft() if self.server_side.steps else None
        if step is not None and self.play_common(step):
            return
        size = self.server_side.dimensions
        rows = step.vectors if isinstance(step, Rows) else [vector(t, size) for t in texts]
        encoded = [encode(row, body.get("encoding_format", "float")) for row in rows]
        data = [{"object": "embedding", "index": i, "embedding": e} for i, e in enumerate(encoded)]
        tokens = sum(len(text) for text in texts) // USAGE_ESTIMATE + 1
        self.send_json(
            {
                "object": "list",
                "data": data[::-1],  # the order is told by the index alone
                "model": body["model"],
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            }
        )

    def error_body(self, status: int, message: str, code: str | None, delay: str | None) -> Any:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class OpenAIServer(WireServer):
    """The fake OpenAI; its base URL for a client is ``server.base``."""

    handler: ClassVar[type[Handler]] = OpenAIHandler

    @property
    def base(self) -> str:
        return f"{self.url}/v1"


def check_messages(messages: Any) -> None:
    """Roles and contents as the chat endpoint takes them."""
    require(isinstance(messages, list) and messages != [], "'messages' must not be empty")
    for message in messages:
        role = message.get("role")
        require(role in ("system", "developer", "user", "assistant", "tool"), "bad role")
        more = {"tool": {"tool_call_id"}, "assistant": {"tool_calls"}}.get(role, set())
        only(message, {"role", "content", "name", *more}, "messages")
        content = message.get("content")
        if role == "assistant" and message.get("tool_calls"):
            continue
        require(isinstance(content, str | list), "content must be a string or an array")
        for part in content if isinstance(content, list) else ():
            kind = part.get("type")
            require(kind in ("text", "image_url"), "bad type of a content part")
            only(part, {"type", kind}, "content")
            if kind == "image_url":
                url = part["image_url"]["url"]
                require(bool(re.match("data:image/(png|jpeg);base64,", url)), "bad image_url")
                base64.b64decode(url.partition(",")[2], validate=True)


def check_format(given: Any) -> None:
    """A strict json_schema by the rules of structured outputs."""
    if given is None:
        return
    require(given.get("type") in ("json_schema", "json_object", "text"), "bad response_format")
    if given["type"] != "json_schema":
        return
    schema = given.get("json_schema") or {}
    only(schema, {"name", "schema", "strict", "description"}, "response_format.json_schema")
    name = schema.get("name", "")
    require(bool(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)), "bad schema name")
    if schema.get("strict"):
        root = schema.get("schema") or {}
        require(root.get("type") == "object", "the root of a schema must be an object")
        for part in [root, *root.get("$defs", {}).values()]:
            check_strict(part, name)


def check_tools(body: dict[str, Any]) -> None:
    """Function tools by the rules of the chat endpoint."""
    tools = body.get("tools")
    if tools is None:
        require("tool_choice" not in body, "tool_choice is only allowed with tools")
        return
    require(isinstance(tools, list) and tools != [], "'tools' must not be empty")
    for tool in tools:
        only(tool, {"type", "function"}, "tools")
        require(tool.get("type") == "function", "bad tool type")
        function = tool.get("function") or {}
        only(function, {"name", "description", "parameters", "strict"}, "tools.function")
        name = function.get("name", "")
        require(bool(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)), "bad function name")
        shape = function.get("parameters", {"type": "object"})
        require(shape.get("type") == "object", "parameters must be an object")
        require(set(shape.get("required", ())) <= set(shape.get("properties", {})), "required")


def check_strict(schema: dict[str, Any], where: str) -> None:
    """Every property required, nothing additional, only the words strict mode knows."""
    say = f"Invalid schema for response_format '{where}':"
    only(schema, SCHEMA_WORDS, where, f"{say} not permitted:")
    kinds = schema.get("type")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        require(schema.get("additionalProperties") is False, f"{say} additionalProperties")
        names = set(schema.get("properties", {}))
        require(set(schema.get("required", ())) == names, f"{say} 'required' must hold every key")
    for part in schema.get("properties", {}).values():
        check_strict(part, where)
    for part in schema.get("anyOf", ()):
        check_strict(part, where)
    if "items" in schema:
        check_strict(schema["items"], where)


def whole(model: str, text: str | None, reason: str, usage: dict[str, int]) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": usage,
    }


def chunk(body: dict[str, Any], choices: list[Any], usage: dict[str, int] | None = None) -> str:
    data: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": body["model"],
        "choices": choices,
    }
    if body.get("stream_options", {}).get("include_usage"):
        data["usage"] = usage
    return json.dumps(data)


def pieces(body: dict[str, Any], parts: Iterable[str]) -> Iterator[str]:
    first = {"role": "assistant", "content": ""}
    yield chunk(body, [{"index": 0, "delta": first, "finish_reason": None}])
    for part in parts:
        yield chunk(body, [{"index": 0, "delta": {"content": part}, "finish_reason": None}])


def calling(body: dict[str, Any], step: Call) -> Iterator[str]:
    """Each call in several deltas: its name first, then its arguments in three pieces."""
    for place, (name, arguments) in enumerate(step.calls):
        opening = {"id": f"call_{place}", "type": "function"}
        third = len(arguments) // 3 + 1
        parts = [arguments[at : at + third] for at in range(0, len(arguments), third)]
        for number, part in enumerate(["", *parts]):
            function = {"arguments": part} if number else {"name": name, "arguments": part}
            delta: dict[str, Any] = {"index": place, "function": function}
            delta = delta if number else opening | delta
            choice = {"index": 0, "delta": {"tool_calls": [delta]}, "finish_reason": None}
            yield chunk(body, [choice])


def ending(body: dict[str, Any], reason: str, usage: dict[str, int]) -> Iterator[str]:
    yield chunk(body, [{"index": 0, "delta": {}, "finish_reason": reason}])
    if body.get("stream_options", {}).get("include_usage"):
        yield chunk(body, [], usage)
    yield "[DONE]"


def count(messages: list[dict[str, Any]], text: str) -> dict[str, int]:
    sent = sum(len(m["content"] or "") for m in messages) // USAGE_ESTIMATE + 1
    came = len(text) // USAGE_ESTIMATE + 1
    return {"prompt_tokens": sent, "completion_tokens": came, "total_tokens": sent + came}


def encode(row: list[float], kind: str) -> Any:
    require(kind in ("float", "base64"), "bad encoding_format")
    if kind == "float":
        return row
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()
