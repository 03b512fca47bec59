"""What else speaks of a memory that is being forgotten: shown, asked about, and counted."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from memchat.cli import output
from memchat.types import Elsewhere, Place

if TYPE_CHECKING:
    from memchat.api import MemChat, User

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


def ask(mc: MemChat, found: Elsewhere | None, *, yes: bool) -> Elsewhere | None:
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
        _list(mc, found, len(found.places))
        said = output.answer("Blank which of them? [all/none, or their numbers]").lower()
    if said in ("y", "yes", "a", "all"):
        return found.without_notes if found.without_notes.places else None
    places = _numbered(found, said)
    return replace(found, places=places) if places else None


def tell(mc: MemChat, found: Elsewhere | None, blanked: Elsewhere | None) -> None:
    """What was blanked with the memory, and what still speaks of it."""
    if found is None:
        return
    if blanked is not None and blanked.places:
        output.notice(f"blanked with it: {blanked.counted}")
        for place in blanked.notes:
            if place.has_file:
                output.notice(
                    f"the file of note {place.id} still has the words, and they come back when it "
                    "is read again after a change"
                )
    gone = blanked.places if blanked is not None else ()
    left = replace(found, places=tuple(place for place in found.places if place not in gone))
    if not left.places:
        return
    output.notice(f"it is still spoken of elsewhere: {left.counted}")
    if not sys.stdin.isatty() or left.notes:
        _list(mc, left, LISTED)
    if left.notes:
        output.notice("a note is deleted by `memchat notes delete ID`")
    if left.without_notes.places:
        output.notice(
            "to blank these as well, add the memory again by hand and delete it with --everywhere"
        )


def of_app(person: User) -> Elsewhere | None:
    """What will still speak of an app's own memories once all of them are forgotten; None where
    nothing will, or where they are too many to look for it."""
    found = person.memories.list(status="all", limit=LOOKED_FOR + 1)
    if not found or len(found) > LOOKED_FOR:
        return None
    return person.mentions.find([m.id for m in found if m.app == person.scope.app])


def tell_of_app(mc: MemChat, found: Elsewhere | None) -> None:
    """What still speaks of an app's memories that were all forgotten."""
    if found is None or not found.places:
        return
    output.notice(f"they are still spoken of elsewhere: {found.counted}")
    _list(mc, found, LISTED)
    kinds = {place.kind for place in found.places}
    ways = ["memories delete"] if "memory" in kinds else []
    ways += ["inbox reject"] if "inbox" in kinds else []
    ways += ["notes delete"] if "note" in kinds else []
    ways += ["sessions delete"] if kinds & {"message", "reply", "title", "summary"} else []
    if ways:
        output.notice(f"to forget these as well: {', '.join(f'memchat {way}' for way in ways)}")


def _numbered(found: Elsewhere, said: str) -> tuple[Place, ...]:
    """The places that were named by their numbers; none where anything else was said."""
    parts = said.replace(",", " ").split()
    if not all(part.isdecimal() and 1 <= int(part) <= len(found.places) for part in parts):
        return ()
    return tuple(found.places[n - 1] for n in sorted({int(part) for part in parts}))


def _list(mc: MemChat, found: Elsewhere, most: int) -> None:
    for number, place in enumerate(found.places[:most], 1):
        what = _NAMES.get(place.kind, "{kind} in session {session}")
        what = what.format(id=place.id, kind=place.kind, session=place.session_id)
        day = output.time(place.at, mc.settings.zone)
        print(output.plain(f"{number:>4}. {day}  {what}: “{place.text}”"), file=sys.stderr)
    if len(found.places) > most:
        print(f"      and {len(found.places) - most} more", file=sys.stderr)
