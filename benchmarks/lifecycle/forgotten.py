"""Facts that were learnt in a chat, deleted, and read again from the very same transcript; and
facts that were said elsewhere before another was deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.lifecycle import pairs
from benchmarks.lifecycle.figure import Figure
from benchmarks.lifecycle.stage import Stage, answer, fact
from memchat.db import apps, jobs
from memchat.forget import tombstones
from memchat.providers import Embedder
from memchat.types import Scope

FACTS = (
    # key, value, as said, in other words, under another key
    ("hobby", "falconry", "I practise falconry.", "keeps falconry going", "pastime_kind"),
    ("allergy", "celeriac", "I am allergic to celeriac.", "celeriac intolerance", "health_note"),
    ("city", "Ouagadougou", "I live in Ouagadougou.", "home is Ouagadougou", "whereabouts"),
    ("employer", "Brandvold", "I work for Brandvold.", "Brandvold employee", "paymaster"),
    ("pet", "ferret Zibeline", "I have a ferret Zibeline.", "Zibeline the ferret", "animal"),
    ("child", "son Thorkild", "I have a son Thorkild.", "Thorkild, a son", "offspring"),
    ("project", "zeppelin model", "I build a zeppelin model.", "builds zeppelins", "workshop"),
    ("language", "Tagalog", "I speak Tagalog.", "Tagalog speaker", "tongue"),
    ("food_dislike", "keinen Rosenkohl", "Ich mag keinen Rosenkohl.", "Rosenkohl nie", "essen"),
    ("hobby", "buceo nocturno", "Me gusta el buceo nocturno.", "bucea: buceo", "aficion"),
    ("hobby", "la ferronnerie", "J'aime la ferronnerie.", "ferronnerie d'art", "loisir"),
    ("food_like", "味噌ラーメン", "味噌ラーメンが好きです。", "好物は味噌ラーメン", "menu"),
)


def measure(embedder: Embedder | None = None) -> list[Figure]:
    """Teach, delete, replay with an extractor that repeats and paraphrases; look everywhere."""
    back: list[str] = []
    left: list[str] = []
    replays = 0
    with Stage(embedder) as stage:
        for number, (key, value, line, paraphrase, other_key) in enumerate(FACTS):
            for kept in (False, True):
                user = f"forgets {number} {kept}"
                chat = stage.tell(user, line, facts=[fact(line, key, value, many=True)])
                for item in stage.mc.user(user).inbox.list():
                    stage.mc.user(user).inbox.accept(item.id)
                for memory in stage.mc.user(user).memories.list():
                    stage.mc.user(user).memories.delete(memory.id, keep_transcript=kept)
                stage.clock.advance(days=1)
                assert chat.session_id is not None
                again = [
                    fact(line, key, value, many=True),
                    fact(line, key, paraphrase, many=True),
                    fact(line, other_key, paraphrase, many=True),
                    fact(value, other_key, value, many=True),
                ]
                replays += len(again)
                replay(stage, user, chat.session_id, again)
                back += _returned(stage, user, value)
                if not kept:
                    left += _traces(stage, value)
    both = len(back) + len(left)
    note = f"{2 * len(FACTS)} facts, half with --keep-transcript; prompt, memories, inbox"
    note += f"; {len(left)} still in a table or file where the transcript was to go"
    found = f": {', '.join(dict.fromkeys(back + left))}" if both else ""
    return [
        Figure(
            "resurrected after forget and replay",
            f"{both} of {replays} proposals",
            "0",
            both == 0,
            "scripted: repeats and paraphrases",
            note=note + found,
        ),
        *_said_elsewhere(),
    ]


def _said_elsewhere() -> list[Figure]:
    """The labelled pairs: the one is forgotten, the other was said before in another message that
    is read only now. No quote or message is shared, so words alone tell."""
    stands: dict[str, list[str | None]] = {"same": [], "update": [], "distinct": []}
    with Stage() as stage:
        stage.tell("pairs", "Hello.")
        for pair in pairs.read():
            old, new = pair.old, pair.candidate
            with stage.mc._assembly.database.write() as tx:
                own = apps.find(tx, Scope("pairs")).own
                assert own is not None
                marks = tombstones.fact_marks(old["key"], old["value"])
                tombstones.add(tx, own, 1, marks, stage.clock())
                stand = tombstones.match(tx, [own], new["key"], new["value"], (), stage.clock())
                tombstones.remove_of_memory(tx, 1)
            stands[pair.label].append(stand)
    other = stands["update"] + stands["distinct"]
    return [
        Figure(
            f"{what}, said elsewhere before the forgetting",
            f"{every.count('refuse')} refused, {every.count('alike')} asked about, "
            f"{every.count(None)} taken of {len(every)}",
            "none",
            None,
        )
        for what, every in (("another fact", other), ("the same in other words", stands["same"]))
    ]


def replay(stage: Stage, user: str, session_id: int, facts: Sequence[dict[str, Any]]) -> None:
    """Read a session once more from its first message, as if it had never been read."""
    database = stage.mc._assembly.database
    with database.write() as tx:
        own = apps.find(tx, Scope(user)).own
        assert own is not None
        tx.connection.exec_driver_sql(
            "UPDATE sessions SET extracted_to = 0 WHERE id = ?", (session_id,)
        )
        jobs.enqueue(tx, "extract", own, session_id, stage.clock())
    stage.extract.replies.append(answer(*facts))
    stage.mc.jobs.run(user=user)
    stage.extract.replies.clear()  # where nothing was left to read, the model was not asked


def _returned(stage: Stage, user: str, value: str) -> list[str]:
    prompt = stage.prompt(user, "What do you know about me, what do I like and have?")
    rows = [m.value for m in stage.mc.user(user).memories.list(status="all")]
    waiting = [f"{item.value} {item.quote}" for item in stage.mc.user(user).inbox.list()]
    word = _telling(value)
    return [value] if any(word in text for text in (prompt, *rows, *waiting)) else []


def _traces(stage: Stage, value: str) -> list[str]:
    word = _telling(value)
    found = word.encode() in stage.bytes() or word in stage.rows()
    return [f"{value} (bytes)"] if found else []


def _telling(value: str) -> str:
    """The longest word of a value: the one that would give it away."""
    return max(value.split(), key=len)
