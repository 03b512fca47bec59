"""What was kept without a vector gets one later: facts, turns and summaries, each once."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.cli import main
from memchat.errors import ProviderError
from memchat.search import passages
from memchat.types import Progress
from tests.support import private
from tests.support.answers import answer
from tests.support.embedding_queue import BAD, Service, add, many, refusing, statuses, vectors
from tests.support.forks import MEMCHAT, Piped
from tests.support.plugin import CODE, install
from tests.support.store import Opener

PATIENCE = 60.0


def words_only(open_store: Opener, **more: Any) -> MemChat:
    return open_store(embedder=None, embed_model="none", **more)


def lacking(mc: MemChat) -> int:
    meaning, _ = private.meaning(mc)
    assert meaning is not None
    with private.database(mc).read() as tx:
        return passages.count_lacking(tx, meaning.service_id)


def test_250_rows_go_in_batches_of_100_and_a_second_run_asks_nothing(open_store: Opener) -> None:
    many(words_only(open_store), 250)
    service = Service()
    mc = open_store(embedder=service)
    result = mc.jobs.backfill()
    assert [len(texts) for texts in service.asked] == [100, 100, 50]
    assert (result.total, result.done, result.left, result.failed) == (250, 250, 0, ())
    assert len(statuses(mc, "completed")) == 250
    again = mc.jobs.backfill()
    assert (again.total, again.done, again.left) == (0, 0, 0) and len(service.asked) == 3


def test_the_batch_can_be_chosen(open_store: Opener) -> None:
    many(words_only(open_store), 25)
    service = Service()
    open_store(embedder=service).jobs.backfill(batch=10)
    assert [len(texts) for texts in service.asked] == [10, 10, 5]


def test_a_store_used_by_words_alone_is_searched_by_meaning_without_entering_it_again(
    open_store: Opener, extract_model: Any
) -> None:
    mc = words_only(open_store)
    (fact,) = add(mc, "a red kayak")
    extract_model.replies.append(answer(summary="The plumber mends the boiler."))
    with mc.user("ana").chat() as chat:
        assert chat.send("The plumber mends our boiler.").read()
    assert mc.jobs.list(user="ana", status="pending") == []
    before = mc.user("ana").memories.list()
    service = Service()
    mc = open_store(embedder=service)
    result = mc.jobs.backfill()
    assert result.total == result.done == 4, "a fact, two turns, a summary"
    assert mc.user("ana").memories.list() == before
    hits = mc.user("ana").search("the plumber and the red kayak").hits
    assert {hit.kind for hit in hits} == {"memory", "message"}
    assert all(hit.cosine is not None for hit in hits)
    assert mc.user("ana").memories.embedding_states([fact])[0].status == "completed"


def test_conversations_get_theirs(open_store: Opener, extract_model: Any) -> None:
    mc = open_store()
    for number in range(12):
        extract_model.replies.append(answer(summary=f"A talk about fence {number}."))
        with mc.user("ana").chat() as chat:
            assert chat.send(f"The fence number {number} needs paint.").read()
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("DELETE FROM embeddings")
    service = Service()
    mc = open_store(embedder=service)
    result = mc.jobs.backfill()
    assert result.total == result.done == 36 and result.left == 0
    assert vectors(mc) == len({text for texts in service.asked for text in texts})
    (hit, *_) = mc.user("ana").search("fence number 7").hits
    assert "number 7" in hit.text and hit.cosine is not None


def test_what_was_said_off_the_record_and_what_is_not_read_yet_stays_out(
    open_store: Opener, extract_model: Any
) -> None:
    mc = words_only(open_store)
    ana = mc.user("ana")
    ana.set_memory(False, all_apps=True)
    with ana.chat() as chat:
        assert chat.send("The roofer mends the roof.").read()
    ana.set_memory(True, all_apps=True)
    chat = ana.chat()
    assert chat.send("The baker bakes rolls.").read()
    service = Service()
    assert open_store(embedder=service).jobs.backfill().total == 0
    assert service.asked == []


def test_one_bad_row_neither_stops_it_nor_is_tried_again_in_the_run(open_store: Opener) -> None:
    ids = many(words_only(open_store), 250, bad=[120])
    service = Service(refusing(400))
    mc = open_store(embedder=service)
    result = mc.jobs.backfill()
    assert (result.total, result.done, result.left) == (250, 249, 1)
    (failed,) = result.failed
    assert (failed.target_id, failed.error_message) == (ids[120], "refused")
    assert sum(texts == [text] for texts in service.asked for text in texts if BAD in text) == 1
    again = mc.jobs.backfill()
    assert (again.total, again.done, len(again.failed)) == (1, 0, 1)


def test_many_bad_rows_side_by_side_keep_nothing_from_those_behind_them(open_store: Opener) -> None:
    bad = range(0, 150)
    ids = many(words_only(open_store), 250, bad=list(bad))
    service = Service(refusing(400))
    mc = open_store(embedder=service)
    result = mc.jobs.backfill()
    assert (result.done, result.left, result.stopped) == (100, 150, None)
    assert {job.target_id for job in result.failed} == {ids[i] for i in bad}
    assert len(service.asked) < 3 * len(bad)


def test_a_bad_turn_leaves_the_rest_of_its_conversation(
    open_store: Opener, extract_model: Any
) -> None:
    mc = words_only(open_store)
    extract_model.replies.append(answer())
    with mc.user("ana").chat() as chat:
        for words in ("The plumber comes.", f"It was {BAD}.", "The baker bakes."):
            assert chat.send(words).read()
    mc = open_store(embedder=Service(refusing(400)))
    result = mc.jobs.backfill()
    assert (result.total, result.done, result.left, len(result.failed)) == (6, 5, 1, 1)
    assert mc.user("ana").search("plumber").hits[0].cosine is not None


def test_a_service_that_fails_stops_it_and_what_is_done_stays(open_store: Opener, clock) -> None:
    many(words_only(open_store), 350)

    def answer(texts: Sequence[str]) -> None:
        if len(service.asked) == 3:
            raise ProviderError("the service is down", status=503)

    service = Service(answer)
    mc = open_store(embedder=service)
    result = mc.jobs.backfill()
    assert (result.done, result.left, result.stopped) == (200, 150, "the service is down")
    assert len(service.asked) == 3
    service.answer = None
    assert mc.jobs.backfill().done == 150 and len(statuses(mc, "completed")) == 350


def test_a_pause_that_the_service_asks_for_is_waited_and_no_try_is_lost(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(words_only(open_store), 150)

    def answer(texts: Sequence[str]) -> None:
        if len(service.asked) == 2:
            raise ProviderError("busy", status=429, retryable=True, retry_after=30)

    service = Service(answer)
    mc = open_store(embedder=service)
    waited: list[float] = []
    stopping = private.parts(mc).worker.stopping
    monkeypatch.setattr(stopping, "wait", lambda seconds: bool(waited.append(seconds)))
    seen: list[Progress] = []
    result = mc.jobs.backfill(progress=seen.append)
    assert (result.done, result.left, result.failed, result.stopped) == (150, 0, (), None)
    assert waited == [30] and [p.pause for p in seen if p.pause] == [30]
    assert [len(texts) for texts in service.asked] == [100, 50, 50]


def test_progress_is_told_and_never_goes_back(open_store: Opener) -> None:
    many(words_only(open_store), 230, bad=[3])
    seen: list[Progress] = []
    open_store(embedder=Service(refusing(400))).jobs.backfill(progress=seen.append)
    told = [(p.total, p.done, p.failed) for p in seen]
    assert told[0] == (230, 0, 0) and told[-1] == (230, 229, 1)
    past = [p.done + p.failed for p in seen]
    assert past == sorted(past)


def test_stopping_it_keeps_what_is_done_and_gives_the_rest_back(open_store: Opener) -> None:
    many(words_only(open_store), 550)

    def answer(texts: Sequence[str]) -> None:
        if len(service.asked) == 2:
            mc.jobs.stop()

    service = Service(answer)
    mc = open_store(embedder=service)
    result = mc.jobs.backfill()
    assert 200 <= result.done < 550 and result.done + result.left == 550
    assert mc.jobs.list(status="running") == []
    assert {job.attempts for job in mc.jobs.list(status="pending", limit=999)} == {0}
    other = open_store(embedder=Service())
    assert other.jobs.backfill().done == result.left and lacking(other) == 0


def test_a_row_deleted_while_its_vector_is_made_leaves_none(open_store: Opener) -> None:
    ids = many(words_only(open_store), 5)

    def answer(texts: Sequence[str]) -> None:
        mc.user("ana").memories.delete(ids[2])
        service.answer = None

    service = Service(answer)
    mc = open_store(embedder=service)
    result = mc.jobs.backfill()
    assert result.left == 0 and vectors(mc) == 4


# As a command


def command(home: Path, *args: str, **env: str) -> Piped:
    given = {
        "MEMCHAT_HOME": str(home),
        "MEMCHAT_USER": "ana",
        "MEMCHAT_EMBED_MODEL": "hash",
        "MEMCHAT_TIMEZONE": "UTC",
    }
    return Piped(MEMCHAT, args, env=os.environ | given | env, cwd=home.parent)


def test_the_command_tells_done_and_left_and_its_code_tells_too(
    open_store: Opener, tmp_path: Path
) -> None:
    with words_only(open_store) as mc:
        many(mc, 120)
        home = mc.settings.home
    process = command(home, "backfill")
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "120 done, 0 failed, 0 left\n")
    assert err.splitlines()[0] == "0 of 120 (0 %)"
    assert re.fullmatch(r"120 of 120 \(100 %\), [\d,]+(\.\d)? a second", err.splitlines()[-1])
    out, err = command(home, "backfill").communicate(timeout=PATIENCE)
    assert (out, err) == ("0 done, 0 failed, 0 left\n", "")
    process = command(home, "backfill", MEMCHAT_EMBED_MODEL="none")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and err.startswith("memchat: there is nothing to make vectors")


def test_the_command_names_what_failed_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refuses = f"""
            from memchat.errors import ProviderError
            if any("{BAD}" in text for text in texts):
                raise ProviderError("the service refused it", status=400)
