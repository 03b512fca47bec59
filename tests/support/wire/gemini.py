"""A fake Gemini endpoint: generateContent, plain and streamed, and batchEmbedContents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
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

PATH = re.compile(r"/v1(?:beta)?/models/([a-z0-9.-]+):([a-zA-Z]+)")
TASKS = {
    "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "SEMANTIC_SIMILARITY", "CLASSIFICATION",
    "CLUSTERING", "QUESTION_ANSWERING", "FACT_VERIFICATION", "CODE_RETRIEVAL_QUERY",
}  # fmt: skip
GENERATE_FIELDS = {
    "contents", "systemInstruction", "generationConfig", "safetySettings", "tools", "toolConfig",
    "cachedContent",
}  # fmt: skip
CONFIG_FIELDS = {
    "temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences",
    "responseMimeType", "responseSchema", "responseJsonSchema", "thinkingConfig", "seed",
    "presencePenalty", "frequencyPenalty", "responseModalities",
}  # fmt: skip
OPENAPI_WORDS = {
    "type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems",
    "properties", "required", "propertyOrdering", "anyOf", "minimum", "maximum", "pattern",
    "minLength", "maxLength", "minProperties", "maxProperties", "example", "default",
}  # fmt: skip
JSON_SCHEMA_WORDS = {
    "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items",
    "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties",
    "additionalProperties", "required", "propertyOrdering",
}  # fmt: skip
UNKNOWN = "Invalid JSON payload received. Unknown name"


def camel(name: str) -> str:
    """The endpoint takes both spellings of a field."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def named(body: dict[str, Any], allowed: set[str], where: str) -> dict[str, Any]:
    """The object with its fields in camel case; an unknown one is refused."""
    renamed = {camel(name): value for name, value in body.items()}
    only(renamed, allowed, where, UNKNOWN)
    return renamed


class GeminiHandler(Handler):
    def answer(self, received: Received) -> None:
        match = PATH.fullmatch(received.path)
        require(match is not None, "The requested URL was not found on this server.", 404)
        assert match is not None
        given = received.headers.get("x-goog-api-key") or received.query.get("key")
        require(bool(given), "Method doesn't allow unregistered callers", 403)
        require(
            given == self.server_side.key,
            "API key not valid. Please pass a valid API key.",
            400,
            "API_KEY_INVALID",
        )
        model, verb = match.groups()
        require(model.startswith("gemini-"), f"models/{model} is not found for API version", 404)
        if verb == "batchEmbedContents":
            self.embed(model, received.body)
        elif verb == "generateContent":
            self.generate(received.body, streamed=False)
        elif verb == "streamGenerateContent":
            require(received.query.get("alt") == "sse", "this server streams with alt=sse only")
            self.generate(received.body, streamed=True)
        else:
            require(False, f"{verb} is not found", 404)

    def generate(self, body: dict[str, Any], *, streamed: bool) -> None:
        body = named(body, GENERATE_FIELDS, "root")
        check_contents(body.get("contents"))
        if "systemInstruction" in body:
            check_content(body["systemInstruction"])
        check_config(body.get("generationConfig", {}))
        check_tools(body.get("tools", []))
        step = self.server_side.next_step(body["contents"])
        if self.play_common(step):
            return
        text = step.text if isinstance(step, (Say, Cut)) else ""
        reason = step.reason if isinstance(step, Empty) else "STOP"
        last = candidate(None, reason, len(text))
        if not streamed:
            self.send_json(candidate(text or None, reason, len(text)))
        elif isinstance(step, Call):
            events = [*pieces(words(step.text) if step.text else []), *calling(step)]
            if step.cut:
                self.stream_cut(events[:-1])
            else:
                self.send_events([*events, json.dumps(last)])
        elif isinstance(step, Cut):
            self.stream_cut(pieces(words(text)))
        elif isinstance(step, Pieces):
            end = [json.dumps(last)] if step.finish else []
            self.send_events(chain(pieces(self.with_silence(step)), end))
        elif isinstance(step, Endless):
            self.send_events(pieces(self.endless_words()))
        else:
            self.send_events([*pieces(words(text) if text else []), json.dumps(last)])

    def embed(self, model: str, body: dict[str, Any]) -> None:
        only(body, {"requests"}, "root", UNKNOWN)
        asked: Any = body.get("requests")
        require(isinstance(asked, list) and len(asked) >= 1, "requests must not be empty")
        require(len(asked) <= 100, "at most 100 requests can be in one batch")
        texts: list[str] = []
        for one in asked:
            fields = {"model", "content", "taskType", "title", "outputDimensionality"}
            item = named(one, fields, "requests")
            require(item.get("model") == f"models/{model}", "the model of each request must match")
            check_content(item.get("content"))
            texts.append("".join(part["text"] for part in item["content"]["parts"]))
            require(item.get("taskType", "CLUSTERING") in TASKS, "Invalid value at taskType")
            require("taskType" not in item or model.endswith("-001"), "taskType is not supported")
        step = self.server_side.steps.popleft() if self.server_side.steps else None
        if step is not None and self.play_common(step):
            return
        size = int(asked[0].get("outputDimensionality", self.server_side.dimensions))
        rows = step.vectors if isinstance(step, Rows) else [vector(t, size) for t in texts]
        self.send_json({"embeddings": [{"values": row} for row in rows]})

    def error_body(self, status: int, message: str, code: str | None, delay: str | None) -> Any:
        names = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
        names |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
        details: list[dict[str, str]] = []
        kind = "type.googleapis.com/google.rpc."
        if code is not None:
            details.append({"@type": f"{kind}ErrorInfo", "reason": code})
        if delay is not None:
            details.append({"@type": f"{kind}RetryInfo", "retryDelay": delay})
        error = {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}
        return {"error": {**error, "details": details} if details else error}


