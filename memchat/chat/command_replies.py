"""The sentences that code, not a model, says in a conversation, and finding them in stored replies.

``lists`` and ``split`` know a list or a question of a stored reply by the wording of these
sentences. If one of them changes, they no longer find it in replies from before the change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from memchat import types
from memchat.chat import command_words
from memchat.chat.command_words import ForgetAnswer
from memchat.search import render

INCOGNITO = {
    "remember": "This conversation is incognito: I will not remember this. Say it in another one.",
    "forget": "This conversation is incognito: nothing that is kept is touched from here. "
    "`memchat memories delete ID` forgets it.",
    "list": "This conversation is incognito: nothing that is remembered is read here. "
    "`memchat memories list` shows it.",
}
OFF = {
    "remember": "{reason}, so I will not remember this. `memchat apps on` switches it on.",
    "forget": "{reason}, so I do not look into it. `memchat memories delete ID` forgets what was "
    "kept before.",
    "list": "{reason}, so I do not look into it. `memchat memories list` shows what was kept "
    "before.",
}
LATER = "Not saved yet: I read our conversation when it ends, and note it then if I can."
NOT_DONE = "That did not work: nothing was saved or forgotten. Please say it again."
NOT_KEPT = "Not saved: that is a {kind}, and such things are never kept."
UNWANTED = "Not saved: you asked for it not to be."
NOTHING_FORGOTTEN = "Nothing was forgotten."
NOTHING_BLANKED = "All else stays as it is."
STILL_ASKED = "Nothing was forgotten yet."
NOTHING_FOUND = "I remember nothing about that, so there is nothing to forget."
NOTHING_KNOWN = "I remember nothing about you yet."
MESSAGES = ("message of this conversation", "messages of this conversation")
QUOTED_MOST = 160
"""Characters that a question quotes of a message."""
ALSO_MOST = 5
"""Other places that a reply quotes."""
REMEMBERED = "I remember {counted} about you."
MORE_LISTED = "and {more} more: `memchat memories list` shows them all."
FORGET_ONE = "Forget it for good? (yes or no)"
FORGET_SOME = "Forget these {count} for good? (yes, no, or the numbers)"
BLANK = "Blank all of these, too? (yes or no)"
IN_NOTES = "It is also in {what}. A note stays as it is; `memchat notes delete ID` deletes it."
HEADINGS = {"profile": "Profile", "preference": "Preferences", "fact": "Facts", "other": "Other"}


@dataclass(frozen=True, slots=True)
class ForgetChoice:
    """The question what to forget, as it was shown, and the turn that led to it."""

    turn: types.Message
    memories: tuple[types.Memory, ...]
    unread: tuple[types.Message, ...] = ()
    """Messages of this conversation that nothing was learnt from yet. They are shown behind the
    memories, and ``chosen`` numbers name them by their ids below zero."""
    elsewhere: types.Elsewhere | None = None
    """Once they are forgotten: what else mentions them, which the question is about then."""
    home: int = 0
    """The scope row that the first of them was in."""
    unproved: tuple[types.Memory, ...] = ()
    """Other memories that lose their proof with them."""

    @property
    def asked(self) -> types.Question:
        """The question without its words."""
        if self.elsewhere is not None:
            return types.Question("blank", 1)
        return types.Question("forget", len(self.memories) + len(self.unread))

    def answered_by(self, message: str) -> ForgetAnswer | None:
        """What a message agrees to forget, and what else it says; None where it is no answer."""
        shown = {m.id: f"{m.key.replace('_', ' ')} {m.value}" for m in self.memories}
        return command_words.answer_to(
            message, shown | {-turn.id: turn.content for turn in self.unread}
        )


@dataclass(frozen=True, slots=True)
class CodeReply:
    """What code says in a reply, and what it did."""

    text: str = ""
    changes: tuple[types.Change, ...] = ()
    hits: tuple[types.Hit, ...] = ()
    """The memories that the text quotes: they go on the reply's receipt."""
    choice: ForgetChoice | None = None
    """The question it ends with."""

    def __add__(self, other: CodeReply) -> CodeReply:
        text = "\n".join(dict.fromkeys(filter(None, (self.text, other.text))))
        changes, hits = self.changes + other.changes, self.hits + other.hits
        return CodeReply(text, changes, hits, other.choice or self.choice)


