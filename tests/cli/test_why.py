"""The command that shows why a reply is as it is."""

from __future__ import annotations

import json

from memchat.types import to_json
from tests.support.receipts import reply_to, run


def test_why_shows_a_reply_on_one_screen(mc, monkeypatch, capsys, clock) -> None:
    ana = mc.user("ana")
    city = ana.memories.add("profile", "city", "Lisbon").id
    boat = ana.memories.add("fact", "boat", "a red kayak").id
    mc.jobs.embed()
    found = reply_to(mc, "Where is my red kayak boat?")
    code, out, _ = run(mc, monkeypatch, capsys, "why")
    lines = out.splitlines()
    assert code == 0 and len(lines) < 24
    assert lines[0] == "reply   #2, 2026-05-01 14:00, session 1"
    assert "Where is my red kayak boat?" in lines[1]
    assert "scripted/chat" in out and "tokens in" in out
    assert f"#{boat}  boat: a red kayak (said 2026-05-01)" in lines
    assert "    both: meaning " in out and "by hand" in out
    assert lines[-1] == "also sent: 1 other fact, as all fit; memchat why --all lists them"
    every = run(mc, monkeypatch, capsys, "why", "--all")[1].splitlines()
    assert "also sent: 1 other fact, as all fit:" in every
    assert f"#{city}  city: Lisbon" in every and "sent with every message" in every[-1]
    assert run(mc, monkeypatch, capsys, "why", str(found.reply.id))[1] == out


def test_why_names_the_program_that_stored_a_memory(mc, monkeypatch, capsys) -> None:
    mc.user("ana").client("Claude", "trust").remember("fact", "boat", "a red kayak")
    (line,) = reply_to(mc, "Where is my red kayak boat?").lines
    assert line.client == "Claude"
    _, out, _ = run(mc, monkeypatch, capsys, "why")
    assert "stored 2026-05-01 14:00 by Claude over MCP" in out
    assert "boat: a red kayak (stored 2026-05-01)" in out and "said" not in out


def test_why_prints_the_prompt_and_json(mc, monkeypatch, capsys) -> None:
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    found = reply_to(mc, "Where do I live?")
    _, out, _ = run(mc, monkeypatch, capsys, "why", "--prompt")
    for message in found.prompt:
        assert f"{message.role}:\n{message.content.rstrip()}" in out
    _, out, _ = run(mc, monkeypatch, capsys, "why", "--json")
    assert json.loads(out) == json.loads(json.dumps(to_json(found)))


def test_not_relevant_and_back_on_the_command_line(mc, monkeypatch, capsys) -> None:
    city = mc.user("ana").memories.add("profile", "city", "Lisbon").id
    reply_to(mc, "Hi")
    code, out, _ = run(mc, monkeypatch, capsys, "why", "--not-relevant", str(city))
    assert (code, out) == (0, "kept out of session 1: You live in Lisbon.\n")
    assert "not relevant here" in run(mc, monkeypatch, capsys, "why", "--all")[1]
    run(mc, monkeypatch, capsys, "why", "2", "--relevant", str(city))
    assert "not relevant here" not in run(mc, monkeypatch, capsys, "why", "--all")[1]
    code, _, err = run(mc, monkeypatch, capsys, "why", "--not-relevant", "99")
    assert code == 1 and err.count("\n") == 1 and "no memory 99" in err


def test_why_without_any_reply_is_one_line(mc, monkeypatch, capsys) -> None:
    code, out, err = run(mc, monkeypatch, capsys, "why")
    assert (code, out) == (1, "") and err.count("\n") == 1
