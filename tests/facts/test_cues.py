"""The words for situations that a fact is searched by, beside its own."""

from __future__ import annotations

import json

from memchat.testing import ScriptedModel
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.leftovers import rows_with
from tests.support.store import Opener


def searched(mc, memory_id: int) -> str:
    with private.database(mc).read() as tx:
        sql = "SELECT text FROM passages WHERE kind = 'fact' AND owner_id = ?"
        return str(tx.connection.exec_driver_sql(sql, (memory_id,)).scalar_one())


def test_a_fact_is_found_by_a_cue_that_stands_in_none_of_its_words(mc, extract_model) -> None:
    ana = mc.user("ana")
    item = fact("I never eat meat", "diet", "no meat", cues=["cooking", "restaurant"])
    extract_model.replies.append(answer(item))
    talk(mc, "I never eat meat.")
    ana.memories.add("fact", "boat", "a red kayak")
    (hit,) = ana.search("cooking").confident
    assert hit.memory is not None and hit.memory.value == "no meat"
    assert "cooking" not in hit.text, "cues are never shown"


def test_a_fact_entered_by_hand_has_no_cues_and_new_words_take_those_of_the_old(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    assert ana.memories.add("profile", "diet", "vegetarian").cues == ()
    item = fact("I own a red kayak", "boat", "a red kayak", cues=["river"])
    extract_model.replies.append(answer(item))
    talk(mc, "I own a red kayak.")
    (boat,) = (one for one in ana.memories.list() if one.key == "boat")
    assert ana.memories.update(boat.id, type="preference").cues == ("river",)
    assert ana.memories.update(boat.id, value="a blue canoe").cues == ()
    assert ana.search("river").confident == ()


def test_forgetting_a_word_takes_it_out_of_the_search_for_other_facts(mc, extract_model) -> None:
    ana = mc.user("ana")
    cues = ["zanzibar", "beach"]
    extract_model.replies.append(
        answer(
            fact("I moved to Zanzibar", "city", "Zanzibar"),
            fact("I keep bees", "hobby", "keep bees", cues=cues),
        )
    )
    talk(mc, "I moved to Zanzibar. I keep bees.")
    city, bees = sorted(ana.memories.list(), key=lambda m: m.key)
    assert searched(mc, bees.id).endswith("\nzanzibar beach")
    ana.memories.delete(city.id)
    assert searched(mc, bees.id).endswith("\nbeach")
    assert rows_with(mc, "zanzibar") == []
    assert [h.id for h in ana.search("beach").confident] == [bees.id]


def test_forgetting_a_word_takes_its_other_forms_out_of_the_cues_of_other_facts(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    item = fact("I love baking", "hobby", "baking", cues=["peanut", "cake", "penny"])
    extract_model.replies.append(answer(item))
    nuts = ana.memories.add("profile", "allergy", "peanuts")
    talk(mc, "I love baking.")
    ana.memories.delete(nuts.id)
    (baking,) = ana.memories.list()
    assert baking.cues == ("cake", "penny")
    assert rows_with(mc, "peanut") == []


def test_a_word_forgotten_while_a_conversation_is_read_comes_back_in_no_cue(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    nuts = ana.memories.add("profile", "allergy", "peanuts")

    def reading(_) -> str:
        ana.memories.delete(nuts.id)
        return answer(fact("I love baking", "hobby", "baking", cues=["peanut", "cake"]))

    extract_model.replies.append(reading)
    talk(mc, "I love baking.")
    (baking,) = ana.memories.list()
    assert baking.cues == ("cake",) and searched(mc, baking.id).endswith("\ncake")
    assert rows_with(mc, "peanut") == []
    assert ana.search("peanut").confident == ()


def test_a_fact_learnt_in_an_earlier_window_takes_no_cue_from_a_later_one(
    open_store: Opener,
) -> None:
    said = {"I love baking.": ("baking", "oven"), "I sell bread.": ("sell bread", "baking")}

    def reader(messages) -> str:
        lines = json.loads(messages[1].content.partition("\n")[2].rpartition("\n")[0])["transcript"]
        found = [
            (line["id"], line["text"], *said[line["text"]])
            for line in lines
            if line["text"] in said
        ]
        return answer(
            *(fact(t, v.replace(" ", "_"), v, msg=i, cues=[cue]) for i, t, v, cue in found)
        )

    mc = open_store(extract_model=ScriptedModel([reader] * 50, window=2048))
    talk(mc, "I love baking.", *["Some words about nothing much. " * 25] * 12, "I sell bread.")
    assert {m.value: m.cues for m in mc.user("ana").memories.list()} == {
        "baking": ("oven",),
        "sell bread": ("baking",),
    }


def test_a_cue_that_stands_in_over_a_fifth_of_the_facts_weighs_nothing(
    open_store: Opener, extract_model
) -> None:
    mc = open_store(embedder=None, embed_model="none")
    ana = mc.user("ana")
    for number in range(9):
        ana.memories.add("fact", "thing", f"a stone {chr(97 + number)}{chr(97 + number)}")
    known = {}
    for value in ("lentils", "beans", "rice", "soup"):
        cues = ["dinner", "restaurant"] if value in ("lentils", "soup") else ["dinner"]
        extract_model.replies.append(answer(fact(f"I cook {value}", "dish", value, cues=cues)))
        talk(mc, f"I cook {value}.")
        known = {one.value: one for one in ana.memories.list()}
    assert "dinner" in searched(mc, known["lentils"].id).split("\n")[-1]
    assert "dinner" in known["soup"].cues, "the row keeps them"
    assert "dinner" not in searched(mc, known["soup"].id)
    assert "restaurant" in searched(mc, known["soup"].id)
