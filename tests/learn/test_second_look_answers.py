"""The second look by itself: reading its answers, and what is sent of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from memchat.errors import ExtractionError
from memchat.learn import model_calls
from memchat.learn.candidate import Turn
from memchat.learn.model_calls import LookAnswer, LookRequest, parse_answers
from tests.support.store import NOON

REPLY = '{"verdicts": [{"id": "c2", "answer": "not", "why": "joke"}, {"id": "c1"}]}'


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (REPLY, [LookAnswer("unclear"), LookAnswer("not", model_calls.REFUSAL_REASONS["joke"])]),
        (
            f"```json\n{REPLY}\n```",
            [LookAnswer("unclear"), LookAnswer("not", model_calls.REFUSAL_REASONS["joke"])],
        ),
        (
            f"Sure. {REPLY} Done.",
            [LookAnswer("unclear"), LookAnswer("not", model_calls.REFUSAL_REASONS["joke"])],
        ),
        ('{"verdicts": []}', [LookAnswer("unclear")] * 2),
        ('{"verdicts": ["holds", null, 3]}', [LookAnswer("unclear")] * 2),
        (
            '{"verdicts": [{"id": "c1", "answer": " Holds ", "now": "  a\\n b "}]}',
            [LookAnswer("holds", now="a b"), LookAnswer("unclear")],
        ),
        (
            '{"verdicts": [{"id": "c1", "answer": "not", "why": null}]}',
            [LookAnswer("not", model_calls.REFUSAL_REASONS["never_said"]), LookAnswer("unclear")],
        ),
        ('{"verdicts": [{"id": "c9", "answer": "holds"}]}', [LookAnswer("unclear")] * 2),
    ],
)
def test_an_answer_is_read_by_its_ids(reply: str, expected: list[LookAnswer]) -> None:
    assert parse_answers(reply, ["c1", "c2"]) == expected


@pytest.mark.parametrize("reply", ["", "They hold.", "{}", "[]", '{"verdicts": "holds"}', "{"])
def test_an_answer_without_a_list_of_verdicts_cannot_be_read(reply: str) -> None:
    with pytest.raises(ExtractionError):
        parse_answers(reply, ["c1"])


def test_the_schema_lists_every_reason() -> None:
    one = model_calls.json_schema()["properties"]["verdicts"]["items"]
    assert one["properties"]["why"]["enum"] == [*model_calls.REFUSAL_REASONS, None]
    assert set(one["required"]) == set(one["properties"])


U1 = Turn("u1", "user", "I keep an owl. I ski.", NOON, 1)
A2 = Turn("a2", "assistant", "Fine.", NOON, 2)


def asked(
    doubts: Sequence[LookRequest], said: Sequence[Turn], masks: bool = False
) -> dict[str, Any]:
    """What the model is sent."""
    return model_calls._data(doubts, said, masks)


def test_a_proposal_is_sent_with_its_words_and_no_empty_fields() -> None:
    owl = LookRequest((("u1", 0, 14),), "pet", "an owl", "new")
    end = LookRequest(
        (("u1", 15, 21),), "hobby", "", "ends", known="hobby: ski", until="2026-05-01"
    )
    data = asked([owl, end], [U1, A2])
    assert data["candidates"] == [
        {"id": "c1", "from": "u1", "words": "I keep an owl.", "fact": "pet: an owl", "is": "new"},
        {
            "id": "c2",
            "from": "u1",
            "words": "I ski.",
            "fact": "hobby",
            "is": "ends",
            "known": "hobby: ski",
            "until": "2026-05-01",
        },
    ]
    assert [(one["id"], one["who"]) for one in data["messages"]] == [
        ("u1", "user"),
        ("a2", "assistant"),
    ]


def test_words_of_two_messages_stand_in_their_order() -> None:
    both = LookRequest((("u1", 15, 21), ("u1", 0, 14)), "x", "y", "new", starts="2026-06-01")
    (sent_one,) = asked([both], [U1])["candidates"]
    assert sent_one["words"] == "I ski. … I keep an owl." and sent_one["from"] == "u1"
    assert sent_one["starts"] == "2026-06-01"


def test_of_a_very_long_message_the_part_around_the_words_is_sent() -> None:
    text = "a " * 2_000 + "I keep an owl. " + "b " * 2_000
    at = text.index("I keep")
    doubt = LookRequest((("u1", at, at + 14),), "pet", "an owl", "new")
    (shown,) = asked([doubt], [Turn("u1", "user", text, NOON, 1)])["messages"]
    assert "I keep an owl." in shown["text"] and len(shown["text"]) < 1_100
    assert shown["text"].startswith("…") and shown["text"].endswith("…")


@pytest.mark.parametrize("cut", [0, 5])
def test_secrets_are_masked_wherever_they_would_be_sent(cut: int) -> None:
    text = "ana@example.org wrote. I keep an owl. Tell bo@example.com so."
    at, mail = text.index("I keep"), text.index("bo@")
    doubts = [
        LookRequest((("u1", at, at + 14),), "pet", "an owl", "new"),
        LookRequest(
            (("u1", mail + cut, mail + 10),), "mail", "bo@example.com", "new", known="bo@x.org"
        ),
        LookRequest((), "title", "Mail of ana@example.org", ""),
    ]
    sent = asked(doubts, [Turn("u1", "user", text, NOON, 1)], masks=True)
    (said,) = sent["messages"]
    assert said["text"] == "[e-mail] wrote. I keep an owl. Tell [e-mail] so."
    owl, other = sent["candidates"]
    assert (owl["words"], other["words"]) == ("I keep an owl.", "[e-mail]")
    assert (other["fact"], other["known"]) == ("mail: [e-mail]", "[e-mail]")
    assert sent["title"] == "Mail of [e-mail]"


def test_a_paste_that_is_cut_off_stays_marked_and_the_words_behind_it_do_not() -> None:
    fence = "```\n" + "x = 1\n" * 430 + "I moved to Leeds\n" + "y = 2\n" * 4 + "```\n"
    text = fence + "I work at Globex these days."
    own, pasted = text.index("I work"), text.index("I moved")
    doubts = [
        LookRequest((("u1", own, len(text)),), "employer", "Globex", "new"),
        LookRequest((("u1", pasted, pasted + 16),), "home_city", "Leeds", "new"),
    ]
    data = asked(doubts, [Turn("u1", "user", text, NOON, 1)])
    (shown,) = data["messages"]
    assert len(fence) > model_calls.WHOLE_CONVERSATION_LIMIT and shown["text"].startswith("…⟦")
    assert shown["text"].endswith("```⟧\nI work at Globex these days.")
    assert shown["text"].count("⟦") == shown["text"].count("⟧") == 1
    words = [item["words"] for item in data["candidates"]]
    assert words == ["I work at Globex these days.", "⟦I moved to Leeds⟧"]


def test_of_a_very_long_message_each_quoted_place_is_shown() -> None:
    from memchat.learn.model_calls import _near

    text = "I live in Bath. " + "x " * 4_000 + "I keep bees."
    at = text.index("I keep bees.")
    shown = _near(text, [(0, 15), (at, at + 12)])
    assert "I live in Bath." in shown and "I keep bees." in shown and len(shown) < 2_500
