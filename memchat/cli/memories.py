"""``memchat memories``: see, add, correct and forget what is remembered.

One memory as the command line shows it: its details, its history, and both as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memchat.cli import backup, other_mentions, output
from memchat.cli.chosen import ALL, Ids, Query, agree, chosen, in_turn, leave, listed, print_each
from memchat.cli.options import (
    TYPES,
    App,
    Expires,
    Json,
    Limit,
    NewTags,
    Offset,
    Starts,
    User,
    WithTags,
    Yes,
    confirm,
    embed_now,
    group,
    known_app,
    open_store,
    type_name,
    type_names,
)
from memchat.types import EmbeddingState, Event, Evidence, Memory, clean_tags, to_json

if TYPE_CHECKING:
    from memchat.api import MemChat
    from memchat.api.memories import Memories

UPKEEP = ("embed", "reindex")
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


def with_embedding(memory: Memory, state: EmbeddingState) -> dict[str, Any]:
    """The memory as JSON, with the state of its vector."""
    return memory.to_json() | {
        "embedding_status": state.status,
        "embedding_model": state.model,
        "embedding_error": state.error,
    }


def everything(memories: Memories, memory: Memory) -> dict[str, Any]:
    """The memory as JSON, with its vector's state, its proofs and its history."""
    evidence, events = memories.evidence(memory.id), memories.history(memory.id)
    (state,) = memories.embedding_states([memory.id])
    return with_embedding(memory, state) | {
        "evidence": [to_json(item) for item in evidence],
        "history": [to_json(event) for event in events],
    }


def print_memory(
    mc: MemChat, memory: Memory, state: EmbeddingState, client: str | None = None
) -> None:
    """Print what is known of one memory, a line for each thing; ``client`` is the program that
    stored it over MCP."""
    zone = mc.settings.zone
    today: date = datetime.now(zone).date()
    times = "once" if memory.seen_count == 1 else f"{memory.seen_count} times"
    origin = f"by {client} over MCP" if client is not None else memory.created_by
    lines = {
        "value": memory.value,
        "key": memory.key,
        "type": memory.memory_type,
        "state": output.memory_state(memory, today),
        "user": memory.user,
        "app": output.app_name(memory.app),
        "from": memory.starts_at or "",
        "until": memory.expires_at or "(no end)",
        "created": f"{output.time(memory.created_at, zone)}, {origin}",
        "updated": output.time(memory.updated_at, zone),
        "seen": f"{times}, last {output.time(memory.last_seen_at, zone)}",
    }
    if memory.starts_at is None:
        del lines["from"]
    lines["vector"] = output.vector(state)
    if memory.pinned:
        lines["pinned"] = "at hand in every chat"
    if memory.sensitive:
        lines["sensitive"] = "a chat model gets it only where it fits the message"
    if memory.tags:
        lines["tags"] = ", ".join(memory.tags)
    if memory.replaced_by is not None:
        lines["replaced"] = f"by memory {memory.replaced_by}"
    for name, content in lines.items():
        print(output.plain(f"{name:<9} {content}"))


def evidence_line(mc: MemChat, evidence: Evidence) -> str:
    """The words that prove a memory, by whom and when they were said or sent."""
    words, at = " ".join(evidence.quote.split()), output.time(evidence.said_at, mc.settings.zone)
    if evidence.client is not None:
        return f"sent      “{words}” (by {evidence.client} over MCP, {at})"
    title = f", {evidence.session_title}" if evidence.session_title else ""
    where = f"session {evidence.session_id}{title}"
    return f"said      “{words}” ({evidence.role}, {at}, {where})"


def told_events(events: Sequence[Event]) -> list[Event]:
    """The events that changed the fact, without those of the index."""
    return [event for event in events if event.kind not in UPKEEP]


def event_line(mc: MemChat, event: Event) -> str:
    """One line of a history: when, what, by whom and why, and what changed."""
    why = f" ({event.cause})" if event.cause else ""
    what = f"{event.kind} by {event.actor}{why}"
    return f"{output.time(event.at, mc.settings.zone)} {what} {difference(event)}".rstrip()


