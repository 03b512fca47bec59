"""Providers' keys: kept for one account, handed to the provider, and found nowhere else."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.cli import main
from memchat.config import keys, load
from memchat.config.providers import ANY_SERVER, KEYS, without_secrets
from memchat.errors import ConfigError, InputError, NotFound, ProviderError
from memchat.providers import litellm_calls
from memchat.providers.factory import chat_model, connect, embedder, explain
from tests.support.wire import Fail, GeminiServer, OpenAIServer
from tests.support.wire.case import HELLO

KEY = "mk-marker-7c0ffee7"
OTHER = "mk-another-51f0"


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """litellm, whose import must not outlive a test's warning filters."""
    litellm_calls.litellm()


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith("MEMCHAT_") or name.endswith(("_API_KEY", "_BASE_URL", "_API_BASE")):
            monkeypatch.delenv(name)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_a_key_is_kept_in_a_file_that_this_account_alone_can_read(home: Path) -> None:
    before = os.umask(0)
    try:
        assert keys.set_key(home, "openai", f"  {KEY}\n") == "OPENAI_API_KEY"
    finally:
        os.umask(before)
    assert stat.S_IMODE((home / "keys.toml").stat().st_mode) == 0o600
    assert keys.read(home) == {"OPENAI_API_KEY": KEY}
    assert [path.name for path in home.iterdir()] == ["keys.toml"]


@pytest.mark.parametrize("provider", sorted(KEYS.keys() - {ANY_SERVER}))
def test_where_a_key_is_missing_the_command_is_named_that_sets_it(
    provider: str, home: Path
) -> None:
    command, name = f"memchat keys set {provider}", f"{provider}/some-model"
    settings = load().with_(home=home, chat_model=name, extract_model=name, embed_model=name)
    settings = settings.with_(embed_dimensions=8, embed_max_tokens=512)
    assert all(command in (choice.remedy or "") for choice in explain(settings))
    with pytest.raises(ConfigError, match=command):
        chat_model(settings).complete(HELLO, purpose="extract")
    found = embedder(settings)
    assert found is not None
    with pytest.raises(ConfigError, match=command):
        found.embed_query("hello")
    assert keys.set_key(home, provider, KEY) in KEYS[provider]  # and the command takes the name


def test_without_any_key_the_command_is_named_too(home: Path) -> None:
    assert "run memchat keys set gemini" in (explain(load())[0].remedy or "")
    with MemChat(settings=load().with_(home=home, embed_model="none")) as mc:
        assert "Run memchat keys set gemini" in (mc.user("ana").chat().notice())


@pytest.mark.parametrize("kept", [True, False])
def test_a_key_that_is_refused_is_set_where_it_was_found(
    home: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setenv("MEMCHAT_HOME", str(home))
    with OpenAIServer(key="another") as server:
        if kept:
            keys.set_key(home, "openai", KEY, server.base)
        else:
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        with pytest.raises(ProviderError) as refused:
            chat_model(load()).complete(HELLO, purpose="extract")
    assert ("memchat keys set openai" in str(refused.value)) is kept
    assert ("set a valid one there" in str(refused.value)) is not kept


def test_keys_that_are_set_at_once_are_all_kept(home: Path) -> None:
    names = ["OPENAI_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: keys.set_key(home, name, KEY), names * 25))
    assert keys.read(home).keys() == {*names}
    assert [path.name for path in home.iterdir()] == ["keys.toml"]


def test_other_keys_stay_when_one_is_set_or_removed(home: Path) -> None:
    keys.set_key(home, "openai", KEY)
    keys.set_key(home, "VOYAGE_API_KEY", OTHER)
    keys.set_key(home, "openai", "mk-newer-9")
    assert keys.read(home) == {"OPENAI_API_KEY": "mk-newer-9", "VOYAGE_API_KEY": OTHER}
    assert keys.remove_key(home, "OpenAI") == "OPENAI_API_KEY"
    assert keys.read(home) == {"VOYAGE_API_KEY": OTHER}
    with pytest.raises(NotFound, match="OPENAI_API_KEY"):
        keys.remove_key(home, "openai")


def test_a_key_that_cannot_be_written_leaves_the_old_one(home: Path) -> None:
    keys.set_key(home, "openai", KEY)
    (home / "keys.toml").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        keys.set_key(home, "openai", OTHER)
    (home / "keys.toml").chmod(0o600)
    assert keys.read(home) == {"OPENAI_API_KEY": KEY}


@pytest.mark.parametrize("value", ["", " \n", "two words", "ключ", "a\nb", "x" * 20_000])
def test_what_cannot_be_a_key_is_refused_without_repeating_it(home: Path, value: str) -> None:
    with pytest.raises(InputError) as caught:
        keys.set_key(home, "openai", value)
    assert not value.strip() or value not in str(caught.value)
    assert not (home / "keys.toml").exists()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("opnai", "openai"), ("OPENAI_KEY", "OPENAI_API_KEY"), ("qqq", "use one of")],
)
def test_a_name_that_is_no_key_s_is_answered_with_the_closest(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=meant):
        keys.variable_of(name)


