"""Requests that are as large as they may be, one attacker after the other, and what a bystander notices.

    scripts/attack                             # 99 000 partitions, 600 000 committed offsets
    scripts/attack --partitions 5000 --only Metadata

While an attacker's requests are answered, a bystander on a connection of its own asks for what clients ask
for all the time. Measured are the hub's longest turn (by the clock, and in processor time of its thread,
which other programs on the machine do not lengthen) and the longest time that the bystander waited.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import gevent  # noqa: E402
from broker.clients import batch  # noqa: E402 - needs the path
from broker.server.client import WireClient, decoded, encoded  # noqa: E402
from broker.server.samples import fetch, produce  # noqa: E402
from kafka.protocol.admin import (  # noqa: E402
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (  # noqa: E402
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest  # noqa: E402
from kafka.protocol.producer import (  # noqa: E402
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from dafka import Broker, Store, Tower  # noqa: E402
from dafka.broker.interface.groups import CommittedOffset, JoinRequest  # noqa: E402
from dafka.broker.limits import GROUP_MAX_SIZE  # noqa: E402
from dafka.hub.hub import get_hub  # noqa: E402
from dafka.hub.turns import Pace, in_pieces, next_turn  # noqa: E402

TOPIC, SMALL = "wide", "small"
SLOW = 300.0  # seconds that an attack may take altogether
TURN = 0.020  # seconds: no turn is to be longer


class Outcome(NamedTuple):
    """What an attack has come to: seconds."""

    turn: float
    turn_cpu: float
    bystander: float
    took: float


class Bystander:
    """A client that goes on with its work, and how long it waits for an answer at most."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._ends = threading.Event()
        self.longest = 0.0
        self.errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Bystander:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        frames = [
            encoded(ApiVersionsRequest(client_software_name="tests", client_software_version="1"), 3),
            encoded(produce(SMALL, batch(b"value")), 9),
            encoded(MetadataRequest(topics=[metadata_topic(SMALL)], allow_auto_topic_creation=False), 9),
            encoded(fetch(SMALL, 0, max_bytes=1000), 11),
        ]
        try:
            with WireClient(self._broker) as wire:
                wire.socket.settimeout(SLOW)
                while not self._ends.is_set():
                    for frame in frames:
                        began = time.monotonic()
                        wire.socket.sendall(frame)
                        wire.receive_frame()
                        self.longest = max(self.longest, time.monotonic() - began)
                    self._ends.wait(0.005)
        except BaseException as error:
            self.errors.append(error)


class Scene:
    """A broker with a topic of so many partitions, and whoever attacks it."""

    def __init__(self, broker: Broker, partitions: int, offsets: int) -> None:
        self.broker = broker
        self.partitions = partitions
        self.offsets = offsets

    @contextmanager
    def attackers(self, count: int = 1) -> Iterator[list[WireClient]]:
        with ExitStack() as stack:
            clients = [stack.enter_context(WireClient(self.broker)) for _ in range(count)]
            for client in clients:
                client.socket.settimeout(SLOW)
            yield clients

    def ask(self, request: Any, version: int, wire: WireClient | None = None) -> Any:
        """The response to one request, decoded."""
        frame = encoded(request, version)
        with self.attackers() as (mine,):
            client = wire or mine
            client.socket.sendall(frame)
            answer = client.receive_frame()
        name = type(request).__name__.replace("Request", "Response")
        return decoded(request, name, version, answer, 1)


Attack = Callable[[Scene], Callable[[], None]]
"""Prepares its requests, and gives what sends them and waits for the answers."""


def metadata_topic(name: str) -> Any:
    return MetadataRequest.MetadataRequestTopic(topic_id=None, name=name)


def all_metadata() -> Any:
    return MetadataRequest(topics=None, allow_auto_topic_creation=False)


def sending(scene: Scene, *frames: bytes, connections: int = 1) -> Callable[[], None]:
    """Sends the frames on each of so many connections at once, and waits for all the answers."""

    def send() -> None:
        with scene.attackers(connections) as clients:
            for client in clients:
                for frame in frames:
                    client.socket.sendall(frame)
            for client in clients:
                for _ in frames:
                    assert len(client.receive_frame()) > 4

    return send