def difference(event: Event) -> str:
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


def asked_first(
    memories: Memories, save: Callable[[Memories, bool], Memory], *, yes: bool
) -> Memory:
    """Save; what looks like a secret only if the person agrees."""
    from memchat.errors import SecretError

    try:
        return save(memories, yes)
    except SecretError as error:
        what = f"looks like a {error.kind}"
        confirm(f"This {what}. Keep it anyway?", yes=False, why=f"this {what}")
        return save(memories, True)


def print_stored(memory: Memory, key: str | None, as_json: bool) -> None:
    """The memory that was entered, and its key where it is stored under another than ``key``."""
    output.print_written(memory, as_json)
    if key is not None and memory.key != key:
        output.notice(f"“{key}” is stored under the key {memory.key}")


app = group("See, add, correct and forget what is remembered.")

Id = Annotated[int, typer.Argument(metavar="ID", help="The memory's number.", show_default=False)]
Status = Annotated[
    Literal["active", "inactive", "expired", "expiring", "all", "pending", "completed", "failed"],
    typer.Option("--status", help="Which ones; the last three by how their vector stands."),
]
OfType = Annotated[
    str | None,
    typer.Option(
        "--type",
        parser=type_name,
        autocompletion=type_names,
        metavar="TYPE",
        help=f"Only one of {TYPES}.",
        show_default=False,
    ),
]
AT_ONCE = 100
"""Memories that are forgotten in one transaction."""
VECTOR_STATUSES = ("pending", "completed", "failed")


@app.command("list")
def list_memories(
    user: User,
    days: Annotated[
        int | None,
        typer.Argument(
            metavar="DAYS",
            min=0,
            help="With --expiring: within how many days (default 30).",
            show_default=False,
        ),
    ] = None,
    app: App = "default",
    status: Status = "active",
    expiring: Annotated[
        bool, typer.Option("--expiring", help="Only those that soon end, the soonest first.")
    ] = False,
    memory_type: OfType = None,
    tags: WithTags = None,
    limit: Limit = 100,
    offset: Offset = 0,
    as_json: Json = False,
) -> None:
    """List memories, newest first.

    The app's own, and those that the user has in every app.
    """
    status = "expiring" if expiring else status
    if days is not None and status != "expiring":
        raise typer.BadParameter("a number of days goes with --expiring")
    chosen: dict[str, Any] = {"status": status, "type": memory_type, "tags": tags or ()}
    chosen |= {} if days is None else {"within": days}
    with open_store() as mc:
        memories = known_app(mc, user, app).memories
        found = memories.list(**chosen, limit=offset + limit)[offset:]
        vectors = {
            state.memory_id: state for state in memories.embedding_states([m.id for m in found])
        }
        if as_json:
            output.print_json([with_embedding(m, vectors[m.id]) for m in found])
            return
        total = memories.count(**chosen)
        zone = mc.settings.zone
        today = datetime.now(zone).date()
        rows = [output.memory_row(memory, zone, today) for memory in found]
        headings: tuple[str, ...] = output.MEMORY_HEADINGS
        if any(memory.tags for memory in found):
            headings += ("tags",)
            rows = [(*row, ", ".join(m.tags)) for row, m in zip(rows, found, strict=True)]
        if status in VECTOR_STATUSES:
            headings += ("vector",)
            rows = [
                (*row, output.vector(vectors[m.id])) for row, m in zip(rows, found, strict=True)
            ]
        output.print_table(
            headings,
            rows,
            none=f"no memories of {user} in {app} (status {status})",
            more=output.more_line(len(found), offset, total),
        )


@app.command("show")
def show_memory(memory_id: Id, user: User, app: App = "default", as_json: Json = False) -> None:
    """Show one memory, the words that prove it, and its history."""
    with open_store() as mc:
        memories = mc.user(user, app=app).memories
        memory = memories.get(memory_id)
        if as_json:
            output.print_json(everything(memories, memory))
            return
        (state,) = memories.embedding_states([memory_id])
        client = mc.user(user, app=app).clients.of_memories([memory_id]).get(memory_id)
        print_memory(mc, memory, state, client)
        for evidence in memories.evidence(memory_id):
            print(output.plain(evidence_line(mc, evidence)))
        for event in told_events(memories.history(memory_id)):
            print(output.plain(f"history   {event_line(mc, event)}"))


