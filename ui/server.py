"""The server of the app: no page it serves reaches out, and no other page reaches in.

The content security policy is the second wall behind ``ui.reply_html``, which draws a model's words
without anything active: a browser that obeys it fetches nothing from elsewhere whatever is drawn.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import streamlit
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, HTMLResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from streamlit.web.server.server_util import AUTH_COOKIE_NAME
from streamlit.web.server.starlette import App

from memchat.errors import MemChatError
from ui import attached, launch, live, people
from ui.theme import DARK, HOSTS, LIGHT

SCRIPTS = Path(__file__).with_name("scripts")
STYLE = Path(__file__).with_name("style.css")
STREAMLIT = Path(streamlit.__file__).parent / "static" / "index.html"
PAGES = ("", "memories", "notes", "inbox", "insights", "settings")
"""Where the page is served; within it the browser goes on without loading it again."""
PERSONAL = ("/media/", "/_stcore/upload_file/", "/_stcore/metrics", f"{live.PATH}/")
"""What only people who are let in ask for."""
HEAD = f"""<title>memchat</title>
    <link rel="manifest" href="/memchat/manifest.json" />
    <link rel="apple-touch-icon" href="/memchat/icon.png" />
    <meta name="theme-color" content="{LIGHT["backgroundColor"]}" />
    <meta name="theme-color" content="{DARK["backgroundColor"]}"
          media="(prefers-color-scheme: dark)" />
"""


def _page() -> str:
    """Streamlit's page under memchat's name, with its icon, style and scripts from the first
    moment on."""
    names = sorted(path.name for path in SCRIPTS.glob("*.js"))
    own = "".join(f'<script defer src="/memchat/{name}"></script>' for name in names)
    text = STREAMLIT.read_text("utf-8")
    for theirs, ours in {
        r"<title>Streamlit</title>": HEAD,
        r"<noscript>.*</noscript>": "<noscript>memchat needs JavaScript.</noscript>",
        r"</body>": f"<style>{STYLE.read_text('utf-8')}</style>{own}</body>",
    }.items():
        text, found = re.subn(theirs, lambda _, ours=ours: ours, text, flags=re.DOTALL)  # type: ignore[misc]
        assert found == 1, theirs
    return text


def _inline_scripts() -> str:
    """The scripts that stand in the text of Streamlit's page, each by its hash: one sets
    ``prerenderReady``."""
    page = STREAMLIT.read_text("utf-8")
    found = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in found)
    return " ".join(f"'sha256-{one}'" for one in hashes)


POLICY = {
    "default-src": "'self'",
    "script-src": f"'self' {_inline_scripts()}",
    # Streamlit's styles are written into the page as it is drawn.
    "style-src": "'self' 'unsafe-inline'",
    "connect-src": "'self'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "media-src": "'self' data: blob:",
    "frame-src": "'none'",
    "frame-ancestors": "'none'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
}
HEADERS = {
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-dns-prefetch-control": "off",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class OwnPagesOnly:
    """Puts the headers on each answer, and refuses what a page of another origin asks for, what
    is asked of another host, and what is people's where one who is not let in asks."""

    def __init__(
        self, app: Callable[[Scope, Receive, Send], Awaitable[None]], public: str | None = None
    ) -> None:
        """``public`` is the origin of the app, where it has another than this machine's."""
        self._app = app
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or socket."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
                if (self._public or "").startswith("https:"):
                    message["headers"] = [_secure(*header) for header in message["headers"]]
            await send(message)

        if scope["type"] not in ("http", "websocket") or self._may(HTTPConnection(scope)):
            await self._app(scope, receive, with_headers)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await with_headers({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b"Only memchat's own page may ask."})

    def _may(self, asks: HTTPConnection) -> bool:
        own = _own(asks.headers, self._public)
        return own and (not asks["path"].startswith(PERSONAL) or _let_in(asks.cookies))


def _let_in(cookies: dict[str, str]) -> bool:
    """Whether a request comes from a browser of one of the people, where people sign in."""
    if not launch.auth():
        return True
    # Streamlit looks at its cookie for the socket alone.
    from streamlit.web.server.starlette import starlette_websocket as streamlits

    claims = streamlits._get_signed_cookie_with_chunks(cookies, AUTH_COOKIE_NAME)
    try:
        people.person_of(json.loads(claims or "{}"), launch.home())
    except MemChatError:
        return False
    return True


def _secure(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A header under which a cookie is sent over TLS alone; Streamlit leaves that open."""
    return name, value + b"; Secure" * (name.lower() == b"set-cookie")


def _own(headers: Headers, public: str | None) -> bool:
    """Whether a request comes from the app's own page, or from no page at all, and names this
    machine, or the app's public address alone: a page of another name may lead its name here.

    Streamlit compares names of hosts alone, which every port of this machine shares, and looks at
    them for the socket alone.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if public is not None:
        return host.lower() == public.partition("//")[2] and origin in (None, public)
    return host.partition(":")[0].lower() in HOSTS and origin in (None, f"http://{host}")


def app(script: Path, auth: Mapping[str, Any], public: str | None) -> App:
    """The server's application, which runs this script for each visitor, who signs in by ``auth``
    if it holds something, at the origin ``public`` if there is one."""
    page = _page()

    async def answer(_: Request) -> HTMLResponse:
        return HTMLResponse(page, headers={"cache-control": "no-cache"})

    async def icon(_: Request) -> FileResponse:
        return FileResponse(SCRIPTS / "icon.png")  # the page's code asks for it under this name

    own = [Route(f"/{name}", answer) for name in PAGES] + [Route("/favicon.png", icon)]
    own_files = Mount("/memchat", StaticFiles(directory=SCRIPTS))
    return App(
        script,
        routes=[*live.ROUTES, *attached.ROUTES, *own, own_files],
        middleware=[Middleware(OwnPagesOnly, public=public)],
        secrets={"auth": dict(auth)} if auth else None,
    )
