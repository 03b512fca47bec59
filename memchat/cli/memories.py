"""``memchat memories``: see, add, correct and forget what is remembered, and what else speaks of
it; ``memchat inbox``: what waits for a person's decision."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args

from typer import Argument, BadParameter, Option

from memchat import types
from memchat.cli import command as cli
from memchat.cli import output
from memchat.cli.command import Call, Ids, command
from memchat.errors import NotFound, SecretError

if TYPE_CHECKING:
    from memchat.api.memories import Inbox
    from memchat.api.user import User


UPKEEP = ("reindex",)
"""Events that tell the index of a change of its own; nothing happened to the fact."""
FIELDS = {
    "memory_type": "type",
    "key": "key",
    "value": "value",
    "starts_at": "from",
    "expires_at": "until",
    "sensitive": "sensitive",
    "tags": "tags",
}
"""What of a fact its history shows, under the names that people know."""


STATES = get_args(types.EmbeddingStatus)
AT_ONCE = 100
"""Memories that are forgotten in one transaction."""
LISTED = 10
"""Places that are listed without being asked for."""
LOOKED_FOR = 1_000
"""Memories of an app that is cleared or deleted beyond which nobody looks for what else speaks of
them: for so many it takes about a second."""
_NAMES = {
    "title": "title of session {id}",
    "summary": "summary of session {id}",
    "memory": "memory {id}",
    "inbox": "inbox item {id}",
    "refusal": "proposal not kept, {id}",
    "note": "note {id}",
}


def with_embedding(memory: types.Memory, state: types.EmbeddingState) -> dict[str, Any]:
    """The memory as JSON, with the state of its vector."""
    return memory.to_json() | {
        "embedding_status": state.status,
        "embedding_model": state.model,
        "embedding_error": state.error,
    }


def changes_of_fact(events: Sequence[types.Event]) -> list[types.Event]:
    """The events that changed the fact, without those of the index."""
    return [event for event in events if event.kind not in UPKEEP]


def difference(event: types.Event) -> str:
    """What an event changed, each value with the one before it."""
    # What goes out of use keeps its words: only a new state is worth telling.
    old, new = event.old or {}, event.new or {}
    changed = []
    for name, label in FIELDS.items():
        after = new.get(name, old.get(name))
        if after != old.get(name):
            before = f"{_shown(old[name])} → " if name in old else ""
            changed.append(f"{label} {before}{_shown(after)}")
    if event.related_id is not None:
        changed.append(f"memory {event.related_id}")
    return "; ".join(changed)


def _shown(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value) or "(none)"
    return "(none)" if value is None else value


def store(
    call: Call, save: Callable[..., types.Memory], key: str | None, yes: bool
) -> types.Memory:
    """Save by hand and print the memory, and its key where it is stored under another than ``key``;
    what looks like a secret is saved only if the person agrees."""
    try:
        saved = save(keep_secret=yes)
    except SecretError as error:
        what = f"looks like a {error.kind}"
        cli.confirm(f"This {what}. Keep it anyway?", yes=False, why=f"this {what}")
        saved = save(keep_secret=True)
    call.result(saved, saved.id)
    if key is not None and saved.key != key:
        output.notice(f"“{key}” is stored under the key {saved.key}")
    return saved


app = cli.group("See, add, correct and forget what is remembered.")

Id = Annotated[int, Argument(metavar="ID", help="The memory's number.")]
Expires = Annotated[
    date | None, Option("--expires", help="The last day on which it holds.", **cli.DAY)
]
Starts = Annotated[
    date | None, Option("--starts", help="The first day on which it holds.", **cli.DAY)
]


@command(app, "list")
def list_memories(
    call: Call,
    days: int | None = Argument(None, min=0),
    status: types.MemoryStatus = "active",
    expiring: bool = False,
    memory_type: str | None = Option(None, "--type", help=f"Only one of {cli.TYPES}.", **cli.TYPE),
    tags: list[str] | None = None,
    metadata: list[str] | None = None,
    key: str | None = None,
    since: date | None = None,
    until: date | None = None,
    said_by: str | None = None,
    limit: int = 100,
    offset: int = 0,
) -> None:
    """List memories, newest first.

    The app's own, and those that the user has in every app.

    :param days: With --expiring: within how many days (default 30).
    :param status: Which ones; the last three by how their vector stands.
    :param expiring: Only those that soon end, the soonest first.
    """
    status = "expiring" if expiring else status
    if days is not None and status != "expiring":
        raise BadParameter("a number of days goes with --expiring")
    wanted: dict[str, Any] = {"status": status, "type": memory_type, "tags": tags or ()}
    wanted |= {"metadata": cli.noted(metadata), "key": key, "said_by": said_by}
    wanted |= {"since": since, "until": until}
    wanted |= {} if days is None else {"within": days}
    memories = call.known.memories
    found = memories.list(**wanted, limit=offset + limit)[offset:]
    total = 0 if call.as_json else memories.count(**wanted)
    vectors: dict[int, types.EmbeddingState] = {}
    if call.as_json or status in STATES:
        vectors = {one.memory_id: one for one in memories.embedding_states([m.id for m in found])}
    end, columns = offset + len(found), output.MEMORY_COLUMNS
    columns += " tags" if any(memory.tags for memory in found) else ""
    columns += " vector" if status in STATES else ""
    call.table(
        found,
        columns,
        none=f"no memories of {call.user} in {call.app} (status {status})",
        more=f"{offset + 1} to {end} of {total}; go on with --offset {end}" if end < total else "",
        record=lambda memory: with_embedding(memory, vectors[memory.id]),
        tags=lambda memory: ", ".join(memory.tags),
        vector=lambda memory: output.vector(vectors[memory.id]),
        **output.memory_cells(call.zone),
    )


@command(app, "show")
def show_memory(call: Call, memory_id: Id) -> None:
    """Show one memory, the words that prove it, and its history."""
    memories = call.person.memories
    memory = memories.get(memory_id)
    (state,) = memories.embedding_states([memory_id])
    evidence, events = memories.evidence(memory_id), memories.history(memory_id)
    if call.as_json:
        more = {"evidence": evidence, "history": events}
        output.print_json(with_embedding(memory, state) | more)
        return
    client = call.person.clients.of_memories([memory_id]).get(memory_id)
    today = datetime.now(call.zone).date()
    times = "once" if memory.seen_count == 1 else f"{memory.seen_count} times"
    origin = f"by {client} over MCP" if client is not None else memory.created_by
    lines = {
        "sentence": memory.sentence,
        "value": memory.value,
        "key": memory.key,
        "type": memory.memory_type,
        "state": output.memory_state(memory, today),
        "user": memory.user,
        "app": output.app_name(memory.app),
        "from": memory.starts_at,
        "until": memory.expires_at or "(no end)",
        "created": f"{call.time(memory.created_at)}, {origin}",
        "updated": call.time(memory.updated_at),
        "seen": f"{times}, last {call.time(memory.last_seen_at)}",
        "vector": output.vector(state),
        "pinned": memory.pinned and "at hand in every chat",
        "sensitive": memory.sensitive and "a chat model gets it only where it fits the message",
        "tags": ", ".join(memory.tags),
        "noted": memory.metadata and json.dumps(memory.metadata, ensure_ascii=False),
        "replaced": memory.replaced_by and f"by memory {memory.replaced_by}",
    }
    for name, content in lines.items():
        if content:
            print(output.plain(f"{name:<9} {content}"))
    for proof in evidence:
        words, at = " ".join(proof.quote.split()), call.time(proof.said_at)
        title = f", {proof.session_title}" if proof.session_title else ""
        how, where = "said", f"{proof.role}, {at}, session {proof.session_id}{title}"
        if proof.client is not None:
            how, where = "sent", f"by {proof.client} over MCP, {at}"
        print(output.plain(f"{how}      “{words}” ({where})"))
    for event in changes_of_fact(events):
        why = f" ({event.cause})" if event.cause else ""
        what = f"{event.kind} by {event.actor}{why} {difference(event)}"
        print(output.plain(f"history   {call.time(event.at)} {what}".rstrip()))


@command(app)
def add(
    call: Call,
    memory_type: Annotated[str, Argument(help=f"One of {cli.TYPES}.", **cli.TYPE)],
    key: str,
    value: str,
    expires: Expires = None,
    starts: Starts = None,
    all_apps: bool = False,
    tags: cli.NewTags = None,
    metadata: cli.NewMetadata = None,
    yes: bool = False,
) -> None:
    """Remember something by hand, and print its id.

    What it replaces is told. Where it looks like a secret, you are asked first.

    Example: memchat memories add profile city Lisbon

    :param key: Its name, such as city.
    :param value: What is to be remembered.
    :param all_apps: Keep it for every app.
    """
    memories, began = call.person.memories, call.mc.now
    more: dict[str, Any] = {"expires_at": expires, "starts_at": starts, "tags": tags or ()}
    more["metadata"] = cli.noted(metadata)
    save = partial(memories.add, memory_type, key, value, all_apps=all_apps, **more)
    added = store(call, save, key, yes)
    for old in memories.replaced(added.id):
        if old.updated_at >= began:
            undo = output.command("memories restore", call.app)
            output.notice(output.changed(old, added, undo))
    call.embed_now()


@command(app)
def edit(
    call: Call,
    memory_id: Id,
    value: str | None = None,
    key: str | None = None,
    memory_type: str | None = Option(
        None, "--type", help=f"The new type: one of {cli.TYPES}.", **cli.TYPE
    ),
    expires: Expires = None,
    no_expiry: bool = False,
    all_apps: bool | None = Option(None, "--all-apps/--one-app"),
    sensitive: bool | None = Option(None, "--sensitive/--not-sensitive"),
    tags: cli.NewTags = None,
    untag: list[str] | None = Option(None, metavar="TAG"),
    metadata: cli.NewMetadata = None,
    yes: bool = False,
) -> None:
    """Correct a memory, and print its id.

    Where it looks like a secret now, you are asked first. --meta NAME= takes away what is noted.

    Example: memchat memories edit 7 --value Porto

    :param value: The new value.
    :param key: The new key.
    :param no_expiry: It holds for good.
    :param all_apps: Keep it for every app, or for this one only.
    :param sensitive: Whether a chat model gets it only where it fits the message.
    :param untag: Take this tag away.
    """
    if expires is not None and no_expiry:
        raise BadParameter("give either --expires or --no-expiry")
    given: dict[str, Any] = {"value": value, "key": key, "type": memory_type, "expires_at": expires}
    given |= {"all_apps": all_apps, "sensitive": sensitive}
    changes: dict[str, Any] = {name: new for name, new in given.items() if new is not None}
    if no_expiry:
        changes["expires_at"] = None
    if not (changes or tags or untag or metadata):
        raise BadParameter(
            "nothing to change; give --value, --key, --type, --expires, --tag, --untag or --meta"
        )
    memories = call.person.memories
    if metadata:
        noted = {**(memories.get(memory_id).metadata or {}), **cli.noted(metadata)}
        changes["metadata"] = {name: value for name, value in noted.items() if value != ""}
    if tags or untag:
        changes["tags"] = cli.retagged(memories.get(memory_id).tags, tags, untag)
    store(call, partial(memories.update, memory_id, **changes), key, yes)
    call.embed_now()


@command(app)
def delete(
    call: Call,
    memory_ids: Ids = None,
    id_option: list[int] | None = Option(None, "--id", metavar="ID"),
    query: str | None = None,
    tags: list[str] | None = None,
    keep_transcript: bool = False,
    everywhere: bool = False,
    yes: bool = False,
) -> None:
    """Forget memories for good, with the words that proved them.

    With --query and --tag old values go, too. Where anything else speaks of them, that is told,
    and can be blanked as well. What loses its proof with them is told first.

    Example: memchat memories delete 3 5 8

    :param id_option: The same as an option.
    :param keep_transcript: Leave its words in your conversations; nothing is found in them or
        learnt again.
    :param everywhere: Blank all else that speaks of it, too; other memories that do are forgotten.
    """
    if keep_transcript and everywhere:
        raise BadParameter("give either --keep-transcript or --everywhere")
    memories = call.person.memories
    find = partial(memories.list, status="all", tags=tags or (), limit=cli.ALL)
    given = [*(memory_ids or ()), *(id_option or ())]
    gone = call.chosen(given, memories.get, query, find, tags)
    names = [f"memory {m.id} “{m.told}”" for m in gone]
    numbers = [memory.id for memory in gone]
    asks = not (keep_transcript or call.as_json or len(gone) > LOOKED_FOR)
    for memory in call.person.mentions.unproved(numbers) if asks else ():
        print(output.plain(f"stays, but no words prove it any more: {memory.id}  {memory.told}"))
    cli.agree("Forget {} for good?", names, "memory", yes=yes)
    found = None if keep_transcript else call.person.mentions.find(numbers)
    blank = found and found.without_notes if everywhere else ask_mentions(call, found, yes=yes)
    forget = partial(memories.delete_many, keep_transcript=keep_transcript, blank=blank)
    done = call.each(numbers, forget, lambda i: {"id": i, "forgotten": True}, at_once=AT_ONCE)
    if done:
        output.notice(f"forgot {cli.numbered('memory', done)}")
    tell_mentions(call, found, blank)
    call.tell_forgotten()


@command(app)
def restore(call: Call, memory_id: Id) -> None:
    """Bring back a replaced, merged, ended or expired memory."""
    call.result(call.person.memories.restore(memory_id), memory_id)
    call.embed_now()


@command(app)
def pin(call: Call, memory_id: Id, off: bool = False) -> None:
    """Have a memory at hand in every chat, whatever it is about.

    :param off: Take it out of there again.
    """
    call.result(call.person.memories.pin(memory_id, on=not off), memory_id)


@command(app)
def clear(call: Call, yes: bool = False) -> None:
    """Forget all memories of one app for good, and print how many.

    What else speaks of them stays, and is told.
    """
    person = call.known
    cli.confirm(f"Forget all memories of {call.user} in {call.app} for good?", yes=yes)
    found = mentions_of_app(person)
    forgotten = person.memories.clear().memories
    call.result({"app": call.app, "forgotten": forgotten}, forgotten)
    tell_mentions_of_app(call, found)
    call.tell_forgotten()


@command(app)
def history(call: Call, memory_id: Id) -> None:
    """List what happened to a memory, oldest first."""
    events = call.person.memories.history(memory_id)
    call.table(
        events if call.as_json else changes_of_fact(events),
        "at what=kind by=actor why=cause change",
        none=f"nothing is recorded of memory {memory_id}",
        change=difference,
    )


def ask_mentions(call: Call, found: types.Elsewhere | None, *, yes: bool) -> types.Elsewhere | None:
    """The places that the person wants blanked, too; none without a terminal to ask on."""
    if found is None or yes or not sys.stdin.isatty():
        return None
    print(f"It is also spoken of elsewhere: {found.counted}.", file=sys.stderr)
    if any(place.kind in ("memory", "inbox", "refusal") for place in found.places):
        print("Blanking forgets a memory and drops a proposal as a whole.", file=sys.stderr)
    if found.notes:
        print("A note stays as it is, unless you choose its number.", file=sys.stderr)
    said = output.answer("Blank these too? [y/N/show]").lower()
    if said in ("s", "show"):
        _list(call, found, len(found.places))
        said = output.answer("Blank which of them? [all/none, or their numbers]").lower()
    if said in ("y", "yes", "a", "all"):
        return found.without_notes if found.without_notes.places else None
    places = _numbered(found, said)
    return replace(found, places=places) if places else None


def tell_mentions(
    call: Call, found: types.Elsewhere | None, blanked: types.Elsewhere | None
) -> None:
    """What was blanked with the memory, and what still speaks of it."""
    if found is None:
        return
    gone = blanked.places if blanked is not None else ()
    if blanked is not None and gone:
        output.notice(f"blanked with it: {blanked.counted}")
        for place in (place for place in blanked.notes if place.has_file):
            output.notice(
                f"the file of note {place.id} still has the words, and they come back when it "
                "is read again after a change"
            )
    left = replace(found, places=tuple(place for place in found.places if place not in gone))
    if not left.places:
        return
    output.notice(f"it is still spoken of elsewhere: {left.counted}")
    if not sys.stdin.isatty() or left.notes:
        _list(call, left, LISTED)
    if left.notes:
        output.notice("a note is deleted by `memchat notes delete ID`")
    if left.without_notes.places:
        output.notice(
            "to blank these as well, add the memory again by hand and delete it with --everywhere"
        )


def mentions_of_app(person: User) -> types.Elsewhere | None:
    """What will still speak of an app's own memories once all of them are forgotten; None where
    nothing will, or where they are too many to look for it."""
    found = person.memories.list(status="all", limit=LOOKED_FOR + 1)
    if not found or len(found) > LOOKED_FOR:
        return None
    return person.mentions.find([m.id for m in found if m.app == person.scope.app])


def tell_mentions_of_app(call: Call, found: types.Elsewhere | None) -> None:
    """What still speaks of an app's memories that were all forgotten."""
    if found is None or not found.places:
        return
    output.notice(f"they are still spoken of elsewhere: {found.counted}")
    _list(call, found, LISTED)
    kinds = {place.kind for place in found.places}
    said = {"message", "reply", "title", "summary"}
    ways = {"memories delete": {"memory"}, "inbox reject": {"inbox"}, "notes delete": {"note"}}
    ways |= {"sessions delete": said}
    named = [f"memchat {way}" for way, forgets in ways.items() if kinds & forgets]
    if named:
        output.notice(f"to forget these as well: {', '.join(named)}")


