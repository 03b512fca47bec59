"""The state of one reading of a conversation, from its unread turns to the facts to be stored.

It finds the stored facts that the model is shown with each window, collects the verdicts of all
windows, and applies the checks that need the store: whether the words were read before, were
forgotten, or were pasted from a note. Nothing is written here; ``learner`` does that.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from memchat.db import Tx, apps
from memchat.facts import changes, keys, memories
from memchat.facts.in_force import as_of
from memchat.facts.memories import Fact, Slice
from memchat.forget import tombstones
from memchat.language import numbers, secrets, text
from memchat.language.secrets import reveals
from memchat.language.text import UNSPACED, fold, trim
from memchat.learn import model_calls
from memchat.learn.candidate import Candidate, KnownFact, Proof, Quote, Turn, Verdict
from memchat.learn.model_calls import (
    REFUSAL_REASONS,
    LookRequest,
    SecondLook,
    ShownTurn,
    ToldSecret,
    Window,
    apply_answer,
    fitting,
    place_of,
    to_request,
    told_secrets,
    with_relation,
    without_secrets,
)
from memchat.learn.outcomes import REPEATED, known_fact, resolve
from memchat.notes import rows
from memchat.search import embeddings, keywords, receipts
from memchat.search.embed import EmbeddingSpace, shortened
from memchat.search.ranking import hybrid_score
from memchat.types import Change, Memory, Message, Proposal, Scope, Session, Usage, Wanted

if TYPE_CHECKING:
    from memchat.providers import Vectors

FALLBACK_LIMIT = 60


def grounded_description(words: str | None, said: Sequence[str]) -> str | None:
    """A title or summary with secrets masked; None where it has a number or name nobody said."""
    if not words:
        return None
    secret_words = {
        said[number][s.start : s.end] for number, s in secrets.find_in_conversation(said)
    }
    if any(secrets.reveals(words, secret) for secret in secret_words):
        return None  # without the word beside it, it is not recognised as a secret
    transcript = " ".join(said)
    unsaid = numbers.numbers(words) - numbers.numbers(transcript)
    plain = text.fold(transcript).text
    unsaid |= {name for name in text.names(words) if text.fold(name).text not in plain}
    return None if unsaid else secrets.mask(words)


def fallback_title(turns: Sequence[Message]) -> str | None:
    """The first words a person said, where the model gave no title."""
    first = next((n for n, turn in enumerate(turns) if turn.role == "user"), None)
    if first is None:
        return None
    question = turns[first - 1].content if first else ""
    words = secrets.mask(" ".join(turns[first].content.split()), question)
    return (
        words if len(words) <= FALLBACK_LIMIT else words[: FALLBACK_LIMIT - 1].rstrip() + "…"
    ) or None


NEAREST_FACTS = 5
_VECTOR_WEIGHT = 0.7
_SEARCHED = 20
"""How many hits are looked at. Replaced values are found too; each stands for the one in use."""
PROFILE_MOST = 15
NEWEST_MOST = 40
MESSAGES_SEARCHED = 60
"""How many user messages of a window known facts are searched with: its first and last ones."""


def shown_memory_lines(tx: Tx, turns: Iterable[Message]) -> list[str]:
    """The lines of memory that were shown for the replies among these turns: search results, and
    lists of facts that were sent with every message."""
    lines: list[str] = []
    list_ids: set[int] = set()
    for turn in turns:
        if turn.role != "assistant":
            continue
        lines += [hit.text for hit in receipts.of_reply(tx, turn.id)]
        sent = receipts.prompt_of_reply(tx, turn.id)
        if sent is not None and sent.list_id is not None:
            list_ids.add(sent.list_id)
    for list_id in sorted(list_ids):
        lines += [words for _, words in receipts.list_of(tx, list_id).lines]
    return lines


@dataclass(slots=True)
class SessionReading:
    """A session as far as it has been read."""

    session: Session
    app_id: int
    turns: list[Message]
    first_unread: int
    known: dict[str, KnownFact] = field(default_factory=dict)
    """Every fact that was shown, by its short id, which is the same in all windows."""
    injected: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    usage: list[Usage] = field(default_factory=list)
    vectors: dict[str, Vectors] = field(default_factory=dict)
    """By query hash, for the user messages of the present window."""
    title: str | None = None
    summary: str = ""
    linked_by_key: set[str] = field(default_factory=set)
    """Short ids of facts that were not shown, and were found by the key of a proposal."""
    told_secrets: list[ToldSecret] = field(default_factory=list)
    """The secrets that a second look named."""
    withheld: set[str] = field(default_factory=set)
    """Of ``title`` and ``summary`` those that a second look called secret."""
    look_failed: bool = False
    """Whether the provider failed at the second look."""
    to_read_whole: frozenset[int] = frozenset()
    """Ids of the messages of which a person asked to have all read."""
    shortened: set[int] = field(default_factory=set)
    """Ids of the long messages of which only the beginning and the end are read."""

    @property
    def scope(self) -> Scope:
        return Scope(self.session.user, self.session.app)

    @property
    def new_turns(self) -> Sequence[Message]:
        """The turns that no extraction has read before."""
        return self.turns[self.first_unread :]

    def read_to(self, to_read_whole: frozenset[int]) -> int:
        """The id up to which the session is read, where all of the messages ``to_read_whole`` is
        asked for now: those that were asked for meanwhile are to be read again."""
        again = to_read_whole - self.to_read_whole
        return min([self.turns[-1].id, *(message_id - 1 for message_id in again)])

    @property
    def by_id(self) -> dict[int, Message]:
        """The turns by the id of their row."""
        return {turn.id: turn for turn in self.turns}

    def gate_turns(self) -> list[Turn]:
        """The turns as the gate takes them."""
        return [
            Turn(model_calls.turn_id(i, m), m.role, m.content, m.created_at, m.id)
            for i, m in enumerate(self.turns)
        ]

    def link_by_key(self, tx: Tx, item: Candidate) -> Candidate:
        """A proposal linked to the stored fact of its key that was not shown: an end to the one
        value, a new value of a key that holds one to the present value."""
        points = item.to in self.known
        alone = item.relation in ("new", "updates") and not points and not item.many
        if not alone and (item.relation != "ends" or points):
            return item
        ids = apps.find(tx, self.scope).ids
        rows = memories.with_key(tx, ids, keys.canonical(item.key))
        shown = {fact.memory_id for fact in self.known.values()}
        if len(rows) != 1 or (alone and (rows[0].many or rows[0].id in shown)):
            return item
        short = {fact.memory_id: fact.id for fact in self.known.values()}
        fact = known_fact(short.get(rows[0].id, f"k{len(self.known) + 1}"), rows[0])
        self.known[fact.id] = fact
        self.linked_by_key.add(fact.id)
        return item.model_copy(update={"to": fact.id, "relation": "updates" if alone else "ends"})

    def without_link(self, verdict: Verdict) -> Verdict:
        """A verdict that was linked by its key alone, as a fact of its own."""
        item = verdict.candidate
        if item.relation != "updates" or item.to not in self.linked_by_key:
            return verdict
        alone = item.model_copy(update={"to": None, "relation": "new"})
        return replace(verdict, candidate=alone, outcome="accept", reasons=())

    def add_waiting(self, item: Proposal, target: Memory | None) -> bool:
        """Take up a proposal that waits for its look; False where its words are gone."""
        place = next((n for n, turn in enumerate(self.turns) if turn.id == item.message_id), None)
        if place is None or item.start is None or not item.quote or item.masked:
            return False
        turn, end = self.turns[place], item.start + len(item.quote)
        fact = known_fact(f"k{target.id}", target) if target is not None else None
        self.known |= {fact.id: fact} if fact is not None else {}
        short_id = model_calls.turn_id(place, turn)
        candidate = Candidate(
            quotes=(Quote(msg=short_id, text=item.quote),),
            type=item.memory_type or "other",
            key=item.key or "",
            value=item.value or "",
            many=item.many,
            to=fact.id if fact is not None else None,
            relation=item.relation,
            flags=("sensitive",) if item.sensitive else (),
            cues=item.cues,
        )
        proof = Proof(turn.id, short_id, "user", item.start, end, turn.content[item.start : end])
        self.verdicts.append(
            Verdict("accept", (), (proof,), candidate, item.expires_at, item.starts_at)
        )
        return True

    def current_places(self) -> list[int]:
        """The places of the verdicts that no later window changed or ended."""
        late = [v.candidate for v in self.verdicts if v.outcome == "accept"]
        gone = {item.to for item in late if item.relation in ("updates", "ends")}
        return [n for n in range(len(self.verdicts)) if f"p{n + 1}" not in gone]

    def resolve(self, zone: ZoneInfo) -> tuple[list[Fact], list[Change]]:
        """The facts to store, and the changes that the other verdicts are reported as."""
        return resolve(self.verdicts, self.by_id, self.known, zone)

    def described(self) -> dict[str, str]:
        """The title and the summary that are to be stored, as far as there are any."""
        title = None if self.session.title else self.title or fallback_title(self.new_turns)
        words = {"title": title, "summary": self.summary}
        return {
            name: said
            for name, said in words.items()
            if said and name not in self.withheld and not self.gives_secret_away(said)
        }

    def gives_secret_away(self, words: str) -> bool:
        """Whether words reveal a secret that a second look named."""
        return any(reveals(words, secret.words) for secret in self.told_secrets)

    def look_again(
        self,
        places: Sequence[int],
        described: Mapping[str, str],
        look: SecondLook,
        zone: ZoneInfo,
        judge: Callable[[Candidate], Verdict] | None,
    ) -> None:
        """Replace these verdicts by those after a second look, and withhold a title or summary that
        it calls secret. ``judge`` judges a candidate whose relation it corrected, if there is all
        of what the model proposed."""
        turns = {turn.id: turn for turn in self.gate_turns()}
        shown = [
            ShownTurn(turn.id, turn.role, turn.text, model_calls.said(turn.said_at, zone))
            for turn in turns.values()
        ]
        requests = [to_request(self.verdicts[n], turns, self.known) for n in places]
        requests += [LookRequest((), name, words, "") for name, words in described.items()]
        try:
            answers = look.ask(requests, shown)
        finally:
            self.usage += look.usage
        said = {turn.id: turn.content for turn in self.turns}
        for n, answer in zip(places, answers, strict=False):
            verdict = self.verdicts[n]
            if answer.answer == "secret":
                value, spans = verdict.candidate.value, [place_of(p) for p in verdict.spans]
                self.told_secrets += told_secrets(value, spans, said)
            after = with_relation(verdict, answer.relation, self.known, judge)
            # What a new value may take its words from: the messages, and the known fact.
            quoted = [said[proof.message_id] for proof in after.spans]
            target = self.known.get(after.candidate.to or "")
            known = target.value if target is not None else ""
            after = apply_answer(after, answer, quoted, known, look.model.name)
            if answer.reason == REFUSAL_REASONS["wrong_target"]:
                after = self.without_link(after)
            self.verdicts[n] = after
        for name, answer in zip(described, answers[len(places) :], strict=True):
            self.withheld |= {name} if answer.answer == "secret" else set()
        self.verdicts = [without_secrets(v, self.told_secrets, said) for v in self.verdicts]

    def stored_facts(self) -> set[tuple[int, str, str]]:
        """(id, key, value) of the known facts that were stored when they were shown."""
        known = self.known.values()  # what the session proposed itself has a negative id
        return {(f.memory_id, f.key, f.value) for f in known if f.memory_id > 0}

    def refuse_if_read_before(self, verdict: Verdict) -> Verdict:
        """Refuse proof from turns that an earlier extraction has read; they are context now."""
        read_to = self.session.extracted_to
        new = any(p.role == "user" and p.message_id > read_to for p in verdict.spans)
        if new or not verdict.spans:
            return verdict
        reason = "its words were read by an earlier extraction"
        return replace(verdict, outcome="refuse", reasons=(*verdict.reasons, reason))

    def refuse_if_taught(self, tx: Tx, app_ids: Sequence[int], verdict: Verdict) -> Verdict:
        """Refuse what these very words taught before, also where it is reworded or over by now.
        Of what holds as it was taught they may say more, such as until when."""
        item, quoted = verdict.candidate, {p.message_id for p in verdict.spans if p.role == "user"}
        if item.relation == "ends" or not quoted:
            return verdict
        said = keys.canonical(item.key), text.normal_value(item.value)
        proved = memories.by_ids(tx, app_ids, changes.proved_memories(tx, sorted(quoted)))
        for memory in proved.values():
            if not quoted <= changes.messages_of(tx, memory.id):
                continue
            as_taught = said == (memory.key, text.normal_value(memory.value))
            if as_taught and memory.active and verdict.outcome == "accept":
                return verdict
            before = changes.former_values(tx, memory.id)
            if as_taught or said in [(key, text.normal_value(value)) for key, value in before]:
                return replace(verdict, outcome="refuse", reasons=(REPEATED,))
        return verdict

    def refuse_if_forgotten(self, tx: Tx, app_ids: Sequence[int], verdict: Verdict) -> Verdict:
        """Refuse what would only wait for a person who had it forgotten after it was said."""
        if verdict.outcome != "review":
            return verdict
        item = verdict.candidate
        proofs, turns = [(p.message_id, p.quote) for p in verdict.spans], self.by_id
        said_at = max((turns[i].created_at for i, _ in proofs), default=self.turns[-1].created_at)
        if tombstones.match(tx, app_ids, item.key, item.value, proofs, said_at) != "refuse":
            return verdict
        reason = "it was forgotten on request"
        return replace(verdict, outcome="refuse", reasons=(*verdict.reasons, reason))

    def show_facts(
        self, tx: Tx, space: EmbeddingSpace | None, window: Window
    ) -> list[tuple[KnownFact, str]]:
        """The facts a window may speak of, each with the day it was learnt.

        What earlier windows proposed, then the stored ones: nearest to each user message, profile,
        and the newest of each other key, as far as there is room.
        """
        tx, ids = tx, tx.ids
        near = self._near(tx, space, ids, window)
        # What is near to a replaced value may speak of the one that is there now.
        standing = as_of(tx, ids, tx.today)
        now = changes.current(tx, ids, list(near))
        places = {i: standing.current_id(memory.id) for i, memory in now.items()}
        stand = memories.by_ids(tx, ids, sorted(set(places.values())))
        now = {i: standing.as_of_today(stand[place]) for i, place in places.items()}
        for found, memory in now.items():
            near[memory.id] = max(near.get(memory.id, 0.0), near[found])
        rows = {memory.id: memory for memory in now.values()}
        ordered = sorted(rows.values(), key=lambda m: (-near[m.id], m.id))
        wanted = Wanted(memory_types=("profile",))
        profile = memories.listed(tx, ids, wanted, standing, part=Slice(PROFILE_MOST))
        ordered += [m for m in profile if m.id not in near]
        used = {m.key for m in ordered}
        newest = memories.listed(tx, ids, Wanted(), standing, part=Slice(NEWEST_MOST))
        for memory in newest:
            if memory.key not in used:
                ordered.append(memory)
                used.add(memory.key)
        short = {fact.memory_id: fact.id for fact in self.known.values()}
        for memory in ordered:
            short.setdefault(memory.id, f"k{len(short) + 1}")
        stored = [
            (known_fact(short[m.id], m), m.said_at.astimezone(tx.zone).date().isoformat())
            for m in ordered
            if m.active
        ]
        shown = fitting([*self._proposed(), *stored])
        self.known |= {fact.id: fact for fact, _ in shown}
        return shown

    def embed_questions(self, space: EmbeddingSpace | None, window: Window) -> None:
        """Have the vectors of user messages, before ``show_facts`` and outside of transactions.

        The chat waits only so long for them: those that it did without are made here, so that what
        is shown does not depend on how busy the machine was.
        """
        self.vectors = {}
        if space is not None:
            self.vectors, spent = space.questions(self._question_texts(window))
            self.usage += [replace(one, purpose="embed") for one in spent]

    def _near(
        self, tx: Tx, space: EmbeddingSpace | None, ids: Sequence[int], window: Window
    ) -> dict[int, float]:
        """Memory id → how near it is to any of the user's messages."""
        near: dict[int, float] = {}
        for words in self._question_texts(window):
            vector = self.vectors.get(embeddings.query_hash(words))
            found = self._found(tx, space, ids, words, vector)
            in_use = changes.current(tx, ids, [i for i, _ in found])
            nearest: dict[int, float] = {}
            for found_id, score in found:
                if found_id in in_use and len(nearest) < NEAREST_FACTS:
                    nearest.setdefault(in_use[found_id].id, score)
            for memory_id, score in nearest.items():
                near[memory_id] = max(near.get(memory_id, 0.0), score)
        return near

    def _found(
        self,
        tx: Tx,
        space: EmbeddingSpace | None,
        ids: Sequence[int],
        words: str,
        vector: Vectors | None,
    ) -> list[tuple[int, float]]:
        """Memory ids with their scores, best first. By meaning and by words: a long message that
        says one short thing among others is near to none, and still names what it changes."""
        terms = keywords.query_terms(words)
        bm25 = dict(keywords.matches(tx, "fact", ids, terms).best(_SEARCHED))
        best = max(bm25.values(), default=0.0)
        cosine: dict[int, float] = {}
        if space is not None and vector is not None:
            cosine = dict(space.index.search(tx, ids, vector, _SEARCHED))
            unscored = [i for i in bm25 if i not in cosine]
            cosine |= space.index.scores(tx, ids, vector, unscored)
        scores = {
            i: hybrid_score(cosine.get(i, 0.0), bm25.get(i, 0.0), best, _VECTOR_WEIGHT)
            for i in bm25.keys() | cosine.keys()
        }
        return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))

    def _question_texts(self, window: Window) -> list[str]:
        by_id = {model_calls.turn_id(i, m): m for i, m in enumerate(self.turns)}
        asked = [line for line in window.transcript if line.role == "user"]
        if len(asked) > MESSAGES_SEARCHED:
            asked = asked[: MESSAGES_SEARCHED // 2] + asked[-MESSAGES_SEARCHED // 2 :]
        return [shortened(by_id[line.id].content) for line in asked]

    def _proposed(self) -> list[tuple[KnownFact, str]]:
        """What earlier windows proposed: not in the store yet, but known to the next window."""
        accepted = [
            (n, v.candidate) for n, v in enumerate(self.verdicts, 1) if v.outcome == "accept"
        ]
        facts = (KnownFact(f"p{n}", -n, c.type, c.key, c.value, c.many) for n, c in accepted)
        return [(fact, "in this conversation") for fact in facts]


IN_A_NOTE = "the same words stand in one of your notes"
_LONG = 30
"""Characters in a row that are hardly the same by chance."""
_FAR = 2 * _LONG
_LONG_UNSPACED = 12
"""The same in scripts without spaces between words."""


def ask_first(tx: Tx, app_id: int, verdict: Verdict, turns: Mapping[int, Message]) -> Verdict:
    """A verdict that waits for the person where its words stand in a note of the app: they may be
    pasted from there and not the person's own, so they prove nothing by themselves."""
    if verdict.outcome != "accept" or not rows.any_in_app(tx, app_id):
        return verdict
    said = [proof for proof in verdict.spans if proof.role == "user"]
    if not any(_is_pasted(tx, app_id, turns[proof.message_id].content, proof) for proof in said):
        return verdict
    return replace(verdict, outcome="review", reasons=(*verdict.reasons, IN_A_NOTE))


def _is_pasted(tx: Tx, app_id: int, message: str, proof: Proof) -> bool:
    """Whether the words, with what stands around them, are the same in a note."""
    said, quote = fold(message), trim(fold(proof.quote).text)
    here = said.text.find(quote, bisect_left(said.offsets, proof.start))
    words = keywords.query_terms(proof.quote)
    for row in keywords.note_texts(tx, keywords.rows_holding_all(tx, "chunk", [app_id], words)):
        written = fold(row[2]).text
        places = (found.start() for found in re.finditer(re.escape(quote), written))
        for there in places if here >= 0 else ():
            run = _same_around(said.text, here, written, there)
            if len(run) >= (_LONG_UNSPACED if UNSPACED.search(run) else _LONG):
                return True
    return False


def _same_around(one: str, here: int, other: str, there: int) -> str:
    """The run of equal characters of two texts around two places, as far as it counts."""
    before = (one[max(0, here - _FAR) : here][::-1], other[max(0, there - _FAR) : there][::-1])
    after = (one[here : here + _FAR], other[there : there + _FAR])
    start, end = here - text.common_start(*before), here + text.common_start(*after)
    return one[start:end].strip()
