"""``dafka kafka transactions``: open transactions, their producers, and how to end them."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import click
from kafka.errors import ConcurrentTransactionsError

from dafka.broker.looking.outcomes import check, named
from dafka.broker.looking.places import partitions_of
from dafka.cli.kafka.at_cluster import Cluster, at_cluster
from dafka.cli.kafka.output import json_option, show

_PATIENCE, _PAUSE = 20.0, 0.1  # seconds that the end of a transaction is waited for


@click.group(short_help="List, describe and end transactions.")
def transactions() -> None:
    """Transactions of a cluster, and the producers that its partitions know."""


@transactions.command(name="list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only Ongoing, ...; repeatable.")
@json_option
@at_cluster
def list_(states: tuple[str, ...], as_json: bool, cluster: Cluster) -> None:
    """List transactional ids with their states."""
    with cluster.connect() as connection:
        found = connection.call("list_transactions", states)
    show((one._asdict() for one in sorted(found)), as_json, ["transactional_id", "state", "producer_id"])


@transactions.command()
@click.argument("transactional_id")
@json_option
@at_cluster
def describe(transactional_id: str, as_json: bool, cluster: Cluster) -> None:
    """Show the state of a transactional id, and the partitions of its open transaction."""
    with cluster.connect() as connection:
        found = connection.call("describe_transactions", [transactional_id])[transactional_id]
    check({transactional_id: found})
    row = {
        "transactional_id": transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "epoch": found.epoch,
        "timeout_s": round(found.timeout),
        "started": _moment(found.started),
        "partitions": [named(one) for one in sorted(found.partitions)],
    }
    show([row], as_json, list(row))


@transactions.command()
@click.argument("topic")
@json_option
@at_cluster
def producers(topic: str, as_json: bool, cluster: Cluster) -> None:
    """List the idempotent producers that TOPIC's partitions know.

    TRANSACTION START is where the open transaction of a producer begins: consumers of committed records read
    no further.
    """
    with cluster.connect() as connection:
        keys = [(topic, number) for number in partitions_of(connection, [topic])[topic]]
        found = connection.call("describe_producers", keys)
    check(found)
    rows = [
        {
            "partition": number,
            "producer_id": one.producer_id,
            "epoch": one.epoch,
            "last_sequence": one.last_sequence,
            "last_write": _moment(one.last_timestamp / 1000),
            "transaction_start": None if one.transaction_start < 0 else one.transaction_start,
        }
        for (_, number), outcome in sorted(found.items())
        for one in outcome.producers
    ]
    columns = ["partition", "producer_id", "epoch", "last_sequence", "last_write", "transaction_start"]
    show(rows, as_json, columns)


@transactions.command()
@click.argument("transactional_id")
@at_cluster
def abort(transactional_id: str, cluster: Cluster) -> None:
    """Abort the open transaction of TRANSACTIONAL_ID; its producer is fenced.

    It is done as a new producer with that id does it.
    """
    with cluster.connect() as connection:
        found = connection.call("describe_transactions", [transactional_id])[transactional_id]
        check({transactional_id: found})
        deadline = time.monotonic() + _PATIENCE
        while True:
            outcome = connection.call("init_producer_id", transactional_id, found.timeout)
            if outcome.error is not ConcurrentTransactionsError or time.monotonic() > deadline:
                break
            time.sleep(_PAUSE)  # it is being ended
        check({transactional_id: outcome})


def _moment(seconds: float) -> str | None:
    if seconds < 0:
        return None
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")
