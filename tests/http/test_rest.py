"""The library's verbs over HTTP: the same answers as in the process, and who may call what."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest

from memchat import (
    AsyncClient,
    Client,
    InputError,
    NotesFound,
    NotFound,
    PromptContext,
    ScopeError,
    SecretError,
    StoreError,
)
from memchat.config.tokens import RIGHTS, Token
from memchat.http.gate import Options
from memchat.http.routes import ROUTES, Route
from tests.support.served import Served, serving
from tests.support.store import WAIT


def client(served: Served, token: str = "admin", **more: Any) -> Client:
    return Client(served.url, served.secrets[token], timeout=WAIT, **more)


def asked(served: Served, method: str, path: str, token: str = "admin", **more: Any) -> Any:
    headers = served.headers(token) | more.pop("headers", {})
    return httpx.request(
        method, served.url + path, headers=headers, timeout=WAIT, verify=False, **more
    )


def filled(served: Served) -> None:
    """Something of everything."""
    ana = served.ana
    ana.memories.add("profile", "city", "Porto", tags=["home"], metadata={"topic": "move"})
    ana.memories.update(1, value="Faro")
    ana.memories.add("preference", "drinks", "green tea")
    ana.notes.add("The fence is to be green.", title="Garden")
    ana.add([{"role": "user", "content": "My boat is blue."},
             {"role": "assistant", "content": "Nice."}], session="s", when="end")  # fmt: skip
    ana.client("page", "ask").remember("fact", "pet", "a cat")


PROXY = Options(public_url="https://memory.example", worker=False)
FRONT = Options(user_header="x-openwebui-user-email", worker=False)
SAME = (
    ("search", ("green",), {}),
    ("search", ("Faro",), {"tags": ["home"], "metadata": {"topic": "move"}}),
    ("search", ("Faro",), {"since": date(2026, 1, 1), "said_by": "person"}),
    ("context", ("Where do I live?",), {}),
    ("memory_switch", (), {}),
    ("memories.list", (), {"limit": 1}),
    ("memories.get", (1,), {}),
    ("memories.history", (1,), {}),
    ("memories.evidence", (1,), {}),
    ("sessions.list", (), {}),
    ("sessions.get", (1,), {}),
    ("sessions.messages", (1,), {}),
    ("notes.list", (), {}),
    ("notes.get", (1,), {}),
    ("notes.search", ("fence",), {}),
    ("inbox.list", (), {}),
    ("apps.list", (), {}),
    ("clients.list", (), {}),
    ("usage", (), {}),
)  # fmt: skip


def verb(face: Any, name: str) -> Any:
    for part in name.split("."):
        face = getattr(face, part)
    return face


def without_mark(value: Any) -> Any:
    """A context without the mark that is made anew for each, and hits of notes without the count
    of searches that found them."""
    if isinstance(value, NotesFound):
        return [replace(hit, match_count=0) for hit in value.hits]
    return replace(value, text="", tokens=0) if isinstance(value, PromptContext) else value


def test_the_client_gives_what_the_library_gives(served: Served) -> None:
    filled(served)

    async def awaited() -> list[Any]:
        async with AsyncClient(served.url, served.secrets["admin"], timeout=WAIT) as other:
            return [await verb(other, name)(*given, **named) for name, given, named in SAME]

    loop = asyncio.new_event_loop()
    try:
        also = loop.run_until_complete(awaited())
    finally:
        loop.close()
    with client(served) as over:
        for (name, given, named), other in zip(SAME, also, strict=True):
            here = without_mark(verb(served.ana, name)(*given, **named))
            for there in (verb(over, name)(*given, **named), other):
                assert without_mark(there) == here, name
                assert type(there) is type(verb(served.ana, name)(*given, **named)), name


def test_pages_follow_their_cursor_to_the_end(served: Served) -> None:
    filled(served)
    with client(served) as over:
        page = over.memories.list(limit=1)
        rest = over.memories.list(limit=1, cursor=page.cursor)
        assert [one.id for one in (*page, *rest)] == [2, 1] and rest.cursor is None


def test_whoever_acts_as_the_person_can_change_what_is_kept(served: Served) -> None:
    filled(served)
    with client(served) as over:
        made = over.memories.add("fact", "car", "a red one", expires_at=date(2030, 1, 1))
        assert over.memories.update(made.id, value="a blue one").value == "a blue one"
        assert over.memories.delete(made.id).memories == 1
        assert over.memories.delete(2, hold=60).memories == 1
        assert over.memories.restore(2).id == 2 and over.memories.pin(2).pinned
        note = over.notes.add("Roses.", title="Bed")
        assert note is not None and over.notes.update(note.id, title="Roses").title == "Roses"
        assert over.notes.delete(note.id).count == 1
        (item,) = over.inbox.list()
        assert over.inbox.accept(item.id).value == "a cat"
        assert not over.set_memory(False).on and over.set_memory(True).on
        assert over.sessions.delete(1).gone == ()
        learned = over.add("I moved to Faro.", session="t", when="end")
        assert learned.stored == 1 and over.sessions.end(learned.session_id).id
    with pytest.raises(NotFound):
        served.ana.memories.get(made.id)


def test_a_program_s_writes_go_the_way_of_its_mode(served: Served) -> None:
    for token, status in (("ask", "waiting"), ("trust", "stored")):
        with client(served, token) as over:
            done = over.program.remember("preference", "drinks", f"{token} tea")
            assert done.status == status
    (stored,) = served.ana.memories.list()
    with client(served, "ask") as over:
        assert over.program.update(stored.id, "milk").status == "waiting"
        assert over.program.forget(stored.id).status in ("waiting", "hidden")
    assert {one.name for one in served.ana.clients.list()} == {"ask", "trust"}


def test_what_a_program_teaches_through_messages_waits_where_it_is_not_trusted(
    served: Served,
) -> None:
    with client(served, "ask") as over:
        over.add("I live in Porto.", session="s", when="end")
        with pytest.raises(InputError, match="cannot be given over HTTP"):
            over.add("I live in Porto.", through=None)
    said = asked(served, "POST", "/api/messages", "ask",
                 json={"messages": "I live in Porto.", "through": None})  # fmt: skip
    assert said.status_code == 422 and "through: is not known" in said.json()["detail"]


def test_the_errors_of_the_library_come_through(served: Served) -> None:
    with client(served) as over:
        with pytest.raises(NotFound, match="no memory 7"):
            over.memories.get(7)
        with pytest.raises(SecretError, match="looks like"):
            over.memories.add("fact", "card", "4111 1111 1111 1111")
        with pytest.raises(InputError, match="question is empty"):
            over.search(" ")
        with pytest.raises(AttributeError, match="backup"):
            over.backup
    with client(served, "trust") as over, pytest.raises(ScopeError, match="admin"):
        over.memories.delete(1)
    with Client(served.url, "wrong") as over, pytest.raises(ScopeError, match="token"):
        over.memories.list()


def test_a_problem_says_what_is_wrong_as_the_standard_has_it(served: Served) -> None:
    for method, path, status, more in (
        ("GET", "/api/memories/7", 404, {}),
        ("GET", "/api/memories/seven", 422, {}),
        ("GET", "/api/memories?limit=none", 422, {}),
        ("GET", "/api/memories?colour=red", 422, {}),
        ("GET", "/api/memories?metadata=x", 422, {}),
        ("POST", "/api/memories", 422, {"json": {"type": "profile"}}),
        ("POST", "/api/memories", 422, {"content": b"{"}),
        ("GET", "/api/nothing", 404, {}),
        ("PUT", "/api/memories", 404, {}),
    ):
        said = asked(served, method, path, **more)
        assert said.status_code == status, (path, said.text)
        assert said.headers["content-type"] == "application/problem+json"
        told = said.json()
        assert told["status"] == status and told["title"] and told["detail"] and told["code"]
    said = asked(served, "POST", "/api/memories", content=b"{}")
    assert said.status_code == 422 and "Content-Type: application/json" in said.json()["detail"]


@pytest.mark.parametrize("may", RIGHTS)
def test_each_route_needs_the_right_that_it_names_and_no_route_is_open(
    served: Served, may: Any
) -> None:
    served.add(Token("limited", "ana", may=may))
    for route in (*ROUTES, Route("POST", "/v1/chat/completions", "", "chat")):
        path = route.path.replace("{", "").replace("}", "")
        said = asked(served, route.method, path, "limited")
        allowed = RIGHTS.index(route.right) <= RIGHTS.index(may)
        assert (said.status_code == 403) is not allowed, (route, said.text)
        assert httpx.request(route.method, served.url + path).status_code == 401


def test_a_row_has_a_tag_by_which_it_is_not_sent_or_changed_in_vain(served: Served) -> None:
    filled(served)
    row = asked(served, "GET", "/api/memories/1")
    tag = row.headers["etag"]
    assert (
        asked(served, "GET", "/api/memories/1", headers={"if-none-match": tag}).status_code == 304
    )
    change = {"headers": {"if-match": tag}, "json": {"value": "Lagos"}}
    assert asked(served, "PATCH", "/api/memories/1", **change).status_code == 200
    late = asked(served, "PATCH", "/api/memories/1", **change)
    assert late.status_code == 412 and served.ana.memories.get(1).value == "Lagos"


def test_a_request_that_is_sent_twice_under_one_key_is_done_once(served: Served) -> None:
    body = {"text": "The fence is to be green."}
    keyed = {"headers": {"idempotency-key": "k-1"}}
    first = asked(served, "POST", "/api/notes", json=body, **keyed)
    again = asked(served, "POST", "/api/notes", json=body, **keyed)
    assert first.status_code == again.status_code == 201
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["id"] == first.json()["id"] and len(served.ana.notes.list()) == 1
    other = asked(served, "POST", "/api/notes", json={"text": "Blue."}, **keyed)
    assert other.status_code == 422 and len(served.ana.notes.list()) == 1
    fails = {"headers": {"idempotency-key": "k-2"}}
    assert asked(served, "POST", "/api/notes", json={"text": "x", "profile": "?"}, **fails).is_error
    assert asked(served, "POST", "/api/notes", json=body | {"text": "Red."}, **fails).is_success


def test_no_words_of_a_request_are_kept_with_its_key(served: Served) -> None:
    keyed = {"headers": {"idempotency-key": "secret-key-name"}}
    asked(served, "POST", "/api/notes", json={"text": "Roses."}, **keyed)
    for file in served.mc.settings.home.glob("*"):
        assert file.is_dir() or b"secret-key-name" not in file.read_bytes(), file


def test_an_answer_from_notes_comes_in_pieces_with_its_sources(served: Served) -> None:
    filled(served)
    served.extract_model.replies.append("The fence is green [1].")
    with client(served, "trust") as over:
        answer = over.notes.ask("What colour is the fence?")
        pieces = [*answer]
    assert "".join(pieces) == answer.text and "green" in answer.text
    assert [one.note_id for one in answer.sources] == [1]


def test_what_is_exported_over_http_is_imported_over_http_by_another_person(served: Served) -> None:
    filled(served)
    with client(served) as over:
        records = [*over.export()]
    assert records == [*served.ana.export()]
    there = [one for one in records if one["record"] == "memory"]
    file = served.mc.settings.home / "moved.jsonl"
    file.write_bytes(asked(served, "GET", "/api/export").content)
    served.add(Token("ben", "ben", may="admin"))
    with client(served, "ben") as over:
        assert over.import_file(file, dry_run=True).added["memory"] == len(there)
        assert not over.memories.list()
        over.import_file(file)
        assert {one.value for one in over.memories.list()} == {"Faro", "green tea"}
        with pytest.raises(InputError, match=r"^the body is no export"):
            over.import_file(__file__)


def test_an_export_of_what_was_said_over_http_is_known_where_it_came_from(served: Served) -> None:
    served.ask({"role": "user", "content": "I moved to Porto."})
    file = served.mc.settings.home / "again.jsonl"
    with client(served) as over:
        file.write_bytes(asked(served, "GET", "/api/export").content)
        assert not over.import_file(file).added.get("message")


def test_a_token_for_several_people_needs_one_named_and_reaches_nobody_else(served: Served) -> None:
    served.ana.memories.add("profile", "city", "Porto")
    served.mc.user("team-ben").memories.add("profile", "city", "Faro")
    served.add(Token("team", for_users="team-*", may="admin"))
    with client(served, "team", user="team-ben") as over:
        assert [one.value for one in over.memories.list()] == ["Faro"]
        with pytest.raises(NotFound):
            over.memories.get(1)
    for user, status in ((None, 422), ("ana", 403), ("team-*", 200)):
        headers = {"x-memchat-user": user} if user else {}
        said = asked(served, "GET", "/api/memories", "team", headers=headers)
        assert said.status_code == status and "Porto" not in said.text


def test_a_token_for_one_app_reaches_no_other(served: Served) -> None:
    served.ana.memories.add("profile", "city", "Porto")
    served.add(Token("work", "ana", app="work", may="admin"))
    with client(served, "work") as over:
        assert not over.memories.list()
        over.memories.add("fact", "car", "red")
    with client(served, "work", app="default") as over, pytest.raises(ScopeError):
        over.memories.list()
    with client(served, app="work") as over:
        assert [one.value for one in over.memories.list()] == ["red"]


def test_a_token_that_is_over_or_removed_is_as_good_as_none(served: Served) -> None:
    served.add(Token("gone", "ana"))
    served.tokens.remove("gone")
    answers = [asked(served, "GET", "/api/memories", "gone")]
    with pytest.raises(InputError, match="is over"):
        served.add(Token("old", "ana", expires=date(2001, 1, 1)))
    answers.append(httpx.get(f"{served.url}/api/memories", headers={"authorization": "Bearer x"}))
    assert [one.status_code for one in answers] == [401, 401]
    assert answers[0].content == answers[1].content


def test_too_many_requests_of_a_token_are_told_to_wait(tmp_path: Path) -> None:
    with serving(tmp_path / "store", Options(per_minute=3, worker=False)) as served:
        seen = [asked(served, "GET", "/api/memories") for _ in range(4)]
        assert [one.status_code for one in seen] == [200, 200, 200, 429]
        assert int(seen[-1].headers["retry-after"]) > 0
        assert asked(served, "GET", "/api/memories", "trust").status_code == 200


def test_behind_a_proxy_its_name_and_its_pages_are_let_in(tmp_path: Path) -> None:
    public = {"host": "Memory.example", "origin": "https://memory.example"}
    with serving(tmp_path / "store", PROXY) as served:
        assert asked(served, "GET", "/api/memories", headers=public).status_code == 200
        for name, value in (("host", "evil.example"), ("origin", "http://memory.example")):
            said = asked(served, "GET", "/api/memories", headers=public | {name: value})
            assert said.status_code in (403, 421)


def test_a_front_end_s_own_header_names_the_person(tmp_path: Path) -> None:
    with serving(tmp_path / "store", FRONT) as served:
        served.add(Token("team", for_users="*@example.org", may="admin"))
        who = {"x-openwebui-user-email": "ben@example.org"}
        made = asked(served, "POST", "/api/memories", "team", headers=who,
                     json={"type": "fact", "key": "car", "value": "red"})  # fmt: skip
        assert made.json()["user"] == "ben@example.org"


def test_health_needs_no_token_and_the_counts_need_one_and_hold_no_words(served: Served) -> None:
    filled(served)
    asked(served, "GET", "/api/memories/1")
    for path in ("/healthz", "/readyz"):
        assert httpx.get(served.url + path).json() == {"status": "ok"}
    assert httpx.get(f"{served.url}/metrics").status_code == 401
    told = asked(served, "GET", "/metrics").text
    row = 'memchat_requests_total{method="GET",route="/api/memories/{memory_id}",status="200"} 1'
    assert row in told and "memchat_request_seconds_count" in told
    assert not [word for word in ("Faro", "Garden", "ana", "page") if word in told]


def test_the_store_s_own_state_is_for_whoever_may(served: Served) -> None:
    filled(served)
    with client(served) as over:
        assert {job.user for job in over.jobs.list()} <= {"ana"}
    assert asked(served, "GET", "/api/doctor").is_success


def test_the_description_has_every_verb_with_its_help_and_an_example(served: Served) -> None:
    told = httpx.get(f"{served.url}/openapi.json").json()
    for route in ROUTES:
        one = told["paths"][route.path][route.method.lower()]
        assert one["operationId"] == route.verb and one["description"], route
        assert one["security"] and "4XX" in one["responses"]
        assert one["summary"] and "``" not in one["summary"]
    assert told["paths"]["/api/context"]["get"]["summary"].endswith("leave")


def test_the_client_takes_the_address_that_chat_clients_use(served: Served) -> None:
    with Client(f"{served.url}/v1/", served.secrets["trust"]) as over:
        assert not over.memories.list()


def test_the_client_is_refused_in_words_where_the_server_is_not_memchat(served: Served) -> None:
    with Client(served.provider.base, "x") as over, pytest.raises(StoreError, match="answered"):
        over.memories.list()
    served.provider.refusals.clear()


def test_the_description_is_shown_without_anything_from_elsewhere(served: Served) -> None:
    page = httpx.get(f"{served.url}/docs").text
    assert "swagger" in page and "http" not in page.replace(served.url, "").replace("https://", "")


def test_the_page_on_http_lists_every_call() -> None:
    page = Path("docs/http.md").read_text()
    told = re.findall(r"^\| `([A-Z]+) (/api\S*)` \| `([\w.]*)`.* \| (\w+) \|$", page, re.M)
    assert [(r.method, r.path, r.verb, r.right) for r in ROUTES] == told[: len(ROUTES)]
    assert len(told) == len(ROUTES) + 3


def test_a_program_runs_a_workflow_that_is_shared_with_it(served: Served) -> None:
    step = {"id": "a", "type": "Memory Query", "config": {"query": "{{TRANSCRIPT}}"}}
    text = json.dumps({"slug": "find", "name": "Find", "steps": [step]})
    served.ana.workflows.add(text)
    path = "/api/program/workflows/find/run"
    assert asked(served, "POST", path, "ask", json={}).status_code == 404
    served.ana.workflows.share("find", "ask")
    with client(served, "ask") as program:
        run = program.program.run_workflow("find", "tea")
        assert (run.state, run.output) == ("done", "No note speaks of that.")
        with pytest.raises((NotFound, StoreError)):
            program.program.run_workflow("../memories/1", "tea")
