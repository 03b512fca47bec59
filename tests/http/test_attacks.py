"""Attacks on a served store: strangers, programs that want more than their token, broken HTTP."""

from __future__ import annotations

import gzip
import json
import logging
import random
import re
import resource
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from memchat import StoreError
from memchat.api.store import Jobs
from memchat.config.tokens import Token, Tokens
from memchat.http.client import Client
from memchat.http.gate import Options
from memchat.http.routes import EXAMPLES, ROUTES, WIDER, Route
from tests.support.served import Served, serving, until
from tests.support.store import WAIT
from tests.support.wire.server import Pieces

SECRET = "Porto"
"""A word of ana's in everything of hers, which nobody else may see."""
HI = {"messages": [{"role": "user", "content": "Where do I live?"}]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A store with everything of ana's, whose rows have the id 1, and a token for ben."""
    home = tmp_path_factory.mktemp("attacked") / "store"
    with serving(home, Options(per_minute=10**9, worker=False)) as one:
        ana = one.ana
        ana.memories.add("profile", "city", SECRET, tags=["home"])
        ana.notes.add(f"The house in {SECRET} is green.", title=SECRET)
        ana.add([{"role": "user", "content": f"My boat lies in {SECRET}."},
                 {"role": "assistant", "content": "Nice."}], session="s", when="end")  # fmt: skip
        ana.client("page", "ask").remember("fact", "pet", f"a cat from {SECRET}")
        for name, app in (("ben", ""), ("work", "work")):
            one.add(Token(name, "ben" if name == "ben" else "ana", app=app, may="admin"))
        one.add(Token("team", for_users="team-*", may="admin"))
        one.add(Token("most", for_users="[!a]*", may="admin"))
        yield one


def asked(served: Served, method: str, path: str, token: str = "ben", **more: Any) -> Any:
    headers = served.headers(token) | more.pop("headers", {})
    return httpx.request(
        method, served.url + path, headers=headers, timeout=WAIT, verify=False, **more
    )


def raw(served: Served, head: str | bytes, body: bytes = b"", token: str = "ben") -> bytes:
    """All that comes back for these bytes, to which a Host and a token are added."""
    more = f"\r\nHost: {served.url.removeprefix('http://')}\r\n"
    more += "" if b"length" in body else "Connection: close\r\n"
    more += f"Authorization: {served.headers(token)['authorization']}\r\n" if token else ""
    with connected(served) as peer:
        head = head if isinstance(head, bytes) else head.encode()
        peer.sendall(head + f"{more}\r\n".encode() + body)
        return b"".join(iter(lambda: peer.recv(65_536), b""))


def connected(served: Served) -> socket.socket:
    host, _, port = served.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=WAIT)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def body_of(route: Route) -> dict[str, Any]:
    """What a route needs, beside what is in its path."""
    fields = {} if route.model is None else route.model.model_fields
    wanted = [name for name, one in fields.items() if one.is_required() or name == "value"]
    given = {name: EXAMPLES[name] for name in wanted}
    return {"params": given} if route.method in ("GET", "DELETE") else {"json": given}


@contextmanager
def trap() -> Iterator[tuple[str, Any]]:
    """An address that nobody may call, and whether somebody did."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)

        def called() -> bool:
            try:
                listener.accept()[0].close()
            except BlockingIOError:
                return False
            return True

        yield f"http://127.0.0.1:{listener.getsockname()[1]}/picture.png", called


def memory_used() -> int:
    """The most bytes that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


