"""The contract of a store: every function of it that the rest of the package calls, run once.

One more entry in ``tests.support.rows.BACKENDS`` tests a second kind of store.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from memchat.db import apps, jobs, messages, records, sessions, usage
from memchat.facts import audit, changes, in_force, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory, ValuesInForce
from memchat.forget import mentions, purge, tombstones, wording
from memchat.search import embeddings, keywords, passages, question_dates, receipts, repair
from memchat.search.receipts import SentPrompt
from memchat.types import Hit, Proposal, Scope, Service, Usage, Wanted
from tests.support.rows import count, remove_words, write_words

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
TODAY, NOW = NOON.date(), ValuesInForce(NOON.date())
ANA = Scope("ana", "home")
BY_ANA = Cause("user", "typed")
SERVICE, VECTOR = Service("test", "words", 4, 100), np.array([1, 0, 0, 0], np.float32)


@pytest.fixture
def own(tx) -> int:
    return apps.ensure(tx, ANA).own


def fact(value: str, key: str = "city", **more) -> NewMemory:
    fields = {"memory_type": "profile", "key": key, "value": value, "many": False}
    fields |= {"search_text": f"{key} {value}", "said_at": NOON, "created_by": "manual"}
    return NewMemory(**{**fields, **more})


def add(tx, own: int, value: str, **more) -> int:
    return changes.add(tx, own, fact(value, **more), BY_ANA)


def talk(tx, own: int, *said: str) -> tuple[int, list[int]]:
    """A session in which the user and the assistant take turns; its id and the messages' ids."""
    session_id = sessions.start(tx, own, "host:1:1", LATER, NOON)
    roles = ("user", "assistant")
    ids = [messages.add(tx, session_id, roles[n % 2], t, NOON) for n, t in enumerate(said)]
    return session_id, ids


def test_apps_are_made_found_switched_and_deleted(tx) -> None:
    own, shared = apps.ensure(tx, ANA).ids
    assert apps.find(tx, ANA).ids == (own, apps.ensure_shared(tx, "ana"))
    work = apps.ensure(tx, Scope("ana", "work")).own
    assert apps.ids_of_user(tx, "ana") == [own, work, shared] and apps.all_ids(tx)
    assert set(apps.other_ids(tx, own)) == {work, shared}
    apps.set_memory(tx, own, False)
    assert not apps.memory_switch(tx, ANA).on and apps.memory_switch(tx, ANA, all_apps=True).on
    assert [app.memory for app in apps.of_user(tx, "ana")] == [False, True]
    session, _ = sessions.by_id(tx, talk(tx, work, "Hello")[0])
    assert apps.memory_of(tx, session).on
    assert not apps.memory_of(tx, replace(session, memory=False)).on
    apps.remove(tx, work)
    assert apps.other_ids(tx, own) == [shared]


def test_memories_are_stored_read_and_identified(tx, own) -> None:
    lisbon = add(tx, own, "Lisbon")
    known = memories.get(tx, [own], lisbon)
    assert known is not None and known.value == "Lisbon" and known.active and not known.many
    assert memories.by_ids(tx, [own], [lisbon, 999]) == {lisbon: known}
    sha1 = memories.sha1_of("profile", "city", "Lisbon")
    assert memories.by_sha1(tx, [own], sha1) == known
    assert memories.with_key(tx, [own], "city") == [known]
    assert memories.app_id_of(tx, lisbon) == own
    assert passages.hashes(tx, "fact", [lisbon])[lisbon] == passages.text_hash("city Lisbon")
    assert memories.holds_many(tx, [own], "city") is False


