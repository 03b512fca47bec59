"""What every request to a provider keeps to: where it goes, how much it brings, how long it takes.

litellm makes its HTTP clients in many places, and they follow a redirect wherever it leads and read
whatever comes. All of them send through httpx's transport, as do ours and google-genai's, so the
rules are there. They hold inside ``with BoundedCall(...)`` only: a program that uses httpx for
itself notices nothing.
"""

from __future__ import annotations

import functools
import socket
import ssl
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Self

import httpcore
import httpx

from memchat import waiting
from memchat.errors import ProviderError
from memchat.types import REPLY_LIMIT

ANSWER_BYTES = 20 * REPLY_LIMIT
"""A character takes at most twelve bytes in JSON, and there is more in an answer than its text."""
STREAM_BYTES = 320 * REPLY_LIMIT
"""Each character may come in an event of its own."""
_NUMBER_BYTES = 40
_FRAME_BYTES = 1_000_000
_PART = 1 << 16
_SHOWN = 100


class BoundedCall:
    """The rules of one call to ``who``, in force inside ``with``, which may be entered repeatedly.

    ``seconds`` may pass until the end of the answer, or until the next ``feed``; with None only
    silence is bounded, by the client. ``most`` bytes may come, unpacked, and ``line`` of them
    without a line's end; ``what`` says what fits in that. A redirect to another origin is an error
    unless ``elsewhere``. Raises ProviderError where a rule was broken, whatever the library that
    made the request made of it.
    """

    def __init__(
        self,
        who: str,
        seconds: float | None,
        *,
        most: int = ANSWER_BYTES,
        line: int | None = None,
        what: str = f"an answer of {REPLY_LIMIT:,} characters",
        elsewhere: bool = False,
    ) -> None:
        self.most, self.line, self.elsewhere = most, line or most, elsewhere
        self._who, self._seconds, self._what = who, seconds, what
        self._until: float | None = None
        self._failure: ProviderError | None = None
        self._token: Token[BoundedCall | None] | None = None

    def __enter__(self) -> Self:
        _guard_httpx()
        if self._until is None:
            self.feed()
        self._token = _now.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._token is not None
        _now.reset(self._token)
        if self._failure is not None:
            raise self._failure from error

    def feed(self) -> None:
        """Begin the time anew."""
        self._until = None if self._seconds is None else time.monotonic() + self._seconds

    def left(self, timeout: float | None) -> float | None:
        """How long the next wait may be. Raises ReadTimeout where the time is over."""
        if self._until is None:
            return timeout
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise httpcore.ReadTimeout("the time of this call is over")
        return seconds if timeout is None else min(timeout, seconds)

    def too_much(self) -> httpx.ReadError:
        """The error for more bytes than may come."""
        return self._refuse(
            f"{self._who} sent more than {self._what} can take ({self.most / 1e6:.0f} MB), and the "
            "rest was not read; check its address, or name another model"
        )

    def check_redirect(self, request: httpx.Request, response: httpx.Response) -> None:
        """Raises ReadError for a redirect to another origin."""
        if self.elsewhere or not response.has_redirect_location:
            return
        target = request.url.join(response.headers["location"])
        if _origin(target) != _origin(request.url):
            raise self._refuse(
                f"{self._who} was redirected from {_origin(request.url)} to {_origin(target)}, "
                "which was sent nothing; check the provider's address"
            )

    def check_packing(self, response: httpx.Response) -> bool:
        """Whether the answer is packed. Raises ReadError where in a way that was not asked for."""
        packing = str(response.headers.get("content-encoding", "identity")).lower()
        if packing not in ("identity", "gzip", "x-gzip", "deflate"):
            raise self._refuse(
                f"{self._who} sent an answer packed as {packing[:_SHOWN]}, which nobody asked for; "
                "check its address"
            )
        return packing != "identity"

    def _refuse(self, message: str) -> httpx.ReadError:
        self._failure = ProviderError(message, retryable=True)
        return httpx.ReadError(message)


def embedding_call(who: str, seconds: float, texts: Sequence[str], dimensions: int) -> BoundedCall:
    """The rules of a request for the vectors of these texts, which some services send back."""
    most = len(texts) * dimensions * _NUMBER_BYTES + 12 * sum(map(len, texts)) + _FRAME_BYTES
    what = f"{len(texts):,} vectors of {dimensions:,} numbers"
    return BoundedCall(who, seconds, most=most, what=what)


