"""Has members of groups do the same random odd things at this project's broker and at Apache Kafka, and
prints in what the answers differ.

    scripts/odd_requests --members --seeds 100
    scripts/odd_requests --members --kinds share --seeds 1 --first 42 --verbose
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from itertools import product
from math import inf
from typing import Any, NamedTuple
from uuid import UUID

from broker.clients import batch
from broker.server.client import WireClient
from broker.server.samples import produce
from clients.raw import comparing
from clients.raw.members import Members
from clients.raw.odd_members import (
    KINDS,
    MEMBERS,
    PARTITIONS,
    TOPICS,
    Step,
    group_of,
    internal_topics,
    names,
    sequence,
    share_log,
)
from clients.servers import APACHE, DAFKA, running
from kafka.protocol.admin import CreateTopicsRequest, IncrementalAlterConfigsRequest
from kafka.protocol.metadata import MetadataRequest

SETTINGS = {
    # Each change is assigned at once, in the heartbeat that makes it, as it is here.
    "group.consumer.assignor.offload.enable": "false",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignor.offload.enable": "false",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignor.offload.enable": "false",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
HERE = {"group.streams.assignment.interval.ms": "0", "group.streams.initial.rebalance.delay.ms": "0"}

SETTLED = 1.0
RESOLVED = 0.2
"""Seconds after which a regular expression is resolved."""

NOT_RESOLVED = 10.2
"""For so long after it has resolved some Apache Kafka resolves none."""

AGAIN = 300
"""How often Apache Kafka is asked again while what it answers is being prepared."""

PREPARING = (14, 15, 16)  # a coordinator that is looked for, or loads
IGNORED = frozenset(
    """
    throttle_time_ms error_message client_id client_host host port node_endpoints current_leader
    heartbeat_interval_ms records leader_epoch lag leader_id node_id rack_id
    acquisition_lock_timeout_ms acceptable_recovery_lag task_offset_interval_ms assignor_name
    authorized_operations acknowledge_error_message
    """.split()  # noqa: SIM905
)
TARGETS = ("group_state", "assignment_epoch", "member_epoch", "assignment", "generation_id")
ASSIGNED = ("topic_partitions", "active_tasks", "standby_tasks", "warmup_tasks")


class Broker(comparing.Broker):
    """One of the two, in one connection."""

    members: Members
    _resolved_at = -inf

    def begin_with(self, seed: int, kind: str) -> None:
        """Create the topics of a sequence, with records where a share group reads them."""
        Topic = CreateTopicsRequest.CreatableTopic
        made = self._wire.ask(
            CreateTopicsRequest(
                topics=[
                    Topic(name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[])
                    for name, count in (
                        *dict.fromkeys(names(seed, kind), PARTITIONS).items(),
                        *internal_topics(seed).items(),
                    )
                    if name in names(seed, kind) or kind == "streams"
                ],
                timeout_ms=30_000,
                validate_only=False,
            ),
            7,
        )
        ids = {one.name: one.topic_id for one in made.topics}
        self.members = Members(seed, kind, [ids[name] for name in names(seed, kind)])
        asked = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name, topic_id=UUID(int=0)) for name in ids],
            allow_auto_topic_creation=False,
        )
        while any(
            one.error_code or any(part.error_code for part in one.partitions)
            for one in self._wire.ask(asked, 9).topics
        ):
            pass
        if kind == "share":
            self._set(group_of(seed, kind), share_log(seed).settings)
        time.sleep(SETTLED)  # until Apache Kafka's coordinators have heard of all that, which nobody is told
        if kind == "share":
            topic = names(seed, kind)[0]
            for number, records in product(range(2), share_log(seed).batches):
                while not self._written(topic, number, batch(*[b"x"] * records)):
                    time.sleep(0.05)
            for member in MEMBERS:
                self._join(Step("share_beat", group_of(seed, kind), member, {}))

    def _join(self, step: Step) -> None:
        """Have a member join and get its partitions, which Apache Kafka prepares meanwhile."""
        self.step(step)
        everything = TOPICS if step.member == MEMBERS[0] else 1
        for _ in range(AGAIN):
            if len(self.members.owned(step)) >= everything:
                return
            time.sleep(0.05)
            self.step(step)
        raise AssertionError(f"{step} has no partitions")

    def _written(self, topic: str, number: int, records: bytes) -> bool:
        request = produce(topic, records)
        request.topic_data[0].partition_data[0].index = number
        return not self._wire.ask(request, 9).responses[0].partition_responses[0].error_code

    def _set(self, group: str, settings: Mapping[str, str]) -> None:
        Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        configs = [
            Resource.AlterableConfig(name=name, config_operation=0, value=value)
            for name, value in settings.items()
        ]
        resource = Resource(resource_type=32, resource_name=group, configs=configs)
        self._wire.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)

    def step(self, step: Step) -> dict[str, Any]:
        """What is answered, without what is ignored."""
        if self.members.has_resolved(step):
            time.sleep(max(0.0, self._resolved_at + NOT_RESOLVED - time.monotonic()))
        answer = self._step(step)
        if step.name in ("created", "removed"):
            time.sleep(SETTLED)
        if step.name == "consumer_beat" and "expressions" in step.group:
            time.sleep(RESOLVED)
            self._resolved_at = time.monotonic()
        return answer

    def _step(self, step: Step) -> dict[str, Any]:
        for _ in range(AGAIN):
            request, version = self.members.request(step)
            try:
                response = self._wire.ask(request, version)
            except (EOFError, ConnectionError):
                self._wire.socket.close()
                self._wire = WireClient(self._server)
                return {"": "closed"}
            if not _is_preparing(response):
                break
            time.sleep(0.1)
        self.members.learn(step, response)
        return dict(self._flat(response._struct, response, version, "", step))

    def _flat(
        self, struct: Any, target: Any, version: int, path: str, step: Step
    ) -> Iterator[tuple[str, Any]]:
        """The values of a message by their paths; of an assignment, how many partitions it has."""
        for field in struct.fields.values():
            if not field.for_version_q(version) or field.name in IGNORED:
                continue
            value, where = getattr(target, field.name), f"{path}.{field.name}"
            if "mixed" in step.group and field.name in ("member_id", "leader"):
                yield where, bool(value)  # of classic members, which each broker names
            elif field.name in ASSIGNED:
                # A change is assigned at once here, in Apache Kafka with the next heartbeat of anybody, and
                # which partitions somebody has then is up to each broker.
                if self.members.alone and step.name in ("consumer_beat", "streams_beat"):
                    yield where, None if value is None else sum(len(one.partitions) for one in value)
            elif field.name == "configs" and step.name == "created":
                continue  # a topic's defaults are each broker's
            elif field.name in TARGETS and not self.members.alone:
                continue
            elif field.name in ("member_epoch", "group_epoch", "assignment_epoch") and "share" in step.name:
                continue  # Apache Kafka raises it once more when partitions have been prepared
            elif field.name == "partitions" and step.name == "streams_describe":
                continue  # of internal topics, which are configured later there
            elif field.name in ("endpoint_information_epoch", "partitions_by_user_endpoint"):
                continue  # of the answer to a first member Apache Kafka forgets it
            elif field.is_struct_array():
                of_others = field.name == "groups" and step.name == "listed"
                some = [one for one in value or () if not of_others or one.group_id == step.group]
                yield f"{where}#", None if value is None else len(some)
                named = "mixed" not in step.group  # of classic members, which each broker names
                for number, one in enumerate(sorted(some, key=lambda each: self._about(each, named))):
                    yield from self._flat(field.array_of, one, version, f"{where}[{number}]", step)
            elif field.is_struct():
                if value is not None:
                    yield from self._flat(field, value, version, where, step)
                else:
                    yield where, None
            elif isinstance(value, UUID):
                yield where, self.members.label(value)
            elif field.is_array():
                yield where, None if value is None else sorted(map(repr, value))
            else:
                yield where, value

    def _about(self, one: Any, named: bool) -> str:
        topic = getattr(one, "topic_id", None)
        known = [] if topic is None else [self.members.label(topic)]
        keys = ("group_id", "topic_name", "name", "topic", "subtopology_id", "partition_index")
        keys = (*keys, "member_id") if named else (*keys, "member_type", "instance_id", "member_epoch")
        return str([*known, *(getattr(one, key, "") for key in keys), getattr(one, "first_offset", 0)])


def _is_preparing(response: Any) -> bool:
    """Whether the coordinator is not ready yet."""
    answers = [response, *(getattr(response, "groups", None) or getattr(response, "results", None) or ())]
    return any(getattr(one, "error_code", 0) in PREPARING for one in answers)


class Difference(NamedTuple):
    """Where two answers differ, and what had been done before."""

    kind_of_group: str
    seed: int
    step: Step
    before: list[str]
    theirs: Mapping[str, Any]
    ours: Mapping[str, Any]

    def paths(self) -> list[str]:
        every = {**self.theirs, **self.ours}
        return [one for one in every if self.theirs.get(one, "-") != self.ours.get(one, "-")]

    def kind(self) -> str:
        path = self.paths()[0]
        values = self.theirs.get(path, "-"), self.ours.get(path, "-")
        return f"{self.kind_of_group}: {self.step.name} {path}: {values[0]} here {values[1]}"

    def __str__(self) -> str:
        lines = [f"{self.kind_of_group}, seed {self.seed}:", *self.before]
        for one in self.paths():
            lines.append(f"  {one}: {self.theirs.get(one, '-')!r} here {self.ours.get(one, '-')!r}")
        return "\n".join(lines)


KNOWN = (
    # A kind of group, a step, where the answers differ, and the reason
    ("streams", "streams_beat", ".active_tasks: None here ", "with an older epoch tasks are told again"),
    ("streams", "streams_beat", ".status#: 0 here 1", "it forgets that a new group's member shuts it down"),
)


def is_known(one: Difference) -> bool:
    """Whether a difference is one of those that are listed."""
    return any(
        one.kind_of_group == kind and name in one.step.name and words in one.kind()
        for kind, name, words, _ in KNOWN
    )


def differences(kind: str, seed: int, length: int, theirs: Broker, ours: Broker) -> Iterator[Difference]:
    """The first difference of a seed's sequence, if there is one: later ones may be because of it."""
    theirs.begin_with(seed, kind)
    ours.begin_with(seed, kind)
    before: list[str] = []
    for step in sequence(seed, length, kind):
        answers = [one.step(step) for one in (theirs, ours)]
        before.append(f"{step.name} {step.member} {step.odd} -> {answers[0]}"[:600])
        if any(path.endswith("error_code") and code == -1 for path, code in answers[0].items()):
            return  # Apache Kafka has failed; later differences may be because of it
        if answers[0] != answers[1]:
            yield Difference(kind, seed, step, before[-12:], *answers)
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", action="store_true")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--verbose", action="store_true", help="all differences, not one of each kind")
    options = parser.parse_args()
    with running(APACHE, SETTINGS) as apache, running(DAFKA, HERE) as dafka:
        theirs, ours = Broker(apache), Broker(dafka)
        theirs.prepare()
        ours.prepare()
        found = (
            one
            for seed in range(options.first, options.first + options.seeds)
            for kind in options.kinds.split(",")
            for one in differences(kind, seed, options.length, theirs, ours)
            if options.verbose or not is_known(one)
        )
        return comparing.reported(found, options.seeds, all_of_them=options.verbose)


if __name__ == "__main__":
    raise SystemExit(main())
