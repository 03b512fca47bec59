"""Cutting the notes of an export into chunks, before the store is locked for the import."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from sqlalchemy import Connection

from memchat.assembly import Assembly
from memchat.errors import MemChatError
from memchat.memory.transfer import record_check
from memchat.memory.transfer.imported_notes import CutText
from memchat.notes.index import Cutter
from memchat.store import apps, notes, record_kinds
from memchat.types import Progress, Scope

_EVERY = 100
"""Notes between two reports of the progress."""


@dataclass(slots=True)
class NoteCuts:
    """The chunks of the notes of a file."""

    assembly: Assembly
    scope: Scope
    _cutter: Cutter = field(init=False)
    _cuts: dict[tuple[str, str], CutText] = field(default_factory=dict)
    """By the hash of the text, and the profile."""

    def __post_init__(self) -> None:
        space, _ = self.assembly.embedding_space()
        self._cutter = Cutter(space.embedder if space is not None else None)

    def prepare(
        self,
        records: Iterable[tuple[int, Mapping[str, Any]]],
        *,
        expected: int,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        """Cut the notes among these records that the store does not have with this text. Others
        may write meanwhile, since it takes long. ``expected`` is how many notes there are."""
        began = monotonic()
        with self.assembly.database.read() as tx:
            for _, record in records:
                if record["record"] != record_kinds.NOTE.name or not self._take(tx, record):
                    continue
                done = len(self._cuts)
                if progress is not None and done % _EVERY == 0:
                    spent = monotonic() - began
                    progress(Progress(done, max(expected, done), spent, unit="notes"))

    def cut(self, text: str, profile: str) -> CutText:
        """The chunks of a text; it is cut now if it was not prepared."""
        key = (hashlib.sha256(text.encode()).hexdigest(), profile)
        if key not in self._cuts:
            self._cuts[key] = CutText(self._cutter.parts(text, profile), self._cutter.model)
        return self._cuts[key]

    def _take(self, tx: Connection, record: Mapping[str, Any]) -> bool:
        """Cut a note that is new here; whether it was."""
        try:
            _, values = record_check.checked(record)
            app_id = apps.find(tx, Scope(self.scope.user, values["app"])).own
        except MemChatError:
            return False  # the import will refuse it, and say why
        if app_id is not None:
            known = notes.by_external_id(tx, app_id, values["type"], values["external_id"])
            if known is not None and known.text == values["content"]:
                return False
        self.cut(values["content"], values["profile"])
        return True
