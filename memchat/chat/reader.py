"""Reading a conversation for facts: at once when it ends, or in a thread after a reply."""

from __future__ import annotations

import threading
from dataclasses import replace

from memchat.chat.conversation import Conversation
from memchat.chat.parts import Parts
from memchat.store import jobs
from memchat.types import Learned


class Reader:
    """Runs the queued reading of one session."""

    def __init__(self, parts: Parts, conversation: Conversation) -> None:
        self.learned: Learned | None = None
        """What the last reading taught."""
        self.failure: str | None = None
        """Why the last reading did not succeed; it is queued and tried again."""
        self.must_embed = False
        """Whether a command saved facts that have no vector yet."""
        self._parts = parts
        self._conversation = conversation
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether the conversation is being read in a thread."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Read in a thread, where none does so yet."""
        if not self.running:
            self._thread = threading.Thread(target=self.read, name="memchat-reader", daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Wait for the thread, where there is one."""
        if self._thread is not None:
            self._thread.join()

    def read(self) -> Learned | None:
        """Read now; gives what the session taught."""
        session_id = self._conversation.session_id
        if self.must_embed:
            # First, so that the reading finds the facts that were saved in this conversation.
            self.must_embed = False
            self._parts.worker.run(user=self._conversation.scope.user, kinds=("embed",))
        done = self._parts.worker.run(kinds=("extract", "verify"), target_id=session_id)
        read = [one for one in done.learned if one.skipped is None]
        if read:
            changes = tuple(change for one in read for change in one.changes)
            self.learned = replace(read[0], changes=changes)
        self.failure = done.errors[-1] if done.errors else None
        if not done.learned and not done.failed and session_id is not None:
            with self._parts.database.read() as tx:
                if jobs.is_unfinished(tx, "extract", session_id):
                    self.failure = "it is being read by another process"
        return self.learned
