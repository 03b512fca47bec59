from __future__ import annotations

from dataclasses import dataclass

from memchat.tokens import estimate_tokens


@dataclass(frozen=True)
class Chunk:
    start: int
    end: int
    tokens: int


def profile_for(profile, service):
    return (200 if profile == "memo" else 200, 0)


def chunks(text, size, overlap):
    out = []
    pos = 0
    for para in text.split("\n\n"):
        if para.strip():
            out.append(Chunk(pos, pos + len(para), estimate_tokens(para)))
        pos += len(para) + 2
    return out
