"""A person's workflows: kept, checked, shared with programs and run; and what their runs did."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from memchat import types
from memchat.api import base
from memchat.db import Tx, apps, jobs, schema
from memchat.errors import InputError, NotFound
from memchat.workflows import rows


class Workflows(base.Resource):
    """The workflows of one person in one app: steps that search notes, ask a model or call a tool
    of an MCP server. docs/workflows.md says how one is written."""

    def list(self) -> Sequence[types.WorkflowInfo]:
        """The workflows, by slug. Those that come with memchat are among them."""
        with self._database.read(self._scope) as tx:
            return [*rows.listed(tx).values()]

    def get(self, slug: str) -> types.WorkflowInfo:
        """One workflow. Raises NotFound where there is none."""
        for one in self.list():
            if one.slug == slug:
                return one
        raise NotFound(f"there is no workflow {slug!r} here", see="workflow list")

    def validate(self, definition: str) -> Sequence[types.WorkflowProblem]:
        """What is wrong in the JSON text of a workflow, each with its line and field; nothing where
        it can be run."""
        from memchat.workflows.definition import problems

        return problems(definition)

    def add(self, definition: str) -> types.WorkflowInfo:
        """Keep a workflow, of which this is the JSON text, in the place of one of its slug. From
        now on it runs by itself where its ``when`` says so: ``note``, or a schedule in the zone of
        the settings. A worker does that. Raises InputError, with line and field, for what cannot be
        run."""
        from memchat.workflows.definition import read

        one = read(definition)
        with self._database.write(self._scope, ensure=True) as tx:
            rows.put(tx, one, definition)
        return self.get(one.slug)

    def delete(self, slug: str) -> base.Changed:
        """Delete a workflow that was added; its runs stay for as long as they are kept. One that
        comes with memchat is there again as it was, and runs by hand alone. Raises NotFound where
        none was added."""
        with self._database.write(self._scope) as tx:
            if not rows.delete(tx, slug):
                raise NotFound(f"no workflow {slug!r} was added here", see="workflow list")
        return base.Changed(1)

    def share(self, slug: str, program: str, *, on: bool = True) -> types.WorkflowInfo:
        """Let a program, by the name that it calls under, run a workflow that was added, or no
        longer. Raises NotFound where it was not added."""
        name = types.one_line(program, "name of the program", types.CLIENT_NAME_LIMIT)
        with self._database.write(self._scope) as tx:
            there = rows.listed(tx).get(slug)
            if there is None or not there.added:
                raise NotFound(f"no workflow {slug!r} was added here; add it first")
            rest = {*there.shared_with} - {name}
            shared = json.dumps(sorted(rest | {name} if on else rest), ensure_ascii=False)
            rows.change_workflow(tx, slug, shared_with=shared)
        return self.get(slug)

    def run(
        self,
        slug: str,
        text: str = "",
        *,
        note_id: int | None = None,
        on_text: Callable[[str, str], object] | None = None,
        ask: Callable[[str], bool] | None = None,
    ) -> types.WorkflowRun:
        """Run a workflow on a text, or on a note, and wait until it has ended, or waits for a yes.

        ``on_text`` is told of each step by its id: an empty text as it begins, then what it gives,
        of a model in pieces. ``ask`` is given a question before a tool is called that may change
        something, and says whether to call it; without it the run waits, and the question is in the
        inbox. What goes wrong in a step is the ``error`` of the run, which keeps what came before.
        Raises NotFound where there is no such workflow or note.
        """

        def begin(tx: Tx) -> int:
            if note_id is None:
                return rows.begin(tx, slug, types.clean_text(text).strip())
            note = self._found_note(tx, note_id)
            return rows.begin(tx, slug, note.text, note=(note.id, note.title, note.created_at))

        return self._do(begin, on_text, ask)

    def runs(self, slug: str | None = None, *, limit: int = 50) -> Sequence[types.WorkflowRun]:
        """The latest runs, of one workflow or of all, the newest first. They are kept for 30
        days."""
        base.check_count(limit)
        only = () if slug is None else (schema.workflow_runs.c.slug == slug,)
        with self._database.read(self._scope) as tx:
            return rows.runs(tx, *only, limit=limit)

    def get_run(self, run_id: int) -> types.WorkflowRun:
        """One run. Raises NotFound outside the scope."""
        with self._database.read(self._scope) as tx:
            return rows.run(tx, run_id)

    def resume(
        self,
        run_id: int,
        *,
        yes: bool = False,
        on_text: Callable[[str, str], object] | None = None,
        ask: Callable[[str], bool] | None = None,
    ) -> types.WorkflowRun:
        """Go on with a run that waits, was stopped or broken off, or failed. No step that is done
        is done again. With ``yes`` the tool that it waits for is called, once. Raises InputError
        for a run that is done, and without ``yes`` or ``ask`` for one that waits."""

        def begin(tx: Tx) -> int:
            run = rows.run(tx, run_id)
            if run.state == "done":
                raise InputError(f"run {run_id} is done; run its workflow again")
            if run.state == "waiting" and not (yes or ask):
                raise InputError(f"run {run_id} waits for a yes to: {run.steps[-1].call}")
            if run.state != "running" or jobs.due_at(tx, rows.KIND, run_id) is None:
                rows.go_on(tx, run, yes=yes)
            return run_id

        return self._do(begin, on_text, ask)

    def stop(self, run_id: int) -> types.WorkflowRun:
        """Stop a run: what is being done ends soon, and nothing else is begun. ``resume`` goes on
        with it. Raises InputError for one that is done, NotFound outside the scope."""
        with self._database.write(self._scope) as tx:
            if rows.run(tx, run_id).state == "done":
                raise InputError(f"run {run_id} is done already")
            rows.stop(tx, run_id)
        return self.get_run(run_id)

    def _do(
        self,
        begin: Callable[[Tx], int],
        on_text: Callable[[str, str], object] | None = None,
        ask: Callable[[str], bool] | None = None,
    ) -> types.WorkflowRun:
        worker = self._assembly.parts().worker
        run = worker.begin_run(lambda tx: begin(apps.ensure(tx, self._scope)))
        run.on_text, run.ask = on_text or run.on_text, ask
        run.go()
        return self.get_run(run.claim.target_id)
