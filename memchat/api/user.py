"""One person in one app: every verb on what is remembered of them, and adding a conversation that
another program holds, all of it or again in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, Unpack

from memchat import types
from memchat.api import base
from memchat.api.base import (
    MOST,
    Answer,
    Changed,
    Deleted,
    Exported,
    Mended,
    PromptContext,
    Resource,
    check_choice,
    check_count,
)
from memchat.api.clients import ClientAccess, Clients
from memchat.api.memories import Inbox, Memories, Mentions
from memchat.api.notes import Notes
from memchat.api.sessions import Incoming, Messages, Sessions
from memchat.api.workflows import Workflows
from memchat.assembly import Assembly
from memchat.db import Tx, apps, details, jobs, messages, schema, sessions, usage
from memchat.errors import InputError, MemChatError, NotFound, ProviderError, StoreError
from memchat.facts import audit, changes, manual, proposals
from memchat.forget import purge
from memchat.forget.undo import show_version
from memchat.providers import factory
from memchat.search import receipts
from memchat.tokens import estimate_tokens

if TYPE_CHECKING:
    from memchat.api.store import Background
    from memchat.chat import Chat


class Apps(Resource):
    """The apps of one person: each has memories, notes and conversations of its own."""

    def list(self) -> Sequence[types.AppInfo]:
        """The person's apps, by name."""
        with self._database.read() as tx:
            return apps.of_user(tx, self._scope.user)

    def rename(self, app: str, name: str) -> None:
        """Give an app another name. Raises NotFound where there is no such app, InputError where
        the name is another's, ScopeError for a name that cannot be used."""
        scope, new = types.Scope(self._scope.user, app), types.Scope(self._scope.user, name)
        with self._database.write(scope) as tx:
            self._found(tx, app)
            if new.app != scope.app and apps.find(tx, new).own:
                raise InputError(f"there is an app {new.app!r} already; give another name")
            apps.change(tx, tx.own, name=new.app)

    def delete(self, app: str) -> Deleted:
        """Delete an app with its memories, notes and conversations for good.

        Raises NotFound where the person has no such app.
        """
        scope = types.Scope(self._scope.user, app)
        with self._database.write(scope) as tx:
            self._found(tx, app)
            held = next(one for one in apps.of_user(tx, scope.user) if one.name == scope.app)
            count = purge.forget_app(tx, tx.own)
        return Deleted(count, held.sessions, apps=1, notes=held.notes)

    def _found(self, tx: Tx, app: str) -> None:
        if not tx.own:
            raise NotFound(f"there is no app {app!r}", see="apps list")


