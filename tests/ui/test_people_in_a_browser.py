"""People who sign in with a provider, each in a browser of their own: real Chromium, real server,
a provider on this machine."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import RSAKey
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from tests.support.ui.browser import Server, free_port, needs_browser, opened, say, settled
from tests.support.ui.front import tls_in_front
from tests.support.ui.oidc import COOKIE_SECRET, Provider, let_in

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
COOKIE = "_streamlit_user"


def claims(name: str) -> dict[str, Any]:
    return {"sub": f"sub-{name}", "email": f"{name}@example.org", "email_verified": True}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("people")
    server = Server(home)
    both = ["ana@example.org", "bob@example.org"]
    let_in(home / "store", provider.auth(), allow=both, admins=both[:1])
    with server:
        yield server


def sign_in(page: Any, provider: Provider, name: str) -> Any:
    """Press the button, be known to the provider, and come back."""
    provider.at_the_keyboard = claims(name)
    page.get_by_role("button", name="Sign in").click()
    page.locator("#memchat-message, .st-key-not-let-in").first.wait_for()
    return settled(page)


def comes(browser: Any, server: Server, provider: Provider, name: str) -> Any:
    """Somebody with a browser of their own, signed in."""
    page = opened(browser.new_context().new_page(), server.url)
    return sign_in(page, provider, name)


def cookie(page: Any) -> dict[str, Any]:
    return next(one for one in page.context.cookies() if one["name"] == COOKIE)


def test_two_people_sign_in_and_meet_nothing_of_each_other(
    browser: Any, server: Server, provider: Provider
) -> None:
    ana = comes(browser, server, provider, "ana")
    bob = comes(browser, server, provider, "bob")
    for page, town in ((ana, "Lisbon"), (bob, "Oslo")):
        say(page, f"I live in {town}.")
        page.get_by_role("button", name="Why this answer").wait_for()
    assert ana.get_by_text("ana@example.org").count() == 1
    for page, own, other in ((ana, "Lisbon", "Oslo"), (bob, "Oslo", "Lisbon")):
        page.reload()
        page.locator(".memchat-said").get_by_text(own).wait_for()
        assert other not in page.content()
    bob.goto(ana.url)
    settled(bob).get_by_text("another's").wait_for()
    assert "Lisbon" not in bob.content()
    bob.goto(f"{server.url}settings?part=models")
    settled(bob).get_by_role("heading", name="Settings").wait_for()
    assert bob.get_by_role("link", name="Models").count() == 0
    ana.goto(f"{server.url}settings?part=models")
    settled(ana).get_by_role("link", name="Models").wait_for()


@pytest.mark.slow
def test_who_is_not_on_the_list_is_told_so_and_can_sign_out(
    browser: Any, server: Server, provider: Provider
) -> None:
    eve = comes(browser, server, provider, "eve")
    eve.get_by_role("heading", name="Not let in").wait_for()
    assert eve.get_by_text(f"{provider.issuer} sub-eve").count() == 1
    assert eve.locator("#memchat-message").count() == 0
    eve.get_by_role("button", name="Sign out").click()
    eve.get_by_role("button", name="Sign in").wait_for()


@pytest.mark.slow
def test_signing_out_ends_it_and_leaves_no_draft_to_the_next_one(
    browser: Any, server: Server, provider: Provider
) -> None:
    page = comes(browser, server, provider, "bob")
    held, other = cookie(page), opened(page.context.new_page(), server.url)
    page.locator("#memchat-message").fill("A draft of Bob's")
    page.wait_for_timeout(300)
    assert "Bob" in page.evaluate("JSON.stringify(sessionStorage)")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in").wait_for()
    assert "Bob" not in page.evaluate("JSON.stringify(sessionStorage)")
    other.get_by_role("button", name="New chat").click()
    other.get_by_role("heading", name="Not let in").wait_for()
    page.context.add_cookies([held])  # somebody kept a copy of it
    page.reload()
    page.get_by_role("heading", name="Not let in").wait_for()
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, provider, "ana")
    assert page.locator("#memchat-message").input_value() == ""


def forgeries(value: str, claims: dict[str, Any]) -> Iterator[str]:
    """Cookies that say something else, or were not made by this server for itself."""
    yield value[:-2] + ("AA" if value[-2:] != "AA" else "BB")
    head, _, rest = value.partition(".")
    yield f"{head[:-4]}AAAA.{rest}"
    for secret, origin in (
        ("another secret of 32 characters!!", None),
        (COOKIE_SECRET, "https://x"),
    ):
        told = json.dumps(claims | {"is_logged_in": True, "origin": origin or claims["origin"]})
        yield create_signed_value(secret, COOKIE, told).decode()


@pytest.mark.slow
def test_a_cookie_that_was_tampered_with_signs_nobody_in(
    browser: Any, server: Server, provider: Provider
) -> None:
    page = comes(browser, server, provider, "bob")
    held = cookie(page)
    assert held["httpOnly"] and held["sameSite"] == "Lax"
    origin = server.url.rstrip("/")
    ana = claims("ana") | {"iss": provider.issuer, "origin": origin}
    for forged in forgeries(held["value"], ana):
        page.context.add_cookies([held | {"value": forged}])
        page.reload()
        page.get_by_role("button", name="Sign in").wait_for()
        assert page.locator("#memchat-message").count() == 0
    page.context.add_cookies([held])
    page.reload()
    page.locator("#memchat-message").wait_for()


@pytest.mark.slow
def test_a_token_that_the_provider_did_not_sign_signs_nobody_in(
    browser: Any, server: Server, provider: Provider
) -> None:
    page = opened(browser.new_context().new_page(), server.url)
    real, provider.signs_with = provider.signs_with, RSAKey.generate_key(2048, {"kid": "one"})
    provider.at_the_keyboard = claims("ana")
    try:
        with page.expect_response(lambda answer: "/oauth2callback" in answer.url):
            page.get_by_role("button", name="Sign in").click()
    finally:
        provider.signs_with = real
    page.get_by_role("button", name="Sign in").wait_for()
    assert not [one for one in page.context.cookies() if one["name"] == COOKIE]


@pytest.mark.slow
def test_what_a_page_fetches_by_address_cannot_be_guessed(
    browser: Any, server: Server, provider: Provider
) -> None:
    ana = comes(browser, server, provider, "ana")
    with ana.expect_request(lambda request: "/memchat/live/" in request.url) as live:
        say(ana, "Hello there.")
    ana.get_by_role("button", name="Why this answer").first.wait_for()
    ana.goto(f"{server.url}settings?part=data")
    settled(ana)
    with ana.expect_download() as download:
        ana.get_by_role("button", name="Export everything").click()
    assert "Hello there" in Path(download.value.path()).read_text("utf-8")
    secrets = live.value.url, download.value.url
    assert [url.split("/")[3] for url in secrets] == ["memchat", "media"]
    for url in secrets:
        name = url.split("?")[0].rsplit("/", 1)[1].partition(".")[0]
        assert len(name) >= 32 and int(name, 16)  # 128 bits or more
        guess = url.replace(name, f"{int(name, 16) ^ 1:0{len(name)}x}")
        assert ana.request.get(guess).status == 404
    nobody, eve = browser.new_context(), comes(browser, server, provider, "eve")
    for url in [*secrets, f"{server.url}_stcore/upload_file/x/y", f"{server.url}_stcore/metrics"]:
        assert nobody.request.get(url).status == eve.request.get(url).status == 403, url
    held = cookie(ana)
    ana.get_by_role("button", name="Sign out").click()
    ana.get_by_role("button", name="Sign in").wait_for()
    ana.context.add_cookies([held])
    assert {ana.request.get(url).status for url in secrets} == {403}


# The address that others reach it by

PUBLIC = "https://memory.example.org"


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("public")
    let_in(home / "store", provider.auth())
    with Server(home, public_url=PUBLIC) as found:
        yield found


def asked(server: Server, path: str, **headers: str) -> tuple[int, list[tuple[str, str]]]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as line:
        line.request(
            "GET", path, headers={name.replace("_", "-"): v for name, v in headers.items()}
        )
        answer = line.getresponse()
        return answer.status, answer.getheaders()


UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec_websocket_version": "13",
    "sec_websocket_key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "sec_websocket_protocol": "streamlit",
}


def test_the_public_address_alone_is_answered(public: Server) -> None:
    host = "memory.example.org"
    for path in ("/", "/_stcore/health", "/auth/login"):
        for own in ({"host": host}, {"host": "Memory.Example.org", "origin": PUBLIC}):
            assert asked(public, path, **own)[0] in (200, 302), (path, own)
        for other in (
            {"host": f"127.0.0.1:{public.port}"},
            {"host": f"{host}:8501"},
            {"host": "evil.example"},
            {"host": host, "origin": "http://memory.example.org"},
            {"host": host, "origin": "https://evil.example"},
            {"host": host, "origin": "null"},
        ):
            assert asked(public, path, **other)[0] == 403, (path, other)
    socket = UPGRADE | {"host": host}
    assert asked(public, "/_stcore/stream", **socket, origin=PUBLIC)[0] == 101
    assert asked(public, "/_stcore/stream", **socket, origin="https://evil.example")[0] == 403


@pytest.mark.slow
def test_people_sign_in_from_elsewhere_over_tls(
    browser: Any, tmp_path: Path, provider: Provider
) -> None:
    front = free_port()
    server = Server(tmp_path, public_url=f"https://localhost:{front}")
    let_in(tmp_path / "store", provider.auth(), allow=["ana@example.org"])
    with server, tls_in_front(tmp_path, server.port, front):
        context = browser.new_context(ignore_https_errors=True)
        page = opened(context.new_page(), f"https://localhost:{front}/")
        sign_in(page, provider, "ana")
        say(page, "I live in Lisbon.")
        page.get_by_role("button", name="Why this answer").wait_for()
        held = context.cookies()
        assert held and all(one["secure"] for one in held)
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("button", name="Sign in").wait_for()


def test_the_cookies_of_a_public_address_are_sent_over_tls_alone(public: Server) -> None:
    _, headers = asked(public, "/_stcore/host-config", host="memory.example.org")
    _, more = asked(public, "/_stcore/health", host="memory.example.org")
    cookies = [value for name, value in headers + more if name == "set-cookie"]
    assert cookies and all(value.endswith("; Secure") for value in cookies)
