"""Doing the steps of a run, one after the other, and what becomes of its result.

Each step is stored with what it gave before the next one begins, so that a run that was broken off
goes on behind it. That a tool is about to be called is stored first: where the process ended before
the answer came, nobody knows whether the call was carried out, and it is not made again unless the
server says that this does no harm, or the person says yes.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from memchat import types
from memchat.config import Settings
from memchat.db import Tx, apps, jobs, usage
from memchat.db.database import Database
from memchat.errors import InputError, MemChatError, NotFound, ProviderError, StoreError
from memchat.facts import keys, proposals
from memchat.language.secrets import mask
from memchat.language.text import has_words
from memchat.learn.values import VALUE_LIMIT
from memchat.notes import index
from memchat.notes import rows as notes
from memchat.notes.rows import Filter
from memchat.providers import ChatModel, Embedder, ReplyText
from memchat.workflows import definition, rows
from memchat.workflows.definition import INPUT, Output, fill

if TYPE_CHECKING:
    from memchat.search.search import Recall

OnText = Callable[[str, str], object]
"""Is told of a step by its id: an empty text as it begins, then the pieces of what it gives."""
Ask = Callable[[str], bool]
"""Puts a question to the person; whether it got a yes."""
NO_MODEL = "No model is set up. This is what the steps before found:"
LOOK_SECONDS = 0.5
"""How often a run looks whether it was stopped, while a model answers."""
MOST_ITEMS = 50
"""The lines of a result that wait in the inbox."""
LONGEST, DEEPEST = 1_000_000, 100
"""Characters that a tool may answer, and lists in one another."""
_LINE = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(\S.*)$", re.MULTILINE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _is_deep(value: Any, levels: int = DEEPEST) -> bool:
    """Whether a value of JSON has more lists and objects in one another."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not levels or any(_is_deep(one, levels - 1) for one in inner)


class _Ended(Exception):
    """The run is over for now, in the state that it is raised with."""


