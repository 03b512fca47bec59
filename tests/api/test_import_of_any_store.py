"""Whatever a store went through, its export comes back, but for what was forgotten since."""

from __future__ import annotations

import json

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
