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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memchat.config import Settings, load
from memchat.config.names import KEY_NAMES, without_secrets
from memchat.errors import StoreError
from ui import theme

SCRIPT = Path(__file__).with_name("app.py")
USER = "MEMCHAT_USER"
PORT = 8501
PATIENCE = 60.0
"""Seconds that the browser waits for the server."""


_started_with: Settings | None = None


def launch(user: str, port: int, settings: Settings, tell: Callable[[str], object]) -> None:
    """Serve the app until it is stopped; ``tell`` is told where. Raises StoreError for a port that
    is taken."""
    global _started_with
    _check_free(port)
    os.environ[USER] = user
    _started_with = _of_this_process_alone(settings)
    _leave_the_working_folder()
    from ui import server

    keep_words_out_of_logs()
    url = f"http://127.0.0.1:{port}"
    tell(f"memchat is at {url}; Ctrl-C ends it")
    if _has_screen():
        threading.Thread(target=_open_browser, args=(url, port), daemon=True).start()
    server.app(SCRIPT).run(config=theme.options(port))


def settings() -> Settings:
    """The settings that the server was started with."""
    return _started_with or load()


def _of_this_process_alone(settings: Settings) -> Settings:
    """The settings with the environment's keys in them, which are taken out of the environment:
    what Streamlit starts (git, for one) inherits it. Paths no longer hang on the working folder."""
    kept = settings.with_(
        keys=settings.keys.kept(),
        home=settings.home.absolute(),
        models=settings.models and settings.models.absolute(),
    )
    for name in KEY_NAMES:
        os.environ.pop(name, None)
    return kept


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
