"""What may stand in the text of a workflow, where it says what is wrong, and its variables."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memchat import InputError
from memchat.workflows import rows
from memchat.workflows.definition import Output, fill, next_time, problems, read
from tests.support.workflows import ASK_OVER_MCP, of_the_document, step, text, tool

NOTES = Output("[1] Tea", [{"id": 7, "title": "Tea", "text": "Green.", "score": 0.5}])
GIVEN = {"TRANSCRIPT": Output("hello", "hello"), "search": NOTES}
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


def test_the_workflows_of_the_document_are_ours_as_they_stand_there() -> None:
    assert of_the_document() == [rows.starters()["ask-memory"], ASK_OVER_MCP]


def test_both_workflows_of_the_document_are_read() -> None:
    local, over_mcp = map(read, (rows.starters()["ask-memory"], ASK_OVER_MCP))
    assert [one.slug for one in (local, over_mcp)] == ["ask-memory", "ask-memory-mcp"]
    assert [one.id for one in local.steps] == ["search", "answer"]
    assert over_mcp.steps[1].config.model_dump()["cost_tier"] == "balanced"


def test_the_workflows_that_come_with_memchat_can_be_run() -> None:
    assert {slug: read(one).slug for slug, one in rows.starters().items()} == {
        slug: slug
        for slug in (
            *("ask-memory", "decisions-log", "meeting-to-actions", "open-actions"),
            "weekly-review",
        )
    }


def test_what_is_left_out_has_a_default() -> None:
    (search,) = read(text(step("search", "Memory Query", query="tea"))).steps
    assert search.config.model_dump() == {
        "query": "tea", "top_k": 5, "date_range_days": None, "include_metadata": False,
    }  # fmt: skip


BROKEN = """{
  "slug": "a",
  "name": "A",
  "steps": [
    {
      "id": "search",
      "type": "Memory Query",
      "config": {"query": "{{TRANSCRIPT}}", "topK": 5}
    },
    {
      "id": "answer",
      "type": "LLM Generation",
      "config": {
        "prompt": "{{search}}"
      }
    }
  ]
}"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"slug": "a",', '"slug": "a"', "line 3: this is no JSON"),
        ('"slug": "a"', '"slug": "A b"', "line 2: slug: has to be of letters"),
        ('"topK": 5', '"topK": "5"', "line 8: steps.0.config.topK: has to be a whole number"),
        ('"topK": 5', '"topK": ' + "5" * 5_000, "or has a number with too many digits"),
        ('"topK": 5', '"topK": 0', "line 8: steps.0.config.topK: has to be 1 or more"),
        ('"topK"', '"topk"', "line 8: steps.0.config.topk: is not known"),
        ('"query"', '"Query"', "line 8: steps.0.config.query: is missing"),
        ("LLM Generation", "LLM", "line 12: steps.1.type: has to be Memory Query, LLM"),
        ('"id": "answer"', '"id": "search"', "line 11: steps.1.id: search is the name of"),
        ("{{search}}", "{{serch}}", "line 14: steps.1.config.prompt: there is no variable serch"),
        ("{{search}}", "{{answer}}", "(in step answer)"),
        ("{{search}}", "{{search.0.titel}}", "a note has id, title, date, text"),
        ("{{search}}", "{{search.title}}", "search.title cannot be"),
        ("{{search}}", "{{ sear ch }}", "{{ sear ch }} is no variable"),
        ("{{search}}", "{{TRANSCRIPT.title}}", "TRANSCRIPT is a text, and has no title"),
        (
            '"name": "A"',
            '"name": "A", "when": "every moonday 8:00"',
            "line 3: when: has to be note",
        ),
        ('"name": "A"', '"name": "A", "when": "every day 24:00"', "line 3: when: has to be note"),
        (
            '"name": "A"',
            '"name": "A", "maxCostUsd": -1',
            "line 3: maxCostUsd: has to be 0.0 or more",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_field(old: str, new: str, says: str) -> None:
    assert problems(BROKEN) == []
    broken = BROKEN.replace(old, new)
    assert broken != BROKEN
    assert says in "\n".join(map(str, problems(broken)))
    with pytest.raises(InputError, match="line "):
        read(broken)


@pytest.mark.parametrize("name", ["server", "tool"])
def test_a_server_and_a_tool_are_names_and_no_variables(name: str) -> None:
    one = tool("send")
    one["config"][name] = "{{TRANSCRIPT}}"
    assert "has to be a name, and no variable" in str(problems(text(one))[0])


@given(st.one_of(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(
    json.dumps
)))  # fmt: skip
@example("[" * 100_000)
@example('{"steps": [{"config": {"arguments": ' + '{"a": ' * 5000)
def test_any_text_at_all_is_read_or_has_a_problem(words: str) -> None:
    assert problems(words)


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{{TRANSCRIPT}}!", "hello!"),
        ("{{ search }}", "[1] Tea"),
        ("{{search.0.title}}", "Tea"),
        ("{{search.0.id}}", 7),
        ("note {{search.0.id}}", "note 7"),
        ("{{search.0.score}}", 0.5),
        ("{{search.0}}", '{"id": 7, "title": "Tea", "text": "Green.", "score": 0.5}'),
        ("{{TRANSCRIPT_JSON}}", '"hello"'),
        ("{{search.0.title_JSON}}", '"Tea"'),
        ("{{search_JSON}}", json.dumps(NOTES.value)),
        ({"a": ["{{search.0.id}}", 5, True, None, {"b": "{{TRANSCRIPT}}"}]},
         {"a": [7, 5, True, None, {"b": "hello"}]}),
    ],
)  # fmt: skip
def test_variables_have_fields_indexes_and_a_form_in_json(template, filled) -> None:
    found = fill(template, GIVEN, "s")
    assert found == filled and type(found) is type(filled)


