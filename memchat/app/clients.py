"""The programs that use a person's memory over MCP: who called, and what each of them wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection

from memchat.app.client_access import changed_by_hand
from memchat.app.room import Room
from memchat.errors import NotFound
from memchat.store import clients, inbox, memories, messages, notes
from memchat.types import Client, ClientWrite, Undone, note_prefix


class Clients(Room):
    """The programs that called in one app of a person."""

    def list(self) -> Sequence[Client]:
        """The programs, the one that called last first."""
        with self._database.read() as tx:
            own = self._ids(tx).own
            return [] if own is None else clients.listed(tx, [own])

    def writes(self, name: str) -> Sequence[ClientWrite]:
        """What a program wrote, oldest first. Raises NotFound for one that never called."""
        with self._database.read() as tx:
            return clients.writes(tx, self._found(tx, name))

    def of_memories(self, memory_ids: Iterable[int]) -> Mapping[int, str]:
        """The name of the program that stored each of these memories, by memory id; memories that
        no program stored are left out."""
        with self._database.read() as tx:
            there = memories.by_ids(tx, self._ids(tx).ids, [*memory_ids])
            return clients.of_memories(tx, [*there])

    def undo(self, name: str) -> Undone:
        """Undo all that a program wrote: what it stored goes, what that had replaced comes back,
        its notes and its proposals are deleted. What it asked to forget is asked still, unless it
        had stored it itself.

        Memories that the person or another program said too, and what the person edited, pinned,
        tagged or kept for every app, stay; they are ``kept`` in the result. Raises NotFound for a
        program that never called.
        """
        from memchat.memory.forgetting import purge
        from memchat.memory.forgetting.delete_turns import take_back

        done = Undone()
        with self._database.write() as tx:
            client_id = self._found(tx, name)
            ctx = self._context(tx)
            session_id = clients.session_of(tx, client_id)
            stale: set[int] = set()
            if session_id is not None:
                said = messages.of_session(tx, session_id)
                done, stale = take_back(ctx, said, keep_marked=True)
                stale |= purge.forget_session(ctx, session_id)
            inbox.remove(tx, clients.asked_alone(tx, client_id))
            kept = []
            for write in clients.writes(tx, client_id, kind="note"):
                note = notes.get(tx, ctx.scope.ids, write.target_id)
                app_id = notes.app_id_of(tx, write.target_id)
                if note is None or not str(note.external_id).startswith(note_prefix(name)):
                    continue  # it is gone, or the note of somebody else by a file's account
                if changed_by_hand(note, write.at):
                    kept.append(note.id)
                elif app_id is not None:
                    notes.remove(tx, app_id, note, ctx.now)
                    stale.add(app_id)
            clients.remove_writes(tx, client_id, but_notes=kept)
            self._assembly.drop_vectors(tx, stale)
            purge.request_scrub(tx)
        purge.scrub(self._database)
        return done

    def _found(self, tx: Connection, name: str) -> int:
        own = self._ids(tx).own
        found = None if own is None else clients.find(tx, own, name)
        if found is None:
            raise NotFound(f"no program named {name!r} has called here; see memchat mcp clients")
        return found
