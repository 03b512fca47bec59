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


def openwebui(name: str, *words: str, **more: Any) -> dict[str, Any]:
    """A chat of Open WebUI, with an answer that was asked for again."""
    said: dict[str, Any] = {}
    parent = None
    for number, text in enumerate(words):
        one = {"id": f"{name}-{number}", "parentId": parent, "childrenIds": [], "content": text}
        one |= {"role": ("user", "assistant")[number % 2], "timestamp": int(SEPTEMBER) + number}
        said[one["id"]] = one
        parent = one["id"]
    history = {"messages": said, "currentId": parent}
    chat = {"title": "", "models": ["m"], "params": {}, "history": history, "messages": []}
    made = {"id": name, "user_id": "u", "title": f"Talk {name}", "chat": chat, "archived": False}
    return made | {"created_at": int(SEPTEMBER), "updated_at": int(SEPTEMBER) + 60} | more


def librechat(name: str, *words: str, tree: bool = False, **more: Any) -> dict[str, Any]:
    """A conversation of LibreChat as its menu exports it: flat, or answers under questions."""
    said: list[dict[str, Any]] = []
    for number, text in enumerate(words):
        one = {"messageId": f"{name}-{number}", "conversationId": name, "text": text}
        one |= {"isCreatedByUser": number % 2 == 0, "sender": ("User", "GPT-4")[number % 2]}
        parent = said[-1]["messageId"] if said else "00000000-0000-0000-0000-000000000000"
        said.append(
            one | {"parentMessageId": parent, "createdAt": f"2024-03-01T10:{number:02}:00.000Z"}
        )
    made = {
        "conversationId": name,
        "endpoint": "openAI",
        "title": f"Talk {name}",
        "recursive": tree,
    }
    if not tree:
        return made | {"messages": said} | more
    for one, answer in zip(said, [*said[1:], None], strict=True):
        one["children"] = [answer] if answer else []
    return made | {"messagesTree": said[:1]} | more


def mem0(*facts: str, **more: Any) -> dict[str, Any]:
    """What ``get_all()`` of mem0 returns."""
    made = [
        {
            "id": f"m-{number}",
            "memory": fact,
            "hash": "x",
            "metadata": None,
            "created_at": "2025-03-04T10:00:00.000000-08:00",
            "updated_at": None,
            "user_id": "ana",
        }
        | more
        for number, fact in enumerate(facts)
    ]
    return {"results": made}


def letta(name: str, *words: str, blocks: Mapping[str, str] | None = None) -> dict[str, Any]:
    """An agent file of Letta, of an agent that answers by a tool."""
    said: list[dict[str, Any]] = []
    for number, text in enumerate(words):
        mail = {"type": "user_message", "message": text, "time": "2025-01-02 10:00:00 AM"}
        one: dict[str, Any] = {"id": f"message-{number}", "role": "user", "tool_calls": None}
        one["content"] = [{"type": "text", "text": json.dumps(mail)}]
        if number % 2:
            use = {"name": "send_message", "arguments": json.dumps({"message": text})}
            one |= {"role": "assistant", "tool_calls": [{"id": "c", "function": use}]}
            one["content"] = [{"type": "text", "text": "I should answer."}]
        said.append(one | {"created_at": f"2025-01-02T10:00:{number:02}+00:00"})
    agent = {"id": "agent-0", "name": name, "system": "You are Letta.", "messages": said}
    held = [
        {"id": f"block-{n}", "label": label, "value": value}
        for n, (label, value) in enumerate((blocks or {}).items())
    ]
    return {"agents": [agent], "blocks": held, "groups": [], "files": [], "tools": []}


def gemini_page(*cells: tuple[str, str, str], product: str = "Gemini Apps") -> str:
    """My Activity of Google Takeout in HTML: prompt, time and answer of each activity."""
    made = "".join(
        '<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid">'
        '<div class="header-cell mdl-cell mdl-cell--12-col"><p class="mdl-typography--title">'
        f"{product}<br></p></div>"
        '<div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1">'
        f"{prompt}<br>{time}<br>{answer}</div>"
        '<div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1 '
        'mdl-typography--text-right"></div>'
        '<div class="content-cell mdl-cell mdl-cell--12-col mdl-typography--caption"><b>Products:'
        f"</b><br>&emsp;{product}<br></div></div></div>\n"
        for prompt, time, answer in cells
    )
    style = ".mdl-grid{display:flex}" * 200
    return (
        f"<html><head><title>My Activity</title><style>{style}</style></head><body>"
        f'<div class="mdl-grid">{made}</div></body></html>'
    )
