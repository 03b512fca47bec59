"""Facts that you have already, entered without a conversation and without a model.

A fact may have a last day. What looks like a secret is refused. It prints::

    1 profile city: Porto
    2 preference drinks: green tea
    3 fact parking_permit: zone 4, until 2099-06-30
    refused: wifi_password
"""

from __future__ import annotations

import tempfile
from datetime import date

from memchat import MemChat, SecretError

FACTS: list[tuple[str, str, str, date | None]] = [
    ("profile", "city", "Porto", None),
    ("preference", "drinks", "green tea", None),
    ("fact", "parking_permit", "zone 4", date(2099, 6, 30)),
    ("fact", "wifi_password", "hK7#mQ2x!vR9", None),
]


def main() -> None:
    """Add each fact, or say that it was refused."""
    with tempfile.TemporaryDirectory() as folder, MemChat(folder) as mc:
        ana = mc.user("ana")
        for kind, key, value, last_day in FACTS:
            try:
                memory = ana.memories.add(kind, key, value, expires_at=last_day)
            except SecretError:
                print(f"refused: {key}")
                continue
            end = f", until {memory.expires_at}" if memory.expires_at else ""
            print(f"{memory.id} {memory.memory_type} {memory.key}: {memory.value}{end}")


if __name__ == "__main__":
    main()
