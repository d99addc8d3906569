"""The hub: the one OS thread in a process that runs gevent and every green thread of Dafka.

Embedded use means somebody else's process: plain threads, asyncio, gevent with or without monkey
patching. So nothing of ours runs in the caller's threads. All sockets, timers and logs belong to one
thread that is started with gevent's *unpatched* primitives; calls cross into it through a deque and an
``async_`` watcher, the one thing of gevent's that any thread may touch.

A caller waits for an answer on a :class:`Waiter`. It is a native lock for a plain thread, and an event of
the caller's own gevent hub for a caller that has one, so that a blocked call stops one greenlet of a
patched program and not all of them.

``fork`` copies the objects but not the thread. The child gets a fresh hub when it asks for one, and
:class:`ForkedError` when it uses an object that belongs to its parent's.
"""

from __future__ import annotations

import atexit
import logging
import os
import select
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import gevent
import gevent.event
from gevent import monkey
from gevent._hub_local import get_hub_if_exists

from dafka.hub import limits
from dafka.hub.loops import begin_loop
from dafka.hub.turns import TurnGauge
from dafka.protocol.errors import DafkaError

if TYPE_CHECKING:
    import zmq

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_start_thread = monkey.get_original("_thread", "start_new_thread")
_allocate_lock = monkey.get_original("_thread", "allocate_lock")
_get_ident = monkey.get_original("_thread", "get_ident")
_sleep = monkey.get_original("time", "sleep")
_poll = monkey.get_original("select", "poll")

STOP_TIMEOUT = 5.0  # seconds that the interpreter's exit waits for the hub thread


class HubStoppedError(DafkaError):
    """The hub has been stopped: the interpreter is on its way out."""


class ForkedError(DafkaError):
    """An object made before ``fork`` was used in the child, where its hub thread does not exist."""


def is_plain_thread() -> bool:
    """Whether the calling thread has no green threads that are to go on while it waits."""
    return get_hub_if_exists() is None and not monkey.is_module_patched("threading")


class Waiter:
    """A flag that any thread may set once and the thread that made it may wait for."""

    __slots__ = ("_event", "_lock", "_set", "_watcher")

    def __init__(self) -> None:
        self._set = False
        self._watcher = None
        own_hub = get_hub_if_exists()
        if own_hub is None and monkey.is_module_patched("threading"):
            own_hub = gevent.get_hub()
        if own_hub is None:
            self._lock = _allocate_lock()
            self._lock.acquire()
        else:
            # The watcher is started here: libev forgets a send() to a watcher that is not active yet.
            self._event = gevent.event.Event()
            self._watcher = own_hub.loop.async_()
            self._watcher.start(self._event.set)

    @property
    def is_native(self) -> bool:
        """Whether it keeps the whole thread waiting."""
        return self._watcher is None

    def set(self) -> None:
        """Wake the waiting thread. Safe from any thread; once is enough, twice does no harm."""
        if self._set:
            return
        self._set = True
        if self._watcher is None:
            try:  # noqa: SIM105 - the woken thread waits for what suppress() does behind it
                self._lock.release()
            except RuntimeError:
                pass  # two threads at once: the other has released it
        else:
            with suppress(ValueError):  # the loop of a thread that has ended meanwhile
                self._watcher.send()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until :meth:`set` or for ``timeout`` seconds (None: for ever); whether it was set.

        Raises ValueError for NaN, which would keep other timers of the caller's loop from ending.
        """
        if timeout is not None and timeout != timeout:
            raise ValueError("a time to wait is a number of seconds, not nan")
        if self._watcher is None:
            if timeout is None:
                acquired = self._lock.acquire()
            else:
                acquired = self._lock.acquire(timeout=min(max(timeout, 0.0), 1e6))
            if acquired:
                self._lock.release()  # stays set for a second wait
            return bool(acquired)
        return bool(self._event.wait(timeout)) or self._set

    def close(self) -> None:
        """Give the watcher back to the caller's loop (a native lock needs no closing)."""
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher.close()


