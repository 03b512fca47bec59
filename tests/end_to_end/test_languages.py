"""Every language: what is said is learnt, found, recognised when said again, and forgotten."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from memchat import MemChat
from memchat.facts.keys import normalise_key
from memchat.language.sentences import find_span
from memchat.language.text import normal_value, numbers
from memchat.testing import same_answer
from tests.support.answers import answer, fact
from tests.support.slow import slow_but


@dataclass(frozen=True)
class Said:
    """One sentence, the quote and value a model takes from it, and how people look for it."""

    text: str
    quote: str
    value: str
    questions: tuple[str, ...]


LANGUAGES = {
    "French": Said(
        "J'habite à Orléans depuis l'été.",
        "J'habite à Orléans",
        "Orléans",
        ("Orléans", "orleans", "Où est ORLÉANS ?"),
    ),
    "Spanish": Said(
        "Vivo en Cádiz con mi perro.", "Vivo en Cádiz", "Cádiz", ("cadiz", "¿CÁDIZ?")
    ),
    "Portuguese": Said(
        "Eu moro em São João da Madeira.",
        "Eu moro em São João da Madeira",
        "São João da Madeira",
        ("sao joao", "madeira"),
    ),
    "Vietnamese": Said(
        "Tôi sống ở Đà Nẵng với gia đình tôi.",
        "Tôi sống ở Đà Nẵng với gia đình tôi",
        "Đà Nẵng",
        ("Đà Nẵng", "da nang"),
    ),
    "Chinese": Said(
        "我住在苏州,每天骑车上班。", "我住在苏州", "苏州", ("苏州", "你住在苏州吗")
    ),
    "Japanese": Said(
        "私は金沢に住んでいます。", "私は金沢に住んでいます", "金沢", ("金沢", "金沢はどこですか")
    ),
    "Korean": Said("저는 서귀포에 살아요.", "저는 서귀포에 살아요", "서귀포", ("서귀포", "귀포")),
    "Thai": Said(
        "ผมอาศัยอยู่ที่เชียงใหม่กับครอบครัว",
        "ผมอาศัยอยู่ที่เชียงใหม่กับครอบครัว",
        "เชียงใหม่",
        ("เชียงใหม่", "เชียง"),
    ),
    "Arabic": Said(
        "أنا أسكن في مدينة طنطا منذ سنوات.",
        "أنا أسكن في مدينة طنطا",
        "طنطا",
        ("طنطا", "طَنْطَا"),
    ),
    "Hindi": Said(
        "मैं अपने परिवार के साथ पुणे में रहता हूँ।",
        "मैं अपने परिवार के साथ पुणे में रहता हूँ",
        "पुणे",
        ("पुणे", "पुणे कहाँ है"),
    ),
    "Turkish": Said(
        "Ailemle birlikte Iğdır'da yaşıyorum.",
        "Ailemle birlikte Iğdır'da yaşıyorum",
        "Iğdır",
        ("ığdır", "IĞDIR", "igdir"),
    ),
    "Russian": Said(
        "Я живу в Ярославле уже три года.",
        "Я живу в Ярославле",
        "Ярославль",
        ("ЯРОСЛАВЛЬ", "ярославле"),
    ),
    "Greek": Said(
        "Μένω με την οικογένειά μου στη Θεσσαλονίκη.",
        "Μένω με την οικογένειά μου στη Θεσσαλονίκη",
        "Θεσσαλονίκη",
        ("θεσσαλονικη", "ΘΕΣΣΑΛΟΝΊΚΗ"),
    ),
    "Polish": Said(
        "Mieszkam z rodziną w mieście Łódź od roku.",
        "Mieszkam z rodziną w mieście Łódź od roku",
        "Łódź",
        ("łódź", "lodz"),
    ),
}  # fmt: skip


def wide(text: str) -> str:
    """The text as an East Asian keyboard may write it."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


FORMS: dict[str, Callable[[str], str]] = {"NFD": nfd, "capitals": str.upper, "full width": wide}
QUICK = ("Vietnamese", "Japanese", "Arabic", "Turkish")
each_language = pytest.mark.parametrize("language", slow_but(QUICK, LANGUAGES))
each_form = pytest.mark.parametrize("form", FORMS)


def tell(mc: MemChat, model: Any, text: str, *facts: dict[str, Any]) -> int:
    model.replies.append(answer(*facts))
    with mc.user("ana").chat() as chat:
        assert chat.send(text).read()
    return chat.session_id or 0


def told(mc: MemChat, model: Any, said: Said) -> int:
    return tell(mc, model, said.text, fact(said.quote, "city", said.value))


@each_language
def test_what_is_said_is_learnt_with_its_place(mc: MemChat, extract_model, language: str) -> None:
    ana = mc.user("ana")
    said = LANGUAGES[language]
    told(mc, extract_model, said)
    (memory,) = ana.memories.list()
    assert memory.value == said.value
    (proof,) = ana.memories.evidence(memory.id)
    assert proof.quote == said.quote
    assert said.text[proof.start : proof.start + len(proof.quote)] == said.quote


@each_form
@each_language
def test_a_quote_in_another_form_is_still_found_in_the_words_as_they_were_said(
    mc: MemChat, extract_model, language: str, form: str
) -> None:
    ana = mc.user("ana")
    said = LANGUAGES[language]
    tell(mc, extract_model, said.text, fact(FORMS[form](said.quote), "city", said.value))
    (memory,) = ana.memories.list()
    (proof,) = ana.memories.evidence(memory.id)
    assert proof.quote == said.quote


