"""How clean the memory keeps itself: one table, with the goals and the usual way beside them.

    python -m benchmarks.lifecycle [--model M | --answers FILE] [--record FILE] [--data DIR]

Two rows need a model that judges: any litellm model by name, or a file of its recorded answers. All
others are the code's own. Ends with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import answers as recorded
from benchmarks.lifecycle import table
from memchat.errors import MemChatError


def main() -> int:
    """Measure, print; 1 where a goal is missed, 2 where it could not be measured."""
    parser = argparse.ArgumentParser(description="how clean the memory keeps itself")
    judge = parser.add_mutually_exclusive_group()
    judge.add_argument("--model", help="a litellm model, asked now, e.g. gemini/gemini-2.5-flash")
    judge.add_argument("--answers", type=Path, help="a file that --record wrote")
    parser.add_argument("--record", type=Path, help="write what the model said to this file")
    parser.add_argument("--data", type=Path, help="the folder that holds memorybench_dev.json")
    parser.add_argument("--secrets", type=Path, help="lines to use in place of the project's own")
    parser.add_argument("--only", help="some parts of the table, by name, with commas between")
    parser.add_argument("--json", action="store_true", help="for programs")
    args = parser.parse_args()
    try:
        judge_answers = None
        if args.model:
            judge_answers = recorded.named(args.model)
        elif args.answers:
            judge_answers = recorded.Answers(None, args.answers)
        parts = table.every_part(judge_answers, args.data, args.secrets)
        if args.only:
            parts = {name: parts[name] for name in args.only.split(",")}
        figures = table.make(parts)
        if args.record and judge_answers is not None:
            judge_answers.save(args.record)
    except MemChatError as error:
        print(error, file=sys.stderr)
        return 2
    print(table.as_json(figures) if args.json else table.as_text(figures))
    return 1 if table.is_missed(figures) else 0


if __name__ == "__main__":
    sys.exit(main())
