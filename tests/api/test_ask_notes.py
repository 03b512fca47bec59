"""Asking notes: what is read, what is said, and what is kept of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memchat import InputError, MemChat, ProviderError
from memchat.testing import Broken, ScriptedModel
from tests.support.chat_providers import KEY
from tests.support.note_answers import cites_all, memo, sent
from tests.support.store import Opener
from tests.support.wire import OpenAIServer, Say
from tests.support.wire.case import chat_of


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def store(open_store: Opener, model: ScriptedModel) -> MemChat:
    return open_store(chat_model=model)


def ask(mc: MemChat, question: str, **more):
    answer = mc.user("ana").notes.ask(question, **more)
    answer.read()
    return answer


def test_an_answer_cites_the_memo_with_its_title_and_date(store, model) -> None:
    budget = memo(store, "The marketing budget is 26,000.", 8, "Budget")
    memo(store, "The fern is yellow.", 8)
    model.replies.append("On 23 April you said 26,000 [1].")
    answer = ask(store, "What did I say about the marketing budget?")
    assert answer.text == "On 23 April you said 26,000 [1]."
    (source,) = answer.cited
    assert (source.note_id, source.title, source.created_at) == (
        budget.id, "Budget", budget.created_at,
    )  # fmt: skip
    assert "[1] Budget, 2026-04-23 (Thursday)\n  The marketing budget is 26,000." in sent(model)
    assert "yellow" not in sent(model)


def test_the_day_of_a_note_is_the_day_in_the_persons_own_zone(store, model) -> None:
    memo(store, "Call John back.", created_at=datetime(2026, 4, 22, 22, 30, tzinfo=UTC))
    model.replies.append("On 23 April [1].")
    ask(store, "When did I mention calling John back?")
    assert "2026-04-23 (Thursday)" in sent(model)
    assert "2026-04-22" not in sent(model)


def test_notes_of_the_days_in_the_question_come_first_and_some_of_other_days_after_them(
    store, model
) -> None:
    memo(store, "The marketing budget may be 30,000.", 60, "First round")
    memo(store, "The marketing budget is 26,000.", 8, "Decided")
    model.replies.append("26,000 [1].")
    answer = ask(store, "What did I say about the marketing budget last week?")
    assert [source.title for source in answer.sources] == ["Decided", "First round"]
    of_days, others = sent(model).split("From other days:")
    assert of_days.startswith("From 2026-04-20 to 2026-04-26:")
    assert "26,000" in of_days and "30,000" in others


def test_where_no_note_is_of_these_days_the_answer_says_so_and_goes_by_others(store, model) -> None:
    memo(store, "The marketing budget may be 30,000.", 60, "First round")
    model.replies.append("In March you said 30,000 [1].")
    answer = ask(store, "What did I say about the marketing budget last week?")
    assert answer.text.startswith(
        "No note from 2026-04-20 to 2026-04-26 speaks of that. From other days:\n\n"
    )
    assert [source.title for source in answer.cited] == ["First round"]


def test_notes_of_these_days_that_do_not_speak_of_it_are_not_denied(open_store, clock) -> None:
    settings = open_store().settings.with_(embed_model="none")
    with MemChat(settings=settings, clock=clock) as offline:
        memo(offline, "The fern is yellow.", 8)
        question = "What did I say about the marketing budget last week?"
        nothing = "No note from 2026-04-20 to 2026-04-26 speaks of that."
        assert ask(offline, question).text == nothing
        memo(offline, "The marketing budget may be 30,000.", 60)
        assert ask(offline, question).text.startswith(f"{nothing} From other days:\n\n")
        assert "yellow" in ask(offline, "What did I say last week?").text


def test_a_question_for_a_time_alone_reads_all_of_that_time_and_nothing_else(store, model) -> None:
    for number in range(12):
        memo(store, f"Thought number {number}.", 1, f"Memo {number}")
    memo(store, "What I say every day.", 5, "Other")
    model.replies.append(cites_all)
    answer = ask(store, "What did I say yesterday?")
    assert sorted(source.title for source in answer.cited) == sorted(
        f"Memo {number}" for number in range(12)
    )


def test_days_that_are_given_count_and_not_those_of_the_question(store, model) -> None:
    memo(store, "The marketing budget may be 30,000.", 60, "First round")
    memo(store, "The marketing budget is 26,000.", 8, "Decided")
    model.replies.append(cites_all)
    until = datetime(2026, 4, 1, tzinfo=UTC)
    answer = ask(store, "What about the marketing budget last week?", until=until)
    assert [source.title for source in answer.cited] == ["First round"]


def test_where_no_note_speaks_of_it_no_model_is_asked(store, model) -> None:
    memo(store, "The fern is yellow.")
    answer = ask(store, "When does the ferry leave?")
    assert (answer.text, answer.cited, model.requests) == ("No note speaks of that.", (), [])
    assert answer.plan.calls == 0
    empty = ask(store, "What did I say yesterday?")
    assert (empty.text, empty.cited) == ("No note is from 2026-04-30.", ())


def test_an_answer_that_the_notes_do_not_hold_cites_nothing(store, model) -> None:
    memo(store, "Started piano again after twenty years.")
    model.replies.append("[none] The notes do not say what the piano cost [1].")
    answer = ask(store, "How much did the piano cost?")
    assert answer.text == "The notes do not say what the piano cost."
    assert answer.cited == ()


def test_chunks_that_are_neighbours_are_one_passage_and_their_overlap_is_read_once(
    store, model
) -> None:
    lines = [
        f"The quay was quiet at {hour} and gull number {hour} sat there." for hour in range(400)
    ]
    note = memo(store, " ".join(lines), 3, "The long day", profile="document")
    model.replies.append(cites_all)
    (source,) = ask(store, "Where did the gull sit, on the quiet quay?", limit=3).sources
    text = note.text
    assert len(source.chunk_ids) > 1
    for passage in source.passages:
        assert passage.text == text[passage.offset : passage.offset + passage.size]
    ends = [passage.offset + passage.size for passage in source.passages]
    starts = [passage.offset for passage in source.passages]
    assert all(start > end for end, start in zip(ends, starts[1:], strict=False))


def test_one_long_document_leaves_room_for_other_notes(store, model) -> None:
    lines = [f"The budget of month {month} is a budget of {month} crowns." for month in range(600)]
    memo(store, " ".join(lines), 9, "Ledger", profile="document")
    memo(store, "My own budget for the holiday is small.", 2, "Holiday")
    model.replies.append(cites_all)
    answer = ask(store, "What is the budget?", limit=4)
    assert {source.title for source in answer.cited} == {"Ledger", "Holiday"}


def test_a_short_note_is_read_whole(store, model) -> None:
    rest = " ".join(f"Word{n} follows." for n in range(90))
    memo(store, f"The ferry leaves at nine. {rest} Bring the blue bag.")
    model.replies.append(cites_all)
    ask(store, "When does the ferry leave?", limit=1)
    assert "Bring the blue bag." in sent(model)


def test_no_secret_of_a_note_or_its_title_is_sent(store, model) -> None:
    memo(store, "The wifi password is tidal-Anchor-77, Leo has it.", title="PIN 4471")
    long = "Filler about the house. " * 150
    memo(store, f"{long}\n\nThe door code of the office is 8812. {long}")
    model.replies.append(cites_all)
    ask(store, "What is the wifi password, and the door code of the office?")
    request = str(model.requests[0].messages)
    assert "[password]" in request and "door code" in request
    assert not any(secret in request for secret in ("tidal", "4471", "8812"))


def test_what_was_read_is_counted_and_what_it_took_is_kept_as_notes(store, model) -> None:
    memo(store, "The ferry leaves at nine.")
    model.replies.append("At nine [1].")
    answer = store.user("ana").notes.ask("When does the ferry leave?")
    assert model.requests == []
    answer.read()
    (hit,) = store.user("ana").notes.search("ferry").hits
    assert (hit.read_count, hit.match_count) == (1, 1)
    assert [one.calls for one in store.user("ana").usage() if one.purpose == "notes"] == [1]


def test_an_answer_that_is_cut_off_says_so(store, model) -> None:
    memo(store, "The ferry leaves at nine.")
    model.replies.append(Broken("The ferry leaves"))
    answer = ask(store, "When does the ferry leave?")
    assert answer.text == "The ferry leaves"
    assert answer.cut is not None and "cut off" in answer.cut


def test_what_came_before_an_error_stays_and_the_error_is_raised(store, model) -> None:
    memo(store, "The ferry leaves at nine.")
    model.replies.append(Broken("At nine [1]", ProviderError("the line is down")))
    answer = store.user("ana").notes.ask("When does the ferry leave?")
    with pytest.raises(ProviderError, match="the line is down"):
        answer.read()
    assert answer.text == "At nine [1]"
    assert [one.calls for one in store.user("ana").usage() if one.purpose == "notes"] == [1]


def test_leaving_an_answer_early_closes_the_connection(store, model) -> None:
    memo(store, "The ferry leaves at nine.")
    model.replies.append("At nine in the morning, as you said [1].")
    for _ in store.user("ana").notes.ask("When does the ferry leave?"):
        break
    assert model.streams[0].closed and not model.streams[0].whole


def test_without_a_model_the_best_passages_are_quoted(open_store, clock) -> None:
    settings = open_store().settings.with_(embed_model="none")
    with MemChat(settings=settings, clock=clock) as offline:
        memo(offline, "The ferry leaves at nine.", title="Ferry")
        memo(offline, "The fern is yellow.", title="Fern")
        answer = ask(offline, "When does the ferry leave?")
        assert answer.text == (
            "No model is set up. These passages fit the question best:\n\n"
            "[1] Ferry, 2026-05-01 (Friday)\n“The ferry leaves at nine.”"
        )
        assert [source.title for source in answer.cited] == ["Ferry"]
        assert answer.plan.calls == 0
        assert ask(offline, "Who is the baker?").text == "No note speaks of that."
        assert ask(offline, "Summarize the ferry", mode="summary").cited == answer.cited


def test_notes_of_other_people_and_apps_are_not_read(store, model) -> None:
    memo(store, "The ferry leaves at nine.", user="ben")
    memo(store, "The ferry leaves at ten.", app="work")
    assert ask(store, "When does the ferry leave?").sources == ()
    model.replies.append(cites_all)
    answer = store.user("ana", app="work").notes.ask("When does the ferry leave?")
    assert answer.read() and [source.text for source in answer.cited] == [
        "The ferry leaves at ten."
    ]


def test_notes_can_be_asked_with_memory_off(store, model) -> None:
    memo(store, "The ferry leaves at nine.")
    store.user("ana").set_memory(False)
    model.replies.append("At nine [1].")
    assert ask(store, "When does the ferry leave?").cited


@pytest.mark.parametrize(
    ("question", "more"), [("  ", {}), ("ferry?", {"mode": "poem"}), ("ferry?", {"limit": -1})]
)
def test_a_question_that_cannot_be_asked_is_refused(store, question, more) -> None:
    memo(store, "The ferry leaves at nine.")
    with pytest.raises(InputError):
        ask(store, question, **more)


def test_a_question_that_leaves_no_room_in_the_window_is_refused(open_store) -> None:
    mc = open_store(chat_model=ScriptedModel(window=1_500))
    memo(mc, "The ferry leaves at nine.")
    with pytest.raises(InputError, match="ask in fewer words"):
        ask(mc, "ferry " * 1_500)


def test_an_answer_streams_from_a_provider(open_store, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer(key=KEY) as server:
        server.steps.append(Say("At nine [1], not at ten [4]."))
        mc = open_store(chat_model=chat_of(server))
        memo(mc, "The ferry leaves at nine.")
        pieces = list(mc.user("ana").notes.ask("When does the ferry leave?"))
        assert "".join(pieces) == "At nine [1], not at ten."
        assert len(pieces) > 3


def test_a_search_with_a_filter_finds_nothing_else_on_the_days_that_the_question_names(
    store,
) -> None:
    for number in range(60):
        memo(store, f"Page {number} of a report.", 1, type="report")
    memo(store, "Thought of the sea.", 1)
    found = store.user("ana").notes.search("What did I say yesterday?", type="memo", limit=5)
    assert [hit.source_type for hit in found.hits] == ["memo"]