def test_memories_change_with_their_history(tx, own) -> None:
    lisbon, porto = add(tx, own, "Lisbon"), add(tx, own, "Porto")

    def row(memory_id: int):
        return memories.get(tx, [own], memory_id)

    changes.pin(tx, lisbon, BY_ANA)
    changes.deactivate(tx, row(lisbon), "superseded", BY_ANA, replaced_by=porto)
    assert not row(lisbon).active and row(porto).pinned
    changes.reactivate(tx, row(lisbon), BY_ANA)
    changes.count_repeat(tx, row(lisbon), LATER, BY_ANA)
    changes.set_day(tx, row(lisbon), "expires_at", TODAY, BY_ANA)
    changes.set_day(tx, row(lisbon), "starts_at", TODAY, BY_ANA)
    changes.set_columns(tx, lisbon, sensitive=1)
    changed = row(lisbon)
    assert (changed.seen_count, changed.expires_at, changed.starts_at) == (2, TODAY, TODAY)
    assert changed.active and changed.sensitive
    changes.rewrite(tx, changed, own, fact("Faro", cues=("sea", "south")), BY_ANA)
    changes.reindex(tx, row(lisbon), own, "city Faro coast", BY_ANA)
    assert row(lisbon).value == "Faro" and row(lisbon).cues == ("sea", "south")
    kinds = [event.kind for event in changes.events_of_memory(tx, lisbon)]
    start = ["add", "pin", "supersede", "restore", "repeat", "edit", "edit", "edit"]
    assert kinds == [*start, "reindex"]
    changes.remove(tx, [lisbon])
    assert row(lisbon) is None


def test_lists_of_memories_are_filtered_sorted_and_counted(tx, own) -> None:
    tomorrow, yesterday = TODAY + timedelta(days=1), TODAY - timedelta(days=1)
    city, job = add(tx, own, "Lisbon"), add(tx, own, "baker", key="job", expires_at=tomorrow)
    gone = add(tx, own, "Rome", key="trip", memory_type="fact", expires_at=yesterday)
    debt = add(tx, own, "none", key="debt", memory_type="fact", many=True, sensitive=True)

    def found(wanted: Wanted, **more) -> list[int]:
        listed = [m.id for m in memories.listed(tx, [own], wanted, NOW, **more)]
        assert count(tx, [own], wanted, NOW, **more) == len(listed)
        return listed

    assert found(Wanted()) == [debt, job, city]
    assert found(Wanted(search="bak")) == found(Wanted(status="expiring"), by=tomorrow) == [job]
    assert found(Wanted(status="inactive")) == []
    assert found(memories.or_over(Wanted(status="inactive"))) == [gone]
    assert found(Wanted(status="all", sort="oldest")) == [debt, gone, job, city]
    assert memories.ids(tx, [own], Wanted(), NOW, tomorrow) == [debt, job, city]
    changes.pin(tx, city, BY_ANA, on=True)
    assert memories.ids(tx, [own], Wanted(), NOW, tomorrow) == [city, debt, job]
    assert [m.id for m in memories.of_ids(tx, [job, 99_999, city], NOW)] == [job, city]
    changes.pin(tx, city, BY_ANA, on=False)
    assert [m.id for m in memories.pinned_first(tx, [own], NOW, 9)] == [city, job]
    assert {m.id for m in memories.each_active(tx, own)} == {city, job, gone, debt}
    assert memories.count_for_prompts(tx, [own], TODAY, [city]) == 1
    assert in_force.as_of(tx, [own]).over == {gone}
    assert [own in ids for ids in memories.scopes_with_due_dates(tx, TODAY, "ana")] == [True]
    assert sorted(memories.keys_in_use(tx, [own])) == ["city", "debt", "job", "trip"]
    assert memories.single_valued_keys(tx, own, ["city", "debt"], NOW) == {"city"}
    assert memories.sensitive_words(tx, [own], TODAY, []) == [("debt", "none")]
    assert (
        memories.searched_ids(tx, own) == {*memories.ids_in_app(tx, own)} == {city, job, gone, debt}
    )
    assert passages.text_of(tx, city) == "city Lisbon"


