"""The public interface is as this text says: names, verbs and signatures."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from mypy import api

import memchat
from memchat.cli import main
from tests.support.paths import ROOT

NAMES = """
Answer Answered AppInfo Apps AsyncClient AsyncMemChat AsyncStreamedAnswer Attachment Audit
BackfillResult Backup Backups Browsed Change Changed Chat ChatMessage ChatModel ChatStream Check
Client ClientAccess ClientInfo ClientWrite Clients Completion ConfigError DeadHolder Deleted Draft
Elsewhere Embedder EmbeddingState Event Evidence Exported ExternalId ExtractionError FetchedModel
FileChange FileFailure FilesAdded Filters Finding Given Hit Imported ImportedHistory Inbox InboxItem
InputError Insights Job Jobs JobsDone Learned LongMessage MemChat MemChatError Memories Memory
MemoryChanges MemoryOrigin MemorySwitch Mended Mentions Message Messages Metadata MigrationResult
NewNote NotFound Note NoteCounts NoteHit NotePassage NoteSource NoteUse Notes NotesAdded NotesAnswer
NotesFound NotesReport OwnType Page PastImport Place PluginInfo ProgramConversation Progress
PromptContext ProviderError Question ReadingPlan Recalled Refusal RefusedRecord Reply ReplyParts
RequestDone RestorePlan RunStep SchemaError Scope ScopeError SecretError Service ServiceError
ServiceInfo Services Session SessionQuote Sessions Settings StoreError StoreFull StreamedAnswer
ToolCall Topic Undone Usage UsageTotal UseCounts User UserInfo Users Wanted Why WorkflowInfo
WorkflowProblem WorkflowRun Workflows Written
"""
VERBS = """
MemChat
    MemChat(home: Path | str | None = None, *, settings: config.Settings | None = None,
        chat_model: ChatModel | None = None, extract_model: ChatModel | None = None, embedder:
        Embedder | None = None, types: Mapping[str, OwnType] | None = None, clock: Callable[[],
        datetime] | None = None)
    address_notices() -> list[str]
    backup -> Path | None
    backups -> Backups
    close() -> None
    connect(provider: str, key: str = '', address: str = '') -> Sequence[str]
    doctor(*, probe: bool = False, progress: Callable[[Progress], None] | None = None) ->
        list[Check]
    jobs -> Jobs
    models(provider: str) -> Sequence[str]
    models_line() -> str
    now -> datetime
    repair() -> list[str]
    services -> Services
    user(user: str, app: str = 'default') -> User
    users -> Users
    warm() -> None
User
    add(messages: Messages, *, session: str | None = None, at: datetime | None = None, when: str
        | None = None, metadata: Metadata | None = None, wait: bool = True, timeout: float |
        None = None, read_all: bool = False, through: str | None = None, instead: bool = False,
        given: PromptContext | None = None) -> Learned
    add_all(conversations: Iterable[object], *, when: str = 'now', wait: bool = True) ->
        Sequence[Learned]
    answer(prompt: str, *, timeout: float | None = None) -> Answer
    apps -> Apps
    audit() -> Audit
    chat(*, resume: int | None = None, incognito: bool = False, turns: Sequence[Message] = ())
        -> Chat
    client(name: str, mode: str = 'ask', *, reads_only: bool = False) -> ClientAccess
    clients -> Clients
    context(prompt: str, *, max_tokens: int = 1000, timeout: float | None = None, **only:
        Unpack[Filters]) -> PromptContext
    delete_all() -> Deleted
    export(*, all_apps: bool = True) -> Iterator[dict[str, Any]]
    export_file(file: Path | str | TextIO | BinaryIO, *, format: str = 'jsonl', all_apps: bool =
        True, progress: Callable[[Progress], None] | None = None) -> Exported
    import_file(file: Path | str, *, dry_run: bool = False, progress: Callable[[Progress], None]
        | None = None) -> Imported
    import_history(path: Path | str, *, learn: str = 'later', newest: int = 200, max_calls: int
        | None = None, max_cost: float | None = None, dry_run: bool = False, progress:
        Callable[[Progress], None] | None = None) -> ImportedHistory
    imports() -> Sequence[PastImport]
    inbox -> Inbox
    instructions(*, all_apps: bool = False) -> str
    memories -> Memories
    memory_switch(*, all_apps: bool = False) -> MemorySwitch
    mend(findings: Iterable[Finding]) -> Mended
    mentions -> Mentions
    notes -> Notes
    scope -> Scope
    search(query: str, *, limit: int = 10, timeout: float | None = None, **only:
        Unpack[Filters]) -> Recalled
    sessions -> Sessions
    set_instructions(text: str, *, all_apps: bool = False) -> None
    set_memory(on: bool, *, all_apps: bool = False) -> MemorySwitch
    undo_import(import_id: str) -> Deleted
    unmend(mended: Mended) -> Changed
    usage(*, session_id: int | None = None) -> Sequence[UsageTotal]
    workflows -> Workflows
