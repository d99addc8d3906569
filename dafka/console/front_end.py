"""The console of a broker of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from dafka.broker.interface.front_end import FrontEnd
from dafka.console.application import make_application
from dafka.console.decoding.options import SchemaRegistry
from dafka.console.desk import Bounds
from dafka.console.doors import Doors
from dafka.console.networks.networks import Networks
from dafka.console.server import Server
from dafka.security.renewing import Renewed
from dafka.security.tls import ServerTls
from dafka.sockets.hosts import host_and_port


class BrokersConsole(FrontEnd):
    """The console of a broker of this process. Hub side; raises OSError if it cannot listen."""

    def __init__(
        self,
        address: tuple[str, int],
        doors: Doors,
        before: Mapping[str, str],
        make_networks: Callable[[], Networks] = Networks,
        tls: ServerTls | None = None,
        registry: SchemaRegistry | None = None,
    ) -> None:
        self._doors = doors
        self._scheme = scheme_of(tls)
        host, port = address
        wanted = port or int(before.get("console", ":0").rpartition(":")[2])
        try:
            self._server = serve(host, wanted, doors, make_networks, tls, registry)
        except OSError:
            if wanted == port:
                raise
            # The port of the last run is taken.
            self._server = serve(host, port, doors, make_networks, tls, registry)

    @property
    def addresses(self) -> Mapping[str, str]:
        return {"console": named(self._server)}

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"{self._scheme}://{named(self._server)}/"

    def metrics(self) -> dict[str, Any]:
        return {}

    @property
    def discarded(self) -> Mapping[str, int]:
        return {}

    def close(self) -> None:
        self._server.close()
        self._doors.close()


def serve(
    host: str,
    port: int,
    doors: Doors,
    make_networks: Callable[[], Networks] = Networks,
    tls: ServerTls | None = None,
    registry: SchemaRegistry | None = None,
) -> Server:
    """A server for users of these doors. Raises OSError, and TlsError for unusable files."""

    def make(rest: ExitStack) -> Any:
        networks = make_networks()
        rest.callback(networks.close)
        return make_application(doors, Bounds(registry), networks)

    return Server("" if host == "*" else host, port, make, None if tls is None else Renewed(tls))


def scheme_of(tls: ServerTls | None) -> str:
    """The scheme of the console's address."""
    return "http" if tls is None else "https"


def named(server: Server) -> str:
    """``HOST:PORT`` that it listens on."""
    host, port = server.address
    return host_and_port(host, port)
