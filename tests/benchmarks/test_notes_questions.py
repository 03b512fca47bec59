"""The questions to fifty memos are written out, answered from files and scored."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import notes_questions
from memchat.testing import HashEmbedder


def played(folder: Path) -> dict[str, str]:
    """The lines of a run, by the number of the question."""
    for name in ("requests", "answers"):
        (folder / name).mkdir(exist_ok=True)
    lines = notes_questions.score(folder, HashEmbedder())
    return {line.partition(" ")[0]: line for line in lines}


def test_requests_are_written_and_answers_scored_also_those_of_a_summary_in_parts(
    tmp_path: Path,
) -> None:
    first = played(tmp_path)
    requests = tmp_path / "requests"
    parts = sorted(path.name for path in requests.glob("21*.txt"))
    assert len(parts) > 1 and first["21"] == "21  waits for its answer"
    assert "tidal-Anchor" not in "".join(path.read_text("utf-8") for path in requests.iterdir())
    number = re.search(
        r"\[(\d+)\] Marketing budget, decided", (requests / "01.txt").read_text("utf-8")
    )
    assert number is not None
    answers = tmp_path / "answers"
    (answers / "01.txt").write_text(f"On 11 November: 26,000 [{number[1]}].", "utf-8")
    (answers / "09.txt").write_text("[none] The notes do not say.", "utf-8")
    (answers / "04.txt").write_text("The launch is tomorrow.", "utf-8")
    for name in parts:
        (answers / name).write_text("- It begins [1]", "utf-8")
    second = played(tmp_path)
    assert second["01"].endswith("1 cited: right") and second["09"].endswith("0 cited: right")
    assert second["04"].endswith("does not cite a07; lacks 30 march; says tomorrow")
    joined = [path.name for path in requests.glob("21*.txt") if path.name not in parts]
    assert len(joined) == 1
    assert "It begins [1]" in (requests / joined[0]).read_text("utf-8")
