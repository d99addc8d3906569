"""``dafka user``: the accounts of a broker, in its folder or over the wire."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from dafka.cli.options import check_folder
from dafka.security import credentials
from dafka.security.sasl.options import ClientSasl
from dafka.security.sasl.steps import SCRAM_MECHANISMS
from dafka.security.tls import ClientTls

if TYPE_CHECKING:
    from dafka.broker.connecting import Connection

PATIENCE = 20.0  # seconds that a broker is waited for

Command = Callable[..., Any]
_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)


def _where(command: Command) -> Command:
    """The options of where the accounts are; the command gets ``connect``, which opens a connection there."""

    @click.option(
        "--data",
        type=click.Path(file_okay=False),
        callback=lambda ctx, param, folder: folder if folder is None else check_folder(ctx, param, folder),
        metavar="DIR",
        help="The folder of a broker that does not run.",
    )
    @click.option("--bootstrap-server", metavar="HOST:PORT", help="A broker that runs.")
    @click.option(
        "--security-protocol",
        type=click.Choice(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
        default="PLAINTEXT",
        show_default=True,
        help="What is spoken there.",
    )
    @click.option("--ssl-cafile", type=_FILE, metavar="FILE", help="Who signs the broker's certificate, PEM.")
    @click.option("--sasl-mechanism", default=SCRAM_MECHANISMS[0], show_default=True, help="How to log in.")
    @click.option("--sasl-username", metavar="NAME", help="Who logs in.")
    @click.option(
        "--sasl-password-file", type=_FILE, metavar="FILE", help="The password of who logs in; -: from here."
    )
    @wraps(command)
    def with_where(
        *,
        data: str | None,
        bootstrap_server: str | None,
        security_protocol: str,
        ssl_cafile: str | None,
        sasl_mechanism: str,
        sasl_username: str | None,
        sasl_password_file: str | None,
        **options: Any,
    ) -> Any:
        if (data is None) is (bootstrap_server is None):
            raise click.UsageError(
                "give --data, the folder of a broker that does not run, or --bootstrap-server"
            )
        sasl = None
        if security_protocol.startswith("SASL_"):
            if sasl_username is None or sasl_password_file is None:
                raise click.UsageError(f"{security_protocol} needs --sasl-username and --sasl-password-file")
            given = {"username": sasl_username, "password": _password(sasl_password_file)}
            sasl = ClientSasl(
                mechanism=sasl_mechanism,
                options={f"sasl_plain_{name}": value for name, value in given.items()},
            )

        @contextmanager
        def connect() -> Iterator[Connection]:
            import dafka.broker
            from dafka.broker.broker import Broker

            if bootstrap_server is not None:
                connection = dafka.broker.connect(
                    bootstrap_server,
                    PATIENCE,
                    security_protocol=security_protocol,
                    tls=ClientTls(cafile=ssl_cafile),
                    sasl=sasl,
                )
                try:
                    yield connection
                finally:
                    connection.close()
                return
            with Broker(data) as broker:
                yield dafka.broker.connect(broker.bootstrap_servers)

        return command(connect=connect, **options)

    return with_where


@click.group(short_help="Accounts of a broker.")
def user() -> None:
    """Add, list and remove the accounts with which clients log in to a broker."""


@user.command()
@click.argument("name")
@click.option(
    "--mechanism",
    type=click.Choice(SCRAM_MECHANISMS),
    default=SCRAM_MECHANISMS[0],
    show_default=True,
    help="What the password is kept for; PLAIN takes either.",
)
@click.option(
    "--password-file", type=_FILE, required=True, metavar="FILE", help="Its first line; -: from here."
)
@click.option(
    "--iterations",
    type=click.IntRange(credentials.LEAST_ITERATIONS, credentials.MOST_ITERATIONS),
    default=credentials.LEAST_ITERATIONS,
    show_default=True,
    help="How slow it is to try passwords.",
)
@_where
def add(name: str, mechanism: str, password_file: str, iterations: int, connect: Any) -> None:
    """Add NAME, or give NAME another password."""
    from dafka.broker.interface.access import CredentialUpsertion, ScramMechanism

    salt = os.urandom(credentials.SALT_OCTETS)
    salted = credentials.salted_password(mechanism, _password(password_file), salt, iterations)
    number = next(one for one in ScramMechanism if one.label == mechanism)
    change = CredentialUpsertion(name, number, iterations, salt, salted)
    with connect() as connection:
        _check(connection.call("alter_accounts", [], [change]))


@user.command(name="list")
@_where
def list_(connect: Any) -> None:
    """List users, with their mechanisms and iterations."""
    from dafka.broker.interface.access import ScramMechanism

    with connect() as connection:
        for name, found in sorted(connection.call("describe_accounts").items()):
            for mechanism, iterations in sorted(found.iterations.items()):
                click.echo(f"{name}\t{ScramMechanism(mechanism).label}\t{iterations}")


@user.command()
@click.argument("name")
@click.option("--mechanism", type=click.Choice(SCRAM_MECHANISMS), help="Only for this one.  [default: all]")
@_where
def remove(name: str, mechanism: str | None, connect: Any) -> None:
    """Remove NAME."""
    from dafka.broker.interface.access import CredentialDeletion, ScramMechanism

    with connect() as connection:
        if mechanism is None:
            found = connection.call("describe_accounts", [name])[name]
            numbers = list(found.iterations)
        else:
            numbers = [one for one in ScramMechanism if one.label == mechanism]
        if not numbers:
            raise click.ClickException(f"there is no user {name!r}")
        _check(connection.call("alter_accounts", [CredentialDeletion(name, one) for one in numbers], []))


def _check(outcomes: dict[str, Any]) -> None:
    for name, outcome in outcomes.items():
        if outcome.error is not None:
            raise click.ClickException(f"user {name!r}: {outcome.error.__name__}: {outcome.detail}")


def _password(path: str) -> str:
    """The first line of a file."""
    if path == "-":
        line = sys.stdin.readline()
    else:
        with open(path, encoding="utf-8") as file:
            line = file.readline()
    password = line.rstrip("\r\n")
    if not password:
        raise click.UsageError(f"there is no password in the first line of {path}")
    return password
