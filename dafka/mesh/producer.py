"""Producer: publishes records to one topic, on a partition of its own, and keeps them until stores have them.

``send`` runs in the caller's thread and only hands over; the hub numbers the messages, publishes them and
serves what is fetched (:mod:`dafka.mesh.producer_node`). A producer sends one kind of message for life, raw
records or record batches (:mod:`dafka.mesh.batch_producer`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from math import inf
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from gevent import monkey

from dafka.hub.completion import run_to_completion
from dafka.hub.hub import get_hub
from dafka.hub.waits import interval_of, wait_of
from dafka.mesh import limits, metrics_port
from dafka.mesh.address import TowerLike, check_topic, topic_name
from dafka.mesh.batch_producer import BatchProducerNode
from dafka.mesh.endpoint import node_options
from dafka.mesh.producer_node import (
    AddressInUseError,
    Finding,
    MessageKindError,
    PartitionEndError,
    ProducerClosedError,
    ProducerNode,
    RecordTooLargeError,
    SendTimeoutError,
    UnacknowledgedError,
)
from dafka.protocol.batch import CODECS, HEADER_OCTETS, MAGIC, is_batch
from dafka.protocol.compression import LIBRARIES, is_available
from dafka.roles.claim import PartitionClaim
from dafka.roles.producer import ProducerRole

__all__ = [
    "AddressInUseError",
    "MessageKindError",
    "PartitionEndError",
    "Producer",
    "ProducerClosedError",
    "RecordTooLargeError",
    "SendTimeoutError",
    "UnacknowledgedError",
]

log = logging.getLogger(__name__)

CLOSE_TIMEOUT = 10.0  # seconds that close() waits for acknowledgements by default
SHORTEST_STORE_TIMEOUT = 30.0  # seconds; above Limits.longest_ack_interval, with one lost
END_TIMEOUT = 10.0  # seconds that stores have to say where a partition ends
LONGEST_LINGER = 3600.0
LINGER = 0.005  # seconds that a record batch waits for more records by default

_Lock = monkey.get_original("threading", "Lock")
_ReentrantLock = monkey.get_original("_thread", "RLock")


class Producer:
    """A producer on the mesh (46/DAFKA). Thread safe.

    ``topic``: str or bytes of 1 to 255 octets. ``tower`` and further keywords (``bind``, ``framing``,
    ``beacon_interval``, ...): see :func:`dafka.mesh.options.mesh_options`. ``address``: the partition's
    name, a fresh UUID unless given (see below). ``min_stores``: distinct stores that
    must have acknowledged a record before it is forgotten; 0 asks for none and keeps what memory allows for
    consumers. ``head_interval``: seconds between HEADs; while nothing is new they get rarer, to one in 32 s.
    ``store_timeout``: seconds after which a store that acknowledges nothing, not even again, counts as lost
    with its disk: consumers that ask for records of such stores alone are told that these are gone, and go on
    behind them. At least 30, as stores repeat themselves every 16 s (C stores do not); None, the default,
    waits for them for ever.

    ``batch``: send Kafka record batches in place of raw records. That is several times faster, and records
    have keys, headers and timestamps; C nodes carry them and hand them out as they are.
    ``compression``: of batches, ``"gzip"``, ``"snappy"``, ``"lz4"`` or ``"zstd"``. ``linger``: seconds that
    a batch waits for more records, 5 ms unless given. Both are for ``batch`` only.

    A producer that is given its ``address`` goes on with the partition of that name where it ends: it asks
    ``min_stores`` stores (one, if that is 0) before it numbers its first record, and :meth:`send` waits for
    them. When they have not answered within ``end_timeout`` seconds, ``send`` raises
    :class:`PartitionEndError`; with ``end_unknown="begin"`` the producer begins behind what it has heard of,
    which may be at 0. Only one producer may use an address at a time: two that are running find each other
    out, and :meth:`send` and :meth:`flush` of the later one raise :class:`AddressInUseError`; of both, if
    they met when both had numbered records.

    Raises :class:`InvalidTopicError`, :class:`InvalidAddressError`, :class:`AddressInUseError`, ValueError.
    """

    def __init__(
        self,
        topic: str | bytes,
        *,
        tower: TowerLike = None,
        address: str | None = None,
        min_stores: int = 1,
        head_interval: float = 1.0,
        store_timeout: float | None = None,
        batch: bool = False,
        compression: str | None = None,
        linger: float | None = None,
        end_timeout: float = END_TIMEOUT,
        end_unknown: str = "error",
        **mesh: Any,
    ) -> None:
        octets = check_topic(topic)
        if not isinstance(min_stores, int) or min_stores < 0:
            raise ValueError(f"min_stores is a number of stores, 0 or more, not {min_stores!r}")
        head_interval = interval_of(head_interval, "head_interval", above=True, most=inf)
        store_timeout = wait_of(store_timeout, "store_timeout")
        if store_timeout is not None and store_timeout < SHORTEST_STORE_TIMEOUT:
            raise ValueError(
                f"store_timeout is a time of {SHORTEST_STORE_TIMEOUT:g} s or more, or None, "
                f"not {store_timeout!r}"
            )
        end_timeout = interval_of(end_timeout, "end_timeout", above=True)
        if end_unknown not in ("error", "begin"):
            raise ValueError(f"end_unknown is 'error' or 'begin', not {end_unknown!r}")
        _check_batching(batch, compression, linger)
        options = node_options(self, tower, mesh)
        self._tower = tower  # one that nobody else has runs as long as this node
        name = options.own_address(address) if address is not None else options.new_address()
        self.topic = topic_name(octets)
        self.address = name.decode()
        self._hub = get_hub()
        self._lock = _ReentrantLock()  # the handler of a signal may send where its thread holds it
        self._closed = False
        claim = None
        if address is not None:
            _claim(self)
            claim = PartitionClaim(octets, name, options.new_address(), min_stores=min_stores)
        finding = Finding(end_timeout, end_unknown == "begin")
        role = ProducerRole(
            octets,
            name,
            min_stores=min_stores,
            head_interval=head_interval,
            store_timeout=store_timeout,
            claim=claim,
        )
        self._batches: BatchProducerNode | None = None
        self._node: ProducerNode
        if batch:
            linger = LINGER if linger is None else linger
            self._node = self._batches = self._hub.run(
                BatchProducerNode, self._hub, options, role, head_interval, compression, linger, finding
            )
        else:
            self._node = self._hub.run(ProducerNode, self._hub, options, role, head_interval, finding)
        _producers.add(self)

    def send(
        self,
        value: bytes | None,
        timeout: float | None = None,
        *,
        key: bytes | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
    ) -> int:
        """Publish one record and return its offset.

        Returns as soon as the record is handed over; waits only while there is no room, at most
        ``timeout`` seconds (None: for ever). With ``batch`` the value may be None, and a record has a
        ``key``, ``headers`` (name and value) and a ``timestamp`` (milliseconds since the epoch, by default
        now).

        Raises TypeError for anything but bytes, :class:`RecordTooLargeError`, :class:`SendTimeoutError`,
        :class:`ProducerClosedError`, ValueError for a ``timeout`` of NaN. Without ``batch`` also
        :class:`MessageKindError`: for a key, headers or a timestamp, and for a value that readers would take
        for a record batch.
        """
        if timeout is not None:
            timeout = wait_of(timeout)
        if self._batches is not None:
            return self._batches.append(value, key, headers, timestamp, timeout)
        if key is not None or headers or timestamp is not None:
            raise MessageKindError(
                "a producer of raw records sends values only; key, headers and timestamp need batch=True"
            )
        if type(value) is not bytes:
            if not isinstance(value, (bytearray, memoryview, bytes)):
                raise TypeError(f"a record's value is bytes, not {type(value).__name__}")
            value = bytes(value)
        size = len(value)
        if size > limits.RECORD_OCTETS:
            raise RecordTooLargeError(
                f"a record has at most {limits.RECORD_OCTETS} octets, this one has {size}"
            )
        if size >= HEADER_OCTETS and value[16] == MAGIC and is_batch(value):
            raise MessageKindError(
                "a producer of raw records does not send record batches: readers would take it for one and "
                "its records for this producer's"
            )
        node = self._node
        if node.lone.lease is not None and size <= limits.LONE_OCTETS:
            sequence = node.lone.send(value)
            if sequence is not None:
                if not node.signalled:
                    node.signal()
                return sequence
        if (
            node.full
            or len(node.pending) >= limits.PENDING_RECORDS
            or node.sent_bytes - node.drained_bytes >= limits.PENDING_BYTES
        ):
            node.wait_for_room(timeout)
        with self._lock:
            if self._closed:
                raise ProducerClosedError(f"the producer of topic {self.topic!r} is closed")
            sequence = node.next
            # Ctrl-C comes behind a call: these three happen all or not at all.
            node.next = sequence + 1
            node.sent_bytes += size
            node.pending.append(value)
        if not node.signalled:
            node.signal()
        if not sequence % limits.WAY_RECORDS and len(node.pending) > 1:
            self._hub.give_way()  # consumers and stores would have nothing to do meanwhile
        return sequence

    @property
    def unacknowledged(self) -> int:
        """Records sent that the configured number of stores has not acknowledged yet."""
        return self._node.unacknowledged()

    @property
    def unstored(self) -> int:
        """Records sent that some store in the mesh has not acknowledged, whatever ``min_stores`` says.

        0 while no store is connected. A producer with ``min_stores=0`` that leaves before takes them along,
        and stores that know of them ask for them in vain.
        """
        return self._hub.run(self._node.unstored)

    def metrics(self) -> dict[str, Any]:
        """Counters and gauges of this producer and of its endpoint, by the names in
        :mod:`dafka.mesh.metrics`."""
        return self._hub.run(self._node.metrics)

    def announce_metrics(self, port: int) -> None:
        """Tell who looks at the mesh that these are served at this port of the producer's host, by HTTP."""
        self._hub.run(metrics_port.announce, self._node, port)

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait until ``min_stores`` stores have acknowledged it.

        Raises :class:`UnacknowledgedError` after ``timeout`` seconds (None: waits for ever).
        """
        timeout = wait_of(timeout)
        end = self._node.next if self._batches is None else self._batches.seal()
        self._hub.run(self._node.flush, end, timeout)

    def close(self, timeout: float | None = CLOSE_TIMEOUT) -> None:
        """:meth:`flush`, then leave the mesh, also when the flush fails.

        Raises :class:`UnacknowledgedError`, which says what stores did not acknowledge. Closing twice is
        allowed, and ends what Ctrl-C has kept the first time from leaving.
        """
        timeout = wait_of(timeout)
        with self._lock:
            self._closed = self._node.lone.stopped = True
        if self._node.closed:
            return
        if self._batches is not None:
            self._batches.shut()
        try:
            self.flush(timeout)
        finally:
            self._hub.run(run_to_completion, self._hub, self._node.close)

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, exc_type: object, *exc_info: object) -> None:
        if exc_type is None:
            self.close()
            return
        # An error in the block must not be hidden behind a wait that fails for the same reason.
        try:
            self.close(0.0)
        except UnacknowledgedError as error:
            log.warning("%s", error)

    def __repr__(self) -> str:
        return f"<Producer topic={self.topic!r} partition={self.address}>"


def _check_batching(batch: bool, compression: str | None, linger: float | None) -> None:
    if not batch and (compression is not None or linger is not None):
        raise ValueError("compression and linger are for record batches: they need batch=True")
    if compression not in CODECS:
        known = ", ".join(filter(None, CODECS))
        raise ValueError(f"compression is one of {known} or None, not {compression!r}")
    if compression is not None and not is_available(compression):
        library = LIBRARIES[compression]
        raise ValueError(f"compression {compression!r} is not installed: pip install {library}")
    if linger is not None:
        interval_of(linger, "linger", most=LONGEST_LINGER)


_producers: WeakSet[Producer] = WeakSet()
_claimed: WeakValueDictionary[str, Producer] = WeakValueDictionary()  # by an address that the user gave
_claiming = _Lock()


def _claim(producer: Producer) -> None:
    """Two producers of one partition would both number their records from 0."""
    with _claiming:
        other = _claimed.get(producer.address)
        if other is not None and not other._closed:
            raise AddressInUseError(f"{other!r} has the address {producer.address}")
        _claimed[producer.address] = producer


def _cut_off_in_child() -> None:
    for producer in list(_producers):
        producer._lock = _ReentrantLock()
        producer._node.cut_off()
    _producers.clear()


os.register_at_fork(after_in_child=_cut_off_in_child)
