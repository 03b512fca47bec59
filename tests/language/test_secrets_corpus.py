from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lifecycle import secrets
from memchat.config import load
from memchat.errors import ConfigError, InputError
from memchat.language.secrets import find_answered, find_secrets, mask
from memchat.search import render
from memchat.types import Message
from tests.support.answers import answer, fact
from tests.support.secrets import SECRET
from tests.support.store import Opener

HARMLESS = [
    "my locker is number 12 on the third floor",
    "I was born in 1984 and paid 1,200 euros",
    "ISBN 978-3-16-148410-0",
    "the flat is at Elm Road 221, postal code 10115",
    "I have been learning to code since 2019",
    "the meeting is on 2026-11-20 at 10:40",
    "my area code is 030",
    "I wrote 12000 lines of code in 2024",
    "order 1234567890123 is late",
    "I run 10-15 km and weigh 72.5 kg",
    "my secret ingredient is cumin",
    "the Wi-Fi password is on the fridge",
    "the model is GPT-4 with 128000 tokens",
    "flight LH 1234 at 18:05, seat 22A",
    "my phone is a Pixel 9",
    "I live on the 14th floor, door 1402",
    "version 3.11.7 of Python",
    "my score was 3,141,592 points",
    "Ich bin 1,83 m groß und 75 kg schwer",
    "el 15 de octubre de 2026 a las 9:30",
    "我住在3号楼1204室",
    "a combination of 3 spices",
    "it cost me 250000 a year",
    "order 811228-9871 and 131052-308U",
    "ticket 44051401350 of build 2026.11.20-100.22",
    "part 756-9217-0769, model XPS9560",
]


