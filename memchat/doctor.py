"""What is in use and why, and what is wrong: the checks behind ``memchat doctor``, with one word
asked of each model where a person wants to know whether it answers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path

import sqlalchemy as sa

from memchat import disk
from memchat.config import Settings
from memchat.config.providers import WORDS_ONLY
from memchat.db import Tx, backup, jobs
from memchat.db import schema as t
from memchat.db.database import Database
from memchat.errors import ConfigError, MemChatError, ProviderError, SchemaError
from memchat.notes import rows as notes_rows
from memchat.providers import ChatModel, Embedder, factory
from memchat.providers.embedders import LiteLLMEmbedder
from memchat.providers.factory import ModelChoice
from memchat.providers.litellm_calls import key_remedy, litellm, redact
from memchat.providers.litellm_chat import LiteLLMChat
from memchat.providers.local import FETCH
from memchat.search import embeddings, passages, repair
from memchat.search.embed import EmbeddingSpace
from memchat.search.keywords import Kind
from memchat.types import ChatMessage, OnProgress, counted, timed

NAMED = "MEMCHAT_EMBED_MODEL"
WORDS = f"{NAMED}=none to search by words only"
UNUSABLE = (ConfigError, ProviderError, SchemaError)
"""Errors that mean an unusable embedding model, not an unusable store."""
REPAIR = "run memchat doctor --repair, and report this, with how you got there"
_OWNERS: dict[Kind, str] = {
    "fact": "memories", "turn": "messages", "summary": "sessions", "chunk": "chunks"
}  # fmt: skip
_Scope = tuple[int, int, int]
"""A scope row, how much is searched in it, and how much of that has a vector."""
LARGEST = 20
"""Number of scopes whose index is compared with the rows; a store may have thousands."""


@dataclass(frozen=True, slots=True)
class Check:
    """One result. ``state`` is ok, note or problem; ``remedy`` says what to do, or is empty."""

    name: str
    state: str
    detail: str
    remedy: str = ""


def examine(
    database: Database,
    settings: Settings,
    embedding_space: Callable[[], tuple[EmbeddingSpace | None, str | None]],
    redirected: Sequence[str],
) -> list[Check]:
    """All checks of a store. ``redirected`` has a sentence for each address that is not the
    provider's own.

    Calls no provider, except to learn the length of the vectors of an unknown embedding model.
    """
    space, reason, fault = None, None, None
    try:
        space, reason = embedding_space()
    except MemChatError as error:
        fault = error
    chat, extract, _ = factory.explain(settings)
    checks = [
        Check("version", "ok", f"memchat {version('memchat')}"),
        _folder(settings.home),
        Check("time zone", "ok", settings.timezone),
        _model(chat, chat.problem, chat.remedy),
        _model(extract, extract.problem, extract.remedy),
    ]
    damage = database.damage()
    if damage is not None:  # what is in it cannot be relied on
        remedy = "see memchat backup list, then run memchat restore FILE"
        return [*checks, Check("database", "problem", damage, remedy)]
    return [
        *checks,
        _embedding(database, settings, fault, reason),
        *(Check("address", "note", line) for line in redirected),
        *_store(database),
        *_backups(database),
        *_vectors(database, space, reason, fault),
        *_change(database),
        *_queue(database),
    ]


def probe(
    chat: ChatModel,
    extract: ChatModel,
    embedding_space: Callable[[], tuple[EmbeddingSpace | None, str | None]],
    progress: OnProgress | None = None,
) -> list[Check]:
    """Ask each model one word over the network: what came back, one check for each model.

    A model that has two uses is asked once; the offline stand-in has no provider to ask. Each may
    take as long as MEMCHAT_TIMEOUT says. The time includes the loading of a provider's library, a
    second or two for the first request. ``progress`` counts the models that were asked.
    """
    space, reason = None, None
    try:
        space, reason = embedding_space()
    except MemChatError as error:
        reason = str(error)
    questions: dict[str, Callable[[], str]] = {"chat and extraction": partial(_ask_chat, chat)}
    if chat.name != extract.name:
        questions = {"chat": partial(_ask_chat, chat), "extraction": partial(_ask_chat, extract)}
    if space is not None:
        questions["embedding"] = partial(_ask_embedder, space.embedder)
    report, checks = timed(progress, "models"), list[Check]()
    for uses, ask in questions.items():
        try:
            checks.append(Check("probe", "ok", f"{uses}: {ask()}"))
        except MemChatError as error:
            checks.append(Check("probe", "problem", f"{uses}: {error}"))
        report(len(checks), len(questions))
    if space is None:
        checks.append(Check("probe", "note", f"embedding: no model was asked: {reason}"))
    return checks


def _folder(home: Path) -> Check:
    """Whether other accounts can read the data folder, as they may where it is an older one."""
    if not disk.open_to_others(home):
        return Check("data folder", "ok", str(home))
    detail = f"{home} may be looked into by other accounts of this machine"
    return Check("data folder", "note", detail, f"run chmod -R go-rwx {shlex.quote(str(home))}")


def _model(choice: ModelChoice, problem: str | None, remedy: str | None) -> Check:
    said = problem or choice.note
    state = "problem" if problem else "note" if said else "ok"
    detail = f"{choice.model} ({choice.why})" + (f": {said}" if said else "")
    return Check(choice.setting.replace("_", " "), state, detail, remedy or "")


def _embedding(
    database: Database, settings: Settings, fault: MemChatError | None, reason: str | None
) -> Check:
    """The embedding model in use: a default never replaces the service of a store."""
    with database.read() as tx:
        service_id = embeddings.in_use(tx)
        service = embeddings.get_service(tx, service_id)
        has_vectors = service_id is not None and embeddings.exist_for(tx, service_id)
    stored = service.name if service else settings.embed_model
    other = stored != settings.embed_model
    named = factory.embedding_model_named(settings)
    choice = factory.explain(factory.for_store(settings, stored))[2]
    if other and choice.model == stored:
        why = f"this store has vectors of {stored}; it stays with them"
        if not has_vectors:
            why = f"this store was begun with {stored}; it stays with it"
        choice = replace(choice, why=why)
    problem = choice.problem or (str(fault) if isinstance(fault, UNUSABLE) else None)
    if choice.model != WORDS_ONLY:
        problem = problem or reason
    remedy = choice.remedy
    if problem and has_vectors and other and named:
        remedy = (
            f"unset {NAMED}: this store has vectors of {stored}, and stays with them; or run "
            f"memchat services migrate {settings.embed_model}"
        )
    elif problem and has_vectors:
        lacks_key = choice.key is not None and not choice.key_set
        key = f"{key_remedy(choice.model)}, or set {WORDS}" if lacks_key else None
        remedy = key or remedy or f"set {WORDS}"
    elif problem:
        remedy = remedy or f"set {NAMED}=minilm to embed on this machine, or {WORDS}"
    return _model(choice, problem, remedy)


def _store(database: Database) -> Iterator[Check]:
    active = sa.select(sa.func.count()).where(t.memories.c.active == 1)
    with database.read() as tx:
        rows = tx.execute(active).scalar_one()
        noted = notes_rows.total(tx)
        wrong = repair.notes_with_wrong_chunks(tx)
        stray = repair.chunks_without_note(tx)
        counts = repair.keyword_counts(tx)
        unscrubbed = tx.execute(sa.select(t.scrubs.c.id).limit(1)).first()
    size = f"{rows} memories, {counted(noted, 'note')}"
    yield Check("database", "ok", f"{database.name}, schema {t.HEAD}, {size}")
    if wrong or stray:
        detail = f"{counted(len(wrong), 'note')} with chunks that do not fit the text"
        if stray:
            detail += f", and {counted(len(stray), 'chunk')} of notes that are gone"
        yield Check("notes", "problem", detail, REPAIR)
    for kind, held, wanted in counts:
        if held != wanted:
            detail = f"{held} keyword rows for {wanted} {_OWNERS[kind]}"
            yield Check("keyword search", "problem", detail, REPAIR)
    if unscrubbed:
        yield Check(
            "forgetting", "note", "deleted words still leave the file", "run memchat jobs run"
        )


def _backups(database: Database) -> Iterator[Check]:
    """The backups that hold what was forgotten since they were made."""
    for path in backup.find(database.home):
        held = backup.holds_forgotten(path, database.path)
        if held is not False:
            what = "still holds" if held else "cannot be compared with the store, and may hold"
            detail = f"{path.name} {what} words that were forgotten or deleted"
            yield Check("backup", "note", detail, "memchat backup prune NAME deletes one")


def _vectors(
    database: Database, space: EmbeddingSpace | None, reason: str | None, fault: MemChatError | None
) -> Iterator[Check]:
    if fault is not None:
        if not isinstance(fault, UNUSABLE):  # else the embedding model's check shows it
            yield Check("vectors", "problem", str(fault))
        return
    if space is None:
        yield Check("vectors", "note", f"none: {reason}")
        return
    damage = factory.damaged_weights(space.embedder)
    if damage is not None:
        yield Check("weights", "problem", damage, FETCH)
    with database.read() as tx:
        scopes = passages.coverage(tx, space.service_id, "fact")
        noted = passages.coverage(tx, space.service_id, "chunk")
        drifted = _drifted(tx, space, "fact", scopes) | _drifted(tx, space, "chunk", noted)
    if drifted:
        detail = f"the index differs from the rows in {len(drifted)} scopes"
        remedy = "run memchat doctor --repair; it is made anew from the rows"
        yield Check("vectors", "problem", detail, remedy)
        return
    counts = [_summed(scopes, "memories")]
    if noted:
        counts.append(_summed(noted, "chunks of notes"))
    detail = f"{', '.join(told for told, _ in counts)}, {space.embedder.service.name}"
    most = max(len(scopes), len(noted))
    if most > LARGEST:
        detail += f"; index compared in the {LARGEST} largest of {most} scopes"
    state = "ok" if all(whole for _, whole in counts) else "note"
    yield Check("vectors", state, detail, "" if state == "ok" else "run memchat backfill")


def _drifted(tx: Tx, space: EmbeddingSpace, kind: Kind, scopes: Sequence[_Scope]) -> set[int]:
    """The largest of these scope rows in which the index differs from the rows."""
    return {
        app_id
        for app_id, _, _ in scopes[:LARGEST]
        if space.index.ids(tx, app_id, kind)
        != passages.embedded_ids(tx, space.service_id, app_id, kind)
    }


def _summed(scopes: Sequence[_Scope], what: str) -> tuple[str, bool]:
    """How many have a vector, in words, and whether all have one."""
    total, held = sum(rows for _, rows, _ in scopes), sum(held for _, _, held in scopes)
    return f"{held} of {total} {what}", held == total


def _change(database: Database) -> Iterator[Check]:
    with database.read() as tx:
        coming = embeddings.coming(tx)
        service = embeddings.get_service(tx, coming)
        lacking = passages.count_lacking(tx, coming) if coming is not None else 0
    if service is not None:
        detail = f"the change to {service.name} is begun; {lacking} texts have no vector of it yet"
        remedy = f"run memchat services migrate {service.name}, or memchat services rm --force"
        yield Check("service", "note", detail, remedy)


def _queue(database: Database) -> Iterator[Check]:
    with database.read() as tx:
        failed = jobs.listed(tx, user=None, status="failed", now=tx.now, limit=1)
        due, late = jobs.due_kinds(tx, None, tx.now), jobs.overdue(tx, tx.now - OVERDUE)
        gone = jobs.dead_holders(tx)
    if failed:
        remedy = "see memchat jobs status; memchat jobs run tries it again"
        yield Check("queue", "problem", f"failed: {failed[0].error_message}", remedy)
    elif late:
        waiting = f"{counted(late, 'conversation')} should have been read by now; no worker runs"
        yield Check("queue", "problem", waiting, "memchat worker reads them, and what comes later")
    elif due:
        yield Check("queue", "note", "work is waiting", "memchat jobs run does it now")
    elif not gone:
        yield Check("queue", "ok", "nothing waits")
    for one in gone:
        yield Check("queue", "note", one.message, "memchat jobs run does them now")


OVERDUE = timedelta(hours=1)
"""A conversation that is not read so long after it was due waits for a worker that is not there."""
QUESTION = "Answer with one word: hello"
LONGEST = 40
"""Characters of an answer that are shown."""


def _ask_chat(model: ChatModel) -> str:
    if model.stand_in:
        return f"{model.name}, the stand-in on this machine; there is no provider to ask"
    if isinstance(model, LiteLLMChat):
        litellm()  # its import takes seconds that are not the provider's
    began = time.perf_counter()
    answer = model.complete([ChatMessage("user", QUESTION)], purpose="probe")
    seconds = time.perf_counter() - began
    said = " ".join(redact(answer.text).split())
    if len(said) > LONGEST:
        said = f"{said[:LONGEST]}…"
    return f'{model.name} answered "{said}" in {seconds:.1f} s'


def _ask_embedder(embedder: Embedder) -> str:
    through_litellm = isinstance(embedder, LiteLLMEmbedder)
    if through_litellm:
        litellm()
    began = time.perf_counter()
    vector, _ = embedder.embed_query("hello")
    seconds = time.perf_counter() - began
    # Ollama counts as local too, but it is another program and perhaps on another machine.
    alone = embedder.service.local and not through_litellm
    where = ", on this machine; nothing was sent" if alone else ""
    name = embedder.service.name
    return f"{name} gave a vector of {len(vector)} numbers in {seconds:.1f} s{where}"
