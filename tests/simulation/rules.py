"""What the mesh promises, as the nodes of the simulation check it when they see it broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dafka.roles.follower import Follower

    from .network import Network

Key = tuple[bytes, bytes]  # topic, partition

PLENTY = 1000  # a room for so many records that a node does not have to wait for some of it
PROMPT = 1.0  # seconds that a published record takes at most to a node that has all before it
SETTLED = 2.0  # seconds without faults after which an answer that exists is one that arrives


class Violation(AssertionError):
    """Something the mesh promises did not hold."""


def require(condition: bool, text: str) -> None:
    if not condition:
        raise Violation(text)


def content_of(address: bytes, sequence: int, run: int = 1) -> bytes:
    """What the ``run``-th producer of a partition sends as this record."""
    return b"%s/%d/%d" % (address[-4:], sequence, run)


def is_content_of(content: bytes, address: bytes, sequence: int) -> bool:
    """Whether one of the producers of a partition has sent this as that record."""
    return content.rpartition(b"/")[0] == content_of(address, sequence).rpartition(b"/")[0]


def run_of(content: bytes) -> int:
    """Which of the producers of its partition has sent this."""
    return int(content.rpartition(b"/")[2])


def note_gone(network: Network, key: Key, first: int) -> None:
    network.gone[key] = max(first, network.gone.get(key, 0))


def check_skip(node: Any, key: Key, first: int, following: int) -> None:
    """A node leaves out the records ``first`` to ``following - 1``.

    They must have been let go of somewhere. And without faults nothing is left out that a store has, or has
    on its way into its log, with which this node has been connected for a while; or that a producer has,
    unless it lacks the first one: then it leaves the answer to the stores.
    """
    network = node.network
    require(
        first < following <= network.gone.get(key, 0),
        f"{node} leaves out {first}..{following - 1} of {key}; let go of are those below "
        f"{network.gone.get(key, 0)}",
    )
    settled = network.now - SETTLED
    if network.calm_since > settled:
        return
    for other in network.nodes:
        if other is node or not network.are_linked(node, other, settled):
            continue
        if other in network.stores:
            left_out = range(first, following)
            held = next((number for number in left_out if other.holds(key, number)), None)
            require(held is None, f"{node} leaves out record {held} of {key}, which {other} has")
        elif other in network.producers and other.key == key:
            require(not other.holds(first), f"{node} leaves out record {first} of {key}, which {other} has")


def expect_prompt(network: Network, producer: Any, first: int, end: int) -> None:
    """A producer publishes the records ``first`` to ``end - 1``.

    A node that has all before them, and room, has them soon, whatever else is being fetched; without faults,
    and if it has been connected for a while.
    """
    settled = network.now - SETTLED
    if network.calm_since > settled:
        return
    for node in network.nodes:
        follower = node.follower(producer.key)
        if follower is not None and follower.next == first and network.are_linked(node, producer, settled):
            network.later_in(node, PROMPT, _check_prompt, node, producer.key, follower, end)


def _check_prompt(node: Any, key: Key, follower: Follower, end: int) -> None:
    if node.follower(key) is follower and follower.next < end:
        raise Violation(f"{node} has {key} up to {follower.next}, {PROMPT} s after {end} were published")
