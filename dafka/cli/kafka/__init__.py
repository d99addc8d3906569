"""``dafka kafka``: looking things up and changing them at a terminal, in any Kafka.

Everything goes through the broker interface or the clients of compat.kafka, so it works with ``dafka broker``
and with Apache Kafka. Tables are for people, ``--json`` is for programs. The exit status is 0 if all was
done, 1 if the broker refused something or did not answer, 2 for a command line that means nothing.
"""

from __future__ import annotations

import click

from dafka.cli.lazy import LazyGroup

_HOMES = {
    "topics": "dafka.cli.kafka.topics:topics",
    "produce": "dafka.cli.kafka.produce:produce",
    "consume": "dafka.cli.kafka.consume:consume",
    "groups": "dafka.cli.kafka.groups:groups",
    "configs": "dafka.cli.kafka.configs:configs",
    "transactions": "dafka.cli.kafka.transactions:transactions",
    "cluster": "dafka.cli.kafka.cluster:cluster",
    "top": "dafka.cli.kafka.top.command:top",
    "acls": "dafka.cli.acl:acl",
    "quotas": "dafka.cli.quota:quota",
    "users": "dafka.cli.user:user",
}


@click.group(cls=LazyGroup, homes=_HOMES, short_help="Topics, records, groups and settings of any Kafka.")
def kafka() -> None:
    """Look into a Kafka and change it: a `dafka broker`, or Apache Kafka.

    --bootstrap-server says where it is, or the variable DAFKA_KAFKA_BOOTSTRAP_SERVER; --command-config is a
    file of client properties, as Kafka's own tools take it.

    \b
      dafka kafka topics create orders --partitions 3
      echo '{"key": "7", "value": {"total": 12}}' | dafka kafka produce orders --json
      dafka kafka consume orders --exit --json
      dafka kafka groups describe billing
      dafka kafka groups reset billing --topic orders --to 2h --execute
      dafka kafka top
    """
