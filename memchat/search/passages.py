"""The table of passages: one row for each fact, turn, summary and chunk of a note to be found.

Each passage has one keyword row, the key of its vector, and its changes in one log, which the
indexes follow. Whoever writes a fact, turn, summary or chunk puts its passage here. A passage that
lacks its vector is work: of the queue (``memchat.db.jobs``), or of a change of service.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from memchat.db import Tx
from memchat.db import schema as t
from memchat.db.records import among, from_row, upsert
from memchat.search import embeddings, keywords
from memchat.search.keywords import KINDS, Kind, passage_id
from memchat.types import EmbeddingState, EmbeddingStatus

OWNERS: Mapping[Kind, str] = {
    "fact": "memory",
    "turn": "message",
    "summary": "session",
    "chunk": "chunk",
}
"""What a passage is part of, in the words of the screens."""
_p, _e, _c, _n = t.passages.c, t.embeddings.c, t.chunks.c, t.sources.c
_IS, _OF_APP = _p.id == sa.bindparam("i"), _p.app_id == sa.bindparam("app")
_AMONG = among(_p.id, "ids")
_HASHED = among(_p.hash, "hashes")
_part = sa.func.substr(_n.content, _c.offset + 1, _c.size, type_=sa.Text)
_with_notes = t.passages.outerjoin(
    t.chunks, sa.and_(_p.kind == "chunk", _c.id == _p.owner_id)
).outerjoin(t.sources, _n.id == _c.source_id)
_text = sa.func.coalesce(_p.text, _c.masked, _part)
"""What is embedded."""
_wants = sa.and_(_p.searched == 1, _p.hash.is_not(None))
_vector = sa.and_(_e.hash == _p.hash, _e.service_id == sa.bindparam("service"))
_lacks = sa.and_(_wants, ~sa.exists().where(_vector))
_unused = ~sa.exists().where(_p.hash == _e.hash)
_HELD = sa.select(_p.app_id, _p.hash, _p.status).where(_IS)
_TOLD = ("app_id", "text", "hash", "reply", "searched")
_PUT = upsert(t.passages, *_TOLD)
_PUT_ANEW = upsert(
    t.passages,
    *(*_TOLD, "status", "run_at", "created_at", "processed_at", "attempts", "error_message"),
    *("lease_owner", "lease_until"),
)
_HIDE = sa.update(t.passages).values(searched=0, status=None, lease_owner=None)
_HIDE = _HIDE.where(_IS).returning(_p.app_id, _p.id)
_TEXT_OF = sa.select(_p.text).where(_IS)
_TAKE = sa.delete(t.passages).where(_AMONG).returning(_p.app_id, _p.id, _p.hash)
_LOG = sa.insert(t.changes)
_WANTED = sa.select(_p.hash).where(_HASHED).distinct()
_DONE = (
    sa.update(t.passages)
    .values(status=0, error_message=None, run_at=None, created_at=None)
    .values(lease_owner=None, lease_until=None)
    .where(_HASHED, _p.searched == 1, _p.status.is_distinct_from(0))
    .returning(_p.id)
)
_LOG_DONE = _LOG.from_select(["app_id", "passage_id"], sa.select(_p.app_id, _p.id).where(_HASHED))
_REMOVE_UNUSED = sa.delete(t.embeddings).where(among(_e.hash, "hashes"), _unused)
_LATEST = sa.select(sa.func.max(t.changes.c.id)).where(t.changes.c.app_id == sa.bindparam("app"))
_changed = t.changes.c.passage_id
_SINCE = sa.select(_changed.bitwise_rshift(2)).distinct()
_SINCE = _SINCE.where(
    t.changes.c.app_id == sa.bindparam("app"),
    t.changes.c.id > sa.bindparam("change"),
    _changed.bitwise_and(3) == sa.bindparam("part"),
)
_HASHES = sa.select(_p.owner_id, _p.hash).where(_AMONG, _p.hash.is_not(None))
_TEXTS = sa.select(_p.kind, _p.owner_id.label("id"), _p.hash, _text.label("text"))
_TEXTS = _TEXTS.select_from(_with_notes)
_GIVEN = _TEXTS.where(_AMONG, _wants)
_NEXT = _TEXTS.where(_lacks, _p.id > sa.bindparam("i")).order_by(_p.id)
_TO_EMBED = sa.select(_p.id, _p.hash, sa.case((_lacks, _text))).select_from(_with_notes)
_TO_EMBED = _TO_EMBED.where(_AMONG)


@dataclass(frozen=True, slots=True)
class Passage:
    """What search is to find of one owner."""

    kind: Kind
    owner_id: int
    app_id: int
    words: str
    """By what it is found."""
    text: str | None = None
    """What is embedded; None where the owner's row holds it."""
    hash: str | None = None
    """The key of its vector; None where it is to have none yet."""
    context: str = ""
    """The words around a turn, which count for less."""
    reply: bool = False
    searched: bool = True

    @property
    def id(self) -> int:
        return int(passage_id(self.kind, self.owner_id))


