"""``memchat ui``: the app in the browser."""

from __future__ import annotations

import sys
from importlib import import_module, util
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from memchat.cli.options import ENV_FILE, User, advise_move, settings
from memchat.errors import ConfigError


def ui(
    user: User,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Where it listens.")] = 8501,
) -> None:
    """Open the app in the browser.

    Chat, memories, inbox, insights and settings. It is for one person, and listens on this
    machine alone (127.0.0.1). Ctrl-C ends it.
    """
    from memchat.cli import log, minilm, tables
    from memchat.types import clean_name

    if util.find_spec("streamlit") is None:
        raise ConfigError(
            "the app in the browser needs Streamlit, which is not installed; "
            "run pip install 'memchat[ui]'"
        )
    set_to = settings()
    advise_move(set_to)
    minilm.offer(set_to)
    sys.path.insert(0, str(_folder()))
    launch = import_module("ui.launch").launch
    log.start(set_to)
    launch(clean_name(user, "user"), port, tables.notice, env_file=ENV_FILE.get())


def _folder() -> Path:
    # In a wheel the app lies inside the package, in a checkout beside it: no other package is to
    # meet one that is called ui.
    package = Path(str(files("memchat")))
    inside = package / "ui_data"
    return inside if inside.is_dir() else package.parent