def test_facts_of_a_period_and_values_by_date(tx, own) -> None:
    lisbon = add(tx, own, "Lisbon", expires_at=TODAY)
    over = add(tx, own, "Rome", key="trip", expires_at=TODAY - timedelta(days=1))
    talk(tx, own, "I live in Lisbon.", "Good.")
    days = NOON - timedelta(days=1), NOON + timedelta(days=1)
    assert question_dates.said(tx, "fact", [own], days, 9, [over]) == [lisbon]
    assert len(question_dates.said(tx, "turn", [own], days, 9)) == 1
    assert question_dates.ending(tx, [own], TODAY, 9) == [lisbon]
    (due,) = memories.with_due_date(tx, [own], TODAY)
    assert due.id == over and not memories.holds_on(due, TODAY)
    assert [m.id for m in memories.of_key(tx, [own], "trip")] == [over]


def test_replacements_are_followed_in_both_directions(tx, own) -> None:
    ids = [add(tx, own, city) for city in ("Lisbon", "Porto", "Faro")]
    for old, new in pairwise(ids):
        row = memories.get(tx, [own], old)
        changes.deactivate(tx, row, "superseded", BY_ANA, replaced_by=new)
    first = memories.get(tx, [own], ids[0])
    assert first is not None and changes.successors(tx, first) == ids[1:]
    assert [m.id for m in changes.replaced_memories(tx, ids[2])] == [ids[1]]
    past = changes.replaced_values(tx, [own], [ids[2]])[ids[2]]
    assert {value.value for value in past} == {"Lisbon", "Porto"}
    assert changes.whole_chains(tx, [own], [ids[0]]) == {*ids[:2]}
    assert changes.current(tx, [own], [ids[0]])[ids[0]].id == ids[2]


def test_hidden_memories_come_back_as_they_were(tx, own) -> None:
    before = memories.get(tx, [own], lisbon := add(tx, own, "Lisbon"))
    changes.hide(tx, before, own, BY_ANA)
    assert memories.get(tx, [own], lisbon) is None
    assert [m.id for m in memories.hidden(tx, [own], sha1=before.sha1)] == [lisbon]
    assert memories.homes_of(tx, [lisbon, 999]) == {lisbon: own}
    changes.unhide(tx, lisbon, own, BY_ANA)
    assert memories.get(tx, [own], lisbon) == before


def test_events_and_changes_are_followed_and_edited(tx, own) -> None:
    (session_id, (message_id,)), lisbon = talk(tx, own, "I live in Lisbon"), add(tx, own, "Lisbon")
    cause = Cause("user", "said", session_id, message_id, {"verdict": "keep"})
    old, new = {"value": "Lisbon"}, {"value": "Porto"}
    changes.record(tx, lisbon, own, "edit", cause, old=old, new=new)
    (event,) = changes.events_by(tx, "message_id", [message_id])
    assert changes.events_by(tx, "session_id", [session_id]) == [event]
    assert event.detail == {"verdict": "keep"}
    assert changes.value_edits(tx, [lisbon]) == {lisbon: NOON}
    assert changes.latest_event(tx) == event.id
    assert changes.changed_since(tx, event.id - 1) == [lisbon]
    assert changes.app_ids_of(tx, [lisbon]) == {own}
    changes.set_columns_of_event(tx, event.id, cause="undone", related_id=lisbon)
    last = changes.events_of_memory(tx, lisbon)[-1]
    assert (last.cause, last.related_id, last.old, last.new) == ("undone", lisbon, old, new)
    purge.forget_session(tx, session_id)
    changes.blank_events(tx, [lisbon])
    last = changes.events_of_memory(tx, lisbon)[-1]
    assert (last.session_id, last.old, last.cause) == (None, None, "")
    before = passages.latest_change(tx, own)
    passages.put_text(tx, "turn", 7, own, "I live in Porto")
    assert passages.changed_since(tx, "turn", own, before) == [7]
    assert passages.changed_since(tx, "fact", own, before) == []
    assert passages.fingerprint(tx, passages.latest_change(tx, own)) and before
    purge.forget_app(tx, own)
    assert changes.events_of_memory(tx, lisbon) == []


