"""Search by words: every script is found again, nothing typed ever breaks it, scopes never mix."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memchat.db.database import Database
from memchat.search import keywords
from memchat.search.keywords import Matches
from tests.support.rows import remove_words, write_words

FIXTURE_IS_SHARED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> Iterator[Database]:
    opened = Database(tmp_path_factory.mktemp("words"))
    yield opened
    opened.close()


@pytest.fixture
def tx(database: Database) -> Iterator:
    """A writer's transaction, undone at the end."""
    with database.write() as connection:
        yield connection
        connection.connection.get_transaction().rollback()


def found(tx, question: str, app_ids=(1,), limit: int = 20) -> list[int]:
    return [row for row, _ in matched(tx, question, app_ids).best(limit)]


def matched(tx, question: str, app_ids=(1,), kind="fact") -> Matches:
    return keywords.matches(tx, kind, app_ids, keywords.query_terms(question))


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("She liked the running shoes", "like run shoe"),
        ("Mi café favorito está en Málaga", "cafe malaga"),
        ("Nos vemos en la cafeteria", "cafetería"),
        ("Un re\u0301sume\u0301 court", "résumé"),
        ("Ich wohne in der Hauptstraße", "Hauptstraße"),
        ("Ich wohne in der Hauptstraße", "HAUPTSTRASSE"),
        ("İstanbul'da yaşıyorum", "istanbul"),
        ("Η πόλη μου είναι ο Βόλος", "ΒΟΛΟΣ"),
        ("Живу в Новосибирске", "новосибирске"),
        ("我周末喜欢爬山喝茶", "爬山"),
        ("我周末喜欢爬山喝茶", "你爱喝茶吗"),
        ("我周末喜欢爬山喝茶", "茶"),
        ("我周末喜欢爬山喝茶", "我"),
        ("昨日、佐々木さんと寿司を食べた", "佐々木"),
        ("昨日、佐々木さんと寿司を食べた", "寿司"),
        ("毎朝コーヒーを飲みます", "ｺｰﾋｰ"),
        ("저는 부산에 살아요", "부산"),
        ("ผมชอบดื่มกาแฟดำทุกเช้า", "กาแฟ"),
        ("ຂ້ອຍມັກກິນເຂົ້າໜຽວ", "ເຂົ້າໜຽວ"),
        ("ខ្ញុំចូលចិត្តកាហ្វេ", "កាហ្វេ"),
        ("ကျွန်တော် ရန်ကုန်မှာ နေတယ်", "ရန်ကုန်"),
        ("أسكن في مدينة الإسكندرية", "الإسكندرية"),
        ("أَسْكُنُ فِي طَنْطَا", "طنطا"),
        ("أسكن في طنطا", "طَنْطَا"),
        ("העיר שלי חיפה", "חֵיפָה"),
        ("העיר שלי חֵיפָה", "חיפה"),
        ("मुझे अदरक वाली चाय पसंद है", "चाय"),
        ("मुझे अदरक वाली चाय पसंद है", "पसंद"),
        ("எனக்கு தோசை பிடிக்கும்", "தோசை"),
        ("আমি কলকাতায় থাকি", "কলকাতায়"),
        ("Badge ＡＢ１２ at the gate", "ab12"),
        ("flight KL1699 on gate 7", "KL1699"),
        ("favourite_drink: oat milk", "favourite drink"),
        ("the file is 日本語.txt", "日本語"),
        ("𝚨𝛉𝛈𝛎𝛂 in capitals for mathematics", "αθηνα"),
        ("a Nintendo DS", "ds"),
        ("vitamin D", "d?"),
        ("I like ❤️ and tea", "tea ❤️"),
    ],
)
def test_a_sentence_in_any_script_is_found_by_its_words(tx, text: str, question: str) -> None:
    write_words(tx, "fact", 1, 1, text)
    write_words(tx, "fact", 2, 1, "zzz qqq www")
    assert found(tx, question) == [1]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("我喜欢喝茶", "茶叶店"),
        ("ผมชอบกาแฟ", "ลูก"),
        ("I live in Lisbon", "Lisbonnais"),
        ("मुझे चाय पसंद है", "चावल"),
        ("a Nintendo DS", "vitamin D?"),
        ("degree: CS", "the C language"),
        ("happy ☕️", "❤️"),
    ],
)
def test_another_word_is_not_found(tx, text: str, question: str) -> None:
    write_words(tx, "fact", 1, 1, text)
    assert found(tx, question) == []


