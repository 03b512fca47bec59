"""Starting the app: the page's server on this machine's own address, with its theme."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from memchat.errors import ConfigError, StoreError
from ui import theme

SCRIPT = Path(__file__).with_name("app.py")
USER = "MEMCHAT_USER"
PORT = 8501


def launch(user: str, port: int) -> None:
    """Serve the app until it is stopped. Raises StoreError for a port that is taken."""
    try:
        from streamlit.web import bootstrap
    except ImportError as error:
        raise ConfigError(
            f"Streamlit is not installed ({error}); run make, or pip install it"
        ) from error
    _check_free(port)
    os.environ[USER] = user
    bootstrap.load_config_options(flag_options=theme.options(port))
    bootstrap.run(str(SCRIPT), False, [], theme.options(port))


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StoreError(
                f"port {port} cannot be used ({error.strerror}); give another with --port"
            ) from error