class Hub:
    """One OS thread with a gevent loop. Use :func:`get_hub`; a process needs only one."""

    def __init__(self) -> None:
        self._posted: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._signalled = False
        self._carrying_out = False  # calls that were posted
        self._behind: deque[Callable[[], Any]] = deque()  # to be called when those are done
        self.stopped = False
        """Whether it has been stopped."""
        self._pid = os.getpid()
        self._ident: int | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._async: Any = None
        self._stop_event: gevent.event.Event
        self.turns: TurnGauge
        self._events: int | None  # the descriptor that tells of all others, of epoll or kqueue
        self._ended = _allocate_lock()
        self._ended.acquire()
        started = _allocate_lock()
        started.acquire()
        _start_thread(self._main, (started,))
        started.acquire()

    # -- from any thread ------------------------------------------------------------------------

    def post(self, fn: Callable[..., Any], *args: Any) -> None:
        """Have ``fn(*args)`` called in the hub soon, in the order of posting, without waiting.

        It runs in the loop itself: it must not block, and what it raises is only logged.
        """
        if self.stopped or os.getpid() != self._pid:
            self.check()
        self._posted.append((fn, args))
        if not self._signalled:
            self._signalled = True
            self._async.send()

    def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``fn`` in a green thread of the hub and wait for what it returns or raises.

        On the hub's own thread this is a plain call. If the wait is interrupted (Ctrl-C, a gevent
        timeout of the caller), the green thread is ended too.
        """
        if _get_ident() == self._ident:
            return fn(*args, **kwargs)
        call = _Call(fn, args, kwargs)
        self.post(call.start)
        try:
            call.waiter.wait()
        except BaseException:
            # The waiter stays open: the hub may be about to set it.
            if not self.stopped:
                self.post(call.kill)
            raise
        call.waiter.close()
        if call.error is not None:
            raise call.error
        return call.value  # type: ignore[no-any-return]

    def give_way(self) -> None:
        """Let the hub go on if it can, for some hundred microseconds at most.

        For threads that compute, between two pieces of work: whenever the hub has called the system, it waits
        until such a thread gives up the interpreter, which it does every five milliseconds unless it waits
        itself. A remote broker would stand idle meanwhile.
        """
        if self.here:
            return
        for _ in range(limits.WAYS_GIVEN):
            if not (self.turns.under_way or self._has_events()):
                return
            _sleep(limits.WAY_SECONDS)

    def _has_events(self) -> bool:
        """Whether the loop would not wait now; False where it cannot be seen."""
        if self._events is None:
            return False
        poller = _poll()  # one of its own: two threads may not use the same
        poller.register(self._events, select.POLLIN)
        return bool(poller.poll(0))

    def waiter(self) -> Waiter:
        """A new :class:`Waiter` for the calling thread."""
        return Waiter()

    def check(self) -> None:
        """Raise the named error if this hub can no longer be used here."""
        if os.getpid() != self._pid:
            raise ForkedError(
                f"this object belongs to process {self._pid}; after fork, process {os.getpid()} must "
                "create its own"
            )
        if self.stopped:
            raise HubStoppedError("the hub has been stopped; nothing can be sent or read any more")

    @property
    def here(self) -> bool:
        """Whether the calling code runs on the hub's thread."""
        return bool(_get_ident() == self._ident)

    def stop(self) -> None:
        """End the thread; called once, when the interpreter exits."""
        if self.stopped or os.getpid() != self._pid:
            return
        self.post(self._stop_event.set)
        self.stopped = True
        if not self.here:
            self._ended.acquire(timeout=STOP_TIMEOUT)

    # -- on the hub's thread --------------------------------------------------------------------

    def spawn(self, fn: Callable[..., Any], *args: Any) -> gevent.Greenlet:
        """Start a green thread. Its exceptions are logged, never printed."""
        return gevent.spawn(_logged, fn, *args)

    def soon(self, fn: Callable[[], Any]) -> None:
        """Have ``fn()`` called at the end of this turn, or already behind the posted call that is carried out
        now, if that is the only one. It must not block."""
        if self._carrying_out:
            self._behind.append(fn)
        else:
            gevent.get_hub().loop.run_callback(fn)

    def keep(self, fn: Callable[..., Any], *args: Any) -> gevent.Greenlet:
        """Start a green thread that others rely on: it runs until ``fn`` returns or it is killed.

        An error is logged with its traceback, and ``fn`` is called again after a pause. So ``fn`` keeps its
        state outside, and tells those who wait for what failed before it lets an error out.
        """
        return gevent.spawn(_kept, fn, *args)

    @property
    def context(self) -> zmq.Context[zmq.Socket[bytes]]:
        """The ZeroMQ context of all sockets of this hub."""
        if self._context is None:
            import zmq  # a broker that is alone has no use for it

            self._context = zmq.Context()
            self._context.max_sockets = min(65536, self._context.get(zmq.SOCKET_LIMIT))
        return self._context

    def _main(self, started: Any) -> None:
        self._ident = _get_ident()
        loop = begin_loop()
        self._stop_event = gevent.event.Event()
        self._async = loop.async_()
        self._async.start(self._drain)
        self.turns = TurnGauge(loop)
        self._events = loop.fileno()
        started.release()
        try:
            while not self._stop_event.is_set():
                try:
                    self._stop_event.wait()
                except BaseException:  # gevent throws a SystemError of any green thread in here
                    log.exception("an error of the interpreter in a green thread")
            if self._context is not None:
                self._context.destroy(linger=0)
        finally:
            self._ended.release()

    def _drain(self) -> None:
        # The flag falls before the queue is emptied: an append after the last popleft signals again.
        self._signalled = False
        posted = self._posted
        # Bounded, or calls that post themselves again (a producer's, as long as its user sends) would keep
        # sockets and timers waiting. Not too tightly: with each wait of the loop the interpreter's lock goes
        # to the sending thread, for five milliseconds.
        end = time.monotonic() + limits.POSTED_SECONDS
        self._carrying_out = True
        calls = 0
        while posted and calls < limits.POSTED_AT_ONCE:
            calls += 1
            fn, args = posted.popleft()
            try:
                fn(*args)
            except BaseException:
                log.exception("a call posted to the hub failed")
            if posted and time.monotonic() >= end:
                break
        self._carrying_out = False
        if self._behind:
            self._go_on_behind(calls, end)
        if posted and not self._signalled:
            self._signalled = True
            self._async.send()

    def _go_on_behind(self, calls: int, end: float) -> None:
        """What one posted call is followed by is done at once: a lone record leaves some ten microseconds
        earlier. Behind many, all that they put together goes out at the end of the turn."""
        behind = self._behind
        while behind and calls == 1 and time.monotonic() < end:
            try:
                behind.popleft()()
            except BaseException:
                log.exception("a call behind the one that was posted to the hub failed")
        loop = gevent.get_hub().loop
        while behind:
            loop.run_callback(behind.popleft())


