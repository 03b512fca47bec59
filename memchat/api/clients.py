"""Programs that use a person's memory over MCP: their access, what they wrote, and their setup.

The person gives each program a name and a mode, which decides whether it stores by itself or asks
in the inbox. ``configs`` makes the text that a well-known program needs in its configuration file.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from memchat import types
from memchat.api.base import Resource, check_choice
from memchat.api.note_files import NoteWriting
from memchat.api.sessions import Incoming, Messages
from memchat.api.workflows import Workflows
from memchat.assembly import Assembly
from memchat.config.settings import HOME
from memchat.db import Tx, apps, messages, records, sessions
from memchat.disk import default_home
from memchat.errors import InputError, NotFound, StoreError
from memchat.facts import memories, programs, proposals
from memchat.facts.in_force import as_of
from memchat.forget import purge
from memchat.forget.undo import take_back
from memchat.language.text import has_words
from memchat.notes import rows
from memchat.workflows import rows as workflows

log = logging.getLogger(__name__)

SIMILAR_MOST = 3
"""Memories that ``remember`` names as similar."""


def changed_by_hand(note: types.Note, written_at: datetime | None) -> bool:
    """Whether a note was changed after the program last stored it, or may have been: when it did
    that is not known of a note that was imported."""
    changed = note.updated_at
    return changed is not None and (written_at is None or changed > written_at)


class ClientAccess(Resource):
    """One program, by the name and the mode that the person gave it.

    ``trust`` lets it store; with ``ask`` what it remembers waits in the inbox. Where memory is off,
    its verbs raise InputError. Each call is counted, and what it writes is listed by
    ``User.clients``, which can undo it.
    """

    def __init__(
        self,
        assembly: Assembly,
        scope: types.Scope,
        catch_up: Callable[[], None],
        name: str,
        mode: str,
    ) -> None:
        super().__init__(assembly, scope)
        check_choice(mode, types.CLIENT_MODES, "mode")
        self._catch_up = catch_up
        self.name = types.one_line(name, "name of the client", types.CLIENT_NAME_LIMIT)
        self._prefix = types.note_prefix(self.name)
        self.mode: types.ClientMode = "trust" if mode == "trust" else "ask"
        self.reads_only = False
        """Whether its verbs that write raise InputError."""

    def remember(
        self,
        type: str,
        key: str,
        value: str,
        *,
        expires_at: date | None = None,
        starts_at: date | None = None,
        quote: types.SessionQuote | None = None,
        tags: Iterable[str] = (),
    ) -> types.Written:
        """Remember a fact, as the mode allows. With a ``quote`` of the person from a conversation
        of this scope, the checks that conversations go through decide instead of the mode. A memory
        that was known keeps its tags beside these ``tags``. The result names ``similar`` memories,
        for the program to see whether one of them no longer holds.

        Raises InputError for what cannot be kept, SecretError for what looks like a secret,
        NotFound for a quote of a conversation outside the scope.
        """
        with self._database.write(self._scope, ensure=True) as tx:
            facts = self._facts(tx)
            fact = facts.fact(type, key, value, expires_at, starts_at, tags)
            done = facts.remember(fact, quote)
        if done.status in ("stored", "waiting"):
            # Before a worker starts: the search makes the new fact's vector, which is kept.
            done = replace(done, similar=self._similar(key, value, done.memory))
        self._catch_up()
        return done

    def remember_instead(
        self,
        memory_id: int,
        type: str,
        key: str,
        value: str,
        *,
        expires_at: date | None = None,
        starts_at: date | None = None,
        tags: Iterable[str] = (),
    ) -> types.Written:
        """Remember a fact, as ``remember``, in the place of a memory that no longer holds because
        of it, under the key of that one. What this program had stored of it is kept once. Raises
        NotFound outside the scope."""
        with self._database.write(self._scope, ensure=True) as tx:
            facts, memory = self._facts(tx), self._memory(tx, memory_id)
            fact = facts.fact(type, key, value, expires_at, starts_at, tags)
            done = facts.remember_instead(memory, fact)
        self._catch_up()
        return done

    def update(
        self,
        memory_id: int,
        value: str | None = None,
        *,
        expires_at: date | None = None,
        starts_at: date | None = None,
        tags: Iterable[str] = (),
    ) -> types.Written:
        """Replace the value and the last day of a memory, or give it another first day or more
        tags, as ``remember``. A first day to come stays unless another is given. Raises InputError
        where nothing is given, NotFound outside the scope."""
        if value is None and expires_at is None and starts_at is None and not tags:
            raise InputError("nothing to change; give a value or tags")
        with self._database.write(self._scope, ensure=True) as tx:
            facts, memory = self._facts(tx), self._memory(tx, memory_id)
            done = facts.change(memory, value, expires_at, starts_at, tags)
        self._catch_up()
        return done

    def forget(self, memory_id: int) -> types.Written:
        """Put a memory out of use; the person is asked whether it is forgotten for good. Raises
        NotFound outside the scope."""
        with self._database.write(self._scope, ensure=True) as tx:
            return self._facts(tx).forget(self._memory(tx, memory_id))

    def promote(self, memory_id: int) -> types.Written:
        """Ask the person whether a memory is kept for all their apps. Raises NotFound outside the
        scope."""
        with self._database.write(self._scope, ensure=True) as tx:
            return self._facts(tx).promote(self._memory(tx, memory_id))

    def conversation(
        self, before: Messages, session: str | None = None
    ) -> types.ProgramConversation:
        """Which conversation goes on after these messages, in the form that ``add`` takes: the one
        that ends with the last two of them, or that ended so before its last exchange and is the
        same before that; in doubt a new one. ``session`` is the program's own name of it, where it
        has one: then all that can be told is whether it ended so before its last exchange."""
        turns = Incoming.of(before).turns if before else ()
        with self._database.read() as tx:
            begin = self._database.read if records.has_hash_key(tx) else self._database.write
        with begin(self._scope) as tx:
            sent = sessions.turn_hashes(tx, turns)
            if session is not None:
                known = sessions.external(tx, tx.own, session)[1] if tx.own else []
                goes_on = len(known) < 2 or known[-len(sent) :] == sent or known[:-2] != sent
                return types.ProgramConversation(session, anew=not goes_on)
            if sent and tx.own:
                there = sessions.of_program(tx, tx.own, self.name, sent)
                if len(there) > 1:
                    there = [one for one in there if _agree(one[1], sent)]
                if len(there) == 1:
                    return types.ProgramConversation(there[0][0], anew=False)
                there = sessions.of_program(tx, tx.own, self.name, sent, before=True)
                there = [one for one in there if one[1][:-2] == sent]
                if len(there) == 1:
                    return types.ProgramConversation(there[0][0], anew=True)
            return types.ProgramConversation(sessions.program_name(tx, self.name), anew=False)

    def forget_named(self, message: str) -> Sequence[int]:
        """Where a message of the person asks to forget something, put the memories that it names
        out of use, as ``forget`` does; the ids of the questions in the inbox. Where memory is off,
        nothing is done."""
        self._assembly.parts()  # which loads the chat: two threads must not begin that at two ends
        from memchat.chat.command_words import command
        from memchat.chat.commands import CHOICE_MOST, names_fact

        asked = command(message)
        if asked is None or asked.kind != "forget":
            return []
        with self._database.write(self._scope, ensure=True) as tx:
            if not apps.memory_switch(tx, self._scope).on:
                return []
            facts = self._facts(tx)
            every = memories.listed(tx, tx.ids, types.Wanted(), as_of(tx, tx.ids))
            named = [one for one in every if names_fact(asked.words, one.key, one.value)]
            done = [facts.forget(one) for one in named[:CHOICE_MOST]]
        return [one.inbox_id for one in done if one.inbox_id is not None]

    def begin_request(self, key: str, request: str) -> types.RequestDone | None:
        """Begin a request that the program may send twice: what came of it where it did so before,
        else None. ``key`` is the program's own, ``request`` a hash of what it sent; of both, the
        status and the id of a row are kept for a day, and no words."""
        with self._database.write(self._scope, ensure=True) as tx:
            return programs.begin_request(tx, self._called(tx), key, request)

    def finish_request(self, key: str, status: int | None, row_id: int | None) -> None:
        """Keep what came of a request that was begun; without a status it may be sent again."""
        with self._database.write(self._scope, ensure=True) as tx:
            client_id = programs.find(tx, tx.own, self.name)
            if client_id is not None:
                programs.finish_request(tx, client_id, key, status, row_id)

    def require_memory(self) -> None:
        """Raise InputError where memory is off."""
        with self._database.read(self._scope) as tx:
            self._require_memory(tx)

    def count_recall(self, found: types.Recalled) -> None:
        """Count a search and the memories that it gave to the program, as ``called`` counts."""
        ids = [hit.id for hit in found.hits if hit.kind == "memory"]
        self._count(lambda tx: memories.add_uses(tx, matched=ids, read=ids))

    def called(self) -> None:
        """Count a call that only reads. It waits for no writer and for no disk: where another
        process is writing just then, the call is not counted."""
        self._count(lambda _: None)

    def index_memo(
        self,
        memo_id: str,
        transcript: str,
        created_at: datetime,
        title: str | None = None,
        *,
        on_progress: types.OnProgress | None = None,
    ) -> types.Note | None:
        """Keep a note under the program's own id; the same id again replaces it, unless the person
        changed it since. None for a text without words. ``on_progress`` counts the parts that have
        a vector; where it raises, the note is kept and a worker makes the rest. Raises InputError
        for what cannot be kept."""
        self._require_writing()
        external_id = f"{self._prefix}{types.one_line(memo_id, 'memoId', 200)}"
        if not has_words(transcript):
            self.called()
            return None
        writing = NoteWriting(self._assembly, self._scope)
        memo = types.NewNote(transcript, title, external_id=external_id, created_at=created_at)
        prepared = writing.prepare(memo)
        with self._database.write(self._scope, ensure=True) as tx:
            client_id = self._called(tx)
            there = rows.by_external_id(tx, tx.own, "memo", external_id)
            written = {w.target_id: w.at for w in programs.writes(tx, client_id, kind="note")}
            if there is not None and changed_by_hand(there, written.get(there.id)):
                raise InputError("the person changed this note; keep yours under another memoId")
            (note_id,) = writing.write(tx, [prepared])
            programs.record_note(tx, client_id, note_id)
        whole, report = writing.get(note_id).chunks, types.timed(on_progress)
        report(0, whole)
        # A chunk may be cut anew for the model.
        writing.embed(note_id, lambda result: report(min(result.embedded, whole), whole))
        return writing.get(note_id)

    def run_workflow(self, workflow: str, text: str = "") -> types.WorkflowRun:
        """Run a workflow that the person shared with this program, on a text. It waits in the
        person's inbox before it calls a tool that may change something. Raises NotFound for any
        other workflow."""
        self._require_writing()

        def begin(tx: Tx) -> int:
            self._called(tx)
            return workflows.begin(tx, workflow, types.clean_text(text).strip(), program=self.name)

        return Workflows(self._assembly, self._scope)._do(begin)

    def with_masked_texts(self, hits: Iterable[types.NoteHit]) -> Sequence[types.NoteHit]:
        """Passages of notes with their texts as a model may read them: without what looks like a
        secret."""
        found = [*hits]
        with self._database.read(self._scope) as tx:
            texts = rows.masked_texts(tx, [hit.chunk_id for hit in found])
        return [replace(hit, text=texts[hit.chunk_id]) for hit in found if hit.chunk_id in texts]

    def chunk_ids(self, hits: Iterable[types.NoteHit]) -> Mapping[int, str]:
        """The ids of passages as this program knows them, by ``chunk_id``: the id of the note, and
        the place of the passage in it from 0 on."""
        found = [*hits]
        with self._database.read(self._scope) as tx:
            places = rows.places(tx, [hit.chunk_id for hit in found])
        return {
            hit.chunk_id: f"{self.memo_id(hit.source_id)}-{places[hit.chunk_id]}"
            for hit in found
            if hit.chunk_id in places
        }

    def _memory(self, tx: Tx, memory_id: int) -> types.Memory:
        try:
            return self._found_memory(tx, memory_id)
        except NotFound:
            raise NotFound(
                f"there is no memory {memory_id} here; recall and list_memories give the ids"
            ) from None

    def _similar(self, key: str, value: str, stored: types.Memory | None) -> tuple[types.Hit, ...]:
        """Other memories in use that may be about the same, the nearest first. An embedding service
        is waited for as a reply waits for it; after that only words are searched."""
        patience = self._assembly.query_timeout()
        said = patience.start(f"{key.replace('_', ' ')}: {value}")
        question = patience.wait(said)
        hits = self._assembly.recall().search(self._scope, question, SIMILAR_MOST + 1).hits
        others = (hit for hit in hits if stored is None or hit.id != stored.id)
        return tuple(others)[:SIMILAR_MOST]

    def _count(self, more: Callable[[Tx], None]) -> None:
        try:
            with self._database.write_if_free(self._scope, ensure=True) as tx:
                self._called(tx)
                more(tx)
        except StoreError as error:
            log.debug("a call of a program was not counted: %s", error)

    def memo_id(self, external_id: object) -> str:
        """The id of a note as this program gave it; of another's note the id in the store."""
        return str(external_id).removeprefix(self._prefix)

    def _facts(self, tx: Tx) -> programs.Program:
        self._require_writing()
        self._require_memory(tx)
        return programs.Program(tx, self._assembly.prompts, self._called(tx), self.name, self.mode)

    def _require_memory(self, tx: Tx) -> None:
        switch = apps.memory_switch(tx, self._scope)
        if not switch.on:
            raise InputError(switch.reason)

    def _require_writing(self) -> None:
        if self.reads_only:
            raise InputError(f"{self.name} may read alone; the person can let it write")

    def _called(self, tx: Tx) -> int:
        return programs.record_call(tx, tx.own, self.name, self.mode)


