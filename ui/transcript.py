"""The turns of a chat: what was said, the replies, and what can be done with each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from memchat.types import Message
from ui import components as ui
from ui import learned, live, long_message, memory_reply, message, model_choice, parts, sidebar, why
from ui.desk import Talk
from ui.parts import Part

SHOWN = 40
"""Turns drawn at once; earlier ones on request, so that a long conversation stays quick."""


def show(talk: Talk | None, turns: list[Message], *, answering: bool, incognito: bool) -> None:
    """Draw the last turns, what went wrong with the latest, and the box to write in."""
    state = st.session_state
    app, number = ui.app_name(), state["here"]
    desk = ui.desk()
    find = partial(desk.find, app, number) if number is not None else lambda: talk
    parts.clear()
    parts.acts("say", message.send)
    parts.acts("model", model_choice.ask)
    parts.acts("unedit", lambda: state.update(editing=None))
    mark = state.get("mark")
    first, end = _window(turns, mark)
    used = learnt = versions = dict[int, Any]()
    if number is not None and turns:
        sessions = ui.person().sessions
        used, learnt = dict(sessions.used(number)), dict(sessions.learned(number))
        versions = dict(sessions.versions(number))
    asked = max((n for n, turn in enumerate(turns) if turn.role == "user"), default=-1)
    drawn = [
        _said(talk, turn, n, last=n == asked)
        if turn.role == "user"
        else _answer(talk, turn, n, last=n == len(turns) - 1 and not answering)
        for n, turn in enumerate(turns[first:end], first)
    ]
    for n, one in enumerate(drawn, first):
        turn, before = turns[n], turns[n - 1] if n else None
        one["marked"] = mark is not None and turn.id == mark
        if turn.id in versions:
            ways = _versions(turn, versions[turn.id], answering=answering)
            if turn.role == "user":
                one["versions"] = ways
            else:
                one["under"][0]["row"] += (ways,)
        if turn.role == "assistant" and before is not None:
            taught = learnt.get(before.id, ())
            one["under"] += learned.under(used.get(turn.id, ()), before.id, taught)
        elif turn.role == "user" and (n + 1 == len(turns) or turns[n + 1].role == "user"):
            one["under"] += learned.under((), turn.id, learnt.get(turn.id, ()))
    top, below = list[Part](), list[Part]()
    if first:
        words, more = f"Show earlier messages ({first:,} more)", end - first + SHOWN
        top.append(parts.button(words, "earlier", lambda: state.update(shown=more)))
    if end < len(turns):
        words = f"Show the latest messages ({len(turns) - end:,} more)"
        below.append(parts.button(words, "latest", lambda: state.update(mark=None, shown=None)))
    elif turns and not answering:
        below += _trouble(talk, turns, asked)
    said = sidebar.here()
    model = talk.chat.model if talk else desk.mc.settings.chat_model
    app += ui.who().mark
    chat = "incognito" if incognito else f"{app}/{(said.session_id if said else number) or 'new'}"
    parts.show(
        {
            "chat": chat,
            "turns": drawn,
            "top": top,
            "below": below,
            "answering": answering and end == len(turns),
            "version": live.version(talk, answering),
            "live": live.show(state["tab"], find),
            "unsent": state.pop("unsent", None),
            "model": "stand-in" if model.startswith("offline/") else model,
        }
    )


def _window(turns: list[Message], mark: int | None) -> tuple[int, int]:
    """The first turn that is drawn, and the one behind the last: the latest, or those around the
    message that was looked for."""
    shown = st.session_state.get("shown") or SHOWN
    end = len(turns)
    place = next((n for n, turn in enumerate(turns) if turn.id == mark), end)
    if place < end - shown:
        end = place + SHOWN // 2
    return max(end - shown, 0), end


def _said(talk: Talk | None, turn: Message, n: int, *, last: bool) -> dict[str, Any]:
    """What the person said; ``last``: nothing of theirs came after it."""
    edits, words, error = st.session_state.get("editing") or (None, None, None)
    text, more = long_message.shown(turn, n)
    hint = "The old words stay as another version; what only they taught is taken back."
    if talk is not None and talk.chat.incognito:
        hint = "The old words and all that followed them are lost."
    elif not last:
        hint = "What followed stays with the old words; what only they taught is taken back."
    key = f"resend-{n}"
    parts.acts(key, partial(message.say_anew, n, turn, last))
    parts.acts(f"edit-{n}", partial(message.edit, n, turn.content))
    said: dict[str, Any] = {
        "key": f"said-{n}",
        "who": "you",
        "text": text,
        "hint": hint,
        "resend": key,
    }
    said["more"] = more
    said["edit"] = f"edit-{n}" if text != turn.content else None
    files = (_file(turn, n, at) for at in range(len(turn.attachments)))
    said["under"] = [*files, *long_message.ask(turn), *long_message.keep(turn)]
    if edits == n:
        said |= {"editing": words, "error": error and ui.as_sentence(error)}
    return said


def _file(turn: Message, n: int, at: int) -> Part:
    """A file that went with a message, and a way to keep it."""
    file = turn.attachments[at]
    told = parts.note(f"Attached: {file.name} ({file.size})")
    if not file.text:
        return told
    words, key = "Keep as a note", f"keep-file-{n}-{at}"
    keep = parts.button(words, key, message.keep_file, file, plain=True, names=file.name)
    return parts.row(told, keep, key=f"file-{n}-{at}")


def _versions(turn: Message, every: Sequence[int], *, answering: bool) -> Part:
    """Which version of a turn is shown, between the ways to the one before and the one after."""
    n = every.index(turn.id)
    ways = [
        parts.button(
            sign,
            f"version-{side}-{turn.id}",
            message.show_version,
            turn.session_id,
            every[(n + step) % len(every)],
            off=answering or not 0 <= n + step < len(every),
            plain=True,
            names=f"{side} version",
        )
        for sign, side, step in (("‹", "earlier", -1), ("›", "later", 1))
    ]
    place = parts.note(f"{n + 1} / {len(every)}")
    return parts.row(ways[0], place, ways[1], key=f"versions-{every[0]}")


def _answer(talk: Talk | None, turn: Message, n: int, *, last: bool) -> dict[str, Any]:
    body = memory_reply.draw(turn)
    reply = talk.turn.reply if last and talk is not None and talk.turn is not None else None
    if reply is not None and (reply.message_id or 0) != turn.id:
        reply = None
    if turn.status == "partial":
        body.append(parts.note((reply.cut if reply else None) or "Stopped before its end."))
    if reply is not None and reply.dropped_turns:
        left = ui.plural(reply.dropped_turns, "turn")
        body.append(parts.note(f"The model was sent this chat without its first {left}."))
    if last and talk is not None and talk.chat.question is not None:
        body.append(memory_reply.answers(talk.chat.question, turn))
    under: list[Part] = [{"copy": turn.content.strip()}]
    if turn.id:
        under.append(parts.button("Why this answer", f"why-{n}", why.ask, turn.id, plain=True))
    if last and turn.status == "partial":
        under.append(parts.button("Continue", f"go-on-{n}", message.go_on, turn, plain=True))
    if last:
        under.append(parts.button("Try again", f"redo-{n}", message.redo, turn, plain=True))
        ask = model_choice.ask
        under.append(
            parts.button("with …", f"with-{n}", ask, turn, plain=True, names="another model")
        )
    return {"key": f"answer-{n}", "who": "model", "body": body, "under": [parts.row(*under)]}


def _trouble(talk: Talk | None, turns: list[Message], asked: int) -> list[Part]:
    """A reply that failed, or a message that never got one."""
    turn = talk.turn if talk is not None else None
    error = turn.error if turn is not None else None
    if turn is not None and error is not None and turn.instead is not None:
        # The old turn stands as it did; the new words wait in its place for another try.
        st.session_state["editing"], turn.instead = (asked, turn.instead, None), None
        st.rerun()
    told: list[Part] = [{"error": ui.as_sentence(error)}] if error is not None else []
    if error is not None:
        told.append(parts.button("Open Settings", "mend", _lead, plain=True))
    if turns[-1].role == "user":
        told += [] if told else [parts.note("This message has no reply.")]
        told.append(parts.button("Try again", "retry", message.redo, turns[-1]))
    return told


def _lead() -> None:
    st.session_state["to page"] = "views/settings.py"
