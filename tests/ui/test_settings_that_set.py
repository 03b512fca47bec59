"""The settings page changes models, keys and the embedding service, and tests them."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from memchat import MemChat
from memchat.config import keys
from tests.support.chat_providers import KEY
from tests.support.ui.tab import app, buttons, give, press, say, text, until
from tests.support.wire import Fail, OpenAIServer, Say
from ui import components
from ui.desk import Desk, Task
from ui.settings.transfer import exported

HEADING = "# mine\n"


@pytest.fixture
def models(tmp_path: Path) -> dict[str, str]:
    """None is named in the environment: the file in the data folder counts."""
    file = tmp_path / "store" / "settings.toml"
    file.parent.mkdir()
    file.write_text(f'{HEADING}MEMCHAT_EMBED_MODEL = "none"\n')
    file.chmod(0o600)
    return {"MEMCHAT_EMBED_MODEL": ""}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer() as found:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{found.url}/v1")
        yield found


def kept(mc: MemChat) -> str:
    return (mc.settings.home / "settings.toml").read_text()


def enter_key(at: AppTest, provider: str, key: str) -> None:
    at.selectbox(key="key-provider").set_value(provider).run()
    at.text_input(key="key-value").set_value(key)
    press(at, "keep-key")


def test_the_first_start_leads_from_the_stand_in_to_the_settings(desk: Desk) -> None:
    at = app()
    assert "an offline stand-in answers" in text(at)
    press(at, "to-settings")
    assert at.title[0].value == "Settings"


def test_a_key_is_kept_and_used_from_the_next_message_and_never_shown(
    server: OpenAIServer, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "memchat")
    talk = app()
    say(talk, "Hello")
    at = app("settings")
    enter_key(at, "openai", KEY)
    said = at.success[0].value.replace("\\", "")
    assert "From now on openai/gpt-4.1-mini answers." in said
    file = desk.mc.settings.home / keys.FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert keys.read(desk.mc.settings.home) == {f"OPENAI_API_KEY at {server.url}/v1": KEY}
    at.run()
    assert at.text_input(key="key-value").value == ""
    assert KEY not in text(at) + repr(vars(at.session_state._state)) + caplog.text
    assert "key kept here" in text(at) and "offers 2 models" in said
    server.script(Say("Bom dia."))
    say(talk, "And now?")
    assert "Bom dia." in text(talk)
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"


def test_a_key_that_cannot_be_one_is_refused_beside_its_field_without_being_shown(
    server: OpenAIServer, desk: Desk
) -> None:
    at = app("settings")
    enter_key(at, "openai", "two words")
    assert "is no key" in text(at)
    assert "two words" not in text(at)
    assert at.selectbox(key="key-provider").value == "openai"
    assert keys.read(desk.mc.settings.home) == {}


def test_a_key_is_removed_and_the_stand_in_answers_again(server: OpenAIServer, desk: Desk) -> None:
    at = app("settings")
    enter_key(at, "openai", KEY)
    assert desk.mc.settings.chat_model.startswith("openai/")
    press(at, buttons(at, "remove-openai-")[0])
    assert keys.read(desk.mc.settings.home) == {}
    assert desk.mc.settings.chat_model == "offline/chat"


def test_a_key_that_its_server_refuses_is_not_kept(server: OpenAIServer, desk: Desk) -> None:
    at = app("settings")
    enter_key(at, "openai", "sk-not-the-one")
    assert "OpenAI refused this key." in text(at)
    assert keys.read(desk.mc.settings.home) == {}


def test_any_server_is_given_its_address_and_its_models_can_be_chosen(
    server: OpenAIServer, desk: Desk
) -> None:
    at = app("settings")
    at.selectbox(key="key-provider").set_value("hosted_vllm").run()
    at.text_input(key="address-hosted_vllm").set_value(f"{server.url}/v1")
    at.text_input(key="key-value").set_value(KEY)
    press(at, "keep-key")
    assert "Another server is kept and offers 2 models." in text(at)
    until(at, lambda: "hosted_vllm/gpt-4.1-mini" in at.selectbox(key="set-chat_model").options)
    at.selectbox(key="set-chat_model").set_value("hosted_vllm/gpt-4.1-mini")
    press(at, "use-models")
    server.script(Say("Bom dia."))
    talk = app()
    say(talk, "Hello")
    assert "Bom dia." in text(talk)


def test_a_new_address_asks_for_a_key_of_its_own(server: OpenAIServer, desk: Desk) -> None:
    home = desk.mc.settings.home
    desk.mc.connect("openai", KEY, f"{server.url}/v1")
    components.reopen()
    assert desk.mc.settings.keys.value("OPENAI_API_KEY") == KEY
    keys.set_key(home, "openai", "mk-of-the-gateway", "http://127.0.0.1:9/v1")
    components.reopen()
    assert desk.mc.settings.keys.value("OPENAI_API_KEY") == KEY
    keys.remove_key(home, "openai", f"{server.url}/v1")
    components.reopen()
    assert desk.mc.settings.keys.value("OPENAI_API_KEY") is None


def test_chosen_models_are_kept_beside_what_the_person_wrote_and_used_at_once(desk: Desk) -> None:
    at = app("settings")
    at.selectbox(key="set-chat_model").set_value("openai/gpt-4.1-mini")
    press(at, "use-models")
    assert kept(desk.mc).startswith(f'{HEADING}MEMCHAT_EMBED_MODEL = "none"\n')
    assert desk.mc.settings.chat_model == "openai/gpt-4.1-mini"
    assert "OpenAI has no key yet; enter it below." in text(at)
    at.selectbox(key="set-chat_model").set_value("")
    press(at, "use-models")
    assert "CHAT_MODEL" not in kept(desk.mc)
    assert desk.mc.settings.chat_model == "offline/chat"


def test_a_model_without_a_provider_is_refused_and_nothing_changes(desk: Desk) -> None:
    file = desk.mc.settings.home / "settings.toml"
    file.write_text('MEMCHAT_CHAT_MODEL = "gpt5"\n')
    components.reopen()
    at = app("settings")
    before = kept(desk.mc)
    press(at, "use-models")
    assert "The model gpt5 names no provider; write provider/model" in text(at)
    assert kept(desk.mc) == before


def test_what_the_environment_sets_is_not_offered_for_change(
    monkeypatch: pytest.MonkeyPatch, desk: Desk
) -> None:
    monkeypatch.setenv("MEMCHAT_CHAT_MODEL", "offline/chat")
    at = app("settings")
    at.selectbox(key="set-extract_model").set_value("offline/extract")
    press(at, "use-models")
    assert "set-chat_model" not in [field.key for field in at.selectbox]
    assert "Set in the environment; change it there." in text(at)
    assert at.selectbox(key="set-extract_model").value == "offline/extract"


def test_the_connection_is_tested_and_the_remedy_told(server: OpenAIServer, desk: Desk) -> None:
    at = app("settings", part="advanced")
    desk.mc.connect("openai", KEY, f"{server.url}/v1")
    components.reopen()
    at.run()
    server.script(Say("Hello"), Fail(401, "no such key"))
    press(at, "probe")
    until(at, lambda: "✓ **Connection" in text(at))
    assert 'openai/gpt-4.1-mini answered "Hello"' in text(at)
    assert "✗ **Connection**: extraction: " in text(at)
    assert KEY not in text(at)


def test_the_embedding_service_is_changed_with_progress_and_stays_so(
    server: OpenAIServer, desk: Desk
) -> None:
    server.dimensions = 1536
    desk.mc.user("ana").memories.add("profile", "city", "Lisbon")
    at = app("settings", part="advanced")
    desk.mc.connect("openai", KEY, f"{server.url}/v1")
    components.reopen()
    at.run()
    assert "by their words only" in text(at)
    at.selectbox(key="set-embed_model").set_value("openai/text-embedding-3-small").run()
    press(at, "change-embedding")
    until(at, lambda: "openai/text-embedding-3-small is in use; 1 text embedded" in text(at))
    assert "In use: openai/text-embedding-3-small, 1 vector." in text(at).replace("*", "")
    assert kept(desk.mc) == f'{HEADING}MEMCHAT_EMBED_MODEL = "openai/text-embedding-3-small"\n'
    assert desk.mc.settings.embed_model == "openai/text-embedding-3-small"
    at.selectbox(key="set-embed_model").set_value("none").run()
    press(at, "change-embedding")
    until(at, lambda: "found by their words only from now on" in text(at))
    assert desk.mc.settings.embed_model == "none"


def test_texts_without_a_vector_are_given_theirs(server: OpenAIServer, desk: Desk) -> None:
    server.dimensions = 1536
    desk.mc.user("ana").memories.add("profile", "city", "Lisbon")
    at = app("settings", part="advanced")
    desk.mc.connect("openai", KEY, f"{server.url}/v1")
    components.reopen()
    at.run()
    at.selectbox(key="set-embed_model").set_value("openai/text-embedding-3-small").run()
    press(at, "change-embedding")
    until(at, lambda: "1 text embedded" in text(at))
    assert "make-vectors" not in [button.key for button in at.button]
    with MemChat(settings=replace(desk.mc.settings, embed_model="none")) as by_words:
        by_words.user("ana").memories.add("fact", "tea", "green, without sugar")
    at.run()
    assert "1 text without a vector of it yet" in text(at)
    press(at, "make-vectors")
    until(at, lambda: "1 text embedded." in text(at))
    assert "2 vectors." in text(at)


def test_what_was_drawn_before_a_task_ended_is_drawn_anew(desk: Desk) -> None:
    def page() -> None:
        import streamlit as st

        from ui import components
        from ui.settings import tasks

        st.button("Begin", key="begin", disabled=tasks.running("task"))
        task = components.desk().tasks["task"]
        st.session_state["goes on"].set()
        assert task.wait(10)
        tasks.ended("task")

    goes_on = threading.Event()
    desk.tasks["task"] = Task("Waiting", 0, lambda **_: goes_on.wait(10))
    at = AppTest.from_function(page)
    at.session_state["goes on"] = goes_on
    at.run()
    assert not at.exception
    assert not at.button(key="begin").disabled


def test_a_service_that_needs_a_key_is_not_changed_to_without_it(desk: Desk) -> None:
    at = app("settings", part="advanced")
    at.selectbox(key="set-embed_model").set_value("openai/text-embedding-3-small").run()
    press(at, "change-embedding")
    assert "OPENAI_API_KEY is not set; enter it under Keys first" in text(at)
    assert not desk.tasks


def test_what_was_exported_is_imported_after_everything_was_deleted(desk: Desk) -> None:
    ana = desk.mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    lines = exported(ana)
    assert json.loads(lines.splitlines()[0])["format"] == "memchat export"
    ana.delete_all()
    at = app("settings", part="data")
    assert at.get("download_button")[0].disabled
    give(at, "mine.jsonl", lines)
    until(at, lambda: "An export of memchat: 1 memory would be new." in text(at))
    press(at, "import")
    until(at, lambda: "Imported: 1 memory." in text(at))
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]
    give(at, "mine.jsonl", lines[:-30])
    until(at, lambda: "nothing was imported" in text(at))
    assert "ine.jsonl was cut off" in text(at)


def test_an_import_tells_of_notes_that_were_deleted_here_or_changed_elsewhere(
    desk: Desk, tmp_path: Path
) -> None:
    ana, other = desk.mc.user("ana"), desk.mc.user("other")
    for number in (1, 2):
        ana.notes.add(f"Memo {number}", external_id=number)
    other.import_file(ana.export_file(tmp_path / "mine.jsonl").file)
    (there,) = [note.id for note in other.notes.list() if note.external_id == 1]
    other.notes.update(there, text="Changed.")
    (here,) = [note.id for note in ana.notes.list() if note.external_id == 2]
    ana.notes.delete(here)
    at = app("settings", part="data")
    give(at, "new.jsonl", exported(other))
    until(at, lambda: not at.button(key="import").disabled)
    press(at, "import")
    until(at, lambda: "Deleted here, and left out: 1 note." in text(at))
    assert "Changed elsewhere later than here, and taken from there: 1 note." in text(at)
