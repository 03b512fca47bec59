"""A provider that people sign in with, on this machine: OpenID Connect's code flow, with ID tokens
that are signed. Whoever is named in ``at_the_keyboard`` is signed in at once."""

from __future__ import annotations

import json
import secrets
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "memchat", "client-secret"
COOKIE_SECRET = "a secret of the cookies for these tests alone"


class Provider:
    """The provider, until the block ends."""

    def __init__(self) -> None:
        self.at_the_keyboard: dict[str, Any] = {}
        """The claims of the person who signs in next."""
        self.signs_with = self._key = RSAKey.generate_key(2048, {"kid": "one"})
        self._codes: dict[str, dict[str, Any]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def auth(self) -> dict[str, str]:
        """What the app is told of it, as it stands under ``[auth]``."""
        return {
            "client_id": CLIENT,
            "client_secret": SECRET,
            "server_metadata_url": f"{self.issuer}/.well-known/openid-configuration",
            "cookie_secret": COOKIE_SECRET,
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urlsplit(self.path)
                query = dict(parse_qsl(asked.query))
                if asked.path == "/authorize":
                    told = {"code": provider._code(query), "state": query["state"]}
                    self._redirect(f"{query['redirect_uri']}?{urlencode(told)}")
                elif asked.path == "/logout":
                    self._redirect(query["post_logout_redirect_uri"])
                elif asked.path == "/jwks":
                    self._json({"keys": [provider._key.as_dict(private=False)]})
                else:
                    self._json(provider._metadata())

            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                form = dict(parse_qsl(self.rfile.read(size).decode()))
                self._json(provider._token(form["code"]))

            def _redirect(self, to: str) -> None:
                self.send_response(302)
                self.send_header("location", to)
                self.end_headers()

            def _json(self, told: dict[str, Any]) -> None:
                body = json.dumps(told).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "end_session_endpoint": f"{self.issuer}/logout",
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def _code(self, query: dict[str, str]) -> str:
        code = secrets.token_urlsafe()
        self._codes[code] = {**self.at_the_keyboard, "nonce": query["nonce"]}
        return code

    def _token(self, code: str) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 600}
        claims |= self._codes.pop(code)
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.signs_with)
        return {"access_token": "unused", "token_type": "Bearer", "id_token": token}


def let_in(
    home: Path, auth: dict[str, str], *, allow: list[str] = (), admins: list[str] = ()
) -> None:
    """Name a provider, and the people, in the files of a data folder."""
    (home / ".streamlit").mkdir(parents=True, exist_ok=True)
    _private(home / ".streamlit" / "secrets.toml", {"auth": auth})
    _private(home / "settings.toml", {"people": {"allow": [*allow], "admins": [*admins]}})


def _private(path: Path, tables: dict[str, dict[str, Any]]) -> None:
    lines = [
        line
        for name, table in tables.items()
        for line in (f"[{name}]", *(f"{key} = {json.dumps(one)}" for key, one in table.items()))
    ]
    path.touch(mode=0o600)
    path.write_text("\n".join(lines), "utf-8")