@dataclass
class Run:
    """A run that this process does."""

    database: Database
    settings: Settings
    recall: Callable[[], Recall]
    model: Callable[[str], ChatModel]
    """The model of a tier: fast, balanced or high."""
    embedder: Callable[[], Embedder | None]
    claim: jobs.Claim
    on_text: OnText = lambda *_: None
    ask: Ask | None = None
    """Asks before a tool that may change something is called; without it the run waits, and the
    question is in the inbox."""
    steps: dict[str, types.RunStep] = field(default_factory=dict)
    values: dict[str, Output] = field(default_factory=dict)
    given: dict[str, Output] = field(default_factory=dict)
    """The values with which the step began that is being done."""
    masked: Callable[[str], str] = field(default_factory=lambda: cache(mask))
    looked_at: float = 0.0

    def go(self, *, unattended: bool = False) -> None:
        """Do what is left to do, and finish the job. What goes wrong in a step becomes the run's
        ``error``. In an unattended run it is raised as well where a later try may help, and the job
        is left to be tried again."""
        with self.database.write() as tx:
            row = rows.row_of(tx, self.claim.target_id)
            if row is None or row.state in ("stopped", "done"):
                jobs.finish(tx, [self.claim], tx.now)
                return
            rows.change(tx, row.id, state="running", error=None)
            self.now, self.scope = tx.now, types.Scope(row.user, row.app)
            self.workflow = definition.read(row.definition)
            switch = apps.memory_switch(tx, self.scope)
        at = self.workflow.steps[0].id
        try:
            if self.workflow.result == "inbox" and not switch.on:
                raise InputError(f"{switch.reason}, so its result cannot wait in the inbox")
            for step in self.workflow.steps:
                at = step.id
                self.look()
                if at not in self.values:
                    self.do(step)
            self.look()
            self.finish("done")
        except _Ended as ended:
            self.finish(str(ended))
        except MemChatError as error:
            again = unattended and isinstance(error, ProviderError) and error.retryable
            said = str(error).removeprefix(f"step {at}: ")
            self.finish("failed", f"step {at}: {said}", keep_job=again)
            if again:
                raise
        except Exception as error:
            self.finish("failed", f"step {at}: unexpected {type(error).__name__}")
            raise
        except BaseException:  # as Ctrl-C
            self.finish("stopped")
            raise

    def look(self) -> None:
        """Take up what is stored: it may have been stopped, or lost words that were forgotten."""
        self.looked_at = time.monotonic()
        with self.database.read() as tx:
            row = self.row(tx)
        self.steps, self.values = rows.steps_of(row), self.values_of(row)

    def values_of(self, row: Any) -> dict[str, Output]:
        """What the variables hold by a row, without the secrets of what the run was given."""
        given = {name: self.masked(one) for name, one in json.loads(row.input).items()}
        values = {name: Output(one, one) for name, one in given.items()}
        for one in rows.steps_of(row).values():
            if one.state == "done":
                values[one.id] = Output(one.text, one.text if one.value is None else one.value)
        return values

    def row(self, tx: Tx) -> Any:
        """The row of the run, if it was not stopped."""
        row = rows.row_of(tx, self.claim.target_id)
        if row is None or row.state == "stopped":
            raise _Ended("stopped")
        return row

    def do(self, step: definition.Step) -> None:
        """Do a step and store what it gave."""
        self.on_text(step.id, "")
        begun, config, self.given = time.monotonic(), step.config, self.values
        done = types.RunStep(step.id, step.type, "done")
        if isinstance(config, definition.MemoryQuery):
            done = self.find(done, config)
        elif isinstance(config, definition.LLMGeneration):
            done = self.generate(done, config)
        else:
            done = self.call(done, config)
        self.keep(replace(done, seconds=round(time.monotonic() - begun, 3)))
        if not done.model:
            self.on_text(step.id, done.text)

    def keep(self, step: types.RunStep) -> None:
        """Store how a step stands, if the run is still this worker's and was not stopped."""
        with self.database.write() as tx:
            row, until = self.row(tx), tx.now + timedelta(seconds=jobs.LEASE_SECONDS)
            if not jobs.renew(tx, [self.claim], until):
                raise StoreError("another process has taken over the run")
            if self.values_of(row) != self.given:
                raise InputError("words that it was given were forgotten meanwhile")
            found = step.value if step.type == definition.TYPES[0] else ()
            read = json.dumps([*json.loads(row.notes), *(one["id"] for one in found)])
            rows.change(tx, row.id, {**rows.steps_of(row), step.id: step}.values(), notes=read)
            if step.model:
                counts = (step.prompt_tokens, step.completion_tokens, step.cost_usd, step.seconds)
                spent = types.Usage("workflow", step.model, *counts)
                usage.add(tx, self.claim.app_id, None, spent)

    def finish(self, state: str, error: str | None = None, *, keep_job: bool = False) -> None:
        """Store how the run ended, and its result, if it is still this worker's."""
        one, prepared = self.workflow, None
        text = self.values[one.steps[-1].id].text if state == "done" else ""
        if one.result == "note" and has_words(text):
            title = f"{one.name}, {self.now.astimezone(self.settings.zone):%F}"
            new = types.NewNote(text, title, rows.NOTE_TYPE, f"run {self.claim.target_id}")
            prepared = index.Cutter(self.embedder()).prepare(new)
        with self.database.write() as tx:
            row = rows.row_of(tx, self.claim.target_id)
            held = keep_job or jobs.finish(tx, [self.claim], tx.now)
            if row is None or row.state == "stopped" or not held:
                return
            if prepared is not None:
                index.write(tx, self.claim.app_id, prepared)
            if one.result == "inbox":
                for match in [*_LINE.finditer(text)][:MOST_ITEMS]:
                    proposals.add(tx, self.claim.app_id, self.item(match[1], tx.today))
            rows.change(tx, row.id, state=state, error=error)

    def item(self, line: str, today: date) -> types.Proposal:
        """A line of a result, as what waits for a yes. The first day in it is its last."""
        words, last = types.first_words(mask(line), VALUE_LIMIT), None
        with suppress(ValueError, IndexError):
            last = date.fromisoformat(_DAY.findall(words)[0])
        return types.Proposal(
            f"the workflow “{self.workflow.name}” found it",
            memory_type="other",
            key=keys.normalise_key(self.workflow.slug),
            value=words,
            expires_at=last if last is not None and last >= today else None,
        )

    def find(self, done: types.RunStep, config: definition.MemoryQuery) -> types.RunStep:
        """The notes that a query finds, as a model is given them; without a query the latest."""
        from memchat.notes.ask import MOST_TOKENS, NOTHING_FOUND, Passages, sources
        from memchat.notes.search import Finder

        query, zone = str(fill(config.query, self.values, done.id)).strip(), self.settings.zone
        days, most, hits = config.date_range_days, config.top_k, []
        wanted = Filter(since=None if days is None else self.now - timedelta(days=days))
        if query:
            recall = self.recall()
            question = recall.question(query)
            found = Finder(recall, self.scope, question, wanted, self.now, zone).best(most)
            hits = [*found.hits, *found.others][:most]
        with self.database.read(self.scope) as tx:
            latest = [] if query else notes.listed(tx, [tx.own], wanted, limit=most)
            # A review is not made of the one before.
            ids = [hit.note_id for hit in hits]
            ids += [note.id for note in latest if note.type != rows.NOTE_TYPE]
            every = {i: note for i in ids if (note := notes.get(tx, [tx.own], i)) is not None}
        given = sources(hits, every) or [
            types.NoteSource(n, i, one.title, one.created_at, (whole,))
            for n, (i, one) in enumerate(every.items(), 1)
            for whole in [types.NotePassage(0, len(one.text), one.text)]
        ]
        passages = Passages(every, zone)
        room = min(MOST_TOKENS, self.model("balanced").window // 2)
        given = passages.parts(given, room)[0] if given else []
        blocks = [passages.block(one) for one in given]
        if not config.include_metadata:
            blocks = [f"[{n}]\n{one.partition(chr(10))[2]}" for n, one in enumerate(blocks, 1)]
        value = [
            {
                "id": one.note_id,
                "title": mask(one.title or ""),
                "date": f"{one.created_at.astimezone(zone):%F}",
                "text": mask(one.text),
            }
            for one in given
        ]
        return replace(done, text="\n\n".join(blocks) or NOTHING_FOUND, value=value)

    def generate(self, done: types.RunStep, config: definition.LLMGeneration) -> types.RunStep:
        """What a model answers. The stand-in gives what the steps before found."""
        model, most = self.model(config.cost_tier), self.workflow.max_cost_usd
        if (cost := sum(one.cost_usd for one in self.steps.values())) >= most:
            raise InputError(f"the run has cost ${cost:.4f}, and may cost ${most:.4f}")
        prompt, system = (
            str(fill(one, self.values, done.id)) for one in (config.prompt, config.system_prompt)
        )
        if model.stand_in:
            found = [one.text for name, one in self.values.items() if name not in INPUT]
            text = "\n\n".join([NO_MODEL, *found]) if found else prompt
            self.on_text(done.id, text)
            return replace(done, text=text, model=model.name)
        asked = [types.ChatMessage("system", system)] if system else []
        text = ""
        with closing(model.stream([*asked, types.ChatMessage("user", prompt)])) as stream:
            reply = ReplyText(stream)
            for piece in reply:
                text += piece
                self.on_text(done.id, piece)
                if time.monotonic() - self.looked_at > LOOK_SECONDS:
                    self.look()
        if reply.cut:
            raise ProviderError(reply.cut, retryable=True)
        took = stream.usage
        return replace(
            done,
            text=text,
            model=took.model,
            prompt_tokens=took.prompt_tokens,
            completion_tokens=took.completion_tokens,
            cost_usd=took.cost_usd or 0.0,
        )

    def call(self, done: types.RunStep, config: definition.MCPTool) -> types.RunStep:
        """What a tool answers, called if it changes nothing, or with a yes."""
        from memchat.providers import mcp_client

        arguments = rows.mapped(fill(config.arguments, self.values, done.id), mask)
        client = mcp_client.MCPClient(mcp_client.find(self.settings.home, config.server))
        marks = {one.name: one.annotations for one in client.tools()}
        if config.tool not in marks:
            raise NotFound(f"the server {config.server!r} has no tool {config.tool!r}")
        mark = marks[config.tool]
        harmless = bool(mark and mark.read_only_hint)
        told = f"{config.tool} of {config.server} with {json.dumps(arguments, ensure_ascii=False)}"
        state = self.steps[done.id].state if done.id in self.steps else ""
        mine = replace(done, state="calling", call=told)
        if state in ("calling", "unknown") and not (harmless or (mark and mark.idempotent_hint)):
            asked = f"It is not known whether this was done: {told}. Call it again?"
            self.agree(replace(mine, state="unknown"), asked)
        elif state not in ("calling", "unknown", "allowed") and not harmless:
            self.agree(replace(mine, state="waiting"), f"Call {told}?")
        self.keep(mine)
        try:
            answer = client.call(config.tool, arguments)
            value, too_long = answer.structured, len(answer.text) > LONGEST
            with suppress(ValueError, RecursionError):
                value = json.loads(answer.text) if value is None and not too_long else value
            if too_long or _is_deep(value) or len(json.dumps(value)) > LONGEST:
                most = f"{LONGEST:,} characters, or than {DEEPEST} lists in one another"
                raise InputError(f"the tool answered more than {most}")
        except MemChatError as error:
            # Where no answer came, nobody knows whether it was done: it is not simply tried again.
            refused = isinstance(error, InputError)
            self.keep(replace(mine, state="failed" if refused else "unknown"))
            raise InputError(str(error)) from error
        return replace(mine, state="done", text=answer.text, value=value)

    def agree(self, step: types.RunStep, question: str) -> None:
        """Go on with a yes of the person; without anybody to ask, that is waited for in the
        inbox."""
        self.keep(step)
        if self.ask is not None and not self.ask(question):
            raise _Ended("stopped")
        if self.ask is None:
            why = f"the workflow “{self.workflow.name}” asks before it may change something"
            with self.database.write() as tx:
                proposals.ask_about_run(tx, self.claim.app_id, self.claim.target_id, question, why)
            raise _Ended("waiting")
