"""The block of memories in a prompt: all facts where they fit, else the best of them."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as for_all
from hypothesis import strategies as st

from memchat import MemChat
from memchat.db import Tx
from memchat.search import render
from memchat.search.prompt_block import PAST_TOKENS
from memchat.testing import FakeClock, ScriptedModel
from memchat.tokens import estimate_tokens
from memchat.types import Scope, Why
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.embedders import Down
from tests.support.leftovers import files_with, rows_with
from tests.support.store import Opener, given

ANA = {"user": "ana"}
LINE = re.compile(r"^- #(\d+) ", re.MULTILINE)


def system(mc: MemChat, model: ScriptedModel, message: str, **scope: str) -> str:
    """The system prompt that a model is sent with a message outside of any conversation."""
    mc.user(**(ANA | scope)).answer(message)
    return model.requests[-1].messages[0].content


def block_of(prompt: str) -> str:
    return prompt[prompt.index("# Memories") :] if "# Memories" in prompt else ""


def numbers(prompt: str) -> list[int]:
    """The facts of a prompt by number, in their order."""
    return [int(number) for number in LINE.findall(prompt)]


def why(mc: MemChat, *said: str) -> Why:
    """Why the last of these replies of one conversation is as it is."""
    ana = mc.user(**ANA)
    chat = ana.chat()
    for message in said:
        assert chat.send(message).read()
    return ana.sessions.why()


# --- where all facts fit


def test_two_different_messages_of_a_conversation_begin_alike_up_to_the_end_of_the_list(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("fact", "boat", "a red kayak")
    mc.jobs.embed()
    chat = ana.chat()
    for message in (
        "Where is my red kayak?",
        "What is the capital of Peru?",
        "Is Lisbon a nice city?",
    ):
        assert chat.send(message).read()
    prompts = [request.messages[0].content for request in chat_model.requests]
    listed = "- #1 city: Lisbon\n- #2 boat: a red kayak (said 2026-05-01)\n"
    beginnings = {prompt[: prompt.index(listed) + len(listed)] for prompt in prompts}
    assert len(beginnings) == 1
    assert len(set(prompts)) == 3, "what was found for each message stands behind"


def test_what_was_found_for_the_message_is_pointed_to_behind_the_list(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("fact", "boat", "a red kayak")
    mc.jobs.embed()
    prompt = system(mc, chat_model, "Where is my red kayak boat?")
    assert prompt.index("- #2 boat") < prompt.index("For this message: #2\n")
    assert "For this message" not in system(mc, chat_model, "Xyzzy?")


def test_a_fact_kept_meanwhile_is_appended_and_a_forgotten_one_vanishes(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    first = ana.memories.add("fact", "zoo", "likes zebras")
    chat = ana.chat()
    seen = []
    for change in (
        lambda: None,
        lambda: ana.memories.add("fact", "aunt", "Ada"),
        lambda: ana.memories.delete(first.id),
    ):
        change()
        assert chat.send("Hello").read()
        seen.append(numbers(chat_model.requests[-1].messages[0].content))
    assert seen == [[1], [1, 2], [2]]


@pytest.mark.parametrize(
    ("kind", "key", "value", "days", "line"),
    [
        ("preference", "diet", "vegetarian", {}, "diet: vegetarian"),
        ("profile", "city", "Porto", {"starts_at": 10}, "city: Porto (from 2026-05-11)"),
        ("profile", "guest", "Bo", {"expires_at": 2}, "guest: Bo (until 2026-05-03)"),
        ("fact", "exam", "in law", {}, "exam: in law (said 2026-05-01)"),
        ("other", "exam", "in law", {"expires_at": 2},
         "exam: in law (said 2026-05-01; until 2026-05-03)"),
    ],
)  # fmt: skip
def test_a_line_is_short_and_has_a_day_only_where_time_matters(
    mc: MemChat, chat_model: ScriptedModel, clock: FakeClock, kind, key, value, days, line
) -> None:
    today = clock().date()
    mc.user(**ANA).memories.add(
        kind, key, value, **{n: today + timedelta(days=d) for n, d in days.items()}
    )
    assert f"\n- #1 {line}\n" in system(mc, chat_model, "Xyzzy?")


def test_a_replaced_value_is_told_behind_the_list_where_it_was_asked_for(
    mc: MemChat, chat_model: ScriptedModel, clock: FakeClock
) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Porto")
    clock.advance(days=1)
    ana.memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    assert "Porto" not in system(mc, chat_model, "Xyzzy?")
    asked = system(mc, chat_model, "Did I ever live in Porto?")
    assert "- #2 city: Lisbon\nFor this message: #2\n- #2 city: Lisbon (before: Porto" in asked


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@for_all(data=st.data())
def test_a_prompt_holds_what_is_in_force_and_nothing_else_and_stays_within_the_budget(
    open_store: Opener, tmp_path_factory, chat_model: ScriptedModel, data: Any
) -> None:
    budget = data.draw(st.integers(0, 1500), "budget")
    home = tmp_path_factory.mktemp("store")
    mc = open_store(home=home, budget_tokens=budget)
    ana = mc.user(**ANA)
    wanted, never = {}, set()
    for n in range(data.draw(st.integers(0, 14), "facts")):
        words = f"thing number {n} " + "é" * data.draw(st.integers(0, 60))
        how = data.draw(st.sampled_from(["plain", "plain", "shared", "other app", "sensitive",
                                         "over", "hidden", "coming"]))  # fmt: skip
        person = mc.user("ana", app="work") if how == "other app" else mc.user("ana")
        more: dict[str, Any] = {"all_apps": True} if how == "shared" else {}
        more |= {"starts_at": date(2026, 6, 1)} if how == "coming" else {}
        kept = person.memories.add("preference", "likes", words, **more)
        with private.database(mc).write() as tx:
            if how == "over":
                tx.connection.exec_driver_sql(
                    "UPDATE memories SET expires_at = '2026-04-30' WHERE id = ?", (kept.id,)
                )
        if how == "sensitive":
            ana.memories.update(kept.id, sensitive=True)
        if how == "hidden":
            ana.memories.delete(kept.id, hold=60)
        if how in ("plain", "shared", "coming"):
            wanted[kept.id] = kept
        else:
            never.add(kept.id)
    prompts = [system(mc, chat_model, message) for message in ("Xyzzy?", "Plugh?")]
    for prompt in prompts:
        assert estimate_tokens(block_of(prompt)) <= budget
        assert never.isdisjoint(numbers(prompt))
    frame = render.frame_tokens(private.assembly(mc).prompts)
    lines = (f"- #{m.id} {render.fact(m, mc.settings.zone, date(2026, 5, 1))}\n"
             for m in wanted.values())  # fmt: skip
    fits = sum(map(estimate_tokens, lines)) <= budget - frame - min(PAST_TOKENS, budget * 3 // 10)
    if fits:
        assert numbers(prompts[0]) == sorted(wanted), "all of them, by their numbers"
    assert numbers(prompts[0]) == numbers(prompts[1])
    mc.close()


def test_what_is_muted_in_a_conversation_is_not_in_its_list(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    muted = ana.memories.add("fact", "boat", "a red kayak")
    ana.memories.add("fact", "aunt", "Ada")
    chat = ana.chat()
    assert chat.send("Hello").read()
    ana.sessions.mute(muted.id, chat.session_id)
    assert chat.send("Hello").read()
    assert numbers(chat_model.requests[-1].messages[0].content) == [2]


def twin(mc: MemChat, key: str, value: str) -> None:
    """Another row with this key and value, for every app."""
    ana = mc.user(**ANA)
    row = ana.memories.add("preference", "note", "to be changed", all_apps=True)
    ana.memories.update(row.id, key=key, value=value)


@pytest.mark.parametrize("notes", [1, 60])
def test_no_row_that_says_what_a_muted_one_says_is_in_the_prompt(
    open_store: Opener, chat_model: ScriptedModel, notes: int
) -> None:
    mc = open_store(budget_tokens=400)
    ana = mc.user(**ANA)
    first = ana.memories.add("profile", "allergy", "nuts")
    twin(mc, "allergy", "Nuts")
    for n in range(notes):
        ana.memories.add("fact", "note", f"one of many notes, number {n}")
    mc.jobs.embed()
    chat = ana.chat()
    assert chat.send("Hello").read()
    assert "allergy" in block_of(chat_model.requests[-1].messages[0].content)
    ana.sessions.mute(first.id, chat.session_id)
    assert chat.send("Is an allergy to nuts common?").read()
    block = block_of(chat_model.requests[-1].messages[0].content)
    assert "notes" in block and "allergy" not in block


# --- sensitive facts


@pytest.mark.parametrize("notes", [1, 60])
def test_what_a_sensitive_fact_says_is_not_told_by_another_row_either(
    open_store: Opener, chat_model: ScriptedModel, notes: int
) -> None:
    mc = open_store(budget_tokens=400)
    ana = mc.user(**ANA)
    first = ana.memories.add("profile", "allergy", "nuts")
    twin(mc, "allergy", "Nuts")
    for n in range(notes):
        ana.memories.add("fact", "note", f"one of many notes, number {n}")
    mc.jobs.embed()
    assert "uts" in system(mc, chat_model, "Any plans?")
    ana.memories.update(first.id, sensitive=True)
    assert "uts" not in system(mc, chat_model, "Any plans?")
    assert "uts" in system(mc, chat_model, "Is an allergy to nuts common?")


def test_a_sensitive_fact_enters_only_where_it_is_found(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    kept = ana.memories.add("fact", "medication", "sertraline")
    ana.memories.add("preference", "diet", "vegetarian")
    mc.jobs.embed()
    assert kept.sensitive
    assert "sertraline" not in system(mc, chat_model, "Any plans?")
    asked = system(mc, chat_model, "Which medication is sertraline?")
    assert "For this message: #1\n- #1 medication: sertraline" in asked
    assert not ana.memories.update(kept.id, sensitive=False).sensitive
    assert "sertraline" in system(mc, chat_model, "Any plans?")


def test_a_pinned_fact_that_is_sensitive_enters_only_where_it_is_found(
    open_store: Opener, chat_model: ScriptedModel
) -> None:
    mc = open_store(budget_tokens=200)
    ana = mc.user(**ANA)
    ana.memories.pin(ana.memories.add("fact", "debts", "owes the bank").id)
    for n in range(30):
        ana.memories.add("fact", "note", f"one of many notes, number {n}")
    mc.jobs.embed()
    assert "owes the bank" not in system(mc, chat_model, "Any plans?")
    assert "owes the bank" in system(mc, chat_model, "Which bank owes debts?")


def test_a_fact_that_the_model_calls_sensitive_stays_so_when_it_is_accepted(
    mc: MemChat, extract_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    extract_model.replies.append(
        answer(fact("my knee is worn out", "knee", "worn out", flags=["sensitive"]))
    )
    talk(mc, "my knee is worn out")
    (item,) = ana.inbox.list()
    assert item.sensitive and ana.inbox.accept(item.id).sensitive


def test_what_takes_the_place_of_a_sensitive_value_is_sensitive_too(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    old = ana.memories.add("profile", "weight", "90 kg")
    ana.memories.update(old.id, sensitive=True)
    assert ana.memories.get(ana.memories.add("profile", "weight", "80 kg").id).sensitive


# --- where not all fit


@pytest.fixture
def full(open_store: Opener) -> MemChat:
    """A store with more facts than its prompts have room for."""
    mc = open_store(budget_tokens=400)
    for n in range(60):
        mc.user(**ANA).memories.add("fact", "note", f"one of many notes, number {n}")
    return mc


def test_what_was_found_comes_first_and_then_the_room_is_filled(full: MemChat) -> None:
    ana = full.user(**ANA)
    kayak = ana.memories.add("fact", "boat", "a red kayak")
    ana.memories.add("fact", "note", "written later")
    full.jobs.embed()
    shown = ana.answer("Where is my red kayak boat?").shown
    assert shown.listed == () and shown.hits[0].id == kayak.id
    assert {hit.channel for hit in shown.hits} == {"both", "newest"}
    assert len(shown.hits) + shown.dropped == 62
    left = (
        full.settings.budget_tokens
        - render.frame_tokens(private.assembly(full).prompts)
        - shown.tokens
    )
    assert left < max(hit.tokens for hit in shown.hits), "no other has room"


def test_ten_thousand_facts_are_not_read_to_learn_that_they_do_not_fit(
    full: MemChat, monkeypatch
) -> None:
    read = []
    rows = Tx.rows

    def counted(tx: Tx, *given, **values):
        found = rows(tx, *given, **values)
        read.extend(found)
        return found

    monkeypatch.setattr(Tx, "rows", counted)
    with private.database(full).read(Scope("ana")) as tx:
        from memchat.search.facts import FactSearch

        facts = FactSearch(tx)
        assert private.parts(full).block._every(facts, ()) is None
    assert 0 < len(read) < 30


def test_the_words_of_sensitive_facts_are_asked_for_once_a_prompt_though_not_all_facts_fit(
    full: MemChat, monkeypatch, chat_model: ScriptedModel
) -> None:
    from memchat.facts import memories

    read = memories.sensitive_words
    asked: list[object] = []

    def counted(*args):
        asked.append(args)
        return read(*args)

    monkeypatch.setattr(memories, "sensitive_words", counted)
    system(full, chat_model, "What do I like?")
    assert len(asked) == 1


# --- words only


def test_words_alone_are_told_only_where_they_chose_among_more_facts_than_fit(
    open_store: Opener,
) -> None:
    mc = open_store(embedder=Down())
    mc.user(**ANA).memories.add("fact", "boat", "a red kayak")
    found = why(mc, "the red kayak")
    assert found.degraded is None and [line.hit.channel for line in found.lines] == ["words"]
    for n in range(60):
        mc.user(**ANA).memories.add("fact", "note", f"one of many notes, number {n}")
    mc.close()
    mc = open_store(embedder=Down(), budget_tokens=400)
    assert "by words only" in (why(mc, "the red kayak").degraded or "")


# --- receipts


def rows(mc: MemChat, table: str) -> int:
    with private.database(mc).read() as tx:
        return int(tx.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


def test_a_list_is_kept_once_for_all_replies_that_were_sent_it(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    for n in range(5):
        ana.memories.add("fact", "note", f"note {n}")
    chat = ana.chat()
    for n in range(4):
        assert chat.send(f"Hello {n}").read()
    assert (rows(mc, "fact_lists"), rows(mc, "fact_list_lines")) == (1, 5)
    ana.memories.add("fact", "note", "one more")
    assert chat.send("Hello again").read()
    assert (rows(mc, "fact_lists"), rows(mc, "fact_list_lines")) == (2, 11)
    replies = [m for m in ana.sessions.messages(chat.session_id) if m.role == "assistant"]
    for reply, request in zip(replies, chat_model.requests, strict=True):
        assert ana.sessions.why(reply.id).prompt == request.messages, "to the letter"
    ana.sessions.delete(chat.session_id)
    assert (rows(mc, "fact_lists"), rows(mc, "fact_list_lines")) == (0, 0)


def test_forgetting_takes_the_line_out_of_every_list_and_leaves_the_others(
    open_store: Opener,
) -> None:
    mc = open_store(chat_model=ScriptedModel(["Fine.", "Is Zanzibar nice?", "Fine."]))
    ana = mc.user(**ANA)
    city = ana.memories.add("profile", "city", "Zanzibar")
    ana.memories.add("fact", "aunt", "Ada")
    said = [why(mc, "Hello there") for _ in range(3)]
    ana.memories.delete(city.id)
    for before in said:
        after = ana.sessions.why(before.reply.id)
        assert [line.hit.text for line in after.also] == ["aunt: Ada (said 2026-05-01)"]
        assert after.prompt is None and after.forgotten == 1
    contents = [ana.sessions.why(before.reply.id).reply.content for before in said]
    assert contents == ["Fine.", "Is ········ nice?", "Fine."]
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_the_line_of_a_fact_changed_since_leaves_with_its_old_words(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    boat = ana.memories.add("fact", "boat", "a Quokka kayak")
    before = why(mc, "Hello there")
    ana.memories.update(boat.id, value="a canoe")
    assert ana.sessions.why(before.reply.id).also[0].since == "changed, now boat: a canoe"
    ana.memories.delete(boat.id)
    assert rows_with(mc, "Quokka") == [] and files_with(mc, "Quokka") == []


def test_all_that_was_sent_is_counted(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("fact", "boat", "a red kayak")
    ana.memories.add("fact", "aunt", "Ada")
    mc.jobs.embed()
    reply = ana.chat().send("Where is my red kayak boat?")
    assert reply.read() and reply.shown.lines == 2
    assert [hit.memory.value for hit in given(reply.shown)] == ["a red kayak", "Ada"]
