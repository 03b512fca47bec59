"""What a program remembers with the person's own words from a stored conversation: the gate
decides, whatever the program's mode."""

from __future__ import annotations

from datetime import date

import pytest

from memchat.errors import InputError, NotFound
from memchat.types import SessionQuote
from tests.support.answers import answer

TALK = [
    {"role": "user", "content": "I live in Porto."},
    {"role": "assistant", "content": "Porto is lovely. You own a red bicycle, I believe."},
    {"role": "user", "content": "I go there by train."},
    {"role": "user", "content": "Maybe I will learn the cello."},
]


@pytest.fixture
def ana(mc, extract_model):
    extract_model.replies += [answer()] * 3  # no reading finds anything by itself
    return mc.user("ana")


@pytest.fixture
def stranger(ana):
    return ana.client("Stranger", "ask")


@pytest.fixture
def session_id(ana) -> int:
    return ana.add(TALK, wait=False).session_id


def quoted(client, session_id, words, key="home_city", value="Porto", **days):
    quote = SessionQuote(session_id, words)
    return client.remember("profile", key, value, quote=quote, **days)


def test_what_the_person_said_is_stored_with_their_words_as_its_proof(
    mc, ana, stranger, session_id
) -> None:
    done = quoted(stranger, session_id, "I live in Porto")
    assert done.status == "stored" and done.memory.created_by == "auto"
    (proof,) = ana.memories.evidence(done.memory.id)
    assert (proof.session_id, proof.quote) == (session_id, "I live in Porto")
    (client,) = ana.clients.list()
    assert (client.memories, client.waiting) == (1, 0)
    assert quoted(stranger, session_id, "I live in Porto").status == "known"
    ana.clients.undo("Stranger")  # the person said it themselves, so it stays
    assert [memory.value for memory in ana.memories.list()] == ["Porto"]


@pytest.mark.parametrize(
    ("words", "key", "value", "reason"),
    [
        ("I live in Lyon", "home_city", "Lyon", "in no message of yours"),
        ("You own a red bicycle", "vehicle", "a red bicycle", "the assistant's"),
    ],
)
def test_words_that_the_person_did_not_say_prove_nothing(
    ana, stranger, session_id, words, key, value, reason
) -> None:
    done = quoted(stranger, session_id, words, key, value)
    assert done.status == "refused" and reason in done.reason
    assert list(ana.memories.list(status="all")) == [] and ana.inbox.list() == []


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        ("I live in Porto", "home_city", "Lisbon"),
        ("I will learn the cello", "instrument", "plays the cello"),
    ],
)
def test_what_the_words_do_not_plainly_say_waits_and_after_a_no_is_not_asked_again(
    ana, session_id, words, key, value
) -> None:
    trusted = ana.client("Trusted", "trust")
    done = quoted(trusted, session_id, words, key, value)
    assert done.status == "waiting" and list(ana.memories.list()) == []
    (item,) = ana.inbox.list()
    assert item.id == done.inbox_id and item.quote == words
    ana.inbox.reject(item.id)
    again = quoted(trusted, session_id, words, key, value)
    assert (again.status, again.reason) == ("refused", "the person said no to it before")
    assert ana.inbox.list() == []


def test_a_no_holds_for_every_later_way_of_asking(ana, stranger, session_id) -> None:
    ana.inbox.reject(stranger.remember("profile", "home_city", "Porto").inbox_id)
    assert quoted(stranger, session_id, "I live in Porto").status == "refused"
    trusted = ana.client("Trusted", "trust")
    assert trusted.remember("profile", "home_city", "Porto").status == "refused"
    assert list(ana.memories.list(status="all")) == [] and ana.inbox.list() == []


def test_it_never_replaces_what_the_person_entered(ana, stranger, session_id, clock) -> None:
    ana.memories.add("profile", "home_city", "Faro")
    clock.advance(days=1)
    later = ana.add("I live in Porto.", wait=False).session_id
    done = quoted(stranger, later, "I live in Porto")
    assert done.status == "waiting"
    assert [(one.id, one.value) for one in ana.inbox.list()] == [(done.inbox_id, "Porto")]
    assert [memory.value for memory in ana.memories.list()] == ["Faro"]


def test_a_day_that_the_program_gives_waits_for_the_person(ana, stranger, session_id) -> None:
    until = date(2099, 1, 1)
    done = quoted(stranger, session_id, "I live in Porto", expires_at=until)
    assert done.status == "waiting" and "days" in done.reason
    assert ana.inbox.accept(done.inbox_id).expires_at == until


def test_only_conversations_of_this_person_and_app_can_be_quoted(mc, ana, stranger) -> None:
    foreign = [
        mc.user("bob").add("I live in Porto.", wait=False).session_id,
        mc.user("ana", app="work").add("I live in Porto.", wait=False).session_id,
        10**9,
    ]
    for session_id in foreign:
        with pytest.raises(NotFound, match="no session"):
            quoted(stranger, session_id, "I live in Porto")
    with pytest.raises(InputError, match="quote is empty"):
        quoted(stranger, foreign[0], " ")
    assert list(ana.memories.list(status="all")) == []


def test_what_a_program_said_itself_is_no_quote_of_the_person(ana, stranger) -> None:
    trusted = ana.client("Trusted", "trust")
    trusted.remember("profile", "pet", "a dog")
    own = next(one.session_id for one in ana.clients.list() if one.name == "Trusted")
    assert quoted(stranger, own, "a dog", "pet", "a dog").status == "refused"


def test_words_of_the_person_prove_no_tags_so_these_are_taken_as_the_mode_allows(
    ana, stranger, session_id
) -> None:
    done = quoted(stranger, session_id, "I live in Porto", tags=["home"])
    assert (done.status, done.memory.tags) == ("stored", ())
    assert done.reason == "its tags wait in the person's inbox"
    (item,) = ana.inbox.list()
    assert (item.id, item.tags) == (done.inbox_id, ("home",))
    assert ana.inbox.accept(item.id).tags == ("home",)
    trusted = ana.client("Desk", "trust")
    again = quoted(trusted, session_id, "I live in Porto", tags=["sea"])
    assert again.memory.tags == ("home", "sea")
    ana.clients.undo("Desk")
    assert [(m.value, m.tags) for m in ana.memories.list()] == [("Porto", ("home",))]


def test_tags_wait_with_what_a_quote_does_not_plainly_say(ana, stranger, session_id) -> None:
    ana.memories.add("profile", "home_city", "Lyon")
    words = "Maybe I will learn the cello"
    given = {"key": "hobby", "value": "plays the cello", "tags": ["music"]}
    assert quoted(stranger, session_id, words, **given).memory is None
    assert quoted(stranger, session_id, "I live in Porto", tags=["sea"]).status == "waiting"
    assert [item.tags for item in ana.inbox.list()] == [("music",), ("sea",)]
