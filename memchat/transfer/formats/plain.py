"""What is no product's own: messages in JSON, conversations in Markdown, pasted lines of facts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from memchat.transfer.archive import Member
from memchat.transfer.formats import Fields, Item, Reader, SavedFact, moment

_NAMES = {
    "user": r"user|you|human|me|prompt|question",
    "assistant": r"assistant|ai|bot|model|response|answer|copilot|perplexity|le chat"
    r"|(?:chatgpt|gpt|claude|gemini|grok|deepseek|llama|mistral|qwen)(?:[ .-]?[\w.-]+)?",
    "system": "system|tool",
}
_LABEL = re.compile(
    r"(?P<mark>#{1,6}[ \t]+|)(?P<bold>\*\*|__|)(?:[^\w\s*#]{1,4}[ \t]*)?"
    rf"(?:{'|'.join(f'(?P<{role}>{names})' for role, names in _NAMES.items())})(?:[ \t]+said)?"
    r"(?P<colon>:?)(?P=bold)(?P<more>:?)(?P<rest>(?:[^\w\n].*)?)",
    re.IGNORECASE,
)
_TIME = r"\d{4}-\d\d-\d\d(?:[T ,]+\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
_TIMED = re.compile(rf"[^\w\n]*(?P<time>{_TIME})?[^\w\n]*")
_FENCE = re.compile(r"[ \t>]{0,4}(```|~~~)")
_OURS = "# What memchat keeps of "
_LINE = re.compile(r"(?:[-*•]|\d{1,9}[.)])?\s*\[([^\]]{0,40})\][.:]?[\s–—:-]*(\S.*)")


def _label(line: str) -> tuple[str, str, datetime | None, str] | None:
    """The style of a line that says who speaks, the role, the time and what follows on the line."""
    if (found := _LABEL.fullmatch(line.strip())) is None:
        return None
    rest = found["rest"].strip()
    timed = _TIMED.fullmatch(rest) if len(rest) < 60 else None
    style, has_colon = found["mark"].strip() or found["bold"], found["colon"] or found["more"]
    if not (timed or has_colon) or not (style or has_colon) or (found["mark"] and not timed):
        return None
    role = next(role for role in _NAMES if found[role])
    return style, role, moment(timed["time"]) if timed else None, "" if timed else rest


class Markdown(Reader):
    """Reads one conversation: each message stands below a heading with who speaks, or behind
    their name in bold or with a colon. The first one of each says which of these it is."""

    PRODUCT = "Markdown"

    @staticmethod
    def begins(head: str) -> bool:
        labels = [found for line in head.splitlines() if (found := _label(line))]
        styled = bool(labels and labels[0][0])
        return styled or len({role for _, role, *_ in labels}) > 1 or head.startswith(_OURS)

    def read(self, member: Member) -> Iterator[Item]:
        from memchat.notes.formats import markdown

        page = markdown(member.text().encode())
        said: list[tuple[str, datetime | None, list[str]]] = [("", None, [])]
        styles, fenced = dict[str, str](), False
        for line in page.text.split("\n"):
            fenced ^= bool(_FENCE.match(line))
            found = None if fenced else _label(line)
            if found and styles.setdefault(found[1], found[0]) == found[0]:
                said.append((*found[1:3], [found[3]]))
            else:
                said[-1][2].append(line)
        before = [line for line in said[0][2] if line.strip(" \t-#*") not in ("", page.title)]
        if page.text.startswith(_OURS):
            self._leave_out("pages that memchat export wrote for people; import its jsonl")
        elif not any(role == "user" for role, *_ in said):
            self._leave_out("texts without a message of the person")
        else:
            self._leave_out("lines before the first message", len(before))
            title = "" if page.title is None or _label(f"# {page.title}") else page.title
            turns = [self._spoken(role, _words(lines), at) for role, at, lines in said[1:]]
            began = page.written_at and moment(page.written_at.isoformat())
            yield from self._talk("", title, turns, began)


def _words(lines: list[str]) -> str:
    """What was said, without the rules around it and the marks of a quotation."""
    if all(line.startswith(">") for line in lines if line.strip()):
        lines = [line.removeprefix(">").removeprefix(" ") for line in lines]
    spoken = [number for number, line in enumerate(lines) if line.strip(" \t-*_")]
    return "\n".join(lines[spoken[0] : spoken[-1] + 1]).strip() if spoken else ""


class Lines(Reader):
    """Reads lines such as "- [2024-05-01] Likes tea", at most a few others before them."""

    PRODUCT = "a list of facts"

    @staticmethod
    def begins(head: str) -> bool:
        lines = [line.strip() for line in head.splitlines() if line.strip()][:20]
        return any(found and moment(found[1].strip()) for found in map(_LINE.match, lines))

    def read(self, member: Member) -> Iterator[Item]:
        for line in member.text().splitlines():
            if found := _LINE.match(line.strip()):
                at = moment(found[1].strip())
                yield SavedFact(found[2], at and at.date())
            elif line.strip(" \t`-=#*"):
                self._leave_out("lines that are no “- [date] fact”")


class Messages(Reader):
    """Reads conversations in the form of OpenAI's chat API: ``messages`` of a role and content."""

    PRODUCT = "JSON"
    TIMES = ("created_at", "time", "timestamp", "date", "at")

    @staticmethod
    def holds(record: Fields) -> bool:
        return "messages" in record

    def take(self, record: Fields) -> Iterator[Item]:
        name = record.name("session", "conversation_id", "id", "uuid")
        title = record.text("title") or record.text("name")
        said = record.each("messages")
        turns = (self._spoken(m.name("role"), m.said(), m.time(*self.TIMES)) for m in said)
        yield from self._talk(name, title, turns, record.time(*self.TIMES))