def test_sessions_open_end_and_keep_their_description(tx, own) -> None:
    session_id, _ = talk(tx, own, "I live in Lisbon", "Good")
    assert sessions.lease(tx, session_id) == ("host:1:1", LATER)
    assert sessions.renew(tx, session_id, "host:1:1", LATER)
    assert sessions.hand_over(tx, session_id, "host:3:3", LATER)
    assert sessions.lease(tx, session_id) == ("host:3:3", LATER)
    sessions.change(tx, session_id, last_activity_at=LATER)
    assert [s.id for s, *_ in sessions.open_sessions(tx, "ana")] == [session_id]
    assert sessions.has_unread_messages(tx, session_id) and sessions.end(tx, session_id)
    assert not sessions.hand_over(tx, session_id, "host:1:1", LATER)
    assert [s.id for s, _ in sessions.ended_with_unread(tx, "ana")] == [session_id]
    sessions.reopen(tx, session_id, "host:2:2", LATER, LATER)
    sessions.mark_extracted(tx, session_id, 99_999, "Home", "She lives in Lisbon")
    assert sessions.description(tx, session_id) == ("Home", "She lives in Lisbon")
    assert not sessions.has_unread_messages(tx, session_id)
    sessions.mark_unread(tx, session_id, 1)
    assert sessions.has_unread_messages(tx, session_id)
    sessions.change(tx, session_id, title="Town")
    assert sessions.known(tx, [session_id])[session_id].title == "Town"
    assert [s.id for s in sessions.listed(tx, [own], 9, search="lisbon")] == [session_id]
    found = sessions.get(tx, [own], session_id)
    assert found.message_count == 2 and sessions.by_id(tx, session_id) == (found, own)
    sessions.set_description(tx, session_id, None, None)
    assert sessions.app_id_of(tx, session_id) == own
    sessions.remove(tx, session_id)


def test_sessions_of_other_programs_are_known_by_name_and_turns(tx, own) -> None:
    session_id = sessions.start(tx, own, "owner", NOON, NOON)
    turns = sessions.turn_hashes(tx, [("user", "Hello"), ("assistant", "Hi")])
    assert len(set(turns)) == 2 and turns == sessions.turn_hashes(
        tx, [("user", "Hello"), ("assistant", "Hi")]
    )
    assert sessions.external(tx, own, "chat-17") == (None, [])
    sessions.put_external(tx, own, "chat-17", session_id, turns)
    assert sessions.external(tx, own, "chat-17") == (session_id, turns)
    assert sessions.ids_in_app(tx, own, [session_id, 99]) == [session_id]
    sessions.remove(tx, session_id)
    assert sessions.external(tx, own, "chat-17") == (None, turns)


def test_messages_are_indexed_rewritten_and_removed(tx, own) -> None:
    session_id, ids = talk(tx, own, "I live in Lisbon", "Good", "And I bake bread")
    first, _, last = ids
    assert messages.ids_of(tx, session_id) == [m.id for m in messages.of_app(tx, own)] == ids
    assert messages.first_words(tx, [session_id], 6) == {session_id: "I live"}
    assert messages.said_last(tx.within(own)) == "And I bake bread \nI live in Lisbon"
    assert messages.last_with_words(tx, [session_id], "LÍVE bon")[session_id].id == first
    assert messages.last_with_words(tx, [session_id], "live bread") == {}
    assert messages.to_read_whole(tx, session_id) == set()
    messages.read_all(tx, first)
    assert messages.to_read_whole(tx, session_id) == {first}
    messages.set_texts(tx, session_id, {first: "lives in Lisbon"})
    assert messages.by_session(tx, ids) == {session_id: ids}
    messages.rewrite(tx, session_id, {first: "I live in ██████"})
    passages.drop(tx, "turn", [first])
    assert messages.by_ids(tx, [first])[first].content == "I live in ██████"
    messages.exclude(tx, [last])
    assert last not in {m.id for m in messages.of_session(tx, session_id, learnable=True)}
    messages.remove(tx, [last])
    assert messages.ids_of(tx, session_id) == ids[:2]


