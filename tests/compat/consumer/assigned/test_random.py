"""Random histories of members of a group whose assignment the broker computes, beside a model.

``DAFKA_TEST_MEMBER_SEEDS``: how many of them, in the broker's process and over TCP.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from kafka.errors import CommitFailedError
from timing import until

from compat.kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from dafka.testing import TestBroker
from tests.compat.random_members import SEEDS, over_tcp, silence

GROUP = "g"
TOPICS = {"t": 3, "u": 2}
PARTITIONS = [TopicPartition(topic, number) for topic, count in TOPICS.items() for number in range(count)]
STEPS = 70
MOST = 4  # members at once


class Member(ConsumerRebalanceListener):
    """A consumer, and what it should have: ``next`` is what it has to read next, by owned partition."""

    def __init__(self, model: Model, name: int) -> None:
        choose = model.random.choice
        self.model = model
        self.name = name
        self.next: dict[TopicPartition, int | None] = {}  # None: wherever the group has got to
        self.paused: set[TopicPartition] = set()
        self._removed_at = -1  # the epoch of the group when the coordinator removed it
        self.commits = choose([True, False])
        self.consumer = KafkaConsumer(
            bootstrap_servers=model.broker.bootstrap_servers,
            group_id=GROUP,
            group_protocol="consumer",
            client_id=f"member-{name}",
            group_instance_id=choose([None, None, f"instance-{name}"]),
            group_remote_assignor=choose([None, "uniform", "range"]),
            auto_offset_reset="earliest",
            enable_auto_commit=self.commits,
            auto_commit_interval_ms=choose([20, 5000]),
            max_poll_records=choose([1, 3, 500]),
            consumer_timeout_ms=20,
            retry_backoff_ms=20,
        )
        self.subscribe()

    def subscribe(self) -> None:
        """Subscribe to one topic or both."""
        topics = self.model.random.choice([["t"], ["t", "u"], ["t", "u"]])
        self.model.say(self.name, "subscribes to", topics)
        self.consumer.subscribe(topics, listener=self)

    def remove(self) -> None:
        """The coordinator has removed it."""
        self._removed_at = self.model.epoch()

    @property
    def is_removed(self) -> bool:
        """Whether it has not joined again since."""
        return self.consumer.group_metadata().generation_id <= self._removed_at

    # -- what it is told ---------------------------------------------------------------------------

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.model.say(self.name, "assigned", assigned)
        for one in sorted(assigned):
            owners = [
                other.name for other in self.model.members if one in other.next and not other.is_removed
            ]
            assert not owners, f"{one} is assigned to {self.name}, and has not been taken from {owners}"
            self.next[one] = self.model.handed_over.pop(one, None)

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.model.say(self.name, "revoked", revoked)
        for one in revoked:
            position = self.next.pop(one)  # a KeyError: it was not told that it had it
            if self.commits and not self.is_removed:
                self.model.handed_over[one] = position  # committed before it was told
        self.paused -= revoked

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self.model.say(self.name, "lost", lost)
        assert self.is_removed, f"{self.name} has lost {lost} without a cause"
        for one in lost:
            del self.next[one]
        self.paused -= lost

    # -- what it does ------------------------------------------------------------------------------

    def poll(self, timeout_ms: int) -> None:
        self.model.say(self.name, "polls", timeout_ms)
        records = self.consumer.poll(timeout_ms)
        self._read([one for some in records.values() for one in some])
        assert self.consumer.assignment() == set(self.next)

    def iterate(self) -> None:
        self.model.say(self.name, "iterates")
        for count, record in enumerate(self.consumer):
            self._read([record])
            if count == 3:
                break

    def _read(self, records: list[Any]) -> None:
        model = self.model
        if records:
            model.say(self.name, "reads", [(one.topic, one.partition, one.offset) for one in records])
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            assert partition in self.next, f"{self.name} reads {partition}, which it has not"
            assert partition not in self.paused, f"{self.name} reads {partition}, which is paused"
            expected = self.next[partition]
            assert expected in (None, record.offset), f"{self.name} reads {record}, and not {expected}"
            assert record.offset <= model.read[partition], (
                f"{record} is the first after {model.read[partition]}"
            )
            assert record.value == b"%d" % record.offset
            self.next[partition] = record.offset + 1
            model.read[partition] = max(model.read[partition], record.offset + 1)

    def commit(self) -> None:
        try:
            self.consumer.commit()
        except CommitFailedError:  # it is no member (any more), or not yet
            self.model.say(self.name, "could not commit")

    def pause_or_resume(self) -> None:
        if self.paused:
            self.consumer.resume(*self.paused)
            self.paused = set()
        elif self.next:
            self.paused = {self.model.random.choice(sorted(self.next))}
            self.consumer.pause(*self.paused)
        self.model.say(self.name, "pauses", self.paused)

    def seek(self) -> None:
        if self.next:
            partition = self.model.random.choice(sorted(self.next))
            offset = self.model.random.randint(0, self.model.read[partition])
            self.model.say(self.name, "seeks", partition, offset)
            self.consumer.seek(partition, offset)
            self.next[partition] = offset

    def unsubscribe(self) -> None:
        self.consumer.unsubscribe()  # without a word to the listener
        self.model.say(self.name, "unsubscribed")
        self.next, self.paused = {}, set()
        self.subscribe()


class Model:
    """A group: its members, how far each partition was read, and where its next owner has to begin."""

    def __init__(self, broker: TestBroker, seed: int, is_remote: bool) -> None:
        self.broker = broker
        self.is_remote = is_remote
        self.random = random.Random(seed)
        self.members: list[Member] = []
        self.read = dict.fromkeys(PARTITIONS, 0)  # the offset behind the last record that somebody read
        self.written = dict.fromkeys(PARTITIONS, 0)
        self.handed_over: dict[TopicPartition, int | None] = {}
        self.history: list[str] = []
        self.producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        self._names = 0

    def say(self, *words: object) -> None:
        self.history.append(" ".join(map(str, words)))

    def epoch(self) -> int:
        """The group's epoch."""
        return int(self.broker._call("describe_consumer_groups", [GROUP])[GROUP].epoch)

    def step(self) -> None:
        """Do something, and look at what is committed."""
        dice = self.random.random()
        if not self.members or (dice < 0.08 and len(self.members) < MOST):
            self._names += 1
            self.members.append(Member(self, self._names))
        elif dice < 0.2:
            self.write()
        elif dice < 0.22:
            self.say("the broker is started again")
            for member in [] if self.is_remote else self.members:
                member.remove()  # clients in the broker's process join again
            self.broker.restart()
            self.handed_over.clear()
        elif dice < 0.25:
            self.remove(self.random.choice(self.members))
        elif dice < 0.28:
            self.end(self.random.choice(self.members))
        else:
            self.act(self.random.choice(self.members))
        for partition, offset in self.broker.committed(GROUP).items():
            assert offset <= self.read[partition], f"{offset} of {partition} is committed"

    def act(self, member: Member) -> None:
        polls: list[Callable[[], object]] = [
            lambda: member.poll(0),
            lambda: member.poll(20),
            lambda: member.poll(60),
            lambda: member.poll(250),  # others do not get to anything meanwhile
        ]
        others = [member.iterate, member.commit, member.pause_or_resume, member.seek, member.unsubscribe]
        self.random.choice([*polls, *polls, *others, member.consumer.commit_async])()

    def write(self) -> None:
        partition = self.random.choice(PARTITIONS)
        for _ in range(self.random.randint(1, 9)):
            value = b"%d" % self.written[partition]
            self.producer.send(partition.topic, value, partition=partition.partition)
            self.written[partition] += 1
        self.producer.flush()
        self.say("written", partition, self.written[partition])

    def remove(self, member: Member) -> None:
        """The coordinator removes a member, as one whose session is over. It goes on, or is dead itself."""
        self.say("removed", member.name)
        if self.random.random() < 0.5:
            silence(member.consumer)
            self.members.remove(member)
        member.remove()
        self._drop(member)

    def end(self, member: Member) -> None:
        """It leaves; what it has read is committed, if that is what it does."""
        self.say(member.name, "closes")
        member.consumer.close(autocommit=member.commits)
        assert not member.next
        self.members.remove(member)
        self._drop(member)  # a static one keeps its partitions for as long as its session would last

    def _drop(self, member: Member) -> None:
        for one in self.broker.members(GROUP):
            if one.client_id == f"member-{member.name}":
                self.broker.drop_member(GROUP, one)

    def finish(self) -> None:
        """All partitions are read to their ends by those who are there, each by one."""
        if not self.members:
            self.members.append(Member(self, 0))
        for member in self.members:
            if member.paused:
                member.pause_or_resume()
            member.consumer.subscribe(list(TOPICS), listener=member)

        def all_is_read() -> bool:
            for member in self.members:
                member.poll(10)
            owned = [one for member in self.members for one in member.consumer.assignment()]
            return sorted(owned) == PARTITIONS and self.read == self.written

        until(all_is_read)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("place", ["in the process", "over TCP"])
def test_members_own_and_read_what_a_model_says(
    dafka_broker: TestBroker, place: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic, partitions in TOPICS.items():
        dafka_broker.create_topic(topic, partitions)
    if place == "over TCP":
        over_tcp(monkeypatch)
    model = Model(dafka_broker, seed, place == "over TCP")
    try:
        for _ in range(STEPS):
            model.step()
        model.finish()
    except BaseException:
        print("\n".join(model.history))
        raise
    finally:
        for member in model.members:
            member.consumer.close(autocommit=False)
        model.producer.close()
