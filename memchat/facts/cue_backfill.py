"""Asks the extraction model for the cues of facts that have none, such as facts of older versions.

Each batch is written before the next is asked for, so an interrupted run continues where it
stopped. Sensitive facts and those with a secret are sent to no model; they get the cues of their
key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, ValidationError

from memchat.db import usage
from memchat.db.apps import WHOLE_STORE, Context
from memchat.db.database import Database
from memchat.facts import cues
from memchat.facts import cues as rows
from memchat.facts.cues import FactWithoutCues
from memchat.facts.history import Cause
from memchat.forget import purge, redaction
from memchat.language.secrets import find_secrets
from memchat.language.text import content_words
from memchat.learn.candidate import plain_cues
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.providers.litellm_setup import cost_usd
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, CuePlan, Usage

BATCH = 20
"""How many facts of one app are asked about in one request."""
ANSWER_TOKENS = 45
"""Roughly how many tokens the answer takes for one fact."""


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True)
    cues: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class CueBackfill:
    """One run over a whole store."""

    database: Database
    clock: Callable[[], datetime]
    zone: ZoneInfo
    prompts: Prompts
    model: ChatModel

    def plan(self) -> CuePlan:
        """How many facts have no cues, and about how many tokens and dollars it takes to ask for
        them."""
        lacking = self._lacking()
        sent = [batch for batch in _batches(lacking) if self._asks(batch[0])]
        asked = sum(len(batch) for batch in sent)
        came = asked * ANSWER_TOKENS
        prompt = sum(
            estimate_tokens(message.content) for batch in sent for message in self._request(batch)
        )
        cost = cost_usd(self.model.name, prompt, came) if asked else 0.0
        return CuePlan(len(lacking), asked, prompt + came, cost, self.model.name)

    def run(self) -> int:
        """Ask and write, batch after batch; how many facts have cues now that had none.

        A run may take long, so each batch is looked at again before it is sent: what was forgotten
        or changed meanwhile, or is of an app whose memory was switched off, is left out.
        Raises ProviderError where the model fails; what was written stays.
        """
        return sum(self._fill(self._still(batch)) for batch in _batches(self._lacking()))

    def _lacking(self) -> list[FactWithoutCues]:
        with self.database.read() as tx:
            return rows.facts_without_cues(tx, self._today())

    def _still(self, batch: Sequence[FactWithoutCues]) -> list[FactWithoutCues]:
        with self.database.read() as tx:
            return rows.still_without_cues(tx, batch, self._today())

    def _today(self) -> date:
        return self.clock().astimezone(self.zone).date()

    def _asks(self, fact: FactWithoutCues) -> bool:
        return not self.model.stand_in and not _private(fact)

    def _fill(self, batch: Sequence[FactWithoutCues]) -> int:
        if not batch:
            return 0
        found: dict[int, tuple[str, ...]] = {}
        spent: Usage | None = None
        if self._asks(batch[0]):
            answer = self.model.complete(self._request(batch), purpose="extract")
            found, spent = _read(answer.text, batch), answer.usage
        now = self.clock()
        with self.database.write() as tx:
            given = {fact: found.get(fact.id) or cues.of_key(fact.key) for fact in batch}
            written = [fact.id for fact, some in given.items() if rows.set_cues(tx, fact, some)]
            read = {(fact.id, fact.key, fact.value) for fact in batch}
            changed = purge.strip_read_cues(tx, batch[0].app_id, read).union(written)
            ctx = Context(tx, WHOLE_STORE, now, self.zone)
            redaction.reindex(ctx, changed, Cause(now, "model", "cues"))
            if spent is not None:
                usage.add(tx, batch[0].app_id, None, spent, now)
        return len(written)

    def _request(self, batch: Sequence[FactWithoutCues]) -> list[ChatMessage]:
        facts = [{"id": str(fact.id), "key": fact.key, "value": fact.value} for fact in batch]
        data = json.dumps({"facts": facts}, ensure_ascii=False)
        return [ChatMessage("system", self.prompts.text("cues")), ChatMessage("user", data)]


def _private(fact: FactWithoutCues) -> bool:
    """Whether a fact is sensitive or holds a secret, and so is sent to no model."""
    return fact.sensitive or bool(find_secrets(f"{fact.key}: {fact.value}"))


def _batches(lacking: Sequence[FactWithoutCues]) -> Iterator[list[FactWithoutCues]]:
    """Batches of facts of one app; private facts have batches of their own."""
    groups: dict[tuple[int, bool], list[FactWithoutCues]] = {}
    for fact in lacking:
        groups.setdefault((fact.app_id, _private(fact)), []).append(fact)
    for group in groups.values():
        for start in range(0, len(group), BATCH):
            yield group[start : start + BATCH]


def _read(text: str, batch: Sequence[FactWithoutCues]) -> dict[int, tuple[str, ...]]:
    """The cues in an answer, by the id of the fact; none where it cannot be read."""
    try:
        answer = _Answer.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
    except ValidationError:
        return {}
    values = {str(fact.id): content_words(fact.value) for fact in batch}
    return {
        int(i): tuple(w for w in plain_cues(words) if w not in values[i] and not find_secrets(w))
        for i, words in answer.cues.items()
        if i in values
    }
