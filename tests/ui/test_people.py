"""The app for several people: who is let in, what is theirs alone, and what admins alone may do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.config.settings import load, set_settings
from memchat.errors import ConfigError, InputError, ScopeError, StoreError
from tests.support import empty_store
from tests.support.histories import talk
from tests.support.ui.browser import free_port
from tests.support.ui.oidc import COOKIE_SECRET, let_in
from tests.support.ui.tab import (
    act,
    app,
    buttons,
    forget_desk,
    give,
    listed,
    press,
    room,
    say,
    text,
    until,
)
from ui import components, launch, people, theme
from ui.people import Person, person_of, public_origin, read_auth

ISSUER = "https://id.example.org"
AUTH = {
    "client_id": "memchat",
    "client_secret": "x",
    "server_metadata_url": f"{ISSUER}/.well-known/openid-configuration",
    "cookie_secret": COOKIE_SECRET,
}
URL = "http://127.0.0.1:8501"
LetIn = Callable[..., Path]


def claims(name: str, *, verified: object = True, **more: Any) -> dict[str, Any]:
    """What the provider says of somebody."""
    said = {"iss": ISSUER, "sub": f"sub-{name}", "email": f"{name}@example.org"}
    return {"is_logged_in": True, **said, "email_verified": verified, **more}


ANA, BOB, EVE = claims("ana"), claims("bob"), claims("eve")


@pytest.fixture
def app_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts the app as for these people, as ``memchat ui`` does; gives its data folder."""
    monkeypatch.chdir(tmp_path)
    home = empty_store.place(tmp_path / "store")
    for name, value in {
        "MEMCHAT_HOME": str(home),
        "MEMCHAT_USER": "owner",
        "MEMCHAT_EMBED_MODEL": "none",
        "MEMCHAT_CHAT_MODEL": "offline/chat",
        "MEMCHAT_EXTRACT_MODEL": "offline/extract",
    }.items():
        monkeypatch.setenv(name, value)

    def start(allow: list[str], admins: list[str] = []) -> Path:  # noqa: B006
        let_in(home, AUTH, allow=allow, admins=admins)
        sources = launch._of_this_process_alone(None, URL)
        monkeypatch.setattr(launch, "_sources", sources)
        return home

    yield start
    forget_desk()


BOTH = ["ana@example.org", "bob@example.org"]


def users(home: Path) -> list[str]:
    with MemChat(settings=Settings(home=home)) as mc:
        return [one.name for one in mc.users.list()]


def name_of(home: Path, said: dict[str, Any]) -> str:
    return person_of(said, home).name


# Who is let in


def test_what_one_person_imports_is_for_nobody_else(app_for: LetIn) -> None:
    app_for(BOTH)
    ana, bob = (app("settings", user=said, part="data") for said in (ANA, BOB))
    give(ana, "theirs.json", json.dumps([talk("a", "I live in Lisbon", "Fine.")]).encode())
    until(ana, lambda: not ana.button(key="import").disabled)
    bob.run()
    assert bob.button(key="import").disabled and "2 messages" not in text(bob)
    press(ana, "import")
    until(ana, lambda: "ChatGPT · 1 chat" in text(ana))
    bob.run()
    assert "ChatGPT ·" not in text(bob) and "Imported" not in text(bob)
    assert "import-undone-0" not in {one.key for one in bob.button}


def test_who_has_not_signed_in_sees_a_way_to_sign_in_and_nothing_else(app_for: LetIn) -> None:
    home = app_for(BOTH)
    at = app(user={"is_logged_in": False})
    assert [b.label for b in at.button] == ["Sign in"]
    assert text(at) == "memchat\nSign in to go on."
    assert not at.sidebar.children
    assert users(home) == []


def test_nobody_is_let_in_by_default(app_for: LetIn) -> None:
    home = app_for([])
    at = app(user=ANA)
    assert "Not let in" in text(at) and "ask whoever runs it" in text(at)
    assert (
        at.code[0].value == f"ana@example.org\n{ISSUER} sub-ana"
    )  # so that an entry can be made of it
    assert [b.label for b in at.button] == ["Sign out"]
    assert not at.sidebar.children
    assert users(home) == [] and components._desks == []


