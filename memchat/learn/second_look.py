"""The second look: one more call of the model, about all candidates that code did not refuse, and
what its answers change in a verdict. Each is sent with its sentences and the conversation around
them, as fenced data. The model answers ``holds``, ``not``, ``secret`` or ``unclear``; one that it
leaves out is unclear. Title and summary are sent along, to be dropped where they are secret.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from memchat.errors import ExtractionError
from memchat.facts.keys import cardinality
from memchat.language.numbers import numbers
from memchat.language.secrets import mask, reveals
from memchat.language.sentences import find_spans, sentence_around
from memchat.learn import values
from memchat.learn.candidate import (
    RELATIONS,
    Candidate,
    Relation,
    find_object,
    list_schema,
    object_schema,
)
from memchat.learn.extractor import JsonCall, ShownTurn, fenced
from memchat.learn.verdict import KnownFact, Proof, Turn, Verdict, mark_quoted
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.types import ChatMessage, Usage

log = logging.getLogger(__name__)

BATCH_SIZE = 20
WHOLE_CONVERSATION_LIMIT = 2_400
"""Characters up to which a conversation is sent whole; of a longer one only the parts near the
quotes are sent."""
_NEAR = 500
ANSWERS = ("holds", "not", "secret", "unclear")
Answer = Literal["holds", "not", "secret", "unclear"]

REFUSAL_REASONS = {
    "joke": "it was said in play or irony",
    "supposition": "it was an if, a wish or an idea",
    "somebody_else": "it is about somebody else, or in their words",
    "withdrawn": "it was taken back",
    "question": "it was asked, not said",
    "never_said": "the words do not say it",
    "wrong_slot": "the words say something else than that",
    "wrong_target": "the words are about something else than what it would change",
}
"""What the user is told for each reason of a ``not``."""

SECRET = "it holds a secret, which is never remembered"


@dataclass(frozen=True, slots=True)
class LookRequest:
    """One candidate to look at again, or a title or summary."""

    said: tuple[tuple[str, int, int], ...]
    """(message id, start, end) of each sentence that it was quoted from; none for a title or
    summary."""
    key: str
    value: str
    relation: str
    known: str | None = None
    """The known fact that ``relation`` speaks of, as "key: value"."""
    until: str | None = None
    starts: str | None = None


@dataclass(frozen=True, slots=True)
class LookAnswer:
    """The answer of the model about one candidate."""

    answer: Answer
    reason: str = ""
    """Why not, in words for the user."""
    now: str | None = None
    """The whole value that holds now, where a part of a list changed."""
    relation: Relation | None = None
    """What it is to the known fact, where the candidate said something else."""


UNCLEAR = LookAnswer("unclear")


@dataclass(slots=True)
class SecondLook:
    """The call, for one model and set of prompts. ``usage`` collects what it took; with ``masks``
    secrets are masked before sending."""

    model: ChatModel
    prompts: Prompts
    masks: bool = False
    usage: list[Usage] = field(default_factory=list)

    def ask(
        self, requests: Sequence[LookRequest], messages: Sequence[ShownTurn]
    ) -> list[LookAnswer]:
        """An answer for each request, in order. Raises ProviderError where the provider fails."""
        call = JsonCall(self.model, "verify", self.prompts.render("verify"), json_schema())
        found: list[LookAnswer] = []
        try:
            for start in range(0, len(requests), BATCH_SIZE):
                found += _batch(call, requests[start : start + BATCH_SIZE], messages, self.masks)
        finally:
            self.usage += call.usage
        return found


def _batch(
    call: JsonCall, requests: Sequence[LookRequest], messages: Sequence[ShownTurn], masks: bool
) -> list[LookAnswer]:
    chat = [ChatMessage("user", fenced(_data(requests, messages, masks)))]
    try:
        return call.ask(chat, partial(parse_answers, ids=_ids(requests)))[0]
    except ExtractionError as error:
        log.warning("a second look could not be read: %s", error)
        return [UNCLEAR] * len(requests)


def _ids(requests: Sequence[LookRequest]) -> list[str]:
    return [f"c{n}" if request.said else request.key for n, request in enumerate(requests, 1)]


def parse_answers(reply: str, ids: Sequence[str]) -> list[LookAnswer]:
    """The answers in a model's reply, for these ids. Raises ExtractionError where it holds none."""
    data, _ = find_object(reply, {"verdicts"})
    items = data.get("verdicts") if data else None
    if not isinstance(items, list):
        raise ExtractionError("the answer holds no JSON object with a list 'verdicts'")
    found = {str(item.get("id")): _answer(item) for item in items if isinstance(item, dict)}
    return [found.get(name, UNCLEAR) for name in ids]


def json_schema() -> dict[str, Any]:
    """The schema of the answer for strict modes."""
    one = object_schema(
        id={"type": "string"},
        answer={"type": "string", "enum": list(ANSWERS)},
        why={"type": ["string", "null"], "enum": [*REFUSAL_REASONS, None]},
        **{"is": {"type": ["string", "null"], "enum": [*RELATIONS, None]}},
        now={"type": ["string", "null"]},
    )
    return object_schema(verdicts=list_schema(one))


