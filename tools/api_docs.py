"""Write docs/api.md from the docstrings of the public interface: ``python tools/api_docs.py``."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
sys.path.insert(0, str(ROOT))

import memchat  # noqa: E402

CLASSES = {
    "MemChat": "mc",
    "User": "ana",
    "Memories": "ana.memories",
    "Notes": "ana.notes",
    "Workflows": "ana.workflows",
    "Sessions": "ana.sessions",
    "Inbox": "ana.inbox",
    "Mentions": "ana.mentions",
    "Apps": "ana.apps",
    "ClientAccess": "ana.client(name, mode)",
    "Clients": "ana.clients",
    "Chat": "chat",
    "Reply": "reply",
    "Jobs": "mc.jobs",
    "Services": "mc.services",
    "Users": "mc.users",
    "Backups": "mc.backups",
}
"""What is described verb by verb, with the name it has in the examples."""
OWN = ("ChatModel", "Embedder", "Settings")
OF_OWN = """\
## Types of memories of your own

```python
from memchat import MemChat, OwnType

recipe = OwnType("dishes they cook", keys=["dish"])   # check=… takes a type that pydantic knows
mc = MemChat(types={"recipe": recipe})
mc.user("ana").memories.list(type="recipe")
```

The model that reads conversations is told of them, in at most 600 characters. Beside that they are
as the usual four: one key holds one value whatever its type, and `settings.toml` may declare them
for every program (`[types.recipe]`, `description = "…"`, `keys = ["…"]`). What was kept under a
type stays when that is no longer declared.

## Your own models, settings and keys

`MemChat(chat_model=…, extract_model=…, embedder=…)` takes objects of your own with these members;
one that lacks a member raises TypeError. `examples/own_model.py` and `examples/own_embedder.py` are
whole ones. What a call took is told in a `Usage`; it fails with a ProviderError (`retryable` and
`status` say what can be done), and any other error is named by its class alone.

`MemChat(settings=Settings(home=…, chat_model="openai/gpt-4o-mini"))` takes settings from Python,
and then reads neither the environment nor the files of the data folder for them. Keys are given
with them, `Settings(…, keys=Keys({"OPENAI_API_KEY": key}))`, from `memchat.config.keys`. Else
they are read from the environment or from the data folder, where `mc.connect("openai", key)` keeps
them.
"""

INTRODUCTION = """\
# The Python interface

<!-- Made by tools/api_docs.py from the docstrings; change those, and run it again. -->

```python
from memchat import MemChat

mc = MemChat()                     # folder and models from the environment and the settings file
ana = mc.user("ana")               # one person, in the app "default"
ana.add([{"role": "user", "content": "I moved to Lisbon."}], session="chat-17")
ana.memories.add("preference", "tea", "green tea")
ana.search("Where do I live?").hits[0].text
ana.context("Plan my dinner", max_tokens=1000).text      # for a system prompt of your own
with ana.chat() as chat:           # or the whole loop: memory, model and learning
    print(chat.send("Hello!").read())
mc.close()
```

All names are imported from `memchat`. Every error is a `MemChatError` with a message for people.
Verbs that change something return the changed record, or a result with counts. `progress` is
called with a `Progress`; `timeout` is in seconds. Lists of a person's things are in the scope of
their `User`: what belongs to another person or another app is not found there (`NotFound`).
"""

ASYNC = """\
## Use it from async code

`AsyncMemChat` takes what `MemChat` takes, and has the same verbs and rooms, each verb awaited. A
call that waits for a model holds no thread; work on the store is done on a few.

```python
from contextlib import asynccontextmanager

from fastapi import FastAPI
from memchat import AsyncMemChat

@asynccontextmanager
async def lifespan(app):
    async with AsyncMemChat() as app.state.mc:
        yield

app = FastAPI(lifespan=lifespan)

@app.post("/ask/{person}")
async def ask(person: str, text: str) -> str:
    user = app.state.mc.user(person)
    context = await user.context(text)
    reply = await my_model(context.text, text)
    turns = [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]
    await user.add(turns, session=person, wait=False)
    return reply
```

