"""Make ``wallet_words.txt``, by which the words of a wallet are told, from BIP-39's English list.

    pip install mnemonic==0.21
    python -m tools.wallet_words

The package ``mnemonic`` (MIT) is the list's reference implementation. memchat keeps no word of it.
"""

from __future__ import annotations

import base64
import textwrap
from pathlib import Path

from mnemonic import Mnemonic

from memchat.language import secret_shapes

TARGET = Path(__file__).parents[1] / "memchat" / "language" / "secret_data" / "wallet_words.txt"


def filter_of(words: list[str]) -> str:
    """The Bloom filter of some words, as text."""
    bits = bytearray(secret_shapes.BITS // 8)
    for word in words:
        for at in secret_shapes.places(word):
            bits[at // 8] |= 1 << at % 8
    return "\n".join(textwrap.wrap(base64.b64encode(bits).decode(), 100)) + "\n"


if __name__ == "__main__":
    TARGET.write_text(filter_of(Mnemonic("english").wordlist), encoding="ascii")
