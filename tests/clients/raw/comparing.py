"""Sends the same random sequence of odd requests to this project's broker and to Apache Kafka, and prints in
what their answers differ.

    scripts/odd_requests --seeds 100            # begun with --first 0, of --length 30 requests each
    scripts/odd_requests --seeds 1 --first 42 --verbose
    scripts/odd_requests --versions             # instead a right request of each version of every API
"""

from __future__ import annotations

import argparse
import base64
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Protocol
from uuid import UUID

from broker.server.client import WireClient
from clients.raw.odd_requests import Step, World, every_version, names, sequence
from clients.servers import APACHE, DAFKA, running
from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from dafka.broker.codec.messages.share_group import DescribeShareGroupOffsetsRequest

SETTLE_SECONDS = 1.0
"""How long Apache Kafka's broker may take to hear of what its controller has changed."""

SILENT_SECONDS = 30.0
"""After so long without an answer a broker counts as silent."""

CHANGING = ("Create", "Delete", "Alter", "Incremental", "Produce", "InitProducerId", "EndTxn", "Add", "Txn")

PREPARING = (6, 14, 15, 16, 51)
"""A leader that is not known yet, a coordinator that is looked for, a transaction that is being ended."""

IGNORED = frozenset(
    # What the two brokers name or count differently, and words for people
    """
    throttle_time_ms error_message message cluster_id host port node_id leader_id controller_id broker_id
    topic_id producer_id producer_epoch replica_nodes isr_nodes offline_replicas replicas log_append_time_ms
    total_bytes usable_bytes size log_dir records session_id node_endpoints documentation endpoints
    results_log_dirs leader_epoch current_leader synonyms offset_lag is_default partition_size
    finalized_features_epoch finalized_features supported_features start_offset coordinator_epoch
    transaction_start_time_ms last_timestamp last_sequence current_txn_start_offset token_id hmac
    eligible_leader_replicas last_known_elr source config_source value is_sensitive read_only config_type
    configs is_cordoned
    """.split()  # noqa: SIM905
)

TELEMETRY = (71, 72)  # APIs

FAILED = -1
"""The error of Apache Kafka where it fails: of offsets of a share group for a partition below 0."""

FAILING = "AlterShareGroupOffsets", "DescribeShareGroupOffsets"

UNANSWERED = "silent here"  # what Apache Kafka never answers can be answered in any way


def is_known(one: Difference) -> bool:
    """Whether a difference is one that dafka/broker/README.md lists."""
    failed = one.step.name in FAILING and any(
        path.endswith("error_code") and one.theirs[path] == FAILED for path in one.paths if path in one.theirs
    )
    return failed or UNANSWERED in one.kind()


Flat = dict[str, Any]


