"""An endpoint: the presence of one process in a mesh, through one pair of tower addresses.

One XPUB socket says everything that the nodes of this process say, one SUB socket hears everything that is
said to them, another one what they have fetched, and one beacon announces them
(:mod:`dafka.mesh.beaconing`); ten thousand producers share them. Published records and heads come through a
lane of each consumer or store (:mod:`dafka.mesh.lane`). The endpoint decides nothing: it carries the outputs
of roles to the sockets and what arrives to the roles.

Messages that arrive go to the nodes that have subscribed to them (:mod:`dafka.mesh.routes`). Nodes of the
same endpoint hear each other directly, as lists and not as bytes, so they need no beacon to meet. The queue
between them (:mod:`dafka.mesh.local`) is bounded as a socket's is, and records that it drops are repaired
like those that a socket drops; a producer looks whether there is room (:attr:`Endpoint.congested`) and waits.

Messages are carried by a transport (:mod:`dafka.mesh.transport`): libzmq's sockets, which the loop here
reads, or our own, which read themselves.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

import gevent
import gevent.event

from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, next_turn
from dafka.mesh import limits
from dafka.mesh.beaconing import Beaconing
from dafka.mesh.counting import Discards
from dafka.mesh.heard import HeardPrefixes
from dafka.mesh.libzmq import LibzmqTransport
from dafka.mesh.links import Links
from dafka.mesh.local import LocalQueue
from dafka.mesh.node import Node
from dafka.mesh.options import EndpointOptions, node_options
from dafka.mesh.routes import Routes
from dafka.mesh.ticking import Ticking
from dafka.mesh.transport import LANE_IDS, AnyLane, EndpointBindError, Hearing, Speaker, Transport
from dafka.mesh.zmtp import ZmtpTransport
from dafka.protocol.commands import Ack, Command, Fetch, Head
from dafka.protocol.runs import Inbound, Run, topic_of
from dafka.roles.known_stores import KnownStores
from dafka.roles.outputs import HearAnswers, Subscribe, Unsubscribe
from dafka.sockets.leases import Lease

log = logging.getLogger(__name__)

__all__ = ["Endpoint", "EndpointBindError", "EndpointOptions", "Node", "node_options"]

_COUNTED = (
    *("records_in", "bytes_in", "records_out", "bytes_out"),
    *("commands_in", "commands_out", "fetches_in", "fetches_out"),
)
_PAUSE_AFTER_ERROR = 0.1  # seconds; an error that repeats must not take the processor


class Endpoint:
    """The sockets, the beacon and the routing table shared by the nodes of one process."""

    _open: dict[tuple[int, EndpointOptions], Endpoint] = {}  # noqa: RUF012 - the process's table of endpoints

    @classmethod
    def shared(cls, hub: Hub, options: EndpointOptions) -> Endpoint:
        """The endpoint with these options, made if there is none yet."""
        key = (id(hub), options)
        endpoint = cls._open.get(key)
        if endpoint is None:
            endpoint = cls._open[key] = cls(hub, options)
        return endpoint

    def __init__(self, hub: Hub, options: EndpointOptions) -> None:
        self.hub = hub
        self.options = options
        self.discarded = Discards()
        self.counts: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
        self._verbose = log.isEnabledFor(logging.DEBUG)
        self._routes = Routes()
        self._heard = HeardPrefixes()  # the subscriptions of remote peers
        self.stores = KnownStores()
        self.speaker: Speaker | None = None
        """The sender of what nodes are given now; None: a node of this process, or not known."""
        self._local = LocalQueue(hub.post)
        self._closed = False
        self._ready = gevent.event.Event()
        self._ticking = Ticking(hub, self._guard, self._ready.set)

        keys = None if options.keys is None else options.keys.load()
        self._transport: Transport
        if options.transport == "zmtp":
            self._transport = ZmtpTransport(hub, options, self, keys)
        else:
            self._transport = LibzmqTransport(hub, options, self, self._ready.set)
        transport = self._transport
        self._links = Links(transport.subscriber, transport.answers, transport.tells_reached)
        try:
            self._beaconing = Beaconing(
                hub, options, self._transport.port, self._links, self._ready.set, self.discarded, keys
            )
        except BaseException:
            self._transport.close()
            raise
        self._green = hub.keep(self._loop)

    @property
    def port(self) -> int:
        """Where peers connect to."""
        return self._transport.port

    @property
    def peers(self) -> frozenset[bytes]:
        """The endpoints of the peers that this one is connected to."""
        return frozenset(self._beaconing.peers)

    @property
    def known(self) -> dict[bytes, bytes]:
        """The endpoint of each peer that a tower has told of, by the address of its beacon."""
        return self._beaconing.known

    @property
    def nodes(self) -> dict[Node, set[bytes]]:
        """The nodes of this process with their subscriptions."""
        return self._routes.all

    def prefixes(self, ids: bytes) -> list[bytes]:
        """The subscriptions of nodes, here and elsewhere, that begin with one of these ID octets. What has
        subscribers here and elsewhere is in it twice."""
        return self._routes.with_ids(ids) + self._heard.with_ids(ids)

    @property
    def hears_tower(self) -> bool:
        """Whether a tower has said anything."""
        return self._beaconing.heard

    @property
    def congested(self) -> bool:
        """Whether the nodes of this process are behind with hearing each other."""
        return self._local.congested

    def when_clear(self, call: Callable[[], object]) -> None:
        """Post ``call`` to the hub when :attr:`congested` ends."""
        self._local.when_clear(call)

    def metrics(self) -> dict[str, Any]:
        """This endpoint's counters and gauges, by the names in :mod:`dafka.mesh.metrics`."""
        return {
            **{f"endpoint_{name}": count for name, count in self.counts.items()},
            "endpoint_peers": len(self._beaconing.peers),
            "endpoint_nodes": self._routes.nodes,
            "endpoint_subscriptions": len(self._routes),
            "endpoint_heard_subscriptions": len(self._heard),
            "endpoint_local_items": len(self._local),
            **self._transport.metrics(),
            **self.hub.turns.metrics(),
            "discarded": dict(self.discarded),
        }

    # -- nodes ----------------------------------------------------------------------------------

    def attach(self, node: Node) -> None:
        """Have ``node`` ticked and told of the subscriptions it asks for, those already there included.

        If they are very many it is told of most of them later, beside other work.
        """
        self._ticking.add(node)
        prefixes = [*self._routes.attach(node), *self._heard.with_ids(node.hello_ids)]
        for prefix in prefixes[: limits.TOLD_AT_ONCE]:
            self._guard(node.on_subscription, prefix)
        if len(prefixes) > limits.TOLD_AT_ONCE:
            self.hub.spawn(self._tell_rest, node, prefixes)

    def _tell_rest(self, node: Node, prefixes: list[bytes]) -> None:
        for prefix in Pace().over(islice(prefixes, limits.TOLD_AT_ONCE, None)):
            if node.left:
                return
            self._guard(node.on_subscription, prefix)

    def detach(self, node: Node) -> None:
        """Forget ``node`` and its subscriptions; the last one out closes the sockets."""
        node.left = True
        self._ticking.remove(node)
        if not self._closed:
            for prefix in list(self._routes.of(node)):
                self._unsubscribe(node, prefix)
        self._routes.detach(node)
        self._links.close_lane(node)
        if not self._routes.nodes:
            self._close()

    def resume(self, node: Node) -> None:
        """``node`` may have room again for published records."""
        own = self._links.lanes.get(node)
        if own is not None:
            own.resume()

    def is_behind(self, node: Node) -> bool:
        """Whether published records may have waited for ``node`` for a while."""
        own = self._links.lanes.get(node)
        return own is not None and own.behind

    def publish(self, node: Node, outputs: Iterable[Any]) -> None:
        """Carry out what a role has decided: send its commands and runs, change its subscriptions.

        A node that has left, or an endpoint that is closed, says nothing any more.
        """
        if self._closed or node.left:
            return
        for output in outputs:
            kind = type(output)
            if self._verbose:
                log.debug("out: %s", _brief(output))
            if kind is Run:
                self._publish_run(node, output)
            elif kind is Subscribe:
                self._subscribe(node, output.prefix)
            elif kind is Unsubscribe:
                self._unsubscribe(node, output.prefix)
            elif kind is HearAnswers:
                self._hear_answers(output.address)
            else:
                topic = topic_of(output)
                self.counts["commands_out"] += 1
                if kind is Fetch:
                    self.counts["fetches_out"] += 1
                if self._routes.has_others(topic, node):
                    self._to_local(node, output, 0)
                if self._heard.hears(topic):
                    self._transport.send(output)
        self._transport.look()

    def _publish_run(self, node: Node, run: Run) -> None:
        topic = topic_of(run)
        counts, size = self.counts, sum(map(len, run.contents))
        counts["records_out"] += len(run.contents)
        counts["bytes_out"] += size
        if self._routes.has_others(topic, node):
            self._to_local(node, run, size)
        if self._heard.hears(topic):
            self._transport.send(run)

    def lease(self, node: Node, first: bytes) -> Lease | None:
        """The right of any thread to publish what begins with ``first``, if no other node here hears it."""
        if self._closed or node.left or self._verbose or self._routes.has_others(first, node):
            return None
        return self._transport.lease(first)

    def count_flight(self, peers: int, octets: int, size: int) -> None:
        """Count a record of so many octets that was sent by a lease."""
        self.counts["records_out"] += 1
        self.counts["bytes_out"] += size
        self._transport.count_flight(peers, octets)

    def _to_local(self, origin: Node | None, item: Run | Command, size: int) -> None:
        if self._local.put(origin, item, size):
            self._ready.set()
        else:
            self.discarded.add("local-queue", len(item.contents) if type(item) is Run else 1)

    # -- routing --------------------------------------------------------------------------------

    def _subscribe(self, node: Node, prefix: bytes) -> None:
        is_first = prefix not in self._routes
        self._transport.revoke()  # this node may hear what was for peers alone
        if self._routes.subscribe(node, prefix):
            if prefix[:1] not in LANE_IDS:
                if is_first:
                    self._hearing(prefix).subscribe(prefix)
            elif node.always_has_room:
                self._transport.subscriber.subscribe(prefix)
            else:
                self._links.lane(node, partial(self._new_lane, node)).subscribe(prefix)
        if is_first:
            self.stores.subscribed(prefix)
            if prefix[:1] == b"D":
                self._links.hear_answers()
        self._ready.set()
        self._tell_subscription(prefix, node)

    def _unsubscribe(self, node: Node, prefix: bytes) -> None:
        if not self._routes.unsubscribe(node, prefix):
            return
        is_last = prefix not in self._routes
        if prefix[:1] not in LANE_IDS:
            if is_last:
                self._hearing(prefix).unsubscribe(prefix)
        elif node.always_has_room:
            self._transport.subscriber.unsubscribe(prefix)
        else:
            self._links.lanes[node].unsubscribe(prefix)
        if is_last and prefix not in self._heard:
            self.stores.unsubscribed(prefix)
        self._ready.set()

    def _hearing(self, prefix: bytes) -> Hearing:
        """The receiver of messages that do not come through lanes."""
        return self._transport.answers if prefix[:1] == b"D" else self._transport.subscriber

    def _tell_subscription(self, prefix: bytes, origin: Node | None) -> None:
        if prefix[:1] in LANE_IDS:
            self._ticking.rouse(prefix[1:])
        for node in self._routes.greeters(prefix):
            if node is not origin:
                self._guard(node.on_subscription, prefix)

    def _dispatch(self, item: Run | Command, origin: Node | None, *, from_peer: bool = False) -> None:
        is_run = type(item) is Run
        topic = topic_of(item)
        receivers = self._routes.receivers(topic)
        if self._verbose:
            log.debug("in: %s", _brief(item))
        if from_peer and topic[:1] in LANE_IDS:
            receivers = [node for node in receivers if node.always_has_room]  # the others have lanes
        for node in receivers:
            if node is not origin:
                rest = self._guard(node.on_run if is_run else node.on_command, item)
                if rest is not None:  # its producer is in this process, and will answer a FETCH
                    self._guard(node.on_command, Head(rest.address, rest.topic, rest.next - 1))

    def _guard(self, call: Callable[[Any], Any], argument: Any) -> Any:
        try:
            return call(argument)
        except Exception:
            log.exception("a node failed on %.200r", argument)
            return None

    # -- of the transport -----------------------------------------------------------------------

    def subscribed(self, prefix: bytes) -> None:
        """A peer has subscribed to ``prefix``."""
        self._heard.add(prefix)
        if prefix in self._heard:
            self.stores.subscribed(prefix)
        self._tell_subscription(prefix, None)

    def cancelled(self, prefix: bytes) -> None:
        """No peer is subscribed to ``prefix`` any more."""
        self._heard.discard(prefix)
        if prefix not in self._routes:
            self.stores.unsubscribed(prefix)

    def received(self, inbound: Inbound, speaker: Speaker | None = None) -> None:
        """Messages have come for any of the nodes. Waits as a green thread if they are many."""
        self._count(inbound)
        items = (*inbound.runs, *inbound.commands)
        for item in Pace().over(items, every=limits.DELIVERED_AT_ONCE) if len(items) > 1 else items:
            if type(item) is Fetch:
                self.counts["fetches_in"] += 1
            self.speaker = speaker
            self._dispatch(item, None, from_peer=True)
            self.speaker = None

    def reached(self, peer: str) -> None:
        """There is a connection to a peer."""
        self._beaconing.reached(peer)

    def expect(self, peer: str, began: float, lost: float) -> None:
        """Wait until a peer that was lost is to be connected to again."""
        self._beaconing.expect(peer, began, lost)

    def refused(self, cause: str) -> None:
        """Something was discarded."""
        self.discarded.add(cause)

    # -- lanes ----------------------------------------------------------------------------------

    def _new_lane(self, node: Node, peers: list[str]) -> AnyLane:
        deliver = partial(self._deliver, node, self._routes.of(node))
        return self._transport.lane(peers, self._count, deliver, None if self._verbose else node.lend)

    def _deliver(self, node: Node, own: set[bytes], item: Run | Command) -> Run | None:
        """Give a node what its lane has brought, if it is its ``own``; the rest that it has no room for."""
        is_run, topic = type(item) is Run, topic_of(item)
        if isinstance(item, Ack) or (topic not in own and topic[:1] not in own):
            return None
        if self._verbose:
            log.debug("in: %s", _brief(item))
        producer = self._beaconing.target_of(item.address)
        if producer is not None:
            self._links.distrust(producer)
        rest: Run | None = self._guard(node.on_run if is_run else node.on_command, item)
        return rest

    def _hear_answers(self, partition: bytes) -> None:
        producer = self._beaconing.target_of(partition)
        if producer is not None:
            self._links.trust(producer)
            self._ready.set()

    def _count(self, inbound: Inbound) -> None:
        counts = self.counts
        if inbound.discarded:
            self.discarded.add_all(inbound.discarded)
        for run in inbound.runs:
            counts["records_in"] += len(run.contents)
            counts["bytes_in"] += sum(map(len, run.contents))
        counts["commands_in"] += len(inbound.commands)

    # -- the loop -------------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._closed:
            try:
                busy = self._beaconing.read()
                busy = self._transport.read() or busy
                busy = self._read_local() or busy
            except Exception:
                if self._closed:
                    return
                log.exception("an endpoint failed on what it received, and goes on")
                gevent.sleep(_PAUSE_AFTER_ERROR)
                continue
            if busy:
                next_turn()
            else:
                self._ready.wait()
                self._ready.clear()

    def _read_local(self) -> bool:
        busy = bool(self._local)
        for origin, item in self._local.take():
            self._dispatch(item, origin)
        return busy

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        key = (id(self.hub), self.options)
        if Endpoint._open.get(key) is self:  # another with the same options may be open already
            del Endpoint._open[key]
        self._ready.set()
        self._beaconing.close()
        self._links.close()
        self._local.close()
        self._ticking.close()
        if self._green is not gevent.getcurrent():
            self._green.kill(block=False)
        self._transport.close()


def _brief(item: Any) -> str:
    """A command or an output for the log; of a run what it has, not its contents."""
    if type(item) is not Run:
        return f"{item!r:.300}"
    size = sum(map(len, item.contents))
    return f"{len(item.contents)} records, {size} octets: {item._replace(contents=[])!r:.300}"
