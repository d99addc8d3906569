"""Random histories of members of a share group, beside a model.

``DAFKA_TEST_MEMBER_SEEDS``: how many of them, in the broker's process and over TCP.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from kafka.structs import TopicPartition
from timing import until

from compat.kafka import KafkaProducer
from compat.kafka.share import AcknowledgeType, ShareConsumer
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.testing import TestBroker
from tests.compat.random_members import SEEDS, over_tcp, silence

GROUP = "g"
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]
STEPS = 70
MOST = 4  # members at once
LOCK = 30  # seconds, Kafka's default
ACCEPT, RELEASE, REJECT, RENEW = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)

Key = tuple[TopicPartition, int]


class Delivered:
    """A record as the model knows it."""

    def __init__(self) -> None:
        self.owner: Member | None = None
        self.count = 0  # how often it was delivered, at least
        self.is_done = False  # accepted or rejected: it does not come again
        self.is_unsure = False  # an acknowledgement was sent, and nobody will say what has become of it


class Member:
    """A consumer, the records that it holds, and the acknowledgements that are on their way."""

    def __init__(self, model: Model, name: int) -> None:
        choose = model.random.choice
        self.model = model
        self.name = name
        self.is_explicit = choose([True, False])
        self.held: dict[Key, Any] = {}
        self.types: dict[Key, int] = {}  # of records that are held, in explicit mode
        self.sent: dict[Key, int] = {}
        self.renewing: set[Key] = set()
        self.is_void = False  # whether what it hands out next may have been taken from it meanwhile
        # Records that may have been taken from it. As in Kafka it renews those that are done with, too.
        self.unsure: set[Key] = set()
        self.consumer = ShareConsumer(
            bootstrap_servers=model.broker.bootstrap_servers,
            group_id=GROUP,
            client_id=f"member-{name}",
            share_acknowledgement_mode="explicit" if self.is_explicit else "implicit",
            share_acquire_mode=choose(["record_limit", "batch_optimized"]),
            max_poll_records=choose([1, 3, 10, 500]),
            fetch_max_wait_ms=choose([20, 200]),
            consumer_timeout_ms=50,
        )
        self.consumer.set_acknowledgement_commit_callback(self.told)
        self.subscribe()

    def subscribe(self) -> None:
        topics = self.model.random.choice([["t"], ["t", "u"], ["t", "u"]])
        self.model.say(self.name, "subscribes to", topics)
        self.consumer.subscribe(topics)

    def told(self, offsets: dict[TopicPartition, set[int]], error: Exception | None) -> None:
        """The callback of acknowledgements."""
        self.model.say(self.name, "is told", offsets, error)
        for partition, some in offsets.items():
            for offset in some:
                type_ = self.sent.pop((partition, offset), None)
                if type_ is None:  # of records that it was never shown
                    continue
                record = self.model.records[partition, offset]
                if error is not None:
                    if not self.model.is_disturbed:  # what the callback raises would only be logged
                        self.model.faults.append(f"{self.name}: {partition} {offset}: {error!r}")
                    self.renewing.discard((partition, offset))
                    record.count = 0 if record.owner in (None, self) else record.count
                    record.owner = None if record.owner is self else record.owner
                elif type_ in (ACCEPT, REJECT):
                    record.is_done = True

    # -- reading -----------------------------------------------------------------------------------

    def settle(self, all_of_them: bool = False) -> None:
        """What poll and commit do with what is held."""
        for key in list(self.held):
            if all_of_them and self.is_explicit and key not in self.types:
                self.acknowledge(key)
            type_ = self.types.pop(key, None) if self.is_explicit else ACCEPT
            if type_ is None:
                continue
            del self.held[key]
            self.sent[key] = type_
            if type_ == RENEW:
                self.renewing.add(key)
            elif self.model.records[key].owner is self:
                self.model.records[key].owner = None

    def acknowledge(self, key: Key) -> None:
        type_ = self.model.random.choice([ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT, RENEW])
        self.model.say(self.name, "acknowledges", key, type_)
        self.consumer.acknowledge(self.held[key], type_)
        self.types[key] = type_

    def poll(self, timeout_ms: int) -> None:
        self.settle(all_of_them=True)
        self.model.say(self.name, "polls", timeout_ms)
        records = self.consumer.poll(timeout_ms, max_records=self.model.random.choice([None, None, 1, 4]))
        self._got([one for some in records.values() for one in some])

    def iterate(self) -> None:
        self.model.say(self.name, "iterates")
        for _ in range(self.model.random.randint(1, 5)):
            if not self.consumer._chunk:
                self.settle(all_of_them=True)
            record = next(self.consumer, None)
            if record is None:
                break
            self._got([record])

    def _got(self, records: list[Any]) -> None:
        model = self.model
        model.say(
            self.name, "gets", [(one.topic, one.partition, one.offset, one.delivery_count) for one in records]
        )
        for one in records:
            key = TopicPartition(one.topic, one.partition), one.offset
            record = model.records[key]
            assert one.value == b"%d" % one.offset
            is_renewed = key in self.renewing
            self.renewing.discard(key)
            self.held[key] = one
            assert one.delivery_count <= model.limit
            if is_renewed:
                is_its_own = record.owner is self and record.count == one.delivery_count
                assert is_its_own or key in self.unsure, f"{one} was renewed"
            elif self.is_void:
                self.unsure.add(key)
            else:
                assert not record.is_done, f"{one} is done"
                assert record.owner is None, f"{one} is with {record.owner and record.owner.name}"
                assert record.count < one.delivery_count, f"{one} after {record.count}"
                record.count, record.owner = one.delivery_count, self
                self.unsure.discard(key)
        if self.consumer._fetch is None and not self.consumer._found and not self.consumer._chunk:
            self.is_void = False

    # -- the rest ----------------------------------------------------------------------------------

    def acknowledge_some(self) -> None:
        for key in self.held if self.is_explicit else ():
            if self.model.random.random() < 0.5:
                self.acknowledge(key)

    def commit(self) -> None:
        self.settle()
        self.model.say(self.name, "commits")
        self.consumer.commit()

    def commit_async(self) -> None:
        self.settle()
        self.model.say(self.name, "commits, and does not wait")
        self.consumer.commit_async()

    def wake_up(self) -> None:
        self.model.say(self.name, "is woken")
        self.consumer.wakeup()

    def close(self) -> None:
        """Give back what is not acknowledged; acknowledgements that were made are sent."""
        self.model.say(self.name, "closes")
        if self.is_explicit:
            self.settle()
        self.consumer.close()
        self.forget()

    def forget(self) -> None:
        """It holds nothing any more, and nobody will hear what became of what it has sent."""
        for key in self.sent:
            self.model.records[key].is_unsure = True
        for record in self.model.records.values():
            if record.owner is self:
                record.owner = None
        self.held, self.types, self.sent, self.renewing = {}, {}, {}, set()


class Model:
    """A share group: its members and its records."""

    def __init__(self, broker: TestBroker, seed: int) -> None:
        self.broker = broker
        self.random = random.Random(seed)
        self.limit = self.random.choice([2, 5, 5])  # deliveries of a record
        self.members: list[Member] = []
        self.records: dict[Key, Delivered] = {}
        self.is_disturbed = False  # records may have been taken from members since
        self.unseen = 0  # how often records may have been delivered without being seen
        self.history: list[str] = []
        self.faults: list[str] = []
        self.producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        self._names = 0
        settings = {
            "share.auto.offset.reset": "earliest",
            "share.delivery.count.limit": str(self.limit),
            "share.record.lock.duration.ms": str(LOCK * 1000),
        }
        changes = [ConfigChange(name, 0, value) for name, value in settings.items()]
        broker._call("alter_configs", {Resource(ResourceType.GROUP, GROUP): changes})

    def say(self, *words: object) -> None:
        self.history.append(" ".join(map(str, words)))

    def step(self) -> None:
        dice = self.random.random()
        if not self.members or (dice < 0.05 and len(self.members) < MOST):
            self.join()
        elif dice < 0.2:
            self.write()
        elif dice < 0.22:
            self.say("the broker is started again")
            self.disturb()
            self.broker.restart()
        elif dice < 0.24:
            self.say("locks end")
            self.disturb()
            self.broker.clock.advance(LOCK + 1)
        elif dice < 0.27:
            self.kill(self.random.choice(self.members))
        else:
            self.act(self.random.choice(self.members))
        assert not self.faults

    def join(self) -> Member:
        self._names += 1
        self.members.append(Member(self, self._names))
        return self.members[-1]

    def act(self, member: Member) -> None:
        dice = self.random.random()
        if dice < 0.05:
            self.members.remove(member)
            self.unseen += 1
            member.close()
        elif dice < 0.1:
            self.unseen += 1
            member.subscribe()
        elif dice < 0.5:
            member.poll(self.random.choice([0, 1, 20, 100]))
        else:
            others = [member.iterate, member.acknowledge_some, member.commit, member.commit_async]
            self.random.choice([*others, member.wake_up])()

    def write(self) -> None:
        partition = self.random.choice(PARTITIONS)
        for _ in range(self.random.randint(1, 12)):
            offset = sum(1 for one, _ in self.records if one == partition)
            self.records[partition, offset] = Delivered()
            self.producer.send(partition.topic, b"%d" % offset, partition=partition.partition)
        self.producer.flush()
        self.say("written", partition, offset + 1)

    def disturb(self) -> None:
        """What is acquired is anybody's."""
        self.is_disturbed = True
        self.unseen += 1
        for record in self.records.values():
            record.owner, record.count = None, 0  # the count of the last stored change
        for member in self.members:
            member.is_void = True
            member.unsure |= member.held.keys() | member.sent.keys() | member.renewing

    def kill(self, member: Member) -> None:
        """A member dies, and is taken out: what it has acquired is for others."""
        self.say(member.name, "dies")
        self.members.remove(member)
        self.unseen += 1
        known = [one for one in self.broker.members(GROUP) if one.client_id == f"member-{member.name}"]
        silence(member.consumer)
        for one in known:
            self.broker.drop_member(GROUP, one)
        member.forget()

    def finish(self) -> None:
        """Whatever is left is delivered until it is done, or archived after its last delivery."""
        for member in self.members:
            member.close()
        self.members.clear()
        self.broker.clock.advance(LOCK + 1)  # of members that died before the group knew them (again)
        last = self.join()
        last.is_explicit = False
        last.consumer.close()
        last.consumer = ShareConsumer(
            "t", "u", bootstrap_servers=self.broker.bootstrap_servers, group_id=GROUP, fetch_max_wait_ms=50
        )
        last.consumer.set_acknowledgement_commit_callback(last.told)

        def is_drained() -> bool:
            last.poll(100)
            last.commit()
            lag = self.broker.lag(GROUP)
            return {one for one, _ in self.records} <= lag.keys() and not any(lag.values())

        until(is_drained)
        for key, record in self.records.items():
            is_archived = record.count + self.unseen >= self.limit
            assert record.is_done or record.is_unsure or is_archived, f"{key} is lost"


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("place", ["in the process", "over TCP"])
def test_each_record_is_acknowledged_or_delivered_again_as_a_model_says(
    dafka_broker: TestBroker, place: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dafka_broker.create_topic("t", 2)
    dafka_broker.create_topic("u")
    if place == "over TCP":
        over_tcp(monkeypatch)
    model = Model(dafka_broker, seed)
    try:
        for _ in range(STEPS):
            model.step()
        model.finish()
    except BaseException:
        print("\n".join(model.history))
        raise
    finally:
        for member in model.members:
            member.consumer.close()
        model.producer.close()
