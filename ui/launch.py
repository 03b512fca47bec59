"""Starting the app: the page's server on this machine's own address, with its theme."""

from __future__ import annotations

import logging
import os
import socket
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memchat.errors import ConfigError, StoreError
from ui import theme

SCRIPT = Path(__file__).with_name("app.py")
USER = "MEMCHAT_USER"
PORT = 8501


def launch(user: str, port: int, tell: Callable[[str], object]) -> None:
    """Serve the app until it is stopped; ``tell`` is told where. Raises StoreError for a port that
    is taken."""
    try:
        from streamlit.web import bootstrap
    except ImportError as error:
        raise ConfigError(
            f"Streamlit is not installed ({error}); run make, or pip install it"
        ) from error
    _check_free(port)
    os.environ[USER] = user
    keep_words_out_of_logs()
    tell(f"memchat is at http://127.0.0.1:{port}; Ctrl-C ends it")
    bootstrap.load_config_options(flag_options=theme.options(port))
    bootstrap.run(str(SCRIPT), False, [], theme.options(port))


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
