"""Imports what another product exported: conversations with their own dates, and its saved facts as
proposals for the inbox.

The export is read twice: to see what there is, and to store it, so that neither takes memory for
more than one conversation. Some conversations are stored in one transaction, and others who write
take turns with them. All that an import stored names it, by which it is undone.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memchat import types
from memchat.api.sessions import ANSWER_TOKENS, BESIDE_TOKENS
from memchat.assembly import Assembly
from memchat.db import Tx, apps, jobs, messages, sessions
from memchat.errors import InputError
from memchat.facts import manual, proposals
from memchat.forget import tombstones
from memchat.jobs.worker import close_session
from memchat.language.secrets import mask
from memchat.learn import model_calls
from memchat.learn.candidate import MAX_FACTS
from memchat.learn.values import VALUE_LIMIT
from memchat.providers.litellm_calls import cost_usd
from memchat.tokens import estimate_tokens
from memchat.transfer import history_undo, kinds
from memchat.transfer.archive import BROKEN, Archive
from memchat.transfer.formats import Conversation, Item, Reader, SavedFact, Turn
from memchat.transfer.formats.chatgpt import ChatGPT
from memchat.transfer.formats.claude import Claude
from memchat.transfer.formats.gemini import Gemini
from memchat.transfer.formats.plain import Messages, facts_in, has_facts

READERS: tuple[type[Reader], ...] = (ChatGPT, Claude, Gemini, Messages)
LINES = "a list of facts"
OWN = "memchat"
KNOWN = "exports of ChatGPT, Claude, Gemini (JSON) and memchat, JSON with messages, and dated facts"
_AT_ONCE = 1_000
"""Messages that are stored in one transaction."""
_TITLE = 80
_FUTURE = "times that are still to come or before 1970"


class Source:
    """An export, which can be read again and again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.left_out: Counter[str] = Counter()
        self.products: dict[str, None] = {}
        """The names of the products, in the order in which they were found."""

    @property
    def product(self) -> str:
        return " and ".join(self.products)

    def items(self) -> Iterator[tuple[str, Item]]:
        """What it holds, each with the product. Raises InputError where it cannot be read, or
        nothing in it is known."""
        archive = Archive()
        self.left_out = archive.left_out
        readers = {one: one(self.left_out) for one in READERS}
        for member in archive.members(self._path):
            if member.is_json:
                values = member.values()
                for value in values:
                    if isinstance(value, dict) and value.get("format") == kinds.FORMAT:
                        self.products[OWN] = None
                        break
                    yield from self._of_value(readers, value)
                if values.broken:
                    self.left_out["parts that are no JSON"] += values.broken
            elif has_facts(member.head.decode("utf-8", "replace")):
                self.products[LINES] = None
                yield from self._of_lines(member.text)
            else:
                self.left_out["files of another kind"] += 1
        for kind, reader in readers.items():
            yield from ((kind.PRODUCT, item) for item in reader.finish())
        if OWN in self.products and len(self.products) > 1:
            del self.products[OWN]
            self.left_out["exports of memchat, to be imported by themselves"] += 1
        if not self.products:
            raise InputError(f"{self._path} is no export that memchat knows; it reads {KNOWN}")

    def _of_value(
        self, readers: Mapping[type[Reader], Reader], value: Any
    ) -> Iterator[tuple[str, Item]]:
        if isinstance(value, dict) and isinstance(value.get("conversations"), list):
            for one in value["conversations"]:
                yield from self._of_value(readers, one)
            return
        record: Mapping[str, Any] = value if isinstance(value, dict) else {}
        kind = next((one for one in READERS if record and one.holds(record)), None)
        if kind is None:
            self.left_out["records of another kind"] += 1
        else:
            self.products[kind.PRODUCT] = None
            yield from ((kind.PRODUCT, item) for item in readers[kind].take(record))

    def _of_lines(self, text: Any) -> Iterator[tuple[str, Item]]:
        try:
            yield from ((LINES, fact) for fact in facts_in(text(), self.left_out))
        except InputError:
            self.left_out[BROKEN] += 1