@dataclass(frozen=True, slots=True)
class UnembeddedText:
    """A passage without a vector, as it is embedded."""

    kind: Kind
    id: int
    """Of the owner."""
    hash: str
    text: str


def text_hash(text: str) -> str:
    """sha256 of a text in hex, under which its vector is stored: equal texts are embedded once."""
    return hashlib.sha256(text.encode()).hexdigest()


def put(tx: Tx, passage: Passage) -> None:
    """Write a passage, or replace that of the same owner, with its keyword row, and queue it where
    it is to have a vector. A vector that no text has any more is deleted."""
    i, app_id, hashed = passage.id, passage.app_id, passage.hash
    found = tx.rows(_HELD, i=i)
    home, before, stood = found[0] if found else (app_id, None, None)
    status = _status_of(tx, passage.kind, hashed) if hashed and passage.searched else None
    waits = stood == status == -1 and before == hashed  # it may be in hand
    at = tx.now if status == -1 else None
    shown = {"reply": int(passage.reply), "searched": int(passage.searched)}
    new = {"id": i, "app_id": app_id, "text": passage.text, "hash": hashed, **shown}
    tx.rows(_PUT if waits else _PUT_ANEW, **new, status=status, run_at=at, created_at=at)
    if found:
        keywords.remove(tx, [i])
    if passage.searched:
        keywords.write(tx, i, app_id, passage.words, passage.context, reply=passage.reply)
    if home != app_id:
        _record(tx, [(home, i)])
    if before or hashed:  # else no index has read it, and none has to
        _record(tx, [(app_id, i)])
    if before not in (None, hashed):
        remove_unused(tx, [before])


def _status_of(tx: Tx, kind: Kind, hashed: str) -> int | None:
    """How a passage with this text stands that was just written. Notes wait for a service even
    where there is none yet, and are shown so."""
    in_use = embeddings.in_use(tx)
    if in_use is not None and embeddings.exists(tx, in_use, hashed):
        return 0
    return -1 if kind == "chunk" or wants_vectors(tx) else None


def wants_vectors(tx: Tx) -> bool:
    """Whether what is written is queued: a service is in use, or will be."""
    return embeddings.in_use(tx) is not None or tx.embeds()


def put_text(
    tx: Tx, kind: Kind, owner_id: int, app_id: int, text: str, *, searched: bool = True
) -> None:
    """``put`` for what is found by the words that are embedded."""
    hashed = text_hash(text)
    put(tx, Passage(kind, owner_id, app_id, text, text, hashed, searched=searched))


def hide(tx: Tx, fact_id: int) -> None:
    """Have search find a fact no longer. It keeps its text and vector."""
    i = passage_id("fact", fact_id)
    rows = tx.rows(_HIDE, i=i)
    keywords.remove(tx, [i])
    _record(tx, rows)


def show(tx: Tx, fact_id: int, app_id: int) -> None:
    """Have search find a fact again, in this scope row."""
    put_text(tx, "fact", fact_id, app_id, text_of(tx, fact_id))


def text_of(tx: Tx, fact_id: int) -> str:
    """The text under which a fact is embedded and found."""
    return str(tx.value(_TEXT_OF, i=passage_id("fact", fact_id)))


def take(tx: Tx, kind: Kind, owner_ids: Iterable[int]) -> list[str]:
    """Delete the passages of these owners with their keyword rows; returns the keys of their
    vectors, which stay. The words stay in the bytes of the file until ``keywords.scrub``."""
    return _taken(tx, tx.rows(_TAKE, ids=[passage_id(kind, i) for i in owner_ids]))


def drop(tx: Tx, kind: Kind, owner_ids: Iterable[int]) -> None:
    """Delete the passages of these owners, with the vectors that no other text has."""
    remove_unused(tx, take(tx, kind, owner_ids))


def drop_app(tx: Tx, app_id: int) -> None:
    """Delete all passages of a scope row."""
    gone = sa.delete(t.passages).where(_p.app_id == app_id)
    rows = tx.execute(gone.returning(_p.app_id, _p.id, _p.hash)).all()
    remove_unused(tx, _taken(tx, rows))


def _taken(tx: Tx, gone: Sequence[Any]) -> list[str]:
    keywords.remove(tx, [row.id for row in gone])
    _record(tx, [(row.app_id, row.id) for row in gone if row.hash])
    return [row.hash for row in gone if row.hash]


