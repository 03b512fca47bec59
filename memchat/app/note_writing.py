"""Keeping notes: checked, cut, written, and their vectors made. Every verb that keeps a note does
it through here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlalchemy import Connection

from memchat.app.arguments import MOST, check_choice
from memchat.assembly import Assembly
from memchat.errors import InputError, MemChatError
from memchat.memory.context import Context
from memchat.types import ExternalId, NewNote, clean_text, one_line
from memchat.types.note import EARLIEST, ID_LIMIT, LATEST, PROFILES, TITLE_LIMIT, TYPE_LIMIT

if TYPE_CHECKING:
    from memchat.jobs.embedding_run import EmbeddingResult
    from memchat.notes.index import Prepared
    from memchat.providers import Embedder

log = logging.getLogger(__name__)


class NoteWriting:
    """Keeps notes of one scope. ``context`` opens a scope in a transaction, and makes its rows."""

    def __init__(
        self, assembly: Assembly, user: str, context: Callable[[Connection], Context]
    ) -> None:
        self._assembly = assembly
        self._user = user
        self._context = context

    def prepare(self, new: NewNote) -> Prepared:
        """Check a note and cut it. Raises InputError for one that cannot be kept.

        Where the embedding model cannot be used it is cut without: its job fits it to the model.
        """
        from memchat.notes.index import prepare

        new = checked(new)
        try:
            return prepare(new, self.embedder())
        except MemChatError as error:
            if self._assembly.parts().worker.news.is_new(str(error)):
                log.warning("notes are cut without the embedding model: %s", error)
            return prepare(new, None)

    def write(
        self,
        prepared: Sequence[Prepared],
        *,
        only_if: Callable[[Connection], bool] = lambda _: True,
    ) -> list[int]:
        """Store notes in one transaction; their ids, and none where ``only_if`` is false in it. The
        words of texts that they replace leave the file with the next ``scrub``."""
        with self._assembly.database.write() as tx:
            return self.write_in(tx, prepared) if only_if(tx) else []

    def write_in(self, tx: Connection, prepared: Sequence[Prepared]) -> list[int]:
        """The same in a transaction of the caller."""
        from memchat.memory.forgetting import purge
        from memchat.notes import index

        ctx, ids, reworded = self._context(tx), [], False
        app_id = ctx.scope.own
        assert app_id is not None
        for one in prepared:
            note_id, other_text = index.write(ctx, app_id, one)
            ids.append(note_id)
            reworded = reworded or other_text
        if reworded:
            self._assembly.drop_vectors(tx, [app_id])
            purge.request_scrub(tx)
        return ids

    def scrub(self) -> None:
        """Remove the words of replaced texts from the bytes of the file."""
        from memchat.memory.forgetting import purge

        purge.scrub(self._assembly.database)

    def embed(
        self,
        note_id: int | None = None,
        on_progress: Callable[[EmbeddingResult], None] = lambda _: None,
    ) -> None:
        """Make the vectors of a note, or of all of the person's that are due."""
        worker = self._assembly.parts().worker
        worker.run(user=self._user, kinds=("note",), target_id=note_id, on_progress=on_progress)

    def embedder(self) -> Embedder | None:
        """What makes the vectors of this store."""
        space, _ = self._assembly.embedding_space()
        return None if space is None else space.embedder


def checked(new: NewNote) -> NewNote:
    """A note as it is stored. Raises InputError for one that cannot be kept."""
    from memchat.notes.index import has_words

    check_choice(new.profile, PROFILES, "profile")
    text = clean_text(new.text)
    if not has_words(text):
        raise InputError("the text has no words; give some text")
    for number, name in ((new.pair_id, "pair_id"), (new.parent_id, "parent_id")):
        _check_number(number, name)
    return replace(
        new,
        text=text,
        title=None if new.title is None else one_line(new.title, "title", TITLE_LIMIT),
        type=one_line(new.type, "type", TYPE_LIMIT),
        external_id=uuid4().hex if new.external_id is None else _external_id(new.external_id),
        created_at=_written_at(new.created_at),
    )


def bound(at: datetime | None) -> datetime | None:
    """An end of a period, not beyond the times that notes can have. Raises InputError for a time
    without a zone."""
    return None if at is None else min(max(_aware(at), EARLIEST), LATEST)


def _written_at(at: datetime | None) -> datetime | None:
    if at is not None and not EARLIEST <= _aware(at) <= LATEST:
        raise InputError(
            f"a note cannot be of {at.date()}; give a day from {EARLIEST.date()} to {LATEST.date()}"
        )
    return at


def _aware(at: datetime) -> datetime:
    if at.utcoffset() is None:
        raise InputError(f"the time {at.isoformat()} has no zone; give an aware one")
    return at


def _external_id(given: object) -> ExternalId:
    if isinstance(given, str):
        cleaned = clean_text(given)
        if cleaned and len(cleaned) <= ID_LIMIT:
            return cleaned
    elif isinstance(given, int) and not isinstance(given, bool) and abs(given) < 2**63:
        return given
    raise InputError(f"that is no external id; give a number or 1 to {ID_LIMIT} characters")


def _check_number(given: object, name: str) -> None:
    fits = isinstance(given, int) and not isinstance(given, bool) and abs(given) <= MOST
    if given is not None and not fits:
        raise InputError(f"the {name} {given!r} cannot be; give a whole number up to {MOST}")