@dataclass(slots=True)
class HistoryImport:
    """One import into one app of one person."""

    assembly: Assembly
    scope: types.Scope
    path: Path
    newest: int
    """How many conversations are read for memories, the newest."""
    progress: types.OnProgress | None
    now: datetime = field(init=False)
    _chosen: dict[int, int] = field(default_factory=dict)
    """The place of each conversation to be read in the export, with its turn to be read."""
    _names: Counter[str] = field(default_factory=Counter)
    _count: Counter[str] = field(default_factory=Counter)
    _added: Counter[str] = field(default_factory=Counter)
    to_read: dict[int, int] = field(default_factory=dict)
    """The conversations that wait to be read, with their turn to be read."""

    def __post_init__(self) -> None:
        self.now = self.assembly.clock()

    def preview(self) -> types.ImportedHistory:
        """What there is and what would become of it; nothing is stored."""
        source, report = Source(self.path), types.timed(self.progress, "conversations")
        first = last = None
        newest: list[tuple[datetime, int, int, int]] = []
        saved, place = set(), 0
        self._names.clear()
        with self.assembly.database.read(self.scope) as tx:
            for product, item in source.items():
                if isinstance(item, SavedFact):
                    saved.add((product, item.text))
                    continue
                times = self._times(item)
                known = [time for time in times if time < self.now]
                first = min([*known, *([first] if first else [])], default=first)
                last = max([*known, *([last] if last else [])], default=last)
                fate = self._fate(tx, product, item)
                self._note(fate)
                if fate.new:
                    self._added.update(session=fate.session_id is None, message=len(fate.new))
                    self._choose(newest, max(times), place, item, fate)
                place, self._count["message"] = place + 1, self._count["message"] + len(times)
                report(place, place)
            self._added["inbox_item"] = len(saved)
        if source.product == OWN:
            return types.ImportedHistory(OWN, dry_run=True)
        order = sorted(newest)
        self._chosen = {one[1]: turn for turn, one in enumerate(order)}
        calls = sum(one[2] for one in order) * 2  # each is read, and looked at again
        return types.ImportedHistory(
            source.product,
            place,
            self._count["message"],
            len(saved),
            first,
            last,
            dict(source.left_out),
            dict(+self._added),
            self._count["grown"],
            self._count["known"],
            self._count["deleted"],
            len(order),
            calls,
            self._effort(calls, sum(one[3] for one in order)) if calls else "",
            dry_run=True,
        )

    def run(self) -> types.ImportedHistory:
        """Store what is new. Raises InputError where memory is off or nothing could be imported,
        StoreError where it cannot be written; what was stored before stays, and names the
        import."""
        with self.assembly.database.read() as tx:
            switch = apps.memory_switch(tx, self.scope)
        if not switch.on:
            raise InputError(f"{switch.reason}; nothing was imported")
        plan = self.preview()
        if plan.product == OWN:
            raise InputError(f"{self.path} is an export of memchat; import_file reads it")
        if not (plan.conversations or plan.saved):
            raise InputError(_nothing(plan))
        self.assembly.parts().worker.end_abandoned(self.scope.user)
        with self.assembly.database.read(self.scope) as tx:
            import_id = history_undo.new_id(tx)
        for counts in (self._names, self._added, self._count):
            counts.clear()
        source, report = Source(self.path), types.timed(self.progress, "conversations")
        facts: dict[tuple[str, str], SavedFact] = {}
        batch: list[tuple[int, str, Conversation]] = []
        place = size = 0
        for product, item in source.items():
            if isinstance(item, SavedFact):
                facts[product, item.text] = item
                continue
            batch.append((place, product, item))
            place, size = place + 1, size + len(item.turns)
            if size >= _AT_ONCE:
                self._write(batch, import_id)
                batch, size = [], 0
                report(place, max(place, plan.conversations))
        self._write(batch, import_id)
        self._propose(facts, import_id, source.left_out)
        return replace(
            plan,
            left_out=dict(source.left_out + Counter({_OPEN: self._count["open"]})),
            added=dict(+self._added),
            grown=self._count["grown"],
            known=self._count["known"],
            deleted=self._count["deleted"],
            to_read=len(self.to_read),
            id=import_id if +self._added else None,
            dry_run=False,
        )

    def read(self) -> None:
        """Read the conversations that were stored for it, the oldest first. What fails is tried
        again by a worker."""
        worker, report = self.assembly.parts().worker, types.timed(self.progress, "conversations")
        for count, session_id in enumerate(sorted(self.to_read, key=self.to_read.__getitem__), 1):
            worker.run(kinds=("extract", "verify"), target_id=session_id)
            report(count, len(self.to_read))

    def _times(self, item: Conversation) -> list[datetime]:
        """When each message was said; where that is not known, when the one before it was, or the
        conversation began."""
        said = [turn.time if self._can_be(turn.time) else None for turn in item.turns]
        began = item.began if self._can_be(item.began) else None
        before = next((time for time in said if time), None)
        before = said[0] or began or before or self.now
        times = []
        for time in said:
            before = time or before
            times.append(before)
        return times

    def _can_be(self, time: datetime | None) -> bool:
        return time is not None and datetime(1970, 1, 1, tzinfo=UTC) < time <= self.now

    def _fate(self, tx: Tx, product: str, item: Conversation) -> _Fate:
        """What is new of a conversation."""
        name = item.id
        if not name:
            first = item.turns[0]
            said = f"{item.began or first.time or ''}|{first.role}|{first.text}"
            name = hashlib.sha256(said.encode()).hexdigest()
        name = f"{product}:{name}"[: types.NAME_LIMIT]
        self._names[name] += 1
        again = self._names[name] > 1
        if again and not item.id:
            name += f":{self._names[name]}"
        hashes = sessions.turn_hashes(tx, [(turn.role, turn.text) for turn in item.turns])
        session_id, before = sessions.external(tx, tx.own, name)
        # The export has all of it: a turn is new where it was said oftener than it is known.
        left, new = Counter(before), list[int]()
        for at, turn in enumerate(hashes):
            left[turn] -= 1
            new += [at] if left[turn] < 0 else []
        there = None if session_id is None else sessions.by_id(tx, session_id)
        fate = _Fate(name, session_id, (*before, *(hashes[at] for at in new)), tuple(new))
        if session_id is None and before:
            return replace(fate, kind="deleted", new=())
        if there is not None and there[0].ended_at is None:
            return replace(fate, kind="open", new=())
        if session_id is None and again and item.id:  # it stands twice in what is only looked at
            return replace(fate, kind="known", new=())
        return replace(fate, kind="new" if there is None else "grown" if new else "known")

    def _note(self, fate: _Fate) -> None:
        self._count[fate.kind] += 1

    def _choose(
        self,
        newest: list[tuple[datetime, int, int, int]],
        last: datetime,
        place: int,
        item: Conversation,
        fate: _Fate,
    ) -> None:
        """Keep a conversation among the newest, where it is one of them."""
        said = [item.turns[at] for at in fate.new]
        full = len(newest) >= self.newest
        if any(turn.role == "user" for turn in said) and not (
            full and (not newest or last <= newest[0][0])
        ):
            window = self.assembly.extract_model().window
            calls, tokens = _effort_of(said, window)
            one = (last, place, calls, tokens)
            (heapq.heapreplace if full else heapq.heappush)(newest, one)

    def _effort(self, calls: int, tokens: int) -> str:
        parts = self.assembly.parts()
        model = self.assembly.extract_model()
        instructions = estimate_tokens(parts.prompts.render("extract", limit=str(MAX_FACTS)))
        sent, came = 2 * tokens + calls * (instructions + BESIDE_TOKENS), calls * ANSWER_TOKENS
        return types.effort(calls, sent + came, cost_usd(model.name, sent, came))

    def _write(self, batch: Sequence[tuple[int, str, Conversation]], import_id: str) -> None:
        if not batch:
            return
        with self.assembly.database.write(self.scope, ensure=True) as tx:
            for place, product, item in batch:
                fate = self._fate(tx, product, item)
                self._note(fate)
                if fate.new:
                    self._store(tx, product, item, fate, import_id, self._chosen.get(place))

    def _store(
        self,
        tx: Tx,
        product: str,
        item: Conversation,
        fate: _Fate,
        import_id: str,
        turn_to_read: int | None,
    ) -> None:
        """Store what is new of a conversation, and queue its reading where it is to be read."""
        times, session_id = self._times(item), fate.session_id
        moments = sorted(times[at] for at in fate.new)
        if session_id is None:
            session_id = sessions.start(tx, tx.own, "", tx.now, moments[0])
            self._added["session"] += 1
        for at in sorted({moments[0], moments[-1]}):
            sessions.reopen(tx, session_id, "", tx.now, at)
        added = [
            messages.add(tx, session_id, item.turns[at].role, item.turns[at].text, times[at])
            for at in fate.new
        ]
        self._added["message"] += len(added)
        begun = fate.session_id is None
        history_undo.note(tx, import_id, product, session_id, added, begun=begun)
        sessions.put_external(tx, tx.own, fate.name, session_id, fate.hashes)
        waits = jobs.due_at(tx, "extract", session_id) is not None
        read_to = 0 if turn_to_read is not None or waits else added[-1]
        title = mask(types.first_words(item.title, _TITLE))[:_TITLE] or None
        sessions.mark_extracted(tx, session_id, read_to, title, None)
        found = sessions.by_id(tx, session_id)
        assert found is not None
        # The queue is worked off by these times, the oldest conversation first.
        wait = timedelta(milliseconds=len(self._chosen) - (turn_to_read or 0))
        close_session(tx, found[0], self.now - wait)
        if turn_to_read is not None and jobs.due_at(tx, "extract", session_id) is not None:
            self.to_read[session_id] = turn_to_read

    def _propose(
        self, facts: Mapping[tuple[str, str], SavedFact], import_id: str, left_out: Counter[str]
    ) -> None:
        """Ask the person about what the products had saved. Each product's facts are messages of
        one conversation, which is neither read nor searched: so they keep their dates, are known
        again, and go with the import."""
        for product in dict.fromkeys(product for product, _ in facts):
            its = [fact for (of, _), fact in facts.items() if of == product]
            with self.assembly.database.write(self.scope, ensure=True) as tx:
                self._propose_some(tx, product, its, import_id, left_out)

    def _propose_some(
        self, tx: Tx, product: str, its: list[SavedFact], import_id: str, left_out: Counter[str]
    ) -> None:
        name = f"{product}:saved facts"
        kept = [fact for fact in its if not (why := _refusal(tx, fact)) or left_out.update([why])]
        hashes = sessions.turn_hashes(tx, [("assistant", fact.text) for fact in kept])
        session_id, before = sessions.external(tx, tx.own, name)
        new = [fact for fact, one in zip(kept, hashes, strict=True) if one not in before]
        if not new or (session_id is None and before):
            return
        begun, added = session_id is None, []
        if session_id is None:
            session_id = sessions.start(tx, tx.own, "", tx.now, tx.now)
            sessions.set_description(tx, session_id, f"What {product} had saved", None)
        for fact in new:
            at = tx.now
            if fact.day is not None:
                began = datetime.combine(fact.day, datetime.min.time(), self._zone)
                at = began if self._can_be(began) else tx.now
            turn = messages.add(tx, session_id, "assistant", fact.text, at, memory=False)
            added.append(turn)
            saved = f", saved {fact.day.isoformat()}" if fact.day else ""
            item = types.Proposal(
                f"imported from {product}{saved}",
                message_id=turn,
                memory_type="other",
                key="note",
                value=fact.text,
            )
            self._added["inbox_item"] += proposals.add(tx, tx.own, item) is None
        history_undo.note(tx, import_id, product, session_id, added, begun=begun)
        every = [*before, *(one for one in hashes if one not in before)]
        sessions.put_external(tx, tx.own, name, session_id, every)
        sessions.end(tx, session_id)

    @property
    def _zone(self) -> Any:
        return self.assembly.settings.zone


