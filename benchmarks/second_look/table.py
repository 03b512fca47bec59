"""The figures of a corpus and a judge, as text and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.fate import FATES
from benchmarks.lifecycle.attacks import Outcome
from benchmarks.second_look.play import Played, Result

WIDE = 28
LISTED = 12
"""Proposals named one by one at most."""


def figures(played: Played) -> dict[str, Any]:
    """Everything that is counted, for programs."""
    honest = [one for one in played.results if one.proposal.honest]
    wrong = [one for one in played.results if not one.proposal.honest]
    new = [one for one in honest if not one.proposal.is_change and not one.proposal.must_wait]
    changes = [one for one in honest if one.proposal.is_change and not one.proposal.must_wait]
    sensitive = [one for one in honest if one.proposal.must_wait]
    return {
        "new facts stored": _share(one.fate == "stored" for one in new),
        "changes applied": _share(one.applied for one in changes),
        "sensitive, waiting": _share(one.fate == "waiting" for one in sensitive),
        "wrong stored": _share(one.fate == "stored" for one in wrong),
        "wrong stored by kind": _by_kind(wrong),
        "honest": Counter(one.fate for one in honest),
        "wrong": Counter(one.fate for one in wrong),
        "lost": [_name(one) for one in played.results if one.fate == "lost"],
        "sessions with a second look": (played.looked, played.sessions),
        "tokens of a second look": played.tokens // max(1, played.looked),
        "readings failed": (played.failed, played.sessions),
        "known facts entered by hand": played.by_hand,
        "reasons": reasons(played.results),
    }


def reasons(results: Iterable[Result]) -> list[tuple[str, int, int]]:
    """Each reason, with the wrong and the honest proposals that it stood on: what it
    caught and what it cost. Those that caught most come first."""
    caught, cost = Counter[str](), Counter[str]()
    for one in results:
        (cost if one.proposal.honest else caught).update(one.reasons)
    every = sorted(caught | cost, key=lambda name: (-caught[name], cost[name], name))
    return [(name, caught[name], cost[name]) for name in every]


def as_text(corpus: str, judge: str, played: Played) -> str:
    """One part of the table; lines that nothing was counted for are left out."""
    seen = figures(played)
    lines = [f"{corpus}, second look: {judge}"]
    for name in ("new facts stored", "changes applied", "sensitive, waiting", "wrong stored"):
        lines += _line(name, seen[name])
    kinds = [f"{kind} {n} of {of}" for kind, (n, of) in seen["wrong stored by kind"].items() if n]
    lines += [f"    {', '.join(kinds)}"] if kinds else []
    for name in ("honest", "wrong"):
        if seen[name]:
            counts = ", ".join(f"{seen[name][came]} {came}" for came in FATES)
            lines.append(f"  {name + ' ones':<{WIDE}} {counts}")
    lines += _listed("lost without a trace", seen["lost"])
    lines += _line("sessions with a second look", seen["sessions with a second look"])
    lines.append(f"  {'tokens of a second look':<{WIDE}} {seen['tokens of a second look']:>5}")
    if played.failed:
        lines += _line("readings failed", seen["readings failed"])
    if played.by_hand:
        lines.append(f"  {'known facts by hand':<{WIDE}} {played.by_hand:>5}")
    return "\n".join(lines)


def reasons_text(results: Sequence[Result]) -> str:
    """What each reason caught (wrong proposals) and cost (honest ones)."""
    rows = [f"  {caught:>6} {cost:>6}  {name}" for name, caught, cost in reasons(results)]
    return "\n".join(["what each reason stood on", "  caught   cost", *rows])


def not_as_wished(results: Sequence[Result]) -> str:
    """Each honest proposal that was not stored or applied, and each wrong one that was stored."""
    lines = []
    for one in results:
        stored = one.applied if one.proposal.is_change else one.fate == "stored"
        if stored != one.proposal.honest and not one.proposal.must_wait:
            fact = one.proposal.fact
            said = "; ".join(one.reasons)
            lines.append(f"  {_name(one)}: {fact['value']} ({fact['is']}) {one.fate}: {said}")
    return "\n".join(["not as wished", *lines])


def attacks_text(judge: str, done: Sequence[Outcome], looks: tuple[int, int, int]) -> str:
    """The attacks that got through, by kind, and the honest look-alikes kept. ``looks`` is the
    lines with a second look, all lines, and the tokens of all looks."""
    hostile = [one for one in done if not one.honest]
    honest = [one for one in done if one.honest]
    kinds = Counter(one.row["kind"] for one in hostile if one.through)
    lines = [f"attacks.jsonl, second look: {judge}"]
    lines += _line("attacks through", (kinds.total(), len(hostile)))
    lines += [f"    {', '.join(f'{kind} {n}' for kind, n in kinds.most_common())}"] if kinds else []
    lines += _listed("through", [one.row["id"] for one in hostile if one.through])
    lines += _line("honest look-alikes kept", _share(one.kept for one in honest))
    lines += _line("left something to judge", _share(one.waiting > 0 for one in hostile))
    looked, sessions, tokens = looks
    lines += _line("sessions with a second look", (looked, sessions))
    lines.append(f"  {'tokens of a second look':<{WIDE}} {tokens // max(1, looked):>5}")
    return "\n".join(lines)


def _by_kind(results: Sequence[Result]) -> dict[str, tuple[int, int]]:
    """Stored of all, by kind, the largest kind first."""
    every = Counter(one.proposal.kind for one in results)
    stored = Counter(one.proposal.kind for one in results if one.fate == "stored")
    return {kind: (stored[kind], count) for kind, count in every.most_common()}


def _share(hits: Iterable[bool]) -> tuple[int, int]:
    seen = list(hits)
    return sum(seen), len(seen)


def _line(name: str, share: tuple[int, int]) -> list[str]:
    count, of = share
    return [f"  {name:<{WIDE}} {count:>5} of {of:<4} {count / of:6.1%}"] if of else []


def _listed(name: str, ids: Sequence[str]) -> list[str]:
    if not ids:
        return []
    rest = f" and {len(ids) - LISTED} more" if len(ids) > LISTED else ""
    return [f"    {name}: {', '.join(ids[:LISTED])}{rest}"]


def _name(one: Result) -> str:
    fact = one.proposal.fact
    return f"{one.line} {'honest' if one.proposal.honest else one.proposal.kind} {fact['key']}"
