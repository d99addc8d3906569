"""ConsoleOptions: a console on a broker of this process."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dafka.broker.connecting import Connection
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.front_end import NOTHING, Beside, FrontEnd, FrontEndOptions
from dafka.broker.listening import SASL_PLAINTEXT, SASL_SSL
from dafka.console.decoding.options import SchemaRegistry
from dafka.console.doors import AccountDoors, Accounts, Doors, OpenDoors
from dafka.console.front_end import BrokersConsole  # here, and not in the hub: Flask takes its time
from dafka.console.networks.networks import NONE, NetworkOptions, Networks
from dafka.hub.hub import Hub
from dafka.security.keys import ServerKeys
from dafka.security.sasl.steps import SCRAM_MECHANISMS
from dafka.security.tls import ServerTls
from dafka.sockets.hosts import is_loopback

log = logging.getLogger(__name__)

LOGINS = ("PLAIN", *SCRAM_MECHANISMS)
_ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^\s:/\[\],]+)):(\d{1,5})", re.ASCII)


@dataclass(frozen=True)
class ConsoleOptions(FrontEndOptions):
    """Where a console listens, and what may be done there: ``Broker(console=ConsoleOptions())``.

    ``listen``: ``"HOST:PORT"``; PORT 0 is any, and :attr:`dafka.Broker.console` tells which. ``write``:
    whether topics, records and groups may be changed; None: only if it listens on loopback. ``hosts``: names
    that browsers may call it by, beside addresses in numbers and ``localhost``.

    ``tls``: its certificate (:class:`dafka.security.ServerTls`); None: HTTP without TLS. ``login``: everybody
    logs in with an account of the broker by this mechanism (``"SCRAM-SHA-256"``), for which the broker has a
    listener with SASL. ``networks``: shown beside the broker. ``schema_registry``: where the schemas of
    records are. Raises ValueError.
    """

    listen: str = "127.0.0.1:0"
    write: bool | None = None
    hosts: Iterable[str] = ()
    tls: ServerTls | None = None
    login: str | None = None
    networks: NetworkOptions = NONE
    schema_registry: SchemaRegistry | None = None

    def __post_init__(self) -> None:
        _ = self.address
        if isinstance(self.hosts, str):
            raise ValueError(f"hosts is a list of names, not the text {self.hosts!r}")
        if self.login is not None and self.login not in LOGINS:
            raise ValueError(f"login={self.login!r} is not one of {', '.join(LOGINS)}")

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port of ``listen``."""
        found = _ADDRESS.fullmatch(self.listen) if isinstance(self.listen, str) else None
        if found is None or int(found[3]) >= 2**16:
            raise ValueError(f"listen={self.listen!r} is not HOST:PORT, as 127.0.0.1:8080 or [::1]:0")
        return found[1] or found[2], int(found[3])

    @property
    def writes(self) -> bool:
        """Whether changes are made."""
        return is_loopback(self.address[0]) if self.write is None else self.write

    @property
    def names(self) -> frozenset[str]:
        """The names that browsers may call it by."""
        return frozenset(name.lower() for name in (*self.hosts, self.address[0]))

    def warn_if_open(self) -> None:
        """Log that passwords or records can be read on their way, if that is so."""
        if self.tls is None and not is_loopback(self.address[0]):
            what = "records" if self.login is None else "records and passwords"
            log.warning("the console at %s has no TLS: others can read %s there", self.listen, what)

    def open(
        self,
        hub: Hub,
        broker: BrokerInterface,
        before: Mapping[str, str],
        keys: ServerKeys | None = None,
        beside: Beside = NOTHING,
    ) -> FrontEnd:
        self.warn_if_open()
        doors: Doors
        if self.login is None:
            doors = OpenDoors(Connection(hub, broker), writes=self.writes, hosts=self.names)
        else:
            accounts = _accounts(self.login, beside)
            doors = AccountDoors(hub, accounts, writes=self.writes, hosts=self.names)
        networks = partial(Networks, self.networks, broker, beside)
        return BrokersConsole(self.address, doors, before, networks, self.tls, self.schema_registry)


def _accounts(mechanism: str, beside: Beside) -> Accounts:
    """The broker's own listener with SASL."""
    for protocol in (SASL_PLAINTEXT, SASL_SSL):
        if protocol in beside.listeners:
            host, _, port = beside.listeners[protocol].rpartition(":")
            tls = _own_listener() if protocol == SASL_SSL else None
            return Accounts(((host.strip("[]"), int(port)),), mechanism, tls)
    raise ValueError(f"login={mechanism!r} needs a listener of the broker with SASL: SASL_SSL://HOST:PORT")


def _own_listener() -> Any:
    """For a connection to a socket of this process, whose certificate need not be looked at."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
