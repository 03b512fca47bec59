"""Topics: the notes and conversations that speak of the same, found by the vectors that they have.

Each note is the mean of its chunks, each conversation of what the person said in it; each is in one
topic or in none. Ward's method merges them, and the silhouette says how many groups there are. The
words that set a topic apart are counted whenever it is shown (c-TF-IDF), so that no word of what
was forgotten stays.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from memchat.db import Tx
from memchat.db import schema as t
from memchat.db.database import Database
from memchat.db.records import among
from memchat.language import text
from memchat.language.secrets import mask, mask_part
from memchat.notes import rows
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.search import embeddings, render
from memchat.types import ChatMessage, Note, Scope, Topic, Usage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memchat.search.embeddings import Vectors

    Groups = NDArray[np.int64]

LEAST = 3
"""The fewest notes and conversations of a topic; what is alone with one other belongs to none."""
SHARE = 5
"""There are so many notes and conversations to a topic at least, on average."""
MOST = 100
"""Topics of an app."""
FEWEST = 2 * SHARE
"""Notes and conversations with which topics are found."""
SAMPLED = 1_500
"""Vectors by which groups are found; further ones join the nearest group."""
ROUNDS = 10
"""Times that each may move to the nearest group."""
WORDS = 6
"""Words of a topic."""
READ = 20
"""Notes and conversations of a topic whose words are counted, the newest ones."""
READ_CHARS = 1_000
ALONE = 1 / 3
"""The share of a word's places that has to be in a topic, for the word to tell it."""
_NO_SUBJECT = text.NUMBER_WORDS.keys() | text.DATE_WORDS.keys()
_KINDS = re.compile(r"\[[^\]]*\]")
"""What stands for secrets."""
NAME_LIMIT = 60
SUGGESTED = 5
"""Tags that are suggested for a note."""
_s, _n, _c, _t = t.sessions.c, t.sources.c, t.chunks.c, t.topics.c
_m = t.memories.c
_tags = sa.union_all(
    sa.select(t.memory_tags.c.tag, _m.app_id).join_from(t.memory_tags, t.memories),
    sa.select(t.note_tags.c.tag, _n.app_id).join_from(t.note_tags, t.sources),
).subquery()
_IN_USE = sa.select(_tags.c.tag).where(among(_tags.c.app_id, "ids")).group_by(_tags.c.tag)
_IN_USE = _IN_USE.order_by(sa.func.count().desc(), _tags.c.tag)
_NEWEST = sa.select(sa.func.max(t.changes.c.id)).where(t.changes.c.app_id == sa.bindparam("app"))
_OF_PROGRAMS = sa.select(t.clients.c.session_id).where(t.clients.c.session_id.is_not(None))
_MEMBERS = {table: sa.select(table.c.id, table.c.topic_id) for table in (t.sources, t.sessions)}
Member = tuple[sa.Table, int]
Placed = tuple[datetime, sa.Table, int]
"""A member and when it was said or written."""


def groups(vectors: Vectors, seed: int = 0) -> Groups:
    """The group of each of these vectors, ``FEWEST`` at least, from 0 on; -1 for those in none."""
    every = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    # The rank of a row stays when rows follow it, so that the sample stays as well.
    chosen = np.argsort(np.random.default_rng(seed).random(len(every)))[:SAMPLED]
    some = every[chosen]
    near = some @ some.T
    found = max(_merged(near), key=lambda found: _silhouette(near, found))
    for _ in range(ROUNDS):
        nearest = (every @ _centres(some, found).T).argmax(1)
        some, found = every, np.unique(nearest, return_inverse=True)[1]
    large = np.bincount(found) >= LEAST
    numbers: Groups = np.where(large, np.cumsum(large) - 1, -1)[found]
    return numbers


