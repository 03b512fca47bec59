"""The passages of notes that a chat's prompt is given, under a token limit of their own.

A passage has to fit the message more surely than a result of a search: nobody asked for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memchat.config import Settings
from memchat.language.secrets import mask
from memchat.memory.embedding.space import Question
from memchat.memory.recall import render
from memchat.memory.recall.ranking import ScoreParts
from memchat.memory.recall.search import Recall
from memchat.notes import search
from memchat.notes.excerpt import excerpt, share_held
from memchat.prompts import Prompts
from memchat.store import apps, chunks, notes
from memchat.store.database import Database
from memchat.store.notes import Filter
from memchat.tokens import estimate_tokens
from memchat.types import Hit, NoteHit, Scope

MOST_TOKENS = 300
"""Tokens of the whole block, as they are estimated."""
MOST = 3
"""Passages, each of another note."""
_SEARCHED = 10
_SURE = 1.5
"""So many times the floor of the service is near enough without a word in common."""
_WORDS = 0.4
"""The share of the message's words that is enough above the floor, or without vectors."""
_LEAST_WORDS = 2
"""Words in common that are enough without vectors."""
_WEAK = 0.5
"""Passages are left out below this share of the best one's score."""


@dataclass(frozen=True, slots=True)
class NotesBlock:
    """The passages that a prompt is given. Reads only."""

    database: Database
    settings: Settings
    prompts: Prompts
    recall: Recall

    def for_prompt(
        self, scope: Scope, question: Question, *, most_tokens: int = MOST_TOKENS
    ) -> tuple[Hit, ...]:
        """What to give for a message, the best first; nothing where that is switched off.

        The block has no more than ``MOST_TOKENS``, nor than ``most_tokens``.
        """
        if not (self.settings.recall_notes and self._has_notes(scope)):
            return ()
        found = search.find(self.recall, scope, question, _SEARCHED, wanted=Filter())
        hits = self._without_secrets([hit for hit in found.hits if hit.confident])
        sure = [hit for hit in hits if _is_sure(hit, question)]
        first: dict[int, NoteHit] = {}
        for hit in sure:
            if hit.score >= _WEAK * sure[0].score:
                first.setdefault(hit.note_id, hit)
        chosen = [*first.values()][:MOST]
        return self._fitting(chosen, question.text, min(most_tokens, MOST_TOKENS))

    def render(self, mark: str, given: Sequence[Hit]) -> str:
        """The block as it stands in a prompt; empty without passages."""
        lines = "\n".join(render.bullet(hit) for hit in given)
        return self.prompts.render("notes", mark=mark, lines=lines) if given else ""

    def _has_notes(self, scope: Scope) -> bool:
        with self.database.read() as tx:
            own = apps.find(tx, scope).own
            return own is not None and notes.any_in_app(tx, own)

    def _without_secrets(self, hits: Sequence[NoteHit]) -> list[NoteHit]:
        """Hits with the texts of their chunks as a model may read them."""
        with self.database.read() as tx:
            texts = chunks.masked_texts(tx, [hit.chunk_id for hit in hits])
        return [replace(h, text=texts[h.chunk_id]) for h in hits if h.chunk_id in texts]

    def _fitting(self, chosen: Sequence[NoteHit], question: str, most: int) -> tuple[Hit, ...]:
        """Each as long as its part of the tokens allows; what one leaves goes to the next."""
        given: list[Hit] = []
        left = most - estimate_tokens(self.render(render.WIDEST_MARK, [_EMPTY]))
        for number, hit in enumerate(chosen):
            one = self._as_hit(hit, question, left // (len(chosen) - number))
            block = self.render(render.WIDEST_MARK, [*given, one]) if one else ""
            if one is not None and estimate_tokens(block) <= most:
                given.append(one)
                left -= one.tokens
        return tuple(given)

    def _as_hit(self, hit: NoteHit, question: str, most: int) -> Hit | None:
        """A passage as a line of a prompt; None where nothing of it fits."""
        title = " ".join(mask(hit.title or "Untitled").split())
        head = f"“{title}”, {render.day(hit.created_at, self.settings.zone)}: "
        room = most - estimate_tokens(render.escaped(f"- {head}")) - 1
        words = " ".join(excerpt(hit.text or "", question, room, title).split())
        if room < 1 or not words:
            return None
        text = render.escaped(f"{head}{words}")
        return Hit(
            kind="note",
            id=hit.note_id,
            text=text,
            score=hit.score,
            cosine=hit.cosine,
            bm25=hit.bm25,
            channel=ScoreParts(hit.score, hit.cosine, hit.bm25).channel,
            tokens=estimate_tokens(f"- {text}\n"),
            said_at=hit.created_at,
            chunk_id=hit.chunk_id,
        )


_EMPTY = Hit("note", 0, "", 0.0, None, None, "", 0)


def _is_sure(hit: NoteHit, question: Question) -> bool:
    """Whether a hit is near by meaning, or less near and holds the message's words; or is of the
    days that a message asks about and nothing else.

    Measured with MiniLM on 50 memos and 250 messages: see docs/recall.md.
    """
    if hit.cosine is None and hit.bm25 is None:
        return True  # confident by its day alone
    held, share = share_held(f"{hit.title or ''}\n{hit.text or ''}", question.text)
    space = question.space if question.vector is not None else None
    if hit.cosine is None or space is None:
        return share >= _WORDS and held >= _LEAST_WORDS
    floor = space.embedder.service.message_floor
    return hit.cosine >= _SURE * floor or (hit.cosine >= floor and share >= _WORDS)
