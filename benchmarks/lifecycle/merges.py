"""Wrong merges: what becomes of labelled pairs without a model, under a right and a wrong judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.lifecycle.figure import Figure
from benchmarks.lifecycle.pairs import Outcome, Pair, play, read
from benchmarks.lifecycle.stage import Stage, real_embedder
from memchat.providers import Embedder

CUTS = (0.85, 0.92)
GUARDED = {"digits", "one digit", "names", "name", "negation", "date", "dates", "deadline", "time"}
"""Tags of the pairs that differ in what the code is to check by itself."""
RIGHT_SHARE = 0.85
WRONG: dict[str, tuple[str, ...]] = {
    "distinct": ("same", "updates", "ends"),
    "update": ("same", "ends"),
    "same": ("ends",),
}
"""The verdicts that would lose something, by label."""


def measure(embedder: Embedder | None = None, pairs: Sequence[Pair] | None = None) -> list[Figure]:
    """Every pair, once with no verdict, once with the right one, and with each wrong one."""
    embedder = embedder or real_embedder()
    pairs = read() if pairs is None else pairs
    with Stage(embedder) as stage:
        return [
            *_unjudged(stage, pairs, cosines(pairs, embedder)),
            *_rightly_judged(stage, pairs),
            *_wrongly_judged(stage, pairs),
        ]


def cosines(pairs: Iterable[Pair], embedder: Embedder) -> dict[str, float]:
    """How near the two facts of each pair are, as "key: value"; pair id → cosine."""
    pairs = [pair for pair in pairs if pair.candidate["value"]]
    old, _ = embedder.embed_documents([f"{p.old['key']}: {p.old['value']}" for p in pairs])
    new, _ = embedder.embed_documents(
        [f"{p.candidate['key']}: {p.candidate['value']}" for p in pairs]
    )
    return {pair.id: float(a @ b) for pair, a, b in zip(pairs, old, new, strict=True)}


def _unjudged(stage: Stage, pairs: Sequence[Pair], near: dict[str, float]) -> list[Figure]:
    played = [
        play(stage, pair, "new", f"{pair.id} alone") for pair in pairs if pair.candidate["value"]
    ]
    others = [o for o in played if o.pair.label != "same"]
    same = [o for o in played if o.pair.label == "same"]
    equal = [o for o in same if "equal text" in o.pair.tags and o.reached]
    swallowed, merged = (
        " / ".join(str(sum(near[o.pair.id] >= cut for o in some)) for cut in CUTS)
        for some in (others, same)
    )
    bad = [o for o in others if o.wrong]
    reached = sum(o.reached for o in others)
    return [
        Figure(
            "wrong merges without a model",
            f"{len(bad)} of {len(others)} update and distinct pairs",
            "0",
            not bad,
            baseline=f"{swallowed} of {len(others)}",
            note=f"{reached} passed the gate; held third {_held(bad)}" + _ids(bad),
        ),
        Figure(
            "equal normalised text merged without a model",
            f"{sum(o.one for o in equal)} of {len(equal)}",
            "all",
            all(o.one for o in equal),
            note="of those that passed the gate",
        ),
        Figure(
            "restatements merged without a model",
            f"{sum(o.single for o in same)} of {len(same)}",
            "no goal: the rest stay side by side",
            None,
            baseline=f"{merged} of {len(same)}",
        ),
    ]


def _rightly_judged(stage: Stage, pairs: Sequence[Pair]) -> list[Figure]:
    played = [play(stage, pair, pair.verdicts[0], f"{pair.id} right") for pair in pairs]
    same = [o for o in played if o.pair.label == "same"]
    changes = [o for o in played if o.pair.label == "update"]
    merged = [o for o in same if o.single]
    unneeded = sum(not o.one and not o.replaced for o in merged)
    done = [o for o in changes if o.replaced or o.ended]
    bad = [o for o in played if o.wrong]
    by = "the label as verdict, no model"
    return [
        Figure(
            "same merged, told rightly",
            _share(merged, same),
            f">= {RIGHT_SHARE:.0%}",
            len(merged) >= RIGHT_SHARE * len(same),
            by,
            note=f"one memory left, nothing asked; {unneeded} of them refused as mere repetition;"
            f" {_held(merged)} of {_held(same)} in the held third",
        ),
        Figure(
            "updates and ends done, told rightly",
            _share(done, changes),
            "no goal: the rest are asked about",
            None,
            by,
            note=f"{_held(done)} of {_held(changes)} in the held third;"
            f" {len(bad)} wrong merges among all {len(played)} pairs" + _ids(bad),
        ),
    ]


def _wrongly_judged(stage: Stage, pairs: Sequence[Pair]) -> list[Figure]:
    played = [
        play(stage, pair, verdict, f"{pair.id} {verdict}")
        for pair in pairs
        for verdict in WRONG[pair.label]
        if verdict not in pair.verdicts and (pair.candidate["value"] or verdict == "ends")
    ]
    guarded = [o for o in played if GUARDED & set(o.pair.tags)]
    rest = [o for o in played if not GUARDED & set(o.pair.tags)]
    figures = []
    for name, some, goal in (
        ("a wrong judge: digits, names, negation, dates lost", guarded, True),
        ("a wrong judge: other facts lost", rest, False),
    ):
        bad = [o for o in some if o.wrong]
        figures.append(
            Figure(
                name,
                f"{len(bad)} of {len(some)} wrong verdicts",
                "0" if goal else "no goal: only the judge can tell",
                not bad if goal else None,
                "a double that judges every pair wrongly",
                note=f"{_held(bad)} of {_held(some)} in the held third" + _ids(bad),
            )
        )
    return figures


def _share(some: Sequence[Outcome], of: Sequence[Outcome]) -> str:
    return f"{len(some)} of {len(of)} ({len(some) / max(1, len(of)):.0%})"


def _held(outcomes: Sequence[Outcome]) -> int:
    return sum(o.pair.held for o in outcomes)


def _ids(outcomes: Sequence[Outcome]) -> str:
    return ": " + ", ".join(dict.fromkeys(o.pair.id for o in outcomes)) if outcomes else ""
