"""Cutting the notes of an export into chunks, before the store is locked for the import."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from sqlalchemy import Connection

from memchat.assembly import Assembly
from memchat.errors import MemChatError
from memchat.memory.transfer import record_check
from memchat.memory.transfer.imported_notes import CutText
from memchat.memory.transfer.record_check import Values
from memchat.notes.index import Cutter
from memchat.store import apps, notes, record_kinds
from memchat.types import OnProgress, Progress, Scope

_EVERY = 100
"""Notes between two reports of the progress."""


@dataclass(slots=True)
class NoteCuts:
    """The chunks of the notes of a file."""

    assembly: Assembly
    scope: Scope
    _cutter: Cutter | None = None
    """Made before the first note is cut, and outside of transactions: it may ask a provider."""
    _cuts: dict[tuple[str, str], CutText] = field(default_factory=dict)
    """By the hash of the text, and the profile."""

    def prepare(
        self,
        records: Iterable[tuple[int, Mapping[str, Any]]],
        *,
        expected: int,
        progress: OnProgress | None,
    ) -> None:
        """Cut the notes among these records that the store does not have with this text. Others
        may write meanwhile, since it takes long. ``expected`` is how many notes there are."""
        began = monotonic()
        for _, record in records:
            if record["record"] != record_kinds.NOTE.name or not self._take(record):
                continue
            done = len(self._cuts)
            if progress is not None and done % _EVERY == 0:
                spent = monotonic() - began
                progress(Progress(done, max(expected, done), spent, unit="notes"))

    def cut(self, text: str, profile: str) -> CutText:
        """The chunks of a text; it is cut now if it was not prepared, for no certain model if none
        was prepared."""
        key = (hashlib.sha256(text.encode()).hexdigest(), profile)
        if key not in self._cuts:
            cutter = self._cutter or Cutter(None)
            self._cuts[key] = CutText(cutter.parts(text, profile), cutter.model)
        return self._cuts[key]

    def _take(self, record: Mapping[str, Any]) -> bool:
        """Cut a note that is new here; whether it was."""
        try:
            _, values = record_check.checked(record)
            with self.assembly.database.read() as tx:
                new = self._is_new(tx, values)
        except MemChatError:
            return False  # the import will refuse it, and say why
        if new:
            self._cutter = self._cutter or Cutter(self.assembly.usable_embedder())
            self.cut(values["content"], values["profile"])
        return new

    def _is_new(self, tx: Connection, values: Values) -> bool:
        app_id = apps.find(tx, Scope(self.scope.user, values["app"])).own
        if app_id is None:
            return True
        known = notes.by_external_id(tx, app_id, values["type"], values["external_id"])
        return known is None or known.text != values["content"]