def test_a_key_of_the_environment_comes_first_also_by_its_other_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.set_key(home, "GEMINI_API_KEY", KEY)
    monkeypatch.setenv("MEMCHAT_HOME", str(home))
    assert explain(load())[0].why == "GEMINI_API_KEY is set in keys.toml"
    monkeypatch.setenv("GOOGLE_API_KEY", OTHER)
    (chosen, *_) = explain(load())
    assert (chosen.why, chosen.key) == ("GOOGLE_API_KEY is set", "GOOGLE_API_KEY")


def test_neither_settings_nor_keys_show_a_key(home: Path) -> None:
    keys.set_key(home, "openai", KEY)
    settings = load({"MEMCHAT_HOME": str(home)})
    assert KEY not in repr(settings) + repr(settings.keys)
    assert settings.keys.value("OPENAI_API_KEY") == KEY


def test_a_key_of_the_file_reaches_openai_for_words_and_for_vectors_but_no_environment(
    home: Path,
) -> None:
    with OpenAIServer(key=KEY, dimensions=1536) as server:
        keys.set_key(home, "openai", KEY, server.base)
        (home / "settings.toml").touch(0o600)
        (home / "settings.toml").write_text(f'OPENAI_BASE_URL = "{server.base}"\n')
        settings = load({"MEMCHAT_HOME": str(home), "MEMCHAT_TIMEOUT": "10"})
        assert chat_model(settings).complete(HELLO, purpose="chat").text
        assert list(chat_model(settings).stream(HELLO))
        maker = embedder(settings)
        assert maker is not None and len(maker.embed_query("tea")[0]) == 1536
        assert server.refusals == []
    assert KEY not in os.environ.values()


def test_a_key_of_the_file_reaches_gemini_for_words_and_for_vectors(home: Path) -> None:
    with GeminiServer(key=KEY, dimensions=768) as server:
        keys.set_key(home, "gemini", KEY, server.url)
        (home / "settings.toml").touch(0o600)
        (home / "settings.toml").write_text(f'GOOGLE_GEMINI_BASE_URL = "{server.url}"\n')
        settings = load({"MEMCHAT_HOME": str(home), "MEMCHAT_TIMEOUT": "10"})
        assert chat_model(settings).complete(HELLO, purpose="chat").text
        maker = embedder(settings)
        assert maker is not None and len(maker.embed_query("tea")[0]) == 768
        assert server.refusals == []


def test_a_key_is_sent_to_the_address_that_it_was_given_for_and_to_no_other(home: Path) -> None:
    here, there = "http://127.0.0.1:7/v1", "http://127.0.0.1:9/v1"
    keys.set_key(home, "openai", KEY)
    keys.set_key(home, "openai", OTHER, here + "/")

    def used(address: str) -> str | None:
        given = {"MEMCHAT_HOME": str(home), "OPENAI_BASE_URL": address}
        return load(given).keys.value("OPENAI_API_KEY")

    assert (used(here), used(there)) == (OTHER, None)
    assert used("") == used("https://api.openai.com/v1") == KEY
    keys.remove_key(home, "openai", here)
    assert (used(here), used("")) == (None, KEY)


