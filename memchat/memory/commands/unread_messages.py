"""What was said in the open conversation and is not learnt yet: it can be forgotten, too."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from memchat.language import text
from memchat.language.text import holds_word
from memchat.memory.commands import parse
from memchat.store import copies, evidence, messages, prompts, sessions
from memchat.store.evidence import LearnedFact
from memchat.types import Message


def of_session(tx: Connection, session_id: int) -> list[Message]:
    """The user's messages of a conversation that were not read for memories yet; of a copied one
    the message that it is a copy of."""
    found = sessions.by_id(tx, session_id)
    if found is None:
        return []
    turns = messages.of_session(tx, session_id, learnable=True)
    own = [turn for turn in turns if turn.role == "user" and turn.id > found[0].extracted_to]
    return [*copies.unread_originals(tx, session_id), *own]


def stating(tx: Connection, what: Sequence[str], request: Message) -> list[Message]:
    """Those said before a request that state something of ``what`` is to be forgotten, but for what
    a command has already saved as a memory."""
    turns = [turn for turn in of_session(tx, request.session_id) if turn.id < request.id]
    learned = evidence.learned_from(tx, [turn.id for turn in turns])
    return [
        turn
        for turn in turns
        if any(
            _states(words, turn.content)
            and not any(fact.message_id == turn.id and _is_meant(words, fact) for fact in learned)
            for words in what
        )
    ]


def exclude(tx: Connection, turns: Sequence[Message], request: Message) -> int:
    """Keep messages from being read and found, with the replies to them, and the request where it
    repeats their words. How many were still unread: the others stay as they are."""
    unread = {turn.id for turn in of_session(tx, request.session_id)}
    left = [turn for turn in turns if turn.id in unread]
    ids = [turn.id for turn in left]
    ids += [reply for turn in left if (reply := prompts.reply_of(tx, turn)) is not None]
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


def _is_meant(words: str, fact: LearnedFact) -> bool:
    return parse.everything(words) or names_fact(words, fact.key, fact.value)


def _states(words: str, message: str) -> bool:
    """Whether a message states what words want forgotten: it holds all of them, or they name a
    fact that a rule reads in it."""
    from memchat.language.statements.reader import statements

    if parse.everything(words):
        return True
    wanted = text.content_words(words)
    if wanted and all(holds_word(message, word) for word in wanted):
        return True
    return any(names_fact(words, one.key, one.value) for one in statements(message))