def _merged(near: Vectors) -> Iterator[Groups]:
    """The groups of vectors of length 1 with these products, from the most to two: the two whose
    merging adds least to the squared distances from the means are merged (Ward)."""
    total, most = len(near), min(len(near) // SHARE, MOST)
    sizes, found = np.ones(total), np.arange(total)
    costs = 1 - near.astype(np.float64)
    np.fill_diagonal(costs, np.inf)
    for left in range(total - 1, 1, -1):
        one, other = divmod(int(costs.argmin()), total)
        ours, theirs = (sizes[n] + sizes for n in (one, other))
        parts = ours * costs[one] + theirs * costs[other] - sizes * costs[one, other]
        costs[one] = costs[:, one] = parts / (ours + sizes[other])
        costs[other] = costs[:, other] = np.inf
        sizes[one] += sizes[other]
        found[found == other] = one
        if left <= most:
            yield np.unique(found, return_inverse=True)[1]


def _silhouette(near: Vectors, found: Groups) -> float:
    """How much nearer each vector is to its own group than to the next, on average, from -1 to
    1."""
    inside = np.eye(found.max() + 1, dtype=np.float32)[found]
    sizes, here = inside.sum(0), np.arange(len(found))
    apart = (1 - near) @ inside
    own = apart[here, found] / np.maximum(sizes[found] - 1, 1)
    means = apart / sizes
    means[here, found] = np.inf
    other = means.min(1)
    score = (other - own) / np.maximum(np.maximum(own, other), 1e-9)
    return float(np.where(sizes[found] > 1, score, 0).mean())


def _centres(every: Vectors, found: Groups) -> Vectors:
    sums = np.zeros((found.max() + 1, every.shape[1]), np.float32)
    np.add.at(sums, found, every)
    means: Vectors = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    return means


def members(tx: Tx, app_id: int) -> tuple[list[Member], Vectors]:
    """The notes and conversations of a scope row that have vectors, each with their sum."""
    service = embeddings.in_use(tx) or 0
    found = embeddings.of_kind(tx, service, "chunk", app_id)
    notes = dict(tx.execute(sa.select(_c.id, _c.source_id).where(among(_c.id, found.ids))).all())
    said = [
        ((t.sources, notes[i]), vector)
        for i, vector in zip(found.ids, found.vectors, strict=True)
        if i in notes
    ]
    turns, programs = embeddings.of_turns(tx, service, app_id), set(tx.column(_OF_PROGRAMS))
    said += [
        ((t.sessions, session_id), np.frombuffer(blob, "<f4"))
        for _, session_id, by_user, blob in turns
        if by_user and blob is not None and session_id not in programs
    ]
    places: dict[Member, int] = {}
    into = np.array([places.setdefault(member, len(places)) for member, _ in said], int)
    sums = np.zeros((len(places), len(said[0][1]) if said else 0), np.float32)
    if said:
        np.add.at(sums, into, np.stack([vector for _, vector in said]))
    return list(places), sums


def find(database: Database, scope: Scope) -> None:
    """Find the topics of an app anew. No transaction waits for that."""
    with database.read(scope) as tx:
        there, vectors = members(tx, tx.own)
    if len(there) < FEWEST:
        return
    found = dict(zip(there, groups(vectors).tolist(), strict=True))
    with database.write(scope) as tx:
        keep(tx, tx.own, found)


def keep(tx: Tx, app_id: int, found: Mapping[Member, int]) -> None:
    """Have these groups be the topics of a scope row. One that has most of what a topic had is that
    topic."""
    before: dict[Member, int | None] = {
        (table, row[0]): row[1]
        for table in _MEMBERS
        for row in tx.execute(_MEMBERS[table].where(table.c.app_id == app_id))
    }
    shared = Counter((before[one], group) for one, group in found.items() if before.get(one))
    sizes = Counter(map(before.get, found))
    ids: dict[int, int] = {}
    for (topic_id, group), count in shared.most_common():
        if topic_id is not None and 2 * count > sizes[topic_id]:
            ids.setdefault(group, topic_id)
    made = {"made_at": tx.now, "change_id": tx.value(_NEWEST, app=app_id) or 0}
    for group in sorted({*found.values()} - {-1}):
        if group not in ids:
            ids[group] = tx.insert(t.topics, app_id=app_id, **made)
    changed: defaultdict[tuple[sa.Table, int | None], list[int]] = defaultdict(list)
    for member, group in found.items():
        if (new := ids.get(group)) != before.get(member):
            changed[member[0], new].append(member[1])
    for (table, new), these in changed.items():
        tx.execute(sa.update(table).where(among(table.c.id, these)).values(topic_id=new))
    mine = _t.app_id == app_id
    tx.execute(sa.delete(t.topics).where(mine, ~among(_t.id, ids.values())))
    tx.execute(sa.update(t.topics).where(mine).values(**made))


def listed(tx: Tx, app_id: int) -> list[Topic]:
    """The topics of a scope row, the largest first."""
    called = dict(tx.execute(sa.select(_t.id, _t.name).where(_t.app_id == app_id)).all())
    there: defaultdict[int, list[Placed]] = defaultdict(list)
    for table, at in ((t.sources, _n.created_at), (t.sessions, _s.started_at)):
        query = sa.select(table.c.topic_id, at, table.c.id)
        for topic_id, when, i in tx.execute(query.where(among(table.c.topic_id, called))):
            there[topic_id].append((when, table, i))
    words = _words(tx, there)
    found = []
    for topic_id, its in there.items():
        times = sorted(when for when, _, _ in its)
        notes = sum(table is t.sources for _, table, _ in its)
        months = Counter(f"{when.astimezone(tx.zone):%Y-%m}" for when in times)
        about = (words[topic_id], notes, len(its) - notes, times[0], times[-1], dict(months))
        found.append(Topic(topic_id, called[topic_id], *about))
    return sorted(found, key=lambda one: (-one.notes - one.sessions, one.id))


def _words(tx: Tx, there: Mapping[int, Sequence[Placed]]) -> dict[int, tuple[str, ...]]:
    """The words that set each topic apart: those that many of its texts have, and few others."""
    newest = {i: sorted(its, reverse=True, key=itemgetter(0))[:READ] for i, its in there.items()}
    said = _texts(tx, [(table, i) for its in newest.values() for _, table, i in its])
    counts = {
        i: Counter(w for _, *one in its for w in text.content_words(said.get(tuple(one), "")))
        for i, its in newest.items()
    }
    every = sum(counts.values(), Counter[str]())
    mean = sum(every.values()) / max(len(counts), 1)
    found = {}
    for topic_id, one in counts.items():
        telling = {
            word: count * float(np.log(1 + mean / every[word]))
            for word, count in one.items()
            if count > 1 and count > every[word] * ALONE and word not in _NO_SUBJECT
        }
        kept: list[str] = []
        for word in sorted(telling, key=lambda word: (-telling[word], word)):
            if len(kept) < WORDS and not any(text.holds_word(word, known) for known in kept):
                kept.append(word)
        found[topic_id] = tuple(kept)
    return found


def _texts(tx: Tx, wanted: Sequence[Member]) -> dict[tuple[Any, ...], str]:
    """The beginnings of notes and what conversations are about, without secrets."""
    notes = [i for table, i in wanted if table is t.sources]
    talks = [i for table, i in wanted if table is t.sessions]
    part = sa.func.substr(rows.embedded_text, 1, READ_CHARS)
    query = sa.select(_n.id, _n.title, part).join_from(t.sources, t.chunks)
    found: dict[tuple[Any, ...], str] = {
        (t.sources, i): f"{mask(title or '')}\n{words}"
        for i, title, words in tx.execute(query.where(_c.position == 0, among(_n.id, notes)))
    }
    m = t.messages.c
    said = sa.select(sa.func.substr(m.content, 1, READ_CHARS)).where(m.session_id == _s.id)
    said = said.where(m.role == "user", t.searched_messages).order_by(m.id).limit(1)
    about = sa.func.coalesce(_s.summary, said.scalar_subquery(), "")
    of_talks = sa.select(_s.id, sa.func.coalesce(_s.title, ""), about).where(among(_s.id, talks))
    for i, title, words in tx.execute(of_talks):
        found[t.sessions, i] = mask(f"{title}\n{words}")
    return {member: _KINDS.sub(" ", words) for member, words in found.items()}


def name(tx: Tx, app_id: int, called: Mapping[int, str]) -> None:
    """Have these be the names of topics of a scope row, by their ids."""
    for topic_id, given in called.items():
        mine = sa.update(t.topics).where(_t.id == topic_id, _t.app_id == app_id)
        tx.execute(mine.values(name=given))


def suggested(tx: Tx, note: Note) -> list[str]:
    """Tags that may fit a note: those in use whose words it has, words of its topic that it has,
    and what it says again and again."""
    whole = f"{note.title or ''}\n{note.text}"
    said = _KINDS.sub(" ", mask_part(whole, 0, min(len(whole), READ_CHARS)))
    used = tx.column(_IN_USE, ids=tx.ids)
    topic = [one for one in listed(tx, tx.own) if one.id == note.topic_id]
    folded, capital = text.fold(said).text, {text.fold(word).text for word in text.names(said)}
    heard = {word: folded.count(word) for word in text.content_words(said)}
    found = [
        tag
        for tag in used
        if all(text.holds_word(said, w, loosely=False) for w in tag.split("-") if w)
    ]
    found += [word for one in topic for word in one.words if word in heard]
    often = sorted(heard, key=lambda word: (-heard[word], word))
    found += [word for word in often if heard[word] > (1 if word in capital else 2)]
    return [tag for tag in dict.fromkeys(found) if tag not in note.tags][:SUGGESTED]


def named(
    model: ChatModel, prompts: Prompts, found: Sequence[Topic], titles: Mapping[int, Sequence[str]]
) -> tuple[dict[int, str], Usage]:
    """What a model calls these topics, by their ids, asked for all of them at once."""
    lines = [
        f"{topic.id}. {', '.join(topic.words)}; {' · '.join(titles.get(topic.id, ()))}"
        for topic in found
    ]
    listing = "\n".join(render.escaped(mask(" ".join(line.split()))) for line in lines)
    system = prompts.render("topics", mark=render.new_mark(), topics=listing)
    asked = [ChatMessage("system", system), ChatMessage("user", "Name these topics.")]
    said = model.complete(asked, purpose="notes")
    told = re.findall(r"^\W*(\d+)[.:)]\s*(\S.*?)\s*$", said.text, re.MULTILINE)
    names = {int(i): text.visible_text(words)[:NAME_LIMIT] for i, words in told}
    return {topic.id: names[topic.id] for topic in found if topic.id in names}, said.usage
