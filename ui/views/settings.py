"""Settings in five parts: the models, the memory, the data, other programs, and the rest."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import streamlit as st

from ui import components as ui
from ui import sidebar, space
from ui.settings import choices, clients, embedding, health, history, models, tasks, transfer, wipe

BACKUP = "backup"


def page() -> None:
    """One run. Its part stands in the address, and each part is a link."""
    parts = {
        "models": models.show,
        "memory": _memory,
        "data": _data,
        "programs": clients.show,
        "advanced": _advanced,
    }
    if not ui.who().is_admin:
        parts = {"memory": _own_memory, "data": _own_data}
    part = st.query_params.get("part", "")
    part = part if part in parts else next(iter(parts))
    sidebar.address(more={"part": part})
    ui.heading("Settings")
    links = (
        sidebar.anchor(sidebar.link("settings", part=name), name.capitalize(), here=name == part)
        for name in parts
    )
    st.html(f'<nav class="memchat-parts" aria-label="Settings">{"".join(links)}</nav>')
    ui.show_problem()
    parts[part]()


# Memory


def _own_memory() -> None:
    """What one person chooses; the rest is chosen for everybody."""
    person, state = ui.person(), st.session_state
    state["memory of user"] = person.memory_switch(all_apps=True).on
    st.toggle("Remember things about me", key="memory of user", on_change=_user_switch)
    st.caption("Off means off: nothing is kept, nothing is used, and no chat is read.")
    names = [app.name for app in person.apps.list()]
    state["memory off"] = [app.name for app in person.apps.list() if not app.memory]
    st.multiselect(
        "Off for these spaces", names, key="memory off", on_change=_spaces, args=(names,)
    )
    space.instructions("Instructions for every chat", "instructions", all_apps=True)


def _memory() -> None:
    _own_memory()
    choices.field("recall_notes", st.toggle, "Use my notes in chats")
    choices.field(
        "extraction",
        st.radio,
        "When a chat is read for memories",
        options=["session", "per_message"],
        format_func={"session": "When it ends", "per_message": "After each reply"}.get,
    )
    choices.field(
        "idle_minutes", st.number_input, "Minutes until a silent chat ends", min_value=1, step=5
    )
    for name, label in (
        ("budget_tokens", "Room for memories in one message, in tokens"),
        ("pinned_tokens", "Of it for pinned ones, where not all fit"),
        ("top_k", "Memories found for the message that come first"),
    ):
        choices.field(name, st.number_input, label, min_value=0)
    st.page_link("views/memories.py", label="See what is remembered")


def _user_switch() -> None:
    on = bool(st.session_state["memory of user"])
    ui.attempt(lambda: ui.person().set_memory(on, all_apps=True))


def _spaces(names: list[str]) -> None:
    desk, off = ui.desk(), st.session_state["memory off"]
    for name in names:
        there = desk.mc.user(desk.user, app=name)
        if there.memory_switch().on == (name in off):
            ui.attempt(lambda there=there, name=name: there.set_memory(name not in off))  # type: ignore[misc]


# Data


def _data() -> None:
    home = ui.desk().mc.settings.home
    st.code(str(home.resolve()), language=None, wrap_lines=True)
    sizes = {
        "Database": sum(p.stat().st_size for p in home.glob("memchat.db*") if p.is_file()),
        "Index": sum(p.stat().st_size for p in (home / "mem.index").rglob("*") if p.is_file()),
    }
    st.caption(" · ".join(f"{name}: {size / 1e6:,.1f} MB" for name, size in sizes.items()))
    st.subheader("Backups", anchor=False)
    for number, backup in enumerate(ui.desk().mc.backups.list()):
        with st.container(key=f"backup-{number}", horizontal=True, vertical_alignment="center"):
            kind = " · encrypted" if backup.encrypted else ""
            words = f"{ui.moment(backup.made_at)} · {backup.size / 1e6:,.1f} MB{kind}"
            st.markdown(ui.literal(f"{words} · {backup.problem}" if backup.problem else words))
            delete, key = (
                f"Delete the backup of {ui.moment(backup.made_at)}",
                f"backup-delete-{number}",
            )
            st.button(delete, key=key, on_click=_delete_backup, args=(backup.file,))
    st.button("Make a backup", key="backup", on_click=_back_up, disabled=tasks.running(BACKUP))
    tasks.ended(BACKUP)
    _own_data()
    wipe.show()


def _own_data() -> None:
    history.show()
    transfer.show()


def _back_up() -> None:
    tasks.begin(BACKUP, "Making a backup", ui.desk().mc.backups.create)


def _delete_backup(file: Path) -> None:
    ui.attempt(lambda: ui.desk().mc.backups.delete([file]))


# The rest


def _advanced() -> None:
    embedding.show()
    health.show()
    st.subheader("Other", anchor=False)
    choices.field("timezone", st.text_input, "Time zone")
    choices.field(
        "context_tokens",
        st.number_input,
        "Tokens that the chat model reads, where that is not known",
        min_value=256,
        step=1024,
    )
    st.caption(
        f"memchat {version('memchat')}, open source under Apache-2.0. Nothing is sent anywhere but "
        "to the models you choose."
    )


page()
