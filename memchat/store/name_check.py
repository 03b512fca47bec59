"""New names of users and apps must not hold invisible characters.

Otherwise two names could look alike and yet be two users. Names that were stored before this rule
stay usable, so that their data can be read and deleted.
"""

from __future__ import annotations

import unicodedata

from memchat.errors import ScopeError
from memchat.types import EVERY_APP

_HIDDEN = ("Cf", "Cn", "Co", "Zl", "Zp")
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and signs that are drawn as blanks."""
_JOINERS = "\u200c\u200d"


def refuse_invisible(name: str, what: str) -> None:
    """Raise ScopeError for a new name with a character that is invisible or changes the direction
    of the line."""
    if name.isascii() or name == EVERY_APP:
        return
    for place, char in enumerate(name):
        if _is_hidden(char) and not _is_needed(name, place):
            raise ScopeError(
                f"the {what} name holds a character that cannot be seen (U+{ord(char):04X}); "
                "type it again without it"
            )


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN or char in _BLANK or _selects(char)


def _selects(char: str) -> bool:
    """Whether it is a variation selector, which chooses the form of the character before it."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _is_needed(name: str, place: int) -> bool:
    """Whether an invisible character changes what is seen: in an emoji, or in a script that needs
    joiners."""
    before, after = name[place - 1 : place], name[place + 1 : place + 2]
    if name[place] == "\ufe0f":
        return _is_symbol(before)
    if name[place] not in _JOINERS or not before or not after:
        return False
    if _is_symbol(after) and (_is_symbol(before) or before == "\ufe0f"):
        return True
    return unicodedata.combining(before) == 9 or (
        unicodedata.bidirectional(before) == unicodedata.bidirectional(after) == "AL"
    )


def _is_symbol(char: str) -> bool:
    return bool(char) and unicodedata.category(char) in ("So", "Sk")
