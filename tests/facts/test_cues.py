"""The words for situations that a fact is searched by, beside its own."""

from __future__ import annotations

import json

from memchat.facts import keys
from memchat.facts.cues import of_key
from memchat.testing import ScriptedModel
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.leftovers import rows_with
from tests.support.store import Opener


def searched(mc, memory_id: int) -> str:
    with private.database(mc).read() as tx:
        sql = "SELECT text FROM passages WHERE kind = 'fact' AND owner_id = ?"
        return str(tx.exec_driver_sql(sql, (memory_id,)).scalar_one())


def test_a_fact_is_found_by_a_cue_that_stands_in_none_of_its_words(mc, extract_model) -> None:
    ana = mc.user("ana")
    item = fact("I never eat meat", "diet", "no meat", cues=["cooking", "restaurant"])
    extract_model.replies.append(answer(item))
    talk(mc, "I never eat meat.")
    ana.memories.add("fact", "boat", "a red kayak")
    (hit,) = ana.search("cooking").confident
    assert hit.memory is not None and hit.memory.value == "no meat"
    assert "cooking" not in hit.text, "cues are never shown"


def test_a_fact_entered_by_hand_has_the_cues_of_its_key(mc) -> None:
    ana = mc.user("ana")
    diet = ana.memories.add("profile", "diet", "vegetarian")
    boat = ana.memories.add("fact", "boat", "a red kayak")
    assert diet.cues == of_key("diet") and "dinner" in diet.cues
    assert boat.cues == ()
    (hit,) = ana.search("dinner").confident
    assert hit.id == diet.id
    moved = ana.memories.update(diet.id, key="boat", value="a blue canoe")
    assert moved.cues == ()
    assert ana.search("dinner").confident == ()


def test_the_table_holds_few_plain_words_and_only_for_known_keys() -> None:
    for key in keys.ONE | keys.MANY:
        words = of_key(key)
        assert len(words) <= 10 and all(w.isalpha() and len(w) <= 24 for w in words), key
    assert of_key("boat") == ()


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


def test_a_cue_that_stands_in_over_a_fifth_of_the_facts_weighs_nothing(open_store: Opener) -> None:
    mc = open_store(embedder=None, embed_model="none")
    ana = mc.user("ana")
    for number in range(9):
        ana.memories.add("fact", "thing", f"a stone {chr(97 + number)}{chr(97 + number)}")
    first = ana.memories.add("profile", "diet", "vegetarian")
    for value in ("a cat", "a dog"):
        ana.memories.add("fact", "food", f"what {value} likes for dinner")
    last = ana.memories.add("fact", "favourite_food", "lentil soup")
    assert "dinner" in searched(mc, first.id).split("\n")[-1]
    assert "dinner" in last.cues, "the row keeps them"
    assert "dinner" not in searched(mc, last.id)
    assert "restaurant" in searched(mc, last.id)
