"""Secrets by the words beside them, by their form, and in the words of a wallet."""

from __future__ import annotations

import time

import pytest

from benchmarks.lifecycle import secrets as lines
from memchat.errors import SecretError
from memchat.language import lexicon, secret_shapes, secret_words
from memchat.language.secrets import find_answered, find_secrets, mask
from tests.support.answers import answer
from tests.support.slow import slow_but

ROWS = lines.corpus(lines.DEVELOPED_ON)
SECRET = [row for row in ROWS if row["kind"] != "harmless"]
HARMLESS = [row["text"] for row in ROWS if row["kind"] == "harmless"]
MOST_ENTRIES = 920 + 1250 + 160
LISTED = {
    "password", "code", "number", "access", "answer", "is", "state", "log_in",
    "coded", "lock", "screen", "open", "enter", "with", "turn", "count",
}  # fmt: skip
LISTED_IN_SOME = {"digits", "ending", "part_of", "of", "changed", "use", "take", "after"}
WALLET = "ribbon velvet lunar clinic orbit gadget maple trophy canvas puzzle hollow ginger"
REPEATED = (
    "password ", "my pin is ", "a-", "M-", "eyJ-", "AKIA", "1-", "four ", "ribbon ", "A1B2-", "x=",
    "?key=", "aa://a:", "'\"", "=", "密码", "-----BEGIN PRIVATE KEY-----", "curl -u ", "set a ",
    "a1b2 ", "Ab1@c ", "token='a1", "security question ", "the answer is ", "passwrod ",
    "pin ", "door 4471 ", "door left 3 ", "phone open left ", "door 1-",
    "ab 12 34 56 ", "morga657054 ", "1 85 05 ", "810125-",
)  # fmt: skip


def shown(row: dict[str, str]) -> str:
    """What is left of a line once its secrets are masked."""
    text = row["text"]
    before = row.get("before")
    for secret in reversed(find_answered(before, text) if before else []):
        text = f"{text[: secret.start]}[…]{text[secret.end :]}"
    return mask(text)


def test_the_lines_are_as_many_and_as_mixed_as_they_claim() -> None:
    assert len(SECRET) >= 120 and len(HARMLESS) >= 120
    assert {row["lang"] for row in ROWS} >= set(lexicon.codes()) | {"pl"}


def test_a_secret_of_the_lines_is_masked_whole() -> None:
    readable = {}
    for row in SECRET:
        told = [part for part in row["secret"].split() if len(part) > 3 or part.isdigit()]
        left = shown(row)
        if seen := [part for part in told if part.strip(",.") in left]:
            readable[row["id"]] = seen
    assert readable == {}


def test_a_harmless_line_is_left_alone() -> None:
    assert [text for text in HARMLESS if mask(text) != text] == []


@pytest.mark.parametrize("unit", slow_but(REPEATED[:2], REPEATED))
def test_the_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    def took(size: int) -> float:
        text = (unit * size)[:size]
        began = time.process_time()
        find_secrets(text)
        return time.process_time() - began

    def is_proportional(size: int) -> bool:
        longer = took(4 * size)
        return longer < 0.1 or longer < 8 * took(size)

    took(100)
    # Other threads of the process may run meanwhile: then it is tried again, with other texts.
    assert any(is_proportional(size) for size in (6_000, 6_001, 6_002))


def test_every_form_of_the_table_finds_what_it_describes_and_names_its_source() -> None:
    filled = {"hex": "a1", "digit": "12", "upper": "A1", "path": "a1/", "any": "a1"}
    for service, form, source in secret_shapes.rows():
        assert source.startswith("https://"), service
        text = secret_shapes.PART.sub(
            lambda part: (
                part["words"].split("|")[0]
                if part["words"]
                else (filled.get(part["alphabet"], "aB3") * 80)[: int(part["count"])]
            ),
            form,
        )
        assert [one.kind for one in find_secrets(f"use {text} here")] == ["key"], form


