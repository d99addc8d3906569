"""Cluster: the knowledge of one node of the others, and its answers. A state machine without I/O.

Every limits.INTERVAL seconds a node asks the nodes that its configuration names (``controller.quorum.N``),
and describes itself to them. So two nodes know each other when one names the other; a node knows the topics
of the nodes that it asks. A node is lost, and is listed as lost, after limits.LOST_AFTER seconds without a
message from it.

Clients ask with a command and get a status and one frame of JSON:

``NODES``
    All nodes that are known, this one first: id, state (``up`` or ``lost``), where its servers listen, how
    many topics it has, how it is.
``PEERS``
    The nodes that the configuration names: address, whether it is connected, id if it has answered.
``TOPICS [name]``
    All topics, or those of a name, on all nodes: node, topic, first position, end; limits.LISTED at most, and
    ``truncated`` if there are more.

Anybody who reaches the port can claim to be a node. The answer of a node that the configuration names goes
before such a claim, and claims are bounded in number. Times are seconds of a clock that does not jump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from dafka.zper import commands
from dafka.zper.cluster import limits, messages
from dafka.zper.cluster.messages import InvalidNodeError, Node
from dafka.zper.cluster.topics import KnownTopics, OwnTopics
from dafka.zper.commands import InvalidCommandError, Status

_ANY_HOSTS = ("tcp://0.0.0.0:", "tcp://*:", "tcp://[::]:")


class _Known:
    """The known facts about another node."""

    def __init__(self, node: Node, now: float, host: str) -> None:
        self.node = node
        self.heard = now
        self.host = host
        self.address: str | None = None
        """Of the configuration, if it answered there."""
        self.topics = KnownTopics()

    def is_lost(self, now: float) -> bool:
        return now - self.heard >= limits.LOST_AFTER


class _Link:
    """A node that the configuration names."""

    def __init__(self) -> None:
        self.connected = False
        self.node: str | None = None
        """The id that answered last."""
        self.answered: float | None = None


class Cluster:
    """The cluster as one node sees it.

    ``binds`` are the addresses of this node's servers, ``quorum`` those of the other controllers.
    """

    def __init__(self, node: str, started: int, binds: Mapping[str, str], quorum: Sequence[str]) -> None:
        self._node = Node(node, started, 0, dict(binds), 0, {})
        self._topics = OwnTopics(generation=started)
        self._links = {address: _Link() for address in quorum}
        self._known: dict[str, _Known] = {}

    # -- this node --------------------------------------------------------------------------------

    def update(self, topics: Mapping[str, tuple[int, int]], health: Mapping[str, int]) -> None:
        """The topics of this node with their first position and end, and how it is."""
        self._topics.update(topics)
        self._node = self._node._replace(topics=len(topics), health=dict(health))

    # -- other nodes ------------------------------------------------------------------------------

    def connected(self, address: str) -> None:
        """A connection to the controller at this address of the configuration is there."""
        self._links[address].connected = True

    def disconnected(self, address: str) -> None:
        """It has ended."""
        self._links[address].connected = False

    def questions(self, now: float) -> dict[str, list[bytes]]:
        """The requests to the connected controllers now, by address. To be called every limits.INTERVAL
        seconds."""
        self._forget(now)
        self._node = self._node._replace(sequence=self._node.sequence + 1)
        asked = {}
        for address, link in self._links.items():
            known = self._known.get(link.node or "")
            if link.connected:
                have = messages.Have() if known is None else known.topics.have
                asked[address] = messages.question(self._node, have)
        return asked

    def answered(self, address: str, frames: Sequence[bytes], now: float) -> None:
        """A controller of the configuration has answered. Raises :class:`InvalidNodeError`."""
        node, changes = messages.read_answer(frames)
        link = self._links[address]
        link.node, link.answered = node.id, now
        if node.id == self._node.id:
            return  # the configuration names this node, too
        known = self._known.get(node.id)
        if known is None or known.address is None:
            known = self._known[node.id] = _Known(node, now, _host(address))
        known.node, known.heard, known.host = node, now, _host(address)
        known.address = address
        known.topics.take(changes)

    def asked(self, frames: Sequence[bytes], host: str, now: float) -> list[bytes]:
        """The response to a client, or to another node, at ``host``.

        Raises :class:`InvalidCommandError` or :class:`InvalidNodeError`, to be answered INVALID_COMMAND.
        """
        if not frames:
            raise InvalidCommandError("empty", "a request begins with a frame with the command's name")
        name, *arguments = frames
        if name == messages.NODE:
            node, have = messages.read_question(arguments)
            self._claimed(node, host, now)
            return messages.answer(self._node, self._topics.since(have))
        if name == b"TOPICS" and len(arguments) == 1:
            return messages.encode_for_client(self._list_topics(_topic_name(arguments[0])))
        lists: dict[bytes, Callable[[], dict[str, Any]]] = {
            b"NODES": lambda: {"nodes": list(self.nodes(now))},
            b"PEERS": lambda: {"peers": list(self._list_peers(now))},
            b"TOPICS": lambda: self._list_topics(None),
        }
        if name not in lists:
            given = bytes(name[:32])
            raise InvalidCommandError("unknown", f"{given!r} is not one of NODES, PEERS and TOPICS")
        if arguments:
            raise InvalidCommandError("argument-count", f"{name.decode()} with {len(arguments)} arguments")
        return messages.encode_for_client(lists[name]())

    def _claimed(self, node: Node, host: str, now: float) -> None:
        known = self._known.get(node.id)
        if node.id == self._node.id or (known is not None and known.address is not None):
            return
        if known is None:
            if len(self._known) < limits.NODES or self._drop_lost_claim(now):
                self._known[node.id] = _Known(node, now, host)
        elif known.is_lost(now) or _is_newer(node, known.node):  # its clock may have been set back
            known.node, known.heard, known.host = node, now, host

    def _drop_lost_claim(self, now: float) -> bool:
        """Make room in place of the claim that is silent for the longest time; whether there is a lost
        one."""
        claims = [(known.heard, name) for name, known in self._known.items() if known.address is None]
        if not claims or not self._known[min(claims)[1]].is_lost(now):
            return False
        del self._known[min(claims)[1]]
        return True

    def _forget(self, now: float) -> None:
        """Nodes that only claimed to be there are not kept for ever."""
        for name, known in list(self._known.items()):
            named = known.address is not None and self._links[known.address].node == name
            if not named and now - known.heard >= limits.FORGOTTEN_AFTER:
                del self._known[name]

    # -- clients ----------------------------------------------------------------------------------

    def nodes(self, now: float) -> Iterator[dict[str, Any]]:
        """All nodes that are known, this one first."""
        yield _shown(self._node, "") | {"state": "up", "silent_ms": 0}
        for known in self._known.values():
            state = "lost" if known.is_lost(now) else "up"
            yield _shown(known.node, known.host) | {"state": state, "silent_ms": _ms(now - known.heard)}

    def _list_peers(self, now: float) -> Iterator[dict[str, Any]]:
        for address, link in self._links.items():
            silent = None if link.answered is None else _ms(now - link.answered)
            yield {
                "address": address,
                "connected": link.connected,
                "node": link.node,
                "silent_ms": silent,
            }

    def _list_topics(self, name: str | None) -> dict[str, Any]:
        listed: list[dict[str, Any]] = []
        own = (self._node.id, self._topics.select(name))
        others = ((node, known.topics.select(name)) for node, known in self._known.items())
        for node, topics in chain([own], others):
            for topic, first, end in topics:
                if len(listed) == limits.LISTED:
                    return {"topics": listed, "truncated": True}
                listed.append({"topic": topic, "node": node, "first": first, "end": end})
        return {"topics": listed, "truncated": False}


def _is_newer(node: Node, known: Node) -> bool:
    return (node.started, node.sequence) >= (known.started, known.sequence)


def _shown(node: Node, host: str) -> dict[str, Any]:
    return {
        "id": node.id,
        "started": node.started,
        "binds": {role: _reachable(address, host) for role, address in node.binds.items()},
        "topics": node.topics,
        "health": node.health,
    }


def _reachable(address: str, host: str) -> str:
    """An address of every interface as one that can be connected to: with the host that the node has for
    us."""
    for begin in _ANY_HOSTS if host else ():
        if address.startswith(begin):
            quoted = f"[{host}]" if ":" in host and not host.startswith("[") else host  # IPv6
            return f"tcp://{quoted}:{address.removeprefix(begin)}"
    return address


def _host(address: str) -> str:
    """The host in ``tcp://host:port``."""
    return address.removeprefix("tcp://").rpartition(":")[0]


def _topic_name(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise InvalidCommandError("topic", f"{bytes(octets[:32])!r} is not UTF-8") from None


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


INVALID_COMMAND = [commands.status(Status.INVALID_COMMAND)]

__all__ = ["INVALID_COMMAND", "Cluster", "InvalidNodeError"]