@pytest.mark.parametrize("page", ["memories", "notes", "inbox", "insights", "settings"])
def test_no_page_s_address_leads_a_stranger_past_the_refusal(app_for: LetIn, page: str) -> None:
    app_for(BOTH)
    app(user=ANA)
    at = app(page, user=EVE, app="default", c="1", part="data")
    assert "Not let in" in text(at)
    assert [b.label for b in at.button] == ["Sign out"]


def test_an_email_lets_in_only_where_the_provider_says_that_it_is_verified(app_for: LetIn) -> None:
    home = app_for(["Ana@Example.org"])
    assert person_of(ANA, home).shown == "ana@example.org"
    assert person_of(ANA | {"email": "ANA@example.ORG"}, home)
    for verified in (False, None, "true", 1):
        with pytest.raises(ScopeError):
            person_of(claims("ana", verified=verified), home)
    # K, the sign of the kelvin, becomes a k in small letters.
    app_for(["kate@example.org"])
    with pytest.raises(ScopeError):
        person_of(claims("\u212aate"), home)


def test_an_issuer_and_a_subject_let_in_without_an_email(app_for: LetIn) -> None:
    home = app_for([f"{ISSUER} sub-ana"])
    assert person_of(claims("ana", verified=False), home)
    for other in ({"iss": "https://other.example"}, {"sub": "sub-an"}, {"sub": "Sub-ana"}):
        with pytest.raises(ScopeError):
            person_of(claims("ana", verified=False) | other, home)
    with pytest.raises(ScopeError):
        person_of(EVE | {"email": f"{ISSUER} sub-ana"}, home)


def test_a_person_is_an_issuer_and_a_subject_whatever_the_email_becomes(app_for: LetIn) -> None:
    home = app_for(BOTH)
    ana = person_of(ANA, home)
    assert ana == Person(ana.name, "ana@example.org", is_admin=False, signed_in=True)
    assert ana.name.startswith("person-") and ana.name.isascii() and len(ana.name) == 39
    assert name_of(home, ANA | {"email": "bob@example.org", "name": "A"}) == ana.name
    assert name_of(home, ANA | {"sub": "2"}) != ana.name
    assert name_of(home, ANA | {"iss": "https://other.example"}) != ana.name


def test_who_is_taken_off_the_list_is_out_at_the_next_click(app_for: LetIn) -> None:
    home = app_for(BOTH)
    at = app("settings", user=BOB, part="memory")
    let_in(home, AUTH, allow=BOTH[:1])
    at.toggle(key="memory of user").set_value(False).run()
    assert "Not let in" in text(at)
    with MemChat(settings=Settings(home=home)) as mc:
        let_in(home, AUTH, allow=BOTH)
        assert mc.user(name_of(home, BOB)).memory_switch(all_apps=True).on


def test_a_list_that_cannot_be_read_lets_nobody_in(app_for: LetIn) -> None:
    home = app_for(BOTH)
    (home / "settings.toml").write_text("[people]\nallow = 'ana@example.org'\n")
    at = app(user=ANA)
    assert "[people] in settings.toml holds allow and admins" in text(at)
    assert not at.button


def test_who_lacks_an_issuer_or_a_subject_is_nobody(app_for: LetIn) -> None:
    home = app_for(BOTH)
    for lacking in ("iss", "sub", "is_logged_in"):
        with pytest.raises(ScopeError, match="sign in"):
            person_of({name: one for name, one in ANA.items() if name != lacking}, home)


# What is theirs alone


