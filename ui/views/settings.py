"""Settings: the switches, models and keys, limits, the data, and how to wipe it."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import streamlit as st

from memchat.config import Settings
from memchat.config.settings import VARIABLES
from ui import components as ui
from ui import space
from ui.settings import choices, clients, embedding, health, keys, models, transfer, wipe


def page() -> None:
    """One run."""
    desk = ui.desk()
    ui.heading("Settings", f"For {ui.literal(desk.user)}, on this machine alone.")
    ui.show_problem()
    keys.show()
    models.show()
    embedding.show()
    health.show()
    _switches()
    _limits(desk.mc.settings)
    clients.show()
    _data(desk.mc.settings.home)
    transfer.show()
    wipe.show()
    st.subheader("About", anchor=False)
    st.write(
        f"memchat {version('memchat')}, open source under Apache-2.0. Nothing is sent anywhere but "
        "to the models you choose; this page loads nothing from elsewhere. Light or dark follows "
        "your system."
    )


# Memory


def _switches() -> None:
    person, state = ui.person(), st.session_state
    user_on = person.memory_switch(all_apps=True).on
    apps = {app.name: app.memory for app in person.apps.list()}
    st.subheader("Memory", anchor=False)
    state["memory of user"] = user_on
    st.toggle("Remember things about me", key="memory of user", on_change=_user_switch)
    st.caption(
        "For all spaces. Off means off: nothing is kept, nothing is used, no chat is read. What is "
        "remembered already stays until you forget it."
    )
    state["memory of app"] = apps.get(ui.app_name(), True)
    st.toggle(
        f"Remember things in the space “{ui.literal(ui.app_name())}”",
        key="memory of app",
        on_change=_app_switch,
        disabled=not user_on,
    )
    off = space.why_off()
    st.caption(
        f"In effect here: {ui.literal(off or 'memory is on')}. A chat of its own is left out with "
        "Incognito, when it begins."
    )
    _notes_switch()
    st.page_link("views/memories.py", label="See what is remembered")


def _notes_switch() -> None:
    settings, name = ui.desk().mc.settings, "recall_notes"
    fixed = choices.fixed_by(settings, name)
    st.session_state["notes in chats"] = settings.recall_notes
    st.toggle(
        "Use my notes in chats",
        key="notes in chats",
        on_change=_set_notes,
        disabled=fixed is not None,
    )
    st.caption(
        ui.sentence(fixed)
        if fixed
        else "A reply is given the passages of your notes that fit the message, unless memory is "
        "off. Questions on the Notes page use them always."
    )


def _set_notes() -> None:
    on = "on" if st.session_state["notes in chats"] else "off"
    ui.attempt(lambda: choices.write(ui.desk(), {VARIABLES["recall_notes"]: on}))


def _user_switch() -> None:
    on = bool(st.session_state["memory of user"])
    ui.attempt(lambda: ui.person().set_memory(on, all_apps=True))


def _app_switch() -> None:
    on = bool(st.session_state["memory of app"])
    ui.attempt(lambda: ui.person().set_memory(on))


# What is in use


def _setting(what: str, value: str, note: str) -> None:
    with st.container(key=f"setting-{what.replace(' ', '-')}"):
        words = f"{what}: **{ui.literal(value)}**"
        st.markdown(f"{words}\n\n:small[:gray[{ui.literal(note)}]]")


def _limits(settings: Settings) -> None:
    st.subheader("Limits and time", anchor=False)
    rows = {
        "Memories in one prompt": (f"{settings.budget_tokens:,} tokens", "MEMCHAT_BUDGET"),
        "Where not all fit, for pinned ones": (
            f"{settings.pinned_tokens:,} tokens",
            "MEMCHAT_PINNED",
        ),
        "Where not all fit, found ones that come first": (f"{settings.top_k}", "MEMCHAT_TOP_K"),
        "Chats are read": (
            "when they end" if settings.extraction == "session" else "after each reply",
            "MEMCHAT_EXTRACTION",
        ),
        "A silent chat ends after": (f"{settings.idle_minutes} minutes", "MEMCHAT_IDLE_MINUTES"),
        "Time zone": (settings.timezone, "MEMCHAT_TIMEZONE"),
    }
    with st.container(key="limits"):
        for what, (value, variable) in rows.items():
            _setting(what, value, variable)


def _data(home: Path) -> None:
    st.subheader("Data", anchor=False)
    st.code(str(home.resolve()), language=None, wrap_lines=True)
    index = home / "mem.index"
    sizes = {
        "Database": sum(p.stat().st_size for p in home.glob("memchat.db*") if p.is_file()),
        "Index (can be made again)": sum(p.stat().st_size for p in index.rglob("*") if p.is_file()),
    }
    st.caption(" · ".join(f"{name}: {size / 1e6:,.1f} MB" for name, size in sizes.items()))


page()
