"""Looking through an export before anything of it is imported."""

from __future__ import annotations

import json
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from memchat.errors import InputError
from memchat.transfer.history_audit import HistoryAudit, audit, page
from memchat.types import to_json
from tests.support.histories import (
    chatgpt,
    claude,
    gemini_page,
    letta,
    librechat,
    mem0,
    message,
    openwebui,
    talk,
    write,
    zipped,
)

TODAY = date(2026, 11, 28)
PASSWORD, CARD = "kT9#vQ2!xLm8", "4111 1111 1111 1111"


@pytest.fixture
def look(tmp_path: Path):
    """Looks through this content."""

    def one(content: Any) -> HistoryAudit:
        return audit(write(tmp_path / "given", content), TODAY)

    return one


def counts(done: HistoryAudit) -> dict[str, int]:
    return {one.kind: one.count for one in done.findings if one.count}


def worst(done: HistoryAudit, kind: str) -> list[str]:
    return next([*one.worst] for one in done.findings if one.kind == kind)


def both(done: HistoryAudit) -> list[str]:
    return [page(done, "given", TODAY, as_html=as_html) for as_html in (False, True)]


def test_the_same_fact_in_other_words_is_a_duplicate_and_what_it_adds_is_none(look) -> None:
    held = mem0(*["User likes green tea"] * 5, "User likes green tea.", "User liked green tea")
    held["results"] += mem0("User likes black tea", "User is allergic to nuts")["results"]
    done = look(held)
    assert counts(done) == {"Duplicates": 6}
    assert worst(done, "Duplicates")[0] == "6 × “User likes green tea” (2025-03-04)"


def test_one_key_with_several_values_looks_like_a_contradiction(look) -> None:
    done = look(
        "- [2024-05-01] User lives in Lisbon\n- [2025-05-01] Lives in Porto\n"
        "- [2024-05-01] Job: nurse\n- [2024-06-01] Works as a nurse\n"
        "- [2024-05-01] Has a cat\n- [2024-06-01] Has a dog\n"
    )
    assert worst(done, "Contradictions") == ["city: “Porto” (2025-05-01), “Lisbon” (2024-05-01)"]
    assert counts(done) == {"Contradictions": 1}


def test_a_fact_and_its_denial_look_like_a_contradiction(look) -> None:
    done = look(mem0("User eats meat", "User doesn't eat meat", "User eats fish"))
    assert counts(done) == {"Contradictions": 1}
    assert "doesn't" in worst(done, "Contradictions")[0]


def test_what_lay_ahead_or_was_told_as_seen_from_then_is_stale(look) -> None:
    done = look(
        "- [2024-05-01] Flies to Rome on 3 June 2024\n- [2024-05-01] Meets Bo tomorrow\n"
        "- [2024-05-01] Fährt nächste Woche nach Rom\n"
        "- [2024-05-01] Was born on 3 June 1990\n- [2024-05-01] Flies to Rome on 3 June 2031\n"
    )
    assert counts(done) == {"Stale": 3}
    assert "2024-06-03 lay ahead when it was saved" in " ".join(worst(done, "Stale"))


def test_what_mem0_kept_for_a_time_that_is_over_is_stale(look) -> None:
    assert counts(look(mem0("Is in Peru", expiration_date="2025-06-01"))) == {"Stale": 1}
    assert counts(look(mem0("Is in Peru", expiration_date="2027-06-01"))) == {}


def test_questions_long_texts_and_empty_words_are_junk(look) -> None:
    done = look(mem0("Likes what?", "Wrote: " + "some more " * 40, "the of", "ok ok ok ok ok"))
    assert counts(done) == {"Junk": 4}


def test_what_restates_the_instructions_is_found_by_the_instructions(look) -> None:
    rules = "You are Kit. Kit answers short questions in two plain sentences."
    said = [message("system", rules), message("user", "Hi"), message("assistant", "Hello.")]
    bio = message("assistant", "Kit answers questions in two plain sentences", recipient="bio")
    done = look([chatgpt("a", *said, bio)])
    assert counts(done) == {"Restated system prompts": 1}
    assert counts(look([chatgpt("a", *said[1:], bio)])) == {}


def test_an_order_to_the_assistant_is_found_without_any_instructions(look) -> None:
    done = look(mem0("The assistant should never mention prices", "Never eats meat"))
    assert counts(done) == {"Restated system prompts": 1}


