"""Summaries of notes: all that is there is read, in parts where it does not fit one call."""

from __future__ import annotations

import re
import threading
from datetime import timedelta

import pytest

from memchat import InputError, MemChat, NewNote, ProviderError
from memchat.testing import ScriptedModel
from memchat.tokens import estimate_tokens
from tests.support.note_answers import cites_all, memo, notes_sent, numbers_sent, sent
from tests.support.store import NOON, Opener

SMALL = 2_000
"""A window for which thirty memos are several parts."""
SUBJECT = "Summarize all my thoughts on Project Apollo"


def memos(mc: MemChat, count: int = 30) -> None:
    """So many memos, one a day; every second one names Apollo."""
    words = "has a plank number {}, and it is to be varnished before the rain comes."
    mc.user("ana").notes.add_many(
        NewNote(
            f"{'Apollo' if n % 2 else 'The boat'} {words.format(n)}",
            f"Memo {n}",
            created_at=NOON - timedelta(days=count - n),
        )
        for n in range(count)
    )


def summary(mc: MemChat, question: str = SUBJECT, **more):
    answer = mc.user("ana").notes.ask(question, mode="summary", **more)
    answer.read()
    return answer


def collects(messages) -> bool:
    """Whether a call collects from a part."""
    return messages[0].content.startswith("Collect")


def obedient(messages) -> str:
    """A line for each note where a part is collected, else an answer that cites all lines."""
    if collects(messages):
        return "\n".join(f"- Of note {n} [{n}]" for n in numbers_sent(messages))
    return " ".join(re.findall(r"Of note \d+ \[\d+\]", notes_sent(messages))) or cites_all(messages)


def several(open_store: Opener, *replies, window: int = SMALL) -> tuple[MemChat, ScriptedModel]:
    """A store of thirty memos and a model with a small window."""
    model = ScriptedModel(replies or [obedient] * 50, window=window)
    mc = open_store(chat_model=model)
    memos(mc)
    return mc, model


def test_a_summary_reads_every_note_on_its_subject_and_not_the_best_few(open_store) -> None:
    model = ScriptedModel([cites_all])
    mc = open_store(chat_model=model)
    memos(mc, 50)
    named = {source.title for source in summary(mc).cited}
    assert {f"Memo {n}" for n in range(1, 50, 2)} <= named


def test_a_summary_reads_notes_that_share_no_word_with_its_subject_as_far_as_one_call_reaches(
    open_store,
) -> None:
    model = ScriptedModel([cites_all])
    mc = open_store(chat_model=model)
    memo(mc, "Apollo begins.", 3)
    memo(mc, "Lena wants a swipe.", 2, "Unnamed")
    assert "Unnamed" in {source.title for source in summary(mc).cited}


def test_the_notes_of_a_summary_are_in_the_order_of_their_days(open_store) -> None:
    model = ScriptedModel([cites_all])
    mc = open_store(chat_model=model)
    memo(mc, "Apollo is late.", 1, "Second")
    memo(mc, "Apollo begins.", 9, "First")
    assert [source.title for source in summary(mc).sources] == ["First", "Second"]


def test_what_does_not_fit_one_call_is_collected_in_parts_and_joined(open_store) -> None:
    mc, model = several(open_store)
    answer = summary(mc)
    parts = [one for one in model.requests if collects(one.messages)]
    assert len(parts) > 1 and {one.purpose for one in parts} == {"notes"}
    for request in model.requests:
        assert sum(estimate_tokens(one.content) for one in request.messages) < SMALL
    read = {number for one in parts for number in numbers_sent(one.messages)}
    assert read == {source.number for source in answer.sources} == set(range(1, 31))
    assert {source.number for source in answer.cited} == read
    last = sent(model)
    assert "[2] Memo 1, 2026-04-02 (Thursday)" in last and "  - Of note 2 [2]" in last


def test_each_part_shows_the_notes_that_fit_best(open_store) -> None:
    mc, model = several(open_store)
    memo(mc, "Project Apollo is our boat.", 40, "What it is")
    summary(mc)
    parts = [one for one in model.requests if collects(one.messages)]
    assert all("Project Apollo is our boat." in notes_sent(one.messages) for one in parts)


def test_the_calls_of_a_summary_are_known_before_and_reported_while_it_is_made(open_store) -> None:
    mc, model = several(open_store)
    model.name = "offline/local"  # a model of this machine: its calls have no price
    seen: list[tuple[int, int]] = []
    report = seen.append
    answer = mc.user("ana").notes.ask(
        SUBJECT, mode="summary", on_progress=lambda p: report((p.done, p.total))
    )
    assert model.requests == []
    assert answer.plan.effort == f"{answer.plan.calls} calls, free"
    answer.read()
    calls = answer.plan.calls
    assert len(model.requests) == calls
    assert seen == [(n, calls) for n in range(calls + 1)]
    (spent,) = [one for one in mc.user("ana").usage() if one.purpose == "notes"]
    assert spent.calls == calls
    assert spent.prompt_tokens + spent.completion_tokens <= answer.plan.tokens


