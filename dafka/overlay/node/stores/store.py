"""Data stores of an endpoint, for any thread."""

from __future__ import annotations

import time
from datetime import timedelta
from numbers import Real
from typing import Any

from dafka.hub.completion import run_to_completion
from dafka.hub.hub import Hub
from dafka.hub.waits import bounded_wait
from dafka.overlay.errors import InvalidValue
from dafka.overlay.node import limits
from dafka.overlay.node.carrier import Carrier
from dafka.overlay.node.stores.disk import Disk, DiskBackend, Memory
from dafka.overlay.node.stores.events import StoreEvents
from dafka.overlay.node.stores.host import HostedStore
from dafka.overlay.stores.errors import BackendFailure, NoSuchKey, error_of
from dafka.overlay.stores.master import Action, Master
from dafka.overlay.stores.operations import Operations, plain
from dafka.overlay.stores.proxy import Proxy
from dafka.overlay.stores.queries import Operation
from dafka.overlay.values import Set, Timespan, Value
from dafka.overlay.wire.codes import ErrorCode

Expiry = float | timedelta | Timespan | None
"""Seconds, or a span of time, from the last write on; None: for ever."""

_MISSING: Any = object()


class Store:
    """A master, a clone or a proxy: ``endpoint.attach_master(name)`` and so on. Any thread may use it.

    Keys and values are what Broker's data types express; a list stands for a vector, a dict for a table.
    Writes return at once, and are carried out in order; an operation that the type of a value lacks changes
    nothing, as with Broker. :meth:`await_idle` waits for them. Questions wait for the answer, for ``timeout``
    seconds at most; infinity is for ever, NaN a ValueError. All methods raise
    :class:`~dafka.overlay.node.errors.Closed` after :meth:`close`, and subclasses of
    :class:`~dafka.overlay.stores.errors.StoreError`, whose ``code`` is Broker's:

    - :class:`~dafka.overlay.stores.errors.NoSuchKey`, a KeyError;
    - :class:`~dafka.overlay.stores.errors.WrongType`, a TypeError: not of this type of value;
    - :class:`~dafka.overlay.stores.errors.NotAnswered`, a TimeoutError: no master was found, or it did not
      answer, or its content has not come yet;
    - :class:`~dafka.overlay.stores.errors.BackendFailure`: the disk is full or damaged, a bound is reached.

    :class:`~dafka.overlay.errors.InvalidValue`, a ValueError, is raised for anything but a value.
    """

    def __init__(self, hub: Hub, hosted: HostedStore) -> None:
        self.name = hosted.name
        self._hub = hub
        self._hosted = hosted
        self._role = hosted.role
        self._operations = Operations(hosted.role.entity)

    @property
    def is_valid(self) -> bool:
        """Whether it is still attached."""
        return not self._hosted.is_closed

    @property
    def role(self) -> str:
        """``master``, ``clone`` or ``proxy``."""
        return type(self._role).__name__.lower()

    # -- questions ----------------------------------------------------------------------------------

    def get(self, key: object, default: Any = _MISSING, *, timeout: float = limits.READ_SECONDS) -> Any:
        """The value of a key; ``default`` if it is given and there is none."""
        try:
            return self._read(Operation.GET, (plain(key),), timeout)
        except NoSuchKey:
            if default is _MISSING:
                raise
            return default

    def get_index_from_value(
        self, key: object, index: object, *, timeout: float = limits.READ_SECONDS
    ) -> Value:
        """An element of a vector or table; of a set whether it is there."""
        return self._read(Operation.INDEX, (plain(key), plain(index)), timeout)

    def exists(self, key: object, *, timeout: float = limits.READ_SECONDS) -> bool:
        return bool(self._read(Operation.EXISTS, (plain(key),), timeout))

    def keys(self, *, timeout: float = limits.READ_SECONDS) -> Set:
        """All keys."""
        if isinstance(self._role, Proxy):
            found = self._ask(Operation.KEYS, (), timeout)
            assert isinstance(found, tuple) and isinstance(found[1], tuple)
            return Set(found[1])
        self._prepare(timeout)
        return self._role.content.keys()

    def put_unique(
        self, key: object, value: object, expiry: Expiry = None, *, timeout: float = limits.WRITE_SECONDS
    ) -> bool:
        """Put a key there if there is none, and tell whether that was so: of all that try, one wins."""
        action = self._operations.put(key, value, _expiry(expiry))
        return bool(self._ask(Operation.PUT_UNIQUE, (action.key, action.value, action.expiry), timeout))

    # -- writes -------------------------------------------------------------------------------------

    def put(self, key: object, value: object, expiry: Expiry = None) -> None:
        self._write(self._operations.put(key, value, _expiry(expiry)))

    def erase(self, key: object) -> None:
        self._write(self._operations.erase(key))

    def clear(self) -> None:
        """Erase all keys."""
        self._write(self._operations.clear())

    def add(self, key: object, value: object, begin_with: int, expiry: Expiry = None) -> None:
        """The common form of the operations below, for any type: ``begin_with`` is the tag of the type whose
        zero is there before the first addition, see :mod:`dafka.overlay.values.types`."""
        self._write(self._operations.add(key, value, begin_with, _expiry(expiry)))

    def subtract(self, key: object, value: object, expiry: Expiry = None) -> None:
        self._write(self._operations.subtract(key, value, _expiry(expiry)))

    def increment(self, key: object, amount: object, expiry: Expiry = None) -> None:
        """A number grows by a number of its type, a timestamp or timespan by a timespan."""
        self._write(self._operations.increment(key, amount, _expiry(expiry)))

    def decrement(self, key: object, amount: object, expiry: Expiry = None) -> None:
        self._write(self._operations.decrement(key, amount, _expiry(expiry)))

    def append(self, key: object, text: str | bytes, expiry: Expiry = None) -> None:
        """A string gets longer."""
        self._write(self._operations.append(key, text, _expiry(expiry)))

    def insert_into(self, key: object, index: object, *value: object, expiry: Expiry = None) -> None:
        """A set gets the element ``index``; with a value, a table gets it at ``index``."""
        self._write(self._operations.insert_into(key, index, *value, expiry=_expiry(expiry)))

    def remove_from(self, key: object, index: object, expiry: Expiry = None) -> None:
        """A set loses an element, a table a key."""
        self._write(self._operations.remove_from(key, index, _expiry(expiry)))

    def push(self, key: object, value: object, expiry: Expiry = None) -> None:
        """A vector gets one element more."""
        self._write(self._operations.push(key, value, _expiry(expiry)))

    def pop(self, key: object, expiry: Expiry = None) -> None:
        """A vector loses its last element."""
        self._write(self._operations.pop(key, _expiry(expiry)))

    # -- the whole ----------------------------------------------------------------------------------

    def await_idle(self, timeout: float = limits.IDLE_SECONDS) -> bool:
        """Wait for ``timeout`` seconds at most; whether the store is idle.

        A master is idle when its backend has everything, no handshake is pending, all clones have
        acknowledged the last change, and nothing of a writer is missing. A clone, when it has found its
        master and has all of it, and the master has acknowledged (and its backend has) all that was written
        here. A proxy, when the master has acknowledged all that was written here, and no answer is missing.
        """
        return self._hub.run(self._hosted.await_idle, bounded_wait(timeout))

    def events(self, capacity: int = limits.STORE_EVENTS) -> StoreEvents:
        """The changes from now on: insert, update, erase, expire."""
        return self._hub.run(self._hosted.subscribe, capacity)

    def close(self) -> None:
        """Detach it from its endpoint. A backend has everything that was written."""
        self._hub.run(run_to_completion, self._hub, self._hosted.close)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.name!r}, {self.role}>"

    # -- within -------------------------------------------------------------------------------------

    def write(self, action: Action) -> None:
        """One of Broker's actions as it is."""
        self._write(action)

    def _write(self, action: Action) -> None:
        hosted = self._hosted
        hosted.check()
        self._raise_refused()
        queue = hosted.queue
        if len(queue) >= limits.STORE_WRITES:
            self._hub.run(hosted.settle, time.monotonic() + limits.WRITE_SECONDS)
        queue.append(action)
        if not hosted.is_told:
            hosted.is_told = True
            try:
                self._hub.post(hosted.drain)
            except BaseException:  # interrupted, maybe before it was posted
                hosted.is_told = False
                raise

    def _raise_refused(self) -> None:
        if self._hosted.failure is not None:
            raise BackendFailure(ErrorCode.BACKEND_FAILURE, self._hosted.failure)
        refused, self._hosted.refused = self._hosted.refused, None
        if refused is not None:
            raise error_of(refused.code, f"an earlier write: {refused}")

    def _read(self, operation: Operation, arguments: tuple[Value, ...], timeout: float) -> Value:
        if isinstance(self._role, Proxy):
            return self._ask(operation, arguments, timeout)
        self._prepare(timeout)
        content = self._role.content
        try:
            match operation:
                case Operation.GET:
                    return content.get(arguments[0])
                case Operation.EXISTS:
                    return content.exists(arguments[0])
                case _:
                    return content.get_index_from_value(*arguments)
        except KeyError:
            raise error_of(
                ErrorCode.NO_SUCH_KEY, f"{self.name!r}: there is no such key: {arguments!r:.100}"
            ) from None
        except InvalidValue as error:
            raise error_of(ErrorCode.TYPE_CLASH, f"{self.name!r}: {error}") from None

    def _prepare(self, timeout: float) -> None:
        """Wait until the content may be read in this thread: it shows nothing that a crash can take back."""
        bounded_wait(timeout)  # raises its errors also where nothing has to be waited for
        hosted, role = self._hosted, self._role
        hosted.check()
        if not role.is_readable or (hosted.queue and isinstance(role, Master)):
            self._ask(Operation.EXISTS, (None,), timeout)

    def _ask(self, operation: Operation, arguments: tuple[Value, ...], timeout: float) -> Value:
        return self._hub.run(self._hosted.ask, operation, arguments, bounded_wait(timeout))


