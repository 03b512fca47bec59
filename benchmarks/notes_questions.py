"""Questions to fifty voice memos: what is read for each, and how a reader answers from it.

    python -m benchmarks.notes_questions FOLDER

Writes each request that has no answer yet to FOLDER/requests, exactly as a model would be sent it,
and scores the answers in FOLDER/answers (a text file of the same name for each). The last summary
is of several calls: run it again when their answers are there, and the request that joins them is
written. The memos and questions are in tests/data/notes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

from memchat import MemChat, NewNote, User
from memchat.config import Settings
from memchat.errors import ProviderError
from memchat.notes.ask import NotesAnswer
from memchat.providers import Embedder
from memchat.providers.local import MiniLMEmbedder, available
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import ChatMessage

DATA = Path(__file__).parents[1] / "tests" / "data" / "notes"
NOW = datetime.fromisoformat("2026-11-18T12:00:00+00:00")
ZONE = "Europe/Berlin"
WINDOW = 128_000
SMALL_WINDOW = 3_200
"""A window so small that the project's summary takes several calls."""
IN_PARTS = "21"
"""The number of that summary."""
SUBJECTS = {
    "memos": {
        "Summarize all my thoughts on Project Apollo": "a",
        "What have I said about the audio guide?": "a",
        "Fasse zusammen, was ich zu Projekt Apollo gesagt habe": "a",
    },
    "memos_other": {
        "Summarize all my thoughts on the allotment": "g",
        "What did I think about our garden plot this year?": "g",
    },
}
"""Subjects of twelve memos each, by the letter that their ids begin with."""
_MARK = re.compile(r'mark="[0-9a-f]+"')


@dataclass
class Reader:
    """A model that answers from files, and writes down what it has no answer for."""

    folder: Path
    name: str = ""
    """The number of the question that is asked."""
    waiting: list[str] = field(default_factory=list)
    """The requests that have no answer yet."""
    raw: list[str] = field(default_factory=list)
    """The answers to the current question, as they were written."""
    _lock: Lock = field(default_factory=Lock)

    def model(self, window: int) -> ScriptedModel:
        """The model, with a window of so many tokens."""
        return ScriptedModel([self._answer] * 500, window=window, name="offline/reader")

    def _answer(self, messages: Sequence[ChatMessage]) -> str:
        request = "\n\n".join(f"### {one.role}\n\n{one.content}" for one in messages)
        with self._lock:
            name = self._known(request) or self._write(request)
        path = self.folder / "answers" / name
        if not path.is_file():
            self.waiting.append(name)
            raise ProviderError(f"{name} has no answer yet")
        self.raw.append(path.read_text("utf-8").strip())
        return self.raw[-1]

    def _known(self, request: str) -> str | None:
        """The file of a request that was written before; its mark is drawn anew each time."""
        for path in sorted((self.folder / "requests").glob(f"{self.name}*.txt")):
            if _MARK.sub("", path.read_text("utf-8")) == _MARK.sub("", request):
                return path.name
        return None

    def _write(self, request: str) -> str:
        folder = self.folder / "requests"
        count = len([*folder.glob(f"{self.name}*.txt")])
        name = f"{self.name}.txt" if not count else f"{self.name}-{count + 1}.txt"
        (folder / name).write_text(request, "utf-8")
        return name


