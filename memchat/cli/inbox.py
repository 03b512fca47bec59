"""``memchat inbox``: what was held back, and a person's yes or no to it."""

from __future__ import annotations

from typing import Annotated

import typer

from memchat.cli import backup, tables
from memchat.cli.options import App, Json, User, embed_now, group, known_app, open_store
from memchat.types import InboxItem

app = group("See what waits for your decision, and say yes or no.")

Id = Annotated[int, typer.Argument(metavar="ID", help="The item, as `inbox list` shows it.")]


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
            tables.print_records(items)
            return
        tables.print_table(
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
    item_id: Id,
    user: User,
    app: App = "default",
    value: Annotated[
        str | None,
        typer.Option("--value", help="Remember these words instead.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say yes: it counts as your own word, and does what is asked. Prints the memory's id.

    A yes to forgetting deletes the memory for good.
    """
    with open_store() as mc:
        memory = mc.user(user, app=app).inbox.accept(item_id, value=value)
        if memory.inactive_reason == "forgotten":
            if as_json:
                tables.print_json({"id": memory.id, "forgotten": True})
            tables.notice(f"forgot memory {memory.id}")
            backup.tell_forgotten(mc)
            return
        tables.print_written(memory, as_json)
        embed_now(mc)


@app.command()
def reject(item_id: Id, user: User, app: App = "default", as_json: Json = False) -> None:
    """Say no: the same is not asked again."""
    with open_store() as mc:
        mc.user(user, app=app).inbox.reject(item_id)
        if as_json:
            tables.print_json({"id": item_id, "rejected": True})
        tables.notice(f"item {item_id} is rejected; the same is not asked again")
