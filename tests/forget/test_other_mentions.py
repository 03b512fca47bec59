"""After a forgetting: what else speaks of it is listed, and blanked where the person wants that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memchat import MemChat
from memchat.chat import Chat
from memchat.errors import InputError, NotFound
from memchat.forget.wording import FILLER
from memchat.search import keywords
from memchat.testing import ScriptedModel
from memchat.types import Elsewhere, Memory
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.leftovers import files_with, rows_with

ANA = {"user": "ana"}


def works_at_quokkaland(mc: MemChat, extract_model) -> Memory:
    line = "I work at Quokkaland Ltd"
    extract_model.replies.append(answer(fact(line, "employer", "Quokkaland Ltd")))
    talk(mc, line)
    return next(m for m in mc.user(**ANA).memories.list() if m.key == "employer")


def told(mc: MemChat, memory: Memory) -> list[tuple[str, str]]:
    found = mc.user(**ANA).mentions.find([memory.id])
    return [] if found is None else [(place.kind, place.text) for place in found.places]


def everywhere(mc: MemChat, memory: Memory) -> Elsewhere:
    found = mc.user(**ANA).mentions.find([memory.id])
    assert found is not None
    return found


BLANK = FILLER * len("Quokkaland")


def test_messages_and_replies_that_speak_of_a_fact_by_its_telling_word_are_listed(
    mc, extract_model, chat_model
) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    chat_model.replies.appendleft("A lovely firm, Quokkaland.")
    extract_model.replies.append(answer())
    talk(mc, "Today quokkaland had its party, and some other Ltd came.")
    assert told(mc, memory) == [
        ("reply", f"A lovely firm, {BLANK}."),
        ("message", f"Today {BLANK} had its party, and some other Ltd came."),
    ]


def test_what_forgetting_takes_along_is_not_listed(mc, extract_model, chat_model) -> None:
    chat_model.replies.appendleft("Quokkaland Ltd sounds fine.")
    memory = works_at_quokkaland(mc, extract_model)
    assert told(mc, memory) == []


@pytest.mark.parametrize(
    "said",
    ["QUOKKALAND is far", "three Quokkalands", "the Quökkaland desk", "that is Quokkaland's desk"],
)
def test_other_forms_of_the_word_are_found_and_blanked(mc, extract_model, said: str) -> None:
    ana = mc.user(**ANA)
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, said)
    found = everywhere(mc, memory)
    ana.memories.delete(memory.id, blank=found)
    turns = ana.sessions.messages(ana.sessions.list()[0].id)
    assert turns[0].content == found.places[0].text
    assert FILLER in turns[0].content and "kaland" not in turns[0].content.lower()


def test_another_person_s_words_and_another_app_s_are_neither_listed_nor_blanked(
    mc, extract_model
) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.extend([answer(), answer()])
    with mc.user("bo").chat() as chat:
        chat.send("Quokkaland is mine").read()
    with mc.user("ana", app="work").chat() as chat:
        chat.send("Quokkaland at work").read()
    assert told(mc, memory) == []


def test_a_fact_for_every_app_is_looked_for_in_every_app_of_the_person(mc, extract_model) -> None:
    memory = mc.user(**ANA).memories.add("profile", "employer", "Quokkaland Ltd", all_apps=True)
    extract_model.replies.extend([answer(), answer()])
    with mc.user("ana", app="work").chat() as chat:
        chat.send("Quokkaland at work").read()
    with mc.user("bo").chat() as chat:
        chat.send("Quokkaland is mine").read()
    assert told(mc, memory) == [("message", f"{BLANK} at work")]


def test_after_blanking_the_word_is_in_no_row_and_no_file(mc, extract_model, chat_model) -> None:
    ana = mc.user(**ANA)
    for day in range(3):
        chat_model.replies.appendleft(f"Quokkaland, day {day}: " + "long " * 200 + "quokkalands")
        extract_model.replies.append(
            answer(title="A quokkaland day", summary="Ana spoke of Quokkaland.")
        )
        talk(mc, f"Day {day} at Quokkaland. Who owns quokkalands?")
    memory = works_at_quokkaland(mc, extract_model)
    ana.memories.add("fact", "colleague", "Tom of Quokkaland")
    desk = ana.memories.add("fact", "desk", "the red Quokkaland desk")
    ana.memories.update(desk.id, value="the green desk")
    mc.jobs.run()
    ana.search("who owns Quokkaland?")
    found = everywhere(mc, memory)
    kinds = [place.kind for place in found.places]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "message": 3,
        "reply": 3,
        "title": 3,
        "summary": 3,
        "memory": 2,
    }
    ana.memories.delete(memory.id, blank=found)
    mc.jobs.run()
    assert rows_with(mc, "quokkaland") == [] == files_with(mc, "quokkaland")
    assert {s.title for s in ana.sessions.list()} >= {f"A {BLANK} day"}


def test_without_a_yes_everything_stays(mc, extract_model) -> None:
    ana = mc.user(**ANA)
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    everywhere(mc, memory)
    ana.memories.delete(memory.id)
    assert "Quokkaland had a party" in {
        turn.content for s in ana.sessions.list() for turn in ana.sessions.messages(s.id)
    }


def test_one_place_is_blanked_and_the_others_stay(mc, extract_model) -> None:
    ana = mc.user(**ANA)
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.extend([answer(), answer()])
    talk(mc, "Quokkaland had a party")
    talk(mc, "Quokkaland is a park, too")
    found = everywhere(mc, memory)
    one = next(place for place in found.places if "party" in place.text)
    ana.memories.delete(memory.id)
    ana.mentions.blank(replace(found, places=(one,)))
    said = {t.content for s in ana.sessions.list() for t in ana.sessions.messages(s.id)}
    assert f"{BLANK} had a party" in said and "Quokkaland is a park, too" in said


def test_places_can_be_blanked_after_the_fact_is_gone(mc, extract_model) -> None:
    ana = mc.user(**ANA)
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    found = everywhere(mc, memory)
    ana.memories.delete(memory.id)
    assert files_with(mc, "quokkaland")
    ana.mentions.blank(found)
    assert rows_with(mc, "quokkaland") == [] == files_with(mc, "quokkaland")


def test_blanking_is_undone_with_the_deletion_while_that_is_held(mc, extract_model, clock) -> None:
    ana = mc.user(**ANA)
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    found = everywhere(mc, memory)
    ana.memories.delete(memory.id, hold=10)
    ana.mentions.blank(found, hold=10)
    assert ana.memories.restore_many([memory.id]).count == 1
    clock.advance(days=1)
    mc.jobs.run()
    said = {t.content for s in ana.sessions.list() for t in ana.sessions.messages(s.id)}
    assert "Quokkaland had a party" in said
    assert ana.memories.get(memory.id).active


def test_blanking_that_is_held_after_the_purge_can_be_undone_too(mc, extract_model, clock) -> None:
    ana = mc.user(**ANA)
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    found = everywhere(mc, memory)
    ana.memories.delete(memory.id)
    ana.mentions.blank(found, hold=10)
    ana.memories.restore_many([memory.id])
    clock.advance(days=1)
    mc.jobs.run()
    said = {t.content for s in ana.sessions.list() for t in ana.sessions.messages(s.id)}
    assert "Quokkaland had a party" in said


def test_places_chosen_one_after_another_are_all_blanked_when_the_time_is_up(
    mc, extract_model, clock
) -> None:
    ana = mc.user(**ANA)
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.extend([answer(), answer()])
    talk(mc, "Quokkaland had a party")
    talk(mc, "Quokkaland is a park, too")
    found = everywhere(mc, memory)
    ana.memories.delete(memory.id, hold=10)
    for place in found.places:
        ana.mentions.blank(replace(found, places=(place,)), hold=10)
    clock.advance(seconds=11)
    mc.jobs.run()
    assert rows_with(mc, "quokkaland") == [] == files_with(mc, "quokkaland")


def test_another_fact_proved_by_a_blanked_message_stays_and_is_found(mc, extract_model) -> None:
    ana = mc.user(**ANA)
    memory = works_at_quokkaland(mc, extract_model)
    line = "I keep bees behind Quokkaland"
    extract_model.replies.append(answer(fact(line, "hobby", "keeps bees")))
    talk(mc, line)
    ana.memories.delete(memory.id, blank=everywhere(mc, memory))
    (bees,) = ana.memories.list()
    (proof,) = ana.memories.evidence(bees.id)
    assert proof.quote == f"I keep bees behind {BLANK}"
    assert [hit.memory.id for hit in ana.search("bees").hits if hit.memory] == [bees.id]


def test_what_waits_and_what_was_not_kept_is_listed_and_dropped(mc, extract_model) -> None:
    ana = mc.user(**ANA)
    love = "The harbour is lovely"
    extract_model.replies.append(
        answer(
            fact(love, "favourite_place", "Quokkaland", msg="u3"),
            fact("I keep three quokkalands", "pet", "three quokkalands", msg="u1"),
        )
    )
    talk(mc, "I saw Quokkaland", love)
    (item,) = ana.inbox.list()
    (refused,) = ana.inbox.refusals()
    memory = ana.memories.add("profile", "employer", "Quokkaland Ltd")
    found = everywhere(mc, memory)
    there = {(place.kind, place.id) for place in found.places}
    assert {("inbox", item.id), ("refusal", refused.id)} < there
    ana.memories.delete(memory.id, blank=found)
    assert ana.inbox.list() == [] == ana.inbox.refusals()
    assert rows_with(mc, "quokkaland") == []


def test_a_value_of_common_words_is_told_only_by_all_of_them_together(mc, extract_model) -> None:
    memory = mc.user(**ANA).memories.add("preference", "drink", "green tea")
    lines = [
        *(f"My {n}. green coat" for n in range(12)),
        *(f"The {n}. black tea" for n in range(12)),
    ]
    extract_model.replies.append(answer())
    talk(mc, *lines, "A green pot of tea")
    assert [text for _, text in told(mc, memory)] == [f"A {FILLER * 5} pot of {FILLER * 3}"]


def test_one_common_word_is_told_by_every_place_that_has_it(mc, extract_model) -> None:
    memory = mc.user(**ANA).memories.add("profile", "diet", "vegetarian")
    extract_model.replies.append(answer())
    talk(mc, *(f"{n} vegetarian soups for vegetarians" for n in range(15)))
    assert len(told(mc, memory)) == 15


@pytest.mark.parametrize("value", ["no", "3", "it is not"])
def test_a_value_that_any_text_may_hold_is_looked_for_nowhere(
    mc, extract_model, chat_model, value: str
) -> None:
    memory = mc.user(**ANA).memories.add("fact", "smokes", value)
    chat_model.replies.appendleft("long " * 200 + "no, it is not 3")
    extract_model.replies.append(answer())
    talk(mc, "No, it is not 3.")
    assert told(mc, memory) == []


@pytest.mark.parametrize(
    ("value", "said"), [("上海", "我喜欢上海的夜景"), ("Новосибирск", "Едем в новосибирск завтра")]
)
def test_words_of_other_scripts_are_found_and_blanked(mc, extract_model, value, said) -> None:
    ana = mc.user(**ANA)
    memory = ana.memories.add("profile", "city", value)
    extract_model.replies.append(answer())
    talk(mc, said)
    ana.memories.delete(memory.id, blank=everywhere(mc, memory))
    assert rows_with(mc, value) == [] == files_with(mc, value)


def test_words_that_no_search_finds_are_listed_too(mc, extract_model, chat_model) -> None:
    ana = mc.user(**ANA)
    ana.set_memory(False, all_apps=True)
    talk(mc, "Quokkaland, but do not note it")
    ana.set_memory(True, all_apps=True)
    chat_model.replies.appendleft("long " * 200 + "and Quokkaland at its end")
    extract_model.replies.append(answer())
    talk(mc, "Tell me a story")
    memory = ana.memories.add("profile", "employer", "Quokkaland Ltd")
    assert [kind for kind, _ in told(mc, memory)] == ["reply", "message"]


def test_blanking_names_no_memory_of_another_person(mc, extract_model) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    found = everywhere(mc, memory)
    mc.user(**ANA).memories.delete(memory.id)
    with pytest.raises(NotFound):
        mc.user("bo").mentions.blank(found)


def test_a_place_of_another_person_is_not_blanked_whoever_names_it(mc, extract_model) -> None:
    bo = mc.user("bo")
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.extend([answer(), answer()])
    talk(mc, "Quokkaland had a party")
    with bo.chat() as chat:
        chat.send("Quokkaland is mine").read()
    (session,) = bo.sessions.list()
    theirs = bo.sessions.messages(session.id)[0].id
    found = everywhere(mc, memory)
    foreign = tuple(replace(place, id=theirs) for place in found.places)
    mc.user(**ANA).memories.delete(memory.id, blank=replace(found, places=foreign))
    assert bo.sessions.messages(session.id)[0].content == "Quokkaland is mine"


def test_words_cannot_be_kept_and_blanked_at_once(mc, extract_model) -> None:
    ana = mc.user(**ANA)
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    with pytest.raises(InputError, match="both"):
        ana.memories.delete(memory.id, keep_transcript=True, blank=everywhere(mc, memory))
    assert ana.memories.get(memory.id).active


def test_stems_are_those_of_the_index() -> None:
    stems = keywords.stems(["studies", "study", "sushi"])
    assert stems["studies"] == stems["study"] != stems["sushi"]


# In the chat


def forgets_in_chat(open_store, extract_model) -> tuple[MemChat, Chat]:
    model = ScriptedModel(["Hello.", "Lovely."], name="scripted/chat")
    mc = open_store(chat_model=model)
    ana = mc.user(**ANA)
    extract_model.replies.extend([answer(), answer()])
    talk(mc, "Good morning", "Quokkaland had a party")
    model.replies.extend(["Try it with cumin. Shall I go on?", "All right."])
    ana.memories.add("profile", "employer", "Quokkaland Ltd")
    chat = ana.chat()
    chat.send("Forget my employer.").read()
    return mc, chat


def said_once(mc: MemChat) -> str:
    return mc.user(**ANA).sessions.messages(1)[2].content


def test_the_chat_says_what_else_speaks_of_it_and_a_yes_blanks_that(
    open_store, extract_model
) -> None:
    mc, chat = forgets_in_chat(open_store, extract_model)
    assert chat.send("yes").read() == (
        "Forgotten: 1 memory.\n\nIt is also spoken of elsewhere: 1 message.\n"
        f"- 2026-05-01, message: “{BLANK} had a party”\nBlank all of these, too? (yes or no)"
    )
    assert said_once(mc) == "Quokkaland had a party"
    assert chat.send("yes").read() == "Blanked: 1 message."
    chat.end()
    mc.jobs.run()
    assert rows_with(mc, "quokkaland") == [] == files_with(mc, "quokkaland")


@pytest.mark.parametrize("no", ["no", "What is a good recipe for lentils?"])
def test_anything_but_a_yes_leaves_all_else_as_it_is(open_store, extract_model, no: str) -> None:
    mc, chat = forgets_in_chat(open_store, extract_model)
    chat.send("yes").read()
    assert chat.send(no).read().startswith("All else stays as it is.")
    chat.send("yes").read()
    assert said_once(mc) == "Quokkaland had a party"


def test_the_question_comes_last_so_that_a_yes_means_nothing_else(
    open_store, extract_model
) -> None:
    _, chat = forgets_in_chat(open_store, extract_model)
    said = chat.send("Yes. What is a good recipe for lentils?").read()
    assert said.index("Shall I go on?") < said.index("Blank all of these, too?")


def test_a_word_that_many_memories_share_tells_nothing_of_one_of_them(mc) -> None:
    ana = mc.user(**ANA)
    each = [ana.memories.add("fact", f"shelf_{n}", f"box {n:03} in the cellar") for n in range(30)]
    assert told(mc, each[0]) == []