def _answer(item: dict[str, Any]) -> LookAnswer:
    answer, why, relation = (_word(item.get(name)) for name in ("answer", "why", "is"))
    if answer == "holds":
        now = item.get("now")
        now = " ".join(now.split()) if isinstance(now, str) else ""
        return LookAnswer(
            "holds",
            now=None if now.casefold() in ("", "null", "none") else now,
            relation=RELATIONS[RELATIONS.index(relation)] if relation in RELATIONS else None,
        )
    if answer == "not":
        return LookAnswer("not", REFUSAL_REASONS.get(why, REFUSAL_REASONS["never_said"]))
    return LookAnswer("secret", SECRET) if answer == "secret" else UNCLEAR


def _word(value: Any) -> str:
    return str(value).strip().casefold()


def _data(
    requests: Sequence[LookRequest], messages: Sequence[ShownTurn], masks: bool
) -> dict[str, Any]:
    texts = {message.id: message.text for message in messages}
    hide = mask if masks else str
    candidates = []
    for name, request in zip(_ids(requests), requests, strict=True):
        if not request.said:
            continue
        words = (mark_quoted(texts[i], a, b, masks=masks) for i, a, b in request.said)
        fact = hide(request.value)
        fields = {
            "id": name,
            "from": ", ".join(dict.fromkeys(name for name, _, _ in request.said)),
            "words": " … ".join(words),
            "fact": f"{request.key}: {fact}" if fact else request.key,
            "is": request.relation,
            "known": hide(request.known or ""),
            "starts": request.starts,
            "until": request.until,
        }
        candidates.append({name: value for name, value in fields.items() if value})
    described = {request.key: hide(request.value) for request in requests if not request.said}
    shown = _dated(_shown(requests, messages, masks))
    return {"messages": shown, "candidates": candidates, **described}


def _dated(shown: Iterator[tuple[ShownTurn, str]]) -> list[dict[str, str]]:
    """The messages to send, with a day where it is another than that of the one before."""
    sent, day = [], ""
    for message, text in shown:
        said = {"said": message.said} if message.said != day else {}
        sent.append({"id": message.id, "who": message.role, **said, "text": text})
        day = message.said
    return sent


def _shown(
    requests: Sequence[LookRequest], messages: Sequence[ShownTurn], masks: bool
) -> Iterator[tuple[ShownTurn, str]]:
    """The messages to send: all, or of a long conversation the quoted ones with their neighbours,
    and those with a number of the title or summary."""
    whole = sum(len(message.text) for message in messages) <= WHOLE_CONVERSATION_LIMIT
    places = {message.id: place for place, message in enumerate(messages)}
    spots: dict[int, list[tuple[int, int]]] = {}
    for request in requests:
        for name, start, end in request.said:
            spots.setdefault(places[name], []).append((start, end))
        for number in () if request.said else sorted(numbers(request.value)):
            spot = next((n for n, m in enumerate(messages) if number in m.text), None)
            if spot is not None:
                at = messages[spot].text.index(number)
                spots.setdefault(spot, []).append((at, at + len(number)))
    beside = {at for place in spots for at in (place - 1, place + 1, place + 2)}
    for place, message in enumerate(messages):
        edges = [(0, 0), (len(message.text), len(message.text))]
        if whole:
            yield message, mark_quoted(message.text, masks=masks)
        elif place in spots or place in beside:
            yield message, _near(message.text, spots.get(place, edges), masks)


def _near(text: str, spots: Sequence[tuple[int, int]], masks: bool = False) -> str:
    """The parts of a long message around some places, with quoted text marked."""
    windows: list[tuple[int, int]] = []
    for start, end in sorted(spots):
        first, last = max(0, start - _NEAR), min(len(text), end + _NEAR)
        if windows and first <= windows[-1][1]:
            first, last = windows[-1][0], max(last, windows.pop()[1])
        windows.append((first, last))
    shown = " … ".join(mark_quoted(text, first, last, masks=masks) for first, last in windows)
    return ("…" if windows[0][0] else "") + shown + ("…" if windows[-1][1] < len(text) else "")


NOT_LOOKED_AT = "it is looked at once more when the model can be reached"
NOBODY_LOOKED = "no model has looked at it once more"
UNCLEAR_REASON = "a second look could not tell whether it holds"
OTHER_RELATION = "it holds, and it is not clear what it does to what is remembered"


Place = tuple[int, int, int]
"""(message id, start, end)."""


@dataclass(frozen=True, slots=True)
class ToldSecret:
    """A secret that the second look named, and where it stands."""

    place: Place
    words: str

    def is_in(self, places: Iterable[Place], words: str = "") -> bool:
        """Whether it stands in one of these places, or words give it away."""
        message_id, start, end = self.place
        inside = any(i == message_id and a < end and start < b for i, a, b in places)
        return inside or reveals(words, self.words)


