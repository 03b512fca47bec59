"""``memchat inbox``: what waits for a person's decision, and their yes or no to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typer import BadParameter

from memchat.cli import output
from memchat.cli.command import Call, Ids, Query, Yes, agree, command, group, listed
from memchat.errors import NotFound
from memchat.types import InboxItem, Memory

if TYPE_CHECKING:
    from memchat.api.inbox import Inbox

app = group("See what waits for your decision, and say yes or no.")


@command(app, "list")
def list_items(call: Call) -> None:
    """List what waits for a yes, what a yes does, and why it waits.

    A yes remembers something, puts it in the place of what is known, or ends that. What another
    program asks over MCP names the program: to forget a memory for good, or keep it in every app.
    """
    inbox = call.known.inbox
    call.table(
        inbox.list(),
        {
            "id": "id",
            "would remember": _proposes,
            "asks": inbox.question,
            "held back because": "reason",
        },
        none=f"nothing waits for {call.user} in {call.app}",
    )


def _proposes(item: InboxItem) -> str:
    if item.key is None:
        return ""
    return f"{item.key}: {item.value}" if item.relation != "ends" else f"end of {item.key}"


@command(app)
def accept(
    call: Call,
    item_ids: Ids = None,
    query: Query = None,
    value: str | None = None,
    yes: Yes = False,
) -> None:
    """Say yes: it counts as your own word, and does what is asked. Prints the memory's id.

    A yes to forgetting deletes the memory for good. What --query finds is shown first.

    :param value: Remember these words instead.
    """
    inbox = call.person.inbox
    numbers = _chosen(call, inbox, item_ids, query, "Say yes to {}?", yes=yes)
    if value is not None and len(numbers) > 1:
        raise BadParameter("--value goes with the number of one item")
    stored: dict[int, Memory] = {}

    def say_yes(part: Sequence[int]) -> None:
        stored[part[0]] = inbox.accept(*part, value=value)

    call.each(numbers, say_yes, lambda item_id: _answered(stored[item_id]))
    forgotten = [one for one in stored.values() if one.inactive_reason == "forgotten"]
    for memory in stored.values():
        if memory in forgotten:
            output.notice(f"forgot memory {memory.id}")
        elif not call.as_json:
            print(memory.id)
    if forgotten:
        call.tell_forgotten()
    call.embed_now()


@command(app)
def reject(call: Call, item_ids: Ids = None, query: Query = None, yes: Yes = False) -> None:
    """Say no: the same is not asked again. What --query finds is shown first."""
    inbox = call.person.inbox
    numbers = _chosen(call, inbox, item_ids, query, "Say no to {}?", yes=yes)
    done = call.each(
        numbers, lambda part: inbox.reject(*part), lambda i: {"id": i, "rejected": True}
    )
    if done:
        are = f"item {done[0]} is" if len(done) == 1 else f"items {listed(done)} are"
        output.notice(f"{are} rejected; the same is not asked again")


def _chosen(
    call: Call, inbox: Inbox, ids: Sequence[int] | None, query: str | None, ask: str, *, yes: bool
) -> list[int]:
    """The items a command is about. What was named by its number is not asked about."""
    from memchat.language.text import folded, holds_all

    waiting = {item.id: item for item in inbox.list()}

    def get(number: int) -> InboxItem:
        if number not in waiting:
            raise NotFound(f"nothing waits under the number {number}; see memchat inbox list")
        return waiting[number]

    def named(item: InboxItem) -> str:
        return f"item {item.id}: {_proposes(item)} {inbox.question(item)}"

    def find(words: str) -> list[InboxItem]:
        return [item for item in waiting.values() if holds_all(folded(words), named(item))]

    found = call.chosen(ids, get, query, find)
    agree(ask, [named(item) for item in found], "items", yes=yes or bool(ids))
    return [item.id for item in found]


def _answered(memory: Memory) -> dict[str, Any]:
    if memory.inactive_reason == "forgotten":
        return {"id": memory.id, "forgotten": True}
    return memory.to_json()
