"""Forgotten means forgotten: in every table and file, and when the same chat is read again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.errors import NotFound
from memchat.search import vector_index
from memchat.search.embeddings import query_hash
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.forgetting import learn_zanzibar
from tests.support.leftovers import files_with, forms, rows_with


@pytest.mark.parametrize("word", ["Новосибирск", "上海", "São"])
def test_after_a_delete_a_word_of_any_script_is_in_no_keyword_segment(mc, word: str) -> None:
    ana = mc.user("ana")
    kept = ana.memories.add("fact", "tea", "oolong")
    gone = ana.memories.add("fact", "town", word)
    (coded, *_) = forms(word)[1:]
    assert any(coded in row for row in rows_with(mc, word)) and files_with(mc, word)
    ana.memories.delete(gone.id)
    assert rows_with(mc, word) == [] == files_with(mc, word)
    assert [hit.id for hit in ana.search("oolong").hits] == [kept.id]


def test_after_a_delete_the_words_are_in_no_row_and_no_file(mc, extract_model, chat_model) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    mc.jobs.run()
    assert files_with(mc, "Zanzibar")
    ana.memories.delete(memory_id)
    assert rows_with(mc, "Zanzibar") == []
    assert files_with(mc, "Zanzibar") == []
    with pytest.raises(NotFound):
        ana.memories.get(memory_id)


def test_a_fact_proved_by_the_same_sentence_stays_without_the_forgotten_words(
    mc, extract_model, chat_model
) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    ana.memories.delete(memory_id)
    (bees,) = ana.memories.list()
    assert bees.value == "keep bees"
    (proof,) = ana.memories.evidence(bees.id)
    assert "Zanzibar" not in proof.quote and proof.quote.endswith("I keep bees")
    mc.jobs.run()
    assert [hit.memory.id for hit in ana.search("who keeps bees?").hits] == [bees.id]


def test_the_same_chat_read_again_does_not_bring_it_back(mc, extract_model, chat_model) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    session_id = mc.user("ana").sessions.list()[0].id
    (proof,) = mc.user("ana").memories.evidence(memory_id)
    mc.user("ana").memories.delete(memory_id)
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE sessions SET extracted_to = 0")
        tx.connection.exec_driver_sql(
            "UPDATE messages SET content = 'I moved to Zanzibar and I keep bees.' WHERE id = ?",
            (proof.message_id,),
        )
        tx.connection.exec_driver_sql(
            "UPDATE jobs SET status = -1, lease_until = NULL WHERE kind = 'extract'"
        )
    extract_model.replies.append(
        answer(
            fact("I moved to Zanzibar", "city", "Zanzibar"),
            fact("I moved to Zanzibar", "home_city", "zanzibar"),
        )
    )
    (learned,) = mc.jobs.run().learned
    assert learned.session_id == session_id
    assert [c.kind for c in learned.changes] == ["refused"]
    assert all(m.key != "city" for m in ana.memories.list(status="all"))


def test_saying_it_by_hand_again_is_allowed(mc) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", "Lisbon")
    ana.memories.delete(memory.id)
    again = ana.memories.add("profile", "city", "Lisbon")
    assert again.active and again.id != memory.id


def test_a_delete_leaves_an_event_without_words(mc) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", "Lisbon")
    ana.memories.delete(memory.id)
    with private.database(mc).read() as tx:
        kept = tx.connection.exec_driver_sql("SELECT kind, old, new FROM memory_events").all()
    assert [tuple(row) for row in kept] == [("add", None, None), ("forget", None, None)]


def test_what_was_merged_into_a_memory_goes_with_it(open_store, clock) -> None:
    mc = open_store()
    first = mc.user("ana").memories.add("fact", "bike", "a red bike")
    second = mc.user("ana").memories.add("fact", "bike", "the red bike")
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql(
            "UPDATE memories SET active = 0, inactive_reason = 'merged', replaced_by = ?"
            " WHERE id = ?",
            (second.id, first.id),
        )
    mc.user("ana").memories.delete(second.id)
    assert mc.user("ana").memories.list(status="all") == []


def test_clear_forgets_the_app_s_memories_and_only_those(mc) -> None:
    ana = mc.user("ana")
    bo = mc.user("bo")
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("profile", "name", "Ana", all_apps=True)
    mc.user("ana", app="work").memories.add("profile", "city", "Porto")
    bo.memories.add("profile", "city", "Faro")
    assert ana.memories.clear().memories == 1
    assert [m.value for m in ana.memories.list()] == ["Ana"]
    assert {m.value for m in mc.user("ana", app="work").memories.list()} == {"Porto", "Ana"}
    assert [m.value for m in bo.memories.list()] == ["Faro"]
    assert files_with(mc, "Lisbon") == []


def test_a_deleted_app_leaves_nothing_of_its_memories_or_talk(
    mc, extract_model, chat_model
) -> None:
    learn_zanzibar(mc, extract_model, chat_model)
    mc.jobs.run()
    assert mc.user("ana").apps.delete("default").memories == 2
    assert rows_with(mc, "Zanzibar") == [] and rows_with(mc, "bees") == []
    assert files_with(mc, "Zanzibar") == []
    with private.database(mc).read() as tx:
        for table in ("memories", "embeddings", "sessions", "messages", "passages_fts", "jobs"):
            assert tx.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0, (
                table
            )


def test_a_deleted_app_leaves_the_words_of_its_facts_in_no_list_of_another_app(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    extract_model.replies.extend([answer(), answer()])
    boat = ana.memories.add("fact", "boat", "zanzibar dhow", all_apps=True)
    talk(mc, "Hello there")
    talk(mc, "Where is my boat?")
    mc.user("ana", app="work").memories.update(boat.id, all_apps=False)
    assert rows_with(mc, "Zanzibar")
    ana.apps.delete("work")
    assert rows_with(mc, "Zanzibar") == []


def test_why_does_not_show_a_fact_that_is_being_forgotten_in_another_app(mc, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer())
    boat = ana.memories.add("fact", "boat", "zanzibar dhow", all_apps=True)
    talk(mc, "Hello there")
    mc.user("ana", app="work").memories.update(boat.id, all_apps=False)
    mc.user("ana", app="work").memories.delete(boat.id, hold=600)
    said = ana.sessions.why()
    assert [line.hit.text for line in said.also] == ["…"] and said.prompt is None


def test_a_deleted_app_leaves_no_cue_that_tells_of_its_facts_with_those_for_every_app(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    mc.user("ana", app="work").memories.add("profile", "city", "Zanzibar")
    cues = ["zanzibar", "honey"]
    extract_model.replies.append(answer(fact("I keep bees", "hobby", "keep bees", cues=cues)))
    talk(mc, "I keep bees", app="work")
    (bees,) = [m for m in mc.user("ana", app="work").memories.list() if m.key == "hobby"]
    mc.user("ana", app="work").memories.update(bees.id, all_apps=True)
    assert "zanzibar" in ana.memories.list()[0].cues
    ana.apps.delete("work")
    assert [m.cues for m in ana.memories.list()] == [("honey",)]
    assert rows_with(mc, "Zanzibar") == []


def test_a_deleted_conversation_takes_its_words_and_leaves_what_was_learnt(
    mc, extract_model, chat_model
) -> None:
    ana = mc.user("ana")
    learn_zanzibar(mc, extract_model, chat_model)
    session_id = ana.sessions.list()[0].id
    ana.sessions.delete(session_id, keep_memories=True)
    assert ana.sessions.list() == []
    assert {m.value for m in ana.memories.list()} == {"Zanzibar", "keep bees"}
    assert files_with(mc, "Do you know") == []
    mc.jobs.run()
    assert ana.search("bees").hits


def test_a_reader_holds_the_bytes_back_and_the_next_job_finishes_it(mc) -> None:
    memory = mc.user("ana").memories.add("profile", "city", "Zanzibar")
    with private.database(mc).read() as tx:
        tx.connection.exec_driver_sql("SELECT count(*) FROM memories").scalar()
        mc.user("ana").memories.delete(memory.id)
        assert files_with(mc, "Zanzibar"), "the open snapshot still needs them"
    assert any(check.name == "forgetting" for check in mc.doctor())
    mc.jobs.run()
    assert files_with(mc, "Zanzibar") == []


def test_an_echo_in_a_later_conversation_is_blanked_too(mc, extract_model, chat_model) -> None:
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    chat_model.replies.appendleft("You live in Zanzibar, as I recall.")
    extract_model.replies.append(answer())
    talk(mc, "Where do I live?")
    mc.user("ana").memories.delete(memory_id)
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_a_replaced_value_can_be_forgotten_though_it_was_shown_behind_the_new_one(
    mc, extract_model, chat_model, clock
) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Zanzibar")
    clock.advance(days=1)
    ana.memories.add("profile", "city", "Porto")
    chat_model.replies.appendleft("Porto, and before that Zanzibar.")
    extract_model.replies.append(answer())
    talk(mc, "Which city is it?")
    assert rows_with(mc, "Zanzibar")
    ana.memories.delete(old.id)
    assert rows_with(mc, "Zanzibar") == []
    assert [m.value for m in ana.memories.list(status="all")] == ["Porto"]


@pytest.mark.parametrize("question", ["Which city is it that I moved to?", "Where do I live?"])
def test_a_conversation_that_was_given_it_keeps_it_in_neither_title_nor_summary(
    mc, extract_model, chat_model, question
) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    extract_model.replies.append(
        answer(title="Zanzibar again", summary="Ana asked about Zanzibar.")
    )
    talk(mc, question)  # answered without an echo
    assert ana.sessions.list()[0].title == "Zanzibar again"
    ana.memories.delete(memory_id)
    assert rows_with(mc, "Zanzibar") == []


def test_a_title_with_one_word_of_a_value_that_was_only_sent_in_the_list_goes(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    job = ana.memories.add("profile", "employer", "Zanzibar Ltd")
    extract_model.replies.append(
        answer(title="Zanzibar and you", summary="They talked of Zanzibar.")
    )
    extract_model.replies.append(answer(title="Fine weather"))
    talk(mc, "Hello there")
    talk(mc, "Is the weather fine?")
    assert rows_with(mc, "Zanzibar and you")
    ana.memories.delete(job.id)
    assert rows_with(mc, "Zanzibar") == []
    assert ana.sessions.list()[0].title == "Fine weather"


def test_what_waits_with_the_forgotten_value_goes_and_the_rest_waits_on(mc, extract_model) -> None:
    ana = mc.user("ana")
    love = "The harbour is lovely"
    extract_model.replies.append(
        answer(
            fact("I moved to Zanzibar", "city", "Zanzibar"),
            fact(love, "favourite_place", "Zanzibar", msg="u3"),
            fact(love, "favourite_city", "Porto", msg="u3"),
        )
    )
    talk(mc, "I moved to Zanzibar", "The harbour is lovely")
    assert {item.value for item in ana.inbox.list()} == {"Zanzibar", "Porto"}
    (city,) = ana.memories.list()
    ana.memories.delete(city.id)
    assert [item.value for item in ana.inbox.list()] == ["Porto"]
    assert rows_with(mc, "Zanzibar") == []


def test_what_waits_in_another_app_goes_only_with_a_memory_for_every_app(mc, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(fact("I love it there", "favourite_place", "Zanzibar", memory_type="preference"))
    )
    talk(mc, "I love it there", app="work")
    here = ana.memories.add("profile", "city", "Zanzibar")
    everywhere = ana.memories.add("profile", "birthplace", "zanzibar", all_apps=True)
    ana.memories.delete(here.id)
    assert len(mc.user("ana", app="work").inbox.list()) == 1
    ana.memories.delete(everywhere.id)
    assert mc.user("ana", app="work").inbox.list() == [] and rows_with(mc, "Zanzibar") == []


def test_an_edited_memory_is_forgotten_in_all_the_words_it_ever_had(
    mc, extract_model, chat_model
) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    ana.memories.update(memory_id, value="Pemba")
    ana.memories.delete(memory_id)
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []
    extract_model.replies.append(answer(fact("I moved to Zanzibar", "city", "Zanzibar")))
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE sessions SET extracted_to = 0")
        tx.connection.exec_driver_sql(
            "UPDATE messages SET content = 'I moved to Zanzibar' WHERE id = 1"
        )
        tx.connection.exec_driver_sql(
            "UPDATE jobs SET status = -1, lease_until = NULL WHERE kind = 'extract'"
        )
    mc.jobs.run()
    assert [m.value for m in ana.memories.list()] == ["keep bees"]


@pytest.mark.parametrize(
    ("value", "reply"),
    [("里斯本", "里斯本很好"), ("東京", "東京ですね"), ("리스본", "리스본에서는 좋죠")],
)
def test_an_echo_within_a_run_of_letters_is_blanked(mc, chat_model, extract_model, value, reply):
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", value)
    chat_model.replies.appendleft(reply)
    extract_model.replies.append(answer())
    chat = talk(mc, "Where do I live?")
    ana.memories.delete(memory.id)
    kept = ana.sessions.messages(chat.session_id)[1].content
    assert kept == "·" * len(value) + reply.removeprefix(value)
    assert rows_with(mc, value) == []


def test_quotes_that_overlap_are_blanked_whole(mc, extract_model) -> None:
    ana = mc.user("ana")
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
    (memory,) = ana.memories.list()
    assert len(ana.memories.evidence(memory.id)) == 2
    ana.memories.delete(memory.id)
    assert ana.sessions.messages(chat.session_id)[0].content == f"Yes: {'·' * 41}!"


def saved_vectors(mc: MemChat) -> list[Path]:
    return list((mc.settings.home / "mem.index").glob("*"))


def keep_saved(open_store, monkeypatch, *values: str) -> None:
    monkeypatch.setattr(vector_index, "SAVE_FROM", 1)
    mc = open_store()
    ana = mc.user("ana")
    for value in values:
        ana.memories.add("fact", "island", value)
    mc.jobs.embed()
    ana.search("island")
    mc.close()
    assert saved_vectors(mc)


def test_a_process_that_never_loaded_the_vectors_drops_their_file(open_store, monkeypatch) -> None:
    keep_saved(open_store, monkeypatch, "Zanzibar", "Pemba")
    mc = open_store()
    ana = mc.user("ana")
    ana.memories.delete(1)
    assert saved_vectors(mc) == []
    assert [hit.id for hit in ana.search("Pemba").confident] == [2]


def test_a_memory_that_moved_leaves_the_saved_vectors_of_its_former_scope_too(
    open_store, monkeypatch
) -> None:
    keep_saved(open_store, monkeypatch, "Zanzibar", "Pemba")
    mc = open_store()
    mc.user("ana").memories.update(1, all_apps=True)
    mc.user("ana", app="work").memories.update(1, all_apps=False)
    mc.user("ana", app="work").memories.delete(1)
    assert saved_vectors(mc) == []


def test_a_deleted_conversation_leaves_no_saved_vector_of_its_words(
    open_store, monkeypatch, extract_model, chat_model
) -> None:
    monkeypatch.setattr(vector_index, "SAVE_FROM", 1)
    mc = open_store()
    learn_zanzibar(mc, extract_model, chat_model)
    mc.user("ana").search("city")
    mc.close()
    mc = open_store()
    assert saved_vectors(mc)
    mc.user("ana").sessions.delete(1, keep_memories=True)
    assert saved_vectors(mc) == []


def test_the_vector_that_a_message_was_searched_with_goes_with_its_words(
    mc, extract_model, chat_model
) -> None:
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    with private.database(mc).read() as tx:
        said = tx.connection.exec_driver_sql(
            "SELECT content FROM messages WHERE role = 'user'"
        ).scalar_one()
    held = "SELECT count(*) FROM embeddings WHERE hash = ?"
    counts = []
    for forgets in (lambda: None, lambda: mc.user("ana").memories.delete(memory_id)):
        forgets()
        with private.database(mc).read() as tx:
            counts.append(tx.connection.exec_driver_sql(held, (query_hash(said),)).scalar_one())
    assert counts == [1, 0]


def test_dropping_saved_vectors_loads_no_faiss() -> None:
    code = "import sys, memchat.search.embeddings; sys.exit('faiss' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