def test_replies_keep_their_prompt_receipt_and_fact_list(tx, own) -> None:
    session_id, (asked, reply) = talk(tx, own, "Where do I live?", "In Lisbon")
    lisbon = add(tx, own, "Lisbon")
    receipts.add(tx, reply, [hit := Hit("memory", lisbon, "city: Lisbon", 1, 1, None, "both", 4)])
    assert receipts.of_reply(tx, reply) == [hit]
    assert receipts.sessions_with(tx, "memory", [lisbon]) == [session_id]
    assert receipts.items_in_any(tx, "memory", [lisbon, 999]) == {lisbon}
    list_id = receipts.add_list(tx, session_id, "You know:", [(lisbon, "city: Lisbon")], NOON)
    assert receipts.list_of(tx, list_id).lines == ((lisbon, "city: Lisbon"),)
    assert receipts.sent_to_models(tx, [lisbon]) == {lisbon}
    assert (session_id, "In Lisbon", 0) in receipts.model_texts_with(tx, lisbon)
    receipts.add_prompt(
        tx, reply, sent := SentPrompt("Be brief", asked, tools=True, list_id=list_id)
    )
    assert receipts.prompt_of_reply(tx, reply) == sent and receipts.latest_prompt(tx, own) == reply
    assert receipts.reply_of(tx, messages.by_ids(tx, [asked])[asked]) == reply
    receipts.remove_prompts(tx, [reply])
    assert receipts.prompt_of_reply(tx, reply).system is None
    receipts.remove_list_lines(tx, [lisbon])
    receipts.remove(tx, "memory", [lisbon])
    assert receipts.sent_to_models(tx, [lisbon]) == set()
    sessions.mute(tx, session_id, lisbon)
    assert sessions.muted_of_session(tx, session_id) == {lisbon}
    sessions.unmute(tx, session_id, lisbon)
    memories.add_uses(tx, matched=[lisbon], read=[])
    assert sessions.muted_of_session(tx, session_id) == set() and memories.uses_of(tx, lisbon) == (
        1,
        0,
    )
    usage.add(tx, own, session_id, Usage("chat", "m", 5, 2, None, 0.5), message_id=reply)
    assert len(usage.of_reply(tx, session_id, reply)) == 1
    assert usage.totals(tx, "ana")[0].prompt_tokens == 5


def test_evidence_proves_memories(tx, own) -> None:
    _, (said,) = talk(tx, own, "I live in Lisbon")
    lisbon = add(tx, own, "Lisbon")
    changes.add_evidence(tx, lisbon, [(said, 10, "Lisbon")])
    (proof,) = changes.evidence_of_memory(tx, lisbon)
    assert proof.quote == "Lisbon" and changes.evidence_of_memories(tx, [lisbon]) == {
        lisbon: [proof]
    }
    assert changes.messages_of(tx, lisbon) == {said}
    assert changes.proved_memories(tx, [said]) == [lisbon]
    assert [one.memory.value for one in changes.taught_by(tx, [said])] == ["Lisbon"]
    changes.update_quotes(tx, said, "I live in ██████")
    assert changes.evidence_of_memory(tx, lisbon)[0].quote == "██████"


