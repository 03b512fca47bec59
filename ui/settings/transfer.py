"""What is kept of the person as a file."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import streamlit as st

from memchat.api import User
from ui import components as ui


def show() -> None:
    """Draw it."""
    person = ui.person()
    st.subheader("Export", anchor=False)
    button("Export everything", person, "export", disabled=not person.apps.list())
    st.caption("All that is kept of you in every space, unencrypted; no keys and no settings.")


def button(
    label: str, person: User, key: str, *, all_apps: bool = True, disabled: bool = False
) -> None:
    """What downloads all of the person, or what is kept in this space alone."""
    desk, name = ui.desk(), "memchat" if all_apps else f"memchat-{ui.app_name()}"
    st.download_button(
        label,
        partial(exported, person, all_apps=all_apps),
        file_name=f"{name}-{desk.mc.now.astimezone(desk.mc.settings.zone):%Y-%m-%d}.jsonl",
        mime="application/jsonl",
        key=key,
        on_click="ignore",
        disabled=disabled,
    )


def exported(person: User, *, all_apps: bool = True) -> bytes:
    """The export in JSON lines."""
    with tempfile.TemporaryDirectory(prefix="memchat-") as folder:
        file = Path(folder) / "export.jsonl"
        return person.export_file(file, all_apps=all_apps).file.read_bytes()
