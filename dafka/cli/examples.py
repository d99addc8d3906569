"""Examples in the help of commands, by the words that lead to a command.

They stand here, and not with each command, because some have two names: `dafka acl` is `dafka kafka acls`.
Commands with examples among the words about them need none here.
"""

from __future__ import annotations

import click

_AT = "127.0.0.1:9092"

EXAMPLES = {
    "acl add": [
        "dafka acl add --allow-principal User:alice --producer --topic orders",
        "dafka acl add --allow-principal User:bob --consumer --topic orders --group billing",
    ],
    "acl list": ["dafka acl list --principal User:alice"],
    "acl remove": ["dafka acl remove --allow-principal User:alice --producer --topic orders"],
    "backup create": ["dafka backup create brokerdb /mnt/backups"],
    "backup list": ["dafka backup list /mnt/backups --json"],
    "backup prune": ["dafka backup prune /mnt/backups --keep 7"],
    "backup restore": ["dafka backup restore /mnt/backups restored"],
    "backup verify": ["dafka backup verify /mnt/backups"],
    "bridge": [
        f"dafka bridge --bootstrap-server {_AT} --peer zeek:9999 --to-kafka '/zeek/event/ events'",
        f"dafka bridge --bootstrap-server {_AT} --peer other:9999 --site here --share 'orders*' --take",
    ],
    "broker": ["dafka broker --data brokerdb --listen 127.0.0.1:9092 --console 127.0.0.1:8080"],
    "completion": ["source <(dafka completion bash)"],
    "config": ["dafka config broker"],
    "console": [
        "dafka console --bootstrap-server kafka1:9092 --listen 127.0.0.1:8080",
        "dafka console --overlay 127.0.0.1:9999 --write",
    ],
    "consume": ["dafka consume orders --from earliest --count 10"],
    "kafka cluster describe": ["dafka kafka cluster describe --json"],
    "kafka configs alter": [
        "dafka kafka configs alter --topic orders --set retention.ms=86400000",
        "dafka kafka configs alter --topic orders --unset retention.ms",
    ],
    "kafka configs describe": ["dafka kafka configs describe --topic orders --all"],
    "kafka groups delete": ["dafka kafka groups delete billing"],
    "kafka groups describe": ["dafka kafka groups describe billing"],
    "kafka groups forget": ["dafka kafka groups forget billing --topic orders:0,1"],
    "kafka groups list": ["dafka kafka groups list --state Empty"],
    "kafka groups reset": [
        "dafka kafka groups reset billing --topic orders --to 2h",
        "dafka kafka groups reset billing --all-topics --by -100 --execute",
        "dafka kafka groups reset billing --all-topics --to earliest --export > plan.csv",
        "dafka kafka groups reset billing --from-file plan.csv --execute",
    ],
    "kafka topics alter": ["dafka kafka topics alter orders --partitions 6 --set retention.ms=86400000"],
    "kafka topics copy": ["dafka kafka topics copy orders orders-copy --from 2h"],
    "kafka topics create": [
        "dafka kafka topics create orders --partitions 3 --config cleanup.policy=compact"
    ],
    "kafka topics delete": ["dafka kafka topics delete orders --if-exists"],
    "kafka topics describe": ["dafka kafka topics describe orders"],
    "kafka topics empty": ["dafka kafka topics empty orders --before 2h"],
    "kafka topics list": ["dafka kafka topics list 'orders-*'"],
    "kafka topics offsets": ["dafka kafka topics offsets orders --at 2026-01-31T12:00"],
    "kafka transactions abort": ["dafka kafka transactions abort payments-1"],
    "kafka transactions describe": ["dafka kafka transactions describe payments-1"],
    "kafka transactions list": ["dafka kafka transactions list --state Ongoing"],
    "kafka transactions producers": ["dafka kafka transactions producers orders"],
    "keys allow": ["dafka keys allow keys sensor-3"],
    "keys list": ["dafka keys list keys"],
    "keys new": ["dafka keys new keys sensor-1 sensor-2"],
    "keys remove": ["dafka keys remove keys sensor-2"],
    "log dump": ["dafka log dump storedb orders --limit 10 --json"],
    "log verify": ["dafka log verify storedb"],
    "migrate": [
        f"dafka migrate kafka1:9092 {_AT} --topic orders --group billing --checkpoint orders.json",
        "dafka migrate kafka1:9092 127.0.0.1:9092 --topic orders --verify",
    ],
    "overlay node": ["dafka overlay node --listen 127.0.0.1:9999 --master settings"],
    "overlay peers": ["dafka overlay peers --peer 127.0.0.1:9999"],
    "overlay publish": [
        "dafka overlay publish /weather '{\"degrees\": 21}' --peer 127.0.0.1:9999 --wait",
    ],
    "overlay record": ["dafka overlay record recorded --peer 127.0.0.1:9999 --seconds 60"],
    "overlay replay": ["dafka overlay replay recorded --speed 2"],
    "overlay store": [
        "dafka overlay store settings put level 3 --peer 127.0.0.1:9999",
        "dafka overlay store settings get level --peer 127.0.0.1:9999",
    ],
    "overlay subscribe": ["dafka overlay subscribe /weather --peer 127.0.0.1:9999 --count 10"],
    "overlay topology": ["dafka overlay topology --peer 127.0.0.1:9999 --picture overlay.svg"],
    "perf consumer": ["dafka perf consumer 100000 100"],
    "perf producer": ["dafka perf producer 100000 100"],
    "perf store": ["dafka perf store 100000 100"],
    "pipeline aggregate": [
        f"dafka pipeline aggregate --bootstrap-servers {_AT} "
        "--topics orders --schema 'at TIMESTAMP, shop STRING, total DOUBLE' "
        "--time at --by shop --sum total --to-topic totals --checkpoint checkpoint",
    ],
    "pipeline archive": [
        f"dafka pipeline archive archive --bootstrap-servers {_AT} --topics orders --every '1 minute'"
    ],
    "pipeline migrate": [
        f"dafka pipeline migrate --bootstrap-servers {_AT} "
        "--topics orders --to kafka1:9092 --checkpoint checkpoint"
    ],
    "pipeline replay": [
        f"dafka pipeline replay archive --bootstrap-servers {_AT} --topic orders-again --rate 1000"
    ],
    "produce": ["echo hello | dafka produce orders"],
    "quota list": ["dafka quota list --user alice"],
    "quota remove": ["dafka quota remove --user alice"],
    "quota set": ["dafka quota set --user alice --producer-byte-rate 1048576"],
    "sniff": ["dafka sniff --seconds 10"],
    "store": ["dafka store storedb --retention-ms 86400000"],
    "swap-imports": ["dafka swap-imports src --diff", "dafka swap-imports src --back"],
    "topics": ["dafka topics --seconds 5"],
    "tower": ["dafka tower"],
    "user add": ["dafka user add alice --password-file secret"],
    "user list": ["dafka user list"],
    "user remove": ["dafka user remove alice"],
    "zper acks": ["dafka zper acks orders --count 10"],
    "zper count": ["dafka zper count orders"],
    "zper fetch": ["dafka zper fetch orders --from earliest --count 10"],
    "zper import": ["dafka zper import zperdb"],
    "zper nodes": ["dafka zper nodes --topics"],
    "zper offsets": ["dafka zper offsets orders --time latest"],
    "zper produce": ["echo hello | dafka zper produce orders"],
    "zper relay": ["dafka zper relay orders --count 10"],
    "zper run": ["dafka zper run zper.cfg"],
    "zper start": ["dafka zper start zper.cfg"],
    "zper stop": ["dafka zper stop zper.cfg"],
}

_ALSO = {"acl": "kafka acls", "quota": "kafka quotas", "user": "kafka users"}


def examples_of(path: str) -> list[str]:
    """The examples of a command, by the words that lead to it."""
    for name, other in _ALSO.items():
        if path.startswith(other):
            there = EXAMPLES.get(name + path.removeprefix(other), [])
            return [one.replace(f"dafka {name} ", f"dafka {other} ") for one in there]
    return EXAMPLES.get(path, [])


def format_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The last part of the help of a command."""
    contexts = [ctx]
    while contexts[0].parent is not None:
        contexts.insert(0, contexts[0].parent)
    examples = examples_of(" ".join([str(one.info_name) for one in contexts[1:]]))
    if examples:
        with formatter.section("Examples"):
            for one in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{one}\n")
