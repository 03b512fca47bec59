"""Exporting a person's data and importing it, as a user types it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.providers import litellm_calls
from tests.support import empty_store
from tests.support.answers import answer
from tests.support.cli import Run, add
from tests.support.histories import SEPTEMBER, talk, write, zipped
from tests.support.terminal import Env
from tests.support.wire import OpenAIServer


@pytest.fixture
def new_store(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """The commands in another, empty store."""

    def one(*args: str) -> object:
        with monkeypatch.context() as other:
            other.setenv("MEMCHAT_HOME", str(empty_store.place(tmp_path / "new")))
            return run(*args)

    return one  # type: ignore[return-value]


def test_an_export_is_imported_elsewhere(run: Run, new_store: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    add(run, "preference", "tea", "green tea")
    done = run("export", "ana.jsonl")
    assert (done.code, done.out) == (0, "2 memories of ana written to ana.jsonl\n")
    done = new_store("import", "ana.jsonl", "--user", "bo")
    assert (done.code, done.out) == (0, "2 memories imported\n")
    listed = new_store("memories", "list", "--user", "bo", "--json").json
    assert {one["value"] for one in listed} == {"Lisbon", "green tea"}


def test_a_zip_goes_elsewhere_and_a_text_to_another_assistant(
    run: Run, new_store: Run, tmp_path: Path
) -> None:
    add(run, "profile", "city", "Lisbon")
    (tmp_path / "bees.md").write_text("Bees swarm in May.", encoding="utf-8")
    assert run("notes", "add", "bees.md").code == 0
    done = run("export", "ana.zip", "--format", "zip")
    assert done.out == "1 memory, 1 note, 1 file of ana written to ana.zip\n"
    assert new_store("import", "ana.zip").out == "1 memory, 1 note imported\n"
    assert new_store("import", "ana.zip").out.splitlines()[0] == "nothing imported"
    done = run("users", "export", "ana", "ana.txt", "--format", "prompt")
    assert done.out == "1 memory of ana written to ana.txt\n"
    assert "You live in Lisbon." in (tmp_path / "ana.txt").read_text(encoding="utf-8")
    piped = run("export", "-", "--format", "prompt")
    assert piped.out == (tmp_path / "ana.txt").read_text(encoding="utf-8")


def test_what_is_known_and_what_is_forgotten_is_told(run: Run) -> None:
    number = add(run, "profile", "city", "Lisbon")
    add(run, "preference", "tea", "green tea")
    run("export", "ana.jsonl")
    run("memories", "delete", number, "--yes")
    done = run("import", "ana.jsonl", "--dry-run")
    assert done.code == 0 and done.out.splitlines() == [
        "nothing would be imported",
        "here already, and left as they are: 1 memory",
        "forgotten here, and left out: 1 memory",
    ]
    assert run("import", "ana.jsonl").code == 0
    assert [one["value"] for one in run("memories", "list", "--json").json] == ["green tea"]


def test_notes_that_were_deleted_here_or_changed_elsewhere_are_told(
    run: Run, new_store: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with MemChat() as mc:
        for number in (1, 2, 3):
            mc.user("ana").notes.add(f"Memo {number}", external_id=number)
    assert run("export", "ana.jsonl").out == "3 notes of ana written to ana.jsonl\n"
    assert new_store("import", "ana.jsonl").out == "3 notes imported\n"
    with monkeypatch.context() as other:
        other.setenv("MEMCHAT_HOME", str(tmp_path / "new"))
        with MemChat() as mc:
            mc.user("ana").notes.update(2, text="Memo 2, changed")
    assert new_store("export", "newer.jsonl").code == 0
    with MemChat() as mc:
        mc.user("ana").notes.delete(3)
    assert run("import", "newer.jsonl").out.splitlines() == [
        "nothing imported",
        "here already, and left as they are: 1 note",
        "deleted here, and left out: 1 note",
        "changed elsewhere later than here, and taken from there: 1 note",
    ]


def test_conversations_are_told_too(env: Env, tmp_path: Path) -> None:
    env.memchat("chat", said="I work as a nurse.\n")
    done = env.memchat("export", str(tmp_path / "ana.jsonl"))
    assert done.code == 0 and done.out.startswith("1 memory, 1 session, 2 messages of ")


def test_refused_lines_are_listed(run: Run, new_store: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    run("export", "ana.jsonl")
    file = Path("ana.jsonl")
    file.write_text(file.read_text().replace("Lisbon", "x" * 300))
    done = new_store("import", "ana.jsonl")
    assert done.code == 0 and done.out == "nothing imported\n"
    assert "line 4 was refused: the value is 300 characters long" in done.err
    told = json.loads(new_store("import", "ana.jsonl", "--dry-run", "--json").out)
    assert told["dry_run"] and [one["line"] for one in told["refused"]] == [4]


def test_vectors_to_come_are_told(
    run: Run, new_store: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(run, "profile", "city", "Lisbon")
    run("export", "ana.jsonl")
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "minilm")
    done = new_store("import", "ana.jsonl")
    assert "1 vector to be made; memchat backfill makes them now" in done.out


def test_a_page_for_people_cannot_be_imported(run: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    assert run("export", "ana.md", "--format", "markdown").code == 0
    assert "**city**: Lisbon" in Path("ana.md").read_text()
    done = run("import", "ana.md")
    assert done.code == 1
    assert "wrote for people; import its jsonl" in done.err


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        (("ana.jsonl", "--app", "elsewhere"), 1, "ana has no app 'elsewhere'"),
        (("ana.jsonl", "--user", "nobody"), 1, "nothing is kept of 'nobody'"),
        (("nowhere/ana.jsonl",), 1, "cannot be written"),
        (("ana.jsonl", "--format", "pdf"), 2, "pdf"),
        (("there.jsonl",), 1, "is there already; name another file"),
    ],
)
def test_an_export_that_cannot_be_made_leaves_no_file(
    run: Run, args: tuple[str, ...], code: int, why: str
) -> None:
    add(run, "profile", "city", "Lisbon")
    Path("there.jsonl").write_text("mine")
    done = run("export", *args)
    assert done.code == code and why in done.err and done.out == ""
    assert not Path("ana.jsonl").exists() and Path("there.jsonl").read_text() == "mine"


def test_records_that_only_a_backup_has_by_now_are_told(run: Run) -> None:
    add(run, "profile", "city", "Lisbon")
    run("export", "ana.jsonl")
    file = Path("ana.jsonl")
    *lines, end = file.read_text().splitlines()
    file.write_text("\n".join([*lines, '{"record":"usage"}', '{"record":"muted"}', end]))
    assert run("import", "ana.jsonl").out.splitlines()[-1] == (
        "no part of an export any more, and left out: 2 records (usage, muted)"
    )


TALKS = [talk("a", "I live in Lisbon", "A fine city."), talk("b", "Hi", "Hello.")]


def test_an_export_of_another_assistant_is_shown_before_it_is_imported(
    run: Run, typed: Callable[[str], None], tmp_path: Path
) -> None:
    write(tmp_path / "theirs.zip", zipped({"conversations.json": [*TALKS, {"mapping": {}}]}))
    done = run("import", "theirs.zip")
    assert done.code == 2 and "add --yes" in done.err
    typed("n\n")
    assert run("import", "theirs.zip").code == 2
    assert run("import", "theirs.zip", "--dry-run").out.splitlines()[-1] == (
        "2 sessions, 4 messages would be imported"
    )
    assert run("sessions", "list", "--json").json == []
    typed("y\n")
    done = run("import", "theirs.zip", "--newest", "1")
    assert done.code == 0
    first, *more = done.out.splitlines()
    assert first == "ChatGPT: 2 conversations, 4 messages, 0 saved facts, 2023-09-06"
    assert "left out: conversations without a message that can be read: 1" in more
    assert "to be read for memories: 1 conversation, with at most 2 calls, free" in more
    assert "2 sessions, 4 messages imported" in more
    assert run("recall", "Lisbon").out.count("Lisbon")
    again = run("import", "theirs.zip", "--yes")
    assert again.code == 0 and "here already: 2 conversations" in again.out.splitlines()
    assert "nothing imported" in again.out


def test_ctrl_c_stops_the_reading_after_the_one_in_hand_and_says_how_to_go_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    litellm_calls.litellm()
    many = [talk(str(n), f"Hello {n}", at=SEPTEMBER + n) for n in range(4)]
    write(tmp_path / "theirs.json", many)
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        monkeypatch.setenv("MEMCHAT_EXTRACT_MODEL", "openai/cheap")

        def interrupted(_messages: list[dict[str, object]]) -> str:
            if len(server.requests) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return answer()

        server.reply = interrupted
        done = run("import", "theirs.json", "--learn", "now", "--yes", "--max-calls", "6")
        assert done.code == 130 and len(server.requests) == 2
        assert "not read, as the cap is reached: 1 conversation" in done.out
        assert done.out.splitlines()[-2:] == [
            "2 of 3 conversations read for memories; memchat jobs run, or the same import again, "
            "goes on with the rest",
            f"memchat import --undo {done.out.split()[-5]} takes the import back",
        ]
        server.reply = lambda _messages: answer()
        assert "1 done, 0 failed" in run("jobs", "run").out
        assert len(server.requests) == 3
        capped = run("import", "theirs.json", "--yes", "--max-cost", "1")
        assert capped.code == 1 and "price of openai/cheap is not known" in capped.err


def test_an_import_is_undone_by_its_id(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "theirs.json", TALKS)
    done = json.loads(run("import", "theirs.json", "--yes", "--learn", "no", "--json").out)
    assert done["added"] == {"session": 2, "message": 4} and done["to_read"] == 0
    assert run("import", "--undo", "never", "--yes").code == 1
    assert run("import", "--undo", done["id"]).code == 2
    assert run("import", "--undo", done["id"], "--yes").out == "2 sessions deleted\n"
    assert run("sessions", "list", "--json").json == []


def test_saved_facts_wait_for_a_yes(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "facts.txt", "- [2024-05-01] Likes tea\n- [2024-06-01] Has a dog\n")
    done = run("import", "facts.txt", "--yes")
    assert "2 saved facts to say yes or no to: memchat inbox list" in done.out
    assert "2 inbox items imported" in done.out
    assert run("memories", "list", "--json").json == []
    assert "Likes tea" in run("inbox", "list").out


def test_what_holds_nothing_to_import_is_an_error(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "other.txt", "Dear diary")
    assert run("import", "other.txt", "--yes").code == 1
    assert run("import").code == 2


def test_an_export_is_looked_through_without_a_store(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path / "facts.txt", "- [2024-05-01] Lives in Lisbon\n- [2025-05-01] Lives in Porto\n")
    home = tmp_path / "none" / "home"
    monkeypatch.setenv("MEMCHAT_HOME", str(home))
    done = run("import", "--audit", "facts.txt")
    assert done.code == 0 and done.out.startswith("# Audit of facts.txt\n")
    assert "city: “Porto” (2025-05-01), “Lisbon” (2024-05-01)" in done.out
    assert run("import", "--audit", "facts.txt", "--json").json["saved"] == 2
    done = run("import", "--audit", "facts.txt", "--format", "html", "-o", "page.html")
    assert done.code == 0 and done.out == "" and "page.html" in done.err
    assert Path("page.html").read_text().startswith("<!doctype html>")
    assert Path("page.html").stat().st_mode & 0o777 == 0o600
    done = run("import", "--audit", "facts.txt", "-o", "facts.txt")
    assert done.code == 1 and "is there already" in done.err
    assert Path("facts.txt").read_text().startswith("- [2024-05-01]")
    assert not home.parent.exists()


def test_an_audit_of_nothing_is_an_error_and_writes_no_page(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "other.txt", "Dear diary")
    assert run("import", "--audit", "other.txt", "-o", "page.md").code == 1
    assert run("import", "--audit").code == 2
    assert not Path("page.md").exists()
