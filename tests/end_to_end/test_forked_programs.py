"""The programs that tests fork are like those that a person starts, and none is left behind."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.forks import Piped

WAITS = "import time; print('at work', flush=True); time.sleep(20); print('left behind')"


def test_a_program_ends_with_the_test_run_that_started_it(tmp_path: Path) -> None:
    program = Piped(WAITS, [], env={}, cwd=tmp_path)
    assert program.stdout.readline() == "at work\n"
    os.close(program._told)  # as when the run is killed
    assert program.stdout.read() == ""
    for stream in (program.stdin, program.stdout, program.stderr):
        stream.close()


def test_a_program_is_given_an_environment_of_any_length(tmp_path: Path) -> None:
    long = {f"NAME_{n}": "x" * 100_000 for n in range(12)}
    shown = "import os; print(sum(len(value) for value in os.environ.values()))"
    program = Piped(shown, [], env=long, cwd=tmp_path)
    assert program.communicate(20)[0] == "1200000\n"