STRANGERS = {
    "no token": {},
    "an empty token": {"authorization": "Bearer"},
    "a wrong token": {"authorization": "Bearer mc-wrong"},
    "a removed token": {"authorization": "Bearer {removed}"},
    "a token whose last day is over": {"authorization": "Bearer {over}"},
    "another scheme": {"authorization": "Basic {ben}"},
    "no scheme": {"authorization": "{ben}"},
    "the scheme twice": {"authorization": "Bearer Bearer {ben}"},
    "a token in other case": {"authorization": "Bearer {swapped}"},
    "most of a token": {"authorization": "Bearer {cut}"},
    "more than a token": {"authorization": "Bearer {ben}x"},
    "two tokens in one header": {"authorization": "Bearer {ben}, Bearer {ben}"},
    "a very long token": {"authorization": "Bearer " + "x" * 30_000},
    "letters of elsewhere": {"authorization": b"Bearer \xc3\xa9\xff\xfe"},
    "a tab for the space": {"authorization": "Bearer\t{ben}"},
    "a hash of the token": {"authorization": "Bearer {digest}"},
    "a token in a cookie": {"cookie": "authorization=Bearer {ben}; token={ben}"},
    "a token in another header": {"x-api-key": "{ben}", "proxy-authorization": "Bearer {ben}"},
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_whoever_has_no_right_token_gets_the_same_bytes_as_anybody(
    served: Served, kind: str
) -> None:
    ben = served.secrets["ben"]
    past = Tokens(served.mc.settings.home, clock=lambda: datetime(2001, 1, 1, tzinfo=UTC))
    known = {"over": past.add(Token("over", "ana", expires=date(2001, 1, 1))),
             "removed": served.tokens.add(Token("removed", "ana")), "ben": ben,
             "swapped": ben.swapcase(), "cut": ben[:-1],
             "digest": served.tokens.all()["ben"].sha256}  # fmt: skip
    served.tokens.remove("removed")
    given: Any = {
        name: value if isinstance(value, bytes) else value.format(**known)
        for name, value in STRANGERS[kind].items()
    }
    for method, path in (("GET", "/api/memories"), ("POST", "/v1/chat/completions"), ("GET", "/x")):
        said = httpx.request(method, served.url + path, headers=given)
        other = httpx.request(method, served.url + path, headers={"authorization": "Bearer x"})
        assert said.status_code == 401 and said.content == other.content
        assert sorted(said.headers) == sorted(other.headers)


@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "api_key", "key"])
def test_a_token_in_an_address_lets_nobody_in_and_is_not_told_again(
    served: Served, name: str
) -> None:
    query = f"?{name}={served.secrets['ben']}"
    assert httpx.get(f"{served.url}/api/memories{query}").status_code == 401
    said = asked(served, "GET", f"/api/sessions{query}")
    assert said.status_code == 422 and served.secrets["ben"] not in said.text


def kept(served: Served) -> list[dict[str, Any]]:
    """Every row of ana's, but the apps and the programs that asked."""
    rows = served.ana.export()
    return [one for one in rows if one["record"] not in ("header", "app", "client", "end")]


BY_ID = [route for route in ROUTES if route.in_path]


@pytest.mark.parametrize("token", ["ben", "work"])
@pytest.mark.parametrize("route", BY_ID, ids=lambda route: route.verb)
def test_a_row_of_another_person_or_app_is_not_there(
    served: Served, route: Route, token: str
) -> None:
    there = kept(served)
    path = route.path.replace(f"{{{route.in_path[0]}}}", "1")
    for headers in ({}, {"if-match": "*"}, {"idempotency-key": route.verb}):
        said = asked(served, route.method, path, token, headers=headers, **body_of(route))
        assert said.status_code in (404, 412) and SECRET not in said.text, said.text
    assert kept(served) == there


LISTS = [route for route in ROUTES if route.method == "GET" and not route.in_path]


@pytest.mark.parametrize("route", LISTS, ids=lambda route: route.verb)
def test_no_list_or_search_tells_of_another_person(served: Served, route: Route) -> None:
    given = {name: SECRET for name in ("query", "prompt") if name in route.parameters}
    said = asked(served, "GET", route.path, params=given)
    assert said.status_code == 200 and SECRET not in said.text and '"ana"' not in said.text


