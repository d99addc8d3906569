"""The port at which a node serves its metrics, for observers of the mesh.

It is a subscription: it reaches each peer once, costs no message, ends with the node, and means nothing to
nodes that do not know it. It names the node and a port. The host is that of the node's process, so that a
node can send nobody who looks anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dafka.protocol.framing import ADDRESS_OCTETS
from dafka.roles.outputs import Subscribe

ID = b"Q"
"""The ID octet of these subscriptions, which no command has."""


def announce(node: Any, port: int) -> None:
    """Tell that the metrics of ``node`` are served at this port of its host, by HTTP. Hub side."""
    node.endpoint.publish(node, [Subscribe(ID + node.known_as + b":%d" % port)])


def announced(prefixes: Iterable[bytes]) -> Mapping[bytes, int]:
    """The port of each node that has told one, by its address."""
    found = {}
    for prefix in prefixes:
        address, port = prefix[1 : 1 + ADDRESS_OCTETS], prefix[1 + ADDRESS_OCTETS :]
        if prefix[:1] == ID and port[:1] == b":" and port[1:].isdigit() and len(port) < 7:
            number = int(port[1:])
            if 0 < number < 2**16:
                found[address] = number
    return found
