"""One process of the crash test: it uses the store at random until it is killed.

Its diary has a line before each call and one, synced to disk, after the call returned. What the
second line says has been acknowledged and must be there for good.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memchat import MemChat
from memchat.chat import Chat
from memchat.config import Settings
from memchat.errors import InputError, NotFound
from memchat.providers.embedders import HashEmbedder
from memchat.testing import ScriptedModel
from memchat.types import ChatMessage

USERS = ("ana", "bo")
APPS = ("default", "notes")
SAID = re.compile(r"My (\w+) is ([\w ]+)\.")
FACTS = {
    "city": ("Lisbon", "Porto", "Faro", "Braga", "Evora"),
    "employer": ("Acme", "Initech", "Globex"),
    "hobby": ("chess", "climbing", "tea and walks", "walks and tea", "choir"),
    "project": ("a boat", "a shed", "a book of maps"),
}
WEIGHTS = {"talk": 40, "end": 12, "add": 14, "edit": 10, "delete": 7, "search": 10, "embed": 4}
WEIGHTS |= {"add_note": 8, "edit_note": 5, "delete_note": 3, "search_notes": 4}
_CALLS = 100_000


def settings(home: Path) -> Settings:
    """The store of the test: its own folder, nothing from the environment."""
    return Settings(home=home, timezone="UTC")


def open_store(home: Path) -> MemChat:
    """The store with doubles that answer at once."""
    return MemChat(
        settings=settings(home),
        chat_model=ScriptedModel([_answer] * _CALLS, name="scripted/chat"),
        extract_model=ScriptedModel([_extract] * _CALLS, name="scripted/extract"),
        embedder=HashEmbedder(),
    )


def _answer(messages: Sequence[ChatMessage]) -> str:
    return f"Noted, all of it, {len(messages)} messages so far."


def _extract(messages: Sequence[ChatMessage]) -> str:
    data = json.loads(messages[1].content.splitlines()[1])
    facts = [
        {
            "quotes": [{"msg": line["id"], "text": found.group()}],
            "type": "fact" if found[1] == "project" else "profile",
            "key": found[1],
            "value": found[2],
            "many": found[1] in ("hobby", "project"),
            "is": "new",
        }
        for line in data["transcript"]
        if line["role"] == "user"
        for found in SAID.finditer(line["text"])
    ]
    return json.dumps({"facts": facts[:9], "forget": [], "title": "A talk", "summary": ""})


class Diary:
    """What a process began and what came back, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._count = 0

    def begin(self, call: str, what: dict[str, Any]) -> int:
        """Note a call that is about to be made; its number."""
        self._count += 1
        self._write({"n": self._count, "began": time.monotonic_ns(), "call": call, **what})
        return self._count

    def returned(self, number: int, at: int, result: dict[str, Any]) -> None:
        """Note, durably, that a call returned ``at``, and what."""
        self._write({"n": number, "returned": at, **result})
        os.fsync(self._file)

    def error(self, error: BaseException) -> None:
        """Note what should not have happened."""
        self._write({"error": f"{type(error).__name__}: {error}"})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, (json.dumps(line) + "\n").encode())


