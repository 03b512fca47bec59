"""A deletion that is held can be undone until its time is up; then it is done, whatever happens."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import event

from memchat.errors import NotFound, StoreError
from memchat.forget import purge
from memchat.search import keywords, repair
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.forgetting import learn_zanzibar
from tests.support.leftovers import files_with, rows_with


def test_a_deletion_that_is_held_can_be_undone(mc, extract_model, chat_model, clock) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    before = ana.memories.get(memory_id)
    proofs = ana.memories.evidence(memory_id)
    ana.memories.delete(memory_id, hold=10)
    assert [m.value for m in ana.memories.list(status="all")] == ["keep bees"]
    assert ana.memories.count(status="all") == 1
    with pytest.raises(NotFound):
        ana.memories.get(memory_id)
    assert "Zanzibar" not in str(ana.search("Zanzibar").hits)
    clock.advance(seconds=9)
    mc.jobs.run()
    back = ana.memories.restore(memory_id)
    assert replace(back, updated_at=before.updated_at) == before
    assert ana.memories.evidence(memory_id) == proofs
    clock.advance(seconds=9)
    mc.jobs.run()
    assert ana.search("Zanzibar").hits[0].id == memory_id
    extract_model.replies.append(answer(fact("I live in Zanzibar", "city", "Zanzibar")))
    chat = talk(mc, "I live in Zanzibar")
    assert [change.kind for change in chat.learned.changes] == ["repeated"]


def test_a_deletion_that_was_held_is_done_when_its_time_is_up(
    mc, extract_model, chat_model, clock
) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    ana.memories.delete(memory_id, hold=10)
    clock.advance(seconds=11)
    mc.jobs.run()
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []
    with pytest.raises(NotFound):
        ana.memories.restore(memory_id)


def test_a_replaced_value_whose_deletion_is_undone_is_still_replaced(mc, clock) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Lisbon")
    clock.advance(days=1)
    new = ana.memories.add("profile", "city", "Porto")
    ana.memories.delete(old.id, hold=10)
    assert "Lisbon" not in ana.search("city").hits[0].text
    back = ana.memories.restore(old.id)
    assert (back.active, back.inactive_reason, back.replaced_by) == (False, "superseded", new.id)


def test_what_is_held_may_be_said_again_by_hand_meanwhile(mc, clock) -> None:
    ana = mc.user("ana")
    first = ana.memories.add("profile", "city", "Lisbon")
    ana.memories.delete(first.id, hold=10)
    again = ana.memories.add("profile", "city", "Lisbon")
    clock.advance(seconds=11)
    mc.jobs.run()
    assert [m.id for m in ana.memories.list(status="all")] == [again.id]


@pytest.mark.parametrize("killed_in", ["forget", "scrub"])
def test_a_process_killed_in_a_deletion_has_done_all_of_it_or_nothing(
    open_store, monkeypatch, extract_model, chat_model, killed_in
) -> None:
    mc = open_store()
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)

    real, where = purge.forget, {"forget": purge, "scrub": keywords}

    def killed(*given: object, **options: object) -> None:
        if killed_in == "forget":  # all is written, but not committed
            real(*given, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as now, pytest.raises(KeyboardInterrupt):
        now.setattr(where[killed_in], killed_in, killed)
        ana.memories.delete(memory_id)
    other = open_store()
    if killed_in == "forget":
        assert other.user("ana").memories.evidence(memory_id)
        other.user("ana").memories.delete(memory_id)
    else:
        other.jobs.run()
    assert [m.value for m in ana.memories.list(status="all")] == ["keep bees"]
    assert rows_with(other, "Zanzibar") == [] and files_with(other, "Zanzibar") == []


def test_editing_a_forgotten_value_in_by_hand_lets_it_be_learnt(mc, extract_model) -> None:
    ana = mc.user("ana")
    ana.memories.delete(ana.memories.add("profile", "city", "Lisbon").id)
    memory = ana.memories.add("profile", "city", "Porto")
    ana.memories.update(memory.id, value="Lisbon")
    extract_model.replies.append(answer(fact("I still live in Lisbon", "city", "Lisbon")))
    chat = talk(mc, "I still live in Lisbon")
    assert [change.kind for change in chat.learned.changes] == ["repeated"]


def test_clear_reads_a_conversation_as_often_for_many_facts_as_for_few(mc, extract_model) -> None:
    reads: list[str] = []

    def note(connection, cursor, statement, *_) -> None:
        if "FROM messages" in statement and "session_id = ?" in statement:
            reads.append(statement)

    event.listen(private.engine(private.database(mc)), "before_cursor_execute", note)
    seen = []
    for number in (3, 9):
        lines = [f"I once saw island{n}" for n in range(number)]
        trips = [
            fact(line, "trip", f"island{n}", msg=f"u{2 * n + 1}", memory_type="fact", many=True)
            for n, line in enumerate(lines)
        ]
        extract_model.replies.append(answer(*trips))
        user = f"ana {number}"
        talk(mc, *lines, user=user)
        assert mc.user(user).memories.count() == number
        reads.clear()
        assert mc.user(user).memories.clear().memories == number
        seen.append(len(reads))
    assert seen[0] == seen[1] > 0 and rows_with(mc, "island") == []


def test_clear_works_in_batches_and_takes_all_of_them(mc, monkeypatch) -> None:
    ana = mc.user("ana")
    monkeypatch.setattr("memchat.api.memories.BATCH", 2)
    for n in range(5):
        ana.memories.add("fact", "trip", f"island{n}")
    assert ana.memories.clear().memories == 5
    assert ana.memories.list(status="all") == [] and files_with(mc, "island") == []


def test_a_process_killed_before_the_words_left_the_file_leaves_that_to_the_next(
    open_store, monkeypatch
) -> None:
    mc = open_store()
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", "Zanzibar")

    def killed() -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as now, pytest.raises(KeyboardInterrupt):
        now.setattr(private.database(mc), "truncate_wal", killed)
        ana.memories.delete(memory.id)
    assert files_with(mc, "Zanzibar")
    open_store().jobs.run()
    assert files_with(mc, "Zanzibar") == []


def test_what_is_forgotten_while_another_cleans_up_is_cleaned_up_too(mc, monkeypatch) -> None:
    ana = mc.user("ana")
    first = ana.memories.add("profile", "city", "Zanzibar")
    second = ana.memories.add("profile", "name", "Anastasia")
    truncate = private.database(mc).truncate_wal

    def meanwhile() -> bool:
        done = truncate()
        with private.database(mc).write() as tx:
            purge.forget(tx, [second])
            tx.after_commit.clear()  # as if it were killed then
        return done

    with monkeypatch.context() as now:
        now.setattr(private.database(mc), "truncate_wal", meanwhile)
        ana.memories.delete(first.id)
    assert files_with(mc, "Anastasia")
    mc.jobs.run()
    assert files_with(mc, "Anastasia") == []


def two_of_one_message(mc, extract_model) -> tuple[int, int]:
    quote = "I live in Zanzibar and I work as a nurse"
    extract_model.replies.append(
        answer(fact(quote, "city", "Zanzibar"), fact(quote, "job", "nurse"))
    )
    talk(mc, f"{quote}.")
    by_key = {m.key: m.id for m in mc.user("ana").memories.list()}
    return by_key["city"], by_key["job"]


def test_two_facts_of_one_message_may_both_wait_for_their_purge(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    city, job = two_of_one_message(mc, extract_model)
    ana.memories.delete(city, hold=10)
    ana.memories.delete(job, hold=10)
    clock.advance(seconds=11)
    done = mc.jobs.run()
    assert done.failed == [] and rows_with(mc, "Zanzibar") == [] and rows_with(mc, "nurse") == []


@pytest.mark.parametrize("keep", [False, True])
def test_an_old_value_and_a_new_one_purged_together_each_in_its_way(mc, clock, keep: bool) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Zanzibar")
    clock.advance(days=1)
    new = ana.memories.add("profile", "city", "Porto")
    ana.memories.delete(old.id, hold=10, keep_transcript=keep)
    ana.memories.delete(new.id, hold=10, keep_transcript=not keep)
    clock.advance(seconds=11)
    assert mc.jobs.run().failed == []
    assert rows_with(mc, "Zanzibar") == [] and rows_with(mc, "Porto") == []


def test_words_to_be_blanked_do_not_stay_because_what_replaced_them_leaves_its_own(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I live in Zanzibar", "city", "Zanzibar")))
    talk(mc, "I live in Zanzibar.")
    (old,) = ana.memories.list()
    clock.advance(days=1)
    new = ana.memories.add("profile", "city", "Porto")
    ana.memories.delete(old.id, hold=10)
    ana.memories.delete(new.id, hold=10, keep_transcript=True)
    clock.advance(seconds=11)
    assert mc.jobs.run().failed == []
    assert rows_with(mc, "Zanzibar") == []


def test_a_deletion_that_fails_says_so_and_changes_nothing(mc) -> None:
    ana = mc.user("ana")
    kept = ana.memories.add("fact", "note", "Zanzibar")
    never = "CREATE TRIGGER never BEFORE DELETE ON memories BEGIN SELECT raise(abort, 'no'); END"
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql(never)
    with pytest.raises(StoreError, match="failed: no"):
        ana.memories.delete(kept.id)
    assert ana.memories.list() == [kept] and ana.search("Zanzibar").hits[0].id == kept.id


def test_one_memory_that_cannot_be_purged_keeps_no_other_from_being_forgotten(mc, clock) -> None:
    ana = mc.user("ana")
    ids = [ana.memories.add("fact", "note", f"Zanzibar {i}").id for i in range(10)]
    ana.memories.delete_many(ids, hold=10)
    with private.database(mc).write() as tx:  # its past cannot be read
        sql = "UPDATE memory_events SET new = '{' WHERE new IS NOT NULL AND memory_id = ?"
        tx.connection.exec_driver_sql(sql, (ids[4],))
    clock.advance(seconds=11)
    done = mc.jobs.run(kinds=["forget"])
    assert done.done == 9 and [job.target_id for job in done.failed] == [ids[4]]
    with private.database(mc).read() as tx:
        assert tx.connection.exec_driver_sql("SELECT id FROM memories").scalars().all() == [ids[4]]


def test_one_fact_is_purged_while_another_of_its_message_is_held(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    city, job = two_of_one_message(mc, extract_model)
    ana.memories.delete(city, hold=10)
    ana.memories.delete(job)
    ana.sessions.delete(1, dry_run=True)
    assert ana.memories.restore(city).value == "Zanzibar"


def test_each_of_two_held_deletions_in_a_row_of_values_is_undone_on_its_own(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Zanzibar")
    clock.advance(days=1)
    new = ana.memories.add("profile", "city", "Porto")
    ana.memories.delete(old.id, hold=100)
    clock.advance(seconds=5)
    ana.memories.delete(new.id, hold=100)
    assert ana.memories.restore(new.id).active
    assert ana.memories.restore(old.id).inactive_reason == "superseded"
    with private.database(mc).read() as tx:
        assert repair.wrong_keyword_rows(tx) == set(), "it can be searched for again"


def test_undoing_one_deletion_leaves_others_that_share_its_words_forgotten(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        assert chat.send("My home town is Lisbon.").read()
        chat.abandon()
        ana.memories.delete(ana.memories.add("profile", "city", "Lisbon").id)
        book = ana.memories.add("fact", "book", "Night Train to Lisbon")
        ana.memories.delete(book.id, hold=10)
        ana.memories.restore(book.id)
        clock.advance(seconds=60)
        extract_model.replies.append(answer(fact("My home town is Lisbon", "home_town", "Lisbon")))
    assert [m.value for m in ana.memories.list()] == ["Night Train to Lisbon"]


def test_an_undone_deletion_does_not_make_two_values_of_one_slot(mc, clock) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Lisbon")
    ana.memories.delete(old.id, hold=10)
    ana.memories.add("profile", "city", "Porto")
    ana.memories.restore(old.id)
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]


def test_clear_takes_what_was_only_hidden_along(mc) -> None:
    ana = mc.user("ana")
    first = ana.memories.add("profile", "city", "Zanzibar")
    ana.memories.add("profile", "job", "nurse")
    ana.memories.delete(first.id, hold=10)
    ana.memories.clear()
    with pytest.raises(NotFound):
        ana.memories.restore(first.id)
    assert rows_with(mc, "Zanzibar") == []