@app.command()
def add(
    memory_type: Annotated[
        str,
        typer.Argument(
            parser=type_name,
            autocompletion=type_names,
            metavar="TYPE",
            help=f"One of {TYPES}.",
        ),
    ],
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its name, such as city.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="What is to be remembered.")],
    user: User,
    app: App = "default",
    expires: Expires = None,
    starts: Starts = None,
    all_apps: Annotated[bool, typer.Option("--all-apps", help="Keep it for every app.")] = False,
    tags: NewTags = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remember something by hand, and print its id.

    What it replaces is told. Where it looks like a secret, you are asked first.

    Example: memchat memories add profile city Lisbon
    """

    def save(memories: Memories, keep_secret: bool) -> Memory:
        return memories.add(
            memory_type,
            key,
            value,
            all_apps=all_apps,
            expires_at=expires,
            starts_at=starts,
            keep_secret=keep_secret,
            tags=tags or (),
        )

    with open_store() as mc:
        memories, began = mc.user(user, app=app).memories, mc.now
        added = asked_first(memories, save, yes=yes)
        print_stored(added, key, as_json)
        for old in memories.replaced(added.id):
            if old.updated_at >= began:
                undo = output.command("memories restore", app)
                output.notice(output.changed(old, added, undo))
        embed_now(mc)


@app.command()
def edit(
    memory_id: Id,
    user: User,
    app: App = "default",
    value: Annotated[str | None, typer.Option("--value", help="The new value.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="The new key.")] = None,
    memory_type: Annotated[
        str | None,
        typer.Option(
            "--type",
            parser=type_name,
            autocompletion=type_names,
            metavar="TYPE",
            help=f"The new type: one of {TYPES}.",
        ),
    ] = None,
    expires: Expires = None,
    no_expiry: Annotated[bool, typer.Option("--no-expiry", help="It holds for good.")] = False,
    all_apps: Annotated[
        bool | None,
        typer.Option("--all-apps/--one-app", help="Keep it for every app, or for this one only."),
    ] = None,
    sensitive: Annotated[
        bool | None,
        typer.Option(
            "--sensitive/--not-sensitive",
            help="Whether a chat model gets it only where it fits the message.",
        ),
    ] = None,
    tags: NewTags = None,
    untag: Annotated[
        list[str] | None,
        typer.Option("--untag", metavar="TAG", help="Take this tag away.", show_default=False),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Correct a memory, and print its id.

    Where it looks like a secret now, you are asked first.

    Example: memchat memories edit 7 --value Porto
    """
    if expires is not None and no_expiry:
        raise typer.BadParameter("give either --expires or --no-expiry")
    changes: dict[str, Any] = {
        name: new
        for name, new in (
            ("value", value),
            ("key", key),
            ("type", memory_type),
            ("expires_at", expires),
            ("all_apps", all_apps),
            ("sensitive", sensitive),
        )
        if new is not None
    }
    if no_expiry:
        changes["expires_at"] = None
    if not changes and not tags and not untag:
        raise typer.BadParameter(
            "nothing to change; give --value, --key, --type, --expires, --tag or --untag"
        )

    def save(memories: Memories, keep_secret: bool) -> Memory:
        if tags or untag:
            kept = {*memories.get(memory_id).tags, *clean_tags(tags or ())}
            changes["tags"] = kept.difference(clean_tags(untag or ()))
        return memories.update(memory_id, keep_secret=keep_secret, **changes)

    with open_store() as mc:
        memories = mc.user(user, app=app).memories
        print_stored(asked_first(memories, save, yes=yes), key, as_json)
        embed_now(mc)


