"""``memchat apps``: the places a user talks in, each with its own memory and switch."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from memchat.cli import backup, other_mentions, output
from memchat.cli.options import (
    DEFAULT_APP,
    App,
    Json,
    User,
    Yes,
    confirm,
    group,
    known_app,
    open_store,
)

app = group("See the apps, switch their memory on and off, delete them.")

Name = Annotated[
    str | None,
    typer.Argument(metavar="APP", help="The app, the same as --app.", show_default=False),
]
AllApps = Annotated[bool, typer.Option("--all-apps", help="The user's own switch, over every app.")]


@app.command("list")
def list_apps(user: User, app: App = "default", as_json: Json = False) -> None:
    """List a user's apps, how much each remembers, and how many notes it has."""
    with open_store() as mc:
        person = mc.user(user, app=app)
        found = person.apps.list()
        if as_json:
            output.print_records(found)
            return
        output.print_table(
            ("app", "memory", "memories", "sessions", "notes", "since"),
            [
                (
                    item.name,
                    "on" if item.memory else "off",
                    item.memories,
                    item.sessions,
                    item.notes,
                    output.time(item.created_at, mc.settings.zone),
                )
                for item in found
            ],
            none=f"no apps of {user} yet",
        )
        switch = person.memory_switch()
        if not switch.on:
            output.notice(switch.reason)


@app.command()
def on(
    user: User,
    name: Name = None,
    app: App = DEFAULT_APP,
    all_apps: AllApps = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Switch memory on for an app, or for the user.

    An app that is not there yet is made, if you agree.
    """
    _switch(True, user, None if all_apps else name or app, yes, as_json)


@app.command()
def off(
    user: User,
    name: Name = None,
    app: App = DEFAULT_APP,
    all_apps: AllApps = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Switch memory off for an app, or for the user.

    Nothing is read, used or saved until it is on again. An app that is not there yet is made, if
    you agree.
    """
    _switch(False, user, None if all_apps else name or app, yes, as_json)


@app.command()
def delete(
    user: User,
    name: Name = None,
    app: Annotated[
        str | None, typer.Option("--app", help="The app to delete.", show_default=False)
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete an app with its conversations, notes and memories.

    Prints how many memories went, and which memories for every app speak of them.
    """
    chosen = name or app
    if chosen is None:
        raise typer.BadParameter("name the app to delete; memchat apps list shows them")
    with open_store() as mc:
        person = known_app(mc, user, chosen)
        confirm(
            f"Delete the app {chosen} of {user}, its conversations, notes and memories, for good?",
            yes=yes,
        )
        found = other_mentions.of_app(person)
        deleted = person.apps.delete(chosen)
        counts = {"memories": deleted.memories, "sessions": deleted.sessions}
        record = {"app": chosen, **counts, "notes": deleted.notes}
        output.print_result(record, deleted.memories, as_json)
        if found is not None:  # all but the memories for every app went with the app
            left = tuple(place for place in found.places if place.kind == "memory")
            other_mentions.tell_of_app(mc, replace(found, places=left))
        backup.tell_forgotten(mc)


def _switch(memory_on: bool, user: str, app: str | None, yes: bool, as_json: bool) -> None:
    with open_store() as mc:
        person = mc.user(user, app=app or DEFAULT_APP)
        known = {DEFAULT_APP, *(one.name for one in person.apps.list())}
        if app is not None and person.scope.app not in known:
            there = f"{user} has no app {app!r}"
            confirm(f"{there}. Make it?", yes=yes, why=f"{there} (see memchat apps list)")
        person.set_memory(memory_on, all_apps=app is None)
        where = f"the app {app}" if app is not None else "every app"
        said = f"memory is {'on' if memory_on else 'off'} for {user} in {where}"
        output.print_result({"app": app, "memory": memory_on}, said, as_json)