"""
    head, body = CODE.split("            asked.append")
    install(tmp_path / "site", monkeypatch, code=f"{head}{refuses}            asked.append{body}")
    for name, value in {
        "HOME": str(tmp_path / "store"),
        "EMBED_MODEL": "none",
        "USER": "ana",
    }.items():
        monkeypatch.setenv(f"MEMCHAT_{name}", value)
    monkeypatch.chdir(tmp_path)
    with MemChat() as mc:
        ids = many(mc, 30, bad=[7])
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "acme/small")
    assert main(["backfill"]) == 1
    said = capsys.readouterr()
    assert said.out == "29 done, 1 failed, 1 left\n"
    assert "the service refused it" in said.err and BAD not in said.err
    with MemChat() as mc:
        assert statuses(mc, "completed") == [i for i in ids if i != ids[7]]


def test_after_kill_9_it_goes_on_where_it_was(open_store: Opener, tmp_path: Path) -> None:
    with words_only(open_store) as mc:
        many(mc, 400)
        home = mc.settings.home
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from memchat import MemChat\n"
        "from memchat.config import Settings\n"
        "from memchat.providers.embedders import HashEmbedder\n"
        "class Slow(HashEmbedder):\n"
        "    calls = 0\n"
        "    def embed_documents(self, texts):\n"
        "        Slow.calls += 1\n"
        "        if Slow.calls == 3:\n"
        "            print('third', flush=True)\n"
        "            time.sleep(600)\n"
        "        return super().embed_documents(texts)\n"
        "MemChat(settings=Settings(home=Path(sys.argv[1])), embedder=Slow()).jobs.backfill()\n"
    )
    child = Piped(script, [str(home)], env={**os.environ}, cwd=home.parent)
    assert child.stdout.readline() == "third\n"
    begun, done = time.monotonic(), 0
    while done < 200 and time.monotonic() - begun < PATIENCE:
        with words_only(open_store) as looking:
            done = vectors(looking)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=PATIENCE)
    assert done == 200, "what was done before is kept"
    service = Service()
    result = open_store(embedder=service).jobs.backfill()
    assert (result.total, result.done, result.left) == (200, 200, 0)
    assert sum(map(len, service.asked)) == 200