def test_each_language_lists_names_of_secrets_and_words_for_locks_and_not_too_many() -> None:
    table = secret_words.table()
    assert set(table) >= set(lexicon.codes())
    for code, kinds in table.items():
        assert LISTED <= set(kinds) <= LISTED | LISTED_IN_SOME, code
    listed = [
        e
        for code, kinds in table.items()
        for kind in kinds
        for e in secret_words.entries(code, kind)
    ]
    assert 1500 < len(listed) <= MOST_ENTRIES


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("feed the cat, disarm the alarm with 5093 within thirty secs", "5093"),
        ("you get in the house with 28841# and then push hard", "28841"),
        ("mein fahrradschloss geht auf bei 6-1-8-3", "6-1-8-3"),
        ("gym locker 112, i set it to left 34, right 9, left 21", "left 34"),
        ("his phone unlocks if you go top left, middle, bottom left, up one", "bottom left"),
        ("тайник: сейф открывается комбинацией 14-32-7", "14-32-7"),
        ("ドアは5829を押すと開きます", "5829"),
        ("तिजोरी 8265 से खुलती है", "8265"),
    ],
)
def test_a_number_that_opens_a_lock_is_a_secret_without_a_word_for_it(text, secret) -> None:
    assert secret not in mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "locker 112 opens at 0630",
        "the alarm is set to 0545 and the house is dark",
        "lockers 101 to 140 open early",
        "lease on the shop runs till 31 March 2027",
        "If I ever won I'd get a boat. I've got a 2009 Fiesta with no air",
        "unlock the phone game with 5000 points",
        "turn left, then right, the house is up the hill on the left",
        "la porta è larga 240 e si apre verso l'alto",
    ],
)
def test_labels_times_counts_and_directions_beside_a_lock_are_no_secrets(text) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Rent for the flat: 1250.",
        "The new laptop: 1450.",
        "Miete Wohnung: 1250.",
        "Prix de la maison: 3500.",
        "The price of the new door: 1450.",
        "Budget: Haus: 2550, Tür: 1450.",
        "Alarm: 0645",
    ],
)
def test_a_price_or_a_time_noted_behind_a_thing_is_no_code(text) -> None:
    assert mask(text) == text


@pytest.mark.parametrize("text", ["Gate: 4471.", "the safe: 8265", "Tür: 5093, Müll am Montag"])
def test_a_number_noted_behind_what_has_nothing_but_a_code_is_that_code(text) -> None:
    assert "[password]" in mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "The flat needs 3550 for the new roof, then we get in.",
        "My laptop needs 1250 for repair and won't unlock.",
        "Put 1500 in the safe when you get in.",
        "It takes 3000 to open a shop.",
        "We go in with 2500 for the house.",
    ],
)
def test_what_a_building_needs_and_round_amounts_open_nothing(text) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(
    "text",
    ["the safe wants 4471 to open", "press 4400 to get in the house", "unlock it, code 1200"],
)
def test_what_a_lock_takes_and_a_round_number_that_is_entered_are_codes(text) -> None:
    assert "[password]" in mask(text)


def test_a_user_name_is_a_secret_only_with_the_password_behind_it() -> None:
    text = "My Steam username is darkwolf77."
    assert mask(text) == text
    both = mask("my username is darkwolf77 / Gorse7hill")
    assert "darkwolf77" in both and "Gorse7hill" not in both


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("the code is 4471", "4471"),
        ("code 4471", "4471"),
        ("the code for the garage has been 4471 for years", "4471"),
        ("my bank gave me the code 4471 today", "4471"),
        ("Der Code ist 4471", "4471"),
        ("der Code von der Haustür war mal 4471", "4471"),
        ("el código es 4471", "4471"),
        ("код 4471", "4471"),
        ("コードは4471", "4471"),
    ],
)
def test_a_number_with_the_name_of_a_code_is_one_by_a_link_or_by_what_it_opens(
    text, secret
) -> None:
    assert secret not in mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "Il codice è del 1942.",
        "El código es de 2019.",
        "Код 2019 года.",
        "コードは1200行です。",
        "注文番号は48213です。",
        "Use code SUMMER25 for 10% off.",
        "The code of the course I teach is HIST2210.",
        "I fixed the code after 350 failed builds.",
        "My paper on token embeddings got 128 citations.",
        "De kleurcode van onze voordeur is RAL6009.",
        "Min kod i Python är på 1500 rader.",
        "我的课程代码是CS2040。",
    ],
)
def test_years_counts_orders_and_rebates_behind_a_word_for_code_are_no_secrets(text) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("my passwrod for steam is nettle", "nettle"),
        ("la contrasena del banco es girasol", "girasol"),
        ("mein Paswort ist Blumenkohl", "Blumenkohl"),
    ],
)
def test_a_misspelt_word_for_a_password_is_read_as_that_word(text, secret) -> None:
    assert secret not in mask(text)
    assert mask("the passport is new, and the prisoner got parole") == (
        "the passport is new, and the prisoner got parole"
    )


def test_a_strong_shape_is_a_password_where_somebody_logs_in_and_nowhere_else() -> None:
    assert "Gorse" not in mask("we sign in to the portal as kim, Gorse7@hill does it")
    assert "Gorse" not in mask("kim.oduya / Gorse7@hill")
    for text in (
        "npm i Foo1@2.3.4-rc1 then log in",
        "log in at https://Foo1.example/A@b",
        "the band Gorse7@hill plays on Friday",
    ):
        assert mask(text) == text


