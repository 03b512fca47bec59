"""The offline stand-in: what it proposes, what it leaves alone, and what it answers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memchat.config import Settings
from memchat.learn.candidate import parse
from memchat.providers.factory import chat_model
from memchat.providers.offline import (
    FACT_LIMIT,
    STAND_IN,
    OfflineChat,
    answer,
    extract,
    extract_messages,
    memories,
    reply,
)
from memchat.types import ChatMessage

BLOCK = """You are a helpful assistant.
# Memories
What this person said in earlier conversations.
<memories mark="a1b2c3">
- #1 city: Lisbon
- #2 diet: vegetarian
- #3 allergy: walnuts
- #4 thesis_deadline: 15 October (said 2026-05-01; until 2026-10-15)
For this message: #1
- [conversation] 2026-05-01 user: My sofa is far too big for the van.
</memories mark="a1b2c3">
"""


def data(*said: str, known: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    turns = [
        {"id": f"u{n}", "role": "user", "said": "2026-11-20 Fri", "text": text}
        for n, text in enumerate(said, 1)
    ]
    return {"transcript": turns, "context": [], "known": list(known), "keys": []}


def facts(*said: str, known: tuple[dict[str, Any], ...] = ()) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = extract(data(*said, known=known))["facts"]
    return found


def slots(*said: str) -> list[tuple[str, str]]:
    return [(fact["key"], fact["value"]) for fact in facts(*said)]


def known(key: str, value: str, holds: str = "one", type: str = "profile") -> dict[str, Any]:
    return {"id": "k1", "type": type, "key": key, "value": value, "holds": holds}


def ask(*said: str, system: str = BLOCK) -> str:
    messages = [{"role": "system", "content": system}]
    for text in said[:-1]:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
    return reply([*messages, {"role": "user", "content": said[-1]}])


# What is proposed


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("My name is Mara Lindqvist.", [("name", "Mara Lindqvist")]),
        ("Hi, I'm Mara.", [("name", "Mara")]),
        ("Hello! I'm Ana Sousa.", [("name", "Ana Sousa")]),
        ("I live in Lisbon with my partner Tom.", [("city", "Lisbon"), ("partner", "Tom")]),
        ("I am 42 years old.", [("age", "42")]),
        ("I turned 43 last week.", [("age", "43")]),
        ("I live in Leipzig with my sister.", [("city", "Leipzig")]),
        ("I moved from Leipzig to Porto last week.", [("city", "Porto")]),
        ("I live in a small flat.", [("home", "small flat")]),
        ("I work as a bookbinder.", [("job", "bookbinder")]),
        ("I'm a software engineer at Foo Labs.", [("job", "software engineer")]),
        ("I work at Harbour Books.", [("employer", "Harbour Books")]),
        ("I'm vegetarian.", [("diet", "vegetarian")]),
        ("I am allergic to walnuts and eggs.", [("allergy", "walnuts"), ("allergy", "eggs")]),
        ("I love jazz and tea.", [("like", "jazz"), ("food_like", "tea")]),
        ("I hate early meetings.", [("dislike", "hates early meetings")]),
        ("I don’t like coriander.", [("food_dislike", "does not like coriander")]),
        ("I prefer short answers.", [("preference", "prefers short answers")]),
        ("My favorite film is Alien.", [("favourite_film", "Alien")]),
        ("I have a dog called Biscuit.", [("pet", "dog Biscuit")]),
        ("My wife Ana is a nurse.", [("partner", "Ana")]),
        ("My daughter is called Lena.", [("child", "daughter Lena")]),
        ("My birthday is 12 May.", [("birthday", "12 May")]),
        ("I speak German and Wolof.", [("language", "German"), ("language", "Wolof")]),
        ("I am learning Go, two evenings a week.", [("learning", "Go")]),
        ("Remember that the key is under the mat.", [("note", "the key is under the mat")]),
        ("ich heiße Jörg und ich wohne in Köln.", [("name", "Jörg"), ("city", "Köln")]),
        ("Ich mag keinen Kaffee.", [("dislike", "mag keinen Kaffee")]),
        ("I live in 東京.", [("city", "東京")]),
    ],
)  # fmt: skip
def test_a_plain_statement_gives_its_fact(said: str, expected: list[tuple[str, str]]) -> None:
    assert slots(said) == expected


@pytest.mark.parametrize(
    "said",
    [
        "Do I live in Leipzig?",
        "What is my name?",
        "If I lived in Rome, I would learn Italian.",
        "Imagine I live in Rome.",
        "Maybe I work as a baker one day.",
        "Write a letter as if I were a marine biologist.",
        "Translate this:\nI live in Gotham.",
        "Look at this: ⟦I live in Gotham. My name is Joker.⟧",
        "```\nI live in Gotham.\n```",
        "> I live in Gotham.",
        'He wrote "I live in Gotham and I like it".',
        "My boss likes coriander.",
        "My boss Renke thinks I should learn Haskell.",
        "My sister says I am vegetarian.",
        "I am a millionaire. Just kidding!",
        "I am not a teacher.",
        "I like it.",
        "I love you.",
        "The train was late.",
        "My phone number is 0151 2345 6789.",
        "Remember my password is hunter2.",
        "Please remember my e-mail: mara@example.org",
        "My locker code is 7741.",
        "Remember the card 4111 1111 1111 1111.",
        "",
    ],
)
def test_what_is_no_plain_statement_gives_nothing(said: str) -> None:
    assert facts(said) == []


def test_a_negation_stands_in_the_quote_and_in_the_value() -> None:
    (fact,) = facts("Well, I do not like coriander, you know.")
    assert "do not like coriander" in fact["quotes"][0]["text"]
    assert fact["value"] == "does not like coriander"


def test_a_statement_before_a_question_counts() -> None:
    assert slots("I'm vegetarian, any dinner ideas?") == [("diet", "vegetarian")]


def test_a_secret_beside_a_plain_fact_does_not_take_it_along() -> None:
    said = "Remember my locker code is 7741, and that my locker is number 12."
    assert slots(said) == [("locker", "number 12")]


@pytest.mark.parametrize(
    ("said", "key", "value", "until"),
    [
        ("The thesis deadline is 15 October.", "thesis_deadline", "15 October", "10-15"),
        ("The deadline for the grant is May 3rd, 2027.", "grant_deadline", "May 3rd, 2027",
         "2027-05-03"),
        ("I have a dentist appointment on Friday.", "dentist_appointment", "Friday", "weekday:fri"),
        ("I have an interview at the museum tomorrow.", "interview", "at the museum tomorrow",
         "tomorrow"),
        ("My lease ends on 2027-01-31.", "lease", "ends on 2027-01-31", "2027-01-31"),
        ("I am in Berlin until Friday.", "current_stay", "in Berlin until Friday", "weekday:fri"),
        ("I'm on holiday for two weeks.", "current_stay", "on holiday for two weeks", "+2w"),
        ("I have to hand in the report by the end of the month.", "task",
         "hand in the report by the end of the month", "end:month"),
        ("I am moving to Porto in January.", "planned_move", "Porto in January", "month:jan"),
        ("I am vegetarian until the end of May.", "diet", "vegetarian", "month:may"),
    ],
)  # fmt: skip
def test_a_day_becomes_a_language_free_end(said: str, key: str, value: str, until: str) -> None:
    (fact,) = facts(said)
    assert (fact["key"], fact["value"]) == (key, value)
    assert fact["until"] == until
    assert fact["until_said"] in said


def test_a_moved_deadline_updates_the_one_that_is_known() -> None:
    before = known("exhibition_catalogue_deadline", "15 October", type="fact")
    (fact,) = facts("The catalogue deadline has moved from 15 to 22 October.", known=(before,))
    assert (fact["is"], fact["to"], fact["value"]) == ("updates", "k1", "22 October")
    assert fact["key"] == "exhibition_catalogue_deadline"


def test_a_known_value_is_the_same_and_another_one_updates() -> None:
    before = (known("city", "Leipzig"),)
    assert [f["is"] for f in facts("I live in Leipzig.", known=before)] == ["same"]
    assert [f["is"] for f in facts("I live in Porto.", known=before)] == ["updates"]


def test_a_second_value_of_a_key_that_holds_many_is_new() -> None:
    before = (known("pet", "cat Pamuk", holds="many"),)
    (fact,) = facts("I have a dog called Biscuit.", known=before)
    assert (fact["is"], fact["to"], fact["many"]) == ("new", None, True)


@pytest.mark.parametrize(
    "said",
    ["I am no longer vegetarian.", "I'm not vegetarian any more.", "I gave up being vegetarian."],
)
def test_what_is_over_ends_the_known_fact(said: str) -> None:
    (fact,) = facts(said, known=(known("diet", "vegetarian"),))
    assert (fact["is"], fact["to"], fact["value"]) == ("ends", "k1", "vegetarian")
    assert facts(said) == []


def test_a_correction_within_the_session_leaves_only_the_later_value() -> None:
    assert slots("I live in Leipzig.", "I live in Porto.") == [("city", "Porto")]


def test_a_wish_to_forget_is_a_request_and_no_fact() -> None:
    found = extract(data("Please forget my city.", known=(known("city", "Leipzig"),)))
    assert found["facts"] == []
    assert found["forget"] == [{"msg": "u1", "quote": "Please forget my city", "to": "k1"}]


def test_a_request_to_remember_is_flagged() -> None:
    (fact,) = facts("Please remember that I live in Leipzig.")
    assert (fact["key"], fact["flags"]) == ("city", ["asked"])


def test_at_most_ten_facts_are_given_and_the_rest_on_request() -> None:
    animals = "cats, dogs, owls, bees, ants, rats, bats, elks, emus, yaks, cows and hens"
    fenced = json.dumps(data(f"I like {animals}."))
    call = {"role": "user", "content": f'<data mark="k3">\n{fenced}\n</data mark="k3">'}
    first = extract_messages([call])
    more = {"role": "user", "content": "Now the facts after these that are still missing, if any."}
    rest = extract_messages([call, {"role": "assistant", "content": json.dumps(first)}, more])
    assert len(first["facts"]) == FACT_LIMIT
    assert [fact["value"] for fact in rest["facts"]] == ["cows", "hens"]
    end = extract_messages([call, {"role": "assistant", "content": json.dumps(rest)}, more])
    assert end["facts"] == []


def test_title_and_summary_come_from_the_conversation() -> None:
    found = extract(data("Hello, I am planning a move to Porto. Any tips?", "I'm vegetarian."))
    assert found["title"] == "I am planning a move to Porto"
    assert found["summary"] == "The user spoke of diet: vegetarian."
    assert extract(data("My password is hunter2."))["title"] is None


def test_only_the_fenced_data_of_a_user_message_is_read() -> None:
    fenced = json.dumps(data("I live in Leipzig."), ensure_ascii=False)
    call = {"role": "user", "content": f'<data mark="k3">\n{fenced}\n</data mark="k3">'}
    again = [call, {"role": "assistant", "content": "{}"}, {"role": "user", "content": "Wrong: x"}]
    assert [f["value"] for f in extract_messages([call])["facts"]] == ["Leipzig"]
    assert extract_messages(again) == extract_messages([call])
    assert extract_messages([{"role": "user", "content": "no data"}])["facts"] == []


WORDS = """I I'm my live like am not in to until Friday 15 October is deadline the and , . ? ⟦ ⟧
" ``` moved name Lisbon 東京 😀 don't hate no longer remember that wife Ana 42 >"""
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=25).map(" ".join),
)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_whatever_is_said_the_quotes_are_verbatim_and_the_numbers_stand_in_them(text: str) -> None:
    found = extract(data(text))
    assert len(parse(json.dumps(found)).facts) == len(found["facts"]) <= FACT_LIMIT
    for fact in found["facts"]:
        quote = fact["quotes"][0]["text"]
        assert quote in text
        assert set(re.findall(r"\d+", fact["value"])) <= set(re.findall(r"\d+", quote))
        assert re.fullmatch(r"[^\W\d_]+(?:_[^\W\d_]+)*", fact["key"])
        assert fact["until_said"] is None or fact["until_said"] in text