def test_two_people_at_once_have_memories_chats_and_notes_of_their_own(app_for: LetIn) -> None:
    home = app_for(BOTH)
    ana, bob = app(user=ANA), app(user=BOB)
    say(ana, "I live in Lisbon.")
    say(bob, "I live in Oslo.")
    ana.button(key="new").click().run()
    desks = {desk.user: desk for desk in components._desks}
    assert desks.keys() == {name_of(home, ANA), name_of(home, BOB)}
    note = desks[name_of(home, ANA)].mc.user(name_of(home, ANA)).notes.add("The cello is in C.")
    for desk in desks.values():
        desk.mc.jobs.run(user=desk.user)
    assert "Lisbon" in text(app("memories", user=ANA))
    assert "Lisbon" not in text(app("memories", user=BOB))
    assert "is another's" in text(app(user=BOB, c="1"))
    assert "Lisbon" not in text(app(user=BOB, c="1"))
    assert "cello" not in text(app("notes", user=BOB, note=str(note.id if note else 0)))
    bob.run()
    assert "Lisbon" not in text(bob) and "Oslo" in text(bob)


def test_what_can_be_undone_and_drafts_are_one_person_s(app_for: LetIn) -> None:
    home = app_for(BOTH)
    app(user=ANA)
    person = components._desks[0].mc.user(name_of(home, ANA))
    person.memories.add("profile", "city", "Lisbon")
    ana, bob = app("memories", user=ANA), app("memories", user=BOB)
    act(ana, "forget", listed(ana)[0]["id"])
    assert buttons(ana, "undo-")
    bob.run()
    assert not buttons(bob, "undo-")
    chats = {room(app(user=said))["chat"] for said in (ANA, BOB)}
    assert chats == {f"default-{name_of(home, said)}/new" for said in (ANA, BOB)}


def test_a_session_that_becomes_another_person_s_is_refused(app_for: LetIn) -> None:
    app_for(BOTH)
    at = app(user=ANA)
    at.user = BOB
    at.run()
    assert "reload the page" in text(at)
    assert not at.sidebar.children


# What admins alone may do


PARTS = ("models", "memory", "data", "programs", "advanced")


@pytest.mark.parametrize("part", PARTS)
def test_who_is_no_admin_reaches_no_part_for_admins_by_its_address(
    app_for: LetIn, part: str
) -> None:
    home = app_for(BOTH)
    at = app("settings", user=BOB, part=part)
    said = text(at)
    assert "Memory" in said and "Data" in said
    for word in (
        "Providers",
        "Backups",
        "Wipe",
        "Tokens",
        "health",
        str(home),
        "Models",
        "Advanced",
    ):
        assert word not in said, word
    for kind in (at.toggle, at.multiselect, at.button, at.selectbox, at.number_input, at.radio):
        assert not {one.key for one in kind if (one.key or "").startswith("set-")}
    assert not {b.key for b in at.button} & {"backup", "wipe", "keep-key", "probe", "make-token"}


@pytest.mark.parametrize("part", PARTS)
def test_admins_see_every_part_and_need_not_be_in_allow(app_for: LetIn, part: str) -> None:
    app_for([], ["ana@example.org"])
    at = app("settings", user=ANA, part=part)
    assert all(name.capitalize() in text(at) for name in PARTS)
    keys = {"models": "keep-key", "data": "backup", "advanced": "probe", "memory": None}
    assert (key := keys.get(part)) is None or key in {b.key for b in at.button}


def test_what_a_tab_holds_makes_nobody_an_admin(app_for: LetIn) -> None:
    home = app_for(BOTH)
    at = app("settings", user=BOB, part="data")
    at.session_state["wiping"] = True
    at.session_state["old backups"] = [home / "memchat.db.1.bak"]
    at.run()
    assert not {b.key for b in at.button} & {"wipe-yes", "old-backups-delete", "backup"}
    bob = at.session_state["signed in"]
    at.session_state["signed in"] = Person(bob.name, bob.shown, is_admin=True, signed_in=True)
    at.run()
    assert "reload the page" in text(at)