def test_proposals_keep_what_is_not_stored(tx, own) -> None:
    session_id, (said,) = talk(tx, own, "I may live in Lisbon")
    words = {"memory_type": "profile", "key": "city", "value": "Lisbon", "message_id": said}
    held = Proposal("unsure", **words, cues=("town",), status="unchecked")
    assert proposals.add(tx, own, held) is None
    assert proposals.add(tx, own, held) == "pending"
    (item,) = proposals.listed(tx, own)
    assert (item.status, item.session_id, item.cues) == ("pending", session_id, ("town",))
    assert proposals.get(tx, [own], item.id) == item
    assert proposals.awaiting_second_look(tx, session_id) == [item]
    assert proposals.sessions_awaiting_second_look(tx, "ana") == [session_id]
    assert proposals.in_scopes(tx, [own]) == proposals.of_session(tx, session_id) == [item]
    proposals.leave_to_person(tx, item.id, "still unsure")
    assert proposals.awaiting_second_look(tx, session_id) == []
    assert proposals.words_of(proposals.listed(tx, own)[0]) == "Lisbon\nstill unsure"
    proposals.change(tx, item.id, status="rejected")
    assert proposals.add(tx, own, held) == "rejected"
    proposals.remove(tx, [item.id])
    proposals.add(tx, own, held)
    proposals.remove_of_messages(tx, [said])
    assert proposals.listed(tx, own) == []
    proposals.add_refused(tx, own, session_id, [Proposal("a guess", **words)])
    proposals.remove_refused(tx, session_id, read_to=0)
    assert proposals.in_scopes(tx, [own]) == []
    bare = Proposal("a guess", key="x", value="y")
    proposals.add_refused(tx, own, session_id, [Proposal("a guess", **words), bare, bare])
    one, _ = proposals.listed(tx, own, "refused")
    assert (one.status, one.session_id, one.message_id) == ("refused", session_id, said)
    assert proposals.add(tx, own, bare) is None, "it was never asked"
    proposals.remove_refused(tx, session_id)
    assert proposals.listed(tx, own, "refused") == [one]
    proposals.remove_of_messages(tx, [said])
    assert [p.status for p in proposals.in_scopes(tx, [own])] == ["pending"]


def test_tombstones_cues_and_other_mentions(tx, own) -> None:
    lisbon, mark = add(tx, own, "Lisbon", cues=("sea", "town")), ("value", "Lisbon")
    tombstones.add(tx, own, lisbon, [mark], NOON)
    assert tombstones.any_in(tx, own) and tombstones.find(tx, [own], [mark]) == {mark: NOON}
    tombstones.remove(tx, [own], [mark])
    tombstones.remove_of_memory(tx, lisbon)
    assert not tombstones.any_in(tx, own)
    assert wording.strip_cues(tx, [own], [("town", "sea")]) == {lisbon}
    told = add(tx, own, "Faro", sentence="You live in Faro, by the harbour.")
    wording.strip_sentences(tx, [own], [("home", "harbour")])
    assert memories.by_ids(tx, [own], [told])[told].sentence is None
    session_id, (said,) = talk(tx, own, "Olá Lisbon")
    sessions.set_description(tx, session_id, "Trip", None)
    messages.exclude(tx, [said])
    assert own in apps.related_ids(tx, own)
    there = mentions.find(tx, [memories.by_ids(tx, [own], [lisbon])[lisbon]]).places
    assert [(place.kind, place.id) for place in there] == [("message", said)]


def test_the_keyword_index_is_searched_and_repaired(tx, own) -> None:
    lisbon = add(tx, own, "Lisbon")
    words = keywords.query_terms("Where is Lisbon?")
    assert words == [keywords.folded("Lisbon")] and "lisbon" in keywords.stems(["lisbon"])
    assert [i for i, _ in keywords.matches(tx, "fact", [own], words).best(5)] == [lisbon]
    assert keywords.rows_holding_all(tx, "fact", [own], ["lisbon", "city"]) == {lisbon}
    assert keywords.is_held_by_more(tx, "fact", [own], "lisbon", 0)
    assert keywords.ids(tx, "fact", own) == {lisbon}
    assert repair.keyword_counts(tx)[0] == ("fact", 1, 1)
    remove_words(tx, "fact", [lisbon])
    assert repair.wrong_keyword_rows(tx) == {keywords.passage_id("fact", lisbon)}
    assert repair.repair_keywords(tx) == 1
    write_words(tx, "fact", lisbon, own, "city Porto")
    keywords.scrub(tx)


