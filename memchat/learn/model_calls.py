"""The two calls of the extraction model: reading a conversation in windows, and the second look.

Data is sent as one fenced object. An answer that cannot be used is sent back once, with the reason;
one that may be incomplete is followed by requests for the rest. In a second look the model answers
``holds``, ``not``, ``secret`` or ``unclear`` about each proposal that code did not refuse, with its
sentences and the conversation around them; one that it leaves out is unclear. Title and summary are
sent along, to be dropped where they are secret."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Literal, TypeVar

from memchat.errors import ExtractionError
from memchat.facts.keys import cardinality
from memchat.language.secrets import mask, reveals
from memchat.language.sentences import find_spans, sentence_around
from memchat.language.text import numbers
from memchat.learn import candidate, values
from memchat.learn.candidate import (
    MAX_FACTS,
    RELATIONS,
    Candidate,
    ExtractionAnswer,
    KnownFact,
    Proof,
    Relation,
    Turn,
    Verdict,
    find_object,
    list_schema,
    object_schema,
)
from memchat.learn.own_words import mark_quoted
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, OwnTypes, Usage, offered

Found = TypeVar("Found")

_BAD_ANSWER_SHOWN = 4_000


class JsonCall:
    """The calls for one purpose, with their instructions and the schema of the answer. What they
    took is added to ``usage``."""

    def __init__(
        self,
        model: ChatModel,
        purpose: str,
        instructions: str,
        schema: dict[str, Any],
        usage: list[Usage],
    ) -> None:
        self._usage = usage
        self.model = model
        self.instructions = instructions
        self._purpose = purpose
        self._schema = schema
        if not model.schema_mode:
            shape = json.dumps(schema, separators=(",", ":"))
            instructions = f"{instructions}\nIts JSON schema: {shape}\n"
        self._system = ChatMessage("system", instructions)

    def ask(self, chat: Sequence[ChatMessage], read: Callable[[str], Found]) -> tuple[Found, str]:
        """What ``read`` finds in the reply to a chat, and the reply.

        A reply for which it raises ExtractionError is sent back once with the reason. Raises
        ProviderError when the provider fails, ExtractionError when the second reply is of no use.
        """
        reply = self._complete(chat)
        try:
            return read(reply), reply
        except ExtractionError as error:
            again = f"That could not be used: {error}. Answer with the JSON object alone."
        shown = reply[:_BAD_ANSWER_SHOWN] or "(nothing)"
        again_chat = [*chat, ChatMessage("assistant", shown), ChatMessage("user", again)]
        reply = self._complete(again_chat)
        try:
            return read(reply), reply
        except ExtractionError as error:
            raise ExtractionError(
                f"{self.model.name} gave no answer that can be used, also when asked again: "
                f"{error}; try again, or name another model"
            ) from None

    def _complete(self, chat: Sequence[ChatMessage]) -> str:
        sent = [self._system, *chat]
        completion = self.model.complete(sent, purpose=self._purpose, schema=self._schema)
        self._usage.append(completion.usage)
        return completion.text


log = logging.getLogger(__name__)

KNOWN_LIMIT = 2_000
MORE_ROUNDS = 3
"""How often a full answer is asked for the rest."""
ASK_FOR_MORE = "Now the facts after these that are still missing, if any."


@dataclass(frozen=True, slots=True)
class Window:
    """The turns that one call reads, and the turns before them as context."""

    transcript: tuple[Turn, ...]
    """Of a very long turn a part."""
    context: tuple[Turn, ...] = ()


class Extractor(JsonCall):
    """The call that reads the windows of a conversation, and its follow-ups."""

    def __init__(
        self, model: ChatModel, prompts: Prompts, usage: list[Usage], own: OwnTypes
    ) -> None:
        instructions = prompts.render("extract", limit=str(MAX_FACTS))
        if own:
            instructions += prompts.render("types", types=offered(own))
        super().__init__(model, "extract", instructions, candidate.json_schema(own), usage)

    def read(
        self, window: Window, known: Sequence[tuple[KnownFact, str]], keys: Sequence[str]
    ) -> list[ExtractionAnswer]:
        """The answers to one window and to its follow-ups. ``known`` comes nearest first, each with
        the day it was learnt.

        Raises ProviderError when the provider fails, ExtractionError when its answer is of no use
        even after one repair.
        """
        answers: list[ExtractionAnswer] = []
        seen: set[str] = set()
        chat = [ChatMessage("user", render_data(window, known, keys))]
        for _ in range(1 + MORE_ROUNDS):
            answer, reply = self.ask(chat, _parsed)
            new = [item for item in answer.facts if item.model_dump_json() not in seen]
            seen |= {item.model_dump_json() for item in new}
            answers.append(answer.model_copy(update={"facts": tuple(new)}))
            if not new or not (answer.more or len(answer.facts) >= MAX_FACTS):
                break
            chat += [ChatMessage("assistant", reply), ChatMessage("user", ASK_FOR_MORE)]
        return answers


def _parsed(reply: str) -> ExtractionAnswer:
    answer = candidate.parse(reply)
    if answer.broken:
        log.warning("%d items of an answer could not be read", len(answer.broken))
    return answer


def render_data(window: Window, known: Sequence[tuple[KnownFact, str]], keys: Sequence[str]) -> str:
    """The fenced data object: the turns to read, the turns before them, known facts that may be
    meant, and common keys that are free. No text in it can close the fence, because ``<`` is
    escaped."""
    data = {
        "transcript": [_marked(turn) for turn in window.transcript],
        "context": [_marked(turn) for turn in window.context],
        "known": [_as_sent(fact, learned) for fact, learned in fitting(known)],
        "keys": list(keys),
    }
    return fenced(data)


def _marked(turn: Turn) -> dict[str, str]:
    text = mark_quoted(turn.text)
    return {"id": turn.id, "role": turn.role, "said": _day(turn), "text": text}


def _day(turn: Turn) -> str:
    return f"{turn.said_at:%Y-%m-%d %a}"


def fenced(data: dict[str, Any]) -> str:
    """Data as one JSON object between two marks that no text in it can predict."""
    mark = secrets.token_hex(4)
    return f'<data mark="{mark}">\n{_sent(data)}\n</data mark="{mark}">'


def _sent(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def fitting(known: Sequence[tuple[KnownFact, str]]) -> list[tuple[KnownFact, str]]:
    """The first of these facts that a call has room for."""
    used = accumulate(len(_sent(_as_sent(fact, learned))) + 2 for fact, learned in known)
    return [one for one, total in zip(known, used, strict=True) if total <= KNOWN_LIMIT]


def _as_sent(fact: KnownFact, learned: str) -> dict[str, Any]:
    item = {
        "id": fact.id,
        "type": fact.memory_type,
        "key": fact.key,
        "value": fact.value,
        "holds": "many" if fact.many else "one",
        "learned": learned,
    }
    return item if fact.starts is None else item | {"starts": fact.starts.isoformat()}


CONTEXT_TURNS = 4
PIECE_OVERLAP = 200
LARGEST = 12_000
"""Tokens of a window, whatever the model could hold: cheap models lose the middle of long ones."""
MOST_WINDOWS = 8
"""Windows that one message takes if nobody asked to read all of it. Of a longer message half of
them are read at its beginning and half at its end."""
NEVER_LONG = 1_000
"""Characters that fit ``MOST_WINDOWS`` of any model, in any script."""
LEFT_OUT = "[{count:,} characters in the middle of this message are left out]"
"""What the model is shown at the gap."""
_CONTEXT_CHARACTERS = 1_500


def cut(
    turns: Sequence[Turn], first_unread: int, window_tokens: int, shortened: Collection[int] = ()
) -> list[Window]:
    """Windows over ``turns[first_unread:]``; the turns before it are context for the first. Of the
    messages with the ids ``shortened`` only the beginning and the end are read, where they would
    take more than ``MOST_WINDOWS``.

    A window ends at a turn, and is shown the last turns of the one before as context. A single
    message larger than a window is read in overlapping pieces.
    """
    room = window_room(window_tokens)
    windows: list[Window] = []
    used = room
    for place, turn in enumerate(turns[first_unread:], first_unread):
        for part in _parts(turn, room, whole=turn.message_id not in shortened):
            cost = estimate_tokens(part.text) + 20
            if not windows or used + cost > room:
                before = turns[max(0, place - CONTEXT_TURNS) : place]
                context = (replace(one, text=one.text[-_CONTEXT_CHARACTERS:]) for one in before)
                windows.append(Window((), tuple(context)))
                used = 0
            windows[-1] = replace(windows[-1], transcript=(*windows[-1].transcript, part))
            used += cost
    return windows


def count(content: str, window_tokens: int) -> int:
    """How many windows it takes to read all of a message."""
    return len(_pieces(content, window_room(window_tokens)))


def is_long(content: str, window_tokens: int) -> bool:
    """Whether only the beginning and the end of a message are read if nobody asked for more."""
    return count(content, window_tokens) > MOST_WINDOWS


def window_room(window_tokens: int) -> int:
    """How many tokens of turns a window has."""
    return max(500, min(window_tokens // 2, LARGEST))


def _parts(turn: Turn, room: int, *, whole: bool) -> list[Turn]:
    """A turn as the parts that the model is shown of it."""
    pieces = _pieces(turn.text, room)
    words = [turn.text[piece] for piece in pieces]
    if not whole and len(words) > MOST_WINDOWS:
        half = MOST_WINDOWS // 2
        mark = LEFT_OUT.format(count=pieces[-half].start - pieces[half - 1].stop)
        words[half - 1] += f"\n{mark}"
        words[-half] = f"{mark}\n{words[-half]}"
        words = [*words[:half], *words[-half:]]
    return [replace(turn, text=part) for part in words]


def _pieces(content: str, room: int) -> list[slice]:
    """The places of the overlapping pieces in which all of a message is read, or of the whole."""
    tokens = estimate_tokens(content)
    if tokens <= room:
        return [slice(0, len(content))]
    size = max(room * len(content) // tokens, 2 * PIECE_OVERLAP)
    starts = range(0, max(1, len(content) - PIECE_OVERLAP), size - PIECE_OVERLAP)
    return [slice(start, min(start + size, len(content))) for start in starts]


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

    sentences: tuple[tuple[str, int, int], ...]
    """(message id, start, end) of each sentence that it was quoted from; none for a title or
    summary."""
    key: str
    value: str
    relation: str
    known: str | None = None
    """The known fact that ``relation`` speaks of, as "key: value"."""
    until: str | None = None
    starts: str | None = None
    sentence: str = ""
    """The fact in one plain sentence, where there is one."""


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
    tells: bool = False
    """Whether the sentence says just the fact."""


UNCLEAR = LookAnswer("unclear")


class SecondLook(JsonCall):
    """The call for a second look; with ``masks`` secrets are masked before sending."""

    def __init__(
        self, model: ChatModel, prompts: Prompts, usage: list[Usage], *, masks: bool
    ) -> None:
        super().__init__(model, "verify", prompts.render("verify"), json_schema(), usage)
        self._masks = masks

    def answers(
        self, requests: Sequence[LookRequest], messages: Sequence[Turn]
    ) -> list[LookAnswer]:
        """An answer for each request, in order. Raises ProviderError where the provider fails."""
        found: list[LookAnswer] = []
        for start in range(0, len(requests), BATCH_SIZE):
            batch = requests[start : start + BATCH_SIZE]
            chat = [ChatMessage("user", fenced(_data(batch, messages, self._masks)))]
            try:
                found += self.ask(chat, partial(parse_answers, ids=_ids(batch)))[0]
            except ExtractionError as error:
                log.warning("a second look could not be read: %s", error)
                found += [UNCLEAR] * len(batch)
        return found


def _ids(requests: Sequence[LookRequest]) -> list[str]:
    return [f"c{n}" if request.sentences else request.key for n, request in enumerate(requests, 1)]


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
        tells={"type": ["boolean", "null"]},
    )
    return object_schema(verdicts=list_schema(one))


def _answer(item: dict[str, Any]) -> LookAnswer:
    answer, why, relation = (_word(item.get(name)) for name in ("answer", "why", "is"))
    if answer == "holds":
        now = item.get("now")
        now = " ".join(now.split()) if isinstance(now, str) else ""
        new = None if now.casefold() in ("", "null", "none") else now
        known = next((one for one in RELATIONS if one == relation), None)
        return LookAnswer("holds", now=new, relation=known, tells=item.get("tells") is True)
    if answer == "not":
        return LookAnswer("not", REFUSAL_REASONS.get(why, REFUSAL_REASONS["never_said"]))
    return LookAnswer("secret", SECRET) if answer == "secret" else UNCLEAR


def _word(value: Any) -> str:
    return str(value).strip().casefold()


def _data(requests: Sequence[LookRequest], messages: Sequence[Turn], masks: bool) -> dict[str, Any]:
    texts = {message.id: message.text for message in messages}
    hide = mask if masks else str
    candidates = []
    for name, request in zip(_ids(requests), requests, strict=True):
        if not request.sentences:
            continue
        words = (mark_quoted(texts[i], a, b, masks=masks) for i, a, b in request.sentences)
        fact = hide(request.value)
        fields = {
            "id": name,
            "from": ", ".join(dict.fromkeys(name for name, _, _ in request.sentences)),
            "words": " … ".join(words),
            "fact": f"{request.key}: {fact}" if fact else request.key,
            "sentence": hide(request.sentence),
            "is": request.relation,
            "known": hide(request.known or ""),
            "starts": request.starts,
            "until": request.until,
        }
        candidates.append({name: value for name, value in fields.items() if value})
    described = {request.key: hide(request.value) for request in requests if not request.sentences}
    shown = _dated(_shown(requests, messages, masks))
    return {"messages": shown, "candidates": candidates, **described}


def _dated(shown: Iterator[tuple[Turn, str]]) -> list[dict[str, str]]:
    """The messages to send, with a day where it is another than that of the one before."""
    sent, day = [], ""
    for message, text in shown:
        said = {} if _day(message) == day else {"said": _day(message)}
        sent.append({"id": message.id, "who": message.role, **said, "text": text})
        day = _day(message)
    return sent


def _shown(
    requests: Sequence[LookRequest], messages: Sequence[Turn], masks: bool
) -> Iterator[tuple[Turn, str]]:
    """The messages to send: all, or of a long conversation the quoted ones with their neighbours,
    and those with a number of the title or summary."""
    whole = sum(len(message.text) for message in messages) <= WHOLE_CONVERSATION_LIMIT
    places = {message.id: place for place, message in enumerate(messages)}
    spots: dict[int, list[tuple[int, int]]] = {}
    for request in requests:
        for name, start, end in request.sentences:
            spots.setdefault(places[name], []).append((start, end))
        for number in () if request.sentences else sorted(numbers(request.value)):
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


MessageSpan = tuple[int, int, int]
"""(message id, start, end)."""


@dataclass(frozen=True, slots=True)
class FoundSecret:
    """A secret that the second look named, and where it stands."""

    place: MessageSpan
    words: str

    def is_in(self, places: Iterable[MessageSpan], words: str = "") -> bool:
        """Whether it stands in one of these places, or words give it away."""
        message_id, start, end = self.place
        inside = any(i == message_id and a < end and start < b for i, a, b in places)
        return inside or reveals(words, self.words)


def found_secrets(
    value: str, quotes: Iterable[MessageSpan], said: Mapping[int, str]
) -> Iterator[FoundSecret]:
    """The secret of a candidate where it stands in its quotes; all of a quote that does not have
    the value in one piece. ``said`` by message id."""
    for message_id, start, end in quotes:
        found = [(span.start, span.end) for span in find_spans(value, said[message_id])]
        own = [place for place in found if start <= place[0] < end] or [(start, end)]
        yield from (FoundSecret((message_id, *place), value) for place in own)


def span_of(proof: Proof) -> MessageSpan:
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
        item.sentence,
    )


def apply_answer(
    verdict: Verdict, look: LookAnswer, messages: Sequence[str], known: str, model: str
) -> Verdict:
    """The verdict after its second look. A new value may take its words from the quoted
    ``messages`` and from the ``known`` fact that it changes."""
    if look.answer == "secret" or (verdict.suspect and look.answer == "unclear"):
        return as_secret(verdict)
    verdict = replace(verdict, suspect=False)
    if not look.tells:
        verdict = replace(verdict, candidate=verdict.candidate.model_copy(update={"sentence": ""}))
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
            item = item.model_copy(update={"value": look.now, "sentence": ""})
        verdict = replace(verdict, candidate=item)
    return replace(verdict, outcome="accept", reasons=())


def as_secret(verdict: Verdict) -> Verdict:
    """The verdict on a secret, without any of its words."""
    hidden = verdict.without_words()
    return replace(hidden, outcome="refuse", reasons=(SECRET,), suspect=False)


def without_secrets(
    verdict: Verdict, told: Sequence[FoundSecret], said: Mapping[int, str]
) -> Verdict:
    """A verdict that gives none of these secrets away; ``said`` by message id."""
    if not told or verdict.wordless:
        return verdict
    item, places = verdict.candidate, [span_of(proof) for proof in verdict.spans]
    words = " \n".join((item.key, item.value, item.sentence, *(q.text for q in item.quotes)))
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
    if verdict.suspect:
        return as_secret(verdict)
    if verdict.outcome != "accept":
        return verdict
    return replace(verdict, outcome="review", reasons=(reason,))