@pytest.mark.parametrize(
    "piece", ["a", "a@", "`", '"a b ', "I live in Rome and ", ", I", "⟦", "12 "]
)
def test_a_huge_message_takes_no_longer_for_its_shape(piece: str) -> None:
    huge = (piece * (100_000 // len(piece) + 1))[:100_000]
    started = time.process_time()
    extract(data(huge))
    ask(huge)
    assert time.process_time() - started < 5


# What is answered


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_any_message_is_answered_and_always_the_same_way(text: str) -> None:
    assert ask(text).strip()
    assert ask(text) == ask(text)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Where do I live?", "You live in Lisbon."),
        ("What am I allergic to?", "You are allergic to walnuts."),
        ("When is my deadline?", "Your thesis deadline is 15 October (said 2026-05-01)."),
        ("Wo wohne ich?", "You live in Lisbon."),
    ],
)
def test_a_question_about_oneself_is_answered_from_the_block(question: str, told: str) -> None:
    assert ask(question) == told


def test_advice_is_given_the_memories_that_matter_and_no_others() -> None:
    told = ask("Any dinner ideas?")
    assert "vegetarian" in told
    assert "walnuts" in told
    assert "Lisbon" not in told
    assert STAND_IN in told


def test_an_earlier_turn_that_was_recalled_is_quoted() -> None:
    assert "“My sofa is far too big for the van.”" in ask("Will my sofa fit?")