class GeminiServer(WireServer):
    """The fake Gemini; ``server.url`` is the address without a version."""

    handler: ClassVar[type[Handler]] = GeminiHandler


def check_content(content: Any) -> None:
    """One Content object whose parts are text."""
    require(isinstance(content, dict), "a Content object is needed")
    only(content, {"role", "parts"}, "content", UNKNOWN)
    parts = content.get("parts")
    require(isinstance(parts, list) and parts != [], "contents.parts must not be empty")
    for part in parts:
        only(part, {"text"}, "parts", UNKNOWN)
        require(isinstance(part.get("text"), str), "a part needs text")


def check_contents(contents: Any) -> None:
    """Turns that alternate between user and model, the user first and last."""
    require(isinstance(contents, list) and contents != [], "contents is not specified")
    for place, content in enumerate(contents):
        check_content(content)
        role = content.get("role", "user")
        require(role in ("user", "model"), "Please use a valid role: user, model.")
        wanted = "user" if place % 2 == 0 else "model"
        require(role == wanted, "multiturn requests alternate between user and model")
    require(len(contents) % 2 == 1, "the last turn must be the user's")


def check_config(config: dict[str, Any]) -> None:
    """Known fields, and at most one schema in the words that kind of schema has."""
    config = named(config, CONFIG_FIELDS, "generation_config")
    schemas = {"responseSchema", "responseJsonSchema"} & set(config)
    require(len(schemas) < 2, "only one schema is allowed")
    json_type = config.get("responseMimeType") == "application/json"
    require(json_type or not schemas, "a schema needs responseMimeType application/json")
    if "responseSchema" in config:
        check_schema(config["responseSchema"], OPENAPI_WORDS)
    if "responseJsonSchema" in config:
        check_schema(config["responseJsonSchema"], JSON_SCHEMA_WORDS)


def check_schema(schema: dict[str, Any], allowed: set[str]) -> None:
    only(schema, allowed, "response_schema", UNKNOWN)
    for part in schema.get("properties", {}).values():
        check_schema(part, allowed)
    for part in [*schema.get("anyOf", ()), *schema.get("$defs", {}).values()]:
        check_schema(part, allowed)
    if "items" in schema:
        check_schema(schema["items"], allowed)


def check_tools(tools: list[dict[str, Any]]) -> None:
    """Function declarations with parameters in the words that a schema has here."""
    for tool in tools:
        declared = named(tool, {"functionDeclarations"}, "tools")["functionDeclarations"]
        require(isinstance(declared, list) and declared != [], "tools.function_declarations")
        for function in declared:
            only(function, {"name", "description", "parameters"}, "function_declarations", UNKNOWN)
            require(bool(re.fullmatch(r"[a-zA-Z_][\w.-]{0,63}", function["name"])), "bad name")
            shape = function.get("parameters")
            if shape is not None:
                require(shape.get("type", "").lower() == "object", "parameters: object expected")
                require(bool(shape.get("properties")), "parameters.properties: should be non-empty")
                check_schema(shape, OPENAPI_WORDS)


def calling(step: Call) -> Iterator[str]:
    """Each call whole in a part of its own, as this endpoint sends them."""
    for name, arguments in step.calls:
        made = candidate(None, None, len(arguments))
        call = {"functionCall": {"name": name, "args": json.loads(arguments)}}
        made["candidates"][0]["content"] = {"role": "model", "parts": [call]}
        yield json.dumps(made)


def candidate(text: str | None, reason: str | None, length: int) -> dict[str, Any]:
    made: dict[str, Any] = {"index": 0}
    if text is not None:
        made["content"] = {"role": "model", "parts": [{"text": text}]}
    if reason is not None:
        made["finishReason"] = reason
    came = length // 4 + 1
    usage = {"promptTokenCount": 9, "candidatesTokenCount": came, "totalTokenCount": 9 + came}
    return {"candidates": [made], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}


def pieces(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        yield json.dumps(candidate(part, None, len(part)))