def create_topic(scene: Scene) -> Callable[[], None]:
    return sending(scene, encoded(topic_of(TOPIC, scene.partitions), 5))


def topic_of(name: str, partitions: int, **configs: str) -> Any:
    topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[
            topic(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                assignments=[],
                configs=[
                    topic.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                    for key, value in configs.items()
                ],
            )
        ],
        timeout_ms=int(1000 * SLOW),
        validate_only=False,
    )


def extend_topic(scene: Scene) -> Callable[[], None]:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(
        name=TOPIC, count=scene.partitions + 1000, assignments=None
    )
    return sending(
        scene, encoded(CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=False), 1)
    )


def metadata_of_all(scene: Scene) -> Callable[[], None]:
    return sending(scene, encoded(all_metadata(), 9), connections=8)


def metadata_of_the_topic(scene: Scene) -> Callable[[], None]:
    request = MetadataRequest(topics=[metadata_topic(TOPIC)], allow_auto_topic_creation=False)
    return sending(scene, encoded(request, 1))


def describe_partitions(scene: Scene) -> Callable[[], None]:
    request = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2000, cursor=None)
    return sending(scene, *[encoded(request, 0)] * 5)


def describe_log_dirs(scene: Scene) -> Callable[[], None]:
    return sending(scene, encoded(DescribeLogDirsRequest(topics=None), 1))


def fetch_quiet_partitions(scene: Scene) -> Callable[[], None]:
    offsets = [0] * scene.partitions
    once = encoded(fetch(TOPIC, *offsets, wait=300), 11)
    return sending(scene, once, once)


def fetch_in_a_session(scene: Scene) -> Callable[[], None]:
    """A full fetch, then incremental ones, each of which waits for records that do not come."""
    full = encoded(fetch(TOPIC, *[0] * scene.partitions, session_epoch=0), 11)

    def send() -> None:
        with scene.attackers() as (client,):
            client.socket.sendall(full)
            session = int.from_bytes(client.receive_frame()[10:14], "big")
            assert session or scene.partitions > 200_000
            for epoch in range(1, 6):
                more = fetch(TOPIC, wait=200, session_id=session, session_epoch=epoch, topics=[])
                client.socket.sendall(encoded(more, 11))
                client.receive_frame()

    return send


def produce_to_all(scene: Scene) -> Callable[[], None]:
    content = batch(b"x")
    return sending(scene, encoded(produce(TOPIC, *[content] * scene.partitions), 9))


def produce_many_batches(scene: Scene) -> Callable[[], None]:
    return sending(scene, encoded(produce(SMALL, batch(b"x") * min(scene.partitions, 190_000)), 9))


def list_offsets(scene: Scene) -> Callable[[], None]:
    listed = ListOffsetsRequest.ListOffsetsTopic
    one = listed.ListOffsetsPartition
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=[
            listed(
                name=TOPIC,
                partitions=[
                    one(partition_index=number, current_leader_epoch=-1, timestamp=-1)
                    for number in range(scene.partitions)
                ],
            )
        ],
    )
    return sending(scene, encoded(request, 5))


def offsets_for_epochs(scene: Scene) -> Callable[[], None]:
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    one = topic.OffsetForLeaderPartition
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            topic(
                topic=TOPIC,
                partitions=[
                    one(partition=number, current_leader_epoch=-1, leader_epoch=0)
                    for number in range(scene.partitions)
                ],
            )
        ],
    )
    return sending(scene, encoded(request, 3))


def delete_records(scene: Scene) -> Callable[[], None]:
    topic = DeleteRecordsRequest.DeleteRecordsTopic
    one = topic.DeleteRecordsPartition
    partitions = [one(partition_index=number, offset=0) for number in range(scene.partitions)]
    request = DeleteRecordsRequest(topics=[topic(name=TOPIC, partitions=partitions)], timeout_ms=10_000)
    return sending(scene, encoded(request, 1))


def commit(scene: Scene, group: str, count: int) -> bytes:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    one = topic.OffsetCommitRequestPartition
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[
            topic(
                name=TOPIC,
                partitions=[
                    one(
                        partition_index=number,
                        committed_offset=0,
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                    for number in range(count)
                ],
            )
        ],
    )
    return encoded(request, 7)


