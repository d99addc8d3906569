"""The users: everybody with the console's own connection, or each with an account of the broker.

With accounts a browser logs in with a name and a password of the broker. The console tries them at the broker
and keeps the connection that was made with them, so that the broker's access control lists decide what
everyone sees and changes. The browser gets a random token, and nothing else is stored there.
"""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import Any, NamedTuple

import gevent
import gevent.socket
from gevent.lock import BoundedSemaphore
from kafka.errors import KafkaConnectionError

from dafka.broker.connecting import Connection
from dafka.broker.interface.errors import LoginRefusedError
from dafka.broker.remote.limits import CONNECT_TIMEOUT, REQUEST_TIMEOUT
from dafka.broker.remote.remote import Remote
from dafka.console import limits
from dafka.console.attempts import Attempts
from dafka.console.errors import ApiError, NotLoggedInError
from dafka.hub.hub import Hub
from dafka.security.sasl.options import ClientSasl

_REFUSED_PAUSE = 1.0  # seconds before a wrong password is answered


class Doors(ABC):
    """Decides who may do what. ``hosts`` are the names that browsers may call the console by."""

    needs_login = False

    def __init__(self, *, writes: bool, hosts: frozenset[str]) -> None:
        self.writes = writes
        self.hosts = hosts

    @abstractmethod
    def enter(self, token: str | None) -> tuple[Connection | None, str | None]:
        """The connection for a request, if there is a broker, and the name of its account.

        Raises NotLoggedInError."""

    @abstractmethod
    def check(self) -> None:
        """Raise KafkaError if there is a broker and it does not answer."""

    def log_in(self, user: str, password: str, address: str) -> str:
        """The token of a new session. Raises NotLoggedInError for a wrong name or password, and TooManyError
        if too many came from this address."""
        raise ApiError("this console needs no login")

    def log_out(self, token: str | None, *, everywhere: bool = False) -> None:
        """End a session, or all sessions of its account."""
        return

    def close(self) -> None:
        """End all of them."""
        return


class OpenDoors(Doors):
    """Everybody uses the console's own connection, if there is a broker."""

    def __init__(self, connection: Connection | None, *, writes: bool, hosts: frozenset[str]) -> None:
        super().__init__(writes=writes, hosts=hosts)
        self._connection = connection

    def enter(self, token: str | None) -> tuple[Connection | None, str | None]:
        return self._connection, None

    def check(self) -> None:
        if self._connection is not None:
            self._connection.call("metadata", ())


class Accounts(NamedTuple):
    """Where accounts are tried: a listener with SASL. ``tls`` is a context, or None for SASL_PLAINTEXT."""

    addresses: tuple[tuple[str, int], ...]
    mechanism: str
    tls: Any = None


class _Session(NamedTuple):
    connection: Connection
    user: str
    begun: float
    used: float


class AccountDoors(Doors):
    """Everybody logs in with an account of the broker."""

    needs_login = True

    def __init__(self, hub: Hub, accounts: Accounts, *, writes: bool, hosts: frozenset[str]) -> None:
        super().__init__(writes=writes, hosts=hosts)
        self._hub = hub
        self._accounts = accounts
        self._sessions: OrderedDict[str, _Session] = OrderedDict()  # the one used longest ago first
        self._trying = BoundedSemaphore(limits.LOGINS_AT_ONCE)
        self._attempts = Attempts()

    def enter(self, token: str | None) -> tuple[Connection, str | None]:
        self._end(until=time.monotonic() - limits.SESSION_SECONDS)
        session = None if token is None else self._sessions.get(token)
        now = time.monotonic()
        if token is not None and session is not None and now - session.begun > limits.SESSION_LONGEST:
            self._close(token)
            session = None
        if token is None or session is None:
            raise NotLoggedInError("log in with an account of the broker")
        self._sessions[token] = session._replace(used=now)
        self._sessions.move_to_end(token)
        return session.connection, session.user

    def check(self) -> None:
        # Without an account nothing is answered: that somebody listens is all that can be known.
        for address in self._accounts.addresses:
            try:
                gevent.socket.create_connection(address, CONNECT_TIMEOUT).close()
                return
            except OSError as error:
                failure = error
        raise KafkaConnectionError(f"no broker listens at {self._accounts.addresses}: {failure}")

    def log_in(self, user: str, password: str, address: str) -> str:
        self._attempts.begin(address, user)
        try:
            connection = self._tried(user, password)
        except LoginRefusedError:
            gevent.sleep(_REFUSED_PAUSE)
            raise NotLoggedInError("the broker does not let in this name with this password") from None
        except BaseException:
            self._attempts.succeed(address, user)  # the broker is away, which is nobody's wrong password
            raise
        self._attempts.succeed(address, user)
        token, now = secrets.token_urlsafe(32), time.monotonic()
        self._sessions[token] = _Session(connection, user, now, now)
        own = [one for one, session in self._sessions.items() if session.user == user]
        if len(own) > limits.SESSIONS_OF_ONE:
            self._close(own[0])
        while len(self._sessions) > limits.SESSIONS:
            self._close(next(iter(self._sessions)))
        return token

    def _tried(self, user: str, password: str) -> Connection:
        """A connection with this account. Raises LoginRefusedError and KafkaError."""
        with self._trying:
            options = {"sasl_plain_username": user, "sasl_plain_password": password}
            remote = self._remote(ClientSasl(mechanism=self._accounts.mechanism, options=options))
            try:
                self._hub.run(remote.metadata, ())
            except BaseException:
                self._hub.run(remote.close)
                raise
            return Connection(self._hub, remote)

    def log_out(self, token: str | None, *, everywhere: bool = False) -> None:
        session = None if token is None else self._sessions.get(token)
        if token is None or session is None:
            return
        own = [one for one, other in self._sessions.items() if other.user == session.user]
        for one in own if everywhere else [token]:
            self._close(one)

    def close(self) -> None:
        for token in list(self._sessions):
            self._close(token)

    def _end(self, until: float) -> None:
        """End the sessions that were not used since."""
        while self._sessions and next(iter(self._sessions.values())).used < until:
            self._close(next(iter(self._sessions)))

    def _close(self, token: str) -> None:
        session = self._sessions.pop(token, None)
        if session is not None:
            self._hub.run(session.connection.broker.close)

    def _remote(self, sasl: ClientSasl) -> Remote:
        addresses, _, tls = self._accounts
        return self._hub.run(Remote, self._hub, addresses, REQUEST_TIMEOUT, CONNECT_TIMEOUT, tls, sasl)
