"""What a person tells memory to do in the middle of a conversation: remember, forget, list.

A model with tools calls them; a message that is plainly a command does without one. Either way it
is code that acts and code that says what was done, in the reply itself, so that no second call is
needed and nothing is claimed that did not happen. What a model passes is a proposal: words to
remember go through the evidence gate, and forgetting waits for the person's next message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection

from memchat.config import Settings
from memchat.errors import InputError
from memchat.language import markers, text
from memchat.language.quotes import find_span
from memchat.language.text import holds_word
from memchat.memory.commands import parse, replies
from memchat.memory.commands.parse import Command
from memchat.memory.commands.replies import CodeReply, ForgetChoice
from memchat.memory.embedding.timeout import QueryTimeout
from memchat.memory.extraction.candidate import Candidate, Quote
from memchat.memory.extraction.proposals import held, known_fact, settle, to_fact
from memchat.memory.extraction.second_look_verdicts import left_to_person
from memchat.memory.extraction.session_reading import Reading, injected
from memchat.memory.facts.consolidation import Consolidation, Fact
from memchat.memory.facts.in_force import as_of
from memchat.memory.forgetting import other_mentions, purge
from memchat.memory.forgetting.other_mentions import MentionsToBlank
from memchat.memory.gate.checks import keys
from memchat.memory.gate.judge import judge
from memchat.memory.gate.types import KnownFact, Verdict
from memchat.memory.recall.search import Recall
from memchat.prompts import Prompts
from memchat.providers import ToolCall
from memchat.store import (
    apps,
    inbox,
    jobs,
    memories,
    memory_lists,
    messages,
    sessions,
    usage,
    values_in_force,
)
from memchat.store import evidence as proofs
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.store.memories import FORGOTTEN
from memchat.types import MEMORY_TYPES, Elsewhere, Memory, Message, Scope, Wanted

NEAR = 0.8
"""How near to the best hit another must score to be asked about, too."""
ASKED_MOST = 10
"""Memories that one question is about at most."""
LISTED_MOST = 40


def _tool(name: str, does: str, required: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name, "description": does}
    if fields:  # Gemini refuses an object without properties
        shape = {"type": "object", "properties": fields, "required": list(required)}
        function["parameters"] = shape
    return {"type": "function", "function": function}


def _text(does: str) -> dict[str, Any]:
    return {"type": "string", "description": does}


TOOLS = (
    _tool(
        "remember",
        "Save one fact the user asks you to remember.",
        ("quote", "type", "key", "value"),
        quote=_text("the user's words, copied"),
        type={"type": "string", "enum": list(MEMORY_TYPES)},
        key=_text("English snake_case slot, e.g. city"),
        value=_text("short, in the user's language"),
        until_said=_text("their words for how long, copied"),
        until=_text("as +3d, weekday:fri, end:month, MM-DD or YYYY-MM-DD"),
    ),
    _tool(
        "forget",
        "Show the user what is saved on something they ask you to forget, and let them confirm.",
        ("what",),
        what=_text("what to forget"),
    ),
    _tool("list_memories", "Show the user all that is saved about them."),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command was given: a turn of a stored conversation."""

    scope: Scope
    session_id: int
    turn: Message


