"""The nouns: names of users and apps, texts as they may be stored, JSON forms."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat.errors import InputError, ScopeError
from memchat.types import (
    EVERY_APP,
    NAME_LIMIT,
    Change,
    Learned,
    Memory,
    Scope,
    clean_text,
    one_line,
)

ANY_TEXT = st.text(st.characters(codec=None), max_size=300)


@given(ANY_TEXT)
def test_a_name_is_either_refused_in_one_line_or_clean_and_stable(name: str) -> None:
    try:
        scope = Scope(name, "default")
    except ScopeError as error:
        assert "\n" not in str(error) and "user" in str(error)
    else:
        assert scope.user == unicodedata.normalize("NFC", scope.user).strip() != ""
        assert len(scope.user) <= NAME_LIMIT and "\0" not in scope.user
        assert Scope(scope.user).user == scope.user


@pytest.mark.parametrize(
    "name", ["../x", "..", "/etc/passwd", "C:\\nul", "a/b", "👩‍👩‍👧", "نورا", "x" * 200]
)
def test_an_odd_name_is_a_name_like_any_other(name: str) -> None:
    assert Scope(name, name) == Scope(name, name)
    assert Scope(name).user == name


@pytest.mark.parametrize("name", ["", "  ", "\0", "a\0b", "a\nb", "\ud83d", "x" * 201, "\x7f"])
@pytest.mark.parametrize("what", ["user", "app"])
def test_a_name_that_cannot_be_used_is_refused_by_what_it_is(name: str, what: str) -> None:
    names = {"user": "ana", "app": "home", what: name}
    with pytest.raises(ScopeError, match=what):
        Scope(**names)


def test_no_app_can_be_called_like_the_row_that_all_apps_share() -> None:
    with pytest.raises(ScopeError):
        Scope("ana", EVERY_APP)


def test_two_spellings_of_one_name_are_one_scope() -> None:
    assert Scope("Zoe\u0308", " home ") == Scope("Zo\u00eb", "home")


@given(ANY_TEXT)
def test_clean_text_can_be_stored_and_changes_nothing_else(text: str) -> None:
    clean = clean_text(text)
    clean.encode("utf-8")
    assert "\0" not in clean and len(clean) == len(text)
    assert all(a == b or b == "\ufffd" for a, b in zip(text, clean, strict=True))
    assert clean_text(clean) == clean


@given(ANY_TEXT)
def test_one_line_is_one_line_or_refused(text: str) -> None:
    try:
        line = one_line(text, "value", 60)
    except InputError as error:
        assert "value" in str(error)
    else:
        assert 0 < len(line) <= 60 and line.splitlines() == [line]
        assert line == line.strip() and one_line(line, "value", 60) == line


def test_a_too_long_field_is_refused_whole_and_never_cut() -> None:
    with pytest.raises(InputError, match="61 characters"):
        one_line("x" * 61, "value", 60)


def test_a_memory_becomes_json_with_the_founding_columns_first() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    memory = Memory(
        id=1,
        created_at=noon,
        memory_type="fact",
        key="deadline",
        value="22 October",
        sha1="0" * 40,
        expires_at=date(2026, 10, 22),
        seen_count=1,
        last_seen_at=noon,
        active=True,
        user="ana",
        app="default",
        many=False,
        created_by="auto",
        said_at=noon,
        updated_at=noon,
    )
    plain = json.loads(json.dumps(memory.to_json()))
    assert list(plain)[:10] == [
        "id",
        "created_at",
        "memory_type",
        "key",
        "value",
        "sha1",
        "expires_at",
        "seen_count",
        "last_seen_at",
        "active",
    ]
    assert plain["expires_at"] == "2026-10-22" and plain["created_at"] == "2026-05-01T12:00:00Z"
    assert plain["active"] is True


def test_the_headline_counts_a_replacement_as_saved_and_as_updated() -> None:
    kinds = ["added", "superseded", "repeated", "merged", "ended", "review", "refused", "revived"]
    learned = Learned(1, tuple(Change(kind, None) for kind in kinds))
    assert learned.headline == "Saved 3 (merged/updated 4)"
