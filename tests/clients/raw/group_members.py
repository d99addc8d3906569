"""What members of any group, of consumer groups and with the classic protocol send and learn."""

from __future__ import annotations

import base64
import random
from typing import Any
from uuid import UUID

from clients.raw.odd_members import MEMBERS, PARTITIONS, Step, members_of, names
from kafka.protocol.admin import (
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from dafka.broker.codec.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)


class Known:
    """What a member knows of its broker."""

    def __init__(self) -> None:
        self.epoch = 0
        self.owned: dict[Any, list[int]] = {}
        self.topics: list[str] | None = None
        self.regex: str | None = None
        self.member_id = ""
        self.session = 0
        self.acquired: dict[tuple[UUID, int], list[int]] = {}
        self.classic_id, self.generation, self.leader = "", -1, False


class GroupMembers:
    """The members of a sequence at one broker, which has the topics under these ids."""

    def __init__(self, seed: int, kind: str, ids: list[UUID]) -> None:
        self._names, self._ids = names(seed, kind), ids
        self._seed, self._kind = seed, kind
        self.alone = members_of(seed, kind) == MEMBERS[:1]
        self._known: dict[tuple[str, str], Known] = {}
        self._others: dict[UUID, str] = {}  # topics that were created on the way

    def request(self, step: Step) -> tuple[Any, int]:
        """The request of a step, and its version."""
        return getattr(self, f"_{step.name}")(step, self._of(step))

    def learn(self, step: Step, response: Any) -> None:
        """Note what a response tells the member."""
        learn = getattr(self, f"_learn_{step.name}", None)
        if learn is not None:
            learn(step, self._of(step), response)

    def label(self, topic: UUID) -> str:
        """The name of a topic by the id that it has at this broker."""
        if topic in self._ids:
            return self._names[self._ids.index(topic)]
        return self._others.get(topic, str(topic))

    def owned(self, step: Step) -> dict[Any, list[int]]:
        """What the member of a step knows that it has."""
        return self._of(step).owned

    def has_resolved(self, step: Step) -> bool:
        """Whether a step may be why the regular expressions of its group are resolved."""
        if self._kind != "expressions":
            return False
        joins = step.name == "consumer_beat" and not self.alone and not self._of(step).epoch
        return joins or "regex" in step.odd or step.name in ("created", "removed")

    def _of(self, step: Step) -> Known:
        return self._known.setdefault((step.group, step.member), Known())

    def _who(self, step: Step) -> dict[str, Any]:
        # Kafka knows members of share groups by UUIDs only
        member = step.odd.get("member", _uuid_of(self._seed, step))
        return {"group_id": step.odd.get("group", step.group), "member_id": member}

    @staticmethod
    def _epoch(step: Step, now: int) -> int:
        epoch = step.odd.get("epoch", now)
        return {"next": now + 1, "before": now - 1}.get(epoch, epoch)

    def _owned(self, step: Step, known: Known, joins: bool, made: Any) -> Any:
        """What a member says that it has: everything, unless something odd is wanted."""
        wanted = step.odd.get("owned", "all")
        if wanted == "none" and not joins:
            return None
        if wanted == "empty" or (joins and wanted in ("all", "none")):
            return []
        if wanted == "foreign":
            return made(self._ids[-1], [PARTITIONS - 1])
        if wanted == "unknown":
            return made(UUID(int=99), [0])
        part = {topic: numbers[:: 2 if wanted == "half" else 1] for topic, numbers in known.owned.items()}
        return [one for topic, numbers in part.items() for one in made(topic, numbers)]

    # -- consumer groups ----------------------------------------------------------------------------

    def _consumer_beat(self, step: Step, known: Known) -> tuple[Any, int]:
        epoch = self._epoch(step, known.epoch)
        Partitions = ConsumerGroupHeartbeatRequest.TopicPartitions
        joins = epoch == 0
        regex, topics = None, (known.topics or self._names) if joins else None
        if self._kind == "expressions":
            regex = step.odd.get("regex", (known.regex or "all") if joins else None)
            topics = known.topics or [] if joins else None
        return (
            ConsumerGroupHeartbeatRequest(
                **self._who(step),
                member_epoch=epoch,
                instance_id=step.odd.get("instance_id"),
                rack_id=step.odd.get("rack_id"),
                rebalance_timeout_ms=step.odd.get("rebalance_timeout_ms", 60_000 if joins else -1),
                subscribed_topic_names=step.odd.get("topics", topics),
                subscribed_topic_regex=self.expression(regex),
                server_assignor=step.odd.get("server_assignor"),
                topic_partitions=self._owned(
                    step, known, joins, lambda topic, n: [Partitions(topic_id=topic, partitions=n)]
                ),
            ),
            1,
        )

    def expression(self, word: str | None) -> str | None:
        """The regular expression that a word of :data:`EXPRESSIONS` stands for."""
        prefix = self._names[0].removesuffix("0")
        meant = {"all": ".*", "first": "0", "some": "(0|other)", "nothing": "none", "invalid": "("}
        return word and prefix + meant[word]

    def _learn_epoch(self, step: Step, known: Known, response: Any) -> bool:
        """What any heartbeat tells; whether it was answered to the member without an error."""
        if "member" in step.odd or "group" in step.odd:
            return False
        if response.error_code in (25, 110):  # UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH
            known.epoch, known.owned = 0, {}
        if response.error_code:
            return False
        known.epoch = max(response.member_epoch, 0)
        if not known.epoch:
            known.owned = {}
        return True

    def _learn_consumer_beat(self, step: Step, known: Known, response: Any) -> None:
        if not self._learn_epoch(step, known, response):
            return
        if "topics" in step.odd:
            known.topics = step.odd["topics"]
        if "regex" in step.odd:
            known.regex = step.odd["regex"]
        if response.assignment is not None:
            known.owned = {
                one.topic_id: sorted(one.partitions) for one in response.assignment.topic_partitions
            }

    def _consumer_describe(self, step: Step, known: Known) -> tuple[Any, int]:
        group = step.odd.get("group", step.group)
        return ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False), 1

    # -- topics -------------------------------------------------------------------------------------

    def _another(self) -> str:
        return self._names[0].removesuffix("0") + "other"

    def _created(self, step: Step, known: Known) -> tuple[Any, int]:
        Topic = CreateTopicsRequest.CreatableTopic
        topic = Topic(
            name=self._another(), num_partitions=4, replication_factor=1, assignments=[], configs=[]
        )
        return CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=False), 7

    def _learn_created(self, step: Step, known: Known, response: Any) -> None:
        (made,) = response.topics
        if not made.error_code:
            self._others[made.topic_id] = self._another()

    def _removed(self, step: Step, known: Known) -> tuple[Any, int]:
        return DeleteTopicsRequest(topics=[], topic_names=[self._another()], timeout_ms=30_000), 5

    # -- offsets ------------------------------------------------------------------------------------

    def _commit(self, step: Step, known: Known) -> tuple[Any, int]:
        Topic = OffsetCommitRequest.OffsetCommitRequestTopic
        name = step.odd.get("topic", self._names[0])
        partition = Topic.OffsetCommitRequestPartition(
            partition_index=step.odd.get("partition", step.odd["number"]),
            committed_offset=step.odd.get("offset", 1),
            committed_leader_epoch=-1,
            commit_timestamp=-1,
            committed_metadata="",
        )
        known_epoch = known.generation if known.classic_id else known.epoch
        who = self._who(step)
        if known.classic_id and "member" not in step.odd:
            who["member_id"] = known.classic_id
        return (
            OffsetCommitRequest(
                **who,
                generation_id_or_member_epoch=self._epoch(step, known_epoch),
                group_instance_id=step.odd.get("instance_id"),
                retention_time_ms=-1,
                topics=[Topic(name=name, topic_id=self._id(name), partitions=[partition])],
            ),
            step.odd["version"],
        )

    def _id(self, name: str) -> UUID:
        return self._ids[self._names.index(name)] if name in self._names else UUID(int=99)

    def _fetched(self, step: Step, known: Known) -> tuple[Any, int]:
        Group = OffsetFetchRequest.OffsetFetchRequestGroup
        name = step.odd.get("topic", self._names[0])
        who = self._who(step)
        return (
            OffsetFetchRequest(
                group_id="",
                topics=[],
                groups=[
                    Group(
                        **who,
                        member_epoch=self._epoch(step, known.epoch),
                        topics=[
                            Group.OffsetFetchRequestTopics(
                                name=name, topic_id=self._id(name), partition_indexes=[step.odd["number"], 99]
                            )
                        ],
                    )
                ],
                require_stable=False,
            ),
            step.odd["version"],
        )

    def _deleted_offsets(self, step: Step, known: Known) -> tuple[Any, int]:
        Topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
        numbers = {step.odd["number"], step.odd.get("partition", 99)}
        partitions = [Topic.OffsetDeleteRequestPartition(partition_index=number) for number in numbers]
        name = step.odd.get("topic", self._names[0])
        topics = [Topic(name=name, partitions=partitions)]
        return OffsetDeleteRequest(group_id=step.odd.get("group", step.group), topics=topics), 0

    # -- any group ----------------------------------------------------------------------------------

    def _setting(self, step: Step, known: Known) -> tuple[Any, int]:
        Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        config = Resource.AlterableConfig(
            name=step.odd["setting"], config_operation=0, value=step.odd["value"]
        )
        resource = Resource(resource_type=32, resource_name=step.group, configs=[config])
        return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1

    def _listed(self, step: Step, known: Known) -> tuple[Any, int]:
        return ListGroupsRequest(states_filter=[], types_filter=[]), 5

    def _deleted(self, step: Step, known: Known) -> tuple[Any, int]:
        return DeleteGroupsRequest(groups_names=[step.odd.get("group", step.group)] * 2), 2

    # -- members with the classic protocol ----------------------------------------------------------

    def _classic_who(self, step: Step, known: Known) -> dict[str, Any]:
        return {
            "group_id": step.odd.get("group", step.group),
            "member_id": step.odd.get("member", known.classic_id),
            "group_instance_id": step.odd.get("instance_id"),
        }

    def _join(self, step: Step, known: Known) -> tuple[Any, int]:
        Protocol = JoinGroupRequest.JoinGroupRequestProtocol
        subscription = ConsumerProtocolSubscription(
            version=1, topics=list(self._names), user_data=b"", owned_partitions=[]
        )
        return (
            JoinGroupRequest(
                **self._classic_who(step, known),
                session_timeout_ms=45_000,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=[Protocol(name="range", metadata=bytes(subscription.encode()))],
                reason="tests",
            ),
            9,
        )

    def _learn_join(self, step: Step, known: Known, response: Any) -> None:
        if "member" in step.odd or response.error_code not in (0, 79):  # MEMBER_ID_REQUIRED
            return
        known.classic_id = response.member_id
        if not response.error_code:
            known.generation, known.leader = response.generation_id, response.leader == response.member_id

    def _sync(self, step: Step, known: Known) -> tuple[Any, int]:
        return (
            SyncGroupRequest(
                **self._classic_who(step, known),
                generation_id=self._epoch(step, known.generation),
                protocol_type="consumer",
                protocol_name="range",
                assignments=[],
            ),
            5,
        )

    def _classic_beat(self, step: Step, known: Known) -> tuple[Any, int]:
        generation = self._epoch(step, known.generation)
        return HeartbeatRequest(**self._classic_who(step, known), generation_id=generation), 4

    def _leave(self, step: Step, known: Known) -> tuple[Any, int]:
        who = self._classic_who(step, known)
        member = LeaveGroupRequest.MemberIdentity(
            member_id=who["member_id"], group_instance_id=who["group_instance_id"], reason="tests"
        )
        return LeaveGroupRequest(group_id=who["group_id"], member_id="", members=[member]), 5

    def _learn_leave(self, step: Step, known: Known, response: Any) -> None:
        if not response.error_code and "group" not in step.odd and "member" not in step.odd:
            known.classic_id, known.generation = "", -1


def _uuid_of(seed: int, step: Step) -> str:
    """The member's id, in the form that Kafka gives to ids."""
    number = UUID(int=random.Random(f"{seed} {step.member}").getrandbits(128))
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")