@each_language
def test_it_is_found_by_its_words_with_or_without_their_marks(
    mc: MemChat, extract_model, language: str
) -> None:
    ana = mc.user("ana")
    told(mc, extract_model, LANGUAGES[language])
    ana.memories.add("fact", "other", "zzz")
    for question in LANGUAGES[language].questions:
        found = [hit for hit in ana.search(question).hits if hit.bm25]
        assert [hit.memory.value for hit in found if hit.memory] == [LANGUAGES[language].value], (
            question
        )


@each_form
@each_language
def test_saying_it_again_in_another_form_is_a_repeat(
    mc: MemChat, extract_model, language: str, form: str
) -> None:
    ana = mc.user("ana")
    said, turn = LANGUAGES[language], FORMS[form]
    told(mc, extract_model, said)
    again = Said(turn(said.text), turn(said.quote), turn(said.value), ())
    told(mc, extract_model, again)
    (memory,) = ana.memories.list(status="all")
    assert memory.seen_count == 2 and ana.inbox.list() == []


@each_language
def test_forgetting_blanks_the_words_of_every_script(
    mc: MemChat, extract_model, language: str
) -> None:
    ana = mc.user("ana")
    said = LANGUAGES[language]
    session = told(mc, extract_model, said)
    (memory,) = ana.memories.list()
    ana.memories.delete(memory.id)
    texts = [turn.content for turn in ana.sessions.messages(session)]
    assert not any(find_span(said.quote, text) for text in texts)
    assert said.value not in nfc(texts[0]) and "·" in texts[0]
    assert len(texts[0]) == len(said.text)
    assert not ana.search(said.questions[0]).confident


def test_a_denial_in_korean_or_thai_is_not_taken_for_a_liking(mc: MemChat, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.second_look = lambda request: same_answer(
        request, {"answer": "not", "why": "wrong_slot"}
    )
    for text, value in (("저는 고수를 안 먹어요.", "고수를"), ("ผมไม่ชอบผักชีในอาหาร", "ผักชี")):
        tell(mc, extract_model, text, fact(text.rstrip("."), "food_like", value))
    assert ana.memories.list() == []
    assert [r.value for r in ana.inbox.refusals()] == ["고수를", "ผักชี"]


DIGITS = {
    "Arabic": ("غرفتي هي رقم {} في الفندق", "٤١", "٤٢", "41"),
    "Hindi": ("मेरा कमरा नंबर {} है होटल में", "४१", "४२", "41"),
    "Japanese": ("私の部屋は{}号室です", "４１", "４２", "41"),
    "Thai": ("ห้องของผมคือหมายเลข {} ในโรงแรม", "๔๑", "๔๒", "41"),
    "Persian": ("اتاق من شماره {} در هتل است", "۴۱", "۴۲", "41"),
}


@pytest.mark.parametrize("script", DIGITS)
def test_one_other_digit_is_another_fact_and_another_script_is_not(
    mc: MemChat, extract_model, script: str
) -> None:
    ana = mc.user("ana")
    text, one, other, ascii_one = DIGITS[script]
    assert numbers(one) == numbers(ascii_one) == {"41"} != numbers(other)
    assert normal_value(text.format(one)) == normal_value(text.format(ascii_one))
    for number in (one, other, ascii_one):
        sentence = text.format(number)
        tell(mc, extract_model, sentence, fact(sentence, "room_note", sentence, many=True))
        for item in ana.inbox.list():
            assert "number" not in item.reason and "did not say" not in item.reason
            if item.memory_type is not None:
                ana.inbox.accept(item.id)
    kept = sorted(m.value for m in ana.memories.list())
    assert kept == sorted([text.format(one), text.format(other)])


@pytest.mark.parametrize("script", DIGITS)
def test_a_number_that_nobody_said_is_held_back_in_every_script(
    mc: MemChat, extract_model, script: str
) -> None:
    ana = mc.user("ana")
    text, one, other, _ = DIGITS[script]
    wrong = fact(text.format(one), "room_note", text.format(other))
    tell(mc, extract_model, text.format(one), wrong)
    assert ana.memories.list() == []
    (item,) = ana.inbox.list()
    assert "you did not say 42 there" in item.reason


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ("Café préféré", "café_préféré"),
        ("ＣＩＴＹ", "city"),
        ("お気に入り 飲み物", "お気に入り_飲み物"),
        ("最喜欢的-饮料", "最喜欢的_饮料"),
        ("좋아하는 음료", "좋아하는_음료"),
        ("เครื่องดื่ม ที่ชอบ", "เครื่องดื่ม_ที่ชอบ"),
        ("المشروب المفضل", "المشروب_المفضل"),
        ("पसंदीदा पेय", "पसंदीदा_पेय"),
        ("Любимый Напиток", "любимый_напиток"),
        ("Αγαπημένο Ποτό", "αγαπημένο_ποτό"),
        ("Đồ uống", "đồ_uống"),
        ("ŞEHİR", "şehir"),
        ("IŞIK ayarı", "işik_ayari"),
    ],
)
def test_a_key_of_any_script_has_one_spelling(raw: str, key: str) -> None:
    expected = unicodedata.normalize("NFKC", key)
    assert normalise_key(raw) == expected
    for form in (nfd, nfc, wide, str.upper, lambda text: f"  {text}!! "):
        assert normalise_key(form(raw)) == expected, form
    assert normalise_key(expected) == expected