With `wait=False` the conversation is on disk when `add` returns; `memchat worker`, or a task of
`mc.jobs.work()`, reads it. `user` and `client` are not awaited. A chat is entered with `async with
user.chat() as chat`; of `reply = await chat.send(text)`, `async for piece in reply` gives the
pieces and `await reply.read()` all of it; `user.export()` is iterated in the same way, once
awaited. A call that is cancelled has come to its end when `CancelledError` is raised: what it had
stored stays, and what was still to be read is in the queue. Reading and writing whole files,
backups, `doctor` and what loads models have a thread each, and go on there when they are cancelled.
A model or embedder of your own that blocks is called in one of a few other threads.
"""

OLD = """\
session=chat chat_once=answer recall=search usage=usage audit=audit mend=mend wipe=delete_all
memory_switch=memory_switch set_memory=set_memory add=memories.add memory=memories.get
memories=memories.list count_memories=memories.count edit=memories.update pin=memories.pin
delete=memories.delete delete_many=memories.delete_many restore=memories.restore
restore_many=memories.restore_many clear=memories.clear history=memories.history
evidence=memories.evidence replaced=memories.replaced memory_counts=memories.use_counts
embedding_states=memories.embedding_states browse=memories.browse browse_ids=memories.browse_ids
insights=memories.insights elsewhere=mentions.find blank=mentions.blank inbox=inbox.list
question=inbox.question accept=inbox.accept reject=inbox.reject refusals=inbox.refusals
keep_refused=inbox.keep_refused apps=apps.list delete_app=apps.delete sessions=sessions.list
conversations=sessions.list find_session=sessions.get session_of=sessions.of_message
messages=sessions.messages rename_session=sessions.rename end_session=sessions.end
delete_session=sessions.delete delete_message=sessions.delete_message lessons=sessions.learned
unlearn=sessions.unlearn why=sessions.why receipt=sessions.receipt mute=sessions.mute
unmute=sessions.unmute
"""
"""The verbs on a person as they were, on MemChat with user= and app=, and as they are now."""
OLD_OF_STORE = """\
redo=chat.redo jobs=mc.jobs.list count_jobs=mc.jobs.count work_is_due=mc.jobs.due
gone_holders=mc.jobs.dead_holders run_jobs=mc.jobs.run work=mc.jobs.work stop_work=mc.jobs.stop
embed_pending=mc.jobs.embed backfill=mc.jobs.backfill
retry_jobs=mc.jobs.retry clear_jobs=mc.jobs.clear
services=mc.services.list embedding_plugins=mc.services.plugins use_service=mc.services.use
migrate=mc.services.migrate fetch_model=mc.services.fetch remove_service=mc.services.remove
foreign_addresses=mc.address_notices doctor=mc.doctor repair=mc.repair warm=mc.warm close=mc.close
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, ASYNC]
    for name, called in CLASSES.items():
        parts.append(f"## {name}: `{called}`\n")
        parts += _class(name, called)
    parts += [OF_OWN, *(_record(name) for name in OWN), "## Records\n"]
    errors, records = [], []
    for name in memchat.__all__:
        if name not in (*CLASSES, *OWN):
            found = getattr(memchat, name)
            is_error = inspect.isclass(found) and issubclass(found, Exception)
            (errors if is_error else records).append(name)
    parts += [_record(name) for name in records]
    parts.append("## Errors\n")
    parts += [_error(name) for name in errors]
    return "\n".join([*parts, _table()])


def definition(name: str) -> ast.ClassDef:
    """The class of a public name, as its module writes it."""
    found = getattr(memchat, name)
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[found.__module__]))):
        if isinstance(node, ast.ClassDef) and node.name == found.__name__:
            return node
    raise LookupError(name)


def verbs(name: str) -> Iterator[tuple[str, str]]:
    """The public methods and properties of a class, as written: signature and docstring."""
    for node in definition(name).body:
        if isinstance(node, ast.FunctionDef):
            if node.name == "__init__" and name == "MemChat":
                yield f"MemChat({_arguments(node)})", _doc(node)
            elif not node.name.startswith("_"):
                yield signature(node), _doc(node)


def _class(name: str, called: str) -> Iterator[str]:
    yield _doc(definition(name)) + "\n"
    for verb, about in verbs(name):
        prefix = "" if verb.startswith("MemChat(") else f"{called}."
        yield f"### `{prefix}{verb}`\n\n{about}\n"


def signature(node: ast.FunctionDef) -> str:
    """A method with its parameters and their defaults, or a property with its type."""
    returns = _written(node.returns) if node.returns else "None"
    names = [ast.unparse(decorator) for decorator in node.decorator_list]
    if "property" in names or "cached_property" in names:
        return f"{node.name} -> {returns}"
    return f"{node.name}({_arguments(node)}) -> {returns}"


def _arguments(node: ast.FunctionDef) -> str:
    node.args.args = node.args.args[1:]
    written = _written(node.args).replace("=", " = ")
    return written.replace("OnProgress", "Callable[[Progress], None]")  # no public name


def _written(node: ast.AST) -> str:
    """Types and defaults as a caller writes them: each public name without its module."""
    return re.sub(r"\b(?:types|base)\.", "", ast.unparse(node))


def _record(name: str) -> str:
    if not inspect.isclass(getattr(memchat, name)):
        about = {
            "ExternalId": "The id of a note in the program that it comes from: a number or a text.",
            "Metadata": "Names of your own with texts, numbers, true or false: 4 KB as JSON.",
            "Messages": "One message of the user as a string, or messages as OpenAI's chat API has "
            "them: mappings with `role` and `content`, a string or a list of parts.",
        }
        return f"### `{name}`\n\n{about[name]}\n"
    first = next(one for one in memchat.__all__ if getattr(memchat, one) is getattr(memchat, name))
    if first != name:
        return f"### `{name}`\n\nThe same record as `{first}`.\n"
    found = definition(name)
    lines = [f"### `{name}`\n", _doc(found), ""]
    for node, after in zip(found.body, [*found.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            about = _text(after)
            field = f"- `{node.target.id}: {ast.unparse(node.annotation)}`"
            lines.append(f"{field}: {about}" if about else field)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            lines.append(f"- `{signature(node)}`: {' '.join(_doc(node).split())}")
    return "\n".join([*lines, ""]) if lines[-1] else "\n".join(lines)


def _error(name: str) -> str:
    found = getattr(memchat, name)
    about = " ".join(inspect.cleandoc(found.__doc__ or "").replace("``", "`").split())
    return f"- `{name}` (a `{found.__bases__[0].__name__}`): {about}"


def _doc(node: ast.ClassDef | ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").replace("``", "`")


def _text(node: ast.stmt | None) -> str:
    """The words of a string that stands alone, on one line; nothing for another statement."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(textwrap.dedent(str(node.value.value)).replace("``", "`").split())
    return ""


def _table() -> str:
    """The verbs that MemChat had before, each with what takes its place."""
    lines = ["\n## The verbs before this interface\n", "| before | now |", "|---|---|"]
    for pair in OLD.split():
        old, new = pair.split("=")
        lines.append(f"| `mc.{old}(…, user=, app=)` | `mc.user(user, app).{new}(…)` |")
    for pair in OLD_OF_STORE.split():
        old, new = pair.split("=")
        lines.append(f"| `mc.{old}(…)` | `{new}(…)` |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
