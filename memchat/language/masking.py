"""Parts of long texts without their secrets."""

from __future__ import annotations

from memchat.language.secrets import MARGIN, find_secrets


def mask_part(text: str, start: int, end: int) -> str:
    """A part of a text with each secret replaced by its kind in brackets. The text around it is
    read as well: it may tell that something is a secret, or have the beginning of a long one."""
    before = max(start - MARGIN, 0)
    out, at = [], start
    for secret in find_secrets(text[before : end + MARGIN]):
        first, last = before + secret.start, before + secret.end
        if last > start and first < end:
            out.append(f"{text[at : max(first, at)]}[{secret.kind}]")
            at = min(last, end)
    return "".join(out) + text[at:end]
