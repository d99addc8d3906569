"""``dafka quota``: how much the clients of a broker may send, read and have computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import click

from dafka.cli.numbers import Number
from dafka.cli.where import where

Command = Callable[..., Any]

_KINDS = {"user": "user", "client_id": "client-id", "ip": "ip"}
_OF_CLIENTS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_OF_ADDRESSES = ("connection_creation_rate",)
_KEYS = (*_OF_CLIENTS, *_OF_ADDRESSES)


def _whom(command: Command) -> Command:
    """The options of the entity that a quota is for; the command gets it as ``entity``."""

    @click.option("--user", metavar="NAME", help="A user.")
    @click.option("--user-default", is_flag=True, help="Users without a quota of their own.")
    @click.option("--client-id", metavar="NAME", help="A client id.")
    @click.option("--client-id-default", is_flag=True, help="Client ids without a quota of their own.")
    @click.option("--ip", metavar="ADDRESS", help="An address that clients connect from.")
    @click.option("--ip-default", is_flag=True, help="Addresses without a quota of their own.")
    @wraps(command)
    def with_whom(**options: Any) -> Any:
        entity = []
        for option, kind in _KINDS.items():
            name, default = options.pop(option), options.pop(f"{option}_default")
            if name is not None and default:
                raise click.UsageError(f"give --{kind} or --{kind}-default")
            if name is not None or default:
                entity.append((kind, name))
        return command(entity=tuple(entity), **options)

    return with_whom


@click.group(short_help="Quotas of a broker's clients.")
def quota() -> None:
    """Set, list and remove what the clients of a broker may use in a second.

    A quota is for a user, a client id, or a user with a client id; the most particular one counts. One for
    an address is about connections.
    """


@quota.command(name="set")
@click.option("--producer-byte-rate", type=click.IntRange(1), metavar="N", help="Octets sent.")
@click.option("--consumer-byte-rate", type=click.IntRange(1), metavar="N", help="Octets read.")
@click.option(
    "--request-percentage",
    type=Number(0, min_open=True),
    metavar="N",
    help="Processor time of the broker; 100 is one core.",
)
@click.option(
    "--controller-mutation-rate",
    type=Number(0, min_open=True),
    metavar="N",
    help="Partitions created, added and deleted.",
)
@click.option(
    "--connection-creation-rate",
    type=click.IntRange(1, 2**31 - 1),
    metavar="N",
    help="New connections of an address.",
)
@_whom
@where
def set_(entity: Any, connect: Any, **rates: float | None) -> None:
    """Set quotas; others stay."""
    given = {key: float(value) for key, value in rates.items() if value is not None}
    if not given:
        raise click.UsageError("give a rate")
    _alter(lambda: connect(new=True), entity, given.items())


@quota.command(name="list")
@_whom
@where
def list_(entity: Any, connect: Any) -> None:
    """List quotas: all, or those for what is given, whatever else they are for."""
    from dafka.broker.interface.quotas import Match, QuotaFilter

    filters = [
        QuotaFilter(kind, Match.DEFAULT if name is None else Match.EXACT, name) for kind, name in entity
    ]
    with connect() as connection:
        found = connection.call("describe_quotas", filters)
    if found.error is not None:
        raise click.ClickException(f"{found.error.__name__}: {found.detail}")
    lines = {
        _words(whom): "\t".join(f"{key}={value:.15g}" for key, value in sorted(values.items()))
        for whom, values in found.quotas.items()
    }
    for whom, values in sorted(lines.items()):
        click.echo(f"{whom}\t{values}")


@quota.command()
@click.option("--key", "keys", type=click.Choice(_KEYS), multiple=True, help="Only this.  [default: all]")
@_whom
@where
def remove(entity: Any, connect: Any, keys: tuple[str, ...]) -> None:
    """Remove quotas."""
    of_kind = _OF_ADDRESSES if entity and entity[0][0] == "ip" else _OF_CLIENTS
    _alter(connect, entity, [(key, None) for key in keys or of_kind])


def _alter(connect: Any, entity: Any, changes: Iterable[tuple[str, float | None]]) -> None:
    from dafka.broker.interface.quotas import QuotaChange, QuotaChanges

    if not entity:
        raise click.UsageError("name its clients: --user, --client-id or --ip, or --user-default and so on")
    with connect() as connection:
        change = QuotaChanges(entity, [QuotaChange(*one) for one in changes])
        (outcome,) = connection.call("alter_quotas", [change])
    if outcome.error is not None:
        raise click.ClickException(f"{_words(entity)}: {outcome.error.__name__}: {outcome.detail}")


def _words(entity: Iterable[tuple[str, str | None]]) -> str:
    """``user=alice client-id=*``; the default is ``*``."""
    return " ".join(f"{kind}={'*' if name is None else name}" for kind, name in entity)
