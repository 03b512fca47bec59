"""Other programs that use the memory over MCP: setting them up, who called, what each wrote, and
the tokens of those that call over HTTP."""

from __future__ import annotations

from importlib import util

import streamlit as st

from memchat.api.clients import configs
from memchat.config.tokens import Token, Tokens
from memchat.errors import MemChatError, NotFound
from memchat.types import ClientInfo, ClientMode, ClientWrite, one_line
from ui import components as ui
from ui import decisions

MODES = {"trust": "what it remembers is stored", "ask": "what it remembers waits in your Inbox"}
MAY: dict[ClientMode, str] = {
    "ask": "What it remembers waits in my Inbox",
    "trust": "What it remembers is stored",
}
NAME_LIMIT = 60
SHOWN = 50
"""Entries of the list of what a program wrote."""


def show() -> None:
    """Draw them."""
    st.write("Other programs can use your memory over MCP; what each may do, you decide.")
    if util.find_spec("mcp") is None:
        st.caption("This needs a package that is not installed: pip install 'memchat\\[mcp\\]'")
    _setup()
    _clients()
    _tokens()


def _setup() -> None:
    desk = ui.desk()
    found = {one.client: one for one in configs(desk.mc.settings.home, desk.user, ui.app_name())}
    chosen = found[st.selectbox("Set up", list(found), key="mcp-client")]
    st.caption(
        f"Put this into {ui.literal(chosen.place)}. If servers are named there already, put the "
        "part that begins with memchat beside them."
    )
    st.code(chosen.text, language=None, wrap_lines=True)
    st.caption(
        f"It is for the space “{ui.literal(ui.app_name())}”. What {ui.literal(chosen.client)} "
        'remembers is stored at once; with "--mode", "ask" at the end of args it waits in your '
        "Inbox."
    )


def _clients() -> None:
    st.markdown("**Programs that called**")
    there = ui.person().clients.list()
    for number, client in enumerate(there):
        _client(client, number)
    if not there:
        st.write("None has called in this space yet.")
    named, state = {client.name: client for client in there}, st.session_state
    if state.get("client writes") in named:
        _writes(state["client writes"])
    elif state.get("undoing client") in named:
        _undo(named[state["undoing client"]])


def _client(client: ClientInfo, number: int) -> None:
    with st.container(key=f"client-{number}", horizontal=True, vertical_alignment="center"):
        called = f"{ui.plural(client.calls, 'call')}, the last {ui.moment(client.last_call_at)}"
        lines = [
            f"**{ui.literal(client.name)}** :small[:gray[{called}; {MODES[client.mode]}]]",
            f":small[Wrote {_wrote(client)}; {client.waiting:,} waiting in the Inbox, "
            f"{client.forgotten:,} asked to forget]",
        ]
        st.markdown("\n\n".join(lines), width="stretch")
        args = ("client writes", client.name)
        st.button("What it wrote", key=f"writes-{number}", on_click=_open, args=args)
        args = ("undoing client", client.name)
        st.button(
            "Undo all that it wrote …",
            key=f"undo-all-{number}",
            on_click=_open,
            args=args,
            disabled=not (client.memories or client.notes or client.waiting),
        )


def _wrote(client: ClientInfo) -> str:
    held = ui.plural(client.memories, "memory", "memories")
    return f"{held} and {ui.plural(client.notes, 'note')}"


def _open(what: str, name: str) -> None:
    st.session_state[what] = name


def _close() -> None:
    st.session_state.update({"client writes": None, "undoing client": None})


# What one of them wrote


@st.dialog("What it wrote", width="medium", on_dismiss=_close)
def _writes(name: str) -> None:
    st.markdown(f"**{ui.literal(name)}**, the latest first")
    wrote = ui.person().clients.writes(name)
    for write in reversed(wrote[-SHOWN:]):
        st.markdown(f"{ui.moment(write.at)}: {_words(write)}")
    if len(wrote) > SHOWN:
        st.caption(f"And {len(wrote) - SHOWN:,} earlier.")
    if not wrote:
        st.write("Nothing that is still here.")


