"""Other programs in the app: setting them up, what they wrote, their tokens, what they ask."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from memchat import ClientAccess, MemChat, User
from memchat.config.tokens import Tokens
from tests.support.ui.tab import ANA, act, app, buttons, press, text

CLAUDE = "Claude Desktop"
SPRING = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
def ana(mc: MemChat) -> User:
    return mc.user(**ANA)


@pytest.fixture
def claude(ana: User) -> ClientAccess:
    return ana.client(CLAUDE, "trust")


def codes(at) -> list[str]:
    return [str(block.value) for block in at.code]


def test_settings_show_the_text_that_each_program_needs(mc: MemChat) -> None:
    at = app("settings", part="programs")
    for client in ("Claude Desktop", "VS Code", "Cursor"):
        at.selectbox(key="mcp-client").select(client).run()
        (shown,) = [code for code in codes(at) if "memchat" in code and "{" in code]
        (servers,) = json.loads(shown).values()
        entry = servers["memchat"]
        assert entry["args"][-6:] == ["--client", client, "--user", "ana", "--app", "default"]
        assert entry["env"] == {"MEMCHAT_HOME": str(mc.settings.home.resolve())}
    assert "~/.cursor/mcp.json" in text(at) and "None has called" in text(at)


def test_settings_list_what_a_program_wrote_and_undo_it_after_a_question(
    ana: User, claude: ClientAccess
) -> None:
    city = ana.memories.add("profile", "city", "Porto")
    claude.remember("preference", "drinks", "green tea")
    claude.index_memo("m1", "Four hundred euros.", SPRING, "Garden")
    claude.promote(city.id)
    at = app("settings", part="programs")
    assert "Wrote 1 memory and 1 note; 1 waiting in the Inbox, 0 asked to forget" in text(at)
    assert "what it remembers is stored" in text(at)
    press(at, "writes-0")
    said = text(at)
    for words in (
        "stored drinks: green tea",
        "kept the note “Garden”",
        "asked: Keep “You live in Porto” in every space? It waits in the Inbox.",
    ):
        assert words in said
    at = app("settings", part="programs")
    press(at, "undo-all-0")
    assert "1 memory and 1 note of Claude Desktop are deleted" in text(at)
    press(at, "undo-client-no")
    assert ana.memories.count() == 2
    press(at, "undo-all-0")
    press(at, "undo-client-yes")
    assert [memory.value for memory in ana.memories.list()] == ["Porto"]
    assert list(ana.notes.list()) == [] and ana.inbox.list() == []


def test_a_token_is_shown_once_listed_without_itself_and_deleted(mc: MemChat) -> None:
    home = mc.settings.home
    at = app("settings", part="programs")
    at.text_input(key="token-name").set_value("Web app")
    press(at, next(b.key for b in at.button if b.label == "Make a token"))
    (made,) = Tokens(home).all().values()
    shown = next(code for code in codes(at) if Tokens(home).of(f"Bearer {code}") is not None)
    assert (made.name, made.mode, made.user) == ("Web app", "ask", ANA["user"])
    at.run()
    assert shown not in codes(at) and "Web app" in text(at)
    press(at, "delete-token-0")
    assert Tokens(home).all() == {} and not buttons(at, "delete-token-")


def test_a_token_without_a_name_is_refused(mc: MemChat) -> None:
    at = app("settings", part="programs")
    press(at, next(b.key for b in at.button if b.label == "Make a token"))
    assert "The name of the program is empty." in text(at)
    assert Tokens(mc.settings.home).all() == {}


def test_a_request_to_forget_is_answered_in_the_inbox_and_undone(
    ana: User, claude: ClientAccess
) -> None:
    item = claude.forget(ana.memories.add("profile", "city", "Porto").id).inbox_id
    at = app("inbox")
    assert "Forget “You live in Porto” for good?" in text(at)
    assert "Why it waits: Claude Desktop asks to forget it." in text(at)
    assert at.button(key=f"reject-{item}").label == "Do not forget it"
    assert at.button(key=f"accept-{item}").label == "Forget it"
    press(at, f"accept-{item}")
    assert "Forgot: You live in Porto. Gone for good in 10 s." in text(at)
    assert ana.inbox.list() == []
    press(at, buttons(at, "undo-")[0])
    assert [memory.value for memory in ana.memories.list()] == ["Porto"]


def test_a_yes_to_many_leaves_requests_to_forget_and_says_why(
    ana: User, claude: ClientAccess
) -> None:
    city, pet = (ana.memories.add("fact", key, key).id for key in ("harbour", "dog"))
    keep, forget = claude.promote(pet).inbox_id, claude.forget(city).inbox_id
    at = app("inbox")
    assert "Keep “Your pets include dog” in every space?" in text(at)
    assert at.button(key=f"accept-{keep}").label == "Keep in every space"
    at.checkbox(key="all items").check().run()
    assert at.button(key="accept-chosen").label == "Say yes to 2"
    press(at, "accept-chosen")
    assert "Forgetting cannot be taken back; say yes to this one by itself." in text(at)
    assert "Kept in every space" in text(at) and ana.memories.get(pet).app == ""
    assert [item.id for item in ana.inbox.list()] == [forget]


def test_a_hidden_memory_says_that_it_waits_and_can_be_brought_back(
    ana: User, claude: ClientAccess
) -> None:
    city = ana.memories.add("profile", "city", "Porto")
    claude.forget(city.id)
    at = app("memories")
    at.selectbox(key="status").select("forgotten").run()
    waits = "Claude Desktop asks to forget it. It is out of use until you decide in the Inbox."
    assert waits in text(at)
    act(at, "restore", city.id)
    assert ana.memories.get(city.id).active and ana.inbox.list() == []


def test_a_memory_names_the_program_that_stored_it_and_not_the_person(
    ana: User, claude: ClientAccess
) -> None:
    stored = claude.remember("preference", "drinks", "green tea").memory
    ana.memories.add("profile", "city", "Porto")
    at = app("memories")
    at.selectbox(key="created").select("mcp").run()
    said = text(at)
    assert "stored by Claude Desktop over MCP · today" in said and "Porto" not in said
    act(at, "details", stored.id)
    said = text(at)
    assert "Sent by Claude Desktop over MCP, today:" in said and "> green tea" in said
    assert "by Claude Desktop over MCP" in said.split("What happened to it")[-1]
    for wrong in ("said today", "said 1 time", "your message", "entered or accepted by you"):
        assert wrong not in said
