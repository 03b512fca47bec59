"""Exports of other products that are broken in every way: no crash, and nothing lost unsaid."""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memchat.errors import InputError
from memchat.transfer.formats import Conversation, Fields, SavedFact
from memchat.transfer.formats.assistants import ChatGPT, Claude
from memchat.transfer.formats.gemini import Gemini
from memchat.transfer.formats.self_hosted import Letta, LibreChat, Mem0, OpenWebUI
from memchat.transfer.history_audit import audit, page
from memchat.transfer.source import READERS, Source
from tests.support.histories import (
    SEPTEMBER,
    chatgpt,
    claude,
    gemini,
    gemini_page,
    letta,
    librechat,
    mem0,
    message,
    openwebui,
    talk,
    zipped,
)

JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 1e300, float("nan"), 10**30, "", " ", "\0", "\ud800", "x" * 300, [], {}),
    *([[]], [None], {"": None}, {"text": 3}, {"role": "user"}, "2024-13-01", "user", SEPTEMBER),
)
TALK = talk("a", "I live in Lisbon", "A fine city.", "I like tea", "So do I.")
BRANCHED = chatgpt("b", message("system", "x"), message("user", "Hi"), message("assistant", "Yo"))
BRANCHED["mapping"]["other"] = {"parent": "b-1", "message": message("assistant", "Other.")}
SAVED = chatgpt("c", message("user", "Hi"), message("assistant", "Likes tea", recipient="bio"))
RECORDS: tuple[dict[str, Any], ...] = (
    *(TALK, BRANCHED, SAVED, claude("d", "Hi", "Hello.", "Bye")),
    gemini("Prompted What is tea?", "2024-01-01T10:20:00Z", "<p>Leaves</p>"),
    gemini("Asked Why?", "2024-01-01T10:30:00.123Z"),
    {"messages": [{"role": "user", "content": "Hi"}, {"role": "tool", "content": "x"}]},
    *(openwebui("e", "Hi", "Hello."), letta("g", "Hi", "Hello.", blocks={"human": "Likes tea"})),
    *(librechat("f", "Hi", "Hello.", "Bye"), librechat("h", "Hi", "Hello.", "Bye", tree=True)),
    *(mem0("Likes tea", "Has a cat"), *mem0("Is 40")["results"]),
    {"id": "1", "user_id": "u", "content": "Likes tea", "updated_at": 1_700_000_000},
)
TEXTS = (
    "# Tea\n## User (2024-05-01 10:00)\nHi\n```\n## User\n```\n## Assistant\nYo\n---\n## User\nBye",
    "**You:** Hi\n\n**ChatGPT:** Yo\n> quoted\n\n**You:** Bye",
    gemini_page(
        ("Prompted&nbsp;Hi", "Nov 5, 2025, 1:34:47\u202fAM CET", "<p>Yo<br>&amp;</p>"),
        ("Prompted Why?", "5.11.2025, 01:44:47 MEZ", "<ul><li>So</ul>"),
    ),
)
APART = ("conversations", "records")
MESSAGES = ("messages", "messages of", "system,", "custom instructions", "activities")
FACTS = ("saved facts", "blocks")
fuzzed = settings(
    max_examples=500,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def broken(chance: Random, value: Any) -> Any:
    """The value with some of what it holds replaced, removed or doubled."""
    value = deepcopy(value)
    for _ in range(chance.randint(0, 3)):
        here, way = value, chance.randint(1, 6)
        while way and isinstance(here, dict | list) and here:
            place = chance.choice([*here] if isinstance(here, dict) else range(len(here)))
            if way == 1 or not (isinstance(here[place], dict | list) and here[place]):
                if chance.random() < 0.2:
                    del here[place]
                else:
                    here[place] = deepcopy(chance.choice(JUNK))
                break
            here, way = here[place], way - 1
    return value


def cut(chance: Random, data: bytes) -> bytes:
    """The bytes with some of them changed, left out or repeated."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(made) + 1)
        to = min(len(made), at + chance.randint(0, 40))
        new = chance.choice(
            (b"", bytes(chance.randbytes(5)), made[at:to] * 2, b'"', b"}", b"]", b"[{", b"\\", b",")
        )
        made[at:to] = new
    return bytes(made[: chance.randrange(len(made) + 1)] if chance.random() < 0.3 else made)


def read(file: Path, data: bytes) -> tuple[list[Conversation], list[SavedFact], Counter[str]]:
    """What is read of it, and what is left out; nothing at all where it is no export."""
    file.write_bytes(data)
    source, found = Source(file), list[Any]()
    try:
        found = [item for _, item in source.items()]
    except InputError:
        assert not found
    talks = [one for one in found if isinstance(one, Conversation)]
    assert all(one.turns and all(turn.text.strip() for turn in one.turns) for one in talks)
    return talks, [one for one in found if isinstance(one, SavedFact)], source.left_out


def kind_of(record: Any) -> Any:
    return next((one for one in READERS if one.holds(Fields(record))), None)


def held(record: Any) -> int:
    """How many messages a record holds, as far as it can be seen."""
    kind = kind_of(record)
    if kind is ChatGPT:
        nodes = record["mapping"].values() if isinstance(record["mapping"], dict) else ()
        said = [node.get("message") for node in nodes if isinstance(node, dict)]
        return sum(isinstance(one, dict) and bool(one) for one in said)
    if kind is Gemini:
        return 1
    if kind is Letta:
        agents = record.get("agents", [record])
        agents = agents if isinstance(agents, list) else []
        said = [one.get("messages") for one in agents if isinstance(one, dict)]
        return sum(len(one) for one in said if isinstance(one, list))
    if kind is OpenWebUI:
        chat = Fields(record).inner("chat")
        tree = chat.inner("history").value("messages")
        said = tree if isinstance(tree, dict) and tree else chat.value("messages")
        return len(said) if isinstance(said, dict | list) else 0
    if kind is LibreChat:
        waiting, found = [*Fields(record).list("messagesTree")], 0
        one = record.get("messages")
        waiting += one if isinstance(one, list) else [one] if isinstance(one, dict) and one else []
        while waiting:
            found += 1
            waiting += Fields(waiting.pop()).list("children")
        return found
    if kind is Mem0:
        return 0
    said = record.get("chat_messages", record.get("messages"))
    return len(said) if isinstance(said, list) else 0


@fuzzed
@given(seed=st.integers(0, 2**32))
def test_each_record_and_message_is_read_or_counted(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    records = [broken(chance, one) for one in chance.choices(RECORDS, k=chance.randint(1, 5))]
    talks, _, left_out = read(tmp_path / "given", json.dumps(records).encode())
    known = [one for one in records if isinstance(one, dict) and kind_of(one)]
    activities = [one for one in known if kind_of(one) is Gemini]
    if not activities:
        apart = sum(n for what, n in left_out.items() if what.startswith(APART))
        named = [one for one in known if kind_of(one) is Claude and not held(one)]
        read_or_counted = len(talks) + apart
        there = sum(map(talks_of, records))
        # An entry of an index is neither, where its conversation is there.
        assert read_or_counted <= there <= read_or_counted + len(named), left_out
    turns = [turn for one in talks for turn in one.turns]
    dropped = sum(count for what, count in left_out.items() if what.startswith(MESSAGES))
    answers = [one for one in activities if "safeHtmlItem" in one]
    found = len(turns) + dropped
    wanted = sum(map(held, known))
    assert wanted <= found <= wanted + len(answers), left_out


def talks_of(record: Any) -> int:
    """How many conversations are read of it or counted; one for what is no record at all."""
    kind = kind_of(record) if isinstance(record, dict) else None
    if kind is Letta and "agents" in record:
        return len(Fields(record).list("agents"))
    return int(kind is not Mem0 and not (kind is OpenWebUI and facts_of(record)))


def facts_of(record: Any) -> int:
    """How many memories a record holds, of the products that list them one by one."""
    kind, fields = kind_of(record), Fields(record)
    if kind is Mem0:
        return len(fields.list("results")) if "results" in fields else 1
    return int(kind is OpenWebUI and not fields.inner("chat"))


@fuzzed
@given(seed=st.integers(0, 2**32))
def test_each_memory_is_read_or_counted(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    given_ = [one for one in RECORDS if facts_of(one)]
    records = [broken(chance, one) for one in chance.choices(given_, k=chance.randint(1, 5))]
    _, facts, left_out = read(tmp_path / "given", json.dumps(records).encode())
    assert all(fact.text.strip() for fact in facts)
    counted = sum(n for what, n in left_out.items() if what.startswith((*FACTS, "records")))
    unknown = sum(kind_of(one) is None for one in records if isinstance(one, dict))
    unknown += sum(not isinstance(one, dict) for one in records)
    wanted = unknown + sum(facts_of(one) for one in records if isinstance(one, dict))
    assert wanted <= len(facts) + counted, left_out


@fuzzed
@given(seed=st.integers(0, 2**32))
def test_no_bytes_make_a_reader_fail(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    some = chance.choices(RECORDS, k=chance.randint(1, 4))
    shapes = (
        json.dumps(some),
        json.dumps(some, indent=1),
        "\n".join(map(json.dumps, some)),
        "- [2024-05-01] Likes tea\n- [2024-05-02] Has a cat",
    )
    data = chance.choice(shapes).encode(chance.choice(("utf-8", "utf-8", "utf-16", "utf-32")))
    if chance.random() < 0.3:
        data = chance.choice(TEXTS).encode()
    if chance.random() < 0.4:
        data = zipped({"a.json": data, "in/b.zip": zipped({"c.json": some})})
    read(tmp_path / "given", cut(chance, data))


@settings(fuzzed, max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_a_broken_export_is_looked_through_or_refused(tmp_path: Path, seed: int) -> None:
    chance, file, today = Random(seed), tmp_path / "given", date(2026, 11, 28)
    records = [broken(chance, one) for one in chance.choices(RECORDS, k=chance.randint(1, 6))]
    text = chance.choice((json.dumps(records), *TEXTS, "- [2024-05-01] Likes tea"))
    file.write_bytes(cut(chance, text.encode()))
    try:
        done = audit(file, today)
    except InputError:
        return
    for as_html in (False, True):
        assert "Audit of given" in page(done, "given", today, as_html=as_html)


LONG = 200_000


@pytest.mark.parametrize(
    "text",
    [
        f"- [2024-05-01] Likes tea\n{' ' * LONG}x\n- [2024-05-01]{' ' * LONG}x{' ' * LONG}y\n",
        f"## User\nHi\n## Assistant {'!' * LONG}a\n{' ' * LONG}x\n**User** {'-' * LONG}x\n",
        f"## User\nHi{chr(10) * LONG}x\n## Assistant\n{'<details>' * (LONG // 9)}\n",
        gemini_page((f"Prompted Hi{' ' * LONG}x", "Nov 5, 2025, 1:34:47 AM CET", "<div>" * 20_000)),
        json.dumps([openwebui("e", "Hi", "<details " * (LONG // 9) + "<details>" * (LONG // 9))]),
        json.dumps(gemini(f"Prompted Hi{' ' * LONG}x", "2024-01-01T10:20:00Z")),
    ],
    ids=["facts", "labels", "lines", "page", "thoughts", "spaces"],
)
def test_no_long_line_holds_a_reader_up(tmp_path: Path, text: str) -> None:
    talks, facts, left_out = read(tmp_path / "given", text.encode())
    assert talks or facts or left_out


@settings(fuzzed, max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_what_is_imported_adds_up_and_a_second_import_adds_nothing(
    mc, tmp_path: Path, seed: int
) -> None:
    chance, ana = Random(seed), mc.user(f"ana{seed}")
    records = [broken(chance, one) for one in chance.choices(RECORDS, k=chance.randint(1, 6))]
    file = tmp_path / "given"
    file.write_bytes(json.dumps(records).encode())
    try:
        done = ana.import_history(file)
    except InputError:
        assert ana.sessions.list() == []
        return
    again = ana.import_history(file)
    assert again.added == {} and again.conversations == again.known
    ours = [one for one in ana.sessions.list(limit=100) if not (one.title or "").startswith("What")]
    assert len(ours) == done.added.get("session", 0)
    assert len(ours) + done.known + done.grown == done.conversations
    stored = sum(len(ana.sessions.messages(one.id)) for one in ours)
    assert stored == done.added.get("message", 0) <= done.messages
    if done.id:
        ana.undo_import(done.id)
        assert ana.sessions.list() == [] and ana.inbox.list() == []


@pytest.mark.slow
@settings(fuzzed, max_examples=10_000)
@given(seed=st.integers(0, 2**32))
def test_ten_thousand_broken_exports_make_no_reader_fail(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    records = [broken(chance, one) for one in chance.choices(RECORDS, k=chance.randint(1, 5))]
    data = json.dumps(records) if chance.random() < 0.8 else chance.choice(TEXTS)
    read(tmp_path / "given", cut(chance, data.encode()))