def commit_offsets(scene: Scene) -> Callable[[], None]:
    return sending(scene, commit(scene, "group", scene.partitions))


def fetch_all_offsets(scene: Scene) -> Callable[[], None]:
    request = OffsetFetchRequest(group_id="group", topics=None, require_stable=False)
    return sending(scene, encoded(request, 7))


def delete_offsets(scene: Scene) -> Callable[[], None]:
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    partitions = [
        topic.OffsetDeleteRequestPartition(partition_index=number) for number in range(scene.partitions)
    ]
    return sending(
        scene,
        encoded(OffsetDeleteRequest(group_id="group", topics=[topic(name=TOPIC, partitions=partitions)]), 0),
    )


def begun_transaction(scene: Scene, name: str) -> dict[str, Any]:
    """Who its requests come from."""
    request = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=600_000, producer_id=-1, producer_epoch=-1
    )
    identity = scene.ask(request, 1)
    assert not identity.error_code
    return {
        "transactional_id": name,
        "producer_id": identity.producer_id,
        "producer_epoch": identity.producer_epoch,
    }


def add_partitions_to_txn(scene: Scene) -> Callable[[], None]:
    return sending(scene, added_partitions(scene, begun_transaction(scene, "added")))


def added_partitions(scene: Scene, who: dict[str, Any]) -> bytes:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=who["transactional_id"],
        v3_and_below_producer_id=who["producer_id"],
        v3_and_below_producer_epoch=who["producer_epoch"],
        v3_and_below_topics=[topic(name=TOPIC, partitions=list(range(scene.partitions)))],
    )
    return encoded(request, 3)


def end_txn(scene: Scene) -> Callable[[], None]:
    """One that has added all partitions."""
    who = begun_transaction(scene, "ended")
    sending(scene, added_partitions(scene, who))()
    return sending(scene, encoded(EndTxnRequest(**who, committed=True), 3))


def txn_offset_commit(scene: Scene) -> Callable[[], None]:
    who = begun_transaction(scene, "offsets")
    assert not scene.ask(AddOffsetsToTxnRequest(**who, group_id="group"), 1).error_code
    return sending(scene, committed_in_txn(scene, who))


def committed_in_txn(scene: Scene, who: dict[str, Any]) -> bytes:
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    one = topic.TxnOffsetCommitRequestPartition
    partitions = [
        one(partition_index=number, committed_offset=0, committed_leader_epoch=-1, committed_metadata="")
        for number in range(scene.partitions)
    ]
    request = TxnOffsetCommitRequest(
        **who,
        group_id="group",
        generation_id=-1,
        member_id="",
        group_instance_id=None,
        topics=[topic(name=TOPIC, partitions=partitions)],
    )
    return encoded(request, 3)


def end_txn_with_offsets(scene: Scene) -> Callable[[], None]:
    who = begun_transaction(scene, "ended-offsets")
    assert not scene.ask(AddOffsetsToTxnRequest(**who, group_id="group"), 1).error_code
    sending(scene, committed_in_txn(scene, who))()
    return sending(scene, encoded(EndTxnRequest(**who, committed=True), 3))