ClientAccess
    begin_request(key: str, request: str) -> RequestDone | None
    called() -> None
    chunk_ids(hits: Iterable[NoteHit]) -> Mapping[int, str]
    conversation(before: Messages, session: str | None = None) -> ProgramConversation
    count_recall(found: Recalled) -> None
    finish_request(key: str, status: int | None, row_id: int | None) -> None
    forget(memory_id: int) -> Written
    forget_named(message: str) -> Sequence[int]
    index_memo(memo_id: str, transcript: str, created_at: datetime, title: str | None = None, *,
        on_progress: Callable[[Progress], None] | None = None) -> Note | None
    memo_id(external_id: object) -> str
    promote(memory_id: int) -> Written
    remember(type: str, key: str, value: str, *, expires_at: date | None = None, starts_at: date
        | None = None, quote: SessionQuote | None = None, tags: Iterable[str] = ()) -> Written
    remember_instead(memory_id: int, type: str, key: str, value: str, *, expires_at: date | None
        = None, starts_at: date | None = None, tags: Iterable[str] = ()) -> Written
    require_memory() -> None
    run_workflow(workflow: str, text: str = '') -> WorkflowRun
    update(memory_id: int, value: str | None = None, *, expires_at: date | None = None,
        starts_at: date | None = None, tags: Iterable[str] = ()) -> Written
    with_masked_texts(hits: Iterable[NoteHit]) -> Sequence[NoteHit]
Clients
    list() -> Sequence[ClientInfo]
    of_memories(memory_ids: Iterable[int]) -> Mapping[int, str]
    undo(name: str) -> Undone
    writes(name: str) -> Sequence[ClientWrite]
Memories
    add(type: str, key: str, value: str, *, expires_at: date | None = None, starts_at: date |
        None = None, all_apps: bool = False, keep_secret: bool = False, tags: Iterable[str] =
        (), metadata: Metadata | None = None, sentence: str | None = None) -> Memory
    browse(wanted: Wanted, *, limit: int = 20, offset: int = 0) -> Browsed
    browse_ids(wanted: Wanted) -> Sequence[int]
    clear() -> Deleted
    count(query: str = '', *, status: str = 'active', within: int = 30, **only: Unpack[Filters])
        -> int
    delete(memory_id: int, *, keep_transcript: bool = False, hold: float = 0.0, blank: Elsewhere
        | None = None) -> Deleted
    delete_many(memory_ids: Iterable[int], *, keep_transcript: bool = False, hold: float = 0.0,
        blank: Elsewhere | None = None, progress: Callable[[Progress], None] | None = None) ->
        Deleted
    draft(statement: str) -> Draft
    embedding_states(memory_ids: Sequence[int]) -> Sequence[EmbeddingState]
    evidence(memory_id: int) -> Sequence[Evidence]
    get(memory_id: int) -> Memory
    groups() -> Mapping[str, int]
    history(memory_id: int) -> Sequence[Event]
    insights(*, top: int = 10) -> Insights
    list(query: str = '', *, status: str = 'active', within: int = 30, limit: int = 100, cursor:
        str | None = None, **only: Unpack[Filters]) -> Page[Memory]
    origins(memory_ids: Iterable[int]) -> Mapping[int, MemoryOrigin]
    own_types -> Mapping[str, OwnType]
    pin(memory_id: int, *, on: bool = True) -> Memory
    replaced(memory_id: int) -> Sequence[Memory]
    restore(memory_id: int) -> Memory
    restore_many(memory_ids: Iterable[int], *, progress: Callable[[Progress], None] | None =
        None) -> Changed
    tags() -> Mapping[str, int]
    update(memory_id: int, **changes: Unpack[MemoryChanges]) -> Memory
    use_counts(memory_id: int) -> UseCounts
