"""Another model: for one reply, or for a chat from now on."""

from __future__ import annotations

import streamlit as st

from memchat.types import Message
from ui import components as ui
from ui import message
from ui.settings import choices, models

ASKED = "model for"
"""Where a tab keeps the turn that another model is to answer, or None for the whole chat."""


def ask(turn: Message | None = None) -> None:
    """Ask which model is to answer a turn again, or from now on."""
    st.session_state[ASKED] = (turn,)
    models.look(ui.desk())


def _close() -> None:
    st.session_state.pop(ASKED, None)


@st.dialog("Which model?", on_dismiss=_close)
def show() -> None:
    """Draw the question."""
    (turn,) = st.session_state[ASKED]
    name = st.selectbox(
        "Model",
        list(dict.fromkeys([*models.CHOSEN["chat_model"][1], *models.found(ui.desk())])),
        index=None,
        key="model-name",
        accept_new_options=True,
        placeholder="Choose, or type provider/model",
    )
    ui.show_problem("model")
    st.caption("It answers this once." if turn else "It answers in this chat from now on.")
    with st.container(horizontal=True):
        sure = st.button("Use it", key="model-yes", type="primary", disabled=not name)
        back = not turn and st.button("As in Settings", key="model-back")
    if sure or back:
        if ui.attempt(lambda: _use(turn, None if back else name), at="model"):
            _close()
        st.rerun()


def _use(turn: Message | None, name: str | None) -> None:
    name = choices.model_name(name) or None
    if turn is not None:
        message.redo_with(turn, name)
    else:
        message.opened().chat.set_model(name)
