"""The way of a message to many receivers: paths joined into trees.

Each peer is in a tree once, so nobody gets a message twice: a path that meets the tree goes on from there,
whichever way the tree came. Taken shortest first, all receivers keep the distance that their own paths have.

One tree is enough, unless there are so many hops behind the first one that it would refuse the message. The
other receivers are in a further tree, for a message of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dafka.overlay.limits import BRANCH_OCTETS, MOST_PEERS
from dafka.overlay.wire.routed import encode_branch

Hops = tuple[bytes, ...]

_BRANCH_HOPS = BRANCH_OCTETS // 20  # 16 of an id, 1 says whether it is a receiver, 3 are the length


class Node:
    """A hop, and whether it is a receiver, one of many or (ADDRESSED) the only one."""

    __slots__ = ("branches", "deliver")

    def __init__(self) -> None:
        self.deliver: int = False
        self.branches: dict[bytes, Node] = {}


def join(paths: Iterable[Hops], receivers: int = True) -> list[Node]:
    """The trees from this node (their roots) over the paths; the last hop of each is a receiver of this kind.

    The longest paths are left out when more than MOST_PEERS hops besides the receivers would be needed: there
    are no more peers, so somebody has invented paths.
    """
    left = sorted(paths, key=lambda hops: (len(hops), hops[-1]))  # each has another receiver
    spare = len(left) + MOST_PEERS
    roots: list[Node] = []
    while left:
        root = Node()
        roots.append(root)
        nodes: dict[bytes, Node] = {}
        firsts: dict[bytes, bytes] = {}  # the first hop of the branch that a hop is in
        behind: Counter[bytes] = Counter()  # hops behind a first one
        later: list[Hops] = []
        for hops in left:
            met = len(hops)  # hops up to the last one that the tree has
            while met and hops[met - 1] not in nodes:
                met -= 1
            new = len(hops) - met
            if new > spare:
                return roots
            first = firsts[hops[met - 1]] if met else hops[0]
            if behind[first] + new > _BRANCH_HOPS:
                later.append(hops)
                continue
            behind[first] += new
            spare -= new
            node = nodes[hops[met - 1]] if met else root
            for hop in hops[met:]:
                branch = node.branches[hop] = nodes[hop] = Node()
                firsts[hop] = first
                node = branch
            node.deliver = receivers
        left = later
    return roots


def height(node: Node) -> int:
    """How many hops there are behind a node, at most."""
    return max([1 + height(one) if one.branches else 1 for one in node.branches.values()], default=0)


def encode(node: Node) -> bytes:
    """The branches behind a node, as a message carries them."""
    return b"".join(
        [
            encode_branch(hop, one.deliver, encode(one)) if one.branches else hop + bytes((one.deliver, 0))
            for hop, one in node.branches.items()
        ]
    )
