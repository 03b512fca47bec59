"""An argument of another type than a verb declares is named, with what it has to be; a model of
one's own that lacks a member is refused when the store is opened."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memchat import InputError, MemChat, MemChatError
from memchat.config import Settings
from memchat.testing import HashEmbedder, ScriptedModel

CALLS: dict[str, tuple[Callable[[Any], object], str]] = {
    "no name": (lambda mc: mc.user(3), "give user as a text, not as int"),
    "no type": (lambda mc: mc.user("a").memories.add(3, "k", "v"), "give type as a text"),
    "no value": (lambda mc: mc.user("a").memories.add("fact", "k", 3), "give value as a text"),
    "a day as text": (
        lambda mc: mc.user("a").memories.add("fact", "k", "v", expires_at="2026-01-01"),
        "give expires_at as a day, not as str",
    ),
    "a text for a list": (
        lambda mc: mc.user("a").memories.add("fact", "k", "v", tags="x"),
        "give tags as a list of texts, not as str",
    ),
    "a list of numbers": (
        lambda mc: mc.user("a").memories.add("fact", "k", "v", tags=[3]),
        "give tags as a list of texts, not as list",
    ),
    "an id as text": (
        lambda mc: mc.user("a").memories.get("1"),
        "give memory_id as a whole number",
    ),
    "ids as text": (
        lambda mc: mc.user("a").memories.delete_many("12"),
        "give memory_ids as a list of whole numbers",
    ),
    "a change": (
        lambda mc: mc.user("a").memories.update(1, value=3),
        "give value as a text, not as int",
    ),
    "a filter": (lambda mc: mc.user("a").search("x", key=3), "give key as a text"),
    "a question": (lambda mc: mc.user("a").search(None), "give query as a text, not as NoneType"),
    "a budget": (
        lambda mc: mc.user("a").context("x", max_tokens="9"),
        "give max_tokens as a whole",
    ),
    "a switch": (lambda mc: mc.user("a").set_memory("yes"), "give on as true or false"),
    "a note": (lambda mc: mc.user("a").notes.add(3), "give text as a text"),
    "a time": (
        lambda mc: mc.user("a").notes.add("x", created_at="now"),
        "give created_at as a time",
    ),
    "a file": (lambda mc: mc.user("a").import_file(3), "give file as a path or a text"),
    "a message": (lambda mc: mc.user("a").chat().send(3), "give text as a text"),
    "kinds": (lambda mc: mc.jobs.run(kinds="extract"), "give kinds as a list of texts"),
    "a person": (lambda mc: mc.users.delete(3), "give name as a text"),
}


@pytest.mark.parametrize(("call", "said"), CALLS.values(), ids=CALLS)
def test_a_wrong_type_is_named_by_its_argument_and_nothing_is_kept(
    mc: MemChat, call: Callable[[Any], object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        call(mc)
    assert mc.user("a").memories.list() == [] and mc.user("a").notes.list() == []


def test_a_value_that_is_too_long_may_be_a_note(mc: MemChat) -> None:
    with pytest.raises(InputError, match="at most 280 are kept; a longer text can be a note"):
        mc.user("a").memories.add("fact", "story", "word " * 80)


def test_what_an_argument_declares_is_taken_in_any_of_its_forms(mc: MemChat) -> None:
    ana = mc.user("ana")
    day = date(2030, 1, 1)
    one = ana.memories.add("fact", "tea", "green", tags=(tag for tag in ("a", "b")), expires_at=day)
    two = ana.memories.add("fact", "pet", "dog", tags={"a"}, metadata={"n": 1})
    assert one.tags == ("a", "b") and two.tags == ("a",)
    assert len(ana.search("tea", limit=True, timeout=3).hits) == 1
    assert ana.memories.delete_many(iter([one.id, two.id])).memories == 2


class Half:
    """A model that lacks nearly all."""

    name = "half"


@pytest.mark.parametrize("which", ["chat_model", "extract_model", "embedder"])
def test_a_model_that_lacks_a_member_is_refused_when_the_store_is_opened(
    tmp_path: Path, which: str
) -> None:
    given: dict[str, Any] = {which: Half()}
    with pytest.raises(TypeError, match=f"the {which} has no .*; see (ChatModel|Embedder)"):
        MemChat(settings=Settings(home=tmp_path / "store"), **given)
    assert not (tmp_path / "store").exists()
    models = {"chat_model": ScriptedModel(), "embedder": HashEmbedder()}
    MemChat(settings=Settings(home=tmp_path / "store"), **models).close()


def test_what_the_library_says_names_no_command_and_what_the_command_line_says_does(
    mc: MemChat, run: Any
) -> None:
    ana = mc.user("ana")
    for verb in (
        partial(ana.memories.get, 9),
        partial(ana.sessions.get, 9),
        partial(ana.notes.get, 9),
        partial(ana.inbox.accept, 9),
        partial(ana.sessions.why, 9),
        partial(mc.users.delete, "ben"),
        partial(mc.services.use, "hash/none"),
        partial(mc.backups.delete, ["other.bak"]),
        partial(ana.apps.delete, "work"),
    ):
        with pytest.raises(MemChatError) as error:
            verb()
        assert "memchat" not in str(error.value) and "--" not in str(error.value)
        assert error.value.see
    assert (
        "there is no memory 9 here; see memchat memories list" in run("memories", "show", "9").err
    )
