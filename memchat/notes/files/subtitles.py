"""Subtitles (SRT and WebVTT) as running text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memchat.errors import InputError
from memchat.notes.files.document import Document
from memchat.notes.files.plain_text import decode, unescapable

_TIME = r"(?:(\d{1,6}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_TIMES = re.compile(rf"^\s*{_TIME}\s*-->\s*{_TIME}")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]*>|</?[\d:.]+>|\{\\[^{}\n]*\}")
_VOICE = re.compile(r"<v(?:\.[\w.-]+)?\s([^<>\n]+)>")
_DASH = re.compile(r"^[-–—]\s*(?=\S)")
_CHANGE = re.compile(rf"{_DASH.pattern}|^[^\W\d_a-z][\w.'’-]*(?: [\w.'’-]+){{0,2}}: ")
"""Another speaker begins: with a dash, or with their name."""
_END = re.compile(r"[.!?…。！？।؟][\"'”’»)\]]*$")
_PAUSE = 2.0
"""Seconds of silence, after the end of a sentence, that begin a paragraph."""


@dataclass(frozen=True, slots=True)
class _Cue:
    start: float
    end: float
    lines: list[str]


@dataclass(frozen=True, slots=True)
class _Line:
    words: str
    speaker: str
    """Empty where the file does not name them."""
    pause: float
    """Seconds of silence before it."""


def read(data: bytes) -> Document:
    """What is said in subtitles, without numbers, times and tags. Cues are joined, so that
    sentences are whole; a paragraph begins where the speaker changes, who is named where the
    file does, and after a pause. Raises InputError for a file without cues."""
    text = "\n\n".join(_paragraphs(_lines(_cues(decode(data)))))
    if not text:
        raise InputError("it holds no subtitles")
    return Document(text, profile="memo")


def _cues(text: str) -> Iterator[_Cue]:
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if _TIMES.match(line)]
    for start, following in zip(starts, [*starts[1:], len(lines)], strict=True):
        match = _TIMES.match(lines[start])
        assert match is not None
        body = lines[start + 1 : following]
        # A blank line ends a cue; what may follow it is the next one's number, or a comment.
        ending = next((at for at, line in enumerate(body) if not line.strip()), len(body))
        times = match.groups()
        yield _Cue(_seconds(*times[:4]), _seconds(*times[4:]), body[:ending])


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")


def _lines(cues: Iterable[_Cue]) -> Iterator[_Line]:
    """The lines of cues in plain words. Captions that roll repeat the line above: once is kept."""
    before, ended_at = "", 0.0
    for cue in cues:
        pause = cue.start - ended_at
        for marked in cue.lines:
            voice = _VOICE.search(marked)
            words = " ".join(html.unescape(unescapable(_TAG.sub("", marked))).split())
            bare = _DASH.sub("", words)
            if bare and bare != before:
                yield _Line(words, voice[1].strip() if voice else "", pause)
                before, pause = bare, 0.0
        ended_at = cue.end


def _paragraphs(lines: Iterable[_Line]) -> Iterator[str]:
    said: list[str] = []
    speaker = ""
    for line in lines:
        ended = bool(said) and _END.search(said[-1]) is not None
        other = line.speaker not in ("", speaker) or (ended and _CHANGE.match(line.words))
        if said and (other or (ended and line.pause >= _PAUSE)):
            yield " ".join(said)
            said = []
        name = f"{line.speaker}: " if line.speaker and not said else ""
        said.append(f"{name}{_DASH.sub('', line.words)}")
        speaker = line.speaker or speaker
    if said:
        yield " ".join(said)