def off(kind: str, switch: types.MemorySwitch) -> CodeReply:
    """Why nothing is done while memory takes no part."""
    if switch.reason == "incognito":
        return CodeReply(INCOGNITO[kind])
    return CodeReply(OFF[kind].format(reason=f"{switch.reason[:1].upper()}{switch.reason[1:]}"))


def remembered(changes: Sequence[types.Change]) -> CodeReply:
    """What became of words to be remembered, each with the reason where it was not saved."""
    return CodeReply("\n".join(_outcome(change) for change in changes), tuple(changes))


def forgotten(count: int, wanted: int) -> CodeReply:
    """How many memories went; never their words."""
    text = f"Forgotten: {_counted(count)}."
    if count < wanted:
        text += f" {_counted(wanted - count)} had changed meanwhile and stayed."
    return CodeReply(text, tuple(types.Change("forgotten", None) for _ in range(count)))


def still_in_backups(count: int) -> CodeReply:
    """That copies of the store still hold what was forgotten."""
    held = _counted(count, "backup", "backups")
    return CodeReply(f"Its words are still in {held}; `memchat backup prune NAME` deletes one.")


def not_to_be_learnt(count: int, wanted: int) -> CodeReply:
    """How many messages nothing will be learnt from, of those that were chosen."""
    lines = []
    if count:
        whose = "Its" if count == 1 else "Their"
        lines.append(
            f"Nothing will be learnt from {_counted(count, *MESSAGES)}. {whose} words stay in this "
            "conversation; `memchat sessions delete` deletes them."
        )
    if count < wanted:
        read = _counted(wanted - count, *MESSAGES)
        lines.append(f"{read} had been read meanwhile; please ask again.")
    return CodeReply("\n".join(lines))


def ask_to_blank(choice: ForgetChoice, found: types.Elsewhere, zone: ZoneInfo) -> CodeReply:
    """What else mentions the forgotten memories, as it would read, and whether to blank it."""
    shown = found.places[:ALSO_MOST]
    lines = [f"It is also spoken of elsewhere: {found.counted}."]
    lines += [f"- {render.day(place.at, zone)}, {place.kind}: “{place.text}”" for place in shown]
    if len(found.places) > len(shown):
        lines.append(f"and {len(found.places) - len(shown)} more.")
    if any(place.kind == "memory" for place in found.places):
        lines.append("Another memory would be forgotten as a whole.")
    lines.append(BLANK)
    return CodeReply("\n".join(lines), choice=choice)


def in_notes(found: types.Elsewhere, zone: ZoneInfo) -> CodeReply:
    """Which notes mention the forgotten memories, and what can be done; nothing where none does."""
    if not found.notes:
        return CodeReply()
    named = [
        f"the note {place.id} of {render.day(place.at, zone)} (“{place.text}”)"
        for place in found.notes[:ALSO_MOST]
    ]
    if len(found.notes) > len(named):
        named.append(f"{len(found.notes) - len(named)} more")
    return CodeReply(IN_NOTES.format(what=", ".join(named)))


def blanked(found: types.Elsewhere) -> CodeReply:
    """What was blanked; never its words."""
    return CodeReply(f"Blanked: {found.counted}.")


def question(choice: ForgetChoice, more: int, zone: ZoneInfo) -> CodeReply:
    """What was found, numbered, and whether to forget it."""
    found = choice.memories
    shown = [_line(memory, zone) for memory in found]
    shown += [
        f"not learnt yet: “{types.first_words(turn.content, QUOTED_MOST)}”"
        for turn in choice.unread
    ]
    counted = [_counted(len(found) + more)] if found or more else []
    counted += [_counted(len(choice.unread), *MESSAGES)] if choice.unread else []
    lines = [f"I found {' and '.join(counted)}:"]
    lines += [f"{n}. {line}" for n, line in enumerate(shown, 1)]
    if more:
        lines.append(f"and {more} more; `memchat memories clear` forgets all of them at once.")
    if choice.unproved:
        told = " ".join(f"“{memory.told}”" for memory in choice.unproved)
        lines.append(f"No words will prove this any more, which stays: {told}")
    if len(shown) == 1:
        lines.append(FORGET_ONE)
    else:
        lines.append(FORGET_SOME.format(count=len(shown)))
    hits = _quoted((*found, *choice.unproved), zone)
    return CodeReply("\n".join(lines), hits=hits, choice=choice)