Sessions
    copy(session_id: int, *, before: int) -> Session
    delete(session_id: int, *, keep_memories: bool = False, dry_run: bool = False) -> Undone
    delete_many(session_ids: Iterable[int], *, keep_memories: bool = False, dry_run: bool =
        False) -> Undone
    delete_message(message_id: int, *, keep_memories: bool = False, dry_run: bool = False)
        -> Undone
    end(session_id: int) -> Session
    first_words(session_ids: Sequence[int]) -> Mapping[int, str]
    found_words(query: str, session_ids: Sequence[int]) -> Mapping[int, Message]
    get(session_id: int) -> Session
    keep_as_note(message_id: int, *, title: str | None = None) -> Note
    learned(session_id: int) -> Mapping[int, Sequence[Change]]
    list(query: str = '', *, shelf: str | None = None, topic: int | None = None, limit: int
        = 50, cursor: str | None = None) -> Page[Session]
    long_messages(session_id: int) -> Sequence[LongMessage]
    messages(session_id: int) -> Sequence[Message]
    move(session_id: int, app: str) -> Session
    mute(memory_id: int, session_id: int) -> Memory
    of_message(message_id: int) -> Session
    parts(reply: Message) -> ReplyParts
    put(session_id: int, shelf: str) -> Session
    read_again(session_id: int, *, model: str | None = None, wait: bool = True, progress:
        Callable[[Progress], None] | None = None) -> Learned
    read_all(message_id: int) -> Session
    receipt(message_id: int) -> Sequence[Hit]
    rename(session_id: int, title: str) -> Session
    set_memory(session_id: int, on: bool) -> MemorySwitch
    set_metadata(session_id: int, metadata: Metadata) -> Session
    show_version(message_id: int) -> Session
    unlearn(message_id: int, *, memory_id: int | None = None) -> Undone
    unmute(memory_id: int, session_id: int) -> Memory
    used(session_id: int) -> Mapping[int, Sequence[str]]
    versions(session_id: int) -> Mapping[int, Sequence[int]]
    why(message_id: int | None = None) -> Why
Workflows
    add(definition: str) -> WorkflowInfo
    delete(slug: str) -> Changed
    get(slug: str) -> WorkflowInfo
    get_run(run_id: int) -> WorkflowRun
    list() -> Sequence[WorkflowInfo]
    resume(run_id: int, *, yes: bool = False, on_text: Callable[[str, str], object] | None =
        None, ask: Callable[[str], bool] | None = None) -> WorkflowRun
    run(slug: str, text: str = '', *, note_id: int | None = None, on_text: Callable[[str, str],
        object] | None = None, ask: Callable[[str], bool] | None = None) -> WorkflowRun
    runs(slug: str | None = None, *, limit: int = 50) -> Sequence[WorkflowRun]
    share(slug: str, program: str, *, on: bool = True) -> WorkflowInfo
    stop(run_id: int) -> WorkflowRun
    validate(definition: str) -> Sequence[WorkflowProblem]
Notes
    add(text: str, *, title: str | None = None, type: str = 'memo', external_id: ExternalId
        | None = None, created_at: datetime | None = None, profile: str = 'memo', pair_id:
        int | None = None, parent_id: int | None = None, metadata: Metadata | None = None,
        tags: Iterable[str] | None = None, wait: bool = True) -> Note | None
    add_files(paths: Iterable[Path | str], *, on_progress: Callable[[Progress], None] | None
        = None) -> FilesAdded
    add_many(notes: Iterable[NewNote], *, on_progress: Callable[[Progress], None] | None =
        None, wait: bool = True) -> NotesAdded
    add_upload(name: str, data: bytes, *, title: str | None = None, wait: bool = True) ->
        Note
    ask(question: str, *, mode: str = 'answer', limit: int = 8, type: str | None = None,
        since: datetime | None = None, until: datetime | None = None, topic: int | None =
        None, on_progress: Callable[[Progress], None] | None = None) -> NotesAnswer
    delete(note_id: int, *, hold: float = 0.0) -> Changed
    find_topics(*, name: bool = False) -> Sequence[Topic]
    get(note_id: int) -> Note
    list(query: str = '', *, type: str | None = None, since: datetime | None = None, until:
        datetime | None = None, metadata: Metadata | None = None, tags: Iterable[str] = (),
        topic: int | None = None, limit: int = 50, cursor: str | None = None) -> Page[Note]
    mark_as_read(chunk_ids: Sequence[int]) -> Changed
    reindex(*, on_progress: Callable[[Progress], None] | None = None) -> Changed
    report(*, top: int = 20) -> NotesReport
    restore(note_id: int) -> Note
    search(query: str, *, limit: int = 10, type: str | None = None, pair_id: int | None =
        None, parent_id: int | None = None, since: datetime | None = None, until: datetime |
        None = None, metadata: Metadata | None = None, tags: Iterable[str] = (), topic: int
        | None = None, min_score: float | None = None, include_text: bool = False, mode: str
        | None = None) -> NotesFound
    suggested_tags(note_id: int) -> Sequence[str]
    topics() -> Sequence[Topic]
    update(note_id: int, *, text: str | None = None, title: str | None = None, metadata:
        Metadata | None = None, tags: Iterable[str] | None = None, wait: bool = True) ->
        Note
    watch(folder: Path | str, *, on_change: Callable[[FileChange], None], stop:
        threading.Event | None = None) -> None