def attach(carrier: Carrier, role: str, name: str, backend: Memory | Disk | None = None) -> Store:
    """Attach a store to the endpoint, on the hub. ``role``: master, clone or proxy; masters have a backend.

    Raises :class:`~dafka.overlay.stores.errors.StoreRefused` and BackendFailure;
    :class:`~dafka.overlay.errors.InvalidValue` for a name that is not Unicode, TypeError for none.
    """
    carrier.check()
    if not isinstance(name, str):
        raise TypeError(f"the name of a store is a str, not {type(name).__name__}: {name!r:.100}")
    opened: DiskBackend | None = None
    if role == "master":
        carrier.role.check_master(name)
        if isinstance(backend, Disk):
            opened = DiskBackend(carrier.hub, backend, name)
        elif not isinstance(backend, Memory | None):
            raise TypeError(f"a backend is Memory() or Disk(path), not {backend!r:.100}")
        try:
            content = None if opened is None else opened.content
            journal = None if opened is None else opened.journal
            carrier.carry(carrier.role.attach_master(name, content, journal))
        except BaseException:
            if opened is not None:
                opened.close()
            raise
    elif role == "clone":
        carrier.carry(carrier.role.attach_clone(name))
    else:
        carrier.carry(carrier.role.attach_proxy(name))
    return Store(carrier.hub, HostedStore(carrier, name, opened))


def _expiry(expiry: Expiry) -> Timespan | None:
    if expiry is None:
        return None
    if isinstance(expiry, Timespan):
        span = expiry
    elif isinstance(expiry, timedelta):
        span = Timespan(expiry // timedelta(microseconds=1) * 1000)
    elif isinstance(expiry, bool) or not isinstance(expiry, Real):
        kind = type(expiry).__name__
        raise TypeError(f"an expiry is seconds, a timedelta or a Timespan, not {kind}: {expiry!r:.100}")
    else:
        try:
            span = Timespan(int(expiry * 1e9))
        except (OverflowError, ValueError):  # endless, or NaN
            span = Timespan(0)
    if not 0 < span < 2**63:
        raise InvalidValue(f"an expiry is a span of time above 0, of 292 years at most, not {expiry!r:.100}")
    return span