def test_random_groups_are_a_key_unless_they_number_an_order() -> None:
    groups = "kq3a 7fzp x2mw q5tu"
    assert "kq3a" not in mask(f"the app shows {groups} under the picture")
    for text in (
        f"my order {groups} is late",
        "the cable runs 60x8 70x6 80x5 85x3 again",
        "chords cmaj7 amin7 dmin7 gdom7 in a loop",
        "they made 2019 2020 2021 2022 models",
    ):
        assert mask(text) == text


def test_a_random_value_in_code_is_a_key_unless_it_is_named_as_something_shown() -> None:
    run, hexes = "q8w2zk5n7c1vb4m9x3dj6hfy", "5b1c7e20d94f8a6337b0e2d15c48f9a6"
    assert run not in mask(f"Cookie = {{'sid': '{run}'}}")
    assert hexes not in mask(f'Client("me", "{hexes}")')
    for text in (
        f'md5 = "{hexes}"',
        f'commit: "{hexes}"',
        f"see https://example.org/view?id={run}",
        '{"_id": "507f1f77bcf86cd799439011"}',
    ):
        assert mask(text) == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Кодът за входната врата е 4471, моля", "4471"),
        ("Пін картки в нас такий: 9046", "9046"),
        ("Codul de la interfon e 3391 cred", "3391"),
        ("Kode pintu rumah saya 58213", "58213"),
        ("Ο κωδικός της πόρτας 8842", "8842"),
        ("רציתי לומר שהקוד הוא 6613 אבל הקוד של הדלת 6613", "6613"),
        ("my pin, wait, let me think. It is seven four zero two", "seven four"),
    ],
)
def test_a_number_beside_a_word_for_a_code_is_found_in_languages_with_few_words(
    text, secret
) -> None:
    assert secret not in mask(text)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("security question: my first street. I always put marmalade lane there", "marmalade lane"),
        ("it asks the security question about pets and Rosinante is the answer", "rosinante"),
        ("Sicherheitsfrage ist mein Haustier, die Antwort lautet Knödel", "Knödel"),
        ("Контрольный вопрос про улицу, ответ: Берёзовая", "Берёзовая"),
    ],
)
def test_the_answer_to_a_security_question_is_found_some_words_behind_it(text, secret) -> None:
    assert secret.casefold() not in mask(text).casefold()
    asked = "the security question is silly and the answer is always wrong"
    assert mask(asked) == asked


@pytest.mark.parametrize(
    "text",
    [
        "Kode pos Bandung 40115 ya?",
        "Kód má 300 řádků a je pomalý",
        "log in as guest and print the PDF Invoice_2024-Q3.pdf",
    ],
)
def test_postcodes_counts_and_files_beside_words_for_codes_are_no_secrets(text) -> None:
    assert mask(text) == text


def test_a_pinch_of_salt_and_a_temperature_are_no_pin() -> None:
    text = "1 egg, pinch of salt, 180°C for 12 min, then 200 g sugar"
    assert mask(text) == text
    spun = "a spinach pie at pinnacle 2300, pink 120"
    assert mask(spun) == spun


@pytest.mark.parametrize(
    "text",
    [
        "lives in Pine Street, number 104",
        "Pine Avenue 2041",
        "oak and pine boards, 104 of them",
        "a table of pine: 2041 euros",
    ],
)
def test_pine_is_a_tree_and_no_turkish_pin(text) -> None:
    assert mask(text) == text


@pytest.mark.parametrize("text", ["PIN'e 4821 gir", "kart pinine 4821 yaz", "pinim 4821"])
def test_a_turkish_pin_is_found_in_its_other_cases(text) -> None:
    assert "4821" not in mask(text)


def test_a_made_up_word_behind_a_password_word_is_found_in_languages_with_few_words_listed() -> (
    None
):
    assert "blåbär" not in mask("Lösenordet till stugans router är blåbärspaj1mil om du undrar")
    assert "Zaba" not in mask("hasło do banku zmieniłam na Zielona.Zaba.619, bo stare wygasło")
    assert mask("Lösenordet är för kort") == "Lösenordet är för kort"


@pytest.mark.parametrize(
    "text",
    [
        "apple butter bread cheese onion garlic rice lemon sugar coffee tomato fish",
        "dog cat horse cow pig sheep goat chicken duck goose rabbit mouse",
        "shirt, dress, jacket, shoe, hat, scarf, glove, sock, belt, boot, coat, skirt",
    ],
)
def test_a_list_of_everyday_things_is_no_wallet(text) -> None:
    assert mask(text) == text