class User(Resource):
    """One person in one app. ``MemChat.user`` gives it; it needs no closing."""

    def __init__(self, assembly: Assembly, background: Background, scope: types.Scope) -> None:
        super().__init__(assembly, scope)
        self._background = background

    @property
    def scope(self) -> types.Scope:
        """The names of the person and the app."""
        return self._scope

    @cached_property
    def memories(self) -> Memories:
        """The memories of this app, and those the person has in every app."""
        return Memories(self._assembly, self._scope)

    @cached_property
    def sessions(self) -> Sessions:
        """The conversations of this app."""
        return Sessions(self._assembly, self._scope)

    @cached_property
    def notes(self) -> Notes:
        """The notes of this app: memos and documents."""
        return Notes(self._assembly, self._scope)

    @cached_property
    def workflows(self) -> Workflows:
        """The workflows of this app, and their runs."""
        return Workflows(self._assembly, self._scope)

    @cached_property
    def inbox(self) -> Inbox:
        """What waits for the person's decision, and what was not kept."""
        return Inbox(self._assembly, self._scope)

    @cached_property
    def mentions(self) -> Mentions:
        """What else speaks of a memory that is being forgotten."""
        return Mentions(self._assembly, self._scope)

    @cached_property
    def clients(self) -> Clients:
        """The programs that use this app's memory over MCP."""
        return Clients(self._assembly, self._scope)

    def client(self, name: str, mode: str = "ask", *, reads_only: bool = False) -> ClientAccess:
        """A program that uses this app's memory. Raises InputError for a bad name or mode."""
        access = ClientAccess(self._assembly, self._scope, self._catch_up, name, mode)
        access.reads_only = reads_only
        return access

    @cached_property
    def apps(self) -> Apps:
        """All apps of the person."""
        return Apps(self._assembly, self._scope)

    def add(
        self,
        messages: Messages,
        *,
        session: str | None = None,
        at: datetime | None = None,
        when: str | None = None,
        metadata: types.Metadata | None = None,
        wait: bool = True,
        timeout: float | None = None,
        read_all: bool = False,
        through: str | None = None,
        instead: bool = False,
        given: PromptContext | None = None,
    ) -> types.Learned:
        """Learn from a conversation of your own chat loop.

        ``messages`` is one user message as a string, or messages in the form of OpenAI's chat API:
        mappings with ``role`` and ``content``, a string or a list of parts. Messages of the user
        and the assistant are stored; system and tool messages and parts that are not text are left
        out, and counted in the result. ``session`` is your name of the conversation: the same name
        continues it, and turns that were added before are skipped, whether you give the whole
        conversation each time or only what is new. Without it each call is a conversation of its
        own. ``at`` is when the messages were said, an aware time; now, if not given. A message may
        have its own time as ``created_at``, also as an ISO text or seconds since 1970. Of a very
        long message only the beginning and the end are read, as ``shortened`` in the result says;
        with ``read_all`` all of it. ``metadata`` are values of your own beside the conversation, by
        which it and what it teaches are found; no model sees them. ``through`` names a program that
        the person does not trust yet: what its words teach waits in the inbox. With ``instead``
        what is new was said in the place of the last message of the person and of what followed it,
        which become another version (``sessions.versions``). ``given`` is what ``context`` gave the
        model for the reply that is added; it is kept, so that ``sessions.why`` explains that reply.

        The conversation is on disk before a model is asked. ``when`` says when it is read: ``now``;
        ``idle``, once nothing was added to it for as long as MEMCHAT_IDLE_MINUTES says; or ``end``,
        once ``sessions.end`` is called. What asks to be remembered is read now all the same.
        Reading once what was added in parts costs a fraction of reading each part; until then
        ``search`` and ``context`` find the turns themselves. Without it that is ``idle`` where a
        ``session`` is named and ``wait`` is false, else ``now``.

        With ``wait`` what is due now is read before it returns, and the result has what that
        taught; ``timeout`` bounds the waiting, in seconds, and the reading goes on in the
        background. With ``wait=False`` the reading is only queued. Where it is not
        read yet, for one of these reasons or as the provider failed, ``queued`` says why; a worker
        tries again. Where memory is off no words are stored, and ``skipped`` says so; short hashes
        of the turns of a ``session`` are kept, so that a later call does not learn them.

        Raises InputError where there is no text to add or a value cannot be, StoreError where the
        conversation is open in a chat or cannot be written.
        """
        timeout = types.checked_timeout(timeout)
        if when is None:
            when = "idle" if session is not None and not wait else "now"
        check_choice(when, ("now", *LATER), "time to read")
        incoming = Incoming.of(messages)
        said = self._times(incoming, session, at)
        noted = details.checked(metadata or {})
        stored = self._stored(
            incoming,
            session,
            said,
            when,
            noted,
            read_all=read_all,
            through=through,
            instead=instead,
            given=given,
        )
        if not wait or stored.queued != WAITS:
            return stored

        def read_in_background() -> types.Learned:
            try:
                return self._read(stored)
            except MemChatError as error:
                return replace(stored, queued=str(error))

        if timeout is None:
            return self._read(stored)
        try:
            return self._background.run_within(timeout, read_in_background)
        except TimeoutError:
            late = f"it was not read within {timeout:g} s, and is being read in the background"
            return replace(stored, queued=late)

    def add_all(
        self, conversations: Iterable[object], *, when: str = "now", wait: bool = True
    ) -> Sequence[types.Learned]:
        """Learn from many conversations: mappings of ``messages``, and where there are any
        ``session``, ``at`` and ``metadata``, each as ``add`` takes it. What each taught, in their
        order.

        All are stored before the first is read. Raises InputError, with nothing stored, where one
        cannot be added, and StoreError as ``add`` does.
        """
        check_choice(when, ("now", *LATER), "time to read")
        given = []
        for number, one in enumerate(conversations):
            parts = {"messages", "session", "at", "metadata"}
            if not isinstance(one, Mapping) or one.keys() - parts:
                raise InputError(
                    f"conversation {number} is no mapping of messages, session, at and metadata"
                )
            incoming, session = Incoming.of(one.get("messages", ())), one.get("session")
            said = self._times(incoming, session, one.get("at"))
            noted = details.checked(one.get("metadata") or {})
            given.append((incoming, session, said, when, noted))
        stored = [self._stored(*one) for one in given]
        return [self._read(one) if wait and one.queued == WAITS else one for one in stored]

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        timeout: float | None = None,
        **only: Unpack[types.Filters],
    ) -> types.Recalled:
        """Search the memories and past conversations by meaning and words, best first; ``only``
        narrows what is searched. With tags, a key, a type or what a program said there are no past
        conversations.

        Hits that surely have to do with the query are ``confident`` and come first; a turn that was
        not read yet comes before older memories that it may change. ``degraded`` says why only
        words were searched, with ``timeout`` also that the embedding service did not answer within
        so many seconds, and how many facts and turns have no vector yet.

        Raises InputError for an empty query, a bad filter, ``limit`` or ``timeout``.
        """
        timeout, wanted = types.checked_timeout(timeout), self._wanted(only)
        if not query.strip():
            raise InputError("the question is empty; say what to look for")
        check_count(limit)
        recall = self._assembly.recall()
        if timeout is None:
            return recall.find(self._scope, recall.question(query), limit, only=wanted)
        patience = self._assembly.query_timeout()
        question = patience.wait(patience.start(query), timeout)
        return recall.find(self._scope, question, limit, timeout, only=wanted)

    def _wanted(self, only: types.Filters) -> types.Wanted | None:
        found = base.wanted(only, self._settings.zone, self._settings.types)
        return None if found == types.Wanted() else found

    def context(
        self,
        prompt: str,
        *,
        max_tokens: int = 1000,
        timeout: float | None = None,
        **only: Unpack[types.Filters],
    ) -> PromptContext:
        """Memories and passages of notes for a system prompt of your own, chosen for the user's
        message ``prompt``: at most ``max_tokens`` (estimated); notes have what memories leave.
        ``only`` narrows it, as in ``search``; there are no notes then.

        ``timeout`` is how many seconds the embedding service is waited for, else as long as the
        settings say; after that only words are searched. ``shown.degraded`` says so where not all
        facts fit. Nothing is written. Raises InputError for an empty prompt or a bad ``timeout``.
        """
        from memchat.chat.prompt import for_message

        timeout, wanted = types.checked_timeout(timeout), self._wanted(only)
        if not prompt.strip():
            raise InputError("the message is empty; give the message of the user")
        parts = self._assembly.parts()
        switch = self.memory_switch()
        if not switch.on:
            return PromptContext("", 0, types.Recalled(), memory_off=switch.reason)
        question = parts.query_timeout.wait(parts.query_timeout.start(prompt), timeout)
        text, shown = for_message(parts, self._scope, question, max_tokens, wanted)
        return PromptContext(text, estimate_tokens(text) if text else 0, shown)

    def chat(
        self,
        *,
        resume: int | None = None,
        incognito: bool = False,
        turns: Sequence[types.Message] = (),
    ) -> Chat:
        """A conversation with the chat model; leaving its ``with`` block ends it and learns from
        it.

        ``resume`` is the id of a conversation to continue; where another chat of this process has
        it open, it is taken over, and the other one raises StoreError when something is said in it.
        An incognito one uses no memory and leaves nothing on disk; it may begin with ``turns`` that
        were said before, such as the first of ``chat.turns``. Conversations of this person that
        another process left open are ended first, and what waits to be read is read in the
        background. Raises NotFound for an unknown conversation, StoreError for one that is open in
        another process, InputError for ``turns`` without ``incognito``.
        """
        from memchat.chat import Chat

        base.checked_arguments(Chat)
        if not self._assembly.chat_model_known:
            factory.preload(self._assembly.settings)  # while the person types their first words
        parts = self._assembly.parts()
        chat = Chat(parts, self._scope, incognito=incognito, resume=resume, turns=turns)
        if not incognito:
            self._background.add(chat)
            if chat.memory.on:
                self._background.run(self._assembly.warm)  # while they type, too
            self._catch_up()
        return chat

    def answer(self, prompt: str, *, timeout: float | None = None) -> Answer:
        """One answer of the chat model with what is remembered; nothing is written.

        Raises ProviderError where the model fails, or has not answered after ``timeout`` seconds;
        InputError for an empty prompt or a bad ``timeout``.
        """
        from memchat.chat import answer_once

        seconds = types.checked_timeout(timeout)
        ask = partial(answer_once, self._assembly.parts(), self._scope, prompt)
        if seconds is None:
            return Answer(*ask())
        try:
            return Answer(*self._background.run_within(seconds, ask))
        except TimeoutError:
            raise ProviderError(
                f"the model did not answer within {seconds:g} s; give it longer, or try again",
                retryable=True,
            ) from None

    def memory_switch(self, *, all_apps: bool = False) -> types.MemorySwitch:
        """Whether memory takes part in this app, and if not, why; with ``all_apps`` the person's
        own switch over every app."""
        with self._database.read() as tx:
            return apps.memory_switch(tx, self._scope, all_apps=all_apps)

    def set_memory(self, on: bool, *, all_apps: bool = False) -> types.MemorySwitch:
        """Switch memory on or off for this app, or with ``all_apps`` for the person as a whole.

        Returns how the switch stands now. While it is off nothing is read, used or stored.
        """
        with self._database.write() as tx:
            if all_apps:
                app_id = apps.ensure_shared(tx, self._scope.user)
            else:
                app_id = apps.ensure(tx, self._scope).own
            apps.set_memory(tx, app_id, on)
            if on:
                self._queue_unread(tx, all_apps)
        return self.memory_switch(all_apps=all_apps)

    def instructions(self, *, all_apps: bool = False) -> str:
        """What the person wants of every reply in this app, or with ``all_apps`` in each."""
        with self._database.read(self._scope) as tx:
            return apps.instructions(tx, tx.shared if all_apps else tx.own)

    def set_instructions(self, text: str, *, all_apps: bool = False) -> None:
        """Set what ``instructions`` gives. Chats have it from the next reply on, but incognito
        ones. Raises InputError for a text that is too long."""
        text = types.clean_text(text).strip()
        if len(text) > INSTRUCTIONS_LIMIT:
            raise InputError(f"instructions have at most {INSTRUCTIONS_LIMIT:,} characters")
        with self._database.write() as tx:
            found = apps.ensure(tx, self._scope)
            apps.change(tx, found.shared if all_apps else found.own, instructions=text or None)

    def audit(self) -> types.Audit:
        """Look for memories that should not be there, or not as they are; changes nothing."""
        meaning, _ = self._assembly.embedding_space()
        with self._database.read(self._scope) as tx:
            return audit.Auditor(tx, meaning).look()

    def mend(self, findings: Iterable[types.Finding]) -> Mended:
        """Do what these findings of an audit propose (``fix``), where it still applies.

        ``unmend`` undoes all of it, but for secrets, which are forgotten for good; so does
        ``memories.restore`` for each memory that went out of use.
        """
        last = ("index drift", "secret")
        with self._database.write(self._scope) as tx, self._database.read(self._scope) as before:
            since, order = changes.latest_event(tx), sorted(findings, key=lambda f: f.kind in last)
            done = [audit.mend(tx, finding) for finding in order if finding.kind not in last]
            images = manual.images_of(before, tx, [], since)
            done += [audit.mend(tx, finding) for finding in order if finding.kind in last]
            return Mended(sum(done), tx.now, images)

    def unmend(self, mended: Mended) -> Changed:
        """Put the memories back that ``mend`` took out of use; how many.

        Raises InputError where one of them was changed since; nothing is undone then.
        """
        with self._database.write(self._scope) as tx:
            manual.take_back(tx, [], mended.before, mended.at)
        return Changed(len(mended.before.before["memories"]))

    def usage(self, *, session_id: int | None = None) -> Sequence[types.UsageTotal]:
        """Tokens and cost in every app, or of one conversation, by purpose and model."""
        with self._database.read() as tx:
            return usage.totals(tx, self._scope.user, session_id)

    def export(self, *, all_apps: bool = True) -> Iterator[dict[str, Any]]:
        """What ``import_file`` brings back of the person, of this moment, as JSON-ready
        dictionaries.

        Each has a ``record``: app, client (a program), session, message, memory, evidence, event
        (the history of a memory), note or inbox_item (what waits for an answer). Without
        ``all_apps`` it is what this app has alone. Only a backup has what was spent, what replies
        were given, workflows and their runs, what was not kept or not asked about again, what waits
        for its second look, and what each program wrote. Keys, settings, vectors and what was
        deleted are not among it. Deleted bytes stay in the store until the iteration has ended.
        """
        from memchat.transfer.export import export

        return export(self._assembly, self._scope, all_apps=all_apps)

    def export_file(
        self,
        file: Path | str | TextIO | BinaryIO,
        *,
        format: str = "jsonl",
        all_apps: bool = True,
        progress: types.OnProgress | None = None,
    ) -> Exported:
        """Write what ``export`` gives into a new file that only this account may read, or to a
        stream of text, for a zip file of bytes.

        ``format`` is jsonl, a record on each line, which ``import_file`` reads; zip, the same with
        the files that notes were read from and that are unchanged; markdown, a page for people; or
        prompt, the memories in force as lines to give to another assistant, without sensitive ones
        and secrets. ``progress`` counts records. Raises InputError where the file is there already,
        NotFound where nothing is kept of the person, StoreError where it cannot be written.
        """
        from memchat.transfer.export import export_file

        to = Path(file).expanduser() if isinstance(file, Path | str) else file
        return export_file(
            self._assembly, self._scope, to, format, all_apps=all_apps, progress=progress
        )

    def import_file(
        self, file: Path | str, *, dry_run: bool = False, progress: types.OnProgress | None = None
    ) -> types.Imported:
        """Read an export in jsonl as this person's own, whoever's it was; nothing goes through the
        inbox.

        What is here already stays as it is here, so importing twice changes nothing; a conversation
        that only went on elsewhere gets the messages that it lacks, and a note that was changed
        elsewhere later than here its text from there. What was forgotten here stays away, and its
        words are blanked in messages that come back; so does a note that was deleted here.
        Records that could not be entered today are refused, each with its line; those of kinds that
        only earlier exports had are left out, and counted. Vectors are made
        afterwards, by ``jobs.embed`` or a worker; conversations that were not read yet are queued.
        ``dry_run`` stores nothing and says what would be done. ``progress`` counts records.

        Raises InputError for a file that is no export, is of a newer format, was cut off or has a
        broken line; nothing is imported then.
        """
        from memchat.transfer.import_file import import_file

        path = Path(file).expanduser()
        return import_file(self._assembly, self._scope, path, dry_run=dry_run, progress=progress)

    def import_history(
        self,
        path: Path | str,
        *,
        learn: str = "later",
        newest: int = 200,
        max_calls: int | None = None,
        max_cost: float | None = None,
        dry_run: bool = False,
        progress: types.OnProgress | None = None,
    ) -> types.ImportedHistory:
        """Import what another product exported: a file, a zip file or a folder of ChatGPT, Claude,
        Gemini (Takeout), Open WebUI, LibreChat, mem0 or Letta, JSON with ``messages``,
        conversations in Markdown, or lines of "- [date] fact".

        Conversations keep their dates, are searched at once, and are known again: a second import
        adds nothing, or what was said since, and what was deleted here stays so. Facts that the
        product had saved wait in the inbox. ``learn`` says whether the ``newest`` conversations are
        read for memories, the oldest of them first: ``now``, ``later`` (a worker does) or ``no``;
        the others are kept without being read, until they are among the ``newest`` of a later
        import. As many are read as ``max_calls`` of the model and ``max_cost`` US dollars allow, by
        an estimate without calls that fail and are made again. ``jobs.stop`` ends the reading after
        the conversation in hand; a worker or the same import goes on. ``dry_run`` stores nothing
        and says what would be done. ``progress`` counts conversations. ``undo_import`` takes the
        import back.

        Raises InputError where nothing of it can be imported, where it would unpack to far more
        than an export does, for a bad ``learn``, number or cap, and where memory is off; StoreError
        where it cannot be written: what was stored before then stays.
        """
        from memchat.transfer.history import HistoryImport

        check_choice(learn, ("now", "later", "no"), "time to learn")
        check_count(newest, "number of conversations")
        most, file = 0 if learn == "no" else newest, Path(path).expanduser()
        for cap in (max_calls, max_cost):
            if cap is not None and not 0 <= cap <= MOST:
                raise InputError(f"the cap {cap} cannot be; give a number from 0 to {MOST}")
        run = HistoryImport(self._assembly, self._scope, file, most, max_calls, max_cost, progress)
        if dry_run:
            return run.preview()
        done = run.run()
        return replace(done, waiting=run.read()) if learn == "now" else done

    def imports(self) -> Sequence[types.PastImport]:
        """What ``import_history`` stored here and is still there, the latest import first, with how
        much of it waits to be read."""
        from memchat.transfer.history_undo import listed

        with self._database.read(self._scope) as tx:
            return listed(tx)

    def undo_import(self, import_id: str) -> Deleted:
        """Delete what ``import_history`` stored under this id, ``last`` for the latest import, with
        what only that taught; the same can be imported again. What the person answered with a yes
        in the inbox stays. Raises NotFound where nothing is left of it."""
        from memchat.transfer.history_undo import undo

        with self._database.write(self._scope) as tx:
            done, deleted = undo(tx, import_id)
        return Deleted(len(done.gone), deleted)

    def delete_all(self) -> Deleted:
        """Delete everything that is kept of the person for good, in every app."""
        count, user = 0, self._scope.user
        with self._database.write() as tx:
            held = apps.of_user(tx, user)
            for app_id in apps.ids_of_user(tx, user):
                count += purge.forget_app(tx, app_id)
        notes = sum(app.notes for app in held)
        return Deleted(count, sum(app.sessions for app in held), apps=len(held), notes=notes)

    def _times(self, incoming: Incoming, session: object, at: object) -> Sequence[datetime]:
        """When each turn was said. Raises InputError for a time, or a name, that cannot be."""
        named = isinstance(session, str) and 0 < len(session) <= NAME_LIMIT
        if session is not None and not named:
            raise InputError(f"the name of a session is a text of 1 to {NAME_LIMIT} characters")
        now = self._assembly.clock()
        every = _checked(at, now)
        return [every if time is None else _checked(time, now) for time in incoming.times]

    def _read(self, stored: types.Learned) -> types.Learned:
        """Read a conversation that was stored, and say what that taught."""
        from memchat.jobs.worker import outcome

        worker = self._assembly.parts().worker
        done = worker.run(kinds=("extract", "verify"), target_id=stored.session_id)
        return outcome(done, stored)

    def _stored(
        self,
        incoming: Incoming,
        session: str | None,
        times: Sequence[datetime],
        when: str,
        noted: Mapping[str, str],
        *,
        read_all: bool = False,
        through: str | None = None,
        instead: bool = False,
        given: PromptContext | None = None,
    ) -> types.Learned:
        """Store what is new in one transaction and queue its reading; nothing where memory is off.
        Raises StoreError where the conversation is open in a chat."""
        from memchat.jobs.worker import close_session

        self._assembly.parts().worker.end_abandoned(self._scope.user)
        every, ignored = len(incoming.turns), incoming.ignored
        with self._database.write() as tx:
            switch = apps.memory_switch(tx, self._scope)
            off = types.Learned(None, skipped=switch.reason, ignored=ignored)
            if not switch.on and session is None:
                return off
            tx = apps.ensure(tx, self._scope)
            own = tx.own
            session_id, turns = None, sessions.KnownTurns(tuple(range(every)), ())
            replaced: Sequence[int] = ()
            if session is not None:
                session_id, before = sessions.external(tx, own, session)
                replaced = _last_exchange(tx, session_id) if instead else []
                before = before[: len(before) - len(replaced)]
                turns = sessions.KnownTurns.of(before, sessions.turn_hashes(tx, incoming.turns))
                if not switch.on:
                    # Said while memory was off: not to be learned when it is sent again.
                    sessions.put_external(tx, own, session, session_id, turns.hashes)
                    return off
            if not turns.new:
                said = "nothing new was said"
                return types.Learned(session_id, skipped=said, known=every, ignored=ignored)
            there = None if session_id is None else sessions.by_id(tx, session_id)
            if there is not None and there[0].ended_at is None:
                raise StoreError(f"session {session_id} is open in a chat; end it there first")
            moments = sorted(times[place] for place in turns.new)
            if session_id is None:
                session_id = sessions.start(tx, own, "", tx.now, moments[0])
            if there is not None or through is not None:
                sessions.change(tx, session_id, through=through)
            details.put(tx, schema.sessions, session_id, noted, add=True)
            for at in sorted({moments[0], moments[-1]}):
                sessions.reopen(tx, session_id, "", tx.now, at)
            due = self._due(tx, session_id, when, [incoming.turns[place] for place in turns.new])
            new = [(*incoming.turns[place], times[place]) for place in turns.new]
            added = _write(tx, session_id, new, given, read_all=read_all)
            if replaced:
                show_version(tx, session_id, replaced[0], added[0])
            if session is not None:
                sessions.put_external(tx, own, session, session_id, turns.hashes)
            found = sessions.by_id(tx, session_id)
            assert found is not None
            close_session(tx, found[0], due)
            waits = jobs.due_at(tx, "extract", session_id)
            later = waits is not None and waits > tx.now
        return types.Learned(
            session_id,
            queued=None if waits is None else LATER[when] if later else WAITS,
            skipped=None if waits is not None else "nothing was said by the user",
            stored=len(turns.new),
            message_ids=tuple(added),
            known=every - len(turns.new),
            ignored=ignored,
        )

    def _due(
        self, tx: Tx, session_id: int, when: str, said: Iterable[tuple[types.Role, str]]
    ) -> datetime:
        """When a conversation is to be read. What is due already stays so."""
        from memchat.language.lexicon import REMEMBER

        before = jobs.due_at(tx, "extract", session_id)
        asked = any(role == "user" and REMEMBER.search(words) for role, words in said)
        if when == "now" or asked or (before is not None and before <= tx.now):
            return tx.now
        idle = timedelta(minutes=self._settings.idle_minutes)
        return tx.now + idle if when == "idle" else types.LATEST

    def _catch_up(self) -> None:
        """End what other processes left open, and do the person's work that is due."""
        user, worker = self._scope.user, self._assembly.parts().worker
        worker.end_abandoned(user)
        worker.expire(user)
        with self._database.read() as tx:
            due = jobs.due_kinds(tx, user, tx.now)
        if due:
            self._background.run(partial(worker.run_in_background, user))

    def _queue_unread(self, tx: Tx, all_apps: bool) -> None:
        """Queue what was not read, or not checked a second time, before memory was switched off."""
        user = self._scope.user
        left = [("extract", *found) for found in sessions.ended_with_unread(tx, user)]
        for session_id in proposals.sessions_awaiting_second_look(tx, user):
            found = sessions.by_id(tx, session_id)
            if found is not None and found[0].ended_at is not None:
                left.append(("verify", *found))
        for kind, session, app_id in left:
            here = all_apps or session.app == self._scope.app
            if here and apps.memory_of(tx, session).on:
                jobs.enqueue(tx, kind, app_id, session.id, tx.now)


