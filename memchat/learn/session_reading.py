"""The state of one reading of a conversation, from its unread turns to the facts to be stored.

It finds the stored facts that the model is shown with each window, collects the verdicts of all
windows, and applies the checks that need the store: whether the words were read before, were
forgotten, or were pasted from a note. Nothing is written here; ``learner`` does that.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from memchat.db import Tx
from memchat.facts import changes, keys, memories
from memchat.facts.proposals import FORGOTTEN
from memchat.forget import purge, tombstones
from memchat.language import secrets, text
from memchat.language.secrets import reveals
from memchat.language.text import UNSPACED, fold, trim
from memchat.learn import gate, model_calls
from memchat.learn.candidate import Candidate, KnownFact, Proof, Quote, Turn, Verdict
from memchat.learn.outcomes import READ_BEFORE, known_fact
from memchat.learn.values import is_negated
from memchat.notes import rows
from memchat.search import embeddings, keywords, receipts
from memchat.search.embed import EmbeddingSpace, Question, shortened
from memchat.search.facts import FactSearch, FoundFact
from memchat.search.ranking import ScoredSearch
from memchat.types import (
    Memory,
    Message,
    OwnTypes,
    Proposal,
    Scope,
    Session,
    Usage,
    Wanted,
    first_words,
)

if TYPE_CHECKING:
    from memchat.providers import Vectors

FALLBACK_LIMIT = 60


def grounded_description(words: str | None, said: Sequence[str], *, plain: bool) -> str | None:
    """A title or summary with secrets masked, those of letters alone only with ``plain``; None
    where it has a number or name nobody said."""
    if not words:
        return None
    secret_words = {
        said[number][s.start : s.end]
        for number, s in secrets.find_in_conversation(said)
        if plain or not s.plain
    }
    if any(secrets.reveals(words, secret) for secret in secret_words):
        return None  # without the word beside it, it is not recognised as a secret
    transcript = " ".join(said)
    unsaid = text.numbers(words) - text.numbers(transcript)
    folded = text.fold(transcript).text
    unsaid |= {name for name in text.names(words) if text.fold(name).text not in folded}
    return None if unsaid else secrets.mask(words, plain=plain)


def fallback_title(turns: Sequence[Message]) -> str | None:
    """The first words a person said, where the model gave no title."""
    first = next((n for n, turn in enumerate(turns) if turn.role == "user"), None)
    if first is None:
        return None
    question = turns[first - 1].content if first else ""
    words = secrets.mask(" ".join(turns[first].content.split()), question)
    return first_words(words, FALLBACK_LIMIT) or None


NEAREST_FACTS = 5
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
    zone: ZoneInfo
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
    found_secrets: list[model_calls.FoundSecret] = field(default_factory=list)
    """The secrets that a second look named."""
    withheld: set[str] = field(default_factory=set)
    """Of ``title`` and ``summary`` those that a second look called secret."""
    looked_at: set[str] = field(default_factory=set)
    """Of ``title`` and ``summary`` those of which it said that they hold none."""
    look_follows: bool = False
    """Whether a model makes a second look at what is proposed."""
    own_types: OwnTypes = field(default_factory=dict)
    through: str | None = None
    """The program, not trusted yet, that sent it as the person's words."""
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
        """The turns as models and the gate take them, with short ids: u1, a2, …"""
        return [
            Turn(f"{m.role[0]}{n}", m.role, m.content, m.created_at.astimezone(self.zone), m.id)
            for n, m in enumerate(self.turns, 1)
        ]

    def judged(self, item: Candidate, known: Sequence[KnownFact], instructions: str) -> Verdict:
        """The gate over the conversation, for a proposal of a model that was shown ``known``."""
        verdict = gate.judge(
            item,
            self.gate_turns(),
            known,
            prompt_text=instructions,
            injected=self.injected,
            look_follows=self.look_follows,
            own_types=self.own_types,
        )
        return self.refuse_if_read_before(verdict)

    def link_by_key(self, tx: Tx, item: Candidate) -> Candidate:
        """A proposal linked to the stored fact of its key that was not shown: an end to the one
        value, a new value of a key that holds one to the present value. An end is linked to a
        value that was shown, too, as models leave out its id, unless it names another one."""
        points = item.to in self.known
        alone = item.relation in ("new", "updates") and not points and not item.many
        if not alone and (item.relation != "ends" or points):
            return item
        rows = memories.with_key(tx, tx.ids, keys.canonical(item.key))
        short = {fact.memory_id: fact.id for fact in self.known.values()}
        if len(rows) != 1 or (alone and rows[0].many):
            return item
        if rows[0].id in short and (alone or _names_another(item.value, rows[0].value)):
            return item
        fact = known_fact(short.get(rows[0].id, f"k{len(self.known) + 1}"), rows[0])
        self.known[fact.id] = fact
        self.linked_by_key.add(fact.id)
        return item.model_copy(update={"to": fact.id, "relation": "updates" if alone else "ends"})

    def leave_to_the_person(self) -> None:
        """Have all wait that a program sent which the person does not trust yet: it may be the
        words of a document."""
        if self.through is None:
            return
        why = f"{self.through} sent it as your words, and you have not said to trust it"
        self.verdicts = [
            replace(one, outcome="review", reasons=(why,)) if one.outcome == "accept" else one
            for one in self.verdicts
        ]

    def without_link(self, verdict: Verdict) -> Verdict:
        """A verdict that was linked by its key alone, as a fact of its own."""
        item = verdict.candidate
        if item.relation != "updates" or item.to not in self.linked_by_key:
            return verdict
        alone = item.model_copy(update={"to": None, "relation": "new"})
        return replace(verdict, candidate=alone, outcome="accept", reasons=())

    def add_waiting(self, item: Proposal, target: Memory | None) -> bool:
        """Take up a proposal that waits for its look; False where its words are gone."""
        turn = next((one for one in self.gate_turns() if one.message_id == item.message_id), None)
        if turn is None or item.start is None or not item.quote or item.masked:
            return False
        fact = known_fact(f"k{target.id}", target) if target is not None else None
        self.known |= {fact.id: fact} if fact is not None else {}
        candidate = Candidate(
            quotes=(Quote(msg=turn.id, text=item.quote),),
            type=item.memory_type or "other",
            key=item.key or "",
            value=item.value or "",
            sentence=item.sentence or "",
            many=item.many,
            to=fact.id if fact is not None else None,
            relation=item.relation,
            flags=("sensitive",) if item.sensitive else (),
            cues=item.cues,
        )
        end = item.start + len(item.quote)
        words = turn.text[item.start : end]
        proof = Proof(turn.message_id, turn.id, "user", item.start, end, words)
        self.verdicts.append(
            Verdict("accept", (), (proof,), candidate, item.expires_at, item.starts_at)
        )
        return True

    def described(self, *, before_look: bool = False) -> dict[str, str]:
        """The title and the summary that are to be stored, or looked at, as far as there are any.
        What may be a secret of letters alone is masked unless it was looked at."""
        turns = [turn.content for turn in self.turns]
        found = {"title": None if self.session.title else self.title, "summary": self.summary}
        for name in found.keys() - (found.keys() if before_look else self.looked_at):
            found[name] = grounded_description(found[name], turns, plain=True)
        if not self.session.title:
            found["title"] = found["title"] or fallback_title(self.new_turns)
        return {
            name: said
            for name, said in found.items()
            if said and name not in self.withheld and not self.gives_secret_away(said)
        }

    def gives_secret_away(self, words: str) -> bool:
        """Whether words reveal a secret that a second look named."""
        return any(reveals(words, secret.words) for secret in self.found_secrets)

    def look_again(
        self,
        places: Sequence[int],
        described: Mapping[str, str],
        look: model_calls.SecondLook,
        instructions: str | None,
    ) -> None:
        """Replace these verdicts by those after a second look, and withhold a title or summary that
        it calls secret. A candidate whose relation it corrected is judged again, if there is all
        of what a model with these ``instructions`` proposed."""
        turns = {turn.id: turn for turn in self.gate_turns()}
        requests = [model_calls.to_request(self.verdicts[n], turns, self.known) for n in places]
        requests += [
            model_calls.LookRequest((), name, words, "") for name, words in described.items()
        ]
        answers = look.answers(requests, list(turns.values()))
        said = {turn.id: turn.content for turn in self.turns}
        judge = None
        if instructions is not None:
            facts = list(self.known.values())
            judge = partial(self.judged, known=facts, instructions=instructions)
        for n, answer in zip(places, answers, strict=False):
            verdict = self.verdicts[n]
            if answer.answer == "secret":
                spans = [model_calls.span_of(proof) for proof in verdict.spans]
                value = verdict.candidate.value
                self.found_secrets += model_calls.found_secrets(value, spans, said)
            after = model_calls.with_relation(verdict, answer.relation, self.known, judge)
            # What a new value may take its words from: the messages, and the known fact.
            quoted = [said[proof.message_id] for proof in after.spans]
            target = self.known.get(after.candidate.to or "")
            known = target.value if target is not None else ""
            after = model_calls.apply_answer(after, answer, quoted, known, look.model.name)
            if answer.reason == model_calls.REFUSAL_REASONS["wrong_target"]:
                after = self.without_link(after)
            self.verdicts[n] = after
        for name, answer in zip(described, answers[len(places) :], strict=True):
            self.withheld |= {name} if answer.answer == "secret" else set()
            self.looked_at |= {name} if answer.answer == "holds" else set()
        self.verdicts = [
            model_calls.without_secrets(v, self.found_secrets, said) for v in self.verdicts
        ]

    def refuse_if_read_before(self, verdict: Verdict) -> Verdict:
        """Refuse proof from turns that an earlier extraction has read; they are context now."""
        read_to = self.session.extracted_to
        new = any(p.role == "user" and p.message_id > read_to for p in verdict.spans)
        if new or not verdict.spans:
            return verdict
        return replace(verdict, outcome="refuse", reasons=(*verdict.reasons, READ_BEFORE))

    def refuse_if_taught(self, tx: Tx, verdict: Verdict) -> Verdict:
        """Refuse what these very words taught before, also where it is reworded or over by now.
        Of what holds as it was taught they may say more, such as until when."""
        item, quoted = verdict.candidate, {p.message_id for p in verdict.spans if p.role == "user"}
        if item.relation == "ends" or not quoted:
            return verdict
        said = keys.canonical(item.key), text.normal_value(item.value)
        proved = memories.by_ids(tx, tx.ids, changes.proved_memories(tx, sorted(quoted)))
        for traces in purge.traces_of(tx, proved.values()):
            memory = traces.memory
            if not quoted <= {proof.message_id for proof in traces.proofs}:
                continue
            as_taught = said == (memory.key, text.normal_value(memory.value))
            if as_taught and memory.active and verdict.outcome == "accept":
                return verdict
            if said in {(key, text.normal_value(value)) for key, value in traces.facts}:
                return replace(verdict, outcome="refuse", reasons=(gate.KNOWN_ALREADY,))
        return verdict

    def refuse_if_forgotten(self, tx: Tx, verdict: Verdict) -> Verdict:
        """Refuse what would only wait for a person who had it forgotten after it was said."""
        if verdict.outcome != "review":
            return verdict
        item = verdict.candidate
        proofs, turns = [(p.message_id, p.quote) for p in verdict.spans], self.by_id
        said_at = max((turns[i].created_at for i, _ in proofs), default=self.turns[-1].created_at)
        if tombstones.match(tx, tx.ids, item.key, item.value, proofs, said_at) != "refuse":
            return verdict
        return replace(verdict, outcome="refuse", reasons=(*verdict.reasons, FORGOTTEN))

    def show_facts(
        self, tx: Tx, space: EmbeddingSpace | None, window: model_calls.Window
    ) -> list[tuple[KnownFact, str]]:
        """The facts a window may speak of, each with the day it was learnt.

        What earlier windows proposed, then the stored ones: nearest to each user message, profile,
        and the newest of each other key, as far as there is room.
        """
        facts = FactSearch(tx)
        profile = Wanted(memory_types=("profile",))
        rows = self._near(facts, space, window)
        rows += memories.listed(tx, tx.ids, profile, facts.standing, limit=PROFILE_MOST)
        ordered = {memory.id: memory for memory in rows}
        used = {memory.key for memory in rows}
        for memory in memories.listed(tx, tx.ids, Wanted(), facts.standing, limit=NEWEST_MOST):
            if memory.key not in used:
                ordered[memory.id] = memory
                used.add(memory.key)
        short = {fact.memory_id: fact.id for fact in self.known.values()}
        for memory_id in ordered:
            short.setdefault(memory_id, f"k{len(short) + 1}")
        stored = [
            (known_fact(short[m.id], m), m.said_at.astimezone(tx.zone).date().isoformat())
            for m in ordered.values()
            if m.active
        ]
        shown = model_calls.fitting([*self._proposed(), *stored])
        self.known |= {fact.id: fact for fact, _ in shown}
        return shown

    def embed_questions(self, space: EmbeddingSpace | None, window: model_calls.Window) -> None:
        """Have the vectors of user messages, before ``show_facts`` and outside of transactions.

        The chat waits only so long for them: those that it did without are made here, so that what
        is shown does not depend on how busy the machine was.
        """
        self.vectors = {}
        if space is not None:
            self.vectors, spent = space.questions(self._question_texts(window))
            self.usage += [replace(one, purpose="embed") for one in spent]

    def _near(
        self, facts: FactSearch, space: EmbeddingSpace | None, window: model_calls.Window
    ) -> list[Memory]:
        """The facts nearest to any of the user's messages, by meaning and by words: a long message
        that says one short thing among others is near to none, and still names what it changes.
        What is near to a replaced value may speak of the one that is there now."""
        tx, best = facts.tx, dict[int, FoundFact]()
        search = ScoredSearch(tx, tx.ids, Question(""), (), (), None)
        for words in self._question_texts(window):
            vector = self.vectors.get(embeddings.query_hash(words))
            terms = keywords.query_terms(words)
            question = Question(words, vector, space=space)
            search = replace(search, question=question, words=terms, required=frozenset(terms))
            for found in facts.find(search, NEAREST_FACTS, NEAREST_FACTS):
                known = best.setdefault(found.memory.id, found)
                if found.score > known.score:
                    best[found.memory.id] = found
        nearest = sorted(best.values(), key=lambda found: (-found.score, found.memory.id))
        return [found.memory for found in nearest if found.score]

    def _question_texts(self, window: model_calls.Window) -> list[str]:
        asked = [line for line in window.transcript if line.role == "user"]
        if len(asked) > MESSAGES_SEARCHED:
            asked = asked[: MESSAGES_SEARCHED // 2] + asked[-MESSAGES_SEARCHED // 2 :]
        return [shortened(self.by_id[line.message_id].content) for line in asked]

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


def ask_first(tx: Tx, reading: SessionReading, verdict: Verdict) -> Verdict:
    """A verdict that waits for the person where its words stand in a note of the app: they may be
    pasted from there and not the person's own, so they prove nothing by themselves."""
    if verdict.outcome != "accept" or not rows.any_in_app(tx, reading.app_id):
        return verdict
    said = [(p, reading.by_id[p.message_id].content) for p in verdict.spans if p.role == "user"]
    if not any(_is_pasted(tx, reading.app_id, message, proof) for proof, message in said):
        return verdict
    return replace(verdict, outcome="review", reasons=(*verdict.reasons, IN_A_NOTE))


def _names_another(value: str, known: str) -> bool:
    """Whether the value of an end has words, none of them of a known value: "no car" has none."""
    words = () if is_negated(value) else text.content_words(value)
    return bool(words) and not any(text.holds_word(known, word) for word in words)


def _is_pasted(tx: Tx, app_id: int, message: str, proof: Proof) -> bool:
    """Whether the words, with what stands around them, are the same in a note."""
    said, quote = fold(message), trim(fold(proof.quote).text)
    here = said.text.find(quote, bisect_left(said.offsets, proof.start))
    words = keywords.query_terms(proof.quote)
    for note in rows.with_chunks(tx, keywords.rows_holding_all(tx, "chunk", [app_id], words)):
        written = fold(note.text).text
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