def test_a_checksum_and_one_long_word_are_no_keys() -> None:
    digest = "45e7b5c0649f5bb0a6679751627586af" * 2
    assert mask(f"sha256sum of the file gives {digest}") == f"sha256sum of the file gives {digest}"
    assert digest not in mask(f"the wallet says {digest}")
    word = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch"
    assert mask(f"is {word} worth a trip?") == f"is {word} worth a trip?"


@pytest.mark.parametrize(
    "text",
    [
        "Taking small steps can help. Have you thought about any ideas for how to begin?",
        "How will Tim share the honey garlic chicken recipe with the other person?",
        "It was a ball game against another team that was close until the final buzzer.",
        "photo/sea-coast-water-sand-ocean-horizon-cloud-sky-sun-sunrise-sunset-shore-wave-dawn.jpg",
    ],
)
def test_a_sentence_or_an_address_of_plain_words_is_no_wallet(text) -> None:
    assert mask(text) == text


def test_twelve_words_of_a_wallet_are_found_and_a_list_of_hobbies_is_not() -> None:
    assert WALLET.split()[0] not in mask(f"I wrote down {WALLET}.")
    numbered = " ".join(f"{n}. {word}" for n, word in enumerate(WALLET.split(), 1))
    assert mask(numbered) == "1. [password]"
    eleven = " ".join(WALLET.split()[:11])
    assert mask(eleven) == eleven
    hobbies = (
        "chess tennis painting cooking hiking reading "
        "knitting gardening fishing dancing singing skiing"
    )
    assert mask(hobbies) == hobbies


def test_the_filter_of_wallet_words_is_what_its_tool_makes() -> None:
    mnemonic = pytest.importorskip("mnemonic")
    from tools import wallet_words

    words = mnemonic.Mnemonic("english").wordlist
    assert wallet_words.TARGET.read_text(encoding="ascii") == wallet_words.filter_of(words)
    assert all(map(secret_shapes.is_listed, words))


def test_the_title_and_summary_of_a_conversation_hold_no_password_that_is_a_word(
    mc, extract_model
) -> None:
    ana = mc.user("ana")
    said = "Hasło do banku to karmelowy."
    extract_model.replies.append(answer(title="Hasło karmelowy", summary=f"She said: {said}"))
    with ana.chat() as chat:
        assert chat.send(said).read()
    (session,) = ana.sessions.list()
    assert "karmelowy" not in f"{session.title}{session.summary}"


def test_what_is_entered_by_hand_and_looks_like_a_secret_is_kept_only_if_the_person_says_so(
    mc,
) -> None:
    ana = mc.user("ana")
    with pytest.raises(SecretError, match="password") as raised:
        ana.memories.add("fact", "gate_code", "4471")
    assert raised.value.kind == "password"
    assert ana.memories.list() == []
    kept = ana.memories.add("fact", "gate_code", "4471", keep_secret=True)
    assert kept.value == "4471"
    with pytest.raises(SecretError):
        ana.memories.update(kept.id, value="4472")
    assert ana.memories.update(kept.id, type="other").value == "4471"
    assert ana.memories.update(kept.id, value="4472", keep_secret=True).value == "4472"
    assert ana.memories.add("profile", "email", "rosa@example.net").value == "rosa@example.net"


def test_a_secret_kept_by_hand_is_sent_only_with_a_message_that_finds_it(mc, chat_model) -> None:
    ana = mc.user("ana")

    def sent(message: str) -> str:
        ana.answer(message)
        return chat_model.requests[-1].messages[0].content

    added = ana.memories.add("fact", "gate_code", "4471", keep_secret=True)
    edited = ana.memories.add("fact", "garage", "behind the house")
    ana.memories.update(edited.id, key="safe_code", value="7032", keep_secret=True)
    ana.memories.add("profile", "email", "rosa@example.net")
    mc.jobs.embed()
    unrelated = sent("Any plans?")
    assert "rosa@example.net" in unrelated
    assert "4471" not in unrelated and "7032" not in unrelated
    assert "4471" in sent("What is the gate code?")
    assert "7032" in sent("What is the safe code?")
    assert not ana.memories.update(added.id, sensitive=False).sensitive
    assert "4471" in sent("Any plans?")


@pytest.mark.parametrize(
    ("key", "value"), [("flat", "1204"), ("office", "4123"), ("garage", "2215"), ("locker", "1120")]
)
def test_the_number_of_a_place_entered_by_hand_is_no_code(mc, key, value) -> None:
    assert mc.user("ana").memories.add("fact", key, value).value == value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("door_code", "4471"),
        ("card_pin", "4471"),
        ("password", "nettle"),
        ("wifi", "home / nettle"),
    ],
)
def test_what_is_entered_by_hand_under_a_word_for_a_secret_is_one(mc, key, value) -> None:
    with pytest.raises(SecretError):
        mc.user("ana").memories.add("fact", key, value)