class Broker:
    """One of the two, in one connection at a time."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._wire = self._connected()
        self._node = self._wire.ask(MetadataRequest(topics=[]), 9).controller_id
        self.world = World([], self._node)
        self._groups = ""  # what the names of the groups of a sequence begin with

    def _connected(self) -> WireClient:
        wire = WireClient(self._server)
        wire.socket.settimeout(SILENT_SECONDS)
        return wire

    def prepare(self) -> None:
        """Wait until there are coordinators of groups, transactions and share groups."""
        topic = CreateTopicsRequest.CreatableTopic(
            name="prepared", num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        made = self._wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=False), 7)
        share = f"prepared:{_base64(made.topics[0].topic_id)}:0"
        for kind, key in enumerate(("prepared", "prepared", share)):
            ends = time.monotonic() + 60
            while time.monotonic() < ends:
                asked = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
                if not self._wire.ask(asked, 6).coordinators[0].error_code:
                    break
                time.sleep(0.1)

    def begin(self, seed: int) -> None:
        """Create the topics of a sequence."""
        topic = CreateTopicsRequest.CreatableTopic
        topics = [
            topic(name=name, num_partitions=2, replication_factor=1, assignments=[], configs=[])
            for name in names(seed)
        ]
        answer = self._wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=False), 7)
        ids = {one.name: one.topic_id for one in answer.topics}
        self.world = World([ids[name] for name in names(seed)], self._node)
        self._groups = f"s{seed}-"
        ends = time.monotonic() + 30
        while any(one["error_code"] for one in self._topics(names(seed))) and time.monotonic() < ends:
            time.sleep(0.01)
        while not self._groups_know(names(seed)) and time.monotonic() < ends:
            time.sleep(0.01)

    def _groups_know(self, topics: list[str]) -> bool:
        """Whether the coordinator of groups has heard of topics."""
        asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        topic = asked.DescribeShareGroupOffsetsRequestTopic
        group = asked(group_id="nobody", topics=[topic(topic_name=name, partitions=[0]) for name in topics])
        found = self._wire.ask(DescribeShareGroupOffsetsRequest(groups=[group]), 1).groups[0].topics
        return len(found) == len(topics) and all(one.topic_id for one in found)

    def ask(self, step: Step) -> Flat:
        """What is answered, without what is ignored; asked again while it is being prepared."""
        ends = time.monotonic() + 10
        while True:
            answer = self._ask(step)
            if time.monotonic() > ends or not any(
                path.endswith("error_code") and code in PREPARING for path, code in answer.items()
            ):
                return answer
            time.sleep(0.05)

    def _ask(self, step: Step) -> Flat:
        try:
            response = self._wire.ask(self.world.request(step), step.version)
        except (EOFError, ConnectionError, TimeoutError) as error:
            self._wire.socket.close()
            self._wire = self._connected()
            return {"": "silent" if isinstance(error, TimeoutError) else "closed"}
        self.world.learn(step, response)
        _forget_own(response, self._node)
        if step.name == "DescribeTopicPartitions" and not step.request.topics:
            _forget_others(response, step.request.cursor.topic_name)
        if step.name == "ListGroups":
            response.groups = [one for one in response.groups if one.group_id.startswith(self._groups)]
        if step.name == "DescribeQuorum":
            _forget_times(response)
        return dict(_flat(response._struct, response, step.version, ""))

    def topics(self, seed: int) -> list[dict[str, Any]]:
        """The topics of a sequence, those that it has created and deleted among them."""
        return self._topics([*names(seed), f"s{seed}-new", f"s{seed}-missing", f"s{seed}-made"])

    def _topics(self, wanted: list[str]) -> list[dict[str, Any]]:
        topic = MetadataRequest.MetadataRequestTopic
        asked = MetadataRequest(
            topics=[topic(name=name, topic_id=UUID(int=0)) for name in wanted],
            allow_auto_topic_creation=False,
        )
        found = self._wire.ask(asked, 9).topics
        return sorted(
            ({"name": one.name, "error_code": one.error_code, "n": len(one.partitions)} for one in found),
            key=str,
        )


def _forget_own(response: Any, node: int) -> None:
    """Leave out Apache Kafka's own topics, APIs that it has with a plugin only, and the node's number."""
    for name in ("topics", "config_resources", "results", "replica_election_results", "api_keys"):
        every = getattr(response, name, None) or ()
        for one in every:
            if getattr(one, "resource_name", "") == str(node):
                one.resource_name = "this"
            if name == "results" and hasattr(one, "log_dir"):
                one.topics = [each for each in one.topics if not _is_own(each)]
        if every:
            setattr(response, name, [one for one in every if not _is_own(one)])


def _forget_others(response: Any, name: str) -> None:
    """Of a page of all topics keep those of the seed to which the first one belongs."""
    seed = name.partition("-")[0] + "-"
    response.topics = [one for one in response.topics if str(one.name).startswith(seed)]
    if response.next_cursor is not None and not response.next_cursor.topic_name.startswith(seed):
        response.next_cursor = None


def _forget_times(response: Any) -> None:
    """Leave out where the log of a quorum's one voter ends, and when it was asked."""
    response.nodes = []  # which have the listener of the brokers here
    for topic in response.topics:
        for partition in topic.partitions:
            partition.high_watermark = 0
            for voter in partition.current_voters:
                voter.replica_id = voter.log_end_offset = 0
                voter.last_fetch_timestamp = voter.last_caught_up_timestamp = 0


def _is_own(one: Any) -> bool:
    names = (getattr(one, name, None) for name in ("name", "topic", "resource_name"))
    return getattr(one, "api_key", 0) in TELEMETRY or any(str(name).startswith("__") for name in names)