def test_vectors_belong_to_a_service(tx, own) -> None:
    lisbon, porto = add(tx, own, "Lisbon"), add(tx, own, "Porto")
    used = embeddings.register_service(tx, SERVICE)
    embeddings.use_service(tx, used)
    assert embeddings.in_use(tx) == embeddings.service_state(tx)[0] == used
    assert embeddings.service_exists(tx, used)
    assert embeddings.get_service(tx, used) == SERVICE == embeddings.all_services(tx)[used]
    facts = {i: keywords.passage_id("fact", i) for i in (lisbon, porto)}
    assert passages.unqueued(tx, used, own, "fact") == [lisbon, porto], "there was no service yet"
    assert passages.to_embed(tx, used, facts.values())[facts[porto]][1] == "city Porto"
    assert passages.wants_vectors(tx)
    key = passages.hashes(tx, "fact", [lisbon])[lisbon]
    embeddings.put(tx, used, [(key, VECTOR), (embeddings.query_hash("q"), VECTOR)])
    assert embeddings.exist_for(tx, used) and [*embeddings.get(tx, used, [key])] == [key]
    assert embeddings.exists(tx, used, key) and not embeddings.exists(tx, used, "0")
    assert passages.to_embed(tx, used, facts.values())[facts[lisbon]] == (key, None)
    held = embeddings.of_kind(tx, used, "fact", own)
    assert (held.ids, held.waiting, held.vectors.shape) == ([lisbon], [porto], (1, 4))
    assert passages.embedded_ids(tx, used, own, "fact") == {lisbon}
    assert (own, 2, 1) in passages.coverage(tx, used, "fact")
    session_id, (said,) = talk(tx, own, "I live in Lisbon")
    messages.set_texts(tx, session_id, {said: "city Lisbon"})
    sessions.set_description(tx, session_id, None, "city Lisbon")
    passages.put_text(tx, "summary", session_id, own, "city Lisbon")
    assert [row[:3] for row in embeddings.of_turns(tx, used, own)] == [(said, session_id, True)]
    assert embeddings.of_kind(tx, used, "summary", own).ids == [session_id]
    assert passages.count_lacking(tx, used) == 1 and passages.count_wanting(tx) == 4
    texts = passages.texts(tx, "fact", [porto])
    assert passages.next_lacking(tx, used, 0, 9) == texts
    passages.queue_lacking(tx, used)
    assert jobs.of_memories(tx, [lisbon, porto], NOON)[porto].status == "pending"
    assert passages.unqueued(tx, used, own, "fact") == []
    assert passages.of_memories(tx, [lisbon])[lisbon].status == "completed"
    assert embeddings.query_hash("q") in passages.unused_hashes(tx)
    passages.remove_unused(tx, [embeddings.query_hash("q")])
    coming = embeddings.register_service(tx, Service("test", "other", 4, 100))
    embeddings.set_coming(tx, coming)
    embeddings.take_lease(tx, "host:1:1")
    assert embeddings.coming(tx) == coming and embeddings.lease(tx)[0] == "host:1:1"
    embeddings.release_lease(tx, "host:1:1")
    embeddings.clear_coming(tx)
    assert [info.vectors for info in embeddings.service_infos(tx, {}) if info.id == used] == [1]
    assert embeddings.remove_vectors(tx, used, 9) == 1
    embeddings.remove_service(tx, used)
    assert list(embeddings.all_services(tx)) == [coming] and embeddings.coming(tx) is None


def test_figures_and_single_values(tx, own) -> None:
    add(tx, own, "Lisbon")
    talk(tx, own, "I live in Lisbon")
    found = audit.insights(tx.within(own), 5)
    assert found.kept == found.said == {TODAY: 1}
    assert found.types == {"profile": 1}
    assert found.keys | found.states == {"city": 1, "in use": 1}
    assert found.most_used == () and found.never_used == 1
    assert jobs.in_apps(tx, [own]) == {"waiting": 0, "done": 0, "failed": 0}
    records.put(tx, "colour", "blue")
    assert records.get(tx, "colour") == "blue" and records.store_id(tx) == records.store_id(tx)
    records.remove(tx, "colour")
    assert datetime.fromisoformat("2026-05-01T12:00:00.000000Z") == NOON
