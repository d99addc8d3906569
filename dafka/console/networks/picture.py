"""The picture of a mesh: producers, stores with their ends, and followers, as heard from outside.

Nothing is asked of the nodes that they do not say by themselves or to everybody who joins. HEAD tells where
a partition ends, ACK how far a store has it, FETCH who is behind and asks, TRIMMED what is gone, GET-HEADS
and CONSUMER-HELLO who follows a topic. Subscriptions tell who is there: W and an address is a store, L a
consumer, K the producer of a partition. So a consumer's position is not known, only what it asks for again.

A state machine: heard messages go in with their time, rows come out. Every table has a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any, NamedTuple

from dafka.console import limits
from dafka.mesh.address import address_name, topic_name
from dafka.mesh.observer import Heard, Seen
from dafka.mesh.transport import Speaker
from dafka.protocol.commands import (
    Ack,
    Claim,
    ConsumerHello,
    DirectHead,
    Fetch,
    GetHeads,
    Head,
    StoreHello,
    Trimmed,
)

Key = tuple[bytes, bytes]  # topic and partition

HERE = "here"
"""Where the nodes of the console's own process are."""


@dataclass
class _Asked:
    """A node's fetches from one partition."""

    sequence: int
    since: float  # when it has asked for that first
    when: float
    times: int = 1


@dataclass
class _Partition:
    end: int = 0
    first: int = 0
    when: float = 0.0
    speaker: Speaker | None = None  # of the last HEAD
    headed: bool = False
    stores: dict[bytes, int] = field(default_factory=dict)  # up to where
    asked: dict[bytes, _Asked] = field(default_factory=dict)  # by the asking node
    counted: tuple[float, int] = (0.0, 0)  # a moment, and the end at that moment
    rate: float = 0.0

    def grow(self, end: int) -> None:
        self.end = max(self.end, end)


@dataclass
class _Node:
    when: float = 0.0
    speaker: Speaker | None = None
    is_store: bool = False
    is_producer: bool = False
    topics: set[bytes] = field(default_factory=set)
    commands: int = 0


class _Present(NamedTuple):
    """The nodes that their subscriptions tell of."""

    stores: frozenset[bytes] = frozenset()
    consumers: frozenset[bytes] = frozenset()
    producers: frozenset[bytes] = frozenset()


