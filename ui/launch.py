"""Starting the app: the page's server on this machine's own address, with its theme."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memchat.config import Settings, load
from memchat.config.providers import KEY_NAMES, without_secrets
from memchat.config.settings import HOME, VARIABLES, EnvFile
from memchat.errors import ConfigError, StoreError
from ui import people, theme

SCRIPT = Path(__file__).with_name("app.py")
USER = "MEMCHAT_USER"
PORT = 8501
PATIENCE = 60.0
"""Seconds that the browser waits for the server."""


@dataclass(frozen=True, slots=True)
class _Sources:
    """What the settings come from besides the data folder's files, as it was at the start."""

    environment: Mapping[str, str] = field(repr=False)
    """With the keys, which ``os.environ`` holds no longer, and with whole paths: the server works
    in another folder than it was started in."""
    env_file: EnvFile | None
    auth: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The providers that people sign in with, and the secret of their cookies."""

    def read(self) -> Settings:
        """The settings, with the data folder's files as they are now."""
        return load(self.environment, env_file=self.env_file)


_sources: _Sources | None = None


def launch(
    user: str,
    port: int,
    tell: Callable[[str], object],
    *,
    env_file: EnvFile | None = None,
    public_url: str | None = None,
) -> None:
    """Serve the app until it is stopped; ``tell`` is told where. Raises StoreError for a port that
    is taken, InputError for an address that cannot be."""
    global _sources
    _check_free(port)
    public = people.public_origin(public_url) if public_url is not None else None
    url = public or f"http://127.0.0.1:{port}"
    sources = _of_this_process_alone(env_file, url)
    if public is not None and not sources.auth:
        raise ConfigError(
            "--public-url is for people who sign in, and no provider is named: whoever came would "
            "be you; docs/people.md says how to name one"
        )
    os.environ[USER], _sources = user, sources
    _leave_the_working_folder()
    from ui import server

    keep_words_out_of_logs()
    tell(f"memchat is at {url}; Ctrl-C ends it")
    if _has_screen():
        threading.Thread(target=_open_browser, args=(url, port), daemon=True).start()
    server.app(SCRIPT, sources.auth, public).run(config=theme.options(port, public))


def settings() -> Settings:
    """The settings: those the server was started with, and the data folder's files as they are
    now. Raises ConfigError where one of these cannot be used."""
    return _sources.read() if _sources is not None else load()


def auth() -> Mapping[str, Any]:
    """How people sign in; empty where nobody does. As it was at the start: an app that people can
    reach must not become one person's when a file goes away."""
    return _sources.auth if _sources is not None else {}


def home() -> Path:
    """The data folder of a server that people sign in to."""
    assert _sources is not None
    return Path(_sources.environment[HOME])


def _of_this_process_alone(env_file: EnvFile | None, url: str) -> _Sources:
    """The sources of the settings, with the environment's keys, which are taken out of the
    environment: what Streamlit starts (git, for one) inherits it."""
    found = load(env_file=env_file)
    auth = people.read_auth(found.home, url)
    environment = dict(os.environ) | {HOME: str(found.home.absolute())}
    if found.models is not None:
        environment[VARIABLES["models"]] = str(found.models.absolute())
    for name in KEY_NAMES:
        os.environ.pop(name, None)
    return _Sources(environment, env_file, auth)


def _leave_the_working_folder() -> None:
    """Streamlit reads ``.streamlit`` of the working folder, and Python may import modules from it.

    In the root folder only the system's administrator can put such files.
    """
    os.chdir(Path(SCRIPT.anchor))


def _has_screen() -> bool:
    """Whether a browser can be shown here, and nobody said that it should not."""
    if os.environ.get("STREAMLIT_SERVER_HEADLESS", "").lower() in ("1", "true"):
        return False
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform != "linux" or bool(display)


def _open_browser(url: str, port: int) -> None:
    """Open the page once the server answers, in an environment without keys."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            # -I: nothing of this process's folder or environment is imported.
            command = [sys.executable, "-I", "-m", "webbrowser", url]
            none = subprocess.DEVNULL
            subprocess.Popen(command, env=without_secrets(os.environ), stdout=none, stderr=none)
            return
        time.sleep(0.1)


def keep_words_out_of_logs() -> None:
    """Have tracebacks logged by places and class alone: an exception's text may be people's words.

    With MEMCHAT_DEBUG=1 they stay whole.
    """
    make = logging.getLogRecordFactory()

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made = make(*args, **kwargs)
        error = made.exc_info[1] if made.exc_info else None
        if error is not None and os.environ.get("MEMCHAT_DEBUG") != "1":
            places = "".join(traceback.format_tb(error.__traceback__))
            made.exc_info, made.exc_text = None, f"{places}{type(error).__name__}"
        return made

    logging.setLogRecordFactory(record)


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StoreError(
                f"port {port} cannot be used ({error.strerror}); give another with --port"
            ) from error