def _numbered(found: types.Elsewhere, said: str) -> tuple[types.Place, ...]:
    """The places that were named by their numbers; none where anything else was said."""
    parts = said.replace(",", " ").split()
    if not all(part.isdecimal() and 1 <= int(part) <= len(found.places) for part in parts):
        return ()
    return tuple(found.places[n - 1] for n in sorted({int(part) for part in parts}))


def _list(call: Call, found: types.Elsewhere, most: int) -> None:
    for number, place in enumerate(found.places[:most], 1):
        what = _NAMES.get(place.kind, "{kind} in session {session}")
        what = what.format(id=place.id, kind=place.kind, session=place.session_id)
        day = call.time(place.at)
        print(output.plain(f"{number:>4}. {day}  {what}: “{place.text}”"), file=sys.stderr)
    if len(found.places) > most:
        print(f"      and {len(found.places) - most} more", file=sys.stderr)


inbox_group = cli.group("See what waits for your decision, and say yes or no.")


@command(inbox_group, "list")
def list_items(call: Call) -> None:
    """List what waits for a yes, what a yes does, and why it waits.

    A yes remembers something, puts it in the place of what is known, or ends that. What another
    program asks over MCP names the program: to forget a memory for good, or keep it in every app.
    """
    inbox = call.known.inbox
    call.table(
        inbox.list(),
        "id would_remember asks held_back_because=reason",
        none=f"nothing waits for {call.user} in {call.app}",
        would_remember=_proposes,
        asks=inbox.question,
    )


