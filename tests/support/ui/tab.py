"""A tab of the app, run by Streamlit's own test runner: what it says, and what is done in it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from html import unescape
from typing import Any

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.testing.v1 import AppTest

from ui import components, launch
from ui.desk import Desk

ANA = {"user": "ana", "app": "default"}


def app(page: str | None = None, **address: str) -> AppTest:
    """A new tab, on the chat page or another, once it is drawn."""
    at = AppTest.from_file(str(launch.SCRIPT), default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = value
    at.run()
    if page is not None:
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


def text(at: AppTest) -> str:
    """All that the page says."""
    kinds = (at.title, at.subheader, at.markdown, at.caption, at.text, at.error, at.info)
    said = [str(e.value) for kind in (*kinds, at.warning, at.success) for e in kind]
    if at.get("bidi_component"):
        said += [
            f"{words} {row['about']}" for words, row in zip(sentences(at), listed(at), strict=True)
        ]
    said += [_words(e.proto.body) for e in at.get("html") if "<style>" not in e.proto.body]
    return "\n".join(said).replace("\\", "")


def _words(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def say(at: AppTest, words: str) -> None:
    """Write a message and wait for its reply."""
    before = len(buttons(at, "why-"))
    at.chat_input[0].set_value(words).run()
    until(at, lambda: len(buttons(at, "why-")) > before)


def lines(at: AppTest) -> list[str]:
    """What the parts of the page say that can be unfolded, while they are folded."""
    return [part.label.replace("\\", "") for part in at.expander]


def buttons(at: AppTest, start: str) -> list[str]:
    """The keys of the buttons that begin like this."""
    return [b.key for b in at.button if b.key and b.key.startswith(start)]


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
    at.button(key=key).click().run()
    assert not at.exception


def _list(at: AppTest) -> Any:
    return next(
        e.proto for e in at.get("bidi_component") if e.proto.component_name == "memchat.rows"
    )


def listed(at: AppTest) -> list[dict[str, Any]]:
    """The rows that the list of memories is given."""
    found: list[dict[str, Any]] = json.loads(_list(at).json)["rows"]
    return found


def parts(at: AppTest) -> list[dict[str, Any]]:
    """The parts of the summary that the list shows in the place of rows."""
    found: list[dict[str, Any]] = json.loads(_list(at).json)["parts"]
    return found


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
    state.id = _make_trigger_id(_list(at).id, "events")
    state.json_trigger_value = json.dumps([{"event": "act", "value": {"act": name, "ids": chosen}}])
    at._run(states)
    assert not at.exception