def _words(write: ClientWrite) -> str:
    """One thing that it wrote, as it is now."""
    person = ui.person()
    try:
        if write.kind == "memory":
            return f"stored {ui.named(person.memories.get(write.target_id))}"
        if write.kind == "note":
            note = person.notes.get(write.target_id)
            return f"kept the note “{ui.literal(note.title or ui.shorten(note.text))}”"
    except NotFound:
        return f"stored a {write.kind} that is no longer here"
    for status, said in (("pending", "It waits in the Inbox."), ("rejected", "You said no.")):
        for item in person.inbox.list(status=status):
            if item.id == write.target_id:
                return f"asked: {ui.literal(decisions.question(item))} {said}"
    return "asked something that you said yes to, or that was undone"


@st.dialog("Undo all that it wrote?", on_dismiss=_close)
def _undo(client: ClientInfo) -> None:
    st.write(
        f"{_wrote(client)} of {ui.literal(client.name)} are deleted for good, and its proposals "
        "leave the Inbox. What these memories had replaced holds again. What you changed, pinned, "
        "tagged or said yourself stays, and what it asked to forget is asked still."
    )
    with st.container(horizontal=True):
        sure = st.button("Delete all that it wrote", key="undo-client-yes", type="primary")
        left = st.button("Cancel", key="undo-client-no")
    if sure:
        ui.attempt(lambda: _undone(client.name))
    if sure or left:
        _close()
        st.rerun()


def _undone(name: str) -> None:
    done = ui.person().clients.undo(name)
    back = f"; {len(done.back):,} are back" if done.back else ""
    kept = f"; {len(done.kept):,} stay" if done.kept else ""
    ui.say_next(f"Deleted {ui.plural(len(done.gone), 'memory', 'memories')}{back}{kept}.")


# Tokens


def _tokens() -> None:
    state = st.session_state
    st.markdown("**Tokens for HTTP**")
    st.caption("For a program that calls memchat serve, or memchat mcp --http, on this machine.")
    try:
        found = _kept().all()
    except MemChatError as error:
        st.error(ui.sentence(str(error)))
        return
    for number, token in enumerate(found.values()):
        _token(token, number)
    with st.form("client-token", border=True, clear_on_submit=True):
        st.text_input("Name of the program", key="token-name", max_chars=NAME_LIMIT)
        modes = list(MAY)
        st.selectbox("What it may do", modes, key="token-mode", format_func=lambda m: MAY[m])
        st.form_submit_button("Make a token", key="make-token", on_click=_make_token)
    if problem := state.pop("token problem", None):
        st.error(ui.sentence(problem))
    if made := state.pop("new token", None):
        name, token = made
        st.success(f"The token of {ui.literal(name)}. Copy it now: it is not shown again.")
        st.code(token, language=None, wrap_lines=True)


def _kept() -> Tokens:
    return Tokens(ui.desk().mc.settings.home)


def _token(token: Token, number: int) -> None:
    with st.container(key=f"token-{number}", horizontal=True, vertical_alignment="center"):
        words = f"**{ui.literal(token.name)}** :small[:gray[{MAY[token.mode]}]]"
        st.markdown(words, width="stretch")
        delete = f"Delete the token of {ui.literal(token.name)}"
        st.button(delete, key=f"delete-token-{number}", on_click=_delete_token, args=(token.name,))


def _make_token() -> None:
    state = st.session_state
    try:
        name = one_line(state["token-name"], "name of the program", NAME_LIMIT)
        made = Token(name, ui.desk().user, mode=state["token-mode"])
        state["new token"] = name, _kept().add(made)
    except MemChatError as error:
        state["token problem"] = str(error)


def _delete_token(name: str) -> None:
    try:
        _kept().remove(name)
    except MemChatError as error:
        st.session_state["token problem"] = str(error)
