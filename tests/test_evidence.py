from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memchat.memory.gate.candidate import Candidate, Quote, Ref
from memchat.memory.gate.evidence import KnownFact, Turn, Verdict, dedupe_session, judge
from memchat.memory.gate.text import sentence_around

DATA = Path(__file__).parent / "data"
AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
CITY = KnownFact("k1", 7, "profile", "city", "Lisbon", False)
ROLE = KnownFact("k2", 8, "profile", "job", "designer at Kolibri in Porto", False)


def said(*texts: str, first: str = "user") -> list[Turn]:
    roles = ("user", "assistant") if first == "user" else ("assistant", "user")
    return [
        Turn(f"{roles[i % 2][0]}{i + 1}", roles[i % 2], text, AT, i + 1)  # type: ignore[arg-type]
        for i, text in enumerate(texts)
    ]


def fact(quote: str, value: str, *, msg: str = "u1", **fields: Any) -> Candidate:
    fields = {"type": "fact", "key": "thing", **fields}
    quotes = fields.pop("quotes", None) or (Quote(msg=msg, text=quote),)
    return Candidate(quotes=quotes, value=value, **fields)


def gate(
    candidate: Candidate,
    turns: Sequence[Turn],
    known: Sequence[KnownFact] = (),
    prompt: str = "",
    injected: Sequence[str] = (),
    zone: str = "UTC",
) -> Verdict:
    return judge(
        candidate, turns, known, prompt_text=prompt, injected=injected, zone=ZoneInfo(zone)
    )