Inbox
    accept(item_id: int, *, value: str | None = None, hold: float = 0.0) -> Memory | WorkflowRun
    accept_many(item_ids: Iterable[int], *, values: Mapping[int, str] | None = None) -> Answered
    keep_refused(refusal_id: int) -> Memory
    list(*, status: str = 'pending') -> Sequence[InboxItem]
    question(item: InboxItem) -> str
    refusals(*, session_id: int | None = None) -> Sequence[Refusal]
    reject(item_id: int) -> InboxItem
    reject_many(item_ids: Iterable[int]) -> Answered
    take_back(answered: Answered) -> Sequence[InboxItem]
Mentions
    blank(found: Elsewhere, *, hold: float = 0.0) -> Changed
    find(memory_ids: Sequence[int]) -> Elsewhere | None
    unproved(memory_ids: Sequence[int]) -> Sequence[Memory]
Apps
    delete(app: str) -> Deleted
    list() -> Sequence[AppInfo]
    rename(app: str, name: str) -> None
Chat
    abandon() -> None
    attachment(name: str, data: bytes) -> Attachment
    end(*, wait: bool = True) -> Learned | None
    failure -> str | None
    go_on(*, timeout: float | None = None) -> Reply
    incognito -> bool
    learned -> Learned | None
    left_out -> frozenset[int]
    memory -> MemorySwitch
    model -> str
    notice() -> str | None
    question -> Question | None
    reading -> bool
    redo(text: str | None = None, *, message: Message | None = None, model: str | None = None,
        timeout: float | None = None) -> Reply
    scope -> Scope
    send(text: str, *, timeout: float | None = None, read_all: bool = False,
        attachments: Sequence[Attachment] = ()) -> Reply
    session_id -> int | None
    set_memory(on: bool) -> MemorySwitch
    set_model(name: str | None) -> None
    turns -> tuple[Message, ...]
Reply
    add(piece: str) -> None
    discard() -> None
    done -> tuple[Change, ...]
    end_late() -> None
    read(timeout: float | None = None) -> str
    received -> str
    seconds_left() -> float | None
    stop() -> None
Jobs
    backfill(*, batch: int = 100, progress: Callable[[Progress], None] | None = None) ->
        BackfillResult
    clear(*, user: str) -> Changed
    count(*, user: str | None = None) -> Mapping[str, int]
    dead_holders(*, user: str | None = None) -> Sequence[DeadHolder]
    due(*, user: str) -> bool
    embed(*, remote: bool = False) -> Changed
    list(*, user: str | None = None, status: str | None = None, note_ids: Sequence[int] | None =
        None, limit: int = 100) -> Sequence[Job]
    retry(*, user: str, job_id: int | None = None, failed_only: bool = False) -> Changed
    run(*, user: str | None = None, kinds: Sequence[str] | None = None, timeout: float | None =
        None, again: bool = False, parallel: int = 1) -> JobsDone
    stop() -> None
    work(*, look: float | None = None, parallel: int = 1) -> None
Services
    embed(texts: Sequence[str]) -> Sequence[Sequence[float]]
    fetch(name: str, *, progress: Callable[[Progress], None] | None = None) -> FetchedModel
    list() -> Sequence[ServiceInfo]
    migrate(name: str | None = None, *, dimensions: int | None = None, max_tokens: int | None =
        None, progress: Callable[[Progress], None] | None = None) -> MigrationResult
    plugins() -> Sequence[PluginInfo]
    remove(name: str, *, force: bool = False) -> Changed
    use(name: str, *, force: bool = False) -> Changed
Users
    delete(name: str) -> Deleted
    export(name: str, file: Path | str | TextIO | BinaryIO, *, format: str = 'jsonl') -> Exported
    list() -> Sequence[UserInfo]
Backups
    create(file: Path | str | None = None, *, passphrase: str | None = None, progress:
        Callable[[Progress], None] | None = None) -> Backup
    delete(files: Iterable[Path | str]) -> Sequence[Path]
    is_encrypted(file: Path | str) -> bool
    list() -> Sequence[Backup]
    named(files: Iterable[Path | str]) -> Sequence[Path]
    perhaps_forgotten() -> Sequence[Path]
    plan_restore(file: Path | str, *, passphrase: str | None = None) -> RestorePlan
    prunable(*, keep: int = 1) -> Sequence[Path]
    prune(*, keep: int = 1) -> Sequence[Path]
    restore(file: Path | str, *, passphrase: str | None = None, keep_present: bool = True,
        progress: Callable[[Progress], None] | None = None) -> Path | None
    write(out: BinaryIO, *, passphrase: str | None = None, progress: Callable[[Progress], None]
        | None = None) -> None
