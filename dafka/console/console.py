"""A console of any cluster: a broker of this process, of another one, or Apache Kafka."""

from __future__ import annotations

from functools import partial
from types import TracebackType

from dafka.broker.connecting import Connection
from dafka.console.doors import AccountDoors, Accounts, Doors, OpenDoors
from dafka.console.front_end import named, scheme_of, serve
from dafka.console.networks.networks import Networks
from dafka.console.options import ConsoleOptions
from dafka.hub.hub import get_hub


class Console:
    """A console of any cluster, from now on until :meth:`close`; a context manager. Any thread.

    ``connection`` is a :func:`dafka.broker.connect` to the cluster, which stays the caller's; None: only what
    ``options.networks`` names is shown. With ``accounts`` everybody logs in with an account of the broker,
    and no connection is needed. Raises OSError if it cannot listen, ValueError if there is nothing to show,
    and TlsError.
    """

    def __init__(
        self,
        connection: Connection | None = None,
        options: ConsoleOptions | None = None,
        accounts: Accounts | None = None,
    ) -> None:
        options = ConsoleOptions() if options is None else options
        options.warn_if_open()
        self._doors: Doors
        if accounts is None:
            if connection is None and options.networks.is_empty:
                raise ValueError(
                    "a console needs a connection, accounts to make connections with, or networks"
                )
            self._doors = OpenDoors(connection, writes=options.writes, hosts=options.names)
        else:
            self._doors = AccountDoors(get_hub(), accounts, writes=options.writes, hosts=options.names)
        self._scheme = scheme_of(options.tls)
        networks = partial(Networks, options.networks)
        registry = options.schema_registry
        self._server = serve(*options.address, self._doors, networks, options.tls, registry)

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"{self._scheme}://{named(self._server)}/"

    def close(self) -> None:
        """Disconnect everybody."""
        self._server.close()
        self._doors.close()

    def __enter__(self) -> Console:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
