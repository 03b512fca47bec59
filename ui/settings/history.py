"""Bringing what another assistant, or memchat elsewhere, exported: a look at it, a yes, how far it
is read, and a way back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from memchat.api import User
from memchat.errors import InputError, StoreError
from memchat.types import (
    REFUSED_MOST,
    Imported,
    ImportedHistory,
    PastImport,
    Progress,
    counted_records,
)
from ui import components as ui
from ui import old_backups
from ui.settings import tasks

LOOK, TASK = "look at an export", "import"
Found = tuple[str, Imported | ImportedHistory]
"""Which file it is of, and how many chats are read; and what there is in it."""


def show() -> None:
    """Draw it."""
    person = ui.person()
    st.subheader("Bring your history", anchor=False)
    st.caption(
        "Give the file that ChatGPT, Claude, Gemini or memchat exported, as you got it. You see "
        "what is in it before anything is kept. It goes into this space. Files above 200 MB go in "
        "with memchat import, in a terminal."
    )
    upload = st.file_uploader("A file that was exported", key="upload", on_change=_look)
    label = "Newest chats that are read for memories, in the background"
    st.session_state.setdefault("newest", 200)
    st.number_input(label, min_value=0, step=50, key="newest", on_change=_look)
    looking = tasks.running(LOOK)
    busy, found = tasks.running(TASK) or looking, None
    look = tasks.ended(LOOK) if looking or upload is not None else None
    if look is not None and look.error is None and look.result[0] == _mark():
        found = look.result[1]
        _preview(found)
    off = busy or found is None
    st.button("Import", key="import", on_click=_begin, args=(person, found), disabled=off)
    done = tasks.ended(TASK)
    if done is not None and done.error is None:
        _tell(done.result)
    imports = person.imports()
    for number, one in enumerate(imports):
        _past(person, one, number)
    if any(one.waiting for one in imports):
        st.fragment(_follow, run_every=1.0)(person)


def _mark() -> str:
    """Which file was given, and how many of its chats are to be read."""
    upload = st.session_state["upload"]
    return "" if upload is None else f"{upload.file_id} {st.session_state['newest']}"


def _look() -> None:
    upload, newest = st.session_state["upload"], st.session_state["newest"]
    if upload is not None:
        given = ui.person(), upload.name, upload.getvalue(), newest, _mark()
        ui.desk().tasks.pop(LOOK, None)  # what was looked at before
        tasks.begin(LOOK, "Looking at it", partial(looked_at, *given))


def _preview(found: Imported | ImportedHistory) -> None:
    if isinstance(found, Imported):
        new = counted_records(found.added, session="chat")
        st.markdown(f"An export of memchat: {new} would be new.")
    else:
        st.markdown("\n".join(f"- {ui.literal(line)}" for line in found.told()))


@contextmanager
def _kept(name: str, content: bytes) -> Iterator[Path]:
    """What was uploaded as a file, which goes at the end; errors name it as the person does."""
    with tempfile.TemporaryDirectory(prefix="memchat-") as folder:
        file = Path(folder) / "export"
        try:
            file.write_bytes(content)
            yield file
        except InputError as error:
            raise InputError(str(error).replace(str(file), name)) from None
        except OSError as error:
            raise StoreError(f"{name} cannot be kept while it is read ({error.strerror})") from None


def looked_at(
    person: User,
    name: str,
    content: bytes,
    newest: int,
    mark: str,
    *,
    progress: Callable[[Progress], None],
) -> Found:
    """What there is in an export, and what would become of it."""
    with _kept(name, content) as file:
        found = person.import_history(file, newest=newest, dry_run=True, progress=progress)
        if found.product != "memchat":
            return mark, found
        return mark, person.import_file(file, dry_run=True, progress=progress)


def _begin(person: User, found: Imported | ImportedHistory) -> None:
    upload = st.session_state["upload"]
    if upload is not None:
        newest = None if isinstance(found, Imported) else st.session_state["newest"]
        work = partial(imported, person, upload.name, upload.getvalue(), newest)
        tasks.begin(TASK, "Importing", work)
        ui.desk().tasks.pop(LOOK, None)


def imported(
    person: User,
    name: str,
    content: bytes,
    newest: int | None,
    *,
    progress: Callable[[Progress], None],
) -> Imported | ImportedHistory:
    """Import what was uploaded; without ``newest`` as an export of memchat."""
    with _kept(name, content) as file:
        if newest is None:
            return person.import_file(file, progress=progress)
        return person.import_history(file, newest=newest, progress=progress)


def _tell(done: Any) -> None:
    st.success(f"Imported: {counted_records(done.added, session='chat')}.")
    if isinstance(done, ImportedHistory):
        if asked := done.added.get("inbox_item"):
            st.page_link(
                "views/inbox.py", label=f"{ui.plural(asked, 'saved fact')} to say yes or no to"
            )
        return
    notes = done.told(session="chat")
    if done.unread:
        notes.append(f"{ui.plural(done.unread, 'chat')} will be read for memories")
    notes += [f"line {one.line} was refused: {one.reason}" for one in done.refused[:REFUSED_MOST]]
    if len(done.refused) > REFUSED_MOST:
        notes.append(f"{len(done.refused):,} lines were refused in all")
    for note in notes:
        st.caption(ui.sentence(note))


def _past(person: User, one: PastImport, number: int) -> None:
    """An import of this space, with a way back."""
    with st.container(key=f"import-{number}", horizontal=True, vertical_alignment="center"):
        chats = ui.plural(one.conversations, "chat")
        st.markdown(ui.literal(f"{ui.moment(one.at)} · {one.product} · {chats}"))
        with st.popover("Undo", key=f"import-undo-{number}"):
            st.caption(
                "Deletes what it added and what only that taught. What you said yes to stays."
            )
            key = f"import-undone-{number}"
            st.button("Take it back", key=key, on_click=_undo, args=(person, one))


def _follow(person: User) -> None:
    """How many chats still wait to be read, until none does."""
    waiting = sum(one.waiting for one in person.imports())
    if not waiting:
        st.rerun()
    chats = ui.plural(waiting, "chat")
    st.caption(f"Being read for memories in the background: {chats} to go.")


def _undo(person: User, one: PastImport) -> None:
    def undo() -> None:
        gone = person.undo_import(one.id)
        taught = ui.plural(gone.memories, "memory", "memories")
        st.toast(f"Deleted {ui.plural(gone.sessions, 'chat')} and {taught}.")

    if ui.attempt(undo):
        ui.desk().tasks.pop(TASK, None)
        old_backups.look()
