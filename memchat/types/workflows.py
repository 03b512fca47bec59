"""Workflows, and what their runs did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkflowProblem:
    """What is wrong in the text of a workflow, and where."""

    line: int
    field: str
    """Its place, as ``steps.0.config.query``; empty for the text as a whole."""
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.field + ': ' if self.field else ''}{self.message}"


@dataclass(frozen=True, slots=True)
class WorkflowInfo:
    """A workflow that the person added, or one that comes with memchat."""

    slug: str
    name: str
    description: str
    definition: str
    """Its JSON text."""
    added: bool
    """False for one that comes with memchat: it runs by hand alone until it is added."""
    when: str | None = None
    """When it runs by itself: ``note``, or a schedule such as ``every monday 8:00``."""
    next_at: datetime | None = None
    """When its schedule comes next."""
    shared_with: tuple[str, ...] = ()
    """The programs that may run it."""


@dataclass(frozen=True, slots=True)
class RunStep:
    """What a step of a run did."""

    id: str
    type: str
    state: str
    """done; failed; calling (a tool is at work); unknown (whether the tool was called to its end is
    not known); waiting (for a yes to its call); or allowed."""
    text: str = ""
    value: Any = None
    """The same as JSON, where the step gives more than a text."""
    call: str = ""
    """The tool and its arguments, without secrets."""
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """One run of a workflow."""

    id: int
    slug: str
    state: str
    """running, waiting (for a yes), interrupted (its process ended; a worker or ``resume`` goes on
    with it), stopped, failed or done."""
    trigger: str
    """hand, note, schedule, or ``program`` and the name of the one that asked for it."""
    text: str
    """What it was given."""
    steps: tuple[RunStep, ...]
    """The steps so far, in their order."""
    error: str | None
    """Why it failed; it begins with the step."""
    created_at: datetime
    finished_at: datetime | None

    @property
    def output(self) -> str:
        """The text of the last step that was done."""
        return next((one.text for one in reversed(self.steps) if one.state == "done"), "")

    @property
    def cost_usd(self) -> float:
        """What its models cost so far, as far as that is known."""
        return sum(one.cost_usd for one in self.steps)
