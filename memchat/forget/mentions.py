"""Other places that mention a memory, which forgetting it leaves: finding and blanking them.

They are found before the memory is forgotten, while its words are known: messages by the keyword
index, everything else by reading it. The same word may mean something else there, so the user
chooses. In messages, titles, summaries and notes the words are blanked; another memory with them is
forgotten; inbox items and refusals are removed.

A value is looked for by its names and rare words, in any case and inflection: for "Quokkaland Ltd"
by the first word. Where all words of a value are common, only all of them together count.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import sqlalchemy as sa

from memchat.db import Tx, apps, jobs, messages, sessions
from memchat.db import schema as t
from memchat.db.records import among
from memchat.errors import InputError, NotFound
from memchat.facts import changes, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.memories import FORGOTTEN
from memchat.forget import purge, tombstones, wording
from memchat.language.lexicon import FUNCTION_WORDS
from memchat.language.text import DATE_WORDS, NUMBER_WORDS, folded
from memchat.notes import rows
from memchat.notes.rows import NewChunk
from memchat.search import keywords, receipts
from memchat.search import turns as search_turns
from memchat.search.keywords import passage_id
from memchat.types import Elsewhere, Evidence, Memory, NewNote, Place, PlaceKind

_WORD = re.compile(
    "[^\\W_](?:[^\\W_]|[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u0900-\u0903\u093a-\u094f])*"
)
_FORMS_OF_FIRMS = """
    ab ag bv co company corp corporation gmbh group inc kg limited llc llp ltd nv oy plc pte pty sa
    sarl sas spa srl
