"""Requests as large as they may be, in short; ``scripts/attack`` is the long form."""

from __future__ import annotations

import gc
import gzip
import os
import signal
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from socket import SHUT_RDWR
from threading import get_ident
from typing import Any, NamedTuple

import pytest
from broker.clients import batch
from broker.pausing import at_pause, counted_pauses
from broker.server import attacks
from broker.server.attack_scene import Collections
from broker.server.client import WireClient, encoded
from broker.server.samples import fetch, produce
from broker.server.share_samples import share_fetch, share_offsets, share_samples
from cli.tools import running
from crc32c import crc32c
from timing import until

from dafka import Broker
from dafka.broker.codec import fetch_request, produce_request
from dafka.broker.embedded import records
from dafka.broker.interface.broker import Produced
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.share import ShareHeartbeat
from dafka.broker.records import fetch as fetching
from dafka.broker.records import leader
from dafka.broker.server.answers import share as answers
from dafka.broker.share.delivery import Delivery
from dafka.commit import writer
from dafka.hub import limits as hub_limits
from dafka.hub import turns
from dafka.hub.hub import get_hub
from dafka.protocol.batch import CRC_END, CRC_START, HEADER, HEADER_OCTETS, LENGTH_END, check_batch

TURN = attacks.TURN / 2  # with a third of what is done in a turn before others have theirs
ITEMS = 150  # from 33 microseconds for each of them on
PARTITIONS = 1600  # work done in one turn took from 10 to 140 ms for so many


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the interpreter's collections of garbage, which take long in a process of tests."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture
def shorter_pieces(monkeypatch):
    """Work that is done in pieces is done in pieces of a third, so that fewer partitions tell it from other
    work."""
    monkeypatch.setattr(hub_limits, "PACE_SECONDS", hub_limits.PACE_SECONDS / 3)
    monkeypatch.setattr(writer, "ROUND_SECONDS", writer.ROUND_SECONDS / 3)
    monkeypatch.setattr(writer, "TURN_ITEMS", writer.TURN_ITEMS // 3)


@pytest.mark.timeout(3000)
def test_no_request_makes_a_long_turn_of_the_hub(shorter_pieces):
    slow: dict[str, Any] = dict.fromkeys(attacks.ATTACKS.keys() - INCLUDED)
    for attempt, times in enumerate((1, 1, 2, 6)):
        # Programs beside this one slow the processor down, to a third in the worst case; code that does too
        # much in one turn does so every time. It takes six times as long for six times as many
        # partitions, which is not so of what is done in pieces.
        again = long_turns(times * PARTITIONS, times * TURN, slow.keys(), warmed_up=attempt > 0)
        slow = {name: (slow[name], again[name]) for name in slow.keys() & again.keys()}
        if not slow:
            return
    assert not slow


def test_a_collection_of_garbage_that_had_begun_before_anybody_looked_is_not_measured():
    collections, hub = Collections(), get_hub()
    hub.run(collections._seen, "stop", {})
    assert collections.longest == 0.0
    hub.run(collections._seen, "start", {})
    hub.run(collections._seen, "stop", {})
    assert collections.longest > 0.0


FIRST = "create a topic", "commit offsets", "Produce to all partitions"  # the observations of the others
INCLUDED = {"open the folder", "join the mesh"}  # in that a store joins the mesh


def long_turns(partitions: int, limit: float, names: Collection[str], warmed_up: bool) -> dict[str, Any]:
    """The results of the named attacks that made a turn longer than this."""
    slow = {}
    with uncollected(), attacks.scene_of(partitions, partitions, warmed_up) as scene:
        for name, attack in attacks.ATTACKS.items():
            if name not in (*names, *FIRST):
                continue
            outcome = attacks.measured(scene, attack, pause=0.1)  # nothing is expected of the bystander
            if name in names and outcome.turn_cpu > limit:
                slow[name] = outcome
    return slow


def test_no_api_makes_a_long_turn_of_many_items(shorter_pieces):
    slow: dict[str, Any] = {}
    for attempt, times in enumerate((1, 1, 2, 10)):  # as above: work in pieces makes no longer turns
        again = frozenset(slow)
        wanted = again.__contains__ if again else lambda _: True
        items = times * ITEMS
        with attacks.everything(items, items, wanted, warmed_up=attempt > 0) as scene, uncollected():
            turns = {wide.name: scene.turn(wide) for wide in scene.requests()}
        slow = {name: turn for name, turn in turns.items() if turn > times * TURN / 2}
        if not slow:
            return
    assert not slow


def test_an_incremental_fetch_costs_what_has_changed(monkeypatch):
    with Broker(listen="127.0.0.1:0") as broker, WireClient(broker) as wire:
        wire.ask(attacks.topic_of("topic", 1000), 5)
        first = wire.ask(fetch("topic", *[0] * 1000, session_epoch=0), 11)

        def ask(epoch: int) -> list[int]:
            more = fetch("topic", session_id=first.session_id, session_epoch=epoch, topics=[])
            response = wire.ask(more, 11)
            return [one.partition_index for topic in response.responses for one in topic.partitions]

        assert ask(1) == []  # has seen that there is nothing
        looked: list[int] = []
        core = get_hub().run(lambda: broker._running.core)
        original = core.fetch
        monkeypatch.setattr(
            core, "fetch", lambda wanted, **how: looked.append(len(wanted)) or original(wanted, **how)
        )
        assert ask(2) == []
        assert looked == []
        wire.ask(produce("topic", *[batch(b"x")] * 3), 9)
        assert sorted(ask(3)) == [0, 1, 2]
        assert 3 <= sum(looked) <= 6


def test_answers_about_very_many_share_partitions_are_made_in_pieces(monkeypatch):
    count = 10 * hub_limits.PACE_ITEMS
    pauses, seen = [0], Counter[tuple[str, int]]()
    in_later_turn = turns.in_later_turn

    def pause(go_on: Any) -> None:
        pauses[0] += 1
        in_later_turn(go_on)

    def watch(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def call(*args: Any) -> Any:
            is_in_hub = get_ident() == hub_thread
            seen[name, pauses[0] if is_in_hub else -1 - seen.total()] += 1
            return original(*args)

        monkeypatch.setattr(owner, name, call)

    with Broker(listen="127.0.0.1:0") as broker, WireClient(broker) as wire:
        wire.ask(attacks.topic_of("topic", count), 5)
        topic_id = get_hub().run(broker._running.core.metadata, ["topic"]).topics["topic"].topic_id
        wire.ask(share_samples("topic", topic_id)[0], 1)  # a heartbeat
        opening = share_fetch(topic_id)
        Place = opening.topics[0].FetchPartition
        opening.topics[0].partitions = [
            Place(partition_index=number, acknowledgement_batches=[]) for number in range(count)
        ]
        hub_thread = get_hub().run(get_ident)
        monkeypatch.setattr(hub_limits, "PACE_SECONDS", 0.0)  # whoever may pause does
        monkeypatch.setattr(turns, "in_later_turn", pause)
        watch(answers, "fetched_partition")
        watch(answers, "offset_of")
        watch(Delivery, "leave")
        wire.ask(opening, 1)
        wire.ask(share_fetch(topic_id, 1, topics=[], max_wait_ms=50), 1)  # stands in line
        wire.ask(share_offsets(None), 0)
    assert {name for name, _ in seen} == {"fetched_partition", "offset_of", "leave"}
    assert max(seen.values()) <= hub_limits.PACE_ITEMS


def test_fetches_of_very_many_partitions_free_their_objects_in_pieces(monkeypatch):
    """What ends with a function is freed at once, which takes long if nothing else refers to it."""
    count = 10 * hub_limits.PACE_ITEMS
    pauses, freed = [0], Counter[tuple[str, int]]()
    in_later_turn = turns.in_later_turn

    def pause(go_on: Any) -> None:
        pauses[0] += 1
        in_later_turn(go_on)

    def watch(module: Any, name: str) -> None:
        class Watched(getattr(module, name)):
            def __del__(self) -> None:
                if get_ident() == hub_thread:  # other threads hold up nobody's turn
                    freed[name, pauses[0]] += 1

        monkeypatch.setattr(module, name, Watched)

    with Broker(listen="127.0.0.1:0") as broker, WireClient(broker) as wire:
        wire.ask(attacks.topic_of("topic", count), 5)
        hub_thread = get_hub().run(get_ident)
        with uncollected(), monkeypatch.context() as patched:
            patched.setattr(hub_limits, "PACE_SECONDS", 0.0)  # whoever may pause does
            patched.setattr(turns, "in_later_turn", pause)
            watch(fetching, "_Reading")
            watch(fetching, "Fetched")
            watch(fetch_request, "FetchFrom")
            for topic in ("topic", "unknown"):
                wire.ask(fetch(topic, *[0] * count, wait=1), 11)
            session = wire.ask(fetch("topic", *[0] * count, session_epoch=0), 11).session_id
            wire.ask(fetch("topic", wait=1, session_id=session, session_epoch=1, topics=[]), 11)
            get_hub().run(turns.next_turn)
    for name in ("_Reading", "Fetched", "FetchFrom"):
        assert sum(number for (one, _), number in freed.items() if one == name) >= 2 * count
    assert max(freed.values()) <= hub_limits.PACE_ITEMS + 1


def test_produces_to_very_many_partitions_free_their_objects_in_pieces(monkeypatch):
    count = 10 * hub_limits.PACE_ITEMS
    freed = Counter[tuple[str, int]]()

    class Watched:
        def __del__(self) -> None:
            if get_ident() == hub_thread:
                freed[type(self).__name__, pauses()] += 1

    class Batches(Watched, tuple):
        pass

    class Batch(Watched, bytes):
        pass

    class Outcome(Watched, Produced):
        pass

    split = produce_request._split
    with Broker(listen="127.0.0.1:0") as broker, WireClient(broker) as wire:
        wire.ask(attacks.topic_of("topic", count), 5)
        hub_thread = get_hub().run(get_ident)
        with uncollected(), monkeypatch.context() as patched:
            pauses = counted_pauses(patched)
            patched.setattr(
                produce_request, "_split", lambda *wanted: Batches(Batch(one) for one in split(*wanted))
            )
            patched.setattr(leader, "Produced", Outcome)
            patched.setattr(records, "Produced", Outcome)
            for topic in ("topic", "unknown"):
                wire.ask(produce(topic, *[batch(b"x")] * count), 9)
            get_hub().run(turns.next_turn)
    for name in ("Batches", "Batch", "Outcome"):
        assert sum(number for (one, _), number in freed.items() if one == name) >= 2 * count
    assert max(freed.values()) <= hub_limits.PACE_ITEMS + 1


@pytest.mark.parametrize("happening", ["deletes the topic", "disconnects"])
def test_records_of_a_large_produce_are_there_whatever_happens_while_it_is_let_go(monkeypatch, happening):
    """That is after their commit: a topic that is deleted then takes nothing of the answer with it, and
    whoever has gone has left nothing behind."""
    count = 3 * hub_limits.PACE_ITEMS
    asked = produce("topic", *[batch(b"x")] * count)
    with Broker(listen="127.0.0.1:0") as broker, WireClient(broker) as wire, WireClient(broker) as other:
        wire.ask(attacks.topic_of("topic", count), 5)
        core = broker._running.core  # type: ignore[union-attr]

        def happen() -> None:
            if happening == "disconnects":
                wire.socket.shutdown(SHUT_RDWR)
            else:
                assert core.delete_topics(["topic"])["topic"].error is None

        with monkeypatch.context() as patched:
            happened = at_pause(patched, "let_go", happen)
            if happening == "disconnects":
                wire.socket.sendall(encoded(asked, 9))
                until(happened)
                until(lambda: broker.metrics()["listener_connections"] == 1)
                found = other.ask(fetch("topic", *[0] * count, max_bytes=10_000_000), 11)
                partitions = found.responses[0].partitions
                assert [one.high_watermark for one in partitions] == [1] * count
            else:
                (topic,) = wire.ask(asked, 9).responses
                assert happened()
                assert [one.error_code for one in topic.partition_responses] == [0] * count
                assert sorted(one.index for one in topic.partition_responses) == list(range(count))
                assert {one.base_offset for one in topic.partition_responses} == {0}
        (topic,) = other.ask(produce("topic", batch(b"y")), 9).responses
        assert topic.partition_responses[0].error_code == (0 if happening == "disconnects" else 3)


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_members_are_described_one_after_the_other(client, kind, monkeypatch):
    """Each may subscribe to ten thousand topics, and others get turns in between."""
    names, members = [f"t{number}" for number in range(100)], 20
    for number in range(members):
        if kind == "share":
            client.call("share_heartbeat", ShareHeartbeat("g", f"m{number}", 0, topics=names))
        else:
            beat = ConsumerHeartbeat(f"m{number}", 0, topics=names, owned={}, rebalance_timeout=9.0)
            client.call("consumer_group_heartbeat", "g", beat)
    pauses = [0]
    in_later_turn = turns.in_later_turn

    def pause(go_on: Any) -> None:
        pauses[0] += 1
        in_later_turn(go_on)

    monkeypatch.setattr(hub_limits, "PACE_SECONDS", 0.0)  # whoever may pause does
    monkeypatch.setattr(turns, "in_later_turn", pause)
    found = client.call(f"describe_{kind}_groups", ["g"])["g"]
    assert [len(one.topics) for one in found.members] == [100] * members
    assert pauses[0] >= members


def with_gzip_of(body: bytes) -> bytes:
    header = check_batch(batch(b"x"))._replace(attributes=1)
    head = HEADER.pack(*header._replace(length=HEADER_OCTETS - LENGTH_END + len(body)))
    crc = crc32c(body, crc32c(head[CRC_END:]))
    return head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + body


class Told(NamedTuple):
    """A broker of which nothing is known but its address."""

    bootstrap_servers: str


def test_a_daemon_that_decompresses_hears_its_signal(tmp_path):
    configs = {"compression_type": "uncompressed", "max_message_bytes": "60000000"}
    content = with_gzip_of(gzip.compress(b"", mtime=0) * (16 * 1024 * 1024 // 20))
    frame = encoded(produce("topic", content), 9)
    with running("broker", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "db")) as daemon:
        said = next(line for line in daemon.stderr if line.startswith("broker: "))
        with WireClient(Told(said.split()[1])) as wire:
            wire.ask(attacks.topic_of("topic", 1, **configs), 5)
            for _ in range(3):
                wire.socket.sendall(frame)
            before = os.times()
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(200) == 0
            after = os.times()  # processor time, of all that the daemon has done
            assert after.children_user - before.children_user < 10


def test_a_large_produce_is_not_overtaken_by_a_small_one_behind_it():
    with Broker(listen="127.0.0.1:0") as broker, WireClient(broker) as wire:
        wire.ask(attacks.topic_of("topic", 2000), 5)
        large = produce("topic", *[batch(b"first", b"second")] * 2000)
        sent = [wire.send(large, 9), *(wire.send(produce("topic", batch(b"later")), 9) for _ in range(5))]
        answers = [wire.receive(large, 9, correlation) for correlation in sent]
        offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
        assert offsets == [0, 2, 3, 4, 5, 6]