@pytest.mark.parametrize("name", ["{{search.3.title}}", "{{search.0.colour}}", "{{nobody}}"])
def test_what_a_variable_does_not_have_names_the_step(name: str) -> None:
    with pytest.raises(InputError, match="step answer: "):
        fill(f"about {name}", GIVEN, "answer")


def test_the_text_of_a_model_has_fields_where_it_is_json() -> None:
    values = {"list": Output('[{"due": "2026-05-02"}]', '[{"due": "2026-05-02"}]')}
    assert fill("{{list.0.due}}", values, "s") == "2026-05-02"


@given(WORDS, WORDS, WORDS)
@example("{{search}}", "{{TRANSCRIPT}}", "{{")
@example("{{", "TRANSCRIPT}}", "}}")
def test_what_a_variable_holds_is_never_filled_in_again(
    before: str, value: str, title: str
) -> None:
    values = {"TRANSCRIPT": Output(value, value), "search": Output(title, [{"title": title}])}
    plain = before.replace("{", "(")
    template = f"{plain}{{{{TRANSCRIPT}}}}|{{{{search.0.title}}}}|{{{{search_JSON}}}}"
    expected = f"{plain}{value}|{title}|{json.dumps([{'title': title}], ensure_ascii=False)}"
    assert fill(template, values, "s") == expected


@settings(max_examples=40)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS.filter(
        lambda said: "{{" not in said),
    lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner)))  # fmt: skip
def test_arguments_without_variables_stay_as_they_are(arguments) -> None:
    filled = fill(arguments, GIVEN, "s")
    assert filled == arguments and json.dumps(filled) == json.dumps(arguments)


def test_a_text_that_would_grow_beyond_all_measure_is_refused() -> None:
    values = {"TRANSCRIPT": Output("a" * 1_000_000, "")}
    with pytest.raises(InputError, match="step s: a text with more than"):
        fill("{{TRANSCRIPT}}" * 100, values, "s")


@pytest.mark.parametrize(
    ("when", "after", "comes"),
    [
        ("every monday 8:00", "2026-05-01T12:00", "2026-05-04T06:00"),
        ("every monday 8:00", "2026-05-04T05:59", "2026-05-04T06:00"),
        ("every monday 8:00", "2026-05-04T06:00", "2026-05-11T06:00"),
        ("Every Friday 18:30", "2026-05-01T12:00", "2026-05-01T16:30"),
        ("every day 7:30", "2026-10-24T12:00", "2026-10-25T06:30"),  # the day has 25 hours
        ("every day 2:30", "2026-03-28T12:00", "2026-03-29T01:30"),  # that time does not exist
    ],
)
def test_a_schedule_is_in_the_time_of_the_persons_zone(when: str, after: str, comes: str) -> None:
    at = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = next_time(when, at, ZoneInfo("Europe/Berlin"))
    assert found is not None and f"{found.astimezone(UTC):%Y-%m-%dT%H:%M}" == comes
