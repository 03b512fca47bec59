"""Carrying out commands to memory in the middle of a conversation: remember, forget, list.

A model with tools calls them; where a message is plainly a command none has to. Either way code
acts and code says what was done, in the same reply, so that no second call is needed and nothing is
claimed that did not happen. What a model passes is a proposal: words to remember are checked
against what the person said, and forgetting waits for their next message.

What was said in the open conversation and is not learnt yet can be forgotten, too: such messages
are kept from being learnt and found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import ValidationError

from memchat.chat import command_replies, command_words
from memchat.chat.command_replies import CodeReply, ForgetChoice
from memchat.chat.command_words import Command, arguments
from memchat.chat.conversation import Parts
from memchat.db import Tx, apps, backup, messages, sessions, usage
from memchat.errors import InputError
from memchat.facts import changes, keys, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.consolidation import ingest
from memchat.facts.in_force import as_of
from memchat.facts.memories import FORGOTTEN
from memchat.forget import mentions, purge
from memchat.language import lexicon, secrets, text
from memchat.language.sentences import clause_edges, find_span
from memchat.language.telling import sentence_of
from memchat.language.text import holds_word
from memchat.learn.candidate import Candidate, KnownFact, Quote, Verdict
from memchat.learn.gate import judge
from memchat.learn.model_calls import NOBODY_LOOKED, NOT_LOOKED_AT, unlooked
from memchat.learn.outcomes import inbox_entry, known_fact, resolve
from memchat.learn.own_words import own_words
from memchat.learn.session_reading import SessionReading, shown_memory_lines
from memchat.learn.values import is_negated
from memchat.providers import ToolCall
from memchat.search import receipts
from memchat.types import Elsewhere, Memory, Message, Scope, Wanted


def of_session(tx: Tx, session_id: int) -> list[Message]:
    """The user's messages of a conversation that were not read for memories yet; of a copied one
    the message that it is a copy of."""
    found = sessions.by_id(tx, session_id)
    if found is None:
        return []
    turns = messages.of_session(tx, session_id, learnable=True)
    own = [turn for turn in turns if turn.role == "user" and turn.id > found[0].extracted_to]
    return [*sessions.unread_originals(tx, session_id), *own]


def stating(tx: Tx, what: Sequence[str], request: Message) -> list[Message]:
    """Those said before a request that state something of ``what`` is to be forgotten, but for what
    a command has already saved as a memory."""
    turns = [turn for turn in of_session(tx, request.session_id) if turn.id < request.id]
    taught = changes.taught_by(tx, [turn.id for turn in turns])
    return [
        turn
        for turn in turns
        if any(
            _states(words, turn.content)
            and not any(of == turn.id and _is_meant(words, memory) for of, _, memory in taught)
            for words in what
        )
    ]


def exclude(tx: Tx, turns: Sequence[Message], request: Message) -> int:
    """Keep messages from being read and found, with the replies to them, and the request where it
    repeats their words. How many were still unread: the others stay as they are."""
    unread = {turn.id for turn in of_session(tx, request.session_id)}
    left = [turn for turn in turns if turn.id in unread]
    ids = [turn.id for turn in left]
    ids += [reply for turn in left if (reply := receipts.reply_of(tx, turn)) is not None]
    words = {word for turn in left for word in text.content_words(turn.content)}
    if any(holds_word(request.content, word) for word in words):
        ids.append(request.id)
    messages.exclude(tx, ids)
    return len(left)


def names_fact(words: str, key: str, value: str) -> bool:
    """Whether words name a fact: by nothing but its key and value, or by all of its value."""
    wanted, held_ = text.content_words(words), text.content_words(value)
    whole = f"{key.replace('_', ' ')} {value}"
    return (bool(wanted) and all(holds_word(whole, word) for word in wanted)) or (
        bool(held_) and all(holds_word(words, word) for word in held_)
    )


def _is_meant(words: str, fact: Memory) -> bool:
    return command_words.everything(words) or names_fact(words, fact.key, fact.value)


def _states(words: str, message: str) -> bool:
    """Whether a message states what words want forgotten: it holds all of them, or they name a
    fact that a rule reads in it."""
    from memchat.language.statements import statements  # its many patterns are seldom needed

    if command_words.everything(words):
        return True
    wanted = text.content_words(words)
    if wanted and all(holds_word(message, word) for word in wanted):
        return True
    return any(names_fact(words, one.key, one.value) for one in statements(message))


NEAR = 0.8
"""The share of the best score that another hit needs to be in the question, too."""
CHOICE_MOST = 10
"""Memories that one question is about at most."""
LISTED_MOST = 40


@dataclass(frozen=True, slots=True)
class Commands:
    """Carries commands out for a turn of a stored conversation."""

    parts: Parts
    scope: Scope

    def execute(self, command: Command, request: Message, *, stand_in: bool) -> CodeReply:
        """A command that was read from the message itself, for a model without tools.

        ``stand_in``: no model will read the conversation; words that no rule reads become a note.
        """
        if command.kind == "list":
            return self._list()
        if command.kind == "forget":
            return self._ask_to_forget([command.words], request)
        proposals = _read_by_rule(command, stand_in)
        if proposals:
            return self._remember(proposals, request)
        found = secrets.find_secrets(command.words)
        kept_out = command_replies.NOT_KEPT.format(kind=found[0].kind) if found else None
        return CodeReply(kept_out or command_replies.LATER)

    def run_tools(self, calls: Sequence[ToolCall], request: Message) -> CodeReply:
        """The tools that a model called for this turn, each once; what cannot be read is skipped.

        It may ask to forget only where the person's own words in this turn are about forgetting.
        """
        said = CodeReply()
        called = [(call.name, arguments(call)) for call in dict.fromkeys(calls)]
        wishes = [given for name, given in called if name == "remember" and given]
        if wishes and lexicon.NOT_TO_KEEP.search(request.content):
            said += CodeReply(command_replies.UNWANTED)
        elif wishes:
            said += self._remember_proposed(wishes, request)
        if any(name == "list_memories" for name, _ in called):
            said += self._list()
        named = [given.get("what") for name, given in called if name == "forget"]
        what = [words for words in named if isinstance(words, str) and words.strip()]
        if what and command_words.asks_to_forget(request.content):
            said += self._ask_to_forget(what, request)
        return said

    def forget_chosen(self, choice: ForgetChoice, chosen: Sequence[int]) -> CodeReply:
        """Forget what was chosen in answer to a question, or nothing; messages that were not read
        yet are kept from being learnt.

        Where other places mention the memories, the result's choice is the question to ask next.
        """
        if choice.elsewhere is not None:
            return self._blank(choice, choice.elsewhere, chosen)
        if not chosen:
            return CodeReply(command_replies.NOTHING_FORGOTTEN)
        wanted = [number for number in chosen if number > 0]
        turns = [turn for turn in choice.unread if -turn.id in chosen]
        skipped = CodeReply()
        if turns:
            with self.parts.database.write() as tx:
                count = exclude(tx, turns, choice.turn)
            skipped = command_replies.not_to_be_learnt(count, len(turns))
        return self._forget(choice, wanted) + skipped if wanted else skipped

    def _forget(self, choice: ForgetChoice, chosen: Sequence[int]) -> CodeReply:
        with self.parts.database.write(self.scope) as tx:
            found = memories.by_ids(tx, tx.ids, list(chosen))
            # A memory that was changed since it was shown is not what the person agreed to.
            gone = [
                memory
                for memory in choice.memories
                if memory.id in found and found[memory.id].sha1 == memory.sha1
            ]
            self._link_request(tx, choice, gone)
            left = mentions.find(tx, gone) if gone else None
            home = memories.app_id_of(tx, gone[0].id) if gone else 0
            purge.forget(tx, gone)
        done = command_replies.forgotten(len(gone), len(chosen))
        if gone and (backups := backup.perhaps_forgotten(self.parts.database.home)):
            done += command_replies.still_in_backups(len(backups))
        if left is not None:
            done += command_replies.in_notes(left, self.parts.settings.zone)
            left = left.without_notes
        if left is None or not left.places:
            return done
        next_ = replace(choice, memories=tuple(gone), unread=(), elsewhere=left, home=home)
        return replace(done, choice=next_)

    def _blank(self, choice: ForgetChoice, found: Elsewhere, chosen: Sequence[int]) -> CodeReply:
        """Blank what else mentions the forgotten memories, where the person agreed to all of it."""
        if len(chosen) != len(choice.memories):
            return CodeReply(command_replies.NOTHING_BLANKED)
        with self.parts.database.write(self.scope) as tx:
            mentions.blank(tx, choice.home, mentions.to_blank(found))
        return command_replies.blanked(found)

    def ask(self, choice: ForgetChoice) -> CodeReply:
        """The question again, about what is still as it was shown; or whether to blank what else
        mentions the forgotten memories."""
        if choice.elsewhere is not None:
            return command_replies.ask_to_blank(choice, choice.elsewhere, self.parts.settings.zone)
        with self.parts.database.read(self.scope) as tx:
            found = memories.by_ids(tx, tx.ids, [m.id for m in choice.memories])
            unread = {turn.id for turn in of_session(tx, choice.turn.session_id)}
        same = [m for m in choice.memories if m.id in found and found[m.id].sha1 == m.sha1]
        same = [m for m in same if found[m.id].inactive_reason != FORGOTTEN]
        turns = tuple(turn for turn in choice.unread if turn.id in unread)
        if not (same or turns):
            return CodeReply()
        again = replace(choice, memories=tuple(same), unread=turns)
        return command_replies.asked_again(again, self.parts.settings.zone)

    def _link_request(self, tx: Tx, choice: ForgetChoice, gone: Sequence[Memory]) -> None:
        """Make the request evidence of the memories whose words it holds ("forget that I live in
        Lisbon"): then they are blanked in it as well, and it can never teach them again."""
        turn = choice.turn
        for memory in gone:
            if any(holds_word(turn.content, word) for word in text.content_words(memory.value)):
                changes.add_evidence(tx, memory.id, [(turn.id, 0, turn.content)])

    # Remember

    def _remember_proposed(self, wishes: Sequence[dict[str, Any]], request: Message) -> CodeReply:
        proposals = []
        for given in wishes:
            try:
                proposals.append(Candidate.model_validate({**given, "flags": ["asked"]}))
            except ValidationError:
                continue  # without key or value: the reading at the end finds them itself
        said = self._remember(proposals, request) if proposals else CodeReply()
        return said if len(proposals) == len(wishes) else said + CodeReply(command_replies.LATER)

    def _remember(self, given: Sequence[Candidate], request: Message) -> CodeReply:
        """Put proposals through the gate and what passes into the store, in one transaction."""
        with self.parts.database.write() as tx:
            found = sessions.by_id(tx, request.session_id)
            if found is None:
                return CodeReply()
            if not (switch := apps.memory_of(tx, found[0])).on:
                return command_replies.off("remember", switch)
            turns = messages.of_session(tx, request.session_id, learnable=True)
            injected = shown_memory_lines(tx, turns)
            reading = SessionReading(*found, turns, 0, tx.zone, injected=injected)
            tx = apps.ensure(tx, self.scope)
            judged = [self._judge(tx, item, reading, request) for item in given]
            reading.verdicts = judged
            facts, changes = resolve(reading)
            source = Cause("model", "asked for", request.session_id, request.id)
            done = ingest(tx, source, facts)
            changes = done + changes
            for verdict in reading.verdicts:
                if verdict.outcome == "review":
                    proposals.add(tx, found[1], inbox_entry(verdict, reading))
        return command_replies.remembered(changes)

    def _judge(self, tx: Tx, item: Candidate, reading: SessionReading, request: Message) -> Verdict:
        turns = [
            replace(turn, text=command_words.plain(turn.text)) for turn in reading.gate_turns()
        ]
        here = next((turn.id for turn in turns if turn.message_id == request.id), "")
        asks = command_words.command(request.content)
        asks = asks if asks and asks.kind == "remember" else None
        whole = asks.sentence.rstrip(" .!…。！") if asks else ""
        said = asks.words if asks else own_words(request.content)
        asked = asks is not None or lexicon.REMEMBER.search(said) is not None
        if asked and not any(_is_cut_out(quote.text, said) for quote in item.quotes):
            waits = None
        else:  # what the person did not ask for in so many words is looked at when it ends
            waits = NOBODY_LOOKED if self.parts.settings.verify == "off" else NOT_LOOKED_AT
        # "Don't forget that …" is no negation of what follows: the quote is the whole request.
        quotes = tuple(
            Quote(msg=here, text=whole if find_span(quote.text, whole) else quote.text)
            for quote in item.quotes
        )
        told = item.sentence or sentence_of(item.key, item.value, request.content)
        item = item.model_copy(update={"quotes": quotes, "sentence": told or ""})
        known = _same_slot(tx, item)
        if known is not None:
            reading.known[known.id] = known
            item = item.model_copy(update={"to": known.id, "relation": "updates"})
        verdict = judge(
            item,
            turns,
            [known] if known is not None else [],
            prompt_text="\n".join(self.parts.prompts.text(name) for name in ("chat", "tools")),
            injected=reading.injected,
            own_types=tx.types,
        )
        return verdict if waits is None else unlooked(verdict, waits)

    # Forget and list

    def _ask_to_forget(self, what: Sequence[str], request: Message) -> CodeReply:
        """Ask which of the memories found to forget, and of what was said in this conversation
        and not read yet; nothing is forgotten here."""
        with self.parts.database.read() as tx:
            turns = stating(tx, what, request)
        named_only = bool(turns)
        found = {m.id: m for words in what for m in self._matching(words, request, named_only)}
        if not (found or turns):
            return CodeReply(command_replies.NOTHING_FOUND)
        shown = list(found.values())[:CHOICE_MOST]
        unread = turns[-CHOICE_MOST:]
        with self.parts.database.read(self.scope) as tx:
            unproved = mentions.unproved_by(tx, shown) if shown else []
        choice = ForgetChoice(request, tuple(shown), tuple(unread), unproved=tuple(unproved))
        return command_replies.question(choice, len(found) - len(shown), self.parts.settings.zone)

    def _matching(self, words: str, request: Message, named_only: bool) -> list[Memory]:
        """The memories that the words name, active ones first; else those they come nearest to,
        but for ``named_only``."""
        every = self._all("all")
        if command_words.everything(words):
            return [memory for memory in every if memory.active]
        named = [memory for memory in every if _names(words, memory)]
        if named or named_only:
            return sorted(named, key=lambda memory: not memory.active)
        question = self.parts.query_timeout.wait(self.parts.query_timeout.start(words))
        hits = self.parts.recall.search(self.scope, question, CHOICE_MOST).hits
        if question.usage is not None:
            with self.parts.database.write(self.scope, ensure=True) as tx:
                usage.add(tx, tx.own, request.session_id, question.usage)
        return [h.memory for h in hits if h.memory and h.score >= NEAR * hits[0].score]

    def _list(self) -> CodeReply:
        return command_replies.listing(self._all("active"), LISTED_MOST, self.parts.settings.zone)

    def _all(self, status: str) -> list[Memory]:
        with self.parts.database.read(self.scope) as tx:
            now = as_of(tx, tx.ids)
            return memories.listed(tx, tx.ids, Wanted(status=status), now)


def _read_by_rule(command: Command, stand_in: bool) -> list[Candidate]:
    """The facts that a command's sentence states, by patterns."""
    from memchat.language.statements import statements

    stated = (one for one in statements(command.sentence) if not one.ends)
    facts = [
        Candidate.model_validate({**asdict(one), "flags": ["asked"] if one.asked else []})
        for one in stated
    ]
    if not stand_in:
        return [fact for fact in facts if fact.key != "note"]
    quotes = (Quote(text=command.sentence),)
    note = Candidate(quotes=quotes, key="note", value=command.words, many=True, flags=("asked",))
    return facts or [note]


def _is_cut_out(quote: str, said: str) -> bool:
    """Whether a quote leaves out words of its clause: "I live in Rome" of "if I live in Rome"."""
    span = find_span(quote, said)
    if span is None:
        return False
    start, end = clause_edges(said, span.start, span.end)
    rest = lexicon.REMEMBER.sub(" ", f"{said[start : span.start]} {said[span.end : end]}")
    return bool(text.content_words(rest)) or is_negated(rest)


def _same_slot(tx: Tx, item: Candidate) -> KnownFact | None:
    """The one other value known for a proposal's key, where the key has one value."""
    try:
        key = keys.canonical(keys.normalise_key(item.key))
    except InputError:
        return None
    found = memories.with_key(tx, tx.ids, key)
    known = [m for m in found if memories.holds_on(m, tx.today)]
    if len(known) != 1 or known[0].many:
        return None
    same = text.normal_value(known[0].value) == text.normal_value(item.value)
    return None if same else known_fact(f"k{known[0].id}", known[0])


def _names(words: str, memory: Memory) -> bool:
    """Whether words name a memory, by its id or as a fact."""
    if words.strip().startswith("#"):
        return words.strip(" #.") == str(memory.id)
    return names_fact(words, memory.key, memory.value)