@pytest.mark.parametrize(("text", "hidden", "kind"), SECRET)
def test_a_secret_is_found_and_masked(text: str, hidden: str, kind: str) -> None:
    assert kind in {secret.kind for secret in find_secrets(text)}
    assert hidden not in mask(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_numbers_are_no_secrets(text: str) -> None:
    assert find_secrets(text) == []
    assert mask(text) == text


def test_full_width_and_zero_width_do_not_hide_a_secret() -> None:
    assert "4821" not in mask("my PIN is 48\u200b21").replace("\u200b", "")
    assert find_secrets("my PIN is ４８２１")


def test_only_the_secret_is_masked() -> None:
    assert mask("My locker code is 7741, it is number 12.") == (
        "My locker code is [password], it is number 12."
    )


@given(st.text(max_size=80))
def test_masked_text_is_never_broken_and_offsets_stay_inside(text: str) -> None:
    end = 0
    for secret in find_secrets(text):
        assert end <= secret.start < secret.end <= len(text)
        end = secret.end
    mask(text)


@given(st.lists(st.integers(0, 9), min_size=15, max_size=15))
def test_every_card_number_with_its_check_digit_is_found(digits: list[int]) -> None:
    total = sum(
        (d * 2 - 9 if d * 2 > 9 else d * 2) if i % 2 == 0 else d
        for i, d in enumerate(reversed(digits))
    )
    number = "".join(map(str, [*digits, -total % 10]))
    if len(set(number)) > 1:
        assert find_secrets(f"my card {number}")


def test_the_corpus_is_as_large_as_it_claims() -> None:
    rows = secrets.corpus()
    assert sum(row["kind"] != "harmless" for row in rows) >= 120
    assert sum(row["kind"] == "harmless" for row in rows) >= 40
    assert len({row["lang"] for row in rows}) >= 8


@pytest.mark.slow
def test_no_secret_is_readable_anywhere_but_in_the_transcript() -> None:
    outcomes = secrets.run(secrets.corpus())
    assert {one.row["id"]: one.places for one in outcomes if one.places} == {}
    # Harmless words are rarely taken for a secret.
    harmless = [one for one in outcomes if one.harmless]
    assert sum(one.alarmed for one in harmless) <= secrets.FALSE_ALARMS * len(harmless)


def test_half_of_a_secret_is_not_stored_either() -> None:
    ids = ("s285", "s288", "s505", "s508", "s533")
    rows = [row for row in secrets.corpus(secrets.DEVELOPED_ON) if row["id"] in ids]
    assert {one.row["id"]: one.places for one in secrets.run(rows)} == dict.fromkeys(ids, ())


def test_what_another_line_says_is_no_secret_that_was_stored() -> None:
    secret = {"id": "one", "kind": "pin", "text": "My PIN is 4471.", "secret": "4471"}
    bus = {"id": "two", "kind": "harmless", "text": "I take bus 4471.", "value": "bus 4471"}
    assert [one.places for one in secrets.run([secret, bus])] == [(), ()]


@pytest.mark.slow
def test_few_secrets_of_lines_that_no_rule_was_made_for_are_stored() -> None:
    held_out = secrets.run(secrets.corpus(secrets.HELD_OUT))
    secret = [one for one in held_out if not one.harmless]
    stored = [one.row["id"] for one in secret if one.places]
    assert len(secret) == 60
    assert len(stored) <= secrets.STORED * len(secret), stored
    # Hardly a harmless line that no rule was made for is taken for a secret.
    harmless = [one for one in held_out if one.harmless]
    alarms = [one.row["text"] for one in harmless if one.alarmed]
    assert len(harmless) == 60
    assert len(alarms) <= secrets.FALSE_ALARMS * len(harmless), alarms


def test_the_runner_sees_a_secret_that_was_stored() -> None:
    stored = {
        ("4821", "inbox", "starts with 4821"): True,
        ("4821-7730", "memories", "7730"): True,
        ("4821", "memories", "order 94821"): False,
    }
    for (secret, table, words), seen in stored.items():
        assert bool(secrets.places(secret, [(table, words)])) is seen, words


def test_an_explicit_remember_my_e_mail_asks_with_a_masked_value(mc, extract_model) -> None:
    ana = mc.user("ana")
    said = "Remember my e-mail is rosa@example.net."
    extract_model.replies.append(answer(fact(said, "email", "rosa@example.net", flags=["asked"])))
    with ana.chat() as chat:
        assert chat.send(said).read()
    assert ana.memories.list() == []
    (item,) = ana.inbox.list()
    assert item.masked and "rosa" not in f"{item.value}{item.quote}{item.reason}"
    assert item.message_id is not None
    with pytest.raises(InputError, match="say the value again"):
        ana.inbox.accept(item.id)
    assert ana.inbox.accept(item.id, value="rosa@example.net").value == "rosa@example.net"


def test_an_earlier_turn_is_recalled_with_its_secrets_masked(clock) -> None:
    def shown(words: str) -> str:
        return render.past_turn(Message(1, 1, "user", words, clock()), ZoneInfo("UTC"))

    assert "4821" not in shown("My PIN is 4821, and I like trams.")
    assert "trams" in shown("My PIN is 4821, and I like trams.")
    assert "4821" not in shown("4821")
    assert "sk-abcd" not in shown("x " * 190 + "sk-abcdEFGH1234ijklMNOP5678")


def test_a_bare_answer_to_a_question_for_a_secret_is_one() -> None:
    assert find_answered("And your PIN?", "4821")
    assert find_answered("Wie lautet das Passwort?", "Apfel9")
    assert not find_answered("How many trams are there?", "4821")


def test_secrets_are_masked_before_the_extraction_call_when_the_setting_says_so(
    open_store: Opener, extract_model
) -> None:
    mc = open_store(mask_before_extraction=True)
    ana = mc.user("ana")
    said = "My PIN is 4821 and my mail is rosa@example.net. I live in Bergen."
    extract_model.replies.append(answer(fact("I live in Bergen", "city", "Bergen")))
    with ana.chat() as chat:
        assert chat.send(said).read()
    (read, *_) = [one for one in extract_model.requests if one.purpose == "extract"]
    sent = "".join(m.content for m in read.messages)
    assert "4821" not in sent and "rosa@" not in sent
    assert "[password]" in sent and "[e-mail]" in sent
    (memory,) = ana.memories.list()
    (proof,) = ana.memories.evidence(memory.id)
    assert (proof.quote, proof.start) == ("I live in Bergen", said.index("I live in Bergen"))


def test_nothing_is_masked_in_the_call_by_default(mc, extract_model) -> None:
    extract_model.replies.append(answer())
    with mc.user("ana").chat() as chat:
        assert chat.send("My PIN is 4821.").read()
    assert "4821" in extract_model.requests[-1].messages[1].content


def test_the_setting_is_read_from_the_environment() -> None:
    assert load({"MEMCHAT_MASK": "on"}).mask_before_extraction
    assert not load({}).mask_before_extraction
    with pytest.raises(ConfigError, match="MEMCHAT_MASK"):
        load({"MEMCHAT_MASK": "maybe"})
