"""``memchat apps``: the places a user talks in, each with its own memory and switch."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from typer import Argument, BadParameter, Option

from memchat.cli import memories, output
from memchat.cli.command import DEFAULT_APP, Call, Yes, command, confirm, group

app = group("See the apps, switch their memory on and off, delete them.")

Name = Annotated[str | None, Argument(metavar="APP", help="The app, the same as --app.")]
AllApps = Annotated[bool, Option("--all-apps", help="The user's own switch, over every app.")]


@command(app, "list")
def list_apps(call: Call) -> None:
    """List a user's apps, how much each remembers, and how many notes it has."""
    call.table(
        call.person.apps.list(),
        {
            "app": "name",
            "memory": lambda item: "on" if item.memory else "off",
            "memories": "memories",
            "sessions": "sessions",
            "notes": "notes",
            "since": "created_at",
        },
        none=f"no apps of {call.user} yet",
    )
    switch = call.person.memory_switch()
    if not switch.on and not call.as_json:
        output.notice(switch.reason)


@command(app)
def on(call: Call, name: Name = None, all_apps: AllApps = False, yes: Yes = False) -> None:
    """Switch memory on for an app, or for the user.

    An app that is not there yet is made, if you agree.
    """
    _switch(call, True, name, all_apps=all_apps, yes=yes)


@command(app)
def off(call: Call, name: Name = None, all_apps: AllApps = False, yes: Yes = False) -> None:
    """Switch memory off for an app, or for the user.

    Nothing is read, used or saved until it is on again. An app that is not there yet is made, if
    you agree.
    """
    _switch(call, False, name, all_apps=all_apps, yes=yes)


@command(app, without="app")
def delete(call: Call, name: Name = None, app: str | None = None, yes: Yes = False) -> None:
    """Delete an app with its conversations, notes and memories.

    Prints how many memories went, and which memories for every app speak of them.

    :param app: The app to delete.
    """
    chosen = name or app
    if chosen is None:
        raise BadParameter("name the app to delete; memchat apps list shows them")
    call.app = chosen
    person = call.known
    confirm(
        f"Delete the app {chosen} of {call.user}, its conversations, notes and memories, for good?",
        yes=yes,
    )
    found = memories.mentions_of_app(person)
    deleted = person.apps.delete(chosen)
    counts = {"memories": deleted.memories, "sessions": deleted.sessions}
    call.result({"app": chosen, **counts, "notes": deleted.notes}, deleted.memories)
    if found is not None:  # all but the memories for every app went with the app
        left = tuple(place for place in found.places if place.kind == "memory")
        memories.tell_mentions_of_app(call, replace(found, places=left))
    call.tell_forgotten()


def _switch(call: Call, memory_on: bool, name: str | None, *, all_apps: bool, yes: bool) -> None:
    app = None if all_apps else name or call.app
    call.app = app or DEFAULT_APP
    person = call.person
    known = {DEFAULT_APP, *(one.name for one in person.apps.list())}
    if app is not None and person.scope.app not in known:
        there = f"{call.user} has no app {app!r}"
        confirm(f"{there}. Make it?", yes=yes, why=f"{there} (see memchat apps list)")
    person.set_memory(memory_on, all_apps=all_apps)
    where = f"the app {app}" if app is not None else "every app"
    said = f"memory is {'on' if memory_on else 'off'} for {call.user} in {where}"
    call.result({"app": app, "memory": memory_on}, said)
