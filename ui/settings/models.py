"""Which models answer and read ended chats, and the providers that are asked for them.

A key goes from its field into keys.toml and is not kept in the page's state. None is ever shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import streamlit as st

from memchat.config import Settings, keys
from memchat.config.keys import KeyInfo
from memchat.config.providers import (
    ANY_SERVER,
    KEYS,
    OFFLINE_CHAT,
    OFFLINE_EXTRACT,
    PROVIDERS,
    elsewhere,
    openai_url,
    provider_of,
    shown,
)
from memchat.config.settings import VARIABLES
from memchat.errors import MemChatError
from memchat.types import Progress
from ui import components as ui
from ui.desk import Desk
from ui.settings import choices, tasks

CHOSEN = {
    "chat_model": (
        "Answers",
        [*(provider.chat for provider in PROVIDERS), "ollama/llama3.2", OFFLINE_CHAT],
    ),
    "extract_model": (
        "Reads ended chats",
        [*dict.fromkeys(p.extract for p in PROVIDERS), "ollama/llama3.2", OFFLINE_EXTRACT],
    ),
}
"""What each model does, and the ones that are offered."""
BY_DEFAULT = "Chosen by the keys that are kept"
TASK = "model list"


def show() -> None:
    """Draw them."""
    desk, state = ui.desk(), st.session_state
    settings = desk.mc.settings
    listed = _listed(desk)
    with st.form("models", border=False, enter_to_submit=False):
        for setting in CHOSEN:
            _field(settings, setting, listed)
        st.form_submit_button(
            "Use these models",
            key="use-models",
            on_click=_save,
            type="primary",
            disabled=all(choices.fixed_by(settings, setting) for setting in CHOSEN),
        )
    if problem := state.pop("models problem", None):
        st.error(ui.sentence(problem))
    for line in desk.mc.address_notices():
        st.warning(ui.literal(line))
    st.subheader("Providers", anchor=False)
    kept = keys.listed(settings.home, settings.keys, settings.addresses)
    for number, key in enumerate(kept):
        _row(key, number)
    if not kept:
        st.write("No key is kept yet.")
    _add(settings)


def _field(settings: Settings, setting: str, listed: list[str]) -> None:
    what, offered = CHOSEN[setting]
    named, model = choices.named(settings, setting), getattr(settings, setting)
    if fixed := choices.fixed_by(settings, setting):
        st.markdown(f"{what}: **{ui.literal(model)}**")
        st.caption(ui.sentence(fixed))
        return
    options = list(dict.fromkeys([choices.BY_DEFAULT, *offered, *listed, named]))
    st.selectbox(
        what,
        options,
        index=options.index(named),
        format_func=lambda name: name or BY_DEFAULT,
        key=f"set-{setting}",
        accept_new_options=True,
        placeholder="Choose, or type provider/model",
    )
    st.caption(f"In use: **{ui.literal(model)}**.")
    if choices.lacking_key(settings, model) is not None:
        st.warning(f"{shown(provider_of(model))} has no key yet; enter it below.")


def _save() -> None:
    state, desk = st.session_state, ui.desk()
    settings = desk.mc.settings
    try:
        changes = {
            VARIABLES[setting]: choices.model_name(state[f"set-{setting}"]) or None
            for setting in CHOSEN
            if choices.fixed_by(settings, setting) is None
        }
        choices.write(desk, changes)
    except MemChatError as error:
        state["models problem"] = str(error)
    else:
        st.toast("Kept. The next message is answered with these models.")


# What the providers list


def look(desk: Desk) -> bool:
    """Ask the providers in use, once, which models they list just now; whether any can be asked."""
    settings = desk.mc.settings
    known = [name for name, names in KEYS.items() if settings.keys.first(names)]
    known += [ANY_SERVER, *(provider_of(getattr(settings, setting)) for setting in CHOSEN)]
    asked = [name for name in dict.fromkeys(known) if openai_url(settings.addresses, name)]
    if asked and TASK not in desk.tasks:
        tasks.begin(TASK, "Asking for the models that there are", _work(desk, asked))
    return bool(asked)


def found(desk: Desk) -> list[str]:
    """The models that they listed, once they answered."""
    task = desk.tasks.get(TASK)
    return list(task.result or ()) if task is not None and not task.running else []


def _listed(desk: Desk) -> list[str]:
    """The same; while they are asked the progress is drawn."""
    asked = look(desk)
    tasks.running(TASK)
    if asked:
        tasks.ended(TASK)
    return found(desk)


def _work(desk: Desk, asked: list[str]) -> Callable[..., list[str]]:
    def work(*, progress: Callable[[Progress], None]) -> list[str]:
        found: list[str] = []
        for provider in asked:
            with suppress(MemChatError):  # one that does not answer keeps no other from the list
                found += desk.mc.models(provider)
        return found

    return work


# Keys and addresses


def _row(key: KeyInfo, number: int) -> None:
    with st.container(key=f"key-{number}", horizontal=True, vertical_alignment="center"):
        place = "kept here" if key.origin == keys.FILE else f"set in {key.origin}"
        note = "" if key.used else ", not in use"
        at = f" at {key.address}" if key.address else ""
        name = f"**{ui.literal(shown(key.provider))}**"
        st.markdown(
            f"{name} :small[:gray[{ui.literal(f'{at} · key {place}{note}')}]]", width="stretch"
        )
        if key.origin == keys.FILE:
            remove = f"Remove the key of {shown(key.provider)}"
            args = (key.name, key.address)
            st.button(remove, key=f"remove-{key.provider}-{number}", on_click=_remove, args=args)


def _add(settings: Settings) -> None:
    state = st.session_state
    offered = [ANY_SERVER, *(name for name in KEYS if name != ANY_SERVER)]
    provider = st.selectbox(
        "Provider", offered, format_func=shown, key="key-provider", index=offered.index("openai")
    )
    st.text_input(
        "Address",
        value=elsewhere(settings.addresses, provider),
        key=f"address-{provider}",
        placeholder="http://localhost:1234/v1" if provider == ANY_SERVER else "The provider's own",
        help="Of any server that speaks as OpenAI's does.",
    )
    st.text_input("Key", type="password", key="key-value", autocomplete="new-password")
    st.button("Try and keep", key="keep-key", on_click=_keep, args=(provider,), type="primary")
    if problem := state.pop("keys problem", None):
        st.error(ui.sentence(problem))
    said, until = state.get("keys said", ("", 0.0))
    if time.monotonic() < until:  # not once alone: another run may follow before this is seen
        st.success(said)
    st.caption("A key is sent to its own address alone, and is never shown again.")


SAID_SECONDS = 20.0


def _keep(provider: str) -> None:
    state, desk = st.session_state, ui.desk()
    value, state["key-value"] = state["key-value"], ""
    before = desk.mc.settings
    try:
        found = desk.mc.connect(provider, value, state.get(f"address-{provider}") or "")
        ui.reopen()
    except MemChatError as error:
        state["keys problem"] = str(error)
        return
    after, name = desk.mc.settings, ui.literal(shown(provider))
    said = f"{name} is kept" + (f" and offers {ui.plural(len(found), 'model')}." if found else ".")
    if after.chat_model != before.chat_model:
        said += f" From now on {ui.literal(after.chat_model)} answers."
    elif after.keys.origin(KEYS[provider][0]) == keys.ENVIRONMENT:
        said += " The key of the environment comes before it."
    state["keys said"] = said, time.monotonic() + SAID_SECONDS


def _remove(name: str, address: str) -> None:
    state, desk = st.session_state, ui.desk()
    try:
        keys.remove_key(desk.mc.settings.home, name, address)
        ui.reopen()
    except MemChatError as error:
        state["keys problem"] = str(error)
    else:
        state["keys said"] = "The key is removed.", time.monotonic() + SAID_SECONDS