def told_secrets(
    value: str, quotes: Iterable[Place], said: Mapping[int, str]
) -> Iterator[ToldSecret]:
    """The secret of a candidate where it stands in its quotes; all of a quote that does not have
    the value in one piece. ``said`` by message id."""
    for message_id, start, end in quotes:
        found = [(span.start, span.end) for span in find_spans(value, said[message_id])]
        own = [place for place in found if start <= place[0] < end] or [(start, end)]
        yield from (ToldSecret((message_id, *place), value) for place in own)


def place_of(proof: Proof) -> Place:
    """Where a proof stands."""
    return proof.message_id, proof.start, proof.end


def to_request(
    verdict: Verdict, turns: Mapping[str, Turn], known: Mapping[str, KnownFact]
) -> LookRequest:
    """The request for a verdict. ``turns`` by id."""
    item = verdict.candidate
    said: dict[tuple[str, int, int], None] = {}
    for proof in verdict.spans:
        around = sentence_around(turns[proof.turn_id].text, proof.start, proof.end)
        said[proof.turn_id, around.start, around.end] = None
    target = known.get(item.to) if item.to else None
    return LookRequest(
        tuple(said),
        item.key,
        item.value,
        item.relation,
        f"{target.key}: {target.value}" if target else None,
        verdict.until.isoformat() if verdict.until else None,
        verdict.starts.isoformat() if verdict.starts else None,
    )


def apply_answer(
    verdict: Verdict, look: LookAnswer, messages: Sequence[str], known: str, model: str
) -> Verdict:
    """The verdict after its second look. A new value may take its words from the quoted
    ``messages`` and from the ``known`` fact that it changes."""
    if look.answer == "secret":
        return as_secret(verdict)
    if verdict.outcome != "accept":
        return verdict
    verdict = replace(verdict, detail={"verdict": look.answer, "model": model})
    if look.answer == "not":
        return replace(verdict, outcome="refuse", reasons=(look.reason,))
    if look.answer == "unclear":
        return replace(verdict, outcome="review", reasons=(UNCLEAR_REASON,))
    item = verdict.candidate
    if look.now and item.relation == "updates":
        if values.is_supported_rewording(item.value, look.now, messages, known):
            item = item.model_copy(update={"value": look.now})
        verdict = replace(verdict, candidate=item)
    return replace(verdict, outcome="accept", reasons=())


def as_secret(verdict: Verdict) -> Verdict:
    """The verdict on a secret, without any of its words."""
    return replace(verdict.without_words(), outcome="refuse", reasons=(SECRET,))


def without_secrets(
    verdict: Verdict, told: Sequence[ToldSecret], said: Mapping[int, str]
) -> Verdict:
    """A verdict that gives none of these secrets away; ``said`` by message id."""
    if not told or verdict.wordless:
        return verdict
    item, places = verdict.candidate, [place_of(proof) for proof in verdict.spans]
    words = " \n".join((item.key, item.value, *(quote.text for quote in item.quotes)))
    if any(secret.is_in(places, words) for secret in told):
        return as_secret(verdict)
    around = [(i, sentence_around(said[i], start, end)) for i, start, end in places]
    sentences = [(i, sentence.start, sentence.end) for i, sentence in around]
    bare = any(secret.is_in(sentences) for secret in told)
    cues = tuple(cue for cue in item.cues if not any(one.is_in((), cue) for one in told))
    return replace(verdict, candidate=item.model_copy(update={"cues": cues}), bare=bare)


def with_relation(
    verdict: Verdict,
    relation: Relation | None,
    known: Mapping[str, KnownFact],
    judge: Callable[[Candidate], Verdict] | None,
) -> Verdict:
    """The verdict with the relation of a second look, as far as the checks let that stand."""
    item = verdict.candidate
    if relation in (None, item.relation) or verdict.outcome == "review":
        return verdict
    target = known.get(item.to or "")
    item = item.model_copy(update={"relation": relation})
    judged = judge(item) if judge is not None else replace(verdict, candidate=item)
    if judged.outcome != "accept":
        return judged
    now = judged.candidate
    if relation in ("new", "beside"):
        fits = may_stand_beside(now.key, target.key if target else None)
    else:
        fits = target is not None and now.relation == relation
    return judged if fits else replace(judged, outcome="review", reasons=(OTHER_RELATION,))


def may_stand_beside(key: str, target_key: str | None) -> bool:
    """Whether a fact can hold beside a known one: not in the same built-in key that holds one."""
    return key != target_key or cardinality(key) != "one"


def unlooked(verdict: Verdict, reason: str) -> Verdict:
    """A verdict without its second look: what code would store waits, for a later look or for the
    person."""
    if verdict.outcome != "accept":
        return verdict
    return replace(verdict, outcome="review", reasons=(reason,))
