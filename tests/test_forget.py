"""Forgotten means forgotten: in every table and file, and when the same chat is read again."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import event

from memchat import MemChat
from memchat.errors import NotFound, StoreError
from memchat.memory.facts.cues import of_key
from memchat.memory.forgetting import purge
from memchat.store import keywords, repair
from memchat.types import InboxItem, Learned
from memchat.vectors import index
from tests.conftest import answer, fact
from tests.test_learn import talk


def forms(word: str) -> list[str]:
    """How a word may stand in a file: as it is, and as the keyword index has it."""
    return [word.lower(), *(keywords._coded(term) for term in keywords.query_terms(word))]


def files_with(mc: MemChat, word: str) -> list[str]:
    found = []
    for path in Path(mc.settings.home).rglob("*"):
        if path.is_file():
            held = path.read_bytes().lower()
            found += [path.name for form in forms(word) if form.encode() in held]
    return found


def rows_with(mc: MemChat, word: str) -> list[str]:
    with mc._assembly.database.read() as tx:
        lines = [line.lower() for line in tx.connection.driver_connection.iterdump()]
        return [line[:200] for line in lines if any(form in line for form in forms(word))]


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
    return next(m.id for m in mc.user("ana").memories.list() if m.key == "city")


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
    session_id = ana.sessions.list()[0].id
    (proof,) = ana.memories.evidence(memory_id)
    ana.memories.delete(memory_id)
    with mc._assembly.database.write() as tx:
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
    with mc._assembly.database.read() as tx:
        kept = tx.exec_driver_sql("SELECT kind, old, new FROM memory_events").all()
    assert [tuple(row) for row in kept] == [
        ("add", None, None),
        ("hide", None, None),
        ("forget", None, None),
    ]


def test_what_was_merged_into_a_memory_goes_with_it(open_store, clock) -> None:
    mc = open_store()
    ana = mc.user("ana")
    first = ana.memories.add("fact", "bike", "a red bike")
    second = ana.memories.add("fact", "bike", "the red bike")
    with mc._assembly.database.write() as tx:
        tx.exec_driver_sql(
            "UPDATE memories SET active = 0, inactive_reason = 'merged', replaced_by = ?"
            " WHERE id = ?",
            (second.id, first.id),
        )
    ana.memories.delete(second.id)
    assert ana.memories.list(status="all") == []


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
    with mc._assembly.database.read() as tx:
        for table in ("memories", "embeddings", "sessions", "messages", "memories_fts", "jobs"):
            assert tx.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0, table


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
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", "Zanzibar")
    with mc._assembly.database.read() as tx:
        tx.exec_driver_sql("SELECT count(*) FROM memories").scalar()
        ana.memories.delete(memory.id)
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
    talk(mc, "Where do I live?")
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
    with mc._assembly.database.write() as tx:
        tx.exec_driver_sql("UPDATE sessions SET extracted_to = 0")
        tx.exec_driver_sql("UPDATE messages SET content = 'I moved to Zanzibar' WHERE id = 1")
        tx.exec_driver_sql("UPDATE jobs SET status = -1, lease_until = NULL WHERE kind = 'extract'")
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
    monkeypatch.setattr(index, "SAVE_FROM", 1)
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
    monkeypatch.setattr(index, "SAVE_FROM", 1)
    mc = open_store()
    learn_zanzibar(mc, extract_model, chat_model)
    mc.user("ana").search("city")
    mc.close()
    mc = open_store()
    assert saved_vectors(mc)
    mc.user("ana").sessions.delete(1, keep_memories=True)
    assert saved_vectors(mc) == []


def test_dropping_saved_vectors_loads_no_faiss() -> None:
    code = "import sys, memchat.vectors.index; sys.exit('faiss' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def said_again(mc, extract_model, clock, quote: str, key: str, value: str) -> InboxItem:
    """A forgotten fact is said in a later conversation; what waits then."""
    clock.advance(days=300)
    extract_model.replies.append(answer(fact(quote, key, value)))
    chat = talk(mc, quote)
    assert [change.kind for change in chat.learned.changes] == ["review"]
    (item,) = mc.user("ana").inbox.list()
    return item


def test_what_was_forgotten_and_is_said_again_waits_for_a_yes(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    ana.memories.delete(ana.memories.add("profile", "city", "Lisbon").id)
    item = said_again(mc, extract_model, clock, "I live in Lisbon", "city", "Lisbon")
    assert "learn it again?" in item.reason
    again = ana.inbox.accept(item.id)
    assert again.value == "Lisbon"
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    chat = talk(mc, "I live in Lisbon")
    assert [change.kind for change in chat.learned.changes] == ["repeated"]
    clock.advance(days=1)
    ana.memories.delete(again.id)
    with mc._assembly.database.read() as tx:
        (forgotten_at,) = tx.exec_driver_sql(
            "SELECT created_at FROM tombstones WHERE kind = 'value'"
        ).scalars()
    assert datetime.fromisoformat(forgotten_at) == clock(), "the last forgetting counts"


def test_a_no_to_learning_it_again_forgets_it_again(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    ana.memories.delete(ana.memories.add("profile", "city", "Lisbon").id)
    item = said_again(mc, extract_model, clock, "I live in Lisbon", "city", "Lisbon, Portugal")
    ana.inbox.reject(item.id)
    assert ana.inbox.list(status="rejected") == [], "its words do not stay behind there"
    with mc._assembly.database.write() as tx:
        tx.exec_driver_sql("UPDATE sessions SET extracted_to = 0")
        tx.exec_driver_sql("UPDATE jobs SET status = -1, lease_until = NULL WHERE kind = 'extract'")
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    (learned,) = mc.jobs.run().learned
    assert [change.kind for change in learned.changes] == ["refused"]
    assert ana.memories.list(status="all") == [] and ana.inbox.list() == []


def read_again(mc, extract_model, *facts, undo_blanks: dict[int, str] | None = None) -> Learned:
    """Every session is read again, by a model that proposes these facts."""
    with mc._assembly.database.write() as tx:
        tx.exec_driver_sql("UPDATE sessions SET extracted_to = 0")
        tx.exec_driver_sql("UPDATE jobs SET status = -1, lease_until = NULL WHERE kind = 'extract'")
        for message_id, content in (undo_blanks or {}).items():
            tx.exec_driver_sql(
                "UPDATE messages SET content = ? WHERE id = ?", (content, message_id)
            )
    extract_model.replies.append(answer(*facts))
    (learned,) = mc.jobs.run().learned
    return learned


PARAPHRASES = [
    fact("I moved to Zanzibar", "city", "Zanzibar City"),
    fact("I moved to Zanzibar", "home", "Zanzibar"),
    fact("I moved to Zanzibar", "recent_event", "moved to Zanzibar", memory_type="fact"),
    fact("moved to Zanzibar", "island", "the island of Zanzibar", memory_type="other", many=True),
    fact("Do you know Zanzibar", "interest", "zanzibar", memory_type="preference", many=True),
    fact("I moved to Zanzibar", "country", "Tanzania (Zanzibar)"),
]


@pytest.mark.parametrize("kept", [False, True], ids=["blanked", "transcript kept"])
@pytest.mark.parametrize("given_back", [False, True], ids=["as it is", "words put back"])
def test_no_wording_of_the_same_messages_brings_it_back(
    mc, extract_model, chat_model, kept, given_back
) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    said = {m.id: m.content for m in ana.sessions.messages(1)}
    ana.memories.delete(memory_id, keep_transcript=kept)
    if kept:
        assert {m.id: m.content for m in ana.sessions.messages(1)} == said
        assert mc.jobs.run().learned == []
    if given_back:
        with mc._assembly.database.write() as tx:
            tx.exec_driver_sql("UPDATE messages SET memory = 1")
    if kept and not given_back:
        return
    learned = read_again(mc, extract_model, *PARAPHRASES, undo_blanks=said if given_back else None)
    assert {change.kind for change in learned.changes} == {"refused"}, learned.changes
    assert [m.value for m in ana.memories.list(status="all")] == ["keep bees"]
    assert ana.inbox.list() == []


def test_an_older_message_does_not_bring_it_back_either(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        assert chat.send("My flat in Zanzibar is small, and I keep bees.").text
        chat.abandon()
        ana.memories.delete(ana.memories.add("profile", "city", "Zanzibar").id)
        clock.advance(seconds=60)
        extract_model.replies.append(
            answer(
                fact("My flat in Zanzibar is small", "home", "small flat in Zanzibar"),
                fact("I keep bees", "hobby", "keep bees"),
            )
        )
    assert [m.value for m in ana.memories.list()] == ["keep bees"]


def test_with_the_transcript_kept_nothing_is_found_in_those_messages(
    mc, extract_model, chat_model
) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    ana.memories.delete(memory_id, keep_transcript=True)
    with mc._assembly.database.read() as tx:
        found = keywords.matches(tx, "messages", [1, 2], ["zanzibar"]).best(10)
        sessions_say = tx.exec_driver_sql("SELECT title, summary FROM sessions").all()
    assert found == []
    assert [tuple(row) for row in sessions_say] == [(None, None)]
    assert ana.search("Zanzibar").confident == ()
    # Else they stand only where people wrote them, and where a proof of something else quotes them.
    holding = {line.split('"')[1] for line in rows_with(mc, "Zanzibar")}
    assert holding == {"messages", "memory_sources"}


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


def test_a_process_killed_before_the_purge_leaves_it_to_the_next(
    open_store, monkeypatch, extract_model, chat_model
) -> None:
    mc = open_store()
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as now, pytest.raises(KeyboardInterrupt):
        now.setattr("memchat.jobs.Worker._forget", killed)
        ana.memories.delete(memory_id)
    assert [m.value for m in ana.memories.list(status="all")] == ["keep bees"]
    other = open_store()
    with other._assembly.database.write() as tx:
        tx.exec_driver_sql("UPDATE jobs SET lease_until = NULL")
    other.jobs.run()
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

    event.listen(mc._assembly.database._engine, "before_cursor_execute", note)
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
    monkeypatch.setattr("memchat.app.memories.BATCH", 2)
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
        now.setattr(mc._assembly.database, "truncate_wal", killed)
        ana.memories.delete(memory.id)
    assert files_with(mc, "Zanzibar")
    open_store().jobs.run()
    assert files_with(mc, "Zanzibar") == []


def test_what_is_forgotten_while_another_cleans_up_is_cleaned_up_too(mc, monkeypatch) -> None:
    ana = mc.user("ana")
    first = ana.memories.add("profile", "city", "Zanzibar")
    second = ana.memories.add("profile", "name", "Anastasia")
    truncate = mc._assembly.database.truncate_wal

    def meanwhile() -> bool:
        done = truncate()
        with mc._assembly.database.write() as tx:
            purge.forget(tx, [second], mc.settings.zone, mc._assembly.clock())
        return done

    with monkeypatch.context() as now:
        now.setattr(mc._assembly.database, "truncate_wal", meanwhile)
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


def test_a_deletion_whose_purge_fails_says_so_and_shows_nothing(mc) -> None:
    ana = mc.user("ana")
    kept = ana.memories.add("fact", "note", "Zanzibar")
    never = "CREATE TRIGGER never BEFORE DELETE ON memories BEGIN SELECT raise(abort, 'no'); END"
    with mc._assembly.database.write() as tx:
        tx.exec_driver_sql(never)
    with pytest.raises(StoreError, match=r"out of sight.*tried again"):
        ana.memories.delete(kept.id)
    assert ana.memories.list() == [] and ana.search("Zanzibar").hits == ()


def test_one_memory_that_cannot_be_purged_keeps_no_other_from_being_forgotten(mc, clock) -> None:
    ana = mc.user("ana")
    ids = [ana.memories.add("fact", "note", f"Zanzibar {i}").id for i in range(10)]
    ana.memories.delete_many(ids, hold=10)
    with mc._assembly.database.write() as tx:  # its past cannot be read
        sql = "UPDATE memory_events SET new = '{' WHERE new IS NOT NULL AND memory_id = ?"
        tx.exec_driver_sql(sql, (ids[4],))
    clock.advance(seconds=11)
    done = mc.jobs.run(kinds=["forget"])
    assert done.done == 9 and [job.target_id for job in done.failed] == [ids[4]]
    with mc._assembly.database.read() as tx:
        assert tx.exec_driver_sql("SELECT id FROM memories").scalars().all() == [ids[4]]


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
    with mc._assembly.database.read() as tx:
        assert repair.words_astray(tx, "memories") == set(), "it can be searched for again"


def test_undoing_one_deletion_leaves_others_that_share_its_words_forgotten(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        assert chat.send("My home town is Lisbon.").text
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


def test_a_short_value_leaves_the_replies_title_and_summary_too(mc, chat_model, extract_model):
    ana = mc.user("ana")
    chat_model.replies.appendleft("Noted: you are 42, and 42 is fine.")
    extract_model.replies.append(
        answer(fact("I am 42 years old", "age", "42"), title="Being 42", summary="Ana's age is 42.")
    )
    chat = talk(mc, "I am 42 years old.")
    (age,) = ana.memories.list()
    ana.memories.delete(age.id)
    turns = ana.sessions.messages(chat.session_id)
    assert [t.content for t in turns][1] == "Noted: you are ··, and ·· is fine."
    session = ana.sessions.list()[0]
    assert (session.title, session.summary) == (None, None)


def test_a_title_in_other_words_goes_from_the_conversation_that_taught_it(mc, extract_model):
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(
            fact("I am allergic to peanuts", "allergy", "peanuts"),
            title="Peanut allergy",
            summary="Has a peanut allergy.",
        )
    )
    talk(mc, "I am allergic to peanuts.")
    ana.memories.delete(ana.memories.list()[0].id)
    assert rows_with(mc, "peanut") == []


def test_a_value_replaced_twice_leaves_every_receipt(mc, chat_model, extract_model, clock) -> None:
    ana = mc.user("ana")
    first = ana.memories.add("profile", "city", "Zanzibar")
    for name in ("Porto", "Faro"):
        clock.advance(days=1)
        ana.memories.add("profile", "city", name)
    mc.jobs.run()
    chat_model.replies.appendleft("Once you lived in Zanzibar.")
    extract_model.replies.append(answer())
    talk(mc, "Tell me of Zanzibar, the city")
    assert rows_with(mc, "Zanzibar")
    ana.memories.delete(first.id)
    assert [line for line in rows_with(mc, "Zanzibar") if "Once" in line or "before" in line] == []


def test_what_is_forgotten_while_a_reply_comes_in_is_not_kept_with_it(
    mc, chat_model, extract_model
) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("profile", "city", "Zanzibar")

    def forgets(_: object) -> str:
        ana.memories.delete(memory.id)
        return "You live in Zanzibar, as I recall."

    chat_model.replies.appendleft(forgets)
    extract_model.replies.append(answer())
    chat = talk(mc, "Where do I live?")
    reply = ana.sessions.messages(chat.session_id)[1]
    assert reply.content == f"You live in {'·' * 8}, as I recall."
    assert ana.sessions.receipt(reply.id) == []
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_no_cue_of_anything_else_tells_what_is_forgotten(mc, extract_model) -> None:
    ana = mc.user("ana")
    cues = ["zanzibar", "zanzibari", "beach"]
    extract_model.replies.append(
        answer(
            fact("I moved to Zanzibar", "city", "Zanzibar"),
            fact("I keep bees", "hobby", "keep bees", cues=cues),
            fact("I have asthma", "health", "asthma", flags=["sensitive"], cues=cues),
            fact("I drink tea", "drink", "tea", flags=["not_meant"], cues=cues),
        )
    )
    talk(mc, "I moved to Zanzibar. I keep bees. I have asthma. I drink tea.")
    city = next(m for m in ana.memories.list() if m.key == "city")
    before = len(rows_with(mc, "zanzibari"))
    ana.memories.delete(city.id)
    assert before == 5, "three rows of cues, the searched text and its keyword row"
    assert rows_with(mc, "zanzibar") == []
    assert [m.cues for m in ana.memories.list()] == [("beach",)]


def test_another_value_by_hand_takes_the_cues_of_the_one_before_away(mc, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I live in Porto", "city", "Porto", cues=["harbour"])))
    talk(mc, "I live in Porto.")
    (city,) = ana.memories.list()
    assert ana.memories.update(city.id, type="fact").cues == ("harbour",)
    assert ana.memories.update(city.id, value="Oslo").cues == of_key("city")


def test_a_very_short_value_that_waits_goes_with_the_one_that_is_forgotten(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(fact("I have HD", "health", "HD", flags=["sensitive"], memory_type="fact"))
    )
    talk(mc, "I have HD.")
    assert [item.value for item in ana.inbox.list()] == ["HD"]
    other = ana.memories.add("fact", "screen", "hd")
    ana.memories.delete(other.id)
    assert len(ana.inbox.list()) == 1, "it is another fact"
    same = ana.memories.add("profile", ana.inbox.list()[0].key, "hd")
    ana.memories.delete(same.id)
    assert ana.inbox.list() == []


def test_what_waits_with_the_words_of_a_deleted_message_goes_with_it(mc, extract_model) -> None:
    ana = mc.user("ana")
    illness = fact("It is asthma", "health", "asthma from Zanzibar", flags=["sensitive"], msg="u3")
    faith = fact("It is asthma", "faith", "asthma", flags=["sensitive"], msg="u3")
    extract_model.replies.append(answer(illness, faith))
    talk(mc, "I was ill in Zanzibar", "It is asthma")
    assert {i.value for i in ana.inbox.list()} == {"asthma from Zanzibar", "asthma"}
    (session,) = ana.sessions.list()
    ana.sessions.delete_message(ana.sessions.messages(session.id)[0].id)
    assert [i.value for i in ana.inbox.list()] == ["asthma"]