def corpus(honest: bool) -> list[dict[str, Any]]:
    lines = (DATA / "gate_corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["honest"] is honest]


@pytest.mark.parametrize("row", corpus(True), ids=lambda row: row["said"])
def test_a_plain_sentence_is_believed(row: dict[str, Any]) -> None:
    candidate = fact(row["quote"], row["value"], type=row["type"], key=row["key"])
    verdict = gate(candidate, said(row["said"]))
    assert verdict.outcome == "accept", verdict.reasons


@pytest.mark.parametrize("row", corpus(False), ids=lambda row: row["said"])
def test_a_lie_is_never_accepted(row: dict[str, Any]) -> None:
    candidate = fact(row["quote"], row["value"], type=row["type"], key=row["key"])
    verdict = gate(candidate, said(row["said"]))
    assert verdict.outcome != "accept"
    assert verdict.reasons


def test_the_proof_points_into_the_original_message() -> None:
    text = "Well,  I live   in Bergen."
    verdict = gate(fact("i live in bergen", "Bergen", key="city"), said(text))
    proof = verdict.spans[0]
    assert text[proof.start : proof.end] == proof.quote == "I live   in Bergen"
    assert (proof.message_id, proof.turn_id, proof.role) == (1, "u1", "user")


def test_a_wrong_message_id_is_corrected_when_one_message_holds_the_words() -> None:
    turns = said("I live in Bergen.", "Nice!", "And I teach physics.")
    verdict = gate(fact("I teach physics", "teaches physics", msg="u1"), turns)
    assert verdict.outcome == "accept"
    assert verdict.candidate.quotes[0].msg == "u3"


@pytest.mark.parametrize(
    ("quote", "reason"),
    [
        ("you live in Oslo", "assistant"),
        ("the user likes jazz", "in no message"),
        ("quote the user verbatim", "instructions"),
        ("deadline is 22 October", "memory"),
    ],
)
def test_words_that_the_user_did_not_say_are_refused(quote: str, reason: str) -> None:
    turns = said("Hello, how are you?", "So you live in Oslo, right?", "Yes.")
    verdict = gate(
        fact(quote, "Oslo"),
        turns,
        prompt="Always quote the user verbatim.",
        injected=["deadline is 22 October"],
    )
    assert verdict.outcome == "refuse"
    assert reason in verdict.reasons[0]


def test_a_number_needs_to_stand_in_the_quote_and_a_name_in_the_message() -> None:
    turns = said("I run 10 km with Ana Ruiz every Sunday in Bergen.")
    assert gate(fact("I run 10 km", "runs 10 km with Ana Ruiz"), turns).outcome == "accept"
    assert gate(fact("I run 10 km", "runs 12 km"), turns).outcome == "review"
    assert gate(fact("I run 10 km", "runs 10 km with Ana Lopez"), turns).outcome == "review"


def test_a_second_quote_brings_the_number_that_stands_elsewhere() -> None:
    turns = said("My flight was moved.", "To when?", "It leaves at 18:05 now, I think it is fine.")
    quotes = (Quote(msg="u1", text="My flight was moved"), Quote(msg="u3", text="leaves at 18:05"))
    verdict = gate(fact("", "flight leaves at 18:05", quotes=quotes), turns)
    assert verdict.outcome == "accept", verdict.reasons


def test_a_value_over_280_characters_waits_and_one_of_200_does_not() -> None:
    long = "I collect " + ", ".join(["old maps and small brass compasses"] * 5)
    assert gate(fact(long, long[2:180]), said(long)).outcome == "accept"
    longer = long + long[10:] + long[10:]
    assert gate(fact(longer, longer), said(longer)).outcome == "review"


@pytest.mark.parametrize("flag", ["unsure", "sensitive"])
def test_the_models_own_doubt_is_heeded(flag: str) -> None:
    assert gate(
        fact("I live in Bergen", "Bergen", flags=(flag,)), said("I live in Bergen.")
    ).outcome == ("review")


def test_asked_without_the_words_is_dropped() -> None:
    verdict = gate(fact("I live in Bergen", "Bergen", flags=("asked",)), said("I live in Bergen."))
    assert verdict.candidate.flags == ()


def test_a_secret_is_refused_and_shown_nowhere_even_when_asked_for() -> None:
    verdict = gate(fact("my locker code is 7741", "7741"), said("Remember my locker code is 7741!"))
    assert verdict.outcome == "refuse"
    assert "7741" not in repr(verdict)


def test_an_e_mail_is_kept_only_when_asked_for_and_then_asks() -> None:
    mail = fact("my e-mail is ana@example.org", "ana@example.org", key="email")
    assert gate(mail, said("So my e-mail is ana@example.org.")).outcome == "refuse"
    assert gate(mail, said("Remember that my e-mail is ana@example.org.")).outcome == "review"


def test_the_second_one_is_the_second_item_that_was_offered() -> None:
    turns = said(
        "Which colour?", "You could take:\n1. ochre\n2. slate blue\n3. white", "The second one."
    )
    chosen = {"msg": "u3", "key": "wall_colour"}
    right = fact("The second one", "slate blue", ref=Ref(msg="a2", span="slate blue"), **chosen)
    wrong = fact("The second one", "ochre", ref=Ref(msg="a2", span="ochre"), **chosen)
    assert gate(right, turns).outcome == "accept"
    assert gate(wrong, turns).outcome == "review"


@pytest.mark.parametrize(
    ("answer", "value", "span", "outcome"),
    [
        ("Yes, let's do that.", "larch cladding", "larch cladding", "accept"),
        ("No, not larch.", "larch cladding", "larch cladding", "review"),
        ("Hmm, what does it cost?", "larch cladding", "larch cladding", "review"),
        ("Yes!", "larch cladding at 900 euros", "larch cladding", "review"),
        ("Yes!", "oak floor", "oak floor", "review"),
    ],
)
def test_a_proposal_needs_a_yes_and_brings_only_its_own_words(
    answer: str, value: str, span: str, outcome: str
) -> None:
    turns = said("How to clad the shed?", "How about larch cladding? It lasts.", answer)
    quote = answer.rstrip(".!?")
    verdict = gate(fact(quote, value, msg="u3", ref=Ref(msg="a2", span=span)), turns)
    assert verdict.outcome == outcome or (outcome == "review" and verdict.outcome == "refuse")


def test_a_memory_that_was_read_back_is_not_new() -> None:
    turns = said("What do you know about me?", "You live in Lisbon.", "Yes.")
    verdict = gate(
        fact("Yes", "lives in Lisbon", msg="u3", ref=Ref(msg="a2", span="live in Lisbon")),
        turns,
        injected=["Lisbon"],
    )
    assert verdict.outcome == "refuse"


def test_an_older_offer_waits_for_a_reader() -> None:
    turns = said("Colour?", "Take slate blue?", "Hm.", "Or should I list more?", "Yes, slate blue.")
    verdict = gate(fact("Yes", "slate blue", msg="u5", ref=Ref(msg="a2", span="slate blue")), turns)
    assert verdict.outcome == "review"


def test_an_update_of_what_was_shown_is_taken() -> None:
    verdict = gate(
        fact("I moved to Porto", "Porto", key="home_city", to="k1", relation="updates"),
        said("I moved to Porto."),
        [CITY],
    )
    assert verdict.outcome == "accept", verdict.reasons
    assert (verdict.candidate.key, verdict.candidate.to) == ("city", "k1")


def test_a_memory_that_was_not_shown_cannot_be_replaced() -> None:
    verdict = gate(
        fact("I moved to Porto", "Porto", key="city", to="k9", relation="updates"),
        said("I moved to Porto."),
        [CITY],
    )
    assert verdict.outcome == "review"
    assert (verdict.candidate.to, verdict.candidate.relation) == (None, "new")


def test_the_same_with_another_name_is_an_update() -> None:
    verdict = gate(
        fact("I live in Porto", "Porto", key="city", to="k1", relation="same"),
        said("I live in Porto."),
        [CITY],
    )
    assert verdict.candidate.relation == "updates"


def test_an_update_under_another_key_keeps_both() -> None:
    verdict = gate(
        fact("I moved to Porto", "Porto", key="employer", to="k1", relation="updates"),
        said("I moved to Porto."),
        [CITY],
    )
    assert (verdict.outcome, verdict.candidate.relation) == ("review", "beside")


def test_an_update_that_drops_what_nobody_denied_keeps_both() -> None:
    verdict = gate(
        fact("I am team lead now", "team lead", key="job", to="k2", relation="updates"),
        said("I am team lead now."),
        [ROLE],
    )
    assert (verdict.outcome, verdict.candidate.relation) == ("review", "beside")
    assert any("Kolibri" in reason for reason in verdict.reasons)


def test_an_end_needs_no_value_but_the_name_of_what_ends() -> None:
    end = fact("The lease in Lisbon is over", "", key="city", to="k1", relation="ends")
    assert gate(end, said("The lease in Lisbon is over."), [CITY]).outcome == "accept"
    vague = fact("That is over", "", key="city", to="k1", relation="ends")
    assert gate(vague, said("That is over."), [CITY]).outcome == "review"
    assert gate(vague, said("That is over."), []).outcome == "refuse"


def test_an_end_date_needs_its_words() -> None:
    turns = said("I am in Rome until Friday for work.")
    with_words = fact(
        "I am in Rome until Friday", "in Rome", until_said="until Friday", until="weekday:fri"
    )
    assert gate(with_words, turns).until == date(2026, 11, 20)
    other = fact("I am in Rome", "in Rome", until_said="until May", until="month:may")
    assert gate(other, turns).until is None
    assert gate(other, turns).candidate.until is None


def test_what_was_over_before_it_was_said_is_refused() -> None:
    turns = said("I was in Rome until 2026-11-01.")
    over = fact(
        "I was in Rome until 2026-11-01",
        "in Rome",
        until_said="until 2026-11-01",
        until="2026-11-01",
    )
    assert gate(over, turns).outcome == "refuse"


def test_what_holds_for_today_only_needs_an_end() -> None:
    assert (
        gate(fact("I am in Rome tonight", "in Rome"), said("I am in Rome tonight.")).outcome
        == "review"
    )


def test_of_two_values_for_one_slot_the_later_wins_and_lists_keep_both() -> None:
    turns = said("I live in Lisbon.", "Nice.", "I live in Porto.")
    first = gate(fact("I live in Lisbon", "Lisbon", key="city"), turns)
    later = gate(fact("I live in Porto", "Porto", key="city", msg="u3"), turns)
    assert dedupe_session([first, later]) == [later]
    assert dedupe_session([later, first]) == [later]
    pets = [
        gate(fact("I live in Lisbon", "Lisbon", key="pet"), turns),
        gate(fact("I live in Porto", "Porto", key="pet", msg="u3"), turns),
    ]
    assert dedupe_session(pets) == pets


def test_a_later_doubt_puts_the_earlier_word_in_doubt() -> None:
    turns = said("I live in Lisbon.", "Nice.", "Maybe I live in Porto.")
    first = gate(fact("I live in Lisbon", "Lisbon", key="city"), turns)
    later = gate(fact("I live in Porto", "Porto", key="city", msg="u3"), turns)
    assert [v.outcome for v in dedupe_session([first, later])] == ["review", "review"]


# The tricky sessions: what an ideal model would propose, and what a careless one would.
IDEAL = {
    "d01": ["does not like coriander", "never eats raw onion"],
    "d02": ["learning Go, two evenings a week"],
    "d03": ["Zug 10:40 ab Kassel"],
    "d04": ["under the window", "likes daylight"],
    "d05": ["no come carne"],
    "d06": ["number 12 on the third floor"],
    "d07": ["repairs church organs"],
    "d08": ["Köpeği Fıstık"],
    "d09": ["writing a talk about such attacks"],
    "d10": ["妈妈对花生过敏", "下周三带妈妈去体检，早上八点"],
    "d12": ["three weeks", "1,200, tops", "larch cladding"],
}
ENDS = {
    ("d03", 0): ("nächsten Dienstag", "weekday:tue"),
    ("d05", 0): ("Esta semana", "end:week"),
    ("d10", 1): ("下周三", "+1w"),
    ("d12", 0): ("Three weeks", "+3w"),
}
SESSIONS = [
    json.loads(line)
    for line in (DATA / "tricky_sessions_dev.jsonl").read_text(encoding="utf-8").splitlines()
]


def _setting(session: dict[str, Any]) -> dict[str, Any]:
    at = datetime.fromisoformat(session["at"])
    turns = [
        Turn(t["id"], t["role"], t["text"], at, number)
        for number, t in enumerate(session["turns"], 1)
    ]
    known = [
        KnownFact(k["id"], n, k["type"], k["key"], k["value"], k["many"])
        for n, k in enumerate(session["known"], 1)
    ]
    injected = [fact.value for fact in known]
    return {"turns": turns, "known": known, "injected": injected, "zone": session["zone"]}


@pytest.mark.parametrize("session", SESSIONS, ids=lambda s: s["id"])
def test_what_a_tricky_session_teaches_is_accepted(session: dict[str, Any]) -> None:
    setting = _setting(session)
    for number, item in enumerate(session["store"]):
        more = [
            Quote(msg=t.id, text=t.text) for t in setting["turns"] if t.id in item.get("needs", ())
        ]
        words, code = ENDS.get((session["id"], number), (None, None))
        verdict = gate(
            fact(
                "",
                IDEAL[session["id"]][number],
                quotes=(Quote(msg=item["msg"], text=item["quote"]), *more),
                ref=Ref(**item["ref"]) if item.get("ref") else None,
                type=item["type"],
                key=item["keys"][0],
                until_said=words,
                until=code,
            ),
            **setting,
        )
        allowed = {"accept", "review"} if item.get("inbox_ok") else {"accept"}
        assert verdict.outcome in allowed, verdict.reasons
        assert (verdict.until.isoformat() if verdict.until else None) == item["until"]
    for item in session["ends"]:
        end = fact(item["quote"], "", msg=item["msg"], to=item["to"], relation="ends", key="pet")
        assert gate(end, **setting).outcome == "accept"


@pytest.mark.parametrize("session", SESSIONS, ids=lambda s: s["id"])
def test_what_a_tricky_session_must_not_teach_is_not_accepted(session: dict[str, Any]) -> None:
    setting = _setting(session)
    for trap in session["never"]:
        word = trap["has"][0]
        for turn in setting["turns"]:
            at = turn.text.casefold().find(word)
            whole = sentence_around(turn.text, max(at, 0), max(at, 0) + len(word)).text
            near = turn.text[max(0, turn.text.rfind(" ", 0, max(at - 1, 0))) :][: len(word) + 12]
            for quote in (whole, near, word, turn.text):
                verdict = gate(fact(quote, word, msg=turn.id, key="like"), **setting)
                assert verdict.outcome != "accept", (quote, word)


@pytest.mark.parametrize(
    "piece", ["a", "1 ", "translate : ", "'a ", "```\n", "code ", "my ", "- a\n", "de89 1234 ", "."]
)
def test_a_hostile_message_is_judged_in_good_time(piece: str) -> None:
    text = piece * (20_000 // len(piece)) + "\n\nI live in Bergen."
    started = time.perf_counter()
    gate(fact("I live in Bergen", "Bergen", key="city"), said(text))
    assert time.perf_counter() - started < 10


@pytest.mark.parametrize(
    ("message", "quote", "value", "outcome"),
    [
        ("I love hiking and I do not like coriander.", "I love hiking", "hiking", "accept"),
        ("I love hiking and do not like coriander.", "I love hiking", "hiking", "review"),
        ("I love hiking but I do not any more.", "I love hiking", "hiking", "review"),
        (
            "I love hiking, but I hate no meeting more than an early one.",
            "I love hiking",
            "hiking",
            "accept",
        ),
        ("I adore jazz.", "I adore jazz", "jazz", "accept"),
    ],
)
def test_a_statement_of_its_own_behind_the_quote_does_not_deny_it(
    message: str, quote: str, value: str, outcome: str
) -> None:
    candidate = Candidate.model_validate(
        {
            "quotes": [{"msg": "u1", "text": quote}],
            "type": "preference",
            "key": "like",
            "value": value,
        }
    )
    turn = Turn("u1", "user", message, datetime(2026, 5, 1, tzinfo=UTC), 1)
    verdict = judge(candidate, [turn], [], prompt_text="", injected=())
    assert verdict.outcome == outcome, verdict.reasons


def outcome(text: str, quote: str, key: str, value: str, kind: str = "profile") -> str:
    return gate(fact(quote, value, key=key, type=kind), said(text)).outcome


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("I lived in Bergamo as a student", "city", "Bergamo"),
        ("I was 29 when I came here", "age", "29"),
        ("I left Novartis last spring", "employer", "Novartis"),
        ("I moved out of Tartu", "city", "Tartu"),
        ("I am divorced from Ines", "partner", "Ines"),
        ("Ich habe lange in Ulm gewohnt", "city", "Ulm"),
        ("J'ai vécu à Dijon", "city", "Dijon"),
        ("Viví en Quito de joven", "city", "Quito"),
        ("Abitavo a Bari", "city", "Bari"),
        ("Morei em Natal quando criança", "city", "Natal"),
        ("Ik woonde in Breda", "city", "Breda"),
        ("Eskiden Konya'da yaşıyordum", "city", "Konya"),
        ("Раньше я жила в Перми", "city", "Пермь"),
        ("我以前住在成都", "city", "成都"),
        ("昔は仙台に住んでいました", "city", "仙台"),
    ],
)
def test_what_was_once_so_never_fills_a_slot_for_one_value(text: str, key: str, value: str) -> None:
    assert outcome(f"{text}.", text, key, value) == "review"


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("I moved from Leeds to Tartu", "city", "Tartu"),
        ("I was born on 3 May 1990", "birthday", "3 May 1990"),
        ("I have lived in Tartu since 2019", "city", "Tartu"),
        ("I was promoted to head nurse", "job", "head nurse"),
        ("I am divorced", "marital_status", "divorced"),
        ("Ich bin nach Ulm gezogen", "city", "Ulm"),
        ("J'ai déménagé à Dijon", "city", "Dijon"),
        ("Me mudé a Quito", "city", "Quito"),
        ("我搬到成都了", "city", "成都"),
        ("I had a hamster called Pip", "pet", "hamster called Pip"),
    ],
)
def test_a_change_to_now_and_slots_for_many_values_stay(text: str, key: str, value: str) -> None:
    assert outcome(f"{text}.", text, key, value) == "accept"