@pytest.mark.parametrize(
    "method, path, more",
    [
        *(("GET", route.path, {}) for route in ROUTES if route.verb in WIDER),
        ("GET", "/api/memory?all_apps=true", {}),
        ("PUT", "/api/memory", {"json": {"on": False, "all_apps": True}}),
        ("POST", "/api/memories",
         {"json": {"type": "fact", "key": "x", "value": "y", "all_apps": True}}),
        ("POST", "/api/import", {"content": b"{}"}),
    ],
)  # fmt: skip
def test_a_token_of_one_app_gets_nothing_that_is_of_all_of_them(
    served: Served, method: str, path: str, more: Any
) -> None:
    assert asked(served, method, path, "work", **more).status_code == 403
    assert asked(served, "GET", "/api/memory", "admin").json()["on"]


def test_an_export_with_a_token_of_one_app_has_that_app_alone(served: Served) -> None:
    for query in ("", "?all_apps=true"):
        said = asked(served, "GET", f"/api/export{query}", "work")
        assert said.status_code == 200 and SECRET not in said.text


NAMES = {
    "another person": "ben", "a list": "ana,ben", "a list with spaces": "ana, ben",
    "other case": "Ana", "a glob": "*", "part of a glob": "an?", "a class of letters": "[a]na",
    "letters that look alike": "аna", "letters of full width": "ａｎａ", "a path": "ana/../ben",
    "an encoded NUL": "ana%00", "a hidden character": "ana\u200b", "a soft hyphen": "a\u00adna",
    "the direction turned": "\u202eana", "a very long name": "a" * 5_000, "SQL": "ana' or '1'='1",
}  # fmt: skip


@pytest.mark.parametrize("token", ["admin", "team"])
@pytest.mark.parametrize("kind", NAMES)
def test_no_other_name_of_a_person_is_let_in(served: Served, kind: str, token: str) -> None:
    headers = {"x-memchat-user": NAMES[kind].encode()}
    said = asked(served, "GET", "/api/memories", token, headers=headers)
    assert said.status_code in (403, 422) and SECRET not in said.text


@pytest.mark.parametrize("name", ["\u00a0ana", "\u3000ana", "\x1fana", "ana", "\r\n ana"])
def test_a_name_is_compared_as_it_is_kept_so_that_space_before_it_helps_nobody(
    served: Served, name: str
) -> None:
    line = b"GET /api/memories HTTP/1.1\r\nX-Memchat-User: " + name.encode()
    answer = raw(served, line, token="most")
    assert status(answer) in (400, 403) and SECRET.encode() not in answer


def test_a_token_for_several_people_needs_one_of_them(served: Served) -> None:
    for given in ({}, {"x-memchat-user": ""}):
        assert asked(served, "GET", "/api/memories", "team", headers=given).status_code == 422
    headers = {"x-memchat-user": b"team-\xff"}
    assert asked(served, "GET", "/api/memories", "team", headers=headers).status_code == 400


def test_a_person_with_letters_of_elsewhere_is_the_same_one_over_http(served: Served) -> None:
    served.mc.user("team-жанна").memories.add("profile", "city", "Faro")
    with Client(served.url, served.secrets["team"], user="team-жанна", timeout=WAIT) as over:
        assert [one.value for one in over.memories.list()] == ["Faro"]


@pytest.mark.parametrize(
    "name",
    ["authorization", "x-memchat-user", "x-memchat-app", "x-memchat-memory", "x-front-end", "host",
     "origin"],
)  # fmt: skip
def test_a_header_that_decides_who_is_let_in_comes_once(tmp_path: Path, name: str) -> None:
    with serving(tmp_path / "store", Options(user_header="x-front-end", worker=False)) as served:
        line = f"{name}: ana\r\n{name}: ben" if name != "host" else "host: other.example"
        answer = raw(served, f"GET /api/memories HTTP/1.1\r\n{line}", token="trust")
        assert status(answer) == 400


