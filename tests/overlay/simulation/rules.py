"""What the overlay promises, checked against the true graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import pairwise

from dafka.overlay.filters import reduced
from dafka.overlay.values import encode

from .network import STORE, Network, Node, require


def true_links(network: Network) -> dict[Node, list[Node]]:
    """Connected nodes: each has the other for a neighbour, by the same connection, which lives."""
    links: dict[Node, list[Node]] = {
        node: [] for node in network.nodes if node.alive and not node.is_libbroker
    }
    by_id = {node.id: node for node in links}
    for node in links:
        for peer in node.core.peer.flooding.neighbours:
            other = by_id.get(peer)
            if other is None or not other.core.peer.flooding.is_neighbour(node.id):
                continue
            number = node.core.peerings.peers[peer]
            connection = node.connections.get(number)
            same = other.core.peerings.peers[node.id] == number
            if same and connection is not None and connection.alive:
                links[node].append(other)
    return links


def distances(links: dict[Node, list[Node]], start: Node) -> dict[Node, int]:
    found = {start: 0}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other in links[node]:
            if other not in found:
                found[other] = found[node] + 1
                queue.append(other)
    return found


def check_tables(network: Network) -> None:
    """Nothing has happened for a while: every node knows who is reachable, how far, and what each wants."""
    links = true_links(network)
    for (one, other), is_cut in network.wanted.items():
        node, peer = network.nodes[one], network.nodes[other]
        if not is_cut and node.alive and peer.alive:
            are_peers = node.id in peer.peerings.peers and peer.id in node.peerings.peers
            is_link = are_peers if node.is_libbroker or peer.is_libbroker else peer in links[node]
            require(is_link, f"{node} and {peer} are not connected")
    by_id = {node.id: node for node in links}
    for node in links:
        true = distances(links, node)
        peers = node.core.peer.flooding.table.peers
        reachable = {other.id for other in true if other is not node}
        is_small = len(reachable) > network.most_peers  # its table, and those of all that it can reach
        told = {peer for other in links[node] for peer in _told(other, node)}
        is_full = is_small and len(peers) >= network.most_peers
        require(
            set(peers) <= reachable if is_full else set(peers) == (told if is_small else reachable),
            f"{node} knows {sorted(by_id[one].number if one in by_id else -1 for one in peers)}, "
            f"reachable are {sorted(other.number for other in true)}",
        )
        is_strict = have_room(network, true)
        for peer, known in peers.items():
            other = by_id[peer]
            best = known.best()
            assert best is not None
            require(
                len(best.hops) == true[other] or is_small,
                f"{node} to {other}: {len(best.hops)} hops, {true[other]} would do",
            )
            require(
                known.filter == reduced([*other.prefixes, *other.topics]) or not is_strict,
                f"{node} knows an old filter of {other}",
            )
            require(len(known.paths) <= len(links[node]), f"{node} keeps more paths than it has links")
            for neighbour in links[node]:
                if neighbour is not other:
                    way = _shortest_without(neighbour, peer, node.id)
                    kept = known.paths.get(neighbour.id)
                    require(
                        kept is None if way is None else kept is not None and kept.hops[1:] == way,
                        f"{node} has another path to {other} from {neighbour} than that would tell",
                    )
            for path in known.paths.values():
                ways = [node, *[by_id[hop] for hop in path.hops]]
                for here, there in pairwise(ways):
                    require(there in links[here], f"{node} believes in a link {here} - {there}")
                require(len(set(ways)) == len(ways), f"{node} has a path with a loop")


def have_room(network: Network, nodes: Iterable[Node]) -> bool:
    """Whether each of these nodes has room for all peers that it can reach, and for what they want."""
    links = true_links(network)
    for node in nodes:
        others = [other for other in distances(links, node) if other is not node]
        prefixes = [prefix for other in others for prefix in reduced([*other.prefixes, *other.topics])]
        if len(others) > network.most_peers or sum(map(len, prefixes)) > network.most_octets:
            return False
    return True


def check_stores(network: Network) -> None:
    """Every clone that can reach the master has its content, and nothing is on its way."""
    links = true_links(network)
    for master in links:
        if master.content is None:
            continue
        expected = {encode(key): encode(value) for key, value in master.content}
        for node in distances(links, master):
            if node.has_clone:
                clone = node.endpoint.stores[STORE]
                require(clone.is_idle, f"the clone of {node} is not idle")
                content = {encode(key): encode(value) for key, value in clone.content}
                require(content == expected, f"{node} has another content than {master}")


def _told(node: Node, other: Node) -> set[bytes]:
    """Whom a node tells another of."""
    peers = node.core.peer.flooding.table.peers
    return {node.id} | {
        peer for peer in peers if peer != other.id and _shortest_without(node, peer, other.id) is not None
    }


def _shortest_without(node: Node, peer: bytes, avoided: bytes) -> tuple[bytes, ...] | None:
    known = node.core.peer.flooding.table.peers.get(peer)
    if known is None:
        return None
    ways = [path.hops for path in known.paths.values() if avoided not in path.hops]
    return min(ways, key=lambda hops: (len(hops), hops), default=None)


class Promise:
    """A message that has to arrive, unless one of the links of its way changes until then."""

    def __init__(self, network: Network, receiver: Node, payload: bytes, way: list[Node]) -> None:
        self._network = network
        self._receiver = receiver
        self._incarnation = receiver.incarnation
        self._changes = receiver.changes
        self._payload = payload
        self._way = way
        self._epochs = self._now()

    @property
    def hops(self) -> int:
        return len(self._way) - 1

    def _now(self) -> list[int]:
        epochs = self._network.epochs
        links = [(min(a.number, b.number), max(a.number, b.number)) for a, b in pairwise(self._way)]
        return [epochs[link] for link in links]

    def check(self) -> None:
        receiver = self._receiver
        if self._epochs != self._now() or receiver.changes != self._changes:
            return
        if receiver.incarnation == self._incarnation and receiver.alive:
            require(self._payload in receiver.received, f"{receiver} never gets {self._payload!r}")
