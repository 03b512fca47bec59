"""The worker as a process: it does what is due, waits for more, and ends when it is told to."""

from __future__ import annotations

import logging
import time

from memchat.errors import MemChatError
from memchat.jobs import JobsDone, Worker

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between two looks into the queue; a look is one small query."""
ROUND_SECONDS = 60.0
"""Between two rounds of upkeep: sessions left behind, last days that are over."""


def run_loop(worker: Worker, look: float = LOOK_SECONDS) -> None:
    """Work until the worker is stopped. What fails for a while, as a full disk, is waited out.

    ``look`` is in seconds of the machine's clock.
    """
    upkeep_at = 0.0
    while not worker.stopping.is_set():
        try:
            upkeep = time.monotonic() >= upkeep_at
            if upkeep:
                upkeep_at = time.monotonic() + ROUND_SECONDS
                worker.end_abandoned()
            if upkeep or worker.has_work():
                log_result(worker.run())
        except MemChatError as error:
            log.error("the work stopped and goes on in a moment: %s", error)
        worker.stopping.wait(look)


def log_result(done: JobsDone) -> None:
    """A line on what was done, where anything was."""
    if done.done or done.failed:
        log.info("%d jobs done, %d failed", done.done, len({job.id for job in done.failed}))