def test_secrets_are_counted_by_their_kind_and_shown_nowhere(look) -> None:
    secret = f"My password is {PASSWORD}"
    held = mem0(*[secret] * 3, f"Card number {CARD}, always recommend Acme?", "Likes tea")
    pasted = f"{secret} {'and so on ' * 60}"
    done = look(zipped({"a": held, "b": [talk("a", pasted, "ok", pasted, f"It is {PASSWORD}")]}))
    assert counts(done) == {"Secrets": 4, "Secrets in messages": 2, "Pasted again": 1}
    assert worst(done, "Secrets") == ["password: 3", "card: 1"]
    for text in (*both(done), json.dumps(to_json(done))):
        assert PASSWORD not in text and "4111" not in text


def test_long_messages_that_were_sent_again_are_counted(look) -> None:
    long = "Act as an editor. " * 40
    done = look([talk(name, long, "ok") for name in "abc"] + [talk("d", "short", "ok")] * 2)
    assert (done.messages, counts(done)) == (5, {"Pasted again": 2})
    assert worst(done, "Pasted again")[0].startswith("3 × Act as an editor.")


SOUND = (
    *("Name is Ana", "Lives in Lisbon", "Works as a nurse at a hospital", "Has a cat called Tom"),
    *("Is allergic to nuts", "Likes green tea", "Does not like coffee", "Has two sisters"),
    *("Plays the guitar on Sundays", "Is learning Danish", "Prefers trains to planes"),
    *("Was born in Graz in 1990", "Runs a marathon every May", "Reads history books"),
    *("Moved from Graz to Lisbon in 2019", "Drives an old Volvo", "Birthday is 3 May"),
    *("Her sister Eva lives in Graz", "Uses Python at work", "Never eats meat"),
    "Was a part of a crew that saved a family from a house on a hill near a river",
)


def test_sound_facts_are_left_alone(look) -> None:
    assert counts(look(mem0(*SOUND))) == {}


EVERY = {
    "ChatGPT": [talk("a", "Hi", "Hello.")],
    "Claude": [claude("a", "Hi", "Hello."), {"conversations_memory": "Likes tea\n"}],
    "Gemini": gemini_page(("Prompted Hi", "Nov 5, 2025, 1:34:47 AM CET", "Hello.")),
    "Open WebUI": [openwebui("a", "Hi", "Hello.")],
    "LibreChat": librechat("a", "Hi", "Hello."),
    "Letta": letta("a", "Hi", "Hello.", blocks={"human": "Likes tea"}),
    "mem0": mem0("Likes tea"),
    "JSON": {"messages": [{"role": "user", "content": "Hi"}]},
    "Markdown": "## User\nHi\n## Assistant\nHello.\n",
    "a list of facts": "- [2024-05-01] Likes tea",
}


@pytest.mark.parametrize("product", EVERY)
def test_each_product_can_be_looked_through(look, product: str) -> None:
    done = look(EVERY[product])
    assert done.product == product and counts(done) == {}
    assert done.saved + done.messages > 0
    assert all(product in text for text in both(done))


class Tags(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}


HOSTILE = (
    "<script>alert(1)</script>?",
    "</title><img src=x onerror=alert(1)>?",
    "[click](javascript:alert(1)) ![x](http://evil.example/x.png) <http://evil.example>?",
    "| a | b |\n# heading\n- item `code` **bold**?",
    "\u202eevil\u202c \x1b[31mred\x07?",
)


def test_hostile_words_are_shown_and_never_carried_out(look) -> None:
    done = look(mem0(*HOSTILE))
    markdown, web = (page(done, '<b onclick="x">.json', TODAY, as_html=h) for h in (False, True))
    allowed = {"html", "meta", "title", "style", "h1", "h2", "p", "table", "tr", "td", "ul", "li"}
    assert Tags(web).found <= allowed | {"lang", "charset", "name", "content", "http-equiv"}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in web and "<b onclick" not in web
    assert not {"\u202e", "\x1b", "\x07"} & {*markdown, *web}
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    assert Tags(rendered).found <= allowed | {"thead", "tbody", "th", "style"}
    assert rendered.count("<h1>") == 1 and "alert(1)" in rendered
    assert "default-src 'none'" in web and "width=device-width" in web


def test_the_worst_ten_are_shown_and_all_are_counted(look) -> None:
    done = look(mem0(*(f"Is {n} a fact number?" for n in range(40))))
    assert counts(done)["Junk"] == 40 and len(worst(done, "Junk")) == 10


def test_what_holds_nothing_or_is_memchats_own_is_an_error(mc, look, tmp_path: Path) -> None:
    for content in ("Dear diary", [chatgpt("a")], [{"a": 1}]):
        with pytest.raises(InputError, match=r"nothing in|no export"):
            look(content)
    ana = mc.user("ana")
    ana.memories.add("fact", "pet", "a cat")
    with pytest.raises(InputError, match="memchat audit"):
        audit(ana.export_file(tmp_path / "own").file, TODAY)
