"""What the checks and the second look let stand, of honest and of wrong proposals.

    python -m benchmarks.second_look [--only everyday,wrong,texts,attacks,heldout] [--file FILE]
        [--judges holds,not,… | --model M | --recorded FILE | --ask FOLDER | --answers FOLDER]
        [--record FILE] [--reasons] [--list] [--json FILE]

Honest and wrong proposals of a conversation go in one answer of the extraction model, in an order
shuffled by a fixed seed. By hand: ``--ask`` writes a file for each second look and answers none; a
reader who sees only these writes FOLDER/answer/NAME.txt; ``--answers`` plays them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import answers as recorded
from benchmarks.answers import Answers
from benchmarks.lifecycle import attacks
from benchmarks.lifecycle.stage import real_embedder
from benchmarks.second_look import table
from benchmarks.second_look.corpus import DATA, Line, read
from benchmarks.second_look.judges import DOUBLES, ByHand, Judge, by_model, double, right
from benchmarks.second_look.play import Result, play
from memchat.config import Settings
from memchat.errors import MemChatError
from memchat.providers import Embedder

FILES: Mapping[str, tuple[str, str | None]] = {
    "everyday": ("everyday_dev.jsonl", "everyday_wrong.jsonl"),
    "wrong": ("wrong_facts.jsonl", None),
    "texts": ("other_texts.jsonl", None),
    "heldout": ("everyday_heldout.jsonl", None),
}
ATTACKS = "attacks"
USUAL = ("everyday", "wrong", "texts", ATTACKS)


def main(argv: Sequence[str] | None = None, embedder: Embedder | None = None) -> int:
    """Measure and print."""
    args = _parser().parse_args(argv)
    try:
        by_hand = _by_hand(args)
        corpora = _corpora(args)
        judges = _judges(args, by_hand, corpora)
        seen: list[Result] = []
        kept: list[dict[str, str]] = []
        report: dict[str, dict[str, Any]] = {}
        for name, lines in corpora.items():
            for judge in judges:
                played = play(lines, judge, embedder or real_embedder())
                seen += played.results if judge is judges[0] else []
                kept += played.kept
                report[f"{name}, {judge.name}"] = table.figures(played)
                _tell(args, table.as_text(name, judge.name, played))
                if args.list and name != FILES["heldout"][0]:
                    _tell(args, table.not_as_wished(played.results))
        if ATTACKS in _names(args):
            for judge in judges:
                _tell(args, _attacks(judge))
        if args.reasons:
            _tell(args, table.reasons_text(seen))
        if args.record:
            _record(args.record, kept, judges)
        if args.json:
            args.json.write_text(json.dumps(report, ensure_ascii=False, indent=1), encoding="utf-8")
        if by_hand is not None:
            print(_of_hand(by_hand))
    except MemChatError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="second_look", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default=",".join(USUAL), help=f"of {', '.join(FILES)}, {ATTACKS}")
    parser.add_argument("--file", type=Path, action="append", help="another file instead")
    parser.add_argument(
        "--wrong", type=Path, help="wrong proposals to the everyday lines of --file"
    )
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--judges", default=",".join(DOUBLES), help=f"doubles, of {', '.join(DOUBLES)}"
    )
    who.add_argument("--model", help="a litellm model, asked now")
    who.add_argument("--recorded", type=Path, help="a file that --record wrote")
    who.add_argument("--ask", type=Path, metavar="FOLDER", help="write what a reader is to answer")
    who.add_argument("--answers", type=Path, metavar="FOLDER", help="play what a reader answered")
    parser.add_argument("--record", type=Path, help="write what the second look said to this file")
    parser.add_argument("--reasons", action="store_true", help="what each reason caught and cost")
    parser.add_argument("--list", action="store_true", help="name each that is not as wished")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser


def _names(args: argparse.Namespace) -> list[str]:
    return [] if args.file else [name for name in args.only.split(",") if name]


def _corpora(args: argparse.Namespace) -> dict[str, list[Line]]:
    if args.file:
        return {path.name: read(path, args.wrong) for path in args.file}
    found = {}
    for name in _names(args):
        if name != ATTACKS:
            file, wrong = FILES[name]
            found[file] = read(DATA / file, DATA / wrong if wrong else None)
    return found


def _by_hand(args: argparse.Namespace) -> ByHand | None:
    folder = args.ask or args.answers
    return ByHand(folder, asks=args.ask is not None) if folder else None


def _judges(
    args: argparse.Namespace, by_hand: ByHand | None, corpora: Mapping[str, Sequence[Line]]
) -> list[Judge]:
    if by_hand is not None:
        return [by_hand.judge()]
    if args.recorded:
        return [by_model(Answers(None, args.recorded))]
    if args.model:
        return [by_model(recorded.named(args.model))]
    lines = [line for found in corpora.values() for line in found]
    return [right(lines) if name == "right" else double(name) for name in args.judges.split(",")]


def _attacks(judge: Judge) -> str:
    if judge.fails or judge.name.startswith("right"):
        return f"{attacks.CORPUS.name}, second look: {judge.name}: not measured"
    looks = attacks.Looks(judge.say)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder), timezone="Europe/Berlin")
        done = attacks.run(settings, attacks.corpus(), looks)
    return table.attacks_text(
        judge.name, done, (len(looks.tokens), len(done), looks.tokens.total())
    )


def _tell(args: argparse.Namespace, text: str) -> None:
    if not args.ask:  # nothing was answered, so there is nothing to count
        print(f"{text}\n", flush=True)


def _record(path: Path, kept: Sequence[dict[str, str]], judges: Sequence[Judge]) -> None:
    lines = (json.dumps({**one, "model": judges[0].name}, ensure_ascii=False) for one in kept)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _of_hand(by_hand: ByHand) -> str:
    if by_hand.asks:
        return f"{by_hand.written} calls were written to {by_hand.folder / 'ask'}"
    parts = [f"{sum(by_hand.calls.values())} calls"]
    parts += [f"{len(by_hand.missing)} without an answer: {', '.join(by_hand.missing[:12])}"]
    parts += [f"{len(by_hand.changed)} were asked otherwise: {', '.join(by_hand.changed[:12])}"]
    return "; ".join(parts[: 1 + bool(by_hand.missing)] + (parts[2:] if by_hand.changed else []))


if __name__ == "__main__":
    sys.exit(main())
