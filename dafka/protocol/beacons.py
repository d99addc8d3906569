"""Beacons: how nodes and towers tell where nodes are (46/DAFKA; the frames are those of the C daemons)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dafka.protocol.errors import MalformedMessage

WELCOME = b"W"  # sent by a tower's XPUB to every new connection


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
    """The beacon of a message: four frames are a node's, three a tower's. Raises MalformedMessage.

    Its endpoint is fit to be connected to: a printable host without spaces and a port from 1 to 65535.
    """
    if len(frames) not in (3, 4) or frames[0] != b"B":
        raise MalformedMessage("beacon", f"{len(frames)} frames")
    address = frames[1]
    if not 0 < len(address) <= 255:
        raise MalformedMessage("beacon-address", f"{len(address)} octets")
    if len(frames) == 3:
        endpoint = _ENDPOINT.fullmatch(frames[2])
        if endpoint is None or _port(endpoint[1]) is None:
            raise MalformedMessage("beacon-endpoint", repr(frames[2][:80]))
        return TowerBeacon(address, frames[2])
    if _HOST.fullmatch(frames[2]) is None:
        raise MalformedMessage("beacon-host", repr(frames[2][:80]))
    port = _port(frames[3])
    if port is None:
        raise MalformedMessage("beacon-port", repr(frames[3][:20]))
    return NodeBeacon(address, frames[2], port)


_HOST = re.compile(rb"[!-~]{0,255}")
_ENDPOINT = re.compile(rb"tcp://[!-~]{1,255}:([0-9]{1,5})")


def _port(digits: bytes) -> int | None:
    if not digits.isdigit() or len(digits) > 5:
        return None
    return port if 0 < (port := int(digits)) < 65536 else None
