"""Beacons: how nodes and towers tell where nodes are (wire/README, section Beacons and the tower)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dafka.protocol.errors import MalformedMessage

WELCOME = b"W"  # what a tower's XPUB sends to every new connection


class NodeBeacon(NamedTuple):
    """From a node to a tower: it can be reached at this host (empty: where it is seen from) and port."""

    address: bytes
    host: bytes
    port: int


class TowerBeacon(NamedTuple):
    """From a tower to all nodes: the node ``address`` can be reached at ``endpoint`` (``tcp://host:port``)."""

    address: bytes
    endpoint: bytes


def encode_beacon(beacon: NodeBeacon | TowerBeacon) -> list[bytes]:
    """The frames of a beacon."""
    if isinstance(beacon, NodeBeacon):
        return [b"B", beacon.address, beacon.host, str(beacon.port).encode()]
    return [b"B", beacon.address, beacon.endpoint]


def decode_beacon(frames: Sequence[bytes]) -> NodeBeacon | TowerBeacon:
    """The beacon of a message: four frames are a node's, three a tower's. Raises MalformedMessage."""
    if len(frames) not in (3, 4) or frames[0] != b"B":
        raise MalformedMessage("beacon", f"{len(frames)} frames")
    if not 0 < len(frames[1]) <= 255:
        raise MalformedMessage("beacon-address", f"{len(frames[1])} octets")
    if len(frames) == 3:
        if not frames[2].startswith(b"tcp://") or len(frames[2]) > 300:
            raise MalformedMessage("beacon-endpoint", repr(frames[2][:80]))
        return TowerBeacon(frames[1], frames[2])
    if not frames[3].isdigit() or len(frames[3]) > 5 or not 0 < int(frames[3]) < 65536:
        raise MalformedMessage("beacon-port", repr(frames[3][:20]))
    if len(frames[2]) > 255:
        raise MalformedMessage("beacon-host", f"{len(frames[2])} octets")
    return NodeBeacon(frames[1], frames[2], int(frames[3]))
