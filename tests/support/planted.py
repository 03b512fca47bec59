"""Notes of three subjects, to be found again as topics."""

from __future__ import annotations

import random
from datetime import timedelta

from memchat import NewNote
from tests.support.store import NOON

SUBJECTS = {
    "sea": "boat sail anchor tide harbour rope deck mast oar keel",
    "bread": "flour yeast dough oven crust loaf knead bake sourdough butter",
    "music": "violin chord rehearsal melody concert rhythm tuning bow score choir",
}
FILLING = ("today", "again", "then", "later", "maybe", "quickly", "around", "together")


def planted(seed: int, each: int = 20) -> list[NewNote]:
    """Notes of the last three months, each with words of its subject and some that all have."""
    draw = random.Random(seed)
    notes = [
        NewNote(
            " ".join(draw.sample(words.split(), 5) + draw.sample(FILLING, 2)),
            title=subject,
            created_at=NOON - timedelta(days=draw.randrange(90)),
        )
        for subject, words in SUBJECTS.items()
        for _ in range(each)
    ]
    draw.shuffle(notes)
    return notes
