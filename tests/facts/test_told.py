"""How a memory is told to the person: by a sentence as long as that is true, else by its name and
value; wherever it is shown, and nowhere once it is forgotten."""

from __future__ import annotations

import json

import pytest

from memchat import MemChat
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk

TOLD = "Nora is your partner."


@pytest.fixture
def nora(mc: MemChat, extract_model) -> MemChat:
    extract_model.replies.append(
        answer(fact("Nora is my partner", "partner", "Nora", sentence=TOLD))
    )
    talk(mc, "Nora is my partner.")
    return mc


def told(mc: MemChat) -> list[str]:
    return [memory.told for memory in mc.user("ana").memories.list()]


def dump(mc: MemChat) -> str:
    with private.database(mc).read() as tx:
        return "\n".join(tx.driver.iterdump())


def test_an_entry_by_hand_has_the_sentence_of_a_template_or_its_name_and_value(mc) -> None:
    ana = mc.user("ana").memories
    assert ana.add("profile", "allergy", "peanuts").told == "You are allergic to peanuts."
    assert ana.add("fact", "sister_city", "Ghent").told == "Sister city: Ghent"


def test_an_entry_by_hand_is_told_in_the_language_of_the_last_messages(mc, extract_model) -> None:
    extract_model.replies.append(answer())
    talk(mc, "Ich möchte heute etwas kochen und ich habe nicht viel Zeit.")
    assert mc.user("ana").memories.add("profile", "city", "Köln").told == "Du wohnst in Köln."


@pytest.mark.parametrize(
    ("sentence", "as_told"),
    [
        ("Peanuts make you ill.", "Peanuts make you ill."),
        ("Walnuts make you ill.", "You are allergic to peanuts."),
        ("", "You are allergic to peanuts."),
    ],
)
def test_a_sentence_given_with_an_entry_is_kept_where_it_is_true(mc, sentence, as_told) -> None:
    added = mc.user("ana").memories.add("profile", "allergy", "peanuts", sentence=sentence)
    assert added.told == as_told


def test_an_edit_makes_the_sentence_anew(nora) -> None:
    ana = nora.user("ana").memories
    (memory,) = ana.list()
    assert ana.update(memory.id, value="Ida").told == "Your partner is Ida."
    assert ana.update(memory.id, key="colleague_on_mondays").told == "Colleague on mondays: Ida"
    assert ana.update(memory.id, value="Ida B.", sentence="You work with Ida B.").told == (
        "You work with Ida B."
    )


def test_an_edit_of_other_things_leaves_the_sentence(nora) -> None:
    ana = nora.user("ana").memories
    (memory,) = ana.list()
    ana.update(memory.id, tags=["home"])
    assert ana.update(memory.id, sensitive=True, type="fact").told == TOLD


def test_of_two_that_are_merged_the_one_in_use_is_told_by_its_own_sentence(
    nora, extract_model
) -> None:
    whole = fact("Nora Lind is my partner", "partner", "Nora Lind", to="k1", **{"is": "same"})
    extract_model.replies.append(answer(whole | {"sentence": "Nora Lind is your partner."}))
    talk(nora, "As you know, Nora Lind is my partner.")
    assert told(nora) == ["Nora Lind is your partner."]


def test_a_list_finds_a_memory_by_the_words_of_its_sentence(mc) -> None:
    ana = mc.user("ana").memories
    ana.add("profile", "allergy", "peanuts")
    ana.add("profile", "city", "Lisbon")
    assert [memory.value for memory in ana.list("allergic")] == ["peanuts"]


def test_the_chat_lists_and_saves_in_sentences(mc, extract_model) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "allergy", "peanuts")
    chat = ana.chat()
    assert "Saved: You live in Lisbon." in chat.send("Remember that I live in Lisbon.").read()
    listed = chat.send("What do you remember about me?").read()
    assert "You are allergic to peanuts (" in listed and "You live in Lisbon (" in listed


def test_forgetting_takes_the_sentence_out_of_rows_events_and_replies(nora, extract_model) -> None:
    ana = nora.user("ana")
    (memory,) = ana.memories.list()
    extract_model.replies.append(answer())
    chat = talk(nora, "What do you remember about me?")
    (reply,) = [t for t in ana.sessions.messages(chat.session_id or 0) if t.role == "assistant"]
    assert TOLD.rstrip(".") in reply.content and "is your partner" in dump(nora)
    ana.memories.delete(memory.id)
    assert "is your partner" not in dump(nora)
    assert "Nora" not in json.dumps(list(ana.export()), default=str)


def test_a_former_sentence_that_a_reply_showed_is_forgotten_with_the_rest(
    nora, extract_model
) -> None:
    ana = nora.user("ana")
    (memory,) = ana.memories.list()
    extract_model.replies.append(answer())
    talk(nora, "What do you remember about me?")
    ana.memories.update(memory.id, value="Nora Lind")
    ana.memories.delete(memory.id)
    assert "is your partner" not in dump(nora)


def test_a_sentence_that_names_what_is_forgotten_goes_and_its_fact_stays(mc, extract_model) -> None:
    line = "Nora is my partner. My sister, like Nora, lives in Ghent."
    partner = fact("Nora is my partner", "partner", "Nora", sentence=TOLD)
    sister = fact("My sister, like Nora, lives in Ghent", "sister_city", "Ghent")
    as_told = "Your sister lives in Ghent like Nora."
    extract_model.replies.append(answer(partner, sister | {"sentence": as_told}))
    talk(mc, line)
    ana = mc.user("ana").memories
    city, nora = sorted(ana.list(), key=lambda memory: memory.value)
    assert city.told == as_told
    ana.delete(nora.id)
    assert told(mc) == ["Sister city: Ghent"] and "like Nora" not in dump(mc)


def test_it_travels_in_an_export_and_what_is_not_true_is_left_behind(nora, tmp_path) -> None:
    file = tmp_path / "ana.jsonl"
    nora.user("ana").export_file(file)
    nora.user("eva").import_file(file)
    assert [memory.told for memory in nora.user("eva").memories.list()] == [TOLD]
    file.write_text(file.read_text("utf-8").replace(TOLD, "Tom is your partner."), "utf-8")
    nora.user("bo").import_file(file)
    assert [memory.told for memory in nora.user("bo").memories.list()] == ["Partner: Nora"]