@pytest.mark.parametrize(
    "question",
    [
        "",
        "   ",
        "what is my and the",
        '"',
        '""" AND """',
        "NEAR(tea, 2)",
        "tea NEAR coffee",
        "tea AND NOT coffee OR (",
        "scope:a2 OR text:x",
        "a2",
        "tea-time",
        "tea*",
        "^tea",
        "{text scope}: tea",
        "what's my tea?",
        "'; DROP TABLE memories; --",
        "\\",
        "%_%",
        "🍵🍵",
        "\ufffd",
        "_",
        "\u0301\u0301",
        "\u202etea",
        "x" * 10_000,
        "tea " * 2_500,
        "茶" * 10_000,
        " ".join(f"word{i}" for i in range(2_000)),
    ],
)
def test_nothing_typed_breaks_the_search_or_leaves_the_scope(tx, question: str) -> None:
    write_words(tx, "fact", 1, 1, "tea coffee")
    write_words(tx, "fact", 2, 2, "tea coffee scope a1 a2 word1 茶茶")
    assert set(found(tx, question)) <= {1}
    assert matched(tx, question).held.keys() <= {1}


@FIXTURE_IS_SHARED
@given(st.text(max_size=80), st.text(max_size=80))
@example("AND", "OR")
@example("ᾳ", "ΑΙ")
def test_any_text_can_be_indexed_and_any_question_asked(tx, text: str, question: str) -> None:
    write_words(tx, "fact", 1, 1, text.replace("\0", ""))
    assert set(found(tx, question)) <= {1}


WORD = st.text(
    st.characters(categories=["Lu", "Ll", "Lo", "Nd"], max_codepoint=0xFFFF), min_size=1, max_size=8
)


@settings(FIXTURE_IS_SHARED, max_examples=80)
@given(st.lists(WORD, min_size=1, max_size=5))
def test_a_text_is_found_by_any_word_of_a_living_script_in_it(tx, words: list[str]) -> None:
    write_words(tx, "fact", 1, 1, " ".join(words))
    for word in words:
        if keywords.query_terms(word):
            assert found(tx, word) == [1], word


def test_a_question_of_only_stop_words_finds_nothing(tx) -> None:
    write_words(tx, "fact", 1, 1, "what is my and the")
    assert keywords.query_terms("What is my, and THE?") == []
    assert found(tx, "what is my and the") == []


def test_a_long_question_looks_for_its_first_48_words(tx) -> None:
    write_words(tx, "fact", 1, 1, "w47")
    write_words(tx, "fact", 2, 1, "w48")
    question = " ".join(f"w{i}" for i in range(1_000))
    assert len(keywords.query_terms(question)) == 48
    assert found(tx, question) == [1]


def test_the_better_match_comes_first_and_equal_ones_newest_first(tx) -> None:
    write_words(tx, "fact", 1, 1, "tea and more words about nothing at all today")
    write_words(tx, "fact", 2, 1, "green tea")
    write_words(tx, "fact", 3, 1, "green tea")
    for i in range(4, 9):
        write_words(tx, "fact", i, 1, "something else")
    assert found(tx, "green tea") == [3, 2, 1]
    assert found(tx, "green tea", limit=1) == [3]
    matches = matched(tx, "green tea")
    assert matches.best(9, without={3}) == matches.best(9)[1:]
    assert matches.of(range(1, 9)) == dict(matches.best(9))
    assert all(score > 0 for _, score in matches.best(9))


def test_a_rarer_word_says_more_and_one_beside_the_turn_less(tx) -> None:
    for i in range(1, 9):
        write_words(tx, "turn", i, 1, "tea", "", reply=False)
    write_words(tx, "turn", 9, 1, "a samovar", "tea", reply=False)
    write_words(tx, "turn", 10, 1, "a story", "tea samovar", reply=False)
    score = matched(tx, "tea samovar", kind="turn").of(range(1, 11))
    assert score[9] > score[10] > score[1] > 0
    beside = keywords.CONTEXT_WEIGHT
    assert matched(tx, "tea samovar", kind="turn").bits_of(10) == 0b11
    assert score[10] == pytest.approx(beside * (score[9] + (1 - beside) * score[1]))


def test_a_row_that_holds_all_the_words_that_are_known_scores_one(tx) -> None:
    write_words(tx, "fact", 1, 1, "green tea")
    write_words(tx, "fact", 2, 1, "tea")
    assert matched(tx, "green tea samovar").of([1]) == {1: 1.0}
    assert 0 < matched(tx, "green tea samovar").of([2])[2] < 0.5


def test_how_rare_a_word_is_counts_nobody_else_s_rows(tx) -> None:
    for i in range(1, 5):
        write_words(tx, "fact", i, 1, "green tea" if i == 1 else "tea")
    alone = matched(tx, "green tea").of([1, 2])
    for i in range(5, 99):
        write_words(tx, "fact", i, 2, "green")
    assert matched(tx, "green tea").of([1, 2]) == alone


