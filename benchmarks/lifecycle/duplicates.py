"""The same things said again and again, in other spellings: how many memories are left of them?"""

from __future__ import annotations

import unicodedata

from benchmarks.lifecycle.figure import Figure
from benchmarks.lifecycle.stage import Stage, fact
from memchat.providers import Embedder

SAID = (
    ("hobby", "foil fencing", "I love {}."),
    ("food_like", "Grüne Soße", "Ich mag {}."),
    ("food_like", "crème brûlée", "J'adore la {}."),
    ("city", "Łódź", "I live in {}."),
    ("pet", "gato Tomillo", "Tengo un {}."),
    ("hobby", "ловить щуку", "Я люблю {}."),
    ("food_like", "豚骨ラーメン", "{}が好きです。"),
    ("hobby", "去山里钓鱼", "我喜欢{}。"),
    ("food_like", "आम का अचार", "मुझे {} पसंद है।"),
    ("hobby", "صيد السمك", "أنا أحب {}."),
    ("hobby", "ışık fotoğrafçılığı", "Ben {} seviyorum."),
    ("sport", "curling on Tuesdays", "I do {}."),
)
OTHER_FORMS = (
    lambda words: words,
    lambda words: unicodedata.normalize("NFD", words),
    lambda words: unicodedata.normalize("NFKC", words) + "!",
    lambda words: words.upper() if words.upper().casefold() == words.casefold() else words,
    lambda words: words.replace(" ", "\u00a0"),
    lambda words: f"“{words}”",
)
"""As another keyboard, model or shift key writes the same words."""


def measure(embedder: Embedder | None = None) -> list[Figure]:
    """Say each fact in every form, in a session each and all in one; count what is left."""
    left = said = 0
    with Stage(embedder) as stage:
        for number, (key, value, line) in enumerate(SAID):
            forms = [form(value) for form in OTHER_FORMS]
            lines = [line.format(value if form.startswith("“") else form) for form in forms]
            for apart in (True, False):
                user = f"{number} {apart}"
                given = list(zip(lines, forms, strict=True))
                for some in [[one] for one in given] if apart else [given]:
                    facts = [
                        fact(words, key, form, msg=f"u{2 * i + 1}", many=True)
                        for i, (words, form) in enumerate(some)
                    ]
                    stage.tell(user, *(words for words, _ in some), facts=facts)
                    stage.clock.advance(days=1)
                said += len(forms)
                waiting = len(stage.mc.user(user).inbox.list())
                left += max(0, len(stage.mc.user(user).memories.list()) + waiting - 1)
    seen = f"{left} of {said} sayings of {2 * len(SAID)} facts"
    note = "memories and inbox items beyond the first; normal forms, case, marks, spaces"
    return [Figure("duplicates left", seen, "0", left == 0, "scripted: always new", note=note)]