@pytest.mark.parametrize("method, path", [
    ("GET", "/metrics"), ("GET", "/api/export"), ("POST", "/api/import"), ("GET", "/api/doctor"),
])  # fmt: skip
@pytest.mark.parametrize("token", ["ask", "trust"])
def test_a_program_that_may_chat_gets_nothing_of_an_administrator(
    served: Served, method: str, path: str, token: str
) -> None:
    assert asked(served, method, path, token).status_code == 403


PATHS = [
    "/api/../api/memories", "/api/%2e%2e/metrics", "/v1/../../etc/passwd", "/%2e%2e/etc/passwd",
    "/api%2fmemories%2f1", "/api//memories", "//api/memories", "/api/memories/", "/API/memories",
    "/api/memories/1%00", "/api/memories/%31", "/api/memories/1/../1", "/api/memories/-1",
    "/api/memories/0", "/api/memories/1.0", "/api/memories/1e0", "/api/memories/0x1",
    "/api/memories/+1", "/api/memories/１", f"/api/memories/{10**30}", f"/api/notes/{'9' * 5000}",
    "/api/memories/1;ben", "/api/memories/1?memory_id=2", "/api/memories?limit=-1",
    f"/api/memories?limit={10**30}", "/api/memories?cursor=%00", "/api/memories?user=ana",
    "/api/jobs?user=ana", "/api/jobs?status=", "/api/search?query=x&metadata=%7B%22a%22:NaN%7D",
    "/api/search?query=%00", "/api/search?query=%ED%A0%80", "/api/search?query=%22%28*",
    f"/{'a' * 20_000}", "*", "http://other.example/api/memories", "/api/memories%0d%0aX: y",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:40])
def test_no_way_of_writing_an_address_reaches_what_another_one_does_not(
    served: Served, path: str
) -> None:
    answer = raw(served, f"GET {path} HTTP/1.1")
    assert status(answer) < 500 and SECRET.encode() not in answer
    assert status(raw(served, f"GET {path} HTTP/1.1", token="")) in (400, 401, 404)


@pytest.mark.parametrize("path", ["/api/memories", "/v1/models", "/metrics", "/api/export"])
@pytest.mark.parametrize("host", [
    "other.example", "localhost.other.example", "127.0.0.1.nip.io", "127.0.0.1@other.example",
    "other.example:80:127.0.0.1", "", "[::1]", "0.0.0.0", "127.1", "2130706433",
])  # fmt: skip
def test_a_name_that_was_made_to_point_here_is_not_answered(
    served: Served, host: str, path: str
) -> None:
    said = asked(served, "GET", path, "admin", headers={"host": host})
    assert said.status_code == 421 and SECRET not in said.text


@pytest.mark.parametrize("origin", [
    "null", "http://other.example", "http://127.0.0.1", "http://127.0.0.1:1", "https://{own}",
    "http://{own}/", "http://{own}.other.example", "http://ana@{own}", "HTTP://{own}", "",
])  # fmt: skip
def test_a_page_of_another_site_gets_nothing_and_no_leave_to_ask(
    served: Served, origin: str
) -> None:
    given = {"origin": origin.format(own=served.url.removeprefix("http://"))}
    said = asked(served, "GET", "/api/memories", "admin", headers=given)
    assert said.status_code == 403 and SECRET not in said.text
    wish = {"access-control-request-method": "POST"}
    for token in ("admin", "nobody"):
        asks = asked(served, "OPTIONS", "/v1/chat/completions", token, headers=given | wish)
        assert asks.status_code == 403
        assert not [name for name in asks.headers if name.startswith("access-control")]


