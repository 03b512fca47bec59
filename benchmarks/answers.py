"""An extraction model for evaluations: any litellm model, or its answers read from a file.

One line of such a file is one call: ``{"case": …, "purpose": …, "model": …, "answer": raw text}``;
a case that took several calls has several lines, in their order. ``purpose`` is extract, or verify
for the second look, whose lines are replayed apart. Answers name facts by key and value.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import names
from memchat.errors import ConfigError, ProviderError
from memchat.providers import ChatModel, ChatStream, Completion
from memchat.testing import ScriptedModel
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Usage


class Answers:
    """A ``ChatModel`` that answers for a named case, and keeps what was answered.

    What stands in ``taught`` is answered first and not kept: the lines that set a case up. A second
    look at them finds that they hold.
    """

    def __init__(self, model: ChatModel | None, recorded: Path | None = None) -> None:
        self.taught = ScriptedModel(name="set-up")
        self.case = ""
        self.kept: list[dict[str, str]] = []
        self.missing: set[str] = set()
        self.spent: Counter[str] = Counter()
        """Prompt and completion tokens by purpose; estimated where they were recorded."""
        self.looks: Counter[str] = Counter()
        """The tokens that the second look took, by case."""
        self.looked: set[str] = set()
        """The cases that a second look was asked about, whatever came of it."""
        self.calls: list[tuple[str, str]] = []
        """Case and purpose of each call."""
        self._model = model
        self._raw: list[str] = []
        self._setting_up = False
        self._recorded: dict[tuple[str, bool], deque[str]] = {}
        lines = _read(recorded) if recorded is not None else []
        for line in lines:
            case = line["case"], line.get("purpose") == "verify"
            self._recorded.setdefault(case, deque()).append(line["answer"])
        models = sorted({line["model"] for line in lines})
        self.name = model.name if model is not None else ", ".join(models)
        self.by = self.name if model is not None else f"recorded answers ({self.name})"
        self.stand_in = model is not None and model.stand_in
        self.window = 8192 if model is None else model.window
        self.schema_mode = model is not None and model.schema_mode
        self.tools = self.sees = False

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> ChatStream:
        """Not asked for: this model only reads."""
        raise ProviderError(f"{self.name} answers no chat here; give the chat another model")

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """The next answer of the case. Raises ProviderError where none was recorded."""
        if purpose == "extract":
            self._setting_up = bool(self.taught.replies)
        if self._setting_up:
            if purpose == "verify":
                usage = Usage(purpose, self.taught.name, 0, 0, None, 0.0)
                return Completion(every(messages, "holds"), usage)
            return self.taught.complete(messages, purpose=purpose, schema=schema)
        if purpose == "verify":
            self.looked.add(self.case)
        if self._model is not None:
            done = self._model.complete(messages, purpose=purpose, schema=schema)
        else:
            done = self._replay(messages, purpose)
        spent = done.usage.prompt_tokens + done.usage.completion_tokens
        self.spent[purpose] += spent
        if purpose == "verify":
            self.looks[self.case] += spent
        self.calls.append((self.case, purpose))
        self._raw.append(done.text)
        answer = names.by_name(done.text, messages)
        line = {"case": self.case, "purpose": purpose, "model": self.name, "answer": answer}
        self.kept.append(line)
        return done

    @property
    def tokens(self) -> int:
        """What all calls took."""
        return self.spent.total()

    def said(self, case: str, purpose: str = "extract") -> list[str]:
        """The raw answers of a case so far."""
        made = zip(self.calls, self._raw, strict=True)
        return [text for call, text in made if call == (case, purpose)]

    def save(self, path: Path) -> None:
        """Write what was answered, so that it can be replayed."""
        lines = (json.dumps(line, ensure_ascii=False) for line in self.kept)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _replay(self, messages: Sequence[ChatMessage], purpose: str) -> Completion:
        if purpose == "verify" and not any(look for _, look in self._recorded):
            # Only readings were recorded: what is counted is what code lets pass of them.
            return Completion(every(messages, "holds"), Usage(purpose, self.name, 0, 0, None, 0.0))
        left = self._recorded.get((self.case, purpose == "verify"))
        if not left:
            self.missing.add(self.case)
            raise ProviderError(
                f"no answer is recorded for {self.case} ({purpose}); record it with --model"
            )
        text = names.by_id(left.popleft(), messages)
        sent = sum(estimate_tokens(message.content) for message in messages)
        usage = Usage(purpose, self.name, sent, estimate_tokens(text), None, 0.0)
        return Completion(text, usage)


def named(model: str) -> Answers:
    """The answers of a litellm model, asked now, with the settings of the environment."""
    from memchat import config
    from memchat.providers import factory

    return Answers(factory.extract_model(config.load().with_(extract_model=model)))


def every(messages: Sequence[ChatMessage], answer: str) -> str:
    """A second look that says the same of each candidate."""
    asked = names.data_of(messages).get("candidates", ())
    verdicts = [
        {"id": one["id"], "answer": answer, "why": "a double", "now": None, "tells": True}
        for one in asked
    ]
    return json.dumps({"verdicts": verdicts})


def _read(path: Path) -> list[dict[str, str]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"the answers in {path.name} cannot be read: {error}") from error
    if not all({"case", "model", "answer"} <= line.keys() for line in found):
        raise ConfigError(f"{path.name}: each line needs case, model and answer")
    return found
