"""The port at which a node serves its metrics, for observers of the mesh.

It is a subscription: it reaches each peer once, costs no message, ends with the node, and means nothing to
nodes that do not know it. It names the node and a port. The host is one from which the mesh was heard, so
that no announcement sends those who look beyond the hosts of the mesh. With keys a node announces under its
own address alone (:mod:`dafka.mesh.speakers`); without, it may name another one, as in all that it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dafka.protocol.framing import ADDRESS_OCTETS
from dafka.roles.outputs import Subscribe, Unsubscribe

ID = b"Q"
"""The ID octet of these subscriptions, which no command has."""


def announce(node: Any, port: int) -> None:
    """Tell that the metrics of ``node`` are served at this port of its host, by HTTP, and no longer at
    another one. Hub side. Raises ValueError for what is no port."""
    check_port(port)
    before = [prefix for prefix in node.endpoint.nodes[node] if prefix[:1] == ID]
    told = Subscribe(ID + node.known_as + b":%d" % port)
    node.endpoint.publish(node, [*map(Unsubscribe, before), told])


def check_port(port: object) -> None:
    """Raise ValueError for what is no port."""
    if type(port) is not int or not 0 < port < 2**16:
        raise ValueError(f"port is a number from 1 to 65535, not {port!r:.100}")


def announced(prefixes: Iterable[bytes]) -> Mapping[bytes, int]:
    """The port of each node that has told one, by its address; of two, nobody knows which is right."""
    found: dict[bytes, set[int]] = {}
    for prefix in prefixes:
        address, port = prefix[1 : 1 + ADDRESS_OCTETS], prefix[1 + ADDRESS_OCTETS :]
        if prefix[:1] == ID and port[:1] == b":" and port[1:].isdigit() and len(port) < 7:
            number = int(port[1:])
            if 0 < number < 2**16:
                found.setdefault(address, set()).add(number)
    return {address: ports.pop() for address, ports in found.items() if len(ports) == 1}
