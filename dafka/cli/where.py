"""Where the accounts and the access control lists are: options of the commands that change them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from dafka.cli.options import check_folder
from dafka.security.client_properties import client_security, read_properties
from dafka.security.sasl.options import ClientSasl
from dafka.security.sasl.steps import SCRAM_MECHANISMS
from dafka.security.tls import ClientTls

if TYPE_CHECKING:
    from dafka.broker.connecting import Connection

_SERVER, _CONFIG = "DAFKA_KAFKA_BOOTSTRAP_SERVER", "DAFKA_KAFKA_COMMAND_CONFIG"

PATIENCE = 20.0  # seconds that a broker is waited for

Command = Callable[..., Any]
FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)


def login_options(command: Command) -> Command:
    """How a broker is spoken to; the command gets ``login``, arguments of :func:`dafka.broker.connect`."""

    @click.option(
        "--security-protocol",
        type=click.Choice(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
        default="PLAINTEXT",
        show_default=True,
        help="The protocol that is spoken there.",
    )
    @click.option(
        "--ssl-cafile", type=FILE, metavar="FILE", help="Authorities of the broker's certificate, PEM."
    )
    @click.option("--sasl-mechanism", default=SCRAM_MECHANISMS[0], show_default=True, help="How to log in.")
    @click.option("--sasl-username", metavar="NAME", help="The user that logs in.")
    @click.option(
        "--sasl-password-file", type=FILE, metavar="FILE", help="The password of who logs in; -: from here."
    )
    @wraps(command)
    def with_login(
        *,
        security_protocol: str,
        ssl_cafile: str | None,
        sasl_mechanism: str,
        sasl_username: str | None,
        sasl_password_file: str | None,
        **options: Any,
    ) -> Any:
        sasl = None
        for option, value, protocols in (
            ("--ssl-cafile", ssl_cafile, ("SSL", "SASL_SSL")),
            ("--sasl-username", sasl_username, ("SASL_PLAINTEXT", "SASL_SSL")),
            ("--sasl-password-file", sasl_password_file, ("SASL_PLAINTEXT", "SASL_SSL")),
        ):
            if value is not None and security_protocol not in protocols:
                meant = " or ".join(protocols)
                raise click.UsageError(
                    f"{option} means nothing with {security_protocol}: give --security-protocol {meant}"
                )
        if security_protocol.startswith("SASL_"):
            if sasl_username is None or sasl_password_file is None:
                raise click.UsageError(f"{security_protocol} needs --sasl-username and --sasl-password-file")
            given = {"username": sasl_username, "password": first_line(sasl_password_file)}
            sasl = ClientSasl(
                mechanism=sasl_mechanism,
                options={f"sasl_plain_{name}": value for name, value in given.items()},
            )
        login = {"security_protocol": security_protocol, "tls": ClientTls(cafile=ssl_cafile), "sasl": sasl}
        return command(login=login, **options)

    return with_login


def where(command: Command) -> Command:
    """The options of where they are; the command gets ``connect(**more)``, which opens a connection there.

    ``more``: further options of the broker on a folder that is opened for it. ``new``: the folder may be a
    new one, as before a broker's first start; otherwise a mistyped name is an error.
    """

    @click.option(
        "--data",
        type=click.Path(file_okay=False),
        callback=lambda ctx, param, folder: folder if folder is None else check_folder(ctx, param, folder),
        metavar="DIR",
        help="The folder of a broker that does not run.",
    )
    @click.option("-b", "--bootstrap-server", metavar="HOST:PORT", help="A broker that runs.")
    @click.option(
        "--command-config",
        type=FILE,
        metavar="FILE",
        help="Kafka's properties of a client, in place of the five options below.",
    )
    @login_options
    @wraps(command)
    def with_where(
        *,
        data: str | None,
        bootstrap_server: str | None,
        command_config: str | None,
        login: dict[str, Any],
        **options: Any,
    ) -> Any:
        if data is None and _is_of_kafka():  # where the other commands of `dafka kafka` look
            bootstrap_server = bootstrap_server or os.environ.get(_SERVER) or "127.0.0.1:9092"
            command_config = command_config or os.environ.get(_CONFIG)
        if command_config is not None:
            login = client_security(read_properties(command_config)).arguments
        if (data is None) is (bootstrap_server is None):
            raise click.UsageError(
                "give --data, the folder of a broker that does not run, or --bootstrap-server"
            )

        @contextmanager
        def connect(new: bool = False, **more: Any) -> Iterator[Connection]:
            import dafka.broker
            from dafka.broker.broker import Broker

            if bootstrap_server is not None:
                with opened(bootstrap_server, login) as connection:
                    yield connection
                return
            if not new and data is not None and not os.path.isdir(data):
                raise click.ClickException(f"there is no folder {data}")
            with Broker(data, **more) as broker:
                yield dafka.broker.connect(broker.bootstrap_servers)

        return command(connect=connect, **options)

    return with_where


def _is_of_kafka() -> bool:
    """Whether the command was called by its name below `dafka kafka`."""
    context: click.Context | None = click.get_current_context()
    while context is not None and context.info_name != "kafka":
        context = context.parent
    return context is not None


@contextmanager
def opened(bootstrap_server: str, login: dict[str, Any]) -> Iterator[Connection]:
    """A connection to a broker that runs. Raises click.ClickException in words if there is none."""
    from kafka.errors import KafkaTimeoutError

    import dafka.broker
    from dafka.broker.interface.errors import LoginRefusedError
    from dafka.broker.looking.silence import told_of_silence

    try:
        with told_of_silence(bootstrap_server, PATIENCE, lambda text: click.echo(text, err=True)):
            connection = dafka.broker.connect(bootstrap_server, PATIENCE, retry_login=False, **login)
    except LoginRefusedError as error:
        raise click.ClickException(str(error.args[0])) from error
    except KafkaTimeoutError as error:
        raise click.ClickException(
            f"no broker answers within {PATIENCE:g} s at {bootstrap_server}: {error.__cause__ or error}"
        ) from error
    try:
        yield connection
    finally:
        connection.close()


def first_line(path: str) -> str:
    """A password: the first line of a file. Raises click.UsageError."""
    if path == "-":
        line = sys.stdin.readline()
    else:
        with open(path, encoding="utf-8") as file:
            line = file.readline()
    password = line.rstrip("\r\n")
    if not password:
        raise click.UsageError(f"there is no password in the first line of {path}")
    return password