def asked_again(choice: ForgetChoice, zone: ZoneInfo) -> CodeReply:
    """The question once more, after a message that was no plain answer to it."""
    once_more = question(choice, 0, zone)
    return replace(once_more, text=f"{STILL_ASKED} {once_more.text}")


def listing(found: Sequence[types.Memory], most: int, zone: ZoneInfo) -> CodeReply:
    """All that is remembered, by type, newest first; what is beyond ``most`` is only counted."""
    if not found:
        return CodeReply(NOTHING_KNOWN)
    shown = found[:most]
    lines = [REMEMBERED.format(counted=_counted(len(found)))]
    kinds = dict.fromkeys([*types.MEMORY_TYPES, *(memory.memory_type for memory in shown)])
    for kind in kinds:
        rows = [memory for memory in shown if memory.memory_type == kind]
        lines += [f"{HEADINGS.get(kind, kind)}:"] if rows else []
        lines += [f"- {_line(memory, zone)}" for memory in rows]
    if len(found) > most:
        lines.append(MORE_LISTED.format(more=len(found) - most))
    return CodeReply("\n".join(lines), hits=_quoted(shown, zone))


def _outcome(change: types.Change) -> str:
    fact = change.memory.told.rstrip(".") if change.memory is not None else ""
    if change.memory is not None and change.memory.starts_at is not None:
        fact += f" (from {change.memory.starts_at.isoformat()})"
    if change.memory is not None and change.memory.expires_at is not None:
        fact += f" (until {change.memory.expires_at.isoformat()})"
    if change.kind == "review":
        why = change.reason or ""
        stop = "" if why.endswith("?") else "."
        return f"Not saved yet: {why}{stop} It waits for your yes: `memchat inbox list`."
    if change.kind == "refused":
        return f"Not saved: {change.reason}."
    if change.kind == "repeated":
        return f"I knew that already: {fact}."
    if change.kind == "ended":
        return f"Noted as over: {fact}."
    before = f" (before: {change.before})" if change.before is not None else ""
    return f"Saved: {fact}{before}."


def _line(memory: types.Memory, zone: ZoneInfo) -> str:
    """A memory with its id and its days."""
    days = [render.said(memory, zone)]
    if memory.expires_at is not None:
        days.append(f"until {memory.expires_at.isoformat()}")
    if not memory.active:
        days.append(memory.inactive_reason or "inactive")
    if memory.app == types.EVERY_APP:
        days.append("kept everywhere")
    return f"#{memory.id} {memory.told.rstrip('.')} ({', '.join(days)})"


def _quoted(found: Sequence[types.Memory], zone: ZoneInfo) -> tuple[types.Hit, ...]:
    return tuple(
        types.Hit("memory", m.id, render.line(m, zone), 1.0, None, None, "listed", 0, m, m.said_at)
        for m in found
    )


def _counted(count: int, one: str = "memory", more: str = "memories") -> str:
    return f"{count} {one if count == 1 else more}"


def _pattern(sentence: str) -> str:
    """A regular expression for a sentence of this module with anything in its gaps."""
    return re.sub(r"\\{\w+\\}", ".*", re.escape(sentence))


_HEAD = re.compile(rf"^{_pattern(REMEMBERED)}$", re.MULTILINE)
_HEADINGS = "|".join((*map(re.escape, HEADINGS.values()), types.TYPE_NAME.pattern))
_LISTED = re.compile(rf"\n(?:- #\d+ .*|(?:{_HEADINGS}):|{_pattern(MORE_LISTED)})")
_QUESTIONS = (FORGET_ONE, FORGET_SOME, BLANK)
_QUESTION = re.compile(rf"\n(?P<asked>{'|'.join(map(_pattern, _QUESTIONS))})\Z")


def lists(text: str) -> bool:
    """Whether a reply reads like a list of memories. Only its receipt proves that code wrote it."""
    return _HEAD.search(text) is not None


def split(text: str, listed: tuple[int, ...] = ()) -> types.ReplyParts:
    """The parts of a reply in which code listed these memories."""
    asked = _QUESTION.search(text)
    question = asked["asked"] if asked is not None else ""
    rest = text[: asked.start()] if asked is not None else text
    head = _HEAD.search(rest) if listed else None
    if head is None:
        return types.ReplyParts(rest, question=question)
    after = _LISTED.sub("", rest[head.end() :]).strip()
    return types.ReplyParts(rest[: head.end()], listed, after, question)
