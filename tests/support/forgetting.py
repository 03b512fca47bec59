"""Facts to forget, and conversations read again after they were forgotten."""

from __future__ import annotations

from memchat.types import Learned
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk


def learn_zanzibar(mc, extract_model, chat_model) -> int:
    chat_model.replies.appendleft("How lovely, Zanzibar!")
    extract_model.replies.append(
        answer(
            fact("I moved to Zanzibar", "city", "Zanzibar"),
            fact("I moved to Zanzibar and I keep bees", "hobby", "keep bees"),
            title="Off to Zanzibar",
            summary="Ana moved to Zanzibar.",
        )
    )
    talk(mc, "I moved to Zanzibar and I keep bees. Do you know Zanzibar?")
    return next(m.id for m in mc.user("ana").memories.list() if m.key == "city")


def read_again(mc, extract_model, *facts, undo_blanks: dict[int, str] | None = None) -> Learned:
    """Every session is read again, by a model that proposes these facts."""
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE sessions SET extracted_to = 0")
        tx.connection.exec_driver_sql(
            "UPDATE jobs SET status = -1, lease_until = NULL WHERE kind = 'extract'"
        )
        for message_id, content in (undo_blanks or {}).items():
            tx.connection.exec_driver_sql(
                "UPDATE messages SET content = ? WHERE id = ?", (content, message_id)
            )
    extract_model.replies.append(answer(*facts))
    (learned,) = mc.jobs.run().learned
    return learned
