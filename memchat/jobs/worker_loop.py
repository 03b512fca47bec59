"""The worker as a process of its own: it runs what is due, waits, and stops when asked to."""

from __future__ import annotations

import logging
import time

from memchat.errors import MemChatError
from memchat.jobs.jobs_done import JobsDone
from memchat.jobs.worker import Worker

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""Between two queries of the queue."""
UPKEEP_SECONDS = 60.0
"""Between two runs of the upkeep: abandoned sessions and expired memories."""


def run_loop(worker: Worker, poll: float = POLL_SECONDS) -> None:
    """Run jobs until the worker is stopped, with ``poll`` seconds between two queries of the queue.

    After an error such as a full disk it goes on trying.
    """
    upkeep_at = 0.0
    while not worker.stopping.is_set():
        try:
            upkeep = time.monotonic() >= upkeep_at
            if upkeep:
                upkeep_at = time.monotonic() + UPKEEP_SECONDS
                worker.end_abandoned()
            if upkeep or worker.has_work():
                log_result(worker.run())
        except MemChatError as error:
            log.error("the worker failed and tries again shortly: %s", error)
        worker.stopping.wait(poll)


def log_result(done: JobsDone) -> None:
    """Log how many jobs ran, if any did."""
    if done.done or done.failed:
        log.info("%d jobs done, %d failed", done.done, len({job.id for job in done.failed}))