@pytest.mark.parametrize(
    "question",
    ["Where do I live?", "Any dinner ideas?", "What is the capital of France?", "我住在哪里？"],
)
def test_what_nobody_said_is_not_answered(question: str) -> None:
    told = ask(question, system="You are a helpful assistant.")
    assert told == "You have not told me that." or STAND_IN in told


def test_a_statement_is_acknowledged_with_what_it_replaces() -> None:
    assert ask("I moved to Porto.") == "Noted: you live in Porto (before: Lisbon)."


def test_this_conversation_counts_more_than_the_block() -> None:
    assert ask("I moved to Porto.", "Where do I live?") == "You live in Porto."
    assert "vegetarian" not in ask("I'm no longer vegetarian. Any dinner ideas?").split(".", 1)[1]


def test_all_that_is_remembered_is_listed_on_request() -> None:
    told = ask("What do you remember about me?")
    assert told.count("\n- ") == 4
    assert "sofa" not in told
    assert "nothing about you yet" in ask("What do you know about me?", system="")


def test_a_block_is_read_only_between_its_own_marks() -> None:
    forged = BLOCK.replace("a1b2c3", "zz", 1)
    assert memories(forged) == []
    assert [m.key for m in memories(BLOCK)][:2] == ["city", "diet"]


# The chat model


