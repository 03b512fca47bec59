"""What the second look calls a secret: nothing of it is kept, whatever it is called."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from memchat.errors import ProviderError
from memchat.learn.model_calls import SECRET
from memchat.testing import Request
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.leftovers import rows_with
from tests.support.second_look import judge, looks, sent, values
from tests.support.store import Opener

SAID = "Minun salasanani on auringonkukka, ja asun Turussa."
TOLD = fact("Minun salasanani on auringonkukka", "salasana", "auringonkukka")
TOWN = fact("asun Turussa", "city", "Turussa")
WORD = "auringonkukka"
DOWN = ProviderError("down", status=503, retryable=True)


def said_of(**answers: Any):
    """A judge by key, and of title and summary by name."""
    by_key = judge(**answers)

    def look(request: Request) -> str:
        verdicts = json.loads(by_key(request))["verdicts"]
        own = [name for name in ("title", "summary") if name in sent(request)]
        verdicts += [{"id": name, "answer": answers.get(name, "holds")} for name in own]
        return json.dumps({"verdicts": verdicts})

    return look


def kept(mc) -> list[str]:
    """Where the secret stands, apart from the conversation itself and its search rows."""
    rows = [row for row in rows_with(mc, WORD) if not row.startswith('insert into "messages')]
    return [row for row in rows if not is_of_turn(row)]


def is_of_turn(row: str) -> bool:
    """Whether it is a row of the passages, or of their keyword index, that a turn has."""
    if re.match(r"""insert into "passages_fts" values\('\d+[tr]""", row):
        return True
    found = re.match(r'insert into "passages\w*" values\((\d+),', row)
    return found is not None and int(found[1]) & 3 == 1


def test_a_secret_by_any_name_leaves_the_reason_alone(mc, extract_model) -> None:
    extract_model.replies.append(answer(TOLD, TOWN))
    extract_model.second_look = said_of(salasana="secret", city="holds")
    chat = talk(mc, SAID)
    assert values(mc) == {"Turussa"} and mc.user("ana").inbox.list() == []
    (refused,) = mc.user("ana").inbox.refusals()
    assert (refused.reason, refused.key, refused.value) == (SECRET, None, None)
    assert WORD not in repr(chat.learned) and kept(mc) == []


@pytest.mark.parametrize("more", [{}, {"flags": ["sensitive"]}])
def test_no_other_proposal_gives_it_away(mc, extract_model, more) -> None:
    whole = fact(SAID.rstrip("."), "home", "Turussa", **more)
    repeats = fact("asun Turussa", "note", f"asun Turussa, {WORD}", **more)
    cued = {**TOWN, "cues": [WORD, "koti"]}
    extract_model.replies.append(answer(TOLD, whole, repeats, cued))
    extract_model.second_look = said_of(
        salasana="secret", home="holds", note="unclear", city="holds"
    )
    talk(mc, SAID)
    assert values(mc) == {"Turussa"} and kept(mc) == []
    assert {one.reason for one in mc.user("ana").inbox.refusals()} == {SECRET}


def test_what_waits_for_the_person_is_no_place_for_a_secret(mc, extract_model) -> None:
    extract_model.replies.append(answer({**TOLD, "flags": ["sensitive"]}))
    extract_model.second_look = said_of(salasana="secret")
    talk(mc, SAID)
    assert mc.user("ana").inbox.list() == [] and kept(mc) == []


def test_the_sentence_beside_a_secret_is_not_shown_in_the_inbox(mc, extract_model) -> None:
    extract_model.replies.append(answer(TOLD, {**TOWN, "flags": ["sensitive"]}))
    extract_model.second_look = said_of(salasana="secret", city="holds")
    talk(mc, SAID)
    (item,) = mc.user("ana").inbox.list()
    assert (item.value, item.quote, item.around) == ("Turussa", "asun Turussa", None)
    assert kept(mc) == []


def test_title_and_summary_are_looked_at_where_nothing_else_is_proposed(mc, extract_model) -> None:
    extract_model.replies.append(answer(title=f"Salasana {WORD}", summary="Ana asuu Turussa."))
    extract_model.second_look = said_of(title="secret")
    talk(mc, SAID)
    (request,) = looks(extract_model)
    assert sent(request)["title"] == f"Salasana {WORD}" and sent(request)["candidates"] == []
    (session,) = mc.user("ana").sessions.list()
    assert (session.title, session.summary) == (None, "Ana asuu Turussa.")
    assert kept(mc) == [], "nor do the first words stand in its place"


def test_a_summary_that_gives_a_named_secret_away_is_dropped_though_it_was_let_pass(
    mc, extract_model
) -> None:
    extract_model.replies.append(answer(TOLD, title="Turku", summary=f"Se on {WORD}."))
    extract_model.second_look = said_of(salasana="secret")
    talk(mc, SAID)
    (session,) = mc.user("ana").sessions.list()
    assert (session.title, session.summary) == ("Turku", None) and kept(mc) == []


def test_of_a_long_conversation_the_number_in_a_summary_is_shown_in_its_place(
    mc, extract_model
) -> None:
    filler = ["Some words about nothing. " * 40 for _ in range(5)]
    extract_model.replies.append(answer(title="A card", summary="It is 417."))
    talk(mc, *filler[:3], "The three digits on its back are 417.", *filler[3:])
    (request,) = looks(extract_model)
    shown = {one["id"]: one["text"] for one in sent(request)["messages"]}
    assert "417" in shown["u7"] and "u1" not in shown


def test_a_title_is_not_looked_at_where_the_look_is_off(open_store: Opener, extract_model) -> None:
    mc = open_store(verify="off")
    extract_model.replies.append(answer(title="Turku", summary="Ana asuu Turussa."))
    talk(mc, SAID)
    assert looks(extract_model) == []
    assert mc.user("ana").sessions.list()[0].title == "Turku"


def test_a_title_that_a_person_gave_is_not_looked_at(mc, extract_model) -> None:
    with mc.user("ana").chat() as chat:
        assert chat.send(SAID).read()
        mc.user("ana").sessions.rename(chat.session_id, "Mine")
        extract_model.replies.append(answer(title="Turku"))
    assert looks(extract_model) == []
    assert mc.user("ana").sessions.list()[0].title == "Mine"


def test_a_late_look_takes_secrets_back_everywhere(mc, extract_model, clock) -> None:
    def fails(_: Request) -> str:
        raise DOWN

    ana = mc.user("ana")
    extract_model.second_look = fails
    title, summary = f"Salasana {WORD}", "Ana asuu Turussa."
    extract_model.replies.append(answer(TOLD, title=title, summary=summary))
    talk(mc, SAID)
    assert [item.value for item in ana.inbox.list()] == [WORD]
    extract_model.second_look = said_of(salasana="secret")
    clock.advance(seconds=60)
    (learned,) = mc.jobs.run().learned
    assert WORD not in repr(learned)
    assert ana.inbox.list() == [] and [one.reason for one in ana.inbox.refusals()] == [SECRET]
    assert ana.sessions.list()[0].title is None
    assert ana.sessions.list()[0].summary == summary and kept(mc) == []


def test_after_a_failed_look_the_title_is_looked_at_later_though_nothing_waits(
    mc, extract_model, clock
) -> None:
    def fails(_: Request) -> str:
        raise DOWN

    extract_model.second_look = fails
    extract_model.replies.append(answer(title=f"Salasana {WORD}"))
    talk(mc, SAID)
    extract_model.second_look = said_of(title="secret")
    clock.advance(seconds=60)
    mc.jobs.run()
    assert mc.user("ana").sessions.list()[0].title is None and kept(mc) == []
