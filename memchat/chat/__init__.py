"""A conversation: the life of its session, and the route of each message in ``turn``."""

from memchat.chat.conversation import Parts, Reply
from memchat.chat.session import Chat
from memchat.chat.turn import answer_once

__all__ = ["Chat", "Parts", "Reply", "answer_once"]
