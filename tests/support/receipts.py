"""Receipts of replies."""

from __future__ import annotations

from memchat import MemChat
from memchat.types import Why
from tests.support import private


def reply_to(mc: MemChat, text: str, **where) -> Why:
    """Say it in a conversation that stays open; why its reply is as it is."""
    chat = mc.user("ana", **where).chat()
    message_id = chat.send(text).read() and private.last_reply(chat).message_id
    return mc.user("ana", app=where.get("app", "default")).sessions.why(message_id)


# --- the command line


def run(mc: MemChat, monkeypatch, capsys, *args: str) -> tuple[int, str, str]:
    """One command on the test's own store."""
    from memchat.cli import main

    for name, value in {
        "MEMCHAT_HOME": str(mc.settings.home),
        "MEMCHAT_USER": "ana",
        "MEMCHAT_EMBED_MODEL": "none",
        "MEMCHAT_TIMEZONE": "Europe/Berlin",
    }.items():
        monkeypatch.setenv(name, value)
    capsys.readouterr()
    code = main(args)
    captured = capsys.readouterr()
    return code, captured.out, captured.err
