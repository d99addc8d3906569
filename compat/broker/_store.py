"""Data stores: masters and clones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from compat.broker._values.conversion import to_python, to_value
from dafka import overlay
from dafka.overlay.values import Value
from dafka.overlay.values.types import STRING

AWAIT_IDLE_SECONDS = 15.0
READ_SECONDS = 5.0
"""How long a question waits for the content of a clone, or for the master."""

S = TypeVar("S", bound="Store")


class Store:
    """A store of an endpoint. Any thread may call it.

    Keys and values are objects as :class:`~compat.broker.Data` takes them. A time is in seconds; with an
    ``expiry`` the key is gone after it. Writes do not wait for the master, and those that it cannot carry out
    (text added to a number) change nothing.
    """

    def __init__(self, internal_store: overlay.Store, parent: object = None) -> None:
        self._store: overlay.Store | None = internal_store
        self._parent: object = parent  # the endpoint, which lives as long as its stores

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *error: object) -> None:
        self.reset()

    def reset(self) -> None:
        """Detach it from its endpoint."""
        store, self._store, self._parent = self._store, None, None
        if store is not None:
            store.close()

    def is_valid(self) -> bool:
        """Whether it is attached."""
        return self._store is not None

    def name(self) -> str:
        return self._open.name

    # -- reading ------------------------------------------------------------------------------------

    def exists(self, key: Any) -> bool:
        """Raises :class:`~dafka.overlay.stores.errors.StoreError` if that cannot be said."""
        return self._open.exists(to_value(key), timeout=READ_SECONDS)

    def get(self, key: Any) -> Any:
        """The value of a key. None if there is none, or the store has no master yet."""
        return _answer(self._open.get, to_value(key), timeout=READ_SECONDS)

    def get_index_from_value(self, key: Any, index: Any) -> Any:
        """An element of a table or a vector, or whether a set has one. None if there is none."""
        return _answer(self._open.get_index_from_value, to_value(key), to_value(index), timeout=READ_SECONDS)

    def keys(self) -> set[Any] | None:
        """All keys."""
        keys: set[Any] | None = _answer(self._open.keys, timeout=READ_SECONDS)
        return keys

    # -- writing ------------------------------------------------------------------------------------

    def put(self, key: Any, value: Any, expiry: float | None = None) -> None:
        self._open.put(to_value(key), to_value(value), _seconds(expiry))

    def put_unique(self, key: Any, value: Any, expiry: float | None = None) -> bool | None:
        """Put a key that is not there; whether it was put. None if no master answers."""
        put: bool | None = _answer(
            self._open.put_unique, to_value(key), to_value(value), expiry=_seconds(expiry)
        )
        return put

    def erase(self, data: Any) -> None:
        """Remove a key."""
        self._open.erase(to_value(data))

    def clear(self) -> None:
        self._open.clear()

    def increment(self, key: Any, amount: Any, expiry: float | None = None) -> None:
        """Add to a number, or a ``timedelta`` to a ``datetime``."""
        self._open.increment(to_value(key), to_value(amount), _seconds(expiry))

    def decrement(self, key: Any, amount: Any, expiry: float | None = None) -> None:
        self._open.decrement(to_value(key), to_value(amount), _seconds(expiry))

    def append(self, key: Any, s: Any, expiry: float | None = None) -> None:
        """Add to a string."""
        self._open.add(to_value(key), to_value(s), STRING, _seconds(expiry))

    def insert_into(self, key: Any, index: Any, value: Any = None, expiry: float | None = None) -> None:
        """Put an element into a set, or with a ``value`` into a table."""
        element = (to_value(index),) if value is None else (to_value(index), to_value(value))
        self._open.insert_into(to_value(key), *element, expiry=_seconds(expiry))

    def remove_from(self, key: Any, index: Any, expiry: float | None = None) -> None:
        """Remove an element of a set or a table."""
        self._open.remove_from(to_value(key), to_value(index), _seconds(expiry))

    def push(self, key: Any, value: Any, expiry: float | None = None) -> None:
        """Add an element to a vector."""
        self._open.push(to_value(key), to_value(value), _seconds(expiry))

    def pop(self, key: Any, expiry: float | None = None) -> None:
        """Remove the last element of a vector."""
        self._open.pop(to_value(key), _seconds(expiry))

    def await_idle(self, timeout: float | None = None) -> bool:
        """Wait until all that was written is at the master and at all clones; whether it is, in time."""
        return self._open.await_idle(timeout or AWAIT_IDLE_SECONDS)

    @property
    def _open(self) -> overlay.Store:
        """Raises AttributeError after :meth:`reset`, as the bindings do."""
        if self._store is None:
            raise AttributeError("this Store was reset")
        return self._store


def _answer(question: Callable[..., Any], *arguments: Value, **options: float | None) -> Any:
    """The answer as an object; None if there is none, as the bindings have it."""
    try:
        return to_python(question(*arguments, **options))
    except overlay.StoreError:
        return None


def _seconds(expiry: float | None) -> float | None:
    return None if expiry is None else float(expiry)
