"""An estimate of tokens that needs no tokenizer and errs on the high side."""

from __future__ import annotations


def estimate_tokens(text: str) -> int:
    """Tokens a model would count, about: four ASCII characters a token, any other character one."""
    ascii_count = len(text) if text.isascii() else sum(c < "\x80" for c in text)
    return (ascii_count + 3) // 4 + (len(text) - ascii_count)
