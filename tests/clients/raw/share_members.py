"""What members of share groups send and learn."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from broker.server.share_samples import share_fetch
from clients.raw.group_members import GroupMembers, Known
from clients.raw.odd_members import Step

from dafka.broker.codec.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareAcknowledgeRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)


class ShareMembers(GroupMembers):
    """Heartbeats, share sessions, acknowledgements, and offsets of share groups."""

    def _share_beat(self, step: Step, known: Known) -> tuple[Any, int]:
        epoch = self._epoch(step, known.epoch)
        topics = step.odd.get("topics", (known.topics or self._names) if epoch == 0 else None)
        return (
            ShareGroupHeartbeatRequest(
                **self._who(step),
                member_epoch=epoch,
                rack_id=step.odd.get("rack_id"),
                subscribed_topic_names=topics,
            ),
            1,
        )

    _learn_share_beat = GroupMembers._learn_consumer_beat

    def _acknowledgements(self, step: Step, known: Known, place: tuple[UUID, int], made: Any) -> Any:
        offsets = known.acquired.get(place, [])[: step.odd["count"]]
        if not step.odd["ack"]:
            return []
        kind, shape = step.odd["type"], step.odd.get("ack_shape")
        if shape == "beyond":
            offsets = [1000]
        if not offsets:
            return []
        first, last = offsets[0], offsets[0]
        while last + 1 in offsets:
            last += 1
        if shape == "reversed":
            return [made(first_offset=last + 1, last_offset=first, acknowledge_types=[kind])]
        if shape == "types":
            return [made(first_offset=first, last_offset=last, acknowledge_types=[kind] * 7)]
        if shape == "none":
            return [made(first_offset=first, last_offset=last, acknowledge_types=[])]
        each = [kind] * (last - first + 1)
        one = made(first_offset=first, last_offset=last, acknowledge_types=each)
        if shape == "overlap":
            return [one, made(first_offset=first, last_offset=last + 1, acknowledge_types=[kind])]
        if shape == "gap":
            one.acknowledge_types = [0 if number % 2 else kind for number in range(len(each))]
        return [one, one] if shape == "twice" else [one]

    def _share_place(self, step: Step) -> tuple[UUID, int]:
        topic = UUID(int=99) if "topic" in step.odd else self._ids[0]
        return topic, step.odd.get("partition", step.odd["number"])

    def _share_fetch(self, step: Step, known: Known) -> tuple[Any, int]:
        topic, number = place = self._share_place(step)
        epoch = self._epoch(step, known.session)
        request = share_fetch(
            topic,
            epoch,
            **self._who(step),
            max_records=step.odd.get("max_records", step.odd["most"]),
            batch_size=step.odd["batch_size"],
            max_wait_ms=200,
            share_acquire_mode=step.odd.get("acquire_mode", int(step.odd["strict"])),
            is_renew_ack="renew" in step.odd,
        )
        if step.odd.get("renew") == "alone":
            request.max_wait_ms = request.min_bytes = request.max_records = 0
            step.odd["max_bytes"] = 0
        request.max_bytes = step.odd.get("max_bytes", 1 << 20)
        partition = request.topics[0].partitions[0]
        partition.partition_index = number
        Batch = type(request).FetchTopic.FetchPartition.AcknowledgementBatch
        partition.acknowledgement_batches = self._acknowledgements(step, known, place, Batch)
        return request, step.odd["version"]

    def _learn_share_fetch(self, step: Step, known: Known, response: Any) -> None:
        if "member" in step.odd:
            return
        if response.error_code in (122, 123):  # SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH
            known.session = 0
        if response.error_code:
            return
        epoch = self._epoch(step, known.session)
        known.session = 0 if epoch == -1 else epoch + 1
        if epoch <= 0:
            known.acquired = {}
        self._acknowledged(step, known)
        for topic in response.responses:
            for one in topic.partitions:
                for some in one.acquired_records or ():
                    place = topic.topic_id, one.partition_index
                    offsets = range(some.first_offset, some.last_offset + 1)
                    known.acquired[place] = sorted({*known.acquired.get(place, []), *offsets})

    def _acknowledged(self, step: Step, known: Known) -> None:
        """Forget what was acknowledged, which may have been refused: a later one is odd then."""
        if step.odd["ack"] and "ack_shape" not in step.odd and step.odd["type"] in (1, 2, 3):
            place = self._share_place(step)
            known.acquired[place] = known.acquired.get(place, [])[step.odd["count"] :]

    def _acknowledge(self, step: Step, known: Known) -> tuple[Any, int]:
        topic, number = place = self._share_place(step)
        Topic = ShareAcknowledgeRequest.AcknowledgeTopic
        Batch = Topic.AcknowledgePartition.AcknowledgementBatch
        batches = self._acknowledgements(step._replace(odd={**step.odd, "ack": True}), known, place, Batch)
        partition = Topic.AcknowledgePartition(partition_index=number, acknowledgement_batches=batches)
        return (
            ShareAcknowledgeRequest(
                **self._who(step),
                share_session_epoch=self._epoch(step, known.session),
                is_renew_ack="renew" in step.odd,
                topics=[Topic(topic_id=topic, partitions=[partition])],
            ),
            step.odd["version"],
        )

    def _learn_acknowledge(self, step: Step, known: Known, response: Any) -> None:
        done = step._replace(odd={**step.odd, "ack": True})
        response.responses, answered = [], response.responses
        self._learn_share_fetch(done, known, response)
        response.responses = answered

    def _share_describe(self, step: Step, known: Known) -> tuple[Any, int]:
        group = step.odd.get("group", step.group)
        return ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False), 1

    def _share_offsets(self, step: Step, known: Known) -> tuple[Any, int]:
        Group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        group = step.odd.get("group", step.group)
        return DescribeShareGroupOffsetsRequest(groups=[Group(group_id=group, topics=None)]), 1

    def _alter_share_offsets(self, step: Step, known: Known) -> tuple[Any, int]:
        Topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
        partition = Topic.AlterShareGroupOffsetsRequestPartition(
            partition_index=step.odd.get("partition", step.odd["number"] % 2),
            start_offset=step.odd.get("offset", 1),
        )
        name = step.odd.get("topic", self._names[0])
        topic = Topic(topic_name=name, partitions=[partition])
        return AlterShareGroupOffsetsRequest(group_id=step.group, topics=[topic]), 0

    def _delete_share_offsets(self, step: Step, known: Known) -> tuple[Any, int]:
        Topic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
        topic = Topic(topic_name=step.odd.get("topic", self._names[0]))
        return DeleteShareGroupOffsetsRequest(group_id=step.group, topics=[topic]), 0