@pytest.mark.parametrize("headers", [
    {"x-http-method-override": "DELETE"}, {"x-method-override": "DELETE"},
    {"x-forwarded-user": "ana"}, {"x-forwarded-host": "other.example"},
    {"x-forwarded-for": "127.0.0.1"}, {"forwarded": "for=127.0.0.1;host=x"},
    {"x-original-url": "/api/export"}, {"x-rewrite-url": "/metrics"}, {"remote-user": "ana"},
], ids=str)  # fmt: skip
def test_no_header_of_a_proxy_changes_what_is_asked_or_who_asks(
    served: Served, headers: dict[str, str]
) -> None:
    for token, code in (("ben", 404), ("admin", 200)):
        said = asked(served, "GET", "/api/memories/1?_method=DELETE", token, headers=headers)
        assert said.status_code == code
    assert served.ana.memories.get(1).value == SECRET


BROKEN = {
    "two lengths": "POST /api/notes HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 9",
    "a list of lengths": "POST /api/notes HTTP/1.1\r\nContent-Length: 2, 9",
    "a negative length": "POST /api/notes HTTP/1.1\r\nContent-Length: -1",
    "a length with a sign": "POST /api/notes HTTP/1.1\r\nContent-Length: +2",
    "a length and chunks": "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 60",
    "chunks of another kind": "POST /api/notes HTTP/1.1\r\nTransfer-Encoding: xchunked",
    "chunks twice": "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "space before a colon": "GET /api/memories HTTP/1.1\r\nX-Memchat-User : ana",
    "a NUL in a header": "GET /api/memories HTTP/1.1\r\nX-Memchat-User: an\0a",
    "a bare return in a header": "GET /api/memories HTTP/1.1\r\nX-A: b\rX-Memchat-User: ana",
    "no version": "GET /api/memories", "two methods": "GET X /api/memories HTTP/1.1",
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_http_is_refused_once_and_nothing_hides_behind_it(served: Served, kind: str) -> None:
    place = served.url.removeprefix("http://")
    hidden = f"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: {place}\r\nX-length: 1\r\n\r\n".encode()
    answer = raw(served, BROKEN[kind], hidden)
    assert status(answer) == 400 and answer.count(b"HTTP/1.1 ") == 1


def test_programs_that_never_finish_their_requests_do_not_keep_others_waiting(
    served: Served,
) -> None:
    host, token = served.url.removeprefix("http://"), served.headers("trust")["authorization"]
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nAuthorization: {token}\r\n"
    whole = f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    with ExitStack() as held:
        for n in range(100):
            held.enter_context(peer := connected(served))
            peer.sendall((head if n % 2 else whole).encode())
        assert asked(served, "GET", "/api/memories").status_code == 200
        assert asked(served, "POST", "/v1/chat/completions", "trust", json=HI).status_code == 200
    assert asked(served, "GET", "/api/memories").status_code == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/messages", "/mcp"])
@pytest.mark.parametrize("token, code", [("ben", 413), ("", 401)])
def test_a_body_that_says_it_is_huge_is_refused_before_it_comes(
    served: Served, path: str, token: str, code: int
) -> None:
    head = f"POST {path} HTTP/1.1\r\nContent-Length: 10000000000\r\n"
    head += "Content-Type: application/json\r\nAccept: application/json, text/event-stream"
    assert status(raw(served, head, b"{", token)) == code


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/messages", "/api/%69mport/x"])
def test_a_body_without_end_is_refused_and_does_not_stay_in_memory(
    served: Served, path: str
) -> None:
    chunk = b"10000\r\n" + b" " * 2**16 + b"\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: {served.url.removeprefix('http://')}\r\n"
    head += f"Authorization: {served.headers('ben')['authorization']}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    before = memory_used()
    with connected(served) as peer:
        peer.sendall(head.encode())
        for _ in range(2_400):  # 150 MB
            peer.sendall(chunk)
        answer = peer.recv(65_536)
    assert status(answer) == (404 if path.endswith("/x") else 413)
    assert memory_used() - before < 100 * 2**20


DEEP = {
    "lists in lists": "[" * 100_000,
    "lists that end": "[" * 3_000 + "]" * 3_000,
    "messages": '{"messages":' + "[" * 3_000 + "]" * 3_000 + "}",
    "tools": '{"messages":[{"role":"user","content":"x"}],"tools":' + "[" * 3000 + "]" * 3000 + "}",
    "objects": '{"a":' * 3_000 + "1" + "}" * 3_000,
    "what is no number": '{"messages":[{"role":"user","content":"x"}],"seed":NaN}',
    "a number without end": '{"messages":[{"role":"user","content":"x"}],"seed":1e999}',
    "a number of many digits": '{"messages":[],"seed":' + "9" * 10_000 + "}",
    "half a character": '{"messages":[{"role":"user","content":"\\ud800"}],"on":1}',
    "a model of half a character": '{"messages":[{"role":"\\ud800"}],"model":"\\ud800"}',
    "no text": "\x00\x01",
}


@pytest.mark.parametrize("path", [
    "/v1/chat/completions", "/v1/embeddings", "/api/messages", "/api/memories", "/api/import",
    "/api/notes/ask", "/mcp",
])  # fmt: skip
@pytest.mark.parametrize("kind", DEEP)
def test_json_that_nobody_can_read_is_refused(served: Served, kind: str, path: str) -> None:
    told = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    kinds = {"headers": told, "content": DEEP[kind]}
    before = len(served.provider.requests)
    assert asked(served, "POST", path, **kinds).status_code in (400, 422)
    assert len(served.provider.requests) == before


@pytest.mark.parametrize("value", ["[" * 10_000, '{"a":' * 3_000, '{"a":1e999}'])
def test_metadata_in_an_address_that_nobody_can_read_is_refused(served: Served, value: str) -> None:
    said = asked(served, "GET", "/api/search", params={"query": "x", "metadata": value})
    assert said.status_code == 422


@pytest.mark.parametrize("kind", ["", " ", "nothing"])
def test_a_fact_of_no_type_is_refused(served: Served, kind: str) -> None:
    said = asked(served, "POST", "/api/memories", json={"type": kind, "key": "x", "value": "y"})
    assert said.status_code == 422


@pytest.mark.parametrize("hold", ["nan", "inf", "-inf", "1e308"])
def test_no_number_of_seconds_that_cannot_be_is_taken(served: Served, hold: str) -> None:
    assert asked(served, "DELETE", f"/api/memories/1?hold={hold}", "admin").status_code == 422


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/messages", "/api/import"])
def test_what_is_packed_is_not_unpacked(served: Served, path: str) -> None:
    packed = gzip.compress(b" " * 50_000_000 + json.dumps(HI).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    before = memory_used()
    assert asked(served, "POST", path, headers=headers, content=packed).status_code in (400, 422)
    assert memory_used() - before < 40 * 2**20


@pytest.mark.parametrize("name", [
    "{trap}", "openai/{trap}", "openai//{trap}", "openai/../..", "openai/../../{trap}", "azure/x",
    "ollama/{trap}", "hosted_vllm/{trap}", "OPENAI/gpt-4o", " openai/x", "/gpt-4o", "openai/",
    "gpt-4o\r\nX-Header: y", "gpt-4o\0", "gpt-4o?api_base={trap}", "gpt-4o#x", "file:///etc/passwd",
    "gpt-" + "x" * 1_000, ["openai/gpt-4o"], {"openai": 1}, 7, True,
], ids=str)  # fmt: skip
def test_no_name_of_a_model_has_anybody_called(served: Served, name: Any) -> None:
    before = len(served.provider.requests)
    with trap() as (address, called):
        named = name.format(trap=address) if isinstance(name, str) else name
        said = asked(served, "POST", "/v1/chat/completions", json=HI | {"model": named})
        assert said.status_code == 404 and not called()
    assert len(served.provider.requests) == before


@pytest.mark.parametrize("kind", ["image_url", "input_audio", "file", "text"])
def test_no_address_in_a_message_is_fetched_here(served: Served, kind: str) -> None:
    with trap() as (address, called):
        part = {"type": kind, kind: {"url": address, "file_data": address}}
        said = [{"role": "user", "content": [{"type": "text", "text": address}, part]}]
        asked(served, "POST", "/v1/chat/completions", json={"messages": said})
        assert served.provider.requests[-1].body["messages"][-1]["content"][1] == part
        asked(served, "POST", "/api/messages", json={"messages": said, "when": "end"})
        assert not called()


def test_the_log_has_no_words_names_or_tokens_and_one_line_for_each_request(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    ben = served.secrets["ben"]
    with caplog.at_level(logging.DEBUG, "memchat"):
        asked(served, "GET", "/api/memories/%0arequest=forged status=200")
        asked(served, "GET", f"/api/sessions?token={ben}%0aforged")
        asked(served, "GET", "/nowhere%0d%0aforged")
        asked(served, "GET", "/api/memories", headers={"x-memchat-user": "forged"})
        asked(served, "POST", "/v1/chat/completions", json=HI | {"model": "a\nforged"})
        asked(served, "POST", "/v1/chat/completions", json=HI,
              headers={"x-memchat-session": "forged" * 100})  # fmt: skip
        asked(served, "POST", "/api/notes", json={"text": 1, "forged": "\nforged"})
        asked(served, "GET", "/api/memories", token="mc-forged")
        raw(served, "FORGED /api/memories HTTP/1.1")
        until(lambda: sum("request=" in one for one in caplog.messages) >= 9)
    line = re.compile(r"request=\w{16} method=\w+ route=\S* status=\d+ ms=[\d.]+")
    assert all(line.fullmatch(one) for one in caplog.messages if "request=" in one)
    for one in caplog.records:
        told = one.getMessage() + str(one.exc_info or "")
        assert not any(word in told.lower() for word in ("\n", "\r", "forged", ben.lower(), "live"))


def test_made_up_methods_do_not_fill_the_counts(served: Served) -> None:
    for n in range(30):
        raw(served, f"M{n} /api/memories HTTP/1.1", token="")
    told = asked(served, "GET", "/metrics", "admin").text
    assert 'method="other"' in told and "M1" not in told


def test_no_error_tells_where_the_store_lies(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = str(served.mc.settings.home)
    said = asked(served, "POST", "/api/import", content=b"no export")
    assert said.status_code == 422 and home not in said.text

    def broken(*_: object, **__: object) -> None:
        raise StoreError(f"{home}/memchat.db cannot be read")

    monkeypatch.setattr(Jobs, "count", broken)
    for path in ("/readyz", "/metrics"):
        said = asked(served, "GET", path, "admin")
        assert said.status_code == 503 and home not in said.text


def test_no_error_tells_what_was_sent(served: Served) -> None:
    words = "4111 1111 1111 1111"
    for path, sent in (
        ("/api/memories", {"type": "fact", "key": "card", "value": words}),
        ("/api/memories", {"type": "fact", "key": "card", "value": [words]}),
        ("/api/messages", {"messages": [{"role": words, "content": 1}]}),
        ("/v1/chat/completions", HI | {"model": words}),
        ("/v1/chat/completions", {"messages": words}),
    ):
        said = asked(served, "POST", path, json=sent)
        assert said.is_client_error and words not in said.text


@pytest.mark.parametrize("path", ["/api/memories", "/api/memory", "/api/apps", "/api/inbox"])
def test_a_tag_for_what_has_none_changes_nothing(served: Served, path: str) -> None:
    for tag in ("*", '"x"', "x" * 5_000):
        assert asked(served, "GET", path, headers={"if-match": tag}).status_code == 412


def test_a_key_of_another_person_s_request_gives_nothing_of_it(served: Served) -> None:
    keyed = {"json": {"text": f"{SECRET} again."}, "headers": {"idempotency-key": "shared"}}
    assert asked(served, "POST", "/api/notes", "admin", **keyed).status_code == 201
    other = {"json": {"text": "Mine."}, "headers": {"idempotency-key": "shared"}}
    said = asked(served, "POST", "/api/notes", "ben", **other)
    assert said.status_code == 201 and SECRET not in said.text


def test_the_name_of_another_person_s_conversation_opens_a_new_one(served: Served) -> None:
    headers = {"x-memchat-session": "s"}
    said = asked(served, "POST", "/v1/chat/completions", json=HI, headers=headers)
    assert said.is_success and SECRET not in json.dumps(served.sent())
    assert {m.content for m in served.ana.sessions.messages(1)} == {
        f"My boat lies in {SECRET}.", "Nice.",
    }  # fmt: skip


def mixed(served: Served, who: str, n: int) -> str:
    """One of many requests of a person, with words of theirs; what came back."""
    word = f"{who.upper()}-WORD"
    pick = random.Random(n)
    number = pick.randrange(1, 40)
    method, path, more = pick.choice((
        ("GET", "/api/memories", {}), ("GET", f"/api/memories/{number}", {}),
        ("GET", f"/api/sessions/{number}/messages", {}), ("GET", f"/api/notes/{number}", {}),
        ("GET", "/api/search", {"params": {"query": "WORD"}}),
        ("GET", "/api/context", {"params": {"prompt": "WORD"}}),
        ("GET", "/api/export", {}), ("GET", "/api/jobs", {}),
        ("POST", "/api/memories", {"json": {"type": "fact", "key": f"k{number}", "value": word}}),
        ("POST", "/api/notes", {"json": {"text": f"{word} {n}"}}),
        ("POST", "/v1/chat/completions",
         {"json": {"messages": [{"role": "user", "content": f"{word} {number}?"}]}}),
    ))  # fmt: skip
    said = asked(served, method, path, who, **more)
    assert said.status_code in (200, 201, 404), said.text
    return f"{said.text}"


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_of_many_requests_of_two_people_none_has_a_row_of_the_other(
    tmp_path: Path, count: int
) -> None:
    with serving(tmp_path / "store", Options(per_minute=10**9, worker=False)) as served:
        served.provider.reply = json.dumps  # what the provider is sent comes back
        for who in ("amy", "bob"):
            served.add(Token(who, who, may="admin", mode="trust"))
        people = ["amy", "bob"] * (count // 2)
        with ThreadPoolExecutor(8) as threads:
            answers = [*threads.map(lambda n: mixed(served, people[n], n), range(count))]
        for who, answer in zip(people, answers, strict=True):
            assert f"{'BOB' if who == 'amy' else 'AMY'}-WORD" not in answer
        assert sum("AMY-WORD" in one for one in answers) > count // 10


def words(served: Served) -> list[str]:
    """All that ana and the model said."""
    return [one["content"] for one in served.ana.export() if one["record"] == "message"]


@pytest.mark.slow
def test_of_many_streamed_chats_at_a_time_none_is_lost(tmp_path: Path) -> None:
    def chat(n: int) -> str:
        body = {"messages": [{"role": "user", "content": f"Number {n}?"}], "stream": True}
        return str(asked(served, "POST", "/v1/chat/completions", "trust", json=body).text)

    with serving(tmp_path / "store", Options(per_minute=10**9, worker=False)) as served:
        used = []
        for turn in range(3):
            served.provider.script(*[Pieces(("Well", " said."), True, 0.5)] * 50)
            with ThreadPoolExecutor(50) as threads:
                numbers = range(turn * 50, turn * 50 + 50)
                answers = [*threads.map(chat, numbers)]
            assert not [one for one in answers if "[DONE]" not in one or " said." not in one]
            used.append(memory_used())
        until(lambda: sum(said == "Well said." for said in words(served)) == 150)
        assert {f"Number {n}?" for n in range(150)} < {*words(served)}
        assert used[2] - used[1] < 30 * 2**20