def _proposes(item: types.InboxItem) -> str:
    if item.key is None:
        return ""
    return item.told if item.relation != "ends" else f"end of {item.key}"


@command(inbox_group)
def accept(
    call: Call,
    item_ids: Ids = None,
    query: str | None = None,
    value: str | None = None,
    yes: bool = False,
) -> None:
    """Say yes: it counts as your own word, and does what is asked. Prints the memory's id.

    A yes to forgetting deletes the memory for good. A yes to the call of a tool lets the run of the
    workflow go on. What --query finds is shown first.

    :param value: Remember these words instead.
    """
    inbox = call.person.inbox
    numbers = _chosen(call, inbox, item_ids, query, "Say yes to {}?", yes=yes)
    if value is not None and len(numbers) > 1:
        raise BadParameter("--value goes with the number of one item")
    stored: dict[int, types.Memory | types.WorkflowRun] = {}

    def say_yes(part: Sequence[int]) -> None:
        stored[part[0]] = inbox.accept(*part, value=value)

    call.each(numbers, say_yes, lambda item_id: _answered(stored[item_id]))
    known = [one for one in stored.values() if isinstance(one, types.Memory)]
    for one in stored.values():
        if isinstance(one, types.WorkflowRun):
            output.notice(f"run {one.id} of {one.slug}: {one.error or one.state}")
    for memory in known:
        if memory.inactive_reason == "forgotten":
            output.notice(f"forgot memory {memory.id}")
        elif not call.as_json:
            print(memory.id)
    if any(memory.inactive_reason == "forgotten" for memory in known):
        call.tell_forgotten()
    call.embed_now()


