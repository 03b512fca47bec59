"""Each fault in a conversation of its own, and what is left of it when the provider is well."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.provider_faults.faults import Fault
from benchmarks.provider_faults.server import REPLY, SAID, Provider
from memchat import MemChat
from memchat.chat import Chat
from memchat.config import Settings
from memchat.errors import MemChatError
from memchat.providers.embedders import HashEmbedder
from memchat.providers.litellm_chat import LiteLLMChat
from memchat.testing import FakeClock

PATIENCE_SECONDS = 1.0
"""How long a silence of the provider is waited for."""
AN_HOUR = 3_600.0
TRIES = 8
KEY = {"OPENAI_API_KEY": "test-key-8d1f0a77c2"}
"""What a process needs in its environment to ask this provider."""


@dataclass(slots=True)
class Outcome:
    """What one fault did: what the person was told, and what of theirs is not there."""

    fault: Fault
    saw: str
    lost: list[str] = field(default_factory=list)

    @property
    def kept(self) -> bool:
        """Whether all is there that was typed, printed and to be learnt."""
        return not self.lost


def run(faults: Sequence[Fault]) -> list[Outcome]:
    """All of them one after another, on one store. What the code raises that is no error of its own
    ends the campaign: that would be a crash."""
    with tempfile.TemporaryDirectory(prefix="memchat-faults-") as folder, Provider() as provider:
        clock = FakeClock()
        model = LiteLLMChat("openai/gpt-4.1-mini", timeout=PATIENCE_SECONDS, api_base=provider.base)
        with MemChat(
            settings=Settings(home=Path(folder) / "store", timezone="Europe/Berlin"),
            chat_model=model,
            extract_model=model,
            embedder=HashEmbedder(),
            clock=clock,
        ) as mc:
            return [_one(mc, provider, clock, fault, n) for n, fault in enumerate(faults)]


def _one(mc: MemChat, provider: Provider, clock: FakeClock, fault: Fault, n: int) -> Outcome:
    user = f"user {n}"
    chat = mc.user(user).chat()
    provider.plan(fault.plays if fault.at == "reply" else ())
    printed, saw = _say(chat, SAID)
    outcome = Outcome(fault, saw)
    provider.plan(())
    _look(mc, chat, outcome, [("user", SAID), *([("assistant", printed)] if printed else [])])
    if fault.at == "reply":
        again, trouble = _say(chat, "Hello?")
        if again != REPLY or trouble:
            outcome.lost.append(f"the next reply ({trouble})")
        chat.end()
    else:
        provider.plan(fault.plays)
        chat.end()
        outcome.saw = chat.failure or ""
    _read_later(mc, provider, clock, user)
    values = [memory.value for memory in mc.user(user).memories.list()]
    if values != ["Lisbon"]:
        outcome.lost.append(f"the fact: {values}")
    return outcome


def _say(chat: Chat, text: str) -> tuple[str, str]:
    """What was printed of the reply, and what the person was told beside it."""
    printed: list[str] = []
    try:
        reply = chat.send(text)
        printed.extend(reply)
    except MemChatError as error:
        return "".join(printed), str(error)
    return "".join(printed), reply.cut or ""


def _look(mc: MemChat, chat: Chat, outcome: Outcome, said: list[tuple[str, str]]) -> None:
    kept = [
        (m.role, m.content)
        for m in mc.user(chat.scope.user).sessions.messages(chat.session_id or 0)
    ]
    for role, words in said:
        if (role, words) not in kept:
            outcome.lost.append("what was typed" if role == "user" else "what was printed")


def _read_later(mc: MemChat, provider: Provider, clock: FakeClock, user: str) -> None:
    """Let the queue try again, hour after hour; where it has given up, as a person would."""
    for _ in range(TRIES):
        clock.advance(seconds=AN_HOUR)
        mc.jobs.run(user=user)
    provider.plan(())
    if mc.jobs.list(user=user, status="failed"):
        mc.jobs.retry(user=user)
        mc.jobs.run(user=user)