class Picture:
    """``own``: names for addresses that the console knows, such as that of its broker."""

    def __init__(self, own: Mapping[bytes, str] | None = None) -> None:
        self.own = dict(own or {})
        self.left_out = 0
        """How many entries found no room in the tables."""
        self._partitions: dict[Key, _Partition] = {}
        self._nodes: dict[bytes, _Node] = {}
        self._present = _Present()
        self._places: dict[str, str] = {}  # an endpoint by host and port: the address of its beacon
        self._seen: Seen | None = None

    # -- what comes in --------------------------------------------------------------------------

    def hear(self, heard: Heard) -> None:
        """Something was said."""
        when, item, speaker = heard
        match item:
            case Head(address, topic, sequence):
                self._headed(when, (topic, address), sequence, speaker)
            case Ack(address, topic, sequence, store):
                self._stored(when, (topic, address), store, sequence + 1, speaker)
            case DirectHead(_, address, topic, sequence):
                self._told(when, (topic, address), sequence + 1, speaker)
            case Fetch(address, node, topic, sequence, _):
                self._fetches(when, (topic, address), node, sequence, speaker)
            case GetHeads(topic, node):
                self._follows(when, node, (topic,) if topic else (), speaker)
            case ConsumerHello(_, node, topics):
                self._follows(when, node, topics[: limits.MESH_TOPICS], speaker)
            case StoreHello(_, store):
                self._note(when, store, speaker, is_store=True)
            case Claim(address, _, topic):
                partition = self._partition((topic, address))
                if partition is not None:
                    partition.when = when
                    partition.speaker = speaker
            case Trimmed(_, address, topic, sequence):
                partition = self._partition((topic, address))
                if partition is not None:
                    partition.first = max(partition.first, sequence)
                    partition.grow(sequence)

    def see(self, seen: Seen) -> None:
        """Take in the nodes that are there now."""
        self._seen = seen
        by_id: dict[bytes, set[bytes]] = {b"W": set(), b"L": set(), b"K": set()}
        for prefix in seen.prefixes:
            if len(prefix) > 1:
                by_id[prefix[:1]].add(prefix[1:])
        self._present = _Present(*(frozenset(by_id[one]) for one in (b"W", b"L", b"K")))
        self._places = {
            endpoint.decode("utf-8", "replace").removeprefix("tcp://"): address_name(address)
            for address, endpoint in seen.peers.items()
        }
        for store in self._present.stores:
            self._node(store, is_store=True)
        for consumer in self._present.consumers:
            self._node(consumer)
        for address in seen.metrics:  # of producers, which are partitions otherwise, too
            one = self._node(address)
            if one is not None:
                one.is_producer = one.is_producer or address in self._present.producers
        for address, topics in seen.here.items():
            if address in self._nodes:
                self._nodes[address].topics.update(sorted(topics)[: limits.MESH_TOPICS])

    def count(self, now: float) -> None:
        """To be called now and then: rates count messages since then, and nodes away for long are
        forgotten."""
        for key, one in list(self._partitions.items()):
            since, end = one.counted
            if not since:
                one.counted = now, one.end
            elif now - since >= limits.SAMPLE_SECONDS:
                one.rate = (one.end - end) / (now - since)
                one.counted = now, one.end
            for asker, asked in list(one.asked.items()):
                if now - asked.when > limits.MESH_ASKED_SECONDS:
                    del one.asked[asker]
            if not one.stores and not one.headed and not one.asked and key[1] not in self._present.producers:
                del self._partitions[key]
        for address, node in list(self._nodes.items()):
            if not self._is_present(address) and now - node.when > limits.MESH_AWAY_SECONDS:
                del self._nodes[address]
                for one in self._partitions.values():
                    one.stores.pop(address, None)

    def _headed(self, when: float, key: Key, sequence: int, speaker: Speaker | None) -> None:
        partition = self._partition(key)
        if partition is not None:
            partition.grow(sequence + 1)
            partition.when, partition.speaker, partition.headed = when, speaker, True
            if key[1] in self._nodes:
                self._note(when, key[1], speaker)

    def _stored(self, when: float, key: Key, store: bytes, end: int, speaker: Speaker | None) -> None:
        if store:
            self._note(when, store, speaker, is_store=True)
        partition = self._partition(key)
        if partition is None:
            return
        partition.grow(end)
        if store in partition.stores or len(partition.stores) < limits.MESH_NODES_OF_ONE:
            partition.stores[store] = max(end, partition.stores.get(store, 0))
        asked = partition.asked.get(store)
        if asked is not None and end > asked.sequence:
            del partition.asked[store]

    def _told(self, when: float, key: Key, end: int, speaker: Speaker | None) -> None:
        """An answer to GET-HEADS does not say of which store it is; where it comes from may."""
        stores = [
            address
            for address in self._present.stores
            if (node := self._nodes.get(address)) is not None and node.when and node.speaker == speaker
        ]
        if len(stores) == 1:
            self._stored(when, key, stores[0], end, speaker)
        else:
            partition = self._partition(key)
            if partition is not None:
                partition.grow(end)

    def _fetches(self, when: float, key: Key, address: bytes, sequence: int, speaker: Speaker | None) -> None:
        self._note(when, address, speaker)
        node = self._nodes.get(address)
        if node is not None and len(node.topics) < limits.MESH_TOPICS:
            node.topics.add(key[0])
        partition = self._partition(key)
        if partition is None:
            return
        asked = partition.asked.get(address)
        if asked is None or asked.sequence != sequence:
            if asked is None and len(partition.asked) >= limits.MESH_NODES_OF_ONE:
                self.left_out += 1
                return
            partition.asked[address] = _Asked(sequence, when, when)
        else:
            asked.when, asked.times = when, asked.times + 1

    def _follows(self, when: float, address: bytes, topics: Iterable[bytes], speaker: Speaker | None) -> None:
        self._note(when, address, speaker)
        node = self._nodes.get(address)
        if node is not None:
            for topic in topics:
                if len(node.topics) < limits.MESH_TOPICS:
                    node.topics.add(topic)

    def _note(self, when: float, address: bytes, speaker: Speaker | None, *, is_store: bool = False) -> None:
        node = self._node(address, is_store=is_store)
        if node is not None:
            node.when, node.speaker = when, speaker
            node.commands += 1

    def _node(self, address: bytes, *, is_store: bool = False) -> _Node | None:
        node = self._nodes.get(address)
        if node is None:
            if len(self._nodes) >= limits.MESH_NODES:
                self.left_out += 1
                return None
            node = self._nodes[address] = _Node()
        node.is_store = node.is_store or is_store
        return node

    def _partition(self, key: Key) -> _Partition | None:
        partition = self._partitions.get(key)
        if partition is None:
            if len(self._partitions) >= limits.MESH_PARTITIONS:
                self.left_out += 1
                return None
            partition = self._partitions[key] = _Partition()
        return partition

    # -- what comes out -------------------------------------------------------------------------

    def _is_present(self, address: bytes) -> bool:
        return address in self.own or any(address in some for some in self._present)

    def kind(self, address: bytes) -> str:
        """The kind of a node: ``store`` (a broker is one as well), ``consumer``, or ``producer``, which has
        told where its metrics are."""
        node = self._nodes.get(address)
        if address in self._present.stores or (node is not None and node.is_store):
            return "store"
        return "producer" if node is not None and node.is_producer else "consumer"

    def rows(self, now: float, search: str, limit: int) -> dict[str, Any]:
        """The mesh: towers, processes, nodes, and the partitions whose topics have ``search`` in their names,
        those first in which most happens or is missing."""
        seen = self._seen
        wanted = search.lower()
        matching = [key for key in self._partitions if wanted in topic_name(key[0]).lower()]
        shown = nlargest(limit, matching, key=self._weight)
        behind, leaders = self._behind(), self._leaders()
        nodes = sorted(self._nodes, key=lambda one: (self.kind(one) != "store", one))
        return {
            "towers": [
                {"publish_to": to, "subscribe_from": from_, "heard": seen is not None and seen.hears_tower}
                for to, from_ in (() if seen is None else seen.towers)
            ],
            "processes": [
                {"endpoint": endpoint, "address": address}
                for endpoint, address in sorted(self._places.items())
            ][: limits.MESH_SHOWN],
            "nodes": [
                self.node_row(now, address, behind.get(address)) for address in nodes[: limits.MESH_SHOWN]
            ],
            "total_nodes": len(nodes),
            "partitions": [self._row(now, key, leaders) for key in sorted(shown)],
            "total_partitions": len(self._partitions),
            "matching_partitions": len(matching),
            "left_out": self.left_out,
        }

    def node_row(self, now: float, address: bytes, behind: tuple[int, int] | None = None) -> dict[str, Any]:
        """A node as a row. Raises KeyError for one that is not known."""
        node = self._nodes[address]
        if behind is None:
            behind = self._behind().get(address, (0, 0))
        is_store = self.kind(address) == "store"
        return {
            "address": address_name(address),
            "kind": self.kind(address),
            "name": self.own.get(address),
            "process": self._process(address, node.speaker, known=bool(node.when)),
            "present": self._is_present(address),
            "heard": None if not node.when else max(0.0, now - node.when),
            "topics": sorted(map(topic_name, node.topics))[: limits.MESH_TOPICS],
            "partitions": behind[0] if is_store else None,
            "behind": behind[1] if is_store else None,
            "commands": node.commands,
        }

    def metrics_at(self, address: bytes) -> tuple[str, int] | None:
        """The host and the port where a node of another process serves its metrics, if it has told."""
        port = None if self._seen is None else self._seen.metrics.get(address)
        node = self._nodes.get(address)
        if port is None or node is None:
            return None
        if node.speaker is not None:
            return node.speaker[0], port
        # It has said nothing yet. Anybody may beacon the address of a host that is not in the mesh.
        hosts = {place.rpartition(":")[0].strip("[]") for place in self._places}
        heard = {one.speaker[0] for one in self._nodes.values() if one.speaker is not None}
        return (hosts.pop(), port) if len(hosts) == 1 and hosts <= heard else None

    def knows(self, address: bytes) -> bool:
        """Whether there is such a node."""
        return address in self._nodes

    def _behind(self) -> dict[bytes, tuple[int, int]]:
        """How many partitions each store has, and how many records of them it does not have yet."""
        found: dict[bytes, tuple[int, int]] = {}
        leaders = self._leaders()
        for key, partition in self._partitions.items():
            leader = self._leader(key, leaders)
            ends = partition.stores if leader is None else partition.stores | {leader: partition.end}
            for store, end in ends.items():
                partitions, records = found.get(store, (0, 0))
                found[store] = partitions + 1, records + partition.end - end
        return found

    def _weight(self, key: Key) -> tuple[int, float, int]:
        one = self._partitions[key]
        missing = max(
            (one.end - end for store, end in one.stores.items() if store not in self.own), default=0
        )
        return missing, one.rate, one.end

    def _row(self, now: float, key: Key, leaders: Mapping[Speaker | None, bytes]) -> dict[str, Any]:
        topic, address = key
        one = self._partitions[key]
        produced = address in self._present.producers
        led_by = self._leader(key, leaders)
        return {
            "topic": topic_name(topic),
            "partition": address_name(address),
            "first": one.first,
            "end": one.end,
            "rate": one.rate,
            "producer": produced,
            "led_by": None if led_by is None else address_name(led_by),
            "process": self._process(address, one.speaker, known=one.headed),
            "heard": max(0.0, now - one.when) if one.when else None,
            "stores": [
                {"store": address_name(store), "end": end, "behind": one.end - end}
                for store, end in sorted(one.stores.items())
                if store != led_by
            ],
            "followers": sorted(
                address_name(node)
                for node in self._present.consumers
                if (known := self._nodes.get(node)) is not None and topic in known.topics
            )[: limits.MESH_NODES_OF_ONE],
            "fetching": [
                {
                    "node": address_name(node),
                    "from": asked.sequence,
                    "times": asked.times,
                    "seconds": asked.when - asked.since,
                }
                for node, asked in sorted(one.asked.items())
            ],
        }

    def _leaders(self) -> dict[Speaker | None, bytes]:
        """The store that speaks from each place, where there is just one, or that is known by its name."""
        found: dict[Speaker | None, list[bytes]] = {}
        for address in self._present.stores:
            node = self._nodes.get(address)
            if address in self.own:
                found.setdefault(None, []).insert(0, address)
            elif node is not None and node.when:
                found.setdefault(node.speaker, []).append(address)
        return {place: some[0] for place, some in found.items() if len(some) == 1 or some[0] in self.own}

    def _leader(self, key: Key, leaders: Mapping[Speaker | None, bytes]) -> bytes | None:
        """The store that also numbers the records of a partition, which has no producer: a broker."""
        one = self._partitions[key]
        if not one.headed or key[1] in self._present.producers:
            return None
        return leaders.get(one.speaker)

    def _process(self, address: bytes, speaker: Speaker | None, *, known: bool) -> str | None:
        """Where a node is: the host and the port of its process."""
        if address in self.own or (self._seen is not None and address in self._seen.here):
            return HERE
        if speaker is not None:
            host, port = speaker
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        name = address_name(address)  # a C node beacons under its own address
        return next(
            (place for place, beacon in self._places.items() if beacon == name), HERE if known else None
        )