@pytest.mark.parametrize(
    ("key", "address", "said"),
    [
        (KEY, "localhost:1234", "begins with http"),
        (KEY, "http://ana:secret@localhost/v1", "begins with http"),
        ("two words", "", "is no key"),
        ("", "", "no key was given"),
    ],
)
def test_what_cannot_be_an_address_or_a_key_is_refused_and_nothing_is_asked(
    home: Path, key: str, address: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        connect(load().with_(home=home), "openai", key, address)
    assert not (home / "keys.toml").exists()


def test_a_server_that_does_not_answer_just_now_is_kept(home: Path) -> None:
    settings = load({"MEMCHAT_HOME": str(home)})
    assert connect(settings, ANY_SERVER, "", "http://127.0.0.1:9/v1/") == []
    kept = load({"MEMCHAT_HOME": str(home), "MEMCHAT_CHAT_MODEL": "hosted_vllm/llama"})
    assert kept.addresses["HOSTED_VLLM_API_BASE"] == "http://127.0.0.1:9/v1"
    assert explain(kept)[0].problem is None


def test_a_program_that_memchat_starts_gets_no_key_and_keeps_what_it_needs() -> None:
    environment = {"OPENAI_API_KEY": KEY, "AWS_SECRET_ACCESS_KEY": KEY, "HF_TOKEN": KEY}
    environment |= {"TOGETHER_AI_TOKEN": KEY, "OPENAI_BASE_URL": f"http://me:{KEY}@there"}
    needed = {"PATH": "/bin", "TERM": "xterm", "LANG": "C", "DISPLAY": ":0", "LESS": "-R"}
    assert without_secrets(environment | needed) == needed


# --- on the command line


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    for name, value in {
        "MEMCHAT_HOME": str(home),
        "MEMCHAT_USER": "ana",
        "MEMCHAT_TIMEOUT": "10",
        "MEMCHAT_RETRY_MINUTES": "0",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.parent)

    def one(*args: str, said: str = "") -> tuple[int, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(said))
        capsys.readouterr()
        code = main(args)
        return code, "".join(capsys.readouterr())

    yield one


def test_a_key_is_read_from_standard_input_listed_by_name_and_removed(run: Run, home: Path) -> None:
    code, said = run("keys", "set", "openai", said=f"{KEY}\n")
    assert (code, said) == (0, f"OPENAI_API_KEY is kept in {home / 'keys.toml'}\n")
    code, said = run("keys", "list")
    assert code == 0 and "OPENAI_API_KEY" in said and "keys.toml" in said
    assert KEY not in said and KEY[-4:] not in said
    listed = json.loads(run("keys", "list", "--json")[1])
    (row,) = listed
    assert (row["name"], row["origin"], row["used"]) == ("OPENAI_API_KEY", "keys.toml", True)
    assert row["address"] == ""
    assert run("keys", "remove", "openai")[0] == 0
    assert run("keys", "list") == (0, "no key is set; memchat keys set openai keeps one\n")


def test_a_key_that_another_place_comes_before_is_told(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    code, said = run("keys", "set", "openai", said=KEY)
    assert code == 0 and "the one of the environment comes before it" in said
    assert "set, but not used" in run("keys", "list")[1]


def test_a_key_given_as_an_argument_is_refused_and_not_repeated(run: Run, home: Path) -> None:
    code, said = run("keys", "set", "openai", KEY)
    assert code == 2 and "never given as an argument" in said
    assert KEY not in said
    assert not (home / "keys.toml").exists()


def test_no_command_and_no_file_shows_a_key_also_where_the_provider_repeats_it(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "openai/text-embedding-3-small")
    with OpenAIServer(key="another") as server:  # it refuses ours, and repeats it in its answer
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        said = run("keys", "set", "openai", said=KEY)[1]
        said += run("chat", said="I live in Lisbon.\nI am vegetarian.\n")[1]
        said += run("memories", "add", "fact", "tool", "saw")[1]
        server.script(Fail(400, f"your key {KEY} is wrong"))
        said += run("recall", "which tool is it?")[1]
        refused = [request.headers["authorization"] for request in server.requests]
        for command in (
            ("jobs", "run"), ("worker", "--once"), ("backfill",), ("jobs", "status"),
            ("jobs", "status", "--json"), ("memories", "list", "--status", "failed", "--json"),
            ("sessions", "show", "1", "--json"), ("config",), ("config", "--json"), ("doctor",),
            ("doctor", "--json"), ("keys", "list"), ("services", "list"), ("why",),
        ):  # fmt: skip
            said += run(*command)[1]
    assert f"Bearer {KEY}" in refused
    assert "OPENAI_API_KEY" in said
    assert KEY not in said + caplog.text
    with MemChat(home) as mc:
        assert KEY not in repr(mc.settings)
    files = [path for path in home.rglob("*") if path.is_file()]
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == ["keys.toml"]
