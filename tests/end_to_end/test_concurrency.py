"""Several processes and threads at one store: nothing is lost, doubled or locked out."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memchat.db import apps, jobs, records
from memchat.db.database import Database
from memchat.facts import changes, memories
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory, ValuesInForce
from memchat.types import Scope, Wanted
from tests.support.rows import count
from tests.support.slow import slow_but

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
ANA = Scope("ana")
START = """
import json, sys, time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from memchat.db import apps
from memchat.db import jobs
from memchat.facts import memories
from memchat.facts import changes
from memchat.facts import changes as memory_changes
from memchat.facts import memories
from memchat.facts import changes
from memchat.facts import audit
from memchat.search import receipts
from memchat.db import records as meta
from memchat.db.database import Database
from memchat.facts.changes import Cause
from memchat.db.jobs import ClaimRequest
from memchat.facts.memories import NewMemory
from memchat.facts.memories import ValuesInForce
from memchat.processes import has_ended
from memchat.processes import new_owner
from memchat.types import Scope
from memchat.types import Wanted
home, name = Path(sys.argv[1]), sys.argv[2]
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
def fact(value):
    return NewMemory("profile", "city", value, True, f"city {value}", NOON, "manual")
(home.parent / f"{name} starts").write_text(new_owner())
(home.parent / f"{name} starts").rename(home.parent / name)
while not (home.parent / "go").exists():
    time.sleep(0.001)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "store")
    yield opened
    opened.close()