def list_very_many_groups(scene: Scene) -> Callable[[], None]:
    """A quarter as many as there are partitions, each of which has committed an offset."""
    core = scene.broker._running.core  # type: ignore[union-attr]
    offsets = {(TOPIC, 0): CommittedOffset(0)}

    def commit_all() -> None:
        for some in in_pieces(range(scene.partitions // 4), 100):
            gevent.joinall([gevent.spawn(core.commit_offsets, f"many-{one}", offsets) for one in some])

    get_hub().run(commit_all)
    return sending(scene, encoded(ListGroupsRequest(states_filter=[], types_filter=[]), 5))


def describe_large_group(scene: Scene) -> Callable[[], None]:
    """One with as many members as it may have, all of which have their assignments."""
    core = scene.broker._running.core  # type: ignore[union-attr]
    group = f"described-{next(_groups)}"
    request = JoinRequest("", 600.0, 600.0, "consumer", [("range", b"x" * 100)])

    def member() -> None:
        next_turn()
        joined = core.join_group(group, request)
        assignments = {one.member_id: b"x" * 100 for one in joined.members}
        core.sync_group(group, joined.generation, joined.member_id, assignments=assignments)

    def join_all() -> None:
        members = min(scene.partitions // 10, GROUP_MAX_SIZE)
        greens = [gevent.spawn(member) for _ in Pace().over(range(members))]
        gevent.joinall(greens, timeout=5.0)
        for green in Pace().over(greens):
            green.kill(block=False)

    get_hub().run(join_all)
    described = DescribeGroupsRequest(groups=[group] * 5, include_authorized_operations=False)
    return sending(scene, encoded(described, 5))


def join_large_group(scene: Scene) -> Callable[[], None]:
    """As many members as a group may have, or a tenth of the partitions, all of which join at once."""
    core = scene.broker._running.core  # type: ignore[union-attr]
    members = min(scene.partitions // 10, GROUP_MAX_SIZE)
    group = f"large-{next(_groups)}"

    def join_all() -> None:
        request = JoinRequest("", 10.0, 1.0, "consumer", [("range", b"x" * 100)])

        def join() -> None:
            next_turn()
            core.join_group(group, request)

        greens = []
        for _ in Pace().over(range(members)):
            greens.append(gevent.spawn(join))
        gevent.joinall(greens, timeout=5.0)
        for green in Pace().over(greens):
            green.kill(block=False)

    return lambda: get_hub().run(join_all)


_groups = count()


def join_the_mesh(scene: Scene) -> Callable[[], None]:
    """A broker with all these partitions, asked for its metrics while it tells the mesh of each."""

    def join() -> None:
        with copied(scene) as folder, Broker(folder) as other:
            for _ in range(10):
                assert other.metrics()
                time.sleep(0.15)

    return join


def store_joins(scene: Scene) -> Callable[[], None]:
    """A store comes to the mesh of a broker with all these partitions, and is told of each."""

    def ask_for_all() -> None:
        with (
            copied(scene) as folder,
            Tower() as tower,
            Broker(folder, tower=tower) as other,
            tempfile.TemporaryDirectory() as empty,
            Store(empty, tower=tower) as store,
        ):
            written = min(other.metrics()["partitions"], 50_000)  # a store does not follow many more
            ends = time.monotonic() + SLOW
            while store.metrics()["partitions"] < written:
                assert time.monotonic() < ends
                time.sleep(0.2)

    return ask_for_all


def open_again(scene: Scene) -> Callable[[], None]:
    """Not the listener's clients wait for this one, but whoever else uses the process's hub."""

    def reopen() -> None:
        with copied(scene) as folder:
            Broker(folder).start().stop()

    return reopen


@contextmanager
def copied(scene: Scene) -> Iterator[Path]:
    """A copy of the broker's folder."""
    with tempfile.TemporaryDirectory() as other:
        _copy(str(scene.broker.path), Path(other) / "copy")
        yield Path(other) / "copy"


def _copy(path: str, to: Path) -> None:
    import shutil
    import sqlite3

    to.mkdir()
    with sqlite3.connect(f"{path}/cache.db") as source, sqlite3.connect(to / "cache.db") as target:
        source.backup(target)
    for file in Path(path).iterdir():
        if file.is_file() and not file.name.startswith(("cache.db", "dafka.lock")):
            shutil.copy(file, to / file.name)


def delete_topic(scene: Scene) -> Callable[[], None]:
    """One that groups have committed very many offsets of."""
    left, number = scene.offsets, 0
    while left > 0:
        count = min(left, scene.partitions)
        sending(scene, commit(scene, f"other-{number}", count))()
        left, number = left - count, number + 1
    state = DeleteTopicsRequest.DeleteTopicState
    request = DeleteTopicsRequest(
        topics=[state(name=TOPIC, topic_id=None)], topic_names=[TOPIC], timeout_ms=int(1000 * SLOW)
    )
    return sending(scene, encoded(request, 5))


ATTACKS: dict[str, Attack] = {
    "create a topic": create_topic,
    "Metadata of all, eight at once": metadata_of_all,
    "Metadata of the topic": metadata_of_the_topic,
    "add partitions": extend_topic,
    "DescribeTopicPartitions": describe_partitions,
    "DescribeLogDirs": describe_log_dirs,
    "ListOffsets": list_offsets,
    "OffsetForLeaderEpoch": offsets_for_epochs,
    "DeleteRecords": delete_records,
    "Fetch of quiet partitions": fetch_quiet_partitions,
    "Fetch in a session": fetch_in_a_session,
    "commit offsets": commit_offsets,
    "OffsetFetch of all": fetch_all_offsets,
    "delete offsets": delete_offsets,
    "Produce to all partitions": produce_to_all,
    "Produce of many batches": produce_many_batches,
    "AddPartitionsToTxn": add_partitions_to_txn,
    "EndTxn": end_txn,
    "TxnOffsetCommit": txn_offset_commit,
    "EndTxn with offsets": end_txn_with_offsets,
    "JoinGroup of very many": join_large_group,
    "DescribeGroups of a large one": describe_large_group,
    "ListGroups of very many": list_very_many_groups,
    "open the folder": open_again,
    "join the mesh": join_the_mesh,
    "a store joins the mesh": store_joins,
    "delete the topic": delete_topic,
}
"""In this order: each finds what those before it have left."""


def warm_up(broker: Broker) -> None:
    """Have everything imported and compiled that is only once."""
    global TOPIC
    scene, name = Scene(broker, 20, 20), TOPIC
    TOPIC = "warm"
    try:
        for _ in range(2):
            for attack in ATTACKS.values():
                attack(scene)()
    finally:
        TOPIC = name


def measured(scene: Scene, attack: Attack) -> Outcome:
    """What comes of an attack."""
    send = attack(scene)
    hub = get_hub()
    with Bystander(scene.broker) as bystander:
        time.sleep(0.05)
        bystander.longest = 0.0
        hub.run(hub.turns.reset)
        began = time.monotonic()
        send()
        took = time.monotonic() - began
    hub.run(next_turn)  # an answer goes out in the midst of a turn
    if bystander.errors:
        raise bystander.errors[0]
    return Outcome(hub.turns.longest, hub.turns.longest_cpu, bystander.longest, took)


@contextmanager
def scene_of(partitions: int, offsets: int) -> Iterator[Scene]:
    """A broker in a temporary folder, warmed up."""
    with Broker(listen="127.0.0.1:0") as broker:
        scene = Scene(broker, partitions, offsets)
        scene.ask(topic_of(SMALL, 1), 5)
        warm_up(broker)
        gc.collect()
        gc.freeze()  # as the daemon does: of the garbage collector only what is the broker's is measured
        try:
            yield scene
        finally:
            gc.unfreeze()
            gc.collect()
            gc.freeze()  # what was there before, as it was


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=99_000)
    parser.add_argument("--offsets", type=int, default=600_000, help="committed when the topic is deleted")
    parser.add_argument("--only", default="", help="measure those with this in their name; others just run")
    parser.add_argument("--no-collector", action="store_true", help="switch Python's garbage collector off")
    options = parser.parse_args()
    if options.no_collector:
        gc.disable()
    print(f"{'attack':34} {'turn':>9} {'its cpu':>9} {'bystander':>10} {'took':>8}")
    worst = 0.0
    with scene_of(options.partitions, options.offsets) as scene:
        for name, attack in ATTACKS.items():
            if options.only not in name and name not in ("create a topic", "commit offsets"):
                continue
            outcome = measured(scene, attack)
            worst = max(worst, outcome.turn_cpu)
            turn, cpu, bystander = (1000 * one for one in outcome[:3])
            print(
                f"{name:34} {turn:6.0f} ms {cpu:6.0f} ms {bystander:7.0f} ms {outcome.took:6.1f} s",
                flush=True,
            )
    print(f"the longest turn took {1000 * worst:.0f} ms of processor time, {1000 * TURN:.0f} are allowed")
    sys.exit(1 if worst > TURN else 0)


if __name__ == "__main__":
    main()
