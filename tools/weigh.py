"""How heavy the house is: code lines and modules of each room, and the files on seven routes.

Code lines leave out comments, docstrings and blank lines. A file is on a route where one of its
functions is called. Each figure is compared with ``weight.toml``, which a commit raises knowingly,
with its reason; the exit code is 1 where one is above it. Run from the root of the checkout:

    .venv/bin/python -m tools.weigh [-v]
"""

from __future__ import annotations

import ast
import io
import sys
import tempfile
import threading
import time
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "memchat"
BLANK = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
SMALL = 60
"""A module of fewer code lines than this, with one importer, belongs to its importer."""
AGAIN = ("get", "list", "cli_list", "notes_search")
"""Routes that are taken several times: what only a thread of another work reached is left out."""
APART = ("migrations", "__init__", "__main__")
"""Modules that no other one imports by name, or that are as small as they must be."""


def code_lines(source: str) -> set[int]:
    """The numbers of the lines that hold code."""
    texts = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for one in node.body
        if isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Constant)
        and isinstance(one.value.value, str)
        for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    held = {
        line
        for token in tokens
        if token.type not in BLANK
        for line in range(token.start[0], token.end[0] + 1)
    }
    return held - texts


def import_lines(source: str) -> set[int]:
    """The numbers of the lines of import statements."""
    return {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def importers(files: dict[str, Path]) -> dict[str, set[str]]:
    """Which modules import each module, anywhere in them."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, path in files.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    found[full if full in files else node.module].add(module)
    return found


class Route:
    """The files of the package that calls enter while something is done, on every thread."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def follow(self, work: Callable[[], object]) -> set[str]:
        """Do the work, and return the files."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self.files

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        # Comprehensions and the bodies of modules are no steps of a route.
        is_step = event == "call" and not frame.f_code.co_name.startswith("<")
        if is_step and name.startswith(str(PACKAGE)):
            self.files.add(name[len(str(PACKAGE)) + 1 :])


def routes() -> dict[str, set[str]]:
    """The files on each of the seven routes, with the offline stand-in and a store of its own."""
    import os

    from typer.testing import CliRunner

    from memchat import MemChat
    from memchat.cli import app
    from memchat.config import Settings

    with tempfile.TemporaryDirectory() as home, MemChat(settings=Settings(Path(home))) as mc:
        os.environ["MEMCHAT_HOME"] = home
        ana = mc.user("ana")
        warm = ana.chat()
        "".join(warm.send("Hello. I work as a gardener."))
        warm.end(wait=True)  # else its reading would be counted with what comes next
        first = ana.memories.add("preference", "favorite_tea", "green tea")
        ana.notes.add("The roof of the barn leaks at its northern corner.")
        ana.notes.search("barn")
        CliRunner().invoke(app, ["memories", "list"])
        chat = ana.chat()
        message = "I live in Lisbon and I play the cello."
        work: dict[str, Callable[[], object]] = {
            "get": lambda: ana.memories.get(first.id),
            "list": lambda: ana.memories.list(),
            "cli_list": lambda: CliRunner().invoke(app, ["memories", "list"]),
            "notes_search": lambda: ana.notes.search("Where does the barn leak?"),
            "message": lambda: "".join(chat.send(message)),
            "end": lambda: chat.end(wait=True),
            "delete": lambda: ana.memories.delete(first.id),
        }
        found = {}
        for name, run in work.items():
            mc.jobs.run()  # what is queued would else be counted with this route
            found[name] = Route().follow(run)
            for _ in range(4 if name in AGAIN else 0):
                time.sleep(0.1)  # a thread of what came before may have been caught
                found[name] &= Route().follow(run)
        return found


def weigh() -> tuple[dict[str, float], Counter[str], list[str], dict[str, set[str]]]:
    """All figures, the lines by room, small modules with one importer, and the routes."""
    files = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
    rooms: Counter[str] = Counter()
    imported, sizes = 0, {}
    for module, path in files.items():
        source = path.read_text("utf-8")
        held = code_lines(source)
        sizes[module] = len(held)
        imported += len(held & import_lines(source))
        parts = module.split(".")
        rooms[parts[1] if len(parts) > 1 and (PACKAGE / parts[1]).is_dir() else "(root)"] += len(
            held
        )
    by = importers(files)
    single = [
        module
        for module, path in files.items()
        if 0 < sizes[module] < SMALL
        and len(by[module]) == 1
        and not any(part in APART for part in path.relative_to(ROOT).with_suffix("").parts)
    ]
    # The stub of the public names is code too, though no module.
    stub = len(code_lines((PACKAGE / "__init__.pyi").read_text("utf-8")))
    rooms["(root)"] += stub
    total = sum(sizes.values())
    on_routes = routes()
    figures: dict[str, float] = {
        "package_lines": total + stub,
        "modules": sum(1 for lines in sizes.values() if lines),
        "longest_module": max(sizes.values()),
        "import_percent": round(100 * imported / total, 1),
        "small_with_one_importer": len(single),
        **{f"files_{name}": len(found) for name, found in on_routes.items()},
    }
    for folder in ("ui", "benchmarks"):
        sources = (path.read_text("utf-8") for path in (ROOT / folder).rglob("*.py"))
        figures[f"{folder}_lines"] = sum(len(code_lines(source)) for source in sources)
    data = ("*.toml", "*.txt")
    figures["data_kilobytes"] = round(
        sum(path.stat().st_size for kind in data for path in PACKAGE.rglob(kind)) / 1024
    )
    return figures, rooms, single, on_routes


def main() -> None:
    """Print the figures beside their limits; ends with 1 where one is above its own."""
    limits = tomllib.loads((ROOT / "weight.toml").read_text("utf-8"))
    figures, rooms, single, on_routes = weigh()
    for room, lines in rooms.most_common():
        print(f"{room:<26}{lines:8,}")
    print()
    above = []
    for name, figure in figures.items():
        limit = limits[name]
        is_above = figure > limit
        above += [name] * is_above
        print(f"{name:<26}{figure:8,}  limit {limit:,}{'  ABOVE' if is_above else ''}")
    if "-v" in sys.argv:
        print("\nsmall with one importer:", *single, sep="\n  ")
        for name, found in on_routes.items():
            print(f"\n{name}:", *sorted(found), sep="\n  ")
    if above:
        print(f"\nheavier than weight.toml allows: {', '.join(above)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