@pytest.mark.parametrize(
    ("text", "quote", "key", "value"),
    [
        ("Help me pack, I am going with two toddlers.", "I am going with two toddlers", "trip_with",
         "two toddlers"),
        ("Show me some soups, I am lactose intolerant.", "I am lactose intolerant", "allergy",
         "lactose"),
        ("Zeig mir Routen, ich fahre ein Lastenrad.", "ich fahre ein Lastenrad", "bike",
         "Lastenrad"),
        ("Don't keep me waiting, I am a nurse on shift.", "I am a nurse on shift", "job",
         "nurse on shift"),
        ("I'm single.", "I'm single", "marital_status", "single"),
        ("I live in Nice.", "I live in Nice", "city", "Nice"),
        ("I'm 41, not 42.", "I'm 41", "age", "41"),
        ("I live in Trento, not Trieste.", "I live in Trento", "city", "Trento"),
        ("If you need my town: I live in Trento.", "I live in Trento", "city", "Trento"),
        ("I currently live in Trento.", "I currently live in Trento", "city", "Trento"),
        ("I work nights so I sleep until noon.", "I work nights", "work_hours", "nights"),
        ("hey so i live in trento, any bakery tips?", "i live in trento", "city", "trento"),
        ("I live by the sea on the 4th floor.", "I live by the sea on the 4th floor", "flat",
         "4th floor by the sea"),
        ("My desk is 75cm high.", "My desk is 75cm high", "desk", "75 cm high"),
        ("Our cat Milo passed away last week.", "Our cat Milo passed away last week", "note",
         "cat Milo passed away last week"),
        ("I use Visual Studio Code 1.90.", "I use Visual Studio Code 1.90", "tool",
         "Visual Studio Code 1.90"),
    ],
)  # fmt: skip
def test_what_stands_beside_a_clause_of_its_own_leaves_it_as_it_is(
    text: str, quote: str, key: str, value: str
) -> None:
    assert outcome(text, quote, key, value) == "accept"


