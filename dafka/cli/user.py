"""``dafka user``: the accounts of a broker, in its folder or over the wire."""

from __future__ import annotations

import os
from typing import Any

import click

from dafka.cli.where import FILE, first_line, where
from dafka.security import credentials
from dafka.security.sasl.steps import SCRAM_MECHANISMS


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
    help="The mechanism that the password is kept for; PLAIN takes either.",
)
@click.option(
    "--password-file", type=FILE, required=True, metavar="FILE", help="Its first line; -: from here."
)
@click.option(
    "--iterations",
    type=click.IntRange(credentials.LEAST_ITERATIONS, credentials.MOST_ITERATIONS),
    default=credentials.LEAST_ITERATIONS,
    show_default=True,
    help="How slow it is to try passwords.",
)
@where
def add(name: str, mechanism: str, password_file: str, iterations: int, connect: Any) -> None:
    """Add NAME, or give NAME another password."""
    from dafka.broker.interface.access import CredentialUpsertion, ScramMechanism

    salt = os.urandom(credentials.SALT_OCTETS)
    salted = credentials.salted_password(mechanism, first_line(password_file), salt, iterations)
    number = next(one for one in ScramMechanism if one.label == mechanism)
    change = CredentialUpsertion(name, number, iterations, salt, salted)
    with connect(new=True) as connection:
        _check(connection.call("alter_accounts", [], [change]))


@user.command(name="list")
@where
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
@where
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
        for one in numbers:  # a request changes one credential of a user
            _check(connection.call("alter_accounts", [CredentialDeletion(name, one)], []))


def _check(outcomes: dict[str, Any]) -> None:
    for name, outcome in outcomes.items():
        if outcome.error is not None:
            raise click.ClickException(f"user {name!r}: {outcome.error.__name__}: {outcome.detail}")