def test_what_a_part_cites_that_it_did_not_hold_is_left_out(open_store) -> None:
    mc, model = several(open_store)

    def invents(messages) -> str:
        if collects(messages):
            return "- The moon [777]\nNothing cited\n- Planks [1][778]\nnone"
        return cites_all(messages)

    model.replies.clear()
    model.replies.extend([invents] * 20)
    summary(mc)
    assert "moon" not in sent(model) and "Nothing cited" not in sent(model)
    assert "778" not in sent(model)


def test_a_part_that_fails_is_named_and_the_others_are_kept(open_store) -> None:
    lock, calls = threading.Lock(), []

    def second_fails(messages) -> str:
        with lock:
            calls.append(messages)
            failing = len(calls) == 2
        if failing:
            raise ProviderError("the provider refused this text")
        return obedient(messages)

    mc, _ = several(open_store, *[second_fails] * 20)
    answer = summary(mc)
    missed = re.findall(
        r"Not read: part \d of \d \(\d+ notes from 2026-\d\d-\d\d to 2026-\d\d-\d\d\): "
        r"the provider refused this text",
        answer.text,
    )
    assert len(missed) == 1
    assert 0 < len(answer.cited) < 30


def test_a_part_whose_error_may_pass_is_tried_once_more(open_store) -> None:
    failed = threading.Event()

    def first_fails(messages) -> str:
        if not failed.is_set():
            failed.set()
            raise ProviderError("too many requests", status=429, retryable=True)
        return obedient(messages)

    mc, _ = several(open_store, *[first_fails] * 20)
    answer = summary(mc)
    assert "Not read" not in answer.text
    assert len(answer.cited) == 30


def test_where_no_part_can_be_read_the_error_is_raised(open_store) -> None:
    mc, _ = several(open_store, *[ProviderError("the key was refused", status=401)] * 20)
    with pytest.raises(ProviderError, match="the key was refused"):
        summary(mc)


def test_lines_that_do_not_fit_one_call_are_collected_once_more(open_store) -> None:
    def wordy(messages) -> str:
        if not collects(messages):
            return cites_all(messages)
        lines = re.findall(r"  - (.*)", notes_sent(messages))
        if lines:
            return "Short [1]"
        return "\n".join(f"{'planks and varnish ' * 12}[{n}]" for n in numbers_sent(messages))

    mc, model = several(open_store, *[wordy] * 50)
    summary(mc)
    for request in model.requests:
        assert sum(estimate_tokens(one.content) for one in request.messages) < SMALL
    assert "Short [1]" in sent(model)


def test_a_long_document_is_divided_so_that_each_part_fits(open_store) -> None:
    model = ScriptedModel([obedient] * 50, window=SMALL)
    mc = open_store(chat_model=model)
    words = " ".join(f"Apollo needs plank {n} of oak." for n in range(400))
    memo(mc, words, title="Plans", profile="document")
    answer = summary(mc)
    together = "".join(notes_sent(one.messages) for one in model.requests)
    assert all(f"plank {n} of" in together for n in range(400))
    assert [source.title for source in answer.cited] == ["Plans"]
    assert answer.sources[0].text == words
    for request in model.requests:
        assert sum(estimate_tokens(one.content) for one in request.messages) < SMALL


def test_a_summary_of_what_no_note_speaks_of_asks_no_model(open_store) -> None:
    model = ScriptedModel()
    mc = open_store(chat_model=model)
    memo(mc, "The fern is yellow.")
    assert summary(mc, "Summarize the ferry").text == "No note speaks of that."
    assert model.requests == []


def test_a_summary_of_some_days_reads_these_first(open_store) -> None:
    model = ScriptedModel([cites_all])
    mc = open_store(chat_model=model)
    memos(mc, 30)
    summary(mc, "Summarize what I said about Apollo last week")
    of_days, others = sent(model).split("From other days:")
    assert of_days.startswith("From 2026-04-20 to 2026-04-26:")
    assert of_days.count("Apollo has") == 3 or of_days.count("Apollo has") == 4
    assert "Apollo has" in others and "The boat has" not in others


def test_a_subject_that_leaves_no_room_is_refused(open_store) -> None:
    mc, _ = several(open_store)
    with pytest.raises(InputError, match="ask in fewer words"):
        summary(mc, "Apollo " * 1_600)
