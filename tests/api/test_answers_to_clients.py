"""What a person answers to programs that ask to forget a memory, or to keep it in every app."""

from __future__ import annotations

import pytest

from memchat.errors import InputError
from tests.support.leftovers import files_with, rows_with

APP = "Claude Desktop"


@pytest.fixture
def ana(mc):
    return mc.user("ana")


@pytest.fixture
def trusted(ana):
    return ana.client(APP, "trust")


def values(user, **kwargs) -> list[str]:
    return [memory.value for memory in user.memories.list(**kwargs)]


def asked_to_forget(ana, trusted, *cities: str) -> list[int]:
    """The inbox items of a program that asks to forget these."""
    ids = [ana.memories.add("fact", f"city_{n}", city).id for n, city in enumerate(cities)]
    return [trusted.forget(memory_id).inbox_id for memory_id in ids]


def test_a_yes_to_forgetting_purges_before_it_returns(mc, ana, trusted) -> None:
    (item,) = asked_to_forget(ana, trusted, "Portosanto")
    assert "forget" not in [job.kind for job in mc.jobs.list(user="ana")]  # no work before a yes
    ana.inbox.accept(item)
    assert not rows_with(mc, "Portosanto") and not files_with(mc, "Portosanto")


def test_a_yes_to_forgetting_can_be_undone_while_it_is_held(mc, ana, trusted, clock) -> None:
    first, second = asked_to_forget(ana, trusted, "Portosanto", "Funchal")
    held = ana.inbox.accept(first, hold=10)
    ana.inbox.accept(second, hold=10)
    mc.jobs.run()
    assert rows_with(mc, "Portosanto") and values(ana) == []
    ana.memories.restore(held.id)
    clock.advance(seconds=11)
    mc.jobs.run()
    assert values(ana) == ["Portosanto"] and not rows_with(mc, "Funchal")


def test_a_yes_to_many_leaves_out_what_cannot_be_taken_back(ana, trusted) -> None:
    (item,) = asked_to_forget(ana, trusted, "Porto")
    tea = ana.client("Stranger").remember("preference", "drinks", "tea").inbox_id
    done = ana.inbox.accept_many([item, tea])
    assert [one.id for one in done.items] == [tea]
    assert "say yes to this one by itself" in done.failed[item]
    assert values(ana) == ["tea"] and [one.id for one in ana.inbox.list()] == [item]


def test_a_no_to_forgetting_is_taken_back(mc, ana, trusted) -> None:
    (item,) = asked_to_forget(ana, trusted, "Portosanto")
    done = ana.inbox.reject_many([item])
    assert values(ana) == ["Portosanto"]
    assert [one.id for one in ana.inbox.take_back(done)] == [item]
    assert values(ana) == [] and not ana.search("Portosanto").hits
    ana.inbox.accept(item)
    assert not rows_with(mc, "Portosanto")


def test_a_yes_to_keeping_it_in_every_app_is_taken_back(mc, ana, trusted) -> None:
    kept = ana.memories.add("profile", "city", "Porto")
    item = trusted.promote(kept.id).inbox_id
    done = ana.inbox.accept_many([item])
    work = mc.user("ana", app="work")
    assert values(work) == ["Porto"]
    assert [one.id for one in ana.inbox.take_back(done)] == [item]
    assert values(work) == [] and values(ana) == ["Porto"]
    assert not work.search("Porto").hits and ana.search("Porto").hits[0].id == kept.id
    assert ana.memories.get(kept.id).app == "default"


def test_after_a_no_the_program_neither_hides_it_again_nor_asks_again(ana, trusted) -> None:
    kept = ana.memories.add("profile", "city", "Porto")
    for ask in (trusted.forget, trusted.promote):
        ana.inbox.reject(ask(kept.id).inbox_id)
        assert ask(kept.id).status == "refused"
    assert values(ana) == ["Porto"] and ana.inbox.list() == []


def test_bringing_a_memory_back_is_a_no_to_the_program(ana, trusted) -> None:
    kept = ana.memories.add("profile", "city", "Porto")
    trusted.forget(kept.id)
    ana.memories.restore(kept.id)
    assert values(ana) == ["Porto"] and ana.inbox.list() == []
    assert trusted.forget(kept.id).status == "refused"


def test_a_request_to_forget_is_answered_though_its_memory_stayed_in_use(mc, ana, trusted) -> None:
    *_, item = asked_to_forget(ana, trusted, *(f"value {n}" for n in range(10)), "Portosanto")
    assert "Portosanto" in values(ana)
    ana.inbox.accept(item)
    assert not rows_with(mc, "Portosanto")


def test_a_memory_names_the_program_that_stored_it(ana, trusted) -> None:
    stored = trusted.remember("preference", "drinks", "green tea").memory
    mine = ana.memories.add("profile", "city", "Porto")
    assert ana.clients.of_memories([stored.id, mine.id]) == {stored.id: APP}
    (proof,) = ana.memories.evidence(stored.id)
    assert proof.client == APP


def test_a_request_cannot_be_answered_in_other_words(ana, trusted) -> None:
    (item,) = asked_to_forget(ana, trusted, "Porto")
    with pytest.raises(InputError, match="without other words"):
        ana.inbox.accept(item, value="Faro")
    assert [one.id for one in ana.inbox.list()] == [item]