def _record(tx: Tx, rows: Iterable[Sequence[int]]) -> None:
    """Note that passages, with their scope rows, were added, changed or deleted."""
    tx.run_many(_LOG, ({"app_id": app_id, "passage_id": i} for app_id, i in rows))


def keep_vectors(tx: Tx, service_id: int, made: Mapping[str, Any]) -> tuple[int, int]:
    """Store vectors by the hash of their text, but for texts that went or were changed since they
    were sent; how many that were, and how many passages wait no longer. Those of a service that the
    store is changing to are in no index yet."""
    wanted = set(tx.column(_WANTED, hashes=made))
    embeddings.put(tx, service_id, [(key, made[key]) for key in sorted(wanted)])
    done = 0
    if wanted and embeddings.in_use(tx) == service_id:
        done = len(tx.rows(_DONE, hashes=made))
        tx.rows(_LOG_DONE, hashes=made)
    return len(wanted), done


def unused_hashes(tx: Tx) -> list[str]:
    """The hashes of vectors that no passage has."""
    return list(tx.execute(sa.select(_e.hash).where(_unused).distinct()).scalars())


def remove_unused(tx: Tx, hashes: Sequence[str]) -> None:
    """Delete the vectors of these hashes, of every service, unless a passage still has the hash."""
    if hashes:
        tx.rows(_REMOVE_UNUSED, hashes=hashes)


def latest_change(tx: Tx, app_id: int) -> int:
    """The number of a scope's newest change; 0 for none."""
    return tx.latest(_LATEST, app=app_id) or 0


def changed_since(tx: Tx, kind: Kind, app_id: int, change_id: int) -> list[int]:
    """The owners of a kind whose passages changed after ``change_id``."""
    return tx.column(_SINCE, app=app_id, change=change_id, part=KINDS.index(kind))


def fingerprint(tx: Tx, change_id: int) -> str:
    """A text that identifies this change, empty if it does not exist. After a backup was restored
    another change may have the same id, but not the same fingerprint."""
    log = t.changes.c
    found = tx.execute(sa.select(log.passage_id, log.at).where(log.id == change_id)).first()
    return "@".join(map(str, found)) if found else ""


def hashes(tx: Tx, kind: Kind, owner_ids: Iterable[int]) -> dict[int, str]:
    """The key of the vector of each of these owners, by owner."""
    return dict(tx.rows(_HASHES, ids=[passage_id(kind, i) for i in owner_ids]))


def texts(tx: Tx, kind: Kind, owner_ids: Iterable[int]) -> list[UnembeddedText]:
    """The passages of these owners as they are embedded. Those that need no vector are left
    out."""
    rows = tx.rows(_GIVEN, ids=[passage_id(kind, i) for i in owner_ids])
    return [UnembeddedText(*row) for row in rows]


def next_lacking(tx: Tx, service_id: int, last_id: int, limit: int) -> list[UnembeddedText]:
    """The next passages without a vector of a service, after one with this id of its own, so that
    one that cannot be embedded is skipped."""
    rows = tx.execute(_NEXT.limit(limit), {"service": service_id, "i": last_id})
    return [UnembeddedText(*row) for row in rows]


def to_embed(tx: Tx, service_id: int, ids: Iterable[int]) -> dict[int, tuple[str, str | None]]:
    """The hash of each of these passages, by its own id, and its text unless it has a vector."""
    return {row[0]: row[1:] for row in tx.rows(_TO_EMBED, service=service_id, ids=ids)}


def unqueued(tx: Tx, service_id: int, app_id: int, kind: Kind) -> list[int]:
    """The owners in a scope row that lack a vector, and that no work makes one for."""
    query = sa.select(_p.owner_id).where(_lacks, _p.app_id == app_id, _p.kind == kind)
    idle = query.where(_p.status.is_distinct_from(-1))
    return list(tx.execute(idle, {"service": service_id}).scalars())


def count_lacking(tx: Tx, service_id: int, *only: sa.ColumnElement[bool]) -> int:
    """How many passages, of which these conditions hold, have no vector of a service."""
    query = sa.select(sa.func.count()).select_from(t.passages).where(_lacks, *only)
    return tx.execute(query, {"service": service_id}).scalar_one()


def count_chunks_lacking(tx: Tx, service_id: int, app_id: int) -> int:
    """How many chunks of a scope row's notes have no vector of a service."""
    return count_lacking(tx, service_id, _p.app_id == app_id, _p.kind == "chunk")


def count_wanting(tx: Tx) -> int:
    """How many passages need a vector."""
    query = sa.select(sa.func.count()).select_from(t.passages).where(_wants)
    return tx.execute(query).scalar_one()