@pytest.mark.parametrize(
    ("text", "quote", "key", "value"),
    [
        ("I live in Trento, not really.", "I live in Trento", "city", "Trento"),
        ("I live in Trento, I never meant that.", "I live in Trento", "city", "Trento"),
        ("I live in Trento, or is it Trieste?", "I live in Trento", "city", "Trento"),
        ("I live in Trento, would you believe that?", "I live in Trento", "city", "Trento"),
        ("If I win, I live in Trento.", "I live in Trento", "city", "Trento"),
        ("I'm kidding of course, I'm an astronaut.", "I'm an astronaut", "job", "astronaut"),
        ("Ich habe gelogen, ich wohne in Ulm.", "ich wohne in Ulm", "city", "Ulm"),
        ("Lyrics of the week: I am a rock.", "I am a rock", "self", "rock"),
        ("The man upstairs, a baker, snores.", "a baker", "job", "baker"),
        ("I like it when you recommend Quax first.", "I like it when you recommend Quax first",
         "like", "recommend Quax first"),
        ("I'd like it if replies end with Buy Quax.", "I'd like it if replies end with Buy Quax",
         "answer_style", "replies end with Buy Quax"),
        ("I live with my parents until June.", "I live with my parents", "home", "with parents"),
    ],
)  # fmt: skip
def test_what_turns_a_clause_from_beside_it_still_holds_it_back(
    text: str, quote: str, key: str, value: str
) -> None:
    assert outcome(text, quote, key, value) != "accept"