class _Call:
    """One crossing: a function on its way into the hub and its outcome on the way back."""

    __slots__ = ("args", "error", "fn", "green", "kwargs", "value", "waiter")

    def __init__(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.value: Any = None
        self.error: BaseException | None = None
        self.green: gevent.Greenlet | None = None
        self.waiter = Waiter()

    def start(self) -> None:
        self.green = gevent.spawn(self._execute)

    def kill(self) -> None:
        if self.green is not None:
            self.green.kill(block=False)

    def _execute(self) -> None:
        try:
            self.value = self.fn(*self.args, **self.kwargs)
        except BaseException as error:
            self.error = error
        finally:
            self.waiter.set()


def _logged(fn: Callable[..., Any], *args: Any) -> Any:
    try:
        return fn(*args)
    except gevent.GreenletExit:
        raise
    except BaseException:  # gevent would pass a SystemExit on to the hub itself
        log.exception("a green thread ended with an error")
        return None


def _kept(fn: Callable[..., Any], *args: Any) -> Any:
    pause = limits.SHORTEST_RESTART
    while True:
        began = time.monotonic()
        try:
            return fn(*args)
        except gevent.GreenletExit:
            raise
        except BaseException:
            name = getattr(fn, "__qualname__", fn)
            log.exception("the green thread of %s failed on something unexpected, and goes on", name)
        if time.monotonic() - began > limits.LONGEST_RESTART:
            pause = limits.SHORTEST_RESTART
        gevent.sleep(pause)
        pause = min(2 * pause, limits.LONGEST_RESTART)


_hub: Hub | None = None
_creating = _allocate_lock()


def get_hub() -> Hub:
    """The hub of this process; the first call starts its thread."""
    global _hub
    hub = _hub
    if hub is None:
        with _creating:
            if _hub is None:
                _hub = Hub()
            hub = _hub
    return hub


@atexit.register  # at import: users of the hub register later, and so are called before it stops
def _stop_at_exit() -> None:
    if _hub is not None:
        with suppress(KeyboardInterrupt):  # of somebody who does not want to wait for it
            _hub.stop()


def is_hub_here() -> bool:
    """Whether the calling code runs on the thread of this process's hub."""
    return _hub is not None and _hub.here


def _forget_after_fork() -> None:
    global _hub, _creating
    _hub = None
    _creating = _allocate_lock()


os.register_at_fork(after_in_child=_forget_after_fork)
