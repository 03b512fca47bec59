"""Forgotten means forgotten: in every table and file, and when the same chat is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat import MemChat
from memchat.errors import NotFound
from tests.conftest import answer, fact
from tests.test_learn import talk


def files_with(mc: MemChat, word: str) -> list[str]:
    found = []
    for path in Path(mc.settings.home).rglob("*"):
        if path.is_file() and word.lower().encode() in path.read_bytes().lower():
            found.append(path.name)
    return found


def rows_with(mc: MemChat, word: str) -> list[str]:
    with mc._database.read() as tx:
        lines = tx.connection.driver_connection.iterdump()
        return [line[:200] for line in lines if word.lower() in line.lower()]


def learn_zanzibar(mc, extract_model, chat_model) -> int:
    chat_model.replies.appendleft("How lovely, Zanzibar!")
    extract_model.replies.append(
        answer(
            fact("I moved to Zanzibar", "city", "Zanzibar"),
            fact("I moved to Zanzibar and I keep bees", "hobby", "keep bees"),
            title="Off to Zanzibar",
            summary="Ana moved to Zanzibar.",
        )
    )
    talk(mc, "I moved to Zanzibar and I keep bees. Do you know Zanzibar?")
    return next(m.id for m in mc.memories(user="ana") if m.key == "city")


def test_after_a_delete_the_words_are_in_no_row_and_no_file(mc, extract_model, chat_model) -> None:
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    mc.run_jobs()
    assert files_with(mc, "Zanzibar")
    mc.delete(memory_id, user="ana")
    assert rows_with(mc, "Zanzibar") == []
    assert files_with(mc, "Zanzibar") == []
    with pytest.raises(NotFound):
        mc.memory(memory_id, user="ana")


def test_a_fact_proved_by_the_same_sentence_stays_without_the_forgotten_words(
    mc, extract_model, chat_model
) -> None:
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    mc.delete(memory_id, user="ana")
    (bees,) = mc.memories(user="ana")
    assert bees.value == "keep bees"
    (proof,) = mc.evidence(bees.id, user="ana")
    assert "Zanzibar" not in proof.quote and proof.quote.endswith("I keep bees")
    mc.run_jobs()
    assert [hit.memory.id for hit in mc.recall("who keeps bees?", user="ana").hits] == [bees.id]


def test_the_same_chat_read_again_does_not_bring_it_back(mc, extract_model, chat_model) -> None:
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    session_id = mc.sessions(user="ana")[0].id
    (proof,) = mc.evidence(memory_id, user="ana")
    mc.delete(memory_id, user="ana")
    with mc._database.write() as tx:
        tx.exec_driver_sql("UPDATE sessions SET extracted_to = 0")
        tx.exec_driver_sql(
            "UPDATE messages SET content = 'I moved to Zanzibar and I keep bees.' WHERE id = ?",
            (proof.message_id,),
        )
        tx.exec_driver_sql("UPDATE jobs SET status = -1, lease_until = NULL WHERE kind = 'extract'")
    extract_model.replies.append(
        answer(
            fact("I moved to Zanzibar", "city", "Zanzibar"),
            fact("I moved to Zanzibar", "home_city", "zanzibar"),
        )
    )
    (learned,) = mc.run_jobs().learned
    assert learned.session_id == session_id
    assert [c.kind for c in learned.changes] == ["refused"]
    assert all(m.key != "city" for m in mc.memories(user="ana", status="all"))


def test_saying_it_by_hand_again_is_allowed(mc) -> None:
    memory = mc.add("profile", "city", "Lisbon", user="ana")
    mc.delete(memory.id, user="ana")
    again = mc.add("profile", "city", "Lisbon", user="ana")
    assert again.active and again.id != memory.id


def test_a_delete_leaves_an_event_without_words(mc) -> None:
    memory = mc.add("profile", "city", "Lisbon", user="ana")
    mc.delete(memory.id, user="ana")
    with mc._database.read() as tx:
        kept = tx.exec_driver_sql("SELECT kind, old, new FROM memory_events").all()
    assert [tuple(row) for row in kept] == [("add", None, None), ("forget", None, None)]


def test_what_was_merged_into_a_memory_goes_with_it(open_store, clock) -> None:
    mc = open_store()
    first = mc.add("fact", "bike", "a red bike", user="ana")
    second = mc.add("fact", "bike", "the red bike", user="ana")
    with mc._database.write() as tx:
        tx.exec_driver_sql(
            "UPDATE memories SET active = 0, inactive_reason = 'merged', replaced_by = ?"
            " WHERE id = ?",
            (second.id, first.id),
        )
    mc.delete(second.id, user="ana")
    assert mc.memories(user="ana", status="all") == []


def test_clear_forgets_the_app_s_memories_and_only_those(mc) -> None:
    mc.add("profile", "city", "Lisbon", user="ana")
    mc.add("profile", "name", "Ana", user="ana", all_apps=True)
    mc.add("profile", "city", "Porto", user="ana", app="work")
    mc.add("profile", "city", "Faro", user="bo")
    assert mc.clear(user="ana") == 1
    assert [m.value for m in mc.memories(user="ana")] == ["Ana"]
    assert {m.value for m in mc.memories(user="ana", app="work")} == {"Porto", "Ana"}
    assert [m.value for m in mc.memories(user="bo")] == ["Faro"]
    assert files_with(mc, "Lisbon") == []


def test_a_deleted_app_leaves_nothing_of_its_memories_or_talk(
    mc, extract_model, chat_model
) -> None:
    learn_zanzibar(mc, extract_model, chat_model)
    mc.run_jobs()
    assert mc.delete_app("default", user="ana") == 2
    assert rows_with(mc, "Zanzibar") == [] and rows_with(mc, "bees") == []
    assert files_with(mc, "Zanzibar") == []
    with mc._database.read() as tx:
        for table in ("memories", "embeddings", "sessions", "messages", "memories_fts", "jobs"):
            assert tx.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0, table


def test_a_deleted_conversation_takes_its_words_and_leaves_what_was_learnt(
    mc, extract_model, chat_model
) -> None:
    learn_zanzibar(mc, extract_model, chat_model)
    session_id = mc.sessions(user="ana")[0].id
    mc.delete_session(session_id, user="ana")
    assert mc.sessions(user="ana") == []
    assert {m.value for m in mc.memories(user="ana")} == {"Zanzibar", "keep bees"}
    assert files_with(mc, "Do you know") == []
    mc.run_jobs()
    assert mc.recall("bees", user="ana").hits


def test_a_reader_holds_the_bytes_back_and_the_next_job_finishes_it(mc) -> None:
    memory = mc.add("profile", "city", "Zanzibar", user="ana")
    with mc._database.read() as tx:
        tx.exec_driver_sql("SELECT count(*) FROM memories").scalar()
        mc.delete(memory.id, user="ana")
        assert files_with(mc, "Zanzibar"), "the open snapshot still needs them"
    assert any(check.name == "forgetting" for check in mc.doctor())
    mc.run_jobs()
    assert files_with(mc, "Zanzibar") == []


def test_an_echo_in_a_later_conversation_is_blanked_too(mc, extract_model, chat_model) -> None:
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    chat_model.replies.appendleft("You live in Zanzibar, as I recall.")
    extract_model.replies.append(answer())
    talk(mc, "Where do I live?")
    mc.delete(memory_id, user="ana")
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_a_replaced_value_can_be_forgotten_though_it_was_shown_behind_the_new_one(
    mc, extract_model, chat_model, clock
) -> None:
    old = mc.add("profile", "city", "Zanzibar", user="ana")
    clock.advance(days=1)
    mc.add("profile", "city", "Porto", user="ana")
    chat_model.replies.appendleft("Porto, and before that Zanzibar.")
    extract_model.replies.append(answer())
    talk(mc, "Where do I live?")
    assert rows_with(mc, "Zanzibar")
    mc.delete(old.id, user="ana")
    assert rows_with(mc, "Zanzibar") == []
    assert [m.value for m in mc.memories(user="ana", status="all")] == ["Porto"]