def test_any_number_of_rows_is_scored_at_once(tx) -> None:
    for i in range(1, 1_001):
        write_words(tx, "turn", i, 1, f"green tea {i}", "a reply", reply=False)
    matches = keywords.matches(tx, "turn", [1], ["tea", "coffee"])
    assert [i for i, _ in matches.best(5_000)] == [*range(1_000, 0, -1)]
    assert matches.of(range(500, 50_000)).keys() == set(range(500, 1_001))
    assert [matches.bits_of(i) for i in (1, 1_000, 1_001)] == [1, 1, 0]


@pytest.mark.parametrize(
    ("text", "words", "held"),
    [
        ("They decided to appoint two keepers.", ["deciding", "appointed", "keeper"], 3),
        ("The party is at the piers.", ["part", "pier"], 1),
        ("Die Straßen von Köln", ["strassen", "koln"], 2),
        ("私は京都に住んでいます", ["京都", "東京"], 1),
        ("gate 4711", ["471", "4711"], 1),
        ("", ["gate"], 0),
        ("cooking, played, lived in two cities, studies planned", ["cook", "play", "live"], 3),
        ("cooking, played, lived in two cities, studies planned", ["city", "study", "plan"], 3),
        ("Where I work and use it; the bus to Paris", ["worked", "using", "bus", "paris"], 4),
        ("a container, a computer, a studio, broth, a party", ["contact", "company", "student"], 0),
        ("a container, a computer, a studio, broth, a party", ["brother", "partner", "part"], 0),
        ("на работе в Берлине", ["работе", "берлине"], 2),
    ],
)
def test_words_are_counted_in_a_row_whatever_their_endings(tx, text, words, held) -> None:
    write_words(tx, "fact", 1, 1, text)
    matches = keywords.matches(tx, "fact", [1], words)
    assert matches.bits_of(1).bit_count() == held


def test_writing_again_replaces_and_removing_takes_out(tx) -> None:
    write_words(tx, "fact", 1, 1, "tea")
    write_words(tx, "fact", 1, 2, "coffee")
    assert found(tx, "tea coffee", (1,)) == []
    assert found(tx, "tea coffee", (1, 2)) == [1]
    remove_words(tx, "fact", [1, 77])
    assert found(tx, "tea coffee", (1, 2)) == []


def test_memories_and_messages_are_searched_apart(tx) -> None:
    write_words(tx, "turn", 1, 1, "tea")
    assert found(tx, "tea") == []
    assert matched(tx, "tea", kind="turn").best(5) != []


def test_scrubbed_words_are_in_no_segment(tx) -> None:
    for i in range(1, 30):
        write_words(tx, "turn", i, 1, f"pomegranate{i}")
    remove_words(tx, "turn", range(1, 30))
    keywords.scrub(tx)
    blocks = tx.connection.exec_driver_sql("SELECT block FROM passages_fts_data").scalars()
    assert not any(b"pomegranate" in bytes(block) for block in blocks)


@settings(FIXTURE_IS_SHARED, max_examples=40)
@given(
    st.dictionaries(
        st.integers(1, 40),
        st.tuples(st.integers(1, 25), st.sampled_from(["tea", "a1 tea", "scope a11 茶"])),
    ),
    st.sets(st.integers(1, 25), min_size=1, max_size=3),
)
def test_only_the_asked_scopes_are_ever_seen(tx, rows, asked) -> None:
    remove_words(tx, "fact", range(1, 41))
    for row_id, (app_id, text) in rows.items():
        write_words(tx, "fact", row_id, app_id, text)
    mine = {i for i, (app_id, text) in rows.items() if app_id in asked and "tea" in text}
    assert set(found(tx, "tea", sorted(asked), 100)) == mine


def test_searching_between_the_writes_of_one_transaction_does_no_harm(tx) -> None:
    for text in ("茶", "猫", "茶", "green tea", "茶"):
        write_words(tx, "fact", 1, 1, text)
        remove_words(tx, "fact", [1])
        assert found(tx, "茶 tea") == []
        write_words(tx, "fact", 1, 1, text)
        assert found(tx, text) == [1]
    tx.connection.exec_driver_sql(
        "INSERT INTO passages_fts (passages_fts) VALUES ('integrity-check')"
    )


@pytest.mark.parametrize("text", ["2qtea", "x 2qtea", "\U0001e9002qtea", "2q tea 2rtea", "2q2qtea"])
def test_no_word_passes_for_one_of_another_scope(tx, text: str) -> None:
    write_words(tx, "fact", 1, 1, text)
    write_words(tx, "fact", 2, 12, text)
    assert found(tx, "tea", (2,)) == []
    assert keywords.ids(tx, "fact", 2) == set()
    assert keywords.ids(tx, "fact", 12) == {2}


def test_a_reply_is_found_only_where_replies_are_asked_for(tx) -> None:
    write_words(tx, "turn", 1, 1, "tea", "", reply=True)
    assert matched(tx, "tea", kind="turn").best(5) == []
    every = keywords.matches(tx, "turn", [1], ["tea"], replies=True)
    assert [i for i, _ in every.best(5)] == [1]
