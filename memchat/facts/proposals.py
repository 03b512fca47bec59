"""Proposals: what waits for a person's decision and the question it asks, and what was not kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memchat.db import Tx
from memchat.db import schema as t
from memchat.db.records import among, columns, from_row
from memchat.facts import changes, memories
from memchat.facts.memories import Fact
from memchat.types import Memory, Proposal, clean_tags
from memchat.workflows import rows as workflows

_p = t.proposals.c
REJECTED = "you said no to it before"
FORGOTTEN = "it was forgotten on request"
BLANKED = "its words were forgotten meanwhile"
WITHOUT_WORDS = (FORGOTTEN, BLANKED)
"""Reasons of refusals that keep no word of what was proposed."""
FORGET, PROMOTE = "forget", "promote"
"""The relation of an item in which a program asks about a whole memory."""
CALL = "call"
"""The relation of an item in which the run of a workflow asks whether to call a tool."""
_APART = ("ends", FORGET, PROMOTE)
"""Relations of which each is a question of its own."""
_OPEN = ("pending", "unchecked")
"""The states of what waits; of the second, a second look may decide before the person does."""
_NAMES = [one.name for one in fields(Proposal)]
# Whether a look is still to come makes no difference to a person.
_status = sa.case((_p.status == "unchecked", "pending"), else_=_p.status).label("status")
_SELECT = sa.select(*(_status if name == "status" else _p[name] for name in _NAMES))
_SELECT = _SELECT.order_by(_p.id)
_LISTED = _SELECT.where(_p.app_id == sa.bindparam("app"), among(_p.status, "states"))
_IN_SCOPES = _SELECT.where(among(_p.app_id, "app_ids"))
_OF_SESSION = _SELECT.where(_p.session_id == sa.bindparam("session"))
_BY_ID = _IN_SCOPES.where(_p.id == sa.bindparam("proposal"))
_UNCHECKED = _OF_SESSION.where(_p.status == "unchecked")
_PROPOSED = {one.name for one in fields(Fact)} & {*_NAMES}
"""The fields that say what is proposed, whatever is kept of it."""


def proposed(source: Fact | Proposal) -> dict[str, Any]:
    """The fields that say what is proposed, by name, as keyword arguments for a fact or a
    proposal."""
    return {name: getattr(source, name) for name in _PROPOSED}


def asked(fact: Fact, reason: str, target: Memory | None = None) -> Proposal:
    """A fact that waits for a yes; ``target`` is what that would change."""
    entry: dict[str, Any] = {"relation": "new", "target_id": None}
    if target is not None:
        entry = {"relation": fact.relation, "target_id": target.id}
        if fact.relation == "ends":
            names = ("memory_type", "key", "value", "sentence")
            entry |= {name: getattr(target, name) for name in names}
    quote = fact.proofs[0][2] if fact.proofs else None
    return Proposal(reason, quote=quote, **proposed(fact) | _place(fact) | entry)


def refused(fact: Fact, reason: str) -> Proposal:
    """A fact that passed the gate, and that the store did not take."""
    if reason in WITHOUT_WORDS:
        return Proposal(reason)
    return Proposal(reason, **proposed(fact) | _place(fact) | {"around": None, "tags": ()})


def _place(fact: Fact) -> dict[str, int]:
    """Where the words stand that prove a fact."""
    if not fact.proofs:
        return {}
    message_id, start, quote = fact.proofs[0]
    return {"message_id": message_id, "start": start, "end": start + len(quote)}


def change_question(relation: str, quote: str, target: Memory, since: str = "") -> str:
    """The question about a change that needs the user's yes; ``since``: it holds from another
    day."""
    asked = f"You said “{words}”. " if (words := " ".join(quote.split())) else ""
    if since:
        return f"{asked}Does {in_words(target)} hold {since}?"
    if relation == "ends":
        return f"{asked}Is {in_words(target)} over?"
    return f"{asked}Replace {in_words(target)}?"


def in_words(fact: Memory | Proposal) -> str:
    """A fact's sentence in quotes; without one, key and value as people write them."""
    if fact.sentence:
        return f"“{fact.sentence.rstrip('.')}”"
    return f"{(fact.key or '').replace('_', ' ')}: {fact.value}"


def question(item: Proposal, target: Memory | None, newer: Memory | None = None) -> str:
    """What a yes to an item does, as a question. ``target`` is the memory that it would replace or
    end, None where that is gone or changed; of a pair, ``newer`` replaces it."""
    known = in_words(target) if target is not None else ""
    if item.relation == CALL:
        return item.value or ""
    if item.key is None:
        if target is None or (item.related_id is not None and newer is None):
            return "What it is about is gone."
        if item.relation == FORGET:
            return f"Forget {known} for good?"
        if item.relation == PROMOTE:
            return f"Keep {known} in every app?"
        pair = f"Replace {known} by {in_words(newer)}?" if newer is not None else ""
        return pair or f"Is {known} over?"
    said = f"You said “{' '.join(item.quote.split())}”. " if item.quote else ""
    from_day = f" from {item.starts_at.isoformat()}" if item.starts_at is not None else ""
    if target is not None and item.relation == "ends":
        after = f" after {item.expires_at.isoformat()}" if item.expires_at is not None else ""
        return f"{said}Is {known} over{from_day or after}?"
    if item.relation == "ends":
        return f"{said}What that would end is gone or has changed."
    if target is not None and item.relation == "updates":
        new = "" if said else f" by {in_words(item)}"
        return f"{said}Replace {known}{new}{from_day}?"
    if target is not None and item.relation == "same":
        return f"{said}Does that confirm {known}?"
    gone = item.target_id is not None and item.relation in ("updates", "same")
    gone_words = "What that would replace is gone or has changed. " if gone else ""
    return f"{said}{gone_words}Remember {in_words(item)}{from_day}?"