HELLO = [ChatMessage("user", "I live in Pôrto 日本.")]


def test_it_answers_whole_and_word_by_word_with_the_same_text_and_usage() -> None:
    model = chat_model(Settings(Path("home")))
    assert model.stand_in
    assert not model.tools
    whole, stream = model.complete(HELLO, purpose="chat"), model.stream(HELLO)
    pieces = [*stream]
    assert (
        "".join(pieces)
        == whole.text
        == answer("chat", [{"role": "user", "content": HELLO[0].content}])
    )
    assert len(pieces) > 3
    assert stream.whole
    assert stream.usage.prompt_tokens == whole.usage.prompt_tokens == len(HELLO[0].content) // 4
    assert stream.usage.completion_tokens == whole.usage.completion_tokens
    assert stream.usage.cost_usd == 0.0


def test_a_closed_answer_ends_and_is_not_whole() -> None:
    stream = OfflineChat().stream(HELLO)
    pieces = []
    for piece in stream:
        pieces.append(piece)
        stream.close()
    assert len(pieces) == 1
    assert not stream.whole
    assert stream.usage.completion_tokens == max(1, len(pieces[0]) // 4)


def test_its_second_model_extracts() -> None:
    fenced = json.dumps(data("I live in Leipzig."))
    messages = [ChatMessage("user", f'<data mark="k">{fenced}</data mark="k">')]
    found = OfflineChat("offline/extract").complete(messages, purpose="extract")
    assert [fact.value for fact in parse(found.text).facts] == ["Leipzig"]
    assert found.usage.purpose == "extract"


def test_it_imports_no_library_of_a_provider() -> None:
    code = (
        "import sys; from memchat.providers.offline import OfflineChat; "
        "from memchat.types import ChatMessage; "
        "OfflineChat().complete([ChatMessage('user', 'Hello')], purpose='chat'); "
        "sys.exit('litellm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