"""
KINDS = [line for line in VERBS.split("\n") if line and not line.startswith(" ")]
BUILT_IN = {"Any", "Callable", "Iterable", "Iterator", "Mapping", "Path", "Sequence", "Unpack"}
BUILT_IN |= {"BinaryIO", "TextIO"}
CONSTANTS = {"False", "None", "True"}


def load_tool() -> ModuleType:
    """The script that makes docs/api.md: it reads the signatures as they are written."""
    spec = importlib.util.spec_from_file_location("api_docs", ROOT / "tools" / "api_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load_tool()


def verbs(kind: str) -> list[str]:
    return sorted(verb for verb, _ in TOOL.verbs(kind))


def test_the_public_names_are_these_and_each_can_be_imported() -> None:
    assert sorted(memchat.__all__) == sorted(NAMES.split())
    for name in memchat.__all__:
        assert getattr(memchat, name) is not None
    with pytest.raises(AttributeError):
        _ = memchat.nothing


@pytest.mark.parametrize(
    "names, fault",
    [
        (memchat.__all__, None),
        (["MemChat", "Memroy"], 'Module "memchat" has no attribute "Memroy"'),
    ],
    ids=["every name", "a wrong one"],
)
def test_a_type_checker_takes_every_public_name_and_no_other(
    tmp_path: Path, names: list[str], fault: str | None
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"from memchat import {', '.join(names)}\n", "utf-8")
    # What lies below is left out, as it takes long: it is checked with the package itself.
    options = ["--config-file=", "--follow-imports=skip", "--ignore-missing-imports"]
    where = [f"--cache-dir={tmp_path}", str(program), str(ROOT / "memchat" / "__init__.pyi")]
    said, errors, code = api.run([*options, *where])
    assert errors == "" and (code == 0) is (fault is None), said
    assert fault is None or fault in said


@pytest.mark.parametrize("kind", KINDS)
def test_the_verbs_and_their_signatures_are_these(kind: str) -> None:
    pinned = VERBS.partition(f"\n{kind}\n")[2]
    pinned = re.split(r"\n(?=\S)", pinned)[0]
    lines = [" ".join(line.split()) for line in re.split(r"\n    (?=\S)", f"\n{pinned}")[1:]]
    assert verbs(kind) == lines


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_that_a_verb_takes_or_gives_is_public(kind: str) -> None:
    for verb in verbs(kind):
        types = set(re.findall(r"\b[A-Z]\w+", re.sub(r"\.\w+", "", verb))) - CONSTANTS
        assert types <= {*memchat.__all__} | BUILT_IN, verb


def test_the_page_on_the_interface_is_up_to_date() -> None:
    written = (ROOT / "docs" / "api.md").read_text("utf-8")
    assert TOOL.page() == written, "run: python tools/api_docs.py"


def test_the_types_of_the_awaited_face_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    awaited = importlib.import_module("awaited")
    assert awaited.stub() == awaited.STUB.read_text("utf-8"), "run: python tools/awaited.py"


AWAITS = """
import memchat

async def main() -> None:
    async with memchat.AsyncMemChat() as mc:
        ana = mc.user("ana")
        reveal_type(await ana.search("tea"))
        reveal_type(await ana.memories.list(type="fact"))
        async with ana.chat() as chat:
            async for piece in await chat.send("Hello"):
                reveal_type(piece)
        await ana.search(7)
"""


@pytest.mark.slow
def test_type_checkers_know_what_awaited_verbs_take_and_give(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(AWAITS, "utf-8")
    options = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
    told, *_ = api.run([*options, str(tmp_path / "program.py")])
    assert re.findall(r'type is "(.+?)"', told) == [
        "memchat.types.memories.Recalled",
        "memchat.api.base.Page[memchat.types.memories.Memory]",
        "str",
    ]
    assert 'expected "str"' in told and told.count("error:") == 1


@pytest.mark.parametrize(
    ("first", "second"), [(["recall"], ["search"]), (["memories", "edit"], ["memories", "update"])]
)
def test_the_command_line_knows_the_names_of_the_interface(
    first: list[str], second: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for names in (first, second):
        code = main([*names, "--help"])
        said.append((code, capsys.readouterr().out.replace(second[-1], first[-1])))
    assert said[0] == said[1] and said[0][0] == 0
