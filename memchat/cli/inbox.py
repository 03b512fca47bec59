"""``memchat inbox``: what was held back, and a person's yes or no to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memchat.cli import backup, output
from memchat.cli.chosen import Ids, Query, agree, chosen, in_turn, leave, listed, print_each
from memchat.cli.options import App, Json, User, Yes, embed_now, group, known_app, open_store
from memchat.errors import NotFound
from memchat.language.text import folded, holds_all
from memchat.types import InboxItem, Memory

if TYPE_CHECKING:
    from memchat.api.inbox import Inbox

app = group("See what waits for your decision, and say yes or no.")


@app.command(name="list")
def list_(user: User, app: App = "default", as_json: Json = False) -> None:
    """List what waits for a yes, what a yes does, and why it waits.

    A yes remembers something, puts it in the place of what is known, or ends that. What another
    program asks over MCP names the program: to forget a memory for good, or keep it in every app.
    """
    with open_store() as mc:
        person = known_app(mc, user, app)
        items = person.inbox.list()
        if as_json:
            output.print_records(items)
            return
        output.print_table(
            ("id", "would remember", "asks", "held back because"),
            [
                (
                    item.id,
                    _proposes(item),
                    person.inbox.question(item),
                    item.reason,
                )
                for item in items
            ],
            none=f"nothing waits for {user} in {app}",
        )


def _proposes(item: InboxItem) -> str:
    if item.key is None:
        return ""
    return f"{item.key}: {item.value}" if item.relation != "ends" else f"end of {item.key}"


@app.command()
def accept(
    user: User,
    item_ids: Ids = None,
    query: Query = None,
    app: App = "default",
    value: Annotated[
        str | None,
        typer.Option("--value", help="Remember these words instead.", show_default=False),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Say yes: it counts as your own word, and does what is asked. Prints the memory's id.

    A yes to forgetting deletes the memory for good. What --query finds is shown first.
    """
    with open_store() as mc:
        inbox = mc.user(user, app=app).inbox
        numbers = _chosen(inbox, item_ids, query, "Say yes to {}?", yes=yes)
        if value is not None and len(numbers) > 1:
            raise typer.BadParameter("--value goes with the number of one item")
        stored: list[Memory] = []
        done = in_turn(numbers, lambda part: stored.append(inbox.accept(*part, value=value)))
        for memory in stored:
            if memory.inactive_reason == "forgotten":
                output.notice(f"forgot memory {memory.id}")
            elif not as_json:
                print(memory.id)
        if as_json:
            print_each([_answered(memory) for memory in stored], one=len(item_ids or ()) == 1)
        if any(memory.inactive_reason == "forgotten" for memory in stored):
            backup.tell_forgotten(mc)
        embed_now(mc)
        leave(done, numbers)


@app.command()
def reject(
    user: User,
    item_ids: Ids = None,
    query: Query = None,
    app: App = "default",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Say no: the same is not asked again. What --query finds is shown first."""
    with open_store() as mc:
        inbox = mc.user(user, app=app).inbox
        numbers = _chosen(inbox, item_ids, query, "Say no to {}?", yes=yes)
        done = in_turn(numbers, lambda part: inbox.reject(*part))
        if as_json:
            one = len(item_ids or ()) == 1
            print_each([{"id": number, "rejected": True} for number in done], one=one)
        if done:
            are = f"item {done[0]} is" if len(done) == 1 else f"items {listed(done)} are"
            output.notice(f"{are} rejected; the same is not asked again")
        leave(done, numbers)


def _chosen(
    inbox: Inbox, ids: Sequence[int] | None, query: str | None, ask: str, *, yes: bool
) -> list[int]:
    """The items a command is about. What was named by its number is not asked about."""
    waiting = {item.id: item for item in inbox.list()}

    def get(number: int) -> InboxItem:
        if number not in waiting:
            raise NotFound(f"nothing waits under the number {number}; see memchat inbox list")
        return waiting[number]

    def named(item: InboxItem) -> str:
        return f"item {item.id}: {_proposes(item)} {inbox.question(item)}"

    def find(words: str) -> list[InboxItem]:
        return [item for item in waiting.values() if holds_all(folded(words), named(item))]

    found = chosen(ids, get, query, find)
    agree(ask, [named(item) for item in found], "items", yes=yes or bool(ids))
    return [item.id for item in found]


def _answered(memory: Memory) -> dict[str, Any]:
    if memory.inactive_reason == "forgotten":
        return {"id": memory.id, "forgotten": True}
    return memory.to_json()
