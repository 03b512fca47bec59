"""The models that answer and that read ended chats: which are in use, and choosing others."""

from __future__ import annotations

import streamlit as st

from memchat.config import Settings
from memchat.config.providers import OFFLINE_CHAT, OFFLINE_EXTRACT, PROVIDERS
from memchat.config.settings import VARIABLES
from memchat.errors import MemChatError
from ui import components as ui
from ui.settings import choices

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
BY_DEFAULT = "Chosen by the keys that are set"


def show() -> None:
    """Draw them."""
    settings = ui.desk().mc.settings
    st.subheader("Models", anchor=False)
    with st.form("models", border=False, enter_to_submit=False):
        for setting in CHOSEN:
            _field(settings, setting)
        st.form_submit_button(
            "Use these models",
            key="use-models",
            on_click=_save,
            type="primary",
            disabled=all(choices.fixed_by(settings, setting) for setting in CHOSEN),
        )
    problem = st.session_state.pop("models problem", None)
    if problem:
        st.error(ui.sentence(problem))
    for line in ui.desk().mc.address_notices():
        st.warning(ui.literal(line))
    st.caption(
        "Kept in settings.toml in the data folder. They are used from the next message on; an "
        "incognito chat that is open keeps the models it began with, and other memchat programs "
        "take them at their next start."
    )


def _field(settings: Settings, setting: str) -> None:
    what, offered = CHOSEN[setting]
    named, model = choices.named(settings, setting), getattr(settings, setting)
    if fixed := choices.fixed_by(settings, setting):
        st.markdown(f"{what}: **{ui.literal(model)}**")
        st.caption(ui.sentence(fixed))
        return
    options = list(dict.fromkeys([choices.BY_DEFAULT, *offered, named]))
    st.selectbox(
        what,
        options,
        index=options.index(named),
        format_func=lambda name: name or BY_DEFAULT,
        key=f"set-{setting}",
        accept_new_options=True,
        placeholder="Choose, or type provider/model",
    )
    why = "chosen here" if named else settings.why.get(setting, "the default")
    st.caption(f"In use: **{ui.literal(model)}**. {ui.sentence(why)}")
    lacking = choices.lacking_key(settings, model)
    if lacking is not None:
        st.warning(f"{ui.literal(lacking)} is not set; enter it under Keys.")


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