@app.command()
def delete(
    user: User,
    memory_ids: Ids = None,
    id_option: Annotated[
        list[int] | None,
        typer.Option("--id", metavar="ID", help="The same as an option.", show_default=False),
    ] = None,
    query: Query = None,
    tags: WithTags = None,
    app: App = "default",
    keep_transcript: Annotated[
        bool,
        typer.Option(
            "--keep-transcript",
            help="Leave its words in your conversations; nothing is found in them or learnt again.",
        ),
    ] = False,
    everywhere: Annotated[
        bool,
        typer.Option(
            "--everywhere",
            help="Blank all else that speaks of it, too; other memories that do are forgotten.",
        ),
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Forget memories for good, with the words that proved them.

    With --query and --tag old values go, too. Where anything else speaks of them, that is told,
    and can be blanked as well.

    Example: memchat memories delete 3 5 8
    """
    if keep_transcript and everywhere:
        raise typer.BadParameter("give either --keep-transcript or --everywhere")
    given = [*(memory_ids or ()), *(id_option or ())]
    with open_store() as mc:
        person = mc.user(user, app=app)
        memories = person.memories

        def find(words: str) -> Sequence[Memory]:
            return memories.list(words, status="all", tags=tags or (), limit=ALL)

        gone = chosen(given, memories.get, query, find, tags)
        names = [f"memory {m.id} “{m.key}: {m.value}”" for m in gone]
        agree("Forget {} for good?", names, "memories", yes=yes)
        numbers = [memory.id for memory in gone]
        found = None if keep_transcript else person.mentions.find(numbers)
        blank = (
            found and found.without_notes if everywhere else other_mentions.ask(mc, found, yes=yes)
        )
        forget = partial(memories.delete_many, keep_transcript=keep_transcript, blank=blank)
        done = in_turn(numbers, forget, at_once=AT_ONCE)
        if as_json:
            print_each([{"id": number, "forgotten": True} for number in done], one=len(given) == 1)
        if done:
            output.notice(f"forgot memor{'y' if len(done) == 1 else 'ies'} {listed(done)}")
        other_mentions.tell(mc, found, blank)
        backup.tell_forgotten(mc)
        leave(done, numbers)


@app.command()
def restore(memory_id: Id, user: User, app: App = "default", as_json: Json = False) -> None:
    """Bring back a replaced, merged, ended or expired memory."""
    with open_store() as mc:
        output.print_written(mc.user(user, app=app).memories.restore(memory_id), as_json)
        embed_now(mc)


@app.command()
def pin(
    memory_id: Id,
    user: User,
    app: App = "default",
    off: Annotated[bool, typer.Option("--off", help="Take it out of there again.")] = False,
    as_json: Json = False,
) -> None:
    """Have a memory at hand in every chat, whatever it is about."""
    with open_store() as mc:
        output.print_written(mc.user(user, app=app).memories.pin(memory_id, on=not off), as_json)


@app.command()
def clear(user: User, app: App = "default", yes: Yes = False, as_json: Json = False) -> None:
    """Forget all memories of one app for good, and print how many.

    What else speaks of them stays, and is told.
    """
    with open_store() as mc:
        person = known_app(mc, user, app)
        confirm(f"Forget all memories of {user} in {app} for good?", yes=yes)
        found = other_mentions.of_app(person)
        forgotten = person.memories.clear().memories
        if as_json:
            output.print_json({"app": app, "forgotten": forgotten})
        else:
            print(forgotten)
        other_mentions.tell_of_app(mc, found)
        backup.tell_forgotten(mc)


@app.command()
def history(memory_id: Id, user: User, app: App = "default", as_json: Json = False) -> None:
    """List what happened to a memory, oldest first."""
    with open_store() as mc:
        events = mc.user(user, app=app).memories.history(memory_id)
        if as_json:
            output.print_records(events)
            return
        output.print_table(
            ("at", "what", "by", "why", "change"),
            [
                (
                    output.time(event.at, mc.settings.zone),
                    event.kind,
                    event.actor,
                    event.cause,
                    difference(event),
                )
                for event in told_events(events)
            ],
            none=f"nothing is recorded of memory {memory_id}",
        )