def target_of(tx: Tx, ids: Sequence[int], what: Proposal) -> Memory | None:
    """The memory that a proposal replaces, ends or repeats; None where it is gone or was
    reworded."""
    if what.relation not in ("updates", "ends", "same"):
        return None
    if what.target_id is None:
        # Its target was taught by the same conversation and had no id yet.
        known = memories.with_key(tx, ids, what.key or "")
        return known[0] if len(known) == 1 and not known[0].many else None
    target = memories.get(tx, ids, what.target_id)
    if target is None or not target.active:
        return None
    # Another last day does not count.
    reworded = changes.value_edits(tx, [target.id]).get(target.id)
    return None if reworded is not None and reworded > what.created_at else target


def add(tx: Tx, app_id: int, held: Proposal) -> str | None:
    """Have a person decide, and return None; if the same one waits or got a no, return its status.
    One that waits gets the new tags beside its own."""
    if (known := find(tx, app_id, held)) is None:
        _insert(tx, app_id, held, tx.now)
        return None
    if held.tags and known.status in _OPEN:
        every = clean_tags([*(known.tags or "").split(), *held.tags])
        change(tx, known.id, tags=" ".join(every))
    return "rejected" if known.status == "rejected" else "pending"


def ask_about_run(tx: Tx, app_id: int, run_id: int, question: str, reason: str) -> None:
    """Have a person decide whether the run of a workflow goes on; asked anew each time."""
    workflows.remove_questions(tx, run_id)
    asked = Proposal(reason, value=question, relation=CALL, run_id=run_id)
    _insert(tx, app_id, asked, tx.now)


def find(tx: Tx, app_id: int, held: Proposal) -> Any:
    """Id, status and tags of the same proposal where the person was asked before, or None."""
    # That a fact has ended, or is to be forgotten, is another proposal than that it holds.
    apart = held.relation in _APART
    same = sa.select(_p.id, _p.status, _p.tags).where(
        _p.app_id == app_id,
        _p.status != "refused",
        _p.key.is_not_distinct_from(held.key),
        _p.value.is_not_distinct_from(held.value),
        _p.memory_id.is_not_distinct_from(held.memory_id),
        _p.related_id.is_not_distinct_from(held.related_id),
        _p.relation == held.relation if apart else _p.relation.not_in(_APART),
    )
    if held.relation == "ends":
        same = same.where(_p.target_id.is_not_distinct_from(held.target_id))
    return tx.execute(same).first()


def add_refused(tx: Tx, app_id: int, session_id: int, given: Iterable[Proposal]) -> None:
    """Store what was not kept of a conversation, each proposal once."""
    known = {_said(one) for one in of_session(tx, session_id) if one.status == "refused"}
    for one in given:
        if _said(one) not in known:
            known.add(_said(one))
            _insert(tx, app_id, replace(one, status="refused", session_id=session_id), tx.now)


def _said(one: Proposal) -> tuple[str, ...]:
    """What two refusals of the same proposal have in common; without words it is the reason."""
    if one.key is None:
        return (one.reason,)
    value = " ".join((one.value or "").split()).casefold()
    return (one.key, value, "ends" if one.relation == "ends" else "")


def _insert(tx: Tx, app_id: int, one: Proposal, now: datetime) -> None:
    values = columns(one) | {"app_id": app_id, "created_at": now}
    if one.session_id is None and one.message_id is not None:
        said_in = sa.select(t.messages.c.session_id).where(t.messages.c.id == one.message_id)
        values["session_id"] = said_in.scalar_subquery()
    del values["id"]
    tx.execute(sa.insert(t.proposals).values(**values))


def _read(tx: Tx, statement: sa.Select[Any], **values: Any) -> list[Proposal]:
    return [from_row(Proposal, row) for row in tx.rows(statement, **values)]


def listed(tx: Tx, app_id: int, status: str = "pending") -> list[Proposal]:
    """What waits in a scope row, the oldest first; with another status what got a no, or was
    refused."""
    return _read(tx, _LISTED, app=app_id, states=_OPEN if status == "pending" else [status])


def get(tx: Tx, app_ids: Sequence[int], proposal_id: int) -> Proposal | None:
    """One proposal of these scope rows."""
    return next(iter(_read(tx, _BY_ID, app_ids=app_ids, proposal=proposal_id)), None)