class Life:
    """Random calls of one process on the store."""

    def __init__(self, store: MemChat, diary: Diary, name: str) -> None:
        self._store = store
        self._diary = diary
        self._name = name
        self._random = random.Random(name)
        self._chat: Chat | None = None
        self._deleted: set[int] = set()
        self._deleted_notes: set[int] = set()
        self._step = 0

    def step(self) -> None:
        """One call, or a turn of a conversation."""
        self._step += 1
        kind = self._random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        getattr(self, kind)()

    def talk(self) -> None:
        """A turn; the reply is cut now and then."""
        if self._chat is None:
            self._chat = self._store.user(**self._scope()).chat()
        chat = self._chat
        key = self._random.choice(list(FACTS))
        text = f"My {key} is {self._random.choice(FACTS[key])}. Turn {self._tag()}"
        reply = self._call("say", lambda: chat.send(text), lambda _: {"session": chat.session_id},
                           text=text)  # fmt: skip
        assert reply is not None
        cut = self._random.random() < 0.1

        def listen() -> None:
            if cut:
                next(iter(reply))
                reply.stop()
            else:
                assert reply.read()

        self._call("listen", listen, lambda _: {"id": reply.message_id, "text": reply.received})

    def end(self) -> None:
        """The end of the conversation, with or without waiting for what it taught."""
        chat, self._chat = self._chat, None
        if chat is None:
            return
        wait = self._random.random() < 0.7
        self._call("end", lambda: chat.end(wait=wait), session=chat.session_id)

    def add(self) -> None:
        """A memory by hand."""
        key = self._random.choice(("note", "task", "city", "theme"))
        value = f"{self._random.choice(FACTS['project'])} {self._tag()}"
        everywhere, scope = self._random.random() < 0.2, self._scope()
        self._call(
            "add",
            lambda: self._store.user(**scope).memories.add("fact", key, value, all_apps=everywhere),
            lambda memory: {"id": memory.id, "value": memory.value},
            **scope,
        )

    def edit(self) -> None:
        """New words, or another reach, for a memory of the scope."""
        scope, memory_id = self._pick()
        if memory_id is None:
            return
        if self._random.random() < 0.3:
            everywhere = self._random.random() < 0.5
            self._call(
                "move",
                lambda: self._store.user(**scope).memories.update(memory_id, all_apps=everywhere),
            )
            return
        value = f"{self._random.choice(FACTS['hobby'])} {self._tag()}"
        self._call(
            "edit",
            lambda: self._store.user(**scope).memories.update(memory_id, value=value),
            id=memory_id,
            value=value,
            **scope,
        )

    def delete(self) -> None:
        """A memory of the scope, for good."""
        scope, memory_id = self._pick()
        if memory_id is not None:
            self._call(
                "delete", lambda: self._store.user(**scope).memories.delete(memory_id), id=memory_id
            )
            self._deleted.add(memory_id)

    def search(self) -> None:
        """A question; nothing that this process deleted may answer it."""
        key = self._random.choice(list(FACTS))
        question = f"what is my {key}, {self._random.choice(FACTS[key])}?"
        found = self._call("search", lambda: self._store.user(**self._scope()).search(question))
        hits = found.hits if found else ()
        ghosts = self._deleted & {hit.id for hit in hits if hit.kind == "memory"}
        if ghosts:
            raise AssertionError(f"search found deleted memories {sorted(ghosts)}")

    def add_note(self) -> None:
        """A note of some chunks, or another text for one that is there."""
        scope, text = self._scope(), self._text()
        external_id = self._random.randrange(30)
        self._call(
            "add_note",
            lambda: self._store.user(**scope).notes.add(text, external_id=external_id),
            lambda note: {"id": note.id},
            text=text,
            **scope,
        )

    def edit_note(self) -> None:
        """Another text for a note of the scope."""
        scope, note_id = self._pick_note()
        if note_id is None:
            return
        text = self._text()
        self._call(
            "edit_note",
            lambda: self._store.user(**scope).notes.update(note_id, text=text),
            id=note_id,
            text=text,
        )

    def delete_note(self) -> None:
        """A note of the scope, for good."""
        scope, note_id = self._pick_note()
        if note_id is not None:
            self._call(
                "delete_note", lambda: self._store.user(**scope).notes.delete(note_id), id=note_id
            )
            self._deleted_notes.add(note_id)

    def search_notes(self) -> None:
        """A search; nothing that this process deleted may be found."""
        notes = self._store.user(**self._scope()).notes
        found = self._call("search_notes", lambda: notes.search("which city is the project in"))
        ghosts = self._deleted_notes & {hit.note_id for hit in (found.hits if found else ())}
        if ghosts:
            raise AssertionError(f"search found deleted notes {sorted(ghosts)}")

    def embed(self) -> None:
        """The vectors that are still to come."""
        self._call("embed", self._store.jobs.embed)

    def _call(
        self,
        name: str,
        call: Callable[[], Any],
        result: Callable[[Any], dict[str, Any]] = lambda _: {},
        **what: Any,
    ) -> Any:
        number = self._diary.begin(name, what)
        try:
            value = call()
        except (NotFound, InputError) as error:
            # Another process was first: deleted it, or wrote the same.
            self._diary.returned(number, time.monotonic_ns(), {"refused": type(error).__name__})
            return None
        self._diary.returned(number, time.monotonic_ns(), result(value))
        return value

    def _pick(self) -> tuple[dict[str, str], int | None]:
        scope = self._scope()
        rows = self._store.user(**scope).memories.list(status="all", limit=50)
        return scope, self._random.choice(rows).id if rows else None

    def _pick_note(self) -> tuple[dict[str, str], int | None]:
        scope = self._scope()
        notes = self._store.user(**scope).notes.list()
        return scope, self._random.choice(notes).id if notes else None

    def _text(self) -> str:
        """A text of some chunks, and no other's."""
        facts = [value for values in FACTS.values() for value in values]
        said = (
            f"The project of {self._random.choice(facts)} went on in the city, as noted in {n}."
            for n in range(self._random.randrange(1, 60))
        )
        return f"Note {self._tag()}. {' '.join(said)}"

    def _scope(self) -> dict[str, str]:
        return {"user": self._random.choice(USERS), "app": self._random.choice(APPS)}

    def _tag(self) -> str:
        return f"{self._name}n{self._step}"


def live(home: Path, diary_path: Path, name: str) -> None:
    """Use the store at random while the test goes on. What goes wrong stands in the diary."""
    diary = Diary(diary_path)
    parent = multiprocessing.parent_process()

    def in_a_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            diary.error(args.exc_value)

    threading.excepthook = in_a_thread
    try:
        store = open_store(home)
        life = Life(store, diary, name)
        while parent is None or parent.is_alive():
            life.step()
    except BaseException as error:
        diary.error(error)
        raise
