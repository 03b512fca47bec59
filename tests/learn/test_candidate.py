from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat.errors import ExtractionError
from memchat.learn.candidate import MAX_FACTS, Candidate, json_schema, parse

FACT: dict[str, Any] = {
    "quotes": [{"msg": "u1", "text": "I live in Bergen"}],
    "ref": None,
    "type": "profile",
    "key": "city",
    "value": "Bergen",
    "sentence": "You live in Bergen.",
    "many": False,
    "until_said": None,
    "until": None,
    "from_said": None,
    "from": None,
    "to": None,
    "is": "new",
    "flags": [],
    "cues": [],
}
WHOLE = {"facts": [FACT], "forget": [], "title": "Moving", "summary": "Talk about a move."}


def test_a_whole_answer_is_read() -> None:
    answer = parse(json.dumps(WHOLE))
    assert answer.facts[0].value == "Bergen"
    assert (answer.title, answer.broken, answer.more) == ("Moving", [], False)


@pytest.mark.parametrize(
    "wrap",
    [
        "Here is what I found:\n```json\n{}\n```\nAnything else?",
        "<think>maybe {{x}}</think>{}",
        "See [1] and {{this}}: {}",
        "{}\n{}",
    ],
)
def test_the_object_is_cut_out_of_prose_and_fences(wrap: str) -> None:
    text = wrap.replace("{{", "<").replace("}}", ">").replace("{}", json.dumps(WHOLE))
    assert len(parse(text).facts) == 1


def test_a_trailing_comma_and_a_bare_list_are_forgiven() -> None:
    assert parse('{"facts": [' + json.dumps(FACT) + ",], }").facts
    assert parse(json.dumps([FACT, FACT])).facts[1].key == "city"


def test_an_empty_list_is_a_normal_answer() -> None:
    assert parse('{"facts": []}').facts == ()


@pytest.mark.parametrize("nothing", [None, {}, "", []])
def test_no_facts_may_be_written_in_other_ways(nothing: Any) -> None:
    assert parse(json.dumps({"facts": nothing, "title": "Moving"})).facts == ()


def test_a_fact_alone_needs_no_list() -> None:
    assert parse(json.dumps({"facts": FACT})).facts[0].value == "Bergen"


def test_what_is_wrong_is_said_in_plain_words() -> None:
    with pytest.raises(ExtractionError) as error:
        parse('{"facts": [{"key": "x"}]}')
    assert str(error.value) == (
        "no item of 'facts' could be used: facts[0] quotes: is missing or has too few parts"
    )


def test_fields_that_are_missing_or_unknown_do_no_harm() -> None:
    slim = {"msg": "u1", "quotes": ["I live in Bergen"], "key": "city", "value": "Bergen", "x": 1}
    fact = parse(json.dumps({"facts": [slim]})).facts[0]
    assert fact.quotes[0].msg == "u1"
    assert (fact.type, fact.relation, fact.to) == ("other", "new", None)


def test_unknown_labels_fall_to_the_harmless_one() -> None:
    odd = {**FACT, "type": "My mood", "is": "replaces", "flags": ["asked", "wow"], "to": "null"}
    fact = parse(json.dumps({"facts": [odd]})).facts[0]
    assert (fact.type, fact.relation, fact.flags, fact.to) == ("other", "new", ("asked",), None)


def test_a_broken_item_drops_itself_and_is_named() -> None:
    answer = parse(json.dumps({"facts": [FACT, {"key": "x"}, "prose", {**FACT, "value": ""}]}))
    assert len(answer.facts) == 1
    assert [b.split()[0] for b in answer.broken] == ["facts[1]", "facts[2]", "facts[3]"]
    assert answer.broken[1] == "facts[2] it: has to be an object"
    assert not re.search("Field required|Input should|instance", " ".join(answer.broken))


def read_one(**odd: Any) -> Candidate:
    (found,) = parse(json.dumps({"facts": [{**FACT, **odd}]})).facts
    return found


def test_odd_answers_lose_no_fact() -> None:
    numbers = read_one(until=2027, **{"from": 2026, "from_said": 1, "until_said": 2, "to": 3})
    assert (numbers.until, numbers.starts, numbers.to) == ("2027", "2026", "3")
    assert (numbers.from_said, numbers.until_said) == ("1", "2")
    text = FACT["quotes"][0]["text"]
    assert read_one(quotes=[{"msg": None, "text": text}]).quotes[0].msg == ""
    assert read_one(quotes=[{"msg": 1, "text": text}]).quotes[0].msg == "1"
    assert read_one(ref={"msg": None, "span": "x"}).ref is None
    assert read_one(many="perhaps").many is False
    assert read_one(value=["tea", "milk", 2]).value == "tea, milk, 2"
    dated = read_one(until={"day": 1}, **{"from": {"day": 1}})
    assert (dated.until, dated.starts) == (None, None)


@pytest.mark.parametrize(
    "flags", ["sensitive, not_meant", {"sensitive": True, "not_meant": 1, "asked": False}]
)
def test_flags_are_read_in_whatever_shape_they_come(flags: Any) -> None:
    assert read_one(flags=flags).flags == ("sensitive", "not_meant")


def test_an_end_needs_no_value() -> None:
    assert parse(json.dumps({"facts": [{**FACT, "value": None, "is": "ends", "to": "k1"}]})).facts


def test_twenty_items_keep_fifteen_and_ask_for_more() -> None:
    answer = parse(json.dumps({"facts": [FACT] * 20}))
    assert len(answer.facts) == MAX_FACTS == 15
    assert answer.more
    assert not parse(json.dumps({"facts": [FACT] * 15})).more


def test_a_cut_off_answer_keeps_its_whole_items_and_asks_for_more() -> None:
    text = json.dumps({"facts": [FACT, FACT, FACT]})
    answer = parse(text[: text.rindex("quotes") + 30])
    assert len(answer.facts) == 2
    assert answer.more
    assert answer.broken == ["the answer was cut off"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I found nothing worth keeping.",
        "{",
        '{"a": 1}',
        "[1, 2]",
        "null",
        "{" * 5000,
        "[" * 9000,
        '{"facts": [{"quotes": 1}]}',
        '{"facts": [{"key": "x"}]}',
        "9" * 9000,
        '{"facts": {"a": 1}}',
        '{"facts": "I live in Bergen"}',
        '{"facts": true, "title": "Moving"}',
        '{"facts": ["I live in Bergen"]}',
    ],
)
def test_nothing_usable_is_one_line_that_says_what_is_wrong(text: str) -> None:
    with pytest.raises(ExtractionError) as error:
        parse(text)
    assert "\n" not in str(error.value)


@given(st.integers(0, 600))
def test_no_cut_breaks_the_reader(at: int) -> None:
    with contextlib.suppress(ExtractionError):
        parse(json.dumps({"facts": [FACT, FACT]})[:at])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*FACT, "facts", "forget", "title"]), inner, max_size=6
            )
        ),
    )
)
def test_no_json_breaks_the_reader(data: Any) -> None:
    with contextlib.suppress(ExtractionError):
        parse(json.dumps({"facts": data, "forget": data, "title": data}))


def test_the_schema_is_strict_and_short() -> None:
    assert len(json.dumps(json_schema(), separators=(",", ":"))) <= 1600

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            assert "$ref" not in node
            if "properties" in node:
                assert node["required"] == list(node["properties"])
                assert node["additionalProperties"] is False
            for part in node.values():
                walk(part)

    walk(json_schema())


def test_the_schema_names_the_fields_the_reader_reads() -> None:
    assert set(json_schema()["properties"]["facts"]["items"]["properties"]) == set(FACT)
