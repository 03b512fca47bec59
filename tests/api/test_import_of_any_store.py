"""Whatever a store went through, its export comes back, but for what was forgotten since."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import transfer
from tests.support.answers import answer, fact
from tests.support.store import NOON

WORDS = st.sampled_from(["amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath"])
STEP = st.one_of(
    st.tuples(st.just("enter"), st.sampled_from(["city", "boat", "tea"]), WORDS, st.booleans()),
    st.tuples(st.just("say"), st.sampled_from(["city", "hobby"]), WORDS, st.booleans()),
    st.tuples(st.just("note"), st.sampled_from(["memo", "file"]), WORDS, st.booleans()),
    st.tuples(st.just("program"), st.sampled_from(["city", "boat"]), WORDS, st.booleans()),
    st.tuples(st.just("edit"), st.just(""), WORDS, st.just(False)),
    st.tuples(st.just("forget"), st.just(""), WORDS, st.just(False)),
    st.tuples(st.just("drop session"), st.just(""), WORDS, st.booleans()),
)
FEW = settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])


def do(person, extract_model, step) -> None:
    verb, key, word, flag = step
    held = person.memories.list()
    talks = person.sessions.list()
    if verb == "enter":
        person.memories.add("profile", key, word, all_apps=flag)
    elif verb == "say":
        said = f"Well, {key} is {word} for me"
        extract_model.replies.append(answer(fact(said, key, word), title=word))
        person.add(said, wait=flag)
        extract_model.replies.clear()
    elif verb == "note":
        person.notes.add(f"{word} of the {key}", type=key, external_id=key if flag else word)
    elif verb == "program":
        program = person.client(key, "trust" if flag else "ask")
        done = program.remember("profile", key, word)
        program.index_memo(word, f"{word} of the {key}", NOON)
        if flag and done.memory is not None:
            program.forget(done.memory.id)
    elif verb == "drop session" and talks:
        person.sessions.delete(talks[-1].id, keep_memories=flag)
    elif verb == "forget" and held:
        person.memories.delete(held[0].id)
        for note in person.notes.list(limit=1):
            person.notes.delete(note.id)
    elif verb == "edit" and word not in {m.value for m in person.memories.list(status="all")}:
        for memory in held[-1:]:
            person.memories.update(memory.id, value=word)


@FEW
@given(st.lists(STEP, min_size=3, max_size=8), st.sets(st.integers(0, 5), max_size=3))
def test_a_round_trip_loses_what_was_forgotten_and_nothing_else(
    mc, clock, extract_model, tmp_path, steps, forget
) -> None:
    ana, bo = mc.user("ana"), mc.user("bo")
    for person in (ana, bo):
        person.delete_all()
    file = tmp_path / "any.jsonl"
    file.unlink(missing_ok=True)
    ana.memories.add("fact", "note", "the first")
    for step in steps:
        clock.advance(seconds=60)
        do(ana, extract_model, step)
    ana.export_file(file)

    assert not bo.import_file(file).refused
    before = list(bo.export())
    # A program's call has what waits read in the background: the store may have gone on since.
    lines = file.read_text(encoding="utf-8").splitlines()
    assert transfer.renumbered(before) == transfer.renumbered(map(json.loads, lines[1:-1]))
    assert not bo.import_file(file).added
    assert list(bo.export()) == before

    clock.advance(seconds=60)
    kept = transfer.values(bo)
    for place, memory in enumerate(bo.memories.list(status="all")):
        if place in forget and memory.inactive_reason != "merged":
            bo.memories.delete(memory.id)
    left = transfer.values(bo)  # without what had been merged into them
    for session in bo.sessions.list():
        bo.sessions.delete(session.id)
    done = bo.import_file(file)
    assert transfer.values(bo) == left
    assert done.forgotten == len(kept - left)


ODD = [
    None, 0, -1, 3, 2**53, 2**70, True, "", "x", "\ud83d", "x" * 5_000, "\x00", "2026-01-01", [],
    {}, {"value": 1}, 1.5, float("nan"), "9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00+14:00",
]  # fmt: skip


def damaged(lines: list[str], rng: Random) -> list[str]:
    """The lines with some fields changed, and some lines taken out, doubled or in another place."""
    records = [json.loads(line) for line in lines]
    for _ in range(rng.choice([1, 2, 5, 20])):
        place, other = (rng.randrange(1, len(records) - 1) for _ in range(2))
        what, record = rng.choice(["field"] * 5 + ["drop", "double", "move"]), records[place]
        if what == "field":
            field = rng.choice([name for name in record if name != "record"])
            records[place] = record | {field: rng.choice(ODD)}
        elif what == "double":
            records.insert(other, record)
        else:
            records.pop(place)
            records[other:other] = [record] if what == "move" else []
    return [json.dumps(record) for record in records]


@pytest.mark.parametrize("seed", range(3))
def test_a_file_that_was_damaged_anywhere_is_refused_line_by_line_and_breaks_nothing(
    mc, clock, extract_model, tmp_path, seed
) -> None:
    ana, rng = transfer.fill(mc, clock, extract_model), Random(seed)
    ana.client("Desk", "trust").remember("fact", "lamp", "green")
    file = ana.export_file(tmp_path / "ana.jsonl").file
    lines = file.read_text("utf-8").splitlines()
    for number in range(15):
        person = mc.user(f"person {number % 10}")
        file.write_text("\n".join(damaged(lines, rng)), "utf-8")
        done = person.import_file(file)
        assert all(one.line <= len(lines) + 20 and one.reason for one in done.refused)
        before = list(person.export())
        assert not person.import_file(file).added and list(person.export()) == before
