"""What a program may do with a person's memory over MCP."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from time import monotonic
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.app.arguments import check_choice
from memchat.app.room import Room
from memchat.assembly import Assembly
from memchat.errors import InputError, StoreError
from memchat.store import apps, chunks, clients, notes, use_counts
from memchat.types import (
    CLIENT_MODES,
    ClientMode,
    Note,
    NoteHit,
    OnProgress,
    Progress,
    Recalled,
    Scope,
    SessionQuote,
    Written,
    one_line,
)

if TYPE_CHECKING:
    from memchat.app.notes import Notes
    from memchat.memory.facts.client_facts import ClientFacts

log = logging.getLogger(__name__)

NAME_LIMIT = 60


def changed_by_hand(note: Note, written_at: datetime | None) -> bool:
    """Whether a note was changed after the program last stored it."""
    changed = note.updated_at
    return changed is not None and written_at is not None and changed > written_at


class ClientAccess(Room):
    """One program, by the name and the mode that the person gave it.

    ``trust`` lets it store; with ``ask`` what it remembers waits in the inbox. Where memory is off,
    its verbs raise InputError. Each call is counted, and what it writes is listed by
    ``ana.clients``, which can undo it.
    """

    def __init__(
        self,
        assembly: Assembly,
        scope: Scope,
        notes: Notes,
        catch_up: Callable[[], None],
        name: str,
        mode: str,
    ) -> None:
        super().__init__(assembly, scope)
        check_choice(mode, CLIENT_MODES, "mode")
        self._notes = notes
        self._catch_up = catch_up
        self.name = one_line(name, "name of the client", NAME_LIMIT)
        self.mode: ClientMode = "trust" if mode == "trust" else "ask"

    def remember(
        self,
        type: str,
        key: str,
        value: str,
        *,
        expires_at: date | None = None,
        starts_at: date | None = None,
        quote: SessionQuote | None = None,
    ) -> Written:
        """Remember a fact, as the mode allows. With a ``quote`` of the person from a conversation
        of this scope, the checks that conversations go through decide instead of the mode.

        Raises InputError for what cannot be kept, SecretError for what looks like a secret,
        NotFound for a quote of a conversation outside the scope.
        """
        with self._database.write() as tx:
            done = self._facts(tx).remember(type, key, value, expires_at, starts_at, quote)
        self._catch_up()
        return done

    def update(self, memory_id: int, value: str, *, expires_at: date | None = None) -> Written:
        """Replace the value of a memory, as ``remember``. Raises NotFound outside the scope."""
        with self._database.write() as tx:
            facts = self._facts(tx)
            done = facts.change(self._found_memory(tx, memory_id), value, expires_at)
        self._catch_up()
        return done

    def forget(self, memory_id: int) -> Written:
        """Put a memory out of use; the person is asked whether it is forgotten for good. Raises
        NotFound outside the scope."""
        with self._database.write() as tx:
            facts = self._facts(tx)
            done, stale = facts.forget(self._found_memory(tx, memory_id))
            self._assembly.drop_vectors(tx, stale)
        return done

    def promote(self, memory_id: int) -> Written:
        """Ask the person whether a memory is kept for all their apps. Raises NotFound outside the
        scope."""
        with self._database.write() as tx:
            facts = self._facts(tx)
            return facts.promote(self._found_memory(tx, memory_id))

    def require_memory(self) -> None:
        """Raise InputError where memory is off."""
        with self._database.read() as tx:
            self._require_memory(tx)

    def count_recall(self, found: Recalled) -> None:
        """Count a search and the memories that it gave to the program, as ``called`` counts."""
        ids = [hit.id for hit in found.hits if hit.kind == "memory"]
        self._count(lambda tx: use_counts.add(tx, matched=ids, read=ids))

    def called(self) -> None:
        """Count a call that only reads. It waits for no writer and for no disk: where another
        process is writing just then, the call is not counted."""
        self._count(lambda _: None)

    def index_memo(
        self,
        memo_id: str,
        transcript: str,
        created_at: datetime,
        title: str | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> Note | None:
        """Keep a note under the program's own id; the same id again replaces it, unless the person
        changed it since. None for a text without words. ``on_progress`` counts the parts that have
        a vector; where it raises, the note is kept and a worker makes the rest. Raises InputError
        for what cannot be kept."""
        external_id = f"{self._prefix}{one_line(memo_id, 'memoId', 200)}"
        with self._database.write() as tx:
            client_id = self._called(tx)
            self._check_unchanged(tx, client_id, external_id)
        note = self._notes.add(
            transcript, title=title, external_id=external_id, created_at=created_at, wait=False
        )
        if note is None:
            return None
        with self._database.write() as tx:
            clients.record_note(tx, client_id, note.id, self._clock())
        self._make_vectors(note, on_progress)
        return self._notes.get(note.id)

    def with_masked_texts(self, hits: Iterable[NoteHit]) -> Sequence[NoteHit]:
        """Passages of notes with their texts as a model may read them: without what looks like a
        secret."""
        found = [*hits]
        with self._database.read() as tx:
            texts = chunks.masked_texts(tx, [hit.chunk_id for hit in found])
        return [replace(hit, text=texts[hit.chunk_id]) for hit in found if hit.chunk_id in texts]

    def _count(self, more: Callable[[Connection], None]) -> None:
        try:
            with self._database.write_if_free() as tx:
                self._called(tx)
                more(tx)
        except StoreError as error:
            log.debug("a call of a program was not counted: %s", error)

    def _make_vectors(self, note: Note, on_progress: OnProgress | None) -> None:
        began = monotonic()

        def report(made: int) -> None:
            if on_progress is not None:
                done = min(made, note.chunks)  # a chunk may be cut anew for the model
                on_progress(Progress(done, note.chunks, monotonic() - began))

        report(0)
        self._assembly.parts().worker.run(
            user=self._scope.user,
            kinds=("note",),
            target_id=note.id,
            on_progress=lambda result: report(result.embedded),
        )

    def memo_id(self, external_id: object) -> str:
        """The id of a note as this program gave it; of another's note the id in the store."""
        return str(external_id).removeprefix(self._prefix)

    @property
    def _prefix(self) -> str:
        """What the ids of its notes begin with, and those of no other program's."""
        return f"{self.name.replace('%', '%25').replace('/', '%2F')}/"

    def _check_unchanged(self, tx: Connection, client_id: int, external_id: str) -> None:
        own = self._ids(tx).own
        note = None if own is None else notes.by_external_id(tx, own, "memo", external_id)
        if note is None:
            return
        if changed_by_hand(note, clients.note_written_at(tx, client_id, note.id)):
            raise InputError("the person changed this note; keep yours under another memoId")

    def _facts(self, tx: Connection) -> ClientFacts:
        from memchat.memory.facts.client_facts import ClientFacts

        self._require_memory(tx)
        self._called(tx)
        ctx = self._context(tx, ensure=True)
        prompts, embeds = self._assembly.prompts, self._assembly.embeds()
        return ClientFacts(ctx, self._settings, prompts, self.name, self.mode, embeds)

    def _require_memory(self, tx: Connection) -> None:
        switch = apps.memory_switch(tx, self._scope)
        if not switch.on:
            raise InputError(switch.reason)

    def _called(self, tx: Connection) -> int:
        ctx = self._context(tx, ensure=True)
        assert ctx.scope.own is not None
        return clients.record_call(tx, ctx.scope.own, self.name, self.mode, ctx.now)