def in_scopes(tx: Tx, app_ids: Sequence[int]) -> list[Proposal]:
    """The proposals of these scope rows, in any state."""
    return _read(tx, _IN_SCOPES, app_ids=app_ids)


def of_session(tx: Tx, session_id: int) -> list[Proposal]:
    """What was proposed from a conversation, in any state."""
    return _read(tx, _OF_SESSION, session=session_id)


def awaiting_second_look(tx: Tx, session_id: int) -> list[Proposal]:
    """A conversation's proposals whose second look is still to come."""
    return _read(tx, _UNCHECKED, session=session_id)


def sessions_awaiting_second_look(tx: Tx, user: str) -> list[int]:
    """The ids of a user's conversations with proposals whose second look is still to come."""
    query = sa.select(_p.session_id).join(t.apps, t.apps.c.id == _p.app_id).distinct()
    waiting = query.where(
        t.apps.c.user == user, _p.status == "unchecked", _p.session_id.is_not(None)
    )
    return sorted(tx.execute(waiting).scalars())


def words_of(one: Proposal) -> str:
    """The words of a proposal, without the name of the program that asked: the person gave it.
    Empty where only the reason is kept."""
    if one.key is None and one.memory_id is None and one.run_id is None:
        return ""
    reason = one.reason.removeprefix(f"{one.by} ") if one.by else one.reason
    said = (one.value, one.quote, one.around, one.sentence, reason, " ".join(one.tags))
    return "\n".join(filter(None, said))


def leave_to_person(tx: Tx, proposal_id: int, reason: str, *, bare: bool = False) -> None:
    """Note that no second look will come, so that the person has to decide. With ``bare`` the
    sentence around the quote goes."""
    change(tx, proposal_id, status="pending", reason=reason, **{"around": None} if bare else {})


def change(tx: Tx, proposal_id: int, **columns: Any) -> None:
    """Set columns of a proposal; its status ``rejected`` is a no, after which the same is not
    proposed again."""
    tx.execute(sa.update(t.proposals).where(_p.id == proposal_id).values(**columns))


def give_up_looks(tx: Tx, reason: str) -> None:
    """Leave to the person what waits for a second look that has failed for good."""
    failed = sa.select(t.jobs.c.source_id).where(t.jobs.c.kind == "verify", t.jobs.c.status > 0)
    waiting = sa.update(t.proposals).where(_p.status == "unchecked", _p.session_id.in_(failed))
    tx.execute(waiting.values(status="pending", reason=reason))


def of_message(tx: Tx, message_id: int) -> int | None:
    """The proposal that quotes a message."""
    return tx.execute(sa.select(_p.id).where(_p.message_id == message_id)).scalar()


def ask_for_program(tx: Tx, proposal_id: int, by: str, reason: str) -> None:
    """Give a proposal the reason of a program, without a quote: no message of the person says
    it."""
    unsaid = dict.fromkeys(("message_id", "session_id", "start", "end", "quote", "around"))
    change(tx, proposal_id, reason=reason, by=by, **unsaid)


def reject_requests_to_forget(tx: Tx, memory_id: int) -> None:
    """Store a no to the programs that ask to forget a memory."""
    asked = sa.update(t.proposals).where(_p.memory_id == memory_id, _p.relation == FORGET)
    tx.execute(asked.values(status="rejected"))


def holds(tx: Tx, app_id: int, values: Mapping[str, Any]) -> bool:
    """Whether a person was asked in a scope row, decided or not, with these values by column."""
    same = [_p[name].is_not_distinct_from(value) for name, value in values.items()]
    asked = sa.select(_p.id).where(_p.app_id == app_id, _p.status != "refused", *same)
    return tx.execute(asked).first() is not None


def remove(tx: Tx, ids: Collection[int]) -> None:
    """Delete proposals."""
    if ids:
        tx.execute(sa.delete(t.proposals).where(_p.id.in_(ids)))


def remove_question(tx: Tx, app_id: int, key: str, value: str) -> None:
    """Delete what asks whether a value replaces another."""
    asked = sa.delete(t.proposals).where(_p.app_id == app_id, _p.status.in_(_OPEN))
    tx.execute(asked.where(_p.relation == "updates", _p.key == key, _p.value == value))


def remove_of_messages(tx: Tx, message_ids: Sequence[int]) -> None:
    """Delete what was proposed from these messages."""
    tx.execute(sa.delete(t.proposals).where(_p.message_id.in_(message_ids)))


def remove_refused(tx: Tx, session_id: int, *, read_to: int | None = None) -> None:
    """Delete what a conversation proposed in words of no one message, and was refused; or, with
    ``read_to``, all that was refused of the messages after that one, which are read again."""
    nowhere = _p.message_id.is_(None)
    which = nowhere & _p.key.is_not(None) if read_to is None else _p.message_id > read_to
    if read_to == 0:
        which = sa.or_(which, nowhere)
    mine = sa.delete(t.proposals).where(_p.session_id == session_id, _p.status == "refused")
    tx.execute(mine.where(which))
