"""Forgotten means forgotten: in every table and file, and when the same chat is read again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.errors import NotFound
from memchat.vectors import vector_index
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.forgetting import learn_zanzibar
from tests.support.leftovers import files_with, forms, rows_with


@pytest.mark.parametrize("word", ["Новосибирск", "上海", "São"])
def test_after_a_delete_a_word_of_any_script_is_in_no_keyword_segment(mc, word: str) -> None:
    kept = mc.add("fact", "tea", "oolong", user="ana")
    gone = mc.add("fact", "town", word, user="ana")
    (coded, *_) = forms(word)[1:]
    assert any(coded in row for row in rows_with(mc, word)) and files_with(mc, word)
    mc.delete(gone.id, user="ana")
    assert rows_with(mc, word) == [] == files_with(mc, word)
    assert [hit.id for hit in mc.recall("oolong", user="ana").hits] == [kept.id]


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
    with private.database(mc).write() as tx:
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
    with private.database(mc).read() as tx:
        kept = tx.exec_driver_sql("SELECT kind, old, new FROM memory_events").all()
    assert [tuple(row) for row in kept] == [
        ("add", None, None),
        ("hide", None, None),
        ("forget", None, None),
    ]


def test_what_was_merged_into_a_memory_goes_with_it(open_store, clock) -> None:
    mc = open_store()
    first = mc.add("fact", "bike", "a red bike", user="ana")
    second = mc.add("fact", "bike", "the red bike", user="ana")
    with private.database(mc).write() as tx:
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
    with private.database(mc).read() as tx:
        for table in ("memories", "embeddings", "sessions", "messages", "memories_fts", "jobs"):
            assert tx.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0, table


def test_a_deleted_app_leaves_the_words_of_its_facts_in_no_list_of_another_app(
    mc, extract_model
) -> None:
    extract_model.replies.extend([answer(), answer()])
    boat = mc.add("fact", "boat", "zanzibar dhow", user="ana", all_apps=True)
    talk(mc, "Hello there")
    talk(mc, "Where is my boat?")
    mc.edit(boat.id, all_apps=False, user="ana", app="work")
    assert rows_with(mc, "Zanzibar")
    mc.delete_app("work", user="ana")
    assert rows_with(mc, "Zanzibar") == []


def test_why_does_not_show_a_fact_that_is_being_forgotten_in_another_app(mc, extract_model) -> None:
    extract_model.replies.append(answer())
    boat = mc.add("fact", "boat", "zanzibar dhow", user="ana", all_apps=True)
    talk(mc, "Hello there")
    mc.edit(boat.id, all_apps=False, user="ana", app="work")
    mc.delete(boat.id, user="ana", app="work", hold=600)
    said = mc.why(user="ana")
    assert [line.hit.text for line in said.also] == ["…"] and said.prompt is None


def test_a_deleted_app_leaves_no_cue_that_tells_of_its_facts_with_those_for_every_app(
    mc, extract_model
) -> None:
    mc.add("profile", "city", "Zanzibar", user="ana", app="work")
    cues = ["zanzibar", "honey"]
    extract_model.replies.append(answer(fact("I keep bees", "hobby", "keep bees", cues=cues)))
    talk(mc, "I keep bees", app="work")
    (bees,) = [m for m in mc.memories(user="ana", app="work") if m.key == "hobby"]
    mc.edit(bees.id, all_apps=True, user="ana", app="work")
    assert "zanzibar" in mc.memories(user="ana")[0].cues
    mc.delete_app("work", user="ana")
    assert [m.cues for m in mc.memories(user="ana")] == [("honey",)]
    assert rows_with(mc, "Zanzibar") == []


def test_a_deleted_conversation_takes_its_words_and_leaves_what_was_learnt(
    mc, extract_model, chat_model
) -> None:
    learn_zanzibar(mc, extract_model, chat_model)
    session_id = mc.sessions(user="ana")[0].id
    mc.delete_session(session_id, user="ana", keep_memories=True)
    assert mc.sessions(user="ana") == []
    assert {m.value for m in mc.memories(user="ana")} == {"Zanzibar", "keep bees"}
    assert files_with(mc, "Do you know") == []
    mc.run_jobs()
    assert mc.recall("bees", user="ana").hits


def test_a_reader_holds_the_bytes_back_and_the_next_job_finishes_it(mc) -> None:
    memory = mc.add("profile", "city", "Zanzibar", user="ana")
    with private.database(mc).read() as tx:
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


@pytest.mark.parametrize("question", ["Which city is it that I moved to?", "Where do I live?"])
def test_a_conversation_that_was_given_it_keeps_it_in_neither_title_nor_summary(
    mc, extract_model, chat_model, question
) -> None:
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    extract_model.replies.append(
        answer(title="Zanzibar again", summary="Ana asked about Zanzibar.")
    )
    talk(mc, question)  # answered without an echo
    assert mc.sessions(user="ana")[0].title == "Zanzibar again"
    mc.delete(memory_id, user="ana")
    assert rows_with(mc, "Zanzibar") == []


def test_a_title_with_one_word_of_a_value_that_was_only_sent_in_the_list_goes(
    mc, extract_model
) -> None:
    job = mc.add("profile", "employer", "Zanzibar Ltd", user="ana")
    extract_model.replies.append(
        answer(title="Zanzibar and you", summary="They talked of Zanzibar.")
    )
    extract_model.replies.append(answer(title="Fine weather"))
    talk(mc, "Hello there")
    talk(mc, "Is the weather fine?")
    assert rows_with(mc, "Zanzibar and you")
    mc.delete(job.id, user="ana")
    assert rows_with(mc, "Zanzibar") == []
    assert mc.sessions(user="ana")[0].title == "Fine weather"


def test_what_waits_with_the_forgotten_value_goes_and_the_rest_waits_on(mc, extract_model) -> None:
    love = "The harbour is lovely"
    extract_model.replies.append(
        answer(
            fact("I moved to Zanzibar", "city", "Zanzibar"),
            fact(love, "favourite_place", "Zanzibar", msg="u3"),
            fact(love, "favourite_city", "Porto", msg="u3"),
        )
    )
    talk(mc, "I moved to Zanzibar", "The harbour is lovely")
    assert {item.value for item in mc.inbox(user="ana")} == {"Zanzibar", "Porto"}
    (city,) = mc.memories(user="ana")
    mc.delete(city.id, user="ana")
    assert [item.value for item in mc.inbox(user="ana")] == ["Porto"]
    assert rows_with(mc, "Zanzibar") == []


def test_what_waits_in_another_app_goes_only_with_a_memory_for_every_app(mc, extract_model) -> None:
    extract_model.replies.append(
        answer(fact("I love it there", "favourite_place", "Zanzibar", memory_type="preference"))
    )
    talk(mc, "I love it there", app="work")
    here = mc.add("profile", "city", "Zanzibar", user="ana")
    everywhere = mc.add("profile", "birthplace", "zanzibar", user="ana", all_apps=True)
    mc.delete(here.id, user="ana")
    assert len(mc.inbox(user="ana", app="work")) == 1
    mc.delete(everywhere.id, user="ana")
    assert mc.inbox(user="ana", app="work") == [] and rows_with(mc, "Zanzibar") == []


def test_an_edited_memory_is_forgotten_in_all_the_words_it_ever_had(
    mc, extract_model, chat_model
) -> None:
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    mc.edit(memory_id, user="ana", value="Pemba")
    mc.delete(memory_id, user="ana")
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []
    extract_model.replies.append(answer(fact("I moved to Zanzibar", "city", "Zanzibar")))
    with private.database(mc).write() as tx:
        tx.exec_driver_sql("UPDATE sessions SET extracted_to = 0")
        tx.exec_driver_sql("UPDATE messages SET content = 'I moved to Zanzibar' WHERE id = 1")
        tx.exec_driver_sql("UPDATE jobs SET status = -1, lease_until = NULL WHERE kind = 'extract'")
    mc.run_jobs()
    assert [m.value for m in mc.memories(user="ana")] == ["keep bees"]


@pytest.mark.parametrize(
    ("value", "reply"),
    [("里斯本", "里斯本很好"), ("東京", "東京ですね"), ("리스본", "리스본에서는 좋죠")],
)
def test_an_echo_within_a_run_of_letters_is_blanked(mc, chat_model, extract_model, value, reply):
    memory = mc.add("profile", "city", value, user="ana")
    chat_model.replies.appendleft(reply)
    extract_model.replies.append(answer())
    chat = talk(mc, "Where do I live?")
    mc.delete(memory.id, user="ana")
    kept = mc.messages(chat.session_id, user="ana")[1].content
    assert kept == "·" * len(value) + reply.removeprefix(value)
    assert rows_with(mc, value) == []


def test_quotes_that_overlap_are_blanked_whole(mc, extract_model) -> None:
    quotes = ["I moved to Zanzibar old", "Zanzibar old town with my gold"]
    extract_model.replies.append(
        answer(
            fact(
                quotes[0],
                "district",
                "Zanzibar old town",
                quotes=[{"msg": "u1", "text": quote} for quote in quotes],
            )
        )
    )
    chat = talk(mc, "Yes: I moved to Zanzibar old town with my gold!")
    (memory,) = mc.memories(user="ana")
    assert len(mc.evidence(memory.id, user="ana")) == 2
    mc.delete(memory.id, user="ana")
    assert mc.messages(chat.session_id, user="ana")[0].content == f"Yes: {'·' * 41}!"


def saved_vectors(mc: MemChat) -> list[Path]:
    return list((mc.settings.home / "mem.index").glob("*"))


def keep_saved(open_store, monkeypatch, *values: str) -> None:
    monkeypatch.setattr(vector_index, "SAVE_FROM", 1)
    mc = open_store()
    for value in values:
        mc.add("fact", "island", value, user="ana")
    mc.embed_pending()
    mc.recall("island", user="ana")
    mc.close()
    assert saved_vectors(mc)


def test_a_process_that_never_loaded_the_vectors_drops_their_file(open_store, monkeypatch) -> None:
    keep_saved(open_store, monkeypatch, "Zanzibar", "Pemba")
    mc = open_store()
    mc.delete(1, user="ana")
    assert saved_vectors(mc) == []
    assert [hit.id for hit in mc.recall("Pemba", user="ana").confident] == [2]


def test_a_memory_that_moved_leaves_the_saved_vectors_of_its_former_scope_too(
    open_store, monkeypatch
) -> None:
    keep_saved(open_store, monkeypatch, "Zanzibar", "Pemba")
    mc = open_store()
    mc.edit(1, user="ana", all_apps=True)
    mc.edit(1, user="ana", app="work", all_apps=False)
    mc.delete(1, user="ana", app="work")
    assert saved_vectors(mc) == []


def test_a_deleted_conversation_leaves_no_saved_vector_of_its_words(
    open_store, monkeypatch, extract_model, chat_model
) -> None:
    monkeypatch.setattr(vector_index, "SAVE_FROM", 1)
    mc = open_store()
    learn_zanzibar(mc, extract_model, chat_model)
    mc.recall("city", user="ana")
    mc.close()
    mc = open_store()
    assert saved_vectors(mc)
    mc.delete_session(1, user="ana", keep_memories=True)
    assert saved_vectors(mc) == []


def test_dropping_saved_vectors_loads_no_faiss() -> None:
    code = "import sys, memchat.vectors.vector_index; sys.exit('faiss' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