_now: ContextVar[BoundedCall | None] = ContextVar("the call of this thread", default=None)


@functools.cache
def _guard_httpx() -> None:
    """Make httpx's transport keep to the rules of the call in force, if there is one."""
    send = httpx.HTTPTransport.handle_request

    def handle_request(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        call = _now.get()
        if call is None:
            return send(self, request)
        pool: Any = self._pool
        if not isinstance(pool._network_backend, _Backend):
            pool._network_backend = _Backend(pool._network_backend)
            pool._max_connections = sys.maxsize  # a place in the pool is waited for by blocking
        if request.headers.get("accept-encoding") != "identity":
            request.headers["accept-encoding"] = "gzip"  # what can be unpacked in bounded parts
        response = send(self, request)
        try:
            call.check_redirect(request, response)
            packed = call.check_packing(response)
        except BaseException:
            response.close()
            raise
        left_out = {b"content-encoding", b"content-length"} if packed else ()
        return httpx.Response(
            response.status_code,
            headers=[(k, v) for k, v in response.headers.raw if k.lower() not in left_out],
            stream=_Body(response.stream, call, packed=packed),
            extensions=response.extensions,
        )

    httpx.HTTPTransport.handle_request = handle_request  # type: ignore[method-assign]


class _Body(httpx.SyncByteStream):
    """An answer's bytes, unpacked and counted."""

    def __init__(self, stream: Any, call: BoundedCall, *, packed: bool) -> None:
        self._stream, self._call, self._packed = stream, call, packed

    def __iter__(self) -> Iterator[bytes]:
        came = line = 0
        for part in _unpacked(self._stream) if self._packed else self._stream:
            came += len(part)
            end = part.rfind(b"\n")
            line = line + len(part) if end < 0 else len(part) - end - 1
            if came > self._call.most or line > self._call.line:
                raise self._call.too_much()
            yield part

    def close(self) -> None:
        self._stream.close()


def _unpacked(stream: Iterator[bytes]) -> Iterator[bytes]:
    """Parts of bounded length, however well they were packed."""
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)
    for packed in stream:
        while not unpack.eof:
            try:
                part = unpack.decompress(packed, _PART)
            except zlib.error as error:
                raise httpx.DecodingError(str(error)) from error
            yield part
            packed = unpack.unconsumed_tail
            if not packed and len(part) < _PART:
                break


class _Backend(httpcore.NetworkBackend):
    """Connections that wait no longer than the call in force may take."""

    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *more: Any, **named: Any
    ) -> httpcore.NetworkStream:
        left, connect = _left(timeout), self._inner.connect_tcp
        made = waiting.in_executor(lambda: connect(host, port, left, *more, **named))
        return _Connection(made)


_NOT_YET = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Connection(httpcore.NetworkStream):
    """A connection that waits so, and on a lane without its thread."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner
        self._waits = self._closing = False
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while waiting.in_lane():
            try:
                return self._inner.read(max_bytes, 0.0)
            except httpcore.ReadError as error:
                if not isinstance(error.__cause__, _NOT_YET):
                    raise
            if not self._wait(timeout):
                raise httpcore.ReadTimeout("nothing came in time")
        return self._inner.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PART):
            if waiting.in_lane() and not self._wait(timeout, writing=True):
                raise httpcore.WriteTimeout("nothing was taken in time")
            self._inner.write(buffer[start : start + _PART], _left(timeout))

    def close(self) -> None:
        if self._waits:
            # Who waits notices the end and closes it: a lane loses sight of a closed descriptor.
            self._closing = True
            with suppress(OSError):
                self.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        else:
            self._inner.close()

    def _wait(self, timeout: float | None, *, writing: bool = False) -> bool:
        """Whether it could be read, or written, in time; no thread waits for it."""
        descriptor = self.get_extra_info("socket").fileno()
        self._waits = True
        try:
            return waiting.for_socket(descriptor, _left(timeout), writing=writing)
        finally:
            self._waits = False
            if self._closing:
                self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left, start = _left(timeout), self._inner.start_tls
        made = waiting.in_executor(lambda: start(ssl_context, server_hostname, left))
        return _Connection(made)


def _left(timeout: float | None) -> float | None:
    call = _now.get()
    return timeout if call is None else call.left(timeout)


def _origin(url: httpx.URL) -> str:
    """An address without its path and without what stands before its host."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')[:_SHOWN]}"