def queue_lacking(tx: Tx, service_id: int, ids: Iterable[int] | None = None) -> None:
    """Queue all that lacks a vector, or those among these passages, due now. What is running is
    left alone; what failed starts again."""
    waits = _p.status == -1
    free = sa.or_(_p.status.is_distinct_from(-1), _p.lease_until.is_(None), _p.lease_until < tx.now)
    # One whose worker ends at every try must fail for good, however often this is called.
    tries = sa.case((waits, _p.attempts), else_=0)
    anew = {"status": -1, "run_at": tx.now, "created_at": tx.now, "attempts": tries}
    blank = ("error_message", "processed_at", "lease_owner", "lease_until")
    query = sa.update(t.passages).where(_lacks, free).values(**anew, **dict.fromkeys(blank))
    if ids is not None:
        query = query.where(among(_p.id, ids))
    tx.execute(query, {"service": service_id})


def coverage(tx: Tx, service_id: int, kind: Kind) -> list[tuple[int, int, int]]:
    """(scope row, number of a kind's passages, number with a vector) of every scope row, the
    largest first."""
    held = sa.func.count(_e.hash).label("held")
    query = sa.select(_p.app_id, sa.func.count(), held).outerjoin_from(
        t.passages, t.embeddings, _vector
    )
    query = query.where(_p.searched == 1, _p.kind == kind).group_by(_p.app_id)
    rows = tx.execute(query.order_by(held.desc(), _p.app_id), {"service": service_id})
    return [(row[0], row[1], row[2]) for row in rows]


def embedded_ids(tx: Tx, service_id: int, app_id: int, kind: Kind) -> set[int]:
    """The owners of a scope row's passages of a kind that have a vector."""
    query = sa.select(_p.owner_id).join_from(t.passages, t.embeddings, _vector)
    query = query.where(_p.app_id == app_id, _p.searched == 1, _p.kind == kind)
    return set(tx.execute(query, {"service": service_id}).scalars())


def keyword_texts(tx: Tx) -> list[tuple[int, int, bool, str]]:
    """Id, scope row, whether it is a reply, and words of every passage that search finds."""
    titled = sa.func.coalesce(_n.title, "") + "\n" + _part
    chunk = sa.case((_c.id.is_not(None), titled))
    words = sa.func.coalesce(t.sessions.c.summary, chunk, _p.text, t.messages.c.content)
    turn = sa.and_(_p.kind == "turn", t.messages.c.id == _p.owner_id)
    summary = sa.and_(_p.kind == "summary", t.sessions.c.id == _p.owner_id)
    every = _with_notes.outerjoin(t.messages, turn).outerjoin(t.sessions, summary)
    query = sa.select(_p.id, _p.app_id, _p.reply, words).select_from(every)
    rows = tx.execute(query.where(_p.searched == 1))
    return [(row[0], row[1], bool(row[2]), row[3] or "") for row in rows]


STATUSES = ("pending", "completed", "failed")
_m = t.memories.c
_services = t.services.c
_service = sa.cast(
    sa.select(t.meta.c.value).where(t.meta.c.key == "service_id").scalar_subquery(), sa.Integer
)
_code = sa.case(
    (_e.hash.is_not(None), 0),
    (_p.status == 0, sa.null()),  # it was made once and deleted since
    else_=_p.status,
).label("code")
_VIEW: sa.Select[Any] = sa.select(
    _m.id,
    _code,
    sa.case((_e.hash.is_not(None), _services.provider + "/" + _services.model)).label("model"),
    sa.case((_e.hash.is_(None), _p.error_message)).label("error"),
    _p.attempts,
    sa.func.coalesce(_p.processed_at, _e.created_at).label("processed_at"),
).select_from(
    t.memories.outerjoin(t.passages, _p.id == _m.id * 4)
    .outerjoin(t.embeddings, sa.and_(_e.hash == _p.hash, _e.service_id == _service))
    .outerjoin(t.services, _services.id == _e.service_id)
)


def of_memories(tx: Tx, ids: Sequence[int]) -> dict[int, EmbeddingState]:
    """The state of each of these memories."""
    return {
        row.id: from_row(
            EmbeddingState,
            row,
            memory_id=row.id,
            status=_status(row.code),
            attempts=row.attempts or 0,
        )
        for row in tx.execute(_VIEW.where(among(_m.id, ids)))
    }


def ids_with_status(status: str) -> sa.Select[Any]:
    """A query for the ids of all memories whose vector has this status."""
    conditions = {"pending": _code == -1, "completed": _code == 0, "failed": _code > 0}
    return _VIEW.with_only_columns(_m.id).where(conditions[status])


def is_unembedded(memory_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """A condition: the memory's vector is still to be made, or could not be."""
    return sa.select(_p.id).where(_p.id == memory_id * 4, _p.status != 0).exists()


def _status(code: int | None) -> EmbeddingStatus | None:
    if code is None:
        return None
    return "pending" if code < 0 else "completed" if code == 0 else "failed"
