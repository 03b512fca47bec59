"""A tab of the app, run by Streamlit's own test runner: what it says, and what is done in it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

from ui import components, launch
from ui.desk import Desk

ANA = {"user": "ana", "app": "default"}


def app(page: str | None = None, user: dict[str, Any] | None = None, **address: str) -> AppTest:
    """A new tab, on the chat page or another, once it is drawn; ``user``: what the provider says
    of the person who signed in."""
    at = AppTest.from_file(str(launch.SCRIPT), default_timeout=60)
    at.user = at.user if user is None else user
    for name, value in address.items():
        at.query_params[name] = value
    at.run()
    if page is not None:
        for name, value in address.items():
            at.query_params[name] = value
        at.switch_page(f"views/{page}.py").run()
    assert not at.exception
    return at


def forget_desk() -> None:
    """Let the next page make a desk of its own, as a new process does."""
    components._desk.clear()  # type: ignore[attr-defined]


def work_through(desk: Desk) -> None:
    """Do what a desk does in the background: end what was left, and read what was ended."""
    desk.sweep()
    desk.mc.jobs.run(user=desk.user)


def until(at: AppTest, holds: Callable[[], object], seconds: float = 30) -> None:
    """Run the page until something holds, as its fragments do in a browser."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, text(at)
        time.sleep(0.05)
        at.run()
    assert not at.exception


def give(at: AppTest, name: str, content: bytes) -> None:
    """Choose a file to be imported."""
    at.file_uploader(key="upload").set_value((name, content, "application/octet-stream")).run()


def text(at: AppTest) -> str:
    """All that the page says."""
    kinds = (at.title, at.subheader, at.markdown, at.caption, at.text, at.error, at.info)
    said = [str(e.value) for kind in (*kinds, at.warning, at.success) for e in kind]
    said += [
        f"{words} {row['about']}" for words, row in zip(sentences(at), listed(at), strict=True)
    ]
    said += [_words(e.proto.body) for e in at.get("html") if "<style>" not in e.proto.body]
    said += [word for part in parts(at) for word in _said(part)]
    return "\n".join(said).replace("\\", "")


def room(at: AppTest) -> dict[str, Any]:
    """What the chat's component was given; nothing on other pages."""
    found = _component(at, "memchat.chat")
    return dict(json.loads(found.json)) if found is not None else {}


def _component(at: AppTest, name: str = "memchat.chat") -> Any:
    named = [one.proto for one in at.get("bidi_component")]
    return next((one for one in named if one.component_name == name), None)


def parts(at: AppTest) -> Iterator[dict[str, Any]]:
    """The pieces of the chat, and those in rows."""

    def within(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            yield value
        for one in value.values() if isinstance(value, dict) else value:
            if isinstance(one, dict | list):
                yield from within(one)

    yield from within(room(at))


def _said(part: dict[str, Any]) -> Iterator[str]:
    yield from (_words(html) for html in part.get("blocks", ()))
    yield from (part[kind] for kind in ("text", "told", "note", "error") if part.get(kind))
    if part.get("marked"):
        yield "the message that was looked for"


def do(at: AppTest, key: str, words: str | None = None, *, then: str = "") -> None:
    """Do in the chat what the component names so, and at once something else."""
    taken = room(at)["taken"]
    did: list[dict[str, Any]] = [{"n": taken + 1, "key": key}]
    did[0] |= {} if words is None else {"words": words}
    did += [{"n": taken + 2, "key": then}] if then else []
    event = json.dumps([{"event": "did", "value": did}])
    states = at._tree.get_widget_states()
    name = _make_trigger_id(_component(at, "memchat.chat").id, "events")
    states.widgets.append(WidgetState(id=name, json_trigger_value=event))
    at._run(states)
    assert not at.exception


def send(at: AppTest, words: str) -> None:
    """Write a message, and wait for nothing."""
    do(at, "say", words)


def say_anew(at: AppTest, n: int, words: str) -> None:
    """Say the chat's ``n``-th message in other words."""
    do(at, f"resend-{n}", words)


def editing(at: AppTest) -> list[str]:
    """The words that wait in an editor."""
    return [part["editing"] for part in parts(at) if "editing" in part]


def errors(at: AppTest) -> list[str]:
    """What went wrong, on the page and in the chat."""
    return [e.value for e in at.error] + [p["error"] for p in parts(at) if p.get("error")]


def _words(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def say(at: AppTest, words: str) -> None:
    """Write a message and wait for its reply."""
    before = len(buttons(at, "why-"))
    send(at, words)
    until(at, lambda: len(buttons(at, "why-")) > before)


def lines(at: AppTest) -> list[str]:
    """What the parts of the page say that can be unfolded, while they are folded."""
    return [part.label.replace("\\", "") for part in at.expander]


def buttons(at: AppTest, start: str) -> list[str]:
    """The keys of the buttons that begin like this."""
    keys = [b.key for b in at.button if b.key]
    keys += [part["key"] for part in parts(at) if "button" in part]
    return [key for key in keys if key.startswith(start)]


def chats(at: AppTest, kind: str = "") -> dict[str, str]:
    """The links to chats in the sidebar, or with ``kind`` to messages found: address and words."""
    start = f'<a class="memchat-link {kind}" href="'
    bodies = [e.proto.body for e in at.get("html") if e.proto.body.startswith(start)]
    return {unescape(body.split('"')[3]): body.partition(">")[2] for body in bodies}


def choose(at: AppTest, session_id: int | None, what: str) -> None:
    """Choose something in the menu of a chat in the sidebar."""
    at.menu_button(key=f"more-{session_id}").click(what).run()
    assert not at.exception


def answers(at: AppTest) -> list[str]:
    """The answers to the question of the last reply that have a button."""
    return [key.split("-")[1] for key in buttons(at, "say-")]


def press_answer(at: AppTest, words: str) -> None:
    """Press the button with that answer."""
    press(at, next(key for key in buttons(at, "say-") if key.split("-")[1] == words))


def number(at: AppTest) -> int:
    """Which conversation the address names."""
    named = at.query_params["c"]
    return int(named if isinstance(named, str) else named[0])


def press(at: AppTest, key: str) -> None:
    if key in {part.get("key") for part in parts(at)}:
        do(at, key)
    else:
        at.button(key=key).click().run()
    assert not at.exception


def listed(at: AppTest) -> list[dict[str, Any]]:
    """The rows that the list of memories is given."""
    found = _component(at, "memchat.rows")
    return list(json.loads(found.json)["rows"]) if found is not None else []


def summary(at: AppTest) -> list[dict[str, Any]]:
    """The parts of the summary that the list shows in the place of rows."""
    return list(json.loads(_component(at, "memchat.rows").json)["parts"])


def sentences(at: AppTest) -> list[str]:
    """What these rows say, with the words of a search in square brackets."""
    return [
        "".join(f"[{words}]" if lit else words for words, lit in row["text"]) for row in listed(at)
    ]


def act(at: AppTest, name: str, *ids: int | str) -> None:
    """Do in the list what a person chooses there, with these memories or with ``all``."""
    chosen = "all" if ids == ("all",) else list(ids)
    states = at._tree.get_widget_states()
    state = states.widgets.add()
    state.id = _make_trigger_id(_component(at, "memchat.rows").id, "events")
    state.json_trigger_value = json.dumps([{"event": "act", "value": {"act": name, "ids": chosen}}])
    at._run(states)
    assert not at.exception
