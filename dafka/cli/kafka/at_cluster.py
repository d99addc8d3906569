"""Where the Kafka is that a command is about, and how it is spoken to."""

from __future__ import annotations

import logging
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from dafka.cli.where import FILE, opened
from dafka.security.client_properties import NAMES, client_security, read_properties

if TYPE_CHECKING:
    from dafka.broker.connecting import Connection
    from dafka.console.doors import Accounts

Command = Callable[..., Any]

_ADDRESS = re.compile(r"(?:\w+://)?(?:[^\s:/\[\]]+|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}))?")


class Cluster:
    """The cluster that the options of a command name."""

    def __init__(self, servers: str, properties: dict[str, str], *, is_named: bool = True) -> None:
        """``properties`` are Kafka's of a client. Raises TlsError and SaslError for what they cannot mean.

        ``is_named``: whether somebody has named the servers, which are the default's otherwise.
        """
        self.servers = servers
        self.is_named = is_named or bool(properties)
        self._security = client_security(properties)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection to it, for the methods of the broker interface. Raises click.ClickException."""
        with opened(self.servers, self._security.arguments) as connection:
            yield connection

    def accounts(self, mechanism: str) -> Accounts:
        """Where a console tries the accounts of its users."""
        from kafka.cluster import collect_hosts

        from dafka.console.doors import Accounts
        from dafka.security.contexts import of_client

        tls = None if self._security.tls is None else of_client(self._security.tls)
        hosts = collect_hosts(self.servers, randomize=False)
        return Accounts(tuple((host, port) for host, port, _ in hosts), mechanism, tls)

    @property
    def configs(self) -> dict[str, Any]:
        """The configuration that the clients of compat.kafka reach it with."""
        protocol, tls, sasl = self._security
        configs: dict[str, Any] = {"bootstrap_servers": self.servers, "security_protocol": protocol}
        if tls is not None:
            configs |= {
                "ssl_cafile": tls.cafile,
                "ssl_certfile": tls.certfile,
                "ssl_password": tls.password,
                "ssl_check_hostname": tls.check_hostname,
            }
        if sasl is not None:
            configs |= {"sasl_mechanism": sasl.mechanism, **sasl.options}
        return configs


def _addresses(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Raises click.BadParameter for what no address can be, which would be looked for in vain."""
    for one in value.split(","):
        found = _ADDRESS.fullmatch(one.strip())
        if found is None or not 0 < int(found[1] or 9092) < 2**16:
            raise click.BadParameter(f"{one!r} is not HOST:PORT, as localhost:9092 or [::1]:9092", ctx, param)
    return value


def at_cluster(command: Command) -> Command:
    """The options that say where; the command gets them as ``cluster``, a :class:`Cluster`."""

    @click.option(
        "-b",
        "--bootstrap-server",
        "--bootstrap-servers",
        "bootstrap_server",
        default="127.0.0.1:9092",
        envvar="DAFKA_KAFKA_BOOTSTRAP_SERVER",
        show_default=True,
        metavar="HOST:PORT",
        callback=_addresses,
        help="Where it is; several with commas.",
    )
    @click.option(
        "--command-config",
        type=FILE,
        envvar="DAFKA_KAFKA_COMMAND_CONFIG",
        metavar="FILE",
        help="Kafka's properties of a client: security.protocol=SASL_SSL ...",
    )
    @click.option(
        "-X", "properties", multiple=True, metavar="NAME=VALUE", help="One more of them; may be repeated."
    )
    @click.option("-v", "--verbose", is_flag=True, help="Log what happens to standard error.")
    @wraps(command)
    def with_cluster(
        *,
        bootstrap_server: str,
        command_config: str | None,
        properties: tuple[str, ...],
        verbose: bool,
        **options: Any,
    ) -> Any:
        # SIGTERM ends a command as Ctrl-C does: a member leaves its group, a console its port.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        logging.basicConfig(
            level=logging.DEBUG if verbose else logging.CRITICAL,  # errors are told in one line at the end
            stream=sys.stderr,
            format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        )
        given = {} if command_config is None else read_properties(command_config)
        for one in properties:
            name, equals, value = one.partition("=")
            if not equals or name not in NAMES:
                raise click.UsageError(f"-X {one}: it is NAME=VALUE with one of {', '.join(NAMES)}")
            given[name] = value
        source = click.get_current_context().get_parameter_source("bootstrap_server")
        is_named = source is not ParameterSource.DEFAULT
        return command(cluster=Cluster(bootstrap_server, given, is_named=is_named), **options)

    return with_cluster
