"""Exports of other products, made from what is known of their shapes; nobody's own."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SEPTEMBER = 1_694_000_000.0
"""6 September 2023, in seconds."""


def node(name: str, parent: str | None, message: dict[str, Any] | None) -> dict[str, Any]:
    return {"id": name, "parent": parent, "children": [], "message": message}


def message(role: str, *parts: Any, at: float | None = SEPTEMBER, **more: Any) -> dict[str, Any]:
    kind = more.pop("content_type", "text")
    content = more.pop("content", {"content_type": kind, "parts": [*parts]})
    made = {"author": {"role": role}, "create_time": at, "content": content, "recipient": "all"}
    return made | more


def chatgpt(name: str, *messages: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """A conversation of ChatGPT in which each message follows the one before."""
    nodes, parent = {}, None
    for number, one in enumerate(messages):
        key = f"{name}-{number}"
        nodes[key] = node(key, parent, one)
        parent = key
    made = {"conversation_id": name, "title": f"Talk {name}", "mapping": nodes}
    return made | {"create_time": SEPTEMBER, "current_node": parent} | more


def talk(name: str, *words: str, at: float = SEPTEMBER) -> dict[str, Any]:
    """A conversation of ChatGPT in which the person begins, and a minute lies between messages."""
    roles = ("user", "assistant")
    said = [message(roles[n % 2], text, at=at + n * 60) for n, text in enumerate(words)]
    return chatgpt(name, *said, create_time=at)


def claude(name: str, *words: str, **more: Any) -> dict[str, Any]:
    said = [
        {
            "uuid": f"{name}-{n}",
            "sender": ("human", "assistant")[n % 2],
            "text": text,
            "content": [{"type": "text", "text": text}],
            "created_at": f"2024-02-03T10:{n:02}:00.000000Z",
        }
        for n, text in enumerate(words)
    ]
    made = {"uuid": name, "name": f"Talk {name}", "created_at": "2024-02-03T10:00:00Z"}
    return made | {"chat_messages": said} | more


def gemini(title: str, time: str, answer: str = "", **more: Any) -> dict[str, Any]:
    made = {"header": "Gemini Apps", "title": title, "time": time, "products": ["Gemini Apps"]}
    return made | ({"safeHtmlItem": [{"html": answer}]} if answer else {}) | more


def zipped(files: Mapping[str, Any]) -> bytes:
    """A zip file of these: bytes as they are, anything else as JSON."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            archive.writestr(name, data)
    return packed.getvalue()


def write(path: Path, content: Any) -> Path:
    """A file of bytes, of text, or of JSON."""
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path
