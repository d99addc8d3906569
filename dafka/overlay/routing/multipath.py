"""The way of a message to many receivers: paths joined into one tree.

Each peer is in the tree once, so nobody gets a message twice: a path that meets the tree goes on from there,
whichever way the tree came. Taken shortest first, all receivers keep the distance that their own paths have.
"""

from __future__ import annotations

from collections.abc import Iterable

from dafka.overlay.wire.routed import encode_branch

Hops = tuple[bytes, ...]


class Node:
    """A hop, and whether it is a receiver, one of many or (ADDRESSED) the only one."""

    __slots__ = ("branches", "deliver")

    def __init__(self) -> None:
        self.deliver: int = False
        self.branches: dict[bytes, Node] = {}


def join(paths: Iterable[Hops], receivers: int = True) -> Node:
    """The tree from this node (the root) over the paths; the last hop of each is a receiver of this kind."""
    root = Node()
    nodes: dict[bytes, Node] = {}
    for hops in sorted(paths, key=lambda hops: (len(hops), hops)):
        met = len(hops)  # hops up to the last one that the tree has
        while met and hops[met - 1] not in nodes:
            met -= 1
        node = nodes[hops[met - 1]] if met else root
        for hop in hops[met:]:
            branch = node.branches[hop] = nodes[hop] = Node()
            node = branch
        node.deliver = receivers
    return root


def height(node: Node) -> int:
    """How many hops there are behind a node, at most."""
    return max([1 + height(one) for one in node.branches.values()], default=0)


def encode(node: Node) -> bytes:
    """The branches behind a node, as a message carries them."""
    return b"".join([encode_branch(hop, one.deliver, encode(one)) for hop, one in node.branches.items()])
