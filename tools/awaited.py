"""Write memchat/api/awaited.pyi, the types of ``AsyncMemChat``: ``python tools/awaited.py``.

They are those of ``MemChat`` as its classes declare them, each verb awaited."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

import api_docs
from api_docs import CLASSES, ROOT

import memchat
from memchat.api.aio import HANDLES

STUB = ROOT / "memchat" / "api" / "awaited.pyi"
FACES = (*CLASSES, "NotesAnswer")
HEAD = '''\
"""The types of ``AsyncMemChat``. Made by tools/awaited.py from the classes of ``MemChat``."""

import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO, Self, TextIO, Unpack

from memchat import (
{names}
)
from memchat.types import ClientMode

class Opening:
    """A chat that is being opened: ``await`` it, or enter it with ``async with``."""

    def __await__(self) -> Generator[Any, None, AsyncChat]: ...
    async def __aenter__(self) -> AsyncChat: ...
    async def __aexit__(self, *error: object) -> None: ...

class Records:
    """Records that come one by one."""

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]: ...
'''


def stub() -> str:
    """The whole file."""
    classes = [*map(_class, FACES)]
    words = set(re.findall(r"\w+", " ".join(classes)))
    names = [name for name in memchat.__all__ if name in words and name != "AsyncMemChat"]
    written = "\n".join([HEAD.format(names="\n".join(f"    {n}," for n in names)), *classes])
    for does in (["check", "--fix-only", "--quiet"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *does, "--stdin-filename", str(STUB), "-"]
        done = subprocess.run(ruff, input=written, capture_output=True, text=True, check=True)
        written = done.stdout
    return written


def _class(name: str) -> str:
    lines = [f"class Async{name}:"]
    for node in api_docs.definition(name).body:
        if isinstance(node, ast.FunctionDef):
            lines += [f"    {line}" for line in _verb(name, node)]
    if name == "MemChat":
        lines += ["    @property", "    def blocking(self) -> MemChat: ..."]
        lines.append("    async def __aenter__(self) -> Self: ...")
        lines.append("    async def __aexit__(self, *error: object) -> None: ...")
    return "\n".join([*lines, ""])


def _fields(init: ast.FunctionDef) -> Iterator[str]:
    """What a public field of an object holds."""
    for node in ast.walk(init):
        match node:
            case ast.AnnAssign(ast.Attribute(attr=name), annotation):
                written = _type(annotation)
            case ast.Assign([ast.Attribute(attr=name)], ast.Constant(value)):
                written = type(value).__name__
            case ast.Assign([ast.Attribute(attr=name)], ast.Call(ast.Name(made))):
                written = made if made in memchat.__all__ else "Any"
            case _:
                continue
        if not name.startswith("_"):
            yield f"{name}: {written}"


def _type(node: ast.expr | None) -> str:
    written = re.sub(r"\b(?:types|base|config)\.", "", ast.unparse(node) if node else "None")
    written = re.sub(rf"\b({'|'.join(FACES)})\b", r"Async\1", written)
    return re.sub(r"Iterator\[.*\]", "Records", written)


def _verb(of: str, node: ast.FunctionDef) -> Iterator[str]:
    if node.name == "__init__":
        yield from _fields(node)
    if node.name == "__iter__":
        yield "def __aiter__(self) -> AsyncIterator[str]: ..."
    if node.name.startswith("_") and (of, node.name) != ("MemChat", "__init__"):
        return
    for given in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
        given.__class__, given.__dict__ = ast.Constant, {"value": ...}  # type: ignore[assignment]
    arguments = re.sub(r"\b(?:types|base|config)\.", "", ast.unparse(node.args))
    arguments = arguments.replace("OnProgress", "Callable[[Progress], None]")
    returns, about = _type(node.returns), {ast.unparse(one) for one in node.decorator_list}
    if "staticmethod" in about:
        arguments = f"self, {arguments}"
    elif "classmethod" in about:
        arguments = arguments.replace("cls", "self", 1)
    if about & {"property", "cached_property"}:
        yield "@property"
        yield f"def {node.name}(self) -> {returns}: ..."
    elif returns == "AsyncChat":
        yield f"def {node.name}({arguments}) -> Opening: ..."
    else:
        begins = "def" if node.name in (*HANDLES, "__init__") else "async def"
        yield f"{begins} {node.name}({arguments}) -> {returns}: ..."


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
