from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lifecycle import secrets
from benchmarks.lifecycle.secrets import Outcome
from memchat.config import load
from memchat.errors import ConfigError, InputError
from memchat.language.secrets import find_answered, find_secrets, mask
from memchat.memory.recall import render
from memchat.types import Message
from tests.conftest import Opener, answer, fact

SECRET = [
    ("the locker code is 7741", "7741", "password"),
    ("my PIN is 4821", "4821", "password"),
    ("PIN: 4821", "4821", "password"),
    ("my password is hunter2", "hunter2", "password"),
    ("wifi password: correct-horse", "correct-horse", "password"),
    ("mein Passwort lautet Sommer2024!", "Sommer2024!", "password"),
    ("mi contraseña es gato_99", "gato_99", "password"),
    ("mon mot de passe est loutre77", "loutre77", "password"),
    ("şifrem 4455", "4455", "password"),
    ("密码是abc123", "abc123", "password"),
    ("パスワードは neko2024 です", "neko2024", "password"),
    ("my garage door code is #9921", "9921", "password"),
    ("use sk-abcdEFGH1234ijklMNOP5678", "sk-abcdEFGH1234ijklMNOP5678", "key"),
    ("AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP", "key"),
    ("ghp_abcdefghijklmnopqrstuvwxyz012345", "ghp_abcdefghijklmnopqrstuvwxyz012345", "key"),
    ("AIzaSyA-abcdefghijklmnopqrstuvwxyz12", "AIzaSyA-abcdefghijklmnopqrstuvwxyz12", "key"),
    ("postgres://ana:s3cret@db.local/x", "s3cret", "key"),
    ("card 4111 1111 1111 1111", "4111 1111 1111 1111", "card"),
    ("card 5500-0000-0000-0004.", "5500-0000-0000-0004", "card"),
    ("DE89 3704 0044 0532 0130 00 is my account", "DE89 3704 0044 0532 0130 00", "bank account"),
    ("GB82WEST12345698765432", "GB82WEST12345698765432", "bank account"),
    ("write to ana.ruiz@example.org", "ana.ruiz@example.org", "e-mail"),
    ("ana (at) example (dot) org", "ana (at) example (dot) org", "e-mail"),
    ("call +49 170 1234567", "+49 170 1234567", "phone"),
    ("my phone number is 555 0123 99", "555 0123 99", "phone"),
    ("(212) 555-0123", "212) 555-0123", "phone"),
    ("my SSN is 123-45-6789", "123-45-6789", "id number"),
    ("passport number X1234567", "X1234567", "id number"),
    ("DNI 12345678Z", "12345678Z", "id number"),
    ("CPF 529.982.247-25", "529.982.247-25", "id number"),
    ("10000000146", "10000000146", "id number"),
]
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


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    return secrets.run(tmp_path_factory.mktemp("secrets"), secrets.corpus())


def test_the_corpus_is_as_large_as_it_claims() -> None:
    rows = secrets.corpus()
    assert sum(row["kind"] != "harmless" for row in rows) >= 120
    assert sum(row["kind"] == "harmless" for row in rows) >= 40
    assert len({row["lang"] for row in rows}) >= 8


def test_no_secret_is_readable_anywhere_but_in_the_transcript(outcomes) -> None:
    assert {one.row["id"]: one.places for one in outcomes if one.places} == {}


def test_harmless_words_are_rarely_taken_for_a_secret(outcomes) -> None:
    harmless = [one for one in outcomes if one.harmless]
    assert sum(one.alarmed for one in harmless) <= secrets.FALSE_ALARMS * len(harmless)


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    return secrets.run(tmp_path_factory.mktemp("held-out"), secrets.corpus(secrets.HELD_OUT))


def test_few_secrets_of_lines_that_no_rule_was_made_for_are_stored(held_out) -> None:
    secret = [one for one in held_out if not one.harmless]
    stored = [one.row["id"] for one in secret if one.places]
    assert len(secret) == 60
    assert len(stored) <= secrets.STORED * len(secret), stored


def test_hardly_a_harmless_line_that_no_rule_was_made_for_is_taken_for_a_secret(held_out) -> None:
    harmless = [one for one in held_out if one.harmless]
    alarms = [one.row["text"] for one in harmless if one.alarmed]
    assert len(harmless) == 60
    assert len(alarms) <= secrets.FALSE_ALARMS * len(harmless), alarms


def test_the_runner_sees_a_secret_that_was_stored() -> None:
    assert secrets._places("4821", [("inbox", "starts with 4821")])
    assert secrets._places("4821-7730", [("memories", "7730")])
    assert not secrets._places("4821", [("memories", "order 94821")])


def test_an_explicit_remember_my_e_mail_asks_with_a_masked_value(mc, extract_model) -> None:
    ana = mc.user("ana")
    said = "Remember my e-mail is rosa@example.net."
    extract_model.replies.append(answer(fact(said, "email", "rosa@example.net", flags=["asked"])))
    with ana.chat() as chat:
        assert chat.send(said).text
    assert ana.memories.list() == []
    (item,) = ana.inbox.list()
    assert item.masked and "rosa" not in f"{item.value}{item.quote}{item.reason}"
    assert item.message_id is not None
    with pytest.raises(InputError, match="--value"):
        ana.inbox.accept(item.id)
    assert ana.inbox.accept(item.id, value="rosa@example.net").value == "rosa@example.net"


def test_an_earlier_turn_is_recalled_with_its_secrets_masked(clock) -> None:
    def shown(words: str) -> str:
        return render.moment(Message(1, 1, "user", words, clock()), ZoneInfo("UTC"))

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
        assert chat.send(said).text
    sent = "".join(m.content for m in extract_model.requests[-1].messages)
    assert "4821" not in sent and "rosa@" not in sent
    assert "[password]" in sent and "[e-mail]" in sent
    (memory,) = ana.memories.list()
    (proof,) = ana.memories.evidence(memory.id)
    assert (proof.quote, proof.start) == ("I live in Bergen", said.index("I live in Bergen"))


def test_nothing_is_masked_in_the_call_by_default(mc, extract_model) -> None:
    extract_model.replies.append(answer())
    with mc.user("ana").chat() as chat:
        assert chat.send("My PIN is 4821.").text
    assert "4821" in extract_model.requests[-1].messages[1].content


def test_the_setting_is_read_from_the_environment() -> None:
    assert load({"MEMCHAT_MASK": "on"}).mask_before_extraction
    assert not load({}).mask_before_extraction
    with pytest.raises(ConfigError, match="MEMCHAT_MASK"):
        load({"MEMCHAT_MASK": "maybe"})