def test_an_admin_s_button_that_is_pressed_from_another_s_tab_does_nothing(app_for: LetIn) -> None:
    home = app_for(BOTH[1:], BOTH[:1])
    ana, bob = (app("settings", user=said, part="data") for said in (ANA, BOB))
    before = sorted(home.iterdir())
    states = bob._tree.get_widget_states()
    for key in ("backup", "wipe"):
        state = states.widgets.add()
        state.id, state.trigger_value = ana.button(key=key).proto.id, True
    bob._run(states)
    assert not bob.exception
    assert sorted(home.iterdir()) == before
    assert all(not desk.tasks for desk in components._desks)
    assert not {b.key for b in bob.button} & {"wipe-yes", "backup"}


@pytest.mark.parametrize(
    ("part", "key"), [("data", "backup"), ("models", "keep-key"), ("programs", "make-token")]
)
def test_who_is_an_admin_no_longer_does_nothing_on_a_page_that_is_still_open(
    app_for: LetIn, part: str, key: str
) -> None:
    home = app_for([], ["bob@example.org"])
    at = app("settings", user=BOB, part=part)
    before = sorted(home.iterdir())
    let_in(home, AUTH, allow=BOTH)
    at.button(key=key).click().run()
    assert "Not let in" in text(at) or at.exception
    assert sorted(home.iterdir()) == before


def test_new_settings_hold_at_everybody_s_desk_over_one_store(app_for: LetIn) -> None:
    app_for(BOTH[1:], BOTH[:1])
    at = app("settings", user=ANA, part="memory")
    app(user=BOB)
    before = {id(desk.mc): desk.mc for desk in components._desks}
    at.number_input(key="set-top_k").set_value(7).run()
    assert not at.exception
    assert [desk.mc.settings.top_k for desk in components._desks] == [7, 7]
    now = {id(desk.mc): desk.mc for desk in components._desks}
    assert len(before) == len(now) == 1 and not before.keys() & now.keys()


def test_a_store_is_closed_when_the_last_desk_leaves_it(app_for: LetIn) -> None:
    app_for(BOTH)
    for said in (ANA, BOB):
        app(user=said)
    first, last = components._desks
    components._leave(first)
    assert last.mc.users.list() == []
    components._leave(last)
    with pytest.raises(StoreError):
        last.mc.users.list()
    components._desks[:] = [first, last]  # as the cache has them still


def test_an_import_opens_no_file_of_the_machine_to_who_is_no_admin(app_for: LetIn) -> None:
    home = app_for(BOTH[1:], BOTH[:1])
    for said in (ANA, BOB):
        app(user=said)
        user = components._desks[-1].mc.user(name_of(home, said))
        secret = home / ".streamlit" / "secrets.toml"
        note = user.notes.add("Words", type="file", external_id=str(secret))
        assert note is not None
        at = app("notes", user=said, note=str(note.id))
        assert "Words" in text(at)
        there = {one.proto.label for one in at.get("download_button")}
        assert there == ({"Download the file"} if said is ANA else set())


def test_wiping_asks_an_admin_for_the_name_that_the_app_shows(app_for: LetIn) -> None:
    app_for([], BOTH)
    at = app("settings", user=ANA, part="data")
    press(at, "wipe")
    at.text_input(key="wipe-name").set_value("ana@example.org").run()
    assert not at.button(key="wipe-yes").disabled


# How it is set up


def test_without_people_and_a_provider_it_is_one_person_s_as_ever(tmp_path: Path) -> None:
    assert read_auth(tmp_path, URL) == {}
    assert launch.auth() == {}
    assert components.who().is_admin and not components.who().signed_in
    assert components.who().mark == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"client_id": None}, "names none"),
        ({"client_secret": None}, "client_secret"),
        ({"cookie_secret": None}, "cookie_secret"),
        ({"cookie_secret": "short"}, "cookie_secret"),
    ],
)
def test_half_a_provider_is_refused_at_the_start(
    tmp_path: Path, change: dict[str, str | None], said: str
) -> None:
    auth = {key: one for key, one in (AUTH | change).items() if one is not None}
    let_in(tmp_path, auth)
    with pytest.raises(ConfigError, match=said):
        read_auth(tmp_path, URL)