@dataclass(frozen=True, slots=True)
class Commands:
    """Carries commands out over one store."""

    database: Database
    settings: Settings
    prompts: Prompts
    clock: Callable[[], datetime]
    recall: Recall
    patience: QueryTimeout
    purge: Callable[[Connection, Iterable[int]], None]
    """Drops the saved vectors of scope rows."""
    embeds: Callable[[], bool]
    """Whether there is something to make vectors with."""

    def obey(self, command: Command, place: Place, *, stand_in: bool) -> CodeReply:
        """A command that was read from the message itself, for a model without tools.

        ``stand_in``: no model will read the conversation, so what no rule reads is kept as a note.
        """
        if command.kind == "list":
            return self._list(place)
        if command.kind == "forget":
            return self._look_up([command.words], place)
        proposals = _read_by_rule(command, stand_in)
        return self._remember(proposals, place) if proposals else replies.later()

    def run(self, calls: Sequence[ToolCall], place: Place) -> CodeReply:
        """The tools that a model called for this turn, each once; what cannot be read is skipped.

        It may ask to forget only where the person's own words in this turn speak of forgetting.
        """
        said = CodeReply()
        arguments = [(call.name, _arguments(call)) for call in dict.fromkeys(calls)]
        wishes = [given for name, given in arguments if name == "remember" and given]
        if wishes and markers.NOT_TO_KEEP.search(place.turn.content):
            said += replies.unwanted()
        elif wishes:
            said += self._remember_proposed(wishes, place)
        if any(name == "list_memories" for name, _ in arguments):
            said += self._list(place)
        named = [given.get("what") for name, given in arguments if name == "forget"]
        what = [words for words in named if isinstance(words, str) and words.strip()]
        if what and parse.asks_to_forget(place.turn.content):
            said += self._look_up(what, place)
        return said

    def answer(self, choice: ForgetChoice, chosen: Sequence[int]) -> CodeReply:
        """What comes of the answer to a question: these are to be forgotten, or none.

        Where anything else speaks of them, its choice is what to ask next, in ``ask``.
        """
        if choice.elsewhere is not None:
            return self._blank(choice, choice.elsewhere, chosen)
        if not chosen:
            return replies.kept()
        with self.database.write() as tx:
            found = memories.by_ids(tx, apps.find(tx, choice.scope).ids, list(chosen))
            # What was changed since it was shown is not what the person said yes to.
            gone = [
                memory
                for memory in choice.memories
                if memory.id in found and found[memory.id].sha1 == memory.sha1
            ]
            self._tie(tx, choice, gone)
            left = other_mentions.find(tx, gone) if gone else None
            home = memories.app_id_of(tx, gone[0].id) if gone else 0
            self.purge(tx, purge.forget(tx, gone, self.settings.zone, self.clock()))
        purge.scrub(self.database)
        done = replies.forgotten(len(gone), len(chosen))
        if left is None or not left.places:
            return done
        next_ = replace(choice, memories=tuple(gone), elsewhere=left, home=home)
        return replace(done, choice=next_)

    def _blank(self, choice: ForgetChoice, found: Elsewhere, chosen: Sequence[int]) -> CodeReply:
        """Blank what else speaks of what was forgotten, where the person agreed to all of it."""
        if len(chosen) != len(choice.memories):
            return replies.left()
        with self.database.write() as tx:
            wanted = MentionsToBlank.of(found)
            zone = self.settings.zone
            self.purge(tx, other_mentions.blank(tx, choice.home, wanted, zone, self.clock()))
        purge.scrub(self.database)
        return replies.blanked(found)

    def ask(self, choice: ForgetChoice) -> CodeReply:
        """The question of before, about those that are still as they were shown; or whether to
        blank what else speaks of what was forgotten."""
        if choice.elsewhere is not None:
            return replies.also(choice, choice.elsewhere, self.settings.zone)
        with self.database.read() as tx:
            found = memories.by_ids(
                tx, apps.find(tx, choice.scope).ids, [m.id for m in choice.memories]
            )
        same = [m for m in choice.memories if m.id in found and found[m.id].sha1 == m.sha1]
        same = [m for m in same if found[m.id].inactive_reason != FORGOTTEN]
        if not same:
            return CodeReply()
        return replies.asked_again(replace(choice, memories=tuple(same)), self.settings.zone)

    def _tie(self, tx: Connection, choice: ForgetChoice, gone: Sequence[Memory]) -> None:
        """Where the request itself says what is to go ("forget that I live in Lisbon"), it is one
        more message that holds the words: they leave it, and it can never teach them again."""
        turn = choice.turn
        for memory in gone:
            if any(holds_word(turn.content, word) for word in text.content_words(memory.value)):
                proofs.add(tx, memory.id, [(turn.id, 0, turn.content)])

    # Remember

    def _remember_proposed(self, wishes: Sequence[dict[str, Any]], place: Place) -> CodeReply:
        proposals = []
        for given in wishes:
            try:
                proposals.append(Candidate.model_validate({**given, "flags": ["asked"]}))
            except ValidationError:
                continue  # without key or value: the reading at the end finds them itself
        said = self._remember(proposals, place) if proposals else CodeReply()
        return said if len(proposals) == len(wishes) else said + replies.later()

    def _remember(self, proposals: Sequence[Candidate], place: Place) -> CodeReply:
        """Put proposals through the gate and what passes into the store, in one transaction."""
        now, embeds = self.clock(), self.embeds()
        with self.database.write() as tx:
            if not (switch := apps.memory_switch(tx, place.scope)).on:
                return replies.off("remember", switch)
            found = sessions.by_id(tx, place.session_id)
            if found is None:
                return CodeReply()
            turns = messages.of_session(tx, place.session_id, learnable=True)
            reading = Reading(*found, turns, 0, injected=injected(tx, turns))
            judged = [self._judge(tx, item, reading, place) for item in proposals]
            # The second look comes when the conversation ends: nobody waits for it here.
            doubts = {id(verdict.candidate) for verdict in judged if verdict.outcome == "doubt"}
            verdicts = [left_to_person(verdict) for verdict in judged]
            facts, changes = settle(verdicts, self._as_fact(reading, place.scope))
            own, shared = apps.ensure(tx, place.scope, now)
            cause = Cause(now, "model", "asked for", place.session_id, place.turn.id)
            consolidation = Consolidation(
                tx, own, shared, cause, self.settings.merge_threshold, self.settings.zone
            )
            changes = [consolidation.apply(fact) for fact in facts] + changes
            for memory_id in consolidation.written if embeds else ():
                app_id = memories.app_id_of(tx, memory_id)
                jobs.enqueue(tx, "embed", app_id, memory_id, now)
            said = {turn.id: turn for turn in turns}
            for verdict in verdicts:
                if verdict.outcome == "review":
                    later = id(verdict.candidate) in doubts and self.settings.verify != "off"
                    item = held(verdict, reading.known, said)
                    # Of words that a secret was masked in no model can be asked.
                    item = replace(item, unchecked=later and not item.masked)
                    inbox.add(tx, own, item, now)
        return replies.remembered(changes)

    def _judge(self, tx: Connection, item: Candidate, reading: Reading, place: Place) -> Verdict:
        turns = [replace(turn, text=parse.plain(turn.text)) for turn in reading.as_judged()]
        here = next((turn.id for turn in turns if turn.message_id == place.turn.id), "")
        asks = parse.command(place.turn.content)
        whole = asks.sentence.rstrip(" .!…。！") if asks and asks.kind == "remember" else ""
        # "Don't forget that …" is no negation of what follows: the quote is the whole request.
        quotes = tuple(
            Quote(msg=here, text=whole if find_span(quote.text, whole) else quote.text)
            for quote in item.quotes
        )
        item = item.model_copy(update={"quotes": quotes})
        known = _same_slot(tx, item, place.scope, self._today())
        if known is not None:
            reading.known[known.id] = known
            item = item.model_copy(update={"to": known.id, "relation": "updates"})
        return judge(
            item,
            turns,
            [known] if known is not None else [],
            prompt_text="\n".join(self.prompts.text(name) for name in ("chat", "tools")),
            injected=reading.injected,
            zone=self.settings.zone,
        )

    def _as_fact(self, reading: Reading, scope: Scope) -> Callable[[Verdict], Fact]:
        said = {turn.id: turn for turn in reading.turns}
        zone = self.settings.zone
        return lambda verdict: to_fact(verdict, said, reading.known, zone)

    # Forget and list

    def _look_up(self, what: Sequence[str], place: Place) -> CodeReply:
        """Ask about what is found; nothing is forgotten here."""
        found = {m.id: m for words in what for m in self._matching(words, place)}
        if not found:
            return replies.nothing_found()
        shown = list(found.values())[:ASKED_MOST]
        choice = ForgetChoice(place.scope, place.turn, tuple(shown))
        return replies.question(choice, len(found) - len(shown), self.settings.zone)

    def _matching(self, words: str, place: Place) -> list[Memory]:
        """The memories that the words name, active ones first; else those they come nearest to."""
        every = self._all(place.scope, "all")
        if parse.everything(words):
            return [memory for memory in every if memory.active]
        named = [memory for memory in every if _names(words, memory)]
        if named:
            return sorted(named, key=lambda memory: not memory.active)
        question = self.patience.wait(self.patience.ask(words))
        hits = self.recall.search(place.scope, question, ASKED_MOST).hits
        if question.usage is not None:
            with self.database.write() as tx:
                own, _ = apps.ensure(tx, place.scope, self.clock())
                usage.add(tx, own, place.session_id, question.usage, self.clock())
        return [h.memory for h in hits if h.memory and h.score >= NEAR * hits[0].score]

    def _list(self, place: Place) -> CodeReply:
        return replies.listing(self._all(place.scope, "active"), LISTED_MOST, self.settings.zone)

    def _all(self, scope: Scope, status: str) -> list[Memory]:
        today = self._today()
        with self.database.read() as tx:
            ids = apps.find(tx, scope).ids
            now = as_of(tx, ids, today)
            return memory_lists.listed(tx, ids, Wanted(status=status), now)

    def _today(self) -> date:
        return self.clock().astimezone(self.settings.zone).date()


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _read_by_rule(command: Command, stand_in: bool) -> list[Candidate]:
    """What the stand-in's patterns make of a command's sentence."""
    from memchat.providers.offline.extract import extract

    turn = {"id": "u1", "role": "user", "text": command.sentence}
    facts = [Candidate.model_validate(fact) for fact in extract({"transcript": [turn]})["facts"]]
    if not stand_in:
        return [fact for fact in facts if fact.key != "note"]
    quotes = (Quote(text=command.sentence),)
    note = Candidate(quotes=quotes, key="note", value=command.words, many=True, flags=("asked",))
    return facts or [note]


def _same_slot(tx: Connection, item: Candidate, scope: Scope, today: date) -> KnownFact | None:
    """The one other value known under a proposal's key, where the key holds one."""
    try:
        key = keys.canonical(keys.normalise_key(item.key))
    except InputError:
        return None
    found = memories.with_key(tx, apps.find(tx, scope).ids, key)
    known = [m for m in found if values_in_force.holds_on(m, today)]
    if len(known) != 1 or known[0].many:
        return None
    same = text.normal_value(known[0].value) == text.normal_value(item.value)
    return None if same else known_fact(f"k{known[0].id}", known[0])


def _names(words: str, memory: Memory) -> bool:
    """Whether words name a memory: by its id, by nothing but its key and value, or by all of its
    value."""
    if words.strip().startswith("#"):
        return words.strip(" #.") == str(memory.id)
    wanted, held_ = text.content_words(words), text.content_words(memory.value)
    whole = f"{memory.key.replace('_', ' ')} {memory.value}"
    return (bool(wanted) and all(holds_word(whole, word) for word in wanted)) or (
        bool(held_) and all(holds_word(words, word) for word in held_)
    )
