"""Requests that are as large as they may be, one attacker after the other, and what a bystander notices.

    scripts/attack                             # 99 000 partitions, 600 000 committed offsets
    scripts/attack --partitions 5000 --only Metadata
    scripts/attack --every 40000               # each API, with so many items in each of its lists
    scripts/attack --every 40000 --oldest --only Offset

While an attacker's requests are answered, a bystander on a connection of its own asks for what clients ask
for all the time. Measured are the hub's longest turn (by the clock; in processor time of its thread, which
other programs on the machine do not lengthen; and in processor time without the collections of garbage that
fell into it), the longest such collection, and the longest time that the bystander waited.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

ROOT = Path(__file__).parents[3]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from broker.server.attack_scene import (  # noqa: E402
    SLOW,
    SMALL,
    TURN,
    Attack,
    Outcome,
    Scene,
    copied,
    measured,
    sending,
    topic_of,
)
from broker.server.attacks_on_every_api import everything  # noqa: E402
from broker.server.attacks_on_groups import (  # noqa: E402
    commit,
    commit_offsets,
    delete_offsets,
    delete_very_many_groups,
    describe_large_group,
    fetch_all_offsets,
    forget_very_many_groups,
    join_large_group,
    list_very_many_groups,
)
from broker.server.attacks_on_large_groups import (  # noqa: E402
    describing,
    get_very_many_tasks,
    joining,
    subscribe_to_everything,
)
from broker.server.attacks_on_newer_groups import (  # noqa: E402
    acknowledge_each,
    alter_share_offsets,
    get_a_large_assignment,
    join_with_a_large_topology,
    share_very_many_partitions,
)
from broker.server.attacks_on_partitions import (  # noqa: E402
    create_topic,
    delete_records,
    describe_configs,
    describe_log_dirs,
    describe_partitions,
    extend_topic,
    fetch_in_a_session,
    fetch_quiet_partitions,
    list_offsets,
    metadata_of_all,
    metadata_of_the_topic,
    offsets_for_epochs,
    produce_a_large_record,
    produce_many_batches,
    produce_to_all,
)
from broker.server.attacks_on_transactions import (  # noqa: E402
    add_partitions_to_txn,
    end_txn,
    end_txn_with_offsets,
    fetch_unstable_offsets,
    txn_offset_commit,
)
from broker.server.attacks_on_waiting import send_at_once, wake_fetches, wake_sessions  # noqa: E402
from broker.server.client import encoded  # noqa: E402
from kafka.protocol.admin import (  # noqa: E402
    DeleteTopicsRequest,
)

from dafka import Broker, Store, Tower  # noqa: E402
from dafka.broker.interface.share import ShareHeartbeat  # noqa: E402
from dafka.cli.collecting import passing_over_what_lasts  # noqa: E402
from dafka.hub.hub import get_hub  # noqa: E402


def join_the_mesh(scene: Scene) -> Callable[[], None]:
    """A broker with all these partitions, asked for its metrics while it tells the mesh of each."""

    def join() -> None:
        with copied(scene) as folder, Broker(folder) as other:
            for _ in range(min(10, 1 + scene.partitions // 500)):
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
                assert other.metrics()
                time.sleep(0.2)

    return ask_for_all


def share_everything(scene: Scene) -> None:
    """Have a member of a share group read all partitions, as a client elsewhere does."""
    core = scene.broker._running.core  # type: ignore[union-attr]
    joins = ShareHeartbeat("sharers of all", "member", 0, (scene.topic,), client_host="/127.0.0.1")
    answer = get_hub().run(core.share_heartbeat, joins)
    assert not answer.error, answer


def open_again(scene: Scene) -> Callable[[], None]:
    """The listener's clients do not wait for this one, but other users of the process's hub do.

    A share group reads all partitions, and goes on with them.
    """
    share_everything(scene)

    def reopen() -> None:
        with copied(scene) as folder:
            Broker(folder).start().stop()

    return reopen


def delete_topic(scene: Scene) -> Callable[[], None]:
    """One that groups have committed very many offsets of."""
    left, number = scene.offsets, 0
    while left > 0:
        count = min(left, scene.partitions)
        sending(scene, commit(scene.topic, f"other-{number}", count))()
        left, number = left - count, number + 1
    state = DeleteTopicsRequest.DeleteTopicState
    request = DeleteTopicsRequest(
        topics=[state(name=scene.topic, topic_id=None)],
        topic_names=[scene.topic],
        timeout_ms=int(1000 * SLOW),
    )
    return sending(scene, encoded(request, 5))


MOST_TOPICS = 20_000  # with --every: to make and delete more of them takes minutes

ATTACKS: dict[str, Attack] = {
    "create a topic": create_topic,
    "Metadata of all, eight at once": metadata_of_all,
    "Metadata of the topic": metadata_of_the_topic,
    "add partitions": extend_topic,
    "DescribeTopicPartitions": describe_partitions,
    "DescribeLogDirs": describe_log_dirs,
    "DescribeConfigs with documentation": describe_configs,
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
    "Produce of a large record": produce_a_large_record,
    "AddPartitionsToTxn": add_partitions_to_txn,
    "EndTxn": end_txn,
    "TxnOffsetCommit": txn_offset_commit,
    "OffsetFetch, a transaction has all": fetch_unstable_offsets,
    "EndTxn with offsets": end_txn_with_offsets,
    "JoinGroup of very many": join_large_group,
    "DescribeGroups of a large one": describe_large_group,
    "ListGroups of very many": list_very_many_groups,
    "DeleteGroups of very many": delete_very_many_groups,
    "very many groups are forgotten": forget_very_many_groups,
    "records wake very many fetch sessions": wake_sessions,
    "a record wakes very many fetches": wake_fetches,
    "very many clients send at once": send_at_once,
    "ShareAcknowledge of each record": acknowledge_each,
    "ShareFetch of very many partitions": share_very_many_partitions,
    "AlterShareGroupOffsets of all": alter_share_offsets,
    "ConsumerGroupHeartbeat of many topics": get_a_large_assignment,
    "StreamsGroupHeartbeat, large": join_with_a_large_topology,
    "StreamsGroupHeartbeat, very many tasks": get_very_many_tasks,
    "members join a consumer group": joining("consumer"),
    "members join a share group": joining("share"),
    "members join a streams group": joining("streams"),
    "ConsumerGroupDescribe of a large one": describing("consumer"),
    "ShareGroupDescribe of a large one": describing("share"),
    "StreamsGroupDescribe of a large one": describing("streams"),
    "open the folder": open_again,
    "join the mesh": join_the_mesh,
    "a store joins the mesh": store_joins,
    "delete the topic": delete_topic,
    "ConsumerGroupHeartbeat, any topic": subscribe_to_everything,
}
"""In this order: each finds what those before it have left."""


def warm_up(broker: Broker) -> None:
    """Have everything imported and compiled that is only once."""
    scene = Scene(broker, 20, 20, "warm")
    for attack in ATTACKS.values():
        attack(scene)()


@contextmanager
def scene_of(partitions: int, offsets: int, warmed_up: bool = False) -> Iterator[Scene]:
    """A broker in a temporary folder. Everything is asked once, unless the process is ``warmed_up``."""
    with Broker(listen="127.0.0.1:0") as broker:
        scene = Scene(broker, partitions, offsets)
        scene.ask(topic_of(SMALL, 1), 5)
        if not warmed_up:
            warm_up(broker)
        yield scene


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=99_000)
    parser.add_argument("--offsets", type=int, default=600_000, help="committed when the topic is deleted")
    parser.add_argument("--only", default="", help="measure those with this in their name; others just run")
    parser.add_argument("--no-collector", action="store_true", help="switch Python's garbage collector off")
    parser.add_argument(
        "--embedded", action="store_true", help="garbage is collected as in a program, not as in a daemon"
    )
    parser.add_argument("--every", type=int, default=0, help="each API, with so many items in each list")
    parser.add_argument("--oldest", action="store_true", help="with --every: in its oldest version")
    options = parser.parse_args()
    _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    if options.no_collector:
        gc.disable()
    heads = "turn", "its cpu", "own cpu", "collection", "bystander"
    print(f"{'attack':40}" + "".join(f" {head:>10}" for head in heads) + f" {'took':>8}")
    with nullcontext() if options.embedded else passing_over_what_lasts():
        worst = _every(options) if options.every else _attacks(options)
    print(
        f"the longest turn took {1000 * worst:.0f} ms of processor time without collections of garbage, "
        f"{1000 * TURN:.0f} are allowed"
    )
    sys.exit(1 if worst > TURN else 0)


def _every(options: argparse.Namespace) -> float:
    count = options.every
    topics = min(count, MOST_TOPICS)
    with everything(count, topics, lambda name: options.only in name, not options.oldest) as scene:
        gc.collect()
        gc.freeze()
        return max(_told(wide.name, scene.outcome(wide)) for wide in scene.requests())


def _attacks(options: argparse.Namespace) -> float:
    worst = 0.0
    with scene_of(options.partitions, options.offsets) as scene:
        gc.collect()
        gc.freeze()  # as the daemon does: of the garbage collector only what is the broker's is measured
        for name, attack in ATTACKS.items():
            if options.only not in name and name not in ("create a topic", "commit offsets"):
                continue
            worst = max(worst, _told(name, measured(scene, attack)))
    return worst


def _told(name: str, outcome: Outcome) -> float:
    times = "".join(f" {1000 * one:7.0f} ms" for one in outcome[:5])
    print(f"{name:40}{times} {outcome.took:6.1f} s", flush=True)
    return outcome.own_cpu


if __name__ == "__main__":
    main()