def test_people_without_a_provider_are_refused_at_the_start(tmp_path: Path) -> None:
    let_in(tmp_path, AUTH, allow=BOTH)
    (tmp_path / ".streamlit" / "secrets.toml").unlink()
    with pytest.raises(ConfigError, match="names none under"):
        read_auth(tmp_path, URL)


def test_a_provider_without_people_lets_nobody_in_rather_than_everybody(tmp_path: Path) -> None:
    let_in(tmp_path, AUTH)
    (tmp_path / "settings.toml").unlink()
    assert read_auth(tmp_path, URL)
    with pytest.raises(ScopeError):
        person_of(ANA, tmp_path)


def test_secrets_that_others_may_read_are_refused(tmp_path: Path) -> None:
    let_in(tmp_path, AUTH)
    (tmp_path / ".streamlit" / "secrets.toml").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod"):
        read_auth(tmp_path, URL)


@pytest.mark.parametrize(
    "table",
    [
        "people = 1",
        "[people]\nallow = 'ana@example.org'",
        "[people]\nallow = ['ana']",
        "[people]\nallow = ['*']",
        "[people]\nallow = [1]",
        "[people]\nadmins = ['https://id.example.org ']",
        "[people]\nallowed = []",
    ],
)
def test_a_list_that_says_something_else_is_refused_at_the_start(
    tmp_path: Path, table: str
) -> None:
    let_in(tmp_path, AUTH)
    (tmp_path / "settings.toml").write_text(table)
    with pytest.raises(ConfigError, match="nothing else"):
        read_auth(tmp_path, URL)


def test_the_app_says_itself_where_the_provider_sends_people_back(tmp_path: Path) -> None:
    let_in(tmp_path, AUTH | {"redirect_uri": "https://evil.example/", "expose_tokens": "id"})
    auth = read_auth(tmp_path, "https://memory.example.org")
    assert auth["redirect_uri"] == "https://memory.example.org/oauth2callback"
    assert auth["expose_tokens"] == []


def test_several_providers_have_a_button_each(
    app_for: LetIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = app_for(BOTH)
    own = "".join(f'{key} = "{AUTH[key]}"\n' for key in people.NEEDED)
    tables = f'[auth]\ncookie_secret = "{COOKIE_SECRET}"\n[auth.google]\n{own}[auth.work]\n{own}'
    (home / people.SECRETS).write_text(tables)
    monkeypatch.setattr(launch, "_sources", launch._of_this_process_alone(None, URL))
    at = app(user={"is_logged_in": False})
    assert [b.label for b in at.button] == ["Sign in with Google", "Sign in with Work"]


def test_changing_a_setting_leaves_the_people_as_they_are(tmp_path: Path) -> None:
    let_in(tmp_path, AUTH, allow=BOTH)
    set_settings(tmp_path, {"MEMCHAT_TOP_K": "7"})
    assert load({"MEMCHAT_HOME": str(tmp_path)}).top_k == 7
    assert json.dumps(BOTH) in (tmp_path / "settings.toml").read_text()


def test_a_public_address_is_refused_where_nobody_signs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCHAT_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="whoever came would be you"):
        launch.launch("ana", free_port(), print, public_url="https://memory.example.org")


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://Memory.example.org/", "https://memory.example.org"),
        ("https://memory.example.org:443", "https://memory.example.org"),
        ("https://memory.example.org:8443", "https://memory.example.org:8443"),
        ("http://localhost:8600", "http://localhost:8600"),
    ],
)
def test_a_public_address_is_an_origin(given: str, origin: str) -> None:
    assert public_origin(given) == origin
    assert theme.options(1, origin)["server.allowedHosts"] == [
        *theme.HOSTS,
        origin.split("/")[2].split(":")[0],
    ]


@pytest.mark.parametrize(
    "given",
    [
        "http://memory.example.org",
        "memory.example.org",
        "https://memory.example.org/app",
        "https://me:x@memory.example.org",
        "https://memory.example.org?x",
        "https://",
        "*",
        "",
    ],
)
def test_what_is_no_public_address_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="--public-url"):
        public_origin(given)
