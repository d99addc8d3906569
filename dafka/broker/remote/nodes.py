"""The brokers of a cluster, and the connections to each of them.

A broker answers the requests of a connection one after the other. Requests that are answered at once share
one connection, produce requests share another, and a request that waits at the broker (fetch, join, sync,
changes of topics, transactions) has a connection to itself. What the broker ends with a connection, as share
sessions, has one for all its requests.

After a failed attempt to connect there is a pause before the next one, which grows (``limits``).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ssl import SSLContext

import gevent
from gevent.lock import BoundedSemaphore, RLock
from kafka.errors import KafkaConnectionError

from dafka.broker.remote.connection import Connection
from dafka.broker.remote.limits import (
    IDLE_CONNECTIONS,
    RECONNECT_BACKOFF,
    RECONNECT_BACKOFF_MAX,
    RECONNECT_JITTER,
    WAITING_CONNECTIONS,
)
from dafka.broker.remote.trouble import Trouble
from dafka.security.sasl.options import ClientSasl

log = logging.getLogger(__name__)

SHARED, PRODUCE = "shared", "produce"


class Node:
    """A broker. Hub side; every method may wait as a green thread and raises KafkaConnectionError."""

    def __init__(
        self,
        node_id: int,
        host: str,
        port: int,
        connect_timeout: float,
        tls: SSLContext | None = None,
        sasl: ClientSasl | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._sasl = sasl
        self._lasting: dict[str, Connection] = {}
        self._opening = {SHARED: RLock(), PRODUCE: RLock()}
        self._not_opened: dict[str, KafkaConnectionError] = {}  # the error of the last attempt, if it failed
        self._idle: list[Connection] = []
        self._owned: dict[object, Connection] = {}  # by owner, while none of its requests waits
        self._all: set[Connection] = set()
        self._places = BoundedSemaphore(WAITING_CONNECTIONS)
        self._failures = 0
        self._retry_at = 0.0
        self._unreachable = Trouble(log)

    def __str__(self) -> str:
        where = f"{self.host}:{self.port}"
        return where if self.node_id < 0 else f"{self.node_id} at {where}"

    def connection(self, purpose: str = SHARED) -> Connection:
        """The connection that all requests of a purpose share.

        If it cannot be opened, all requests that wait for it fail: with one attempt for each, one after the
        other, the last request would wait long.
        """
        known = self._not_opened.get(purpose)
        with self._opening[purpose]:
            connection = self._lasting.get(purpose)
            if connection is None or connection.closed:
                failure = self._not_opened.get(purpose)
                if failure is not None and failure is not known:
                    raise type(failure)(*failure.args)
                try:
                    connection = self._lasting[purpose] = self._open()
                except KafkaConnectionError as error:
                    self._not_opened[purpose] = type(error)(*error.args)
                    raise
            return connection

    @contextmanager
    def waiting(self, owner: object = None) -> Iterator[Connection]:
        """A connection for one request that waits at the broker. It is closed if the block raises.

        An ``owner`` has the same one each time, and nobody else has it until :meth:`forget`.
        """
        with self._places:
            connection = self._owned.pop(owner, None)
            while self._idle and (connection is None or connection.closed):
                connection = self._idle.pop()
            if connection is None or connection.closed:
                connection = self._open()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            if connection.closed:
                return
            if owner is not None and owner not in self._owned:
                self._owned[owner] = connection
            elif owner is None and len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(connection)
            else:
                connection.close()

    def forget(self, owner: object) -> None:
        """Close the connection of an owner."""
        connection = self._owned.pop(owner, None)
        if connection is not None:
            connection.close()

    @property
    def reachable(self) -> bool:
        """Whether it is connected, or the pause after the last failed attempt is over."""
        shared = self._lasting.get(SHARED)
        return (shared is not None and not shared.closed) or time.monotonic() >= self._retry_at

    @property
    def failures(self) -> int:
        """How many attempts to connect have failed in a row."""
        return self._failures

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._all):
            connection.close()

    def _open(self) -> Connection:
        pause = self._retry_at - time.monotonic()
        if pause > 0:
            gevent.sleep(pause)
        try:
            connection = Connection(self.host, self.port, self._connect_timeout, self._tls, self._sasl)
        except KafkaConnectionError as error:
            self._unreachable.again("broker %s cannot be reached: %s", self, error)
            backoff = min(RECONNECT_BACKOFF * 2**self._failures, RECONNECT_BACKOFF_MAX)
            jitter = 1 + random.uniform(-RECONNECT_JITTER, RECONNECT_JITTER)
            self._failures = min(self._failures + 1, 30)
            self._retry_at = time.monotonic() + backoff * jitter
            raise
        log.debug("connected to broker %s", self)
        self._unreachable.over()
        self._failures = 0
        self._retry_at = 0.0
        self._all.add(connection)
        connection.on_close = self._forget
        return connection

    def _forget(self, connection: Connection) -> None:
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
