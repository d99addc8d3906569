"""ConsoleOptions: a console on a broker of this process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dafka.broker.connecting import Connection
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.front_end import FrontEnd, FrontEndOptions
from dafka.console.doors import OpenDoors
from dafka.console.front_end import BrokersConsole  # here, and not in the hub: Flask takes its time
from dafka.hub.hub import Hub
from dafka.security.keys import ServerKeys
from dafka.sockets.hosts import is_loopback

_ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^\s:/\[\],]+)):(\d{1,5})", re.ASCII)


@dataclass(frozen=True)
class ConsoleOptions(FrontEndOptions):
    """Where a console listens, and what may be done there: ``Broker(console=ConsoleOptions())``.

    ``listen``: ``"HOST:PORT"``; PORT 0 is any, and :attr:`dafka.Broker.console` tells which. ``write``:
    whether topics, records and groups may be changed; None: only if it listens on loopback. ``hosts``: names
    that browsers may call it by, beside addresses in numbers and ``localhost``. Raises ValueError.
    """

    listen: str = "127.0.0.1:0"
    write: bool | None = None
    hosts: Iterable[str] = ()

    def __post_init__(self) -> None:
        _ = self.address
        if isinstance(self.hosts, str):
            raise ValueError(f"hosts is a list of names, not the text {self.hosts!r}")

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

    def open(
        self, hub: Hub, broker: BrokerInterface, before: Mapping[str, str], keys: ServerKeys | None = None
    ) -> FrontEnd:
        doors = OpenDoors(Connection(hub, broker), writes=self.writes, hosts=self.names)
        return BrokersConsole(self.address, doors, before)
