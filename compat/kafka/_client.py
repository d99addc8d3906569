"""The common part of the three clients: finding the broker, and the effect of ``fork``.

``bootstrap_servers`` is resolved by :func:`dafka.broker.connect`; a broker that cannot be reached within
``bootstrap_timeout_ms`` is a ``KafkaTimeoutError``, as in kafka-python. Broker methods run as green
threads of the hub (:meth:`Client.call`), so a call costs one crossing and blocks only its caller.

A child process made by ``fork`` has the objects but not the hub thread. Producers and consumers are kept
in a weak set (:func:`cut_off_in_child`); in the child each is cut off, and its next use raises
:class:`dafka.hub.hub.ForkedError`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from kafka.errors import (
    IllegalStateError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaTimeoutError,
)

import dafka.broker
from dafka.broker.connecting import EMBEDDED, Connection, successor
from dafka.broker.interface.broker import BrokerInterface
from dafka.hub.hub import HubStoppedError
from dafka.log import LogError
from dafka.security import ClientSasl, ClientTls, SaslError, TlsError

# The version of Kafka whose behaviour the broker has; kafka-python keeps it in ``config["api_version"]``.
API_VERSION = (4, 0)


class Client:
    """A connection to a broker, in this process or by TCP."""

    def __init__(self, config: dict[str, Any], eager: bool) -> None:
        """Find the broker that the configuration names.

        ``eager``: wait until it is there. Otherwise one of another process is connected to when it is first
        called, and may start later than this client.

        Raises:
            KafkaTimeoutError: no such broker within ``bootstrap_timeout_ms``.
            KafkaConfigurationError: no such broker in this process, and a ``security_protocol`` that
                is not one of Kafka's; or certificates and keys (``ssl_...``) that cannot be used.
            KafkaConnectionError: the folder of ``DAFKA_EMBEDDED`` cannot be opened, as when in use.
        """
        timeout_ms = config["bootstrap_timeout_ms"]
        try:
            connection = dafka.broker.connect(
                config["bootstrap_servers"],
                None if timeout_ms is None else timeout_ms / 1000,
                request_timeout=config["request_timeout_ms"] / 1000,
                security_protocol=config["security_protocol"],
                tls=_tls(config) if config["security_protocol"] in ("SSL", "SASL_SSL") else None,
                sasl=_sasl(config),
                wait=eager,
            )
        except SaslError as error:
            raise KafkaConfigurationError(str(error)) from error
        except TlsError as error:
            raise KafkaConfigurationError(f"ssl_{error}") from error
        except (KafkaTimeoutError, ValueError, TypeError):
            raise
        except (KafkaConnectionError, TimeoutError, OSError) as error:
            message = f"Unable to bootstrap from {config['bootstrap_servers']}"
            raise KafkaTimeoutError(message) from error
        except LogError as error:
            raise KafkaConnectionError(f"no broker on the folder of {EMBEDDED}: {error}") from error
        self.hub = connection.hub
        self._client_id = config.get("client_id") or ""
        self._broker = connection.broker.for_client(self._client_id)
        self._owner = connection.owner  # a broker of this process runs as long as a client of it has it
        # Also for a client that is dropped without closing it. The sender of a closed producer still has it.
        self._release = weakref.finalize(self, _release, connection, os.getpid())
        self._release.atexit = False
        self.closed = False
        self._unmet = not eager  # the broker may still turn out to be one of this process
        config["api_version"] = API_VERSION if config["api_version"] is None else config["api_version"]

    @property
    def broker(self) -> BrokerInterface:
        """The broker; after it was stopped and started again at its address, the one that runs now."""
        if self._unmet or not self._broker.running:
            known = self._broker
            found, self._owner = successor(known)
            self._broker = known if found is known else found.for_client(self._client_id)
            if self._unmet and self._broker is not known:
                self._release()  # the connections to addresses where no broker was
            self._unmet = self._unmet and not self._broker.reached
        return self._broker

    def close(self) -> None:
        """End the use of the broker: its TCP connections, if no other client of this process uses them."""
        self.closed = True
        self._owner = None
        self._release()

    def call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run ``fn`` in the hub, usually a method of the broker, and wait for its result."""
        return self.hub.run(fn, *args, **kwargs)

    def pause(self, seconds: float) -> None:
        """Let time go by; in a program of green threads only the caller's waits."""
        waiter = self.hub.waiter()
        try:
            waiter.wait(seconds)
        finally:
            waiter.close()

    def connected(self) -> bool:
        """Whether the broker can still be called."""
        if self.closed:
            return False
        try:
            self.hub.check()
            self.call(self.broker.metadata, ())
        except Exception:
            return False
        return True

    def check_open(self, message: str) -> None:
        """Raise IllegalStateError after ``close``."""
        if self.closed:
            raise self.closed_error(message)

    def closed_error(self, message: str) -> Exception:
        """The exception for a use after ``close``, or after the hub is gone."""
        try:
            self.hub.check()
        except HubStoppedError:
            pass
        except Exception as error:
            return error
        return IllegalStateError(message)


def _tls(config: dict[str, Any]) -> ClientTls:
    """The ``ssl_...`` options, with kafka-python's meanings."""
    return ClientTls(
        cafile=config["ssl_cafile"],
        certfile=config["ssl_certfile"],
        keyfile=config["ssl_keyfile"],
        password=config["ssl_password"],
        crlfile=config["ssl_crlfile"],
        check_hostname=config["ssl_check_hostname"],
        ciphers=config.get("ssl_ciphers"),  # not of all clients
        given=config["ssl_context"],
    )


def _sasl(config: dict[str, Any]) -> ClientSasl | None:
    """The ``sasl_...`` options, with kafka-python's meanings."""
    if config["security_protocol"] not in ("SASL_PLAINTEXT", "SASL_SSL"):
        return None
    options = {
        name: value for name, value in config.items() if name.startswith("sasl_") and value is not None
    }
    mechanism = options.pop("sasl_mechanism", None)
    return None if mechanism is None else ClientSasl(mechanism=mechanism, options=options)


def _release(connection: Connection, pid: int) -> None:
    if os.getpid() == pid:
        with suppress(HubStoppedError):
            connection.close()


class Forkable(Protocol):
    """A client that is told when it finds itself in a forked child."""

    def _cut_off(self) -> None: ...


_forkables: weakref.WeakSet[Forkable] = weakref.WeakSet()


def cut_off_in_child(client: Forkable) -> None:
    """Have ``client._cut_off()`` called in every child that this process forks."""
    _forkables.add(client)


def _after_fork() -> None:
    for client in list(_forkables):
        client._cut_off()


os.register_at_fork(after_in_child=_after_fork)
