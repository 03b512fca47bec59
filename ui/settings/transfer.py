"""What is kept of the person as a file, and back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st

from memchat.api import User
from memchat.errors import InputError, StoreError
from memchat.types import REFUSED_MOST, Imported, Progress, counted_records
from ui import components as ui
from ui.settings import tasks

TASK = "import"


def show() -> None:
    """Draw it."""
    person = ui.person()
    st.markdown("**Export and import**")
    button("Export everything", person, "export", disabled=not person.apps.list())
    st.caption("All that is kept of you in every space, unencrypted; no keys and no settings.")
    upload = st.file_uploader("A file that was exported", type=["jsonl"], key="upload")
    st.button(
        "Import",
        key="import",
        on_click=_begin,
        args=(person,),
        disabled=tasks.running(TASK) or upload is None,
    )
    task = tasks.ended(TASK)
    if task is not None and task.error is None:
        _tell(task.result)
    st.caption("What is here stays, but for notes changed elsewhere later; forgotten stays away.")


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


def _begin(person: User) -> None:
    upload = st.session_state["upload"]
    if upload is not None:
        work = partial(imported, person, upload.name, upload.getvalue())
        tasks.begin(TASK, "Importing", work)


def imported(
    person: User, name: str, content: bytes, *, progress: Callable[[Progress], None]
) -> Imported:
    """Import what was uploaded. Raises InputError for a file that is no whole export."""
    with tempfile.TemporaryDirectory(prefix="memchat-") as folder:
        file = Path(folder) / "import.jsonl"
        try:
            file.write_bytes(content)
            return person.import_file(file, progress=progress)
        except InputError as error:
            # The person knows the file by the name it has where they keep it.
            raise InputError(str(error).replace(str(file), name)) from None
        except OSError as error:
            raise StoreError(f"{name} cannot be kept while it is read ({error.strerror})") from None


def _tell(done: Imported) -> None:
    st.success(f"Imported: {counted_records(done.added, session='chat')}.")
    notes = done.told(session="chat")
    if done.unread:
        notes.append(f"{ui.plural(done.unread, 'chat')} will be read for memories")
    notes += [f"line {one.line} was refused: {one.reason}" for one in done.refused[:REFUSED_MOST]]
    if len(done.refused) > REFUSED_MOST:
        notes.append(f"{len(done.refused):,} lines were refused in all")
    for note in notes:
        st.caption(ui.sentence(note))