def lines(name: str) -> list[dict[str, Any]]:
    """The records of a file of tests/data/notes."""
    text = (DATA / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def fill(mc: MemChat, memos: Sequence[dict[str, Any]]) -> dict[int, str]:
    """Keep these memos; their ids in the file, by note."""
    new = [
        NewNote(one["text"], one["title"], created_at=datetime.fromisoformat(one["at"]))
        for one in memos
    ]
    ids = mc.user("ana").notes.add_many(new).ids
    return {i: memo["id"] for i, memo in zip(ids, memos, strict=True)}


def open_store(home: str, embedder: Embedder, model: ScriptedModel) -> MemChat:
    """The store of that folder, on the day of the questions."""
    settings = Settings(home=Path(home), timezone=ZONE)
    return MemChat(settings=settings, clock=FakeClock(NOW), embedder=embedder, chat_model=model)


def read_for_subjects(embedder: Embedder) -> Iterator[str]:
    """How many of a subject's twelve memos a summary reads, of how many in all."""
    own = lines("memos")
    others = [memo for memo in own if memo["id"][0] != "a"][:25]
    for name, subjects in SUBJECTS.items():
        memos = own if name == "memos" else [*lines(name), *others]
        model = ScriptedModel(window=WINDOW)
        with tempfile.TemporaryDirectory() as home, open_store(home, embedder, model) as mc:
            names = fill(mc, memos)
            for subject, letter in subjects.items():
                notes = mc.user("ana").notes
                surely = {h.note_id for h in notes.search(subject, limit=100).hits if h.confident}
                sources = notes.ask(subject, mode="summary").sources
                read = [names[source.note_id] for source in sources]
                right = sum(one.startswith(letter) for one in read)
                sure = sum(names[i].startswith(letter) for i in surely)
                yield f"{name:14} {sure:9} {right:6} {len(read):9}  {subject}"


def asked(user: User, reader: Reader, question: dict[str, Any]) -> tuple[NotesAnswer, bool]:
    """The answer to a question, and whether all its requests have one."""
    reader.name, waiting = question["id"], len(reader.waiting)
    reader.raw.clear()
    mode = "summary" if question["kind"] == "summary" else "answer"
    answer = user.notes.ask(question["question"], mode=mode)
    try:
        answer.read()
    except ProviderError:
        return answer, False
    return answer, len(reader.waiting) == waiting


def faults(question: dict[str, Any], answer: NotesAnswer, cited: set[str]) -> list[str]:
    """What is wrong with an answer."""
    text = answer.text.casefold()
    must, may = set(question["must"]), set(question["may"])
    least = question.get("least", {"of": [], "count": 0})
    found = [f"does not cite {', '.join(sorted(must - cited))}"] if must - cited else []
    if wrong := cited - must - may - set(least["of"]):
        found.append(f"cites {', '.join(sorted(wrong))}")
    if len(cited & set(least["of"])) < least["count"]:
        found.append(f"cites {len(cited & set(least['of']))} of {len(least['of'])}")
    found += [f"lacks {one[0]}" for one in question["words"] if not any(w in text for w in one)]
    found += [f"says {word}" for word in question["never"] if word in text]
    return found


def score(folder: Path, embedder: Embedder) -> Iterator[str]:
    """A line for each question, then the sums. Requests without an answer are written."""
    questions = lines("questions")
    project = next(one for one in questions if one["id"] == "03")
    reader = Reader(folder)
    right = total = 0
    names: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as home:
        for window, group in ((WINDOW, questions), (SMALL_WINDOW, [{**project, "id": IN_PARTS}])):
            with open_store(home, embedder, reader.model(window)) as mc:
                names = names or fill(mc, lines("memos"))
                for question in group:
                    answer, whole = asked(mc.user("ana"), reader, question)
                    if not whole:
                        yield f"{question['id']}  waits for its answer"
                        continue
                    cited = {names[source.note_id] for source in answer.cited}
                    wrong = faults(question, answer, cited)
                    total, right = total + 1, right + (not wrong)
                    counts = f"{answer.plan.calls} calls, {len(cited):2} cited"
                    said = "; ".join(wrong) or "right"
                    yield f"{question['id']}  {question['kind']:8} {counts}: {said}"
    yield f"{right} of {total} right"
    if reader.waiting:
        yield f"to be answered: {', '.join(sorted(set(reader.waiting)))}"


README = """Each file in requests/ is one request to a chat model: a system message and a person's
message. Answer each as that model would: follow the system message, read nothing but that one
request, and write the answer alone, as text, to a file of the same name in answers/.
"""


def main() -> int:
    """Write, score and print; 1 where the embedding model is not there."""
    parser = argparse.ArgumentParser(prog="benchmarks.notes_questions", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    if not available():
        print("the weights of MiniLM are not there; nothing is measured", file=sys.stderr)
        return 1
    for name in ("requests", "answers"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "README.txt").write_text(README, "utf-8")
    embedder = MiniLMEmbedder(None)
    print("subject of      confident   read  of notes (12 memos each)")
    for line in (*read_for_subjects(embedder), "", *score(folder, embedder)):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
