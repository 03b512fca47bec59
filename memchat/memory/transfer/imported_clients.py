"""Writing the programs of an export, and what each of them wrote.

How far a program is trusted is not part of that: the person says so when it is started, or in its
token. The mode of a program that is imported is the one that it had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from memchat.errors import InputError
from memchat.memory.context import Context
from memchat.memory.transfer.record_check import Values
from memchat.store import clients, messages
from memchat.types import EVERY_APP, Message, WriteKind

_TARGETS: Mapping[WriteKind, tuple[str, str]] = {
    "memory": ("memory_id", "memory"),
    "note": ("note_id", "note"),
    "inbox": ("inbox_item_id", "inbox_item"),
    "forget": ("inbox_item_id", "inbox_item"),
}
"""For each kind of writes the field that has its target, and the kind of that."""


@dataclass(slots=True)
class ImportedClients:
    """The programs of one import."""

    ctx: Context

    def find(self, app_id: int, values: Values) -> int | None:
        """The id of the program of this name, as it is here. Raises InputError for one of every
        app."""
        if values["app"] == EVERY_APP:
            raise InputError("a program calls in one app, and it names none")
        return clients.find(self.ctx.tx, app_id, values["name"])

    def check_session(self, client_id: int, app_id: int) -> None:
        """Raise InputError for a conversation in another app than the program whose words it
        holds."""
        if clients.app_id_of(self.ctx.tx, client_id) != app_id:
            raise InputError("it is in another app than its program")

    def said_here(
        self, client_id: int, turns: Sequence[Values]
    ) -> tuple[int | None, dict[int, int]]:
        """The conversation that holds what a program said here, and for the ids of these messages
        in the file those of the same messages in it."""
        session_id = clients.session_of(self.ctx.tx, client_id)
        if session_id is None:
            return None, {}
        left: defaultdict[tuple[object, ...], list[Message]] = defaultdict(list)
        for message in messages.of_session(self.ctx.tx, session_id):
            left[message.created_at, message.content].append(message)
        same = {}
        for turn in turns:
            if found := left[turn["created_at"], turn["content"]]:
                same[turn["id"]] = found.pop(0).id
        return session_id, same

    def add_write(
        self, client_id: int, values: Values, target_id: int, new_notes: Collection[int]
    ) -> bool:
        """Note what a program wrote; False where it is known. ``new_notes`` are those that are new
        here or have the text of the file; whose text another is, here, is known here."""
        tx, kind, at = self.ctx.tx, values["kind"], values["at"]
        if kind == "note":
            known_at = clients.note_written_at(tx, client_id, target_id)
            if known_at is not None and (target_id not in new_notes or known_at >= at):
                return False
            clients.record_note(tx, client_id, target_id, at)
        elif clients.has_write(tx, client_id, kind, target_id, at):
            return False
        else:
            clients.record_write(tx, client_id, kind, target_id, at)
        return True


def written(values: Values) -> tuple[str, int | None]:
    """The kind of what a program wrote, and its id in the file; None where that is gone. Raises
    InputError for a record that names none."""
    name, kind = _TARGETS[values["kind"]]
    if values[name] is None and values["kind"] != "forget":
        raise InputError("it does not say what the program wrote")
    return kind, values[name]


def check_message(values: Values) -> None:
    """Raise InputError for a message that no program can have said. Their conversations are not
    shown among the chats, so nothing is learned from them."""
    if values["role"] != "assistant" or values["memory"] or values["copied_from"] is not None:
        raise InputError("it is not what a program said, and stands in a program's conversation")
