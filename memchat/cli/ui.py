"""``memchat ui``: the app in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from memchat.cli.options import User


def ui(
    user: User,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Where it listens.")] = 8501,
) -> None:
    """Open the app in the browser: chat, memories, inbox, insights, settings.

    It is for one person, and listens on this machine alone (127.0.0.1). Ctrl-C ends it.
    """
    from memchat.types import clean_name
    from memchat.ui.launch import launch

    launch(clean_name(user, "user"), port)
