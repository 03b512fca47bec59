"""Topics of notes and conversations: found by their vectors, the same from day to day, and without
any word of what was forgotten."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np
import pytest

from memchat import MemChat, NewNote, ProviderError, Topic
from memchat.notes import topics
from memchat.testing import ScriptedModel
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.forgetting import learn_zanzibar
from tests.support.leftovers import files_with, rows_with
from tests.support.note_answers import cites_all, sent
from tests.support.notes import count
from tests.support.planted import SUBJECTS, planted
from tests.support.store import NOON


def purity(mc: MemChat, found: list[Topic], user: str = "ana") -> float:
    """The share of all notes that are in a topic with most notes of their subject."""
    notes = mc.user(user).notes
    there = [Counter(n.title for n in notes.list(topic=one.id, limit=500)) for one in found]
    return sum(max(one.values()) for one in there) / len(notes.list(limit=500))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_three_planted_subjects_are_found_with_their_words(mc: MemChat, seed: int) -> None:
    notes = mc.user("ana").notes
    notes.add_many(planted(seed))
    found = notes.find_topics()
    assert purity(mc, found) >= 0.9
    assert found == notes.topics()
    for one in found:
        (subject,) = {note.title for note in notes.list(topic=one.id)}
        assert set(one.words) <= {subject, *SUBJECTS[subject].split()}
        assert len(one.words) == topics.WORDS


@pytest.mark.parametrize("seed", range(5))
def test_other_random_numbers_find_the_same_groups(seed: int, monkeypatch) -> None:
    monkeypatch.setattr(topics, "SAMPLED", 100)  # so that a part of them is chosen at random
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(6, 32))
    places = draw.integers(6, size=300)
    vectors = (centres[places] + 0.5 * draw.normal(size=(300, 32))).astype(np.float32)
    found = topics.groups(vectors, seed)
    assert len(set(zip(places, found, strict=True))) == 6


def test_a_topic_keeps_its_id_as_notes_are_added(mc: MemChat) -> None:
    notes = mc.user("ana").notes
    notes.add_many(planted(1))
    before = {one.id: {n.id for n in notes.list(topic=one.id)} for one in notes.find_topics()}
    notes.add_many(planted(9, each=2))
    after = {one.id: {n.id for n in notes.list(topic=one.id)} for one in notes.find_topics()}
    assert before.keys() == after.keys()
    assert all(2 * len(before[i] & after[i]) > len(before[i]) for i in before)


def test_a_topic_that_falls_apart_gives_its_id_to_none(mc: MemChat) -> None:
    notes = mc.user("ana").notes
    notes.add_many(planted(1))
    (gone, *rest) = notes.find_topics()
    for note in notes.list(topic=gone.id):
        notes.delete(note.id)
    notes.add_many([NewNote(f"{words} garden spade seeds compost") for words in "abcdefgh"])
    found = {one.id for one in notes.find_topics()}
    assert gone.id not in found
    assert {one.id for one in rest} < found
    assert max(found) > gone.id


def test_a_few_notes_have_no_topics_yet(mc: MemChat) -> None:
    notes = mc.user("ana").notes
    assert notes.find_topics() == notes.topics() == []
    notes.add_many(planted(1)[: topics.FEWEST - 1])
    assert notes.find_topics() == []
    assert count(mc, "topics") == 0


def test_without_vectors_nothing_is_found_and_nothing_fails(open_store) -> None:
    mc = open_store(embedder=None, embed_model="none")
    mc.user("ana").notes.add_many(planted(1))
    assert mc.user("ana").notes.find_topics() == []


def test_the_figures_of_a_topic_are_those_of_its_notes(mc: MemChat) -> None:
    notes = mc.user("ana").notes
    notes.add_many(planted(1))
    for one in notes.find_topics():
        its = notes.list(topic=one.id, limit=100)
        assert [n.topic_id for n in its] == [one.id] * one.notes
        times = [n.created_at for n in its]
        assert times == sorted(times, reverse=True)
        assert (one.first, one.last) == (times[-1], times[0])
        assert one.months == Counter(f"{at:%Y-%m}" for at in times)


def test_topics_are_those_of_one_app_of_one_person(mc: MemChat) -> None:
    mc.user("ana").notes.add_many(planted(1))
    found = mc.user("ana").notes.find_topics()
    for other in (mc.user("bo"), mc.user("ana", app="work")):
        other.notes.add_many(planted(2))
        own = other.notes.find_topics()
        assert not {one.id for one in own} & {one.id for one in found}
        assert other.notes.list(topic=found[0].id) == []
    assert mc.user("ana").notes.topics() == found


def test_conversations_are_in_topics_beside_notes(mc, extract_model) -> None:
    ana = mc.user("ana")
    ana.notes.add_many(planted(1))
    extract_model.replies.append(answer(fact("My boat needs a mast", "boat", "needs a mast")))
    talk(mc, "My boat needs a mast, a sail, an anchor, a rope and a deck")
    found = ana.notes.find_topics()
    (with_talk,) = [one for one in found if one.sessions]
    assert set(with_talk.words) <= {"sea", *SUBJECTS["sea"].split()}
    (session,) = ana.sessions.list(topic=with_talk.id)
    assert session.topic_id == with_talk.id
    ana.sessions.delete(session.id)
    assert sum(one.sessions for one in ana.notes.topics()) == 0


def test_a_summary_of_a_topic_reads_all_of_it_and_nothing_else(open_store) -> None:
    model = ScriptedModel(window=32_000)
    mc = open_store(chat_model=model)
    notes = mc.user("ana").notes
    notes.add_many(planted(1))
    model.replies.append(cites_all)
    topic = notes.find_topics()[0]
    answered = notes.ask("Sum up what I said.", mode="summary", topic=topic.id)
    answered.read()
    assert {s.note_id for s in answered.sources} == {n.id for n in notes.list(topic=topic.id)}
    (subject,) = {source.title for source in answered.sources}
    others = [words.split() for name, words in SUBJECTS.items() if name != subject]
    assert not any(word in sent(model) for word in chain(*others))


def with_names(open_store) -> tuple[MemChat, ScriptedModel, list[Topic]]:
    model = ScriptedModel([numbered])
    mc = open_store(extract_model=model)
    mc.user("ana").notes.add_many(planted(1))
    return mc, model, mc.user("ana").notes.find_topics(name=True)


def numbered(messages) -> str:
    """A name for each line that has a number; the first of its words in capitals."""
    lines = [line for line in messages[0].content.splitlines() if line[:1].isdigit()]
    return "\n".join(f"{line.partition('.')[0]}. All on {line.split()[1]}" for line in lines)


def test_a_model_names_all_topics_in_one_call(open_store) -> None:
    mc, model, found = with_names(open_store)
    assert all(one.title == one.name == f"All on {one.words[0]}," for one in found)
    assert len(model.requests) == 1
    again = mc.user("ana").notes.find_topics(name=True)
    assert [one.name for one in again] == [one.name for one in found]
    assert len(model.requests) == 1  # all have names
    assert [total.purpose for total in mc.user("ana").usage()] == ["embed", "notes"]


def test_names_are_made_only_where_they_are_asked_for(open_store) -> None:
    model = ScriptedModel()  # any call would fail
    mc = open_store(extract_model=model)
    mc.user("ana").notes.add_many(planted(1))
    assert {one.name for one in mc.user("ana").notes.find_topics()} == {None}
    mc.jobs.run()
    assert not model.requests


def test_what_a_model_says_besides_names_is_left_out(open_store) -> None:
    said = "Sure!\n99. Nobody's\nnone. of these\n1. \u202e" + "x" * 100 + "\n2.\n"
    mc = open_store(extract_model=ScriptedModel([said]))
    mc.user("ana").notes.add_many(planted(1))
    found = {one.id: one.name for one in mc.user("ana").notes.find_topics(name=True)}
    assert found[1] == "x" * topics.NAME_LIMIT
    assert {name for i, name in found.items() if i != 1} == {None}


def test_where_the_model_fails_the_topics_stay(open_store) -> None:
    mc = open_store(extract_model=ScriptedModel([ProviderError("down")]))
    notes = mc.user("ana").notes
    notes.add_many(planted(1))
    with pytest.raises(ProviderError):
        notes.find_topics(name=True)
    assert purity(mc, notes.topics()) >= 0.9


def test_no_word_of_a_deleted_note_stays_in_a_topic(open_store) -> None:
    model = ScriptedModel([lambda _: "1. The zanzibar plan\n2. Other\n3. Third"])
    mc = open_store(extract_model=model)
    notes = mc.user("ana").notes
    notes.add_many(planted(1))
    secret = [notes.add(f"boat sail zanzibar {n}", created_at=NOON) for n in range(12)]
    found = notes.find_topics(name=True)
    (home,) = [one for one in found if "zanzibar" in one.words]
    assert notes.list(topic=home.id, limit=2)[0].id in {one.id for one in secret}
    for note in secret:
        notes.delete(note.id)
    after = notes.topics()
    left = {one.id: one.notes for one in after}
    assert left.get(home.id, 0) == home.notes - 12
    assert not any("zanzibar" in one.words or one.name for one in after)
    assert rows_with(mc, "zanzibar") == files_with(mc, "zanzibar") == []


def test_a_forgotten_fact_takes_its_words_out_of_names(mc, extract_model, chat_model) -> None:
    notes = mc.user("ana").notes
    notes.add_many(planted(1))
    city = learn_zanzibar(mc, extract_model, chat_model)
    extract_model.replies.append("1. Zanzibar\n2. Zanzibar\n3. Zanzibar")
    assert notes.find_topics(name=True)[0].name == "Zanzibar"
    mc.user("ana").memories.delete(city)
    assert {one.name for one in notes.topics()} == {None}
    assert files_with(mc, "zanzibar") == []


def test_a_secret_is_no_word_of_a_topic(mc: MemChat) -> None:
    notes = mc.user("ana").notes
    notes.add_many(planted(1))
    for _ in range(3):
        notes.add("boat sail anchor tide; my password is hunter2swordfish", title="rope")
    found = notes.find_topics()
    told = {word for one in found for word in one.words}
    assert "hunter2swordfish" not in told
    (note, *_) = notes.list("password")
    assert "hunter2swordfish" not in notes.suggested_tags(note.id)


def test_a_deletion_that_is_undone_brings_the_note_back(mc: MemChat) -> None:
    notes = mc.user("ana").notes
    notes.add_many(planted(1))
    topic = notes.find_topics()[0]
    note = notes.list(topic=topic.id)[0]
    notes.update(note.id, tags=["keep"])
    notes.delete(note.id, hold=60)
    assert notes.topics()[0].notes == topic.notes - 1 or notes.topics()[0].id != topic.id
    back = notes.restore(note.id)
    assert (back.tags, back.topic_id) == (("keep",), None)
    notes.find_topics()
    assert notes.get(note.id).topic_id == topic.id


def test_the_worker_finds_topics_once_a_day_where_there_is_anything_new(mc, clock) -> None:
    notes = mc.user("ana").notes
    notes.add_many(planted(1))
    mc.jobs.run()
    assert purity(mc, notes.topics()) >= 0.9
    new = notes.add("boat sail anchor tide harbour")
    mc.jobs.run()
    assert notes.get(new.id).topic_id is None
    clock.advance(days=1)
    mc.jobs.run()
    assert notes.get(new.id).topic_id is not None
    with private.database(mc).read() as tx:
        made = tx.execute(topics.sa.select(topics.t.topics.c.made_at)).scalars().all()
    clock.advance(days=1)
    mc.jobs.run()
    with private.database(mc).read() as tx:
        assert tx.execute(topics.sa.select(topics.t.topics.c.made_at)).scalars().all() == made


def test_topics_go_with_their_app_and_person(mc: MemChat) -> None:
    for app in ("default", "work"):
        mc.user("ana", app=app).notes.add_many(planted(1))
        mc.user("ana", app=app).notes.find_topics()
    mc.user("ana").apps.delete("work")
    assert count(mc, "topics") == 3
    mc.user("ana").delete_all()
    assert count(mc, "topics") == 0
