"""Running a workflow by hand: its steps, what is kept of them, its limits, and its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from memchat import InputError, MemChat, NotFound, ProviderError, StoreError, User
from memchat.testing import FakeClock, ScriptedModel, ScriptedStream
from tests.support.leftovers import files_with, rows_with
from tests.support.store import NOON
from tests.support.workflows import ASK_OVER_MCP, ask, serving_memory, step, text


@pytest.fixture(autouse=True)
def script(chat_model: ScriptedModel) -> ScriptedModel:
    """The model, whose replies each test says."""
    chat_model.replies.clear()
    return chat_model


def saying(script: ScriptedModel, *replies: object) -> None:
    script.replies.extend(replies)  # type: ignore[arg-type]


def sent(script: ScriptedModel) -> str:
    return script.requests[-1].messages[-1].content


def budget(ana: User) -> None:
    ana.notes.add("The marketing budget for May is 4,000 euros.", title="Budget")
    ana.notes.add("Tomatoes and beans are in the garden.", title="Garden")


def test_ask_my_memory_gives_the_model_the_memos_that_fit(ana: User, script) -> None:
    budget(ana)
    saying(script, "4,000 euros [1].")
    run = ana.workflows.run("ask-memory", "What is the marketing budget?")
    assert (run.state, run.output, run.error) == ("done", "4,000 euros [1].", None)
    system, user = script.requests[0].messages
    assert system.content.startswith("You are a helpful assistant")
    assert user.content == (
        "Question: What is the marketing budget?\n\nRelevant context from past memos:\n"
        "[1] Budget, 2026-05-01 (Friday)\n  The marketing budget for May is 4,000 euros."
    )
    assert [(one.id, one.state) for one in run.steps] == [("search", "done"), ("answer", "done")]
    assert run.steps[1].model == "scripted/chat" and run.steps[1].prompt_tokens > 20
    assert "workflow" in {one.purpose for one in ana.usage()}


def test_where_no_memo_fits_the_model_is_told_so(ana: User, script) -> None:
    budget(ana)
    saying(script, "I found no memo on that.")
    run = ana.workflows.run("ask-memory", "Quokkas?")
    assert sent(script).endswith("No note speaks of that.")
    assert run.steps[0].value == [] and run.output == "I found no memo on that."


def test_a_note_in_the_words_of_a_variable_stays_as_it_is(ana: User, script) -> None:
    ana.notes.add("The budget is {{search}} and {{TRANSCRIPT}}.", title="Budget")
    saying(script, "Well.")
    ana.workflows.run("ask-memory", "What is the {{search}} budget?")
    assert "The budget is {{search}} and {{TRANSCRIPT}}." in sent(script)
    assert "Question: What is the {{search}} budget?" in sent(script)


def test_the_same_over_mcp_by_our_own_server(mc: MemChat, ana: User, script) -> None:
    budget(ana)
    ana.workflows.add(ASK_OVER_MCP)
    saying(script, "4,000 euros.")
    with serving_memory(mc, "ana"):
        run = ana.workflows.run("ask-memory-mcp", "marketing budget")
    assert (run.error, run.output) == (None, "4,000 euros.")
    assert run.steps[0].call == (
        'query_memory of talkie-memory with {"question": "marketing budget", "topK": 5}'
    )
    assert sent(script).startswith("Based on these past memos:\n[{")
    assert "The marketing budget for May is 4,000 euros." in sent(script)


def test_only_memos_of_the_last_days_are_found(ana: User, clock: FakeClock, script) -> None:
    for days in (8, 6):
        at = NOON - timedelta(days=days)
        ana.notes.add(f"The budget was cut {days} days ago.", title="Cut", created_at=at)
    ana.workflows.add(
        text(
            step("search", "Memory Query", query="budget", dateRangeDays=7),
            step("all", "Memory Query", query="", dateRangeDays=7, includeMetadata=True),
            ask("{{search}}|{{all}}|{{search.0.title}}|{{search.0.date}}|{{search.0.id}}"),
        )
    )
    saying(script, "Yes.")
    assert ana.workflows.run("test").error is None
    assert sent(script) == (
        "[1]\n  The budget was cut 6 days ago.|[1] Cut, 2026-04-25 (Saturday)\n"
        "  The budget was cut 6 days ago.|Cut|2026-04-25|2"
    )


def test_a_workflow_is_run_on_a_note(ana: User, script) -> None:
    at = NOON - timedelta(days=2)
    note = ana.notes.add("Ben sends the offer.", title="Meeting", created_at=at)
    assert note is not None
    saying(script, "- 2026-05-08 Ben: send the offer\n- 2026-02-30 Ben: no such day\nand no line")
    run = ana.workflows.run("meeting-to-actions", note_id=note.id)
    assert run.text == "Ben sends the offer."
    assert sent(script).endswith("Meeting\nBen sends the offer.") and "2026-04-29" in sent(script)
    first, second = ana.inbox.list()
    assert (first.value, f"{first.expires_at}") == ("2026-05-08 Ben: send the offer", "2026-05-08")
    assert second.expires_at is None
    assert not ana.memories.list()
    kept = ana.inbox.accept(first.id)
    assert [one.id for one in ana.memories.list()] == [kept.id]


def test_a_result_may_become_a_note(ana: User, script) -> None:
    budget(ana)
    saying(script, "Decided: the budget.")
    ana.workflows.run("weekly-review")
    (note,) = ana.notes.list(type="workflow")
    assert ana.notes.get(note.id).text == "Decided: the budget."
    assert note.title == "Weekly review, 2026-05-01"
    saying(script, "Again.")
    ana.workflows.run("weekly-review")
    assert "Decided:" not in sent(script), "a review is not made of the one before"


def test_a_step_that_fails_is_named_and_what_came_before_is_kept(ana: User, script) -> None:
    budget(ana)
    saying(script, ProviderError("the model is out of order"))
    run = ana.workflows.run("ask-memory", "budget")
    assert (run.state, run.error) == ("failed", "step answer: the model is out of order")
    assert [(one.id, one.state) for one in run.steps] == [("search", "done")]
    saying(script, "4,000 euros.")
    again = ana.workflows.resume(run.id)
    assert (again.state, again.output, again.error) == ("done", "4,000 euros.", None)
    assert again.steps[0] == run.steps[0]
    with pytest.raises(InputError, match="is done"):
        ana.workflows.resume(run.id)


def test_what_a_run_does_is_told_as_it_happens(ana: User, script) -> None:
    saying(script, "One two.")
    told: list[tuple[str, str]] = []
    ana.workflows.run("ask-memory", "tea", on_text=lambda *piece: told.append(piece))
    assert told == [
        ("search", ""),
        ("search", "No note speaks of that."),
        ("answer", ""),
        ("answer", "One "),
        ("answer", "two."),
    ]


def test_a_run_that_is_stopped_begins_no_further_step(ana: User, script) -> None:
    ana.workflows.add(text(ask("one", "a"), ask("two", "b")))
    saying(script, "One.")

    def stop(step: str, piece: str) -> None:
        if step == "a" and piece == "One.":
            ana.workflows.stop(ana.workflows.runs()[0].id)

    run = ana.workflows.run("test", on_text=stop)
    assert (run.state, run.steps) == ("stopped", ())
    assert len(script.requests) == 1
    saying(script, "One again.", "Two.")
    assert ana.workflows.resume(run.id).output == "Two."
    assert len(script.requests) == 3


def test_ctrl_c_stops_a_run_and_it_can_go_on(ana: User, script) -> None:
    saying(script, "Never mind.")

    def interrupt(step: str, piece: str) -> None:
        if step == "answer" and piece:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ana.workflows.run("ask-memory", "tea", on_text=interrupt)
    (run,) = ana.workflows.runs()
    assert (run.state, len(run.steps)) == ("stopped", 1)
    saying(script, "Tea.")
    assert ana.workflows.resume(run.id).output == "Tea."


def test_the_tier_chooses_among_the_models_that_are_set_up(open_store, script) -> None:
    mc = open_store(fast_model="offline/extract", high_model=None)
    ana = mc.user("ana")
    ana.workflows.add(
        text(*(ask("What?", tier, costTier=tier) for tier in ("fast", "balanced", "high")))
    )
    saying(script, "Balanced.", "High.")
    run = ana.workflows.run("test")
    assert [one.model for one in run.steps] == ["offline/extract", "scripted/chat", "scripted/chat"]


def test_a_run_asks_no_model_once_it_has_cost_what_it_may(ana: User, script, monkeypatch) -> None:
    plain = ScriptedStream.usage.fget
    spent = property(lambda one: replace(plain(one), cost_usd=0.01))
    monkeypatch.setattr(ScriptedStream, "usage", spent)
    ana.workflows.add(text(ask("one", "a"), ask("two", "b"), ask("three", "c"), maxCostUsd=0.02))
    saying(script, "One.", "Two.")
    run = ana.workflows.run("test")
    assert run.error == "step c: the run has cost $0.0200, and may cost $0.0200"
    assert [one.id for one in run.steps] == ["a", "b"] and run.cost_usd == 0.02


def test_a_run_is_the_persons_own(mc: MemChat, ana: User, script) -> None:
    saying(script, "Yes.")
    run = ana.workflows.run("ask-memory", "tea")
    ana.workflows.add(text(ask("x")))
    for other in (mc.user("ben"), mc.user("ana", app="work")):
        assert not other.workflows.runs()
        for verb in (other.workflows.get_run, other.workflows.resume, other.workflows.stop):
            with pytest.raises(NotFound):
                verb(run.id)
        with pytest.raises(NotFound):
            other.workflows.get("test")


def test_a_workflow_of_ones_own_takes_the_place_of_the_one_that_comes_with_memchat(
    ana: User,
) -> None:
    assert not ana.workflows.get("ask-memory").added
    ana.workflows.add(text(ask("x"), slug="ask-memory"))
    found = ana.workflows.get("ask-memory")
    assert found.added and found.name == "A test"
    assert len(ana.workflows.list()) == 5
    ana.workflows.delete("ask-memory")
    assert ana.workflows.get("ask-memory").name == "Ask My Memory"
    with pytest.raises(NotFound):
        ana.workflows.delete("ask-memory")


Forget = Callable[[MemChat, User], object]


@pytest.mark.parametrize(
    "forget",
    [
        lambda mc, ana: ana.notes.delete(1),
        lambda mc, ana: ana.apps.delete("default"),
        lambda mc, ana: ana.delete_all(),
    ],
    ids=["its note", "the app", "the person"],
)
def test_a_run_goes_with_what_it_read(mc: MemChat, ana: User, script, forget: Forget) -> None:
    ana.notes.add("Quokkaland wants the boxes.", title="Boxes")
    saying(script, "Quokkaland does.")
    ana.workflows.run("ask-memory", "who wants the boxes")
    assert rows_with(mc, "Quokkaland")
    forget(mc, ana)
    mc.jobs.run()
    assert not rows_with(mc, "Quokkaland") and not files_with(mc, "Quokkaland")


def test_what_is_forgotten_is_blanked_in_runs(mc: MemChat, ana: User, script) -> None:
    kept = ana.memories.add("profile", "employer", "Quokkaland")
    ana.workflows.add(text(ask("{{TRANSCRIPT}}", "a"), ask("{{a}}", "b")))
    saying(script, "Quokkaland it is.", ProviderError("no Quokkaland"))
    run = ana.workflows.run("test", "Where? At Quokkaland?")
    assert run.state == "failed"
    ana.memories.delete(kept.id)
    assert not rows_with(mc, "Quokkaland") and not files_with(mc, "Quokkaland")
    left = ana.workflows.get_run(run.id)
    assert (left.text, left.steps[0].text) == ("Where? At ··········?", "·········· it is.")
    assert left.steps[0].state == "done"


def test_what_is_forgotten_while_a_model_reads_it_is_not_kept(
    mc: MemChat, ana: User, script
) -> None:
    kept = ana.memories.add("profile", "employer", "Quokkaland")

    def forget(_) -> str:
        ana.memories.delete(kept.id)
        return "Quokkaland it is."

    ana.workflows.add(text(ask("{{TRANSCRIPT}}")))
    saying(script, forget, "Nowhere.")
    run = ana.workflows.run("test", "Where? At Quokkaland?")
    assert run.error == "step answer: words that it was given were forgotten meanwhile"
    assert not rows_with(mc, "Quokkaland")
    assert ana.workflows.resume(run.id).output == "Nowhere."
    assert "Quokkaland" not in sent(script)


def test_a_model_is_not_given_the_secrets_of_a_note(ana: User, script) -> None:
    note = ana.notes.add("My password is hunter2secret. Pay the rent.", title="Rent")
    saying(script, "- pay the rent")
    assert ana.workflows.run("meeting-to-actions", note_id=note.id).state == "done"
    assert "My password is [password] Pay the rent." in sent(script)


def test_each_line_that_waits_in_the_inbox_can_get_a_yes(ana: User, script) -> None:
    ana.workflows.add(text(ask("x"), result="inbox"))
    saying(script, "- buy " + "many beans and " * 30)
    ana.workflows.run("test")
    (item,) = ana.inbox.list()
    assert ana.inbox.accept(item.id).value == item.value


def test_nothing_waits_in_the_inbox_while_memory_is_off(ana: User, script) -> None:
    ana.workflows.add(text(ask("x"), result="inbox"))
    ana.set_memory(False)
    run = ana.workflows.run("test")
    assert "memory is off" in (run.error or "") and not ana.inbox.list() and not script.requests
    ana.set_memory(True)
    saying(script, "- pay")
    assert ana.workflows.resume(run.id).state == "done" and len(ana.inbox.list()) == 1


def test_what_nobody_expected_is_the_error_of_the_run(ana: User, script) -> None:
    def broken(_) -> str:
        raise ZeroDivisionError

    ana.workflows.add(text(ask("x")))
    saying(script, broken)
    with pytest.raises(ZeroDivisionError):
        ana.workflows.run("test")
    (run,) = ana.workflows.runs()
    assert (run.state, run.error) == ("failed", "step answer: unexpected ZeroDivisionError")


def test_runs_are_kept_for_thirty_days(mc: MemChat, ana: User, clock: FakeClock, script) -> None:
    saying(script, "Quokka.", "Tea.")
    ana.workflows.run("ask-memory", "one")
    clock.advance(days=29)
    ana.workflows.run("ask-memory", "two")
    clock.advance(days=2)
    mc.jobs.run()
    assert [one.text for one in ana.workflows.runs()] == ["two"]
    assert not files_with(mc, "Quokka")


def test_a_model_that_asks_by_itself_gets_no_secret(ana: User, script) -> None:
    ana.notes.add("The door code: the password is hunter2secret.", title="Door")
    saying(script, "No.")
    run = ana.workflows.run("ask-memory", "what is the door code")
    assert "Door" in sent(script) and "hunter2secret" not in sent(script)
    assert "hunter2secret" not in str(run.steps)


def test_a_run_is_done_by_one_process_at_a_time(mc: MemChat, ana: User, open_store, script) -> None:
    other = open_store(home=mc.settings.home).user("ana")
    refused: list[str] = []

    def second(step: str, piece: str) -> None:
        if step == "answer" and not piece:
            with pytest.raises(StoreError, match="another process does the run"):
                other.workflows.resume(other.workflows.runs()[0].id)
            refused.append(step)

    saying(script, "Once.")
    assert ana.workflows.run("ask-memory", "tea", on_text=second).output == "Once."
    assert refused and len(script.requests) == 1