@dataclass(frozen=True, slots=True)
class _Fate:
    """What becomes of one conversation."""

    name: str
    session_id: int | None
    hashes: tuple[str, ...]
    """All turns that are known from then on."""
    new: tuple[int, ...]
    """The places of the messages that are new."""
    kind: str = "new"


_OPEN = "conversations that are open in a chat"


def _effort_of(turns: Sequence[Turn], window: int) -> tuple[int, int]:
    """How many windows it takes to read these turns, and their tokens. Of a very long message only
    some windows are read."""
    room, windows, every = model_calls.window_room(window), 0, 0
    used = room
    for turn in turns:
        size = estimate_tokens(turn.text) + 20
        if size > room:
            pieces = min(model_calls.count(turn.text, window), model_calls.MOST_WINDOWS)
            windows, used, size = windows + pieces, room, min(size, pieces * room)
        elif used + size > room:
            windows, used = windows + 1, size
        else:
            used += size
        every += size
    return windows, every


def _refusal(tx: Tx, fact: SavedFact) -> str:
    """Why the person is not asked about a fact, or nothing."""
    if len(fact.text) > VALUE_LIMIT:
        return f"saved facts of more than {VALUE_LIMIT} characters"
    if manual.is_secret("note", fact.text, keep=True):
        return "saved facts that look like a secret"
    if tombstones.match(tx, tx.ids, "note", fact.text, (), tx.now) is not None:
        return "saved facts that were forgotten here"
    return ""


def _nothing(plan: types.ImportedHistory) -> str:
    why = "; ".join(f"{count:,} {what}" for what, count in plan.left_out.items())
    return f"nothing in it can be imported{f': {why}' if why else ''}"
