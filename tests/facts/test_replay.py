"""A memory is what its events make of it, whatever happened to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memchat import MemChat
from memchat.db import apps, messages, sessions
from memchat.errors import InputError
from memchat.facts import changes
from memchat.forget.undo import DELETED, TAKEN_BACK, State, replayed
from memchat.testing import FakeClock
from memchat.types import Memory
from tests.support import private
from tests.support.starts import ANA, store, tell

KEYS = ("city", "gym_days", "hobby")
"""One that holds one value, one that no table knows, and one that holds many."""


class History:
    """Random things that happen to ana's memories."""

    def __init__(self, mc: MemChat, clock: FakeClock, random: Random) -> None:
        self.mc, self.clock, self.random, self.ana = mc, clock, random, mc.user("ana")
        self.conversations: list[int] = []

    def step(self) -> None:
        """One of them; what cannot be done is left."""
        done: tuple[Callable[[], object], ...] = (
            *(self.say,) * 5,
            *(self.enter, self.change, self.restore, self.pass_days),
            *(self.delete_conversation, self.delete_message),
        )
        self.clock.advance(seconds=1)
        try:
            self.random.choice(done)()
        except InputError:
            return

    def day(self) -> Any:
        """A day soon, or none."""
        soon = self.mc.now.date() + timedelta(days=self.random.randint(0, 5))
        return soon if self.random.random() < 0.3 else None

    def one(self, *, active: bool) -> list[Memory]:
        found = [m for m in self.ana.memories.list(status="all") if m.active is active]
        return [self.random.choice(found)] if found else []

    def say(self) -> None:
        said_at = self.mc.now - timedelta(days=self.random.choice((0, 0, 0, 1, 3)))
        with private.database(self.mc).write() as tx:
            own = apps.ensure(tx, ANA).own
            session_id = sessions.start(tx, own, "", said_at, said_at)
            tx.now = said_at
            sessions.end(tx, session_id)
            tx.now = self.mc.now
            message_id = messages.add(tx, session_id, "user", "So it is.", said_at)
        self.conversations.append(session_id)
        target = self.one(active=True)
        relation = self.random.choice(("updates", "same", "ends")) if target else "new"
        relation = self.random.choice(("new", relation))
        tell(
            self.mc,
            self.random.choice("ABC"),
            (session_id, message_id),
            key=self.random.choice(KEYS),
            said_at=said_at,
            relation=relation,
            target_id=target[0].id if relation != "new" else None,
            starts_at=self.day(),
            expires_at=self.day(),
            proofs=((message_id, 0, "So it is"),),
        )

    def enter(self) -> None:
        key, value = self.random.choice(KEYS), self.random.choice("ABC")
        self.ana.memories.add("profile", key, value, starts_at=self.day(), expires_at=self.day())

    def change(self) -> None:
        for memory in self.one(active=True):
            self.ana.memories.update(memory.id, value="D", expires_at=self.day())

    def restore(self) -> None:
        for memory in self.one(active=False):
            self.ana.memories.restore(memory.id)

    def pass_days(self) -> None:
        self.clock.advance(days=self.random.randint(1, 3))
        private.parts(self.mc).worker.expire()

    def delete_conversation(self) -> None:
        if self.conversations:
            session_id = self.random.choice(self.conversations)
            self.conversations.remove(session_id)
            self.ana.sessions.delete(session_id)

    def delete_message(self) -> None:
        for session_id in self.conversations[-1:]:
            for message in self.ana.sessions.messages(session_id):
                self.ana.sessions.unlearn(message.id)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_whatever_happens_a_memory_is_what_its_events_make_of_it(tmp_path_factory, random) -> None:
    with store(tmp_path_factory.mktemp("store")) as (mc, clock):
        happens = History(mc, clock, random)
        for _ in range(10):
            happens.step()
            with private.database(mc).read() as tx:
                for memory in mc.user("ana").memories.list(status="all"):
                    past = changes.events_of_memory(tx, memory.id)
                    made = replayed(e for e in past if e.cause not in (DELETED, TAKEN_BACK))
                    assert _checked(memory, made) == made


def _checked(memory: Memory, made: State) -> State:
    """What the row says, as far as events decide it: days pass without one, and of a key that holds
    one value the order of what was said decides which value another has replaced."""
    reason, by = memory.inactive_reason, memory.replaced_by
    by_days = made.reason is None and (reason == "expired" or memory.key == "city")
    by_order = memory.key == "city" and made.reason == "superseded"
    if by_days or by_order:
        reason, by = made.reason, made.replaced_by
    return State(memory.starts_at, memory.expires_at, reason, by)