@command(inbox_group)
def reject(call: Call, item_ids: Ids = None, query: str | None = None, yes: bool = False) -> None:
    """Say no: the same is not asked again. What --query finds is shown first."""
    inbox = call.person.inbox
    numbers = _chosen(call, inbox, item_ids, query, "Say no to {}?", yes=yes)
    done = call.each(
        numbers, lambda part: inbox.reject(*part), lambda i: {"id": i, "rejected": True}
    )
    if done:
        are = "is" if len(done) == 1 else "are"
        output.notice(f"{cli.numbered('item', done)} {are} rejected; the same is not asked again")


def _chosen(
    call: Call, inbox: Inbox, ids: Sequence[int] | None, query: str | None, ask: str, *, yes: bool
) -> list[int]:
    """The items a command is about. What was named by its number is not asked about."""
    from memchat.language.text import folded, holds_all

    waiting = {item.id: item for item in inbox.list()}

    def get(number: int) -> types.InboxItem:
        if number not in waiting:
            raise NotFound(f"nothing waits under the number {number}; see memchat inbox list")
        return waiting[number]

    def named(item: types.InboxItem) -> str:
        return f"item {item.id}: {_proposes(item)} {inbox.question(item)}"

    def find(words: str) -> list[types.InboxItem]:
        return [item for item in waiting.values() if holds_all(folded(words), named(item))]

    found = call.chosen(ids, get, query, find)
    cli.agree(ask, [named(item) for item in found], "item", yes=yes or bool(ids))
    return [item.id for item in found]


def _answered(memory: types.Memory | types.WorkflowRun) -> dict[str, Any]:
    if isinstance(memory, types.WorkflowRun):
        return {"run_id": memory.id, "state": memory.state}
    if memory.inactive_reason == "forgotten":
        return {"id": memory.id, "forgotten": True}
    return memory.to_json()
