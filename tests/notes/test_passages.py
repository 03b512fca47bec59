"""Passages of notes as a person reads them and as a model is given them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from memchat.notes.ask import WHOLE, Passages, sources
from memchat.notes.search import Relevant
from memchat.tokens import estimate_tokens
from memchat.types import Note, NoteHit

AT = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LONG = " ".join(f"Sentence number {n} of a long report." for n in range(200))
ZONE = ZoneInfo("Europe/Berlin")


def note(text: str = LONG, number: int = 1, title: str | None = "Report") -> Note:
    return Note(number, "default", "memo", "x", title, AT, None, "memo", text)


def hit(start: int, end: int, number: int = 1) -> NoteHit:
    place = {"offset": start, "size": end - start}
    return NoteHit(
        start, number, "h", "memo", "x", None, None, **place, match_count=0, read_count=0,
        score=1.0, cosine=None, bm25=None, confident=True, title="Report", created_at=AT,
    )  # fmt: skip


def test_notes_are_numbered_in_the_order_of_their_best_hit() -> None:
    hits = [hit(0, 50, 2), hit(0, 50, 1), hit(60, 90, 2)]
    found = sources(hits, {1: note(), 2: note(number=2)})
    assert [(one.number, one.note_id) for one in found] == [(1, 2), (2, 1)]
    assert found[0].chunk_ids == (0, 60)


def test_notes_that_were_deleted_since_the_search_are_not_read() -> None:
    found = Relevant(hits=[hit(0, 50, 1), hit(0, 50, 2)], others=[hit(60, 90, 3)])
    left = found.of({2: note(number=2)})
    assert ([one.note_id for one in left.hits], left.others) == ([2], [])
    assert found.of({}).nothing


@given(
    spans=st.lists(
        st.tuples(st.integers(0, len(LONG) - 1), st.integers(1, 400)), min_size=1, max_size=8
    )
)
def test_passages_are_parts_of_the_text_that_hold_every_hit_and_share_nothing(spans) -> None:
    places = [(start, min(start + size, len(LONG))) for start, size in spans]
    (found,) = sources([hit(*place) for place in places], {1: note()})
    covered: set[int] = set()
    for passage in found.passages:
        assert LONG[passage.offset : passage.offset + passage.size] == passage.text
        here = set(range(passage.offset, passage.offset + passage.size))
        assert not covered & here
        covered |= here
    assert all(set(range(*place)) <= covered for place in places)


def test_what_is_left_out_between_two_passages_is_marked() -> None:
    (found,) = sources([hit(3_000, 3_010), hit(0, 10)], {1: note()})
    assert found.text == f"{LONG[:10]}\n[…]\n{LONG[3000:3010]}"


def test_of_a_short_note_all_is_given() -> None:
    text = "x " * (WHOLE // 2)
    (found,) = sources([hit(10, 20)], {1: note(text)})
    assert found.text == text


def test_no_part_of_a_long_secret_is_given() -> None:
    part = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
    token = f"eyJhbGciOiJIUzI1NiJ9.eyJ{part * 80}.{part * 8}"
    text = f"{LONG}\n\n{token}\n\n{LONG}"
    listing = Passages({1: note(text)}, ZONE)
    for start in range(text.index(token), text.index(token) + len(token) - 300, 300):
        (source,) = sources([hit(start, start + 300)], {1: note(text)})
        assert part not in listing.block(source)


def test_a_secret_is_hidden_also_where_only_words_before_the_passage_tell_that_it_is_one() -> None:
    text = f"{LONG} The password for the shed is 99tulips. {LONG}"
    at = text.index("99tulips")
    kept = {1: note(text)}
    given_to_model = Passages(kept, ZONE).listing(sources([hit(at, at + 40)], kept))
    assert "tulips" not in given_to_model and "[password]" in given_to_model


def test_a_note_begins_with_its_number_title_and_day_and_its_words_are_indented() -> None:
    kept = {1: note("One.\nTwo <b>.", title="A\nB")}
    (source,) = sources([hit(0, 4)], kept)
    assert Passages(kept, ZONE).block(source) == (
        "[1] A B, 2026-05-01 (Friday)\n  One.\n  Two ‹b›."
    )


@given(room=st.integers(150, 3_000), count=st.integers(1, 5))
def test_no_part_is_longer_than_its_room_and_all_is_in_some_part(room: int, count: int) -> None:
    kept = {n: note(number=n) for n in range(1, count + 1)}
    found = sources([hit(0, len(LONG), n) for n in kept], kept)
    passages = Passages(kept, ZONE)
    parts = [passages.listing(part) for part in passages.parts(found, room)]
    assert all(estimate_tokens(part) <= room for part in parts)
    together = " ".join(parts)
    assert together.count("Sentence number 150 of") == count