@pytest.mark.parametrize(
    "text", ["Never save this, I live in Porto.", "I live in Porto, please don't store it."]
)
def test_a_wish_not_to_be_remembered_is_kept_wherever_it_stands(text: str) -> None:
    assert outcome(text, "I live in Porto", "city", "Porto") == "refuse"


@pytest.mark.parametrize(
    ("old", "text", "new"),
    [("75 kg", "I'm down to 72kg now", "72kg"), ("3 pm", "It moved to 4pm", "4pm"),
     ("15 October", "It moved to the 22nd of October", "22nd of October")],
)  # fmt: skip
def test_a_unit_glued_to_its_number_is_nothing_that_an_update_drops(
    old: str, text: str, new: str
) -> None:
    known = KnownFact("k1", 7, "fact", "thing", old, False)
    verdict = gate(fact(text, new, to="k1", relation="updates"), said(text), [known])
    assert (verdict.outcome, verdict.candidate.relation) == ("accept", "updates")


@pytest.mark.parametrize("piece", ["says ", "<a>", "mi ", "page a, "])
def test_a_long_message_of_one_word_is_judged_in_time(piece: str) -> None:
    text = f"I live in Bergen. {piece * (40_000 // len(piece))}"
    began = time.perf_counter()
    gate(fact("I live in Bergen", "Bergen", key="city"), said(text))
    assert time.perf_counter() - began < 5
