"""After a forgetting: what else speaks of it is listed, and blanked where the person wants that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memchat import MemChat
from memchat.chat import Chat
from memchat.errors import InputError, NotFound
from memchat.memory.forgetting.redaction import FILLER
from memchat.store import keywords
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
    return next(m for m in mc.memories(**ANA) if m.key == "employer")


def told(mc: MemChat, memory: Memory) -> list[tuple[str, str]]:
    found = mc.elsewhere([memory.id], **ANA)
    return [] if found is None else [(place.kind, place.text) for place in found.places]


def everywhere(mc: MemChat, memory: Memory) -> Elsewhere:
    found = mc.elsewhere([memory.id], **ANA)
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
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, said)
    found = everywhere(mc, memory)
    mc.delete(memory.id, **ANA, blank=found)
    turns = mc.messages(mc.sessions(**ANA)[0].id, **ANA)
    assert turns[0].content == found.places[0].text
    assert FILLER in turns[0].content and "kaland" not in turns[0].content.lower()


def test_another_person_s_words_and_another_app_s_are_neither_listed_nor_blanked(
    mc, extract_model
) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.extend([answer(), answer()])
    with mc.session(user="bo") as chat:
        chat.send("Quokkaland is mine").text
    with mc.session(user="ana", app="work") as chat:
        chat.send("Quokkaland at work").text
    assert told(mc, memory) == []


def test_a_fact_for_every_app_is_looked_for_in_every_app_of_the_person(mc, extract_model) -> None:
    memory = mc.add("profile", "employer", "Quokkaland Ltd", **ANA, all_apps=True)
    extract_model.replies.extend([answer(), answer()])
    with mc.session(user="ana", app="work") as chat:
        chat.send("Quokkaland at work").text
    with mc.session(user="bo") as chat:
        chat.send("Quokkaland is mine").text
    assert told(mc, memory) == [("message", f"{BLANK} at work")]


def test_after_blanking_the_word_is_in_no_row_and_no_file(mc, extract_model, chat_model) -> None:
    for day in range(3):
        chat_model.replies.appendleft(f"Quokkaland, day {day}: " + "long " * 200 + "quokkalands")
        extract_model.replies.append(
            answer(title="A quokkaland day", summary="Ana spoke of Quokkaland.")
        )
        talk(mc, f"Day {day} at Quokkaland. Who owns quokkalands?")
    memory = works_at_quokkaland(mc, extract_model)
    mc.add("fact", "colleague", "Tom of Quokkaland", **ANA)
    desk = mc.add("fact", "desk", "the red Quokkaland desk", **ANA)
    mc.edit(desk.id, **ANA, value="the green desk")
    mc.run_jobs()
    mc.recall("who owns Quokkaland?", **ANA)
    found = everywhere(mc, memory)
    kinds = [place.kind for place in found.places]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "message": 3,
        "reply": 3,
        "title": 3,
        "summary": 3,
        "memory": 2,
    }
    mc.delete(memory.id, **ANA, blank=found)
    mc.run_jobs()
    assert rows_with(mc, "quokkaland") == [] == files_with(mc, "quokkaland")
    assert {s.title for s in mc.sessions(**ANA)} >= {f"A {BLANK} day"}


def test_without_a_yes_everything_stays(mc, extract_model) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    everywhere(mc, memory)
    mc.delete(memory.id, **ANA)
    assert "Quokkaland had a party" in {
        turn.content for s in mc.sessions(**ANA) for turn in mc.messages(s.id, **ANA)
    }


def test_one_place_is_blanked_and_the_others_stay(mc, extract_model) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.extend([answer(), answer()])
    talk(mc, "Quokkaland had a party")
    talk(mc, "Quokkaland is a park, too")
    found = everywhere(mc, memory)
    one = next(place for place in found.places if "party" in place.text)
    mc.delete(memory.id, **ANA)
    mc.blank(replace(found, places=(one,)), **ANA)
    said = {t.content for s in mc.sessions(**ANA) for t in mc.messages(s.id, **ANA)}
    assert f"{BLANK} had a party" in said and "Quokkaland is a park, too" in said


def test_places_can_be_blanked_after_the_fact_is_gone(mc, extract_model) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    found = everywhere(mc, memory)
    mc.delete(memory.id, **ANA)
    assert files_with(mc, "quokkaland")
    mc.blank(found, **ANA)
    assert rows_with(mc, "quokkaland") == [] == files_with(mc, "quokkaland")


def test_blanking_is_undone_with_the_deletion_while_that_is_held(mc, extract_model, clock) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    found = everywhere(mc, memory)
    mc.delete(memory.id, **ANA, hold=10)
    mc.blank(found, **ANA, hold=10)
    assert mc.restore_many([memory.id], **ANA) == 1
    clock.advance(days=1)
    mc.run_jobs()
    said = {t.content for s in mc.sessions(**ANA) for t in mc.messages(s.id, **ANA)}
    assert "Quokkaland had a party" in said
    assert mc.memory(memory.id, **ANA).active


def test_blanking_that_is_held_after_the_purge_can_be_undone_too(mc, extract_model, clock) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    found = everywhere(mc, memory)
    mc.delete(memory.id, **ANA)
    mc.blank(found, **ANA, hold=10)
    mc.restore_many([memory.id], **ANA)
    clock.advance(days=1)
    mc.run_jobs()
    said = {t.content for s in mc.sessions(**ANA) for t in mc.messages(s.id, **ANA)}
    assert "Quokkaland had a party" in said


def test_places_chosen_one_after_another_are_all_blanked_when_the_time_is_up(
    mc, extract_model, clock
) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.extend([answer(), answer()])
    talk(mc, "Quokkaland had a party")
    talk(mc, "Quokkaland is a park, too")
    found = everywhere(mc, memory)
    mc.delete(memory.id, **ANA, hold=10)
    for place in found.places:
        mc.blank(replace(found, places=(place,)), **ANA, hold=10)
    clock.advance(seconds=11)
    mc.run_jobs()
    assert rows_with(mc, "quokkaland") == [] == files_with(mc, "quokkaland")


def test_another_fact_proved_by_a_blanked_message_stays_and_is_found(mc, extract_model) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    line = "I keep bees behind Quokkaland"
    extract_model.replies.append(answer(fact(line, "hobby", "keeps bees")))
    talk(mc, line)
    mc.delete(memory.id, **ANA, blank=everywhere(mc, memory))
    (bees,) = mc.memories(**ANA)
    (proof,) = mc.evidence(bees.id, **ANA)
    assert proof.quote == f"I keep bees behind {BLANK}"
    assert [hit.memory.id for hit in mc.recall("bees", **ANA).hits if hit.memory] == [bees.id]


def test_what_waits_and_what_was_not_kept_is_listed_and_dropped(mc, extract_model) -> None:
    love = "The harbour is lovely"
    extract_model.replies.append(
        answer(
            fact(love, "favourite_place", "Quokkaland", msg="u3"),
            fact("I keep three quokkalands", "pet", "three quokkalands", msg="u1"),
        )
    )
    talk(mc, "I saw Quokkaland", love)
    (item,) = mc.inbox(**ANA)
    (refused,) = mc.refusals(**ANA)
    memory = mc.add("profile", "employer", "Quokkaland Ltd", **ANA)
    found = everywhere(mc, memory)
    there = {(place.kind, place.id) for place in found.places}
    assert {("inbox", item.id), ("refusal", refused.id)} < there
    mc.delete(memory.id, **ANA, blank=found)
    assert mc.inbox(**ANA) == [] == mc.refusals(**ANA)
    assert rows_with(mc, "quokkaland") == []


def test_a_value_of_common_words_is_told_only_by_all_of_them_together(mc, extract_model) -> None:
    memory = mc.add("preference", "drink", "green tea", **ANA)
    lines = [
        *(f"My {n}. green coat" for n in range(12)),
        *(f"The {n}. black tea" for n in range(12)),
    ]
    extract_model.replies.append(answer())
    talk(mc, *lines, "A green pot of tea")
    assert [text for _, text in told(mc, memory)] == [f"A {FILLER * 5} pot of {FILLER * 3}"]


def test_one_common_word_is_told_by_every_place_that_has_it(mc, extract_model) -> None:
    memory = mc.add("profile", "diet", "vegetarian", **ANA)
    extract_model.replies.append(answer())
    talk(mc, *(f"{n} vegetarian soups for vegetarians" for n in range(15)))
    assert len(told(mc, memory)) == 15


@pytest.mark.parametrize("value", ["no", "3", "it is not"])
def test_a_value_that_any_text_may_hold_is_looked_for_nowhere(
    mc, extract_model, chat_model, value: str
) -> None:
    memory = mc.add("fact", "smokes", value, **ANA)
    chat_model.replies.appendleft("long " * 200 + "no, it is not 3")
    extract_model.replies.append(answer())
    talk(mc, "No, it is not 3.")
    assert told(mc, memory) == []


@pytest.mark.parametrize(
    ("value", "said"), [("上海", "我喜欢上海的夜景"), ("Новосибирск", "Едем в новосибирск завтра")]
)
def test_words_of_other_scripts_are_found_and_blanked(mc, extract_model, value, said) -> None:
    memory = mc.add("profile", "city", value, **ANA)
    extract_model.replies.append(answer())
    talk(mc, said)
    mc.delete(memory.id, **ANA, blank=everywhere(mc, memory))
    assert rows_with(mc, value) == [] == files_with(mc, value)


def test_words_that_no_search_finds_are_listed_too(mc, extract_model, chat_model) -> None:
    mc.set_memory(False, **ANA)
    talk(mc, "Quokkaland, but do not note it")
    mc.set_memory(True, **ANA)
    chat_model.replies.appendleft("long " * 200 + "and Quokkaland at its end")
    extract_model.replies.append(answer())
    talk(mc, "Tell me a story")
    memory = mc.add("profile", "employer", "Quokkaland Ltd", **ANA)
    assert [kind for kind, _ in told(mc, memory)] == ["reply", "message"]


def test_blanking_names_no_memory_of_another_person(mc, extract_model) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    found = everywhere(mc, memory)
    mc.delete(memory.id, **ANA)
    with pytest.raises(NotFound):
        mc.blank(found, user="bo")


def test_a_place_of_another_person_is_not_blanked_whoever_names_it(mc, extract_model) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.extend([answer(), answer()])
    talk(mc, "Quokkaland had a party")
    with mc.session(user="bo") as chat:
        chat.send("Quokkaland is mine").text
    (session,) = mc.sessions(user="bo")
    theirs = mc.messages(session.id, user="bo")[0].id
    found = everywhere(mc, memory)
    foreign = tuple(replace(place, id=theirs) for place in found.places)
    mc.delete(memory.id, **ANA, blank=replace(found, places=foreign))
    assert mc.messages(session.id, user="bo")[0].content == "Quokkaland is mine"


def test_words_cannot_be_kept_and_blanked_at_once(mc, extract_model) -> None:
    memory = works_at_quokkaland(mc, extract_model)
    extract_model.replies.append(answer())
    talk(mc, "Quokkaland had a party")
    with pytest.raises(InputError, match="both"):
        mc.delete(memory.id, **ANA, keep_transcript=True, blank=everywhere(mc, memory))
    assert mc.memory(memory.id, **ANA).active


def test_stems_are_those_of_the_index() -> None:
    stems = keywords.stems(["studies", "study", "sushi"])
    assert stems["studies"] == stems["study"] != stems["sushi"]


# In the chat


def forgets_in_chat(open_store, extract_model) -> tuple[MemChat, Chat]:
    model = ScriptedModel(["Hello.", "Lovely."], name="scripted/chat")
    mc = open_store(chat_model=model)
    extract_model.replies.extend([answer(), answer()])
    talk(mc, "Good morning", "Quokkaland had a party")
    model.replies.extend(["Try it with cumin. Shall I go on?", "All right."])
    mc.add("profile", "employer", "Quokkaland Ltd", **ANA)
    chat = mc.session(**ANA)
    chat.send("Forget my employer.").text
    return mc, chat


def said_once(mc: MemChat) -> str:
    return mc.messages(1, **ANA)[2].content


def test_the_chat_says_what_else_speaks_of_it_and_a_yes_blanks_that(
    open_store, extract_model
) -> None:
    mc, chat = forgets_in_chat(open_store, extract_model)
    assert chat.send("yes").text == (
        "Forgotten: 1 memory.\n\nIt is also spoken of elsewhere: 1 message.\n"
        f"- 2026-05-01, message: “{BLANK} had a party”\nBlank all of these, too? (yes or no)"
    )
    assert said_once(mc) == "Quokkaland had a party"
    assert chat.send("yes").text == "Blanked: 1 message."
    chat.end()
    mc.run_jobs()
    assert rows_with(mc, "quokkaland") == [] == files_with(mc, "quokkaland")


@pytest.mark.parametrize("no", ["no", "What is a good recipe for lentils?"])
def test_anything_but_a_yes_leaves_all_else_as_it_is(open_store, extract_model, no: str) -> None:
    mc, chat = forgets_in_chat(open_store, extract_model)
    chat.send("yes").text
    assert chat.send(no).text.startswith("All else stays as it is.")
    chat.send("yes").text
    assert said_once(mc) == "Quokkaland had a party"


def test_the_question_comes_last_so_that_a_yes_means_nothing_else(
    open_store, extract_model
) -> None:
    _, chat = forgets_in_chat(open_store, extract_model)
    said = chat.send("Yes. What is a good recipe for lentils?").text
    assert said.index("Shall I go on?") < said.index("Blank all of these, too?")
