"""The lines about the overlay."""

from __future__ import annotations

import overlay_codec
import overlay_peers
from line import Line, measurement, pick, rate

_small = measurement(overlay_codec.small)
_connection = measurement(overlay_codec.connection)
_peers = measurement(overlay_peers.rates)
_BESIDE = "json, in the form of Broker's WebSocket API"

OVERLAY_LINES = [
    Line("overlay: small events encoded", rate, pick(_small), pick(_small, 1), _BESIDE, least_ratio=1),
    Line("overlay: small events decoded", rate, pick(_small, 2), pick(_small, 3), _BESIDE, least_ratio=0.8),
    Line(
        "overlay: conn events encoded", rate, pick(_connection), pick(_connection, 1), _BESIDE, least_ratio=1
    ),
    Line(
        "overlay: conn events decoded",
        rate,
        pick(_connection, 2),
        pick(_connection, 3),
        _BESIDE,
        least_ratio=0.5,
    ),
    Line("overlay: published to a peer, without sockets", rate, pick(_peers), pick(_peers, 1), "framed only"),
    Line("overlay: received of a peer, without sockets", rate, pick(_peers, 2), pick(_peers, 3), "cut only"),
]
