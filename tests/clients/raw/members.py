"""Members of all kinds at one broker; those of groups of Kafka Streams are here."""

from __future__ import annotations

from typing import Any

from broker.server.samples import streams_heartbeat
from clients.raw.group_members import Known
from clients.raw.odd_members import Step
from clients.raw.share_members import ShareMembers

from dafka.broker.codec.messages.streams_group import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)


class Members(ShareMembers):
    """The members of a sequence at one broker."""

    def _streams_beat(self, step: Step, known: Known) -> tuple[Any, int]:
        epoch = self._epoch(step, known.epoch)
        joins = epoch == 0
        Tasks = StreamsGroupHeartbeatRequest.TaskIds
        active = self._owned(
            step,
            known,
            joins,
            lambda task, n: [
                Tasks(subtopology_id=task if isinstance(task, str) else self.label(task), partitions=n)
            ],
        )
        others = None if active is None else []
        standby = others
        if "standby" in step.odd:
            foreign = [Tasks(subtopology_id="0", partitions=[1])]
            standby = foreign if step.odd["standby"] == "foreign" else []
        wanted = step.odd.get("topology", "first") if joins or "topology" in step.odd else None
        return (
            streams_heartbeat(
                self._names[0],
                **self._who(step),
                member_epoch=epoch,
                instance_id=step.odd.get("instance_id"),
                rack_id=step.odd.get("rack_id"),
                rebalance_timeout_ms=step.odd.get("rebalance_timeout_ms", 60_000 if joins else -1),
                topology=None if wanted is None else _topology(wanted, self._names, self._seed),
                active_tasks=active,
                standby_tasks=standby,
                warmup_tasks=others,
                shutdown_application="shutdown" in step.odd,
                user_endpoint=self._endpoint(step),
                process_id=step.odd.get("process_id", f"process-{step.member}" if joins else None),
            ),
            0,
        )

    @staticmethod
    def _endpoint(step: Step) -> Any:
        wanted = step.odd.get("endpoint")
        return wanted and StreamsGroupHeartbeatRequest.Endpoint(host=wanted, port=7)

    def _learn_streams_beat(self, step: Step, known: Known, response: Any) -> None:
        if self._learn_epoch(step, known, response) and response.active_tasks is not None:
            known.owned = {one.subtopology_id: sorted(one.partitions) for one in response.active_tasks}

    def _streams_describe(self, step: Step, known: Known) -> tuple[Any, int]:
        group = step.odd.get("group", step.group)
        return StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=False), 0


def _topology(wanted: str, topics: list[str], seed: int) -> Any:
    """A topology of one kind: of one or two subtopologies, some of which cannot be."""
    Topology = StreamsGroupHeartbeatRequest.Topology
    Info = Topology.Subtopology.TopicInfo

    def internal(name: str, partitions: int = 0) -> Any:
        return Info(name=f"m{seed}-{name}", partitions=partitions, replication_factor=0, topic_configs=[])

    def subtopology(name: str, **more: Any) -> Any:
        fields: dict[str, Any] = {
            "source_topics": [topics[0]],
            "source_topic_regex": [],
            "state_changelog_topics": [internal("log")],
            "repartition_sink_topics": [],
            "repartition_source_topics": [],
            "copartition_groups": [],
        }
        return Topology.Subtopology(subtopology_id=name, **{**fields, **more})

    first = subtopology("0")
    if wanted == "empty":
        return Topology(epoch=0, subtopologies=[])
    if wanted == "other":
        first = subtopology("0", source_topics=list(topics))
    if wanted == "bad":
        first = subtopology("0", source_topics=["missing"])
    if wanted == "copartition":
        first = subtopology("0", source_topics=list(topics))
        Group = Topology.Subtopology.CopartitionGroup
        first.copartition_groups = [
            Group(source_topics=[0, 7], source_topic_regex=[], repartition_source_topics=[])
        ]
    if wanted == "repartition":
        first.repartition_sink_topics = [f"m{seed}-repartition"]
        second = subtopology(
            "1",
            source_topics=[],
            state_changelog_topics=[],
            repartition_source_topics=[internal("repartition", 3)],
        )
        return Topology(epoch=0, subtopologies=[first, second])
    if wanted == "fixed":  # there is one with half as many partitions
        first.repartition_sink_topics = [f"m{seed}-repartition"]
        Group = Topology.Subtopology.CopartitionGroup
        second = subtopology(
            "1",
            source_topics=[],
            state_changelog_topics=[],
            repartition_source_topics=[internal("repartition", 6)],
            copartition_groups=[
                Group(source_topics=[], source_topic_regex=[], repartition_source_topics=[0])
            ],
        )
        return Topology(epoch=0, subtopologies=[first, second])
    if wanted == "negative":
        first.state_changelog_topics = [internal("log", -1)]
    return Topology(epoch=3 if wanted == "epoch" else 0, subtopologies=[first])