def _base64(topic_id: UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _flat(struct: Any, target: Any, version: int, path: str) -> Iterator[tuple[str, Any]]:
    """The values of a message by their paths; items of lists by what they are about, in any order."""
    for field in struct.fields.values():
        if not field.for_version_q(version) or field.name in IGNORED:
            continue
        value = getattr(target, field.name)
        where = f"{path}.{field.name}" if path else field.name
        if field.is_struct_array():
            yield f"{where}#", None if value is None else len(value)
            seen: Counter[str] = Counter()
            for one in value or ():
                about = _about(field.array_of, one, version) or _entity(one)
                seen[about] += 1
                yield from _flat(field.array_of, one, version, f"{where}[{about}{'+' * (seen[about] - 1)}]")
        elif field.is_struct():
            if value is not None:
                yield from _flat(field, value, version, where)
        elif field.is_array():
            yield where, None if value is None else sorted(map(repr, value))
        else:
            yield where, value


def _entity(one: Any) -> str:
    """What quotas are of."""
    return "/".join(sorted(str((each.entity_type, each.entity_name)) for each in getattr(one, "entity", ())))


def _about(struct: Any, one: Any, version: int) -> str:
    keys = [
        field.name
        for field in struct.fields.values()
        if field.for_version_q(version)
        and field.name not in IGNORED
        and field.type_str in ("string", "int32", "int8", "int16")
        and not field.name.endswith(("error_code", "_epoch", "timeout_ms"))
        and "replica" not in field.name
    ]
    return "/".join(str(getattr(one, key)) for key in keys[:3])


class Difference:
    """Where two answers differ first."""

    def __init__(self, seed: int, number: int, step: Step, theirs: Flat, ours: Flat) -> None:
        self.seed, self.number, self.step = seed, number, step
        self.paths = [one for one in {**theirs, **ours} if theirs.get(one, "-") != ours.get(one, "-")]
        self.theirs, self.ours = theirs, ours

    def kind(self) -> str:
        """Without names and numbers that are random."""
        path = self.paths[0]
        short = "".join(part.partition("]")[2] if "]" in part else part for part in path.split("["))
        values = self.theirs.get(path, "-"), self.ours.get(path, "-")
        return f"{self.step.name} {short}: {str(values[0])[:40]} here {str(values[1])[:40]}"

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, request {self.number}: {self.step.name} {self.step.version}"]
        lines.append(f"  {_short(self.step.request, self.step.version)}")
        for path in self.paths[:6]:
            lines.append(f"  {path}: {self.theirs.get(path, '-')!r} here {self.ours.get(path, '-')!r}")
        return "\n".join(lines)


def _short(request: Any, version: int) -> str:
    return str(request)[:1500]


def differences(
    seed: int, length: int, theirs: Broker, ours: Broker, only: str = "", once: bool = False
) -> Iterator[Difference]:
    """The first difference of a seed's sequence, if there is one: later ones may be because of it."""
    theirs.begin(seed)
    ours.begin(seed)
    for number, step in enumerate(sequence(seed, length, only, once)):
        if step.name == "DescribeTopicPartitions" and not step.request.topics:
            cursor = step.request.cursor
            if cursor is None or not cursor.topic_name.startswith(f"s{seed}-"):
                continue  # pages of all topics, Apache Kafka's own among them
        ends = time.monotonic() + SETTLE_SECONDS
        found = _difference(seed, number, step, theirs, ours)
        if found is not None:
            yield found
            return
        if step.name.startswith(CHANGING):
            while theirs.topics(seed) != ours.topics(seed) and time.monotonic() < ends:
                time.sleep(0.02)


def differences_of_versions(seed: int, theirs: Broker, ours: Broker) -> Iterator[Difference]:
    """The differences in the answers to a right request of each version."""
    theirs.begin(seed)
    ours.begin(seed)
    for number, step in enumerate(every_version(seed)):
        found = _difference(seed, number, step, theirs, ours)
        if found is not None:
            yield found


def _difference(seed: int, number: int, step: Step, theirs: Broker, ours: Broker) -> Difference | None:
    """Ask both; what is only asked is asked again while Apache Kafka may have yet to hear of a change."""
    answers = [one.ask(step) for one in (theirs, ours)]
    ends = time.monotonic() + SETTLE_SECONDS
    while answers[0] != answers[1] and not answers[0].get("") and _repeats(step):
        if time.monotonic() > ends:
            break
        time.sleep(0.1)
        answers[0] = theirs.ask(step)
    return None if answers[0] == answers[1] else Difference(seed, number, step, *answers)


def _repeats(step: Step) -> bool:
    """Whether asking again gives the same, or what has become known meanwhile."""
    return not step.name.startswith(CHANGING)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=30)
    parser.add_argument("--once", action="store_true", help="nothing is named twice in a request")
    parser.add_argument("--only", default="", help="APIs with this in their names")
    parser.add_argument("--versions", action="store_true", help="a right request of each version")
    parser.add_argument("--verbose", action="store_true", help="all differences, not one of each kind")
    options = parser.parse_args()
    with running(APACHE) as apache, running(DAFKA) as dafka:
        theirs, ours = Broker(apache), Broker(dafka)
        theirs.prepare()
        ours.prepare()
        if options.versions:
            return reported(differences_of_versions(options.first, theirs, ours), 1, all_of_them=True)
        more = options.only, options.once
        found = (
            one
            for seed in range(options.first, options.first + options.seeds)
            for one in differences(seed, options.length, theirs, ours, *more)
            if options.verbose or not is_known(one)
        )
        return reported(found, options.seeds, all_of_them=options.verbose)


class HasKind(Protocol):
    def kind(self) -> str: ...


def reported(found: Iterable[HasKind], seeds: int, *, all_of_them: bool) -> int:
    """Print differences as they are found, or one of each kind, and how many there are; the exit status."""
    kinds: Counter[str] = Counter()
    for one in found:
        kinds[one.kind()] += 1
        if all_of_them or kinds[one.kind()] == 1:
            print(one, flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:5} {kind}")
    print(f"{seeds} seeds, {kinds.total()} differences of {len(kinds)} kinds")
    return 1 if kinds else 0


if __name__ == "__main__":
    raise SystemExit(main())