def _agree(known: Sequence[str], sent: Sequence[str]) -> bool:
    most = min(len(known), len(sent))
    return known[-most:] == sent[-most:]


class Clients(Resource):
    """The programs that called in one app of a person."""

    def list(self) -> Sequence[types.ClientInfo]:
        """The programs, the one that called last first."""
        with self._database.read(self._scope) as tx:
            return programs.listed(tx)

    def writes(self, name: str) -> Sequence[types.ClientWrite]:
        """What a program wrote, oldest first. Raises NotFound for one that never called."""
        with self._database.read(self._scope) as tx:
            return programs.writes(tx, self._found(tx, name))

    def of_memories(self, memory_ids: Iterable[int]) -> Mapping[int, str]:
        """The name of the program that stored each of these memories, by memory id; memories that
        no program stored are left out."""
        with self._database.read(self._scope) as tx:
            there = memories.by_ids(tx, tx.ids, [*memory_ids])
            return programs.of_memories(tx, [*there])

    def undo(self, name: str) -> types.Undone:
        """Undo all that a program wrote: what it stored goes, what that had replaced comes back,
        its notes and its proposals are deleted. What it asked to forget is asked still, unless it
        had stored it itself.

        Memories that the person or another program said too, and what the person edited, pinned,
        tagged or kept for every app, stay; they are ``kept`` in the result. Raises NotFound for a
        program that never called.
        """
        done = types.Undone()
        with self._database.write(self._scope) as tx:
            client_id = self._found(tx, name)
            session_id = programs.session_of(tx, client_id)
            if session_id is not None:
                said = messages.of_session(tx, session_id)
                done = take_back(tx, said, keep_marked=True)
                purge.forget_session(tx, session_id)
            proposals.remove(tx, programs.asked_alone(tx, client_id))
            kept = []
            for write in programs.writes(tx, client_id, kind="note"):
                note = rows.get(tx, tx.ids, write.target_id)
                app_id = rows.app_id_of(tx, write.target_id)
                if note is None or not str(note.external_id).startswith(types.note_prefix(name)):
                    continue  # it is gone, or the note of somebody else by a file's account
                if changed_by_hand(note, write.at):
                    kept.append(note.id)
                elif app_id is not None:
                    rows.remove(tx, app_id, note)
            programs.remove_writes(tx, client_id, but_notes=kept)
            tx.forget_bytes(*tx.ids)
        return done

    def _found(self, tx: Tx, name: str) -> int:
        found = programs.find(tx, tx.own, name)
        if found is None:
            raise NotFound(f"no program named {name!r} has called here", see="mcp clients")
        return found


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What one program needs in its configuration to use the memory of one person in one app."""

    key: str
    """Its name in a command."""
    client: str
    """Its name for people, under which its calls are counted."""
    place: str
    """The file that the text goes into, and how the program leads to it."""
    text: str
    """JSON, indented. Where the file has servers already, the entry ``memchat`` goes beside
    them."""


_PLACES = (
    (
        "claude-desktop",
        "Claude Desktop",
        "claude_desktop_config.json (Settings, Developer, Edit Config)",
    ),
    ("vscode", "VS Code", ".vscode/mcp.json, or MCP: Open User Configuration"),
    ("cursor", "Cursor", "~/.cursor/mcp.json"),
)


def configs(home: Path, user: str, app: str) -> Sequence[ClientConfig]:
    """The configuration of each program that is known, for a data folder, a person and an app."""
    # Such programs rarely have a PATH with memchat in it.
    beside = shutil.which("memchat", path=str(Path(sys.executable).parent))
    command, *words = [beside] if beside is not None else [sys.executable, "-m", "memchat"]
    scope = ["--user", user, "--app", app]
    found = []
    for key, client, place in _PLACES:
        entry: dict[str, Any] = {"type": "stdio"} if key == "vscode" else {}
        entry |= {"command": command, "args": [*words, "mcp", "--client", client, *scope]}
        if home.resolve() != default_home().resolve():
            entry["env"] = {HOME: str(home.resolve())}
        top = "servers" if key == "vscode" else "mcpServers"
        text = json.dumps({top: {"memchat": entry}}, indent=2, ensure_ascii=False)
        found.append(ClientConfig(key, client, place, text))
    return found