def _write(
    tx: Tx,
    session_id: int,
    turns: Sequence[tuple[types.Role, str, datetime]],
    given: PromptContext | None,
    *,
    read_all: bool,
) -> list[int]:
    """Store turns, each a role, its words and when they were said; the ids of their rows."""
    added = []
    for role, words, at in turns:
        if role == "assistant" and given is not None:
            added.append(_with_receipt(tx, session_id, words, at, given))
        else:
            added.append(messages.add(tx, session_id, role, words, at))
        if read_all:
            messages.read_all(tx, added[-1])
    return added


def _with_receipt(tx: Tx, session_id: int, words: str, at: datetime, given: PromptContext) -> int:
    """Store a reply with what its model was given."""
    from memchat.chat.turn import store_reply

    first, shown = messages.ids_of(tx, session_id)[-1:], given.shown
    counts = len(first), shown.lines, shown.dropped, shown.degraded
    sent = receipts.SentPrompt(given.text, first[0], False, *counts) if first else None
    return store_reply(tx, session_id, words, shown, sent, at=at)


def _last_exchange(tx: Tx, session_id: int | None) -> list[int]:
    """The ids of the last message of the person and of what followed it."""
    there = [] if session_id is None else messages.of_session(tx, session_id)
    last = max((n for n, turn in enumerate(there) if turn.role == "user"), default=len(there))
    return [turn.id for turn in there[last:]]


WAITS = "it waits to be read"
LATER = {
    "idle": "it is read once nothing is added to it for a while",
    "end": "it is read when the session is ended",
}
NAME_LIMIT = 200
INSTRUCTIONS_LIMIT = 4_000
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def _checked(at: object, now: datetime) -> datetime:
    if at is None:
        return now
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InputError("the time of the messages is no time with a zone; give an aware datetime")
    if at < EARLIEST:
        raise InputError(f"{at.isoformat()} is before 1970; give the time of the messages")
    if at > now:
        raise InputError(f"{at.isoformat()} is still to come; give the time of the messages")
    return at
