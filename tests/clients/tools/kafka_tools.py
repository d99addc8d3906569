"""Kafka's command-line tools against this project's broker and Apache Kafka, and what they print differently.

scripts/kafka_tools              # all of them against both, some minutes
scripts/kafka_tools features     # those whose command has this word

Numbers that differ from run to run (times, ids, ports, nodes) are left out before outputs are compared.
"""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

from clients.servers import APACHE, DAFKA, running  # noqa: E402

from scripts.apache import jars  # noqa: E402

SECONDS = 120
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
GROUPS = "consumer.group.ConsumerGroupCommand"
STREAMS = "streams.StreamsGroupCommand"
ELR = "eligible.leader.replicas.version"

COMMANDS = [
    "TopicCommand --create --topic tools --partitions 1",
    "TopicCommand --describe --topic tools --exclude-internal",
    "VerifiableProducer --topic tools --max-messages 20",
    "GetOffsetShell --topic tools",
    "GetOffsetShell --topic tools --time earliest",
    f"{GROUPS} --list",
    "VerifiableConsumer --topic tools --group-id tools --max-messages 20 --reset-policy earliest",
    f"{GROUPS} --describe --group tools",
    f"{GROUPS} --list --state --type",
    "GroupsCommand --list",
    f"{STREAMS} --list",
    f"{STREAMS} --describe --group tools",
    f"{STREAMS} --describe --group none --members",
    f"{STREAMS} --describe --group none --state --verbose",
    f"{STREAMS} --delete --group none",
    f"{STREAMS} --reset-offsets --group none --input-topic tools --to-earliest --execute",
    f"{STREAMS} --delete-offsets --group none --input-topic tools",
    "FeatureCommand describe",
    f"FeatureCommand downgrade --feature {ELR}=0",
    f"FeatureCommand upgrade --feature {ELR}=1",
    "FeatureCommand downgrade --metadata 4.2",
    "FeatureCommand upgrade --feature nonsense=1",
    "FeatureCommand version-mapping",
    "MetadataQuorumCommand describe --status",
    "MetadataQuorumCommand describe --replication",
    "MetadataQuorumCommand remove-controller --controller-id 9"
    " --controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ",
    "TransactionsCommand list",
    "TransactionsCommand describe-producers --topic tools --partition 0",
    "TransactionsCommand find-hanging --topic tools",
    "TransactionsCommand abort --topic tools --partition 0 --start-offset 0",
    "LogDirsCommand --describe --topic-list tools",
    "ClientMetricsCommand --alter --name tools --metrics org.apache.kafka. --interval 60000",
    "ClientMetricsCommand --list",
    "ClientMetricsCommand --describe --name tools",
    "DelegationTokenCommand --create --max-life-time-period -1 --command-config {empty}",
    "DelegationTokenCommand --describe --command-config {empty}",
    "LeaderElectionCommand --election-type preferred --all-topic-partitions",
    "reassign.ReassignPartitionsCommand --list",
    "DeleteRecordsCommand --offset-json-file {deletion}",
    "EndToEndLatency --topic tools --num-records 20 --producer-acks all --record-size 100",
    "ProducerPerformance --topic tools --num-records 100 --record-size 10 --throughput -1",
    "ProducerPerformance --topic tools --num-records 100 --record-size 10 --throughput -1"
    " --transactional-id tools --transaction-duration-ms 5",
    "TransactionsCommand forceTerminateTransaction --transactional-id tools",
    "ConsumerPerformance --topic tools --num-records 50",
    "StreamsResetter --application-id tools-app --input-topics tools --force",
    "ClusterTool cluster-id",
    "ClusterTool list-endpoints",
    "ClusterTool unregister --id 7",
    f"{GROUPS} --reset-offsets --group tools --topic tools --to-earliest --execute",
    f"{GROUPS} --delete-offsets --group tools --topic tools",
    f"{GROUPS} --delete --group tools",
    "BrokerApiVersionsCommand",
    "TopicCommand --delete --topic tools",
]

_LEFT_OUT = [
    (r"127\.0\.0\.1[: ]\d+", "HOST"),
    (r"\d{4}-\d\d-\d\d[T ][\d:.,]+Z?", "TIME"),
    (rf"(?:/tmp|{re.escape(tempfile.gettempdir())})/[\w./-]+", "FOLDER"),
    (r"(?<![\w-])[\w-]{22}(?![\w-])", "ID"),
    (r"-?\d+(\.\d+)?", "N"),
    (r"\s+", " "),
]


def comparable(output: str) -> list[str]:
    """The lines of an output without what differs from run to run."""
    lines = []
    for line in output.splitlines():
        for pattern, word in _LEFT_OUT:
            line = re.sub(pattern, word, line)
        lines.append(line.strip())
    return lines


def run(command: str, servers: str, folder: Path) -> str:
    """What a tool prints, and its exit status."""
    (folder / "empty").write_text("")
    deletion = {"partitions": [{"topic": "tools", "partition": 0, "offset": 3}], "version": 1}
    (folder / "deletion").write_text(json.dumps(deletion))
    tool, *rest = command.format(empty=folder / "empty", deletion=folder / "deletion").split()
    at = 1 if tool in ("ClusterTool",) else 0  # its subcommand comes first
    arguments = [*rest[:at], "--bootstrap-server", servers, *rest[at:]]
    done = subprocess.run(
        ["java", *FLAGS, "-cp", jars.classpath(), f"org.apache.kafka.tools.{tool}", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    return f"{done.stdout}{done.stderr}\nexit {done.returncode}"


def main(words: list[str]) -> None:
    """Run the tools whose commands have one of these words, or all; print what differs."""
    commands = [one for one in COMMANDS if not words or any(word in one for word in words)]
    outputs: dict[str, list[str]] = {}
    for name in (APACHE, DAFKA):
        with running(name) as server, tempfile.TemporaryDirectory() as folder:
            outputs[name] = [run(one, server.bootstrap_servers, Path(folder)) for one in commands]
    different = 0
    for command, theirs, ours in zip(commands, outputs[APACHE], outputs[DAFKA], strict=True):
        lines = list(
            difflib.unified_diff(comparable(theirs), comparable(ours), APACHE, DAFKA, n=0, lineterm="")
        )
        different += bool(lines)
        print(f"{'differs' if lines else 'same   '} {command}")
        for line in lines[2:]:
            print(f"    {line}")
    print(f"{len(commands)} commands, {different} with another output")


if __name__ == "__main__":
    main(sys.argv[1:])