"""
_OF_FIRMS = frozenset(_FORMS_OF_FIRMS.split())

_FEW, _FEW_SHARE = 10, 0.02
_NAMED, _NAMED_SHARE = 20, 0.5
"""In so many of the messages or memories, and in such a share of them, a word is not common yet: of
the plain ones, and of names."""
_PREFIX = 3


@dataclass(frozen=True, slots=True)
class IdentifyingWords:
    """Groups of words: a text mentions a value where it has all words of any group."""

    groups: tuple[tuple[str, ...], ...]

    def spans(self, texts: Mapping[int, str]) -> dict[int, set[tuple[int, int]]]:
        """Where the words stand, for each of these texts that mentions a value."""
        words = sorted({word for group in self.groups for word in group})
        stems = keywords.stems(words)
        said = {key: self._similar_words(content, words) for key, content in texts.items()}
        stems |= keywords.stems({word for runs in said.values() for word, _ in runs} - stems.keys())
        found = {}
        for key, runs in said.items():
            at = {word: self._places(word, texts[key], runs, stems) for word in words}
            held = [group for group in self.groups if all(at[word] for word in group)]
            if held:
                found[key] = {span for group in held for word in group for span in at[word]}
        return found

    def prefixes(self) -> list[str]:
        """For each group the prefix that all forms of its first word share."""
        firsts = [group[0] for group in self.groups]
        stems = keywords.stems(firsts)
        # The last letter of a stem may change.
        return [w[: max(len(stems.get(w, w)) - 1, 1)] if w.isascii() else w for w in firsts]

    @staticmethod
    def _similar_words(content: str, words: Sequence[str]) -> list[tuple[str, tuple[int, int]]]:
        """The folded words of a text that begin like any of these, with their places."""
        starts = {word[:_PREFIX] for word in words}
        whole = folded(content)
        if not any(start in whole for start in starts):
            return []
        if content.isascii():  # folded letter by letter
            runs = ((m[0], m.span()) for m in _WORD.finditer(whole))
        else:
            runs = ((folded(m[0]), m.span()) for m in _WORD.finditer(content))
        return [(word, span) for word, span in runs if word[:_PREFIX] in starts]

    @staticmethod
    def _places(
        word: str,
        content: str,
        runs: Sequence[tuple[str, tuple[int, int]]],
        stems: Mapping[str, str],
    ) -> set[tuple[int, int]]:
        if keywords.UNSPACED.search(word):
            return wording.spans_of([word], content)
        return {span for said, span in runs if stems.get(said, said) == stems.get(word, word)}


def identifying_words(tx: Tx, app_ids: Sequence[int], values: Iterable[str]) -> IdentifyingWords:
    """The words that identify any of these values among the messages and memories of these
    scopes."""
    here = among(t.sessions.c.app_id, app_ids)
    turns = sa.select(sa.func.count()).join_from(t.messages, t.sessions).where(here)
    facts = sa.select(sa.func.count()).where(among(t.memories.c.app_id, app_ids))
    said, stored = (tx.execute(query).scalar_one() for query in (turns, facts))

    def rare(word: str, few: int, share: float) -> bool:
        most = max(few, int(share * stored))
        if keywords.is_held_by_more(tx, "fact", app_ids, word, most):
            return False
        held = keywords.rows_holding_all(tx, "turn", app_ids, [word])
        return len(held) <= max(few, share * said)

    groups: dict[tuple[str, ...], None] = {}
    for value in values:
        words = _words(value)
        names = {word for name in tombstones.names(value) for word in _WORD.findall(folded(name))}
        distinctive = [word for word in words if word in names and rare(word, _NAMED, _NAMED_SHARE)]
        distinctive = distinctive or [word for word in words if rare(word, _FEW, _FEW_SHARE)]
        groups |= dict.fromkeys((word,) for word in distinctive)
        if words and not distinctive:
            groups[tuple(sorted(words))] = None
    return IdentifyingWords(tuple(groups))


def _words(value: str) -> list[str]:
    """The folded words of a value that may identify it; runs of scripts without spaces are one
    word."""
    runs = keywords.UNSPACED.findall(folded(value))
    spaced = keywords.UNSPACED.sub(" ", folded(value))
    said = [m[0] for m in _WORD.finditer(spaced)]
    kept = [
        word
        for word in said
        if keywords.query_terms(word)
        and word not in FUNCTION_WORDS
        and len(word) >= (3 if word.isdigit() else 2)
    ]
    common = _OF_FIRMS | DATE_WORDS.keys() | NUMBER_WORDS.keys()
    rare = [word for word in kept if word not in common]
    return list(dict.fromkeys([*(rare or kept), *(run for run in runs if len(run) > 1)]))


def blank_note_words(
    tx: Tx, app_ids: Sequence[int], note_id: int, identifying: IdentifyingWords
) -> None:
    """Blank the words in the title and the text of a note of these scope rows, and drop tags with
    one, in the caller's transaction. Its chunks keep their places, and those that held a word are
    made anew."""
    note, app_id = rows.get(tx, app_ids, note_id), rows.app_id_of(tx, note_id)
    if note is None or app_id is None:
        return
    title = None if note.title is None else _blanked(note.title, identifying)
    text = _blanked(note.text, identifying)
    tags = tuple(tag for tag in note.tags if _blanked(tag, identifying) == tag)
    if (title, text, tags) == (note.title, note.text, note.tags):
        return
    parts = [_without(part, identifying) for part in rows.chunk_parts(tx, note_id)]
    new = NewNote(text, title, note.type, note.external_id, profile=note.profile, tags=tags)
    # A filler may have more tokens than the words in its place: the sizes are looked at anew.
    rows.put(tx, app_id, new, tx.now, sized_for=None)
    rows.replace_chunks(tx, note_id, parts)
    rows.remove_from_chats(tx, note_id)
    tx.forget_bytes(app_id)


def _without(part: NewChunk, identifying: IdentifyingWords) -> NewChunk:
    return part if part.masked is None else replace(part, masked=_blanked(part.masked, identifying))


def _blanked(content: str, identifying: IdentifyingWords) -> str:
    return wording.blank(content, identifying.spans({0: content}).get(0, ()))


_AROUND = 60
"""Characters on each side of a word that are shown with it."""


def find(tx: Tx, chosen: Sequence[Memory]) -> Elsewhere:
    """What still mentions these memories when they are forgotten. The result has the id of the
    first."""
    gone = purge.with_merged(tx, chosen)
    occurrences = purge.occurrences_of(tx, purge.traces_of(tx, gone.values()))
    app_ids = sorted({i for app_id in occurrences.scopes for i in apps.related_ids(tx, app_id)})
    values = sorted({value for facts in occurrences.scopes.values() for _, value in facts})
    identifying = identifying_words(tx, app_ids, values)
    if not identifying.groups:
        return Elsewhere(chosen[0].id, (), ())
    search = _Search(tx, app_ids, identifying, occurrences, frozenset(gone))
    found = sorted(search.every(), key=lambda place: (place.at, place.id), reverse=True)
    return Elsewhere(chosen[0].id, identifying.groups, tuple(found))


def unproved_by(tx: Tx, chosen: Sequence[Memory]) -> list[Memory]:
    """The memories in use that no words prove any more once these are forgotten."""
    gone = purge.with_merged(tx, chosen)
    occurrences = purge.occurrences_of(tx, purge.traces_of(tx, gone.values()))
    turns = {turn.id: turn for i in occurrences.quotes for turn in messages.of_session(tx, i)}
    left = {turn.id: purge.redacted_text(turn, occurrences) for turn in turns.values()}
    changed = [i for i, content in left.items() if content != turns[i].content]
    others = [i for i in changes.proved_memories(tx, changed) if i not in gone]

    def still_proves(proof: Evidence) -> bool:
        start, end = proof.start, proof.start + len(proof.quote)
        spared = occurrences.spared.get(proof.message_id, ())
        whole = left.get(proof.message_id, "")[start:end] == proof.quote
        return whole or any(start <= a and b <= end for a, b in spared)

    lost = [
        memory_id
        for memory_id, proofs in changes.evidence_of_memories(tx, others).items()
        if not any(proof.message_id not in left or still_proves(proof) for proof in proofs)
    ]
    found = memories.by_ids(tx, tx.ids, lost).values()
    return [memory for memory in found if memory.active]


@dataclass(frozen=True, slots=True)
class _Search:
    """Searches some scopes, leaving out what forgetting removes anyway."""

    tx: Tx
    app_ids: Sequence[int]
    identifying: IdentifyingWords
    occurrences: purge.Occurrences
    gone: frozenset[int]

    def every(self) -> Iterator[Place]:
        yield from self._messages()
        yield from self._descriptions()
        yield from self._memories()
        yield from self._notes()
        yield from self._proposals()

    def _messages(self) -> Iterator[Place]:
        ids = self._partly_indexed()
        for group in self.identifying.groups:
            ids |= keywords.rows_holding_all(self.tx, "turn", self.app_ids, group)
        turns = messages.by_ids(self.tx, sorted(ids))
        left = {turn.id: purge.redacted_text(turn, self.occurrences) for turn in turns.values()}
        for turn_id, spans in self.identifying.spans(left).items():
            turn = turns[turn_id]
            kind: PlaceKind = "message" if turn.role == "user" else "reply"
            shown = _excerpt(left[turn_id], spans)
            yield Place(kind, turn_id, turn.session_id, turn.created_at, shown)

    def _partly_indexed(self) -> set[int]:
        """The messages that are not indexed, or not completely, and may hold one of the words:
        those excluded from search, copies, and long replies."""
        said, words = t.messages.c, self.identifying.prefixes()
        read, its_id = t.passages.c.text.is_not(None), passage_id("turn", said.id)
        whole = sa.exists().where(t.passages.c.id == its_id, read)
        partly = sa.or_(~t.searched_messages, sa.and_(said.role != "user", whole))
        # Only ASCII is folded: a text with other characters may hold the word with an accent.
        size = sa.func.length(sa.cast(said.content, sa.LargeBinary))
        accented = sa.func.length(said.content) != size
        may_hold = sa.or_(*(said.content.ilike(f"%{word}%") for word in words), accented)
        query = sa.select(said.id).join(t.sessions).where(partly, may_hold)
        here = among(t.sessions.c.app_id, self.app_ids)
        return set(self.tx.execute(query.where(here)).scalars())

    def _descriptions(self) -> Iterator[Place]:
        c = t.sessions.c
        query = sa.select(c.id, c.title, c.summary, c.last_activity_at)
        query = query.where(sa.or_(c.title.is_not(None), c.summary.is_not(None)))
        there = self.tx.execute(query.where(among(c.app_id, self.app_ids)))
        rows = {row.id: row for row in there}
        kinds: tuple[tuple[PlaceKind, int], ...] = (("title", 1), ("summary", 2))
        for kind, column in kinds:
            said = {i: row[column] for i, row in rows.items() if row[column]}
            for session_id, spans in self.identifying.spans(said).items():
                values = self.occurrences.values.get(session_id, set())
                taught = session_id in self.occurrences.quotes
                if not (taught or wording.mentions_any(said[session_id], values)):
                    at, shown = rows[session_id].last_activity_at, _excerpt(said[session_id], spans)
                    yield Place(kind, session_id, session_id, at, shown)

    def _unindexed_memories(self) -> set[int]:
        """The memories that search does not find, or not by all of their words: inactive ones,
        without those being forgotten; edited ones, whose history holds their former words; and
        those with tags."""
        m, e, tags = t.memories.c, t.memory_events.c, t.memory_tags
        here = among(m.app_id, self.app_ids)
        found = m.inactive_reason.in_(("superseded", FORGOTTEN))
        unfound = sa.select(m.id).where(here, m.active == 0, ~found)
        edited = sa.select(e.memory_id).where(among(e.app_id, self.app_ids), e.kind == "edit")
        tagged = sa.select(tags.c.memory_id).join(t.memories).where(here)
        return set(self.tx.execute(unfound.union(edited, tagged)).scalars())

    def _memories(self) -> Iterator[Place]:
        ids = self._unindexed_memories()
        for group in self.identifying.groups:
            ids |= keywords.rows_holding_all(self.tx, "fact", self.app_ids, group)
        there = memories.by_ids(self.tx, self.app_ids, sorted(ids - self.gone))
        said = {}
        for traces in purge.traces_of(self.tx, there.values()):
            lines = sorted(f"{key.replace('_', ' ')}: {value}" for key, value in traces.facts)
            said[traces.memory.id] = "\n".join([*lines, *traces.memory.tags])
        for memory_id, spans in self.identifying.spans(said).items():
            shown = _excerpt(said[memory_id], spans)
            yield Place("memory", memory_id, None, there[memory_id].said_at, shown)

    def _notes(self) -> Iterator[Place]:
        ids: set[int] = set()
        for group in self.identifying.groups:
            ids |= keywords.rows_holding_all(self.tx, "chunk", self.app_ids, group)
        there = {note.id: note for note in rows.with_chunks(self.tx, ids)}
        named = {i: note.title or "Untitled" for i, note in there.items()}
        titles = self.identifying.spans(named)
        said = {i: "\n".join([note.text, *note.tags]) for i, note in there.items()}
        texts = self.identifying.spans(said)
        for note_id in sorted(titles.keys() | texts.keys()):
            note, title = there[note_id], named[note_id]
            shown = f"{wording.blank(title, sorted(titles.get(note_id, ())))}"
            if note_id in texts:
                shown += f": {_excerpt(said[note_id], texts[note_id])}"
            file = note.type == rows.TYPE and not note.missing
            yield Place("note", note_id, None, note.created_at, shown, has_file=file)

    def _proposals(self) -> Iterator[Place]:
        found = {one.id: one for one in proposals.in_scopes(self.tx, self.app_ids)}
        every = {i: proposals.words_of(one) for i, one in found.items()}
        facts = {fact for each in self.occurrences.scopes.values() for fact in each}
        turns = messages.by_ids(self.tx, [m for one in found.values() if (m := one.message_id)])
        for i, spans in self.identifying.spans(every).items():
            one, said = found[i], every[i]
            turn = turns.get(one.message_id or 0)
            rewritten = (
                turn is not None and purge.redacted_text(turn, self.occurrences) != turn.content
            )
            if not (rewritten or wording.spans_of(purge.searched_wordings(facts), said)):
                kind: PlaceKind = "refusal" if one.status == "refused" else "inbox"
                session_id = turn.session_id if turn is not None else None
                yield Place(kind, i, session_id, one.created_at, _excerpt(said, spans))


def to_blank(found: Elsewhere, before: str | None = None) -> str:
    """The mentions that a person wants blanked, as a job stores them: their words, and kind and id
    of each place, with those that the job has ``before``."""
    places = {(place.kind, place.id) for place in found.places}
    if holds_mentions(before):
        places |= {(kind, number) for kind, number in json.loads(before or "")["places"]}
    return json.dumps({"words": found.words, "places": sorted(places)})


def holds_mentions(how: str | None) -> bool:
    """Whether a purge is to blank mentions, too."""
    return how is not None and how.startswith("{")


def forget(
    tx: Tx,
    chosen: Sequence[Memory],
    found: Elsewhere | None = None,
    *,
    keep_transcript: bool = False,
    hold: float = 0.0,
) -> None:
    """Forget memories, now or in ``hold`` seconds, and blank what was found to speak of one of
    them. Raises InputError where what is written is to be both kept and blanked."""
    if keep_transcript and found is not None:
        raise InputError("what is written cannot both be kept and blanked")
    # What all of them are spoken of in is blanked with one of them.
    about = found.memory_id if found is not None and found.places else 0
    wanted = to_blank(found) if found is not None else ""
    if hold:
        how = purge.KEEP_TRANSCRIPT if keep_transcript else None
        for memory in chosen:
            purge.hide(tx, memory, hold=hold, how=wanted if memory.id == about else how)
        return
    homes = memories.homes_of(tx, [one.id for one in chosen if one.id == about])
    purge.forget(tx, chosen, keep_transcript=keep_transcript)
    for app_id in homes.values():
        blank(tx, app_id, wanted)


def queue(tx: Tx, found: Elsewhere, hold: float) -> None:
    """Have these mentions blanked by the job that purges the memory, in ``hold`` seconds, so that
    undoing the deletion undoes both. Raises NotFound where it was never in the scope."""
    held_in = changes.app_ids_of(tx, [found.memory_id])
    home = [app_id for app_id in tx.ids if app_id in held_in]
    if not home:
        raise NotFound(f"memory {found.memory_id} was never here")
    how = to_blank(found, jobs.instructions(tx, "forget", found.memory_id))
    blank_at = tx.now + timedelta(seconds=hold)
    jobs.enqueue(tx, "forget", home[-1], found.memory_id, tx.now, run_at=blank_at, how=how)


def blank(tx: Tx, app_id: int, wanted: str) -> None:
    """Blank the mentions of ``to_blank`` that this scope row can see, in the caller's
    transaction."""
    held = json.loads(wanted)
    identifying = IdentifyingWords(tuple(map(tuple, held["words"])))
    chosen: defaultdict[PlaceKind, set[int]] = defaultdict(set)
    for kind, number in held["places"]:
        chosen[kind].add(number)
    app_ids = apps.related_ids(tx, app_id)
    facts = memories.by_ids(tx, app_ids, sorted(chosen["memory"])).values()
    # One that was deleted by itself has a purge of its own.
    chosen_facts = [memory for memory in facts if memory.inactive_reason != FORGOTTEN]
    purge.forget(tx, chosen_facts)
    homes: set[int] = set()
    there = {one.id for one in proposals.in_scopes(tx, app_ids)}
    proposals.remove(tx, there & (chosen["inbox"] | chosen["refusal"]))
    for related_id in app_ids:
        # Nobody was asked about the words of deleted notes, and undoing would bring them back.
        rows.purge_all(tx, related_id)
    for note_id in sorted(chosen["note"]):
        blank_note_words(tx, app_ids, note_id, identifying)
    turns = messages.by_ids(tx, sorted(chosen["message"] | chosen["reply"]))
    described = chosen["title"] | chosen["summary"]
    rewritten: list[int] = []
    for session_id in sorted({turn.session_id for turn in turns.values()} | described):
        found = sessions.by_id(tx, session_id)
        if found is None or found[1] not in app_ids:
            continue
        rewritten += _blank_turns(tx, session_id, turns.keys(), identifying)
        title, summary = sessions.description(tx, session_id)
        if title and session_id in chosen["title"]:
            title = _blanked(title, identifying)
        if summary and session_id in chosen["summary"]:
            summary = _blanked(summary, identifying)
        purge.set_description(tx, session_id, title, summary)
        search_turns.write(tx, session_id)
        homes.add(found[1])
    touched = changes.proved_memories(tx, rewritten)
    tx.forget_bytes(*homes, *purge.reindex(tx, touched, Cause("user")))


def _blank_turns(
    tx: Tx, session_id: int, ids: Collection[int], identifying: IdentifyingWords
) -> list[int]:
    turns = messages.of_session(tx, session_id, every=True)
    held = identifying.spans({turn.id: turn.content for turn in turns if turn.id in ids})
    texts = {t.id: wording.blank(t.content, held[t.id]) for t in turns if t.id in held}
    if texts:
        receipts.remove_prompts(tx, [turn.id for turn in turns if turn.role == "assistant"])
    return purge.rewrite_turns(tx, session_id, turns, texts)


def _excerpt(content: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text around the first of these places, each of them blanked."""
    every = sorted(spans)
    start, end = max(every[0][0] - _AROUND, 0), every[0][1] + _AROUND
    shown = " ".join(wording.blank(content, every)[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(content) else ''}"
