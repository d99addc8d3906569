"""Nodes of libbroker in a simulated overlay: trees of them, connected with nodes of ours in some places.

Where only one of a tree is connected with the overlay, each of them wants something else. Otherwise all want
the same: libbroker passes on what the next node wants, so what one in the middle does not want finds no way.
"""

from __future__ import annotations

from collections.abc import Iterator

from dafka.overlay.filters import reduced
from dafka.overlay.wire.marks import has_room

from .network import Network, Node, require
from .rules import distances, true_links

TOPICS = [b"", b"/a", b"/a/b", b"/d", b"/d/e", b"/f"]


def add_libbroker(network: Network) -> None:
    chance = network.random
    ours = list(network.nodes)
    for _ in range(chance.choice([1, 1, 2, 3])):
        tree = [Node(len(network.nodes) + number, True) for number in range(chance.choice([1, 1, 2, 3]))]
        network.nodes += tree
        for place, node in enumerate(tree[1:]):
            network.want(node.number, chance.choice(tree[: place + 1]).number)
        places = chance.sample(tree, chance.choice([1, len(tree)]))
        same = _prefixes(network)
        for node in tree:
            node.keeps_prefixes = len(places) > 1
            network.start(node, same if node.keeps_prefixes else _prefixes(network))
        for node in places:
            for other in chance.sample(ours, min(len(ours), chance.choice([1, 1, 2, 3]))):
                ends = (node.number, other.number)
                network.want(*(ends if chance.random() < 0.5 else ends[::-1]))


def _prefixes(network: Network) -> tuple[bytes, ...]:
    return tuple(network.random.sample(TOPICS, network.random.choice([0, 1, 2])))


def check_leaves(network: Network) -> None:
    """Every node knows the nodes of libbroker, one speaks for each, and each is told what the others want."""
    links = true_links(network)
    for node in links:
        near = list(distances(links, node))
        leaves = node.core.peer.flooding.leaves
        speakers = {}
        for one in _libbroker(network):
            gateways = [other for other in near if _are_peers(one, other)]
            if gateways:
                speakers[one.id] = min(gateway.id for gateway in gateways)
        known = {leaf: leaves.speaker(leaf) for leaf in leaves}
        require(known == speakers, f"{node} takes others for speakers")
        for one in _libbroker(network):
            if _are_peers(one, node):
                require(
                    leaves.filter(one.id) == reduced(one.prefixes), f"{node} knows an old filter of {one}"
                )
                wanted: tuple[bytes, ...] = ()
                if speakers[one.id] == node.id:
                    filters = [[*other.prefixes, *other.topics] for other in near]
                    others = [
                        other.prefixes
                        for other in _libbroker(network)
                        if other.id in speakers and other is not one
                    ]
                    wanted = reduced([prefix for filter in [*filters, *others] for prefix in filter])
                told = one.endpoint.filters[node.id]  # type: ignore[attr-defined]
                require(told == wanted, f"{node} told {one} {told} instead of {wanted}")


def is_joined(network: Network) -> bool:
    """Whether the nodes of ours all reach each other: there is one overlay, which speaks with one voice."""
    links = true_links(network)
    return not links or len(distances(links, next(iter(links)))) == len(links)


def reached(network: Network, publisher: Node, topic: bytes, payload: bytes) -> Iterator[Node]:
    """The receivers of a message."""
    links = true_links(network)
    if not network.is_quiet and any(node.is_libbroker for node in network.nodes):
        # Not one overlay: those in that of the publisher get it.
        ours = [] if publisher.is_libbroker else distances(links, publisher)
        yield from (node for node in ours if node is not publisher and topic.startswith(node.prefixes))
        return
    has: dict[Node, Node | None] = {publisher: None}  # and which node of ours it came from
    left = [publisher]
    while left:
        node = left.pop()
        near = [other for other in _libbroker(network) if _are_peers(node, other)]
        if node.is_libbroker:
            near += [other for other in links if _are_peers(node, other)]
        else:
            near += links[node]
        is_end = node.is_libbroker and has[node] is not None and not has_room(payload)
        for other in [] if is_end else near:
            # Nodes of ours pass on what they do not want.
            if other not in has and (not other.is_libbroker or topic.startswith(other.prefixes)):
                has[other] = None if node.is_libbroker else node
                left.append(other)
    yield from (node for node in has if node is not publisher and topic.startswith(node.prefixes))


def _libbroker(network: Network) -> list[Node]:
    return [node for node in network.nodes if node.is_libbroker and node.alive]


def _are_peers(one: Node, other: Node) -> bool:
    return other.id in one.peerings.peers and one.id in other.peerings.peers
