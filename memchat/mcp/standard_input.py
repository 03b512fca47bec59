"""Standard input that this process can end itself.

The SDK reads it in a thread, which nothing interrupts: after Ctrl-C the server would wait for the
next line. So it reads a socket instead, which is fed from the real input and can be closed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator

_INPUT = 0
_PIECE = 65_536


@contextlib.contextmanager
def endable() -> Iterator[Callable[[], None]]:
    """In this block standard input comes through a socket; gives the function that ends it."""
    real = os.dup(_INPUT)  # never closed, as the thread may be reading it
    reader, writer = socket.socketpair()
    os.dup2(reader.fileno(), _INPUT)
    reader.close()

    def end() -> None:
        with contextlib.suppress(OSError):
            writer.shutdown(socket.SHUT_WR)

    def feed() -> None:
        with contextlib.suppress(OSError):  # the server has ended
            while piece := os.read(real, _PIECE):
                writer.sendall(piece)
        end()

    threading.Thread(target=feed, name="memchat standard input", daemon=True).start()
    try:
        yield end
    finally:
        end()
        os.dup2(real, _INPUT)