def together(home: Path, body: str, count: int = 2) -> list:
    """What each of several processes prints as JSON; all begin at the same moment."""
    names = [f"p{n}" for n in range(count)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", START + body, str(home), name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    pause = threading.Event()
    while not all((home.parent / name).exists() for name in names):
        if any(process.poll() is not None for process in running):
            break  # the exit code and what it wrote are shown below
        pause.wait(0.01)
    (home.parent / "go").touch()
    ended = [process.communicate(timeout=120) for process in running]
    assert [(p.returncode, err) for p, (_, err) in zip(running, ended, strict=True)] == [
        (0, "")
    ] * count
    return [json.loads(out or "null") for out, _ in ended]


@pytest.mark.slow
def test_two_processes_that_read_then_write_300_times_each_lose_nothing(store: Database) -> None:
    with store.write() as tx:
        records.put(tx, "count", "0")
    together(
        store.home,
        """
database = Database(home)
for _ in range(300):
    with database.write() as tx:
        meta.put(tx, "count", str(int(meta.get(tx, "count")) + 1))
database.close()
""",
    )
    with store.read() as tx:
        assert records.get(tx, "count") == "600"


@pytest.mark.parametrize("stores", slow_but([5], [5, 20]))
def test_two_processes_that_make_the_same_store_at_once_both_open_it(
    tmp_path: Path, stores: int
) -> None:
    together(
        tmp_path / "store",
        f"for n in range({stores}):"
        """
    other = "p1" if name == "p0" else "p0"
    owner = (home.parent / other).read_text()
    (home.parent / f"{n} {name}").touch()
    while not (home.parent / f"{n} {other}").exists():
        assert not has_ended(owner), "the other one died"
    Database(home.parent / f"store {n}").close()
""",
    )
    with closing(Database(tmp_path / f"store {stores - 1}")) as database, database.read() as tx:
        assert apps.find(tx, ANA).ids == ()


@pytest.mark.slow
def test_the_same_facts_said_to_two_processes_are_kept_once_and_counted(tmp_path: Path) -> None:
    together(
        tmp_path / "store",
        """
from memchat import MemChat
from memchat.config import Settings
with MemChat(settings=Settings(home=home)) as mc:
    for n in range(40):
        mc.user("ana").memories.add("preference", "like", f"thing {n % 10}")
""",
    )
    with closing(Database(tmp_path / "store")) as database, database.read() as tx:
        found = memories.listed(
            tx, apps.find(tx, ANA).ids, Wanted(status="all"), ValuesInForce(NOON.date())
        )
        assert sorted(m.value for m in found) == [f"thing {n}" for n in range(10)]
        assert {m.seen_count for m in found} == {8} and len({m.sha1 for m in found}) == 10
        kinds = [e.kind for m in found for e in changes.events_of_memory(tx, m.id)]
        assert (kinds.count("add"), kinds.count("repeat")) == (10, 70)


@pytest.mark.slow
def test_four_processes_may_open_a_store_that_is_not_there_yet(tmp_path: Path) -> None:
    together(
        tmp_path / "store",
        """
database = Database(home)
with database.write() as tx:
    own = apps.ensure(tx, Scope("ana")).own
    memory_changes.add(tx, own, fact(name), Cause("user"))
database.close()
""",
        count=4,
    )
    with closing(Database(tmp_path / "store")) as database, database.read() as tx:
        ids = apps.find(tx, ANA).ids
        assert len(ids) == 2
        assert count(tx, ids, Wanted(status="all"), ValuesInForce(NOON.date())) == 4
    assert [p.name for p in (tmp_path / "store").iterdir()] == ["memchat.db"]


def test_no_job_is_taken_by_two_workers(store: Database) -> None:
    with store.write() as tx:
        own = apps.ensure(tx, ANA).own
        for target in range(1, 121):
            jobs.enqueue(tx, "extract", own, target, NOON)
    one, two = together(
        store.home,
        """
database, mine = Database(home), []
while True:
    with database.write() as tx:
        claims = jobs.claim(tx, ClaimRequest(["extract"], name, 600, limit=3), NOON)
    if not claims:
        break
    with database.write() as tx:
        mine += [c.target_id for c in claims if jobs.finish(tx, [c], NOON)]
database.close()
print(json.dumps(mine))
""",
    )
    assert sorted(one + two) == list(range(1, 121))


@pytest.mark.slow
def test_a_search_in_one_process_never_sees_half_of_another_s_change(store: Database) -> None:
    """The writer moves one fact from row to row; whoever reads sees exactly one active."""
    writer, *readers = together(
        store.home,
        """
database, seen = Database(home), []
if name == "p0":
    cause = Cause("user")
    with database.write() as tx:
        own = apps.ensure(tx, Scope("ana")).own
        ids = [memory_changes.add(tx, own, fact(v), cause) for v in ("Lisbon", "Porto")]
        memory_changes.deactivate(tx, memories.get(tx, [own], ids[1]), "ended", cause)
    (home / "filled").touch()
    for n in range(100):
        with database.write() as tx:
            old, new = (memories.get(tx, [own], i) for i in (ids[n % 2], ids[1 - n % 2]))
            memory_changes.deactivate(tx, old, "ended", cause)
            memory_changes.reactivate(tx, new, cause)
    (home / "done").touch()
else:
    from memchat.search import keywords
    while not (home / "filled").exists():
        time.sleep(0.001)
    while not (home / "done").exists():
        with database.read() as tx:
            ids = apps.find(tx, Scope("ana")).ids
            rows = memories.listed(tx, ids, Wanted(), ValuesInForce(NOON.date()))
            words = keywords.matches(tx, "fact", ids, ["city"]).best(9)
        seen.append([[m.id for m in rows], [i for i, _ in words]])
database.close()
print(json.dumps(seen))
""",
        count=2,
    )
    assert writer == [] and len(readers[0]) > 5
    assert all(rows == words and len(rows) == 1 for rows, words in readers[0])


def test_twenty_threads_share_one_opening(store: Database) -> None:
    failures: list[BaseException] = []
    start = threading.Barrier(20)

    def work(n: int) -> None:
        try:
            start.wait(timeout=30)
            for m in range(5):
                with store.write() as tx:
                    own = apps.ensure(tx, Scope(f"user {n % 4}")).own
                    value = f"{n} {m}"
                    new = NewMemory("fact", "city", value, True, value, NOON, "manual")
                    changes.add(tx, own, new, Cause("user"))
                with store.read() as tx:
                    ids = apps.find(tx, Scope(f"user {n % 4}")).ids
                    assert count(tx, ids, Wanted(status="all"), ValuesInForce(NOON.date())) > m
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with store.read() as tx:
        for n in range(4):
            ids = apps.find(tx, Scope(f"user {n}")).ids
            assert count(tx, ids, Wanted(status="all"), ValuesInForce(NOON.date())) == 25


def test_one_index_serves_threads_that_write_and_search(open_store) -> None:
    mc = open_store()
    mc.user("ana").search("thing")
    failures: list[BaseException] = []

    def work(app: str) -> None:
        try:
            for n in range(8):
                mc.user("ana", app=app).memories.add("preference", "like", f"thing {n}")
                mc.jobs.embed()
                hits = mc.user("ana", app=app).search(f"thing {n}", limit=20).hits
                assert {h.memory.app for h in hits} == {app} and len(hits) == n + 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(app,)) for app in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [mc.user("ana", app=app).memories.count() for app in ("a", "b", "c")] == [8, 8, 8]


@pytest.mark.slow
def test_a_store_that_is_closed_while_it_is_read_leaves_nothing_open(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.read() as tx:
        records.get(tx, "count")
        with database.write() as other:
            records.put(other, "count", "1")
        database.close()
    del tx, other
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["memchat.db"]
